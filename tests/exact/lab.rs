//! Small labs under the exact clock.

use core::net::Ipv4Addr;

use mrc_lab::config::{NicAttributes, Profile, SwitchAttributes};
use mrc_lab::nic::{Access, NicCounters, QpChoice, WorkRequest};
use mrc_lab::node::link::{FaultAction, FaultRule, PacketMatch};
use mrc_lab::node::{Drops, PortId};
use mrc_lab::scenario::{End, Flow, LinkSpec, NicSpec, Scenario, SwitchSpec, Topology};
use mrc_lab::sim::{InMemory, RunEnd, SimWorld, run_workload};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{Direction, MemoryTrace, NoTrace, NodeId, PacketEvent, QpEventKind};
use mrc_lab::wire::opcode::Kind;

use crate::wiretap::{Log, Seen, Wiretap};

pub const A: NodeId = NodeId(0);
pub const B: NodeId = NodeId(1);
/// Serialization of a full packet at 400 Gbps.
pub const FULL: u64 = 83_480;
/// Serialization of an ACK and of a SACK at 400 Gbps.
pub const ACK: u64 = 1_240;
pub const SACK: u64 = 1_880;
/// From the doorbell to the transmit process.
pub const DOORBELL: u64 = 15_000;
/// A read request and a full payload on the PCIe link.
pub const REQUEST: u64 = 1_555;
pub const COMPLETION: u64 = 69_290;
/// When the first full payload after a doorbell at 0 has arrived from the host.
pub const FETCHED: u64 = DOORBELL + REQUEST + COMPLETION;
/// The delay of a NIC's link.
pub const DELAY: u64 = 100_000;

pub fn ps(ps: u64) -> Instant {
    Instant::from_ps(ps)
}

pub fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

/// Two NICs, a and b, joined by one link; nothing is sent yet.
pub fn back_to_back() -> Scenario {
    let nics = ["a", "b"].iter().zip(1..).map(|(name, last)| nic(name, last)).collect();
    Scenario {
        name: "back-to-back".into(),
        seed: 1,
        profile: Profile::Reference,
        nics,
        switches: Vec::new(),
        links: vec![link(0, 1)],
        flows: Vec::new(),
        execs: Vec::new(),
    }
}

/// Two NICs with a switch between them; nothing is sent yet.
pub fn over_a_switch() -> Scenario {
    let attributes = SwitchAttributes::default();
    Scenario {
        name: "two-hosts".into(),
        switches: vec![SwitchSpec { name: "s".into(), attributes }],
        links: vec![link(0, 2), link(2, 1)],
        ..back_to_back()
    }
}

/// A NIC whose window is fixed: most tests are about what else there is. Those
/// of congestion control say [`Tweak::with_nscc`].
// spec: CC-10
pub fn nic(name: &str, last: u8) -> NicSpec {
    let ip = Ipv4Addr::new(10, 0, 0, last);
    let mut attributes = NicAttributes::default();
    attributes.congestion.nscc_enable = false;
    NicSpec { name: name.into(), ip, attributes }
}

pub fn link(a: usize, b: usize) -> LinkSpec {
    LinkSpec {
        ends: [a, b],
        rate: None,
        delay: None,
        queue_limit: None,
        mtu: 4200,
        faults: [Vec::new(), Vec::new()],
    }
}

/// `messages` messages of `bytes` from a to b, each on its own QP.
pub fn flow(bytes: u32, messages: u32) -> Flow {
    let (depth, start) = (messages.max(1), Duration::ZERO);
    Flow { from: 0, to: 1, bytes, messages, one_qp: false, depth, start }
}

/// What happens to the packets that `matches` fits.
pub fn rule(action: FaultAction, matches: PacketMatch) -> FaultRule {
    FaultRule { matches, action }
}

/// The `nth` packet of `kind` is lost.
pub fn lose(kind: Kind, nth: u64) -> FaultRule {
    let matches = PacketMatch { kind: Some(kind), nth: Some(nth), ..PacketMatch::default() };
    rule(FaultAction::Drop, matches)
}

pub trait Tweak {
    fn with_flow(self, flow: Flow) -> Self;
    fn with_attributes(self, set: impl Fn(&mut NicAttributes)) -> Self;
    /// With windows that NSCC moves.
    fn with_nscc(self) -> Self
    where
        Self: Sized,
    {
        self.with_attributes(|a| a.congestion.nscc_enable = true)
    }
    /// A fault on the way from a: the first link's first end.
    fn with_fault(self, rule: FaultRule) -> Self;
    /// A fault on the way from b: the last link's second end.
    fn with_fault_back(self, rule: FaultRule) -> Self;
}

impl Tweak for Scenario {
    fn with_flow(mut self, flow: Flow) -> Self {
        self.flows.push(flow);
        self
    }

    fn with_attributes(mut self, set: impl Fn(&mut NicAttributes)) -> Self {
        self.nics.iter_mut().for_each(|nic| set(&mut nic.attributes));
        self
    }

    fn with_fault(mut self, rule: FaultRule) -> Self {
        self.links[0].faults[0].push(rule);
        self
    }

    fn with_fault_back(mut self, rule: FaultRule) -> Self {
        self.links.last_mut().expect("a link").faults[1].push(rule);
        self
    }
}

/// A world whose flows have been run.
pub struct Ran {
    pub trace: MemoryTrace,
    pub end: RunEnd,
    /// Of each NIC, and what follows too.
    pub counters: Vec<NicCounters>,
    pub drops: Vec<Drops>,
    /// What each NIC still holds.
    pub holdings: Vec<[usize; 4]>,
    /// Every frame at every node.
    pub seen: Vec<Seen>,
    /// Whether each flow's bytes arrived as they were sent.
    pub equal: Vec<bool>,
}

impl Ran {
    /// When the first event of `kind` happened at `node`.
    pub fn event_at(&self, node: NodeId, kind: QpEventKind) -> Instant {
        self.events(node, kind).next().unwrap_or_else(|| panic!("no {kind:?} at {node:?}"))
    }

    pub fn events(&self, node: NodeId, kind: QpEventKind) -> impl Iterator<Item = Instant> + '_ {
        self.trace
            .qp_events()
            .filter(move |(_, at, event)| *at == node && event.kind == kind)
            .map(|(at, ..)| at)
    }

    pub fn packets(
        &self,
        node: NodeId,
        direction: Direction,
        kind: Kind,
    ) -> impl Iterator<Item = (Instant, PacketEvent)> + '_ {
        self.trace
            .packets()
            .filter(move |(_, at, p)| *at == node && p.direction == direction && p.kind == kind)
            .map(|(at, _, packet)| (at, packet))
    }

    /// What `node` sent, in order.
    pub fn sent(&self, node: NodeId) -> impl Iterator<Item = &Seen> {
        self.seen.iter().filter(move |seen| seen.sent && seen.node == node)
    }

    /// The data packets that `node` sent, in order.
    pub fn data_sent(&self, node: NodeId) -> impl Iterator<Item = &Seen> {
        self.sent(node).filter(|seen| seen.is_data())
    }

    pub fn is_complete(&self) -> bool {
        self.end.workload.results().all(|result| result.finished.is_some())
            && self.equal.iter().all(|equal| *equal)
    }
}

/// Runs the scenario's flows, then lets everything else happen up to `limit`.
pub fn run_to(scenario: &Scenario, limit: Instant) -> Ran {
    let topology = Topology::new(scenario);
    let mut trace = MemoryTrace::default();
    let mut world = SimWorld::new(&topology, scenario.seed, InMemory, &mut trace);
    let log = Log::default();
    for node in (0..topology.nodes.len() as u32).map(NodeId) {
        let tap = Wiretap { node, format: topology.format, log: log.clone() };
        world.set_tap(node, Box::new(tap));
    }
    let end = run_workload(&mut world, scenario, limit, |_, _| true).expect("memory carries all");
    world.run_until(limit).expect("memory carries all");
    let equal = end.memory.iter().zip(&scenario.flows).map(|(memory, flow)| {
        let bytes = |node, key| world.nic(NodeId(node as u32)).memory(key).map(<[u8]>::to_vec);
        bytes(flow.from, memory.source.rkey) == bytes(flow.to, memory.destination.rkey)
    });
    let equal = equal.collect();
    let nics = (0..scenario.nics.len() as u32).map(|node| world.nic(NodeId(node)));
    let counters = nics.clone().map(|nic| nic.counters().clone()).collect();
    let drops = nics.clone().map(|nic| nic.drops().clone()).collect();
    let holdings = nics.map(|nic| nic.holdings()).collect();
    drop(world);
    let seen = log.take();
    Ran { trace, end, counters, drops, holdings, seen, equal }
}

/// Posts the first flow's first message and gives the first instant at which
/// `happened` holds.
pub fn first_instant(
    scenario: &Scenario,
    mut happened: impl FnMut(&SimWorld<'_>) -> bool,
) -> Instant {
    let topology = Topology::new(scenario);
    let mut trace = NoTrace;
    let mut world = SimWorld::new(&topology, scenario.seed, InMemory, &mut trace);
    let length = scenario.flows[0].bytes;
    let mut register = |node, access| {
        let bytes = vec![7; length as usize];
        world.with_nic(node, |nic, ctx| nic.register_memory(ctx, bytes, access))
    };
    let [source, target] = [register(A, Access::Local), register(B, Access::RemoteWrite)];
    let work = WorkRequest {
        wqe_id: 0,
        peer: scenario.nics[1].ip,
        lkey: source.rkey,
        local_va: source.va,
        length,
        remote_va: target.va,
        rkey: target.rkey,
    };
    world.with_nic(A, |nic, ctx| nic.post_write(ctx, QpChoice::New, work)).expect("a good request");
    while !happened(&world) {
        assert!(world.step().expect("memory carries all"), "it never happened");
    }
    world.now()
}

/// Runs the scenario to the end of a protocol second.
pub fn run(scenario: &Scenario) -> Ran {
    run_to(scenario, us(1_000_000))
}

/// The end of a link at node `node`'s first port.
pub fn port0(node: NodeId) -> End {
    End { node, port: PortId(0) }
}
