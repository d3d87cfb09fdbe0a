//! The lab: hosts and switches as network namespaces of one machine, joined by
//! veth pairs, in a sandbox that the machine never notices.
//!
//! [`Sandbox::enter`] moves the process into namespaces of its own (as an
//! ordinary user where user namespaces are allowed, as root otherwise),
//! [`Network::build`] makes the nodes and links of a [`NetworkPlan`] in there,
//! and [`Sandbox::spawn_in`] starts programs in a node. All names live in the
//! sandbox and every child dies with the process, so that even `kill -9` leaves
//! nothing behind.
//!
//! ```no_run
//! use mrc_lab::lab::{Network, NetworkPlan, Sandbox};
//!
//! let sandbox = Sandbox::enter()?; // first thing in main: one thread only
//! let mut plan = NetworkPlan::default();
//! plan.add_node("a");
//! plan.add_node("s");
//! plan.add_link("a", "s", 4200);
//! let network = Network::build(&sandbox, &plan)?;
//! # Ok::<(), mrc_lab::lab::LabError>(())
//! ```

mod assemble;
mod daemons;
pub mod doctor;
mod error;
mod ip;
mod namespace;
mod network;
mod plan;
pub mod run;
mod sandbox;
pub mod standing;
mod sys;
mod wires;

pub use assemble::network_plan;
pub use daemons::{NodesOptions, OpenError, Processes, open_nodes, share_out};
pub use error::LabError;
pub use namespace::{InterfaceCounters, NamespaceHandle};
pub use network::Network;
pub use plan::{EndPlan, Ipv4Prefix, LinkPlan, NetworkPlan, PlanError, interface_mac};
pub use sandbox::Sandbox;
pub use sys::{active_offloads, become_user, drop_capabilities_but_net_raw};
pub use wires::Wires;
