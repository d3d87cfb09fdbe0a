//! What a daemon's node told: the QP events of a NIC, kept so that a client that
//! subscribes late sees them from the first on, and how often which fault acted.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::protocol::EventReport;
use crate::record::NetworkCounts;
use crate::time::Instant;
use crate::trace::{Event, NodeId, TraceSink};

/// The latest events, numbered from 0 at the daemon's start.
#[derive(Debug)]
pub(super) struct EventLog {
    kept: VecDeque<EventReport>,
    /// Events that are no longer kept: the number of the first that is.
    forgotten: u64,
    limit: usize,
    counts: NetworkCounts,
}

impl EventLog {
    /// How many events are kept: some 100 MB of them at most.
    pub(super) const LIMIT: usize = 1 << 20;

    /// An empty log of at most `limit` events.
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: VecDeque::new(), forgotten: 0, limit, counts: NetworkCounts::default() }
    }

    fn push(&mut self, event: EventReport) {
        if self.kept.len() == self.limit {
            self.kept.pop_front();
            self.forgotten += 1;
        }
        self.kept.push_back(event);
    }

    /// What fault rules did on the node's links, by deed and rule.
    // spec: SW-20
    pub(super) fn faults(&self) -> &BTreeMap<String, u64> {
        &self.counts.faults
    }

    /// The number of the first event that is kept.
    pub(super) fn first(&self) -> u64 {
        self.forgotten
    }

    /// The number that the next event will have.
    pub(super) fn end(&self) -> u64 {
        self.forgotten + self.kept.len() as u64
    }

    /// Event number `number`; `None` when it is not kept or has not happened.
    pub(super) fn get(&self, number: u64) -> Option<&EventReport> {
        let index = number.checked_sub(self.forgotten)?;
        self.kept.get(usize::try_from(index).ok()?)
    }
}

/// A log that the node's trace writes and the control socket reads.
pub(super) type SharedLog = Rc<RefCell<EventLog>>;

/// The trace of a daemon's node: QP events and faults go into the log.
#[derive(Debug)]
pub(super) struct LogSink(pub(super) SharedLog);

impl TraceSink for LogSink {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        let mut log = self.0.borrow_mut();
        match event {
            Event::Qp(event) => log.push(EventReport::new(at, event)),
            other => log.counts.record(at, node, other),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::trace::{QpAddress, QpEvent, QpEventKind};
    use crate::wire::qpn::Qpn;

    // spec: SW-20
    #[test]
    fn the_oldest_events_are_forgotten_and_faults_are_counted() {
        let log = Rc::new(RefCell::new(EventLog::new(2)));
        let mut sink = LogSink(Rc::clone(&log));
        let end = QpAddress { ip: Ipv4Addr::LOCALHOST, qpn: Qpn::NONE };
        let event = |wqe_id| QpEvent {
            kind: QpEventKind::WqeCreated,
            local: end,
            remote: end,
            wqe_id: Some(wqe_id),
            wqe_bytes: None,
        };
        for number in 0..3 {
            sink.record(Instant::from_ps(number), NodeId(0), &Event::Qp(event(number)));
        }
        sink.record(Instant::ZERO, NodeId(0), &Event::Drop { cause: "bad_icrc" });
        for psn in 0..2 {
            let what = format!("dropped by rule 1 (1 % loss): WRITE PSN {psn}");
            sink.record(Instant::ZERO, NodeId(0), &Event::Fault { what });
        }
        let log = log.borrow();
        assert_eq!((log.first(), log.end()), (1, 3));
        assert_eq!(log.faults().get("dropped by rule 1 (1 % loss)"), Some(&2));
        assert_eq!(log.get(0), None);
        assert_eq!(log.get(2), Some(&EventReport::new(Instant::from_ps(2), &event(2))));
        assert_eq!(log.get(3), None);
    }
}
