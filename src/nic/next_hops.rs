//! Where frames go on the NIC's link.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use crate::wire::mac::MacAddr;

/// The MAC addresses to which a NIC sends what is for its peers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NextHops {
    /// For all peers that are not named: a router's, or the only peer's. With
    /// none the NIC speaks to the named ones alone.
    pub default: Option<MacAddr>,
    /// For these peers.
    pub peers: BTreeMap<Ipv4Addr, MacAddr>,
}

impl NextHops {
    /// Where what is for `peer` goes; `None`: there is no way to it.
    pub fn to(&self, peer: Ipv4Addr) -> Option<MacAddr> {
        self.peers.get(&peer).copied().or(self.default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_named_has_a_way_of_its_own() {
        let (router, direct) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let [near, far] = [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 9, 0, 2)];
        let peers = BTreeMap::from([(near, direct)]);
        let hops = NextHops { default: Some(router), peers };
        assert_eq!((hops.to(near), hops.to(far)), (Some(direct), Some(router)));
        let hops = NextHops { default: None, ..hops };
        assert_eq!((hops.to(near), hops.to(far)), (Some(direct), None));
    }
}
