//! What strangers can make a NIC hold.

use core::net::Ipv4Addr;

use mrc_lab::nic::{NextHops, PostError, QpChoice, QpSide};
use mrc_lab::node::{NoTap, Node};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::QpEventKind;
use mrc_lab::wire::mac::MacAddr;
use mrc_lab::wire::packet::{Body, Packet};
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::role::Role;

use crate::bench::*;
use crate::lab::*;

/// The packet as one of the peer's QP `number`.
fn on(number: u32, packet: Packet<'static>) -> Packet<'static> {
    packet.bth(|bth| bth.destination_qp = Qpn::masked(number))
}

/// A message in one packet on the peer's QP `number`.
fn whole(bench: &Bench, number: u32) -> Packet<'static> {
    on(number, bench.part(0, 1))
}

/// The first packet of two on the peer's QP `number`.
fn half(bench: &Bench, number: u32) -> Packet<'static> {
    on(number, bench.part(0, 2))
}

/// The peer's numbers of the QPs whose receiving sides are open, in order.
fn open(bench: &Bench) -> Vec<u32> {
    let mut numbers: Vec<_> = bench.nic().qps().map(|qp| qp.remote.qpn.value()).collect();
    numbers.sort_unstable();
    numbers
}

/// Which of the peer's QPs were closed at which instant.
fn closings(bench: &mut Bench) -> Vec<(Instant, u32)> {
    let events = bench.events(B, QpEventKind::QpClosed);
    events.into_iter().map(|(at, event)| (at, event.remote.qpn.value())).collect()
}

// spec: REL-1
#[test]
fn at_a_peers_limit_its_complete_side_that_is_idle_longest_makes_way() {
    let mut bench = Bench::alone(B, |a| a.max_receive_qps_per_peer = 2);
    bench.deliver(&whole(&bench, 9).from(STRANGER));
    for (number, at) in [(10, 1), (11, 2)] {
        bench.run_to(us(at));
        bench.deliver(&whole(&bench, number));
    }
    bench.run_to(us(3));
    bench.deliver(&whole(&bench, 10).again());
    bench.run_to(us(4));
    bench.sent();
    assert_eq!(bench.answer(&whole(&bench, 12).asking()), ["SACK 0", "ACK 0"]);
    assert_eq!(closings(&mut bench), [(us(4), 11)], "10 was heard later, 9 is another's");
    assert_eq!(open(&bench), [9, 10, 12]);
    assert_eq!((bench.counters().qp_closed, bench.drops("no_resource")), (1, 0));
    assert_eq!(bench.nic().holdings(), [3, 1, 0, 2]);
    let last = whole(&bench, 11).again();
    assert_eq!(bench.answer(&last), ["ACK 0"], "its tombstone answers");
    assert_eq!(open(&bench), [9, 10, 12]);
}

// spec: REL-1, SCHED-3
#[test]
fn at_the_limit_of_all_peers_anyones_side_makes_way() {
    let mut bench = Bench::alone(B, |a| a.max_qps = 2);
    bench.deliver(&whole(&bench, 9).from(STRANGER));
    bench.run_to(us(1));
    bench.deliver(&whole(&bench, 10));
    bench.run_to(us(2));
    bench.deliver(&whole(&bench, 11));
    assert_eq!((closings(&mut bench), open(&bench)), (vec![(us(2), 9)], vec![10, 11]));
    assert_eq!(bench.nic().holdings(), [2, 1, 0, 1], "its group is gone with it");
}

// spec: REL-1
#[test]
fn sending_sides_do_not_count() {
    let mut bench = Bench::pair(back_to_back().with_attributes(|a| a.max_qps = 1));
    for _ in 0..3 {
        bench.post(QpChoice::New, 100);
    }
    bench.run_to(us(1_000));
    assert_eq!(bench.events(A, QpEventKind::WqeComplete).len(), 3);
    assert_eq!(bench.world.nic(A).qps().count(), 3);
}

// spec: REL-1, W-11, NACK-2
#[test]
fn sides_with_a_gap_or_an_incomplete_message_are_never_closed_for_others() {
    let mut bench = Bench::alone(B, |a| a.max_qps = 3);
    bench.deliver(&half(&bench, 10));
    bench.deliver(&on(11, bench.part(1, 2)));
    bench.deliver(&whole(&bench, 12).trimmed(Role::Trimmed));
    bench.run_to(us(1));
    bench.sent();
    let refused = bench.answers(&whole(&bench, 13).asking().again());
    assert_eq!(refused.iter().map(|s| s.line()).collect::<Vec<_>>(), ["NACK 0 NO_RESOURCE RTX"]);
    let nack = refused[0].packet();
    let Body::Nack(neth) = nack.body else { panic!("a NACK") };
    assert_eq!((nack.bth.destination_qp, neth.source_qp), (Qpn::masked(13), Qpn::NONE));
    assert_eq!((open(&bench), bench.drops("no_resource")), (vec![10, 11, 12], 1));
    // They are not disturbed, and once one is complete it makes way.
    bench.deliver(&on(10, bench.part(1, 2)));
    bench.deliver(&on(11, bench.part(0, 2)));
    bench.deliver(&whole(&bench, 12));
    assert_eq!(bench.counters().messages_rcvd, 3);
    bench.run_to(us(2));
    bench.sent();
    assert_eq!(bench.answer(&whole(&bench, 13).asking()), ["SACK 0", "ACK 0"]);
    assert_eq!(open(&bench), [11, 12, 13]);
}

// spec: REL-1, REL-2
#[test]
fn a_side_that_was_refused_its_only_packet_makes_way() {
    let mut bench = Bench::alone(B, |a| a.max_qps = 1);
    bench.deliver(&half(&bench, 10).reth(|reth| reth.rkey = RKey(1)));
    assert_eq!((open(&bench), bench.drops("remote_access")), (vec![10], 1));
    bench.deliver(&half(&bench, 11));
    assert_eq!((open(&bench), bench.drops("no_resource")), (vec![11], 0));
}

// spec: REL-1
#[test]
fn one_refusal_a_microsecond_is_told() {
    let mut bench = Bench::alone(B, |a| a.max_qps = 1);
    bench.deliver(&half(&bench, 10));
    bench.run_to(us(10));
    bench.sent();
    let almost = Duration::from_ps(999_999);
    let friend = bench.nic_ip(A);
    for (at, source) in [
        (us(10), STRANGER),
        (us(10), friend),
        (us(10) + almost, friend),
        (us(11), friend),
        (us(11) + almost, STRANGER),
        (us(20), STRANGER),
    ] {
        bench.run_to(at);
        bench.deliver(&whole(&bench, 11).from(source));
    }
    bench.run_to(us(21));
    // A NACK takes 78 bytes' time.
    let leave = Duration::from_ps(1_560);
    let told: Vec<_> =
        bench.sent().iter().map(|s| (s.at - leave, s.packet().destination)).collect();
    assert_eq!(told, [(us(10), STRANGER), (us(11), friend), (us(20), STRANGER)]);
    assert_eq!(bench.drops("no_resource"), 6);
}

// spec: REL-1
#[test]
fn a_peer_that_is_not_on_the_list_gets_no_side_and_no_answer() {
    let friend = Ipv4Addr::new(10, 0, 0, 1);
    let mut bench = Bench::alone(B, |a| a.allowed_peers = vec![friend]);
    let packet = whole(&bench, 10).asking();
    assert!(bench.answer(&packet.from(STRANGER)).is_empty());
    assert!(bench.answer(&packet.trimmed(Role::Trimmed).from(STRANGER)).is_empty());
    assert_eq!((bench.drops("peer_not_allowed"), bench.nic().holdings()), (2, [0; 4]));
    assert_eq!(bench.answer(&packet), ["SACK 0", "ACK 0"]);
}

// On a link with several peers or a router a NIC sends to more than one MAC address.
// spec: REL-1
#[test]
fn a_peer_without_a_next_hop_gets_no_side_and_no_message() {
    let near = MacAddr([2, 0, 0, 0, 0, 9]);
    let mut bench = Bench::alone(B, |_| {});
    let hops = NextHops { default: None, peers: [(bench.nic_ip(A), near)].into() };
    bench.world.with_nic(B, |nic, _| nic.set_next_hops(hops));
    assert!(bench.answer(&whole(&bench, 10).from(STRANGER)).is_empty());
    assert_eq!((bench.drops("no_next_hop"), bench.nic().holdings()), (1, [0; 4]));
    let answers = bench.answers(&whole(&bench, 11).asking());
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|sent| sent.frame[..6] == near.0));
    bench.world.with_nic(A, |nic, _| nic.set_next_hops(NextHops::default()));
    let work = bench.work(100);
    assert_eq!(bench.post_work(QpChoice::New, work), Err(PostError::NoNextHop(work.peer)));
}

// spec: REL-1, REL-4, SCHED-3
#[test]
fn an_idle_side_is_closed_complete_or_not() {
    let mut bench = Bench::alone(B, |a| a.qp_idle_timeout = Duration::from_us(50));
    bench.deliver(&whole(&bench, 10));
    bench.deliver(&half(&bench, 11));
    // What resets the time: a duplicate, and a trimmed packet.
    for (at, packet) in
        [(20, whole(&bench, 10)), (69, on(11, bench.part(1, 2)).trimmed(Role::Trimmed))]
    {
        bench.run_to(us(at));
        bench.deliver(&packet);
        if at == 20 {
            bench.deliver(&half(&bench, 11));
        }
    }
    let last = Duration::from_ps(1);
    bench.run_to(us(70) - last);
    assert_eq!(open(&bench), [10, 11]);
    bench.run_to(us(119) - last);
    assert_eq!((open(&bench), bench.nic().holdings()[3]), (vec![11], 1));
    bench.run_to(us(119));
    assert_eq!(closings(&mut bench), [(us(70), 10), (us(119), 11)]);
    assert_eq!((bench.nic().holdings(), bench.counters().qp_closed), ([0, 2, 0, 0], 2));
    bench.sent();
    assert_eq!(bench.answer(&whole(&bench, 10).again()), ["ACK 0"]);
    assert_eq!(bench.answer(&on(11, bench.part(1, 2))), ["NACK 1 UNEXP_EVENT"]);
}

// spec: REL-1, REL-5
#[test]
fn by_default_a_side_may_be_idle_for_ten_seconds() {
    let mut bench = Bench::alone(B, |_| ());
    bench.deliver(&half(&bench, 10));
    bench.run_to(us(10_000_000) - Duration::from_ps(1));
    assert_eq!(open(&bench), [10]);
    bench.run_to(us(10_000_000));
    assert!(open(&bench).is_empty());
    bench.run_to(us(11_000_000));
    assert_eq!((bench.nic().holdings(), bench.nic().poll_timeout()), ([0; 4], None));
}

/// Lets `count` packets arrive, one every 10 ns, each from an address of its own.
fn flood(bench: &mut Bench, count: u32, packet: impl Fn(u32) -> Packet<'static>) {
    for number in 0..count {
        let source = Ipv4Addr::from_bits(0x0b00_0000 + number);
        bench.deliver(&packet(number).from(source));
        bench.run_for(Duration::from_ns(10));
    }
}

// spec: REL-1, W-14
#[test]
fn a_flood_from_made_up_addresses_leaves_everything_bounded() {
    let mut bench = Bench::alone(B, |a| (a.max_qps, a.max_tombstones) = (16, 32));
    bench.world.set_tap(B, Box::new(NoTap));
    // A message of nothing needs no key.
    let nothing = {
        let packet = bench.part(0, 1);
        let Body::Write { meth, mut reth, .. } = packet.body else { panic!("a Write") };
        reth.dma_length = 0;
        Packet { body: Body::Write { meth, tseth: None, reth, payload: &[] }, ..packet }
    };
    let kinds = [half(&bench, 77), nothing.trimmed(Role::Trimmed), nothing];
    let ours = 10;
    bench.deliver(&half(&bench, ours));
    // Complete ones make way for each other.
    flood(&mut bench, 100_000, |_| nothing);
    assert_eq!(bench.nic().holdings(), [16, 32, 0, 16]);
    let counters = bench.counters();
    assert_eq!((counters.qp_created, counters.qp_closed), (100_001, 100_001 - 16));
    assert_eq!(counters.messages_rcvd, 100_000);
    // Incomplete ones stay, and nobody else gets in.
    flood(&mut bench, 100_000, |number| kinds[number as usize % 3]);
    assert_eq!(bench.nic().holdings(), [16, 32, 0, 16]);
    assert!(bench.drops("no_resource") > 99_900);
    // 10 ns each: a refusal is told every 100 packets.
    let nacks = bench.counters().nack_pkts_sent;
    assert!((999..1_030).contains(&nacks), "{nacks}");
    // Who was there before is served.
    bench.deliver(&on(ours, bench.part(1, 2)));
    assert_eq!(bench.written(0, PART), part_bytes(0));
    assert_eq!(bench.written(PART, PART), part_bytes(1));
    bench.run_for(Duration::from_secs(11));
    assert_eq!((bench.nic().holdings(), bench.nic().poll_timeout()), ([0; 4], None));
}

// spec: REL-1, W-14, SCHED-2
#[test]
fn sprayings_of_strangers_are_forgotten_when_there_are_too_many() {
    let mut bench = Bench::alone(B, |a| a.max_qps = 2);
    let mut entropy = |last: u8, number: u32| {
        let packet = whole(&bench, number).from(Ipv4Addr::new(10, 0, 1, last)).asking();
        let sent = bench.answers(&packet);
        let ack = sent.last().expect("an ACK").packet();
        assert_eq!(ack.destination, Ipv4Addr::new(10, 0, 1, last));
        ack.entropy - 49_152
    };
    assert_eq!([entropy(1, 10), entropy(1, 11), entropy(2, 12)], [0, 1, 0]);
    assert_eq!(entropy(1, 13), 2, "few: remembered, group or not");
    // Peers 3 to 6 make the fifth and more; only the groups of 5 and 6 are left.
    assert_eq!([3, 4, 5, 6].map(|last| entropy(last, 14)), [0; 4]);
    assert_eq!([entropy(6, 15), entropy(1, 16)], [1, 0]);
}

// spec: REL-1, W-11, QP-7
#[test]
fn a_sender_with_more_qps_than_the_receiver_allows_completes_them_all() {
    let scenario = back_to_back().with_attributes(|a| a.max_receive_qps_per_peer = 2);
    let mut bench = Bench::pair(scenario);
    let qps = [0; 4].map(|_| bench.post(QpChoice::New, 50 * 4_096));
    bench.run_to(us(15));
    assert!(bench.drops("no_resource") > 0, "two wait");
    assert_eq!(bench.world.nic(B).qps().count(), 2);
    bench.run_to(us(10_000));
    let mut done: Vec<_> =
        bench.events(A, QpEventKind::WqeComplete).iter().map(|(_, e)| e.local.qpn).collect();
    done.sort_unstable();
    assert_eq!(done, qps);
    assert_eq!((bench.counters_of(A).qp_error, bench.counters().qp_created), (0, 4));
    assert!(bench.counters_of(A).nack_pkts_rcvd > 0 && bench.in_flight() == 0);
    let open = bench.world.nic(B).qps().filter(|qp| qp.side == QpSide::Responder).count();
    assert_eq!(open, 2);
}
