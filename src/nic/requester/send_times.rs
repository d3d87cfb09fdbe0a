//! When packets left, kept beyond their retirement for late SACKs.

use std::collections::VecDeque;

use crate::time::Instant;
use crate::wire::psn::PsnExt;

/// What is known of the sendings of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    /// How often it was sent, completion re-requests apart.
    sendings: u32,
    /// Whether it was sent as a completion re-request too.
    rerequested: bool,
    /// When the last bit of the last sending left; `None` before that and when
    /// its sample has been taken.
    left: Option<Instant>,
}

/// The send times of the last PSNs, as many as may be outstanding. It takes
/// memory for what was sent only.
// spec: RTT-2
#[derive(Debug)]
pub struct SendTimes {
    first: PsnExt,
    capacity: usize,
    records: VecDeque<Record>,
}

impl SendTimes {
    /// Empty; `first` is the first PSN to come, `max_psn_range` how many are kept.
    pub fn new(first: PsnExt, max_psn_range: u32) -> Self {
        Self { first, capacity: max_psn_range as usize, records: VecDeque::new() }
    }

    /// The next PSN is sent for the first time; the oldest one's place is used again.
    // spec: RTT-2
    pub fn sent(&mut self) {
        if self.records.len() >= self.capacity {
            self.records.pop_front();
            self.first = self.first.next();
        }
        self.records.push_back(Record { sendings: 1, rerequested: false, left: None });
    }

    /// `psn` is sent again.
    pub fn sent_again(&mut self, psn: PsnExt) {
        if let Some(record) = self.get_mut(psn) {
            record.sendings += 1;
            record.left = None;
        }
    }

    /// `psn` is sent as a completion re-request, whose SACK looks like that of a
    /// retransmission.
    // spec: DONE-2
    pub fn rerequested(&mut self, psn: PsnExt) {
        if let Some(record) = self.get_mut(psn) {
            record.rerequested = true;
        }
    }

    /// The last bit of sending number `sending` of `psn` left at `at`.
    // spec: RTT-2
    pub fn left(&mut self, psn: PsnExt, sending: u32, at: Instant) {
        if let Some(record) = self.get_mut(psn).filter(|record| record.sendings == sending) {
            record.left = Some(at);
        }
    }

    /// When the one sending of `psn` left that a SACK or NACK can be about whose
    /// RTX bit is `retransmission`. `None` when more than one can be meant, when
    /// it has not left, when it was taken before, and when it is no longer known.
    // spec: CC-8, DONE-2, RTT-2
    pub fn take(&mut self, psn: PsnExt, retransmission: bool) -> Option<Instant> {
        let record = self.get_mut(psn)?;
        let meant = match record.sendings {
            1 => !retransmission,
            2 => retransmission && !record.rerequested,
            _ => false,
        };
        record.left.take_if(|_| meant)
    }

    fn get_mut(&mut self, psn: PsnExt) -> Option<&mut Record> {
        let index = usize::try_from(psn.offset_from(self.first)).ok()?;
        self.records.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::psn::Psn;

    /// `count` packets from 0xff_fffe on, sent once; number n left at n ps.
    fn sent(count: u64, max_psn_range: u32) -> (PsnExt, SendTimes) {
        let first = PsnExt::first(Psn::masked(0xff_fffe));
        let mut times = SendTimes::new(first, max_psn_range);
        for n in 0..count {
            times.sent();
            times.left(first.plus(n), 1, Instant::from_ps(n));
        }
        (first, times)
    }

    // spec: RTT-2
    #[test]
    fn the_last_max_psn_range_packets_are_known_across_the_wrap() {
        let (first, mut times) = sent(6, 4);
        let known: Vec<_> = (0..8).map(|n| times.take(first.plus(n), false)).collect();
        let ps = |n| Some(Instant::from_ps(n));
        assert_eq!(known, [None, None, ps(2), ps(3), ps(4), ps(5), None, None]);
        assert_eq!(times.take(first.prev(), false), None);
        times.sent();
        times.left(first.plus(2), 1, Instant::from_ps(9));
        assert_eq!(times.take(first.plus(2), false), None, "its place was used again");
    }

    #[test]
    fn memory_is_taken_for_what_was_sent_only() {
        let (_, times) = sent(3, 32_640);
        assert!(times.records.capacity() < 16);
        let (_, times) = sent(10_000, 100);
        assert!(times.records.capacity() < 256);
    }

    // spec: CC-8, RTT-2
    #[test]
    fn each_sending_gives_one_sample_once_it_has_left() {
        let (first, mut times) = sent(0, 4);
        times.sent();
        assert_eq!(times.take(first, false), None, "it has not left");
        times.left(first, 1, Instant::from_ps(5));
        assert_eq!(times.take(first, true), None, "nothing was sent again");
        assert_eq!(times.take(first, false), Some(Instant::from_ps(5)));
        assert_eq!(times.take(first, false), None, "a second time");
        times.sent_again(first);
        assert_eq!(times.take(first, true), None, "the second one has not left");
        times.left(first, 2, Instant::from_ps(8));
        assert_eq!(times.take(first, false), None, "about the first one");
        assert_eq!(times.take(first, true), Some(Instant::from_ps(8)));
        assert_eq!(times.take(first, true), None, "a second time");
    }

    // spec: CC-8
    #[test]
    fn a_packet_sent_three_times_gives_none() {
        let (first, mut times) = sent(1, 4);
        times.sent_again(first);
        times.left(first, 2, Instant::from_ps(8));
        times.sent_again(first);
        // The last bit of the second one may still be leaving.
        times.left(first, 2, Instant::from_ps(9));
        times.left(first, 3, Instant::from_ps(10));
        assert_eq!((times.take(first, false), times.take(first, true)), (None, None));
    }

    // spec: DONE-2, CC-8
    #[test]
    fn a_rerequest_is_not_taken_for_the_one_retransmission() {
        let (first, mut times) = sent(2, 4);
        times.sent_again(first);
        times.left(first, 2, Instant::from_ps(8));
        times.rerequested(first);
        assert_eq!(times.take(first, true), None, "of which of the two?");
        times.rerequested(first.next());
        assert_eq!(times.take(first.next(), true), None, "of the re-request");
        assert_eq!(times.take(first.next(), false), Some(Instant::from_ps(1)), "the first one");
    }
}
