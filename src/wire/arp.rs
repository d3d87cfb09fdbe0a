//! ARP for IPv4 over Ethernet (RFC 826): who has an address? Between the
//! Ethernet header and the FCS it has 28 bytes, and padding.
//!
//! | byte | field |
//! |---|---|
//! | 0-7 | hardware type 1, protocol type 0x0800, lengths 6 and 4; 1 asks, 2 answers |
//! | 8-17 | the sender's MAC and IPv4 address |
//! | 18-27 | the target's MAC (0 in a request) and IPv4 address |

use core::net::Ipv4Addr;

use super::mac::{MacAddr, MacPair};

/// The EtherType of ARP.
pub const ETHERTYPE_ARP: u16 = 0x0806;
/// Hardware type, protocol type, and the lengths of both addresses.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
/// The shortest Ethernet frame, without the FCS.
const FRAME: usize = 60;

/// Somebody with both addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// The Ethernet address.
    pub mac: MacAddr,
    /// The IPv4 address.
    pub ip: Ipv4Addr,
}

/// The frame in which `sender` asks everybody on its link for the MAC address
/// of `target`.
pub fn request(sender: Station, target: Ipv4Addr) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    MacPair { source: sender.mac, destination: MacAddr([0xFF; 6]) }.emit(&mut frame);
    frame[12..14].copy_from_slice(&ETHERTYPE_ARP.to_be_bytes());
    frame[14..20].copy_from_slice(&ETHERNET_IPV4);
    frame[21] = REQUEST;
    frame[22..28].copy_from_slice(&sender.mac.0);
    frame[28..32].copy_from_slice(&sender.ip.octets());
    frame[38..42].copy_from_slice(&target.octets());
    frame
}

/// Who answers in `frame`; `None` when it is no ARP reply.
pub fn reply(frame: &[u8]) -> Option<Station> {
    let (head, rest) = frame.get(12..)?.split_first_chunk::<10>()?;
    let [high, low, kind @ .., zero, operation] = head;
    let is_reply = [*high, *low] == ETHERTYPE_ARP.to_be_bytes()
        && *kind == ETHERNET_IPV4
        && [*zero, *operation] == [0, REPLY];
    let (mac, rest) = rest.split_first_chunk::<6>()?;
    let (ip, rest) = rest.split_first_chunk::<4>()?;
    let station = Station { mac: MacAddr(*mac), ip: Ipv4Addr::from_octets(*ip) };
    (is_reply && rest.len() >= 10).then_some(station)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Station =
        Station { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 1) };
    const THEM: Station =
        Station { mac: MacAddr([2, 0, 0, 0, 0, 2]), ip: Ipv4Addr::new(10, 0, 0, 2) };

    #[test]
    fn a_request_goes_to_everybody_and_is_no_reply() {
        let frame = request(US, THEM.ip);
        let want = [
            255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, // Ethernet
            0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
        ];
        assert_eq!(frame[..42], want);
        assert_eq!(frame[42..], [0; 18]);
        assert_eq!(reply(&frame), None);
    }

    // spec: REL-11
    #[test]
    fn a_reply_names_its_sender_and_a_broken_one_nobody() {
        let mut frame = request(THEM, US.ip);
        frame[21] = REPLY;
        assert_eq!(reply(&frame), Some(THEM));
        assert_eq!(reply(&frame[..42]), Some(THEM));
        for length in 0..42 {
            assert_eq!(reply(&frame[..length]), None, "{length} bytes");
        }
        // Every bit of what says that it is a reply counts.
        for bit in 12 * 8..22 * 8 {
            let mut damaged = frame;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(reply(&damaged), None, "bit {bit}");
        }
    }
}
