//! The mrc-events record: a row for everything that happens to a QP or a
//! message.

use std::io::{self, Write};

use crate::time::Instant;
use crate::trace::{Event, NodeId, QpEvent, TraceSink};

/// The record's name in file names.
// spec: RC-3
pub const MRC_EVENTS: &str = "mrc-events";

const HEADER: [&str; 8] = [
    "sim_time_ns",
    "component_name",
    "nic_id",
    "local_qp",
    "remote_qp",
    "wqe_id",
    "wqe_size_bytes",
    "ev_type",
];

/// Writes the rows. The same events give the same rows in every clock.
// spec: RC-1, RC-3
#[derive(Debug)]
pub struct EventsCsv<W: Write> {
    csv: csv::Writer<W>,
}

impl<W: Write> EventsCsv<W> {
    /// Writes the header line to `out`. Rows are buffered.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn new(out: W) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(HEADER)?;
        Ok(Self { csv })
    }

    /// Writes the row of `event` at the NIC with this name and node number.
    ///
    /// # Errors
    /// When the output cannot be written to.
    // spec: RC-3, DONE-1
    pub fn write_row(
        &mut self,
        at: Instant,
        component: &str,
        nic_id: u32,
        event: &QpEvent,
    ) -> io::Result<()> {
        let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        self.csv.write_record([
            &at.to_string(),
            component,
            &nic_id.to_string(),
            &event.local.to_string(),
            &event.remote.to_string(),
            &number(event.wqe_id),
            &number(event.wqe_bytes),
            event.kind.name(),
        ])?;
        Ok(())
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn flush(&mut self) -> io::Result<()> {
        self.csv.flush()
    }

    /// Writes what is buffered and gives the output back.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn finish(self) -> io::Result<W> {
        self.csv.into_inner().map_err(|error| error.into_error())
    }
}

/// Writes the rows of a trace in which the nodes have numbers only.
#[derive(Debug)]
pub struct EventsSink<W: Write> {
    csv: EventsCsv<W>,
    names: Vec<String>,
    failed: Option<io::Error>,
}

impl<W: Write> EventsSink<W> {
    /// `names` are the nodes' names by their numbers.
    pub fn new(csv: EventsCsv<W>, names: Vec<String>) -> Self {
        Self { csv, names, failed: None }
    }

    /// Writes what is buffered and gives the output back.
    ///
    /// # Errors
    /// The first error since the start; rows after it were not written.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or_else(|| self.csv.finish(), Err)
    }
}

impl<W: Write> TraceSink for EventsSink<W> {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        let Event::Qp(event) = event else { return };
        if self.failed.is_none() {
            let name = self.names.get(node.0 as usize).map_or("", String::as_str);
            self.failed = self.csv.write_row(at, name, node.0, event).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{QpAddress, QpEventKind};
    use crate::wire::qpn::Qpn;

    fn event(kind: QpEventKind, wqe: Option<(u64, u64)>) -> QpEvent {
        let end = |last, qpn| QpAddress { ip: [10, 0, 0, last].into(), qpn: Qpn::masked(qpn) };
        let (wqe_id, wqe_bytes) = wqe.unzip();
        QpEvent { kind, local: end(1, 77), remote: end(2, 0), wqe_id, wqe_bytes }
    }

    const ROWS: &str = "\
sim_time_ns,component_name,nic_id,local_qp,remote_qp,wqe_id,wqe_size_bytes,ev_type
0,a,0,10.0.0.1:77,10.0.0.2:0,,,QP_CREATED
83.48,a,0,10.0.0.1:77,10.0.0.2:0,3,4096,WQE_COMPLETE
";

    // spec: RC-1, RC-3, DONE-1, QP-8
    #[test]
    fn rows_have_protocol_time_both_ends_and_the_message() {
        let mut sink = EventsSink::new(EventsCsv::new(Vec::new()).unwrap(), vec!["a".into()]);
        let created = Event::Qp(event(QpEventKind::QpCreated, None));
        sink.record(Instant::ZERO, NodeId(0), &created);
        sink.record(Instant::ZERO, NodeId(0), &Event::Drop { cause: "not_a_row" });
        let complete = Event::Qp(event(QpEventKind::WqeComplete, Some((3, 4096))));
        sink.record(Instant::from_ps(83_480), NodeId(0), &complete);
        assert_eq!(String::from_utf8(sink.finish().unwrap()).unwrap(), ROWS);
    }

    // spec: RC-3
    #[test]
    fn rows_written_by_hand_are_the_same() {
        let mut csv = EventsCsv::new(Vec::new()).unwrap();
        let created = event(QpEventKind::QpCreated, None);
        csv.write_row(Instant::ZERO, "a", 0, &created).unwrap();
        let complete = event(QpEventKind::WqeComplete, Some((3, 4096)));
        csv.write_row(Instant::from_ps(83_480), "a", 0, &complete).unwrap();
        csv.flush().unwrap();
        assert_eq!(String::from_utf8(csv.finish().unwrap()).unwrap(), ROWS);
    }

    #[test]
    fn an_output_that_fails_is_not_silent() {
        let mut room = [0; 100];
        let csv = EventsCsv::new(&mut room[..]).unwrap();
        let mut sink = EventsSink::new(csv, vec!["a".into()]);
        let created = Event::Qp(event(QpEventKind::QpCreated, None));
        sink.record(Instant::ZERO, NodeId(0), &created);
        assert!(sink.finish().is_err());
    }
}
