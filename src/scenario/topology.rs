//! What a scenario's nodes and links are made of: configurations, ports,
//! addresses and routes.

use core::net::Ipv4Addr;

use super::graph::Graph;
use super::{LinkSpec, NicSpec, Scenario};
use crate::nic::NicConfig;
use crate::node::PortId;
use crate::node::link::{FaultRule, Link};
use crate::rng::Rng;
use crate::switch::{Neighbour, Route, SwitchConfig, SwitchPort};
use crate::time::Duration;
use crate::trace::NodeId;
use crate::units::Rate;
use crate::wire::mac::{MacAddr, MacPair};
use crate::wire::packet::FrameFormat;

/// One end of a link: a node's port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct End {
    /// The node.
    pub node: NodeId,
    /// Its port.
    pub port: PortId,
}

/// What a node is.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// A NIC.
    Nic(Box<NicConfig>),
    /// A switch.
    Switch(Box<SwitchConfig>),
}

/// A node with its name.
#[derive(Clone, Debug)]
pub struct NodePlan {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// A link with everything resolved.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Its ends.
    pub ends: [End; 2],
    /// The rate at both ends.
    pub rate: Rate,
    /// The delay in both directions.
    pub delay: Duration,
    /// MTU of its interfaces.
    pub mtu: u32,
    /// The MAC addresses that the nodes use at its ends.
    pub macs: [MacAddr; 2],
    /// The MAC addresses of the interfaces at its ends.
    pub interface_macs: [MacAddr; 2],
    /// What goes wrong from each end to the other.
    pub faults: [Vec<FaultRule>; 2],
}

/// All nodes and links.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The nodes; a [`NodeId`] is an index here.
    pub nodes: Vec<NodePlan>,
    /// The links.
    pub links: Vec<LinkPlan>,
    /// How MRC frames look here.
    pub format: FrameFormat,
    pub(super) graph: Graph,
}

impl Topology {
    /// The topology of a checked scenario.
    // spec: SW-1, SW-2, WIRE-7
    pub fn new(scenario: &Scenario) -> Self {
        let graph = scenario.graph();
        let links = plan_links(scenario, &graph);
        let nics = scenario.nics.iter().enumerate().map(|(node, nic)| {
            let way = graph.ways(node).first().expect("a NIC has a link");
            let link = &links[way.link];
            let (ours, theirs) = (link.macs[way.side], link.macs[1 - way.side]);
            let config = NicConfig {
                ip: nic.ip,
                macs: MacPair { source: ours, destination: theirs },
                link_rate: link.rate,
                attributes: nic.attributes.clone(),
            };
            NodePlan { name: nic.name.clone(), kind: NodeKind::Nic(Box::new(config)) }
        });
        let mut node = scenario.nics.len();
        let tables = routes(scenario, &graph);
        let switches = scenario.switches.iter().zip(tables).map(|(switch, routes)| {
            let config = SwitchConfig {
                ports: switch_ports(scenario, &links, &graph, node),
                routes,
                attributes: switch.attributes.clone(),
            };
            node += 1;
            NodePlan { name: switch.name.clone(), kind: NodeKind::Switch(Box::new(config)) }
        });
        let nodes = nics.chain(switches).collect();
        let format = scenario.nics.first().map(|nic| nic.attributes.frame_format());
        Self { nodes, links, format: format.unwrap_or_default(), graph }
    }

    /// The sending end of the link behind each port of `node`, and where it
    /// leads. Each direction of each link has a random stream of its own.
    // spec: SW-20, SW-21
    pub fn sending_ends(&self, node: NodeId, seed: u64) -> Vec<(Link, End)> {
        let ways = self.graph.ways(node.0 as usize).iter().map(|way| {
            let (index, side, link) = (way.link, way.side, &self.links[way.link]);
            let rng = Rng::derive(seed, &format!("link {index} side {side}"), 0);
            let rules = link.faults[side].clone();
            (Link::new(link.delay, rules, self.format, rng), link.ends[1 - side])
        });
        ways.collect()
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let index = self.nodes.iter().position(|node| node.name == name)?;
        Some(NodeId(index as u32))
    }
}

/// The scenario's links, resolved.
fn plan_links(scenario: &Scenario, graph: &Graph) -> Vec<LinkPlan> {
    let mut ends = vec![[End { node: NodeId(0), port: PortId(0) }; 2]; scenario.links.len()];
    for node in 0..scenario.nics.len() + scenario.switches.len() {
        for (port, way) in graph.ways(node).iter().enumerate() {
            ends[way.link][way.side] = End { node: NodeId(node as u32), port: PortId(port as u16) };
        }
    }
    let plan = |(index, (link, ends)): (usize, (&LinkSpec, _))| {
        let [a, b] = link.ends.map(|node| scenario.device(node));
        let (rate, delay) = rate_and_delay(link, &a, &b);
        LinkPlan {
            ends,
            rate,
            delay,
            mtu: link.mtu,
            macs: [0, 1].map(|side| mac(0x4d, index, side)),
            interface_macs: [0, 1].map(|side| mac(0x49, index, side)),
            faults: link.faults.clone(),
        }
    };
    scenario.links.iter().zip(ends).enumerate().map(plan).collect()
}

/// What the two kinds of devices have in common.
struct Device {
    rate: Rate,
    delay: Duration,
    paced: bool,
    is_nic: bool,
}

/// The rate and delay of `link` between `a` and `b`. Where an end is not paced
/// the link takes no modelled time, whatever the file sets, and rules that need
/// a rate use the devices'.
// spec: TIME-3, PB-16
fn rate_and_delay(link: &LinkSpec, a: &Device, b: &Device) -> (Rate, Duration) {
    let slower = a.rate.min(b.rate);
    if !(a.paced && b.paced) {
        return (slower, Duration::ZERO);
    }
    // A NIC's link takes the NIC's delay, one between switches the first one's.
    let delay = if b.is_nic { b.delay } else { a.delay };
    (link.rate.unwrap_or(slower), link.delay.unwrap_or(delay))
}

impl Scenario {
    /// Who is joined to whom.
    pub(super) fn graph(&self) -> Graph {
        let (nics, switches) = (self.nics.len(), self.switches.len());
        Graph::new(nics, nics + switches, self.links.iter().map(|link| link.ends))
    }

    fn device(&self, node: usize) -> Device {
        match self.nics.get(node) {
            Some(NicSpec { attributes, .. }) => Device {
                rate: attributes.data_rate,
                delay: attributes.delay,
                paced: attributes.paced,
                is_nic: true,
            },
            None => {
                let attributes = &self.switches[node - self.nics.len()].attributes;
                Device {
                    rate: attributes.data_rate,
                    delay: attributes.delay,
                    paced: attributes.paced,
                    is_nic: false,
                }
            }
        }
    }
}

/// A locally administered address; `family` tells a node's own addresses (`M`)
/// from those of interfaces (`I`).
fn mac(family: u8, link: usize, side: usize) -> MacAddr {
    let [high, low] = (link as u16).to_be_bytes();
    MacAddr([0x02, family, 0, high, low, side as u8])
}

fn switch_ports(
    scenario: &Scenario,
    links: &[LinkPlan],
    graph: &Graph,
    node: usize,
) -> Vec<SwitchPort> {
    let ports = graph.ways(node).iter().map(|way| {
        let (link, far) = (&links[way.link], 1 - way.side);
        SwitchPort {
            mac: link.macs[way.side],
            neighbour: Neighbour { mrc: link.macs[far], host: link.interface_macs[far] },
            rate: link.rate,
            faces_nic: way.to < scenario.nics.len(),
            delay: link.delay,
            queue_limit: scenario.links[way.link].queue_limit,
        }
    });
    ports.collect()
}

/// Each switch's routes: for each NIC the ports on a shortest path to it.
// spec: SW-1
fn routes(scenario: &Scenario, graph: &Graph) -> Vec<Vec<Route>> {
    let mut tables = vec![Vec::with_capacity(scenario.nics.len()); scenario.switches.len()];
    for (number, nic) in scenario.nics.iter().enumerate() {
        let distances = graph.distances(number);
        for (index, table) in tables.iter_mut().enumerate() {
            let node = scenario.nics.len() + index;
            let ports = graph.nearer(node, &distances).map(|port| PortId(port as u16));
            let ports: Vec<_> = ports.collect();
            if !ports.is_empty() {
                table.push(Route { prefix: nic.ip, length: 32, ports });
            }
        }
    }
    tables
}

impl NodePlan {
    /// Whether serialization at its ports takes modelled time.
    // spec: TIME-3
    pub fn paced(&self) -> bool {
        match &self.kind {
            NodeKind::Nic(config) => config.attributes.paced,
            NodeKind::Switch(config) => config.attributes.paced,
        }
    }

    /// Its address, when it is a NIC.
    pub fn ip(&self) -> Option<Ipv4Addr> {
        match &self.kind {
            NodeKind::Nic(config) => Some(config.ip),
            NodeKind::Switch(_) => None,
        }
    }
}
