//! SETH: the selective acknowledgement extended header, 28 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | type (4), next header (5), M (2), reserved (3), PR (1), reserved (1) |
//! | 2-3 | ack_psn_offset, signed; the probe's number when PR is set |
//! | 4-7 | entropy value of the packet that drew it, in the low 16 bits |
//! | 8-11 | queue pair number of the SACK's sender, in the low 24 bits |
//! | 12 | reserved |
//! | 13-15 | cumulative PSN |
//! | 16 | cc_type (4), cc_flags (4) |
//! | 17 | the receiver's MaxPSNRange in units of 128 |
//! | 18-19 | sack_offset, signed |
//! | 20-27 | bitmap, bit 0 least significant |

use super::error::WireError;
use super::header::{Header, chunk};
use super::psn::Psn;
use super::qpn::Qpn;
use super::{u24, u24_bytes};

/// Byte 1, bit 1: the SACK answers a probe.
const PROBE_RESPONSE: u8 = 1 << 1;
/// The congestion control whose state follows the SETH.
const CC_TYPE: u8 = 0;

/// What the sender is to do with the entropy value that a SACK names.
// spec: W-9
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PathMark {
    /// Nothing.
    #[default]
    None,
    /// Pass it over once: its packet carried a congestion mark.
    SkipOnce,
    /// Leave it out; understood, never sent.
    AlwaysSkip,
}

impl PathMark {
    /// The mark of the two M bits; the undefined 3 is no mark.
    // spec: W-9
    const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            1 => Self::SkipOnce,
            2 => Self::AlwaysSkip,
            _ => Self::None,
        }
    }
}

/// What drew a SACK.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SackSubject {
    /// A data packet.
    Data {
        /// The PSN that drew the SACK minus the cumulative PSN. The two extreme
        /// values are saturated ones and name no packet: see [`SackSubject::data`].
        ack_psn_offset: i16,
    },
    /// A probe.
    Probe {
        /// The number the probe carried.
        probe_id: u16,
    },
}

impl SackSubject {
    /// The subject for a packet `offset` PSNs beyond the cumulative PSN,
    /// saturating to what the field holds.
    pub fn data(offset: i64) -> Self {
        let limited = offset.clamp(i16::MIN.into(), i16::MAX.into());
        Self::Data { ack_psn_offset: limited as i16 }
    }

    /// The offset of the data packet from the cumulative PSN; `None` for a
    /// probe and for a saturated offset.
    pub const fn offset(self) -> Option<i16> {
        match self {
            Self::Data { ack_psn_offset: i16::MIN | i16::MAX } | Self::Probe { .. } => None,
            Self::Data { ack_psn_offset } => Some(ack_psn_offset),
        }
    }
}

/// A SETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct SethView<'a>(&'a [u8; Seth::LEN]);

impl<'a> SethView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Seth).map(Self)
    }

    /// M: what to do with the entropy value.
    pub const fn ce_mark(self) -> PathMark {
        PathMark::from_bits(self.0[1] >> 5)
    }

    /// What drew the SACK: PR, and the field that PR gives its meaning.
    pub const fn subject(self) -> SackSubject {
        let field = [self.0[2], self.0[3]];
        if self.0[1] & PROBE_RESPONSE == 0 {
            SackSubject::Data { ack_psn_offset: i16::from_be_bytes(field) }
        } else {
            SackSubject::Probe { probe_id: u16::from_be_bytes(field) }
        }
    }

    /// The entropy value of the packet that drew the SACK.
    pub const fn entropy(self) -> u16 {
        u16::from_be_bytes([self.0[6], self.0[7]])
    }

    /// The queue pair number of the SACK's sender.
    pub const fn source_qp(self) -> Qpn {
        Qpn::masked(u24([self.0[9], self.0[10], self.0[11]]))
    }

    /// The last PSN before the first gap.
    pub const fn cumulative(self) -> Psn {
        Psn::masked(u24([self.0[13], self.0[14], self.0[15]]) as u64)
    }

    /// Which congestion control's state follows.
    pub const fn cc_type(self) -> u8 {
        self.0[16] >> 4
    }

    /// The receiver's MaxPSNRange in units of 128 PSNs.
    pub const fn max_psn_range(self) -> u8 {
        self.0[17]
    }

    /// Where the bitmap starts, from the cumulative PSN.
    pub const fn sack_offset(self) -> i16 {
        i16::from_be_bytes([self.0[18], self.0[19]])
    }

    /// The bitmap: bit i stands for cumulative + sack_offset + i.
    pub const fn bitmap(self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = *self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

/// A SETH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seth {
    /// M: what the sender is to do with the entropy value.
    pub ce_mark: PathMark,
    /// What drew the SACK.
    pub subject: SackSubject,
    /// The entropy value of the packet that drew the SACK.
    pub entropy: u16,
    /// The queue pair number of the SACK's sender.
    pub source_qp: Qpn,
    /// The last PSN before the first gap.
    pub cumulative: Psn,
    /// The receiver's MaxPSNRange in units of 128 PSNs, rounded down.
    pub max_psn_range: u8,
    /// Where the bitmap starts, from the cumulative PSN. Not checked here.
    pub sack_offset: i16,
    /// Bit i stands for PSN cumulative + sack_offset + i.
    pub bitmap: u64,
}

impl Seth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Seth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Too short, or another congestion control's state announced.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = SethView::new(bytes)?;
        if view.cc_type() != CC_TYPE {
            return Err(WireError::CcType { header: Header::Seth, found: view.cc_type() });
        }
        Ok(Self {
            ce_mark: view.ce_mark(),
            subject: view.subject(),
            entropy: view.entropy(),
            source_qp: view.source_qp(),
            cumulative: view.cumulative(),
            max_psn_range: view.max_psn_range(),
            sack_offset: view.sack_offset(),
            bitmap: view.bitmap(),
        })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Seth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        let (response, field) = match self.subject {
            SackSubject::Data { ack_psn_offset } => (0, ack_psn_offset.to_be_bytes()),
            SackSubject::Probe { probe_id } => (PROBE_RESPONSE, probe_id.to_be_bytes()),
        };
        out[0] = 0;
        out[1] = (self.ce_mark as u8) << 5 | response;
        out[2..4].copy_from_slice(&field);
        out[4..8].copy_from_slice(&u32::from(self.entropy).to_be_bytes());
        out[8..12].copy_from_slice(&self.source_qp.value().to_be_bytes());
        out[12] = 0;
        out[13..16].copy_from_slice(&u24_bytes(self.cumulative.value()));
        out[16] = CC_TYPE << 4;
        out[17] = self.max_psn_range;
        out[18..20].copy_from_slice(&self.sack_offset.to_be_bytes());
        out[20..28].copy_from_slice(&self.bitmap.to_be_bytes());
    }
}
