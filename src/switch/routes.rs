//! Where a destination's packets leave: the longest prefix wins.

use core::cmp::Reverse;
use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use crate::node::PortId;

/// Packets to addresses under a prefix leave by one of these ports.
// spec: SW-1
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// The prefix; bits beyond its length do not count.
    pub prefix: Ipv4Addr,
    /// How many leading bits of the address must agree, 0 to 32.
    pub length: u8,
    /// The equal-cost set.
    pub ports: Vec<PortId>,
}

/// All routes of a switch. Routes with the same ports share one equal-cost set.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    /// By length, the longest first; each with its prefixes and their sets.
    lengths: BTreeMap<Reverse<u8>, BTreeMap<u32, usize>>,
    sets: Vec<PortSet>,
}

/// Ports that lead to the same destinations equally well.
#[derive(Debug)]
pub(super) struct PortSet {
    ports: Vec<PortId>,
    /// Those that may be used now, in the same order.
    usable: Vec<PortId>,
}

impl PortSet {
    /// A set whose ports may all be used.
    pub fn new(ports: Vec<PortId>) -> Self {
        Self { usable: ports.clone(), ports }
    }

    /// All its ports.
    pub fn all(&self) -> &[PortId] {
        &self.ports
    }

    /// Those that may be used now, in the same order.
    pub fn usable(&self) -> &[PortId] {
        &self.usable
    }

    /// Whether the port may be used now.
    pub fn is_usable(&self, port: PortId) -> bool {
        self.usable.contains(&port)
    }

    fn set_usable(&mut self, port: PortId, usable: bool) {
        let Self { ports, usable: before, .. } = self;
        let after = |id: &PortId| if *id == port { usable } else { before.contains(id) };
        let after: Vec<_> = ports.iter().copied().filter(after).collect();
        *before = after;
    }
}

impl RouteTable {
    /// Of two routes for one prefix the later one counts; one without ports
    /// leads nowhere.
    pub fn new(routes: Vec<Route>) -> Self {
        let mut table = Self::default();
        let mut known = BTreeMap::new();
        for Route { prefix, length, ports } in routes {
            let set = *known.entry(ports).or_insert_with_key(|ports| {
                table.sets.push(PortSet::new(ports.clone()));
                table.sets.len() - 1
            });
            let prefixes = table.lengths.entry(Reverse(length)).or_default();
            prefixes.insert(leading_bits(prefix, length), set);
        }
        table
    }

    /// The number of the set towards `destination`; `None` when there is no
    /// route.
    // spec: SW-1
    pub fn towards(&self, destination: Ipv4Addr) -> Option<usize> {
        self.lengths.iter().find_map(|(Reverse(length), prefixes)| {
            prefixes.get(&leading_bits(destination, *length)).copied()
        })
    }

    /// All sets; a set's number is its index. They are in the order of the first
    /// routes that name them.
    pub fn sets(&self) -> &[PortSet] {
        &self.sets
    }

    /// From now on `port` may be used or not, in every set.
    // spec: SW-13
    pub fn set_usable(&mut self, port: PortId, usable: bool) {
        self.sets.iter_mut().for_each(|set| set.set_usable(port, usable));
    }
}

/// The first `length` bits of an address, zeros after them.
fn leading_bits(address: Ipv4Addr, length: u8) -> u32 {
    let after = 32_u32.saturating_sub(length.into());
    address.to_bits() & u32::MAX.checked_shl(after).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(prefix: [u8; 4], length: u8, port: u16) -> Route {
        Route { prefix: prefix.into(), length, ports: vec![PortId(port)] }
    }

    fn ports(table: &RouteTable, destination: [u8; 4]) -> Vec<PortId> {
        let set = table.towards(destination.into());
        set.map_or_else(Vec::new, |set| table.sets()[set].all().to_vec())
    }

    // spec: SW-1
    #[test]
    fn the_longest_prefix_wins_whatever_the_order() {
        let mut routes = vec![
            route([0, 0, 0, 0], 0, 0),
            route([10, 1, 0, 0], 16, 1),
            route([10, 1, 2, 0], 24, 2),
            route([10, 1, 2, 3], 32, 3),
        ];
        for _ in 0..2 {
            let table = RouteTable::new(routes.clone());
            assert_eq!(ports(&table, [10, 1, 2, 3]), [PortId(3)]);
            assert_eq!(ports(&table, [10, 1, 2, 4]), [PortId(2)]);
            assert_eq!(ports(&table, [10, 1, 3, 3]), [PortId(1)]);
            assert_eq!(ports(&table, [192, 168, 0, 1]), [PortId(0)]);
            routes.reverse();
        }
    }

    // spec: SW-1
    #[test]
    fn bits_beyond_the_length_do_not_count_and_no_route_is_no_port() {
        let table = RouteTable::new(vec![route([10, 1, 2, 3], 24, 5)]);
        assert_eq!(ports(&table, [10, 1, 2, 200]), [PortId(5)]);
        assert_eq!(ports(&table, [10, 1, 3, 3]), []);
    }

    // spec: SW-1
    #[test]
    fn routes_with_the_same_ports_share_a_set() {
        let routes = [(1, 7), (2, 8), (3, 7)];
        let routes = routes.map(|(host, port)| route([10, 0, 0, host], 32, port)).to_vec();
        let table = RouteTable::new(routes);
        let sets: Vec<_> = table.sets().iter().map(PortSet::all).collect();
        assert_eq!(sets, [[PortId(7)], [PortId(8)]]);
        assert_eq!(table.towards([10, 0, 0, 1].into()), table.towards([10, 0, 0, 3].into()));
    }
}
