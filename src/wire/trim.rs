//! Trimming: cutting a data packet to the headers that a NACK needs.

use super::error::WireError;
use super::frame::{FrameView, set_dscp, set_word};
use super::header::Header;
use super::ipv4::PROTOCOL_UDP;

/// What a trim leaves after the IPv4 header: UDP, BTH and METH.
const KEPT: usize = Header::Udp.size() + Header::Bth.size() + Header::Meth.size();
const IPV4: usize = Header::Ethernet.size();

/// What a trim does to the IPv4 total length and the UDP length.
// spec: W-16, SW-16
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TrimIpLength {
    /// They name what is left.
    #[default]
    Fix,
    /// They still name the original size, as some switches do it.
    Keep,
}

/// Cuts the frame to IPv4, UDP, BTH and METH: 44 bytes of IP datagram. Writes
/// the codepoint, the lengths as `ip_length` says, the IPv4 checksum, and UDP
/// checksum 0. The ECN bits stay.
///
/// # Errors
/// Not a UDP packet that starts a datagram, or one without these headers; the
/// frame is left as it was.
// spec: NACK-1, SW-16
pub fn trim(frame: &mut Vec<u8>, dscp: u8, ip_length: TrimIpLength) -> Result<(), WireError> {
    let view = FrameView::new(frame)?;
    let have = view.payload().len();
    if view.udp().is_none() {
        return Err(not_udp(view));
    }
    if have < KEPT {
        return Err(WireError::TrimmedTooShort { have: have - Header::Udp.size() });
    }
    let udp = IPV4 + view.ipv4().header_len();
    frame.truncate(udp + KEPT);
    set_dscp(frame, dscp)?;
    if ip_length == TrimIpLength::Fix {
        set_word(frame, IPV4 + 2, (udp - IPV4 + KEPT) as u16);
        frame[udp + 4..udp + 6].copy_from_slice(&(KEPT as u16).to_be_bytes());
    }
    frame[udp + 6..udp + 8].copy_from_slice(&[0, 0]);
    Ok(())
}

/// Why there is no UDP header to keep.
fn not_udp(view: FrameView<'_>) -> WireError {
    if view.protocol() != PROTOCOL_UDP {
        return WireError::IpProtocol { found: view.protocol() };
    }
    if view.ipv4().is_later_fragment() {
        return WireError::IpFragment;
    }
    WireError::TooShort { header: Header::Udp, have: view.payload().len() }
}
