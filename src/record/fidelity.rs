//! How faithful a run was to protocol time, as reports say it.

use core::fmt;

use serde::Serialize;

use crate::time::{Duration, PS_PER_US};

/// In one word.
// spec: TIME-6
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Protocol time was exact: there is no lateness.
    Exact,
    /// The native profile models no packet times to be late by.
    NotJudged,
    /// 99 of 100 frames at most half a packet late, and no kernel drop.
    Good,
    /// 99 of 100 frames at most two packets late.
    Fair,
    /// Worse.
    Poor,
}

impl Verdict {
    /// From the 99th percentile of lateness and the time of one full packet.
    // spec: TIME-6
    fn of(p99: Duration, packet_time: Duration, kernel_drops: u64) -> Self {
        if p99 * 2 <= packet_time && kernel_drops == 0 {
            Self::Good
        } else if p99 <= packet_time * 2 {
            Self::Fair
        } else {
            Self::Poor
        }
    }

    /// As reports print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Poor => "poor",
            Self::NotJudged => "not judged",
        }
    }
}

/// Lateness of the worst sender or switch port.
// spec: TIME-6, TIME-7
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatenessReport {
    /// `packet times` (of one full packet on the port's link), or `us` where
    /// nothing is judged.
    pub unit: &'static str,
    /// The median.
    pub p50: f64,
    /// What 99 of 100 frames did not exceed.
    pub p99: f64,
    /// The latest frame's.
    pub max: f64,
}

/// How faithful a run was.
// spec: TIME-6
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Fidelity {
    /// In one word.
    pub verdict: Verdict,
    /// How late frames were; `None` in the exact clocks.
    pub lateness: Option<LatenessReport>,
    /// Frames that kernels dropped, on sockets and interfaces.
    pub kernel_drops: u64,
    /// The time dilation factor to try when the verdict is poor.
    pub try_tdf: Option<u32>,
}

impl Fidelity {
    /// That of the exact clocks.
    pub const EXACT: Self =
        Self { verdict: Verdict::Exact, lateness: None, kernel_drops: 0, try_tdf: None };

    /// Judges what ran at time dilation factor `tdf` from its lateness (median,
    /// 99th percentile, maximum), the time of one full packet on its link (all
    /// protocol time; `None` in the native profile, which is not judged), and
    /// the frames that kernels dropped.
    // spec: TIME-6, TIME-7
    pub fn judge(
        lateness: [Duration; 3],
        packet_time: Option<Duration>,
        kernel_drops: u64,
        tdf: u32,
    ) -> Self {
        let p99 = lateness[1];
        let (verdict, unit, unit_ps) = match packet_time {
            None => (Verdict::NotJudged, "us", PS_PER_US),
            Some(packet) => {
                (Verdict::of(p99, packet, kernel_drops), "packet times", packet.as_ps())
            }
        };
        let [p50, p99_units, max] =
            lateness.map(|late| late.as_ps() as f64 / unit_ps.max(1) as f64);
        let try_tdf = packet_time
            .filter(|_| verdict == Verdict::Poor)
            .map(|packet| sufficient_tdf(p99, packet, tdf));
        let lateness = Some(LatenessReport { unit, p50, p99: p99_units, max });
        Self { verdict, lateness, kernel_drops, try_tdf }
    }

    /// The worse of two.
    pub fn worse(self, other: Self) -> Self {
        let p99 = |fidelity: &Self| fidelity.lateness.map_or(0.0, |lateness| lateness.p99);
        let key = |fidelity: &Self| (fidelity.verdict, p99(fidelity));
        if key(&other) > key(&self) { other } else { self }
    }

    /// The same with this many frames dropped by kernels, with which it is not good.
    // spec: TIME-6
    pub fn with_kernel_drops(mut self, kernel_drops: u64) -> Self {
        self.kernel_drops = kernel_drops;
        if kernel_drops > 0 && self.verdict == Verdict::Good {
            self.verdict = Verdict::Fair;
        }
        self
    }
}

/// The multiple of 1,000 from which on the lateness `p99` measured at `tdf`
/// is at most half a packet.
fn sufficient_tdf(p99: Duration, packet_time: Duration, tdf: u32) -> u32 {
    const STEP: u32 = 1_000;
    let real_ps = u128::from(p99.as_ps()) * u128::from(tdf);
    let packet_ps = u128::from(packet_time.as_ps().max(1));
    let steps = (2 * real_ps).div_ceil(packet_ps * u128::from(STEP));
    u32::try_from(steps).unwrap_or(u32::MAX).min(u32::MAX / STEP) * STEP
}

/// `exact`, `good (p50 0.02, p99 0.31, max 1.20 packet times; 0 kernel drops)`,
/// or `poor (p99 lateness 3.1 packet times; try --tdf 4000)` and then the rest.
// spec: TIME-6
impl fmt::Display for Fidelity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict.name())?;
        let drops = KernelDrops(self.kernel_drops);
        let Some(LatenessReport { unit, p50, p99, max }) = self.lateness else {
            return if self.kernel_drops > 0 { write!(f, " ({drops})") } else { Ok(()) };
        };
        if let Some(tdf) = self.try_tdf {
            write!(f, " (p99 lateness {p99:.1} {unit}; try --tdf {tdf})")?;
        }
        write!(f, " (p50 {p50:.2}, p99 {p99:.2}, max {max:.2} {unit}; {drops})")
    }
}

struct KernelDrops(u64);

impl fmt::Display for KernelDrops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernel drop{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-6, TIME-7
    #[test]
    fn a_run_says_plainly_how_faithful_it_was() {
        let lateness = |unit| Some(LatenessReport { unit, p50: 0.125, p99: 3.1, max: 9.0 });
        let fidelity = |verdict, unit, kernel_drops, try_tdf| {
            Fidelity { verdict, lateness: lateness(unit), kernel_drops, try_tdf }.to_string()
        };
        assert_eq!(Fidelity::EXACT.to_string(), "exact");
        assert_eq!(
            fidelity(Verdict::Good, "packet times", 0, None),
            "good (p50 0.12, p99 3.10, max 9.00 packet times; 0 kernel drops)"
        );
        assert_eq!(
            fidelity(Verdict::Poor, "packet times", 2, Some(4000)),
            "poor (p99 lateness 3.1 packet times; try --tdf 4000) \
             (p50 0.12, p99 3.10, max 9.00 packet times; 2 kernel drops)"
        );
        assert_eq!(
            fidelity(Verdict::NotJudged, "us", 1, None),
            "not judged (p50 0.12, p99 3.10, max 9.00 us; 1 kernel drop)"
        );
        let dropped = Fidelity { kernel_drops: 3, ..Fidelity::EXACT };
        assert_eq!(dropped.to_string(), "exact (3 kernel drops)");
    }

    const PACKET: Duration = Duration::from_ps(83_480);

    fn judge(p99_ps: u64, drops: u64, tdf: u32) -> Fidelity {
        Fidelity::judge([Duration::from_ps(p99_ps); 3], Some(PACKET), drops, tdf)
    }

    // spec: TIME-6
    #[test]
    fn limits_are_half_a_packet_and_two() {
        let verdict = |p99_ps| judge(p99_ps, 0, 1_000).verdict;
        assert_eq!(verdict(0), Verdict::Good);
        assert_eq!(verdict(41_740), Verdict::Good);
        assert_eq!(verdict(41_741), Verdict::Fair);
        assert_eq!(verdict(166_960), Verdict::Fair);
        assert_eq!(verdict(166_961), Verdict::Poor);
        assert_eq!(judge(166_961, 0, 1_000).try_tdf, Some(5_000));
    }

    // spec: TIME-6
    #[test]
    fn a_kernel_drop_is_never_good() {
        assert_eq!(judge(0, 1, 1_000).verdict, Verdict::Fair);
        assert_eq!(judge(0, 0, 1_000).with_kernel_drops(1).verdict, Verdict::Fair);
        assert_eq!(judge(1_000_000, 0, 1).with_kernel_drops(1).verdict, Verdict::Poor);
    }

    // spec: TIME-6
    #[test]
    fn the_proposal_makes_the_same_real_lateness_half_a_packet() {
        for (p99_ps, tdf) in [(200_000, 1), (250_440, 1_000), (1_000_000, 4_000), (166_961, 777)] {
            let try_tdf = judge(p99_ps, 0, tdf).try_tdf.unwrap();
            let half = |at: u32| 2 * p99_ps * u64::from(tdf) <= PACKET.as_ps() * u64::from(at);
            assert!(half(try_tdf) && !half(try_tdf - 1_000), "{p99_ps} ps at {tdf}");
        }
        let absurd = Fidelity::judge([Duration::MAX; 3], Some(Duration::ZERO), u64::MAX, u32::MAX);
        assert_eq!(absurd.try_tdf, Some(4_294_967_000));
    }

    // spec: TIME-6
    #[test]
    fn the_worst_node_speaks_for_the_run() {
        let worst = Fidelity::EXACT.worse(judge(50_000, 0, 1)).worse(judge(0, 0, 1));
        assert_eq!((worst.verdict, worst.lateness), (Verdict::Fair, judge(50_000, 0, 1).lateness));
        assert_eq!(judge(10, 0, 1).worse(judge(20, 0, 1)), judge(20, 0, 1));
    }

    // spec: TIME-7
    #[test]
    fn native_is_not_judged_and_its_lateness_is_in_microseconds() {
        let fidelity = Fidelity::judge([Duration::from_ns(1_500); 3], None, 0, 1);
        assert_eq!(
            fidelity.to_string(),
            "not judged (p50 1.50, p99 1.50, max 1.50 us; 0 kernel drops)"
        );
    }
}
