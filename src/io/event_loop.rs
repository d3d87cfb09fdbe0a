//! One node on packet sockets, in the wall clock.

use core::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mio::{Registry, Token, Waker};

use super::clock::WallClock;
use super::driver::Driver;
use super::host_errors::HostErrors;
use super::lateness::Lateness;
use super::packet_socket::{OddFrames, PacketSocket};
use super::port::Port;
use super::waiter::{Waiter, Watched};
use crate::node::link::Link;
use crate::node::{Ctx, FrameTap, Node, PortId};
use crate::rng::Rng;
use crate::time::Instant;
use crate::trace::{NodeId, TraceSink};

/// The most frames that a turn sends before it receives, and receives before
/// it sends, unless [`EventLoop::set_turn`] says otherwise.
pub const FRAMES_A_TURN: usize = 32;

/// What a port of the node stands on.
#[derive(Debug)]
pub struct PortIo {
    /// The interface.
    pub socket: PacketSocket,
    /// The sending end of the link behind it.
    pub link: Link,
}

/// Runs one node on packet sockets: call [`turn`](Self::turn) in a loop.
///
/// A turn waits until something happens, makes up for every deadline that has
/// passed, sends a number of frames and receives a number of frames; neither
/// keeps the other waiting for longer. Nothing but the caller's own trace sink
/// and tap allocates per packet in the steady state.
///
/// A frame that the host refuses is counted and lost, as on a wire. When ports
/// are not paced, a full send buffer (EAGAIN) is no loss: the frame waits, the
/// node is left alone, and its queues grow as they would behind a busy port.
// spec: TIME-5, TIME-7, REL-7
pub struct EventLoop<N> {
    driver: Driver<N>,
    ports: Vec<Port>,
    /// The port that sends and receives first in this turn.
    first: usize,
    paced: bool,
    frames_a_turn: usize,
    clock: WallClock,
    waiter: Waiter,
    lateness: Lateness,
}

/// What the host did to a run.
#[derive(Clone, Debug)]
pub struct IoReport {
    /// When frames were handed to the kernel against when they should have been.
    pub lateness: Lateness,
    /// The ports in order.
    pub ports: Vec<PortReport>,
}

/// What a port's socket has counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortReport {
    /// The interface.
    pub interface: String,
    /// Frames that the kernel took.
    pub sent: u64,
    /// Frames that were handed to the node.
    pub received: u64,
    /// Refusals by name: each is a frame lost, but EAGAIN where ports are not
    /// paced, which is a wait.
    pub host_errors: HostErrors,
    /// Frames that the kernel dropped because they were not taken in time.
    pub kernel_drops: u64,
    /// Received frames with something odd about them.
    pub odd: OddFrames,
}

impl<N: Node> EventLoop<N> {
    /// Runs `node` with these `ports` (the first is port 0). `rng` is the
    /// node's own stream. At a time dilation factor of 1 the ports are taken
    /// for unpaced, see [`set_paced`](Self::set_paced).
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new(
        node: N,
        id: NodeId,
        ports: Vec<PortIo>,
        clock: WallClock,
        rng: Rng,
        trace: Box<dyn TraceSink>,
    ) -> io::Result<Self> {
        let mut waiter = Waiter::new()?;
        let (links, ports): (Vec<_>, Vec<_>) =
            ports.into_iter().map(|PortIo { socket, link }| (link, Port::new(socket))).unzip();
        ports.iter().for_each(|port| port.watch(&mut waiter));
        let driver = Driver::new(node, id, links, rng, trace);
        let lateness = Lateness::default();
        let mut this = Self {
            driver,
            ports,
            first: 0,
            paced: true,
            frames_a_turn: FRAMES_A_TURN,
            clock,
            waiter,
            lateness,
        };
        this.set_paced(clock.tdf() != 1);
        Ok(this)
    }

    /// Says whether serialization at the node's ports takes modelled time. The
    /// node's queues wait for the host only when it does not.
    pub fn set_paced(&mut self, paced: bool) {
        self.paced = paced;
        self.driver.set_hold((!paced).then_some(self.frames_a_turn));
    }

    /// Lets a turn send and receive up to `frames`: more are cheaper, and keep
    /// the other waiting for longer.
    pub fn set_turn(&mut self, frames: usize) {
        self.frames_a_turn = frames;
        self.set_paced(self.paced);
    }

    /// Listens to every frame that the node's ports receive and send.
    pub fn set_tap(&mut self, tap: Box<dyn FrameTap>) {
        self.driver.set_tap(tap);
    }

    /// The clock's instant.
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The node.
    pub fn node(&self) -> &N {
        self.driver.node()
    }

    /// Calls `f` with the node now, as its host would; what was due before
    /// happens first. Frames that it sends leave in the next turn.
    // spec: TIME-7
    pub fn call<R>(&mut self, f: impl FnOnce(&mut N, &mut Ctx<'_>) -> R) -> R {
        self.driver.call(self.clock.now(), f)
    }

    /// Calls `f` with the instant and the sending ends of the links now, in the
    /// order of the ports; what was due before happens first.
    // spec: SW-20
    pub fn with_links<R>(&mut self, f: impl FnOnce(Instant, &mut [Link]) -> R) -> R {
        self.driver.with_links(self.clock.now(), f)
    }

    /// Where to register other file descriptors, under tokens that count from
    /// 0. Readiness is told once (edges): read until the source would block.
    pub fn registry(&self) -> &Registry {
        self.waiter.registry()
    }

    /// Ends a wait from other threads, or from signals.
    pub fn waker(&self) -> Arc<Waker> {
        self.waiter.waker()
    }

    /// The tokens of the caller's file descriptors that became ready in the
    /// last turn, and [`WAKER`](super::waiter::WAKER) for the waker.
    pub fn events(&self) -> impl Iterator<Item = Token> {
        self.waiter.events()
    }

    /// Waits for whatever comes next, a deadline, frames or an event, and does
    /// all that is due then. Look at [`events`](Self::events) after it.
    ///
    /// # Errors
    /// Those of epoll and timerfd, which have none in normal operation. Errors
    /// of a socket are counted, not returned.
    pub fn turn(&mut self) -> io::Result<()> {
        let (deadline_ns, can_send) = (self.deadline_ns(), self.can_send());
        let Self { ports, waiter, .. } = self;
        waiter.wait(deadline_ns, || can_send || ports.iter().any(Port::has_frames))?;
        self.work();
        Ok(())
    }

    /// A [`turn`](Self::turn) that does not wait, for a caller who waits for
    /// several event loops at once: until one [is ready](Self::is_ready), or
    /// its [deadline](Self::deadline_ns) comes, or something happens that it
    /// [watches](Self::watch), which it tells with `something_happened`.
    ///
    /// # Errors
    /// As for [`turn`](Self::turn).
    pub fn turn_at_once(&mut self, something_happened: bool) -> io::Result<()> {
        self.waiter.look(something_happened)?;
        self.work();
        Ok(())
    }

    /// Adds what brings a turn on to what a waiter sleeps for.
    pub fn watch(&self, watched: &mut Watched) {
        self.waiter.add_to(watched);
    }

    /// When the next turn is due, in nanoseconds of CLOCK_MONOTONIC; `None`
    /// when only frames or events bring one on.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.driver.next_deadline().map(|at| self.clock.to_monotonic_ns(at))
    }

    /// Whether there are frames to receive or to send.
    pub fn is_ready(&self) -> bool {
        self.can_send() || self.ports.iter().any(Port::has_frames)
    }

    fn can_send(&self) -> bool {
        let Self { driver, ports, .. } = self;
        driver.has_outgoing()
            && ports.iter().zip(0..).any(|(port, index)| {
                !port.is_blocked() && !driver.outgoing(PortId(index)).is_empty()
            })
    }

    fn work(&mut self) {
        self.driver.advance(self.clock.now());
        self.send();
        self.receive();
        self.first = (self.first + 1) % self.ports.len().max(1);
    }

    /// The ports' sockets once more, as far as there are descriptors: who drops
    /// the event loop can choose when they close, which takes the kernel long.
    pub fn duplicate_sockets(&self) -> Vec<OwnedFd> {
        self.ports.iter().filter_map(|port| port.duplicate_socket().ok()).collect()
    }

    /// What has been counted since the start.
    ///
    /// # Errors
    /// When the kernel does not answer.
    // spec: TIME-6, REL-7, REL-8
    pub fn report(&mut self) -> io::Result<IoReport> {
        let ports = self.ports.iter_mut().map(Port::report).collect::<io::Result<_>>()?;
        Ok(IoReport { lateness: self.lateness.clone(), ports })
    }

    /// Hands frames to the kernel, up to the limit of a turn.
    // spec: TIME-6, REL-7
    fn send(&mut self) {
        let mut left = self.frames_a_turn;
        for index in in_turns(self.first, self.ports.len()) {
            let Self { driver, ports, clock, lateness, waiter, paced, .. } = self;
            let id = PortId(index as u16);
            let port = &mut ports[index];
            while left > 0 && !driver.outgoing(id).is_empty() {
                let frames = driver.outgoing(id);
                let frames = &frames[..frames.len().min(left)];
                let outcome = port.send(frames, !*paced);
                let now = clock.now();
                for frame in &frames[..outcome.sent] {
                    lateness.record(frame.scheduled, now);
                }
                driver.remove_outgoing(id, outcome.gone);
                left -= outcome.gone;
                port.watch_room(waiter, outcome.is_blocked);
                if outcome.is_blocked {
                    break;
                }
            }
        }
    }

    /// Hands received frames to the node, up to the limit of a turn. What they
    /// make a punctual node with paced ports send does not wait for the rest.
    /// Where nothing is paced, all of a turn arrive at one instant.
    // spec: TIME-7
    fn receive(&mut self) {
        let send_at_once = self.paced && !self.driver.has_outgoing();
        let (mut left, mut now) = (self.frames_a_turn, self.clock.now());
        for index in in_turns(self.first, self.ports.len()) {
            let Self { driver, ports, clock, paced, .. } = self;
            while left > 0
                && !(send_at_once && driver.has_outgoing())
                && let Some(bytes) = ports[index].receive()
            {
                if *paced {
                    now = clock.now();
                }
                driver.frame(now, PortId(index as u16), &bytes);
                left -= 1;
            }
        }
    }
}

/// The ports `first`, `first + 1` and so on, each once.
fn in_turns(first: usize, ports: usize) -> impl Iterator<Item = usize> {
    (first..ports).chain(0..first.min(ports))
}

impl<N> fmt::Debug for EventLoop<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLoop")
            .field("driver", &self.driver)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}
