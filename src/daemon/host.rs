//! A NIC on an interface of this host, for which there is no scenario.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

use super::error::DaemonError;
use super::ports::{self, full_datagram};
use super::run::{Daemon, Options, Prepared, draw_life};
use crate::config::{NicAttributes, Profile};
use crate::io::interface::find_mac;
use crate::io::{GuardSocket, Interface, PortIo};
use crate::nic::{NextHops, Nic, NicConfig};
use crate::node::link::Link;
use crate::rng::Rng;
use crate::time::Duration;
use crate::trace::NodeId;
use crate::wire::arp::Station;
use crate::wire::mac::{MacAddr, MacPair};

/// What the other end of the only link is called.
const NETWORK: &str = "network";

/// A NIC on an interface of this host.
#[derive(Clone, Debug)]
pub struct HostNic {
    /// Its address; `None`: the only one of the interface.
    pub ip: Option<Ipv4Addr>,
    /// The MAC address that its frames carry; `None`: the interface's.
    pub own_mac: Option<MacAddr>,
    /// The MAC addresses of peers on the same Ethernet.
    pub peers: BTreeMap<Ipv4Addr, MacAddr>,
    /// Where what is for all others goes.
    pub others: Option<NextHop>,
    /// The profile of its attributes.
    pub profile: Profile,
    /// Its attributes.
    pub attributes: NicAttributes,
    /// The seed of its random streams.
    pub seed: u64,
}

/// Who passes on what is for peers without a MAC address of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextHop {
    /// Whoever has this MAC address.
    Mac(MacAddr),
    /// A router, or a peer: its MAC address is asked for by ARP.
    Gateway(Ipv4Addr),
}

impl Daemon<Nic> {
    /// Opens the sockets of a NIC on the interface that `options` name.
    ///
    /// # Errors
    /// When the options do not fit this host, or the gateway does not answer.
    // spec: W-7, TIME-2, TIME-3
    pub fn on_host(host: &HostNic, options: &Options) -> Result<Self, DaemonError> {
        let interface = find_interface(&options.interfaces[0])?;
        let ip = host.ip.map_or_else(|| only_address(&interface), Ok)?;
        let mac = host.own_mac.or(interface.mac);
        let mac = mac.ok_or_else(|| DaemonError::NoMac(interface.name.clone()))?;
        check_mtu(&interface.name, &host.attributes)?;
        let guard = match host.own_mac {
            // The kernel never looks at frames to other addresses than its own.
            Some(_) => None,
            None => Some(guard(&interface, ip, host.attributes.udp_port)?),
        };
        let needed = full_datagram(&host.attributes);
        let socket = ports::open_socket(&interface.name, needed, host.own_mac.is_some())?;
        let next_hops = next_hops(host, &interface.name, Station { mac, ip })?;
        let life = options.life.map_or_else(draw_life, Ok)?;
        let mut rng = Rng::derive(host.seed, &options.node, life);
        let attributes = host.attributes.clone();
        let delay = if attributes.paced { attributes.delay } else { Duration::ZERO };
        let link_rng = Rng::derive(host.seed, "link", 0);
        let link = Link::new(delay, Vec::new(), attributes.frame_format(), link_rng);
        let (rate, paced) = (attributes.data_rate, attributes.paced);
        let macs = MacPair { source: mac, destination: MacAddr::default() };
        let mut nic = Nic::new(NicConfig { ip, macs, link_rate: rate, attributes }, &mut rng);
        nic.set_next_hops(next_hops);
        let prepared = Prepared {
            node: nic,
            id: NodeId(0),
            ip: Some(ip),
            ports: vec![PortIo { socket, link }],
            peers: vec![NETWORK.to_owned()],
            guard,
            profile: host.profile,
            packet_time: paced.then(|| ports::wire_time(rate, needed)),
            rng,
            life,
        };
        Self::start(prepared, options)
    }
}

fn find_interface(name: &str) -> Result<Interface, DaemonError> {
    let mut list = Interface::list();
    match list.iter().position(|interface| interface.name == name) {
        Some(index) => Ok(list.swap_remove(index)),
        None => {
            let known = list.into_iter().map(|interface| interface.name).collect();
            Err(DaemonError::NoInterface { name: name.to_owned(), known })
        }
    }
}

fn only_address(interface: &Interface) -> Result<Ipv4Addr, DaemonError> {
    match interface.addresses[..] {
        [(address, _)] => Ok(address),
        _ => Err(DaemonError::WhichAddress {
            interface: interface.name.clone(),
            known: addresses(interface),
        }),
    }
}

/// The interface's addresses as text: `none`, or `10.0.0.1/24, 10.0.0.9/24`.
fn addresses(interface: &Interface) -> String {
    let all = interface.addresses.iter().map(|(ip, length)| format!("{ip}/{length}"));
    let all: Vec<_> = all.collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// That a full packet fits one frame: no router may cut it.
// spec: W-1, SEG-2
fn check_mtu(name: &str, attributes: &NicAttributes) -> Result<(), DaemonError> {
    let mtu = ports::read_mtu(name)?;
    let (mss, needed) = (attributes.mss, full_datagram(attributes));
    if needed <= mtu {
        return Ok(());
    }
    let fits = mtu.saturating_sub(needed - mss);
    Err(DaemonError::HostMtu { name: name.to_owned(), mtu, needed, mss, fits })
}

fn guard(interface: &Interface, ip: Ipv4Addr, port: u16) -> Result<GuardSocket, DaemonError> {
    GuardSocket::bind(ip, port).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => DaemonError::AddressInUse { ip, port },
        io::ErrorKind::AddrNotAvailable => DaemonError::NotOurAddress {
            ip,
            interface: interface.name.clone(),
            known: addresses(interface),
        },
        _ => DaemonError::io(format!("taking UDP port {port} of {ip}"))(error),
    })
}

fn next_hops(host: &HostNic, name: &str, us: Station) -> Result<NextHops, DaemonError> {
    let default = match host.others {
        None => None,
        Some(NextHop::Mac(mac)) => Some(mac),
        Some(NextHop::Gateway(gateway)) => {
            let found = find_mac(name, us, gateway).map_err(|source| DaemonError::Gateway {
                gateway,
                interface: name.to_owned(),
                source,
            })?;
            let interface = name.to_owned();
            Some(found.ok_or(DaemonError::NoAnswer { gateway, interface })?)
        }
    };
    Ok(NextHops { default, peers: host.peers.clone() })
}
