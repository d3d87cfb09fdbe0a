//! The sending side of a QP.

mod counts;
mod feedback;
mod message;
mod send_times;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::congestion::{Loss, WindowChanges};
use super::counters::NicCounters;
use super::group::QpGroup;
use super::groups::GroupId;
use super::retransmit::RetransmitSchedule;
use super::sent_packets::{SentPacket, SentPackets, SentState};
use super::timers::{Timer, Timers};
use crate::config::{NicAttributes, RttTimestampMode};
use crate::time::{Duration, Instant};
use crate::trace::{QpAddress, RetransmitCause};
use crate::wire::packet::{ETHERNET, FCS};
use crate::wire::psn::PsnExt;
use crate::wire::qpn::{Qpn, RKey};

pub use counts::RetransmitCounts;
pub use feedback::{NackNews, Refused};
pub use message::{Message, Segment};
use send_times::SendTimes;

/// Why a QP is in the error state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QpErrorReason {
    /// A packet's retransmission budget is used up.
    RetryExceeded,
    /// A packet's budget of NACK-caused retransmissions is used up.
    NackRetryExceeded,
    /// The peer refused access to its memory, or met something unexpected.
    RemoteAccessError,
}

impl QpErrorReason {
    /// The reason in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RetryExceeded => "retry budget exceeded",
            Self::NackRetryExceeded => "NACK retry budget exceeded",
            Self::RemoteAccessError => "remote access error",
        }
    }
}

/// What a sending side shares with its NIC, lent to each call.
pub struct Sending<'a> {
    /// The QP's group.
    pub group: &'a mut QpGroup,
    /// The NIC's timers.
    pub timers: &'a mut Timers,
    /// The NIC's counters.
    pub counters: &'a mut NicCounters,
    /// The NIC's retransmission schedule.
    pub schedule: RetransmitSchedule,
    /// Where congestion control says what it did.
    pub window_changes: &'a mut WindowChanges,
}

/// What every sending side of a NIC has in common.
#[derive(Clone, Copy, Debug)]
pub struct RequesterLimits {
    /// Payload bytes in a full packet.
    pub mss: u32,
    /// Packets allowed beyond the cumulative PSN.
    pub max_psn_range: u32,
    /// Bytes of a data packet on the wire beside its payload.
    pub wire_overhead: u32,
    /// Reorder allowance of SACK-gap loss detection.
    pub sack_loss_min_retx_pkts: u32,
    /// No gaps are looked for during loss recovery.
    pub recovery_gate: bool,
    /// Half of the period of completion re-requests.
    pub initial_ack_timeout: Duration,
    /// How round-trip times are sampled.
    pub rtt_mode: RttTimestampMode,
}

impl RequesterLimits {
    /// What a data packet with `payload` bytes takes on the wire.
    // spec: SEG-4, WIRE-9
    pub fn wire_bytes(&self, payload: u32) -> u64 {
        u64::from(payload + self.wire_overhead)
    }

    /// What a data packet with `payload` bytes counts in flight: its IP datagram.
    // spec: SEG-6, WIRE-9, W-3
    pub fn flight_bytes(&self, payload: u32) -> u32 {
        payload + self.wire_overhead - (ETHERNET + FCS) as u32
    }

    /// What a NIC with these attributes gives its sending sides.
    pub fn new(attributes: &NicAttributes) -> Self {
        Self {
            mss: attributes.mss,
            max_psn_range: attributes.max_psn_range,
            wire_overhead: attributes.data_overhead() as u32,
            sack_loss_min_retx_pkts: attributes.sack_loss_min_retx_pkts,
            recovery_gate: attributes.sack_gap_recovery_gate,
            initial_ack_timeout: attributes.initial_ack_timeout,
            rtt_mode: attributes.rtt_timestamp_mode,
        }
    }
}

/// What a sending side does with its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// It sends a packet again, without PCIe traffic.
    // spec: PCIE-5
    Resend(Outgoing),
    /// It fetches the payload of its next segment.
    Fetch(Segment),
}

/// What comes next at a sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Upcoming {
    Retransmission(PsnExt),
    Rerequest(PsnExt),
    NewSegment,
}

/// A packet that is to be handed to the egress queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Its PSN.
    pub psn: PsnExt,
    /// Which sending of the packet this is; `None` for a completion re-request,
    /// which starts no timer.
    pub transmission: Option<u32>,
    /// Why it is sent again; `None` for a first transmission.
    pub cause: Option<RetransmitCause>,
    /// Which part of which message it carries.
    pub segment: Segment,
}

/// The sending side of a QP.
// spec: QP-1, QP-7
#[derive(Debug)]
pub struct Requester {
    local: QpAddress,
    remote: QpAddress,
    group: GroupId,
    limits: RequesterLimits,
    first: PsnExt,
    sent: SentPackets,
    send_times: SendTimes,
    /// Segments whose payload is on its way from the host, and their bytes in flight.
    fetching: u64,
    fetching_bytes: u32,
    /// Messages that no cumulative ACK covers yet, in PSN order.
    messages: VecDeque<Message>,
    /// How many of `messages`, from the front, have all segments issued.
    issued: usize,
    /// How many of those, from the front, have all packets retired and wait for
    /// their cumulative ACK under a timer.
    checked: usize,
    next_msn: u16,
    retransmissions: VecDeque<PsnExt>,
    rerequests: VecDeque<PsnExt>,
    /// During loss recovery: the PSN that ends it.
    recovery: Option<PsnExt>,
    /// The received bytes that the peer told last, in its units.
    received_units: u32,
    error: Option<QpErrorReason>,
    counts: RetransmitCounts,
    /// Whether the QP is in its group's turns.
    pub in_turns: bool,
}

impl Requester {
    /// A sending side from `local` to the NIC at `peer`, whose number is not known
    /// yet; it belongs to `group`.
    pub fn new(
        local: QpAddress,
        peer: core::net::Ipv4Addr,
        group: GroupId,
        first: PsnExt,
        limits: RequesterLimits,
    ) -> Self {
        Self {
            local,
            remote: QpAddress { ip: peer, qpn: Qpn::NONE },
            group,
            limits,
            first,
            sent: SentPackets::new(first),
            send_times: SendTimes::new(first, limits.max_psn_range),
            fetching: 0,
            fetching_bytes: 0,
            messages: VecDeque::new(),
            issued: 0,
            checked: 0,
            next_msn: 0,
            retransmissions: VecDeque::new(),
            rerequests: VecDeque::new(),
            recovery: None,
            received_units: 0,
            error: None,
            counts: RetransmitCounts::default(),
            in_turns: false,
        }
    }

    /// This end.
    pub fn local(&self) -> QpAddress {
        self.local
    }

    /// The other end; its number is [`Qpn::NONE`] until a SACK or NACK tells it.
    // spec: QP-6
    pub fn remote(&self) -> QpAddress {
        self.remote
    }

    /// The group it belongs to.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The QP's first PSN.
    pub fn first_psn(&self) -> PsnExt {
        self.first
    }

    /// The record of what was sent.
    pub fn sent(&self) -> &SentPackets {
        &self.sent
    }

    /// Why the QP is in the error state, when it is.
    pub fn error(&self) -> Option<QpErrorReason> {
        self.error
    }

    /// What it has sent again, by cause.
    pub fn counts(&self) -> RetransmitCounts {
        self.counts
    }

    /// How many messages no cumulative ACK covers yet.
    pub fn messages_open(&self) -> usize {
        self.messages.len()
    }

    /// Whether a message that may still be sent again is read from the region `lkey`.
    // spec: PB-6
    pub fn sends_from(&self, lkey: RKey) -> bool {
        self.error.is_none() && self.messages.iter().any(|message| message.work.lkey == lkey)
    }

    /// Queues a message of `bytes` bytes behind the ones before it.
    // spec: QP-3, QP-7
    pub fn post(&mut self, work: super::WorkRequest) {
        let first = self.messages.back().map_or(self.next_to_fetch(), |last| last.last().next());
        self.messages.push_back(Message::new(work, first, self.next_msn, self.limits.mss));
        self.next_msn = self.next_msn.wrapping_add(1);
    }

    /// The PSN that the next segment to be fetched will take.
    fn next_to_fetch(&self) -> PsnExt {
        self.sent.next_psn().plus(self.fetching)
    }

    /// Whether a segment waits to be fetched.
    fn has_segment(&self) -> bool {
        self.error.is_none() && self.issued < self.messages.len()
    }

    /// Whether the PSN window holds back a segment.
    // spec: SEG-5
    pub fn is_psn_window_full(&self) -> bool {
        let beyond = self.sent.span() + self.fetching;
        self.has_segment() && beyond >= u64::from(self.limits.max_psn_range)
    }

    /// Whether it could send something, room in the window provided.
    pub fn has_work(&self) -> bool {
        self.can_send(true)
    }

    /// Whether it can send something; `room`: the group's window has room.
    // spec: NACK-9, DONE-2
    pub fn can_send(&self, room: bool) -> bool {
        self.upcoming(room).is_some()
    }

    /// A waiting retransmission first, then a completion re-request, then the
    /// next segment.
    // spec: NACK-8, NACK-9, DONE-2, SCHED-5, SEG-5
    fn upcoming(&self, room: bool) -> Option<Upcoming> {
        let retransmission = self.retransmissions.front().filter(|_| room);
        let rerequest = self.rerequests.front();
        let new = room && self.has_segment() && !self.is_psn_window_full();
        retransmission
            .map(|psn| Upcoming::Retransmission(*psn))
            .or(rerequest.map(|last| Upcoming::Rerequest(*last)))
            .or(new.then_some(Upcoming::NewSegment))
    }

    /// Payload bytes of what [`Self::take_next`] would give.
    // spec: SEG-7
    pub fn next_payload(&self, room: bool) -> u32 {
        let segment = match self.upcoming(room) {
            Some(Upcoming::Retransmission(psn) | Upcoming::Rerequest(psn)) => self.segment(psn),
            Some(Upcoming::NewSegment) => self.segment(self.next_to_fetch()),
            None => None,
        };
        segment.map_or(0, |segment| segment.length)
    }

    /// Takes the next packet to send again or segment to fetch. `now` is a last
    /// segment's SEND_COMPLETE.
    // spec: SCHED-5
    pub fn take_next(&mut self, env: &mut Sending<'_>, now: Instant) -> Option<Turn> {
        match self.upcoming(env.group.has_room())? {
            Upcoming::Retransmission(psn) => {
                self.retransmissions.pop_front();
                env.group.remove_retransmissions(1);
                self.resend(env, psn).map(Turn::Resend)
            }
            Upcoming::Rerequest(last) => {
                self.rerequests.pop_front();
                env.group.remove_rerequests(1);
                self.rerequest(env, last).map(Turn::Resend)
            }
            Upcoming::NewSegment => self.fetch_next(env, now).map(Turn::Fetch),
        }
    }

    // spec: NACK-10, SEG-6
    fn resend(&mut self, env: &mut Sending<'_>, psn: PsnExt) -> Option<Outgoing> {
        let packet = self.sent.get_mut(psn)?;
        let SentState::Queued(cause) = packet.state else { return None };
        packet.state = SentState::InFlight;
        packet.transmissions += 1;
        packet.retransmission = true;
        self.send_times.sent_again(psn);
        env.group.add_flight(packet.flight_bytes);
        env.counters.rtx += 1;
        match cause {
            RetransmitCause::Timeout => env.counters.rtx_timeout += 1,
            RetransmitCause::Nack => env.counters.rtx_nack += 1,
            RetransmitCause::SackGap => env.counters.rtx_sack_gap += 1,
            RetransmitCause::Rerequest => {}
        }
        self.counts.add(cause);
        let transmission = Some(packet.transmissions);
        let segment = self.segment(psn)?;
        Some(Outgoing { psn, transmission, cause: Some(cause), segment })
    }

    // spec: DONE-2
    fn rerequest(&mut self, env: &mut Sending<'_>, last: PsnExt) -> Option<Outgoing> {
        // None when the message has been completed while this waited.
        let segment = self.segment(last)?;
        self.send_times.rerequested(last);
        env.counters.completion_rerequests += 1;
        self.counts.add(RetransmitCause::Rerequest);
        let cause = Some(RetransmitCause::Rerequest);
        Some(Outgoing { psn: last, transmission: None, cause, segment })
    }

    /// The fetch of the next segment is issued: its packet is in flight.
    // spec: SEG-1, SEG-6
    fn fetch_next(&mut self, env: &mut Sending<'_>, now: Instant) -> Option<Segment> {
        let psn = self.next_to_fetch();
        let message = self.messages.get_mut(self.issued)?;
        let segment = message.segment(psn)?;
        let flight_bytes = self.limits.flight_bytes(segment.length);
        self.fetching += 1;
        self.fetching_bytes += flight_bytes;
        env.group.add_flight(flight_bytes);
        if segment.ends_message {
            message.on_send_complete(now);
            self.issued += 1;
        }
        Some(segment)
    }

    /// The payload of the oldest segment on its way has arrived: the packet takes
    /// the next PSN.
    // spec: PCIE-3
    pub fn on_payload(&mut self, segment: Segment) -> Outgoing {
        let flight_bytes = self.limits.flight_bytes(segment.length);
        self.fetching -= 1;
        self.fetching_bytes -= flight_bytes;
        let psn = self.sent.push(SentPacket::first_sending(flight_bytes));
        self.send_times.sent();
        Outgoing { psn, transmission: Some(1), cause: None, segment }
    }

    /// The part of its message that `psn` carries.
    pub fn segment(&self, psn: PsnExt) -> Option<Segment> {
        let index = self.messages.partition_point(|message| message.last() < psn);
        self.messages.get(index)?.segment(psn)
    }

    /// The oldest message that is complete: the last packet of which lies at or
    /// below `acknowledged`, a cumulative ACK's PSN. It is not asked for again.
    // spec: ACK-9, DONE-1
    pub fn pop_completed(
        &mut self,
        env: &mut Sending<'_>,
        acknowledged: PsnExt,
    ) -> Option<Message> {
        let message = self.messages.pop_front_if(|message| message.last() <= acknowledged)?;
        if self.rerequests.pop_front_if(|last| *last == message.last()).is_some() {
            env.group.remove_rerequests(1);
        }
        // What is acknowledged was sent, so the message had been issued.
        self.issued -= 1;
        self.checked = self.checked.saturating_sub(1);
        Some(message)
    }

    /// A sending's last bit has left, which is its send time; its timer starts,
    /// unless the packet has been acknowledged or queued again meanwhile.
    // spec: WIRE-8, RTO-1, RTO-3, RTT-2
    pub fn on_serialized(
        &mut self,
        env: &mut Sending<'_>,
        psn: PsnExt,
        transmission: u32,
        now: Instant,
    ) {
        self.send_times.left(psn, transmission, now);
        let Some(packet) = self.sent.get(psn) else { return };
        if packet.state == SentState::InFlight && packet.transmissions == transmission {
            let timer = Timer::Retransmit { qpn: self.local.qpn, psn, transmission };
            env.timers.set(env.schedule.expiry(now, packet.timer), timer);
        }
    }

    /// Whether `timer`, one of this QP's, still means something.
    pub fn timer_is_live(&self, timer: &Timer) -> bool {
        let matches = |psn: &PsnExt, transmission: u32, state: SentState| {
            self.sent
                .get(*psn)
                .is_some_and(|packet| packet.state == state && packet.transmissions == transmission)
        };
        self.error.is_none()
            && match timer {
                Timer::Retransmit { psn, transmission, .. } => {
                    matches(psn, *transmission, SentState::InFlight)
                }
                Timer::Backoff { psn, transmission, .. } => {
                    matches(psn, *transmission, SentState::BackingOff)
                }
                Timer::Rerequest { last, .. } => {
                    self.messages.front().is_some_and(|oldest| oldest.last() <= *last)
                }
            }
    }

    /// A live timer of this QP fired at `now`.
    ///
    /// # Errors
    /// The reason for which the QP must go into the error state.
    pub fn on_timer(
        &mut self,
        env: &mut Sending<'_>,
        timer: Timer,
        now: Instant,
    ) -> Result<(), QpErrorReason> {
        match timer {
            Timer::Retransmit { psn, .. } => self.on_timeout(env, psn),
            Timer::Backoff { psn, .. } => {
                self.queue(env, psn, RetransmitCause::Nack);
                Ok(())
            }
            Timer::Rerequest { last, .. } => {
                self.on_rerequest_check(env, last, now);
                Ok(())
            }
        }
    }

    // spec: RTO-2, RTO-7, RTO-8, CC-6
    fn on_timeout(&mut self, env: &mut Sending<'_>, psn: PsnExt) -> Result<(), QpErrorReason> {
        let Some(packet) = self.sent.get_mut(psn) else { return Ok(()) };
        env.counters.rto += 1;
        if !env.schedule.allows(packet.timeouts) {
            return Err(QpErrorReason::RetryExceeded);
        }
        packet.timeouts += 1;
        packet.timer += 1;
        self.queue(env, psn, RetransmitCause::Timeout);
        self.tell_loss(env, psn, Loss::Timeout);
        Ok(())
    }

    /// Sets the timer of each message whose packets have all been retired by now;
    /// the cumulative ACK that completes it may be lost.
    // spec: DONE-2, DONE-3
    fn watch_retired(&mut self, env: &mut Sending<'_>, now: Instant) {
        while self.checked < self.issued
            && let Some(message) = self.messages.get(self.checked)
            && self.sent.all_retired_through(message.last())
        {
            let check = message.next_check(now, self.limits.initial_ack_timeout * 2);
            let timer = Timer::Rerequest { qpn: self.local.qpn, last: message.last() };
            env.timers.set(check, timer);
            self.checked += 1;
        }
    }

    // spec: DONE-2
    fn on_rerequest_check(&mut self, env: &mut Sending<'_>, last: PsnExt, now: Instant) {
        if !self.rerequests.contains(&last) {
            self.rerequests.push_back(last);
            env.group.add_rerequest();
        }
        let next = now + self.limits.initial_ack_timeout * 2;
        env.timers.set(next, Timer::Rerequest { qpn: self.local.qpn, last });
    }

    /// Queues an outstanding packet for retransmission ahead of new data.
    // spec: LOSS-2, NACK-8, NACK-11, RTO-2, RTO-3
    fn queue(&mut self, env: &mut Sending<'_>, psn: PsnExt, cause: RetransmitCause) {
        let Some(packet) = self.sent.get_mut(psn) else { return };
        if packet.state == SentState::InFlight {
            env.group.remove_flight(packet.flight_bytes);
        }
        packet.state = SentState::Queued(cause);
        if cause != RetransmitCause::Timeout {
            packet.timer = 1;
        }
        self.retransmissions.push_back(psn);
        env.group.add_retransmission();
    }

    /// Puts the QP into the error state: nothing of it is in flight or waits any longer.
    // spec: RTO-11
    pub fn fail(&mut self, group: &mut QpGroup, reason: QpErrorReason) {
        self.release(group);
        self.error = Some(reason);
    }

    /// Takes what the QP holds of its group's flight and queues back, before it
    /// is closed or fails.
    // spec: RTO-11
    pub fn release(&mut self, group: &mut QpGroup) {
        for (_, packet) in self.sent.iter_mut() {
            if packet.state == SentState::InFlight {
                group.remove_flight(packet.flight_bytes);
            }
            packet.state = SentState::Retired;
        }
        group.remove_flight(self.fetching_bytes);
        (self.fetching, self.fetching_bytes) = (0, 0);
        group.remove_retransmissions(self.retransmissions.len() as u32);
        group.remove_rerequests(self.rerequests.len() as u32);
        self.retransmissions.clear();
        self.rerequests.clear();
        if core::mem::take(&mut self.in_turns) {
            group.drop_turn(self.local.qpn);
        }
    }
}
