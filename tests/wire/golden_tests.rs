//! Every hand-written frame is what `emit` writes and `parse` reads.

use mrc_lab::wire::checksum;
use mrc_lab::wire::error::WireError;
use mrc_lab::wire::packet::{
    ACK_WIRE_BYTES, Body, DATA_IP_OVERHEAD, DATA_OVERHEAD, FrameFormat, NACK_WIRE_BYTES,
    PROBE_WIRE_BYTES, Packet, SACK_WIRE_BYTES, TRIMMED_IP_BYTES, TRIMMED_WIRE_BYTES, ip_bytes,
    wire_bytes,
};
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::tseth::Tseth;

use crate::golden::{Golden, MACS, all, plain, with_icrc};

fn both() -> [FrameFormat; 2] {
    [plain(), with_icrc()]
}

fn emitted(packet: &Packet<'_>, format: &FrameFormat) -> Vec<u8> {
    let mut out = vec![0xEE; 7];
    packet.emit(format, MACS, &mut out);
    out
}

// spec: W-1, W-2, W-3, W-4, W-5, W-6, W-8, SEG-3, WIRE-1, WIRE-2, WIRE-3, WIRE-4, WIRE-5, WIRE-6
#[test]
fn every_packet_is_written_as_the_tables_say() {
    for golden in all() {
        for format in both() {
            let frame = golden.frame(&format);
            assert_eq!(emitted(&golden.packet, &format), frame, "{:?}", golden.packet);
            assert_eq!(golden.packet.frame_len(&format), frame.len());
        }
    }
}

// spec: W-1, W-2, W-3, W-4, W-5, W-6, W-8, NACK-1, WIRE-1, WIRE-2, WIRE-3, WIRE-4, WIRE-5, WIRE-6
#[test]
fn every_packet_is_read_as_the_tables_say() {
    for golden in all() {
        for format in both() {
            let frame = golden.frame(&format);
            assert_eq!(Packet::parse(&frame, &format), Ok(golden.packet));
        }
    }
}

/// A whole message of `payload` bytes in one packet.
fn only(payload: &[u8], tseth: Option<Tseth>) -> Packet<'_> {
    let template = crate::golden::write_only().packet;
    let Body::Write { meth, reth, .. } = template.body else { panic!("a write") };
    let mut bth = template.bth;
    bth.timestamp_present = tseth.is_some();
    let reth = Reth { dma_length: payload.len() as u32, ..reth };
    Packet { bth, body: Body::Write { meth, tseth, reth, payload }, ..template }
}

// spec: SEG-4, WIRE-9, W-3
#[test]
fn data_packets_have_the_sizes_of_the_worked_figures() {
    let payload = [0; 4096];
    let stamp = Some(Tseth { timestamp: 1 });
    for (payload, tseth, plain_size, icrc_size) in
        [(&payload[..], None, 4174, 4178), (&payload[..], stamp, 4178, 4182), (&[], None, 78, 82)]
    {
        let packet = only(payload, tseth);
        for (format, size) in [(plain(), plain_size), (with_icrc(), icrc_size)] {
            let frame = emitted(&packet, &format);
            assert_eq!(wire_bytes(frame.len()), size);
            assert_eq!(packet.wire_len(&format), size);
            assert_eq!(ip_bytes(frame.len()), size - 18);
            assert_eq!(Packet::parse(&frame, &format), Ok(packet));
        }
    }
    assert_eq!((DATA_OVERHEAD, DATA_IP_OVERHEAD), (78, 60));
}

// spec: WIRE-9, W-12, W-3, NACK-1
#[test]
fn control_packets_have_the_sizes_of_the_worked_figures() {
    use crate::golden::{ack, nack, probe, sack, sack_for_probe, trimmed};
    let sizes = |golden: Golden| both().map(|format| wire_bytes(golden.frame(&format).len()));
    assert_eq!(sizes(ack()), [62, 66]);
    assert_eq!(sizes(sack()), [94, 98]);
    assert_eq!(sizes(sack_for_probe()), [94, 98]);
    assert_eq!(sizes(nack()), [78, 82]);
    assert_eq!(sizes(probe()), [74, 78]);
    assert_eq!(sizes(trimmed()), [62, 62]);
    assert_eq!(
        [ACK_WIRE_BYTES, SACK_WIRE_BYTES, NACK_WIRE_BYTES, PROBE_WIRE_BYTES, TRIMMED_WIRE_BYTES],
        [62, 94, 78, 74, 62]
    );
    assert_eq!(TRIMMED_IP_BYTES, 44);
}

// spec: W-3
#[test]
fn a_lab_with_icrc_and_one_without_do_not_hear_each_other() {
    for golden in all() {
        let (bare, long) = (golden.frame(&plain()), golden.frame(&with_icrc()));
        if matches!(golden.packet.body, Body::Trimmed { .. }) {
            assert_eq!(bare, long);
            continue;
        }
        let found = Packet::parse(&bare, &with_icrc());
        assert!(matches!(found, Err(WireError::Icrc { .. })), "{found:?}");
        let found = Packet::parse(&long, &plain());
        let is_part = golden.packet.bth.opcode.is_data()
            && !(golden.packet.bth.opcode.starts_message()
                && golden.packet.bth.opcode.ends_message());
        if !is_part {
            let refused = matches!(
                found,
                Err(WireError::TrailingBytes { .. } | WireError::DataLength { .. })
            );
            assert!(refused, "{found:?}");
        }
    }
}

// spec: W-2
#[test]
fn a_udp_checksum_that_is_there_is_verified() {
    for golden in all() {
        let mut frame = golden.frame(&plain());
        let (source, destination) = (golden.packet.source, golden.packet.destination);
        let checksum = checksum::udp(source, destination, &frame[34..]);
        frame[40..42].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(Packet::parse(&frame, &plain()), Ok(golden.packet));
        frame[40] ^= 1;
        let found = Packet::parse(&frame, &plain());
        assert!(matches!(found, Err(WireError::UdpChecksum { .. })), "{found:?}");
    }
}

// spec: W-17
#[test]
fn ethernet_padding_is_cut_off() {
    for golden in all() {
        for format in both() {
            let mut frame = golden.frame(&format);
            frame.extend_from_slice(&[0x5A; 60]);
            assert_eq!(Packet::parse(&frame, &format), Ok(golden.packet));
        }
    }
}

/// Sets bits of the BTH's second byte: SE, M, pad count, version.
fn with_second_byte(golden: &Golden, bits: u8) -> Vec<u8> {
    let mut frame = golden.frame(&plain());
    frame[43] = bits;
    frame
}

#[test]
fn either_migration_bit_is_accepted_and_no_pad_and_no_other_version() {
    for golden in all() {
        let frame = with_second_byte(&golden, 0x40);
        assert_eq!(Packet::parse(&frame, &plain()), Ok(golden.packet));
        let frame = with_second_byte(&golden, 0x20);
        assert_eq!(Packet::parse(&frame, &plain()), Err(WireError::BthPad { found: 2 }));
        let frame = with_second_byte(&golden, 0x01);
        assert_eq!(Packet::parse(&frame, &plain()), Err(WireError::BthVersion { found: 1 }));
    }
}
