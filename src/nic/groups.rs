//! The groups of a NIC: which QPs share a window.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use super::congestion::CongestionSettings;
use super::group::QpGroup;
use crate::time::Instant;

/// A group's place in its NIC; another group may have it later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupId(u32);

#[cfg(test)]
impl GroupId {
    /// The first one.
    pub const FIRST: Self = Self(0);
}

/// Every group. With `shared`, all QPs to one address form one; else every
/// sending side has one of its own.
// spec: SCHED-1, SCHED-7
#[derive(Debug)]
pub struct Groups {
    shared: bool,
    settings: CongestionSettings,
    slots: Vec<Option<QpGroup>>,
    free: Vec<GroupId>,
    by_peer: BTreeMap<Ipv4Addr, GroupId>,
}

impl Groups {
    /// None yet; each begins as `settings` say.
    pub fn new(shared: bool, settings: CongestionSettings) -> Self {
        Self { shared, settings, slots: Vec::new(), free: Vec::new(), by_peer: BTreeMap::new() }
    }

    /// A sending side to `peer` joins its group, which is made when there is none.
    // spec: SCHED-1, SCHED-3, SCHED-7
    pub fn join(&mut self, peer: Ipv4Addr, now: Instant) -> GroupId {
        let id = match self.by_peer.get(&peer).filter(|_| self.shared) {
            Some(id) => *id,
            None => self.add(peer, now),
        };
        if let Some(group) = self.get_mut(id) {
            group.join();
        }
        id
    }

    /// A receiving side from `peer` joins the group of the QPs to it; it sends no
    /// data, so where QPs are not grouped there is nothing to join.
    // spec: SCHED-1, SCHED-3
    pub fn join_receiving(&mut self, peer: Ipv4Addr, now: Instant) {
        if self.shared {
            self.join(peer, now);
        }
    }

    /// A receiving side from `peer` leaves; the group's place is given back when
    /// the group went with it.
    pub fn leave_receiving(&mut self, peer: Ipv4Addr) -> Option<GroupId> {
        let id = self.by_peer.get(&peer).copied().filter(|_| self.shared)?;
        self.leave(id).then_some(id)
    }

    /// A side of a QP leaves its group; true when the group went with it.
    // spec: SCHED-3
    pub fn leave(&mut self, id: GroupId) -> bool {
        let gone = self.get_mut(id).is_some_and(QpGroup::leave);
        if gone && let Some(group) = self.slots[id.0 as usize].take() {
            self.free.push(id);
            if self.shared {
                self.by_peer.remove(&group.peer());
            }
        }
        gone
    }

    fn add(&mut self, peer: Ipv4Addr, now: Instant) -> GroupId {
        let group = Some(QpGroup::new(peer, &self.settings, now));
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.0 as usize] = group;
                id
            }
            None => {
                self.slots.push(group);
                GroupId(self.slots.len() as u32 - 1)
            }
        };
        if self.shared {
            self.by_peer.insert(peer, id);
        }
        id
    }

    /// A group.
    pub fn get(&self, id: GroupId) -> Option<&QpGroup> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// A group, to change.
    pub fn get_mut(&mut self, id: GroupId) -> Option<&mut QpGroup> {
        self.slots.get_mut(id.0 as usize)?.as_mut()
    }

    /// Bytes in flight to `peer`, in all groups.
    pub fn in_flight(&self, peer: Ipv4Addr) -> u64 {
        let groups = self.slots.iter().flatten().filter(|group| group.peer() == peer);
        groups.map(QpGroup::in_flight).sum()
    }

    /// Whether a group to `peer` exists.
    pub fn in_use(&self, peer: Ipv4Addr) -> bool {
        match self.shared {
            true => self.by_peer.contains_key(&peer),
            false => self.slots.iter().flatten().any(|group| group.peer() == peer),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

    // spec: SCHED-1, SCHED-3
    #[test]
    fn qps_to_one_address_share_a_group_that_lives_as_long_as_one_of_them() {
        let mut groups = Groups::new(true, CongestionSettings::fixed(1_000));
        let first = groups.join(PEERS[0], Instant::ZERO);
        let other = groups.join(PEERS[1], Instant::ZERO);
        groups.join_receiving(PEERS[0], Instant::ZERO);
        assert_eq!((groups.join(PEERS[0], Instant::ZERO), groups.len()), (first, 2));
        assert_ne!(first, other);
        groups.get_mut(first).unwrap().add_flight(700);
        assert_eq!((groups.in_flight(PEERS[0]), groups.in_flight(PEERS[1])), (700, 0));
        assert!(!groups.leave(first) && !groups.leave(first));
        assert_eq!(groups.leave_receiving(PEERS[0]), Some(first));
        assert!(groups.get(first).is_none());
        // A later one starts anew.
        let later = groups.join(PEERS[0], Instant::ZERO);
        assert_eq!(groups.get(later).map(QpGroup::in_flight), Some(0));
    }

    // spec: SCHED-7
    #[test]
    fn without_grouping_every_sending_side_has_a_window_of_its_own() {
        let mut groups = Groups::new(false, CongestionSettings::fixed(1_000));
        let (first, second) =
            (groups.join(PEERS[0], Instant::ZERO), groups.join(PEERS[0], Instant::ZERO));
        assert_ne!(first, second);
        groups.join_receiving(PEERS[0], Instant::ZERO);
        assert_eq!((groups.len(), groups.leave_receiving(PEERS[0])), (2, None));
        groups.get_mut(first).unwrap().add_flight(1_000);
        assert!(!groups.get(first).unwrap().has_room());
        assert!(groups.get(second).unwrap().has_room());
        assert!(groups.leave(second) && groups.len() == 1);
    }
}
