//! Marking: a queue that has been long tells the senders.

use crate::config::EcnAttributes;
use crate::rng::Rng;

use super::buffer::as_f64;

/// Decides which packets are marked.
// spec: SW-11
#[derive(Debug)]
pub(super) struct EcnMarker {
    enabled: bool,
    last_hop: bool,
    min: f64,
    max: f64,
    probability: f64,
}

impl EcnMarker {
    pub fn new(attributes: &EcnAttributes) -> Self {
        Self {
            enabled: attributes.enabled,
            last_hop: attributes.last_hop,
            min: as_f64(attributes.min_threshold),
            max: as_f64(attributes.max_threshold),
            probability: as_f64(attributes.max_probability),
        }
    }

    /// Whether packets that leave towards a NIC, or not, may be marked at all.
    pub const fn works(&self, faces_nic: bool) -> bool {
        self.enabled && (self.last_hop || !faces_nic)
    }

    /// Whether a packet that starts to leave a queue is marked. The queue has
    /// held `mean` bytes on average; thresholds are fractions of `limit` bytes.
    // spec: SW-11
    pub fn marks(&self, mean: f64, limit: u64, rng: &mut Rng) -> bool {
        let (low, high) = (self.min * limit as f64, self.max * limit as f64);
        if mean < low {
            return false;
        }
        mean >= high || rng.chance(self.probability * (mean - low) / (high - low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of(mean: f64, attributes: &EcnAttributes) -> usize {
        let marker = EcnMarker::new(attributes);
        let mut rng = Rng::derive(1, "ecn", 0);
        (0..100_000).filter(|_| marker.marks(mean, 100_000, &mut rng)).count()
    }

    // spec: SW-11
    #[test]
    fn marks_grow_from_none_to_all_between_the_thresholds() {
        let attributes = EcnAttributes::default();
        let cases = [(19_999.0, 0, 0), (20_000.0, 0, 0), (35_000.0, 24_000, 26_000)];
        let upper = [(50_000.0, 49_000, 51_000), (79_999.0, 99_900, 100_000)];
        for (mean, least, most) in cases.into_iter().chain(upper) {
            let marked = share_of(mean, &attributes);
            assert!((least..=most).contains(&marked), "{marked} of 100000 at {mean}");
        }
        assert_eq!(share_of(80_000.0, &attributes), 100_000);
    }

    // spec: SW-11
    #[test]
    fn the_largest_probability_bounds_the_slope_and_not_what_is_above_it() {
        let max_probability = crate::units::Share::from_ppm(500_000);
        let attributes = EcnAttributes { max_probability, ..EcnAttributes::default() };
        let marked = share_of(79_999.0, &attributes);
        assert!((49_000..51_000).contains(&marked), "{marked}");
        assert_eq!(share_of(80_000.0, &attributes), 100_000);
    }
}
