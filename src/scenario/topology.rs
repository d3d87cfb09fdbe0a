//! What a scenario's nodes and links are made of: configurations, ports,
//! addresses and routes.

use core::net::Ipv4Addr;

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
}

impl Topology {
    /// The topology of a checked scenario.
    // spec: SW-1, SW-2, WIRE-7
    pub fn new(scenario: &Scenario) -> Self {
        let links = plan_links(scenario);
        let nics = scenario.nics.iter().enumerate().map(|(index, nic)| {
            let (link, side) = links_of(&links, index).next().expect("a NIC has a link");
            let config = NicConfig {
                ip: nic.ip,
                macs: MacPair { source: link.macs[side], destination: link.macs[1 - side] },
                link_rate: link.rate,
                attributes: nic.attributes.clone(),
            };
            NodePlan { name: nic.name.clone(), kind: NodeKind::Nic(Box::new(config)) }
        });
        let distances: Vec<_> =
            (0..scenario.nics.len()).map(|nic| distances(scenario, &links, nic)).collect();
        let switches = scenario.switches.iter().enumerate().map(|(index, switch)| {
            let node = scenario.nics.len() + index;
            let config = SwitchConfig {
                ports: switch_ports(scenario, &links, node),
                routes: routes(scenario, &links, &distances, node),
                attributes: switch.attributes.clone(),
            };
            NodePlan { name: switch.name.clone(), kind: NodeKind::Switch(Box::new(config)) }
        });
        let nodes = nics.chain(switches).collect();
        let format = scenario.nics.first().map(|nic| nic.attributes.frame_format());
        Self { nodes, links, format: format.unwrap_or_default() }
    }

    /// The sending end of the link behind each port of `node`, and where it
    /// leads. Each direction of each link has a random stream of its own.
    // spec: SW-20, SW-21
    pub fn sending_ends(&self, node: NodeId, seed: u64) -> Vec<(Link, End)> {
        let mut ends: Vec<(PortId, Link, End)> = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            for side in 0..2 {
                if link.ends[side].node == node {
                    let rng = Rng::derive(seed, &format!("link {index} side {side}"), 0);
                    let rules = link.faults[side].clone();
                    let sending = Link::new(link.delay, rules, self.format, rng);
                    ends.push((link.ends[side].port, sending, link.ends[1 - side]));
                }
            }
        }
        ends.sort_by_key(|(port, ..)| *port);
        ends.into_iter().map(|(_, link, end)| (link, end)).collect()
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        let index = self.nodes.iter().position(|node| node.name == name)?;
        Some(NodeId(index as u32))
    }
}

/// A node's links, each with the side on which the node is, in port order.
fn links_of(links: &[LinkPlan], node: usize) -> impl Iterator<Item = (&LinkPlan, usize)> {
    links.iter().flat_map(move |link| {
        (0..2).filter(move |side| link.ends[*side].node.0 as usize == node).map(move |s| (link, s))
    })
}

/// The scenario's links, resolved.
pub(super) fn plan_links(scenario: &Scenario) -> Vec<LinkPlan> {
    let mut ports = vec![0_u16; scenario.nics.len() + scenario.switches.len()];
    let mut plans = Vec::with_capacity(scenario.links.len());
    for (index, link) in scenario.links.iter().enumerate() {
        let ends = link.ends.map(|node| {
            let port = PortId(ports[node]);
            ports[node] += 1;
            End { node: NodeId(node as u32), port }
        });
        let [a, b] = link.ends.map(|node| scenario.device(node));
        let (rate, delay) = rate_and_delay(link, &a, &b);
        plans.push(LinkPlan {
            ends,
            rate,
            delay,
            mtu: link.mtu,
            macs: [0, 1].map(|side| mac(0x4d, index, side)),
            interface_macs: [0, 1].map(|side| mac(0x49, index, side)),
            faults: link.faults.clone(),
        });
    }
    plans
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

fn switch_ports(scenario: &Scenario, links: &[LinkPlan], node: usize) -> Vec<SwitchPort> {
    let specs = scenario.links.iter().zip(links);
    let mut ports = Vec::new();
    for (spec, link) in specs {
        for side in (0..2).filter(|side| link.ends[*side].node.0 as usize == node) {
            let far = 1 - side;
            ports.push(SwitchPort {
                mac: link.macs[side],
                neighbour: Neighbour { mrc: link.macs[far], host: link.interface_macs[far] },
                rate: link.rate,
                faces_nic: (link.ends[far].node.0 as usize) < scenario.nics.len(),
                delay: link.delay,
                queue_limit: spec.queue_limit,
            });
        }
    }
    ports
}

/// For each NIC the ports of `node` that lie on a shortest path to it;
/// `distances` has for each NIC the hops from every node.
// spec: SW-1
fn routes(
    scenario: &Scenario,
    links: &[LinkPlan],
    distances: &[Vec<Option<u32>>],
    node: usize,
) -> Vec<Route> {
    let routes = scenario.nics.iter().zip(distances).filter_map(|(spec, distance)| {
        let ports: Vec<PortId> = links_of(links, node)
            .filter(|(link, side)| {
                let next = link.ends[1 - side].node.0 as usize;
                distance[next].is_some_and(|d| distance[node] == Some(d + 1))
            })
            .map(|(link, side)| link.ends[side].port)
            .collect();
        (!ports.is_empty()).then_some(Route { prefix: spec.ip, length: 32, ports })
    });
    routes.collect()
}

/// Hops from every node to the NIC `to`; NICs forward nothing.
pub(super) fn distances(scenario: &Scenario, links: &[LinkPlan], to: usize) -> Vec<Option<u32>> {
    let mut distance = vec![None; scenario.nics.len() + scenario.switches.len()];
    distance[to] = Some(0);
    let mut frontier = vec![to];
    for hops in 1.. {
        let mut next = Vec::new();
        for node in frontier {
            for (link, side) in links_of(links, node) {
                let far = link.ends[1 - side].node.0 as usize;
                if distance[far].is_none() {
                    distance[far] = Some(hops);
                    if far >= scenario.nics.len() {
                        next.push(far);
                    }
                }
            }
        }
        if next.is_empty() {
            break;
        }
        frontier = next;
    }
    distance
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
