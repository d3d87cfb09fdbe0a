//! The software switch: an IPv4 forwarder with strict priorities, limited
//! queues and packet trimming.
//!
//! A frame passes through in this order: its headers are checked, its
//! destination gives a set of ports, its flow gives one of them, its MAC
//! addresses become those of the next hop, its codepoint gives its class, and
//! the class's queue takes it, takes what a trim leaves of it, or drops it.

mod counters;
mod ecmp;
mod port;
mod routes;
#[cfg(test)]
mod tests;

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::config::SwitchAttributes;
use crate::node::{Ctx, Drops, Frame, Node, PortId, Transmit};
use crate::time::Instant;
use crate::trace::Event;
use crate::units::Rate;
use crate::wire::frame::FrameView;
use crate::wire::mac::{MacAddr, MacPair};
use crate::wire::packet::wire_bytes;
use crate::wire::role::Role;
use crate::wire::trim::trim;

use ecmp::EcmpHasher;
use port::{Port, Queued};
use routes::RouteTable;

pub use counters::PortCounters;
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
    /// The most that each class may hold, in bytes of IP datagrams.
    pub queue_limit: u64,
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

/// What a port tells apart when it queues and sends; the highest leaves first.
// spec: DSCP-4
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TrafficClass {
    /// TC0: everything that is in no other class.
    Data,
    /// TC1: packets cut to their headers, here or on the way here.
    Trimmed,
    /// TC2: ACKs, SACKs and NACKs.
    Control,
}

impl TrafficClass {
    /// All classes, TC0 first.
    pub const ALL: [Self; 3] = [Self::Data, Self::Trimmed, Self::Control];

    /// The class of a packet whose codepoint names `role`.
    // spec: DSCP-4
    pub const fn of(role: Option<Role>) -> Self {
        match role {
            Some(Role::Control) => Self::Control,
            Some(role) if role.is_trimmed() => Self::Trimmed,
            _ => Self::Data,
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// A switch.
#[derive(Debug)]
pub struct Switch {
    attributes: SwitchAttributes,
    ports: Vec<Port>,
    routes: RouteTable,
    hasher: EcmpHasher,
    drops: Drops,
    /// When each port that is sending is done; of equal instants the lowest
    /// port comes first.
    departures: BinaryHeap<Reverse<(Instant, PortId)>>,
    /// Frames whose last bit has left.
    sent: VecDeque<Transmit>,
    /// Unpaced: the ports that have frames, each once, taking turns.
    turns: VecDeque<PortId>,
}

/// What the switch needs to know of a packet to queue it.
struct Arrival {
    frame: Frame,
    role: Option<Role>,
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
        Self {
            hasher: EcmpHasher::new(ports.iter().map(|port| port.mac)),
            ports: ports.into_iter().map(|port| Port::new(port, attributes.paced)).collect(),
            routes: RouteTable::new(routes),
            attributes,
            drops: Drops::default(),
            departures: BinaryHeap::new(),
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

    /// What `class` holds at `port` in bytes of IP datagrams, the frame that is
    /// being sent included.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn queued_bytes(&self, PortId(port): PortId, class: TrafficClass) -> u64 {
        self.ports[usize::from(port)].charged(class)
    }

    fn port(&mut self, PortId(port): PortId) -> &mut Port {
        &mut self.ports[usize::from(port)]
    }

    /// The port by which a frame leaves and what to know of it; its MAC
    /// addresses are rewritten on the way. The error is a drop's cause.
    // spec: SW-1
    fn forward(&self, mut frame: Frame) -> Result<(PortId, Arrival), (&'static str, Frame)> {
        let (member, role, is_mrc) = match FrameView::new(&frame) {
            Ok(view) => (self.egress(view), self.role(view), self.is_mrc(view)),
            Err(error) => return Err((error.counter(), frame)),
        };
        let Some(member) = member else { return Err(("no_route", frame)) };
        let SwitchPort { mac, neighbour, .. } = self.ports[usize::from(member.0)].config;
        let destination = if is_mrc { neighbour.mrc } else { neighbour.host };
        MacPair { source: mac, destination }.emit(&mut frame);
        Ok((member, Arrival { frame, role, is_mrc }))
    }

    // spec: SW-1, SW-12
    fn egress(&self, packet: FrameView<'_>) -> Option<PortId> {
        match self.routes.towards(packet.destination()) {
            [] => None,
            [port] => Some(*port),
            ports => Some(ports[self.hasher.member(packet, ports.len())]),
        }
    }

    fn role(&self, packet: FrameView<'_>) -> Option<Role> {
        self.attributes.codepoints.role(packet.dscp())
    }

    fn is_mrc(&self, packet: FrameView<'_>) -> bool {
        packet.udp_ports().is_some_and(|(_, to)| to == self.attributes.udp_port)
    }

    /// Offers the packet to its queue at `to`.
    // spec: DSCP-4, DSCP-5, DSCP-8
    fn offer(&mut self, ctx: &mut Ctx<'_>, to: PortId, arrival: Arrival) {
        let Arrival { frame, role, is_mrc } = arrival;
        let may_trim =
            self.attributes.trimming_enabled && is_mrc && role.is_some_and(Role::is_trimmable);
        let port = self.port(to);
        let limit = egress_limit(port.config.queue_limit, role);
        let queued = Queued { frame, trimmed_here: false };
        match port.admit(TrafficClass::of(role), limit, queued) {
            Ok(()) => self.send_soon(ctx.now, to),
            Err(Queued { frame, .. }) if may_trim => self.trim(ctx, to, frame),
            Err(Queued { frame, .. }) => self.discard(ctx, to, "queue_full", frame),
        }
    }

    /// Cuts the packet to its headers and offers these to `to`.
    // spec: SW-16, DSCP-5
    fn trim(&mut self, ctx: &mut Ctx<'_>, to: PortId, mut frame: Frame) {
        let faces_nic = self.port(to).config.faces_nic;
        let role = if faces_nic { Role::TrimmedLastHop } else { Role::Trimmed };
        let dscp = self.attributes.codepoints.dscp(role);
        if trim(&mut frame, dscp, self.attributes.trim_ip_length).is_err() {
            return self.discard(ctx, to, "queue_full", frame);
        }
        ctx.record(Event::Trimmed { port: to.0 });
        let port = self.port(to);
        port.counters.trim += 1;
        let limit = port.config.queue_limit;
        match port.admit(TrafficClass::Trimmed, limit, Queued { frame, trimmed_here: true }) {
            Ok(()) => self.send_soon(ctx.now, to),
            Err(Queued { frame, .. }) => {
                port.counters.trim_drop += 1;
                self.discard(ctx, to, "trim_drop", frame);
            }
        }
    }

    fn discard(&mut self, ctx: &mut Ctx<'_>, at: PortId, cause: &'static str, frame: Frame) {
        self.drops.count(cause);
        self.port(at).counters.drops.count(cause);
        ctx.record(Event::Drop { cause });
        ctx.frames.give(frame);
    }

    /// A frame waits at `port`: an idle port starts to send it.
    fn send_soon(&mut self, now: Instant, port: PortId) {
        if self.attributes.paced {
            if self.port(port).is_idle() {
                self.start_next(now, port);
            }
        } else if self.port(port).waiting() == 1 {
            self.turns.push_back(port);
        }
    }

    fn start_next(&mut self, now: Instant, port: PortId) {
        if let Some(end) = self.port(port).start_next(now) {
            self.departures.push(Reverse((end, port)));
        }
    }

    /// Ends every serialization that is due. The next one at a port starts at
    /// the scheduled end of the one before.
    // spec: TIME-7, SW-3
    fn complete_departures(&mut self, now: Instant) {
        while let Some(Reverse((end, port))) = self.departures.peek().copied()
            && end <= now
        {
            self.departures.pop();
            if let Some(frame) = self.port(port).finish(end) {
                self.sent.push_back(Transmit { port, frame });
            }
            self.start_next(end, port);
        }
    }

    /// Unpaced: a frame of the port whose turn it is.
    // spec: SW-2
    fn take_unpaced(&mut self, now: Instant) -> Option<Transmit> {
        let id = self.turns.pop_front()?;
        let port = self.port(id);
        port.start_next(now)?;
        let frame = port.finish(now)?;
        if port.waiting() > 0 {
            self.turns.push_back(id);
        }
        Some(Transmit { port: id, frame })
    }
}

/// The queue limit for a packet of `role` where others have `limit`.
// spec: DSCP-4
const fn egress_limit(limit: u64, role: Option<Role>) -> u64 {
    match role {
        Some(Role::TrimmableRtx) => limit.saturating_add(limit / 2),
        _ => limit,
    }
}

impl Node for Switch {
    /// What leaves at this instant has left before what arrives at it.
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, port: PortId, frame: Frame) {
        self.complete_departures(ctx.now);
        let counters = &mut self.port(port).counters;
        counters.frames_in += 1;
        counters.bytes_in += wire_bytes(frame.len());
        match self.forward(frame) {
            Ok((to, arrival)) => self.offer(ctx, to, arrival),
            Err((cause, frame)) => self.discard(ctx, port, cause, frame),
        }
    }

    fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        self.complete_departures(ctx.now);
    }

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        self.complete_departures(ctx.now);
        self.sent.pop_front().or_else(|| self.take_unpaced(ctx.now))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.departures.peek().map(|Reverse((end, _))| *end)
    }
}
