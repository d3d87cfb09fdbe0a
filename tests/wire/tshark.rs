//! The BTH and the PFC frame as Wireshark's own dissectors read them.

use std::fs;
use std::process::Command;

use mrc_lab::wire::packet::FrameFormat;

use crate::golden::{all, plain, with_icrc};
use crate::pfc_tests;

const BTH_FIELDS: [&str; 6] = [
    "ip.dsfield.dscp",
    "udp.srcport",
    "udp.length",
    "infiniband.bth.opcode",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
];

const PFC_FIELDS: [&str; 7] = [
    "frame.protocols",
    "macc.opcode",
    "macc.cbfc.enbv",
    "macc.cbfc.pause_time.c0",
    "macc.cbfc.pause_time.c1",
    "macc.cbfc.pause_time.c7",
    "_ws.expert",
];

/// A classic capture file of Ethernet frames, all at time 0.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    // Magic number; version 2.4; zone and accuracy 0; snap length; Ethernet.
    for word in [0xA1B2_C3D4_u32, 0x0002_0004, 0, 0, 65_535, 1] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for frame in frames {
        let len = frame.len() as u32;
        for word in [0, 0, len, len] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// The fields of each frame, as tshark prints them.
fn dissect(frames: &[Vec<u8>], fields: &[&str]) -> Vec<Vec<String>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let capture = directory.path().join("golden.pcap");
    fs::write(&capture, pcap(frames)).expect("a capture file");
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-o", "ip.check_checksum:TRUE", "-T", "fields"]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("tshark can be run: install the package tshark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

fn compare(format: &FrameFormat) {
    let frames: Vec<Vec<u8>> = all().iter().map(|golden| golden.frame(format)).collect();
    let lines = dissect(&frames, &BTH_FIELDS);
    assert_eq!(lines.len(), frames.len());
    for ((golden, frame), line) in all().iter().zip(&frames).zip(lines) {
        let packet = golden.packet;
        let bth = packet.bth;
        let expected = [
            packet.dscp.to_string(),
            packet.entropy.to_string(),
            (frame.len() - 34).to_string(),
            bth.opcode.code().to_string(),
            format!("0x{:06x}", bth.destination_qp.value()),
            bth.psn.to_string(),
        ];
        assert_eq!(line, expected);
    }
}

// spec: W-4, WIRE-4, WIRE-5
#[test]
fn tshark_reads_the_same_bth() {
    compare(&plain());
    compare(&with_icrc());
}

// spec: PB-13
#[test]
fn tshark_reads_the_same_pause() {
    let (_, frame) = pfc_tests::golden();
    let expected = ["eth:ethertype:macc", "0x0101", "0x0081", "65535", "0", "0", ""];
    assert_eq!(dissect(&[frame], &PFC_FIELDS), [expected]);
}
