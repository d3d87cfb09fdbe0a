//! Captures: what is written, what is read back, and what other tools make of it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use mrc_lab::capture::{
    CaptureFile, CaptureInfo, CapturedPacket, Direction, Interface, LINK_TYPE_ETHERNET,
    MAX_CAPTURED_LEN, PcapngReader, PcapngWriter, QueuePolicy, Timestamps, merge,
};
use mrc_lab::time::Instant;
use tempfile::TempDir;

const INFO: CaptureInfo = CaptureInfo {
    timestamps: Timestamps::Protocol,
    tdf: 1_000,
    wall_ns_at_zero: 1_700_000_000_000_000_042,
    snap_len: 0,
};
const STATEMENT: &str =
    "timestamps: protocol time; TDF: 1000; protocol time 0: 1700000000.000000042 s Unix time";

/// An Ethernet frame of a local experimental type, `len` bytes with its header.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
    frame.extend((frame.len()..len).map(|i| i as u8));
    frame
}

fn ns(ns: u64) -> Instant {
    Instant::from_ps(ns * 1_000)
}

/// Two interfaces, four packets: with and without comment, padded and not.
fn sample(info: &CaptureInfo) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = PcapngWriter::new(&mut out, info).unwrap();
    let up = writer.add_interface("nic0-p0").unwrap();
    let down = writer.add_interface("leaf1-p3").unwrap();
    let (rx, tx) = (Direction::Inbound, Direction::Outbound);
    writer.packet(up, Instant::from_ps(1_999), tx, &frame(61), None).unwrap();
    writer.packet(down, ns(83), rx, &frame(64), Some("trimmed")).unwrap();
    writer.packet(down, ns(5_000_000_001), tx, &frame(62), Some("dropped: rule 3")).unwrap();
    writer.packet(up, ns(5_000_000_001), rx, &frame(63), Some("d\u{e9}j\u{e0} vu")).unwrap();
    writer.flush().unwrap();
    out
}

/// The packets up to the first error, and the error.
fn read(bytes: &[u8]) -> (Vec<CapturedPacket>, Option<io::Error>) {
    let reader = match PcapngReader::new(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Some(error)),
    };
    let (mut packets, mut failure) = (Vec::new(), None);
    for packet in reader {
        match packet {
            Ok(packet) => packets.push(packet),
            Err(error) => failure = Some(error),
        }
    }
    (packets, failure)
}

fn read_whole(bytes: &[u8]) -> Vec<CapturedPacket> {
    let (packets, failure) = read(bytes);
    assert!(failure.is_none(), "{failure:?}");
    packets
}

fn ethernet(name: &str, snap_len: u32) -> Interface {
    Interface { name: name.to_owned(), link_type: LINK_TYPE_ETHERNET, snap_len }
}

// spec: RC-7, SW-20, TIME-4
#[test]
fn what_is_written_is_read_back() {
    let bytes = sample(&INFO);
    let mut reader = PcapngReader::new(&bytes[..]).unwrap();
    let packets: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.interfaces(), [ethernet("nic0-p0", 0), ethernet("leaf1-p3", 0)]);
    assert_eq!(reader.section_comments(), [STATEMENT]);
    let expected = [
        (0, 1, Direction::Outbound, 61, None),
        (1, 83, Direction::Inbound, 64, Some("trimmed")),
        (1, 5_000_000_001, Direction::Outbound, 62, Some("dropped: rule 3")),
        (0, 5_000_000_001, Direction::Inbound, 63, Some("d\u{e9}j\u{e0} vu")),
    ];
    assert_eq!(packets.len(), expected.len());
    for (packet, (interface, timestamp_ns, direction, len, comment)) in packets.iter().zip(expected)
    {
        let expected = CapturedPacket {
            interface,
            timestamp_ns,
            direction: Some(direction),
            original_len: len,
            frame: frame(len as usize),
            comment: comment.map(str::to_owned),
        };
        assert_eq!(*packet, expected);
    }
}

// spec: RC-7, TIME-4
#[test]
fn every_byte_of_a_small_capture() {
    let mut out = Vec::new();
    let mut writer = PcapngWriter::new(&mut out, &CaptureInfo { snap_len: 5, ..INFO }).unwrap();
    let interface = writer.add_interface("eth").unwrap();
    let at = ns((7 << 32) + 9);
    writer.packet(interface, at, Direction::Inbound, b"ABCDEFGH", Some("cut")).unwrap();
    assert_eq!(out, golden());
}

/// The same, put together by hand.
fn golden() -> Vec<u8> {
    let application = format!("mrc-lab {}", env!("CARGO_PKG_VERSION"));
    let comment_len = STATEMENT.len().next_multiple_of(4);
    let application_len = application.len().next_multiple_of(4);
    let header_len = (24 + 4 + comment_len + 4 + application_len + 4 + 4) as u32;
    let padded = |text: &str| [text.as_bytes(), &[0; 3][..text.len().wrapping_neg() % 4]].concat();
    #[rustfmt::skip]
    let parts: [&[u8]; 18] = [
        // section header
        b"\x0a\x0d\x0d\x0a", &header_len.to_le_bytes(), b"\x4d\x3c\x2b\x1a\x01\x00\x00\x00",
        &[0xff; 8],
        b"\x01\x00", &(STATEMENT.len() as u16).to_le_bytes(), &padded(STATEMENT),
        b"\x04\x00", &(application.len() as u16).to_le_bytes(), &padded(&application),
        b"\x00\x00\x00\x00", &header_len.to_le_bytes(),
        // interface: Ethernet, snap length 5, name, nanoseconds
        b"\x01\x00\x00\x00\x28\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00",
        b"\x02\x00\x03\x00eth\x00\x09\x00\x01\x00\x09\x00\x00\x00\x00\x00\x00\x00\x28\x00\x00\x00",
        // packet: interface 0, time (7, 9), 5 bytes of 8, comment, inbound
        b"\x06\x00\x00\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x09\x00\x00\x00",
        b"\x05\x00\x00\x00\x08\x00\x00\x00ABCDE\x00\x00\x00",
        b"\x01\x00\x03\x00cut\x00\x02\x00\x04\x00\x01\x00\x00\x00\x00\x00\x00\x00",
        b"\x3c\x00\x00\x00",
    ];
    parts.concat()
}

// spec: TIME-4
#[test]
fn timestamps_can_show_the_wall_clock() {
    let bytes = sample(&CaptureInfo { timestamps: Timestamps::Wall, ..INFO });
    let times: Vec<_> = read_whole(&bytes).iter().map(|packet| packet.timestamp_ns).collect();
    let zero = INFO.wall_ns_at_zero;
    // 1.999 ns of protocol time are 1,999 ns on the wall.
    assert_eq!(times[..3], [zero + 1_999, zero + 83_000, zero + 5_000_000_001_000]);
    let reader = PcapngReader::new(&bytes[..]).unwrap();
    assert!(reader.section_comments()[0].starts_with("timestamps: wall clock; TDF: 1000;"));
}

// spec: RC-7
#[test]
fn the_snap_length_cuts_frames_and_keeps_their_length() {
    let packets = read_whole(&sample(&CaptureInfo { snap_len: 62, ..INFO }));
    let lengths: Vec<_> = packets.iter().map(|p| (p.frame.len(), p.original_len)).collect();
    assert_eq!(lengths, [(61, 61), (62, 64), (62, 62), (62, 63)]);
}

#[test]
fn a_frame_longer_than_tools_accept_is_cut() {
    let mut out = Vec::new();
    let mut writer = PcapngWriter::new(&mut out, &INFO).unwrap();
    let id = writer.add_interface("eth").unwrap();
    writer.packet(id, Instant::MAX, Direction::Inbound, &vec![0; 300_000], None).unwrap();
    let packets = read_whole(&out);
    assert_eq!((packets[0].frame.len(), packets[0].original_len), (262_144, 300_000));
    assert_eq!(packets[0].frame.len(), MAX_CAPTURED_LEN as usize);
    assert_eq!(packets[0].timestamp_ns, u64::MAX / 1_000);
}

#[test]
fn an_interface_of_another_capture_is_refused() {
    let mut other = PcapngWriter::new(io::sink(), &INFO).unwrap();
    let id = other.add_interface("eth").unwrap();
    let mut writer = PcapngWriter::new(io::sink(), &INFO).unwrap();
    let error = writer.packet(id, Instant::ZERO, Direction::Inbound, &[], None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

/// Cuts `whole` everywhere: what was complete is read, and the cut is told.
fn check_every_cut(whole: &[u8]) {
    let all = read_whole(whole);
    let mut seen = 0;
    for len in 0..whole.len() {
        let (packets, failure) = read(&whole[..len]);
        assert!(packets.len() >= seen && packets == all[..packets.len()], "at {len}");
        seen = packets.len();
        // A file that ends between two blocks is whole; any other is cut.
        if let Some(error) = failure {
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "at {len}: {error}");
        }
    }
    assert_eq!(seen, all.len() - 1, "the last packet needs the last byte");
}

#[test]
fn a_file_cut_anywhere_gives_what_was_complete() {
    check_every_cut(&sample(&INFO));
    check_every_cut(&big_endian());
    check_every_cut(&classic(0xa1b2_c3d4, u32::to_be_bytes));
    // Inside the third packet of the sample:
    let whole = sample(&INFO);
    let (packets, failure) = read(&whole[..whole.len() - 150]);
    assert_eq!(packets.len(), 2);
    assert_eq!(failure.map(|error| error.kind()), Some(ErrorKind::UnexpectedEof));
}

#[test]
fn corrupt_bytes_never_panic() {
    for whole in [sample(&INFO), big_endian(), classic(0xa1b2_3c4d, u32::to_le_bytes)] {
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                read(&bytes);
            }
        }
    }
}

#[test]
fn corrupt_fields_are_named() {
    let whole = sample(&INFO);
    let check = |at: usize, value: u8, message: &str| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        let (_, failure) = read(&bytes);
        let failure = failure.expect(message);
        assert_eq!(
            (failure.kind(), failure.to_string().as_str()),
            (ErrorKind::InvalidData, message)
        );
    };
    check(0, 0, "neither a pcapng nor a pcap file");
    check(8, 0, "a section header without byte-order magic");
    check(12, 2, "pcapng version 2, only 1 is known");
    check(4, 1, "a block length of 1 bytes");
    check(7, 0xff, &format!("a block length of {} bytes", 0xff00_0000_u64 + u64::from(whole[4])));
    check(whole.len() - 1, 1, "a block whose two lengths differ");
    let last = whole.len() - usize::from(whole[whole.len() - 4]);
    check(last + 8, 2, "a packet of interface 2, not described");
    check(last + 21, 1, "the block ends inside its frame");
    check(last + 28 + 64 + 3, 1, "the block ends inside its option");
}

fn be_block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_be_bytes();
    [&kind.to_be_bytes()[..], &len, body, &len].concat()
}

/// A big-endian pcapng as other tools write it: an unknown block and unknown
/// options, interfaces that count microseconds (by default), 2^-20 s, and
/// milliseconds from an offset, two comments, a second section.
fn big_endian() -> Vec<u8> {
    let section = be_block(
        0x0a0d_0d0a,
        b"\x1a\x2b\x3c\x4d\x00\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\
          \x00\x02\x00\x05x86 4\0\0\0\x00\x00\x00\x00",
    );
    let plain = be_block(1, b"\x00\x01\x00\x00\x00\x04\x00\x00");
    let binary = be_block(
        1,
        b"\x00\x01\x00\x00\x00\x00\x00\x60\x00\x0c\x00\x02os\0\0\
          \x00\x09\x00\x01\x94\0\0\0\x00\x02\x00\x03lo0\0",
    );
    let shifted = be_block(
        1,
        b"\x00\x71\x00\x00\x00\x00\x00\x00\x00\x09\x00\x01\x03\0\0\0\
          \x00\x0e\x00\x08\x00\x00\x00\x00\x00\x00\x00\x0a\x00\x00\x00\x00",
    );
    let unknown = be_block(0x0000_0bad, b"skip me!");
    let packet = |interface: u8, units: u32, options: &[u8]| {
        let fixed = [&[0, 0, 0, interface, 0, 0, 0, 0][..], &units.to_be_bytes()].concat();
        be_block(6, &[&fixed, &b"\0\0\0\x02\0\0\x01\x00hi\0\0"[..], options].concat())
    };
    let commented =
        b"\x00\x01\x00\x01a\0\0\0\x00\x01\x00\x01b\0\0\0\x00\x02\x00\x04\0\0\0\x02\0\0\0\0";
    [
        &section[..],
        &plain,
        &packet(0, 1_500_000, &[]),
        &binary,
        &unknown,
        &packet(1, 3 << 19, commented),
        &section,
        &shifted,
        &packet(0, 1_500, &[]),
    ]
    .concat()
}

#[test]
fn captures_of_other_tools_are_read() {
    let bytes = big_endian();
    let mut reader = PcapngReader::new(&bytes[..]).unwrap();
    let packets: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let shifted = Interface { name: String::new(), link_type: 0x71, snap_len: 0 };
    assert_eq!(reader.interfaces(), [ethernet("", 0x0004_0000), ethernet("lo0", 0x60), shifted]);
    let packet = |interface, timestamp_ns| CapturedPacket {
        interface,
        timestamp_ns,
        direction: None,
        original_len: 256,
        frame: b"hi".to_vec(),
        comment: None,
    };
    let commented = CapturedPacket {
        direction: Some(Direction::Outbound),
        comment: Some("a\nb".to_owned()),
        ..packet(1, 1_500_000_000)
    };
    assert_eq!(packets, [packet(0, 1_500_000_000), commented, packet(2, 11_500_000_000)]);
}

/// A classic pcap file with two packets.
fn classic(magic: u32, bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let header = [magic, 0, 0, 0, 65_535, 1];
    let mut file: Vec<u8> = header.into_iter().flat_map(bytes).collect();
    for seconds in [3, 4] {
        file.extend([seconds, 21, 2, 60].into_iter().flat_map(bytes));
        file.extend(b"hi");
    }
    file
}

#[test]
fn classic_pcap_is_read_in_both_orders_and_units() {
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        for (magic, fraction) in [(0xa1b2_c3d4, 21_000), (0xa1b2_3c4d, 21)] {
            let file = classic(magic, order);
            assert_eq!(PcapngReader::new(&file[..]).unwrap().interfaces(), [ethernet("", 65_535)]);
            let packets = read_whole(&file);
            assert_eq!(packets.len(), 2);
            assert_eq!(packets[1].timestamp_ns, 4_000_000_000 + fraction);
            assert_eq!((&packets[1].frame[..], packets[1].original_len), (&b"hi"[..], 60));
        }
    }
}

/// A capture of one interface; a comment tells each packet's place.
fn write_capture(path: &Path, name: &str, times_ns: &[u64]) {
    let mut writer = PcapngWriter::new(fs::File::create(path).unwrap(), &INFO).unwrap();
    let id = writer.add_interface(name).unwrap();
    for (place, time) in times_ns.iter().enumerate() {
        let comment = format!("{name}{place}");
        writer.packet(id, ns(*time), Direction::Outbound, &frame(60), Some(&comment)).unwrap();
    }
}

// spec: RC-7
#[test]
fn merging_orders_by_time_then_by_input() {
    let dir = TempDir::new().unwrap();
    let paths: Vec<PathBuf> =
        ["a", "b", "c", "cut", "empty"].iter().map(|name| dir.path().join(name)).collect();
    write_capture(&paths[0], "a", &[10, 20, 20, 90]);
    write_capture(&paths[1], "b", &[5, 20, 100]);
    fs::write(&paths[2], classic(0xa1b2_3c4d, u32::to_be_bytes)).unwrap();
    write_capture(&paths[3], "cut", &[20, 30]);
    let cut = fs::read(&paths[3]).unwrap();
    fs::write(&paths[3], &cut[..cut.len() - 1]).unwrap();
    fs::write(&paths[4], []).unwrap();

    let output = dir.path().join("merged");
    let summary = merge(&paths, &output).unwrap();
    assert_eq!((summary.packets, &summary.cut_short[..]), (10, &paths[3..]));
    let mut reader = PcapngReader::open(&output).unwrap();
    let packets: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let order: Vec<_> = packets.iter().map(|p| p.comment.as_deref().unwrap_or("-")).collect();
    assert_eq!(order, ["b0", "a0", "a1", "a2", "b1", "cut0", "a3", "b2", "-", "-"]);
    let names: Vec<_> = reader.interfaces().iter().map(|i| i.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "cut"]);
    let interfaces: Vec<_> = packets.iter().map(|packet| packet.interface).collect();
    assert_eq!(interfaces, [1, 0, 0, 0, 1, 3, 0, 1, 2, 2]);
    assert_eq!(reader.section_comments(), [STATEMENT]);
}

#[test]
fn merging_refuses_what_it_cannot_do() {
    let dir = TempDir::new().unwrap();
    let (good, bad) = (dir.path().join("good"), dir.path().join("bad"));
    write_capture(&good, "a", &[1]);
    fs::write(&bad, "text").unwrap();
    let onto_itself = merge(std::slice::from_ref(&good), &good).unwrap_err();
    assert_eq!(onto_itself.kind(), ErrorKind::InvalidInput);
    assert_eq!(read_whole(&fs::read(&good).unwrap()).len(), 1);
    let full = merge(std::slice::from_ref(&good), Path::new("/dev/full")).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert!(full.to_string().starts_with("/dev/full: "));
    let error = merge(&[good, bad.clone()], &dir.path().join("out")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().starts_with(&bad.display().to_string()));
}

fn record_frames(capture: &mut CaptureFile, count: u64) {
    let id = capture.add_interface("eth0");
    let bytes = frame(1_000);
    for i in 0..count {
        capture.record(id, ns(i), Direction::Inbound, &bytes, None);
    }
}

// spec: RC-6
#[test]
fn a_lossless_capture_waits_for_its_output_and_is_whole() {
    let dir = TempDir::new().unwrap();
    for (name, finished) in [("finished", true), ("dropped", false)] {
        let path = dir.path().join(name);
        let mut capture = CaptureFile::create(&path, &INFO, QueuePolicy::Lossless).unwrap();
        record_frames(&mut capture, 20_000);
        if finished {
            let summary = capture.finish().unwrap();
            assert_eq!((summary.packets, summary.dropped), (20_000, 0));
        } else {
            drop(capture);
        }
        let times = PcapngReader::open(&path).unwrap().map(|packet| packet.unwrap().timestamp_ns);
        assert!(times.eq(0..20_000), "{name}");
    }
}

/// An output that stands still until its gate opens.
struct GatedFile {
    gate: Receiver<()>,
    file: fs::File,
}

impl Write for GatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.gate.recv(); // an error once the gate is gone: open
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

// spec: RC-6
#[test]
fn a_bounded_capture_drops_and_counts_while_its_output_stands_still() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("bounded");
    let (open, gate) = channel();
    let output = GatedFile { gate, file: fs::File::create(&path).unwrap() };
    let mut capture = CaptureFile::to_writer(output, &INFO, QueuePolicy::Bounded).unwrap();
    record_frames(&mut capture, 20_000);
    let dropped = capture.dropped();
    drop(open);
    let summary = capture.finish().unwrap();
    // 20 MB against two buffers of 4 MiB.
    assert!(dropped > 10_000, "{dropped}");
    assert_eq!((summary.packets, summary.dropped), (20_000 - dropped, dropped));
    assert_eq!(read_whole(&fs::read(&path).unwrap()).len() as u64, summary.packets);
}

// spec: RC-6
#[test]
fn a_lossless_capture_waits_while_its_output_stands_still() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("lossless");
    let (open, gate) = channel();
    let output = GatedFile { gate, file: fs::File::create(&path).unwrap() };
    let mut capture = CaptureFile::to_writer(output, &INFO, QueuePolicy::Lossless).unwrap();
    let opened = Arc::new(AtomicBool::new(false));
    let opens = Arc::clone(&opened);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        opens.store(true, Ordering::SeqCst);
        drop(open);
    });
    record_frames(&mut capture, 20_000);
    assert!(opened.load(Ordering::SeqCst), "20 MB cannot fit before the gate opens");
    assert_eq!(capture.finish().unwrap().packets, 20_000);
    opener.join().unwrap();
}

/// A disk that is full.
struct FullDisk;

impl Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// spec: RC-6
#[test]
fn a_failed_output_holds_nobody_up_and_is_told_at_the_end() {
    let mut capture = CaptureFile::to_writer(FullDisk, &INFO, QueuePolicy::Lossless).unwrap();
    record_frames(&mut capture, 20_000);
    assert!(capture.dropped() > 0);
    assert_eq!(capture.finish().unwrap_err().kind(), ErrorKind::StorageFull);
}

#[test]
fn a_slow_capture_reaches_its_file_before_the_end() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("live");
    let mut capture = CaptureFile::create(&path, &INFO, QueuePolicy::Bounded).unwrap();
    record_frames(&mut capture, 1);
    let appeared = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        read(&fs::read(&path).unwrap()).0.len() == 1
    });
    assert!(appeared);
}

/// Runs a tool of the Wireshark family and gives what it prints.
fn run_tool(tool: &str, arguments: &[&str]) -> String {
    let output = Command::new(tool).args(arguments).output();
    let output = output.unwrap_or_else(|error| {
        panic!("{tool}: {error}; install Debian's tshark and wireshark-common")
    });
    assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

// spec: RC-7, TIME-4
#[test]
fn tshark_reads_what_is_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("sample.pcapng");
    fs::write(&path, sample(&CaptureInfo { snap_len: 62, ..INFO })).unwrap();
    let path = path.to_str().unwrap();
    let fields = [
        "frame.interface_name",
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "frame.packet_flags_direction",
        "frame.comment",
    ];
    let mut arguments = vec!["-r", path, "-T", "fields", "-E", "separator=|"];
    arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
    let printed = run_tool("tshark", &arguments);
    let lines: Vec<_> = printed.lines().collect();
    let expected = [
        "nic0-p0|0.000000001|61|61|0x00000002|",
        "leaf1-p3|0.000000083|64|62|0x00000001|trimmed",
        "leaf1-p3|5.000000001|62|62|0x00000002|dropped: rule 3",
        "nic0-p0|5.000000001|63|62|0x00000001|d\u{e9}j\u{e0} vu",
    ];
    assert_eq!(lines, expected);
    let printed = run_tool("capinfos", &["-k", path]);
    assert!(printed.contains(STATEMENT), "{printed}");
}

// spec: RC-7
#[test]
fn captures_rewritten_by_other_tools_stay_the_same() {
    let dir = TempDir::new().unwrap();
    let (ours, theirs) = (dir.path().join("ours.pcapng"), dir.path().join("theirs"));
    fs::write(&ours, sample(&INFO)).unwrap();
    let (ours, output) = (ours.to_str().unwrap(), theirs.to_str().unwrap());
    let whole = read_whole(&sample(&INFO));
    run_tool("editcap", &["-F", "pcapng", ours, output]);
    assert_eq!(read_whole(&fs::read(&theirs).unwrap()), whole);
    run_tool("editcap", &["-F", "nsecpcap", ours, output]);
    let plain = |packet: &CapturedPacket| (packet.timestamp_ns, packet.frame.clone());
    let read_back = read_whole(&fs::read(&theirs).unwrap());
    assert!(read_back.iter().map(plain).eq(whole.iter().map(plain)));
}
