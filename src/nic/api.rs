//! What applications ask of a NIC: memory, work, events.

use core::net::Ipv4Addr;

use serde::Serialize;

use super::group::QpGroup;
use super::memory::{Access, MemoryRegion};
use super::requester::Requester;
use super::responder::Responder;
use super::tombstones::Tombstone;
use super::{Nic, QpErrorReason, RetransmitCounts, RttStatistics, WindowInfo};
use crate::node::Ctx;
use crate::trace::{QpAddress, QpEvent, QpEventKind};
use crate::wire::psn::{Psn, PsnExt};
use crate::wire::qpn::{Qpn, RKey};

/// Which QP a message goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpChoice {
    /// One of its own, made with the doorbell.
    New,
    /// One that this NIC made before, behind the messages on it.
    Existing(Qpn),
}

/// An RDMA Write to post.
// spec: QP-2
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkRequest {
    /// The poster's own number for it.
    pub wqe_id: u64,
    /// The NIC that it goes to.
    pub peer: Ipv4Addr,
    /// The key of the local region it is read from.
    pub lkey: RKey,
    /// Where in that region it starts.
    pub local_va: u64,
    /// How many bytes.
    pub length: u32,
    /// Where in the peer's memory it goes.
    pub remote_va: u64,
    /// The key of the peer's region.
    pub rkey: RKey,
}

/// Why a work request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The QP does not exist here or does not send.
    #[error("QP {0} is not a sending side of this NIC")]
    UnknownQp(u32),
    /// The QP goes to another peer.
    #[error("QP {qpn} goes to {actual}, not to {asked}")]
    WrongPeer {
        /// The QP.
        qpn: u32,
        /// Where it goes.
        actual: Ipv4Addr,
        /// Where the request goes.
        asked: Ipv4Addr,
    },
    /// The QP is in the error state.
    #[error("QP {0} is in the error state ({1})")]
    InError(u32, &'static str),
    /// The local buffer is not inside a registered region.
    #[error("{length} bytes at {va:#x} with local key {lkey:#x} are not in a registered region")]
    LocalMemory {
        /// The key given.
        lkey: u32,
        /// The address given.
        va: u64,
        /// The length given.
        length: u32,
    },
    /// The message is longer than a message may be.
    #[error("a message of {0} bytes is longer than the {max} that are allowed", max = Nic::MAX_MESSAGE)]
    TooLong(u32),
    /// A NIC does not send to itself.
    #[error("{0} is this NIC's own address; it does not send to itself")]
    OwnAddress(Ipv4Addr),
    /// The NIC knows no MAC address to send to.
    #[error("no next hop leads to {0}; give its MAC address, or a gateway, when the NIC starts")]
    NoNextHop(Ipv4Addr),
    /// Every QP number is in use.
    #[error("every QP number is in use")]
    NoNumber,
}

/// Which side of a QP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QpSide {
    /// It sends.
    Requester,
    /// It receives.
    Responder,
}

/// A side of a QP as an operator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QpInfo {
    /// Which side.
    pub side: QpSide,
    /// This end.
    pub local: QpAddress,
    /// The other end.
    pub remote: QpAddress,
    /// The cumulative PSN.
    pub cumulative: Psn,
    /// Requester: messages not completed. Responder: messages received.
    pub messages: u64,
    /// Requester: packets sent beyond the cumulative PSN. Responder: packets
    /// held out of order.
    pub beyond_cumulative: u64,
    /// Requester: what it has sent again.
    pub retransmissions: RetransmitCounts,
    /// Requester: the round-trip times of its group, once there is one.
    pub rtt: Option<RttStatistics>,
    /// Requester: the congestion window of its group, unless it has left that.
    pub window: Option<WindowInfo>,
    /// Why it is in the error state, when it is.
    pub error: Option<QpErrorReason>,
}

impl QpInfo {
    fn of_requester(requester: &Requester, group: Option<&QpGroup>) -> Self {
        Self {
            side: QpSide::Requester,
            local: requester.local(),
            remote: requester.remote(),
            cumulative: requester.sent().cumulative().wire(),
            messages: requester.messages_open() as u64,
            beyond_cumulative: requester.sent().span(),
            retransmissions: requester.counts(),
            rtt: group.and_then(QpGroup::rtt),
            window: group.map(QpGroup::window_info),
            error: requester.error(),
        }
    }

    fn of_responder(responder: &Responder) -> Self {
        Self {
            side: QpSide::Responder,
            local: responder.local(),
            remote: responder.remote(),
            cumulative: responder.cumulative().wire(),
            messages: u64::from(responder.messages()),
            beyond_cumulative: u64::from(responder.held()),
            retransmissions: RetransmitCounts::default(),
            rtt: None,
            window: None,
            error: None,
        }
    }
}

impl Nic {
    /// The longest message, in bytes.
    // spec: W-8
    pub const MAX_MESSAGE: u32 = 1 << 31;

    /// Registers `bytes` as a region; the key is random.
    // spec: REL-2
    pub fn register_memory(
        &mut self,
        ctx: &mut Ctx<'_>,
        bytes: Vec<u8>,
        access: Access,
    ) -> MemoryRegion {
        self.memory.register(ctx.rng, bytes, access)
    }

    /// Forgets a region and gives its bytes back; `None`, and it stays, when it
    /// is unknown or a message that is not complete is sent from it.
    // spec: PB-6
    pub fn deregister_memory(&mut self, rkey: RKey) -> Option<Vec<u8>> {
        let in_use = self.requesters.values().any(|requester| requester.sends_from(rkey));
        (!in_use).then(|| self.memory.deregister(rkey))?
    }

    /// A region's bytes.
    pub fn memory(&self, rkey: RKey) -> Option<&[u8]> {
        self.memory.bytes(rkey)
    }

    /// Rings the doorbell: queues a message on a QP, which is made first when
    /// the request asks for a new one; gives the QP's number. The transmit
    /// process starts [`Nic::DOORBELL_DELAY`] later.
    ///
    /// # Errors
    /// When the request names what does not exist here; nothing happens then.
    // spec: QP-3, QP-4, QP-7, QP-9
    pub fn post_write(
        &mut self,
        ctx: &mut Ctx<'_>,
        qp: QpChoice,
        work: WorkRequest,
    ) -> Result<Qpn, PostError> {
        self.check(&work)?;
        let qpn = match qp {
            QpChoice::New => self.create_requester(ctx, work.peer)?,
            QpChoice::Existing(qpn) => self.check_existing(qpn, work.peer)?,
        };
        let Some(requester) = self.requesters.get_mut(&qpn) else {
            return Err(PostError::UnknownQp(qpn.value()));
        };
        let waited = requester.is_psn_window_full();
        requester.post(work);
        self.counters.psn_window_stalls += u64::from(!waited && requester.is_psn_window_full());
        let ends = (requester.local(), requester.remote());
        self.counters.wqes_created += 1;
        let message = Some((work.wqe_id, work.length));
        self.emit(ctx, QpEventKind::WqeCreated, ends, message);
        self.activate(qpn);
        self.scheduler.pass_at(ctx.now + Self::DOORBELL_DELAY);
        Ok(qpn)
    }

    fn check(&self, work: &WorkRequest) -> Result<(), PostError> {
        if work.length > Self::MAX_MESSAGE {
            return Err(PostError::TooLong(work.length));
        }
        if work.peer == self.config.ip {
            return Err(PostError::OwnAddress(work.peer));
        }
        if self.next_hops.to(work.peer).is_none() {
            return Err(PostError::NoNextHop(work.peer));
        }
        let readable = work.length == 0
            || self.memory.read(work.lkey, work.local_va, work.length as usize).is_some();
        readable.then_some(()).ok_or(PostError::LocalMemory {
            lkey: work.lkey.0,
            va: work.local_va,
            length: work.length,
        })
    }

    fn check_existing(&self, qpn: Qpn, peer: Ipv4Addr) -> Result<Qpn, PostError> {
        let requester = self.requesters.get(&qpn).ok_or(PostError::UnknownQp(qpn.value()))?;
        if let Some(reason) = requester.error() {
            return Err(PostError::InError(qpn.value(), reason.name()));
        }
        let actual = requester.remote().ip;
        if actual != peer {
            return Err(PostError::WrongPeer { qpn: qpn.value(), actual, asked: peer });
        }
        Ok(qpn)
    }

    // spec: QP-3, QP-8, W-7
    fn create_requester(&mut self, ctx: &mut Ctx<'_>, peer: Ipv4Addr) -> Result<Qpn, PostError> {
        let qpn = self.allocate_qpn().ok_or(PostError::NoNumber)?;
        let local = QpAddress { ip: self.config.ip, qpn };
        let random = Psn::masked(ctx.rng.next_u64());
        let first = PsnExt::first(self.config.attributes.initial_psn.unwrap_or(random));
        let group = self.groups.join(peer, ctx.now);
        let requester = Requester::new(local, peer, group, first, self.limits);
        let ends = (requester.local(), requester.remote());
        self.requesters.insert(qpn, requester);
        self.counters.qp_created += 1;
        self.emit(ctx, QpEventKind::QpCreated, ends, None);
        Ok(qpn)
    }

    /// A number for a new side of a QP.
    pub(super) fn allocate_qpn(&mut self) -> Option<Qpn> {
        let (requesters, responders) = (&self.requesters, &self.responders);
        let stones = &self.tombstones;
        self.numbers.allocate(|qpn| {
            requesters.contains_key(&qpn)
                || responders.contains(qpn)
                || stones.by_local(qpn).is_some()
        })
    }

    /// Closes a side of a QP and tells how it stood; `None` when this NIC has none
    /// of that number. A receiving side leaves a tombstone; a message that was
    /// not complete never is.
    // spec: QP-9, REL-4, RTO-11
    pub fn close_qp(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn) -> Option<QpInfo> {
        let info = self.close_requester(ctx, qpn).or_else(|| self.close_responder(ctx, qpn))?;
        self.settle(ctx);
        Some(info)
    }

    /// The others of its group may find room now.
    // spec: SEG-8, REL-5, RTO-11
    fn close_requester(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn) -> Option<QpInfo> {
        self.with_requester(qpn, |requester, env| requester.release(env.group));
        let requester = self.requesters.remove(&qpn)?;
        let info = QpInfo::of_requester(&requester, self.group_of(&requester));
        self.discard_unsent(ctx.now, qpn);
        // One in the error state has left before.
        if requester.error().is_none() {
            self.leave_group(requester.group());
            self.activate_group(requester.group());
        }
        self.request_pass(ctx.now);
        self.tell_closed(ctx, &info);
        Some(info)
    }

    /// Closes a receiving side, which leaves a tombstone.
    // spec: REL-4
    pub(super) fn close_responder(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn) -> Option<QpInfo> {
        let responder = self.responders.remove(qpn)?;
        self.leave_group_receiving(responder.remote().ip);
        let stone = Tombstone {
            local: responder.local(),
            remote: responder.remote(),
            first: responder.first_psn(),
            last: responder.cumulative(),
            messages: responder.messages(),
        };
        self.tombstones.bury(ctx.now, stone);
        let info = QpInfo::of_responder(&responder);
        self.tell_closed(ctx, &info);
        Some(info)
    }

    fn tell_closed(&mut self, ctx: &mut Ctx<'_>, info: &QpInfo) {
        self.counters.qp_closed += 1;
        self.emit(ctx, QpEventKind::QpClosed, (info.local, info.remote), None);
    }

    /// The next QP event, in the order in which they happened.
    pub fn poll_event(&mut self) -> Option<QpEvent> {
        self.events.pop_front()
    }

    /// Every side of a QP at this NIC, sending sides first.
    pub fn qps(&self) -> impl Iterator<Item = QpInfo> + '_ {
        let sending = self.requesters.values();
        let sending = sending.map(|side| QpInfo::of_requester(side, self.group_of(side)));
        sending.chain(self.responders.iter().map(QpInfo::of_responder))
    }

    /// The group of a sending side, which one in the error state has left.
    fn group_of(&self, requester: &Requester) -> Option<&QpGroup> {
        let group = requester.error().is_none().then_some(requester.group())?;
        self.groups.get(group)
    }

    /// Bytes in flight to `peer`.
    pub fn bytes_in_flight(&self, peer: Ipv4Addr) -> u64 {
        self.groups.in_flight(peer)
    }

    /// How much the NIC holds: sides of QPs, tombstones, timers, groups. All
    /// zero when nothing is left of what it did.
    pub fn holdings(&self) -> [usize; 4] {
        let sides = self.requesters.len() + self.responders.len();
        [sides, self.tombstones.len(), self.timers.len(), self.groups.len()]
    }
}
