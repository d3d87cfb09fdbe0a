//! `[[link]]`, and what must hold for all links together.

use toml::de::DeValue;

use super::names::Names;
use super::section::{Section, size};
use crate::config::{NicAttributes, RttTimestampMode};
use crate::scenario::{LinkSpec, NicSpec};
use crate::units;
use crate::wire::packet::{DATA_IP_OVERHEAD, ICRC, TSETH};

/// The smallest and the largest MTU: every IPv4 host takes 576 bytes, and no
/// datagram is longer than 65,535.
const MTUS: core::ops::RangeInclusive<u64> = 576..=65_535;
/// The MTU when the file sets none and full packets need no more.
const DEFAULT_MTU: u64 = 4_200;
/// A link's number is part of its MAC addresses.
const MAX_LINKS: usize = 1 << 16;
/// Bytes from which on a queue holds a control packet.
const MIN_QUEUE: u64 = 64;
const MAX_QUEUE: u64 = 1 << 40;

/// Reads a link; `None` when one of its ends is nowhere. The MTU is 0 when the
/// file sets none.
pub(super) fn read(section: &Section<'_>, names: &Names) -> Option<LinkSpec> {
    section.allow_keys(&["ends", "rate", "delay", "queue_limit", "mtu"]);
    let rate = section.optional("rate", "a rate with a unit, such as \"200 Gbps\"", |value| {
        units::parse_rate(value.as_str()?).ok()
    });
    let queue = "a size from 64 B to 1024 GiB, such as \"100 KB\"";
    let spec = LinkSpec {
        ends: [0; 2],
        rate,
        delay: section.time("delay"),
        queue_limit: section.optional("queue_limit", queue, |value| {
            size(value).filter(|bytes| (MIN_QUEUE..=MAX_QUEUE).contains(bytes))
        }),
        mtu: section.whole("mtu", *MTUS.start(), *MTUS.end()).unwrap_or(0) as u32,
        faults: Default::default(),
    };
    Some(LinkSpec { ends: read_ends(section, names)?, ..spec })
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

/// Every NIC has one port, so it is on one link.
pub(super) fn check_ports(nics: &[(Section<'_>, NicSpec)], links: &[(Section<'_>, LinkSpec)]) {
    if let Some((section, _)) = links.get(MAX_LINKS) {
        section.refuse(&format!("is one too many: a scenario has at most {MAX_LINKS} links"));
    }
    for (node, (section, nic)) in nics.iter().enumerate() {
        let count = links.iter().filter(|(_, link)| link.ends.contains(&node)).count();
        if count != 1 {
            let name = &nic.name;
            section.refuse(&format!(
                "NIC {name} is an end of {count} links; a NIC has one port, so give it one [[link]]"
            ));
        }
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
