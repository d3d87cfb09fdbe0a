//! Fabrics of switches: which ways packets take.

use std::collections::{BTreeMap, BTreeSet};

use mrc_lab::config::{EcmpHashMethod, SWITCH_ATTRIBUTES};
use mrc_lab::node::PortId;
use mrc_lab::scenario::{End, Overrides, Scenario, Topology, parse};
use mrc_lab::sim::{InMemory, SimWorld};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{NoTrace, NodeId};
use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::opcode::{Kind, Opcode};
use mrc_lab::wire::packet::{Body, Ecn, MacPair, Packet};
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::Qpn;
use mrc_lab::wire::role::Role;

use crate::lab::*;
use crate::peer::{Stage, plain_bth};

/// Hosts of each of the two leaves.
const HOSTS: usize = 8;
/// Aggregation switches of each pod, and cores behind each of them.
const AGGS: usize = 4;
const CORES: usize = 8;

fn three_tiers(method: EcmpHashMethod) -> Scenario {
    let text = format!(
        "[topology]\nkind = 'three-tier'\npods = 2\nleaves_per_pod = 1\naggs_per_pod = {AGGS}\n\
         cores = {}\nhosts_per_leaf = {HOSTS}\n",
        AGGS * CORES
    );
    let mut scenario = parse(&text, "tiers.toml", &Overrides::default()).expect("a good scenario");
    scenario.switches.iter_mut().for_each(|switch| switch.attributes.paths.hash = method);
    scenario
}

/// Small packets of 128 entropy values from each host of the first leaf to each
/// of the second one: how many pass each core, those behind one aggregation
/// switch together.
fn through_cores(method: EcmpHashMethod) -> Vec<u64> {
    let scenario = three_tiers(method);
    let topology = Topology::new(&scenario);
    let mut trace = NoTrace;
    let mut world = SimWorld::new(&topology, 1, InMemory, &mut trace);
    let node = |name: &str| topology.node(name).expect("a node of this name");
    let leaf = node("leaf0");
    let mut at = 0;
    for from in 0..HOSTS {
        let port = PortId(from as u16);
        let host = port0(NodeId(from as u32));
        for to in HOSTS..2 * HOSTS {
            for entropy in 0..128 {
                let packet = Packet {
                    source: scenario.nics[from].ip,
                    destination: scenario.nics[to].ip,
                    role: Some(Role::Control),
                    dscp: 0,
                    ecn: Ecn::NotEct,
                    entropy: 0xC000 + entropy,
                    bth: plain_bth(Opcode::Ack, Qpn::masked(1), Psn::masked(0)),
                    body: Body::Ack(Aeth { msn: 1 }),
                };
                let mut frame = Vec::new();
                packet.emit(&topology.format, MacPair::default(), &mut frame);
                world.inject(ps(at), host, End { node: leaf, port }, frame);
                at += 2_000;
            }
        }
    }
    assert!(world.run_until(us(1_000)).expect("memory carries all"), "all is over");
    let arrived = (HOSTS..2 * HOSTS).map(|nic| world.nic(NodeId(nic as u32)).drops().total());
    assert_eq!(arrived.sum::<u64>(), 8_192, "none is lost in the fabric, and none has a QP");
    let cores = (0..AGGS * CORES).map(|core| world.switch(node(&format!("core{core}"))));
    cores.map(|core| core.counters(PortId(0)).frames_in).collect()
}

/// Chi-squared of `counts` against even ones.
fn chi_squared(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|count| (*count as f64 - mean).powi(2) / mean).sum()
}

// spec: SW-12
#[test]
fn three_tiers_of_salted_switches_use_all_ways_evenly() {
    let cores = through_cores(EcmpHashMethod::Crc32WithSalt);
    // Below these lie 99.9 % for 31, 3 and 7 degrees of freedom.
    assert!(chi_squared(&cores) < 61.10, "{cores:?}");
    let aggs: Vec<u64> = cores.chunks(CORES).map(|behind| behind.iter().sum()).collect();
    assert!(chi_squared(&aggs) < 16.27, "{aggs:?}");
    let second = (0..CORES).map(|core| cores.iter().skip(core).step_by(CORES).sum());
    let second: Vec<u64> = second.collect();
    assert!(chi_squared(&second) < 24.32, "{second:?}");
}

// spec: SW-12
#[test]
fn three_tiers_that_hash_alike_leave_most_cores_idle() {
    let cores = through_cores(EcmpHashMethod::Crc32);
    let aggs: Vec<u64> = cores.chunks(CORES).map(|behind| behind.iter().sum()).collect();
    assert!(chi_squared(&aggs) < 16.27, "the first stage spreads: {aggs:?}");
    for behind in cores.chunks(CORES) {
        assert_eq!(behind.iter().filter(|count| **count == 0).count(), 6, "{cores:?}");
    }
}

/// 4 MiB over two spines; the first leaf's link to the first spine is down from
/// 10 to 40 us.
fn with_a_link_that_goes_down(reaction: &str) -> Scenario {
    let text = format!(
        "[nic_defaults]\nNSCCEnable = false\n\
         [switch_defaults]\nLinkDownReaction = '{reaction}'\n\
         [topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
         [[fault]]\nfrom = 'leaf0'\nto = 'spine0'\ndown = true\nafter = '10 us'\nbefore = '40 us'\n\
         [[write]]\nfrom = 'h0'\nto = 'h1'\nbytes = '4 MiB'\n"
    );
    parse(&text, "down.toml", &Overrides::default()).expect("a good scenario")
}

/// When packets were lost on the link that is down, and when they arrived at the
/// spine behind it.
fn lost_and_passed(scenario: &Scenario, ran: &Ran) -> (Vec<Instant>, Vec<Instant>) {
    let topology = Topology::new(scenario);
    let node = |name: &str| topology.node(name).expect("a node of this name");
    let lost = ran.sent(node("leaf0")).filter(|seen| seen.fault.is_some()).map(|seen| seen.at);
    let data = ran.seen.iter().filter(|seen| !seen.sent && seen.node == node("spine0"));
    let passed = data.filter(|seen| seen.is_data()).map(|seen| seen.at);
    (lost.collect(), passed.collect())
}

// spec: SW-13, SW-20
#[test]
fn a_switch_that_keeps_a_dead_link_loses_what_takes_it() {
    let scenario = with_a_link_that_goes_down("keep");
    let ran = run(&scenario);
    assert!(ran.is_complete(), "retransmissions with other entropy values get through");
    let (lost, passed) = lost_and_passed(&scenario, &ran);
    assert!(lost.len() > 100 && lost.iter().any(|at| *at > us(12)), "{}", lost.len());
    assert!(lost.iter().all(|at| (us(10)..us(40)).contains(at)));
    assert!(ran.counters[0].rtx as usize >= lost.len());
    assert!(passed.iter().any(|at| *at > us(41)), "as soon as it is up it is used again");
}

// spec: SW-13, SW-20
#[test]
fn a_switch_that_removes_a_dead_link_sends_around_it_until_it_is_up() {
    let scenario = with_a_link_that_goes_down("remove");
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let (lost, passed) = lost_and_passed(&scenario, &ran);
    // What waited at the port is lost, and nothing that came later.
    assert!(lost.len() < 100 && lost.iter().all(|at| (us(10)..us(20)).contains(at)), "{lost:?}");
    assert!(passed.iter().any(|at| *at < us(10)));
    assert!(!passed.iter().any(|at| (us(11)..us(40)).contains(at)));
    assert!(passed.iter().any(|at| *at > us(41)), "restored");
    assert_eq!(ran.trace.entries, run(&scenario).trace.entries, "one seed, one run");
}

// case E18: one QP uses every next hop, by its entropy values alone.
// spec: SW-12, SCHED-2
#[test]
fn one_qp_uses_all_next_hops() {
    let text = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 8\nhosts_per_leaf = 1\n\
                [[write]]\nfrom = 'h0'\nto = 'h1'\nbytes = '1 MiB'\n";
    let scenario = parse(text, "one.toml", &Overrides::default()).expect("a good scenario");
    let topology = Topology::new(&scenario);
    let ran = run(&scenario);
    assert!(ran.is_complete());
    let qps: BTreeSet<_> = ran.data_sent(A).map(|seen| seen.packet().bth.destination_qp).collect();
    assert!(qps.len() <= 2, "its number is not known at first: {qps:?}");
    let through = (0..8).map(|spine| {
        let spine = topology.node(&format!("spine{spine}")).expect("a node of this name");
        ran.data_sent(spine).count()
    });
    let through: Vec<_> = through.collect();
    assert_eq!(through.iter().sum::<usize>(), 256);
    assert!(through.iter().all(|count| *count > 8), "of 256 packets, 32 each: {through:?}");
}

// case E15: eight QPs, and a port that changes with each packet and stays in the
// range of ephemeral ports.
#[test]
fn source_ports_change_with_each_packet_and_stay_in_their_range() {
    let ran = run(&over_a_switch().with_flow(flow(200_000, 8)));
    assert!(ran.is_complete());
    let ports: Vec<_> = ran.data_sent(A).map(|seen| seen.packet().entropy).collect();
    assert_eq!(ports.len(), 8 * 49);
    assert!(ports.windows(2).all(|pair| pair[0] != pair[1]), "{ports:?}");
    assert!(ports.iter().collect::<BTreeSet<_>>().len() > 16, "{ports:?}");
    let mut by_qp = BTreeMap::<_, BTreeSet<u16>>::new();
    for seen in ran.data_sent(A) {
        let packet = seen.packet();
        let Body::Write { reth, .. } = packet.body else { panic!("data") };
        by_qp.entry(reth.va / 200_000).or_default().insert(packet.entropy);
    }
    assert!(by_qp.values().all(|ports| ports.len() > 8), "each QP by itself: {by_qp:?}");
    // Answers have one too.
    let all = [A, B].into_iter().flat_map(|node| ran.sent(node));
    assert!(all.map(|seen| seen.packet().entropy).all(|port| port >= 0xC000));
}

// case E12: what a trim leaves is what a NACK needs, and no option makes it less.
// Packets that are cut anywhere else are dropped and counted, once.
// spec: SW-16, W-14
#[test]
fn packets_cut_inside_a_header_are_dropped_and_counted() {
    let trims = SWITCH_ATTRIBUTES.attributes().map(|attribute| attribute.name);
    let trims: Vec<_> = trims.filter(|name| name.contains("Trim")).collect();
    assert_eq!(trims, ["TrimmingEnabled", "TrimIpLength", "TrimVictim"], "none has a length");

    let scenario = over_a_switch();
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let message = stage.message(A, B, 4_096);
    let at_b = stage.listen(B);
    stage.deliver(&message);
    let whole = at_b.received(Kind::Write).remove(0);
    let switch = NodeId(2);
    let dropped = |stage: &Stage<'_>| {
        stage.world.switch(switch).drops().total() + stage.world.nic(B).drops().total()
    };
    for length in [0, 14, 34, 42, 54, 64, 256] {
        for to in [End { node: switch, port: PortId(0) }, port0(B)] {
            let before = dropped(&stage);
            stage.inject(A, to, whole[..length].to_vec());
            stage.run_for(Duration::from_us(10));
            assert_eq!(dropped(&stage), before + 1, "{length} bytes at {to:?}");
        }
    }
    let switch = stage.world.switch(switch);
    assert!(switch.drops().total() >= 2, "what has no IPv4 header goes no further");
    assert_eq!(stage.world.nic(B).counters().trimmed_pkts_rcvd, 0);
}
