//! The IPv4 header.

use core::net::Ipv4Addr;

use super::checksum;
use super::error::WireError;
use super::header::{Header, chunk};

/// The IPv4 protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// The TTL of every packet a NIC sends.
pub const TTL: u8 = 64;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1FFF;

/// The two ECN bits of the IPv4 header (RFC 3168).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// 00: the transport does not take part.
    #[default]
    NotEct = 0,
    /// 01: takes part (L4S where that is in use).
    Ect1 = 1,
    /// 10: takes part; what MRC data and probes carry.
    Ect0 = 2,
    /// 11: congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the low two bits of the type of service byte.
    pub const fn from_tos(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// An IPv4 header over its first 20 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a>(&'a [u8; 20]);

impl<'a> Ipv4View<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Ipv4).map(Self)
    }

    /// The IP version.
    pub const fn version(self) -> u8 {
        self.0[0] >> 4
    }

    /// Header length in 32-bit words: 5 without options.
    pub const fn header_words(self) -> u8 {
        self.0[0] & 0x0F
    }

    /// Header length in bytes.
    pub const fn header_len(self) -> usize {
        self.header_words() as usize * 4
    }

    /// The differentiated services codepoint, 0 to 63.
    pub const fn dscp(self) -> u8 {
        self.0[1] >> 2
    }

    /// The ECN bits.
    pub const fn ecn(self) -> Ecn {
        Ecn::from_tos(self.0[1])
    }

    /// Header and payload in bytes, as the header says.
    pub const fn total_length(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// True when the packet is a part of a larger one.
    pub const fn is_fragment(self) -> bool {
        self.flags_and_offset() & (MORE_FRAGMENTS | FRAGMENT_OFFSET) != 0
    }

    /// True when the packet is a fragment that does not start the datagram, so
    /// that it carries no UDP header.
    pub const fn is_later_fragment(self) -> bool {
        self.flags_and_offset() & FRAGMENT_OFFSET != 0
    }

    const fn flags_and_offset(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// The time to live.
    pub const fn ttl(self) -> u8 {
        self.0[8]
    }

    /// The protocol of the payload.
    pub const fn protocol(self) -> u8 {
        self.0[9]
    }

    /// The header checksum field.
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.0[10], self.0[11]])
    }

    /// The source address.
    pub const fn source(self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15])
    }

    /// The destination address.
    pub const fn destination(self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[16], self.0[17], self.0[18], self.0[19])
    }
}

/// What differs between the IPv4 headers of MRC packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// The source address.
    pub source: Ipv4Addr,
    /// The destination address.
    pub destination: Ipv4Addr,
    /// The differentiated services codepoint, 0 to 63.
    pub dscp: u8,
    /// The ECN bits.
    pub ecn: Ecn,
    /// Header and payload in bytes.
    pub total_length: u16,
}

impl Ipv4 {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Ipv4.size();

    /// Writes the header: no options, identification 0, DF set, TTL 64, UDP,
    /// its checksum correct.
    ///
    /// # Panics
    /// When `out` is shorter than [`Ipv4::LEN`].
    // spec: W-1, WIRE-6
    pub fn emit(&self, out: &mut [u8]) {
        let out = &mut out[..Self::LEN];
        out[0] = 0x45;
        out[1] = self.dscp << 2 | self.ecn as u8;
        out[2..4].copy_from_slice(&self.total_length.to_be_bytes());
        out[4..6].copy_from_slice(&[0, 0]);
        out[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
        out[8] = TTL;
        out[9] = PROTOCOL_UDP;
        out[10..12].copy_from_slice(&[0, 0]);
        out[12..16].copy_from_slice(&self.source.octets());
        out[16..20].copy_from_slice(&self.destination.octets());
        let checksum = checksum::ipv4(out);
        out[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}
