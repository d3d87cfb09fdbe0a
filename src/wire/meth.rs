//! METH: the message extended header, 4 bytes, in every data packet. A trim
//! keeps it.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | RQMSN |
//! | 2-3 | MSN |

use super::error::WireError;
use super::header::{Header, chunk};

/// A METH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct MethView<'a>(&'a [u8; Meth::LEN]);

impl<'a> MethView<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Meth).map(Self)
    }

    /// With the connect flag: how many PSNs this packet lies beyond its queue
    /// pair's first, modulo 2^16. Else 0.
    pub const fn rqmsn(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The message's number within its queue pair, from 0, modulo 2^16.
    pub const fn msn(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }
}

/// A METH.
// spec: WIRE-3
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meth {
    /// With the connect flag: how many PSNs this packet lies beyond its queue
    /// pair's first, modulo 2^16. Else 0.
    // spec: W-6
    pub rqmsn: u16,
    /// The message's number within its queue pair, from 0, modulo 2^16.
    pub msn: u16,
}

impl Meth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Meth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = MethView::new(bytes)?;
        Ok(Self { rqmsn: view.rqmsn(), msn: view.msn() })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Meth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0..2].copy_from_slice(&self.rqmsn.to_be_bytes());
        out[2..4].copy_from_slice(&self.msn.to_be_bytes());
    }
}
