//! A node's ports: the links that the scenario gives it, on interfaces of this
//! network namespace.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use super::error::DaemonError;
use crate::config::{NicAttributes, RttTimestampMode};
use crate::io::{PacketSocket, PacketSocketOptions, PortIo, interface_mtu};
use crate::scenario::{Scenario, Topology};
use crate::time::Duration;
use crate::trace::NodeId;
use crate::units::Rate;
use crate::wire::packet::{DATA_IP_OVERHEAD, ETHERNET, ICRC, TSETH, wire_bytes};

/// The longest frame that a packet socket can be opened for.
const MAX_FRAME: usize = 65_536;

/// Opens a packet socket on each of `interfaces`, which are the ports of `node`
/// in order.
///
/// # Errors
/// When they are not as many as the node's links, when one of them is not
/// there or too small, or may not be opened.
pub(super) fn open(
    scenario: &Scenario,
    topology: &Topology,
    node: NodeId,
    interfaces: &[String],
) -> Result<Vec<PortIo>, DaemonError> {
    let links = topology.sending_ends(node, scenario.seed);
    if links.len() != interfaces.len() {
        let node = topology.nodes[node.0 as usize].name.clone();
        let (given, ports) = (interfaces.len(), links.len());
        return Err(DaemonError::InterfaceCount { node, given, ports });
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = interfaces.iter().find(|name| !seen.insert(name.as_str())) {
        return Err(DaemonError::InterfaceTwice(twice.clone()));
    }
    let needed = largest_datagram(scenario);
    let opened = interfaces.iter().zip(links).map(|(name, (link, _))| {
        let socket = open_socket(name, needed, false)?;
        Ok(PortIo { socket, link })
    });
    opened.collect()
}

/// The names of the nodes to which the ports of `node` lead, in order.
pub(super) fn peers(scenario: &Scenario, topology: &Topology, node: NodeId) -> Vec<String> {
    let ends = topology.sending_ends(node, scenario.seed).into_iter();
    ends.map(|(_, end)| topology.nodes[end.node.0 as usize].name.clone()).collect()
}

/// Opens a packet socket on the interface `name`, whose MTU has to be at least
/// `needed` bytes; `promiscuous` when the NIC has a MAC address of its own there.
pub(super) fn open_socket(
    name: &str,
    needed: u32,
    promiscuous: bool,
) -> Result<PacketSocket, DaemonError> {
    let mtu = read_mtu(name)?;
    if mtu < needed {
        return Err(DaemonError::Mtu { name: name.to_owned(), mtu, needed });
    }
    let frame_capacity = (mtu as usize + ETHERNET).min(MAX_FRAME);
    let options =
        PacketSocketOptions { frame_capacity, promiscuous, ..PacketSocketOptions::default() };
    PacketSocket::open(name, &options).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => DaemonError::NotPermitted { name: name.to_owned() },
        _ => DaemonError::io("opening a packet socket")(error),
    })
}

/// The MTU of the interface `name`.
pub(super) fn read_mtu(name: &str) -> Result<u32, DaemonError> {
    interface_mtu(name).map_err(|error| missing(name, error))
}

fn missing(name: &str, error: io::Error) -> DaemonError {
    if error.raw_os_error() == Some(libc::ENODEV) {
        return DaemonError::NoInterface { name: name.to_owned(), known: interface_names() };
    }
    DaemonError::io(format!("reading the MTU of {name}"))(error)
}

/// The interfaces of this thread's network namespace; none when the host does
/// not tell.
fn interface_names() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.collect()
}

/// The largest IP datagram that the scenario's NICs send, in bytes.
fn largest_datagram(scenario: &Scenario) -> u32 {
    scenario.nics.iter().map(|nic| full_datagram(&nic.attributes)).max().unwrap_or(0)
}

/// A full data packet's IP datagram, in bytes.
pub(super) fn full_datagram(attributes: &NicAttributes) -> u32 {
    let timestamp = attributes.rtt_timestamp_mode == RttTimestampMode::WireTimestamp;
    let optional = if timestamp { TSETH } else { 0 } + if attributes.icrc { ICRC } else { 0 };
    attributes.mss + (DATA_IP_OVERHEAD + optional) as u32
}

/// The time of one full packet on the fastest of the node's links.
// spec: TIME-6
pub(super) fn packet_time(scenario: &Scenario, topology: &Topology, node: NodeId) -> Duration {
    let datagram = largest_datagram(scenario);
    let links = topology.links.iter().filter(|link| link.ends.iter().any(|end| end.node == node));
    links.map(|link| wire_time(link.rate, datagram)).min().unwrap_or(Duration::ZERO)
}

/// How long a link at `rate` takes for an IP datagram of so many bytes.
pub(super) fn wire_time(rate: Rate, datagram: u32) -> Duration {
    rate.time_for(wire_bytes(datagram as usize + ETHERNET))
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-6
    #[test]
    fn a_full_packet_has_all_its_headers() {
        let reference = NicAttributes::default();
        assert_eq!(full_datagram(&reference), 4_156);
        let with_icrc = NicAttributes { icrc: true, ..reference };
        assert_eq!(full_datagram(&with_icrc), 4_160);
        let mode = RttTimestampMode::WireTimestamp;
        let with_both = NicAttributes { rtt_timestamp_mode: mode, ..with_icrc };
        assert_eq!(full_datagram(&with_both), 4_160 + TSETH as u32);
    }

    #[test]
    fn the_loopback_interface_is_among_the_names() {
        assert!(interface_names().contains(&"lo".to_owned()), "{:?}", interface_names());
    }
}
