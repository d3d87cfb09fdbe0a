//! TSETH: the timestamp extended header, 4 bytes, after the METH when the BTH's
//! TS bit is set.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | timestamp |
//! | 2-3 | TSR (1), reserved (11), ftype (4) |

use super::error::WireError;
use super::header::{Header, chunk};

/// Timestamps count in steps of this many nanoseconds, modulo 2^16.
pub const TIMESTAMP_STEP_NS: u64 = 128;

/// The one defined type of timestamp.
pub(super) const FTYPE: u8 = 1;

/// A TSETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct TsethView<'a>(&'a [u8; Tseth::LEN]);

impl<'a> TsethView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Tseth).map(Self)
    }

    /// When the packet was built, in units of 128 ns, modulo 2^16.
    pub const fn timestamp(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The type of the timestamp.
    pub const fn ftype(self) -> u8 {
        self.0[3] & 0x0F
    }
}

/// A TSETH.
// spec: WIRE-2
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tseth {
    /// When the packet was built, in units of 128 ns, modulo 2^16.
    pub timestamp: u16,
}

impl Tseth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Tseth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Too short, or a type that is not defined.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = TsethView::new(bytes)?;
        match view.ftype() {
            FTYPE => Ok(Self { timestamp: view.timestamp() }),
            found => Err(WireError::TsethType { found }),
        }
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Tseth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0..2].copy_from_slice(&self.timestamp.to_be_bytes());
        out[2..4].copy_from_slice(&[0, FTYPE]);
    }
}
