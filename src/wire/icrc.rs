//! ICRC: the invariant checksum of RoCEv2 (IBTA annex A17), the last 4 bytes
//! of a packet. A CRC-32 over what no hop may change.

/// The bytes that a hop may change, from the start of the IPv4 header: type of
/// service, TTL, header checksum, UDP checksum, and the BTH's fifth byte.
const MASKED: [usize; 7] = [1, 8, 10, 11, 26, 27, 32];
/// IPv4, UDP and BTH.
const HEADERS: usize = 40;
/// Stands for the header that only InfiniBand's link layer has.
const LINK_HEADER: [u8; 8] = [0xFF; 8];

/// The ICRC in wire order of an IPv4 datagram without its ICRC bytes; `None`
/// when it is shorter than IPv4, UDP and BTH. The IPv4 total length and the UDP
/// length count the ICRC; the IPv4 header has no options.
// spec: W-3
pub fn compute(datagram: &[u8]) -> Option<[u8; 4]> {
    let (headers, rest) = datagram.split_first_chunk::<HEADERS>()?;
    let mut masked = *headers;
    for at in MASKED {
        masked[at] = 0xFF;
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&LINK_HEADER);
    crc.update(&masked);
    crc.update(rest);
    Some(crc.finalize().to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UC SEND ONLY with padding, from the RoCE test suite of secdev/scapy
    /// (test/contrib/roce.uts), without the Ethernet header.
    const SEND_ONLY: [u8; 64] = [
        0x45, 0x01, 0x00, 0x40, 0x04, 0x78, 0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 0xc0, 0xa8, 0x00,
        0x07, 0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c, 0xac, 0xa2, 0x24, 0x60,
        0xff, 0xff, 0x00, 0x00, 0x00, 0xd3, 0x00, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2,
        0x89, 0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50, 0x00, 0x00,
        0x78, 0xf3, 0x53, 0xf3,
    ];

    /// A congestion notification that a ConnectX-4 Lx sent, from the same suite.
    const NOTIFICATION: [u8; 60] = [
        0x45, 0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11,
        0x01, 0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00,
        0xff, 0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a,
    ];

    // spec: W-3
    #[test]
    fn packets_of_other_implementations_verify() {
        for packet in [&SEND_ONLY[..], &NOTIFICATION[..]] {
            let (datagram, trailer) = packet.split_at(packet.len() - 4);
            assert_eq!(compute(datagram).as_ref().map(<[u8; 4]>::as_slice), Some(trailer));
        }
    }

    // spec: W-3
    #[test]
    fn only_what_a_hop_may_change_leaves_it_alone() {
        let before = compute(&SEND_ONLY);
        for at in 0..SEND_ONLY.len() {
            let mut changed = SEND_ONLY;
            changed[at] ^= 0x10;
            assert_eq!(compute(&changed) == before, MASKED.contains(&at), "byte {at}");
        }
        assert_eq!(compute(&SEND_ONLY[..39]), None);
    }
}
