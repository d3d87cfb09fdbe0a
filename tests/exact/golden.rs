//! What a NIC sends, byte for byte, against frames written by hand.

use mrc_lab::config::RttTimestampMode;
use mrc_lab::nic::QpChoice;
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::trace::NoTrace;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};

use crate::lab::*;
use crate::peer::*;

/// Ethernet from a to b and from b to a.
const TO_B: &str = "02 4d 00 00 00 01  02 4d 00 00 00 00  08 00";
const TO_A: &str = "02 4d 00 00 00 00  02 4d 00 00 00 01  08 00";

/// The bytes of a text in which `Q` stands for a QP number and `K` for a key,
/// in this order.
fn bytes(parts: &[&str], qpns: &[Qpn], rkey: Option<RKey>) -> Vec<u8> {
    let mut qpns = qpns.iter();
    let words = parts.iter().flat_map(|part| part.split_whitespace());
    let octets = words.flat_map(|word| match word {
        "Q" => qpns.next().expect("a number for each Q").value().to_be_bytes()[1..].to_vec(),
        "K" => rkey.expect("a key").0.to_be_bytes().to_vec(),
        octet => vec![u8::from_str_radix(octet, 16).expect("a hexadecimal octet")],
    });
    octets.collect()
}

// case A17: no field is missing or in another's place, in any header.
// spec: W-1, W-2, W-4, W-5, W-6, W-8, W-10, SEG-3, WIRE-1, WIRE-3, WIRE-4, WIRE-5, WIRE-6
#[test]
fn every_header_that_is_sent_is_as_written_by_hand() {
    let trimmed =
        PacketMatch { psn: Some(Psn::masked(0xab_cdf2)), nth: Some(1), ..PacketMatch::default() };
    let scenario = back_to_back()
        .with_attributes(|a| a.mss = 8)
        .with_attributes(|a| a.initial_psn = Psn::new(0xab_cdef))
        .with_fault(rule(FaultAction::Trim { last_hop: false }, trimmed));
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let [at_a, at_b] = [A, B].map(|node| stage.listen(node));
    let message = stage.message(A, B, 20);
    let qpn = stage.deliver(&message);
    let (_, second) = stage.post(QpChoice::Existing(qpn), &message);
    stage.step_until(|stage| stage.is_complete(A, second));
    let far = stage.world.nic(B).qps().next().expect("b's side").local.qpn;
    let rkey = Some(message.target.rkey);

    let data = at_b.received(Kind::Write);
    let written = |parts: &[&str], to: Qpn| bytes(parts, &[to], rkey);
    // The first message: b's number is not known yet.
    assert_eq!(
        data[0],
        written(
            &[
                TO_B,
                "45 12 00 44 00 00 40 00 40 11 26 95 0a 00 00 01 0a 00 00 02",
                "c0 00 12 b7 00 30 00 00",
                "c6 00 ff ff 00 Q 08 ab cd ef",
                "00 00 00 00",
                "00 00 00 10 00 00 00 00 K 00 00 00 14",
                "01 02 03 04 05 06 07 08",
            ],
            qpn
        )
    );
    assert_eq!(
        data[1],
        written(
            &[
                TO_B,
                "45 12 00 44 00 00 40 00 40 11 26 95 0a 00 00 01 0a 00 00 02",
                "c0 01 12 b7 00 30 00 00",
                "c7 00 ff ff 00 Q 08 ab cd f0",
                "00 01 00 00",
                "00 00 00 10 00 00 00 08 K 00 00 00 14",
                "09 0a 0b 0c 0d 0e 0f 10",
            ],
            qpn
        )
    );
    assert_eq!(
        data[2],
        written(
            &[
                TO_B,
                "45 12 00 40 00 00 40 00 40 11 26 99 0a 00 00 01 0a 00 00 02",
                "c0 02 12 b7 00 2c 00 00",
                "c8 00 ff ff 00 Q 88 ab cd f1",
                "00 02 00 00",
                "00 00 00 10 00 00 00 10 K 00 00 00 14",
                "11 12 13 14",
            ],
            qpn
        )
    );
    // The second: its first packet is cut to its headers and sent again.
    assert_eq!(
        data[3],
        written(
            &[
                TO_B,
                "45 32 00 2c 00 00 40 00 40 11 26 8d 0a 00 00 01 0a 00 00 02",
                "c0 03 12 b7 00 18 00 00",
                "c6 00 ff ff 00 Q 00 ab cd f2",
                "00 00 00 01",
            ],
            far
        )
    );
    assert_eq!(
        data[6],
        written(
            &[
                TO_B,
                "45 22 00 44 00 00 40 00 40 11 26 85 0a 00 00 01 0a 00 00 02",
                "c0 06 12 b7 00 30 00 00",
                "c6 00 ff ff 00 Q a0 ab cd f2",
                "00 00 00 01",
                "00 00 00 10 00 00 00 00 K 00 00 00 14",
                "01 02 03 04 05 06 07 08",
            ],
            far
        )
    );
    assert_eq!(data.len(), 7);

    let answered = |parts: &[&str], qpns: &[Qpn]| bytes(parts, qpns, None);
    let (acks, sacks) = (at_a.received(Kind::Ack), at_a.received(Kind::Sack));
    assert_eq!(
        acks[0],
        answered(
            &[
                TO_A,
                "45 b8 00 2c 00 00 40 00 40 11 26 07 0a 00 00 02 0a 00 00 01",
                "c0 00 12 b7 00 18 00 00",
                "d1 00 ff ff 00 Q 00 ab cd f1",
                "1f 00 00 01",
            ],
            &[qpn]
        )
    );
    assert_eq!(
        sacks[0],
        answered(
            &[
                TO_A,
                "45 b8 00 4c 00 00 40 00 40 11 25 e7 0a 00 00 02 0a 00 00 01",
                "c0 02 12 b7 00 38 00 00",
                "dc 00 ff ff 00 Q 00 ab cd f1",
                "00 00 00 00  00 00 c0 02  00 Q  00 ab cd f1",
                "00 08 00 01  00 00 00 00 00 00 00 00",
                "00 00 00 00  00 00 00 01",
            ],
            &[qpn, far]
        )
    );
    // Two packets are held behind the gap when the last of the message asks.
    assert_eq!(
        sacks[1],
        answered(
            &[
                TO_A,
                "45 b8 00 4c 00 00 40 00 40 11 25 e7 0a 00 00 02 0a 00 00 01",
                "c0 05 12 b7 00 38 00 00",
                "dc 00 ff ff 00 Q 00 ab cd f1",
                "00 00 00 03  00 00 c0 05  00 Q  00 ab cd f1",
                "00 08 00 01  00 00 00 00 00 00 00 06",
                "00 00 00 02  00 00 00 01",
            ],
            &[qpn, far]
        )
    );
    let nacks = at_a.received(Kind::Nack);
    assert_eq!(nacks.len(), 1);
    assert_eq!(
        nacks[0],
        answered(
            &[
                TO_A,
                "45 b8 00 3c 00 00 40 00 40 11 25 f7 0a 00 00 02 0a 00 00 01",
                "c0 03 12 b7 00 28 00 00",
                "dd 00 ff ff 00 Q 00 ab cd f2",
                "00 00 01 00  00 00 c0 03  00 Q  00 ab cd f2  20 00 00 00",
            ],
            &[qpn, far]
        )
    );
}

// case A17
// case E01: the ICRC covers what may not change on the way, and nothing else.
// spec: WIRE-2, W-3
#[test]
fn a_timestamp_stands_after_the_meth_and_the_icrc_behind_everything() {
    let scenario = back_to_back()
        .with_attributes(|a| a.icrc = true)
        .with_attributes(|a| a.rtt_timestamp_mode = RttTimestampMode::WireTimestamp);
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let at_b = stage.listen(B);
    let message = stage.message(A, B, 1);
    let qpn = stage.deliver(&message);
    let data = at_b.received(Kind::Write);
    let expected = bytes(
        &[
            TO_B,
            "45 12 00 45 00 00 40 00 40 11 26 94 0a 00 00 01 0a 00 00 02",
            "c0 00 12 b7 00 31 00 00",
            "ca 00 ff ff 00 Q 98 00 00 00",
            "00 00 00 00",
            "00 00 00 01",
            "00 00 00 10 00 00 00 00 K 00 00 00 01",
            "01",
        ],
        &[qpn],
        Some(message.target.rkey),
    );
    let (written, icrc) = data[0].split_at(expected.len());
    assert_eq!((written, icrc.len()), (&expected[..], 4));
    assert_eq!(icrc, rocev2_icrc(&expected[14..]));
}

/// The ICRC, bit by bit from its definition.
fn rocev2_icrc(datagram: &[u8]) -> [u8; 4] {
    const MAY_CHANGE: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];
    let masked = |(at, byte): (usize, &u8)| if MAY_CHANGE.contains(&at) { 0xff } else { *byte };
    let covered = [0xff; 8].into_iter().chain(datagram.iter().enumerate().map(masked));
    let mut crc = u32::MAX;
    for byte in covered {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    (!crc).to_le_bytes()
}
