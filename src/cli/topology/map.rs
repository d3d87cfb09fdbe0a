//! A topology in tiers: the NICs below, and each switch as far up as it is
//! from them.

use std::collections::BTreeMap;

use mrc_lab::scenario::{LinkPlan, Topology};
use mrc_lab::time::Duration;
use mrc_lab::units::{Rate, show_duration};

/// What a link is like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quality {
    pub rate: Rate,
    pub delay: Duration,
}

impl Quality {
    fn of(link: &LinkPlan) -> Self {
        Self { rate: link.rate, delay: link.delay }
    }

    /// `400 Gbps, 500 ns`.
    pub fn text(&self) -> String {
        format!("{}, {}", self.rate, show_duration(self.delay))
    }
}

/// The links between two nodes that are all alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bundle {
    /// The two nodes, that of the lower tier first.
    pub ends: [usize; 2],
    pub quality: Quality,
    /// The numbers of the links.
    pub links: Vec<usize>,
}

/// A topology with each node's tier.
#[derive(Debug)]
pub struct Map<'t> {
    pub name: &'t str,
    pub topology: &'t Topology,
    tiers: Vec<usize>,
    /// In the order of their lower ends, then of the upper ones.
    pub bundles: Vec<Bundle>,
}

impl<'t> Map<'t> {
    /// The map of the topology of the scenario `name`.
    pub fn new(name: &'t str, topology: &'t Topology) -> Self {
        let tiers = tiers(topology);
        let mut bundles = BTreeMap::<_, Vec<usize>>::new();
        for (number, link) in topology.links.iter().enumerate() {
            let mut ends = ends(link);
            if tiers[ends[0]] > tiers[ends[1]] {
                ends.reverse();
            }
            bundles.entry((ends, Quality::of(link))).or_default().push(number);
        }
        let bundles = bundles
            .into_iter()
            .map(|((ends, quality), links)| Bundle { ends, quality, links })
            .collect();
        Self { name, topology, tiers, bundles }
    }

    /// The tier of a node; the NICs' is 0.
    pub fn tier(&self, node: usize) -> usize {
        self.tiers[node]
    }

    /// The highest tier.
    pub fn top(&self) -> usize {
        self.tiers.iter().copied().max().unwrap_or(0)
    }

    /// The nodes of a tier.
    pub fn nodes_of(&self, tier: usize) -> Vec<usize> {
        (0..self.tiers.len()).filter(|node| self.tiers[*node] == tier).collect()
    }

    /// The bundles from the tier `lower` to the tier `upper`.
    pub fn bundles_between(&self, lower: usize, upper: usize) -> impl Iterator<Item = &Bundle> {
        self.bundles.iter().filter(move |b| b.ends.map(|node| self.tiers[node]) == [lower, upper])
    }

    /// A node's name.
    pub fn node_name(&self, node: usize) -> &'t str {
        &self.topology.nodes[node].name
    }
}

fn ends(link: &LinkPlan) -> [usize; 2] {
    link.ends.map(|end| end.node.0 as usize)
}

/// How many links each node is away from the nearest NIC.
fn tiers(topology: &Topology) -> Vec<usize> {
    let count = topology.nodes.len();
    let mut neighbours = vec![Vec::new(); count];
    for [a, b] in topology.links.iter().map(ends) {
        neighbours[a].push(b);
        neighbours[b].push(a);
    }
    let is_nic = |node: &usize| topology.nodes[*node].ip().is_some();
    let mut frontier: Vec<usize> = (0..count).filter(is_nic).collect();
    let mut tiers = vec![None; count];
    frontier.iter().for_each(|node| tiers[*node] = Some(0));
    let mut tier = 0;
    while !frontier.is_empty() {
        tier += 1;
        let mut next = Vec::new();
        for &node in frontier.iter().flat_map(|node| &neighbours[*node]) {
            if tiers[node].is_none() {
                tiers[node] = Some(tier);
                next.push(node);
            }
        }
        frontier = next;
    }
    // A switch on its own is above nothing.
    tiers.into_iter().map(|tier| tier.unwrap_or(1)).collect()
}
