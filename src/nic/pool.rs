//! A pool of a packet buffer: the bytes that one class may hold.

use serde::Serialize;

/// What a pool counts.
// spec: PB-15
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PoolCounters {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Bytes that it holds now.
    pub used_bytes: u64,
    /// The most bytes that it ever held.
    pub peak_bytes: u64,
    /// Packets that it took in.
    pub packets_in: u64,
    /// Packets that have left it.
    pub packets_out: u64,
    /// Packets that it had no room for.
    pub drops: u64,
}

/// The pools of a NIC's buffers, each class's in its place: data, then control.
// spec: PB-15
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferCounters {
    /// Of packets that wait to be sent.
    pub egress: [PoolCounters; 2],
    /// Of packets that have arrived.
    pub ingress: [PoolCounters; 2],
}

/// A pool: packets are charged to it and released again.
// spec: PB-8, PB-9, PB-11
#[derive(Debug)]
pub struct Pool {
    counters: PoolCounters,
}

impl Pool {
    /// An empty pool of `size_bytes`.
    pub fn new(size_bytes: u64) -> Self {
        Self { counters: PoolCounters { size_bytes, ..PoolCounters::default() } }
    }

    /// Whether a packet of `bytes` would fit.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.counters.used_bytes + bytes <= self.counters.size_bytes
    }

    /// Takes a packet of `bytes` in; false, and it is counted as a drop, when it does not fit.
    #[must_use]
    pub fn charge(&mut self, bytes: u64) -> bool {
        let fits = self.has_room(bytes);
        let counters = &mut self.counters;
        if fits {
            counters.used_bytes += bytes;
            counters.peak_bytes = counters.peak_bytes.max(counters.used_bytes);
            counters.packets_in += 1;
        } else {
            counters.drops += 1;
        }
        fits
    }

    /// A packet of `bytes` that was charged has left.
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(self.counters.used_bytes >= bytes, "only what was charged is released");
        self.counters.used_bytes = self.counters.used_bytes.saturating_sub(bytes);
        self.counters.packets_out += 1;
    }

    /// Bytes that it holds.
    pub fn used(&self) -> u64 {
        self.counters.used_bytes
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.counters.size_bytes
    }

    /// What it has counted.
    pub fn counters(&self) -> PoolCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: PB-8, PB-15
    #[test]
    fn the_data_pool_holds_55_full_packets_and_counts_them() {
        let mut pool = Pool::new(230_400);
        let taken = (0..60).filter(|_| pool.charge(4_174)).count();
        assert_eq!((taken, pool.used()), (55, 55 * 4_174));
        pool.release(4_174);
        assert!(pool.has_room(4_174) && !pool.has_room(2 * 4_174));
        let expected = PoolCounters {
            size_bytes: 230_400,
            used_bytes: 54 * 4_174,
            peak_bytes: 55 * 4_174,
            packets_in: 55,
            packets_out: 1,
            drops: 5,
        };
        assert_eq!(pool.counters(), expected);
    }
}
