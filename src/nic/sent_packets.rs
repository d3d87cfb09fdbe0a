//! The sending side's record of each packet sent and not yet acknowledged.

use std::collections::VecDeque;

use crate::trace::RetransmitCause;
use crate::wire::psn::PsnExt;

/// Where a packet stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentState {
    /// Handed to the egress queue or on its way; its bytes are in flight.
    InFlight,
    /// Waits to be sent again; not in flight.
    Queued(RetransmitCause),
    /// Refused for lack of resources; queued when its back-off ends; not in flight.
    BackingOff,
    /// Acknowledged by a bitmap; the cumulative PSN has not reached it.
    Retired,
}

/// The record of one packet.
// spec: QP-1
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// Where it stands.
    pub state: SentState,
    /// What it counts in flight: bytes of its IP datagram.
    pub flight_bytes: u32,
    /// How often it was sent.
    pub transmissions: u32,
    /// Whether its last sending carried the retransmit flag.
    pub retransmission: bool,
    /// The number of the timer that its last sending starts.
    pub timer: u32,
    /// Retransmissions after timeouts so far.
    pub timeouts: u32,
    /// Retransmissions after NACKs so far.
    pub nacks: u32,
    /// Whether a SACK gap has queued it before.
    pub gap_queued: bool,
}

impl SentPacket {
    /// A packet that is sent for the first time.
    pub const fn first_sending(flight_bytes: u32) -> Self {
        Self {
            state: SentState::InFlight,
            flight_bytes,
            transmissions: 1,
            retransmission: false,
            timer: 1,
            timeouts: 0,
            nacks: 0,
            gap_queued: false,
        }
    }

    /// Whether it is still to be acknowledged.
    pub fn is_outstanding(&self) -> bool {
        self.state != SentState::Retired
    }
}

/// Records of the packets above the cumulative PSN, by PSN.
#[derive(Debug)]
pub struct SentPackets {
    first: PsnExt,
    packets: VecDeque<SentPacket>,
}

impl SentPackets {
    /// Empty; `first` is the first PSN to come.
    pub fn new(first: PsnExt) -> Self {
        Self { first, packets: VecDeque::new() }
    }

    /// The PSN that the next new packet takes.
    pub fn next_psn(&self) -> PsnExt {
        self.first.plus(self.packets.len() as u64)
    }

    /// The highest PSN such that it and all before it are acknowledged.
    pub fn cumulative(&self) -> PsnExt {
        self.first.prev()
    }

    /// Packets beyond the cumulative PSN, retired ones too.
    // spec: SEG-5
    pub fn span(&self) -> u64 {
        self.packets.len() as u64
    }

    /// Records a new packet under the next PSN and gives that.
    pub fn push(&mut self, packet: SentPacket) -> PsnExt {
        let psn = self.next_psn();
        self.packets.push_back(packet);
        psn
    }

    /// The record of `psn`; `None` at or below the cumulative PSN and above what was sent.
    pub fn get_mut(&mut self, psn: PsnExt) -> Option<&mut SentPacket> {
        let index = usize::try_from(psn.offset_from(self.first)).ok()?;
        self.packets.get_mut(index)
    }

    /// The record of `psn`, to read.
    pub fn get(&self, psn: PsnExt) -> Option<&SentPacket> {
        let index = usize::try_from(psn.offset_from(self.first)).ok()?;
        self.packets.get(index)
    }

    /// Takes the first record off when it lies at or below `cumulative`.
    pub fn pop_through(&mut self, cumulative: PsnExt) -> Option<(PsnExt, SentPacket)> {
        if self.first > cumulative {
            return None;
        }
        let packet = self.packets.pop_front()?;
        let psn = self.first;
        self.first = psn.next();
        Some((psn, packet))
    }

    /// Every record with its PSN, lowest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (PsnExt, &mut SentPacket)> {
        let first = self.first;
        self.packets.iter_mut().enumerate().map(move |(i, packet)| (first.plus(i as u64), packet))
    }

    /// Whether every packet up to `last` is acknowledged, one way or the other.
    pub fn all_retired_through(&self, last: PsnExt) -> bool {
        let count = last.offset_from(self.cumulative()).max(0) as usize;
        self.packets.len() >= count
            && self.packets.range(..count).all(|packet| !packet.is_outstanding())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::psn::Psn;

    // spec: QP-1, SEG-5
    #[test]
    fn records_are_found_by_psn_and_leave_with_the_cumulative_psn() {
        let first = PsnExt::first(Psn::masked(0xff_fffe));
        let mut sent = SentPackets::new(first);
        for bytes in 1..=5 {
            sent.push(SentPacket::first_sending(bytes));
        }
        assert_eq!(sent.get(first.plus(3)).map(|p| p.flight_bytes), Some(4));
        assert!(sent.get(first.prev()).is_none() && sent.get(first.plus(5)).is_none());
        assert_eq!(sent.pop_through(first.plus(1)).map(|(psn, _)| psn), Some(first));
        assert_eq!(sent.pop_through(first.plus(1)).map(|(psn, _)| psn), Some(first.plus(1)));
        assert!(sent.pop_through(first.plus(1)).is_none());
        assert_eq!((sent.span(), sent.cumulative()), (3, first.plus(1)));
        assert_eq!(sent.next_psn(), first.plus(5));
    }

    #[test]
    fn a_message_is_retired_when_no_packet_up_to_its_last_is_outstanding() {
        let first = PsnExt::first(Psn::masked(0));
        let mut sent = SentPackets::new(first);
        for _ in 0..3 {
            sent.push(SentPacket::first_sending(1));
        }
        sent.get_mut(first).unwrap().state = SentState::Retired;
        assert!(sent.all_retired_through(first));
        assert!(!sent.all_retired_through(first.plus(1)));
        assert!(!sent.all_retired_through(first.plus(9)), "not sent yet");
    }
}
