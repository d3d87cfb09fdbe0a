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

/// All routes of a switch.
#[derive(Debug, Default)]
pub(super) struct RouteTable {
    /// By length, the longest first; each with its prefixes.
    lengths: BTreeMap<Reverse<u8>, BTreeMap<u32, Vec<PortId>>>,
}

impl RouteTable {
    /// Of two routes for one prefix the later one counts; one without ports
    /// leads nowhere.
    pub fn new(routes: Vec<Route>) -> Self {
        let mut table = Self::default();
        for Route { prefix, length, ports } in routes {
            let prefixes = table.lengths.entry(Reverse(length)).or_default();
            prefixes.insert(leading_bits(prefix, length), ports);
        }
        table
    }

    /// The ports towards `destination`; none when there is no route.
    // spec: SW-1
    pub fn towards(&self, destination: Ipv4Addr) -> &[PortId] {
        let mut lengths = self.lengths.iter();
        lengths
            .find_map(|(Reverse(length), prefixes)| {
                prefixes.get(&leading_bits(destination, *length))
            })
            .map_or(&[], Vec::as_slice)
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
            let port = |address: [u8; 4]| table.towards(address.into()).to_vec();
            assert_eq!(port([10, 1, 2, 3]), [PortId(3)]);
            assert_eq!(port([10, 1, 2, 4]), [PortId(2)]);
            assert_eq!(port([10, 1, 3, 3]), [PortId(1)]);
            assert_eq!(port([192, 168, 0, 1]), [PortId(0)]);
            routes.reverse();
        }
    }

    // spec: SW-1
    #[test]
    fn bits_beyond_the_length_do_not_count_and_no_route_is_no_port() {
        let table = RouteTable::new(vec![route([10, 1, 2, 3], 24, 5)]);
        assert_eq!(table.towards([10, 1, 2, 200].into()), [PortId(5)]);
        assert_eq!(table.towards([10, 1, 3, 3].into()), []);
    }
}
