//! Memory stays flat, however long a NIC runs. A binary of its own: the other
//! tests of a binary would allocate meanwhile.

#[path = "exact/lab.rs"]
#[allow(dead_code)]
mod lab;
#[path = "exact/peer.rs"]
#[allow(dead_code)]
mod peer;
#[path = "exact/wiretap.rs"]
#[allow(dead_code)]
mod wiretap;

use core::net::Ipv4Addr;

use mrc_lab::nic::{QpChoice, QpSide};
use mrc_lab::scenario::Topology;
use mrc_lab::sim::{InMemory, SimWorld, run_workload};
use mrc_lab::time::Duration;
use mrc_lab::trace::NoTrace;
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::opcode::{Kind, Opcode};
use mrc_lab::wire::packet::Body;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::reth::Reth;

use lab::*;
use peer::*;

/// What may come and go for reasons of the allocator.
const SLACK: u64 = 2 << 20;

/// Bytes of this process that are in memory.
fn resident_bytes() -> u64 {
    const PAGE: u64 = 4_096;
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = text.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    pages.expect("the second field is a number") * PAGE
}

/// The tests in one, so that none measures another's memory.
#[test]
fn resident_memory_does_not_grow() {
    // First, before others leave room in the heap that it could grow into.
    strangers_leave_nothing();
    duplicates_leave_nothing();
    closed_qps_leave_nothing();
}

// case A16: duplicates leak nothing, and neither do the ACKs that they draw, nor
// the wake-ups for what is due much later: a tombstone.
// spec: RX-7, W-14, REL-4
fn duplicates_leave_nothing() {
    let mut trace = NoTrace;
    let mut stage = Stage::new(&back_to_back(), &mut trace);
    let [closed, first, last] = [1, 8, 300].map(|packets| stage.message(A, B, packets * 4_096));
    stage.deliver(&closed);
    let side = stage.side(B, QpSide::Responder).expect("b's side");
    stage.close(B, side.local.qpn);
    let at_b = stage.listen(B);
    let qpn = stage.deliver(&first);
    let old = at_b.received(Kind::Write);
    stage.world.set_tap(B, Box::new(mrc_lab::node::NoTap));
    let replay = |stage: &mut Stage<'_>, times: usize| {
        for frame in old.iter().cycle().take(times) {
            stage.inject(A, port0(B), frame.clone());
            stage.run_for(Duration::from_ns(100));
        }
    };
    replay(&mut stage, 10_000);
    let (holdings, resident) = (held(&stage), resident_bytes());
    replay(&mut stage, 100_000);
    stage.run_for(Duration::from_us(1));
    assert_eq!(held(&stage), holdings);
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < SLACK, "{grown} bytes more after 100,000 duplicates");
    let (sent, got) = (stage.world.nic(B).counters(), stage.world.nic(A).counters());
    assert_eq!(sent.dup_events, 110_000);
    // Every eighth is a last packet and asks.
    assert_eq!((sent.ack_pkts_sent, got.ack_pkts_rcvd), (2 + 13_750, 2 + 13_750));
    let (_, wqe_id) = stage.post(QpChoice::Existing(qpn), &last);
    stage.step_until(|stage| stage.is_complete(A, wqe_id));
    assert!(stage.is_placed(&last));
}

// Packets from addresses that somebody makes up: each makes a receiving side, a
// group and a spraying, and draws an ACK.
// spec: REL-1, W-14
fn strangers_leave_nothing() {
    let scenario = three_hosts().with_attributes(|a| (a.max_qps, a.max_tombstones) = (64, 64));
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let bth = plain_bth(Opcode::WriteOnly, Qpn::masked(77), Psn::masked(0));
    let bth = Bth { connect: true, ack_request: true, ..bth };
    let body = Body::Write {
        meth: Meth { rqmsn: 0, msn: 0 },
        tseth: None,
        reth: Reth { va: 0, rkey: RKey(0), dma_length: 0 },
        payload: &[],
    };
    let flood = |stage: &mut Stage<'_>, addresses: std::ops::Range<u32>| {
        for address in addresses {
            let source = Ipv4Addr::from_bits(0x0b00_0000 + address);
            let frame = stage.forge(source, B, bth, body);
            stage.inject_by_c(frame);
            stage.run_for(Duration::from_ns(100));
            stage.events.clear();
        }
    };
    flood(&mut stage, 0..20_000);
    let resident = resident_bytes();
    flood(&mut stage, 20_000..320_000);
    stage.run_for(Duration::from_us(2));
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < SLACK, "{grown} bytes more after 300,000 strangers");
    let counters = stage.world.nic(B).counters();
    assert_eq!((counters.qp_created, counters.ack_pkts_sent), (320_000, 320_000));
    assert_eq!(stage.world.nic(B).holdings(), [64, 64, 0, 64]);
}

/// What both NICs hold.
fn held(stage: &Stage<'_>) -> [[usize; 4]; 2] {
    [A, B].map(|node| stage.world.nic(node).holdings())
}

// case F21: after 10,000 messages on 10,000 QPs a second 10,000 finds all room back.
// spec: QP-9, REL-4, REL-5
fn closed_qps_leave_nothing() {
    let scenario = back_to_back().with_flow(flow(100, 10_000));
    let topology = Topology::new(&scenario);
    let mut trace = NoTrace;
    let mut world = SimWorld::new(&topology, scenario.seed, InMemory, &mut trace);
    let mut resident = Vec::new();
    for _ in 0..3 {
        let limit = world.now() + Duration::from_secs(1);
        let end =
            run_workload(&mut world, &scenario, limit, |_, _| true).expect("memory carries all");
        assert!(end.workload.results().all(|result| result.finished.is_some()));
        for (node, region) in [(A, end.memory[0].source), (B, end.memory[0].destination)] {
            let bytes = world.with_nic(node, |nic, _| nic.deregister_memory(region.rkey));
            assert_eq!(bytes.map(|bytes| bytes.len()), Some(1_000_000));
        }
        drop(end);
        world.run_until(limit).expect("memory carries all");
        while world.poll_event().is_some() {}
        assert_eq!([A, B].map(|node| world.nic(node).holdings()), [[0; 4]; 2]);
        resident.push(resident_bytes());
    }
    let grown = resident[2].saturating_sub(resident[0]);
    assert!(grown < SLACK, "{grown} bytes more: {resident:?}");
}
