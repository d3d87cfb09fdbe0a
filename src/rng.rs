//! Seeded random streams. One run has one seed; every stream in it (a node's,
//! a link's) is derived from that seed and a label, so that adding a node does
//! not move the others' streams.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// A deterministic random stream (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream of `label` in the run with `seed`. `start` counts the node's
    /// lives, so that a restarted node draws other numbers than before.
    // spec: W-7
    pub fn derive(seed: u64, label: &str, start: u64) -> Self {
        // FNV-1a over the label keeps streams apart; seed_from_u64 mixes the rest.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in label.bytes().chain(start.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Self(Xoshiro256PlusPlus::seed_from_u64(hash ^ seed.rotate_left(32)))
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// A number below `bound`, evenly spread (0 when `bound` is 0).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `p` (0.0 never, 1.0 always). Draws one number either way.
    pub fn chance(&mut self, p: f64) -> bool {
        ((self.next_u64() >> 11) as f64) * (1.0 / (1_u64 << 53) as f64) < p
    }

    /// Fills `out` with random bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_bytes(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: W-7
    #[test]
    fn streams_differ_by_seed_label_and_life() {
        let first = |seed, label, start| Rng::derive(seed, label, start).next_u64();
        assert_eq!(first(1, "a", 0), first(1, "a", 0));
        assert_ne!(first(1, "a", 0), first(2, "a", 0));
        assert_ne!(first(1, "a", 0), first(1, "b", 0));
        assert_ne!(first(1, "a", 0), first(1, "a", 1));
    }

    #[test]
    fn chance_is_exact_at_its_ends_and_fair_between() {
        let mut rng = Rng::derive(7, "chance", 0);
        assert!((0..1000).all(|_| !rng.chance(0.0)));
        assert!((0..1000).all(|_| rng.chance(1.0)));
        let hits = (0..100_000).filter(|_| rng.chance(0.25)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
    }
}
