//! Scenarios: who is there, how they are joined, what goes wrong, what is sent.
//! The same scenario runs in every clock.

mod fault;
mod graph;
mod ideal;
mod parse;
mod shape;
mod topology;

use core::net::Ipv4Addr;

use crate::config::{NicAttributes, Profile, SwitchAttributes};
use crate::node::link::FaultRule;
use crate::time::Duration;
use crate::units::Rate;

pub use fault::{FAULT_KEYS, FaultKey, parse_fault};
pub use ideal::ideal_times;
pub use parse::{Assignment, Overrides, ScenarioError, parse, parse_with};
pub use topology::{End, LinkPlan, NodeKind, NodePlan, Topology};

/// A scenario whose every name has been resolved and every value checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// Its name, for files and reports.
    pub name: String,
    /// The seed of every random stream in the run.
    pub seed: u64,
    /// The profile that the attributes started from.
    pub profile: Profile,
    /// The NICs, in the order of the file. A NIC's index here is its node number.
    pub nics: Vec<NicSpec>,
    /// The switches; their node numbers follow the NICs'.
    pub switches: Vec<SwitchSpec>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// Programs that run on hosts, in the wall clock.
    pub execs: Vec<Exec>,
}

/// A NIC of the scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct NicSpec {
    /// Its name.
    pub name: String,
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Its attributes, the scenario's settings applied.
    pub attributes: NicAttributes,
}

/// A switch of the scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchSpec {
    /// Its name.
    pub name: String,
    /// Its attributes, the scenario's settings applied.
    pub attributes: SwitchAttributes,
}

/// A link between two nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkSpec {
    /// Node numbers of its ends.
    pub ends: [usize; 2],
    /// Its rate, when the file sets one; otherwise the lower of its ends' rates.
    pub rate: Option<Rate>,
    /// Its delay, when the file sets one; otherwise that of the device at its lower end.
    pub delay: Option<Duration>,
    /// The egress queue limit of switch ports on it, in bytes, when the file sets one.
    pub queue_limit: Option<u64>,
    /// MTU of its interfaces, in bytes of IP datagram.
    pub mtu: u32,
    /// What goes wrong from the first end to the second, and back.
    pub faults: [Vec<FaultRule>; 2],
}

/// Messages from one NIC to another, all of one size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Node number of the sender.
    pub from: usize,
    /// Node number of the receiver.
    pub to: usize,
    /// Bytes of each message.
    pub bytes: u32,
    /// How many messages.
    pub messages: u32,
    /// Whether all go on one QP, one after the other, or each on its own.
    pub one_qp: bool,
    /// How many may be posted and not completed at the same time.
    pub depth: u32,
    /// How long after the run's start the first ones are posted, in protocol time.
    pub start: Duration,
}

/// A program that runs on a NIC's host, over the host's own network stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exec {
    /// Node number of the NIC.
    pub node: usize,
    /// The program and its arguments: one word at least.
    pub command: Vec<String>,
    /// It is a server: the run does not wait for its end, and ends it.
    pub background: bool,
    /// How long after the run's start it starts, by the host's clock.
    pub start: Duration,
}

#[cfg(test)]
mod tests;
