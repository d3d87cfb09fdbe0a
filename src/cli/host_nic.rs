//! `mrc nic` without a scenario: on an interface of this host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::failure::Failure;
use super::notice::notice;
use super::scenario::SourceArgs;
use mrc_lab::config::{NIC_ATTRIBUTES, NicAttributes, Profile};
use mrc_lab::daemon::{HostNic, NextHop};
use mrc_lab::lab::active_offloads;
use mrc_lab::wire::mac::MacAddr;

/// What a NIC on an interface of this host is told in place of a scenario.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Without a scenario")]
pub struct HostArgs {
    /// The NIC's address; with a length, a gateway has to be in that network
    /// [default: the interface's only IPv4 address].
    #[arg(long, value_name = "ADDRESS[/LENGTH]", value_parser = address)]
    ip: Option<Address>,
    /// The MAC address of a peer on the same Ethernet; give it once for each
    /// peer. Without `IP=`: that of all peers which are not named.
    #[arg(long, value_name = "[IP=]MAC", value_parser = peer_mac)]
    peer_mac: Vec<PeerMac>,
    /// Who passes on what is for peers that are not named: a router, or the
    /// only peer. Its MAC address is asked for by ARP.
    #[arg(long, value_name = "IP")]
    gateway: Option<Ipv4Addr>,
    /// Send and receive with this MAC address instead of the interface's, which
    /// becomes promiscuous. The kernel then knows nothing of the NIC: it
    /// answers no ARP for it.
    #[arg(long, value_name = "MAC", value_parser = station_mac)]
    own_mac: Option<MacAddr>,
    /// Set an attribute, as `MSS=1024`; `mrc attributes nic` lists all.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
}

/// An address with its network's length, where that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Address {
    ip: Ipv4Addr,
    length: Option<u8>,
}

impl Address {
    /// Whether `other` is in the same network, as far as is known.
    fn is_near(self, other: Ipv4Addr) -> bool {
        let mask = self
            .length
            .map_or(0, |length| u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0));
        (self.ip.to_bits() ^ other.to_bits()) & mask == 0
    }
}

fn address(text: &str) -> Result<Address, String> {
    let (ip, length) = match text.split_once('/') {
        Some((ip, length)) => (ip, Some(length)),
        None => (text, None),
    };
    let length = length.map(|length| length.parse().ok().filter(|bits| (1..=32).contains(bits)));
    let wanted = || "an IPv4 address is allowed, alone or with a length from 1 to 32, such as 192.168.1.5/24";
    let ip: Ipv4Addr = ip.parse().map_err(|_| wanted())?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() {
        return Err(format!("no NIC has this address; {}", wanted()));
    }
    match length {
        Some(None) => Err(wanted().to_owned()),
        length => Ok(Address { ip, length: length.flatten() }),
    }
}

/// A peer's MAC address, or that of all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PeerMac {
    ip: Option<Ipv4Addr>,
    mac: MacAddr,
}

fn peer_mac(text: &str) -> Result<PeerMac, String> {
    let (ip, mac) = match text.split_once('=') {
        Some((ip, mac)) => (Some(ip), mac),
        None => (None, text),
    };
    let ip = ip
        .map(|ip| ip.parse().map_err(|_| format!("`{ip}` is no IPv4 address: IP=MAC is allowed")));
    Ok(PeerMac { ip: ip.transpose()?, mac: station_mac(mac)? })
}

/// The address of one station: not of a group.
fn station_mac(text: &str) -> Result<MacAddr, String> {
    let mac: MacAddr = text.parse().map_err(|error| format!("{error}"))?;
    match mac.0[0] & 1 {
        0 => Ok(mac),
        _ => Err(format!(
            "{mac} is a group's address; one of a station, with an even first byte, is allowed"
        )),
    }
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').ok_or("NAME=VALUE is allowed, such as MSS=1024".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl HostArgs {
    /// The options, as people write them, that say something here.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            (self.ip.is_some(), "--ip"),
            (!self.peer_mac.is_empty(), "--peer-mac"),
            (self.gateway.is_some(), "--gateway"),
            (self.own_mac.is_some(), "--own-mac"),
            (!self.set.is_empty(), "--set"),
        ];
        given.into_iter().filter_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The NIC that they ask for.
    pub fn nic(&self, source: &SourceArgs) -> Result<HostNic, Failure> {
        let profile = source.profile.unwrap_or(Profile::Native);
        let (peers, others) = self.next_hops()?;
        Ok(HostNic {
            ip: self.ip.map(|address| address.ip),
            own_mac: self.own_mac,
            peers,
            others,
            profile,
            attributes: self.attributes(profile)?,
            seed: source.seed.unwrap_or(0),
        })
    }

    fn next_hops(&self) -> Result<(BTreeMap<Ipv4Addr, MacAddr>, Option<NextHop>), Failure> {
        let bad = |text: String| Err(Failure::bad_input(text));
        let (mut peers, mut others) = (BTreeMap::new(), self.gateway.map(NextHop::Gateway));
        for PeerMac { ip, mac } in &self.peer_mac {
            let Some(ip) = ip else {
                if others.replace(NextHop::Mac(*mac)).is_some() {
                    return bad(format!(
                        "--peer-mac {mac}: --gateway or another --peer-mac without IP= says already \
                         where what is for all others goes; write IP={mac}, or give one of them"
                    ));
                }
                continue;
            };
            if let Some(before) = peers.insert(*ip, *mac) {
                return bad(format!("--peer-mac {ip}={mac}: {ip} has {before} already; give one"));
            }
        }
        if peers.is_empty() && others.is_none() {
            return bad(
                "where to send is missing: give --peer-mac IP=MAC for each peer on this Ethernet, or \
                 --gateway IP for a router or the only peer; a lab's NIC has --scenario FILE --node NAME"
                    .to_owned(),
            );
        }
        if let (Some(ip), Some(gateway)) = (self.ip, self.gateway) {
            if ip.ip == gateway {
                return bad(format!(
                    "--gateway {gateway}: this is the NIC's own address; give another"
                ));
            }
            if !ip.is_near(gateway) {
                let length = ip.length.unwrap_or(0);
                return bad(format!(
                    "--gateway {gateway}: not in the network of --ip {}/{length}; correct one of them",
                    ip.ip
                ));
            }
        }
        Ok((peers, others))
    }

    fn attributes(&self, profile: Profile) -> Result<NicAttributes, Failure> {
        let mut attributes = profile.nic();
        for (name, value) in &self.set {
            NIC_ATTRIBUTES
                .set(&mut attributes, name, value)
                .map_err(|error| Failure::bad_input(format!("--set {name}={value}: {error}")))?;
        }
        match attributes.problems()[..] {
            [] => Ok(attributes),
            ref problems => {
                let lines: Vec<_> =
                    problems.iter().map(|problem| format!("--set: {problem}")).collect();
                Err(Failure::bad_input(lines.join("\n")))
            }
        }
    }
}

/// Says which offloads of `interface` may show in what is sent or captured.
/// They are left as they are: the interface is not this program's.
pub fn warn_of_offloads(interface: &str) {
    // An interface that is not there is told by what opens it.
    let active = active_offloads(interface).unwrap_or_default();
    if active.is_empty() {
        return;
    }
    let off: Vec<_> = active.iter().map(|name| format!("{name} off")).collect();
    notice(format_args!(
        "note: {interface} has the offloads {} on; frames of others may be seen joined or with \
         unfinished checksums. They are left as they are; to turn them off: ethtool -K {interface} {}",
        active.join(", "),
        off.join(" ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_length_or_none() {
        let ip = Ipv4Addr::new(192, 168, 1, 5);
        assert_eq!(address("192.168.1.5"), Ok(Address { ip, length: None }));
        let near = address("192.168.1.5/24").expect("allowed");
        let other = |third| Ipv4Addr::new(192, 168, third, 1);
        assert_eq!((near.is_near(other(1)), near.is_near(other(2))), (true, false));
        assert!(address("192.168.1.5").expect("allowed").is_near(other(2)));
        assert!(!address("192.168.1.5/32").expect("allowed").is_near(other(1)));
        for text in
            ["", "x", "1.2.3", "1.2.3.4/0", "1.2.3.4/33", "1.2.3.4/", "224.0.0.1", "0.0.0.0"]
        {
            assert!(address(text).expect_err(text).contains("length from 1 to 32"), "{text}");
        }
    }

    #[test]
    fn peers_have_a_station_address() {
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        assert_eq!(peer_mac("02:00:00:00:00:09"), Ok(PeerMac { ip: None, mac }));
        let ip = Some(Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(peer_mac("10.0.0.2=02:00:00:00:00:09"), Ok(PeerMac { ip, mac }));
        for (text, part) in [
            ("10.0.0.2=", "not an Ethernet address"),
            ("10.0.0=02:00:00:00:00:09", "`10.0.0` is no IPv4 address"),
            ("ff:ff:ff:ff:ff:ff", "group's address"),
        ] {
            assert!(peer_mac(text).expect_err(text).contains(part), "{text}");
        }
        assert!(setting("MSS").is_err());
    }
}
