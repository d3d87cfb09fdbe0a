//! The transmit process: which QP's packet joins the egress queue next.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use super::Nic;
use super::egress::DataPacket;
use super::requester::Outgoing;
use crate::config::RttTimestampMode;
use crate::node::Ctx;
use crate::time::Instant;
use crate::trace::QpEventKind;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

/// The list of groups that are ready to send.
// spec: SCHED-5, SCHED-6
#[derive(Debug, Default)]
pub struct TransmitScheduler {
    list: VecDeque<Ipv4Addr>,
    pass_at: Option<Instant>,
}

impl TransmitScheduler {
    /// When the next pass is due.
    pub fn pass_at(&self) -> Option<Instant> {
        self.pass_at
    }

    /// A pass must run at `at` or before.
    // spec: QP-4, SCHED-8
    pub fn pass_no_later_than(&mut self, at: Instant) {
        self.pass_at = Some(self.pass_at.map_or(at, |due| due.min(at)));
    }

    /// A group joins: at the head when something waits to be sent again.
    // spec: NACK-8, SCHED-6
    fn join(&mut self, peer: Ipv4Addr, resend_waits: bool) {
        if resend_waits {
            self.list.push_front(peer);
        } else {
            self.list.push_back(peer);
        }
    }

    /// A group is gone.
    pub fn remove(&mut self, peer: Ipv4Addr) {
        self.list.retain(|listed| *listed != peer);
    }
}

/// `at` as data packets carry it: 128 ns steps, mod 2^16.
// spec: WIRE-2
fn timestamp_at(at: Instant) -> u16 {
    const STEP_NS: u64 = 128;
    (at.as_ns() / STEP_NS) as u16
}

impl Nic {
    /// The QP may have something to send: it gets a turn, and its group a place
    /// in the list.
    pub(super) fn activate(&mut self, qpn: Qpn) {
        let Some(requester) = self.requesters.get_mut(&qpn) else { return };
        let peer = requester.remote().ip;
        if requester.has_work()
            && !requester.in_turns
            && let Some(group) = self.groups.get_mut(&peer)
        {
            requester.in_turns = true;
            group.queue_turn(qpn);
        }
        self.activate_group(peer);
    }

    /// The group may be ready: it joins the list unless it is there already.
    // spec: SCHED-4, SCHED-6, SEG-8
    pub(super) fn activate_group(&mut self, peer: Ipv4Addr) {
        let Some(group) = self.groups.get_mut(&peer) else { return };
        if !group.listed && group.is_ready() {
            group.listed = true;
            self.scheduler.join(peer, group.resend_waits());
        }
    }

    /// A pass runs at once.
    // spec: NACK-7, SCHED-8
    pub(super) fn request_pass(&mut self, now: Instant) {
        self.scheduler.pass_no_later_than(now);
    }

    pub(super) fn transmit_pass_if_due(&mut self, ctx: &mut Ctx<'_>) {
        if self.scheduler.pass_at.take_if(|at| *at <= ctx.now).is_some() {
            while let Some(peer) = self.scheduler.list.pop_front() {
                self.serve(ctx, peer);
            }
        }
    }

    /// One turn of the group at the head of the list.
    // spec: SCHED-5, SEG-8
    fn serve(&mut self, ctx: &mut Ctx<'_>, peer: Ipv4Addr) {
        let Some(group) = self.groups.get_mut(&peer) else { return };
        group.listed = false;
        let room = group.has_room();
        let requesters = &self.requesters;
        let turn = group.take_turn(|qpn| requesters.get(&qpn).is_some_and(|q| q.can_send(room)));
        let Some(qpn) = turn else { return };
        let now = ctx.now;
        let taken = self.with_requester(qpn, |requester, env| {
            requester.in_turns = false;
            requester.take_next(env, now)
        });
        if let Some(Some(outgoing)) = taken {
            self.hand_over(ctx, qpn, outgoing);
        }
        self.activate(qpn);
    }

    /// A packet gets its entropy value and flags and joins the data class's queue.
    // spec: ACK-4, NACK-10, DONE-1, DONE-2, WIRE-2, WIRE-4
    fn hand_over(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, outgoing: Outgoing) {
        let Some(requester) = self.requesters.get(&qpn) else { return };
        let ends = (requester.local(), requester.remote());
        let segment = outgoing.segment;
        let first_sending = outgoing.cause.is_none();
        let nominal = self.config.attributes.nominal_packet();
        let nearly_full =
            self.groups.get(&ends.1.ip).is_some_and(|group| group.is_nearly_full(nominal));
        let wire_timestamp =
            self.config.attributes.rtt_timestamp_mode == RttTimestampMode::WireTimestamp;
        let packet = DataPacket {
            qpn,
            outgoing,
            remote_qpn: ends.1.qpn,
            entropy: self.next_entropy(ends.1.ip),
            ack_request: segment.ends_message || !first_sending || nearly_full,
            timestamp: wire_timestamp.then(|| timestamp_at(ctx.now)),
        };
        self.egress.queue_data(packet);
        if first_sending && segment.ends_message {
            let message = Some((segment.work.wqe_id, segment.work.length));
            self.emit(ctx, QpEventKind::SendComplete, ends, message);
        }
    }

    /// Completes every message that a cumulative ACK of `qpn` covers.
    // spec: ACK-9, DONE-1
    pub(super) fn complete_messages(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, acknowledged: PsnExt) {
        while let Some(requester) = self.requesters.get_mut(&qpn)
            && let Some(message) = requester.pop_completed(acknowledged)
        {
            let ends = (requester.local(), requester.remote());
            self.counters.wqes_completed += 1;
            let done = Some((message.work.wqe_id, message.work.length));
            self.emit(ctx, QpEventKind::WqeComplete, ends, done);
        }
    }
}
