//! The UDP header.

use super::error::WireError;
use super::header::{Header, chunk};

/// A UDP header over its 8 bytes.
#[derive(Clone, Copy, Debug)]
pub struct UdpView<'a>(&'a [u8; 8]);

impl<'a> UdpView<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Udp).map(Self)
    }

    /// The source port: in MRC the packet's entropy value.
    pub const fn source_port(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The destination port.
    pub const fn destination_port(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// Header and payload in bytes, as the header says.
    pub const fn length(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The checksum field; 0 for none.
    pub const fn checksum(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }
}

/// A UDP header without a checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Udp {
    /// The source port: the packet's entropy value.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
    /// Header and payload in bytes.
    pub length: u16,
}

impl Udp {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Udp.size();

    /// Writes the header with checksum 0, which UDP over IPv4 allows.
    ///
    /// # Panics
    /// When `out` is shorter than [`Udp::LEN`].
    // spec: W-2, WIRE-5
    pub fn emit(&self, out: &mut [u8]) {
        out[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        out[4..6].copy_from_slice(&self.length.to_be_bytes());
        out[6..8].copy_from_slice(&[0, 0]);
    }
}
