//! What is remembered of closed receiving sides.

use std::collections::{BTreeMap, VecDeque};

use crate::time::{Duration, Instant};
use crate::trace::QpAddress;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

/// A closed receiving side.
// spec: REL-4
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tombstone {
    /// Its end here.
    pub local: QpAddress,
    /// The peer's end.
    pub remote: QpAddress,
    /// The first PSN it expected.
    pub first: PsnExt,
    /// The highest PSN it received in order.
    pub last: PsnExt,
    /// How many messages it received.
    pub messages: u32,
}

/// The receiving sides closed a short while ago, oldest first.
// spec: REL-4, W-6
#[derive(Debug)]
pub struct Tombstones {
    lifetime: Duration,
    limit: usize,
    by_local: BTreeMap<Qpn, Tombstone>,
    by_remote: BTreeMap<QpAddress, Qpn>,
    expiry: VecDeque<(Instant, Qpn)>,
}

impl Tombstones {
    /// None yet; each is kept for `lifetime`, `limit` at most.
    pub fn new(lifetime: Duration, limit: usize) -> Self {
        Self {
            lifetime,
            limit,
            by_local: BTreeMap::new(),
            by_remote: BTreeMap::new(),
            expiry: VecDeque::new(),
        }
    }

    /// Remembers a side that is closed at `now`.
    pub fn bury(&mut self, now: Instant, stone: Tombstone) {
        self.by_local.insert(stone.local.qpn, stone);
        self.by_remote.insert(stone.remote, stone.local.qpn);
        self.expiry.push_back((now + self.lifetime, stone.local.qpn));
        if self.expiry.len() > self.limit {
            self.forget_oldest();
        }
    }

    /// Forgets what is due at `now`.
    pub fn expire(&mut self, now: Instant) {
        while self.next_expiry().is_some_and(|at| at <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, qpn)) = self.expiry.pop_front() else { return };
        if let Some(stone) = self.by_local.remove(&qpn) {
            self.by_remote.remove(&stone.remote);
        }
    }

    /// When the oldest is forgotten.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.expiry.front().map(|(at, _)| *at)
    }

    /// The side that had the number `qpn` here.
    pub fn by_local(&self, qpn: Qpn) -> Option<&Tombstone> {
        self.by_local.get(&qpn)
    }

    /// The side that belonged to the peer's QP `remote`.
    pub fn by_remote(&self, remote: QpAddress) -> Option<&Tombstone> {
        self.by_local.get(self.by_remote.get(&remote)?)
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.by_local.len()
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::wire::psn::Psn;

    fn stone(n: u32) -> Tombstone {
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let first = PsnExt::first(Psn::masked(n.into()));
        Tombstone {
            local: QpAddress { ip: ip(2), qpn: Qpn::masked(n) },
            remote: QpAddress { ip: ip(1), qpn: Qpn::masked(n + 100) },
            first,
            last: first,
            messages: 1,
        }
    }

    // spec: REL-4
    #[test]
    fn are_found_by_both_numbers_until_their_time() {
        let mut stones = Tombstones::new(Duration::from_ns(10), 8);
        stones.bury(Instant::ZERO, stone(5));
        assert_eq!(stones.by_local(Qpn::masked(5)), Some(&stone(5)));
        assert_eq!(stones.by_remote(stone(5).remote), Some(&stone(5)));
        let end = Instant::ZERO + Duration::from_ns(10);
        stones.expire(end - Duration::from_ps(1));
        assert_eq!((stones.len(), stones.next_expiry()), (1, Some(end)));
        stones.expire(end);
        assert!(stones.len() == 0 && stones.by_remote(stone(5).remote).is_none());
    }

    // spec: REL-4
    #[test]
    fn the_oldest_goes_first_at_the_limit() {
        let mut stones = Tombstones::new(Duration::from_ns(10), 2);
        for n in 5..8 {
            stones.bury(Instant::ZERO, stone(n));
        }
        assert!(stones.by_local(Qpn::masked(5)).is_none());
        assert_eq!(stones.len(), 2);
    }
}
