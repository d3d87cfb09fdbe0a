//! A world that a test drives by hand: it posts, closes, and plays a peer with
//! hand-made packets.

use core::net::Ipv4Addr;

use mrc_lab::config::NicAttributes;
use mrc_lab::nic::{Access, MemoryRegion, Nic, NicCounters, PostError, QpChoice, WorkRequest};
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::{NodeKind, Scenario, Topology};
use mrc_lab::sim::{InMemory, SimWorld};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{NoTrace, NodeId, QpEvent, QpEventKind};
use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::mac::{MacAddr, MacPair};
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::neth::{NackReason, Neth};
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, Ecn, FrameFormat, Packet};
use mrc_lab::wire::pfc::Pfc;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::{Codepoints, Role};
use mrc_lab::wire::seth::{PathMark, SackSubject, Seth};

use crate::lab::*;
use crate::peer::plain_bth;
use crate::wiretap::{Log, Seen, Wiretap};

/// The QP number of a hand-made sending side.
pub const SENDER_QPN: Qpn = Qpn::masked(77);
/// The QP number of a hand-made receiving side.
pub const RECEIVER_QPN: Qpn = Qpn::masked(99);
/// The entropy value of hand-made packets.
pub const ENTROPY: u16 = 50_123;
/// Payload bytes of hand-made data packets.
pub const PART: usize = 1_000;
/// The address of a NIC that is nobody's peer.
pub const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
/// Bytes of each registered region.
const REGION: usize = 1 << 20;

/// What hand-made packets carry: no part is like another.
static PAYLOAD: [u8; 4 * 1024] = {
    let mut bytes = [0; 4 * 1024];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = (i % 251) as u8 + 1;
        i += 1;
    }
    bytes
};

/// The payload of part `index`.
pub fn part_bytes(index: u32) -> &'static [u8] {
    &PAYLOAD[index as usize..][..PART]
}

pub struct Bench {
    pub world: SimWorld<'static>,
    /// The NIC under test: the one that hand-made packets go to.
    pub node: NodeId,
    /// To send from, at node A.
    pub source: MemoryRegion,
    /// To write to, at node B.
    pub target: MemoryRegion,
    pub format: FrameFormat,
    macs: MacPair,
    ips: Vec<Ipv4Addr>,
    log: Log,
    read: usize,
    events: Vec<(Instant, NodeId, QpEvent)>,
}

impl Bench {
    /// The NIC `node` of two, whose peer is deaf and mute: a test speaks for it.
    pub fn alone(node: NodeId, set: impl Fn(&mut NicAttributes)) -> Self {
        let nothing = || rule(FaultAction::Drop, PacketMatch::default());
        let scenario = back_to_back().with_attributes(set);
        Self { node, ..Self::of(scenario.with_fault(nothing()).with_fault_back(nothing()), node) }
    }

    /// The world of `scenario`, with hand-made packets for node B.
    pub fn pair(scenario: Scenario) -> Self {
        Self::of(scenario, B)
    }

    fn of(scenario: Scenario, node: NodeId) -> Self {
        let topology = Topology::new(&scenario);
        let NodeKind::Nic(config) = &topology.nodes[node.0 as usize].kind else { panic!("a NIC") };
        let (macs, format) = (config.macs, topology.format);
        let trace = Box::leak(Box::new(NoTrace));
        let mut world = SimWorld::new(&topology, scenario.seed, InMemory, trace);
        let log = Log::default();
        for node in (0..topology.nodes.len() as u32).map(NodeId) {
            world.set_tap(node, Box::new(Wiretap { node, format, log: log.clone() }));
        }
        let mut register = |node, byte, access| {
            world.with_nic(node, |nic, ctx| nic.register_memory(ctx, vec![byte; REGION], access))
        };
        let source = register(A, 7, Access::Local);
        let target = register(B, 0, Access::RemoteWrite);
        let ips = scenario.nics.iter().map(|nic| nic.ip).collect();
        let (read, events) = (0, Vec::new());
        Self { world, node, source, target, format, macs, ips, log, read, events }
    }

    pub fn nic(&self) -> &Nic {
        self.world.nic(self.node)
    }

    pub fn nic_ip(&self, node: NodeId) -> Ipv4Addr {
        self.ips[node.0 as usize]
    }

    pub fn counters(&self) -> NicCounters {
        self.counters_of(self.node)
    }

    pub fn counters_of(&self, node: NodeId) -> NicCounters {
        self.world.nic(node).counters().clone()
    }

    pub fn drops(&self, cause: &str) -> u64 {
        self.nic().drops().of(cause)
    }

    /// What the peer has written, `length` bytes from `offset` on.
    pub fn written(&self, offset: usize, length: usize) -> &[u8] {
        &self.world.nic(B).memory(self.target.rkey).expect("registered")[offset..][..length]
    }

    /// Bytes in flight from A to B.
    pub fn in_flight(&self) -> u64 {
        self.world.nic(A).bytes_in_flight(self.ips[1])
    }

    // Time.

    pub fn run_to(&mut self, end: Instant) {
        self.world.run_until(end).expect("memory carries all");
        while let Some(event) = self.world.poll_event() {
            self.events.push(event);
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        self.run_to(self.world.now() + time);
    }

    /// The first instant from now on at which `happened` holds.
    pub fn run_until(&mut self, happened: impl Fn(&Self) -> bool) -> Instant {
        while !happened(self) {
            assert!(self.world.step().expect("memory carries all"), "it never happened");
        }
        self.world.now()
    }

    /// Events of `kind` at `node` so far.
    pub fn events(&mut self, node: NodeId, kind: QpEventKind) -> Vec<(Instant, QpEvent)> {
        self.run_to(self.world.now());
        let chosen = self.events.iter().filter(|(_, at, event)| *at == node && event.kind == kind);
        chosen.map(|(at, _, event)| (*at, *event)).collect()
    }

    // What was sent.

    /// What the NIC under test has sent since the last look.
    pub fn sent(&mut self) -> Vec<Seen> {
        let log = self.log.borrow();
        let news = log[self.read..].iter().filter(|s| s.sent && s.node == self.node);
        let news = news.cloned().collect();
        self.read = log.len();
        news
    }

    /// The same as lines.
    pub fn lines(&mut self) -> Vec<String> {
        self.sent().iter().map(Seen::line).collect()
    }

    /// All that was seen, anywhere.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.borrow().clone()
    }

    // What the host asks.

    /// Posts `length` bytes from A to B and gives the QP's number.
    pub fn post(&mut self, qp: QpChoice, length: u32) -> Qpn {
        let work = self.work(length);
        self.post_work(qp, work).expect("a good request")
    }

    pub fn post_work(&mut self, qp: QpChoice, work: WorkRequest) -> Result<Qpn, PostError> {
        self.world.with_nic(A, |nic, ctx| nic.post_write(ctx, qp, work))
    }

    /// A request for `length` bytes from A to B.
    pub fn work(&self, length: u32) -> WorkRequest {
        WorkRequest {
            wqe_id: 1,
            peer: self.ips[1],
            lkey: self.source.rkey,
            local_va: self.source.va,
            length,
            remote_va: self.target.va,
            rkey: self.target.rkey,
        }
    }

    /// Posts `length` bytes from B to A.
    pub fn post_back(&mut self, length: u32) {
        let work = WorkRequest { peer: self.ips[0], ..self.work(length) };
        let posted = self.world.with_nic(B, |nic, ctx| {
            let source = nic.register_memory(ctx, vec![3; length as usize], Access::Local);
            let work = WorkRequest { lkey: source.rkey, local_va: source.va, ..work };
            nic.post_write(ctx, QpChoice::New, work)
        });
        posted.expect("a good request");
    }

    pub fn close(&mut self, qpn: Qpn) {
        let info = self.world.with_nic(self.node, |nic, ctx| nic.close_qp(ctx, qpn));
        info.expect("it is open");
    }

    /// The number of the receiving side at B, of which there is one.
    pub fn receiving_qpn(&self) -> Qpn {
        let mut sides = self.world.nic(B).qps();
        sides.next().expect("a receiving side").local.qpn
    }

    // What the peer sends.

    /// Lets a frame arrive now.
    pub fn deliver_frame(&mut self, frame: Vec<u8>) {
        let peer = if self.node == A { B } else { A };
        self.world.inject(self.world.now(), port0(peer), port0(self.node), frame);
        self.run_to(self.world.now());
    }

    pub fn deliver(&mut self, packet: &Packet<'_>) {
        let frame = self.frame(packet);
        self.deliver_frame(frame);
    }

    /// The frame of a packet for the NIC under test.
    pub fn frame(&self, packet: &Packet<'_>) -> Vec<u8> {
        let mut frame = Vec::new();
        packet.emit(&self.format, self.macs.reversed(), &mut frame);
        frame
    }

    /// What a packet draws, as lines.
    pub fn answer(&mut self, packet: &Packet<'_>) -> Vec<String> {
        self.answers(packet).iter().map(Seen::line).collect()
    }

    /// What a packet draws within a few nanoseconds.
    pub fn answers(&mut self, packet: &Packet<'_>) -> Vec<Seen> {
        self.deliver(packet);
        self.run_for(Duration::from_ns(8));
        self.sent()
    }

    /// Part `index` of a message of `of` parts from A's hand-made QP, whose
    /// first PSN is 0.
    pub fn part(&self, index: u32, of: u32) -> Packet<'static> {
        let offset = u64::from(index) * PART as u64;
        let reth = Reth {
            va: self.target.va + offset,
            rkey: self.target.rkey,
            dma_length: of * PART as u32,
        };
        let meth = Meth { rqmsn: index as u16, msn: 0 };
        let payload = part_bytes(index);
        Packet {
            source: self.ips[0],
            destination: self.ips[1],
            role: Some(Role::Trimmable),
            dscp: Codepoints::default().trimmable,
            ecn: Ecn::Ect0,
            entropy: ENTROPY,
            bth: Bth {
                opcode: Opcode::write(index == 0, index + 1 == of),
                connect: true,
                ..bth(Opcode::WriteOnly, SENDER_QPN, i64::from(index))
            },
            body: Body::Write { meth, tseth: None, reth, payload },
        }
    }

    fn control(&self, bth: Bth, body: Body<'static>) -> Packet<'static> {
        Packet {
            source: self.ips[1],
            destination: self.ips[0],
            role: Some(Role::Control),
            dscp: Codepoints::default().control,
            ecn: Ecn::NotEct,
            entropy: ENTROPY,
            bth,
            body,
        }
    }

    /// A cumulative ACK for A's QP `qpn`.
    pub fn ack(&self, qpn: Qpn, psn: i64) -> Packet<'static> {
        self.control(bth(Opcode::Ack, qpn, psn), Body::Ack(Aeth { msn: 1 }))
    }

    /// A SACK for A's QP `qpn` that lists `listed`, all within 64 PSNs.
    pub fn sack(&self, qpn: Qpn, cumulative: i64, listed: &[i64]) -> Packet<'static> {
        let base = listed.iter().min().copied().unwrap_or(cumulative + 1);
        let seth = Seth {
            ce_mark: PathMark::None,
            subject: SackSubject::data(listed.last().map_or(0, |psn| psn - cumulative)),
            entropy: ENTROPY,
            source_qp: RECEIVER_QPN,
            cumulative: psn(cumulative),
            max_psn_range: 8,
            sack_offset: (base - cumulative) as i16,
            bitmap: listed.iter().fold(0, |bits, psn| bits | 1 << (psn - base)),
        };
        let body = Body::Sack(seth, CcState::default());
        self.control(bth(Opcode::Sack, qpn, cumulative), body)
    }

    /// A NACK of packet `number` for A's QP `qpn`; `rtx` is the flag of the
    /// packet that drew it.
    pub fn nack(&self, qpn: Qpn, number: i64, reason: NackReason, rtx: bool) -> Packet<'static> {
        let neth = Neth {
            reason,
            entropy: ENTROPY,
            source_qp: RECEIVER_QPN,
            psn: psn(number),
            timestamp: 0,
        };
        let bth = Bth { retransmission: rtx, ..bth(Opcode::Nack, qpn, number) };
        self.control(bth, Body::Nack(neth))
    }
}

/// A PFC frame that pauses `priority` for `quanta` of 512 bit times.
pub fn pause(priority: usize, quanta: u16) -> Vec<u8> {
    pfc_frame(&Pfc::one(priority, quanta))
}

/// One that pauses data and control.
pub fn pause_both(quanta: u16) -> Vec<u8> {
    let mut both = Pfc::default();
    both.quanta[..2].fill(Some(quanta));
    pfc_frame(&both)
}

fn pfc_frame(pfc: &Pfc) -> Vec<u8> {
    let mut frame = Vec::new();
    pfc.emit(MacAddr([0x02, 0, 0, 0, 0, 9]), &mut frame);
    frame
}

pub fn psn(number: i64) -> Psn {
    Psn::masked(number as u64)
}

fn bth(opcode: Opcode, destination_qp: Qpn, number: i64) -> Bth {
    plain_bth(opcode, destination_qp, psn(number))
}

/// Changes to hand-made packets.
pub trait Edit: Sized {
    fn bth(self, edit: impl FnOnce(&mut Bth)) -> Self;
    fn reth(self, edit: impl FnOnce(&mut Reth)) -> Self;
    fn seth(self, edit: impl FnOnce(&mut Seth)) -> Self;
    fn trimmed(self, role: Role) -> Self;
    fn from(self, source: Ipv4Addr) -> Self;

    /// With the ACK-request flag.
    fn asking(self) -> Self {
        self.bth(|bth| bth.ack_request = true)
    }

    /// With the flags of a retransmission but for the ACK request.
    fn again(self) -> Self {
        self.bth(|bth| bth.retransmission = true)
    }

    /// To a receiving side whose number is known.
    fn to(self, qpn: Qpn) -> Self {
        self.bth(|bth| (bth.destination_qp, bth.connect) = (qpn, false))
    }
}

impl Edit for Packet<'_> {
    fn bth(mut self, edit: impl FnOnce(&mut Bth)) -> Self {
        edit(&mut self.bth);
        self
    }

    fn reth(mut self, edit: impl FnOnce(&mut Reth)) -> Self {
        if let Body::Write { reth, .. } = &mut self.body {
            edit(reth);
        }
        self
    }

    fn seth(mut self, edit: impl FnOnce(&mut Seth)) -> Self {
        if let Body::Sack(seth, _) = &mut self.body {
            edit(seth);
        }
        self
    }

    fn trimmed(mut self, role: Role) -> Self {
        if let Body::Write { meth, .. } = self.body {
            self.body = Body::Trimmed { meth };
            self.role = Some(role);
        }
        self
    }

    fn from(mut self, source: Ipv4Addr) -> Self {
        self.source = source;
        self
    }
}
