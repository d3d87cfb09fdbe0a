//! What a switch counts.

use serde::{Serialize, Serializer};

use crate::config::SWITCH_CLASSES;
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
    /// Drops by cause: what could not be forwarded or found no room where it
    /// arrived, what found no room at the port by which it would have left.
    #[serde(serialize_with = "by_cause")]
    pub drops: Drops,
    /// Packets that were cut to their headers because their queue was full.
    pub trim: u64,
    /// Of those, the ones whose last bit has left.
    pub trim_sent: u64,
    /// Of those, the ones for which the queue of trimmed packets was full too.
    pub trim_drop: u64,
    /// Packets that were marked on their way out here.
    pub marked: u64,
    /// Each traffic class, TC0 first.
    pub classes: [ClassCounters; SWITCH_CLASSES],
}

/// What a port counts of one traffic class.
// spec: SW-19
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClassCounters {
    /// Packets that arrived here.
    pub frames_in: u64,
    /// Bytes of these on the wire.
    pub bytes_in: u64,
    /// Packets whose last bit has left here.
    pub frames_out: u64,
    /// Bytes of these on the wire.
    pub bytes_out: u64,
    /// Packets dropped for want of room by cause, where the port's `drops` counts
    /// them.
    #[serde(serialize_with = "by_cause")]
    pub drops: Drops,
    /// Packets marked.
    pub marked: u64,
    /// Pause frames for this class whose last bit has left.
    pub pauses_sent: u64,
    /// Frames that let this class go on whose last bit has left.
    pub resumes_sent: u64,
    /// Pause frames for this class that arrived.
    pub pauses_rcvd: u64,
    /// Frames that let this class go on that arrived.
    pub resumes_rcvd: u64,
}

/// What a port counts of one pool of the shared buffer. Bytes are those of IP
/// datagrams, at least 46 each, as the pool counts them; what a trim leaves
/// comes in once more.
// spec: SW-19
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolCounters {
    /// Packets that arrived here, dropped ones included.
    pub frames_in: u64,
    /// Bytes of these.
    pub bytes_in: u64,
    /// Packets whose last bit has left here.
    pub frames_out: u64,
    /// Bytes of these.
    pub bytes_out: u64,
    /// Packets dropped for want of room by cause, where the port's `drops` counts
    /// them.
    #[serde(serialize_with = "by_cause")]
    pub drops: Drops,
    /// The most that was held of what came in here, headroom not included.
    pub ingress_high_water: u64,
    /// The most headroom that was used.
    pub headroom_high_water: u64,
    /// The most that waited to leave here, the frame being sent included.
    pub egress_high_water: u64,
}

fn by_cause<S: Serializer>(drops: &Drops, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(drops.iter())
}
