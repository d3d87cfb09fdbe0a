//! RETH: the RDMA extended header, 16 bytes, in every data packet.
//!
//! | byte | field |
//! |---|---|
//! | 0-7 | virtual address |
//! | 8-11 | R_Key |
//! | 12-15 | DMA length |

use super::error::WireError;
use super::header::{Header, chunk};
use super::qpn::RKey;

/// A RETH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RethView<'a>(&'a [u8; Reth::LEN]);

impl<'a> RethView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Reth).map(Self)
    }

    /// Where this packet's payload goes.
    pub const fn va(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = *self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The key of the memory region written to.
    pub const fn rkey(self) -> RKey {
        RKey(u32::from_be_bytes([self.0[8], self.0[9], self.0[10], self.0[11]]))
    }

    /// The whole message's bytes.
    pub const fn dma_length(self) -> u32 {
        u32::from_be_bytes([self.0[12], self.0[13], self.0[14], self.0[15]])
    }
}

/// A RETH.
// spec: WIRE-1, W-8
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reth {
    /// Where this packet's payload goes: the message's target plus the
    /// payload's offset in the message.
    pub va: u64,
    /// The key of the memory region written to.
    pub rkey: RKey,
    /// The whole message's bytes, at most [`Reth::MAX_DMA_LENGTH`].
    pub dma_length: u32,
}

impl Reth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Reth.size();
    /// The longest message in bytes.
    pub const MAX_DMA_LENGTH: u32 = 1 << 31;

    /// Reads the header at the start of `bytes`. Whether address and key name
    /// a registered region is for the caller to check.
    ///
    /// # Errors
    /// Too short, or a message above 2^31 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = RethView::new(bytes)?;
        if view.dma_length() > Self::MAX_DMA_LENGTH {
            return Err(WireError::MessageLength { found: view.dma_length() });
        }
        Ok(Self { va: view.va(), rkey: view.rkey(), dma_length: view.dma_length() })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Reth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0..8].copy_from_slice(&self.va.to_be_bytes());
        out[8..12].copy_from_slice(&self.rkey.0.to_be_bytes());
        out[12..16].copy_from_slice(&self.dma_length.to_be_bytes());
    }
}
