use core::net::Ipv4Addr;

use super::*;
use crate::nic::WorkRequest;
use crate::nic::requester::Segment;
use crate::wire::aeth::Aeth;
use crate::wire::bth::Bth;
use crate::wire::opcode::Opcode;
use crate::wire::packet::{Body, Ecn};
use crate::wire::psn::Psn;
use crate::wire::qpn::RKey;
use crate::wire::role::Role;

fn egress(set: impl Fn(&mut NicAttributes)) -> Egress {
    let mut attributes = NicAttributes::default();
    set(&mut attributes);
    Egress::new(&attributes, Some(Rate::gbps(400)))
}

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

fn ack() -> Packet<'static> {
    Packet {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        role: Some(Role::Control),
        dscp: 46,
        ecn: Ecn::NotEct,
        entropy: 50_000,
        bth: Bth {
            opcode: Opcode::Ack,
            destination_qp: Qpn::masked(9),
            ack_request: false,
            retransmission: false,
            timestamp_present: false,
            connect: false,
            psn: Psn::masked(0),
        },
        body: Body::Ack(Aeth { msn: 0 }),
    }
}

fn data(qpn: u32) -> DataPacket {
    let work = WorkRequest {
        wqe_id: 0,
        peer: Ipv4Addr::new(10, 0, 0, 2),
        lkey: RKey(1),
        local_va: 0,
        length: 1,
        remote_va: 0,
        rkey: RKey(2),
    };
    let opcode = Opcode::WriteOnly;
    let segment = Segment { offset: 0, length: 1, opcode, ends_message: true, msn: 0, work };
    let psn = PsnExt::first(Psn::masked(0));
    DataPacket {
        qpn: Qpn::masked(qpn),
        outgoing: Outgoing { psn, transmission: Some(1), cause: None, segment },
        remote_qpn: Qpn::NONE,
        entropy: 50_000,
        ack_request: false,
        timestamp: None,
        reserved: 79,
    }
}

/// With so many packets of each class queued, the classes in which they leave.
fn order(egress: &mut Egress, control: usize, data_packets: usize) -> String {
    for _ in 0..control {
        assert!(egress.queue_control(ack()));
    }
    for _ in 0..data_packets {
        egress.queue_data(data(7));
    }
    let mut order = String::new();
    while let Some(next) = egress.take_next(at(0)) {
        order.push(match next {
            Next::Control(..) => 'c',
            Next::Data(_) => 'd',
            Next::Pfc(_) => 'p',
        });
    }
    order
}

// spec: PB-10, DSCP-3, ACK-3
#[test]
fn the_classes_take_turns_as_the_scheduling_says() {
    use QueueScheduling::*;
    let with = |scheduling, weights| {
        let mut egress = egress(|a| (a.queue_scheduling, a.wrr_weights) = (scheduling, weights));
        order(&mut egress, 7, 4)
    };
    assert_eq!(with(StrictPriority, [1, 5]), "cccccccdddd");
    assert_eq!(with(RoundRobin, [1, 5]), "cdcdcdcdccc");
    assert_eq!(with(WeightedRoundRobin, [1, 5]), "cccccdccddd");
    assert_eq!(with(WeightedRoundRobin, [3, 1]), "cdddcdccccc");
}

// spec: PB-10
#[test]
fn pfc_frames_go_first_even_when_everything_is_paused() {
    let mut egress = egress(|_| ());
    Class::ALL.into_iter().for_each(|class| egress.pause(class, at(100)));
    egress.queue_pfc(Class::Data, 1);
    assert_eq!(order(&mut egress, 1, 1), "p");
    assert_eq!(egress.pool(Class::Data).used(), 0);
}

// spec: PB-10, PB-12
#[test]
fn of_the_pfc_frames_of_a_class_that_wait_only_the_newest_is_sent() {
    let mut egress = egress(|_| ());
    for quanta in [9, 0, 7] {
        egress.queue_pfc(Class::Data, quanta);
    }
    egress.queue_pfc(Class::Control, 5);
    let mut sent = core::iter::from_fn(|| egress.take_next(at(0)));
    assert!(matches!(sent.next(), Some(Next::Pfc(pfc)) if pfc == Pfc::one(0, 7)));
    assert!(matches!(sent.next(), Some(Next::Pfc(pfc)) if pfc == Pfc::one(1, 5)));
    assert!(sent.next().is_none());
}

// spec: PB-13
#[test]
fn a_paused_class_is_passed_over_until_the_pause_is_over() {
    let mut egress = egress(|_| ());
    egress.pause(Class::Control, at(100));
    egress.pause(Class::Data, at(50));
    assert_eq!((order(&mut egress, 1, 1), egress.next()), (String::new(), Some(at(50))));
    assert!(matches!(egress.take_next(at(50)), Some(Next::Data(_))));
    assert!(egress.take_next(at(99)).is_none());
    assert!(matches!(egress.take_next(at(100)), Some(Next::Control(..))));
    assert_eq!(egress.next(), None, "nothing is held back any longer");
}

// spec: PB-9
#[test]
fn control_that_finds_its_pool_full_is_refused() {
    let mut egress = egress(|_| ());
    // 25,600 bytes hold 412 ACKs of 62 bytes.
    let queued = (0..500).filter(|_| egress.queue_control(ack())).count();
    assert_eq!((queued, egress.control_waiting()), (412, 412 * 62));
    assert_eq!(egress.pool(Class::Control).counters().drops, 88);
    egress.take_next(at(0));
    assert_eq!(egress.control_waiting(), 411 * 62);
    assert!(!egress.queue_control(ack()), "it is charged until its last bit has left");
    egress.release(Class::Control, 62);
    assert!(egress.queue_control(ack()));
}

// spec: SEG-7, SEG-9
#[test]
fn the_data_pool_has_drained_when_it_holds_half_its_size_or_less() {
    let mut egress = egress(|_| ());
    for _ in 0..55 {
        assert!(egress.reserve_data(4_174));
    }
    let drained: Vec<bool> = (0..55).map(|_| egress.release(Class::Data, 4_174)).collect();
    // 115,200 bytes hold 27 packets: the 28th departure drains to 27.
    let expected: Vec<bool> = (0..55).map(|departure| departure >= 27).collect();
    assert_eq!(drained, expected);
}

// spec: RTO-11
#[test]
fn discarded_packets_leave_the_queue_and_give_their_reservations_back() {
    let mut egress = egress(|_| ());
    for qpn in [7, 8, 7] {
        egress.queue_data(data(qpn));
    }
    assert_eq!(egress.discard(Qpn::masked(7)).collect::<Vec<_>>(), [79, 79]);
    assert_eq!(order(&mut egress, 0, 0), "d");
}
