//! What is posted when: the flows of a scenario as a state machine that any
//! clock's driver asks what to do and tells what happened.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, VecDeque};

use crate::nic::RetransmitCounts;
use crate::rng::Rng;
use crate::scenario::{Flow, Scenario};
use crate::time::{Duration, Instant};
use crate::trace::{NodeId, QpAddress, QpEvent, QpEventKind};
use crate::wire::qpn::Qpn;

#[cfg(test)]
mod tests;

/// What the driver is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Post a message and tell [`Workload::posted`] the QP.
    Post {
        /// The flow.
        flow: usize,
        /// The message's number within the flow, from 0.
        message: u32,
        /// The QP to use; a new one when `None`.
        qp: Option<Qpn>,
    },
    /// Close a side of a QP; for a sending side, tell [`Workload::closed`].
    Close {
        /// The NIC.
        node: NodeId,
        /// The QP's number there.
        qpn: Qpn,
    },
}

/// How a flow went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowResult {
    /// Messages that the sender knows complete.
    pub completed: u32,
    /// When the first message was posted.
    pub started: Option<Instant>,
    /// When the last message completed; `None` when some did not.
    pub finished: Option<Instant>,
    /// Retransmissions of its QPs that have been closed.
    pub retransmissions: RetransmitCounts,
    /// Why it will never be complete, when that is so.
    pub failure: Option<String>,
}

impl FlowResult {
    /// From the first posting to the last completion.
    // spec: DONE-1
    pub fn completion_time(&self) -> Option<Duration> {
        Some(self.finished?.since(self.started?))
    }
}

#[derive(Debug)]
struct FlowState {
    flow: Flow,
    posted: u32,
    qp: Option<Qpn>,
    result: FlowResult,
}

impl FlowState {
    fn is_over(&self) -> bool {
        self.result.failure.is_some() || self.result.completed == self.flow.messages
    }
}

/// The flows of a scenario and how far they are.
#[derive(Debug)]
pub struct Workload {
    flows: Vec<FlowState>,
    /// The flows of which nothing is posted yet, the last one to start first.
    waiting: Vec<(Duration, usize)>,
    /// How many of them are not over.
    open: usize,
    /// Receiving sides by the sender's end.
    receivers: BTreeMap<QpAddress, (NodeId, Qpn)>,
    /// Flows by the sending side of their QPs.
    senders: BTreeMap<QpAddress, usize>,
    ips: Vec<Ipv4Addr>,
    actions: VecDeque<Action>,
}

impl Workload {
    /// The flows of `scenario`, of which nothing is posted yet.
    pub fn new(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|flow| FlowState {
            flow: flow.clone(),
            posted: 0,
            qp: None,
            result: FlowResult::default(),
        });
        let flows: Vec<_> = flows.collect();
        let starts = flows.iter().enumerate().map(|(number, state)| (state.flow.start, number));
        let mut waiting: Vec<_> = starts.collect();
        waiting.sort_unstable_by(|a, b| b.cmp(a));
        Self {
            open: flows.iter().filter(|flow| !flow.is_over()).count(),
            flows,
            waiting,
            receivers: BTreeMap::new(),
            senders: BTreeMap::new(),
            ips: scenario.nics.iter().map(|nic| nic.ip).collect(),
            actions: VecDeque::new(),
        }
    }

    /// Starts what is to start up to `elapsed` protocol time after the run's
    /// start; in the order of their starts, equals in the scenario's.
    // spec: WL-1
    pub fn start_due(&mut self, elapsed: Duration) {
        while let Some((_, flow)) = self.waiting.pop_if(|(start, _)| *start <= elapsed) {
            self.post_more(flow);
        }
    }

    /// How long after the run's start the next flow starts, if one is left.
    pub fn next_start(&self) -> Option<Duration> {
        self.waiting.last().map(|(start, _)| *start)
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The work request number of a message.
    pub fn wqe_id(flow: usize, message: u32) -> u64 {
        (flow as u64) << 32 | u64::from(message)
    }

    /// A message of `flow` was posted on `qpn` at `at`.
    pub fn posted(&mut self, flow: usize, qpn: Qpn, at: Instant) {
        let state = &mut self.flows[flow];
        state.result.started.get_or_insert(at);
        state.qp = Some(qpn);
        self.senders.insert(QpAddress { ip: self.ips[state.flow.from], qpn }, flow);
        // On one QP the others wait for its number.
        if state.flow.one_qp {
            self.post_more(flow);
        }
    }

    /// A message of `flow` was not taken, for the reason given.
    pub fn refused(&mut self, flow: usize, reason: String) {
        self.fail(flow, reason);
    }

    fn fail(&mut self, flow: usize, reason: String) {
        let state = &mut self.flows[flow];
        self.open -= usize::from(!state.is_over());
        state.result.failure = Some(reason);
    }

    /// A sending side was closed with these counts.
    pub fn closed(&mut self, local: QpAddress, counts: RetransmitCounts) {
        if let Some(flow) = self.senders.remove(&local) {
            self.flows[flow].result.retransmissions += counts;
        }
    }

    /// A NIC reported `event` at `at`.
    // spec: QP-7, QP-9, REL-1
    pub fn on_event(&mut self, at: Instant, node: NodeId, event: &QpEvent) {
        match event.kind {
            QpEventKind::QpCreated if event.remote.qpn != Qpn::NONE => {
                self.receivers.insert(event.remote, (node, event.local.qpn));
            }
            QpEventKind::WqeComplete => self.on_complete(at, node, event),
            QpEventKind::QpError => {
                if let Some(&flow) = self.senders.get(&event.local) {
                    self.fail(flow, format!("QP {} is in the error state", event.local));
                }
            }
            _ => {}
        }
    }

    fn on_complete(&mut self, at: Instant, node: NodeId, event: &QpEvent) {
        let Some(&flow) = self.senders.get(&event.local) else { return };
        let state = &mut self.flows[flow];
        let was_over = state.is_over();
        state.result.completed += 1;
        let complete = state.result.completed == state.flow.messages;
        if complete {
            state.result.finished = Some(at);
        }
        self.open -= usize::from(complete && !was_over);
        if complete || !state.flow.one_qp {
            self.close(node, event.local);
        }
        self.post_more(flow);
    }

    fn close(&mut self, node: NodeId, local: QpAddress) {
        self.actions.push_back(Action::Close { node, qpn: local.qpn });
        if let Some((node, qpn)) = self.receivers.remove(&local) {
            self.actions.push_back(Action::Close { node, qpn });
        }
    }

    fn post_more(&mut self, flow: usize) {
        let state = &mut self.flows[flow];
        let Flow { messages, depth, one_qp, .. } = state.flow;
        while state.posted < messages && state.posted - state.result.completed < depth {
            if one_qp && state.qp.is_none() && state.posted > 0 {
                break;
            }
            let qp = if one_qp { state.qp } else { None };
            self.actions.push_back(Action::Post { flow, message: state.posted, qp });
            state.posted += 1;
        }
    }

    /// Whether every flow is complete or has failed.
    pub fn is_over(&self) -> bool {
        self.open == 0
    }

    /// Bytes of all messages.
    pub fn total_bytes(&self) -> u64 {
        let flows = self.flows.iter().map(|state| &state.flow);
        flows.map(|flow| u64::from(flow.bytes) * u64::from(flow.messages)).sum()
    }

    /// How each flow went, in the scenario's order.
    pub fn results(&self) -> impl Iterator<Item = &FlowResult> {
        self.flows.iter().map(|state| &state.result)
    }
}

/// The bytes that flow number `flow` sends: all its messages, one after the
/// other, from the run's seed.
pub fn flow_data(seed: u64, number: usize, flow: &Flow) -> Vec<u8> {
    let length = flow.bytes as usize * flow.messages as usize;
    let mut bytes = vec![0; length];
    Rng::derive(seed, &format!("data of flow {number}"), 0).fill(&mut bytes);
    bytes
}
