//! Drives one node in late time: the half of an event loop that knows neither
//! sockets nor a clock.

use core::fmt;

use super::outgoing::{Outbox, Outgoing, UnderWay};
use crate::node::link::{Link, LinkWatch, Passage};
use crate::node::{Ctx, Frame, FramePool, FrameTap, NoTap, Node, PortId, TapDirection};
use crate::rng::Rng;
use crate::time::Instant;
use crate::trace::{Event, NodeId, TraceSink};

/// One node, the sending ends of its links, and the frames that have passed
/// them and wait to be handed to the kernel.
///
/// Every call carries the instant that the clock shows. What was due before is
/// replayed first, in order, each at the instant at which it was due; so a late
/// driver sends late, but what it sends is what a punctual one would have sent.
// spec: TIME-5, TIME-7
pub struct Driver<N> {
    node: N,
    id: NodeId,
    links: Vec<Link>,
    watch: LinkWatch,
    rng: Rng,
    frames: FramePool,
    trace: Box<dyn TraceSink>,
    tap: Box<dyn FrameTap>,
    now: Instant,
    passages: Vec<Passage>,
    under_way: UnderWay,
    outbox: Outbox,
    hold_at: Option<usize>,
    /// The node has not been polled to the end.
    held: bool,
}

impl<N: Node> Driver<N> {
    /// Drives `node`, whose ports have these `links`, from time 0. `rng` is
    /// the node's own stream.
    pub fn new(node: N, id: NodeId, links: Vec<Link>, rng: Rng, trace: Box<dyn TraceSink>) -> Self {
        Self {
            node,
            id,
            outbox: Outbox::new(links.len()),
            watch: LinkWatch::new(links.len()),
            links,
            rng,
            frames: FramePool::default(),
            trace,
            tap: Box::new(NoTap),
            now: Instant::ZERO,
            passages: Vec::new(),
            under_way: UnderWay::default(),
            hold_at: None,
            held: false,
        }
    }

    /// Listens to every frame that the node's ports receive and send.
    pub fn set_tap(&mut self, tap: Box<dyn FrameTap>) {
        self.tap = tap;
    }

    /// Leaves the node alone while `hold_at` frames or more are outgoing:
    /// neither polls it for frames nor calls it for its deadlines. For a node
    /// whose ports are not paced: its queues then show what the host has not
    /// taken. `None`, as at first, is for paced ports, which send in modelled
    /// time whatever the host does.
    pub fn set_hold(&mut self, hold_at: Option<usize>) {
        self.hold_at = hold_at;
    }

    /// The instant up to which everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The node.
    pub fn node(&self) -> &N {
        &self.node
    }

    /// When [`advance`](Self::advance) is next due; `None` when the node waits
    /// for frames, or for outgoing ones to be taken.
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.under_way.next(), self.node_deadline()].into_iter().flatten().min()
    }

    /// Replays everything that is due up to `now`, in order.
    // spec: TIME-7
    pub fn advance(&mut self, now: Instant) {
        while let Some(due) = self.next_deadline().filter(|due| *due <= now) {
            self.replay(due);
        }
        self.now = self.now.max(now);
    }

    /// A frame with these `bytes` was taken from `port` at `now`.
    // spec: TIME-7
    pub fn frame(&mut self, now: Instant, port: PortId, bytes: &[u8]) {
        self.advance(now);
        self.tap.frame(self.now, port, TapDirection::Received, bytes, None);
        let frame = self.frames.copy_of(bytes);
        self.with_node(|node, ctx| node.handle_frame(ctx, port, frame));
        self.poll_node();
    }

    /// Calls `f` with the node at `now`, as its host would.
    pub fn call<R>(&mut self, now: Instant, f: impl FnOnce(&mut N, &mut Ctx<'_>) -> R) -> R {
        self.advance(now);
        let result = self.with_node(f);
        self.poll_node();
        result
    }

    /// Calls `f` with the instant and the sending ends of the links at `now`,
    /// in the order of the ports.
    // spec: SW-20
    pub fn with_links<R>(&mut self, now: Instant, f: impl FnOnce(Instant, &mut [Link]) -> R) -> R {
        self.advance(now);
        self.watch.rules_changed();
        f(self.now, &mut self.links)
    }

    /// Whether any port has outgoing frames.
    pub fn has_outgoing(&self) -> bool {
        self.outbox.len() > 0
    }

    /// Outgoing frames of `port` in order: at least one when there are any.
    pub fn outgoing(&self, port: PortId) -> &[Outgoing] {
        self.outbox.first(port)
    }

    /// The first `count` outgoing frames of `port` are gone.
    ///
    /// # Panics
    /// When there are not as many.
    pub fn remove_outgoing(&mut self, port: PortId, count: usize) {
        self.outbox.remove(port, count, &mut self.frames);
    }

    fn is_holding(&self) -> bool {
        self.hold_at.is_some_and(|limit| self.outbox.len() >= limit)
    }

    fn node_deadline(&self) -> Option<Instant> {
        match (self.is_holding(), self.held) {
            (true, _) => None,
            (false, true) => Some(self.now),
            (false, false) => self.node.poll_timeout(),
        }
    }

    /// What is due at `due` happens; frames that arrive then were sent before
    /// what the node does then.
    fn replay(&mut self, due: Instant) {
        self.now = self.now.max(due);
        while let Some((at, port, frame)) = self.under_way.pop_arrived(self.now) {
            self.outbox.push(at, port, frame);
        }
        if self.node_deadline().is_some_and(|at| at <= self.now) {
            self.with_node(|node, ctx| node.handle_timeout(ctx));
            self.poll_node();
        }
    }

    /// Calls `f` with the node, which knows then how its links are.
    // spec: SW-13
    fn with_node<R>(&mut self, f: impl FnOnce(&mut N, &mut Ctx<'_>) -> R) -> R {
        let mut ctx = Ctx {
            now: self.now,
            node: self.id,
            rng: &mut self.rng,
            frames: &mut self.frames,
            trace: &mut *self.trace,
        };
        if self.watch.is_due(self.now) {
            let node = &mut self.node;
            let tell = |port, up| node.handle_link_state(&mut ctx, port, up);
            self.watch.update(self.now, self.links.iter(), tell);
        }
        f(&mut self.node, &mut ctx)
    }

    /// Takes the frames that the node gives, as far as there is room for them.
    fn poll_node(&mut self) {
        self.held = false;
        while !self.is_holding() {
            let Some(transmit) = self.with_node(|node, ctx| node.poll_transmit(ctx)) else {
                return;
            };
            self.put_on_link(transmit.port, transmit.frame);
        }
        self.held = true;
    }

    /// A frame whose last bit has left `port` meets the link's delay and faults.
    // spec: SW-20, SW-21
    fn put_on_link(&mut self, port: PortId, frame: Frame) {
        let mut passages = core::mem::take(&mut self.passages);
        let link = &mut self.links[usize::from(port.0)];
        link.send(self.now, frame, &mut self.frames, &mut passages);
        for passage in passages.drain(..) {
            let comment = passage.comment();
            let Passage { arrives, frame, comments } = passage;
            self.tap.frame(self.now, port, TapDirection::Sent, &frame, comment.as_deref());
            for what in comments {
                self.trace.record(self.now, self.id, &Event::Fault { what });
            }
            match arrives {
                // What arrived before has left `under_way` already.
                Some(at) if at <= self.now => self.outbox.push(at, port, frame),
                Some(at) => self.under_way.push(at, port, frame),
                None => self.frames.give(frame),
            }
        }
        self.passages = passages;
    }
}

impl<N> fmt::Debug for Driver<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("id", &self.id)
            .field("now", &self.now)
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
