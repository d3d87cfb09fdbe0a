//! Daemons: a NIC or a switch each, in the wall clock; a process runs one or several.
//!
//! A [`Daemon`] is a node of a scenario, or a [`HostNic`] for which there is
//! none, on packet sockets of the network namespace it was opened in. Who controls
//! it speaks JSON lines over its control socket ([`protocol`]); [`Client`] does.
//!
//! ```text
//!   Group ------ Daemon          each gets its turn, in one thread
//!   Daemon ---- EventLoop        the node, its clock, its packet sockets
//!      |------- ControlServer    clients; each turn of the loop gives them theirs
//!      |------- EventLog         QP events, from the first on
//!      '------- Capture          every frame of its ports
//! ```

mod client;
mod connection;
mod error;
mod events;
mod faults;
mod group;
mod host;
mod nic;
mod ports;
pub mod protocol;
mod report;
mod role;
mod run;
mod server;
mod socket;
mod switch;

pub use client::{Client, ClientError};
pub use error::DaemonError;
pub use group::Group;
pub use host::{HostNic, NextHop};
pub use role::Role;
pub use run::{DEFAULT_TDF, Daemon, Options, Stopper};
pub use socket::check_socket_path;
