use core::net::Ipv4Addr;

use super::*;
use crate::nic::WorkRequest;
use crate::wire::opcode::Opcode;
use crate::wire::qpn::RKey;

fn link(set: impl Fn(&mut NicAttributes)) -> PcieLink {
    let mut attributes = NicAttributes::default();
    set(&mut attributes);
    PcieLink::new(&attributes)
}

fn segment(length: u32) -> Segment {
    let work = WorkRequest {
        wqe_id: 0,
        peer: Ipv4Addr::new(10, 0, 0, 2),
        lkey: RKey(1),
        local_va: 0,
        length,
        remote_va: 0,
        rkey: RKey(2),
    };
    Segment { offset: 0, length, opcode: Opcode::WriteOnly, ends_message: true, msn: 0, work }
}

const QPN: Qpn = Qpn::masked(7);

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

/// When fetches of these lengths, issued at once, arrive.
fn arrivals(link: &mut PcieLink, lengths: &[u32]) -> Vec<u64> {
    for length in lengths {
        link.fetch(at(0), QPN, segment(*length), 0);
    }
    lengths.iter().map(|_| link.pop_fetched(Instant::MAX).unwrap().arrives.as_ps()).collect()
}

// spec: PCIE-1, PCIE-2, PCIE-6, PB-1, PB-2
#[test]
fn a_full_payload_takes_1_55_ns_to_ask_for_and_69_29_ns_to_come() {
    // 98 bytes and 4,368 bytes at 504.32 Gbit/s, each rounded up to a picosecond.
    let mut link = link(|_| ());
    assert_eq!(link.to_host.send(at(0), 64), at(1_555));
    assert_eq!(link.to_nic.send(at(0), 4_096), at(69_290));
    let mut link = self::link(|_| ());
    assert_eq!(arrivals(&mut link, &[4_096]), [70_845]);
}

// spec: PB-2
#[test]
fn the_fetch_of_nothing_is_one_transfer() {
    // 34 bytes at 504.32 Gbit/s are 0.54 ns.
    assert_eq!(arrivals(&mut link(|_| ()), &[0]), [1_555 + 540]);
    // 513 bytes are two transfers.
    assert_eq!(arrivals(&mut link(|_| ()), &[513]), [1_555 + 9_217]);
}

// spec: PB-3, PCIE-2, PCIE-4
#[test]
fn completions_come_one_behind_the_other_in_request_order() {
    let arrivals = arrivals(&mut link(|_| ()), &[4_096, 4_096, 1, 4_096]);
    let one = 556; // 35 bytes
    let full = 69_290;
    let first = 1_555 + full;
    assert_eq!(arrivals, [first, first + full, first + full + one, first + 2 * full + one]);
}

// spec: PB-1
#[test]
fn each_end_has_lanes_of_its_own() {
    let mut slow_host = link(|a| a.pcie_host.lane_count = 1);
    assert_eq!(arrivals(&mut slow_host, &[4_096]), [1_555 + 69_290 * 16 - 10]);
    let mut slow_nic = link(|a| a.pcie_nic.lane_count = 1);
    assert_eq!(arrivals(&mut slow_nic, &[4_096]), [24_874 + 69_290]);
}

// spec: PB-7
#[test]
fn without_pacing_pcie_takes_no_time() {
    let mut link = link(|a| a.paced = false);
    assert_eq!(arrivals(&mut link, &[4_096, 0]), [0, 0]);
}

// spec: PB-4, PB-5, PCIE-7
#[test]
fn writes_wait_when_the_transmit_buffer_is_full_and_are_accepted_in_order() {
    // 16,000 bytes of headers: 58 writes of 8 transfers each.
    let mut link = link(|_| ());
    let accepted = (0..60).filter(|n| link.write(at(0), 4_096, (Class::Data, n + 1))).count();
    assert_eq!(accepted, 58);
    assert_eq!(link.next(), Some(at(69_290)));
    assert_eq!(link.pop_accepted(at(69_289)), None);
    assert_eq!(link.pop_accepted(at(69_290)), Some((Class::Data, 59)));
    assert_eq!(link.pop_accepted(at(69_290)), None);
    assert!(!link.write(at(69_290), 1, (Class::Control, 61)), "it waits behind the one that waits");
    assert_eq!(link.pop_accepted(at(2 * 69_290)), Some((Class::Data, 60)));
    // 224 bytes of headers and 4 KB of data are left: room for the small one.
    assert_eq!(link.pop_accepted(at(2 * 69_290)), Some((Class::Control, 61)));
    assert_eq!((link.pop_accepted(at(2 * 69_290)), link.next()), (None, None));
}

// spec: PB-4
#[test]
fn requests_wait_in_the_same_line_as_writes() {
    let mut link = link(|a| a.pcie_nic.tx_data_bytes = 4_096);
    assert!(link.write(at(0), 4_096, (Class::Data, 5)));
    link.fetch(at(0), QPN, segment(1), 0);
    assert!(!link.write(at(0), 4_000, (Class::Data, 6)), "behind the request");
    let request = 69_290 + 1_555;
    assert_eq!(link.pop_accepted(at(69_290)), Some((Class::Data, 6)), "4,096 bytes hold both");
    let fetched = link.pop_fetched(at(request + 556)).map(|fetch| fetch.arrives);
    assert_eq!(fetched, Some(at(request + 556)));
}

// spec: RTO-11
#[test]
fn discarded_fetches_do_not_arrive_and_give_their_reservations_back() {
    let mut link = link(|_| ());
    for (qpn, reserved) in [(7, 10), (8, 20), (7, 30)] {
        link.fetch(at(0), Qpn::masked(qpn), segment(1), reserved);
    }
    let given: Vec<u64> = link.discard(QPN).map(|fetch| fetch.reserved).collect();
    assert_eq!(given, [10, 30]);
    assert_eq!(link.pop_fetched(Instant::MAX).map(|fetch| fetch.reserved), Some(20));
    assert!(link.pop_fetched(Instant::MAX).is_none());
}
