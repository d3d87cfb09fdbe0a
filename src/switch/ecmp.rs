//! Which member of an equal-cost set a flow takes.

use crate::wire::frame::FrameView;
use crate::wire::ipv4::PROTOCOL_UDP;
use crate::wire::mac::MacAddr;

/// The IPv4 protocol number of TCP.
const PROTOCOL_TCP: u8 = 6;
/// Protocol, two ports and two addresses.
const FLOW_BYTES: usize = 13;

/// Hashes a flow to the same 16 bits for all its packets: a CRC-32 that starts
/// from the switch's salt, then a finalizer that is not linear. A CRC alone is:
/// switches that differ in their salt would still split the flows alike.
// spec: SW-12
#[derive(Debug)]
pub(super) struct EcmpHasher {
    salt: u32,
}

impl EcmpHasher {
    /// The hasher of the switch whose ports have these addresses: the salt is
    /// the same on every run and differs between switches.
    pub fn new(ports: impl Iterator<Item = MacAddr>) -> Self {
        let mut crc = crc32fast::Hasher::new();
        ports.for_each(|MacAddr(octets)| crc.update(&octets));
        Self { salt: crc.finalize() }
    }

    /// Which of `members` (at least 1) the packet takes.
    pub fn member(&self, packet: FrameView<'_>, members: usize) -> usize {
        usize::from(self.hash(&flow(packet))) % members
    }

    fn hash(&self, flow: &[u8; FLOW_BYTES]) -> u16 {
        let mut crc = crc32fast::Hasher::new_with_initial(self.salt);
        crc.update(flow);
        (mixed(crc.finalize() ^ self.salt) >> 16) as u16
    }
}

/// Lets every bit of the result depend on every bit of `hash` (the finalizer of
/// MurmurHash3).
const fn mixed(mut hash: u32) -> u32 {
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// What tells flows apart. All packets without TCP or UDP ports are one flow.
fn flow(packet: FrameView<'_>) -> [u8; FLOW_BYTES] {
    let mut flow = [0; FLOW_BYTES];
    if let Some(ports) = port_bytes(packet) {
        flow[0] = packet.protocol();
        flow[1..5].copy_from_slice(ports);
        flow[5..9].copy_from_slice(&packet.source().octets());
        flow[9..13].copy_from_slice(&packet.destination().octets());
    }
    flow
}

/// The source and the destination port, where the packet has them.
fn port_bytes(packet: FrameView<'_>) -> Option<&[u8; 4]> {
    let has_ports = matches!(packet.protocol(), PROTOCOL_TCP | PROTOCOL_UDP)
        && !packet.ipv4().is_later_fragment();
    packet.payload().first_chunk().filter(|_| has_ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::checksum;

    const MEMBERS: usize = 4;

    /// An IPv4 frame whose payload starts with these ports.
    fn frame(protocol: u8, source_port: u16, destination: u8) -> Vec<u8> {
        let mut frame = vec![0; 14 + 20 + 8];
        frame[12] = 0x08;
        frame[14] = 0x45;
        frame[17] = 28;
        frame[23] = protocol;
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, destination]);
        let checksum = checksum::ipv4(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame[34..36].copy_from_slice(&source_port.to_be_bytes());
        frame[36..38].copy_from_slice(&4791_u16.to_be_bytes());
        frame
    }

    fn hasher(id: u8) -> EcmpHasher {
        EcmpHasher::new([MacAddr([2, 0, 0, 0, 0, id])].into_iter())
    }

    fn member(hasher: &EcmpHasher, frame: &[u8]) -> usize {
        hasher.member(FrameView::new(frame).unwrap(), MEMBERS)
    }

    /// How far `counts` are from even: chi-squared, in units of 1/1000.
    fn unevenness(counts: &[u64]) -> u64 {
        let mean = counts.iter().sum::<u64>() / counts.len() as u64;
        counts.iter().map(|count| count.abs_diff(mean).pow(2) * 1_000 / mean).sum()
    }

    // spec: SW-12
    #[test]
    fn entropy_values_spread_evenly_over_the_members() {
        for protocol in [PROTOCOL_UDP, PROTOCOL_TCP] {
            let mut counts = [0; MEMBERS];
            for port in 0..4_000 {
                counts[member(&hasher(1), &frame(protocol, port, 2))] += 1;
            }
            // Of 3 degrees of freedom 99.9 % lie below 16.27.
            assert!(unevenness(&counts) < 16_270, "{counts:?}");
        }
    }

    // spec: SW-12
    #[test]
    fn switches_split_the_same_flows_independently() {
        let (first, second) = (hasher(1), hasher(2));
        let mut counts = [0; MEMBERS];
        for port in 0..16_000 {
            let frame = frame(PROTOCOL_UDP, port, 2);
            if member(&first, &frame) == 0 {
                counts[member(&second, &frame)] += 1;
            }
        }
        assert!(unevenness(&counts) < 16_270, "{counts:?}");
    }

    // spec: SW-12
    #[test]
    fn a_flow_has_one_member_on_every_run() {
        let of = |port| member(&hasher(1), &frame(PROTOCOL_UDP, port, 2));
        let members: Vec<_> = (0..12).map(of).collect();
        assert_eq!(members, (0..12).map(of).collect::<Vec<_>>());
        assert_eq!(members, [2, 3, 0, 2, 2, 3, 1, 0, 2, 3, 1, 2]);
    }

    // spec: SW-12
    #[test]
    fn packets_without_ports_are_one_flow() {
        const ICMP: u8 = 1;
        let mut fragment = frame(PROTOCOL_UDP, 9, 5);
        fragment[21] = 1;
        fragment[24..26].fill(0);
        let checksum = checksum::ipv4(&fragment[14..34]);
        fragment[24..26].copy_from_slice(&checksum.to_be_bytes());
        let one = flow(FrameView::new(&frame(ICMP, 1, 2)).unwrap());
        assert_eq!(flow(FrameView::new(&frame(ICMP, 2, 3)).unwrap()), one);
        assert_eq!(flow(FrameView::new(&fragment).unwrap()), one);
        assert_ne!(flow(FrameView::new(&frame(PROTOCOL_UDP, 1, 2)).unwrap()), one);
    }
}
