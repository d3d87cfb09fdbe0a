//! Frames of every packet type, written by hand from the tables of the wire
//! format, field by field.

use core::net::Ipv4Addr;

use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::checksum;
use mrc_lab::wire::mac::{MacAddr, MacPair};
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::neth::{NackReason, Neth};
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, Ecn, FrameFormat, Packet};
use mrc_lab::wire::peth::Peth;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::{Codepoints, Role};
use mrc_lab::wire::seth::{PathMark, SackSubject, Seth};
use mrc_lab::wire::tseth::Tseth;

/// A packet and its bytes.
pub struct Golden {
    /// The packet's values.
    pub packet: Packet<'static>,
    /// The IPv4 header: version and length, type of service, total length,
    /// identification, DF, TTL, protocol, checksum, source, destination.
    ipv4: &'static str,
    /// The UDP header: entropy value, 4791, length, checksum.
    udp: &'static str,
    /// All after the UDP header.
    transport: &'static [&'static str],
    /// The IPv4 and UDP headers with ICRC, and the ICRC; a trimmed packet has
    /// none.
    icrc: Option<(&'static str, &'static str, &'static str)>,
}

/// Destination, source, EtherType.
const ETHERNET: &str = "020000000002 020000000001 0800";

/// The Ethernet addresses of all frames here.
pub const MACS: MacPair =
    MacPair { source: MacAddr([2, 0, 0, 0, 0, 1]), destination: MacAddr([2, 0, 0, 0, 0, 2]) };

/// The sizes without ICRC.
pub fn plain() -> FrameFormat {
    FrameFormat::default()
}

/// The same with ICRC.
pub fn with_icrc() -> FrameFormat {
    FrameFormat { icrc: true, ..FrameFormat::default() }
}

impl Golden {
    /// The frame in `format`.
    pub fn frame(&self, format: &FrameFormat) -> Vec<u8> {
        let (ipv4, udp, icrc) = match self.icrc {
            Some(changed) if format.icrc => changed,
            _ => (self.ipv4, self.udp, ""),
        };
        bytes(&[ETHERNET, ipv4, udp, &self.transport.concat(), icrc].concat())
    }
}

/// The bytes that hexadecimal digits with spaces between them name.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.split_whitespace().collect();
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(pair).collect()
}

/// Makes the IPv4 header's checksum right again, options included.
pub fn mend(frame: &mut [u8]) {
    let end = 14 + usize::from(frame[14] & 0x0F) * 4;
    frame[24..26].copy_from_slice(&[0, 0]);
    let checksum = checksum::ipv4(&frame[14..end.min(frame.len())]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

fn packet(role: Role, ecn: Ecn, entropy: u16, bth: Bth, body: Body<'static>) -> Packet<'static> {
    Packet {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination: Ipv4Addr::new(10, 0, 0, 2),
        role: Some(role),
        dscp: Codepoints::default().dscp(role),
        ecn,
        entropy,
        bth,
        body,
    }
}

/// A BTH without flags.
fn bth(opcode: Opcode, destination_qp: u32, psn: u32) -> Bth {
    Bth {
        opcode,
        destination_qp: Qpn::masked(destination_qp),
        ack_request: false,
        retransmission: false,
        timestamp_present: false,
        connect: false,
        psn: Psn::masked(psn.into()),
    }
}

/// One of every packet type and flag.
pub fn all() -> [Golden; 12] {
    [
        write_first(),
        write_middle(),
        write_last(),
        write_only(),
        write_empty(),
        trimmed(),
        trimmed_last_hop(),
        ack(),
        sack(),
        sack_for_probe(),
        nack(),
        probe(),
    ]
}

/// The first packet of a message of 20 bytes; the receiver's number is not known yet.
pub fn write_first() -> Golden {
    Golden {
        packet: packet(
            Role::Trimmable,
            Ecn::Ect0,
            0xC0DE,
            Bth { connect: true, ..bth(Opcode::WriteFirst, 0x000103, 0x000005) },
            Body::Write {
                meth: Meth { rqmsn: 5, msn: 0 },
                tseth: None,
                reth: Reth { va: 0x1000, rkey: RKey(0x1122_3344), dma_length: 20 },
                payload: b"mrc-lab ",
            },
        ),
        ipv4: "45 12 0044 0000 4000 40 11 2695 0a000001 0a000002",
        udp: "c0de 12b7 0030 0000",
        transport: &[
            "c6 00 ffff",        // BTH: Write First; SE, M, pad, version 0; P_Key
            "00 000103",         // reserved; the sender's own queue pair 0x103
            "08 000005",         // connect; PSN 5
            "0005 0000",         // METH: 5 PSNs beyond the first; message 0
            "0000000000001000",  // RETH: address
            "11223344",          // R_Key
            "00000014",          // 20 bytes in all
            "6d72632d 6c616220", // payload: "mrc-lab "
        ],
        icrc: Some((
            "45 12 0048 0000 4000 40 11 2691 0a000001 0a000002",
            "c0de 12b7 0034 0000",
            "42a8b795",
        )),
    }
}

/// A middle packet with a timestamp.
pub fn write_middle() -> Golden {
    Golden {
        packet: packet(
            Role::Trimmable,
            Ecn::Ect0,
            0xFFFF,
            Bth { timestamp_present: true, ..bth(Opcode::WriteMiddle, 0xABCDEF, 0xFFFFFE) },
            Body::Write {
                meth: Meth { rqmsn: 0, msn: 1 },
                tseth: Some(Tseth { timestamp: 0x1234 }),
                reth: Reth { va: 0x1008, rkey: RKey(0x1122_3344), dma_length: 20 },
                payload: b"carries ",
            },
        ),
        ipv4: "45 12 0048 0000 4000 40 11 2691 0a000001 0a000002",
        udp: "ffff 12b7 0034 0000",
        transport: &[
            "c7 00 ffff",        // BTH: Write Middle
            "00 abcdef",         // queue pair 0xabcdef
            "10 fffffe",         // timestamp present; PSN 0xfffffe
            "0000 0001",         // METH: message 1
            "1234 0001",         // TSETH: timestamp 0x1234; ftype 1
            "0000000000001008",  // RETH: address, 8 bytes on
            "11223344",          // R_Key
            "00000014",          // 20 bytes in all
            "63617272 69657320", // payload: "carries "
        ],
        icrc: Some((
            "45 12 004c 0000 4000 40 11 268d 0a000001 0a000002",
            "ffff 12b7 0038 0000",
            "9bc57212",
        )),
    }
}

/// The last packet, sent again.
pub fn write_last() -> Golden {
    Golden {
        packet: packet(
            Role::TrimmableRtx,
            Ecn::Ect0,
            0x0001,
            Bth {
                ack_request: true,
                retransmission: true,
                ..bth(Opcode::WriteLast, 0xABCDEF, 0xFFFFFF)
            },
            Body::Write {
                meth: Meth { rqmsn: 0, msn: 65535 },
                tseth: None,
                reth: Reth { va: 0x1010, rkey: RKey(0x1122_3344), dma_length: 20 },
                payload: b"it.\n",
            },
        ),
        ipv4: "45 22 0040 0000 4000 40 11 2689 0a000001 0a000002",
        udp: "0001 12b7 002c 0000",
        transport: &[
            "c8 00 ffff",       // BTH: Write Last
            "00 abcdef",        // queue pair 0xabcdef
            "a0 ffffff",        // ack-request, retransmission; PSN 0xffffff
            "0000 ffff",        // METH: message 65,535
            "0000000000001010", // RETH: address, 16 bytes on
            "11223344",         // R_Key
            "00000014",         // 20 bytes in all
            "69742e0a",         // payload: "it.\n"
        ],
        icrc: Some((
            "45 22 0044 0000 4000 40 11 2685 0a000001 0a000002",
            "0001 12b7 0030 0000",
            "ad4919f8",
        )),
    }
}

/// The only packet of a message of 4 bytes, not to be trimmed, marked on its way.
pub fn write_only() -> Golden {
    Golden {
        packet: packet(
            Role::NoTrim,
            Ecn::Ce,
            0x8000,
            Bth { ack_request: true, ..bth(Opcode::WriteOnly, 0x000003, 0x000000) },
            Body::Write {
                meth: Meth { rqmsn: 0, msn: 2 },
                tseth: None,
                reth: Reth { va: 0x2000, rkey: RKey(0x1122_3344), dma_length: 4 },
                payload: b"only",
            },
        ),
        ipv4: "45 03 0040 0000 4000 40 11 26a8 0a000001 0a000002",
        udp: "8000 12b7 002c 0000",
        transport: &[
            "ca 00 ffff",       // BTH: Write Only
            "00 000003",        // queue pair 3
            "80 000000",        // ack-request; PSN 0
            "0000 0002",        // METH: message 2
            "0000000000002000", // RETH: address
            "11223344",         // R_Key
            "00000004",         // 4 bytes in all
            "6f6e6c79",         // payload: "only"
        ],
        icrc: Some((
            "45 03 0044 0000 4000 40 11 26a4 0a000001 0a000002",
            "8000 12b7 0030 0000",
            "18a8f7c5",
        )),
    }
}

/// A message of 0 bytes.
pub fn write_empty() -> Golden {
    Golden {
        packet: packet(
            Role::Trimmable,
            Ecn::Ect0,
            0xC0DE,
            Bth { ack_request: true, ..bth(Opcode::WriteOnly, 0x000003, 0x000001) },
            Body::Write {
                meth: Meth { rqmsn: 0, msn: 3 },
                tseth: None,
                reth: Reth { va: 0x2000, rkey: RKey(0x1122_3344), dma_length: 0 },
                payload: b"",
            },
        ),
        ipv4: "45 12 003c 0000 4000 40 11 269d 0a000001 0a000002",
        udp: "c0de 12b7 0028 0000",
        transport: &[
            "ca 00 ffff",       // BTH: Write Only
            "00 000003",        // queue pair 3
            "80 000001",        // ack-request; PSN 1
            "0000 0003",        // METH: message 3
            "0000000000002000", // RETH: address
            "11223344",         // R_Key
            "00000000",         // no bytes
        ],
        icrc: Some((
            "45 12 0040 0000 4000 40 11 2699 0a000001 0a000002",
            "c0de 12b7 002c 0000",
            "34a6a317",
        )),
    }
}

/// What a switch left of a middle packet with a timestamp.
pub fn trimmed() -> Golden {
    Golden {
        packet: packet(
            Role::Trimmed,
            Ecn::Ect0,
            0xFFFF,
            Bth { timestamp_present: true, ..bth(Opcode::WriteMiddle, 0xABCDEF, 0xFFFFFE) },
            Body::Trimmed { meth: Meth { rqmsn: 0, msn: 1 } },
        ),
        ipv4: "45 32 002c 0000 4000 40 11 268d 0a000001 0a000002",
        udp: "ffff 12b7 0018 0000",
        transport: &[
            "c7 00 ffff", // BTH: Write Middle
            "00 abcdef",  // queue pair 0xabcdef
            "10 fffffe",  // timestamp present (cut off); PSN 0xfffffe
            "0000 0001",  // METH: message 1
        ],
        icrc: None,
    }
}

/// What the last switch left of a retransmission that still connects, marked.
pub fn trimmed_last_hop() -> Golden {
    Golden {
        packet: packet(
            Role::TrimmedLastHop,
            Ecn::Ce,
            0x1234,
            Bth {
                ack_request: true,
                retransmission: true,
                connect: true,
                ..bth(Opcode::WriteFirst, 0x000103, 0x000005)
            },
            Body::Trimmed { meth: Meth { rqmsn: 5, msn: 0 } },
        ),
        ipv4: "45 43 002c 0000 4000 40 11 267c 0a000001 0a000002",
        udp: "1234 12b7 0018 0000",
        transport: &[
            "c6 00 ffff", // BTH: Write First
            "00 000103",  // the sender's own queue pair 0x103
            "a8 000005",  // ack-request, retransmission, connect; PSN 5
            "0005 0000",  // METH: 5 PSNs beyond the first; message 0
        ],
        icrc: None,
    }
}

/// A cumulative acknowledgement.
pub fn ack() -> Golden {
    Golden {
        packet: packet(
            Role::Control,
            Ecn::NotEct,
            0xBEEF,
            bth(Opcode::Ack, 0x000103, 0x000042),
            Body::Ack(Aeth { msn: 7 }),
        ),
        ipv4: "45 b8 002c 0000 4000 40 11 2607 0a000001 0a000002",
        udp: "beef 12b7 0018 0000",
        transport: &[
            "d1 00 ffff", // BTH: ACK
            "00 000103",  // queue pair 0x103
            "00 000042",  // cumulative PSN 0x42
            "1f 000007",  // AETH: acknowledged; 7 messages
        ],
        icrc: Some((
            "45 b8 0030 0000 4000 40 11 2603 0a000001 0a000002",
            "beef 12b7 001c 0000",
            "1051935b",
        )),
    }
}

/// A selective acknowledgement that a marked retransmission drew.
pub fn sack() -> Golden {
    Golden {
        packet: packet(
            Role::Control,
            Ecn::NotEct,
            0xC0DE,
            Bth { retransmission: true, ..bth(Opcode::Sack, 0x000103, 0x000042) },
            Body::Sack(
                Seth {
                    ce_mark: PathMark::SkipOnce,
                    subject: SackSubject::Data { ack_psn_offset: 5 },
                    entropy: 0xC0DE,
                    source_qp: Qpn::masked(0xABCDEF),
                    cumulative: Psn::masked(0x42),
                    max_psn_range: 8,
                    sack_offset: 1,
                    bitmap: 0x8000_0000_0000_0012,
                },
                CcState {
                    timestamp_or_service: 3,
                    out_of_order: 3,
                    restore_cwnd: true,
                    penalty: 1,
                    received_units: 0x10_0000,
                },
            ),
        ),
        ipv4: "45 b8 004c 0000 4000 40 11 25e7 0a000001 0a000002",
        udp: "c0de 12b7 0038 0000",
        transport: &[
            "dc 00 ffff",       // BTH: SACK
            "00 000103",        // queue pair 0x103
            "20 000042",        // retransmission; cumulative PSN 0x42
            "00 20",            // SETH: type 0; M 1, PR 0
            "0005",             // drawn by PSN 0x42 + 5
            "0000c0de",         // entropy value
            "00abcdef",         // source queue pair 0xabcdef
            "00 000042",        // reserved; cumulative PSN 0x42
            "00 08",            // cc_type 0; MaxPSNRange 8 x 128
            "0001",             // bitmap from PSN 0x42 + 1
            "8000000000000012", // holds + 1, + 4 and + 63 beyond that
            "0003",             // CC_STATE: service time 3 x 128 ns
            "0003",             // 3 PSNs out of order
            "81",               // restore_cwnd; penalty 1
            "100000",           // 0x100000 x 256 bytes
        ],
        icrc: Some((
            "45 b8 0050 0000 4000 40 11 25e3 0a000001 0a000002",
            "c0de 12b7 003c 0000",
            "a7759a2b",
        )),
    }
}

/// The answer to a probe.
pub fn sack_for_probe() -> Golden {
    Golden {
        packet: packet(
            Role::Control,
            Ecn::NotEct,
            0x7777,
            bth(Opcode::Sack, 0x000103, 0xFFFFFF),
            Body::Sack(
                Seth {
                    ce_mark: PathMark::None,
                    subject: SackSubject::Probe { probe_id: 0xFEDC },
                    entropy: 0x7777,
                    source_qp: Qpn::masked(0xABCDEF),
                    cumulative: Psn::masked(0xFF_FFFF),
                    max_psn_range: 255,
                    sack_offset: -64,
                    bitmap: u64::MAX,
                },
                CcState {
                    timestamp_or_service: 0,
                    out_of_order: 0x7FFF,
                    restore_cwnd: false,
                    penalty: 127,
                    received_units: 0xFF_FFFF,
                },
            ),
        ),
        ipv4: "45 b8 004c 0000 4000 40 11 25e7 0a000001 0a000002",
        udp: "7777 12b7 0038 0000",
        transport: &[
            "dc 00 ffff",       // BTH: SACK
            "00 000103",        // queue pair 0x103
            "00 ffffff",        // cumulative PSN 0xffffff
            "00 02",            // SETH: type 0; M 0, PR 1
            "fedc",             // probe 0xfedc
            "00007777",         // entropy value
            "00abcdef",         // source queue pair 0xabcdef
            "00 ffffff",        // reserved; cumulative PSN 0xffffff
            "00 ff",            // cc_type 0; MaxPSNRange 255 x 128
            "ffc0",             // bitmap from 64 below
            "ffffffffffffffff", // holds all
            "0000",             // CC_STATE: service time 0
            "7fff",             // 32,767 PSNs out of order, or more
            "7f",               // penalty 127
            "ffffff",           // 0xffffff x 256 bytes
        ],
        icrc: Some((
            "45 b8 0050 0000 4000 40 11 25e3 0a000001 0a000002",
            "7777 12b7 003c 0000",
            "b894080b",
        )),
    }
}

/// A negative acknowledgement for a PSN beyond the window.
pub fn nack() -> Golden {
    Golden {
        packet: packet(
            Role::Control,
            Ecn::NotEct,
            0xC0DE,
            Bth { retransmission: true, ..bth(Opcode::Nack, 0x000103, 0x004242) },
            Body::Nack(Neth {
                reason: NackReason::PsnOutOfWindow,
                entropy: 0xC0DE,
                source_qp: Qpn::masked(0xABCDEF),
                psn: Psn::masked(0x4242),
                timestamp: 0x1234,
            }),
        ),
        ipv4: "45 b8 003c 0000 4000 40 11 25f7 0a000001 0a000002",
        udp: "c0de 12b7 0028 0000",
        transport: &[
            "dd 00 ffff", // BTH: NACK
            "00 000103",  // queue pair 0x103
            "20 004242",  // retransmission; PSN 0x4242
            "0000 0b 00", // NETH: type 0; reason 0x0b; vendor 0
            "0000c0de",   // entropy value
            "00abcdef",   // source queue pair 0xabcdef
            "00 004242",  // reserved; PSN 0x4242
            "20 00",      // cc_type 2; reserved
            "1234",       // timestamp echoed
        ],
        icrc: Some((
            "45 b8 0040 0000 4000 40 11 25f3 0a000001 0a000002",
            "c0de 12b7 002c 0000",
            "de90cd19",
        )),
    }
}

/// A probe.
pub fn probe() -> Golden {
    Golden {
        packet: packet(
            Role::NoTrim,
            Ecn::Ect0,
            0x7777,
            bth(Opcode::Probe, 0xABCDEF, 0x000000),
            Body::Probe(Peth {
                probe_id: 0xFEDC,
                source_qp: Qpn::masked(0x103),
                timestamp: 0x1234,
            }),
        ),
        ipv4: "45 02 0038 0000 4000 40 11 26b1 0a000001 0a000002",
        udp: "7777 12b7 0024 0000",
        transport: &[
            "de 00 ffff", // BTH: probe
            "00 abcdef",  // queue pair 0xabcdef
            "00 000000",  // no PSN
            "0000 00 00", // PETH: type 0; reserved; vendor 0
            "fedc 0000",  // probe 0xfedc; reserved
            "00000103",   // source queue pair 0x103
            "1234 0001",  // timestamp 0x1234; ftype 1
        ],
        icrc: Some((
            "45 02 003c 0000 4000 40 11 26ad 0a000001 0a000002",
            "7777 12b7 0028 0000",
            "a14ed6e6",
        )),
    }
}
