//! The IPv4 and UDP headers as the etherparse crate reads them.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use mrc_lab::wire::checksum;
use mrc_lab::wire::packet::{FrameFormat, Packet};
use proptest::prelude::*;

use crate::any;
use crate::golden::{MACS, plain};

fn agree(packet: &Packet<'_>, frame: &[u8], format: &FrameFormat) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("a frame that etherparse reads");
    let Some(NetSlice::Ipv4(slice)) = sliced.net else { panic!("IPv4") };
    let ipv4 = slice.header().to_header();
    assert_eq!(ipv4.source, packet.source.octets());
    assert_eq!(ipv4.destination, packet.destination.octets());
    assert_eq!(ipv4.dscp.value(), packet.dscp);
    assert_eq!(ipv4.ecn.value(), packet.ecn as u8);
    assert_eq!((ipv4.time_to_live, ipv4.identification), (64, 0));
    assert!(ipv4.dont_fragment && !ipv4.more_fragments && ipv4.options.is_empty());
    assert_eq!(usize::from(ipv4.total_len), frame.len() - 14);
    assert_eq!(ipv4.header_checksum, ipv4.calc_header_checksum());
    let Some(TransportSlice::Udp(slice)) = sliced.transport else { panic!("UDP") };
    let udp = slice.to_header();
    assert_eq!((udp.source_port, udp.destination_port), (packet.entropy, format.udp_port));
    assert_eq!((usize::from(udp.length), udp.checksum), (frame.len() - 34, 0));
    let theirs = udp.calc_checksum_ipv4(&ipv4, slice.payload()).expect("short enough");
    assert_eq!(checksum::udp(packet.source, packet.destination, &frame[34..]), theirs);
}

proptest! {
    // spec: W-1, W-2, WIRE-5, WIRE-6
    #[test]
    fn etherparse_reads_the_same(packet in any::packet(&[0xA5; 301]), icrc: bool) {
        let format = FrameFormat { icrc, ..plain() };
        let mut frame = Vec::new();
        packet.emit(&format, MACS, &mut frame);
        agree(&packet, &frame, &format);
    }
}
