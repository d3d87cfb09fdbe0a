//! A stage on which a test plays the hosts, listens on the wires and puts
//! frames of its own on them.

use core::net::Ipv4Addr;

use mrc_lab::nic::{Access, MemoryRegion, QpChoice, QpInfo, QpSide, WorkRequest};
use mrc_lab::node::PortId;
use mrc_lab::scenario::{End, Scenario, Topology};
use mrc_lab::sim::{InMemory, SimWorld};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{NodeId, QpEvent, QpEventKind, TraceSink};
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, Ecn, FrameFormat, MacPair, Packet};
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::role::Role;

use crate::lab::*;
use crate::wiretap::{Log, Wiretap};

/// The third host of [`three_hosts`] and the switch between all of them.
pub const C: NodeId = NodeId(2);
pub const SWITCH: NodeId = NodeId(3);

/// Three NICs, a, b and c, around one switch; port n of the switch leads to NIC n.
pub fn three_hosts() -> Scenario {
    let two = over_a_switch();
    let mut nics = two.nics;
    nics.push(nic("c", 3));
    Scenario {
        name: "three-hosts".into(),
        nics,
        links: (0..3).map(|n| link(n, 3)).collect(),
        ..two
    }
}

/// A message's bytes, where they are read from and where they go.
#[derive(Clone)]
pub struct Message {
    pub from: NodeId,
    pub to: NodeId,
    pub data: Vec<u8>,
    pub source: MemoryRegion,
    pub target: MemoryRegion,
}

/// A world whose hosts the test plays.
pub struct Stage<'t> {
    pub world: SimWorld<'t>,
    pub format: FrameFormat,
    pub events: Vec<(Instant, NodeId, QpEvent)>,
    ips: Vec<Ipv4Addr>,
    posted: u64,
}

impl<'t> Stage<'t> {
    pub fn new(scenario: &Scenario, trace: &'t mut dyn TraceSink) -> Self {
        let topology = Topology::new(scenario);
        Self {
            world: SimWorld::new(&topology, scenario.seed, InMemory, trace),
            format: topology.format,
            events: Vec::new(),
            ips: scenario.nics.iter().map(|nic| nic.ip).collect(),
            posted: 0,
        }
    }

    pub fn ip(&self, node: NodeId) -> Ipv4Addr {
        self.ips[node.0 as usize]
    }

    /// Logs the frames at this node's ports alone, from now on.
    pub fn listen(&mut self, node: NodeId) -> Wiretap {
        let tap = Wiretap { node, format: self.format, log: Log::default() };
        self.world.set_tap(node, Box::new(tap.clone()));
        tap
    }

    pub fn register(&mut self, node: NodeId, bytes: Vec<u8>, access: Access) -> MemoryRegion {
        self.world.with_nic(node, |nic, ctx| nic.register_memory(ctx, bytes, access))
    }

    /// A message of `bytes` bytes, no two neighbours of which are equal.
    pub fn message(&mut self, from: NodeId, to: NodeId, bytes: usize) -> Message {
        let data: Vec<u8> = (0..bytes).map(|n| (n % 251) as u8 + 1).collect();
        let source = self.register(from, data.clone(), Access::Local);
        let target = self.register(to, vec![0; bytes], Access::RemoteWrite);
        Message { from, to, data, source, target }
    }

    /// Posts the message; gives its QP and the number of its work request.
    pub fn post(&mut self, qp: QpChoice, message: &Message) -> (Qpn, u64) {
        let wqe_id = self.posted;
        self.posted += 1;
        let work = WorkRequest {
            wqe_id,
            peer: self.ip(message.to),
            lkey: message.source.rkey,
            local_va: message.source.va,
            length: message.data.len() as u32,
            remote_va: message.target.va,
            rkey: message.target.rkey,
        };
        let posted = self.world.with_nic(message.from, |nic, ctx| nic.post_write(ctx, qp, work));
        (posted.expect("a good request"), wqe_id)
    }

    /// Posts the message on a QP of its own and waits until it is complete.
    pub fn deliver(&mut self, message: &Message) -> Qpn {
        let (qpn, wqe_id) = self.post(QpChoice::New, message);
        self.step_until(|stage| stage.is_complete(message.from, wqe_id));
        qpn
    }

    /// Lets things happen until `happened`.
    pub fn step_until(&mut self, mut happened: impl FnMut(&Self) -> bool) {
        while !happened(self) {
            assert!(self.step(), "it never happened");
        }
    }

    pub fn step(&mut self) -> bool {
        let stepped = self.world.step().expect("memory carries all");
        self.take_events();
        stepped
    }

    /// Lets everything happen that happens within `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.world.run_until(self.world.now() + time).expect("memory carries all");
        self.take_events();
    }

    fn take_events(&mut self) {
        while let Some(event) = self.world.poll_event() {
            self.events.push(event);
        }
    }

    pub fn close(&mut self, node: NodeId, qpn: Qpn) {
        let closed = self.world.with_nic(node, |nic, ctx| nic.close_qp(ctx, qpn));
        assert!(closed.is_some(), "there is a QP {qpn}");
    }

    pub fn is_complete(&self, node: NodeId, wqe_id: u64) -> bool {
        self.events.iter().any(|(_, at, event)| {
            *at == node && event.kind == QpEventKind::WqeComplete && event.wqe_id == Some(wqe_id)
        })
    }

    /// Whether the message's bytes are all where they belong.
    pub fn is_placed(&self, message: &Message) -> bool {
        self.world.nic(message.to).memory(message.target.rkey) == Some(&message.data[..])
    }

    /// The first side of a QP of this kind at `node`.
    pub fn side(&self, node: NodeId, side: QpSide) -> Option<QpInfo> {
        self.world.nic(node).qps().find(|info| info.side == side)
    }

    /// What `node` has dropped for `cause`.
    pub fn drops(&self, node: NodeId, cause: &str) -> u64 {
        self.world.nic(node).drops().of(cause)
    }

    /// Lets `frame` arrive at `to` now, as if it came from `from`'s port 0.
    pub fn inject(&mut self, from: NodeId, to: End, frame: Vec<u8>) {
        self.world.inject(self.world.now(), port0(from), to, frame);
    }

    /// Lets c send `frame` on its link to the switch.
    pub fn inject_by_c(&mut self, frame: Vec<u8>) {
        self.inject(C, End { node: SWITCH, port: PortId(2) }, frame);
    }

    /// A frame as a NIC would send it, whoever sends it.
    pub fn forge(&self, source: Ipv4Addr, to: NodeId, bth: Bth, body: Body<'_>) -> Vec<u8> {
        let role = match (bth.opcode.is_data(), body) {
            (_, Body::Trimmed { .. }) => Role::Trimmed,
            (true, _) => Role::Trimmable,
            (false, _) => Role::Control,
        };
        let packet = Packet {
            source,
            destination: self.ip(to),
            role: Some(role),
            dscp: self.format.codepoints.dscp(role),
            ecn: Ecn::NotEct,
            entropy: 50_000,
            bth,
            body,
        };
        let mut frame = Vec::new();
        packet.emit(&self.format, MacPair::default(), &mut frame);
        frame
    }
}

/// A BTH without flags.
pub fn plain_bth(opcode: Opcode, destination_qp: Qpn, psn: Psn) -> Bth {
    Bth {
        opcode,
        destination_qp,
        ack_request: false,
        retransmission: false,
        timestamp_present: false,
        connect: false,
        psn,
    }
}
