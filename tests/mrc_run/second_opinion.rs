//! What Wireshark makes of the demo's frames.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use mrc_lab::wire::packet::{FrameFormat, Packet};

use crate::bench::{As, Bench, said};
use crate::demo::packets;

/// Fields of every packet, in the order of the columns.
const FIELDS: [&str; 10] = [
    "frame.len",
    "ip.ttl",
    "udp.dstport",
    "udp.srcport",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "ip.checksum.status",
    "udp.checksum.status",
    "ip.dsfield.dscp",
];
/// How Wireshark says that a checksum is right, and that there is none.
const GOOD: &str = "1";
const LEFT_OUT: &str = "3";

/// What tshark prints for `capture`, all checksums checked and nobody's settings
/// read.
fn tshark(capture: &Path, words: &[&str]) -> String {
    let mut command = Command::new("tshark");
    command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    command.args(["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-r"]);
    said(command.arg(capture).args(words))
}

/// A number as Wireshark writes it.
fn number(text: &str) -> u32 {
    let hexadecimal = text.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

// spec: W-1, W-2, W-3, W-12, WIRE-5, WIRE-9, RC-7
#[test]
fn tshark_finds_nothing_wrong_with_the_demo() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    bench.run("lab.toml --clock exact --out out").well();
    let merged = bench.path("out/merged.pcapng");
    let wrong = "_ws.malformed || ip.checksum.status == 0 || udp.checksum.status == 0 \
                 || _ws.expert.severity == error";
    assert_eq!(tshark(&merged, &["-Y", wrong]), "");
    let mut words = vec!["-T", "fields"];
    FIELDS.iter().for_each(|field| words.extend(["-e", field]));
    let table = tshark(&merged, &words);
    let all = packets(&merged);
    assert_eq!(table.lines().count(), all.len());
    let mut sizes = BTreeSet::new();
    for (line, ours) in table.lines().zip(&all) {
        let columns: Vec<&str> = line.split('\t').collect();
        let packet = Packet::parse(&ours.frame, &FrameFormat::default()).expect("a packet");
        sizes.insert(number(columns[0]));
        assert_eq!((columns[1], columns[2]), ("64", "4791"), "{line}");
        assert_eq!(columns[3], packet.entropy.to_string());
        let bth = [columns[4], columns[5], columns[6]].map(number);
        let wanted = [
            packet.bth.opcode.code().into(),
            packet.bth.destination_qp.value(),
            packet.bth.psn.value(),
        ];
        assert_eq!(bth, wanted, "{line}");
        // RoCEv2 leaves the UDP checksum out.
        assert_eq!((columns[7], columns[8]), (GOOD, LEFT_OUT), "{line}");
        assert_eq!(columns[9], packet.dscp.to_string());
    }
    // 62, 78, 94 and 4,174 bytes on the wire, without the FCS.
    assert_eq!(sizes, BTreeSet::from([58, 74, 90, 4_170]));
}

// spec: PB-12, PB-13, TIME-5
#[test]
fn a_slow_host_pauses_its_peer_and_wireshark_knows_the_frames() {
    let bench = Bench::alone(As::User);
    bench.write("slow-host.toml", include_str!("../../scenarios/slow-host.toml"));
    let mut events = Vec::new();
    for clock in ["exact", "exact-wires"] {
        let end = bench.run(&format!("slow-host.toml --clock {clock} --out {clock}")).well();
        assert_eq!((end.line("sha-256: "), end.line("drops: ")), ("equal", "none"));
        events.push(bench.read(&format!("{clock}/slow-host-mrc-events-0.csv")));
    }
    assert!(events[0] == events[1] && !events[0].is_empty(), "the events differ");
    let words = ["-Y", "macc", "-T", "fields", "-e", "macc.opcode", "-e", "eth.dst"];
    let table = tshark(
        &bench.path("exact-wires/a.pcapng"),
        &[&words[..], &["-e", "macc.cbfc.enbv", "-e", "macc.cbfc.pause_time.c0"]].concat(),
    );
    let pauses: Vec<_> = table.lines().collect();
    assert!(pauses.len() > 10, "{table}");
    for (line, quanta) in pauses.iter().zip(["65535", "0"].iter().cycle()) {
        let columns: Vec<&str> = line.split('\t').collect();
        assert_eq!(columns[..2], ["0x0101", "01:80:c2:00:00:01"], "{line}");
        assert_eq!((number(columns[2]), columns[3]), (1, *quanta), "{line}");
    }
}
