//! What a QP has sent again.

use core::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::trace::RetransmitCause;

/// Packets that a QP has sent again, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RetransmitCounts {
    /// Timers expired.
    pub timeout: u64,
    /// NACKs.
    pub nack: u64,
    /// SACK gaps.
    pub sack_gap: u64,
    /// Completion re-requests, which are no retransmissions.
    pub rerequest: u64,
}

impl RetransmitCounts {
    /// Counts one packet.
    pub fn add(&mut self, cause: RetransmitCause) {
        match cause {
            RetransmitCause::Timeout => self.timeout += 1,
            RetransmitCause::Nack => self.nack += 1,
            RetransmitCause::SackGap => self.sack_gap += 1,
            RetransmitCause::Rerequest => self.rerequest += 1,
        }
    }

    /// Retransmissions of all causes.
    // spec: DONE-2
    pub fn total(&self) -> u64 {
        self.timeout + self.nack + self.sack_gap
    }
}

impl AddAssign for RetransmitCounts {
    fn add_assign(&mut self, other: Self) {
        self.timeout += other.timeout;
        self.nack += other.nack;
        self.sack_gap += other.sack_gap;
        self.rerequest += other.rerequest;
    }
}
