//! What is written is read back the same, for every header and whole packets.

use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::bth::{Bth, BthView};
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::error::WireError;
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::neth::{NackReason, Neth};
use mrc_lab::wire::packet::{FrameFormat, Packet};
use mrc_lab::wire::peth::Peth;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::Codepoints;
use mrc_lab::wire::seth::{PathMark, SackSubject, Seth};
use mrc_lab::wire::tseth::Tseth;
use proptest::prelude::*;

use crate::any;
use crate::golden::{MACS, plain, with_icrc};

/// Payload bytes: the lengths around a word and the default MSS.
const PAYLOAD: [u8; 4097] = {
    let mut bytes = [0; 4097];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = (at * 37 % 256) as u8;
        at += 1;
    }
    bytes
};

/// Emits into dirty bytes, reads back, and checks that every shorter slice is
/// refused and that what follows the header is left alone.
macro_rules! round_trip {
    ($test:ident, $header:ident, $any:expr) => {
        proptest! {
            #[test]
            fn $test(value in $any, dirt: u8) {
                let mut bytes = [dirt; 40];
                value.emit(&mut bytes);
                prop_assert_eq!($header::parse(&bytes), Ok(value));
                prop_assert!(bytes[$header::LEN..].iter().all(|&byte| byte == dirt));
                for len in 0..$header::LEN {
                    let found = $header::parse(&bytes[..len]);
                    let is_short =
                        matches!(found, Err(WireError::TooShort { have, .. }) if have == len);
                    prop_assert!(is_short, "{:?}", found);
                }
            }
        }
    };
}

round_trip!(bth_reads_back, Bth, any::bth());
round_trip!(meth_reads_back, Meth, any::meth());
round_trip!(tseth_reads_back, Tseth, any::tseth());
round_trip!(reth_reads_back, Reth, any::reth());
round_trip!(aeth_reads_back, Aeth, any::aeth());
round_trip!(seth_reads_back, Seth, any::seth());
round_trip!(cc_state_reads_back, CcState, any::cc_state());
round_trip!(neth_reads_back, Neth, any::neth());
round_trip!(peth_reads_back, Peth, any::peth());

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    // spec: W-1, W-2, W-3, SEG-3
    #[test]
    fn packets_read_back(packet in any::packet(&PAYLOAD), icrc: bool) {
        let format = FrameFormat { icrc, ..plain() };
        let mut frame = Vec::new();
        packet.emit(&format, MACS, &mut frame);
        prop_assert_eq!(frame.len(), packet.frame_len(&format));
        prop_assert_eq!(Packet::parse(&frame, &format), Ok(packet));
    }
}

// spec: W-13
#[test]
fn the_role_is_written_and_read_with_the_labs_codepoints() {
    let codepoints = Codepoints { control: 1, trimmed: 46, ..Codepoints::default() };
    let format = FrameFormat { codepoints, udp_port: 5_000, ..with_icrc() };
    for golden in crate::golden::all() {
        let mut frame = Vec::new();
        golden.packet.emit(&format, MACS, &mut frame);
        let parsed = Packet::parse(&frame, &format).expect("a frame of this lab");
        assert_eq!(parsed.role, golden.packet.role);
        assert_eq!(parsed.body, golden.packet.body);
        assert_eq!(Some(parsed.dscp), parsed.role.map(|role| codepoints.dscp(role)));
    }
}

// spec: WIRE-4
#[test]
fn the_psn_on_the_wire_is_24_bits() {
    let mut bth = crate::golden::write_only().packet.bth;
    bth.psn = Psn::masked(0x1_00FF_FFFE).plus(7);
    let mut bytes = [0; Bth::LEN];
    bth.emit(&mut bytes);
    assert_eq!(bytes[9..12], [0, 0, 5]);
    assert_eq!(BthView::new(&bytes).map(|view| view.psn().value()), Ok(5));
}

// spec: W-9
#[test]
fn the_undefined_path_mark_is_none() {
    let golden = crate::golden::sack();
    let frame = golden.frame(&plain());
    let marks = [0x00, 0x20, 0x40, 0x60].map(|bits| {
        let mut seth = frame[54..].to_vec();
        seth[1] = bits;
        Seth::parse(&seth).map(|seth| seth.ce_mark)
    });
    let expected = [PathMark::None, PathMark::SkipOnce, PathMark::AlwaysSkip, PathMark::None];
    assert_eq!(marks, expected.map(Ok));
}

#[test]
fn a_saturated_offset_names_no_packet() {
    assert_eq!(SackSubject::data(-70_000).offset(), None);
    assert_eq!(SackSubject::data(-32_768).offset(), None);
    assert_eq!(SackSubject::data(-32_767).offset(), Some(-32_767));
    assert_eq!(SackSubject::data(32_766).offset(), Some(32_766));
    assert_eq!(SackSubject::data(32_767).offset(), None);
    assert_eq!(SackSubject::data(i64::MAX), SackSubject::Data { ack_psn_offset: 32_767 });
    assert_eq!(SackSubject::Probe { probe_id: 3 }.offset(), None);
}

#[test]
fn counts_saturate_and_received_bytes_wrap() {
    let state = CcState {
        out_of_order: 0x8001,
        penalty: 0x81,
        received_units: 0x0100_0002,
        ..CcState::default()
    };
    let mut bytes = [0; CcState::LEN];
    state.emit(&mut bytes);
    assert_eq!(bytes, [0, 0, 0x7F, 0xFF, 0x7F, 0, 0, 2]);
}

// spec: W-11
#[test]
fn every_reason_keeps_its_code() {
    for code in 0..=255 {
        assert_eq!(NackReason::from_code(code).code(), code);
    }
    let named: Vec<u8> = (0..=255)
        .filter(|&code| !matches!(NackReason::from_code(code), NackReason::Unknown(_)))
        .collect();
    assert_eq!(named, [0x01, 0x02, 0x06, 0x07, 0x0A, 0x0B, 0x19]);
    assert_eq!(NackReason::from_code(0x0B).name(), "PSN_OOR_WINDOW");
}
