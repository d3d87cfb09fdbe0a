//! Reading captures back.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::block::{ENHANCED_PACKET, INTERFACE_DESCRIPTION, SECTION_HEADER};
use super::classic::{self, Classic};
use super::fields::{ByteOrder, Fields, corrupt};
use super::pcapng::{self, TimeUnit};
use super::{Direction, Interface};

/// The longest block that is read, in bytes; longer ones are taken for corrupt.
pub(super) const MAX_BLOCK_LEN: usize = 16 << 20;
/// Type, length, and the length again behind the body.
const MIN_BLOCK_LEN: usize = 12;

/// A packet of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedPacket {
    /// The index of its interface in [`PcapngReader::interfaces`].
    pub interface: u32,
    /// Nanoseconds since the capture's time 0, rounded down.
    pub timestamp_ns: u64,
    /// Which way it passed the interface, where the capture tells.
    pub direction: Option<Direction>,
    /// The frame's length on the interface, in bytes.
    pub original_len: u32,
    /// The bytes that the capture kept.
    pub frame: Vec<u8>,
    /// Its comments, one a line.
    pub comment: Option<String>,
}

/// Reads a pcapng file of either byte order with any number of sections and
/// interfaces, or a classic pcap file: an iterator over its packets.
///
/// The iterator ends after its first error: `UnexpectedEof` when the file is
/// cut inside a block, `InvalidData` when its content makes no sense. All
/// packets before have been given by then. Blocks and options that are not
/// known are skipped, and with them packets without a timestamp (simple packet
/// blocks) and the obsolete packet block.
#[derive(Debug)]
pub struct PcapngReader<R> {
    input: R,
    format: Format,
    section: Section,
    interfaces: Vec<Interface>,
    comments: Vec<String>,
    block: Vec<u8>,
    ended: bool,
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Pcapng,
    Classic(Classic),
}

/// The state of a pcapng section (a classic file has none).
#[derive(Debug)]
struct Section {
    order: ByteOrder,
    /// How many interfaces the sections before described.
    first_interface: u32,
    /// One per interface of this section.
    units: Vec<TimeUnit>,
}

impl PcapngReader<BufReader<File>> {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// As [`PcapngReader::new`], and when the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(BufReader::new(File::open(path)?))
    }
}

impl<R: Read> PcapngReader<R> {
    /// Reads the file's header; `input` should be buffered.
    ///
    /// # Errors
    /// `UnexpectedEof` when the header is cut, `InvalidData` when this is no
    /// capture; those of `input`.
    pub fn new(mut input: R) -> io::Result<Self> {
        let magic = read_array(&mut input)?;
        let format = if is_section_header(magic) {
            Format::Pcapng
        } else if let Some(classic) = Classic::from_magic(magic) {
            Format::Classic(classic)
        } else {
            return Err(corrupt("neither a pcapng nor a pcap file"));
        };
        let mut reader = Self::before_header(input, format);
        reader.read_file_header()?;
        Ok(reader)
    }

    fn before_header(input: R, format: Format) -> Self {
        let section = Section { order: ByteOrder::Little, first_interface: 0, units: Vec::new() };
        let (interfaces, comments, block) = (Vec::new(), Vec::new(), Vec::new());
        Self { input, format, section, interfaces, comments, block, ended: false }
    }

    /// The interfaces described so far, over all sections: further ones can
    /// follow between packets, but always before their own first packet.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The comments of the section headers read so far. In captures of this
    /// project they state the clock, the TDF and the time of protocol time 0.
    pub fn section_comments(&self) -> &[String] {
        &self.comments
    }

    fn read_file_header(&mut self) -> io::Result<()> {
        match self.format {
            Format::Pcapng => self.read_section_header(),
            Format::Classic(classic) => {
                let header = read_array(&mut self.input)?;
                self.interfaces.push(classic.interface(&header)?);
                Ok(())
            }
        }
    }

    fn next_packet(&mut self) -> io::Result<Option<CapturedPacket>> {
        match self.format {
            Format::Pcapng => self.next_pcapng(),
            Format::Classic(classic) => self.next_classic(classic),
        }
    }

    fn next_classic(&mut self, classic: Classic) -> io::Result<Option<CapturedPacket>> {
        let Some(header) = read_array_or_end::<{ classic::RECORD_HEADER_LEN }>(&mut self.input)?
        else {
            return Ok(None);
        };
        let mut packet = classic.packet(&header)?;
        self.input.read_exact(&mut packet.frame)?;
        Ok(Some(packet))
    }

    fn next_pcapng(&mut self) -> io::Result<Option<CapturedPacket>> {
        while let Some(kind) = read_array_or_end(&mut self.input)? {
            if is_section_header(kind) {
                self.read_section_header()?;
            } else if let Some(packet) = self.read_block(kind)? {
                return Ok(Some(packet));
            }
        }
        Ok(None)
    }

    /// Begins a section; the block's type has been read.
    fn read_section_header(&mut self) -> io::Result<()> {
        let len = read_array(&mut self.input)?;
        let order = pcapng::section_order(read_array(&mut self.input)?)?;
        self.read_body(order, len, 12)?;
        self.comments.extend(pcapng::section_comments(Fields::new(&self.block, order))?);
        let first_interface = self.interfaces.len() as u32;
        self.section = Section { order, first_interface, units: Vec::new() };
        Ok(())
    }

    /// Reads a block of type `kind`: a packet, or `None` for all others.
    fn read_block(&mut self, kind: [u8; 4]) -> io::Result<Option<CapturedPacket>> {
        let order = self.section.order;
        let len = read_array(&mut self.input)?;
        self.read_body(order, len, 8)?;
        let fields = Fields::new(&self.block, order);
        match order.u32(kind) {
            INTERFACE_DESCRIPTION => {
                let (interface, unit) = pcapng::interface(fields)?;
                self.section.units.push(unit);
                self.interfaces.push(interface);
                Ok(None)
            }
            ENHANCED_PACKET => {
                let mut packet = pcapng::packet(fields, &self.section.units)?;
                packet.interface += self.section.first_interface;
                Ok(Some(packet))
            }
            _ => Ok(None),
        }
    }

    /// Reads what follows the first `read` bytes of a block into `self.block`,
    /// without the length at its end, which must agree with the one at its start.
    fn read_body(&mut self, order: ByteOrder, len: [u8; 4], read: usize) -> io::Result<()> {
        let total = order.u32(len) as usize;
        if total < MIN_BLOCK_LEN.max(read + 4) || total > MAX_BLOCK_LEN || !total.is_multiple_of(4)
        {
            return Err(corrupt(format!("a block length of {total} bytes")));
        }
        self.block.resize(total - read - 4, 0);
        self.input.read_exact(&mut self.block)?;
        if read_array(&mut self.input)? != len {
            return Err(corrupt("a block whose two lengths differ"));
        }
        Ok(())
    }
}

impl<R: Read> Iterator for PcapngReader<R> {
    type Item = io::Result<CapturedPacket>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.next_packet().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A section header's type reads the same in both byte orders.
fn is_section_header(kind: [u8; 4]) -> bool {
    u32::from_le_bytes(kind) == SECTION_HEADER
}

fn read_array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// `None` when the input ends here, an error when it ends inside the array.
fn read_array_or_end<const N: usize>(input: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled == 0 {
        match input.read(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(read) => filled = read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    input.read_exact(&mut bytes[filled..])?;
    Ok(Some(bytes))
}
