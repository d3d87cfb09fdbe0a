//! Why a daemon did not start or ended, in words that say what to do.

use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Why a daemon did not start, or ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The scenario has no such node.
    #[error("--node {name}: the scenario has no node of this name; it has {}", .known.join(", "))]
    UnknownNode {
        /// The name given.
        name: String,
        /// The nodes that there are.
        known: Vec<String>,
    },

    /// The node is of the other kind.
    #[error("--node {name}: this node is no {asked}; use `mrc {actual}`")]
    WrongKind {
        /// The node.
        name: String,
        /// The kind that was asked for.
        asked: &'static str,
        /// Its kind.
        actual: &'static str,
    },

    /// Not one interface for each port.
    #[error(
        "--interface: {given} given, but {node} has {ports} link(s) in the scenario; give one \
         interface for each, in the order of the links"
    )]
    InterfaceCount {
        /// The node.
        node: String,
        /// Interfaces given.
        given: usize,
        /// Ports that the node has.
        ports: usize,
    },

    /// One interface for two ports.
    #[error("--interface {0}: given twice; give each port an interface of its own")]
    InterfaceTwice(String),

    /// No such interface in this network namespace.
    #[error(
        "--interface {name}: there is no such interface in this network namespace; there are {}",
        .known.join(", ")
    )]
    NoInterface {
        /// The name given.
        name: String,
        /// The interfaces that there are.
        known: Vec<String>,
    },

    /// Full packets do not fit the interface.
    #[error(
        "--interface {name}: its MTU of {mtu} bytes is too small for the scenario's largest \
         packet, which is {needed} bytes; try `ip link set {name} mtu {needed}`, or a smaller MSS"
    )]
    Mtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The MTU that it needs.
        needed: u32,
    },

    /// Full packets of a NIC without a scenario do not fit the interface.
    #[error(
        "--interface {name}: its MTU of {mtu} bytes is too small for a full packet of {needed} \
         bytes (MSS = {mss}); try --set MSS={fits} at all NICs, or `ip link set {name} mtu \
         {needed}` where every switch and peer takes such frames"
    )]
    HostMtu {
        /// The interface.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The MTU that it needs.
        needed: u32,
        /// The attribute.
        mss: u32,
        /// What it may be.
        fits: u32,
    },

    /// The interface has no Ethernet address.
    #[error("--interface {0}: it has no MAC address; choose an Ethernet interface")]
    NoMac(String),

    /// No address was given and the interface does not have exactly one.
    #[error(
        "--ip is missing: {interface} has not exactly one IPv4 address but {known}; give --ip ADDRESS"
    )]
    WhichAddress {
        /// The interface.
        interface: String,
        /// Its addresses.
        known: String,
    },

    /// The address is none of this host's.
    #[error(
        "--ip {ip}: no interface here has this address ({interface} has {known}), so its peers \
         would look for it in vain; choose another, try `ip address add {ip}/24 dev {interface}`, \
         or give --own-mac too, so that the NIC is a station of its own"
    )]
    NotOurAddress {
        /// The address.
        ip: Ipv4Addr,
        /// The interface.
        interface: String,
        /// Its addresses.
        known: String,
    },

    /// Another NIC has the address already.
    #[error(
        "--ip {ip}: UDP port {port} of this address is taken in this network namespace, by \
         another `mrc nic` or by the kernel's own RoCE (rdma_rxe); stop that, or give this NIC \
         another address"
    )]
    AddressInUse {
        /// The address.
        ip: Ipv4Addr,
        /// The port.
        port: u16,
    },

    /// The gateway could not be asked for its MAC address.
    #[error("--gateway {gateway}: {source}; is {interface} up?")]
    Gateway {
        /// Its address.
        gateway: Ipv4Addr,
        /// Where it was to be asked.
        interface: String,
        /// Why not.
        source: io::Error,
    },

    /// The gateway did not answer.
    #[error(
        "--gateway {gateway}: it does not answer ARP on {interface}; check the address and the \
         cable, or give its MAC address: --peer-mac MAC"
    )]
    NoAnswer {
        /// Its address.
        gateway: Ipv4Addr,
        /// Where it was asked.
        interface: String,
    },

    /// The process may not open packet sockets.
    #[error(
        "--interface {name}: packet sockets need CAP_NET_RAW, which this process lacks; run it \
         as root or in a lab"
    )]
    NotPermitted {
        /// The interface.
        name: String,
    },

    /// The time dilation factor is 0.
    #[error("--tdf 0: time would stand still; give a whole number from 1 on")]
    ZeroTdf,

    /// The control socket cannot be made.
    #[error("--control {}: {source}", .path.display())]
    Control {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// The capture cannot be made.
    #[error("--capture {}: {source}", .path.display())]
    CaptureFile {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },

    /// The capture could not be written to its end.
    #[error("the capture is not complete: {0}")]
    CaptureLost(io::Error),

    /// The host refused something that a daemon needs.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted.
        doing: String,
        /// What the host said.
        source: io::Error,
    },
}

impl DaemonError {
    /// Whether another choice of options would help.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::NotPermitted { .. } | Self::CaptureLost(_) | Self::Io { .. })
    }

    /// Wraps a system error with what was attempted.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing: doing.into(), source }
    }
}
