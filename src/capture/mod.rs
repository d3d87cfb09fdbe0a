//! Captures: pcapng files that ordinary tools open, with nanosecond
//! timestamps, interface names and packet comments.
//!
//! - [`PcapngWriter`] writes one capture to any output.
//! - [`CaptureFile`] does so beside the data path: a bounded queue, one thread.
//! - [`PcapngReader`] reads captures back, also those of other tools.
//! - [`merge`] makes one capture of several, in order of time.
//!
//! The format is the IETF draft "PCAP Now Generic (pcapng) Capture File
//! Format" (draft-ietf-opsawg-pcapng); classic pcap, which is read but never
//! written, is draft-ietf-opsawg-pcap.

mod block;
mod classic;
mod fields;
mod file;
mod merge;
mod pcapng;
mod reader;
mod tap;
mod writer;

pub use file::{CaptureFile, CaptureSummary, QueuePolicy};
pub use merge::{MergeSummary, merge};
pub use reader::{CapturedPacket, PcapngReader};
pub use tap::PortCapture;
pub use writer::{CaptureInfo, InterfaceId, PcapngWriter, Timestamps};

/// The link type of Ethernet in capture files (LINKTYPE_ETHERNET).
pub const LINK_TYPE_ETHERNET: u16 = 1;

/// The most bytes of one frame that are written: more than any frame has, and
/// the most that capture tools accept in one packet.
pub const MAX_CAPTURED_LEN: u32 = 262_144;

/// Which way a frame passed the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Received by the interface.
    Inbound,
    /// Sent by the interface.
    Outbound,
}

/// An interface of a capture, as its description block states it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// The name (if_name); empty when the capture gives none, as classic pcap.
    pub name: String,
    /// The link type, [`LINK_TYPE_ETHERNET`] in captures of this project.
    pub link_type: u16,
    /// The most bytes kept of a frame; 0 means whole frames.
    pub snap_len: u32,
}
