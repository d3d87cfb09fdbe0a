//! QPs to one peer: one congestion window, one place in the transmit scheduler.

use core::net::Ipv4Addr;
use std::collections::VecDeque;

use super::congestion::{CongestionControl, CongestionSettings};
use super::rtt::RttStatistics;
use crate::time::{Duration, Instant};
use crate::wire::qpn::Qpn;

/// How a group's congestion window stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowInfo {
    /// The window, in bytes.
    pub bytes: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The round trip of an empty network, as far as is known.
    pub base_rtt: Duration,
    /// The average queueing delay, where congestion control keeps one.
    pub average_delay: Option<Duration>,
}

/// QPs from this NIC to one remote IPv4 address that share a window.
// spec: SCHED-1
#[derive(Debug)]
pub struct QpGroup {
    peer: Ipv4Addr,
    congestion: Box<dyn CongestionControl>,
    /// The window holds nothing back.
    pass_through: bool,
    /// What `congestion` says, in bytes.
    window: u64,
    in_flight: u64,
    /// Retransmissions that wait in the group's QPs.
    retransmissions: u32,
    /// Completion re-requests that wait in the group's QPs.
    rerequests: u32,
    /// QPs with something to send, in the order of their turns.
    turns: VecDeque<Qpn>,
    members: u32,
    /// Whether something waits for room in the window.
    stalled: bool,
    rtt: Option<RttStatistics>,
    /// Whether the group is in the scheduler's list.
    pub listed: bool,
}

impl QpGroup {
    /// A group to `peer` without members that begins at `now`.
    pub fn new(peer: Ipv4Addr, settings: &CongestionSettings, now: Instant) -> Self {
        let congestion = settings.start(now);
        Self {
            peer,
            window: congestion.window(),
            congestion,
            pass_through: settings.pass_through,
            in_flight: 0,
            retransmissions: 0,
            rerequests: 0,
            turns: VecDeque::new(),
            members: 0,
            stalled: false,
            rtt: None,
            listed: false,
        }
    }

    /// The address that its QPs go to.
    pub fn peer(&self) -> Ipv4Addr {
        self.peer
    }

    /// Bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// How its window stands.
    pub fn window_info(&self) -> WindowInfo {
        WindowInfo {
            bytes: self.window,
            in_flight: self.in_flight,
            base_rtt: self.congestion.base_rtt(),
            average_delay: self.congestion.average_delay(),
        }
    }

    /// Something that congestion control must know has happened.
    pub fn tell_congestion(&mut self, tell: impl FnOnce(&mut dyn CongestionControl)) {
        tell(&mut *self.congestion);
        self.window = self.congestion.window();
    }

    /// Whether a packet may be put in flight.
    // spec: SEG-6, CC-10
    pub fn has_room(&self) -> bool {
        self.pass_through || self.window > self.in_flight
    }

    /// Whether less than one nominal packet of room is left, or the window is
    /// smaller than the SACK coalescing count.
    // spec: ACK-4
    pub fn is_nearly_full(&self, nominal_packet: u64) -> bool {
        const SMALL_WINDOW: u64 = 4_095;
        self.window < self.in_flight + nominal_packet || self.window < SMALL_WINDOW
    }

    /// A packet of `bytes` (IP datagram) is put in flight.
    pub fn add_flight(&mut self, bytes: u32) {
        self.in_flight += u64::from(bytes);
    }

    /// A packet of `bytes` has left the flight.
    pub fn remove_flight(&mut self, bytes: u32) {
        debug_assert!(self.in_flight >= u64::from(bytes), "bytes in flight never go below 0");
        self.in_flight = self.in_flight.saturating_sub(u64::from(bytes));
    }

    /// A retransmission waits now.
    pub fn add_retransmission(&mut self) {
        self.retransmissions += 1;
    }

    /// `count` retransmissions wait no longer.
    pub fn remove_retransmissions(&mut self, count: u32) {
        self.retransmissions -= count;
    }

    /// Whether it goes ahead of groups with new data only: a retransmission
    /// waits, or a completion re-request, which takes its turn like one.
    // spec: NACK-8, DONE-2
    pub fn resend_waits(&self) -> bool {
        self.retransmissions > 0 || self.rerequests > 0
    }

    /// A completion re-request waits now.
    pub fn add_rerequest(&mut self) {
        self.rerequests += 1;
    }

    /// `count` completion re-requests wait no longer.
    pub fn remove_rerequests(&mut self, count: u32) {
        self.rerequests -= count;
    }

    /// Whether one of its QPs may send now.
    // spec: SCHED-4
    pub fn is_ready(&self) -> bool {
        !self.turns.is_empty() && (self.has_room() || self.rerequests > 0)
    }

    /// Sees whether something waits for room in the window; true when it has
    /// begun to.
    // spec: SEG-8
    pub fn begins_to_stall(&mut self) -> bool {
        let before = self.stalled;
        self.stalled = !self.turns.is_empty() && !self.has_room();
        self.stalled && !before
    }

    /// Puts a QP that has something to send at the end of the turns.
    pub fn queue_turn(&mut self, qpn: Qpn) {
        self.turns.push_back(qpn);
    }

    /// The first QP in turn for which `can_send` holds.
    // spec: SCHED-5
    pub fn next_turn(&self, mut can_send: impl FnMut(Qpn) -> bool) -> Option<Qpn> {
        self.turns.iter().copied().find(|qpn| can_send(*qpn))
    }

    /// Takes a QP out of the turns.
    pub fn drop_turn(&mut self, qpn: Qpn) {
        if let Some(index) = self.turns.iter().position(|other| *other == qpn) {
            self.turns.remove(index);
        }
    }

    /// A round trip of one of its packets was sampled.
    // spec: RTT-1
    pub fn on_rtt_sample(&mut self, rtt: Duration) {
        match &mut self.rtt {
            Some(statistics) => statistics.add(rtt),
            None => self.rtt = Some(RttStatistics::of(rtt)),
        }
    }

    /// What its samples come to; `None` before the first one.
    pub fn rtt(&self) -> Option<RttStatistics> {
        self.rtt
    }

    /// A side of a QP joins.
    pub fn join(&mut self) {
        self.members += 1;
    }

    /// A side of a QP leaves; true when it was the last one.
    // spec: SCHED-3
    pub fn leave(&mut self) -> bool {
        self.members -= 1;
        self.members == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn group(window: u64) -> QpGroup {
        QpGroup::new(PEER, &CongestionSettings::fixed(window), Instant::ZERO)
    }

    // spec: SEG-6
    #[test]
    fn there_is_room_while_the_window_is_larger_than_the_flight() {
        let mut group = group(8_312);
        group.add_flight(4_156);
        assert!(group.has_room());
        group.add_flight(4_155);
        assert!(group.has_room());
        group.add_flight(1);
        assert!(!group.has_room());
    }

    // spec: ACK-4
    #[test]
    fn nearly_full_means_less_than_a_nominal_packet_of_room() {
        let mut tight = group(3 * 4_156);
        tight.add_flight(2 * 4_156);
        assert!(!tight.is_nearly_full(4_156));
        tight.add_flight(1);
        assert!(tight.is_nearly_full(4_156));
        assert!(group(4_094).is_nearly_full(64));
        assert!(!group(4_095).is_nearly_full(64));
    }
}
