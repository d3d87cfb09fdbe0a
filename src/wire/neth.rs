//! NETH: the negative acknowledgement extended header, 20 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | type (4), next header (5), reserved (7) |
//! | 2 | reason |
//! | 3 | vendor |
//! | 4-7 | entropy value of the packet that drew it, in the low 16 bits |
//! | 8-11 | queue pair number of the NACK's sender, in the low 24 bits |
//! | 12 | reserved |
//! | 13-15 | PSN |
//! | 16 | cc_type (4), cc_flags (4) |
//! | 17 | reserved |
//! | 18-19 | timestamp echoed |

use super::error::WireError;
use super::header::{Header, chunk};
use super::psn::Psn;
use super::qpn::Qpn;
use super::{u24, u24_bytes};

/// What a NACK says about congestion: the echoed timestamp alone.
const CC_TYPE: u8 = 2;

/// Why a NACK was sent.
// spec: W-11, NACK-4
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NackReason {
    /// 0x01: the packet was trimmed on the way.
    Trimmed,
    /// 0x02: the packet was trimmed on the port that faces the receiver.
    TrimmedLastHop,
    /// 0x06: the receiver cannot record the packet.
    NoBitmap,
    /// 0x07: the receiver has no buffer for the packet.
    NoPacketBuffer,
    /// 0x0A: the receiver is out of another resource.
    NoResource,
    /// 0x0B: the PSN is beyond the receiver's window.
    PsnOutOfWindow,
    /// 0x19: the packet makes no sense to the receiver.
    UnexpectedEvent,
    /// A code that is none of the above, kept so that it can be counted and
    /// shown. Parsing never makes one of a named code.
    Unknown(u8),
}

impl NackReason {
    /// The reason of a NETH's third byte.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0x01 => Self::Trimmed,
            0x02 => Self::TrimmedLastHop,
            0x06 => Self::NoBitmap,
            0x07 => Self::NoPacketBuffer,
            0x0A => Self::NoResource,
            0x0B => Self::PsnOutOfWindow,
            0x19 => Self::UnexpectedEvent,
            code => Self::Unknown(code),
        }
    }

    /// The byte on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Trimmed => 0x01,
            Self::TrimmedLastHop => 0x02,
            Self::NoBitmap => 0x06,
            Self::NoPacketBuffer => 0x07,
            Self::NoResource => 0x0A,
            Self::PsnOutOfWindow => 0x0B,
            Self::UnexpectedEvent => 0x19,
            Self::Unknown(code) => code,
        }
    }

    /// The name as records print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trimmed => "TRIMMED",
            Self::TrimmedLastHop => "TRIMMED_LASTHOP",
            Self::NoBitmap => "NO_BITMAP",
            Self::NoPacketBuffer => "NO_PKT_BUFFER",
            Self::NoResource => "NO_RESOURCE",
            Self::PsnOutOfWindow => "PSN_OOR_WINDOW",
            Self::UnexpectedEvent => "UNEXP_EVENT",
            Self::Unknown(_) => "UNKNOWN",
        }
    }
}

/// A NETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct NethView<'a>(&'a [u8; Neth::LEN]);

impl<'a> NethView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Neth).map(Self)
    }

    /// Why the NACK was sent.
    pub const fn reason(self) -> NackReason {
        NackReason::from_code(self.0[2])
    }

    /// The entropy value of the packet that drew the NACK.
    pub const fn entropy(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// The queue pair number of the NACK's sender; [`Qpn::NONE`] teaches none.
    pub const fn source_qp(self) -> Qpn {
        Qpn::masked(u24([self.0[9], self.0[10], self.0[11]]))
    }

    /// The PSN of the packet that drew the NACK.
    pub const fn psn(self) -> Psn {
        Psn::masked(u24([self.0[13], self.0[14], self.0[15]]) as u64)
    }

    /// What the NACK says about congestion.
    pub const fn cc_type(self) -> u8 {
        self.0[16] >> 4
    }

    /// The echoed timestamp in units of 128 ns, or 0.
    pub const fn timestamp(self) -> u16 {
        u16::from_be_bytes([self.0[18], self.0[19]])
    }
}

/// A NETH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neth {
    /// Why the NACK was sent.
    pub reason: NackReason,
    /// The entropy value of the packet that drew the NACK.
    pub entropy: u16,
    /// The queue pair number of the NACK's sender; [`Qpn::NONE`] teaches none.
    pub source_qp: Qpn,
    /// The PSN of the packet that drew the NACK.
    pub psn: Psn,
    /// The timestamp of the packet that drew the NACK, in units of 128 ns; 0
    /// when it carried none or was trimmed.
    pub timestamp: u16,
}

impl Neth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Neth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Too short, or another type of congestion information announced.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = NethView::new(bytes)?;
        if view.cc_type() != CC_TYPE {
            return Err(WireError::CcType { header: Header::Neth, found: view.cc_type() });
        }
        Ok(Self {
            reason: view.reason(),
            entropy: view.entropy(),
            source_qp: view.source_qp(),
            psn: view.psn(),
            timestamp: view.timestamp(),
        })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Neth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&[0, 0, self.reason.code(), 0]);
        out[4..8].copy_from_slice(&u32::from(self.entropy).to_be_bytes());
        out[8..12].copy_from_slice(&self.source_qp.value().to_be_bytes());
        out[12] = 0;
        out[13..16].copy_from_slice(&u24_bytes(self.psn.value()));
        out[16..18].copy_from_slice(&[CC_TYPE << 4, 0]);
        out[18..20].copy_from_slice(&self.timestamp.to_be_bytes());
    }
}
