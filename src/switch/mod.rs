//! The software switch: an IPv4 forwarder with a shared buffer, strict
//! priorities, PFC, ECN and packet trimming.
//!
//! A frame passes through in this order: its headers are checked, its
//! destination gives a set of ports, its flow gives one of them, its MAC
//! addresses become those of the next hop, its codepoint gives its class, the
//! shared buffer charges it where it came in, and the class's queue takes it,
//! takes what a trim leaves of it, or drops it.

mod buffer;
mod class;
mod counters;
mod ecmp;
mod ecn;
mod flowlet;
mod paths;
mod pfc;
mod port;
mod queue;
mod routes;
#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::config::SwitchAttributes;
use crate::node::{Ctx, Drops, Frame, Node, PortId, Transmit};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::frame::{FrameView, decrement_ttl};
use crate::wire::mac::{MacAddr, MacPair};
use crate::wire::packet::{Ecn, wire_bytes};
use crate::wire::pfc::Pfc;
use crate::wire::role::Role;

use buffer::SharedBuffer;
use ecmp::EcmpHasher;
use ecn::EcnMarker;
use flowlet::FlowletTable;
use port::{Finished, Port};
use routes::RouteTable;

pub use class::TrafficClass;
pub use counters::{ClassCounters, PoolCounters, PortCounters};
pub use routes::Route;

/// What a switch is made of.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchConfig {
    /// Its ports; a [`PortId`] is an index here.
    pub ports: Vec<SwitchPort>,
    /// Where packets go.
    pub routes: Vec<Route>,
    /// Its attributes.
    pub attributes: SwitchAttributes,
}

/// A port of a switch.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchPort {
    /// Its own address: the source of every frame that leaves.
    pub mac: MacAddr,
    /// Who is at the other end.
    pub neighbour: Neighbour,
    /// How fast frames leave, when the switch is paced.
    pub rate: Rate,
    /// Whether a NIC is at the other end.
    pub faces_nic: bool,
    /// The delay of its link, which a pause from the peer lasts longer.
    pub delay: Duration,
    /// The most that may wait here in each pool, in bytes of IP datagrams, where
    /// the link sets it; otherwise the switch's attributes do.
    pub queue_limit: Option<u64>,
}

/// The next hop behind a port. A host has two addresses: its NIC's and that of
/// the interface which serves everything else.
// spec: SW-1
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Takes UDP to the MRC port.
    pub mrc: MacAddr,
    /// Takes everything else.
    pub host: MacAddr,
}

/// A switch.
#[derive(Debug)]
pub struct Switch {
    attributes: SwitchAttributes,
    ports: Vec<Port>,
    routes: RouteTable,
    hasher: EcmpHasher,
    flowlets: FlowletTable,
    buffer: SharedBuffer,
    marker: EcnMarker,
    drops: Drops,
    deadlines: BinaryHeap<Reverse<(Instant, Due)>>,
    /// Frames whose last bit has left.
    sent: VecDeque<Transmit>,
    /// Unpaced: the ports that have frames, each once, taking turns.
    turns: VecDeque<PortId>,
}

/// What happens at an instant; of equal instants departures come first, the
/// lowest port before others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    /// The last bit of a frame leaves.
    Departure(PortId),
    /// The peer takes packets again.
    Wake(PortId),
    /// The sender at the port, who has been told to pause for a pool's sake, is
    /// to be told again.
    Repeat(PortId, usize),
}

/// What the switch needs to know of a packet to queue it.
struct Arrival {
    frame: Frame,
    /// Where it arrived.
    from: PortId,
    class: TrafficClass,
    role: Option<Role>,
    ecn: Ecn,
    /// It is UDP to the MRC port.
    is_mrc: bool,
}

impl Switch {
    /// An empty switch.
    ///
    /// # Panics
    /// When a route names a port that is not there.
    pub fn new(config: SwitchConfig) -> Self {
        let SwitchConfig { ports, routes, attributes } = config;
        let mut members = routes.iter().flat_map(|route| &route.ports);
        assert!(
            members.all(|PortId(port)| usize::from(*port) < ports.len()),
            "every route leads to one of the {} ports",
            ports.len()
        );
        let routes = RouteTable::new(routes);
        Self {
            hasher: EcmpHasher::new(attributes.paths.hash, ports.iter().map(|port| port.mac)),
            flowlets: FlowletTable::new(&attributes.paths, routes.sets()),
            buffer: SharedBuffer::new(
                &attributes,
                ports.iter().map(|port| port.queue_limit).collect(),
            ),
            marker: EcnMarker::new(&attributes.ecn),
            ports: ports.into_iter().map(|port| Port::new(port, attributes.paced)).collect(),
            routes,
            attributes,
            drops: Drops::default(),
            deadlines: BinaryHeap::new(),
            sent: VecDeque::new(),
            turns: VecDeque::new(),
        }
    }

    /// The counters of `port`.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn counters(&self, PortId(port): PortId) -> &PortCounters {
        &self.ports[usize::from(port)].counters
    }

    /// What was dropped at all ports, by cause.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// What waits at `port` in the pool of `class`, in bytes of IP datagrams, the
    /// frame that is being sent included.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn queued_bytes(&self, port: PortId, class: TrafficClass) -> u64 {
        self.buffer.egress(port, self.buffer.pool(class))
    }

    /// The counters of `port` in each pool of the shared buffer, in order.
    ///
    /// # Panics
    /// When there is no such port.
    // spec: SW-19
    pub fn pool_counters(&self, port: PortId) -> impl Iterator<Item = &PoolCounters> {
        self.buffer.used_pools().map(move |pool| self.buffer.counters(port, pool))
    }

    fn port(&mut self, PortId(port): PortId) -> &mut Port {
        &mut self.ports[usize::from(port)]
    }

    /// The port by which a frame that arrived at `from` leaves and what to know
    /// of it; its MAC addresses are rewritten on the way. The error is a drop's
    /// cause.
    // spec: SW-1
    fn forward(
        &mut self,
        ctx: &mut Ctx<'_>,
        from: PortId,
        mut frame: Frame,
    ) -> Result<(PortId, Arrival), (&'static str, Frame)> {
        let view = match FrameView::new(&frame) {
            Ok(view) => view,
            Err(error) => return Err((error.counter(), frame)),
        };
        let (role, ecn, is_mrc) = (self.role(view), view.ecn(), self.is_mrc(view));
        let class = TrafficClass::of(&self.attributes, role, view.dscp());
        let to = match self.egress(ctx, view, class) {
            Ok(to) => to,
            Err(cause) => return Err((cause, frame)),
        };
        if self.attributes.decrement_ttl && decrement_ttl(&mut frame).is_ok_and(|left| left == 0) {
            return Err(("ttl_expired", frame));
        }
        let SwitchPort { mac, neighbour, .. } = self.ports[usize::from(to.0)].config;
        let destination = if is_mrc { neighbour.mrc } else { neighbour.host };
        MacPair { source: mac, destination }.emit(&mut frame);
        Ok((to, Arrival { frame, from, class, role, ecn, is_mrc }))
    }

    fn role(&self, packet: FrameView<'_>) -> Option<Role> {
        self.attributes.codepoints.role(packet.dscp())
    }

    fn is_mrc(&self, packet: FrameView<'_>) -> bool {
        packet.udp_ports().is_some_and(|(_, to)| to == self.attributes.udp_port)
    }

    /// Something waits at the port: an idle one starts to send it.
    fn send_soon(&mut self, ctx: &mut Ctx<'_>, now: Instant, id: PortId) {
        let paced = self.attributes.paced;
        let port = self.port(id);
        if paced {
            self.start_paced(ctx, now, id);
        } else if !port.in_turn {
            port.in_turn = true;
            self.turns.push_back(id);
        }
    }

    fn start_paced(&mut self, ctx: &mut Ctx<'_>, now: Instant, id: PortId) {
        if self.port(id).is_idle()
            && self.start_next(ctx, now, id)
            && let Some(end) = self.port(id).ends()
        {
            self.deadlines.push(Reverse((end, Due::Departure(id))));
        }
    }

    /// Starts to send what comes next at an idle port: a PFC frame, or the first
    /// packet of the highest class that is not paused. False when nothing can
    /// be sent now.
    // spec: SW-10
    fn start_next(&mut self, ctx: &mut Ctx<'_>, now: Instant, id: PortId) -> bool {
        let port = &mut self.ports[usize::from(id.0)];
        if let Some((class, quanta)) = port.take_signal() {
            port.start_pfc(now, class, quanta, ctx.frames.take());
            return true;
        }
        let Some((class, mut queued)) = port.take_next(now) else {
            let wake = port.next_wake().map(|at| Reverse((at, Due::Wake(id))));
            self.deadlines.extend(wake);
            return false;
        };
        self.mark(ctx, id, class, &mut queued);
        self.port(id).start(now, class, queued);
        true
    }

    /// Does everything that is due. The next serialization at a port starts at
    /// the scheduled end of the one before.
    // spec: TIME-7, SW-3
    fn meet_deadlines(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(Reverse((at, due))) = self.deadlines.peek().copied()
            && at <= ctx.now
        {
            self.deadlines.pop();
            match due {
                Due::Departure(port) => {
                    if let Some(frame) = self.finish(ctx, at, port) {
                        self.sent.push_back(Transmit { port, frame });
                    }
                    self.start_paced(ctx, at, port);
                }
                Due::Wake(port) => {
                    self.port(port).woken(at);
                    self.send_soon(ctx, at, port);
                }
                Due::Repeat(port, pool) => self.repeat_pause(ctx, at, port, pool),
            }
        }
    }

    /// The frame whose last bit leaves `port` now. A packet's charges end.
    // spec: SW-3, SW-8
    fn finish(&mut self, ctx: &mut Ctx<'_>, now: Instant, port: PortId) -> Option<Frame> {
        match self.port(port).finish(now)? {
            Finished::Pfc(frame) => Some(frame),
            Finished::Packet(class, queued) => {
                self.packet_left(ctx, now, port, class, &queued);
                Some(queued.frame)
            }
        }
    }

    /// Unpaced: a frame of the port whose turn it is.
    // spec: SW-2
    fn take_unpaced(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        let now = ctx.now;
        while let Some(id) = self.turns.pop_front() {
            self.port(id).in_turn = false;
            if !self.start_next(ctx, now, id) {
                continue;
            }
            let frame = self.finish(ctx, now, id);
            if self.port(id).has_work() {
                self.send_soon(ctx, now, id);
            }
            if let Some(frame) = frame {
                return Some(Transmit { port: id, frame });
            }
        }
        None
    }
}

impl Node for Switch {
    /// What leaves at this instant has left before what arrives at it.
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, port: PortId, frame: Frame) {
        self.meet_deadlines(ctx);
        let counters = &mut self.port(port).counters;
        counters.frames_in += 1;
        counters.bytes_in += wire_bytes(frame.len());
        match self.forward(ctx, port, frame) {
            Ok((to, arrival)) => self.offer(ctx, to, arrival),
            Err((_, frame)) if Pfc::is_pfc(&frame) => self.receive_pfc(ctx, port, frame),
            Err((cause, frame)) => self.discard(ctx, port, cause, frame),
        }
    }

    fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        self.meet_deadlines(ctx);
    }

    fn handle_link_state(&mut self, _: &mut Ctx<'_>, port: PortId, up: bool) {
        self.link_changed(port, up);
    }

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        self.meet_deadlines(ctx);
        self.sent.pop_front().or_else(|| self.take_unpaced(ctx))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.peek().map(|Reverse((at, _))| *at)
    }
}
