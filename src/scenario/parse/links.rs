//! `[[link]]`, and what must hold for all links together.

use toml::de::DeValue;

use super::Nodes;
use super::names::Names;
use super::section::{Section, size};
use crate::config::{NicAttributes, RttTimestampMode};
use crate::scenario::graph::Graph;
use crate::scenario::{LinkSpec, NicSpec, SwitchSpec};
use crate::units;
use crate::wire::packet::{DATA_IP_OVERHEAD, ICRC, TSETH};

/// The smallest and the largest MTU: every IPv4 host takes 576 bytes, and no
/// datagram is longer than 65,535.
const MTUS: core::ops::RangeInclusive<u64> = 576..=65_535;
/// The MTU when the file sets none and full packets need no more.
const DEFAULT_MTU: u64 = 4_200;
/// A link's number is part of its MAC addresses.
pub(super) const MAX_LINKS: usize = 1 << 16;
/// More than any switch that is built has; each port is an interface.
pub(super) const MAX_PORTS: usize = 1_024;
/// Bytes from which on a queue holds a control packet.
const MIN_QUEUE: u64 = 64;
const MAX_QUEUE: u64 = 1 << 40;

/// The keys that [`read_properties`] reads.
pub(super) const PROPERTIES: [&str; 4] = ["rate", "delay", "queue_limit", "mtu"];

/// Reads a link; `None` when one of its ends is nowhere.
pub(super) fn read(section: &Section<'_>, names: &Names) -> Option<LinkSpec> {
    section.allow_keys(&[&["ends"], &PROPERTIES[..]].concat());
    let properties = read_properties(section);
    Some(LinkSpec { ends: read_ends(section, names)?, ..properties })
}

/// Reads all of a link but its ends. The MTU is 0 when the file sets none.
pub(super) fn read_properties(section: &Section<'_>) -> LinkSpec {
    let rate = section.optional("rate", "a rate with a unit, such as \"200 Gbps\"", |value| {
        units::parse_rate(value.as_str()?).ok()
    });
    let queue = "a size from 64 B to 1024 GiB, such as \"100 KB\"";
    LinkSpec {
        ends: [0; 2],
        rate,
        delay: section.time("delay"),
        queue_limit: section.optional("queue_limit", queue, |value| {
            size(value).filter(|bytes| (MIN_QUEUE..=MAX_QUEUE).contains(bytes))
        }),
        mtu: section.whole("mtu", *MTUS.start(), *MTUS.end()).unwrap_or(0) as u32,
        faults: Default::default(),
    }
}

fn read_ends(section: &Section<'_>, names: &Names) -> Option<[usize; 2]> {
    let wanted = "the names of two nodes, such as [\"a\", \"s\"]";
    let ends = section.required("ends", wanted, two_names)?;
    let found = ends.map(|name| names.find(name));
    if let Some(side) = found.iter().position(Option::is_none) {
        section.refuse_key("ends", &format!("\"{}\": {}", ends[side], names.unknown_node()));
    }
    let [Some(a), Some(b)] = found else { return None };
    if a == b {
        section.refuse_key("ends", "a link joins two different nodes");
        return None;
    }
    Some([a, b])
}

fn two_names<'a>(value: &'a DeValue<'a>) -> Option<[&'a str; 2]> {
    match &value.as_array()?[..] {
        [a, b] => Some([a.get_ref().as_str()?, b.get_ref().as_str()?]),
        _ => None,
    }
}

/// Refuses links and ports beyond what a lab can have, and NICs that cannot
/// reach each other.
pub(super) fn check(nodes: &Nodes<'_>, links: &[(Section<'_>, LinkSpec)]) {
    if let Some((section, _)) = links.get(MAX_LINKS) {
        section.refuse(&format!("is one too many: a scenario has at most {MAX_LINKS} links"));
        return;
    }
    let Nodes { nics, switches } = nodes;
    let ends = links.iter().map(|(_, link)| link.ends);
    let graph = Graph::new(nics.len(), nics.len() + switches.len(), ends);
    check_ports(nodes, &graph);
    check_reachable(nics, &graph);
}

/// Every NIC has one port, so it is on one link; a switch has its limit.
fn check_ports(nodes: &Nodes<'_>, graph: &Graph) {
    let Nodes { nics, switches } = nodes;
    for (node, (section, NicSpec { name, .. })) in nics.iter().enumerate() {
        let count = graph.ways(node).len();
        if count != 1 {
            section.refuse(&format!(
                "NIC {name} is an end of {count} links; a NIC has one port, so give it one [[link]]"
            ));
        }
    }
    for (index, (section, SwitchSpec { name, .. })) in switches.iter().enumerate() {
        let count = graph.ways(nics.len() + index).len();
        if count > MAX_PORTS {
            section.refuse(&format!(
                "switch {name} is an end of {count} links; a switch has at most {MAX_PORTS} ports, so spread them over more switches"
            ));
        }
    }
}

/// Refuses a lab in parts: names the first NIC of each part but the first one.
// spec: SW-1
fn check_reachable(nics: &[(Section<'_>, NicSpec)], graph: &Graph) {
    let linked = |node: &usize| !graph.ways(*node).is_empty();
    let mut left: Vec<usize> = (0..nics.len()).filter(linked).collect();
    let mut first_part: Option<&str> = None;
    while let Some(&node) = left.first() {
        let (section, NicSpec { name, .. }) = &nics[node];
        match first_part {
            None => first_part = Some(name),
            Some(first) => section.refuse(&format!(
                "no links lead from NIC {name} to NIC {first}; join them by a [[link]], or make two scenarios of it"
            )),
        }
        let distances = graph.distances(node);
        left.retain(|other| distances[*other].is_none());
    }
}

/// Bytes of the IPv4 datagram of a full packet.
// spec: WIRE-9, W-3
fn full_packet(nic: &NicAttributes) -> u64 {
    let timestamped = nic.rtt_timestamp_mode == RttTimestampMode::WireTimestamp;
    let extra = if timestamped { TSETH } else { 0 } + if nic.icrc { ICRC } else { 0 };
    u64::from(nic.mss) + (DATA_IP_OVERHEAD + extra) as u64
}

/// Gives every link that has none an MTU, and refuses those that are too small
/// for a full packet of some NIC: any link may have to carry it.
pub(super) fn settle_mtus(nics: &[(Section<'_>, NicSpec)], links: &mut [(Section<'_>, LinkSpec)]) {
    let Some((_, largest)) = nics.iter().rev().max_by_key(|(_, nic)| full_packet(&nic.attributes))
    else {
        return;
    };
    let mss = largest.attributes.mss;
    let needed = full_packet(&largest.attributes);
    let roomy = u64::from(mss) + (DATA_IP_OVERHEAD + TSETH + ICRC) as u64;
    for (section, link) in links {
        if !section.has("mtu") {
            link.mtu = roomy.max(DEFAULT_MTU) as u32;
        } else if link.mtu != 0 && u64::from(link.mtu) < needed {
            section.refuse_key("mtu", &format!(
                "too small for MSS = {mss} of NIC {}, whose full packets are IP datagrams of {needed} bytes; set mtu to {needed} or more, or a smaller MSS",
                largest.name
            ));
        }
    }
}
