//! What a switch does to frames: views of any IPv4 packet, edits in place,
//! trims.

use core::net::Ipv4Addr;

use mrc_lab::wire::checksum;
use mrc_lab::wire::error::WireError;
use mrc_lab::wire::frame::{FrameView, decrement_ttl, set_ce, set_dscp};
use mrc_lab::wire::header::Header;
use mrc_lab::wire::mac::{MacAddr, MacPair};
use mrc_lab::wire::packet::{Body, Ecn, Packet, ip_bytes, wire_bytes};
use mrc_lab::wire::role::Role;
use mrc_lab::wire::trim::{TrimIpLength, trim};
use proptest::prelude::*;

use crate::any;
use crate::golden::{self, MACS, all, bytes, mend, plain, with_icrc};

/// An ICMP echo request with four IPv4 options that do nothing.
fn ping() -> Vec<u8> {
    bytes(
        "020000000002 020000000001 0800
         46 00 0020 0000 0000 40 01 63d9 0a000001 0a000002 01010101
         08 00 f7ff 0000 0000",
    )
}

#[test]
fn any_ipv4_packet_can_be_looked_at() {
    let frame = ping();
    let view = FrameView::new(&frame).expect("an IPv4 packet");
    assert_eq!(view.macs(), MACS);
    assert_eq!(view.source(), Ipv4Addr::new(10, 0, 0, 1));
    assert_eq!(view.destination(), Ipv4Addr::new(10, 0, 0, 2));
    assert_eq!((view.protocol(), view.total_length()), (1, 32));
    assert_eq!((view.dscp(), view.ecn()), (0, Ecn::NotEct));
    assert_eq!(view.payload(), &frame[38..]);
    assert_eq!(view.datagram(), &frame[14..]);
    assert_eq!(view.udp_ports(), None);
}

#[test]
fn udp_ports_are_those_of_a_first_fragment_only() {
    let mut frame = golden::write_first().frame(&plain());
    let ports = |frame: &[u8]| FrameView::new(frame).map(FrameView::udp_ports);
    assert_eq!(ports(&frame), Ok(Some((0xC0DE, 4791))));
    frame[20] = 0x20;
    mend(&mut frame);
    assert_eq!(ports(&frame), Ok(Some((0xC0DE, 4791))));
    frame[21] = 1;
    mend(&mut frame);
    assert_eq!(ports(&frame), Ok(None));
}

/// True when summing the whole IPv4 header gives the checksum it has.
fn has_full_sum(frame: &[u8]) -> bool {
    let mut summed = frame.to_vec();
    mend(&mut summed);
    summed == frame
}

proptest! {
    #[test]
    fn edits_keep_the_checksum_that_a_full_sum_gives(
        packet in any::packet(&[7; 64]),
        dscp in 0..64_u8,
    ) {
        let mut frame = Vec::new();
        packet.emit(&plain(), MACS, &mut frame);
        set_dscp(&mut frame, dscp).expect("an IPv4 frame");
        prop_assert!(has_full_sum(&frame));
        set_ce(&mut frame).expect("an IPv4 frame");
        prop_assert!(has_full_sum(&frame));
        prop_assert_eq!(decrement_ttl(&mut frame), Ok(63));
        prop_assert!(has_full_sum(&frame));
        let view = FrameView::new(&frame).expect("a good checksum");
        prop_assert_eq!((view.dscp(), view.ecn()), (dscp, Ecn::Ce));
        prop_assert_eq!(view.ipv4().ttl(), 63);
    }
}

#[test]
fn edits_touch_nothing_else() {
    let before = golden::sack().frame(&with_icrc());
    let mut frame = before.clone();
    set_dscp(&mut frame, 63).expect("an IPv4 frame");
    set_ce(&mut frame).expect("an IPv4 frame");
    assert_eq!(frame[15], 0xFF);
    assert_eq!((&frame[..15], &frame[26..]), (&before[..15], &before[26..]));
    let next = MacPair { source: MacAddr([2, 0, 0, 0, 1, 0]), destination: MacAddr([0xFF; 6]) };
    next.emit(&mut frame);
    assert_eq!(FrameView::new(&frame).map(FrameView::macs), Ok(next));
    assert_eq!(frame[12..14], before[12..14]);
}

// spec: W-3
#[test]
fn what_switches_change_the_icrc_does_not_cover() {
    let mut frame = golden::write_first().frame(&with_icrc());
    set_dscp(&mut frame, 8).expect("an IPv4 frame");
    set_ce(&mut frame).expect("an IPv4 frame");
    decrement_ttl(&mut frame).expect("an IPv4 frame");
    let parsed = Packet::parse(&frame, &with_icrc()).expect("a good ICRC");
    assert_eq!((parsed.role, parsed.ecn), (Some(Role::TrimmableRtx), Ecn::Ce));
}

#[test]
fn no_edit_of_a_frame_that_is_not_ipv4() {
    for len in 0..34 {
        let mut frame = golden::ack().frame(&plain());
        frame.truncate(len);
        let before = frame.clone();
        assert!(set_dscp(&mut frame, 1).is_err());
        assert!(set_ce(&mut frame).is_err());
        assert!(decrement_ttl(&mut frame).is_err());
        assert!(trim(&mut frame, 12, TrimIpLength::Fix).is_err());
        assert_eq!(frame, before);
    }
}

/// A full-size data packet.
fn full(icrc: bool) -> Vec<u8> {
    let golden = golden::write_middle();
    let Body::Write { meth, tseth, mut reth, .. } = golden.packet.body else { panic!("a write") };
    reth.dma_length = 1 << 20;
    let body = Body::Write { meth, tseth, reth, payload: &[0x11; 4096] };
    let mut frame = Vec::new();
    let format = if icrc { with_icrc() } else { plain() };
    Packet { body, ..golden.packet }.emit(&format, MACS, &mut frame);
    frame
}

// spec: NACK-1, WIRE-9, SW-16
#[test]
fn a_trim_leaves_the_headers_that_a_nack_needs() {
    for icrc in [false, true] {
        let mut frame = full(icrc);
        trim(&mut frame, 12, TrimIpLength::Fix).expect("a data packet");
        assert_eq!((ip_bytes(frame.len()), wire_bytes(frame.len())), (44, 62));
        assert_eq!(frame, golden::trimmed().frame(&plain()));
    }
}

// spec: W-16, SW-16
#[test]
fn both_ways_of_trimming_are_understood() {
    for ip_length in [TrimIpLength::Fix, TrimIpLength::Keep] {
        for padding in [0, 2] {
            let mut frame = full(true);
            let length = FrameView::new(&frame).map(FrameView::total_length);
            trim(&mut frame, 12, ip_length).expect("a data packet");
            frame.resize(frame.len() + padding, 0);
            let kept = FrameView::new(&frame).map(FrameView::total_length) == length;
            assert_eq!(kept, ip_length == TrimIpLength::Keep);
            for format in [plain(), with_icrc()] {
                assert_eq!(Packet::parse(&frame, &format), Ok(golden::trimmed().packet));
            }
        }
    }
}

// spec: W-16
#[test]
fn a_packet_that_is_not_trimmed_may_not_name_more_than_it_has() {
    let mut frame = full(false);
    trim(&mut frame, 4, TrimIpLength::Keep).expect("a data packet");
    let found = Packet::parse(&frame, &plain());
    assert!(matches!(found, Err(WireError::IpLength { have: 44, .. })), "{found:?}");
}

// spec: SW-16
#[test]
fn a_trim_keeps_the_congestion_mark_and_clears_the_udp_checksum() {
    let mut frame = full(false);
    set_ce(&mut frame).expect("an IPv4 frame");
    let checksum = checksum::udp(MRC[0], MRC[1], &frame[34..]);
    frame[40..42].copy_from_slice(&checksum.to_be_bytes());
    for ip_length in [TrimIpLength::Fix, TrimIpLength::Keep] {
        let mut trimmed = frame.clone();
        trim(&mut trimmed, 16, ip_length).expect("a data packet");
        let parsed = Packet::parse(&trimmed, &plain()).expect("a trimmed packet");
        assert_eq!((parsed.role, parsed.ecn), (Some(Role::TrimmedLastHop), Ecn::Ce));
        assert_eq!(trimmed[40..42], [0, 0]);
    }
}

/// The addresses of the golden frames.
const MRC: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

// spec: SW-16
#[test]
fn the_smallest_data_packet_can_be_trimmed_and_a_trimmed_one_again() {
    let mut frame = golden::write_empty().frame(&plain());
    for dscp in [12, 16] {
        trim(&mut frame, dscp, TrimIpLength::Fix).expect("a data packet");
        assert_eq!(frame.len(), 58);
        assert!(Packet::parse(&frame, &plain()).is_ok());
    }
    frame.truncate(57);
    frame[17] -= 1;
    mend(&mut frame);
    let before = frame.clone();
    let found = trim(&mut frame, 12, TrimIpLength::Fix);
    assert_eq!(found, Err(WireError::TrimmedTooShort { have: 15 }));
    assert_eq!(frame, before);
}

// spec: SW-16
#[test]
fn only_udp_packets_can_be_trimmed() {
    let mut frame = ping();
    let found = trim(&mut frame, 12, TrimIpLength::Fix);
    assert_eq!(found, Err(WireError::IpProtocol { found: 1 }));
    frame[23] = 17;
    mend(&mut frame);
    let found = trim(&mut frame, 12, TrimIpLength::Fix);
    assert_eq!(found, Err(WireError::TrimmedTooShort { have: 0 }));
    let mut frame = full(false);
    frame[21] = 9;
    mend(&mut frame);
    assert_eq!(trim(&mut frame, 12, TrimIpLength::Fix), Err(WireError::IpFragment));
    let mut frame = ping();
    frame.truncate(14 + 24 + 7);
    frame[23] = 17;
    frame[17] = 31;
    mend(&mut frame);
    let short = WireError::TooShort { header: Header::Udp, have: 7 };
    assert_eq!(trim(&mut frame, 12, TrimIpLength::Fix), Err(short));
}

// spec: W-17
#[test]
fn trims_and_views_leave_out_ethernet_padding() {
    for golden in all() {
        let mut frame = golden.frame(&plain());
        let len = frame.len();
        frame.resize(len + 10, 0xEE);
        assert_eq!(FrameView::new(&frame).map(|view| view.datagram().len()), Ok(len - 14));
    }
}
