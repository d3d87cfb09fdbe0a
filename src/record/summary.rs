//! What a run says at its end.

mod exec;
mod text;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::{Fidelity, FlowDigests, RunId};
use crate::nic::RetransmitCounts;
use crate::scenario::{Flow, Scenario};
use crate::time::{Duration, Instant};
use crate::trace::{Event, NodeId, TraceSink};
use crate::workload::FlowResult;

pub use exec::{ExecEnd, ExecSummary};

/// Retransmissions by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Retransmissions {
    /// The counts.
    #[serde(flatten)]
    pub by_cause: RetransmitCounts,
    /// All of them; completion re-requests are none.
    // spec: DONE-2
    pub total: u64,
}

impl From<RetransmitCounts> for Retransmissions {
    fn from(by_cause: RetransmitCounts) -> Self {
        Self { by_cause, total: by_cause.total() }
    }
}

/// How a flow went. Times are protocol time in nanoseconds, with the
/// picoseconds as decimals.
// spec: RC-9
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowSummary {
    /// The sender's name.
    pub from: String,
    /// The receiver's name.
    pub to: String,
    /// Bytes of all its messages.
    pub bytes: u64,
    /// Bytes of each message.
    pub message_bytes: u64,
    /// Its messages.
    pub messages: u64,
    /// Messages that the sender knows complete.
    pub completed: u64,
    /// Why it will never be complete, when that is so.
    pub failure: Option<String>,
    /// When the first message was posted.
    pub started_ns: Option<f64>,
    /// When the last message completed; `None` when some did not.
    pub finished_ns: Option<f64>,
    /// From the first posting to the last completion; `None` when some message
    /// did not complete.
    pub completion_ns: Option<f64>,
    /// The ideal completion time; `None` when nothing is paced.
    pub ideal_ns: Option<f64>,
    /// Completion time over ideal time.
    pub ratio_to_ideal: Option<f64>,
    /// Bits of all messages over completion time.
    pub goodput_gbps: Option<f64>,
    /// What was sent again.
    pub retransmissions: Retransmissions,
    /// Digests at both ends.
    pub sha256: FlowDigests,
}

impl FlowSummary {
    /// The summary of a flow of `scenario` that went as `result` says.
    // spec: RC-9, DONE-1
    pub fn new(
        scenario: &Scenario,
        flow: &Flow,
        result: &FlowResult,
        ideal: Option<Duration>,
        sha256: FlowDigests,
    ) -> Self {
        let name = |node: usize| scenario.nics.get(node).map_or("", |nic| &nic.name).to_owned();
        let bytes = u64::from(flow.bytes) * u64::from(flow.messages);
        let completion_ns = result.completion_time().map(nanoseconds);
        let ideal_ns = ideal.map(nanoseconds);
        Self {
            from: name(flow.from),
            to: name(flow.to),
            bytes,
            message_bytes: flow.bytes.into(),
            messages: flow.messages.into(),
            completed: result.completed.into(),
            failure: result.failure.clone(),
            started_ns: result.started.map(since_0),
            finished_ns: result.finished.map(since_0),
            completion_ns,
            ideal_ns,
            ratio_to_ideal: quotient(completion_ns, ideal_ns),
            goodput_gbps: quotient(Some(bytes as f64 * 8.0), completion_ns),
            retransmissions: result.retransmissions.into(),
            sha256,
        }
    }

    /// Whether every message completed.
    pub fn is_complete(&self) -> bool {
        self.completed == self.messages && self.completion_ns.is_some()
    }
}

fn since_0(at: Instant) -> f64 {
    nanoseconds(at.since(Instant::ZERO))
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e3
}

/// `None` where it would not be a number.
fn quotient(above: Option<f64>, below: Option<f64>) -> Option<f64> {
    below.filter(|below| *below > 0.0).and_then(|below| Some(above? / below))
}

/// What happened on the way, all nodes and links together. As a trace sink it
/// counts trims, drops and faults by itself; marks and timeouts are no events.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct NetworkCounts {
    /// Packets that switches cut to their headers.
    pub trims: u64,
    /// Packets that switches marked.
    pub marks: u64,
    /// Retransmission timers that expired on an outstanding packet.
    pub timeouts: u64,
    /// Drops by cause, at NICs and switches.
    pub drops: BTreeMap<String, u64>,
    /// What fault rules did, by deed and rule: `dropped by rule 1 (1 % loss)`.
    pub faults: BTreeMap<String, u64>,
    /// Frames that each interface sent; empty where there are none.
    pub frames_on_wire: BTreeMap<String, u64>,
}

impl NetworkCounts {
    /// Adds what a node dropped, by cause.
    pub fn add_drops<'a>(&mut self, drops: impl Iterator<Item = (&'a str, u64)>) {
        for (cause, count) in drops {
            *self.drops.entry(cause.to_owned()).or_default() += count;
        }
    }
}

impl TraceSink for NetworkCounts {
    fn record(&mut self, _: Instant, _: NodeId, event: &Event) {
        match event {
            Event::Trimmed { .. } => self.trims += 1,
            Event::Drop { cause } => *self.drops.entry((*cause).to_owned()).or_default() += 1,
            Event::Fault { what } => {
                // Deed and rule come before the packet.
                let deed = what.rsplit_once(": ").map_or(what.as_str(), |(deed, _)| deed);
                *self.faults.entry(deed.to_owned()).or_default() += 1;
            }
            Event::Qp(_) | Event::Packet(_) | Event::Rtt(_) | Event::Window(_) => {}
        }
    }
}

/// Whether what arrived is what was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Agreement {
    /// At every receiver.
    #[serde(rename = "equal")]
    Equal,
    /// Not at some receiver.
    #[serde(rename = "DIFFERENT")]
    Different,
}

/// What a run says at its end. Serializes to one JSON object; prints as a
/// table and lines of text, the digests' agreement and the captures last.
// spec: RC-9, TIME-4, TIME-6
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    #[serde(flatten)]
    run: RunId,
    flows: Vec<FlowSummary>,
    first_finish_ns: Option<f64>,
    last_finish_ns: Option<f64>,
    worst_ratio_to_ideal: Option<f64>,
    retransmissions: Retransmissions,
    sha256: Agreement,
    fidelity: Fidelity,
    #[serde(flatten)]
    network: NetworkCounts,
    /// The programs, in the scenario's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    execs: Vec<ExecSummary>,
    captures: Vec<PathBuf>,
}

impl Summary {
    /// The summary of a run with these flows.
    pub fn new(
        run: RunId,
        flows: Vec<FlowSummary>,
        network: NetworkCounts,
        fidelity: Fidelity,
        captures: Vec<PathBuf>,
    ) -> Self {
        let ratios = flows.iter().filter_map(|flow| flow.ratio_to_ideal);
        let finishes = || flows.iter().filter_map(|flow| flow.finished_ns);
        let mut counts = RetransmitCounts::default();
        flows.iter().for_each(|flow| counts += flow.retransmissions.by_cause);
        let equal = flows.iter().all(|flow| flow.sha256.are_equal());
        Self {
            first_finish_ns: finishes().min_by(f64::total_cmp),
            last_finish_ns: finishes().max_by(f64::total_cmp),
            worst_ratio_to_ideal: ratios.max_by(f64::total_cmp),
            retransmissions: counts.into(),
            sha256: if equal { Agreement::Equal } else { Agreement::Different },
            run,
            flows,
            fidelity,
            network,
            execs: Vec::new(),
            captures,
        }
    }

    /// The same with what became of the programs.
    pub fn with_execs(self, execs: Vec<ExecSummary>) -> Self {
        Self { execs, ..self }
    }

    /// Whether every message completed, every digest agrees, and every program
    /// that is no server ended well.
    pub fn ok(&self) -> bool {
        self.sha256 == Agreement::Equal
            && self.flows.iter().all(FlowSummary::is_complete)
            && self.execs.iter().all(ExecSummary::ok)
    }

    /// The flows, in the scenario's order.
    pub fn flows(&self) -> &[FlowSummary] {
        &self.flows
    }

    /// The largest ratio of completion time to ideal time.
    pub fn worst_ratio_to_ideal(&self) -> Option<f64> {
        self.worst_ratio_to_ideal
    }
}
