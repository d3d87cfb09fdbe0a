//! A message and the segments it is sent in.

use crate::nic::WorkRequest;
use crate::time::{Duration, Instant};
use crate::wire::opcode::Opcode;
use crate::wire::psn::PsnExt;

/// A posted message.
// spec: QP-2
#[derive(Clone, Debug)]
pub struct Message {
    /// What the application asked for.
    pub work: WorkRequest,
    /// The PSN of its first packet.
    first: PsnExt,
    /// The PSN of its last packet.
    last: PsnExt,
    /// Its number within the QP, from 0.
    msn: u16,
    mss: u32,
    /// When the fetch of its last segment was issued.
    send_complete: Instant,
}

/// One packet's part of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where in the message it starts, in bytes.
    pub offset: u32,
    /// Payload bytes.
    pub length: u32,
    /// Marks first, middle, last or only.
    pub opcode: Opcode,
    /// Whether it is the message's last.
    pub ends_message: bool,
    /// The message's number within the QP.
    pub msn: u16,
    /// The message's work request.
    pub work: WorkRequest,
}

impl Message {
    /// A message whose first packet takes `first`.
    // spec: SEG-1, SEG-2
    pub fn new(work: WorkRequest, first: PsnExt, msn: u16, mss: u32) -> Self {
        let packets = u64::from(work.length.div_ceil(mss)).max(1);
        let send_complete = Instant::MAX;
        Self { work, first, last: first.plus(packets - 1), msn, mss, send_complete }
    }

    /// The PSN of its last packet.
    pub fn last(&self) -> PsnExt {
        self.last
    }

    /// The fetch of its last segment is issued at `now`.
    // spec: DONE-1
    pub fn on_send_complete(&mut self, now: Instant) {
        self.send_complete = now;
    }

    /// The first instant from `now` on that lies a whole number of periods, one at
    /// least, after its SEND_COMPLETE.
    // spec: DONE-2
    pub fn next_check(&self, now: Instant, period: Duration) -> Instant {
        let waited = now.since(self.send_complete).as_ps();
        self.send_complete + period * waited.div_ceil(period.as_ps()).max(1)
    }

    /// The segment that `psn` carries; `None` for a PSN of another message.
    // spec: SEG-1, SEG-3
    pub fn segment(&self, psn: PsnExt) -> Option<Segment> {
        if !(self.first..=self.last).contains(&psn) {
            return None;
        }
        let offset = psn.offset_from(self.first) as u32 * self.mss;
        let length = (self.work.length - offset).min(self.mss);
        let opcode = match (psn == self.first, psn == self.last) {
            (true, true) => Opcode::WriteOnly,
            (true, false) => Opcode::WriteFirst,
            (false, false) => Opcode::WriteMiddle,
            (false, true) => Opcode::WriteLast,
        };
        let ends_message = psn == self.last;
        Some(Segment { offset, length, opcode, ends_message, msn: self.msn, work: self.work })
    }
}
