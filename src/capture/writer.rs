//! Writing a capture to any output.

use std::io::{self, Write};

use super::block::{self, Record};
use super::{Direction, Interface, LINK_TYPE_ETHERNET, MAX_CAPTURED_LEN};
use crate::time::{Instant, PS_PER_NS};

const NS_PER_S: u64 = 1_000_000_000;

/// Which clock the timestamps of a capture show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timestamps {
    /// Protocol time since the run's time 0.
    #[default]
    Protocol,
    /// The wall clock: Unix time.
    Wall,
}

/// What a capture states about itself, and how much of a frame it keeps.
// spec: TIME-4
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CaptureInfo {
    /// Which clock the timestamps show.
    pub timestamps: Timestamps,
    /// The time dilation factor: wall-clock time = protocol time x TDF.
    pub tdf: u32,
    /// The wall-clock time of protocol time 0, in nanoseconds of Unix time.
    pub wall_ns_at_zero: u64,
    /// The most bytes kept of a frame; 0 keeps whole frames (up to
    /// [`MAX_CAPTURED_LEN`]).
    pub snap_len: u32,
}

impl CaptureInfo {
    /// The comment of the section header.
    // spec: TIME-4
    pub(super) fn comment(&self) -> String {
        let clock = match self.timestamps {
            Timestamps::Protocol => "protocol time",
            Timestamps::Wall => "wall clock",
        };
        let (seconds, ns) = (self.wall_ns_at_zero / NS_PER_S, self.wall_ns_at_zero % NS_PER_S);
        format!(
            "timestamps: {clock}; TDF: {}; protocol time 0: {seconds}.{ns:09} s Unix time",
            self.tdf
        )
    }

    /// The timestamp of `at` in nanoseconds, rounded down (saturating).
    // spec: TIME-4
    fn timestamp_ns(&self, at: Instant) -> u64 {
        match self.timestamps {
            Timestamps::Protocol => at.as_ns(),
            Timestamps::Wall => {
                let ns = u128::from(at.as_ps()) * u128::from(self.tdf) / u128::from(PS_PER_NS);
                u64::try_from(u128::from(self.wall_ns_at_zero) + ns).unwrap_or(u64::MAX)
            }
        }
    }

    /// The description of an Ethernet interface called `name`.
    pub(super) fn interface(&self, name: &str) -> Interface {
        let (name, link_type) = (name.to_owned(), LINK_TYPE_ETHERNET);
        Interface { name, link_type, snap_len: self.snap_len }
    }

    /// The record of `frame`, cut to the snap length.
    // spec: RC-7
    pub(super) fn record<'a>(
        &self,
        interface: InterfaceId,
        at: Instant,
        direction: Direction,
        frame: &'a [u8],
        comment: Option<&'a str>,
    ) -> Record<'a> {
        let limit = if self.snap_len == 0 { MAX_CAPTURED_LEN } else { self.snap_len };
        let captured = frame.len().min(limit.min(MAX_CAPTURED_LEN) as usize);
        Record {
            interface: interface.0,
            timestamp_ns: self.timestamp_ns(at),
            direction: Some(direction),
            original_len: u32::try_from(frame.len()).unwrap_or(u32::MAX),
            frame: &frame[..captured],
            comment,
        }
    }
}

/// An interface of the capture that gave this number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InterfaceId(pub(super) u32);

/// Writes one pcapng section: first the header, then interfaces and packets in
/// any order, an interface before its packets.
///
/// Each block goes out in one write, so an output without a buffer of its own
/// always holds whole blocks; wrap a file in a `BufWriter` for speed.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    blocks: BlockWriter<W>,
    info: CaptureInfo,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section header to `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, info: &CaptureInfo) -> io::Result<Self> {
        let blocks = BlockWriter::new(out, &[info.comment()])?;
        Ok(Self { blocks, info: info.clone() })
    }

    /// Adds an Ethernet interface.
    ///
    /// # Errors
    /// Those of the output.
    pub fn add_interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        self.blocks.interface(&self.info.interface(name))
    }

    /// Adds a frame that passed `interface` at `at`, cut to the snap length. A
    /// comment longer than 65,535 bytes is cut.
    ///
    /// # Errors
    /// `InvalidInput` when `interface` is not of this capture; those of the
    /// output.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        at: Instant,
        direction: Direction,
        frame: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.blocks.packet(&self.info.record(interface, at, direction, frame, comment))
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.blocks.flush()
    }
}

/// Writes blocks as they are told, each in one write.
#[derive(Debug)]
pub(super) struct BlockWriter<W> {
    out: W,
    interfaces: u32,
    block: Vec<u8>,
}

impl<W: Write> BlockWriter<W> {
    /// Writes a section header with `comments`.
    pub(super) fn new(out: W, comments: &[String]) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: 0, block: Vec::new() };
        writer.put(|block| block::put_section_header(block, comments))?;
        Ok(writer)
    }

    /// Writes an interface description.
    pub(super) fn interface(&mut self, interface: &Interface) -> io::Result<InterfaceId> {
        self.put(|block| block::put_interface(block, interface))?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes a packet.
    pub(super) fn packet(&mut self, record: &Record<'_>) -> io::Result<()> {
        if record.interface >= self.interfaces {
            let message = "the interface is not part of this capture";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.put(|block| block::put_packet(block, record))
    }

    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn put(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        encode(&mut self.block);
        self.out.write_all(&self.block)
    }
}
