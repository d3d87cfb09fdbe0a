//! The link's delay and every fault, on real frames.

use core::net::Ipv4Addr;

use super::*;
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

fn comment(passage: &Passage) -> &str {
    passage.comment.as_deref().unwrap_or("")
}

// spec: SW-2, SW-3, SW-20
#[test]
fn without_a_fault_a_frame_arrives_after_the_delay_as_it_was() {
    let expected = [Passage { arrives: Some(ARRIVES), frame: frame(&data(1)), comment: None }];
    assert_eq!(send(&mut link(vec![]), &data(1)), expected);
    let other = PacketMatch { psn: Psn::new(2), ..PacketMatch::default() };
    assert_eq!(send(&mut faulty(other, FaultAction::Drop), &data(1)), expected);
}

// spec: SW-20
#[test]
fn a_dropped_frame_is_kept_for_the_capture_and_arrives_nowhere() {
    let any = PacketMatch { probability: 1.0, ..PacketMatch::default() };
    let passages = send(&mut faulty(any, FaultAction::Drop), &ack(17));
    let comment = Some("dropped by rule 1 (loss): ACK PSN 17".to_owned());
    assert_eq!(passages, [Passage { arrives: None, frame: frame(&ack(17)), comment }]);
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
    assert_eq!(passages[0].comment, None);
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
