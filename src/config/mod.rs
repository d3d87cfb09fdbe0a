//! Attributes of NICs and switches: one table each, from which setting,
//! checking and error messages come.

mod buffers;
mod congestion;
mod factor;
mod kind;
mod nic;
mod nic_table;
mod problems;
mod profile;
mod switch;
mod switch_problems;
mod switch_table;
mod table;

#[cfg(test)]
mod tests;

pub use buffers::{BufferAttributes, PcieSide, PfcAttributes, QueueScheduling};
pub use congestion::CongestionAttributes;
pub use factor::Factor;
pub use nic::{NicAttributes, RttTimestampMode};
pub use nic_table::NIC_ATTRIBUTES;
pub use problems::Problem;
pub use profile::{Profile, Setting};
pub use switch::{
    EcmpHashMethod, EcnAttributes, LinkDownReaction, LoadBalancing, PathAttributes, SWITCH_CLASSES,
    SharedBufferAttributes, SwitchAttributes, TrimVictim,
};
pub use switch_table::SWITCH_ATTRIBUTES;
pub use table::{Attribute, AttributeError, Group, Table};
