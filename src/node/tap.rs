//! Where captures listen.

use super::PortId;
use crate::time::Instant;

/// Which way a frame went, seen from the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapDirection {
    /// It arrived at the node.
    Received,
    /// It left the node: its last bit left the port.
    Sent,
}

/// Sees every frame that a node's ports receive and send.
pub trait FrameTap {
    /// `frame` passed `port` at `at`. `comment` says what a fault did to it; a
    /// frame that a fault took away is seen here with its comment and is on no wire.
    fn frame(
        &mut self,
        at: Instant,
        port: PortId,
        direction: TapDirection,
        frame: &[u8],
        comment: Option<&str>,
    );
}

/// Nobody listens.
#[derive(Debug, Default)]
pub struct NoTap;

impl FrameTap for NoTap {
    fn frame(&mut self, _: Instant, _: PortId, _: TapDirection, _: &[u8], _: Option<&str>) {}
}
