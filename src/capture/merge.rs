//! Merging captures: one file, all interfaces, packets in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use super::block::Record;
use super::reader::{CapturedPacket, PcapngReader};
use super::writer::BlockWriter;
use super::{Interface, InterfaceId};

/// What a merge did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MergeSummary {
    /// How many packets the merged capture has.
    pub packets: u64,
    /// The inputs that end inside a block, as those of a killed process do:
    /// their packets up to there are in the merged capture.
    pub cut_short: Vec<PathBuf>,
}

/// Merges the captures `inputs` into the pcapng file `output`: all interfaces,
/// packets ordered by time, then by the order of the inputs. The inputs are
/// read side by side, one packet of each in memory; an input whose own packets
/// are out of order stays so. The section header carries the comments of all
/// inputs, each text once; an interface without a name gets that of its file.
///
/// # Errors
/// `InvalidInput` when `output` is one of the inputs; `InvalidData` when an
/// input is no capture or is corrupt; those of the files. The message names the
/// file.
// spec: RC-7
pub fn merge(inputs: &[PathBuf], output: &Path) -> io::Result<MergeSummary> {
    let mut sources = open_all(inputs, output)?;
    let mut merged = Output::create(output, &distinct_comments(&sources))?;
    let packets = merge_packets(&mut sources, &mut merged)?;
    merged.flush()?;
    let cut = sources.into_iter().filter(|source| source.cut_short);
    Ok(MergeSummary { packets, cut_short: cut.map(|source| source.path).collect() })
}

/// The merged capture: a writer whose errors name the file.
struct Output<'a> {
    path: &'a Path,
    writer: BlockWriter<BufWriter<File>>,
}

impl<'a> Output<'a> {
    fn create(path: &'a Path, comments: &[String]) -> io::Result<Self> {
        let writer = File::create(path)
            .and_then(|file| BlockWriter::new(BufWriter::new(file), comments))
            .map_err(|error| naming(path, error))?;
        Ok(Self { path, writer })
    }

    fn interface(&mut self, interface: &Interface) -> io::Result<InterfaceId> {
        self.writer.interface(interface).map_err(|error| naming(self.path, error))
    }

    fn packet(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.writer.packet(record).map_err(|error| naming(self.path, error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| naming(self.path, error))
    }
}

/// An input and its next packet.
struct Source {
    path: PathBuf,
    /// `None` when not even the header is whole.
    reader: Option<PcapngReader<BufReader<File>>>,
    /// The numbers of its interfaces in the output.
    interfaces: Vec<InterfaceId>,
    next: Option<CapturedPacket>,
    cut_short: bool,
}

impl Source {
    fn open(path: &Path) -> io::Result<Self> {
        let (reader, cut_short) = match PcapngReader::open(path) {
            Ok(reader) => (Some(reader), false),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => (None, true),
            Err(error) => return Err(naming(path, error)),
        };
        let path = path.to_owned();
        Ok(Self { path, reader, interfaces: Vec::new(), next: None, cut_short })
    }

    fn comments(&self) -> &[String] {
        self.reader.as_ref().map_or(&[], PcapngReader::section_comments)
    }

    /// Reads the next packet, and tells `output` the interfaces met on the way.
    fn advance(&mut self, output: &mut Output<'_>) -> io::Result<()> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        self.next = match reader.next().transpose() {
            Ok(next) => next,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.cut_short = true;
                None
            }
            Err(error) => return Err(naming(&self.path, error)),
        };
        for interface in &reader.interfaces()[self.interfaces.len()..] {
            let mut interface = interface.clone();
            if interface.name.is_empty() {
                interface.name = file_stem(&self.path);
            }
            self.interfaces.push(output.interface(&interface)?);
        }
        Ok(())
    }

    /// Writes the packet in hand.
    fn write(&self, packet: &CapturedPacket, output: &mut Output<'_>) -> io::Result<()> {
        output.packet(&Record {
            interface: self.interfaces[packet.interface as usize].0,
            timestamp_ns: packet.timestamp_ns,
            direction: packet.direction,
            original_len: packet.original_len,
            frame: &packet.frame,
            comment: packet.comment.as_deref(),
        })
    }
}

fn open_all(inputs: &[PathBuf], output: &Path) -> io::Result<Vec<Source>> {
    let existing = fs::canonicalize(output).ok();
    let mut sources = Vec::with_capacity(inputs.len());
    for path in inputs {
        if existing.is_some() && fs::canonicalize(path).ok() == existing {
            let error = io::Error::new(ErrorKind::InvalidInput, "is both input and output");
            return Err(naming(path, error));
        }
        sources.push(Source::open(path)?);
    }
    Ok(sources)
}

fn distinct_comments(sources: &[Source]) -> Vec<String> {
    let mut comments: Vec<String> = Vec::new();
    for comment in sources.iter().flat_map(Source::comments) {
        if !comments.contains(comment) {
            comments.push(comment.clone());
        }
    }
    comments
}

fn merge_packets(sources: &mut [Source], output: &mut Output<'_>) -> io::Result<u64> {
    let mut heads = BinaryHeap::with_capacity(sources.len());
    for (index, source) in sources.iter_mut().enumerate() {
        source.advance(output)?;
        heads.extend(source.next.as_ref().map(|packet| Reverse((packet.timestamp_ns, index))));
    }
    let mut packets = 0;
    while let Some(Reverse((_, index))) = heads.pop() {
        let source = &mut sources[index];
        if let Some(packet) = source.next.take() {
            source.write(&packet, output)?;
            packets += 1;
        }
        source.advance(output)?;
        heads.extend(source.next.as_ref().map(|packet| Reverse((packet.timestamp_ns, index))));
    }
    Ok(packets)
}

fn file_stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn naming(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
