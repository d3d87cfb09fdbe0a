//! Round-trip time samples: how a SACK or NACK gives one, and what came of them.

use crate::config::RttTimestampMode;
use crate::time::{Duration, Instant};
use crate::wire::cc_state::CcState;
use crate::wire::neth::{NackReason, Neth};
use crate::wire::psn::PsnExt;
use crate::wire::tseth::TIMESTAMP_STEP_NS;

/// `at` as data packets carry it: 128 ns steps, mod 2^16.
// spec: WIRE-2
pub fn timestamp_at(at: Instant) -> u16 {
    (at.as_ns() / TIMESTAMP_STEP_NS) as u16
}

/// `steps` of 128 ns.
fn span_of(steps: u16) -> Duration {
    Duration::from_ns(u64::from(steps) * TIMESTAMP_STEP_NS)
}

/// What a SACK or NACK tells about the time of the packet that drew it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Echo {
    /// The service time at the receiver, in steps of 128 ns.
    Service(u16),
    /// The packet's own timestamp, later by the service time.
    Timestamp(u16),
}

impl Echo {
    /// What a SACK with this CC_STATE tells.
    // spec: RTT-2
    pub fn of_sack(mode: RttTimestampMode, cc_state: &CcState) -> Self {
        match mode {
            RttTimestampMode::LocalDatabase => Self::Service(cc_state.timestamp_or_service),
            RttTimestampMode::WireTimestamp => Self::Timestamp(cc_state.timestamp_or_service),
        }
    }

    /// What a NACK tells, whose service time is 0. A trimmed packet has lost its
    /// timestamp; a timestamp of 0 means that none came back, so the one packet in
    /// 65,536 that was built at step 0 gives no sample by a NACK.
    // spec: RTT-4, NACK-7
    pub fn of_nack(mode: RttTimestampMode, neth: &Neth) -> Option<Self> {
        let trimmed = matches!(neth.reason, NackReason::Trimmed | NackReason::TrimmedLastHop);
        match (mode, neth.timestamp) {
            (RttTimestampMode::LocalDatabase, _) => Some(Self::Service(0)),
            (RttTimestampMode::WireTimestamp, 0) => None,
            (RttTimestampMode::WireTimestamp, at) => (!trimmed).then_some(Self::Timestamp(at)),
        }
    }

    /// The sample that is heard at `now` of a packet whose last bit left at
    /// `left`; by timestamps it is modulo 8.388608 ms.
    // spec: RTT-2
    pub fn round_trip(self, left: Instant, now: Instant) -> Duration {
        match self {
            Self::Service(steps) => now.since(left).saturating_sub(span_of(steps)),
            Self::Timestamp(then) => span_of(timestamp_at(now).wrapping_sub(then)),
        }
    }
}

/// One sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// The packet that it was taken of.
    pub psn: PsnExt,
    /// How long it was.
    pub time: Duration,
}

/// What a group's samples come to; there was one at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttStatistics {
    /// How many there were.
    pub samples: u64,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// All together.
    pub sum: Duration,
    /// The latest.
    pub last: Duration,
}

impl RttStatistics {
    /// Those of one sample.
    pub fn of(sample: Duration) -> Self {
        Self { samples: 1, min: sample, max: sample, sum: sample, last: sample }
    }

    /// Takes one more sample in.
    pub fn add(&mut self, sample: Duration) {
        self.samples += 1;
        self.min = self.min.min(sample);
        self.max = self.max.max(sample);
        self.sum += sample;
        self.last = sample;
    }

    /// The mean, rounded down to a picosecond.
    pub fn mean(&self) -> Duration {
        Duration::from_ps(self.sum.as_ps() / self.samples.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::psn::Psn;
    use crate::wire::qpn::Qpn;
    use RttTimestampMode::{LocalDatabase, WireTimestamp};

    fn at_ns(ns: u64) -> Instant {
        Instant::ZERO + Duration::from_ns(ns)
    }

    fn nack(reason: NackReason, timestamp: u16) -> Neth {
        Neth { reason, entropy: 0, source_qp: Qpn::NONE, psn: Psn::masked(0), timestamp }
    }

    // spec: RTT-2
    #[test]
    fn the_service_time_is_taken_off_and_never_more_than_there_is() {
        let cc_state = CcState { timestamp_or_service: 2, ..CcState::default() };
        let echo = Echo::of_sack(LocalDatabase, &cc_state);
        let trip = |left, now| echo.round_trip(at_ns(left), at_ns(now));
        assert_eq!(trip(1_000, 2_000), Duration::from_ns(744));
        assert_eq!((trip(1_000, 1_255), trip(1_000, 900)), (Duration::ZERO, Duration::ZERO));
    }

    // spec: RTT-2
    #[test]
    fn a_timestamp_is_taken_off_the_steps_of_now_around_the_wrap() {
        let cc_state = CcState { timestamp_or_service: 65_530, ..CcState::default() };
        let echo = Echo::of_sack(WireTimestamp, &cc_state);
        let trip = |now| echo.round_trip(at_ns(123), at_ns(now));
        assert_eq!(trip(65_531 * 128 + 127), Duration::from_ns(128));
        assert_eq!(trip(65_540 * 128), Duration::from_ns(1_280));
        assert_eq!(trip(65_530 * 128 + 8_388_608), Duration::ZERO);
    }

    // spec: RTT-4, NACK-7
    #[test]
    fn a_nack_has_no_service_time_and_of_a_trimmed_packet_no_timestamp() {
        let trims = [NackReason::Trimmed, NackReason::TrimmedLastHop];
        for reason in trims.into_iter().chain([NackReason::PsnOutOfWindow]) {
            let local = Echo::of_nack(LocalDatabase, &nack(reason, 9));
            assert_eq!(local, Some(Echo::Service(0)));
            let whole = (!trims.contains(&reason)).then_some(Echo::Timestamp(9));
            assert_eq!(Echo::of_nack(WireTimestamp, &nack(reason, 9)), whole);
            assert_eq!(Echo::of_nack(WireTimestamp, &nack(reason, 0)), None);
        }
    }

    #[test]
    fn statistics_tell_the_extremes_the_mean_and_the_latest() {
        let mut statistics = RttStatistics::of(Duration::from_ps(10));
        statistics.add(Duration::from_ps(3));
        statistics.add(Duration::from_ps(7));
        let RttStatistics { samples, min, max, last, .. } = statistics;
        assert_eq!(samples, 3);
        assert_eq!([min, max, last, statistics.mean()].map(Duration::as_ps), [3, 10, 7, 6]);
    }
}
