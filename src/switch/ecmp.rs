//! Which member of an equal-cost set a packet takes.

use super::routes::PortSet;
use crate::config::EcmpHashMethod;
use crate::node::PortId;
use crate::wire::frame::FrameView;
use crate::wire::ipv4::PROTOCOL_UDP;
use crate::wire::mac::MacAddr;

/// The IPv4 protocol number of TCP.
const PROTOCOL_TCP: u8 = 6;
/// Protocol, two ports and two addresses.
const FLOW_BYTES: usize = 13;
/// The bits of a destination address that `dpr` looks at.
const DPR_BITS: u32 = 0x1FF;

/// Makes 16 bits of a packet, the same for all packets of its flow.
// spec: SW-12
#[derive(Debug)]
pub(super) struct EcmpHasher {
    method: EcmpHashMethod,
    salt: u32,
}

impl EcmpHasher {
    /// The hasher of the switch whose ports have these addresses: the salt is
    /// the same on every run and differs between switches.
    pub fn new(method: EcmpHashMethod, ports: impl Iterator<Item = MacAddr>) -> Self {
        let mut crc = crc32fast::Hasher::new();
        ports.for_each(|MacAddr(octets)| crc.update(&octets));
        Self { method, salt: crc.finalize() }
    }

    /// Which usable port of `set` the packet takes; `None` when there is none.
    // spec: SW-12, SW-13
    pub fn port(&self, packet: FrameView<'_>, set: &PortSet) -> Option<PortId> {
        if self.method == EcmpHashMethod::DprWithFallback {
            let named = set.all().get(usize::from(direct(packet))).copied();
            if let Some(port) = named.filter(|port| set.is_usable(*port)) {
                return Some(port);
            }
        }
        let usable = set.usable();
        let member = usize::from(self.hash(packet)).checked_rem(usable.len())?;
        Some(usable[member])
    }

    /// The hash of the packet's flow, or of its destination.
    pub fn hash(&self, packet: FrameView<'_>) -> u16 {
        match self.method {
            EcmpHashMethod::Crc32WithSalt | EcmpHashMethod::DprWithFallback => {
                self.salted_crc(&flow(packet))
            }
            EcmpHashMethod::Crc32 => crc32fast::hash(&flow(packet)) as u16,
            EcmpHashMethod::HashWithSalt => folded(&flow(packet)) ^ halves(self.salt),
            EcmpHashMethod::Hash => folded(&flow(packet)),
            EcmpHashMethod::Dpr => direct(packet),
        }
    }

    /// A CRC alone is linear: switches that differ in their salt would still
    /// split the flows alike.
    fn salted_crc(&self, flow: &[u8; FLOW_BYTES]) -> u16 {
        let mut crc = crc32fast::Hasher::new_with_initial(self.salt);
        crc.update(flow);
        (mixed(crc.finalize() ^ self.salt) >> 16) as u16
    }
}

/// The low nine bits of the destination address less one; 0 becomes 511.
fn direct(packet: FrameView<'_>) -> u16 {
    (packet.destination().to_bits().wrapping_sub(1) & DPR_BITS) as u16
}

/// The XOR of all words of 16 bits; the protocol is the low half of the first.
fn folded(flow: &[u8; FLOW_BYTES]) -> u16 {
    let (protocol, words) = flow.split_at(1);
    let words = words.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    words.fold(protocol[0].into(), |fold, word| fold ^ word)
}

/// The XOR of both halves.
const fn halves(word: u32) -> u16 {
    (word ^ word >> 16) as u16
}

/// Lets every bit of the result depend on every bit of `hash` (the finalizer of
/// MurmurHash3).
const fn mixed(mut hash: u32) -> u32 {
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// What tells flows apart. All packets without TCP or UDP ports are one flow;
/// those in fragments have none, so that all of a datagram go one way.
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
    let has_ports =
        matches!(packet.protocol(), PROTOCOL_TCP | PROTOCOL_UDP) && !packet.ipv4().is_fragment();
    packet.payload().first_chunk().filter(|_| has_ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::checksum;

    const MEMBERS: u16 = 4;

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

    fn hasher_with(method: EcmpHashMethod, id: u8) -> EcmpHasher {
        EcmpHasher::new(method, [MacAddr([2, 0, 0, 0, 0, id])].into_iter())
    }

    fn hasher(id: u8) -> EcmpHasher {
        hasher_with(EcmpHashMethod::Crc32WithSalt, id)
    }

    fn member(hasher: &EcmpHasher, frame: &[u8]) -> usize {
        member_of(hasher, FrameView::new(frame).unwrap(), &members(MEMBERS))
    }

    /// Members whose numbers are those of their ports.
    fn members(count: u16) -> PortSet {
        PortSet::new((0..count).map(PortId).collect())
    }

    fn member_of(hasher: &EcmpHasher, packet: FrameView<'_>, set: &PortSet) -> usize {
        hasher.port(packet, set).unwrap().0.into()
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
            let mut counts = [0; MEMBERS as usize];
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
        let mut counts = [0; MEMBERS as usize];
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
        let fragment = |flags_and_offset: [u8; 2]| {
            let mut fragment = frame(PROTOCOL_UDP, 9, 5);
            fragment[20..22].copy_from_slice(&flags_and_offset);
            fragment[24..26].fill(0);
            let checksum = checksum::ipv4(&fragment[14..34]);
            fragment[24..26].copy_from_slice(&checksum.to_be_bytes());
            fragment
        };
        let one = flow(FrameView::new(&frame(ICMP, 1, 2)).unwrap());
        assert_eq!(flow(FrameView::new(&frame(ICMP, 2, 3)).unwrap()), one);
        for flags_and_offset in [[0x20, 0], [0x20, 1], [0, 2]] {
            assert_eq!(flow(FrameView::new(&fragment(flags_and_offset)).unwrap()), one);
        }
        assert_ne!(flow(FrameView::new(&frame(PROTOCOL_UDP, 1, 2)).unwrap()), one);
    }

    /// 128 entropy values of 64 pairs of addresses.
    fn flows() -> impl Iterator<Item = Vec<u8>> {
        (0..64).flat_map(|pair| (0..128).map(move |port| frame(PROTOCOL_UDP, 0xC000 + port, pair)))
    }

    /// How many of [`flows`] take each of 4 members at a switch and then each of
    /// 8 at the switch behind it: three tiers.
    fn two_stages(method: EcmpHashMethod) -> [[u64; 8]; 4] {
        let first = hasher_with(method, 1);
        let second = [2, 3, 4, 5].map(|id| hasher_with(method, id));
        let mut counts = [[0; 8]; 4];
        for frame in flows() {
            let packet = FrameView::new(&frame).unwrap();
            let member = member_of(&first, packet, &members(4));
            counts[member][member_of(&second[member], packet, &members(8))] += 1;
        }
        counts
    }

    /// The counts of the first and of the second stage, each by itself.
    fn each_stage(counts: &[[u64; 8]; 4]) -> (Vec<u64>, Vec<u64>) {
        let first = counts.iter().map(|of_first| of_first.iter().sum());
        let second = (0..8).map(|member| counts.iter().map(|of_first| of_first[member]).sum());
        (first.collect(), second.collect())
    }

    // spec: SW-12
    #[test]
    fn two_stages_choose_independently_with_a_salt() {
        let counts = two_stages(EcmpHashMethod::Crc32WithSalt);
        let (first, second) = each_stage(&counts);
        // Below these lie 99.9 % for 3, 7 and 31 degrees of freedom.
        assert!(unevenness(&first) < 16_270, "{first:?}");
        assert!(unevenness(&second) < 24_320, "{second:?}");
        assert!(unevenness(counts.as_flattened()) < 61_100, "{counts:?}");
    }

    // spec: SW-12
    #[test]
    fn without_a_salt_the_second_stage_repeats_what_the_first_chose() {
        for method in [EcmpHashMethod::Crc32, EcmpHashMethod::Hash, EcmpHashMethod::HashWithSalt] {
            let counts = two_stages(method);
            let (first, _) = each_stage(&counts);
            assert!(unevenness(&first) < 16_270, "{method:?} {first:?}");
            // Only what agrees modulo 4 comes together; a fold's salt but gives
            // the members other numbers.
            for of_first in counts {
                let empty = of_first.iter().filter(|count| **count == 0).count();
                assert_eq!(empty, 6, "{method:?} {counts:?}");
            }
        }
    }

    // spec: SW-12
    #[test]
    fn dpr_counts_members_by_the_destination() {
        let to = |low: u16| {
            let [high, low] = low.to_be_bytes();
            let mut frame = frame(PROTOCOL_UDP, 7, low);
            frame[32] = high;
            frame[24..26].fill(0);
            let checksum = checksum::ipv4(&frame[14..34]);
            frame[24..26].copy_from_slice(&checksum.to_be_bytes());
            frame
        };
        let (dpr, fallback) =
            (hasher_with(EcmpHashMethod::Dpr, 1), hasher_with(EcmpHashMethod::DprWithFallback, 1));
        for (low, member_of_4) in [(1, 0), (4, 3), (5, 0), (0x1FF, 2), (0x200, 3), (0x201, 0)] {
            assert_eq!(member(&dpr, &to(low)), member_of_4, "{low:#x}");
        }
        for low in 0..0x200 {
            let expected = match low {
                1..=4 => usize::from(low - 1),
                _ => member(&hasher(1), &to(low)),
            };
            assert_eq!(member(&fallback, &to(low)), expected, "{low:#x}");
        }
    }
}
