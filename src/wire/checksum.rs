//! The Internet checksum (RFC 1071) of IPv4 headers and UDP datagrams.

use core::net::Ipv4Addr;

use super::ipv4::PROTOCOL_UDP;

/// The one's complement sum of `bytes` as 16-bit words, folded; an odd last
/// byte is padded with zero.
fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let mut sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    if let [last] = rest {
        sum += u64::from(*last) << 8;
    }
    fold(sum)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// The checksum of an IPv4 header whose checksum field is zero.
pub fn ipv4(header: &[u8]) -> u16 {
    !sum(header)
}

/// True when an IPv4 header, checksum included, adds up.
pub fn ipv4_is_valid(header: &[u8]) -> bool {
    sum(header) == 0xFFFF
}

/// The checksum after one 16-bit word of what it covers changed (RFC 1624).
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// The checksum of a UDP datagram over IPv4 whose checksum field is zero;
/// never 0, which stands for "none".
pub fn udp(source: Ipv4Addr, destination: Ipv4Addr, datagram: &[u8]) -> u16 {
    match !udp_sum(source, destination, datagram) {
        0 => 0xFFFF,
        checksum => checksum,
    }
}

/// True when a UDP datagram, checksum included, adds up.
pub fn udp_is_valid(source: Ipv4Addr, destination: Ipv4Addr, datagram: &[u8]) -> bool {
    udp_sum(source, destination, datagram) == 0xFFFF
}

fn udp_sum(source: Ipv4Addr, destination: Ipv4Addr, datagram: &[u8]) -> u16 {
    let parts = [sum(&source.octets()), sum(&destination.octets()), sum(datagram)];
    let pseudo = u64::from(PROTOCOL_UDP) + datagram.len() as u64;
    fold(pseudo + parts.iter().map(|&part| u64::from(part)).sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_of_rfc_1071_adds_up() {
        assert_eq!(sum(&[0x00, 0x01, 0xF2, 0x03, 0xF4, 0xF5, 0xF6, 0xF7]), 0xDDF2);
        assert_eq!(sum(&[0xAB]), 0xAB00);
    }

    #[test]
    fn the_worked_example_of_rfc_1624_updates_to_zero() {
        assert_eq!(updated(0xDD2F, 0x5555, 0x3285), 0x0000);
    }

    // spec: W-2
    #[test]
    fn a_udp_checksum_of_zero_is_written_as_all_ones() {
        // Protocol 17, length 8 and this word add up to 0xFFFF.
        let datagram = [0xFF, 0xE6, 0, 0, 0, 0, 0, 0];
        let any = Ipv4Addr::UNSPECIFIED;
        assert_eq!(udp(any, any, &datagram), 0xFFFF);
        assert!(udp_is_valid(any, any, &datagram));
    }
}
