//! What a receiving side has received: the cumulative PSN and what is held
//! beyond it.

use std::collections::VecDeque;

use crate::wire::psn::PsnExt;

/// What a PSN is to the receiving side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The next expected one.
    InOrder,
    /// Beyond the next expected one: held.
    OutOfOrder,
    /// Received before.
    Duplicate,
    /// Further beyond the cumulative PSN than the window reaches.
    OutOfWindow,
}

/// One held PSN.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    received: bool,
    asked: bool,
}

/// A 64-PSN block of a SACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Bitmap bit `i` stands for the cumulative PSN plus this plus `i`.
    pub offset: i16,
    /// Bit 0 is the least significant.
    pub bitmap: u64,
}

/// PSNs received, up to a window beyond the cumulative one. Memory is used for
/// what is held out of order only.
// spec: QP-1, RX-6, W-10
#[derive(Debug)]
pub struct ReceivedPsns {
    cumulative: PsnExt,
    range: u32,
    /// Slot 0 is the PSN after the cumulative one, which has not arrived.
    beyond: VecDeque<Slot>,
    held: u32,
    next_block: usize,
}

impl ReceivedPsns {
    /// PSNs in one block.
    const BLOCK: usize = 64;

    /// Nothing received yet; `first` is the PSN expected first, `range` the
    /// receiver's MaxPSNRange.
    pub fn new(first: PsnExt, range: u32) -> Self {
        let beyond = VecDeque::new();
        Self { cumulative: first.prev(), range, beyond, held: 0, next_block: 0 }
    }

    /// The highest PSN received in order; first PSN - 1 until there is one.
    // spec: ACK-1
    pub fn cumulative(&self) -> PsnExt {
        self.cumulative
    }

    /// How many PSNs are held beyond the cumulative one.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// What `psn` would be if it arrived now.
    // spec: RX-3, RX-6, RX-7
    pub fn classify(&self, psn: PsnExt) -> Arrival {
        let beyond = psn.offset_from(self.cumulative);
        if beyond <= 0 {
            return Arrival::Duplicate;
        }
        if beyond > i64::from(self.range) {
            return Arrival::OutOfWindow;
        }
        match self.beyond.get(beyond as usize - 1) {
            Some(slot) if slot.received => Arrival::Duplicate,
            _ if beyond == 1 => Arrival::InOrder,
            _ => Arrival::OutOfOrder,
        }
    }

    /// Records `psn`, which [`Self::classify`] found in order or out of order,
    /// and moves the cumulative PSN as far as it goes; true when that reaches a
    /// packet that asked for an ACK while a gap was open.
    // spec: RX-6, SACK-5
    pub fn insert(&mut self, psn: PsnExt, ask: bool) -> bool {
        let index = (psn.offset_from(self.cumulative) - 1) as usize;
        if self.beyond.len() <= index {
            self.beyond.resize(index + 1, Slot::default());
        }
        // Only a packet that arrives while a gap is open is remembered.
        let asked = ask && index > 0;
        self.beyond[index] = Slot { received: true, asked };
        self.held += 1;
        self.advance()
    }

    fn advance(&mut self) -> bool {
        let mut asked = false;
        while self.beyond.front().is_some_and(|slot| slot.received) {
            let Some(slot) = self.beyond.pop_front() else { break };
            self.cumulative = self.cumulative.next();
            self.held -= 1;
            asked |= slot.asked;
        }
        asked
    }

    /// The block that the next SACK reports.
    // spec: SACK-7, W-10
    pub fn next_sack_block(&mut self) -> Block {
        if self.held == 0 {
            self.next_block = 0;
            return Block { offset: 1, bitmap: 0 };
        }
        let blocks = self.beyond.len().div_ceil(Self::BLOCK);
        let start = if self.next_block < blocks { self.next_block } else { 0 };
        // Something is held, so one of the blocks is not empty.
        let (index, bitmap) = (start..blocks)
            .chain(0..start)
            .map(|index| (index, self.bitmap(index)))
            .find(|(_, bitmap)| *bitmap != 0)
            .unwrap_or((0, 0));
        self.next_block = index + 1;
        Block { offset: (1 + index * Self::BLOCK) as i16, bitmap }
    }

    fn bitmap(&self, block: usize) -> u64 {
        let start = block * Self::BLOCK;
        let end = (start + Self::BLOCK).min(self.beyond.len());
        self.beyond
            .range(start..end)
            .enumerate()
            .fold(0, |bits, (i, slot)| bits | (u64::from(slot.received) << i))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::psn::Psn;

    fn window(first: u64, range: u32) -> (PsnExt, ReceivedPsns) {
        let first = PsnExt::first(Psn::masked(first));
        (first, ReceivedPsns::new(first, range))
    }

    // spec: RX-6, ACK-1
    #[test]
    fn the_cumulative_psn_advances_past_what_is_held() {
        let (first, mut received) = window(0, 8);
        assert_eq!(received.cumulative(), first.prev());
        for psn in [1, 2, 4] {
            assert_eq!(received.classify(first.plus(psn)), Arrival::OutOfOrder);
            received.insert(first.plus(psn), false);
        }
        assert_eq!((received.held(), received.cumulative()), (3, first.prev()));
        assert_eq!(received.classify(first), Arrival::InOrder);
        received.insert(first, false);
        assert_eq!((received.held(), received.cumulative()), (1, first.plus(2)));
    }

    // spec: RX-3, RX-7
    #[test]
    fn the_window_ends_max_psn_range_beyond_the_cumulative_psn() {
        let (first, mut received) = window(5, 4);
        assert_eq!(received.classify(first.plus(3)), Arrival::OutOfOrder);
        assert_eq!(received.classify(first.plus(4)), Arrival::OutOfWindow);
        received.insert(first.plus(3), false);
        assert_eq!(received.classify(first.plus(3)), Arrival::Duplicate);
        assert_eq!(received.classify(first.prev()), Arrival::Duplicate);
    }

    // spec: SACK-5
    #[test]
    fn an_ask_is_remembered_only_while_a_gap_is_open() {
        let (first, mut received) = window(0, 64);
        assert!(!received.insert(first, true), "in order: answered at once");
        received.insert(first.plus(2), true);
        received.insert(first.plus(4), true);
        assert!(received.insert(first.plus(1), false));
        assert!(received.insert(first.plus(3), false));
        assert!(!received.insert(first.plus(5), false), "each fires once");
    }

    // spec: SACK-7, W-10
    #[test]
    fn successive_sacks_report_successive_blocks_and_wrap() {
        let (first, mut received) = window(0, 1024);
        for psn in [1, 63, 64, 200, 201] {
            received.insert(first.plus(psn), false);
        }
        let all = [
            Block { offset: 1, bitmap: (1 << 1) | (1 << 63) },
            Block { offset: 65, bitmap: 1 },
            Block { offset: 193, bitmap: (1 << 8) | (1 << 9) },
        ];
        for block in all.into_iter().cycle().take(7) {
            assert_eq!(received.next_sack_block(), block);
        }
    }

    // spec: W-10
    #[test]
    fn with_nothing_held_the_block_starts_over() {
        let (first, mut received) = window(0, 1024);
        received.insert(first.plus(70), false);
        assert_eq!(received.next_sack_block().offset, 65);
        for psn in 0..70 {
            received.insert(first.plus(psn), false);
        }
        assert_eq!(received.next_sack_block(), Block { offset: 1, bitmap: 0 });
        received.insert(first.plus(72), false);
        assert_eq!(received.next_sack_block(), Block { offset: 1, bitmap: 2 });
    }

    proptest! {
        // case A04: windows over the wrap, random order, duplicates.
        // spec: RX-6, RX-7, SACK-7
        #[test]
        fn agrees_with_a_set_of_numbers(
            start in prop_oneof![0_u64..50, 0xff_ffc0_u64..0x100_0000],
            offsets in proptest::collection::vec(0_u64..100, 1..200),
        ) {
            let (first, mut received) = window(start, 100);
            let mut seen = std::collections::BTreeSet::new();
            for offset in offsets {
                let psn = PsnExt::nearest(first.plus(offset).wire(), received.cumulative());
                prop_assert_eq!(psn, first.plus(offset));
                let fresh = seen.insert(offset);
                let known = received.classify(psn) == Arrival::Duplicate;
                prop_assert_eq!(known, !fresh);
                if fresh {
                    received.insert(psn, false);
                }
                let in_order = (0..).take_while(|n| seen.contains(n)).count() as u64;
                prop_assert_eq!(received.cumulative(), first.plus(in_order).prev());
                prop_assert_eq!(u64::from(received.held()), seen.len() as u64 - in_order);
            }
            let mut reported = std::collections::BTreeSet::new();
            for _ in 0..2 {
                let block = received.next_sack_block();
                for bit in 0..64 {
                    if block.bitmap >> bit & 1 == 1 {
                        let base = received.cumulative().offset_from(first);
                        reported.insert((base + i64::from(block.offset) + bit) as u64);
                    }
                }
            }
            let cumulative = received.cumulative().offset_from(first);
            let held: std::collections::BTreeSet<u64> =
                seen.into_iter().filter(|n| *n as i64 > cumulative).collect();
            prop_assert_eq!(reported, held);
        }
    }
}
