//! What a switch counts.

use serde::{Serialize, Serializer};

use crate::node::Drops;

/// A port's counters since the start. Bytes are those on the wire, FCS
/// included.
///
/// When the port has nothing left to send, `trim` = `trim_sent` + `trim_drop`.
// spec: SW-19
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortCounters {
    /// Frames that arrived here.
    pub frames_in: u64,
    /// Bytes that arrived here.
    pub bytes_in: u64,
    /// Frames whose last bit has left.
    pub frames_out: u64,
    /// Bytes of the frames whose last bit has left.
    pub bytes_out: u64,
    /// Drops by cause: what could not be forwarded at the port where it
    /// arrived, what found no room at the port by which it would have left.
    #[serde(serialize_with = "by_cause")]
    pub drops: Drops,
    /// Packets that were cut to their headers because their queue was full.
    pub trim: u64,
    /// Of those, the ones whose last bit has left.
    pub trim_sent: u64,
    /// Of those, the ones for which the queue of trimmed packets was full too.
    pub trim_drop: u64,
    /// The most bytes that each class has held, in the order TC0, TC1, TC2, as
    /// queue limits count them.
    pub high_water: [u64; 3],
}

fn by_cause<S: Serializer>(drops: &Drops, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(drops.iter())
}
