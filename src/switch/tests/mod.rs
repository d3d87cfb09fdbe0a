//! The switch on real frames.

mod buffer;
mod counters;
mod ecn;
mod forwarding;
mod paths;
mod pfc;
mod queues;
mod trimming;

use core::net::Ipv4Addr;

use super::*;
use crate::node::FramePool;
use crate::rng::Rng;
use crate::time::Duration;
use crate::trace::{Event, MemoryTrace, NodeId};
use crate::wire::aeth::Aeth;
use crate::wire::bth::Bth;
use crate::wire::checksum;
use crate::wire::frame::set_dscp;
use crate::wire::meth::Meth;
use crate::wire::opcode::Opcode;
use crate::wire::packet::{Body, Ecn, FrameFormat, Packet};
use crate::wire::psn::Psn;
use crate::wire::qpn::{Qpn, RKey};
use crate::wire::reth::Reth;

/// Faces a host.
const DOWN: PortId = PortId(0);
/// Faces another switch.
const UP: PortId = PortId(1);
/// Two more uplinks, an equal-cost set.
const LEFT: PortId = PortId(2);
const RIGHT: PortId = PortId(3);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BEHIND_UP: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const BEHIND_BOTH: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// A full packet: 4096 bytes of payload.
const FULL: usize = 4_096;
/// What it counts for in a queue, and how long it takes at 400 Gbps.
const FULL_IP: u64 = 4_156;
const FULL_TIME: Duration = Duration::from_ps(83_480);

fn at(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

fn mac(kind: u8, port: u16) -> MacAddr {
    MacAddr([2, 0, 0, 0, kind, port as u8])
}

fn config(queue_limit: u64) -> SwitchConfig {
    let ports = (0..4).map(|port| SwitchPort {
        mac: mac(1, port),
        neighbour: Neighbour { mrc: mac(2, port), host: mac(3, port) },
        rate: Rate::gbps(400),
        faces_nic: port == DOWN.0,
        delay: Duration::from_ns(500),
        queue_limit: Some(queue_limit),
    });
    let route = |prefix, length, ports: &[PortId]| Route { prefix, length, ports: ports.to_vec() };
    SwitchConfig {
        ports: ports.collect(),
        routes: vec![
            route(HOST, 32, &[DOWN]),
            route(BEHIND_UP, 24, &[UP]),
            route(BEHIND_BOTH, 24, &[LEFT, RIGHT]),
        ],
        attributes: SwitchAttributes::default(),
    }
}

/// A switch with what its driver would hold.
struct Bench {
    switch: Switch,
    rng: Rng,
    frames: FramePool,
    trace: MemoryTrace,
    /// What has left, with the instant of the call that gave it out.
    sent: Vec<(Instant, PortId, Frame)>,
}

impl Bench {
    fn new(config: SwitchConfig) -> Self {
        Self {
            switch: Switch::new(config),
            rng: Rng::derive(1, "switch", 0),
            frames: FramePool::default(),
            trace: MemoryTrace::default(),
            sent: Vec::new(),
        }
    }

    fn call(&mut self, now: Instant, f: impl FnOnce(&mut Switch, &mut Ctx<'_>)) {
        let (rng, frames, trace) = (&mut self.rng, &mut self.frames, &mut self.trace);
        let mut ctx = Ctx { now, node: NodeId(3), rng, frames, trace };
        f(&mut self.switch, &mut ctx);
    }

    /// `frame` arrives; nothing is taken out.
    fn offer(&mut self, now: Instant, frame: Frame) {
        self.call(now, |switch, ctx| switch.handle_frame(ctx, UP, frame));
    }

    /// `frame` arrives at `port` and what leaves at that instant is taken out.
    fn arrive_at(&mut self, port: PortId, now: Instant, frame: Frame) {
        self.call(now, |switch, ctx| switch.handle_frame(ctx, port, frame));
        self.take_sent(now);
    }

    fn take_sent(&mut self, now: Instant) {
        let mut sent = Vec::new();
        self.call(now, |switch, ctx| {
            while let Some(Transmit { port, frame }) = switch.poll_transmit(ctx) {
                sent.push((now, port, frame));
            }
        });
        self.sent.append(&mut sent);
    }

    /// `frame` arrives and what leaves at that instant is taken out.
    fn arrive(&mut self, now: Instant, frame: Frame) {
        self.offer(now, frame);
        self.take_sent(now);
    }

    /// Every deadline up to `end` is met.
    fn run_until(&mut self, end: Instant) {
        while let Some(due) = self.switch.poll_timeout().filter(|due| *due <= end) {
            self.call(due, |switch, ctx| switch.handle_timeout(ctx));
            self.take_sent(due);
        }
    }

    fn run(&mut self) {
        self.run_until(Instant::MAX);
    }

    /// The packets that have left, by role.
    fn roles(&self) -> Vec<Option<Role>> {
        self.sent.iter().map(|(.., frame)| parse(frame).role).collect()
    }

    fn departures(&self) -> Vec<(u64, PortId)> {
        self.sent.iter().map(|(at, port, _)| (at.as_ps(), *port)).collect()
    }

    fn events(&self) -> Vec<Event> {
        self.trace.entries.iter().map(|(_, _, event)| event.clone()).collect()
    }
}

fn parse(frame: &Frame) -> Packet<'_> {
    Packet::parse(frame, &FrameFormat::default()).unwrap()
}

fn packet(role: Role, destination: Ipv4Addr, opcode: Opcode, body: Body<'_>) -> Packet<'_> {
    Packet {
        source: Ipv4Addr::new(10, 0, 0, 1),
        destination,
        role: Some(role),
        dscp: 0,
        ecn: Ecn::Ect0,
        entropy: 1_000,
        bth: Bth {
            opcode,
            destination_qp: Qpn::masked(0x2A),
            ack_request: false,
            retransmission: role == Role::TrimmableRtx,
            timestamp_present: false,
            connect: false,
            psn: Psn::masked(7),
        },
        body,
    }
}

fn frame_of(packet: &Packet<'_>, udp_port: u16) -> Frame {
    let mut frame = Frame::new();
    let format = FrameFormat { udp_port, ..FrameFormat::default() };
    packet.emit(&format, MacPair::default(), &mut frame);
    frame
}

fn data_with<'a>(role: Role, destination: Ipv4Addr, payload: &'a [u8]) -> Packet<'a> {
    let body = Body::Write {
        meth: Meth { rqmsn: 0, msn: 9 },
        tseth: None,
        reth: Reth { va: 0, rkey: RKey(1), dma_length: payload.len() as u32 },
        payload,
    };
    packet(role, destination, Opcode::WriteOnly, body)
}

/// A data packet of `datagram` bytes without its Ethernet header, with this
/// codepoint.
fn datagram(datagram: usize, dscp: u8, destination: Ipv4Addr) -> Frame {
    let payload = vec![0; datagram - 60];
    let mut frame = frame_of(&data_with(Role::NoTrim, destination, &payload), 4_791);
    set_dscp(&mut frame, dscp).unwrap();
    frame
}

/// A switch without the UET policy and trimming, `set` applied.
fn plain(set: impl FnOnce(&mut SwitchAttributes)) -> Bench {
    let mut config = config(0);
    config.ports.iter_mut().for_each(|port| port.queue_limit = None);
    config.attributes.uet_policy_enabled = false;
    config.attributes.trimming_enabled = false;
    config.attributes.ecn.enabled = false;
    set(&mut config.attributes);
    Bench::new(config)
}

/// A full data packet.
fn data(role: Role, destination: Ipv4Addr) -> Frame {
    frame_of(&data_with(role, destination, &[0x5A; FULL]), 4_791)
}

fn ack(destination: Ipv4Addr) -> Frame {
    let body = Body::Ack(Aeth { msn: 1 });
    frame_of(&packet(Role::Control, destination, Opcode::Ack, body), 4_791)
}

fn trimmed(destination: Ipv4Addr) -> Frame {
    let body = Body::Trimmed { meth: Meth { rqmsn: 0, msn: 9 } };
    frame_of(&packet(Role::Trimmed, destination, Opcode::WriteOnly, body), 4_791)
}

/// The same as [`data`], to another UDP port.
fn foreign(role: Role, destination: Ipv4Addr) -> Frame {
    frame_of(&data_with(role, destination, &[0x5A; FULL]), 5_201)
}

/// An IPv4 datagram of 28 bytes that is not UDP.
fn ping(destination: Ipv4Addr) -> Frame {
    let mut frame = ack(destination);
    frame.truncate(14 + 28);
    frame[15] = 0;
    frame[17] = 28;
    frame[23] = 1;
    frame[24..26].fill(0);
    let checksum = checksum::ipv4(&frame[14..34]);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    frame
}
