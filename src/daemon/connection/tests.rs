use core::net::Ipv4Addr;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use super::*;
use crate::daemon::events::{LogSink, SharedLog};
use crate::time::Instant;
use crate::trace::{Event, NodeId, QpAddress, QpEvent, QpEventKind, TraceSink};
use crate::wire::qpn::Qpn;

const COUNTERS: &[u8] = b"{\"request\":\"list_qps\"}\n";
const SUBSCRIBE: &[u8] = b"{\"request\":\"subscribe\"}\n";

/// A connection, the client's end of it, and the log that it reads.
struct Bench {
    connection: Connection<UnixStream>,
    client: UnixStream,
    log: SharedLog,
    answered: usize,
}

impl Bench {
    fn new(limit: usize) -> Self {
        let (daemon, client) = UnixStream::pair().expect("a pair");
        daemon.set_nonblocking(true).expect("set");
        client.set_nonblocking(true).expect("set");
        let log = Rc::new(RefCell::new(EventLog::new(limit)));
        Self { connection: Connection::new(daemon), client, log, answered: 0 }
    }

    fn turn(&mut self) -> Next {
        self.connection.on_ready();
        let answered = &mut self.answered;
        self.connection.turn(&self.log, &mut |_| {
            *answered += 1;
            Ok(Response::Qps { qps: Vec::new() })
        })
    }

    fn send(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).expect("room");
    }

    /// Whole lines that have come; what else there is stays.
    fn lines(&mut self) -> Vec<String> {
        let reader = BufReader::new(&mut self.client);
        reader.lines().map_while(Result::ok).collect()
    }

    fn log_event(&mut self, wqe_id: u64) {
        let end = QpAddress { ip: Ipv4Addr::LOCALHOST, qpn: Qpn::NONE };
        let kind = QpEventKind::WqeCreated;
        let event =
            QpEvent { kind, local: end, remote: end, wqe_id: Some(wqe_id), wqe_bytes: None };
        LogSink(Rc::clone(&self.log)).record(Instant::ZERO, NodeId(0), &Event::Qp(event));
    }
}

#[test]
fn requests_may_come_in_pieces_and_several_at_once() {
    let mut bench = Bench::new(8);
    let (first, second) = COUNTERS.split_at(7);
    bench.send(first);
    assert_eq!((bench.turn(), bench.lines().len()), (Next::Wait, 0));
    bench.send(second);
    bench.send(COUNTERS);
    bench.send(b"\n  \nnonsense\n");
    assert_eq!(bench.turn(), Next::Wait);
    let lines = bench.lines();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with(r#"{"ok":true"#) && lines[2].starts_with(r#"{"ok":false"#));
    assert_eq!(bench.answered, 2);
}

#[test]
fn a_client_that_says_no_more_gets_its_answers_first() {
    let mut bench = Bench::new(8);
    bench.send(COUNTERS);
    bench.send(COUNTERS.trim_ascii());
    bench.client.shutdown(std::net::Shutdown::Write).expect("shut");
    assert_eq!(bench.turn(), Next::Close);
    assert_eq!(bench.lines().len(), 2);
}

#[test]
fn a_busy_client_does_not_keep_others_waiting() {
    let mut bench = Bench::new(8);
    bench.send(&COUNTERS.repeat(REQUESTS_A_TURN + 1));
    assert_eq!(bench.turn(), Next::Again);
    assert_eq!(bench.answered, REQUESTS_A_TURN);
    assert_eq!(bench.turn(), Next::Wait);
    assert_eq!(bench.answered, REQUESTS_A_TURN + 1);
}

#[test]
fn a_client_that_never_reads_is_dropped_before_it_takes_much_memory() {
    let mut bench = Bench::new(8);
    for _ in 0..1_000_000 {
        bench.send(COUNTERS);
        if bench.turn() == Next::Close {
            assert!(bench.connection.output.len() < MAX_OUTPUT + 1_000);
            return;
        }
    }
    panic!("it is still there");
}

#[test]
fn a_line_without_end_is_refused() {
    let mut bench = Bench::new(8);
    let mut turns = Vec::new();
    for _ in 0..20 {
        bench.send(&[b'x'; 4_096]);
        turns.push(bench.turn());
    }
    assert_eq!(turns.iter().position(|next| *next == Next::Close), Some(MAX_REQUEST / 4_096));
    assert!(bench.lines()[0].contains("at most 65536 bytes"));
}

#[test]
fn a_subscriber_gets_every_event_from_the_first_on() {
    let mut bench = Bench::new(100_000);
    (0..20_000).for_each(|number| bench.log_event(number));
    bench.send(SUBSCRIBE);
    let mut lines = Vec::new();
    for number in 20_000..20_100 {
        bench.log_event(number);
        bench.turn();
        assert!(bench.connection.output.len() < EVENTS_WAITING + 1_000);
        // Some turns pass before the client reads.
        if number % 3 == 0 {
            lines.extend(read_some(&mut bench));
        }
    }
    while bench.connection.is_behind(&bench.log) || !bench.connection.output.is_empty() {
        bench.turn();
        lines.extend(read_some(&mut bench));
    }
    lines.extend(read_some(&mut bench));
    let text = String::from_utf8(lines).expect("text");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(r#"{"ok":true,"type":"subscribed","forgotten":0}"#));
    assert!(lines.map(wqe_id).eq(0..20_100), "each once and in order");
}

/// Bytes that have come.
fn read_some(bench: &mut Bench) -> Vec<u8> {
    let mut bytes = Vec::new();
    // It ends with "would block".
    let _ = bench.client.read_to_end(&mut bytes);
    bytes
}

fn wqe_id(line: &str) -> u64 {
    let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
    value["event"]["wqe_id"].as_u64().expect("a number")
}

#[test]
fn a_subscriber_is_told_what_is_forgotten_and_dropped_when_it_misses_more() {
    let mut bench = Bench::new(2);
    (0..5).for_each(|number| bench.log_event(number));
    bench.send(SUBSCRIBE);
    assert_eq!(bench.turn(), Next::Wait);
    let lines = bench.lines();
    assert_eq!(lines[0], r#"{"ok":true,"type":"subscribed","forgotten":3}"#);
    assert_eq!(lines[1..].iter().map(|line| wqe_id(line)).collect::<Vec<_>>(), [3, 4]);
    (5..8).for_each(|number| bench.log_event(number));
    assert_eq!(bench.turn(), Next::Close);
}
