//! What has arrived and is not done with: the pools that bound it, the penalty
//! that senders hear of, and the pauses that protect it.

use super::class::Class;
use super::pool::Pool;
use crate::config::NicAttributes;
use crate::time::{Duration, Instant};
use crate::units::Rate;

/// The time for which a pause frame of `quanta` stops a sender on a link of this
/// rate and delay.
// spec: PB-12, PB-13
pub fn pause_time(quanta: u16, link_rate: Rate, delay: Duration) -> Duration {
    const QUANTUM_BYTES: u64 = 64;
    link_rate.time_for(u64::from(quanta) * QUANTUM_BYTES) + delay
}

/// When the peer is told to stop sending packets of one class, and to go on.
// spec: PB-12
#[derive(Debug)]
struct Pauses {
    enabled: bool,
    xoff: u64,
    xon: u64,
    /// While the peer is paused: when it is told so again.
    refresh_at: Option<Instant>,
}

/// What the peer is told about one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Stop.
    Pause,
    /// Go on.
    Resume,
}

/// The ingress buffer.
// spec: PB-11, PB-12, PB-14
#[derive(Debug)]
pub struct Ingress {
    pools: [Pool; 2],
    pauses: [Pauses; 2],
    refresh: Duration,
    penalty_low: u64,
    penalty_high: u64,
}

impl Ingress {
    /// The penalty of a pool that is as good as full.
    const FULL_PENALTY: u64 = 127;

    /// The empty buffer of a NIC with these attributes on a link of `link_rate`.
    pub fn new(attributes: &NicAttributes, link_rate: Rate) -> Self {
        let NicAttributes { ingress_buffer, pfc, .. } = attributes;
        let size = |class: Class| ingress_buffer.pool_bytes(class.index());
        let data = size(Class::Data);
        let pause = pause_time(pfc.quanta, link_rate, attributes.delay);
        Self {
            pools: Class::ALL.map(|class| Pool::new(size(class))),
            pauses: Class::ALL.map(|class| Pauses {
                enabled: pfc.enabled[class.index()],
                // At 0 an empty pool would be full, and the peer paused for ever.
                xoff: pfc.xoff.of(size(class)).max(1),
                xon: pfc.xon.of(size(class)),
                refresh_at: None,
            }),
            // Half of 1 ps would be none, and a refresh due again at once.
            refresh: Duration::from_ps((pause.as_ps() / 2).max(1)),
            penalty_low: attributes.receiver_congestion_low.of(data),
            penalty_high: attributes.receiver_congestion_high.of(data),
        }
    }

    /// The pool of `class`.
    pub fn pool(&self, class: Class) -> &Pool {
        &self.pools[class.index()]
    }

    /// A packet of `bytes` arrives at `now`: whether the pool takes it, and what
    /// the peer is to be told.
    // spec: RX-1, PB-11, PB-12
    pub fn charge(&mut self, now: Instant, class: Class, bytes: u64) -> (bool, Option<Signal>) {
        let pool = &mut self.pools[class.index()];
        let pauses = &mut self.pauses[class.index()];
        let reached = pauses.enabled && pool.used() + bytes >= pauses.xoff;
        let signal = (reached && pauses.refresh_at.is_none()).then(|| {
            pauses.refresh_at = Some(now + self.refresh);
            Signal::Pause
        });
        (pool.charge(bytes), signal)
    }

    /// A packet of `bytes` is done with; what the peer is to be told.
    // spec: PB-11, PB-12
    pub fn release(&mut self, class: Class, bytes: u64) -> Option<Signal> {
        let pool = &mut self.pools[class.index()];
        let pauses = &mut self.pauses[class.index()];
        pool.release(bytes);
        let resumes = pauses.refresh_at.is_some() && pool.used() <= pauses.xon;
        resumes.then(|| {
            pauses.refresh_at = None;
            Signal::Resume
        })
    }

    /// What is due to be told at `now`: a paused peer is paused again while the
    /// pool is as full as before, else it may go on.
    // spec: PB-12
    pub fn pop_refresh(&mut self, now: Instant) -> Option<(Class, Signal)> {
        let due = |class: &Class| self.pauses[class.index()].refresh_at.is_some_and(|at| at <= now);
        let class = Class::ALL.into_iter().find(due)?;
        let pauses = &mut self.pauses[class.index()];
        let full = self.pools[class.index()].used() >= pauses.xoff;
        pauses.refresh_at = full.then(|| now + self.refresh);
        Some((class, if full { Signal::Pause } else { Signal::Resume }))
    }

    /// When [`Self::pop_refresh`] has something next.
    pub fn next_refresh(&self) -> Option<Instant> {
        self.pauses.iter().filter_map(|pauses| pauses.refresh_at).min()
    }

    /// The receiver penalty, 0 to 127.
    // spec: PB-14
    pub fn penalty(&self) -> u8 {
        let used = self.pool(Class::Data).used();
        if used < self.penalty_low {
            return 0;
        }
        if used >= self.penalty_high {
            return Self::FULL_PENALTY as u8;
        }
        let span = self.penalty_high - self.penalty_low;
        (Self::FULL_PENALTY * (used - self.penalty_low) / span) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PfcAttributes;
    use crate::units::Share;

    fn ingress(set: impl Fn(&mut NicAttributes)) -> Ingress {
        let mut attributes = NicAttributes::default();
        set(&mut attributes);
        Ingress::new(&attributes, Rate::gbps(400))
    }

    fn at(ps: u64) -> Instant {
        Instant::from_ps(ps)
    }

    // spec: PB-11, RX-1
    #[test]
    fn a_class_has_a_pool_of_its_own_and_what_does_not_fit_is_refused() {
        let mut ingress = ingress(|_| ());
        assert_eq!(ingress.charge(at(0), Class::Data, 3_600_000), (true, None));
        assert_eq!(ingress.charge(at(0), Class::Data, 1), (false, None));
        assert_eq!(ingress.charge(at(0), Class::Control, 400_000), (true, None));
        assert_eq!(ingress.charge(at(0), Class::Control, 1), (false, None));
        ingress.release(Class::Data, 3_600_000);
        assert_eq!(ingress.charge(at(0), Class::Data, 1), (true, None));
    }

    // spec: PB-14
    #[test]
    fn the_penalty_rises_from_a_quarter_of_the_pool_to_three_quarters() {
        for (used, penalty) in [
            (0, 0),
            (899_999, 0),
            (900_000, 0),
            (900_000 + 14_173, 0),
            (900_000 + 14_174, 1),
            (1_800_000, 63),
            (2_699_999, 126),
            (2_700_000, 127),
            (3_600_000, 127),
        ] {
            let mut ingress = ingress(|_| ());
            assert!(ingress.charge(at(0), Class::Data, used).0);
            assert_eq!(ingress.penalty(), penalty, "{used}");
        }
    }

    // spec: PB-12
    #[test]
    fn the_pause_time_is_83_985_us_at_the_defaults() {
        let time = pause_time(65_535, Rate::gbps(400), Duration::from_ns(100));
        assert_eq!(time, Duration::from_ps(83_884_800 + 100_000));
        assert_eq!(pause_time(0, Rate::gbps(400), Duration::ZERO), Duration::ZERO);
    }

    // spec: PB-12
    #[test]
    fn the_peer_is_paused_once_at_xoff_and_goes_on_at_xon() {
        let mut ingress = ingress(|a| a.pfc.enabled = [true, false]);
        assert_eq!(ingress.charge(at(0), Class::Data, 2_879_999), (true, None));
        assert_eq!(ingress.charge(at(5), Class::Data, 1), (true, Some(Signal::Pause)));
        assert_eq!(ingress.charge(at(6), Class::Data, 1), (true, None), "told once");
        assert_eq!(ingress.release(Class::Data, 1_440_000), None);
        assert_eq!(ingress.release(Class::Data, 1), Some(Signal::Resume));
        assert_eq!((ingress.release(Class::Data, 1), ingress.next_refresh()), (None, None));
    }

    // spec: PB-12
    #[test]
    fn a_pause_is_refreshed_at_half_its_time_while_the_pool_is_full_and_else_ended() {
        let mut ingress = ingress(|a| a.pfc.enabled = [true, false]);
        ingress.charge(at(0), Class::Data, 2_880_000);
        let half = 83_984_800 / 2;
        assert_eq!(ingress.next_refresh(), Some(at(half)));
        assert_eq!(ingress.pop_refresh(at(half - 1)), None);
        assert_eq!(ingress.pop_refresh(at(half)), Some((Class::Data, Signal::Pause)));
        ingress.release(Class::Data, 1);
        assert_eq!(ingress.pop_refresh(at(2 * half)), Some((Class::Data, Signal::Resume)));
        assert_eq!(ingress.next_refresh(), None);
    }

    // spec: PB-12, REL-5
    #[test]
    fn an_empty_pool_is_never_full_however_low_the_threshold() {
        let mut ingress = ingress(|a| {
            a.pfc = PfcAttributes { enabled: [true; 2], xoff: Share::default(), ..a.pfc };
            a.pfc.xon = Share::default();
        });
        assert_eq!(ingress.charge(at(0), Class::Data, 3_600_001), (false, Some(Signal::Pause)));
        let refresh = ingress.next_refresh().expect("a paused peer");
        assert_eq!(ingress.pop_refresh(refresh), Some((Class::Data, Signal::Resume)));
        assert_eq!(ingress.next_refresh(), None);
    }

    // spec: PB-12, REL-5
    #[test]
    fn a_refresh_is_never_due_again_at_once() {
        let mut attributes = NicAttributes::default();
        attributes.pfc = PfcAttributes { enabled: [true; 2], quanta: 1, ..attributes.pfc };
        attributes.delay = Duration::ZERO;
        let mut ingress = Ingress::new(&attributes, Rate::gbps(1_000_000));
        ingress.charge(at(0), Class::Data, 2_880_000);
        assert_eq!(ingress.next_refresh(), Some(at(1)), "a pause is 0.512 ps");
        assert_eq!(ingress.pop_refresh(at(1)), Some((Class::Data, Signal::Pause)));
        assert_eq!(ingress.pop_refresh(at(1)), None);
    }

    // spec: PB-12
    #[test]
    fn classes_without_pfc_are_never_paused_and_a_full_pool_still_pauses() {
        let mut ingress = ingress(|a| a.pfc.enabled = [false, true]);
        assert_eq!(ingress.charge(at(0), Class::Data, 3_600_000), (true, None));
        // A packet that the pool cannot take reaches the threshold too.
        assert_eq!(ingress.charge(at(0), Class::Control, 400_001), (false, Some(Signal::Pause)));
    }
}
