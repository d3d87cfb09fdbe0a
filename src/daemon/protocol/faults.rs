//! Faults on the control socket.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::node::link::FaultRule;
use crate::scenario::parse_fault;

/// One of a node's links, in the direction in which the node sends.
// spec: SW-20
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LinkFaults {
    /// The node's port, from 0.
    pub port: usize,
    /// The node at the other end.
    pub to: String,
    /// Whether no fault has taken the link down.
    pub up: bool,
    /// Its faults in the order in which they are asked.
    pub faults: Vec<FaultReport>,
}

/// A fault on a link.
// spec: SW-20
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultReport {
    /// Its number on the link: those of the scenario from 1 on in the order of
    /// the file, then those that were added.
    pub id: u64,
    /// What it says: `SACK, 0.1 % loss`.
    pub rule: String,
    /// How many packets came whose fields and times fitted.
    pub seen: u64,
    /// How often it has acted.
    pub acted: u64,
}

/// The rule that `fault` of a request says. It is read as a section of a
/// scenario file: keys, texts, numbers and truth values are spelled alike in
/// JSON and TOML.
///
/// # Errors
/// Everything that is wrong, as [`parse_fault`] says it.
// spec: SW-20
pub fn read_fault(fault: &Map<String, Value>) -> Result<FaultRule, Vec<String>> {
    let lines =
        fault.iter().map(|(key, value)| format!("{} = {value}\n", Value::from(key.as_str())));
    parse_fault(&lines.collect::<String>())
}
