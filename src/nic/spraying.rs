//! Which entropy value the next packet to a destination takes.

use crate::config::NicAttributes;

/// The spraying of one destination: its entropy values in turn.
// spec: SCHED-2
#[derive(Clone, Copy, Debug)]
pub struct Spraying {
    start: u16,
    mask: u16,
    next: u16,
}

impl Spraying {
    /// A destination's spraying over the 2^EntropyMaskBits values from
    /// StartingPortOffset (mod 65,536).
    // spec: MP-2
    pub fn new(attributes: &NicAttributes) -> Self {
        let mask = ((1_u32 << attributes.entropy_mask_bits) - 1) as u16;
        Self { start: attributes.starting_port_offset, mask, next: 0 }
    }

    /// The next value.
    // spec: ACK-6, NACK-10
    pub fn next_value(&mut self) -> u16 {
        let value = self.start.wrapping_add(self.next);
        self.next = (self.next + 1) & self.mask;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MP-2
    #[test]
    fn the_set_is_walked_round_robin_and_wraps_at_16_bits() {
        let attributes = NicAttributes {
            entropy_mask_bits: 2,
            starting_port_offset: 65_534,
            ..NicAttributes::default()
        };
        let mut spraying = Spraying::new(&attributes);
        let values: Vec<u16> = (0..5).map(|_| spraying.next_value()).collect();
        assert_eq!(values, [65_534, 65_535, 0, 1, 65_534]);
    }

    // spec: MP-2
    #[test]
    fn the_default_set_has_128_values_from_49152() {
        let mut spraying = Spraying::new(&NicAttributes::default());
        let values: Vec<u16> = (0..129).map(|_| spraying.next_value()).collect();
        assert_eq!((values[0], values[127], values[128]), (49_152, 49_279, 49_152));
    }
}
