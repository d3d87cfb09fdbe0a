//! CC_STATE: what the receiver tells the sender's congestion control, 8 bytes
//! after the SETH.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | timestamp or service time |
//! | 2-3 | reserved (1), out-of-order count (15) |
//! | 4 | restore_cwnd (1), rcv_cwnd_pen (7) |
//! | 5-7 | received bytes in units of 256 |

use super::error::WireError;
use super::header::{Header, chunk};
use super::{u24, u24_bytes};

const RESTORE_CWND: u8 = 1 << 7;

/// A CC_STATE over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct CcStateView<'a>(&'a [u8; CcState::LEN]);

impl<'a> CcStateView<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::CcState).map(Self)
    }

    /// Units of 128 ns: the service time, or the echoed timestamp plus it.
    pub const fn timestamp_or_service(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// PSNs held beyond the cumulative PSN.
    pub const fn out_of_order(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]]) & CcState::MAX_OUT_OF_ORDER
    }

    /// The sender may take its window back.
    pub const fn restore_cwnd(self) -> bool {
        self.0[4] & RESTORE_CWND != 0
    }

    /// The receiver's penalty on the window.
    pub const fn penalty(self) -> u8 {
        self.0[4] & CcState::MAX_PENALTY
    }

    /// Payload bytes received, in units of 256, modulo 2^24.
    pub const fn received_units(self) -> u32 {
        u24([self.0[5], self.0[6], self.0[7]])
    }
}

/// A CC_STATE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CcState {
    /// In units of 128 ns. Without timestamps on the wire: the service time.
    /// With them: the data packet's timestamp plus the service time, modulo
    /// 2^16, so that now minus this field is the round trip.
    pub timestamp_or_service: u16,
    /// PSNs held beyond the cumulative PSN, at most [`CcState::MAX_OUT_OF_ORDER`].
    pub out_of_order: u16,
    /// The sender may take its window back.
    pub restore_cwnd: bool,
    /// The receiver's penalty on the window, at most [`CcState::MAX_PENALTY`].
    pub penalty: u8,
    /// Payload bytes of packets that were no duplicates since the queue pair
    /// was created, in units of 256 rounded up, modulo 2^24.
    pub received_units: u32,
}

impl CcState {
    /// Bytes on the wire.
    pub const LEN: usize = Header::CcState.size();
    /// The most the 15-bit out-of-order count holds.
    pub const MAX_OUT_OF_ORDER: u16 = 0x7FFF;
    /// The most the 7-bit penalty holds.
    pub const MAX_PENALTY: u8 = 0x7F;

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = CcStateView::new(bytes)?;
        Ok(Self {
            timestamp_or_service: view.timestamp_or_service(),
            out_of_order: view.out_of_order(),
            restore_cwnd: view.restore_cwnd(),
            penalty: view.penalty(),
            received_units: view.received_units(),
        })
    }

    /// Writes the header; the count and the penalty saturate, the received
    /// units wrap.
    ///
    /// # Panics
    /// When `out` is shorter than [`CcState::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        let restore = if self.restore_cwnd { RESTORE_CWND } else { 0 };
        out[0..2].copy_from_slice(&self.timestamp_or_service.to_be_bytes());
        out[2..4].copy_from_slice(&self.out_of_order.min(Self::MAX_OUT_OF_ORDER).to_be_bytes());
        out[4] = restore | self.penalty.min(Self::MAX_PENALTY);
        out[5..8].copy_from_slice(&u24_bytes(self.received_units));
    }
}
