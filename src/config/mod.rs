//! Attributes of NICs and switches: one table each, from which setting,
//! checking and error messages come.

mod buffers;
mod nic;
mod profile;
mod switch;
mod table;

pub use buffers::{BufferAttributes, PcieSide, PfcAttributes, QueueScheduling};
pub use nic::{NIC_ATTRIBUTES, NicAttributes, RttTimestampMode};
pub use profile::Profile;
pub use switch::{SWITCH_ATTRIBUTES, SwitchAttributes};
#[cfg(test)]
mod tests;

pub use table::{Attribute, AttributeError, Kind, set_attribute};
