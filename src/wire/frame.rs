//! What a switch needs of a frame: a view of any IPv4 packet, and editors that
//! work in place.

use core::net::Ipv4Addr;

use super::checksum;
use super::error::WireError;
use super::header::Header;
use super::ipv4::{Ecn, Ipv4View, PROTOCOL_UDP};
use super::mac::{ETHERTYPE_IPV4, EthernetView, MacPair};
use super::udp::UdpView;

/// Where the IPv4 header starts.
const IPV4: usize = Header::Ethernet.size();

/// An IPv4 packet in its Ethernet frame, MRC's or anybody's, with options or
/// without. Its total length may name more than the frame holds: some switches
/// trim and leave the lengths alone.
#[derive(Clone, Copy, Debug)]
pub struct FrameView<'a> {
    ethernet: EthernetView<'a>,
    ipv4: Ipv4View<'a>,
    datagram: &'a [u8],
    payload: &'a [u8],
}

impl<'a> FrameView<'a> {
    /// Checks the EtherType and the IPv4 header: version, header length, that
    /// the total length covers the header, and the checksum.
    ///
    /// # Errors
    /// The field at fault.
    // spec: W-14, W-17
    pub fn new(frame: &'a [u8]) -> Result<Self, WireError> {
        let ethernet = EthernetView::new(frame)?;
        if ethernet.ethertype() != ETHERTYPE_IPV4 {
            return Err(WireError::EtherType { found: ethernet.ethertype() });
        }
        let packet = &frame[IPV4..];
        let ipv4 = Ipv4View::new(packet)?;
        check_lengths(ipv4, packet.len())?;
        let datagram = &packet[..packet.len().min(ipv4.total_length().into())];
        let (header, payload) = datagram.split_at(ipv4.header_len());
        if !checksum::ipv4_is_valid(header) {
            return Err(WireError::IpChecksum { found: ipv4.checksum() });
        }
        Ok(Self { ethernet, ipv4, datagram, payload })
    }

    /// The Ethernet addresses.
    pub const fn macs(self) -> MacPair {
        self.ethernet.macs()
    }

    /// The IPv4 header.
    pub const fn ipv4(self) -> Ipv4View<'a> {
        self.ipv4
    }

    /// The IPv4 header and what the frame holds after it, without Ethernet
    /// padding.
    pub const fn datagram(self) -> &'a [u8] {
        self.datagram
    }

    /// What the frame holds after the IPv4 header, without Ethernet padding.
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// The source address.
    pub const fn source(self) -> Ipv4Addr {
        self.ipv4.source()
    }

    /// The destination address.
    pub const fn destination(self) -> Ipv4Addr {
        self.ipv4.destination()
    }

    /// The IPv4 protocol number.
    pub const fn protocol(self) -> u8 {
        self.ipv4.protocol()
    }

    /// The differentiated services codepoint.
    pub const fn dscp(self) -> u8 {
        self.ipv4.dscp()
    }

    /// The ECN bits.
    pub const fn ecn(self) -> Ecn {
        self.ipv4.ecn()
    }

    /// Header and payload in bytes, as the IPv4 header says.
    pub const fn total_length(self) -> u16 {
        self.ipv4.total_length()
    }

    /// The UDP header; `None` when the packet is not UDP, is cut short before
    /// it, or is a fragment without it.
    pub fn udp(self) -> Option<UdpView<'a>> {
        if self.protocol() != PROTOCOL_UDP || self.ipv4.is_later_fragment() {
            return None;
        }
        UdpView::new(self.payload).ok()
    }

    /// The UDP source and destination ports, where there is a UDP header.
    pub fn udp_ports(self) -> Option<(u16, u16)> {
        self.udp().map(|udp| (udp.source_port(), udp.destination_port()))
    }
}

/// Checks that the header is version 4 and lies within both its own total
/// length and the `have` bytes of the frame.
fn check_lengths(ipv4: Ipv4View<'_>, have: usize) -> Result<(), WireError> {
    if ipv4.version() != 4 {
        return Err(WireError::IpVersion { found: ipv4.version() });
    }
    if ipv4.header_words() < 5 {
        return Err(WireError::IpHeaderLength { words: ipv4.header_words() });
    }
    if ipv4.header_len() > have.min(ipv4.total_length().into()) {
        return Err(WireError::IpLength { named: ipv4.total_length(), have });
    }
    Ok(())
}

/// Writes the codepoint (0 to 63), keeps the ECN bits and corrects the IPv4
/// checksum.
///
/// # Errors
/// As [`FrameView::new`]; the frame is left as it was.
pub fn set_dscp(frame: &mut [u8], dscp: u8) -> Result<(), WireError> {
    let tos = dscp << 2 | FrameView::new(frame)?.ecn() as u8;
    set_byte(frame, IPV4 + 1, tos);
    Ok(())
}

/// Marks congestion experienced and corrects the IPv4 checksum. Whether the
/// packet may be marked ([`Ecn::Ect0`], [`Ecn::Ect1`]) is for the caller to ask.
///
/// # Errors
/// As [`FrameView::new`]; the frame is left as it was.
pub fn set_ce(frame: &mut [u8]) -> Result<(), WireError> {
    let tos = FrameView::new(frame)?.dscp() << 2 | Ecn::Ce as u8;
    set_byte(frame, IPV4 + 1, tos);
    Ok(())
}

/// Takes one from the time to live, corrects the IPv4 checksum and returns
/// what is left. At 0 the packet is to be dropped.
///
/// # Errors
/// As [`FrameView::new`]; the frame is left as it was.
pub fn decrement_ttl(frame: &mut [u8]) -> Result<u8, WireError> {
    let left = FrameView::new(frame)?.ipv4().ttl().saturating_sub(1);
    set_byte(frame, IPV4 + 8, left);
    Ok(left)
}

/// Writes one byte of a checked IPv4 header and carries the change into its
/// checksum, which stays wrong if it was wrong.
fn set_byte(frame: &mut [u8], at: usize, value: u8) {
    let word = at & !1;
    let before = u16::from_be_bytes([frame[word], frame[word + 1]]);
    frame[at] = value;
    let after = u16::from_be_bytes([frame[word], frame[word + 1]]);
    update_checksum(frame, before, after);
}

/// Writes a 16-bit word of a checked IPv4 header and carries the change into
/// its checksum.
pub(super) fn set_word(frame: &mut [u8], at: usize, value: u16) {
    let before = u16::from_be_bytes([frame[at], frame[at + 1]]);
    frame[at..at + 2].copy_from_slice(&value.to_be_bytes());
    update_checksum(frame, before, value);
}

fn update_checksum(frame: &mut [u8], before: u16, after: u16) {
    let field = &mut frame[IPV4 + 10..IPV4 + 12];
    let checksum = checksum::updated(u16::from_be_bytes([field[0], field[1]]), before, after);
    field.copy_from_slice(&checksum.to_be_bytes());
}
