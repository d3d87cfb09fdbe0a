//! A NIC's receiving sides, and what bounds them.

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet};

use super::responder::Responder;
use crate::config::NicAttributes;
use crate::time::{Duration, Instant};
use crate::trace::QpAddress;
use crate::wire::qpn::Qpn;

/// Whether a peer may have one receiving side more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// It may.
    Free,
    /// It may once this one is closed.
    Closing(Qpn),
    /// It may not: every side that could make way has something unfinished.
    None,
}

/// Settled sides in the order in which they are closed: by the instant at which
/// each was last heard, those of one instant by number.
type ByIdleness = BTreeSet<(Instant, Qpn)>;

/// A receiving side with its places in the orders below.
#[derive(Debug)]
struct Side {
    responder: Responder,
    /// When its last data packet arrived.
    heard: Instant,
    /// When it is looked at again.
    look: Instant,
    /// Its instant among the settled sides, when it is one.
    settled: Option<Instant>,
}

/// What one peer has here.
#[derive(Debug, Default)]
struct PeerSides {
    count: usize,
    settled: ByIdleness,
}

/// The receiving sides of a NIC, by their own number and by the peer's end.
///
/// Packets from anyone make them, so they are bounded. What that costs a packet
/// in the middle of a message is to note when it came: a side has one place
/// among the instants at which it is looked at, which moves only when that
/// instant comes, and is in the order of closing only while it is settled.
// spec: RX-2, QP-8, REL-1
#[derive(Debug)]
pub struct Responders {
    limit: usize,
    limit_per_peer: usize,
    idle_timeout: Duration,
    /// Who may have sides; empty: everyone.
    allowed: BTreeSet<Ipv4Addr>,
    by_local: BTreeMap<Qpn, Side>,
    by_remote: BTreeMap<QpAddress, Qpn>,
    by_peer: BTreeMap<Ipv4Addr, PeerSides>,
    settled: ByIdleness,
    looks: BTreeSet<(Instant, Qpn)>,
    /// When a peer may next be told that there is no room.
    next_refusal: Instant,
}

impl Responders {
    /// Peers are told that there is no room once in this time, all together.
    const REFUSAL_SPACING: Duration = Duration::from_us(1);

    /// None yet; `attributes` say how many there may be.
    pub fn new(attributes: &NicAttributes) -> Self {
        Self {
            limit: attributes.max_qps as usize,
            limit_per_peer: attributes.max_receive_qps_per_peer as usize,
            idle_timeout: attributes.qp_idle_timeout,
            allowed: attributes.allowed_peers.iter().copied().collect(),
            by_local: BTreeMap::new(),
            by_remote: BTreeMap::new(),
            by_peer: BTreeMap::new(),
            settled: BTreeSet::new(),
            looks: BTreeSet::new(),
            next_refusal: Instant::ZERO,
        }
    }

    /// The side with the number `qpn` here.
    pub fn get(&self, qpn: Qpn) -> Option<&Responder> {
        self.by_local.get(&qpn).map(|side| &side.responder)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, qpn: Qpn) -> Option<&mut Responder> {
        self.by_local.get_mut(&qpn).map(|side| &mut side.responder)
    }

    /// Whether a side has the number `qpn` here.
    pub fn contains(&self, qpn: Qpn) -> bool {
        self.by_local.contains_key(&qpn)
    }

    /// The number here of the side that belongs to the peer's QP `remote`.
    // spec: QP-6
    pub fn by_remote(&self, remote: QpAddress) -> Option<Qpn> {
        self.by_remote.get(&remote).copied()
    }

    /// Every side, in the order of the numbers here.
    pub fn iter(&self) -> impl Iterator<Item = &Responder> {
        self.by_local.values().map(|side| &side.responder)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_local.len()
    }

    /// Whether `peer` may have sides at all.
    // spec: REL-1
    pub fn allows(&self, peer: Ipv4Addr) -> bool {
        self.allowed.is_empty() || self.allowed.contains(&peer)
    }

    /// Whether `peer` may have one more. At its own limit a side of its own makes
    /// way, at that of all peers a side of anyone.
    // spec: REL-1
    pub fn room_for(&self, peer: Ipv4Addr) -> Room {
        let own = self.by_peer.get(&peer);
        let candidates = match own {
            Some(own) if own.count >= self.limit_per_peer => &own.settled,
            _ if self.by_local.len() >= self.limit => &self.settled,
            _ => return Room::Free,
        };
        candidates.first().map_or(Room::None, |(_, qpn)| Room::Closing(*qpn))
    }

    /// A peer is refused for lack of room; true when it may be told so.
    // spec: REL-1
    pub fn may_tell_refusal(&mut self, now: Instant) -> bool {
        let may = now >= self.next_refusal;
        if may {
            self.next_refusal = now + Self::REFUSAL_SPACING;
        }
        may
    }

    /// A side has been made for a data packet that arrived at `now`; once that
    /// has been taken in, [`Self::on_heard`] follows as after every other.
    pub fn insert(&mut self, responder: Responder, now: Instant) {
        let (local, remote) = (responder.local().qpn, responder.remote());
        let look = now + self.idle_timeout;
        self.looks.insert((look, local));
        self.by_remote.insert(remote, local);
        self.by_peer.entry(remote.ip).or_default().count += 1;
        self.by_local.insert(local, Side { responder, heard: now, look, settled: None });
    }

    /// Takes a side out.
    pub fn remove(&mut self, qpn: Qpn) -> Option<Responder> {
        let Side { responder, look, settled, .. } = self.by_local.remove(&qpn)?;
        let remote = responder.remote();
        self.looks.remove(&(look, qpn));
        self.by_remote.remove(&remote);
        self.move_settled(remote.ip, qpn, settled, None);
        if let Some(own) = self.by_peer.get_mut(&remote.ip) {
            own.count -= 1;
            if own.count == 0 {
                self.by_peer.remove(&remote.ip);
            }
        }
        Some(responder)
    }

    /// A data packet reached the side `qpn` at `now` and has been taken in.
    // spec: REL-1
    pub fn on_heard(&mut self, qpn: Qpn, now: Instant) {
        let Some(side) = self.by_local.get_mut(&qpn) else { return };
        side.heard = now;
        let after = side.responder.is_settled().then_some(now);
        let before = core::mem::replace(&mut side.settled, after);
        if before != after {
            let peer = side.responder.remote().ip;
            self.move_settled(peer, qpn, before, after);
        }
    }

    fn move_settled(
        &mut self,
        peer: Ipv4Addr,
        qpn: Qpn,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        let own = self.by_peer.get_mut(&peer).map(|own| &mut own.settled);
        for order in own.into_iter().chain([&mut self.settled]) {
            if let Some(at) = before {
                order.remove(&(at, qpn));
            }
            if let Some(at) = after {
                order.insert((at, qpn));
            }
        }
    }

    /// When a side is looked at next: no later than the instant at which one has
    /// been idle for its time.
    pub fn next_look(&self) -> Option<Instant> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// A side that has been idle for its time at `now`, if there is one. Those
    /// that were heard since they were last looked at are looked at later.
    // spec: REL-1
    pub fn idle_too_long(&mut self, now: Instant) -> Option<Qpn> {
        while let Some((look, qpn)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            let side = self.by_local.get_mut(&qpn)?;
            let due = side.heard + self.idle_timeout;
            if due <= now {
                return Some(qpn);
            }
            side.look = due;
            self.looks.remove(&(look, qpn));
            self.looks.insert((due, qpn));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::responder::DataArrival;
    use super::*;
    use crate::wire::psn::{Psn, PsnExt};

    fn first() -> PsnExt {
        PsnExt::first(Psn::masked(0))
    }

    fn ns(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    fn peer(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    /// At most 4 sides, 2 of one peer; each is closed after 10 ns.
    fn small() -> Responders {
        Responders::new(&NicAttributes {
            max_qps: 4,
            max_receive_qps_per_peer: 2,
            qp_idle_timeout: Duration::from_ns(10),
            ..NicAttributes::default()
        })
    }

    /// Side `number`, of the peer's QP of the same number.
    fn side(ip: Ipv4Addr, number: u32) -> Responder {
        let qpn = Qpn::masked(number);
        let local = QpAddress { ip: peer(100), qpn };
        Responder::new(local, QpAddress { ip, qpn }, first(), 64)
    }

    /// The side's next packet, or the one after it, arrives.
    fn arrive(sides: &mut Responders, number: u32, skip: bool, ends_message: bool, now: Instant) {
        let qpn = Qpn::masked(number);
        let Some(responder) = sides.get_mut(qpn) else { return };
        let psn = responder.cumulative().plus(1 + u64::from(skip));
        let data = DataArrival {
            psn,
            payload: 1,
            wire_bytes: 79,
            ends_message,
            message_bytes: 1,
            ack_request: false,
            retransmission: false,
            congestion_marked: false,
            entropy: 0,
            timestamp: None,
        };
        responder.accept(&data);
        while responder.pop_whole().is_some() {}
        sides.on_heard(qpn, now);
    }

    fn add(sides: &mut Responders, ip: Ipv4Addr, number: u32, whole: bool, at: u64) {
        sides.insert(side(ip, number), ns(at));
        arrive(sides, number, false, whole, ns(at));
    }

    fn closing(number: u32) -> Room {
        Room::Closing(Qpn::masked(number))
    }

    #[test]
    fn a_side_is_found_by_its_number_and_by_the_peers_end() {
        let mut sides = small();
        let remote = QpAddress { ip: peer(1), qpn: Qpn::masked(5) };
        sides.insert(side(peer(1), 5), ns(0));
        assert_eq!(sides.by_remote(remote), Some(Qpn::masked(5)));
        assert_eq!(sides.get(Qpn::masked(5)).map(Responder::remote), Some(remote));
        assert_eq!(sides.by_remote(QpAddress { ip: peer(2), ..remote }), None);
        assert!(sides.remove(Qpn::masked(5)).is_some() && sides.by_remote(remote).is_none());
        assert!(sides.remove(Qpn::masked(5)).is_none() && sides.len() == 0);
    }

    // spec: REL-1
    #[test]
    fn at_a_peers_limit_its_own_settled_side_that_is_idle_longest_makes_way() {
        let mut sides = small();
        add(&mut sides, peer(1), 10, true, 0);
        assert_eq!(sides.room_for(peer(1)), Room::Free);
        add(&mut sides, peer(2), 20, true, 1);
        add(&mut sides, peer(2), 21, true, 2);
        assert_eq!(sides.room_for(peer(2)), closing(20), "10 is idle longer, but another's");
        arrive(&mut sides, 20, false, true, ns(3));
        assert_eq!(sides.room_for(peer(2)), closing(21), "20 was heard meanwhile");
        arrive(&mut sides, 21, false, false, ns(4));
        assert_eq!(sides.room_for(peer(2)), closing(20), "21 is in a message");
        arrive(&mut sides, 20, true, true, ns(5));
        assert_eq!(sides.room_for(peer(2)), Room::None, "20 has a gap");
        assert_eq!(sides.room_for(peer(1)), Room::Free);
    }

    // spec: REL-1
    #[test]
    fn at_the_limit_of_all_anyones_side_makes_way() {
        let mut sides = small();
        for (number, whole) in [(10, false), (11, true), (12, true), (13, false)] {
            add(&mut sides, peer(number as u8), number, whole, u64::from(number));
        }
        assert_eq!(sides.room_for(peer(1)), closing(11));
        sides.remove(Qpn::masked(11));
        assert_eq!(sides.room_for(peer(1)), Room::Free);
        add(&mut sides, peer(1), 14, false, 20);
        assert_eq!(sides.room_for(peer(1)), closing(12));
    }

    // spec: REL-1
    #[test]
    fn a_side_that_was_heard_is_looked_at_later() {
        let mut sides = small();
        add(&mut sides, peer(1), 10, false, 0);
        add(&mut sides, peer(1), 11, true, 2);
        arrive(&mut sides, 10, false, false, ns(7));
        assert_eq!((sides.next_look(), sides.idle_too_long(ns(9))), (Some(ns(10)), None));
        assert_eq!((sides.idle_too_long(ns(10)), sides.next_look()), (None, Some(ns(12))));
        assert_eq!(sides.idle_too_long(ns(12)), Some(Qpn::masked(11)));
        sides.remove(Qpn::masked(11));
        assert_eq!((sides.idle_too_long(ns(12)), sides.next_look()), (None, Some(ns(17))));
        assert_eq!(sides.idle_too_long(ns(17)), Some(Qpn::masked(10)));
        sides.remove(Qpn::masked(10));
        assert_eq!(sides.next_look(), None);
    }

    // spec: REL-1
    #[test]
    fn refusals_are_told_a_microsecond_apart() {
        let mut sides = small();
        let told =
            [0, 1, 999, 1_000, 1_999, 5_000, 5_999, 6_000].map(|at| sides.may_tell_refusal(ns(at)));
        assert_eq!(told, [true, false, false, true, false, true, false, true]);
    }

    // spec: REL-1
    #[test]
    fn only_listed_peers_are_allowed_when_any_is() {
        let allowed = |peers: &[u8], one: u8| {
            let allowed_peers = peers.iter().map(|last| peer(*last)).collect();
            Responders::new(&NicAttributes { allowed_peers, ..NicAttributes::default() })
                .allows(peer(one))
        };
        assert!(allowed(&[], 1) && allowed(&[2, 1], 1) && !allowed(&[2, 3], 1));
    }

    proptest! {
        // spec: REL-1
        #[test]
        fn agrees_with_a_list_that_is_searched(
            steps in proptest::collection::vec((0_u32..6, 0_u8..4, any::<bool>(), 0_u64..4), 1..200)
        ) {
            let mut sides = small();
            // Of each side: its peer, when it was heard.
            let mut model: BTreeMap<u32, (Ipv4Addr, u64)> = BTreeMap::new();
            let mut at = 0;
            for (number, action, flag, pause) in steps {
                at += pause;
                let ip = peer(number as u8 % 2 + 1);
                let known = model.contains_key(&number);
                match action {
                    0 if known => {
                        model.remove(&number);
                        sides.remove(Qpn::masked(number));
                    }
                    1 if known => {
                        model.insert(number, (ip, at));
                        arrive(&mut sides, number, flag, true, ns(at));
                    }
                    _ if known => {
                        model.insert(number, (ip, at));
                        arrive(&mut sides, number, false, flag, ns(at));
                    }
                    _ => {
                        model.insert(number, (ip, at));
                        add(&mut sides, ip, number, flag, at);
                    }
                }
                while let Some(qpn) = sides.idle_too_long(ns(at)) {
                    let (_, heard) = model.remove(&qpn.value()).expect("it is there");
                    prop_assert!(heard + 10 <= at);
                    sides.remove(qpn);
                }
                prop_assert!(model.values().all(|(_, heard)| heard + 10 > at));
                let looks = sides.next_look().is_none_or(|look| look > ns(at));
                prop_assert!(looks && sides.next_look().is_some() != model.is_empty());
                for ip in [peer(1), peer(2), peer(3)] {
                    let own = model.values().filter(|(peer, _)| *peer == ip).count();
                    let settled = |number: &u32| {
                        sides.get(Qpn::masked(*number)).is_some_and(Responder::is_settled)
                    };
                    let oldest = model
                        .iter()
                        .filter(|(number, (peer, _))| settled(number) && (own < 2 || *peer == ip))
                        .min_by_key(|(number, (_, heard))| (*heard, **number));
                    let expected = match oldest {
                        _ if own < 2 && model.len() < 4 => Room::Free,
                        Some((number, _)) => closing(*number),
                        None => Room::None,
                    };
                    prop_assert_eq!(sides.room_for(ip), expected);
                }
            }
        }
    }
}
