//! Regular topologies by their numbers: the names, addresses and links of
//! every node.

use core::net::Ipv4Addr;

/// A kind of regular topology with its numbers, each at least 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    /// Two hosts, with or without a switch between them.
    TwoHosts { switch: bool },
    /// Hosts around one switch.
    Star { hosts: usize },
    /// Every leaf on every spine.
    LeafSpine { leaves: usize, spines: usize, hosts_per_leaf: usize, parallel: usize },
    /// Pods of leaves and aggregation switches, joined by cores.
    ThreeTier(ThreeTier),
}

/// The numbers of a three-tier topology. In a pod every leaf is on every
/// aggregation switch. The cores are dealt out evenly: the first aggregation
/// switch of each pod is on the first `cores / aggs_per_pod` cores, and so on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ThreeTier {
    pub pods: usize,
    pub leaves_per_pod: usize,
    pub aggs_per_pod: usize,
    /// A multiple of `aggs_per_pod`.
    pub cores: usize,
    pub hosts_per_leaf: usize,
    pub parallel: usize,
}

/// An end of a link of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The host of this number.
    Host(usize),
    /// The switch of this number.
    Switch(usize),
}

/// What a shape is made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Parts {
    /// Names and addresses of the hosts.
    pub hosts: Vec<(String, Ipv4Addr)>,
    /// Names of the switches, the lowest tier first.
    pub switches: Vec<String>,
    /// Links with a host at one end, in the order of the hosts.
    pub host_links: Vec<[Place; 2]>,
    /// Links between switches, the lower end first.
    pub fabric_links: Vec<[Place; 2]>,
}

impl Shape {
    /// How many links it has.
    pub fn link_count(&self) -> usize {
        match *self {
            Self::TwoHosts { switch } => 1 + usize::from(switch),
            Self::Star { hosts } => hosts,
            Self::LeafSpine { leaves, spines, hosts_per_leaf, parallel } => {
                leaves * (hosts_per_leaf + spines * parallel)
            }
            Self::ThreeTier(t) => {
                let leaf = t.hosts_per_leaf + t.aggs_per_pod * t.parallel;
                t.pods * (t.leaves_per_pod * leaf + t.cores * t.parallel)
            }
        }
    }

    /// Its nodes and links.
    pub fn parts(&self) -> Parts {
        match *self {
            Self::TwoHosts { switch: false } => {
                let mut parts = Parts::default();
                parts.add_hosts(2, |host| address(0, host));
                parts.host_links.push([Place::Host(0), Place::Host(1)]);
                parts
            }
            Self::TwoHosts { switch: true } => star(2),
            Self::Star { hosts } => star(hosts),
            Self::LeafSpine { leaves, spines, hosts_per_leaf, parallel } => {
                let mut parts = Parts::default();
                parts.add_leaves(leaves, hosts_per_leaf, |leaf| (0, leaf));
                parts.add_switches("spine", spines);
                for leaf in 0..leaves {
                    parts.join(leaf, leaves..leaves + spines, parallel);
                }
                parts
            }
            Self::ThreeTier(numbers) => numbers.parts(),
        }
    }
}

impl ThreeTier {
    fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        let leaves = self.pods * self.leaves_per_pod;
        let place = |leaf| (leaf / self.leaves_per_pod, leaf % self.leaves_per_pod);
        parts.add_leaves(leaves, self.hosts_per_leaf, place);
        let aggs = self.pods * self.aggs_per_pod;
        parts.add_switches("agg", aggs);
        parts.add_switches("core", self.cores);
        for leaf in 0..leaves {
            let first = leaves + leaf / self.leaves_per_pod * self.aggs_per_pod;
            parts.join(leaf, first..first + self.aggs_per_pod, self.parallel);
        }
        let share = self.cores / self.aggs_per_pod;
        for agg in 0..aggs {
            let first = leaves + aggs + agg % self.aggs_per_pod * share;
            parts.join(leaves + agg, first..first + share, self.parallel);
        }
        parts
    }
}

fn star(hosts: usize) -> Parts {
    let mut parts = Parts::default();
    parts.add_hosts(hosts, |host| address(host / 254, host % 254));
    parts.add_switches("s", 1);
    parts.host_links = (0..hosts).map(|host| [Place::Host(host), Place::Switch(0)]).collect();
    parts
}

/// `10.0.BLOCK.HOST`, hosts from 1.
fn address(block: usize, host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, block as u8, host as u8 + 1)
}

impl Parts {
    fn add_hosts(&mut self, hosts: usize, address: impl Fn(usize) -> Ipv4Addr) {
        self.hosts.extend((0..hosts).map(|host| (format!("h{host}"), address(host))));
    }

    fn add_switches(&mut self, kind: &str, count: usize) {
        self.switches.extend((0..count).map(|number| format!("{kind}{number}")));
    }

    /// Leaves with their hosts. `place` says in which pod a leaf is, and its
    /// number there: the second and third byte of its hosts' addresses.
    fn add_leaves(&mut self, leaves: usize, hosts: usize, place: impl Fn(usize) -> (usize, usize)) {
        self.add_switches("leaf", leaves);
        self.add_hosts(leaves * hosts, |host| {
            let (pod, leaf) = place(host / hosts);
            Ipv4Addr::new(10, pod as u8, leaf as u8, (host % hosts) as u8 + 1)
        });
        let link = |host| [Place::Host(host), Place::Switch(host / hosts)];
        self.host_links.extend((0..leaves * hosts).map(link));
    }

    /// Joins the switch `lower` to each of `upper` by `parallel` links.
    fn join(&mut self, lower: usize, upper: core::ops::Range<usize>, parallel: usize) {
        for upper in upper {
            let link = [Place::Switch(lower), Place::Switch(upper)];
            self.fabric_links.extend(core::iter::repeat_n(link, parallel));
        }
    }
}
