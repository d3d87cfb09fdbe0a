//! The time line of docs/packet-walk.md, as a run gives it.

use mrc_lab::nic::{Nic, QpChoice};
use mrc_lab::node::Node;
use mrc_lab::time::Instant;
use mrc_lab::trace::{NodeId, QpEventKind};
use mrc_lab::wire::opcode::Kind;

use crate::bench::*;
use crate::lab::*;

const DOCUMENT: &str = include_str!("../../docs/packet-walk.md");
const SWITCH: NodeId = NodeId(2);
const PACKETS: usize = 3;

/// A row: what happens, and when it happens to each packet or to the message.
type Row = (&'static str, Vec<Instant>);

/// Nanoseconds with three decimals.
fn ns(at: Instant) -> String {
    format!("{}.{:03}", at.as_ps() / 1_000, at.as_ps() % 1_000)
}

fn table(head: &[&str], rows: &[Row]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<_> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let mut rule = vec!["---:".to_owned(); head.len()];
    rule[0] = "---".to_owned();
    let mut text = line(&head) + &line(&rule);
    for (what, times) in rows {
        let times = times.iter().map(|at| ns(*at));
        let cells: Vec<_> = core::iter::once((*what).to_owned()).chain(times).collect();
        text += &line(&cells);
    }
    text
}

/// A message of three full packets, from its doorbell to its end.
struct Walk {
    bench: Bench,
    /// When the fetches were issued, and when each payload had arrived.
    issued: Instant,
    fetched: Vec<Instant>,
}

impl Walk {
    fn new() -> Self {
        let mut bench = Bench::pair(over_a_switch());
        bench.post(QpChoice::New, PACKETS as u32 * 4_096);
        let reserved = |nic: &Nic| nic.buffers().egress[0].packets_in;
        let issued = bench.run_until(|bench| reserved(bench.world.nic(A)) == PACKETS as u64);
        // A packet has its PSN once its payload has arrived.
        let with_psn = |nic: &Nic| nic.qps().next().expect("a's side").beyond_cumulative;
        let fetched = (1..=PACKETS as u64)
            .map(|count| bench.run_until(|bench| with_psn(bench.world.nic(A)) == count))
            .collect();
        bench.run_to(us(10));
        assert_eq!(bench.world.nic(A).poll_timeout(), None, "nothing is left to happen");
        Self { bench, issued, fetched }
    }

    /// When frames of `kind` had left `node`, or had reached it.
    fn frames(&self, node: NodeId, sent: bool, kind: Kind) -> Vec<Instant> {
        let seen = self.bench.seen();
        let chosen = seen.iter().filter(|seen| {
            seen.node == node && seen.sent == sent && seen.packet().bth.opcode.kind() == kind
        });
        chosen.map(|seen| seen.at).collect()
    }

    /// When their first bits left.
    fn first_bits(&self, node: NodeId, kind: Kind, serialization: u64) -> Vec<Instant> {
        let ends = self.frames(node, true, kind);
        ends.iter().map(|at| ps(at.as_ps() - serialization)).collect()
    }

    fn event(&mut self, node: NodeId, kind: QpEventKind) -> Vec<Instant> {
        self.bench.events(node, kind).iter().map(|(at, _)| *at).collect()
    }

    /// What happens to each packet and to its SACK.
    fn packets(&self) -> Vec<Row> {
        let requested = (1..=PACKETS as u64).map(|n| ps(self.issued.as_ps() + n * REQUEST));
        vec![
            ("its read request is issued", vec![self.issued; PACKETS]),
            ("the request has left for the host", requested.collect()),
            ("its payload has arrived; it joins the queue", self.fetched.clone()),
            ("its first bit leaves a", self.first_bits(A, Kind::Write, FULL)),
            ("its last bit leaves a", self.frames(A, true, Kind::Write)),
            ("it is at the switch", self.frames(SWITCH, false, Kind::Write)),
            ("its last bit leaves the switch", self.frames(SWITCH, true, Kind::Write)),
            ("it is at b, which queues a SACK", self.frames(B, false, Kind::Write)),
            ("the SACK has left b", self.frames(B, true, Kind::Sack)),
            ("the SACK is at the switch", self.frames(SWITCH, false, Kind::Sack)),
            ("the SACK has left the switch", self.frames(SWITCH, true, Kind::Sack)),
            ("the SACK is at a", self.frames(A, false, Kind::Sack)),
        ]
    }

    /// What happens to the message and to its ACK.
    fn message(&mut self) -> Vec<Row> {
        vec![
            ("a's host rings the doorbell", self.event(A, QpEventKind::WqeCreated)),
            ("a pass issues all fetches: SEND_COMPLETE", self.event(A, QpEventKind::SendComplete)),
            ("the first packet is at b: b's side is made", self.event(B, QpEventKind::QpCreated)),
            ("the last one is at b: RECV_COMPLETE", self.event(B, QpEventKind::RecvComplete)),
            ("the ACK's first bit leaves b", self.first_bits(B, Kind::Ack, ACK)),
            ("the ACK has left b", self.frames(B, true, Kind::Ack)),
            ("the ACK is at the switch", self.frames(SWITCH, false, Kind::Ack)),
            ("the ACK's first bit leaves the switch", self.first_bits(SWITCH, Kind::Ack, ACK)),
            ("the ACK has left the switch", self.frames(SWITCH, true, Kind::Ack)),
            ("the ACK is at a: WQE_COMPLETE", self.event(A, QpEventKind::WqeComplete)),
        ]
    }
}

// spec: QP-3, QP-4, QP-5, PCIE-1, PCIE-2, PCIE-3, PCIE-4, PCIE-6, PB-2, PB-3, WIRE-7, WIRE-9
// spec: SW-3, RX-5, RX-8, SACK-1, SACK-2, ACK-1, ACK-2, ACK-5, ACK-9, ACK-10, DONE-1
#[test]
fn the_documented_walk_is_the_one_that_is_run() {
    let mut walk = Walk::new();
    let packets = table(&["what", "packet 0", "packet 1", "packet 2"], &walk.packets());
    let message = table(&["what", "ns"], &walk.message());
    let missing: Vec<_> =
        [packets, message].into_iter().filter(|t| !DOCUMENT.contains(t)).collect();
    assert!(missing.is_empty(), "docs/packet-walk.md lacks:\n\n{}", missing.join("\n"));
}

/// The way of the last packet, step by step, each from the rules.
const STEPS: [(&str, u64); 10] = [
    ("the pass after the doorbell", DOORBELL),
    // 98 bytes to the host and 4,368 back, at 504.32 Gbps.
    ("the first request and payload", 1_555 + 69_290),
    // 4,174 bytes each at 400 Gbps; a payload comes sooner than a packet leaves.
    ("three packets leave a", 3 * 83_480),
    ("to the switch", DELAY),
    ("the packet leaves the switch", 83_480),
    ("to b", DELAY),
    // 94 and 62 bytes.
    ("the SACK and the ACK leave b", 1_880 + 1_240),
    ("to the switch", DELAY),
    // The ACK arrives 1.24 ns behind the SACK, which takes 1.88 to leave.
    ("the rest of the SACK and the ACK leave the switch", 640 + 1_240),
    ("to a", DELAY),
];

// spec: QP-4, PCIE-6, PB-2, PB-3, WIRE-7, WIRE-9, SW-3, ACK-10, DONE-1
#[test]
fn the_steps_from_the_doorbell_to_the_end_add_up() {
    let together = STEPS.iter().map(|(_, step)| step).sum();
    let rows = STEPS.into_iter().chain([("together", together)]);
    let rows: Vec<Row> = rows.map(|(what, step)| (what, vec![ps(step)])).collect();
    let right = table(&["step", "ns"], &rows);
    assert!(DOCUMENT.contains(&right), "docs/packet-walk.md lacks:\n\n{right}");
    assert_eq!(Walk::new().event(A, QpEventKind::WqeComplete), [ps(together)]);
}
