//! The link's delay and every fault, on real frames.

use core::net::Ipv4Addr;

use super::*;
use crate::units::Rate;
use crate::wire::aeth::Aeth;
use crate::wire::bth::Bth;
use crate::wire::meth::Meth;
use crate::wire::opcode::Opcode;
use crate::wire::packet::{Body, Ecn, MacPair, Packet};
use crate::wire::psn::Psn;
use crate::wire::qpn::{Qpn, RKey};
use crate::wire::reth::Reth;

const DELAY: Duration = Duration::from_ns(500);
const NOW: Instant = Instant::from_ps(7_000);
const ARRIVES: Instant = Instant::from_ps(507_000);

fn packet<'a>(opcode: Opcode, psn: u32, role: Role, body: Body<'a>) -> Packet<'a> {
    Packet {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        role: Some(role),
        dscp: 0,
        ecn: Ecn::Ect0,
        entropy: 1_000,
        bth: Bth {
            opcode,
            destination_qp: Qpn::masked(0x2A),
            ack_request: false,
            retransmission: false,
            timestamp_present: false,
            connect: false,
            psn: Psn::masked(psn.into()),
        },
        body,
    }
}

fn data(psn: u32) -> Packet<'static> {
    let body = Body::Write {
        meth: Meth { rqmsn: 0, msn: 9 },
        tseth: None,
        reth: Reth { va: 0, rkey: RKey(1), dma_length: 256 },
        payload: &[0x5A; 256],
    };
    packet(Opcode::WriteOnly, psn, Role::Trimmable, body)
}

fn ack(psn: u32) -> Packet<'static> {
    packet(Opcode::Ack, psn, Role::Control, Body::Ack(Aeth { msn: 1 }))
}

fn frame(packet: &Packet<'_>) -> Frame {
    let mut frame = Frame::new();
    packet.emit(&FrameFormat::default(), MacPair::default(), &mut frame);
    frame
}

/// Not MRC: the same packet to another UDP port.
fn foreign() -> Frame {
    let mut frame = Frame::new();
    let format = FrameFormat { udp_port: 5_201, ..FrameFormat::default() };
    data(1).emit(&format, MacPair::default(), &mut frame);
    frame
}

fn link(rules: Vec<FaultRule>) -> Link {
    Link::new(DELAY, rules, FrameFormat::default(), Rng::derive(1, "link", 0))
}

fn faulty(matches: PacketMatch, action: FaultAction) -> Link {
    link(vec![FaultRule { matches, action }])
}

fn send_at(link: &mut Link, now: Instant, frame: Frame) -> Vec<Passage> {
    let mut out = Vec::new();
    link.send(now, frame, &mut FramePool::default(), &mut out);
    out
}

fn send(link: &mut Link, packet: &Packet<'_>) -> Vec<Passage> {
    send_at(link, NOW, frame(packet))
}

/// Whether the link loses the packet.
fn loses(link: &mut Link, packet: &Packet<'_>) -> bool {
    send(link, packet)[0].arrives.is_none()
}

fn comment(passage: &Passage) -> String {
    passage.comment().unwrap_or_default()
}

// spec: SW-2, SW-3, SW-20
#[test]
fn without_a_fault_a_frame_arrives_after_the_delay_as_it_was() {
    let expected =
        [Passage { arrives: Some(ARRIVES), frame: frame(&data(1)), comments: Vec::new() }];
    assert_eq!(send(&mut link(vec![]), &data(1)), expected);
    let other = PacketMatch { psn: Psn::new(2), ..PacketMatch::default() };
    assert_eq!(send(&mut faulty(other, FaultAction::Drop), &data(1)), expected);
}

// spec: SW-20
#[test]
fn a_dropped_frame_is_kept_for_the_capture_and_arrives_nowhere() {
    let any = PacketMatch { probability: 1.0, ..PacketMatch::default() };
    let passages = send(&mut faulty(any, FaultAction::Drop), &ack(17));
    let comments = vec!["dropped by rule 1 (loss): ACK PSN 17".to_owned()];
    assert_eq!(passages, [Passage { arrives: None, frame: frame(&ack(17)), comments }]);
}

// spec: SW-20
#[test]
fn a_duplicate_follows_its_original() {
    let mut link = faulty(PacketMatch::default(), FaultAction::Duplicate);
    let passages = send(&mut link, &data(3));
    assert_eq!(passages.len(), 2);
    for passage in &passages {
        assert_eq!(passage.arrives, Some(ARRIVES));
        assert_eq!(passage.frame, frame(&data(3)));
    }
    assert_eq!(passages[0].comment(), None);
    let copied = "duplicated by rule 1 (duplication): WRITE_ONLY PSN 3";
    assert_eq!(comment(&passages[1]), copied);
}

fn flipped_bits(before: &[u8], after: &[u8]) -> Vec<u32> {
    assert_eq!(before.len(), after.len());
    let bits = (0..).zip(before.iter().zip(after)).flat_map(|(index, (a, b))| {
        (0..8).filter(move |bit| (a ^ b) & 0x80 >> bit != 0).map(move |bit| index * 8 + bit)
    });
    bits.collect()
}

// spec: SW-20
#[test]
fn corruption_flips_exactly_one_bit() {
    let before = frame(&data(4));
    let mut chosen = faulty(PacketMatch::default(), FaultAction::Corrupt { bit: Some(131) });
    let passages = send(&mut chosen, &data(4));
    assert_eq!(flipped_bits(&before, &passages[0].frame), [131]);
    assert_eq!(passages[0].arrives, Some(ARRIVES));
    let said = "bit 131 flipped by rule 1 (corruption of bit 131): WRITE_ONLY PSN 4";
    assert_eq!(comment(&passages[0]), said);

    let mut drawn = faulty(PacketMatch::default(), FaultAction::Corrupt { bit: None });
    let bits: Vec<_> = (0..50)
        .map(|_| flipped_bits(&before, &send(&mut drawn, &data(4))[0].frame))
        .inspect(|bits| assert_eq!(bits.len(), 1))
        .flatten()
        .collect();
    assert!(bits.iter().any(|bit| *bit != bits[0]), "{bits:?}");
}

// spec: SW-20
#[test]
fn a_bit_beyond_the_frame_changes_nothing_and_says_so() {
    let mut link = faulty(PacketMatch::default(), FaultAction::Corrupt { bit: Some(1 << 20) });
    let passages = send(&mut link, &ack(1));
    assert_eq!(passages[0].frame, frame(&ack(1)));
    let said = "left as it was by rule 1 (corruption of bit 1048576): ACK PSN 1";
    assert_eq!(comment(&passages[0]), said);
}

// spec: SW-20
#[test]
fn a_held_packet_is_overtaken_by_those_behind_it() {
    let second = PacketMatch { psn: Psn::new(2), ..PacketMatch::default() };
    let mut link = faulty(second, FaultAction::Hold(Duration::from_us(2)));
    let mut arrivals: Vec<_> = (1..=3)
        .flat_map(|psn| {
            let now = NOW + Duration::from_ns(psn.into());
            send_at(&mut link, now, frame(&data(psn))).into_iter().map(move |p| (p.arrives, psn))
        })
        .collect();
    arrivals.sort();
    assert_eq!(arrivals.iter().map(|(_, psn)| *psn).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(arrivals[0].0, Some(ARRIVES + Duration::from_ns(1)));
    assert_eq!(arrivals[2].0, Some(ARRIVES + Duration::from_ns(2_002)));
}

// spec: SW-20, NACK-1
#[test]
fn data_is_trimmed_as_a_switch_does_it() {
    for (last_hop, role) in [(false, Role::Trimmed), (true, Role::TrimmedLastHop)] {
        let mut link = faulty(PacketMatch::default(), FaultAction::Trim { last_hop });
        let passages = send(&mut link, &data(5));
        let trimmed = Packet::parse(&passages[0].frame, &FrameFormat::default()).unwrap();
        assert_eq!(trimmed.role, Some(role));
        assert_eq!(trimmed.bth.psn, Psn::masked(5));
        assert_eq!(trimmed.body, Body::Trimmed { meth: Meth { rqmsn: 0, msn: 9 } });
        assert!(comment(&passages[0]).starts_with("trimmed by rule 1 (trim"));
        // Trimmed packets still count as writes.
        let writes = PacketMatch { kind: Some(Kind::Write), ..PacketMatch::default() };
        let mut next = faulty(writes, FaultAction::Drop);
        let passages = send_at(&mut next, NOW, passages[0].frame.clone());
        let said = format!("dropped by rule 1 (WRITE, loss): WRITE_ONLY {role} PSN 5");
        assert_eq!(comment(&passages[0]), said);
    }
}

// spec: SW-20
#[test]
fn what_is_no_data_is_not_trimmed() {
    let mut link = faulty(PacketMatch::default(), FaultAction::Trim { last_hop: false });
    for untouched in [frame(&ack(1)), foreign(), vec![1, 2, 3]] {
        let passages = send_at(&mut link, NOW, untouched.clone());
        assert_eq!(passages[0].frame, untouched);
        assert!(comment(&passages[0]).starts_with("left as it was by rule 1 (trim): "));
    }
}

// spec: SW-20
#[test]
fn every_field_that_is_given_must_hold() {
    let mut subject = data(6);
    subject.bth.retransmission = true;
    let base = PacketMatch {
        kind: Some(Kind::Write),
        role: Some(Role::Trimmable),
        qpn: Qpn::new(0x2A),
        psn: Psn::new(6),
        entropy: Some(1_000),
        retransmission: Some(true),
        from: Some(NOW),
        until: Some(NOW + Duration::from_ps(1)),
        ..PacketMatch::default()
    };
    assert!(loses(&mut faulty(base.clone(), FaultAction::Drop), &subject));
    let others = [
        PacketMatch { kind: Some(Kind::Sack), ..base.clone() },
        PacketMatch { role: Some(Role::NoTrim), ..base.clone() },
        PacketMatch { qpn: Qpn::new(0x2B), ..base.clone() },
        PacketMatch { psn: Psn::new(7), ..base.clone() },
        PacketMatch { entropy: Some(1_001), ..base.clone() },
        PacketMatch { retransmission: Some(false), ..base.clone() },
        PacketMatch { from: Some(NOW + Duration::from_ps(1)), ..base.clone() },
        PacketMatch { until: Some(NOW), ..base.clone() },
    ];
    for other in others {
        assert!(!loses(&mut faulty(other.clone(), FaultAction::Drop), &subject), "{other:?}");
    }
}

// spec: SW-20
#[test]
fn foreign_frames_match_only_rules_without_fields_of_mrc() {
    let fields = [
        PacketMatch { kind: Some(Kind::Write), ..PacketMatch::default() },
        PacketMatch { role: Some(Role::Trimmable), ..PacketMatch::default() },
        PacketMatch { qpn: Qpn::new(0x2A), ..PacketMatch::default() },
        PacketMatch { psn: Psn::new(1), ..PacketMatch::default() },
        PacketMatch { entropy: Some(1_000), ..PacketMatch::default() },
        PacketMatch { retransmission: Some(false), ..PacketMatch::default() },
    ];
    for matches in fields {
        let mut link = faulty(matches, FaultAction::Drop);
        assert!(loses(&mut link, &data(1)));
        assert_eq!(send_at(&mut link, NOW, foreign())[0].arrives, Some(ARRIVES));
    }
    let mut link = faulty(PacketMatch::default(), FaultAction::Drop);
    let passages = send_at(&mut link, NOW, vec![0; 60]);
    assert_eq!(comment(&passages[0]), "dropped by rule 1 (loss): other frame of 60 bytes");
}

// spec: SW-20
#[test]
fn nth_picks_one_of_the_packets_that_fit() {
    let third = PacketMatch { kind: Some(Kind::Ack), nth: Some(3), ..PacketMatch::default() };
    let mut link = faulty(third, FaultAction::Drop);
    let lost: Vec<_> = (1..=6)
        .filter(|psn| {
            assert!(!loses(&mut link, &data(*psn)));
            loses(&mut link, &ack(*psn))
        })
        .collect();
    assert_eq!(lost, [3]);
}

// spec: SW-20
#[test]
fn a_rule_acts_no_more_often_than_its_limit() {
    let twice = PacketMatch { limit: Some(2), ..PacketMatch::default() };
    let mut link = faulty(twice, FaultAction::Drop);
    let lost: Vec<_> = (1..=5).filter(|psn| loses(&mut link, &data(*psn))).collect();
    assert_eq!(lost, [1, 2]);
}

// spec: SW-20
#[test]
fn the_first_rule_that_matches_acts_and_later_ones_see_nothing() {
    let drop_second = FaultRule {
        matches: PacketMatch { nth: Some(2), ..PacketMatch::default() },
        action: FaultAction::Drop,
    };
    let hold_acks = FaultRule {
        matches: PacketMatch { kind: Some(Kind::Ack), ..PacketMatch::default() },
        action: FaultAction::Hold(Duration::from_ns(1)),
    };
    let mut link = link(vec![hold_acks, drop_second]);
    assert!(!loses(&mut link, &data(1)));
    assert!(comment(&send(&mut link, &ack(2))[0]).starts_with("held 1 ns by rule 1 (ACK, hold"));
    let said = "dropped by rule 2 (only match 2, loss): WRITE_ONLY PSN 3";
    assert_eq!(comment(&send(&mut link, &data(3))[0]), said);
}

/// Which of `count` packets a link with this stream loses at 10 %.
fn losses(rng: Rng, count: u32) -> Vec<u32> {
    let matches =
        PacketMatch { kind: Some(Kind::Write), probability: 0.1, ..PacketMatch::default() };
    let rules = vec![FaultRule { matches, action: FaultAction::Drop }];
    let mut link = Link::new(DELAY, rules, FrameFormat::default(), rng);
    (0..count).filter(|psn| loses(&mut link, &data(*psn))).collect()
}

// spec: SW-20, SW-21
#[test]
fn losses_follow_the_links_own_stream_draw_by_draw() {
    let mut rng = Rng::derive(3, "a", 0);
    let expected: Vec<_> = (0..10_000).filter(|_| rng.chance(0.1)).collect();
    let lost = losses(Rng::derive(3, "a", 0), 10_000);
    assert_eq!(lost, expected);
    assert!((900..1_100).contains(&lost.len()), "{}", lost.len());
    assert_ne!(losses(Rng::derive(3, "b", 0), 10_000), lost);
    assert_ne!(losses(Rng::derive(4, "a", 0), 10_000), lost);
}

// spec: SW-20
#[test]
fn packets_that_do_not_match_draw_nothing() {
    let acks = PacketMatch { kind: Some(Kind::Ack), probability: 0.5, ..PacketMatch::default() };
    let mut alone = faulty(acks.clone(), FaultAction::Drop);
    let mut mixed = faulty(acks, FaultAction::Drop);
    for psn in 0..200 {
        assert!(!loses(&mut mixed, &data(psn)));
        assert_eq!(loses(&mut mixed, &ack(psn)), loses(&mut alone, &ack(psn)));
    }
}

/// Sends data packets with these PSNs, each at its instant; gives the arrival
/// and the PSN of each, in order of arrival.
fn arrivals(link: &mut Link, sent: impl IntoIterator<Item = (u64, u32)>) -> Vec<(u64, u32)> {
    let mut arrived = Vec::new();
    for (at, psn) in sent {
        for passage in send_at(link, Instant::from_ps(at), frame(&data(psn))) {
            let packet = Packet::parse(&passage.frame, &FrameFormat::default()).unwrap();
            arrived.extend(passage.arrives.map(|at| (at.as_ps(), packet.bth.psn.value())));
        }
    }
    // Stable: what arrives at one instant stays in the order of sending.
    arrived.sort_by_key(|(at, _)| *at);
    arrived
}

/// Of one data packet, FCS included: 256 bytes and 78 around them.
const WIRE: u64 = 334;

fn slow(gbps: u64, queue_limit: u64) -> Shape {
    let bottleneck = Some(Bottleneck { rate: Rate::gbps(gbps), queue_limit });
    Shape { bottleneck, ..Shape::default() }
}

// spec: SW-20
#[test]
fn packets_pass_a_bottleneck_one_after_the_other() {
    assert_eq!(wire_bytes(frame(&data(1)).len()), WIRE);
    let mut link = faulty(PacketMatch::default(), FaultAction::Shape(slow(8, 10_000)));
    // At 8 Gbps a byte takes 1 ns. Two back to back, one after a pause.
    let arrived = arrivals(&mut link, [(0, 1), (1_000, 2), (2_000_000, 3)]);
    let expected = [(334_000 + 500_000, 1), (668_000 + 500_000, 2), (2_834_000, 3)];
    assert_eq!(arrived, expected);
    let passages = send(&mut link, &ack(4));
    let said = comment(&passages[0]);
    let wanted = "delayed by rule 1 (rate of 8 Gbps with a queue of 10 KB): ACK PSN 4, by ";
    assert!(said.starts_with(wanted) && said.ends_with(" ns"), "{said}");
}

// spec: SW-20
#[test]
fn a_bottleneck_has_room_for_its_queue_and_no_more() {
    let room_for_two = slow(8, 2 * WIRE);
    let mut link = faulty(PacketMatch::default(), FaultAction::Shape(room_for_two));
    // Three at once: the last finds two; a picosecond before the first has
    // gone there is no room either, and then there is.
    let sent = [(0, 1), (0, 2), (0, 3), (333_999, 4), (334_000, 5)];
    let expected = [(834_000, 1), (1_168_000, 2), (1_502_000, 5)];
    assert_eq!(arrivals(&mut link, sent), expected);
    let passages = send_at(&mut link, Instant::from_ps(334_000), frame(&data(6)));
    assert_eq!(passages[0].arrives, None);
    let said = "dropped at a full queue by rule 1 (rate of 8 Gbps with a queue of 668 B): \
                WRITE_ONLY PSN 6";
    assert_eq!(comment(&passages[0]), said);
}

// spec: SW-20
#[test]
fn delay_keeps_packets_in_order_when_it_ends() {
    let matches = PacketMatch { until: Some(Instant::from_ps(100)), ..PacketMatch::default() };
    let delay = Duration::from_us(1);
    let shape = FaultAction::Shape(Shape { delay, ..Shape::default() });
    let mut link = faulty(matches, shape);
    let sent = [(0, 1), (50, 2), (100, 3), (2_000_000, 4)];
    let expected = [(1_500_000, 1), (1_500_050, 2), (1_500_050, 3), (2_500_000, 4)];
    assert_eq!(arrivals(&mut link, sent), expected);
    let mut link = faulty(PacketMatch::default(), shape);
    let said = "delayed by rule 1 (delay of 1 us): WRITE_ONLY PSN 7, by 1000 ns";
    assert_eq!(comment(&send(&mut link, &data(7))[0]), said);
}

/// When packets arrive that are sent this far apart over 1 us of jitter.
fn jittered(seed: u64, apart_ps: u64) -> Vec<(u64, u32)> {
    let jitter = Duration::from_us(1);
    let rule = FaultRule {
        matches: PacketMatch::default(),
        action: FaultAction::Shape(Shape { jitter, ..Shape::default() }),
    };
    let rng = Rng::derive(seed, "link", 0);
    let mut link = Link::new(DELAY, vec![rule], FrameFormat::default(), rng);
    arrivals(&mut link, (0..1_000).map(|psn| (u64::from(psn) * apart_ps, psn)))
}

// spec: SW-20, SW-21
#[test]
fn jitter_is_uniform_and_drawn_from_the_links_own_stream() {
    // Too far apart to wait for each other.
    let apart = 3_000_000;
    let mut rng = Rng::derive(9, "link", 0);
    let expected: Vec<_> = (0..1_000_u32)
        .map(|psn| (u64::from(psn) * apart + 500_000 + rng.below(1_000_001), psn))
        .collect();
    let arrived = jittered(9, apart);
    assert_eq!(arrived, expected);
    assert_ne!(jittered(10, apart), arrived);
    let mean = arrived.iter().map(|(at, psn)| at - u64::from(*psn) * apart - 500_000).sum::<u64>();
    assert!((470_000_000..530_000_000).contains(&mean), "{mean}");
}

// spec: SW-20
#[test]
fn jitter_does_not_reorder() {
    let arrived = jittered(9, 10_000);
    assert!(arrived.iter().map(|(_, psn)| *psn).eq(0..1_000));
    assert!(arrived.iter().all(|(at, psn)| {
        let sent = u64::from(*psn) * 10_000;
        (500_000..=1_500_000).contains(&(at - sent))
    }));
}

// spec: SW-20
#[test]
fn a_reordered_packet_goes_right_behind_as_many_later_ones() {
    let second = PacketMatch { psn: Psn::new(2), ..PacketMatch::default() };
    let mut link = faulty(second, FaultAction::Reorder { behind: 2 });
    let arrived = arrivals(&mut link, (1..=5).map(|psn| (u64::from(psn) * 1_000, psn)));
    let expected = [(501_000, 1), (503_000, 3), (504_000, 4), (504_000, 2), (505_000, 5)];
    assert_eq!(arrived, expected);
    assert!(send(&mut link, &data(2)).is_empty());
    send(&mut link, &data(6));
    let passages = send(&mut link, &data(7));
    let said = "reordered by rule 1 (PSN 2, reorder behind 2): WRITE_ONLY PSN 2";
    assert_eq!((comment(&passages[0]), comment(&passages[1])), (String::new(), said.to_owned()));
}

// spec: SW-20
#[test]
fn no_more_packets_wait_than_one_waits_for() {
    let mut link = faulty(PacketMatch::default(), FaultAction::Reorder { behind: 3 });
    for psn in 0..100 {
        let passed = send(&mut link, &data(psn)).len();
        assert_eq!(passed, usize::from(psn >= 3));
        assert!(link.waiting.len() <= 3);
    }
    // Those that wait when the rule is gone go on behind those that come.
    assert_eq!(link.clear_rules(None), 1);
    let passed: Vec<_> = (100..104).map(|psn| send(&mut link, &data(psn)).len()).collect();
    assert_eq!(passed, [2, 2, 2, 1]);
}

// spec: SW-20
#[test]
fn a_link_that_is_down_loses_everything_and_says_so() {
    let [from, until] = [10, 20].map(|ps| Some(Instant::from_ps(ps)));
    let every = Some(Duration::from_ps(100));
    let matches = PacketMatch { from, until, every, ..PacketMatch::default() };
    let mut link = faulty(matches, FaultAction::Down);
    let up = |link: &Link, ps| link.is_up(Instant::from_ps(ps));
    assert_eq!(
        [9, 10, 19, 20, 110, 120].map(|ps| up(&link, ps)),
        [true, false, false, true, false, true]
    );
    let sent = [(9, 1), (10, 2), (19, 3), (20, 4), (110, 5), (120, 6)];
    let expected = [(500_009, 1), (500_020, 4), (500_120, 6)];
    assert_eq!(arrivals(&mut link, sent), expected);
    let passages = send_at(&mut link, Instant::from_ps(15), frame(&ack(9)));
    let said = "lost by rule 1 (from 0.01 ns, until 0.02 ns, every 100 ps, down): ACK PSN 9";
    assert_eq!(comment(&passages[0]), said);
    assert_eq!((link.rules()[0].seen(), link.rules()[0].acted()), (4, 4));
}

// spec: SW-20
#[test]
fn packet_faults_come_before_the_state_and_the_pace_of_the_link() {
    let any = |action| FaultRule { matches: PacketMatch::default(), action };
    let first = PacketMatch { nth: Some(1), ..PacketMatch::default() };
    let duplicate = FaultRule { matches: first, action: FaultAction::Duplicate };
    let shape = any(FaultAction::Shape(slow(8, 10_000)));
    let mut link = link(vec![shape.clone(), duplicate]);
    let passages = send(&mut link, &data(1));
    let arrives: Vec<_> = passages.iter().filter_map(|passage| passage.arrives).collect();
    let wire = Duration::from_ns(WIRE);
    assert_eq!(arrives, [ARRIVES + wire, ARRIVES + wire * 2]);
    assert_eq!(passages[1].comments.len(), 2);
    assert!(passages[1].comments[0].starts_with("duplicated by rule 2"));
    assert!(passages[1].comments[1].starts_with("delayed by rule 1"));
    assert_eq!(comment(&passages[1]).lines().count(), 2);
    // A link that is down has no pace, whatever the order of rules.
    link.add_rule(7, any(FaultAction::Down));
    link.add_rule(8, shape);
    assert!(comment(&send(&mut link, &data(2))[0]).starts_with("lost by rule 7 (down)"));
}

// spec: SW-20
#[test]
fn rules_come_and_go_by_their_numbers() {
    let any = |action| FaultRule { matches: PacketMatch::default(), action };
    let mut link = link(vec![any(FaultAction::Drop), any(FaultAction::Drop)]);
    link.add_rule(5, any(FaultAction::Duplicate));
    let ids = |link: &Link| link.rules().iter().map(ArmedRule::id).collect::<Vec<_>>();
    assert_eq!(ids(&link), [5, 1, 2]);
    // The newest is asked first.
    assert_eq!(send(&mut link, &data(1)).len(), 2);
    assert_eq!((link.rules()[0].acted(), link.rules()[1].seen()), (1, 0));
    assert_eq!((link.clear_rules(Some(5)), link.clear_rules(Some(5))), (1, 0));
    assert_eq!(ids(&link), [1, 2]);
    assert!(loses(&mut link, &data(2)));
    assert_eq!(link.clear_rules(None), 2);
    assert!(!loses(&mut link, &data(3)));
}
