//! Many small labs, each drawn from a seed: first everything goes wrong, then
//! the links heal, and everything must have been done right.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use mrc_lab::config::RttTimestampMode;
use mrc_lab::nic::{Access, MemoryRegion, QpChoice, WorkRequest};
use mrc_lab::node::link::{Bottleneck, FaultAction, FaultRule, PacketMatch, Shape};
use mrc_lab::node::{FrameTap, PortId, TapDirection};
use mrc_lab::rng::Rng;
use mrc_lab::scenario::{Flow, LinkSpec, Scenario, SwitchSpec, Topology};
use mrc_lab::sim::{InMemory, SimWorld};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{Direction, Event, NodeId, TraceSink};
use mrc_lab::units::Rate;
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::role::Role;
use mrc_lab::workload::{Action, Workload, flow_data};

use crate::lab::*;

/// When everything must be over: the links have long healed.
const LIMIT: Instant = Instant::from_ps(60_000_000_000_000);
/// More things than happen in a run that makes progress.
const STEPS: u64 = 3_000_000;
/// Bytes around each message that nobody may write to.
const GAP: usize = 64;
const GUARD: u8 = 0xa5;

/// Draws the choices that make up a scenario.
struct Draw(Rng);

impl Draw {
    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.0.below(values.len() as u64) as usize].clone()
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    fn scenario(&mut self, seed: u64) -> Scenario {
        let mss = self.one_of(&[256, 512, 1_000, 1_024, 2_048, 4_096]);
        let mut scenario = self.topology();
        scenario.seed = seed;
        scenario.name = format!("swarm {seed}");
        let (icrc, first) = (self.chance(0.5), self.between(0, 0xff_ffff));
        let near_wrap = 0xff_ffff - self.between(0, 300);
        let first = self.one_of(&[None, Some(0), Some(first), Some(near_wrap)]);
        // One for all: a sender with the wider window is told at once to send again
        // what does not fit, and crowds out what does.
        let range = self.one_of(&[1, 7, 64, 300, 1_024, 4_096]);
        for nic in &mut scenario.nics {
            let a = &mut nic.attributes;
            a.icrc = icrc;
            a.initial_psn = first.map(Psn::masked);
            a.mss = mss;
            a.max_psn_range = range;
            a.sack_loss_min_retx_pkts = self.one_of(&[0, 3, 32, 512]);
            a.sack_gap_recovery_gate = self.chance(0.5);
            a.trimming_enabled = self.chance(0.75);
            a.use_distinct_dscp_for_retransmits = self.chance(0.75);
            a.initial_ack_timeout = Duration::from_us(self.one_of(&[20, 50, 150, 700]));
            a.linear_retry_count = self.one_of(&[0, 2, 7]);
            a.fixed_rexmit_time_enable = self.chance(0.2);
            a.entropy_mask_bits = self.one_of(&[0, 2, 7]);
            a.config_base_rtt = Duration::from_us(self.one_of(&[1, 6, 20]));
            let timestamps = [RttTimestampMode::LocalDatabase, RttTimestampMode::WireTimestamp];
            a.congestion.nscc_enable = self.chance(0.75);
            a.rtt_timestamp_mode = self.one_of(&timestamps);
        }
        for switch in &mut scenario.switches {
            switch.attributes.trimming_enabled = self.chance(0.75);
        }
        if !trims_everywhere(&scenario) {
            // Packets of a burst that are dropped time out together. With doubling
            // timers and a queue's worth of progress each time that takes for ever.
            scenario.nics.iter_mut().for_each(|n| n.attributes.fixed_rexmit_time_enable = true);
        }
        self.shape_links(&mut scenario, mss);
        self.break_links(&mut scenario, icrc);
        scenario.flows = (0..self.between(1, 4)).map(|_| self.flow(scenario.nics.len())).collect();
        scenario
    }

    /// Back to back, around one switch, or on two with parallel links between.
    fn topology(&mut self) -> Scenario {
        let switches = self.between(0, 2) as usize;
        let nics = if switches == 0 { 2 } else { self.between(2, 4) as usize };
        let name = |n: usize| char::from(b'a' + n as u8).to_string();
        let spec = |n| SwitchSpec { name: format!("s{n}"), attributes: Default::default() };
        let mut links: Vec<LinkSpec> = match switches {
            0 => vec![link(0, 1)],
            _ => (0..nics).map(|n| link(n, nics + n % switches)).collect(),
        };
        if switches == 2 {
            links.extend((0..self.between(1, 4)).map(|_| link(nics, nics + 1)));
        }
        Scenario {
            nics: (0..nics).map(|n| nic(&name(n), n as u8 + 1)).collect(),
            switches: (0..switches).map(spec).collect(),
            links,
            ..back_to_back()
        }
    }

    fn shape_links(&mut self, scenario: &mut Scenario, mss: u32) {
        let packet = u64::from(mss) + 68;
        for link in &mut scenario.links {
            link.rate = self.one_of(&[None, Some(Rate::gbps(100)), Some(Rate::gbps(25))]);
            link.delay = self.one_of(&[None, Some(Duration::ZERO), Some(Duration::from_us(2))]);
            link.queue_limit =
                self.one_of(&[None, Some(packet), Some(4 * packet), Some(20 * packet)]);
        }
    }

    fn break_links(&mut self, scenario: &mut Scenario, icrc: bool) {
        let hosts = scenario.nics.len();
        let heals = us(self.between(0, 1_000));
        for link in &mut scenario.links {
            for (ends, rules) in [(0, 1), (1, 0)].into_iter().zip(&mut link.faults) {
                let may_corrupt = icrc && link.ends[ends.1] < hosts;
                for _ in 0..self.between(0, 3) {
                    rules.push(self.rule(heals, may_corrupt));
                }
            }
        }
    }

    /// Corruption spares trimmed packets, which have no ICRC, and packets that
    /// a switch may still trim.
    fn rule(&mut self, heals: Instant, may_corrupt: bool) -> FaultRule {
        let hold = FaultAction::Hold(Duration::from_ns(self.between(1, 200_000)));
        let trim = FaultAction::Trim { last_hop: self.chance(0.5) };
        let shape = FaultAction::Shape(self.shape());
        let mut actions =
            vec![FaultAction::Drop, FaultAction::Duplicate, hold, trim, shape, FaultAction::Down];
        if may_corrupt {
            actions.push(FaultAction::Corrupt { bit: None });
        }
        let action = self.one_of(&actions);
        let kinds =
            [None, None, Some(Kind::Write), Some(Kind::Ack), Some(Kind::Sack), Some(Kind::Nack)];
        let roles = [Role::NoTrim, Role::Trimmable, Role::TrimmableRtx, Role::Control];
        let corrupts = matches!(action, FaultAction::Corrupt { .. });
        let matches = PacketMatch {
            kind: if corrupts { None } else { self.one_of(&kinds) },
            role: corrupts.then(|| self.one_of(&roles)),
            until: Some(heals),
            probability: self.one_of(&[0.005, 0.02, 0.1, 0.5, 1.0]),
            ..PacketMatch::default()
        };
        rule(action, matches)
    }

    fn shape(&mut self) -> Shape {
        let rate = self.one_of(&[None, Some(Rate::gbps(10)), Some(Rate::gbps(100))]);
        let queue_limit = self.one_of(&[10_000, 250_000]);
        let time = Duration::from_ns;
        Shape {
            bottleneck: rate.map(|rate| Bottleneck { rate, queue_limit }),
            delay: time(self.between(0, 20_000)),
            jitter: time(self.between(0, 5_000)),
        }
    }

    fn flow(&mut self, nics: usize) -> Flow {
        let from = self.between(0, nics as u64 - 1) as usize;
        let to = (from + self.between(1, nics as u64 - 1) as usize) % nics;
        let bytes = self.one_of(&[0, 1, 4_096, 20_000, 100_000, 300_000]);
        let most = if bytes > 50_000 { 2 } else { 8 };
        let messages = self.between(1, most) as u32;
        Flow {
            from,
            to,
            bytes: self.between(0, bytes) as u32,
            messages,
            one_qp: self.chance(0.5),
            depth: self.between(1, u64::from(messages)) as u32,
            start: Duration::ZERO,
        }
    }
}

/// Whether packets that find a queue full are trimmed and asked for again.
fn trims_everywhere(scenario: &Scenario) -> bool {
    scenario.nics.iter().all(|nic| nic.attributes.trimming_enabled)
        && scenario.switches.iter().all(|switch| switch.attributes.trimming_enabled)
}

/// What happened, as one number and a few sums.
#[derive(Default, PartialEq, Eq, Debug)]
struct Ledger {
    hash: u64,
    lost: u64,
    copied: u64,
    first_sendings: u64,
    /// How often things happened that ought to happen in a run of many labs.
    seen: Seen,
}

/// Faults by kind, trims of switches, retransmissions by cause.
#[derive(Default, PartialEq, Eq, Debug)]
struct Seen(BTreeMap<String, u64>);

impl Seen {
    fn count(&mut self, what: impl Into<String>) {
        *self.0.entry(what.into()).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what.clone()).or_default() += count;
        }
    }
}

impl Ledger {
    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
}

impl TraceSink for Ledger {
    fn record(&mut self, at: Instant, NodeId(node): NodeId, event: &Event) {
        self.mix(at.as_ps());
        self.mix(node.into());
        if let Event::Packet(packet) = event {
            let new = packet.direction == Direction::Tx && packet.kind == Kind::Write;
            self.first_sendings += u64::from(new);
            packet.cause.iter().for_each(|cause| self.seen.count(cause.name()));
            self.mix(u64::from(packet.psn.value()) << 32 | u64::from(packet.wire_bytes));
            self.mix(u64::from(packet.entropy) << 24 | u64::from(packet.remote.qpn.value()));
            return;
        }
        if let Event::Fault { what } = event {
            self.lost += u64::from(what.starts_with("dropped") || what.starts_with("lost"));
            self.copied += u64::from(what.starts_with("duplicated"));
            self.seen.count(what.split(' ').next().unwrap_or_default());
        }
        if let Event::Trimmed { .. } = event {
            self.seen.count("switch trimmed");
        }
        format!("{event:?}").bytes().for_each(|byte| self.mix(byte.into()));
    }

    fn wants_packets(&self) -> bool {
        true
    }
}

/// Counts the frames that arrive at a NIC.
struct Arrivals(Rc<Cell<u64>>);

impl FrameTap for Arrivals {
    fn frame(&mut self, _: Instant, _: PortId, way: TapDirection, _: &[u8], _: Option<&str>) {
        self.0.set(self.0.get() + u64::from(way == TapDirection::Received));
    }
}

/// The regions of a flow: what is sent, and where each message has its place
/// with a gap before and behind it.
struct Regions {
    data: Vec<u8>,
    source: MemoryRegion,
    target: MemoryRegion,
}

impl Regions {
    fn register(world: &mut SimWorld<'_>, seed: u64, number: usize, flow: &Flow) -> Self {
        let data = flow_data(seed, number, flow);
        let gaps = GAP * (flow.messages as usize + 1);
        let mut register = |node: usize, bytes, access| {
            world.with_nic(NodeId(node as u32), |nic, ctx| nic.register_memory(ctx, bytes, access))
        };
        Self {
            source: register(flow.from, data.clone(), Access::Local),
            target: register(flow.to, vec![GUARD; data.len() + gaps], Access::RemoteWrite),
            data,
        }
    }

    fn work(&self, scenario: &Scenario, number: usize, message: u32) -> WorkRequest {
        let Flow { to, bytes, .. } = scenario.flows[number];
        let (offset, message_gap) = (u64::from(bytes) * u64::from(message), GAP as u64);
        WorkRequest {
            wqe_id: Workload::wqe_id(number, message),
            peer: scenario.nics[to].ip,
            lkey: self.source.rkey,
            local_va: self.source.va + offset,
            length: bytes,
            remote_va: self.target.va + offset + message_gap * (u64::from(message) + 1),
            rkey: self.target.rkey,
        }
    }

    /// What the target must hold in the end.
    fn expected(&self, flow: &Flow) -> Vec<u8> {
        let mut expected = vec![GUARD; GAP];
        for message in 0..flow.messages as usize {
            let start = message * flow.bytes as usize;
            expected.extend_from_slice(&self.data[start..start + flow.bytes as usize]);
            expected.extend_from_slice(&[GUARD; GAP]);
        }
        expected
    }
}

/// Runs the flows to their end; gives what was registered for them.
fn run_flows(world: &mut SimWorld<'_>, scenario: &Scenario) -> (Workload, Vec<Regions>) {
    let flows = scenario.flows.iter().enumerate();
    let regions: Vec<_> =
        flows.map(|(number, flow)| Regions::register(world, scenario.seed, number, flow)).collect();
    let mut workload = Workload::new(scenario);
    workload.start_due(Duration::ZERO);
    for steps in 0.. {
        assert!(steps < STEPS, "no end after {steps} steps, at {}", world.now());
        while let Some(action) = workload.next_action() {
            act(world, scenario, &regions, &mut workload, action);
        }
        if workload.is_over() || world.now() > LIMIT || !world.step().expect("memory carries all") {
            break;
        }
        while let Some((at, node, event)) = world.poll_event() {
            workload.on_event(at, node, &event);
        }
    }
    (workload, regions)
}

fn act(
    world: &mut SimWorld<'_>,
    scenario: &Scenario,
    regions: &[Regions],
    workload: &mut Workload,
    action: Action,
) {
    match action {
        Action::Post { flow, message, qp } => {
            let from = NodeId(scenario.flows[flow].from as u32);
            let choice = qp.map_or(QpChoice::New, QpChoice::Existing);
            let work = regions[flow].work(scenario, flow, message);
            let posted = world.with_nic(from, |nic, ctx| nic.post_write(ctx, choice, work));
            workload.posted(flow, posted.expect("a good request"), world.now());
        }
        Action::Close { node, qpn } => {
            world.with_nic(node, |nic, ctx| nic.close_qp(ctx, qpn));
        }
    }
}

fn nic_nodes(scenario: &Scenario) -> impl Iterator<Item = NodeId> {
    (0..scenario.nics.len() as u32).map(NodeId)
}

fn switch_ports(scenario: &Scenario) -> impl Iterator<Item = (NodeId, PortId, u64)> + '_ {
    let first = scenario.nics.len();
    (first..first + scenario.switches.len()).flat_map(move |node| {
        let links = scenario.links.iter().filter(move |link| link.ends.contains(&node));
        let attributes = &scenario.switches[node - first].attributes;
        let threshold = attributes.buffer.queue_drop_threshold;
        let default =
            attributes.plane_bdp * if attributes.trimming_enabled { 1 } else { threshold };
        links.enumerate().map(move |(port, link)| {
            (NodeId(node as u32), PortId(port as u16), link.queue_limit.unwrap_or(default))
        })
    })
}

/// Runs the scenario and checks everything; gives the sums of its trace.
fn check(scenario: &Scenario) -> Ledger {
    let mut ledger = Ledger::default();
    let topology = Topology::new(scenario);
    let mut world = SimWorld::new(&topology, scenario.seed, InMemory, &mut ledger);
    let arrivals: Vec<_> = nic_nodes(scenario)
        .map(|node| {
            let count = Rc::new(Cell::new(0));
            world.set_tap(node, Box::new(Arrivals(Rc::clone(&count))));
            count
        })
        .collect();
    let (workload, regions) = run_flows(&mut world, scenario);
    for (number, result) in workload.results().enumerate() {
        assert!(result.finished.is_some(), "flow {number} is not complete: {result:?}");
    }
    check_flight(&world, scenario);
    world.run_until(world.now() + Duration::from_secs(61)).expect("memory carries all");
    check_memory(&world, scenario, &regions);
    check_nics(&world, scenario, &arrivals);
    check_switches(&world, scenario);
    let sums = Sums::of(&world, scenario, &arrivals);
    drop(world);
    sums.check(&ledger, scenario);
    ledger
}

/// With every message complete nothing is in flight.
fn check_flight(world: &SimWorld<'_>, scenario: &Scenario) {
    for node in nic_nodes(scenario) {
        for peer in &scenario.nics {
            assert_eq!(world.nic(node).bytes_in_flight(peer.ip), 0, "{node:?} to {}", peer.ip);
        }
    }
}

/// Every byte in its place, and no other byte touched.
fn check_memory(world: &SimWorld<'_>, scenario: &Scenario, regions: &[Regions]) {
    for (number, (regions, flow)) in regions.iter().zip(&scenario.flows).enumerate() {
        let memory = |node: usize, region: &MemoryRegion| {
            world.nic(NodeId(node as u32)).memory(region.rkey).expect("it is registered").to_vec()
        };
        let expected = regions.expected(flow);
        assert!(memory(flow.to, &regions.target) == expected, "the target of flow {number}");
        assert!(memory(flow.from, &regions.source) == regions.data, "the source of flow {number}");
    }
}

fn check_nics(world: &SimWorld<'_>, scenario: &Scenario, arrivals: &[Rc<Cell<u64>>]) {
    for node in nic_nodes(scenario) {
        let (nic, index) = (world.nic(node), node.0 as usize);
        assert_eq!(nic.holdings(), [0; 4], "{node:?}");
        let c = nic.counters();
        // Frames that were not understood are dropped before they count as packets.
        let broken = |cause: &str| cause.starts_with("drop_") || cause.starts_with("other_");
        let broken: u64 = nic.drops().iter().filter(|(cause, _)| broken(cause)).map(|d| d.1).sum();
        assert_eq!(c.pkts_rcvd + broken, arrivals[index].get(), "{node:?} {:?}", nic.drops());
        let kinds = c.write_pkts_sent + c.ack_pkts_sent + c.sack_pkts_sent + c.nack_pkts_sent;
        assert_eq!(c.pkts_sent, kinds, "{node:?}");
        assert_eq!(c.rtx, c.rtx_nack + c.rtx_sack_gap + c.rtx_timeout, "{node:?}");
        let to_it = scenario.flows.iter().filter(|flow| flow.to == index);
        assert_eq!(c.messages_rcvd, to_it.map(|f| u64::from(f.messages)).sum::<u64>(), "{node:?}");
        assert_eq!((c.wqes_completed, c.qp_error), (c.wqes_created, 0), "{node:?}");
        assert_eq!(c.qp_created, c.qp_closed, "{node:?}");
        for cause in ["remote_access", "bad_source", "psn_never_sent", "psn_before_first"] {
            assert_eq!(nic.drops().of(cause), 0, "{node:?} {cause}");
        }
    }
}

fn check_switches(world: &SimWorld<'_>, scenario: &Scenario) {
    for (node, port, limit) in switch_ports(scenario) {
        let c = world.switch(node).counters(port);
        let pools: Vec<_> = world.switch(node).pool_counters(port).collect();
        let held: Vec<_> = pools.iter().map(|pool| pool.egress_high_water).collect();
        let [data, trimmed, control] = held[..] else { panic!("three pools") };
        assert!(
            data <= limit + limit / 2 && trimmed <= limit && control <= limit,
            "{node:?} {c:?}"
        );
        assert_eq!(c.trim, c.trim_sent + c.trim_drop, "{node:?} {port:?}");
    }
    for node in scenario.nics.len()..scenario.nics.len() + scenario.switches.len() {
        let node = NodeId(node as u32);
        let sum = |f: &dyn Fn(&mrc_lab::switch::PortCounters) -> u64| -> u64 {
            let ports = switch_ports(scenario).filter(|(at, ..)| *at == node);
            ports.map(|(_, port, _)| f(world.switch(node).counters(port))).sum()
        };
        let left = sum(&|c| c.frames_out) + world.switch(node).drops().total();
        assert_eq!(sum(&|c| c.frames_in), left, "{node:?}");
    }
}

/// What all nodes together have sent, received and thrown away.
struct Sums {
    sent: u64,
    arrived: u64,
    dropped_by_switches: u64,
    /// Data packets that were received for the first time.
    placed: u64,
}

impl Sums {
    fn of(world: &SimWorld<'_>, scenario: &Scenario, arrivals: &[Rc<Cell<u64>>]) -> Self {
        let nics = || nic_nodes(scenario).map(|node| world.nic(node).counters());
        let switches = (scenario.nics.len()..scenario.nics.len() + scenario.switches.len())
            .map(|node| world.switch(NodeId(node as u32)).drops().total());
        Self {
            sent: nics().map(|c| c.pkts_sent).sum(),
            arrived: arrivals.iter().map(|count| count.get()).sum(),
            dropped_by_switches: switches.sum(),
            placed: nics().map(|c| c.write_pkts_rcvd - c.dup_events).sum(),
        }
    }

    fn check(&self, ledger: &Ledger, scenario: &Scenario) {
        let came = self.sent + ledger.copied;
        assert_eq!(came, self.arrived + ledger.lost + self.dropped_by_switches);
        let packets = scenario.flows.iter().map(|flow| {
            let each = flow.bytes.div_ceil(scenario.nics[flow.from].attributes.mss).max(1);
            u64::from(each) * u64::from(flow.messages)
        });
        let packets: u64 = packets.sum();
        assert_eq!((ledger.first_sendings, self.placed), (packets, packets));
    }
}

/// Runs the lab of `seed` once, and once more when `twice`; adds to `seen`.
fn try_seed(seed: u64, twice: bool, seen: &mut Seen) {
    let scenario = Draw(Rng::derive(seed, "swarm", 0)).scenario(seed);
    let run = || {
        let ledger = check(&scenario);
        seen.add(&ledger.seen);
        if twice {
            assert_eq!(check(&scenario), ledger, "the same seed gives the same trace");
        }
    };
    if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        panic!("seed {seed}: {}\n{scenario:?}", text.unwrap_or_default());
    }
}

// spec: REL-5, REL-11, TIME-5, SW-19, SW-20
#[test]
fn two_hundred_labs_heal_and_finish() {
    let mut seen = Seen::default();
    (0..200).for_each(|seed| try_seed(seed, seed % 8 == 0, &mut seen));
    let ought = ["dropped", "duplicated", "held", "trimmed", "bit", "delayed", "lost"];
    let ought = ought.into_iter().chain(["switch trimmed"]);
    for what in ought.chain(["TIMEOUT", "NACK", "SACK_GAP", "REREQUEST"]) {
        let times = seen.0.get(what).copied().unwrap_or(0);
        assert!(times > 50, "{what} only {times} times: {seen:?}");
    }
}

/// MRC_SWARM_SEEDS labs (10,000 when not set) from seed MRC_SWARM_FIRST (1,000) on.
// spec: REL-11
#[test]
#[ignore = "takes minutes"]
fn as_many_labs_as_asked_heal_and_finish() {
    let number = |name: &str, default| match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")),
        Err(_) => default,
    };
    let first: u64 = number("MRC_SWARM_FIRST", 1_000);
    let seeds = first..first + number("MRC_SWARM_SEEDS", 10_000);
    seeds.for_each(|seed| try_seed(seed, true, &mut Seen::default()));
}
