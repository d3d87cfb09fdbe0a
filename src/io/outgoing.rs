//! Frames on their way to the sockets.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::node::{Frame, FramePool, PortId};
use crate::time::Instant;

/// A frame that is to be handed to the kernel.
#[derive(Debug)]
pub struct Outgoing {
    /// When it was to be handed over.
    pub scheduled: Instant,
    /// The frame.
    pub frame: Frame,
}

impl AsRef<[u8]> for Outgoing {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

/// A queue of outgoing frames for each port.
#[derive(Debug)]
pub(super) struct Outbox {
    ports: Vec<VecDeque<Outgoing>>,
    len: usize,
}

impl Outbox {
    /// Empty queues for `ports` ports.
    pub(super) fn new(ports: usize) -> Self {
        Self { ports: (0..ports).map(|_| VecDeque::new()).collect(), len: 0 }
    }

    /// How many frames wait at all ports together.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a frame at the end of the queue of `port`.
    pub(super) fn push(&mut self, scheduled: Instant, port: PortId, frame: Frame) {
        self.ports[usize::from(port.0)].push_back(Outgoing { scheduled, frame });
        self.len += 1;
    }

    /// The first frames of `port`: at least one when there are any.
    pub(super) fn first(&self, port: PortId) -> &[Outgoing] {
        self.ports[usize::from(port.0)].as_slices().0
    }

    /// Takes the first `count` frames of `port` out; their buffers go to `frames`.
    pub(super) fn remove(&mut self, port: PortId, count: usize, frames: &mut FramePool) {
        let removed = self.ports[usize::from(port.0)].drain(..count);
        self.len -= removed.len();
        removed.for_each(|outgoing| frames.give(outgoing.frame));
    }
}

/// Frames under way on links with delay, the next to arrive first; those that
/// arrive at one instant in the order in which they were sent.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    heap: BinaryHeap<Reverse<(Instant, u64, PortId, Frame)>>,
    pushed: u64,
}

impl UnderWay {
    /// When the next frame arrives.
    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Adds a frame that left `port` and arrives at `at`.
    pub(super) fn push(&mut self, at: Instant, port: PortId, frame: Frame) {
        self.heap.push(Reverse((at, self.pushed, port, frame)));
        self.pushed += 1;
    }

    /// The next frame that has arrived at `now`.
    pub(super) fn pop_arrived(&mut self, now: Instant) -> Option<(Instant, PortId, Frame)> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse((at, _, port, frame))| (at, port, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_instant_keep_their_order() {
        let mut under_way = UnderWay::default();
        let (soon, later) = (Instant::from_ps(10), Instant::from_ps(20));
        for (at, byte) in [(later, 9), (soon, 3), (soon, 1), (soon, 2)] {
            under_way.push(at, PortId(0), vec![byte]);
        }
        assert_eq!(under_way.pop_arrived(Instant::from_ps(9)), None);
        let arrived = core::iter::from_fn(|| under_way.pop_arrived(soon));
        let bytes: Vec<_> = arrived.map(|(_, _, frame)| frame[0]).collect();
        assert_eq!(bytes, [3, 1, 2]);
        assert_eq!(under_way.next(), Some(later));
    }

    #[test]
    fn each_port_has_a_queue_of_its_own() {
        let (mut outbox, mut frames) = (Outbox::new(2), FramePool::default());
        for (port, byte) in [(1, 1), (0, 2), (1, 3)] {
            outbox.push(Instant::ZERO, PortId(port), vec![byte]);
        }
        assert_eq!(outbox.len(), 3);
        outbox.remove(PortId(1), 1, &mut frames);
        assert_eq!((outbox.first(PortId(1))[0].as_ref(), outbox.len()), (&[3][..], 2));
        assert_eq!(outbox.first(PortId(0))[0].as_ref(), [2]);
    }
}
