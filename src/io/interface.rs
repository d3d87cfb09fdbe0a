//! The network interfaces of this host: what a NIC has to know of one to stand
//! on it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

use pnet_datalink::interfaces;

use super::clock::monotonic_ns;
use super::packet_socket::{PacketSocket, PacketSocketOptions};
use super::waiter::Waiter;
use crate::wire::arp::{self, Station};
use crate::wire::mac::MacAddr;

/// How often a question is asked before it counts as not answered.
const ARP_TRIES: u32 = 4;
/// How long each time, in nanoseconds.
const ARP_WAIT_NS: u64 = 500_000_000;
/// Every entry of the kernel's neighbour table in /proc that says so was made
/// by hand: `ATF_PERM` of linux/if_arp.h.
const PERMANENT: u32 = 0x04;

/// An interface of this thread's network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its MAC address; `None` when it is no Ethernet interface.
    pub mac: Option<MacAddr>,
    /// It is set up, and its cable leads to a device that is.
    pub is_up: bool,
    /// Its IPv4 addresses, each with the length of its prefix in bits.
    pub addresses: Vec<(Ipv4Addr, u8)>,
}

impl Interface {
    /// All interfaces; none when the host does not tell.
    pub fn list() -> Vec<Self> {
        let known = interfaces().into_iter().map(|found| Self {
            is_up: found.is_up() && found.is_running(),
            name: found.name,
            mac: found.mac.map(|mac| MacAddr(mac.octets())),
            addresses: found
                .ips
                .iter()
                .filter_map(|network| match network.ip() {
                    IpAddr::V4(address) => Some((address, network.prefix())),
                    IpAddr::V6(_) => None,
                })
                .collect(),
        });
        known.collect()
    }
}

/// The MAC address of `target` on the link of `interface`: what the kernel's
/// neighbour table holds by an administrator's hand, or what `target` answers
/// to `us` by ARP within 2 seconds; `None` when it does not.
///
/// # Errors
/// When the interface cannot be opened or does not send.
pub fn find_mac(interface: &str, us: Station, target: Ipv4Addr) -> io::Result<Option<MacAddr>> {
    match permanent_neighbours(interface).get(&target) {
        Some(mac) => Ok(Some(*mac)),
        None => ask(interface, us, target),
    }
}

fn ask(interface: &str, us: Station, target: Ipv4Addr) -> io::Result<Option<MacAddr>> {
    let options = PacketSocketOptions {
        ring_frames: 256,
        promiscuous: true,
        ..PacketSocketOptions::default()
    };
    let mut socket = PacketSocket::open(interface, &options)?;
    let mut waiter = Waiter::new()?;
    waiter.watch_frames(&socket);
    for _ in 0..ARP_TRIES {
        socket.send(&arp::request(us, target))?;
        let give_up = monotonic_ns() + ARP_WAIT_NS;
        while monotonic_ns() < give_up {
            waiter.wait(Some(give_up), || socket.has_frames())?;
            while let Some(frame) = socket.receive() {
                if let Some(station) = arp::reply(&frame).filter(|found| found.ip == target) {
                    return Ok(Some(station.mac));
                }
            }
        }
    }
    Ok(None)
}

/// The neighbours of `interface`, of this thread's network namespace, that the
/// kernel knows by an administrator's hand.
pub fn permanent_neighbours(interface: &str) -> BTreeMap<Ipv4Addr, MacAddr> {
    // A host without the table has no entries.
    let table = fs::read_to_string("/proc/thread-self/net/arp").unwrap_or_default();
    permanent_entries(&table, interface)
}

/// The permanent entries of `interface` in the text of /proc/net/arp.
fn permanent_entries(table: &str, interface: &str) -> BTreeMap<Ipv4Addr, MacAddr> {
    let entries = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [ip, _, flags, mac, _, device] = fields[..] else { return None };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        let fits = device == interface && flags & PERMANENT != 0;
        fits.then_some((ip.parse().ok()?, mac.parse().ok()?))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_with_its_address() {
        let list = Interface::list();
        let lo = list.iter().find(|interface| interface.name == "lo").expect("every host has it");
        assert_eq!((lo.mac, lo.is_up), (Some(MacAddr::default()), true));
        assert!(lo.addresses.contains(&(Ipv4Addr::LOCALHOST, 8)), "{lo:?}");
    }

    #[test]
    fn only_permanent_neighbours_of_the_interface_count() {
        let table = "\
IP address       HW type     Flags       HW address            Mask     Device
10.0.0.1         0x1         0x2         02:00:00:00:00:01     *        eth0
10.0.0.2         0x1         0x6         02:00:00:00:00:02     *        eth0
10.0.0.3         0x1         0x6         02:00:00:00:00:03     *        eth1
";
        let known = [(Ipv4Addr::new(10, 0, 0, 2), MacAddr([2, 0, 0, 0, 0, 2]))];
        assert_eq!(permanent_entries(table, "eth0"), known.into());
    }
}
