//! The names and sizes of all headers.

use core::fmt;

use super::error::WireError;

/// A header (or trailer) of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Header {
    /// Ethernet II: two addresses and the EtherType.
    Ethernet,
    /// IPv4 without options.
    Ipv4,
    /// UDP.
    Udp,
    /// Base transport header: in every packet.
    Bth,
    /// Message extended header: in every data packet, kept by a trim.
    Meth,
    /// Timestamp extended header.
    Tseth,
    /// RDMA extended header.
    Reth,
    /// Acknowledgement extended header.
    Aeth,
    /// Selective acknowledgement extended header.
    Seth,
    /// Congestion control state, after the SETH.
    CcState,
    /// Negative acknowledgement extended header.
    Neth,
    /// Probe extended header.
    Peth,
    /// Invariant checksum, the trailer.
    Icrc,
    /// MAC control with a PFC pause, padded.
    Pfc,
}

impl Header {
    /// Bytes on the wire.
    pub const fn size(self) -> usize {
        match self {
            Self::Meth | Self::Tseth | Self::Aeth | Self::Icrc => 4,
            Self::Udp | Self::CcState => 8,
            Self::Bth => 12,
            Self::Ethernet => 14,
            Self::Reth | Self::Peth => 16,
            Self::Ipv4 | Self::Neth => 20,
            Self::Seth => 28,
            Self::Pfc => 46,
        }
    }

    /// The name as people write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Ipv4 => "IPv4",
            Self::Udp => "UDP",
            Self::Bth => "BTH",
            Self::Meth => "METH",
            Self::Tseth => "TSETH",
            Self::Reth => "RETH",
            Self::Aeth => "AETH",
            Self::Seth => "SETH",
            Self::CcState => "CC_STATE",
            Self::Neth => "NETH",
            Self::Peth => "PETH",
            Self::Icrc => "ICRC",
            Self::Pfc => "PFC",
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The first bytes of `bytes` as the array that a view of `header` holds.
// spec: W-14
pub(super) fn chunk<const N: usize>(bytes: &[u8], header: Header) -> Result<&[u8; N], WireError> {
    debug_assert_eq!(N, header.size());
    bytes.first_chunk().ok_or(WireError::TooShort { header, have: bytes.len() })
}
