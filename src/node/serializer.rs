//! A port's transmitter: one frame at a time, at the port's rate.

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Sends things of type `T` one after the other, each for as long as its bytes
/// take at the rate. Without a rate (native profile) nothing takes time.
///
/// The next one starts at the scheduled end of the one before when the caller
/// calls in with that instant, however late it really is.
// spec: TIME-7, WIRE-7, SW-2
#[derive(Debug)]
pub struct Serializer<T> {
    rate: Option<Rate>,
    current: Option<(Instant, T)>,
}

impl<T> Serializer<T> {
    /// An idle transmitter; `rate` is `None` when nothing is paced.
    pub const fn new(rate: Option<Rate>) -> Self {
        Self { rate, current: None }
    }

    /// How long `wire_bytes` bytes take; nothing without a rate.
    pub fn time_for(&self, wire_bytes: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| rate.time_for(wire_bytes))
    }

    /// Whether nothing is being sent.
    pub const fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// Starts to send `item` of `wire_bytes` bytes (FCS included) at `now`.
    ///
    /// # Panics
    /// In debug builds when it is not idle.
    pub fn start(&mut self, now: Instant, wire_bytes: u64, item: T) {
        debug_assert!(self.is_idle(), "a port sends one frame at a time");
        self.current = Some((now + self.time_for(wire_bytes), item));
    }

    /// What has been sent whole by `now`.
    pub fn finish(&mut self, now: Instant) -> Option<T> {
        self.current.take_if(|(end, _)| *end <= now).map(|(_, item)| item)
    }

    /// When the current one's last bit leaves.
    pub fn ends(&self) -> Option<Instant> {
        self.current.as_ref().map(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-7, WIRE-7
    #[test]
    fn frames_follow_each_other_without_a_gap() {
        let mut port = Serializer::new(Some(Rate::gbps(400)));
        port.start(Instant::ZERO, 4174, 'a');
        assert_eq!(port.finish(Instant::from_ps(83_479)), None);
        let end = port.ends().unwrap();
        assert_eq!(end, Instant::from_ps(83_480));
        assert_eq!(port.finish(end), Some('a'));
        port.start(end, 62, 'b');
        assert_eq!(port.ends(), Some(Instant::from_ps(83_480 + 1_240)));
    }

    #[test]
    fn without_a_rate_nothing_takes_time() {
        let mut port = Serializer::new(None);
        port.start(Instant::from_ps(5), 4174, ());
        assert_eq!(port.finish(Instant::from_ps(5)), Some(()));
        assert!(port.is_idle());
        assert_eq!(port.time_for(4174), Duration::ZERO);
    }
}
