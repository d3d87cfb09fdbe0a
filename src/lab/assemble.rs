//! The network of a scenario's topology.

use super::plan::{EndPlan, Ipv4Prefix, LinkPlan, NetworkPlan};
use crate::scenario::{NodeKind, Topology};
use crate::trace::NodeId;

/// The namespaces and links that `topology` needs. NIC hosts have their
/// addresses and know everybody's MAC address; switches have no addresses.
// spec: SW-1, REL-10
pub fn network_plan(topology: &Topology) -> NetworkPlan {
    let nodes = topology.nodes.iter().map(|node| node.name.clone()).collect();
    let links = topology.links.iter().map(|link| LinkPlan {
        mtu: link.mtu,
        ends: [0, 1].map(|side| {
            let node = link.ends[side].node;
            let far_is_nic = is_nic(topology, link.ends[1 - side].node);
            // A host's kernel reaches others through the switch daemon's port,
            // or directly.
            let next_hop =
                if far_is_nic { link.interface_macs[1 - side] } else { link.macs[1 - side] };
            end_plan(topology, node, link.interface_macs[side].0, next_hop.0)
        }),
    });
    NetworkPlan { nodes, links: links.collect() }
}

fn end_plan(topology: &Topology, node: NodeId, mac: [u8; 6], next_hop: [u8; 6]) -> EndPlan {
    let plan = &topology.nodes[node.0 as usize];
    let host = |address| Ipv4Prefix { address, length: 32 };
    let mut end = EndPlan {
        node: plan.name.clone(),
        mac,
        addresses: plan.ip().map(host).into_iter().collect(),
        routes: Vec::new(),
        neighbours: Vec::new(),
    };
    if plan.ip().is_some() {
        for ip in topology.nodes.iter().filter_map(|other| other.ip()) {
            if Some(ip) != plan.ip() {
                end.routes.push(host(ip));
                end.neighbours.push((ip, next_hop));
            }
        }
    }
    end
}

fn is_nic(topology: &Topology, node: NodeId) -> bool {
    matches!(topology.nodes[node.0 as usize].kind, NodeKind::Nic(_))
}
