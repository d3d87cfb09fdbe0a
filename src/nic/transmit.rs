//! The transmit process: which QP's packet joins the egress queue next.

use std::collections::VecDeque;

use super::Nic;
use super::class::Class;
use super::egress::DataPacket;
use super::groups::GroupId;
use super::pcie::Fetch;
use super::requester::{Outgoing, Segment, Turn};
use super::rtt::timestamp_at;
use crate::config::RttTimestampMode;
use crate::node::Ctx;
use crate::time::{Duration, Instant};
use crate::trace::QpEventKind;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

/// The list of groups that are ready to send.
// spec: SCHED-5, SCHED-6
#[derive(Debug, Default)]
pub struct TransmitScheduler {
    list: VecDeque<GroupId>,
    /// When passes are due, each instant once, the earliest first.
    passes: VecDeque<Instant>,
    /// The last pass stopped because the egress pool was full, which has not
    /// drained since.
    // spec: SEG-9
    stopped: bool,
}

impl TransmitScheduler {
    /// When the next pass is due.
    pub fn next_pass(&self) -> Option<Instant> {
        self.passes.front().copied()
    }

    /// A pass runs at `at`, whatever else makes one run before.
    // spec: QP-4, SCHED-8, SEG-9
    pub fn pass_at(&mut self, at: Instant) {
        let place = self.passes.partition_point(|due| *due < at);
        if self.passes.get(place) != Some(&at) {
            self.passes.insert(place, at);
        }
    }

    /// Takes the passes that are due by `now`, which are run as one; true when
    /// there were any.
    fn take_due(&mut self, now: Instant) -> bool {
        let due = self.passes.partition_point(|at| *at <= now);
        self.passes.drain(..due).count() > 0
    }

    /// A group joins: at the head when something waits to be sent again.
    // spec: NACK-8, SCHED-6
    fn join(&mut self, group: GroupId, resend_waits: bool) {
        if resend_waits {
            self.list.push_front(group);
        } else {
            self.list.push_back(group);
        }
    }

    /// A group is gone.
    pub fn remove(&mut self, group: GroupId) {
        self.list.retain(|listed| *listed != group);
    }
}

/// How a group's turn went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Served {
    /// It sent what it could.
    Done,
    /// The egress pool has no room: nothing more can be sent.
    PoolFull,
}

impl Nic {
    /// From the drain of the egress pool through half to the next pass.
    // spec: SEG-9
    pub const DRAIN_DELAY: Duration = Duration::from_ns(15);

    /// What the QP has to send may have changed: it gets a turn or loses it, and
    /// its group a place in the list.
    pub(super) fn activate(&mut self, qpn: Qpn) {
        let Some(requester) = self.requesters.get_mut(&qpn) else { return };
        let id = requester.group();
        let has_work = requester.has_work();
        if has_work != requester.in_turns
            && let Some(group) = self.groups.get_mut(id)
        {
            requester.in_turns = has_work;
            if has_work {
                group.queue_turn(qpn);
            } else {
                group.drop_turn(qpn);
            }
        }
        self.activate_group(id);
    }

    /// The group may be ready: it joins the list unless it is there already.
    // spec: SCHED-4, SCHED-6, SEG-8
    pub(super) fn activate_group(&mut self, id: GroupId) {
        let Some(group) = self.groups.get_mut(id) else { return };
        self.counters.cwnd_stalls += u64::from(group.begins_to_stall());
        if !group.listed && group.is_ready() {
            group.listed = true;
            self.scheduler.join(id, group.resend_waits());
        }
    }

    /// A pass runs at once.
    // spec: NACK-7, SCHED-8
    pub(super) fn request_pass(&mut self, now: Instant) {
        self.scheduler.pass_at(now);
    }

    /// The group at the head of the list has its turn, again and again, until no
    /// group is ready or the egress pool is full.
    // spec: SCHED-5, SCHED-8, SEG-9, PCIE-4
    pub(super) fn transmit_pass_if_due(&mut self, ctx: &mut Ctx<'_>) {
        if !self.scheduler.take_due(ctx.now) {
            return;
        }
        self.scheduler.stopped = false;
        while let Some(id) = self.scheduler.list.pop_front() {
            if self.serve(ctx, id) == Served::PoolFull {
                self.scheduler.list.push_front(id);
                self.scheduler.stopped = true;
                self.counters.egress_pool_stalls += 1;
                return;
            }
        }
    }

    /// One turn of the group at the head of the list.
    // spec: SCHED-5, SEG-7, SEG-8, SEG-9
    fn serve(&mut self, ctx: &mut Ctx<'_>, id: GroupId) -> Served {
        let Some(group) = self.groups.get_mut(id) else { return Served::Done };
        let room = group.has_room();
        let requesters = &self.requesters;
        let turn = group.next_turn(|qpn| requesters.get(&qpn).is_some_and(|q| q.can_send(room)));
        let Some((qpn, requester)) = turn.and_then(|qpn| Some((qpn, requesters.get(&qpn)?))) else {
            group.listed = false;
            return Served::Done;
        };
        let bytes = self.limits.wire_bytes(requester.next_payload(room));
        if !self.egress.pool(Class::Data).has_room(bytes) {
            return Served::PoolFull;
        }
        group.listed = false;
        group.drop_turn(qpn);
        let now = ctx.now;
        let taken = self.with_requester(qpn, |requester, env| {
            requester.in_turns = false;
            requester.take_next(env, now)
        });
        match taken.flatten() {
            Some(Turn::Resend(outgoing)) => self.queue_data(ctx.now, qpn, outgoing),
            Some(Turn::Fetch(segment)) => self.fetch(ctx, qpn, segment),
            None => {}
        }
        self.activate(qpn);
        Served::Done
    }

    /// Issues the fetch of a segment, whose packet's room is reserved from now on.
    // spec: SEG-7, PCIE-1, DONE-1
    fn fetch(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, segment: Segment) {
        let reserved = self.reserve(segment);
        self.pcie.fetch(ctx.now, qpn, segment, reserved);
        let Some(requester) = self.requesters.get(&qpn) else { return };
        let ends = (requester.local(), requester.remote());
        self.counters.psn_window_stalls += u64::from(requester.is_psn_window_full());
        if segment.ends_message {
            let message = Some((segment.work.wqe_id, segment.work.length));
            self.emit(ctx, QpEventKind::SendComplete, ends, message);
        }
    }

    /// Reserves room in the egress pool for the packet of a segment; there is
    /// some, as the turn was given. Gives its size on the wire.
    // spec: SEG-7, PB-9
    fn reserve(&mut self, segment: Segment) -> u64 {
        let bytes = self.limits.wire_bytes(segment.length);
        let fits = self.egress.reserve_data(bytes);
        debug_assert!(fits, "a turn is given where there is room");
        bytes
    }

    /// Every payload that has arrived by now becomes a packet.
    // spec: PCIE-3
    pub(super) fn take_payloads(&mut self, ctx: &Ctx<'_>) {
        while let Some(Fetch { qpn, segment, reserved, .. }) = self.pcie.pop_fetched(ctx.now) {
            // The fetches of a QP that is closed or in error have been discarded.
            let Some(requester) = self.requesters.get_mut(&qpn) else { continue };
            let outgoing = requester.on_payload(segment);
            self.join_queue(ctx.now, qpn, outgoing, reserved);
        }
    }

    /// A packet that is sent again reserves its room and joins the queue.
    // spec: PB-9, PCIE-5
    fn queue_data(&mut self, now: Instant, qpn: Qpn, outgoing: Outgoing) {
        let reserved = self.reserve(outgoing.segment);
        self.join_queue(now, qpn, outgoing, reserved);
    }

    /// A packet gets its entropy value and flags and joins the data class's queue.
    // spec: ACK-4, NACK-10, DONE-2, WIRE-2, WIRE-4, PCIE-3
    fn join_queue(&mut self, now: Instant, qpn: Qpn, outgoing: Outgoing, reserved: u64) {
        let Some(requester) = self.requesters.get(&qpn) else { return };
        let remote = requester.remote();
        let nominal = self.config.attributes.nominal_packet();
        let group = self.groups.get(requester.group());
        let nearly_full = group.is_some_and(|group| group.is_nearly_full(nominal));
        let asks = outgoing.segment.ends_message || outgoing.cause.is_some() || nearly_full;
        let wire_timestamp =
            self.config.attributes.rtt_timestamp_mode == RttTimestampMode::WireTimestamp;
        let packet = DataPacket {
            qpn,
            outgoing,
            remote_qpn: remote.qpn,
            entropy: self.next_entropy(remote.ip),
            ack_request: asks,
            timestamp: wire_timestamp.then(|| timestamp_at(now)),
            reserved,
        };
        self.egress.queue_data(packet);
    }

    /// `bytes` of an egress pool are free again; a pass that the data pool had
    /// stopped goes on a little after it has drained to half. A pool of less than
    /// two packets can stop a pass at half or less: that one goes on a little
    /// after any release, for there may be no other to come.
    // spec: SEG-7, SEG-9, REL-5
    pub(super) fn release_egress(&mut self, now: Instant, class: Class, bytes: u64) {
        let drained = self.egress.release(class, bytes);
        if drained && core::mem::take(&mut self.scheduler.stopped) {
            self.scheduler.pass_at(now + Self::DRAIN_DELAY);
        }
    }

    /// Nothing of `qpn` that has not begun to leave is sent any longer.
    // spec: RTO-11
    pub(super) fn discard_unsent(&mut self, now: Instant, qpn: Qpn) {
        for reserved in self.egress.discard(qpn) {
            self.release_egress(now, Class::Data, reserved);
        }
        for fetch in self.pcie.discard(qpn) {
            self.release_egress(now, Class::Data, fetch.reserved);
        }
    }

    /// Completes every message that a cumulative ACK of `qpn` covers.
    // spec: ACK-9, DONE-1
    pub(super) fn complete_messages(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, acknowledged: PsnExt) {
        let next = |nic: &mut Self| {
            nic.with_requester(qpn, |requester, env| {
                let message = requester.pop_completed(env, acknowledged)?;
                Some((message, (requester.local(), requester.remote())))
            })
        };
        while let Some((message, ends)) = next(self).flatten() {
            self.counters.wqes_completed += 1;
            let done = Some((message.work.wqe_id, message.work.length));
            self.emit(ctx, QpEventKind::WqeComplete, ends, done);
        }
    }
}
