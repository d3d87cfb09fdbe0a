//! What comes in is never trusted: every cut, every flipped bit, and each kind
//! of fault by its name.

use mrc_lab::wire::error::WireError;
use mrc_lab::wire::header::Header;
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, FrameFormat, Packet};
use proptest::prelude::*;

use crate::golden::{self, Golden, all, mend, plain, with_icrc};

fn is_trimmed(golden: &Golden) -> bool {
    matches!(golden.packet.body, Body::Trimmed { .. })
}

// spec: W-14
#[test]
fn every_cut_is_refused() {
    for golden in all() {
        for format in [plain(), with_icrc()] {
            let frame = golden.frame(&format);
            for len in 0..frame.len() {
                let found = Packet::parse(&frame[..len], &format);
                assert!(found.is_err(), "{len} of {}: {found:?}", frame.len());
            }
        }
    }
}

// spec: W-14
#[test]
fn no_flipped_bit_brings_the_parser_down() {
    for golden in all() {
        let frame = golden.frame(&plain());
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            let found = Packet::parse(&flipped, &plain());
            let in_ipv4 = (14 * 8..34 * 8).contains(&bit);
            assert!(!in_ipv4 || found.is_err(), "{bit}");
            mend(&mut flipped);
            if let Err(error) = Packet::parse(&flipped, &plain()) {
                assert!(error.counter().starts_with("drop_"));
            }
        }
    }
}

/// Bytes of a frame that the ICRC does not cover, beside the addresses of the
/// Ethernet header: type of service, TTL, checksums, the BTH's fifth byte.
const UNCOVERED: [usize; 7] = [15, 22, 24, 25, 40, 41, 46];

// spec: W-3, W-14
#[test]
fn with_icrc_no_flipped_bit_gets_through() {
    for golden in all().into_iter().filter(|golden| !is_trimmed(golden)) {
        let frame = golden.frame(&with_icrc());
        for bit in 12 * 8..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            mend(&mut flipped);
            let found = Packet::parse(&flipped, &with_icrc());
            let covered = !UNCOVERED.contains(&(bit / 8));
            assert_eq!(found.is_err(), covered || is_refused_alone(bit / 8, &flipped), "{bit}");
        }
    }
}

/// True when the parser refuses a change of an uncovered byte for its own
/// reasons: a UDP checksum that is wrong, a codepoint that says trimmed.
fn is_refused_alone(byte: usize, frame: &[u8]) -> bool {
    match byte {
        40 | 41 => true,
        15 => {
            matches!(frame[15] >> 2, 12 | 16)
                && !Opcode::from_code(frame[42]).is_some_and(Opcode::is_data)
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    // spec: W-14
    #[test]
    fn noise_after_good_headers_is_harmless(
        which in 0..all().len(),
        noise in proptest::collection::vec(any::<u8>(), 0..120),
        from in 14_usize..100,
        icrc: bool,
    ) {
        let format = FrameFormat { icrc, ..plain() };
        let mut frame = all()[which].frame(&format);
        frame.truncate(from.max(34));
        frame.extend_from_slice(&noise);
        let length = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        if let Some(field) = frame.get_mut(38..40) {
            field.copy_from_slice(&(length - 20).to_be_bytes());
        }
        mend(&mut frame);
        let _ = Packet::parse(&frame, &format);
    }

    // spec: W-14
    #[test]
    fn noise_is_harmless(noise in proptest::collection::vec(any::<u8>(), 0..120)) {
        prop_assert!(Packet::parse(&noise, &plain()).is_err());
    }
}

/// A golden frame with `bytes` written at `at` and the IPv4 checksum mended.
fn changed(golden: &Golden, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = golden.frame(&plain());
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    mend(&mut frame);
    frame
}

#[track_caller]
fn refused(golden: Golden, at: usize, bytes: &[u8], expected: WireError) {
    let frame = changed(&golden, at, bytes);
    let found = Packet::parse(&frame, &plain());
    assert_eq!(found, Err(expected));
}

// spec: W-14, W-1
#[test]
fn faults_of_the_ipv4_header_have_names() {
    use golden::ack;
    refused(ack(), 12, &[0x86, 0xDD], WireError::EtherType { found: 0x86DD });
    refused(ack(), 14, &[0x65], WireError::IpVersion { found: 6 });
    refused(ack(), 14, &[0x44], WireError::IpHeaderLength { words: 4 });
    refused(ack(), 16, &[0, 19], WireError::IpLength { named: 19, have: 44 });
    refused(ack(), 16, &[0, 45], WireError::IpLength { named: 45, have: 44 });
    refused(ack(), 20, &[0x20, 0], WireError::IpFragment);
    refused(ack(), 20, &[0x00, 1], WireError::IpFragment);
    refused(ack(), 23, &[6], WireError::IpProtocol { found: 6 });
    let mut frame = ack().frame(&plain());
    frame[24] ^= 1;
    let found = u16::from_be_bytes([frame[24], frame[25]]);
    assert_eq!(Packet::parse(&frame, &plain()), Err(WireError::IpChecksum { found }));
}

// spec: W-14, W-1
#[test]
fn ipv4_options_are_refused() {
    let mut frame = golden::ack().frame(&plain());
    frame.splice(34..34, [1, 1, 1, 1]);
    frame[14] = 0x46;
    frame[17] += 4;
    mend(&mut frame);
    assert_eq!(Packet::parse(&frame, &plain()), Err(WireError::IpOptions { words: 6 }));
}

// spec: W-14, W-2
#[test]
fn faults_of_the_udp_header_have_names() {
    use golden::ack;
    refused(ack(), 36, &[0x12, 0xB6], WireError::UdpPort { found: 4790 });
    refused(ack(), 38, &[0, 25], WireError::UdpLength { named: 25, have: 24 });
    refused(ack(), 38, &[0, 23], WireError::UdpLength { named: 23, have: 24 });
    refused(ack(), 40, &[0, 1], WireError::UdpChecksum { found: 1 });
}

// spec: W-14, W-4
#[test]
fn opcodes_that_are_unknown_or_not_supported_have_names() {
    refused(golden::ack(), 42, &[0x0A], WireError::UnknownOpcode { found: 0x0A });
    for (code, opcode) in [
        (0xC9, Opcode::WriteLastImmediate),
        (0xCB, Opcode::WriteOnlyImmediate),
        (0xD8, Opcode::EndpointRequest),
        (0xD9, Opcode::EndpointResponse),
    ] {
        refused(golden::ack(), 42, &[code], WireError::UnsupportedOpcode { opcode });
        refused(golden::trimmed(), 42, &[code], WireError::UnsupportedOpcode { opcode });
    }
}

// spec: W-14
#[test]
fn faults_of_the_control_headers_have_names() {
    refused(golden::ack(), 54, &[0x3F], WireError::AethSyndrome { found: 0x3F });
    let found = 1;
    refused(golden::sack(), 70, &[0x10], WireError::CcType { header: Header::Seth, found });
    refused(golden::nack(), 70, &[0x10], WireError::CcType { header: Header::Neth, found });
    let (opcode, extra) = (Opcode::Ack, 12);
    refused(golden::probe(), 42, &[0xD1], WireError::AethSyndrome { found: 0 });
    let mut frame = changed(&golden::probe(), 42, &[0xD1]);
    frame[54] = 0x1F;
    let found = Packet::parse(&frame, &plain());
    assert_eq!(found, Err(WireError::TrailingBytes { opcode, extra }));
}

// spec: W-14, SEG-3, W-8
#[test]
fn sizes_of_data_must_agree() {
    let opcode = Opcode::WriteOnly;
    let fault = WireError::DataLength { opcode, payload: 4, message: 5 };
    refused(golden::write_only(), 70, &[0, 0, 0, 5], fault);
    let opcode = Opcode::WriteLast;
    let fault = WireError::DataLength { opcode, payload: 4, message: 4 };
    refused(golden::write_last(), 70, &[0, 0, 0, 4], fault);
    for opcode in [Opcode::WriteFirst, Opcode::WriteMiddle, Opcode::WriteLast] {
        let fault = WireError::DataLength { opcode, payload: 0, message: 0 };
        refused(golden::write_empty(), 42, &[opcode.code()], fault);
        let mut frame = changed(&golden::write_empty(), 42, &[opcode.code()]);
        frame[73] = 9;
        let fault = WireError::DataLength { opcode, payload: 0, message: 9 };
        assert_eq!(Packet::parse(&frame, &plain()), Err(fault));
    }
    let found = 0x8000_0001;
    refused(golden::write_first(), 70, &[0x80, 0, 0, 1], WireError::MessageLength { found });
    refused(golden::write_middle(), 61, &[2], WireError::TsethType { found: 2 });
}

// spec: W-14, W-16
#[test]
fn a_trimmed_packet_keeps_all_that_a_nack_needs() {
    let trimmed_sack = changed(&golden::sack(), 15, &[0x30]);
    let found = Packet::parse(&trimmed_sack, &plain());
    assert_eq!(found, Err(WireError::TrimmedOpcode { opcode: Opcode::Sack }));
    let frame = golden::trimmed().frame(&plain());
    for len in 42..frame.len() {
        let mut cut = frame[..len].to_vec();
        cut[16..18].copy_from_slice(&((len - 14) as u16).to_be_bytes());
        cut[38..40].copy_from_slice(&((len - 34) as u16).to_be_bytes());
        mend(&mut cut);
        let found = Packet::parse(&cut, &plain());
        assert_eq!(found, Err(WireError::TrimmedTooShort { have: len - 42 }));
    }
}

// spec: W-14
#[test]
fn a_header_cut_off_by_honest_lengths_is_named() {
    for (golden, header, from) in [
        (golden::ack(), Header::Udp, 34),
        (golden::ack(), Header::Bth, 42),
        (golden::ack(), Header::Aeth, 54),
        (golden::write_middle(), Header::Meth, 54),
        (golden::write_middle(), Header::Tseth, 58),
        (golden::write_middle(), Header::Reth, 62),
        (golden::sack(), Header::Seth, 54),
        (golden::sack(), Header::CcState, 82),
        (golden::nack(), Header::Neth, 54),
        (golden::probe(), Header::Peth, 54),
    ] {
        let have = header.size() - 1;
        let mut frame = golden.frame(&plain());
        frame.truncate(from + have);
        let length = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&length.to_be_bytes());
        if frame.len() >= 42 {
            frame[38..40].copy_from_slice(&(length - 20).to_be_bytes());
        }
        mend(&mut frame);
        let found = Packet::parse(&frame, &plain());
        let expected = WireError::TooShort { header, have };
        assert_eq!(found, Err(expected));
        let counter = header.name().to_ascii_lowercase();
        assert_eq!(expected.counter(), format!("drop_short_{counter}"));
    }
}
