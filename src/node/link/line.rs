//! The way from one end of a link to the other: how long it takes.

use crate::node::fault::{Bottleneck, Shape};
use crate::rng::Rng;
use crate::time::{Duration, Instant};

/// One direction of a link behind the faults that meet single packets.
#[derive(Clone, Debug)]
pub(super) struct Line {
    delay: Duration,
    /// When the last frame that was shaped arrives: nothing overtakes it.
    in_order: Instant,
    /// When the last frame that went through a bottleneck has passed it.
    free: Instant,
}

impl Line {
    /// A line of this delay.
    pub fn new(delay: Duration) -> Self {
        Self { delay, in_order: Instant::ZERO, free: Instant::ZERO }
    }

    /// When a frame arrives that is put on the line at `now`.
    // spec: SW-3
    pub fn arrival(&self, now: Instant) -> Instant {
        (now + self.delay).max(self.in_order)
    }

    /// When a frame of `wire_bytes` arrives that is shaped; `None` when it is
    /// lost at a full queue.
    // spec: SW-20
    pub fn shaped_arrival(
        &mut self,
        now: Instant,
        shape: &Shape,
        wire_bytes: u64,
        rng: &mut Rng,
    ) -> Option<Instant> {
        let passed = match &shape.bottleneck {
            Some(bottleneck) => self.pass(now, bottleneck, wire_bytes)?,
            None => now,
        };
        let jitter = match shape.jitter.as_ps() {
            0 => Duration::ZERO,
            most => Duration::from_ps(rng.below(most.saturating_add(1))),
        };
        self.in_order = self.arrival(passed).max(passed + self.delay + shape.delay + jitter);
        Some(self.in_order)
    }

    /// When a frame has passed the bottleneck, behind those before it; `None`
    /// when it finds no room. What is in the queue is what the rate will take
    /// from now on.
    fn pass(&mut self, now: Instant, to: &Bottleneck, wire_bytes: u64) -> Option<Instant> {
        let passed = self.free.max(now) + to.rate.time_for(wire_bytes);
        if passed.since(now) > to.rate.time_for(to.queue_limit) {
            return None;
        }
        self.free = passed;
        Some(passed)
    }
}
