//! How a frame gets from one end of a link to the other.

use crate::node::{Frame, FramePool};
use crate::scenario::End;

/// Why a frame did not get across.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CarryError(pub String);

/// Carries frames at the instants at which they arrive.
pub trait Carrier {
    /// Takes `frame` from `from` to `to`; gives what arrived there.
    ///
    /// # Errors
    /// When the frame could not be sent or did not arrive.
    fn carry(
        &mut self,
        from: End,
        to: End,
        frame: Frame,
        frames: &mut FramePool,
    ) -> Result<Frame, CarryError>;

    /// Frames that it met on the way and nobody here had sent.
    fn strays(&self) -> u64 {
        0
    }
}

/// Frames stay in memory: what is sent is what arrives.
#[derive(Debug, Default)]
pub struct InMemory;

impl Carrier for InMemory {
    fn carry(
        &mut self,
        _: End,
        _: End,
        frame: Frame,
        _: &mut FramePool,
    ) -> Result<Frame, CarryError> {
        Ok(frame)
    }
}
