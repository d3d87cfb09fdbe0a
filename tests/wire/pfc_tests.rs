//! PFC frames: bytes written by hand, properties, and what is refused.

use mrc_lab::wire::error::WireError;
use mrc_lab::wire::header::Header;
use mrc_lab::wire::mac::MacAddr;
use mrc_lab::wire::packet::{Packet, wire_bytes};
use mrc_lab::wire::pfc::{Pfc, PfcView};
use proptest::prelude::*;

use crate::golden::{self, bytes, plain};

const PORT: MacAddr = MacAddr([0x02, 0, 0, 0, 0, 0x01]);

/// A frame that pauses priority 0 for the longest time and resumes priority 7.
pub fn golden() -> (Pfc, Vec<u8>) {
    let pfc = Pfc { quanta: [Some(0xFFFF), None, None, None, None, None, None, Some(0)] };
    let mut frame = bytes("0180c2000001 020000000001 8808  0101 0081");
    frame.extend(bytes("ffff 0000 0000 0000 0000 0000 0000 0000"));
    frame.resize(60, 0);
    (pfc, frame)
}

fn emitted(pfc: &Pfc) -> Vec<u8> {
    let mut frame = vec![0xA5; 100];
    pfc.emit(PORT, &mut frame);
    frame
}

/// The golden frame with `new` at `at`.
fn changed(at: usize, new: &[u8]) -> Vec<u8> {
    let (_, mut frame) = golden();
    frame[at..at + new.len()].copy_from_slice(new);
    frame
}

// spec: PB-13
#[test]
fn the_frame_is_that_of_802_1qbb() {
    let (pfc, frame) = golden();
    assert_eq!(emitted(&pfc), frame);
    assert_eq!(Pfc::parse(&frame), Ok(pfc));
    assert_eq!((Pfc::FRAME_BYTES, wire_bytes(frame.len())), (60, 64));
}

// spec: PB-13
#[test]
fn one_priority_has_its_bit_and_its_timer() {
    for priority in 0..8 {
        let pfc = Pfc::one(priority, 0x1234);
        let (_, mut frame) = golden();
        frame[16..].fill(0);
        frame[17] = 1 << priority;
        frame[18 + 2 * priority..20 + 2 * priority].copy_from_slice(&[0x12, 0x34]);
        assert_eq!(emitted(&pfc), frame);
        assert_eq!(Pfc::parse(&frame), Ok(pfc));
    }
}

proptest! {
    // spec: PB-13
    #[test]
    fn pfc_reads_back(quanta: [Option<u16>; 8]) {
        let pfc = Pfc { quanta };
        prop_assert_eq!(Pfc::parse(&emitted(&pfc)), Ok(pfc));
    }

    // spec: W-14
    #[test]
    fn noise_in_mac_control_is_harmless(noise in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = Pfc::parse(&noise);
        let (_, mut frame) = golden();
        frame.truncate(16);
        frame.extend_from_slice(&noise);
        prop_assert!(Pfc::is_pfc(&frame));
        prop_assert_eq!(Pfc::parse(&frame).is_ok(), frame.len() >= Pfc::FRAME_BYTES);
    }
}

#[test]
fn what_means_nothing_is_not_looked_at() {
    let (pfc, frame) = golden();
    // The reserved half of the vector, the timer of priority 1, the padding.
    for (at, new) in [(16, &[0xFF][..]), (20, &[0x12, 0x34]), (34, &[0xA5; 26])] {
        assert_eq!(Pfc::parse(&changed(at, new)), Ok(pfc));
    }
    let timers = PfcView::new(&changed(20, &[0x12, 0x34])[14..]).expect("long enough").timers();
    assert_eq!(timers, [0xFFFF, 0x1234, 0, 0, 0, 0, 0, 0]);
    let with_fcs = [&frame[..], &[0xA5; 4]].concat();
    assert_eq!(Pfc::parse(&with_fcs), Ok(pfc));
}

// spec: W-14, PB-13
#[test]
fn every_cut_of_a_pause_is_refused() {
    let (_, frame) = golden();
    for len in 0..frame.len() {
        let (header, have) = match len.checked_sub(14) {
            None => (Header::Ethernet, len),
            Some(have) => (Header::Pfc, have),
        };
        let error = WireError::TooShort { header, have };
        assert_eq!(Pfc::parse(&frame[..len]), Err(error), "{len}");
        assert_eq!(Pfc::is_pfc(&frame[..len]), len >= 14);
    }
    let error = Pfc::parse(&frame[..59]).expect_err("a byte is missing");
    assert_eq!(error.counter(), "drop_short_pfc");
}

// spec: W-14, PB-13
#[test]
fn other_mac_control_frames_are_refused_by_name() {
    let refused = |frame: &[u8], error: WireError, counter, text| {
        assert!(Pfc::is_pfc(frame));
        assert_eq!(Pfc::parse(frame), Err(error));
        assert_eq!((error.counter(), error.to_string().as_str()), (counter, text));
    };
    refused(
        &changed(14, &[0x00, 0x01]),
        WireError::PfcOpcode { found: 1 },
        "drop_pfc_opcode",
        "MAC control opcode 0x0001 is not PFC (0x0101)",
    );
    refused(
        &changed(0, &PORT.0),
        WireError::PfcDestination { found: PORT },
        "drop_pfc_destination",
        "MAC control frame to 02:00:00:00:00:01, not 01:80:c2:00:00:01",
    );
}

// spec: W-14
#[test]
fn packets_and_pauses_are_told_apart() {
    let packet = golden::write_only().frame(&plain());
    assert!(!Pfc::is_pfc(&packet));
    assert_eq!(Pfc::parse(&packet), Err(WireError::EtherType { found: 0x0800 }));
    let (_, pause) = golden();
    let found = Packet::parse(&pause, &plain());
    assert_eq!(found, Err(WireError::EtherType { found: 0x8808 }));
}

// spec: W-14
#[test]
fn no_flipped_bit_of_a_pause_brings_the_parser_down() {
    let (_, frame) = golden();
    for bit in 0..frame.len() * 8 {
        let mut flipped = frame.clone();
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        let must_be_as_it_is = matches!(bit / 8, 0..6 | 12..16);
        assert_eq!(Pfc::parse(&flipped).is_err(), must_be_as_it_is, "{bit}");
    }
}
