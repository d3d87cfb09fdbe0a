//! The PCIe stage as the wire shows it.

use mrc_lab::config::{NicAttributes, Profile};
use mrc_lab::nic::QpChoice;
use mrc_lab::time::Duration;
use mrc_lab::trace::NoTrace;
use mrc_lab::units::Rate;
use mrc_lab::wire::neth::NackReason;

use crate::bench::*;
use crate::lab::*;
use crate::peer::*;

// spec: PCIE-5, PB-6
#[test]
fn a_retransmission_costs_no_pcie_traffic() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 4_096);
    bench.run_to(us(1));
    bench.sent();
    bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, false));
    // Its first bit leaves at once; a fetch would have taken 70.845 ns.
    bench.run_to(ps(1_000_000 + FULL - 1));
    assert!(bench.sent().is_empty());
    bench.run_to(ps(1_000_000 + FULL));
    assert_eq!(bench.lines(), ["ONLY 0 A RTX"]);
}

// spec: PCIE-1, PCIE-3, PCIE-6, QP-4
#[test]
fn a_fetch_starts_15_ns_after_the_doorbell_and_takes_70_845_ns() {
    let mut bench = Bench::alone(A, |_| ());
    bench.run_to(us(3));
    bench.post(QpChoice::New, 4_096);
    let left = bench.run_until(|bench| bench.counters().write_pkts_sent == 1);
    assert_eq!(left, ps(3_000_000 + 15_000 + 1_555 + 69_290 + FULL));
}

/// Full packets arriving at line rate over as many lanes as `lanes`; the most
/// bytes that the receiver's data pool held.
fn peak_of(packets: u32, lanes: u32) -> u64 {
    let mut scenario = back_to_back();
    scenario.nics[1].attributes.pcie_nic.lane_count = lanes;
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let message = stage.message(A, B, packets as usize * 4_096);
    stage.deliver(&message);
    assert!(stage.is_placed(&message));
    stage.run_for(Duration::from_ms(1));
    let [data, control] = stage.world.nic(B).buffers().ingress;
    assert_eq!((data.used_bytes, data.packets_out, data.drops), (0, u64::from(packets), 0));
    assert_eq!(control.packets_in, 0);
    data.peak_bytes
}

/// The same from the rules. Packets arrive 83.48 ns apart, each is written in
/// `write` ps; 58 writes of 8 x 34 bytes of overhead fit the header buffer, and
/// what does not fit holds 4,174 bytes each.
fn peak_by_the_rules(packets: u64, write: u64) -> u64 {
    let behind = (packets - 1) * write.saturating_sub(FULL);
    let unwritten = (write + behind).div_ceil(write);
    unwritten.saturating_sub(58).max(1) * 4_174
}

// spec: PB-1, PB-2, PB-4, PB-15, PCIE-7, RX-1
#[test]
fn fourteen_lanes_keep_up_with_full_rate_and_thirteen_do_not() {
    // 4,368 bytes take 79.19 ns over 14 lanes of 31.52 Gbps, 85.28 ns over 13.
    assert_eq!(peak_of(4_000, 16), 4_174);
    assert_eq!(peak_of(4_000, 14), 4_174, "each write is accepted as its packet arrives");
    for packets in [1_000, 4_000, 8_000] {
        assert_eq!(peak_of(packets, 13), peak_by_the_rules(packets.into(), 85_280), "{packets}");
    }
    assert!(peak_by_the_rules(8_000, 85_280) > 100 * 4_174);
}

// spec: PCIE-1, PB-1
#[test]
fn the_size_of_the_read_request_is_an_attribute() {
    // 512 + 34 bytes at 504.32 Gbps instead of 64 + 34.
    let mut bench = Bench::alone(A, |a| a.read_request_bytes = 512);
    bench.post(QpChoice::New, 4_096);
    let left = bench.run_until(|bench| bench.counters().write_pkts_sent == 1);
    assert_eq!(left, ps(15_000 + 8_662 + 69_290 + FULL));
}

// spec: PCIE-2, PCIE-3, PCIE-4, PB-3
#[test]
fn packets_join_the_queue_in_the_order_of_their_requests() {
    // Over one lane from the host a payload comes slower than a packet leaves.
    let mut bench = Bench::alone(A, |a| a.pcie_host.lane_count = 1);
    let first = bench.post(QpChoice::New, 2 * 4_096);
    let second = bench.post(QpChoice::New, 2 * 4_096);
    bench.run_to(us(5));
    let sent = bench.sent();
    let told: Vec<_> =
        sent.iter().map(|seen| (seen.packet().bth.destination_qp, seen.at.as_ps())).collect();
    // 4,368 bytes at 31.52 Gbps, one behind the other; the first request at once.
    let at = |n: u64| DOORBELL + REQUEST + n * 1_108_630 + FULL;
    assert_eq!(told, [(first, at(1)), (second, at(2)), (first, at(3)), (second, at(4))]);
}

// spec: PB-7
#[test]
fn in_the_native_profile_pcie_takes_no_time_and_the_pools_still_bound_memory() {
    let mut bench = Bench::alone(A, |a| *a = Profile::Native.nic());
    bench.post(QpChoice::New, 60 * 4_096);
    bench.run_to(ps(DOORBELL));
    assert_eq!(bench.sent().len(), 55, "what the pool holds has left at the instant of the pass");
    bench.run_to(ps(DOORBELL + 15_000));
    assert_eq!(bench.sent().len(), 5, "the rest 15 ns after the drain");
    let mut bench = Bench::alone(A, |a| *a = Profile::Native.nic());
    bench.deliver_frame(pause(0, u16::MAX));
    bench.post(QpChoice::New, 60 * 4_096);
    bench.run_to(ps(DOORBELL));
    // With the ICRC a full packet has 4,178 bytes.
    let pool = bench.nic().buffers().egress[0];
    assert_eq!((pool.used_bytes, bench.counters().egress_pool_stalls), (55 * 4_178, 1));
}

// spec: PB-16, WIRE-7
#[test]
fn a_link_of_400_gbps_and_100_ns_runs_at_the_lower_rate_of_its_ends() {
    let defaults = NicAttributes::default();
    assert_eq!((defaults.data_rate, defaults.delay), (Rate::gbps(400), Duration::from_ns(100)));
    for slow in [0, 1] {
        let mut scenario = back_to_back().with_flow(flow(2 * 4_096, 1));
        scenario.nics[slow].attributes.data_rate = Rate::gbps(200);
        let ran = run(&scenario);
        let left: Vec<_> = ran.data_sent(A).map(|seen| seen.at.as_ps()).collect();
        assert_eq!(left, [FETCHED + 2 * FULL, FETCHED + 4 * FULL], "{slow}");
        let arrived = ran.seen.iter().filter(|seen| seen.node == B && !seen.sent);
        assert!(arrived.map(|seen| seen.at.as_ps()).eq(left.iter().map(|at| at + DELAY)));
        let sack = ran.sent(B).next().expect("a SACK").at;
        assert_eq!(sack, ps(left[0] + DELAY + 2 * SACK), "b's end too");
    }
}

// spec: PB-4, REL-5
#[test]
fn payloads_larger_than_the_transmit_buffer_do_not_stop_what_comes_behind_them() {
    let mut bench = Bench::alone(B, |a| {
        a.mss = 512;
        a.pcie_nic.tx_data_bytes = 512;
    });
    assert_eq!(bench.nic().attributes().problems(), []);
    for index in 0..3 {
        bench.deliver(&bench.part(index, 3));
    }
    // 1,000 bytes are two transfers: 1,068 bytes at 504.32 Gbit/s.
    let charged = |bench: &Bench| bench.nic().buffers().ingress[0].used_bytes;
    assert_eq!(charged(&bench), 2 * 1_078, "each waits until the one before has left");
    bench.run_to(ps(16_942));
    assert_eq!(charged(&bench), 1_078);
    bench.run_to(ps(2 * 16_942));
    assert_eq!(charged(&bench), 0);
}
