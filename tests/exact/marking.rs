//! What stands in the outer headers, how long packets are, and which leave first.

use mrc_lab::config::{NicAttributes, RttTimestampMode};
use mrc_lab::nic::QpChoice;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::time::Duration;
use mrc_lab::wire::frame::FrameView;
use mrc_lab::wire::neth::NackReason;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::Ecn;
use mrc_lab::wire::role::Role;

use crate::bench::*;
use crate::lab::*;
use crate::wiretap::Seen;

fn kind(seen: &Seen) -> Kind {
    seen.packet().bth.opcode.kind()
}

/// TrimmingEnabled, UseDistinctDSCPForRetransmits; first sending, retransmission.
const ROLES: [(bool, bool, Role, Role); 4] = [
    (true, true, Role::Trimmable, Role::TrimmableRtx),
    (true, false, Role::Trimmable, Role::Trimmable),
    (false, true, Role::NoTrim, Role::TrimmableRtx),
    (false, false, Role::NoTrim, Role::NoTrim),
];

// spec: DSCP-1, DSCP-2, NACK-10, WIRE-6
#[test]
fn the_codepoint_of_data_follows_from_two_attributes() {
    for (trimming, distinct, first, again) in ROLES {
        let set = |a: &mut NicAttributes| {
            a.trimming_enabled = trimming;
            a.use_distinct_dscp_for_retransmits = distinct;
        };
        let scenario = back_to_back().with_flow(flow(3 * 4_096, 1)).with_attributes(set);
        let ran = run(&scenario.with_fault(lose(Kind::Write, 2)));
        assert!(ran.is_complete());
        let roles: Vec<_> = ran.data_sent(A).map(|seen| seen.packet().role).collect();
        assert_eq!(roles, [first, first, first, again].map(Some), "{trimming} {distinct}");
        let control = ran.sent(B).map(|seen| (seen.packet().role, seen.packet().dscp));
        assert!(control.into_iter().all(|marked| marked == (Some(Role::Control), 46)));
    }
}

// spec: DSCP-1, DSCP-2, NACK-10, DONE-2
#[test]
fn the_role_of_a_retransmission_does_not_depend_on_its_cause() {
    for (trimming, distinct, first, again) in ROLES {
        for (cause, counter) in [("NACK", 0), ("gap", 1), ("timeout", 2), ("re-request", 3)] {
            let mut bench = Bench::alone(A, |a| {
                a.trimming_enabled = trimming;
                a.use_distinct_dscp_for_retransmits = distinct;
                a.sack_loss_min_retx_pkts = 0;
            });
            let qpn = bench.post(QpChoice::New, 2 * 4_096);
            bench.run_to(us(1));
            match cause {
                "NACK" => bench.deliver(&bench.nack(qpn, 0, NackReason::Trimmed, false)),
                "gap" => bench.deliver(&bench.sack(qpn, -1, &[1])),
                "re-request" => bench.deliver(&bench.sack(qpn, 1, &[])),
                _ => {}
            }
            bench.run_until(|b| b.counters().rtx + b.counters().completion_rerequests > 0);
            bench.run_for(Duration::from_ns(100));
            let sent = bench.sent();
            let roles: Vec<_> = sent.iter().map(|seen| seen.packet().role).collect();
            assert_eq!(
                roles[..3],
                [first, first, again].map(Some),
                "{cause} {trimming} {distinct}"
            );
            let counted = bench.counters();
            let counted = [
                counted.rtx_nack,
                counted.rtx_sack_gap,
                counted.rtx_timeout,
                counted.completion_rerequests,
            ];
            assert!(counted[counter] > 0, "{cause}");
        }
    }
}

// spec: DSCP-1, WIRE-6, W-13
#[test]
fn the_six_codepoints_are_attributes() {
    let set = |a: &mut NicAttributes| {
        a.codepoints.trimmable = 10;
        a.codepoints.trimmable_rtx = 11;
        a.codepoints.control = 12;
        a.codepoints.trimmed = 13;
    };
    let scenario = back_to_back().with_flow(flow(2 * 4_096, 1)).with_attributes(set);
    let ran = run(&scenario.with_fault(lose(Kind::Write, 1)));
    assert!(ran.is_complete());
    let raw = |seen: &Seen| seen.frame[15] >> 2;
    assert_eq!(ran.data_sent(A).map(raw).collect::<Vec<_>>(), [10, 10, 11]);
    assert!(ran.sent(B).map(raw).all(|dscp| dscp == 12));
}

// spec: W-1, W-2, WIRE-5, WIRE-6
#[test]
fn the_outer_headers_of_every_packet() {
    let ran = run(&back_to_back().with_flow(flow(3 * 4_096, 1)).with_fault(lose(Kind::Write, 1)));
    let sent: Vec<_> = ran.sent(A).chain(ran.sent(B)).collect();
    let kinds = [Kind::Write, Kind::Sack, Kind::Ack];
    assert!(kinds.iter().all(|wanted| sent.iter().any(|seen| kind(seen) == *wanted)));
    for seen in sent {
        let view = FrameView::new(&seen.frame).expect("a correct IPv4 header");
        let (ipv4, udp) = (&seen.frame[14..34], &seen.frame[34..42]);
        assert_eq!(ipv4[0], 0x45, "no options");
        assert_eq!(ipv4[4..9], [0, 0, 0x40, 0, 64], "identification 0, DF, TTL 64");
        let ecn = if seen.is_data() { Ecn::Ect0 } else { Ecn::NotEct };
        assert_eq!(view.ecn(), ecn, "{}", seen.line());
        assert_eq!(udp[..2], seen.packet().entropy.to_be_bytes());
        assert_eq!(udp[2..4], 4_791_u16.to_be_bytes());
        assert_eq!(udp[6..8], [0, 0], "no checksum");
    }
}

/// The wire sizes of data, ACK, SACK, trimmed packet and NACK.
fn sizes(set: impl Fn(&mut NicAttributes)) -> [u64; 5] {
    let first = PacketMatch { nth: Some(1), ..PacketMatch::default() };
    let trim = rule(FaultAction::Trim { last_hop: false }, first);
    let scenario = back_to_back().with_flow(flow(2 * 4_096, 1)).with_attributes(set);
    let ran = run(&scenario.with_fault(trim));
    assert!(ran.is_complete());
    let first = |wanted: Kind| {
        let mut all = ran.seen.iter().filter(|s| s.sent && s.fault.is_none());
        all.find(|seen| kind(seen) == wanted).expect("one of each").wire_bytes()
    };
    let trimmed = ran.sent(A).find(|seen| seen.fault.is_some()).expect("trimmed").wire_bytes();
    [first(Kind::Write), first(Kind::Ack), first(Kind::Sack), trimmed, first(Kind::Nack)]
}

// spec: WIRE-9, WIRE-2, W-3, W-12, ACK-1, SACK-1, NACK-1, SEG-4
#[test]
fn sizes_on_the_wire() {
    assert_eq!(sizes(|_| ()), [4_174, 62, 94, 62, 78]);
    assert_eq!(sizes(timestamped), [4_178, 62, 94, 62, 78]);
    assert_eq!(sizes(|a| a.icrc = true), [4_178, 66, 98, 62, 82]);
}

fn timestamped(attributes: &mut NicAttributes) {
    attributes.rtt_timestamp_mode = RttTimestampMode::WireTimestamp;
}

// A trim cuts the timestamp off, but the bit that announces it stays.
// spec: NACK-2, NACK-3, NACK-4, DSCP-3, WIRE-2
#[test]
fn a_packet_with_a_timestamp_is_known_as_trimmed_by_its_codepoint() {
    let second = PacketMatch { nth: Some(2), ..PacketMatch::default() };
    let trim = rule(FaultAction::Trim { last_hop: true }, second);
    let scenario = back_to_back().with_flow(flow(3 * 4_096, 1)).with_attributes(timestamped);
    let ran = run(&scenario.with_fault(trim));
    assert!(ran.is_complete());
    let arrived = ran.seen.iter().filter(|seen| seen.node == B && !seen.sent);
    let told: Vec<_> = arrived
        .map(|seen| (seen.line(), seen.wire_bytes(), seen.packet().bth.timestamp_present))
        .collect();
    let expected = [
        ("FIRST 0 C", 4_178, true),
        ("MIDDLE 1 TRIMMED C", 62, true),
        ("LAST 2 A C", 4_178, true),
        ("MIDDLE 1 A RTX", 4_178, true),
    ];
    assert_eq!(told, expected.map(|(line, bytes, flag)| (line.to_owned(), bytes, flag)));
    let nacks: Vec<_> =
        ran.sent(B).filter(|seen| kind(seen) == Kind::Nack).map(Seen::line).collect();
    assert_eq!(nacks, ["NACK 1 TRIMMED_LASTHOP"]);
    assert_eq!((ran.counters[1].trimmed_pkts_rcvd, ran.drops[1].total()), (1, 0));
}

// spec: WIRE-9, SEG-6, ACK-4, CC-11
#[test]
fn with_timestamps_the_unit_of_the_window_stays_mss_plus_60() {
    // 1.5 x 50 B/ns x 110.88 ns = 8,316 bytes = 4,160 + 4,156: with one packet in
    // flight just one nominal packet of room is left, so it does not ask.
    let asks = |ps| {
        let mut bench = Bench::alone(A, |a| {
            timestamped(a);
            a.max_psn_range = 1;
            a.config_base_rtt = Duration::from_ps(ps);
        });
        bench.post(QpChoice::New, 2 * 4_096);
        bench.run_to(us(1));
        assert_eq!(bench.in_flight(), 4_160);
        bench.sent()[0].packet().bth.ack_request
    };
    assert_eq!((asks(110_880), asks(110_860)), (false, true));
    let attributes = NicAttributes { config_base_rtt: Duration::from_ps(1), ..<_>::default() };
    assert_eq!(attributes.max_window(attributes.data_rate), 4_156, "the smallest window");
}

// spec: DSCP-3, ACK-3, ACK-10
#[test]
fn control_leaves_ahead_of_waiting_data() {
    let mut bench = Bench::pair(back_to_back());
    bench.post_back(10 * 4_096);
    // Its first two packets leave at 169.325 and 252.805 ns; this one comes between.
    bench.run_to(ps(200_000));
    bench.sent();
    bench.deliver(&bench.part(0, 2).asking());
    bench.run_to(ps(400_000));
    let sent = bench.sent();
    let ladder: Vec<_> = sent.iter().map(|s| (s.at.as_ps(), s.line())).collect();
    let data = FETCHED + 2 * FULL;
    let expected = [
        (data, "MIDDLE 1 C"),
        (data + SACK, "SACK 0"),
        (data + SACK + ACK, "ACK 0"),
        (data + SACK + ACK + FULL, "MIDDLE 2 C"),
    ];
    assert_eq!(ladder, expected.map(|(at, line)| (at, line.to_owned())));
}

// spec: DSCP-3
#[test]
fn a_retransmission_waits_behind_data_that_waits_already() {
    let mut bench = Bench::alone(A, |_| ());
    let qpn = bench.post(QpChoice::New, 20 * 4_096);
    // By then all are fetched and the last four wait.
    bench.run_to(ps(DOORBELL + REQUEST + 20 * COMPLETION));
    let nack = NackReason::Trimmed;
    bench.deliver(&bench.nack(qpn, 0, nack, false));
    bench.run_to(us(5));
    let lines = bench.lines();
    assert_eq!(lines.len(), 21);
    assert_eq!(lines[19..], ["LAST 19 A C", "FIRST 0 A RTX"]);
}
