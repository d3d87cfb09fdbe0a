//! How long a scenario's flows would take at best.

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

/// Each flow's ideal completion time, in the scenario's order: what the
/// bottleneck on its way needs for the bytes of all flows that share it, and
/// what the last packet and its acknowledgement need beside that, on a network
/// that is otherwise empty. `None` where nothing is paced.
///
/// A flow takes the first of its shortest ways. Its bottleneck is the link that
/// needs longest for what passes it in that direction, the first one of equals.
// spec: RC-9
pub fn ideal_times(scenario: &Scenario, topology: &Topology) -> Vec<Option<Duration>> {
    let paths: Vec<_> = scenario.flows.iter().map(|flow| path(&topology.graph, flow)).collect();
    let mut loads = vec![[0_u64; 2]; topology.links.len()];
    for (flow, path) in scenario.flows.iter().zip(&paths) {
        for hop in path {
            let load = &mut loads[hop.link][hop.side];
            *load = load.saturating_add(flow_wire_bytes(flow, sender(scenario, flow)));
        }
    }
    let ideal = |(flow, path): (&Flow, &Vec<Hop>)| {
        let sender = sender(scenario, flow);
        let time = ideal_time(&topology.links, &loads, flow, path, sender)?;
        sender.paced.then_some(time)
    };
    scenario.flows.iter().zip(&paths).map(ideal).collect()
}

fn sender<'s>(scenario: &'s Scenario, flow: &Flow) -> &'s NicAttributes {
    &scenario.nics[flow.from].attributes
}

fn ideal_time(
    links: &[LinkPlan],
    loads: &[[u64; 2]],
    flow: &Flow,
    path: &[Hop],
    sender: &NicAttributes,
) -> Option<Duration> {
    let busy = |hop: &Hop| links[hop.link].rate.time_for(loads[hop.link][hop.side]);
    // The first of equals: `max_by_key` alone gives the last one.
    let bottleneck = path.iter().rev().max_by_key(|hop| busy(hop))?;
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
