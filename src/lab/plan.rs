//! What a lab's network is made of, checked before anything is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

/// The longest node name, in bytes: two of them fit an interface's alias.
const MAX_NAME: usize = 100;

/// The MTUs, in bytes, that a veth pair takes and IPv4 can use.
const MTUS: std::ops::RangeInclusive<u32> = 68..=65_535;

/// The MAC address of end 0 or 1 of link number `link`: `02:00`, then a number.
/// Locally administered, and the same on every run.
pub const fn interface_mac(link: u32, end: u8) -> [u8; 6] {
    let [a, b, c] = low_24(link);
    [0x02, 0x00, a, b, c, end]
}

const fn low_24(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}

/// An IPv4 address and the length of its network's prefix in bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4Prefix {
    /// The address.
    pub address: Ipv4Addr,
    /// How many leading bits name the network, at most 32.
    pub length: u8,
}

impl fmt::Display for Ipv4Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// One end of a link: an interface of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndPlan {
    /// The node it is on.
    pub node: String,
    /// The interface's MAC address.
    pub mac: [u8; 6],
    /// The interface's addresses; a switch's ports have none. The network of
    /// each is reached over the interface.
    pub addresses: Vec<Ipv4Prefix>,
    /// Further networks that are reached over the interface.
    pub routes: Vec<Ipv4Prefix>,
    /// Who has which MAC address, so that nobody needs to ask.
    pub neighbours: Vec<(Ipv4Addr, [u8; 6])>,
}

/// A veth pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkPlan {
    /// The MTU of both ends in bytes: the longest IPv4 packet.
    pub mtu: u32,
    /// The two ends.
    pub ends: [EndPlan; 2],
}

/// The nodes of a lab and the links between them.
///
/// A node's interfaces are named after its ports: `mrc0`, `mrc1`, ... in the
/// order of its links. Each has an alias that names both nodes in full.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NetworkPlan {
    /// Names of the nodes, hosts and switches; each gets a namespace of its name.
    pub nodes: Vec<String>,
    /// The links.
    pub links: Vec<LinkPlan>,
}

/// What is wrong with a plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// A node's name cannot name a namespace.
    #[error(
        "node name {0:?}: 1 to {MAX_NAME} of the characters A-Z a-z 0-9 . _ -, \
         the first a letter, digit or _"
    )]
    Name(String),
    /// Two nodes have one name.
    #[error("two nodes are named {0}")]
    DuplicateNode(String),
    /// A link ends at a node that the plan does not have.
    #[error("link {link} ends at {node}, which is no node")]
    UnknownNode {
        /// The link's index.
        link: usize,
        /// The unknown name.
        node: String,
    },
    /// Both ends of a link are on one node.
    #[error("link {link} has both ends at {node}")]
    Loop {
        /// The link's index.
        link: usize,
        /// The node.
        node: String,
    },
    /// An MTU is out of range.
    #[error("link {link}: MTU {mtu} is not within {} to {}", MTUS.start(), MTUS.end())]
    Mtu {
        /// The link's index.
        link: usize,
        /// The MTU in bytes.
        mtu: u32,
    },
    /// A MAC address is not locally administered, or a group's.
    #[error("link {link}: {mac} is not a locally administered unicast MAC address")]
    Mac {
        /// The link's index.
        link: usize,
        /// The address.
        mac: String,
    },
    /// Two interfaces have one MAC address.
    #[error("two interfaces have the MAC address {0}")]
    DuplicateMac(String),
    /// A prefix is longer than an address.
    #[error("link {link}: the prefix of {prefix} is longer than 32 bits")]
    Prefix {
        /// The link's index.
        link: usize,
        /// The address and its prefix.
        prefix: Ipv4Prefix,
    },
    /// Two nodes have one address.
    #[error("{address} is the address of both {first} and {second}")]
    DuplicateAddress {
        /// The address.
        address: Ipv4Addr,
        /// The node that has it.
        first: String,
        /// The node that is to have it too.
        second: String,
    },
}

impl NetworkPlan {
    /// Adds a node.
    pub fn add_node(&mut self, name: impl Into<String>) {
        self.nodes.push(name.into());
    }

    /// Adds a link of `mtu` bytes between two nodes, with the MAC addresses of
    /// [`interface_mac`] and no IPv4 addresses, and gives it back to be filled in.
    pub fn add_link(&mut self, first: &str, second: &str, mtu: u32) -> &mut LinkPlan {
        let number = self.links.len() as u32;
        let end = |node: &str, end| EndPlan {
            node: node.to_owned(),
            mac: interface_mac(number, end),
            addresses: Vec::new(),
            routes: Vec::new(),
            neighbours: Vec::new(),
        };
        self.links.push(LinkPlan { mtu, ends: [end(first, 0), end(second, 1)] });
        &mut self.links[number as usize]
    }

    /// The interface names of each link's two ends: `mrc` and the number of the
    /// node's links before this one.
    pub fn interface_names(&self) -> Vec<[String; 2]> {
        let mut ports: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = Vec::with_capacity(self.links.len());
        for link in &self.links {
            names.push(link.ends.each_ref().map(|end| {
                let port = ports.entry(&end.node).or_default();
                *port += 1;
                interface_name(*port - 1)
            }));
        }
        names
    }

    /// Checks that the plan can be built.
    ///
    /// # Errors
    /// The first thing found wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        let mut names = BTreeSet::new();
        for name in &self.nodes {
            if !is_valid_name(name) {
                return Err(PlanError::Name(name.clone()));
            }
            if !names.insert(name.as_str()) {
                return Err(PlanError::DuplicateNode(name.clone()));
            }
        }
        let mut seen = Seen::default();
        for (index, link) in self.links.iter().enumerate() {
            link.check(index, &names)?;
            link.ends.iter().try_for_each(|end| seen.add(end))?;
        }
        Ok(())
    }
}

/// The name of a node's interface at port number `port`: at most 13 characters,
/// of the kernel's 15.
pub(super) fn interface_name(port: u32) -> String {
    format!("mrc{port}")
}

/// Whether `name` can name a node, a file and what scripts pass on.
pub(super) fn is_valid_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= MAX_NAME
        && name.starts_with(is_word)
        && name.chars().all(|c| is_word(c) || c == '.' || c == '-')
}

impl LinkPlan {
    fn check(&self, link: usize, nodes: &BTreeSet<&str>) -> Result<(), PlanError> {
        if !MTUS.contains(&self.mtu) {
            return Err(PlanError::Mtu { link, mtu: self.mtu });
        }
        if self.ends[0].node == self.ends[1].node {
            return Err(PlanError::Loop { link, node: self.ends[0].node.clone() });
        }
        self.ends.iter().try_for_each(|end| end.check(link, nodes))
    }
}

impl EndPlan {
    fn check(&self, link: usize, nodes: &BTreeSet<&str>) -> Result<(), PlanError> {
        if !nodes.contains(self.node.as_str()) {
            return Err(PlanError::UnknownNode { link, node: self.node.clone() });
        }
        let neighbour_macs = self.neighbours.iter().map(|(_, mac)| mac);
        for mac in neighbour_macs.chain([&self.mac]) {
            // The low bits of the first byte: 1 a group's, 2 locally administered.
            if mac[0] & 3 != 2 {
                return Err(PlanError::Mac { link, mac: mac_text(*mac) });
            }
        }
        match self.addresses.iter().chain(&self.routes).find(|prefix| prefix.length > 32) {
            Some(&prefix) => Err(PlanError::Prefix { link, prefix }),
            None => Ok(()),
        }
    }
}

/// What has to be unique in a whole plan.
#[derive(Default)]
struct Seen<'a> {
    macs: BTreeSet<[u8; 6]>,
    addresses: BTreeMap<Ipv4Addr, &'a str>,
}

impl<'a> Seen<'a> {
    /// A node may have one address on several of its interfaces.
    fn add(&mut self, end: &'a EndPlan) -> Result<(), PlanError> {
        if !self.macs.insert(end.mac) {
            return Err(PlanError::DuplicateMac(mac_text(end.mac)));
        }
        for &Ipv4Prefix { address, .. } in &end.addresses {
            let first = *self.addresses.entry(address).or_insert(&end.node);
            if first != end.node {
                let (first, second) = (first.to_owned(), end.node.clone());
                return Err(PlanError::DuplicateAddress { address, first, second });
            }
        }
        Ok(())
    }
}

/// A MAC address in the usual spelling.
pub(super) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(nodes: &[&str]) -> NetworkPlan {
        let mut plan = NetworkPlan::default();
        nodes.iter().for_each(|&node| plan.add_node(node));
        plan
    }

    fn problem(change: impl FnOnce(&mut LinkPlan)) -> PlanError {
        let mut plan = plan(&["a", "s"]);
        plan.add_link("a", "s", 4200);
        plan.check().expect("good before the change");
        change(&mut plan.links[0]);
        plan.check().expect_err("bad after the change")
    }

    // spec: REL-10
    #[test]
    fn long_names_with_a_common_start_get_short_and_different_interfaces() {
        let mut plan = plan(&["verylongname1", "verylongname2", "s"]);
        plan.add_link("verylongname1", "s", 4200);
        plan.add_link("verylongname2", "s", 4200);
        plan.add_link("verylongname1", "verylongname2", 4200);
        plan.check().expect("a good plan");
        let names = plan.interface_names();
        assert_eq!(names, [["mrc0", "mrc0"], ["mrc0", "mrc1"], ["mrc1", "mrc1"]]);
    }

    #[test]
    fn names_that_cannot_name_a_namespace_are_refused() {
        let too_long = "x".repeat(MAX_NAME + 1);
        for name in ["", ".", "..", "-a", "a/b", "a b", "a\nnetns del c", "a#", "é", &too_long] {
            assert_eq!(plan(&[name]).check(), Err(PlanError::Name(name.to_owned())));
        }
        assert_eq!(plan(&["a", "leaf-1.pod_2", "0"]).check(), Ok(()));
        assert_eq!(plan(&["a", "b", "a"]).check(), Err(PlanError::DuplicateNode("a".to_owned())));
    }

    #[test]
    fn links_join_two_nodes_of_the_plan_with_a_possible_mtu() {
        let (link, node) = (0, "a".to_owned());
        assert_eq!(problem(|link| link.mtu = 67), PlanError::Mtu { link, mtu: 67 });
        assert_eq!(problem(|link| link.mtu = 65_536), PlanError::Mtu { link, mtu: 65_536 });
        assert_eq!(problem(|link| link.ends[1].node = "a".into()), PlanError::Loop { link, node });
        let node = "b".to_owned();
        let unknown = problem(|link| link.ends[1].node = "b".into());
        assert_eq!(unknown, PlanError::UnknownNode { link, node });
    }

    #[test]
    fn interface_macs_are_unique_and_made_up() {
        let same = problem(|link| link.ends[1].mac = link.ends[0].mac);
        assert_eq!(same, PlanError::DuplicateMac("02:00:00:00:00:00".to_owned()));
        for first in [0x00, 0x01, 0x03] {
            let bad = problem(|link| link.ends[0].mac[0] = first);
            assert!(matches!(bad, PlanError::Mac { link: 0, .. }), "{bad}");
        }
        let neighbour = (Ipv4Addr::new(10, 0, 0, 9), [0; 6]);
        let bad = problem(|link| link.ends[0].neighbours.push(neighbour));
        assert!(matches!(bad, PlanError::Mac { link: 0, .. }), "{bad}");
    }

    #[test]
    fn addresses_belong_to_one_node() {
        let prefix = |length| Ipv4Prefix { address: Ipv4Addr::new(10, 0, 0, 1), length };
        let long = problem(|link| link.ends[0].addresses.push(prefix(33)));
        assert_eq!(long, PlanError::Prefix { link: 0, prefix: prefix(33) });
        let twice = problem(|link| {
            link.ends.iter_mut().for_each(|end| end.addresses.push(prefix(24)));
        });
        assert_eq!(twice.to_string(), "10.0.0.1 is the address of both a and s");
    }

    // spec: SW-1
    #[test]
    fn a_nic_daemon_has_another_mac_than_any_interface() {
        for link in [0, 1, 255, 256, 65_536] {
            assert_eq!(interface_mac(link, 0)[0] & 3, 2);
            assert_ne!(interface_mac(link, 0), interface_mac(link, 1));
            assert_ne!(interface_mac(link, 0), interface_mac(link + 1, 0));
        }
        assert_eq!(mac_text(interface_mac(0x01_02_03, 1)), "02:00:01:02:03:01");
    }
}
