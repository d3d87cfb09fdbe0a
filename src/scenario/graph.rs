//! Who is joined to whom: each node's links in port order, and the hops
//! between nodes.

/// A way out of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Way {
    /// The link's number.
    pub link: usize,
    /// The end of the link that the node is.
    pub side: usize,
    /// The node at the other end.
    pub to: usize,
}

/// The links of a scenario by node. Nodes are numbered NICs first.
#[derive(Clone, Debug)]
pub(super) struct Graph {
    nics: usize,
    ways: Vec<Vec<Way>>,
}

impl Graph {
    /// The graph of `nodes` nodes, the first `nics` of which are NICs, with a
    /// link for each pair of `links`.
    pub fn new(nics: usize, nodes: usize, links: impl Iterator<Item = [usize; 2]>) -> Self {
        let mut ways = vec![Vec::new(); nodes];
        for (link, ends) in links.enumerate() {
            for side in 0..2 {
                ways[ends[side]].push(Way { link, side, to: ends[1 - side] });
            }
        }
        Self { nics, ways }
    }

    /// The ways out of `node`; a way's index is the number of its port.
    pub fn ways(&self, node: usize) -> &[Way] {
        &self.ways[node]
    }

    /// Hops from every node to `to`; `None` where no links lead there. NICs
    /// forward nothing.
    pub fn distances(&self, to: usize) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.ways.len()];
        distances[to] = Some(0);
        let mut frontier = vec![to];
        let mut hops = 0;
        while !frontier.is_empty() {
            hops += 1;
            let mut next = Vec::new();
            for way in frontier.into_iter().flat_map(|node| &self.ways[node]) {
                if distances[way.to].is_none() {
                    distances[way.to] = Some(hops);
                    if way.to >= self.nics {
                        next.push(way.to);
                    }
                }
            }
            frontier = next;
        }
        distances
    }

    /// The ports of `node` on a shortest way to where all hops are counted from.
    // spec: SW-1
    pub fn nearer(&self, node: usize, distances: &[Option<u32>]) -> impl Iterator<Item = usize> {
        let left = distances[node];
        let ways = self.ways[node].iter().enumerate();
        ways.filter(move |(_, way)| distances[way.to].is_some_and(|d| left == Some(d + 1)))
            .map(|(port, _)| port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NICs 0 and 1, switches 2 to 5: two leaves, each on both of two spines,
    /// the first leaf twice on the first spine.
    fn clos() -> Graph {
        let links = [[0, 2], [1, 3], [2, 4], [2, 4], [2, 5], [3, 4], [3, 5]];
        Graph::new(2, 6, links.into_iter())
    }

    // spec: SW-1
    #[test]
    fn all_shortest_ways_are_found_parallel_links_too() {
        let graph = clos();
        let to_b = graph.distances(1);
        assert_eq!(to_b, [4, 0, 3, 1, 2, 2].map(Some));
        let ports = |node, distances: &[_]| graph.nearer(node, distances).collect::<Vec<_>>();
        assert_eq!(ports(2, &to_b), [1, 2, 3]);
        assert_eq!(ports(4, &to_b), [2]);
        assert_eq!(ports(3, &to_b), [0]);
        assert_eq!(ports(4, &graph.distances(0)), [0, 1]);
        assert_eq!(graph.ways(2)[1], Way { link: 2, side: 0, to: 4 });
    }

    // spec: SW-1
    #[test]
    fn nics_forward_nothing() {
        let graph = Graph::new(3, 5, [[0, 3], [3, 1], [1, 4], [4, 2]].into_iter());
        assert_eq!(graph.distances(0), [Some(0), Some(2), None, Some(1), None]);
        assert_eq!(graph.nearer(4, &graph.distances(0)).count(), 0);
    }
}
