//! Host memory that the NIC may read from and write to.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::rng::Rng;
use crate::wire::qpn::RKey;

/// What the peer may do with a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Only this host reads it, to send from it.
    Local,
    /// The peer may write to it.
    RemoteWrite,
}

/// A registered region: what an application hands to its peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryRegion {
    /// Virtual address of its first byte.
    pub va: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The key that names it.
    pub rkey: RKey,
}

#[derive(Debug)]
struct Registered {
    va: u64,
    access: Access,
    bytes: Vec<u8>,
}

impl Registered {
    /// The byte range that `length` bytes at `va` are, when they all lie inside.
    fn range(&self, va: u64, length: usize) -> Option<core::ops::Range<usize>> {
        let start = usize::try_from(va.checked_sub(self.va)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then_some(start..end)
    }
}

/// Every region of a NIC.
// spec: REL-2
#[derive(Debug)]
pub struct Memory {
    regions: BTreeMap<RKey, Registered>,
    next_va: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { regions: BTreeMap::new(), next_va: Self::FIRST_VA }
    }
}

impl Memory {
    /// Where the first region lies: high enough that a small wrong address hits nothing.
    const FIRST_VA: u64 = 0x10_0000_0000;
    /// Regions start on pages, with an unmapped page between them.
    const PAGE: u64 = 4_096;

    /// Registers `bytes` under a fresh random key at an address of its own.
    pub fn register(&mut self, rng: &mut Rng, bytes: Vec<u8>, access: Access) -> MemoryRegion {
        let (va, length) = (self.next_va, bytes.len() as u64);
        self.next_va += (length / Self::PAGE + 2) * Self::PAGE;
        loop {
            let rkey = RKey(rng.next_u32());
            if let Entry::Vacant(slot) = self.regions.entry(rkey) {
                slot.insert(Registered { va, access, bytes });
                return MemoryRegion { va, length, rkey };
            }
        }
    }

    /// Forgets a region and gives its bytes back.
    pub fn deregister(&mut self, rkey: RKey) -> Option<Vec<u8>> {
        self.regions.remove(&rkey).map(|region| region.bytes)
    }

    /// A region's bytes.
    pub fn bytes(&self, rkey: RKey) -> Option<&[u8]> {
        self.regions.get(&rkey).map(|region| region.bytes.as_slice())
    }

    /// `length` bytes at `va` to send from; `None` outside the region.
    pub fn read(&self, rkey: RKey, va: u64, length: usize) -> Option<&[u8]> {
        let region = self.regions.get(&rkey)?;
        Some(&region.bytes[region.range(va, length)?])
    }

    /// Writes what a peer sent; false, and nothing is written, when the key is
    /// unknown, the region is not for peers to write, or a byte lies outside it.
    // spec: REL-2, W-14
    #[must_use]
    pub fn remote_write(&mut self, rkey: RKey, va: u64, payload: &[u8]) -> bool {
        if payload.is_empty() {
            return true;
        }
        let Some(region) = self.regions.get_mut(&rkey) else { return false };
        let Some(range) = region.range(va, payload.len()) else { return false };
        if region.access != Access::RemoteWrite {
            return false;
        }
        region.bytes[range].copy_from_slice(payload);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> (Memory, MemoryRegion) {
        let mut memory = Memory::default();
        let mut rng = Rng::derive(1, "memory", 0);
        let region = memory.register(&mut rng, vec![0; 100], Access::RemoteWrite);
        (memory, region)
    }

    // spec: REL-2, W-14
    #[test]
    fn nothing_is_written_outside_a_region_or_without_its_key() {
        let (mut memory, region) = memory();
        let MemoryRegion { va, rkey, .. } = region;
        let wrong = RKey(rkey.0 ^ 1);
        for (key, at, length) in [
            (wrong, va, 1),
            (rkey, va - 1, 1),
            (rkey, va + 100, 1),
            (rkey, va + 99, 2),
            (rkey, u64::MAX, 2),
            (rkey, 0, 1),
        ] {
            assert!(!memory.remote_write(key, at, &vec![9; length]), "{at:#x}");
        }
        assert_eq!(memory.bytes(rkey), Some(&[0; 100][..]));
        assert!(memory.remote_write(rkey, va + 99, &[9]));
        assert!(memory.remote_write(rkey, va, &[9; 100]));
    }

    // spec: REL-2
    #[test]
    fn a_write_of_nothing_checks_no_address() {
        let (mut memory, _) = memory();
        assert!(memory.remote_write(RKey(0), 0, &[]));
    }

    // spec: REL-2
    #[test]
    fn a_local_region_is_not_for_peers() {
        let mut memory = Memory::default();
        let mut rng = Rng::derive(1, "memory", 0);
        let MemoryRegion { va, rkey, .. } = memory.register(&mut rng, vec![1; 8], Access::Local);
        assert!(!memory.remote_write(rkey, va, &[9]));
        assert_eq!(memory.read(rkey, va + 6, 2), Some(&[1, 1][..]));
        assert_eq!(memory.read(rkey, va + 6, 3), None);
        assert_eq!(memory.deregister(rkey), Some(vec![1; 8]));
        assert_eq!(memory.bytes(rkey), None);
    }
}
