//! PETH: the probe extended header, 16 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | type (4), next header (5), reserved (7) |
//! | 2 | reserved |
//! | 3 | vendor |
//! | 4-5 | probe number |
//! | 6-7 | reserved |
//! | 8-11 | the sender's queue pair number, in the low 24 bits |
//! | 12-13 | timestamp |
//! | 14-15 | TSR (1), reserved (11), ftype (4), as in the TSETH |

use super::error::WireError;
use super::header::{Header, chunk};
use super::qpn::Qpn;
use super::tseth::Tseth;
use super::u24;

/// A PETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PethView<'a>(&'a [u8; Peth::LEN]);

impl<'a> PethView<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Peth).map(Self)
    }

    /// The probe's number, which its answer carries.
    pub const fn probe_id(self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// The queue pair number of the probe's sender.
    pub const fn source_qp(self) -> Qpn {
        Qpn::masked(u24([self.0[9], self.0[10], self.0[11]]))
    }

    /// When the probe was built, in units of 128 ns, modulo 2^16.
    pub const fn timestamp(self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

/// A PETH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peth {
    /// The probe's number, which its answer carries.
    pub probe_id: u16,
    /// The queue pair number of the probe's sender.
    pub source_qp: Qpn,
    /// When the probe was built, in units of 128 ns, modulo 2^16.
    pub timestamp: u16,
}

impl Peth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Peth.size();

    /// Reads the header at the start of `bytes`. The type of the timestamp is
    /// not looked at: the sender of a probe times it by its own record.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = PethView::new(bytes)?;
        Ok(Self {
            probe_id: view.probe_id(),
            source_qp: view.source_qp(),
            timestamp: view.timestamp(),
        })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Peth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0..4].copy_from_slice(&[0; 4]);
        out[4..6].copy_from_slice(&self.probe_id.to_be_bytes());
        out[6..8].copy_from_slice(&[0; 2]);
        out[8..12].copy_from_slice(&self.source_qp.value().to_be_bytes());
        Tseth { timestamp: self.timestamp }.emit(&mut out[12..16]);
    }
}
