//! The exact clock: a discrete-event loop over links. Deterministic for a
//! seed: the same scenario twice gives the same events at the same instants.

mod carrier;
mod run;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::nic::Nic;
use crate::node::link::{Link, LinkWatch, Passage};
use crate::node::{Ctx, Frame, FramePool, FrameTap, NoTap, Node, PortId, TapDirection};
use crate::rng::Rng;
use crate::scenario::{End, NodeKind, NodePlan, Topology};
use crate::switch::Switch;
use crate::time::Instant;
use crate::trace::{Event, NodeId, QpEvent, TraceSink};

pub use carrier::{Carrier, CarryError, InMemory};
pub use run::{FlowMemory, RunEnd, run_workload};

/// A node of the simulated world.
#[derive(Debug)]
enum SimNode {
    Nic(Box<Nic>),
    Switch(Box<Switch>),
}

impl SimNode {
    /// The node of `plan` in life number `start`, with its own random stream.
    // spec: W-7
    fn new(plan: &NodePlan, seed: u64, start: u64) -> (Self, Rng) {
        let mut rng = Rng::derive(seed, &plan.name, start);
        let node = match &plan.kind {
            NodeKind::Nic(config) => Self::Nic(Box::new(Nic::new((**config).clone(), &mut rng))),
            NodeKind::Switch(config) => Self::Switch(Box::new(Switch::new((**config).clone()))),
        };
        (node, rng)
    }

    fn as_node(&mut self) -> &mut dyn Node {
        match self {
            Self::Nic(nic) => nic.as_mut(),
            Self::Switch(switch) => switch.as_mut(),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Nic(nic) => nic.poll_timeout(),
            Self::Switch(switch) => switch.poll_timeout(),
        }
    }
}

/// A node with what belongs to it.
struct Station {
    plan: NodePlan,
    node: SimNode,
    rng: Rng,
    /// How many lives the node has had before this one.
    restarts: u64,
    /// The sending end of the link behind each port, and where it leads.
    links: Vec<(Link, End)>,
    watch: LinkWatch,
    /// The instants for which wake-ups are queued, each once, the earliest last.
    wake_ups: Vec<Instant>,
    tap: Box<dyn FrameTap>,
}

/// What happens next.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Arrival { from: End, to: End, frame: Frame },
    WakeUp { node: NodeId },
}

/// Every node and link of a topology under one clock.
pub struct SimWorld<'t, C = InMemory> {
    seed: u64,
    now: Instant,
    stations: Vec<Station>,
    queue: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    queued: u64,
    passages: Vec<Passage>,
    frames: FramePool,
    carrier: C,
    trace: &'t mut dyn TraceSink,
    events: VecDeque<(Instant, NodeId, QpEvent)>,
}

impl<'t, C: Carrier> SimWorld<'t, C> {
    /// The world of `topology` at time 0; every random stream derives from `seed`.
    // spec: TIME-5, W-7
    pub fn new(topology: &Topology, seed: u64, carrier: C, trace: &'t mut dyn TraceSink) -> Self {
        let stations = topology.nodes.iter().enumerate().map(|(index, plan)| {
            let (node, rng) = SimNode::new(plan, seed, 0);
            let links = topology.sending_ends(NodeId(index as u32), seed);
            Station {
                plan: plan.clone(),
                node,
                rng,
                restarts: 0,
                watch: LinkWatch::new(links.len()),
                links,
                wake_ups: Vec::new(),
                tap: Box::new(NoTap),
            }
        });
        Self {
            seed,
            now: Instant::ZERO,
            stations: stations.collect(),
            queue: BinaryHeap::new(),
            queued: 0,
            passages: Vec::new(),
            frames: FramePool::default(),
            carrier,
            trace,
            events: VecDeque::new(),
        }
    }

    /// The instant up to which everything has happened.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// What carries the frames.
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// Listens to every frame of `node`.
    pub fn set_tap(&mut self, node: NodeId, tap: Box<dyn FrameTap>) {
        self.stations[node.0 as usize].tap = tap;
    }

    /// The NIC `node`.
    ///
    /// # Panics
    /// When the node is a switch.
    pub fn nic(&self, node: NodeId) -> &Nic {
        match &self.stations[node.0 as usize].node {
            SimNode::Nic(nic) => nic,
            SimNode::Switch(_) => panic!("node {} is a switch", node.0),
        }
    }

    /// The switch `node`.
    ///
    /// # Panics
    /// When the node is a NIC.
    pub fn switch(&self, node: NodeId) -> &Switch {
        match &self.stations[node.0 as usize].node {
            SimNode::Switch(switch) => switch,
            SimNode::Nic(_) => panic!("node {} is a NIC", node.0),
        }
    }

    /// Calls `f` with the NIC `node` now, as its host would.
    ///
    /// # Panics
    /// When the node is a switch.
    pub fn with_nic<R>(&mut self, node: NodeId, f: impl FnOnce(&mut Nic, &mut Ctx<'_>) -> R) -> R {
        let result = self.call(node, |sim_node, ctx| match sim_node {
            SimNode::Nic(nic) => f(nic, ctx),
            SimNode::Switch(_) => panic!("node {} is a switch", node.0),
        });
        self.after_call(node);
        result
    }

    /// Puts a fresh NIC in the place of `node` now, as when a daemon is killed
    /// and started again: QPs, memory and frames that have not left are lost, and
    /// its random stream is that of a new life. What is on the wire arrives.
    ///
    /// # Panics
    /// When the node is a switch.
    // spec: W-7, REL-6
    pub fn restart_nic(&mut self, node: NodeId) {
        let station = &mut self.stations[node.0 as usize];
        assert!(matches!(station.node, SimNode::Nic(_)), "node {} is a switch", node.0);
        station.restarts += 1;
        (station.node, station.rng) = SimNode::new(&station.plan, self.seed, station.restarts);
        station.watch = LinkWatch::new(station.links.len());
    }

    /// Lets `frame` arrive at `to` at `at`, as if `from` had sent it; for
    /// scripted peers.
    pub fn inject(&mut self, at: Instant, from: End, to: End, frame: Frame) {
        self.schedule(at.max(self.now), Happening::Arrival { from, to, frame });
    }

    /// When the next thing happens.
    pub fn next_instant(&self) -> Option<Instant> {
        self.queue.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next event of a QP at any NIC, with its instant.
    pub fn poll_event(&mut self) -> Option<(Instant, NodeId, QpEvent)> {
        self.events.pop_front()
    }

    /// The next thing happens; false when nothing is left to happen.
    ///
    /// # Errors
    /// When the carrier could not carry a frame.
    pub fn step(&mut self) -> Result<bool, CarryError> {
        let Some(Reverse((at, _, happening))) = self.queue.pop() else { return Ok(false) };
        self.now = at;
        match happening {
            Happening::Arrival { from, to, frame } => {
                let frame = self.carrier.carry(from, to, frame, &mut self.frames)?;
                self.arrive(to, frame);
            }
            Happening::WakeUp { node } => self.wake(node),
        }
        Ok(true)
    }

    /// Everything up to `end` happens; false when something is left after it.
    ///
    /// # Errors
    /// When the carrier could not carry a frame.
    pub fn run_until(&mut self, end: Instant) -> Result<bool, CarryError> {
        while let Some(at) = self.next_instant() {
            if at > end {
                self.now = end;
                return Ok(false);
            }
            self.step()?;
        }
        self.now = self.now.max(end);
        Ok(true)
    }

    /// Calls `f` with a node and its context at this instant; the node knows then
    /// how its links are.
    // spec: SW-13
    fn call<R>(&mut self, node: NodeId, f: impl FnOnce(&mut SimNode, &mut Ctx<'_>) -> R) -> R {
        let station = &mut self.stations[node.0 as usize];
        let mut ctx = Ctx {
            now: self.now,
            node,
            rng: &mut station.rng,
            frames: &mut self.frames,
            trace: self.trace,
        };
        if station.watch.is_due(self.now) {
            let links = station.links.iter().map(|(link, _)| link);
            let node = station.node.as_node();
            let tell = |port, up| node.handle_link_state(&mut ctx, port, up);
            station.watch.update(self.now, links, tell);
        }
        f(&mut station.node, &mut ctx)
    }

    fn arrive(&mut self, to: End, frame: Frame) {
        let station = &mut self.stations[to.node.0 as usize];
        station.tap.frame(self.now, to.port, TapDirection::Received, &frame, None);
        self.call(to.node, |node, ctx| node.as_node().handle_frame(ctx, to.port, frame));
        self.after_call(to.node);
    }

    fn wake(&mut self, node: NodeId) {
        let station = &mut self.stations[node.0 as usize];
        station.wake_ups.pop();
        if station.node.poll_timeout().is_some_and(|at| at <= self.now) {
            self.call(node, |sim_node, ctx| sim_node.as_node().handle_timeout(ctx));
        }
        self.after_call(node);
    }

    /// Takes from a node what a call made it give: frames, events, its deadline.
    fn after_call(&mut self, node: NodeId) {
        while let Some(transmit) = self.call(node, |node, ctx| node.as_node().poll_transmit(ctx)) {
            self.put_on_link(End { node, port: transmit.port }, transmit.frame);
        }
        let station = &mut self.stations[node.0 as usize];
        if let SimNode::Nic(nic) = &mut station.node {
            while let Some(event) = nic.poll_event() {
                self.events.push_back((self.now, node, event));
            }
        }
        if let Some(at) = station.node.poll_timeout()
            && station.wake_ups.last().is_none_or(|queued| at < *queued)
        {
            station.wake_ups.push(at);
            self.schedule(at, Happening::WakeUp { node });
        }
    }

    /// A frame whose last bit has left `from` meets the link's delay and faults.
    // spec: SW-20, SW-21
    fn put_on_link(&mut self, from: End, frame: Frame) {
        let PortId(port) = from.port;
        let station = &mut self.stations[from.node.0 as usize];
        let (link, to) = &mut station.links[usize::from(port)];
        let to = *to;
        let mut passages = core::mem::take(&mut self.passages);
        link.send(self.now, frame, &mut self.frames, &mut passages);
        for passage in passages.drain(..) {
            let comment = passage.comment();
            let Passage { arrives, frame, comments } = passage;
            let station = &mut self.stations[from.node.0 as usize];
            let direction = TapDirection::Sent;
            station.tap.frame(self.now, from.port, direction, &frame, comment.as_deref());
            for what in comments {
                self.trace.record(self.now, from.node, &Event::Fault { what });
            }
            match arrives {
                Some(at) => self.schedule(at, Happening::Arrival { from, to, frame }),
                None => self.frames.give(frame),
            }
        }
        self.passages = passages;
    }

    fn schedule(&mut self, at: Instant, happening: Happening) {
        self.queue.push(Reverse((at, self.queued, happening)));
        self.queued += 1;
    }
}
