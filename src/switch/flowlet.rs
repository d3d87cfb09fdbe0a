//! Flows that change their port when they have been idle.

use super::routes::PortSet;
use crate::config::{LoadBalancing, PathAttributes};
use crate::node::PortId;
use crate::time::{Duration, Instant};

/// Flow slots of an equal-cost set.
const SLOTS: usize = 512;
/// How many sets have slots: the first ones that have a choice.
const SETS: usize = 128;

/// What a slot's flows did last.
#[derive(Clone, Copy, Debug)]
struct Slot {
    port: PortId,
    /// When its latest packet came.
    last: Instant,
}

/// The flow slots of a switch. Flows whose hashes agree share a slot.
// spec: SW-14
#[derive(Debug)]
pub(super) struct FlowletTable {
    gap: Duration,
    slots: Vec<Option<Slot>>,
    /// The first slot of each set; `None` when it has none.
    starts: Vec<Option<usize>>,
}

impl FlowletTable {
    /// For the equal-cost `sets` of a switch, in order.
    pub fn new(attributes: &PathAttributes, sets: &[PortSet]) -> Self {
        let most = if attributes.load_balancing == LoadBalancing::Flowlet { SETS } else { 0 };
        let mut with_slots = 0;
        let starts = sets.iter().map(|set| {
            let has_slots = set.all().len() > 1 && with_slots < most;
            with_slots += usize::from(has_slots);
            has_slots.then(|| (with_slots - 1) * SLOTS)
        });
        let starts = starts.collect();
        Self { gap: attributes.flowlet_gap, slots: vec![None; with_slots * SLOTS], starts }
    }

    /// Which slot of `set` a flow has; `None` when the set has no slots.
    pub fn slot(&self, set: usize, hash: impl FnOnce() -> u16) -> Option<usize> {
        Some(self.starts[set]? + usize::from(hash()) % SLOTS)
    }

    /// The port that the slot's next packet keeps to at `now`.
    pub fn kept(&self, slot: usize, now: Instant) -> Option<PortId> {
        let recent = |slot: &Slot| now.since(slot.last) < self.gap;
        self.slots[slot].filter(recent).map(|slot| slot.port)
    }

    /// A packet of the slot takes `port` at `now`.
    pub fn take(&mut self, slot: usize, port: PortId, now: Instant) {
        self.slots[slot] = Some(Slot { port, last: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(sets: usize) -> FlowletTable {
        let attributes =
            PathAttributes { load_balancing: LoadBalancing::Flowlet, ..PathAttributes::default() };
        // Every second set has no choice.
        FlowletTable::new(&attributes, &(0..sets).map(|set| of(1 + set % 2)).collect::<Vec<_>>())
    }

    fn of(ports: usize) -> PortSet {
        PortSet::new((0..ports).map(|port| PortId(port as u16)).collect())
    }

    // spec: SW-14
    #[test]
    fn the_first_128_sets_with_a_choice_have_512_slots_each() {
        let table = table(300);
        let starts = |set| table.slot(set, || 0);
        assert_eq!((starts(0), starts(1), starts(3)), (None, Some(0), Some(512)));
        assert_eq!((starts(255), starts(257)), (Some(127 * 512), None));
        assert_eq!(table.slots.len(), 128 * 512);
        assert_eq!(table.slot(3, || 511), Some(1_023));
        assert_eq!(table.slot(3, || 512), Some(512));
        let off = FlowletTable::new(&PathAttributes::default(), &[of(2)]);
        assert_eq!((off.slot(0, || 0), off.slots.len()), (None, 0));
    }

    // spec: SW-14
    #[test]
    fn a_slot_keeps_its_port_until_it_was_idle_for_the_gap() {
        let mut table = table(2);
        let us = |us| Instant::ZERO + Duration::from_us(us);
        assert_eq!(table.kept(7, us(0)), None);
        table.take(7, PortId(1), us(5));
        assert_eq!(table.kept(7, us(104)), Some(PortId(1)));
        assert_eq!(table.kept(7, us(105)), None);
        table.take(7, PortId(1), us(104));
        assert_eq!(table.kept(7, us(203)), Some(PortId(1)), "each packet starts it anew");
        table.gap = Duration::ZERO;
        assert_eq!(table.kept(7, us(104)), None, "0 is at every packet");
    }
}
