//! AETH: the acknowledgement extended header, 4 bytes, in a cumulative ACK.
//!
//! | byte | field |
//! |---|---|
//! | 0 | syndrome: 0x1F, an acknowledgement without credit information |
//! | 1-3 | MSN |

use super::error::WireError;
use super::header::{Header, chunk};
use super::{u24, u24_bytes};

const SYNDROME_ACK: u8 = 0x1F;

/// An AETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct AethView<'a>(&'a [u8; Aeth::LEN]);

impl<'a> AethView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Aeth).map(Self)
    }

    /// The syndrome.
    pub const fn syndrome(self) -> u8 {
        self.0[0]
    }

    /// How many messages of the queue pair have completed, modulo 2^24.
    pub const fn msn(self) -> u32 {
        u24([self.0[1], self.0[2], self.0[3]])
    }
}

/// An AETH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// How many messages of the queue pair have completed, modulo 2^24.
    pub msn: u32,
}

impl Aeth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Aeth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Too short, or a syndrome that is not an acknowledgement's.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = AethView::new(bytes)?;
        match view.syndrome() {
            SYNDROME_ACK => Ok(Self { msn: view.msn() }),
            found => Err(WireError::AethSyndrome { found }),
        }
    }

    /// Writes the header; the low 24 bits of the MSN.
    ///
    /// # Panics
    /// When `out` is shorter than [`Aeth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0] = SYNDROME_ACK;
        out[1..4].copy_from_slice(&u24_bytes(self.msn));
    }
}
