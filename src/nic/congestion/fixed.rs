//! A window that never moves.

use super::CongestionControl;
use crate::time::Duration;

/// A window of always the same size.
// spec: CC-10
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    /// Its size in bytes.
    pub window: u64,
    /// The round trip that the configuration names.
    pub base_rtt: Duration,
}

impl CongestionControl for FixedWindow {
    fn window(&self) -> u64 {
        self.window
    }

    fn base_rtt(&self) -> Duration {
        self.base_rtt
    }
}
