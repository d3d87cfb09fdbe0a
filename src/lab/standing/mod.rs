//! A lab that stays up for work by hand.
//!
//! A process of its own keeps it: the keeper, in the lab's sandbox. All of the
//! lab ends with the keeper, whatever ends that. A folder of the lab's name has
//! the control sockets, what the processes said, and `lab.json`, which says who
//! is there; the keeper holds a lock on it, so that a folder without one is
//! what a killed lab left behind.

mod enter;
mod keeper;
mod place;

use core::net::Ipv4Addr;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::LabError;

pub use enter::{enter, enter_sandbox};
pub use keeper::{KeepPlan, Keeper, keep};
pub use place::Place;

/// What stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LabState {
    /// The lab's name.
    pub name: String,
    /// The scenario's file.
    pub scenario_file: String,
    /// The profile that attributes come from.
    pub profile: String,
    /// The seed.
    pub seed: u64,
    /// The time dilation factor.
    pub tdf: u32,
    /// The number of the process that keeps the lab.
    pub keeper: u32,
    /// The nodes, in the scenario's order.
    pub nodes: Vec<NodeState>,
}

/// One node of a lab that stands.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NodeState {
    /// Its name, and its namespace's.
    pub name: String,
    /// `nic` or `switch`.
    pub kind: String,
    /// A NIC's address.
    pub ip: Option<Ipv4Addr>,
    /// The number of the process that runs it.
    pub process: u32,
    /// Its control socket.
    pub control: PathBuf,
}

/// Why a lab did not come up, go down or let anybody in.
#[derive(Debug, thiserror::Error)]
pub enum StandingError {
    /// A name that a folder should not have.
    #[error(
        "lab name {0:?}: letters, digits, `.`, `_` and `-` are allowed, at most 40, the first one \
         a letter, digit or `_`"
    )]
    Name(String),
    /// The lab is there already.
    #[error("lab {0} is up already; take it down with `mrc lab down {0}`, or give --name")]
    Up(String),
    /// The lab is not there.
    #[error("no lab {name} is up; those that are up: [{}]", .up.join(", "))]
    NotUp {
        /// The name.
        name: String,
        /// Those that are.
        up: Vec<String>,
    },
    /// The lab has no such node.
    #[error("lab {lab} has no node {node}; it has {}", .known.join(", "))]
    NoNode {
        /// The lab.
        lab: String,
        /// The name.
        node: String,
        /// The nodes that it has.
        known: Vec<String>,
    },
    /// The folder of all labs is not this user's alone.
    #[error("{}: not a folder of this user alone; remove it, or set TMPDIR", .0.display())]
    Root(PathBuf),
    /// The lab did not come up.
    #[error("the lab did not come up: {0}")]
    NotKept(String),
    /// A namespace is not there.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Something failed on the way.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl StandingError {
    /// Wraps a system error with what was attempted.
    fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }
}
