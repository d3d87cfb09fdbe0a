//! How long a scenario's flows would take at best.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::graph::Graph;
use super::topology::LinkPlan;
use super::{Flow, Scenario, Topology};
use crate::config::NicAttributes;
use crate::time::Duration;
use crate::wire::packet::ACK_WIRE_BYTES;

/// One direction of a link on a flow's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hop {
    /// The link's number.
    link: usize,
    /// The end that sends.
    side: usize,
}

/// What of a flow passes a link.
struct Share {
    hop: Hop,
    bytes: u64,
}

/// Each flow's ideal completion time, in the scenario's order: what the
/// bottleneck on its ways needs for the bytes of all flows that share it, and
/// what the last packet and its acknowledgement need beside that, on a network
/// that is otherwise empty. `None` where nothing is paced.
///
/// A flow is spread evenly over its shortest ways. Its bottleneck is the link
/// that needs longest for what passes it in that direction, the first one of
/// equals; the last packet takes the first way.
// spec: RC-9
pub fn ideal_times(scenario: &Scenario, topology: &Topology) -> Vec<Option<Duration>> {
    let graph = &topology.graph;
    let bytes = |flow| flow_wire_bytes(flow, sender(scenario, flow));
    let shares: Vec<_> =
        scenario.flows.iter().map(|flow| shares(graph, flow, bytes(flow))).collect();
    let mut loads = vec![[0_u64; 2]; topology.links.len()];
    for Share { hop, bytes } in shares.iter().flatten() {
        let load = &mut loads[hop.link][hop.side];
        *load = load.saturating_add(*bytes);
    }
    let ideal = |(flow, shares): (&Flow, &Vec<Share>)| {
        let sender = sender(scenario, flow);
        let path = path(graph, flow);
        let time = ideal_time(&topology.links, &loads, flow, shares, &path, sender)?;
        sender.paced.then_some(time)
    };
    scenario.flows.iter().zip(&shares).map(ideal).collect()
}

fn sender<'s>(scenario: &'s Scenario, flow: &Flow) -> &'s NicAttributes {
    &scenario.nics[flow.from].attributes
}

fn ideal_time(
    links: &[LinkPlan],
    loads: &[[u64; 2]],
    flow: &Flow,
    shares: &[Share],
    path: &[Hop],
    sender: &NicAttributes,
) -> Option<Duration> {
    let busy = |hop: &Hop| links[hop.link].rate.time_for(loads[hop.link][hop.side]);
    // The first of equals: `max_by_key` alone gives the last one.
    let hops = shares.iter().map(|share| &share.hop);
    let bottleneck = hops.rev().max_by_key(|hop| busy(hop))?;
    let packet = u64::from(flow.bytes.min(sender.mss)) + sender.data_overhead();
    let ack = ACK_WIRE_BYTES as u64 + sender.icrc_bytes();
    let mut unloaded = Duration::ZERO;
    for link in path.iter().map(|hop| &links[hop.link]) {
        unloaded += link.rate.time_for(packet) + link.delay;
        unloaded += link.rate.time_for(ack) + link.delay;
    }
    let serialization = links[bottleneck.link].rate.time_for(packet);
    Some(busy(bottleneck) + unloaded.saturating_sub(serialization))
}

/// All bytes of a flow on the wire, each packet sent once.
// spec: SEG-2, SEG-4
fn flow_wire_bytes(flow: &Flow, sender: &NicAttributes) -> u64 {
    let packets = u64::from(flow.bytes.div_ceil(sender.mss).max(1));
    let message = u64::from(flow.bytes) + packets * sender.data_overhead();
    message.saturating_mul(u64::from(flow.messages))
}

/// What of the `bytes` of a flow passes each link on its shortest ways: at each
/// node the same by every port that leads on, rounded up to a whole byte.
fn shares(graph: &Graph, flow: &Flow, bytes: u64) -> Vec<Share> {
    let distances = graph.distances(flow.to);
    let mut shares = Vec::new();
    // What arrives at the nodes that are next, the farthest of them first.
    let mut arriving = BTreeMap::from([((Reverse(distances[flow.from]), flow.from), bytes)]);
    while let Some(((_, node), bytes)) = arriving.pop_first() {
        let ports: Vec<usize> = graph.nearer(node, &distances).collect();
        for &port in &ports {
            let way = graph.ways(node)[port];
            let bytes = bytes.div_ceil(ports.len() as u64);
            shares.push(Share { hop: Hop { link: way.link, side: way.side }, bytes });
            let sum = arriving.entry((Reverse(distances[way.to]), way.to)).or_insert(0_u64);
            *sum = sum.saturating_add(bytes);
        }
    }
    shares
}

/// The first of the shortest ways of a flow; empty when there is none.
fn path(graph: &Graph, flow: &Flow) -> Vec<Hop> {
    let distances = graph.distances(flow.to);
    let mut hops = Vec::new();
    let mut node = flow.from;
    while let Some(port) = graph.nearer(node, &distances).next() {
        let way = graph.ways(node)[port];
        hops.push(Hop { link: way.link, side: way.side });
        node = way.to;
    }
    hops
}
