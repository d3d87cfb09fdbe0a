//! The PCIe stage as the wire shows it.

use mrc_lab::nic::QpChoice;
use mrc_lab::wire::neth::NackReason;

use crate::bench::*;
use crate::lab::*;

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
