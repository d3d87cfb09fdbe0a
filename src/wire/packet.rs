//! A whole MRC packet: from its values to a frame and back.

use core::net::Ipv4Addr;

use super::aeth::Aeth;
use super::bth::Bth;
use super::cc_state::CcState;
use super::checksum;
use super::error::WireError;
use super::frame::FrameView;
use super::header::Header;
use super::icrc;
use super::ipv4::{Ipv4, PROTOCOL_UDP};
use super::mac::ETHERTYPE_IPV4;
use super::meth::Meth;
use super::neth::Neth;
use super::opcode::{Kind, Opcode};
use super::peth::Peth;
use super::reth::Reth;
use super::role::{Codepoints, Role};
use super::seth::Seth;
use super::tseth::Tseth;
use super::udp::{Udp, UdpView};

pub use super::ipv4::Ecn;
pub use super::mac::MacPair;

/// Bytes of the Ethernet header.
pub const ETHERNET: usize = Header::Ethernet.size();
/// Bytes of the frame check sequence: counted on the wire, in no buffer.
pub const FCS: usize = 4;
/// Bytes of the IPv4 header.
pub const IPV4: usize = Header::Ipv4.size();
/// Bytes of the UDP header.
pub const UDP: usize = Header::Udp.size();
/// Bytes of the BTH.
pub const BTH: usize = Header::Bth.size();
/// Bytes of the METH.
pub const METH: usize = Header::Meth.size();
/// Bytes of the TSETH.
pub const TSETH: usize = Header::Tseth.size();
/// Bytes of the RETH.
pub const RETH: usize = Header::Reth.size();
/// Bytes of the ICRC.
pub const ICRC: usize = Header::Icrc.size();

/// IPv4, UDP and BTH: what every packet's datagram starts with.
const COMMON: usize = IPV4 + UDP + BTH;
/// What a data packet's IPv4 datagram has beside its payload, without TSETH
/// and ICRC.
// spec: SEG-4, WIRE-9
pub const DATA_IP_OVERHEAD: usize = COMMON + METH + RETH;
/// What a data packet has on the wire beside its payload, without TSETH and
/// ICRC.
// spec: SEG-4, WIRE-9
pub const DATA_OVERHEAD: usize = ETHERNET + DATA_IP_OVERHEAD + FCS;
/// A cumulative ACK on the wire, without ICRC.
// spec: WIRE-9
pub const ACK_WIRE_BYTES: usize = ETHERNET + COMMON + Header::Aeth.size() + FCS;
/// A SACK on the wire, without ICRC.
// spec: WIRE-9
pub const SACK_WIRE_BYTES: usize =
    ETHERNET + COMMON + Header::Seth.size() + Header::CcState.size() + FCS;
/// A NACK on the wire, without ICRC.
// spec: W-12
pub const NACK_WIRE_BYTES: usize = ETHERNET + COMMON + Header::Neth.size() + FCS;
/// A probe on the wire, without ICRC.
// spec: W-12
pub const PROBE_WIRE_BYTES: usize = ETHERNET + COMMON + Header::Peth.size() + FCS;
/// The IPv4 datagram of a trimmed packet.
// spec: NACK-1, WIRE-9
pub const TRIMMED_IP_BYTES: usize = COMMON + METH;
/// A trimmed packet on the wire; it never has an ICRC.
pub const TRIMMED_WIRE_BYTES: usize = ETHERNET + TRIMMED_IP_BYTES + FCS;
/// The largest payload that an IPv4 datagram holds with every header.
pub const MAX_PAYLOAD: usize = u16::MAX as usize - DATA_IP_OVERHEAD - TSETH - ICRC;

/// The most bytes that come before a payload or make up a control packet.
const MAX_HEAD: usize = SACK_WIRE_BYTES - FCS;

/// Bytes that a frame of `frame_len` bytes in a buffer takes on the wire.
// spec: WIRE-9
pub const fn wire_bytes(frame_len: usize) -> u64 {
    (frame_len + FCS) as u64
}

/// Bytes of the IPv4 datagram in a frame of `frame_len` bytes without padding.
// spec: WIRE-9
pub const fn ip_bytes(frame_len: usize) -> u64 {
    frame_len.saturating_sub(ETHERNET) as u64
}

/// What all nodes of a lab must agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameFormat {
    /// Every packet but a trimmed one ends in an ICRC.
    // spec: W-3
    pub icrc: bool,
    /// The UDP destination port of every packet.
    // spec: W-2, WIRE-5
    pub udp_port: u16,
    /// The DSCP value of each role.
    // spec: W-13
    pub codepoints: Codepoints,
}

impl FrameFormat {
    /// The port that RoCEv2 has at IANA.
    pub const UDP_PORT: u16 = 4791;
}

impl Default for FrameFormat {
    fn default() -> Self {
        Self { icrc: false, udp_port: Self::UDP_PORT, codepoints: Codepoints::default() }
    }
}

/// A packet; its payload is borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The sender's address.
    pub source: Ipv4Addr,
    /// The receiver's address.
    pub destination: Ipv4Addr,
    /// The role that the codepoint names; `None` when it is no role's.
    pub role: Option<Role>,
    /// The codepoint as it was received. `emit` writes the role's codepoint and
    /// uses this one only when there is no role.
    pub dscp: u8,
    /// The ECN bits.
    pub ecn: Ecn,
    /// The entropy value: the UDP source port.
    pub entropy: u16,
    /// The BTH.
    pub bth: Bth,
    /// What follows the BTH.
    pub body: Body<'a>,
}

/// What follows the BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body<'a> {
    /// A part of an RDMA Write.
    Write {
        /// The METH.
        meth: Meth,
        /// The TSETH, there when the BTH's TS bit is set.
        tseth: Option<Tseth>,
        /// The RETH.
        reth: Reth,
        /// The payload.
        payload: &'a [u8],
    },
    /// What a switch left of a part of an RDMA Write.
    Trimmed {
        /// The METH.
        meth: Meth,
    },
    /// A cumulative acknowledgement.
    Ack(Aeth),
    /// A selective acknowledgement.
    Sack(Seth, CcState),
    /// A negative acknowledgement.
    Nack(Neth),
    /// A path probe.
    Probe(Peth),
}

impl<'a> Body<'a> {
    /// The payload: empty but for a part of a Write.
    pub const fn payload(&self) -> &'a [u8] {
        match self {
            Self::Write { payload, .. } => payload,
            _ => &[],
        }
    }

    /// Bytes of the headers after the BTH.
    const fn header_bytes(&self) -> usize {
        match self {
            Self::Write { tseth: None, .. } => METH + RETH,
            Self::Write { tseth: Some(_), .. } => METH + TSETH + RETH,
            Self::Trimmed { .. } => METH,
            Self::Ack(_) => Aeth::LEN,
            Self::Sack(..) => Seth::LEN + CcState::LEN,
            Self::Nack(_) => Neth::LEN,
            Self::Probe(_) => Peth::LEN,
        }
    }

    /// True when this body goes with `bth`.
    const fn belongs_to(&self, bth: &Bth) -> bool {
        match self {
            Self::Write { tseth, .. } => {
                bth.opcode.is_data() && tseth.is_some() == bth.timestamp_present
            }
            Self::Trimmed { .. } => bth.opcode.is_data(),
            Self::Ack(_) => matches!(bth.opcode, Opcode::Ack),
            Self::Sack(..) => matches!(bth.opcode, Opcode::Sack),
            Self::Nack(_) => matches!(bth.opcode, Opcode::Nack),
            Self::Probe(_) => matches!(bth.opcode, Opcode::Probe),
        }
    }

    fn emit_headers(&self, head: &mut Head) {
        match self {
            Self::Write { meth, tseth, reth, .. } => {
                meth.emit(head.room(METH));
                if let Some(tseth) = tseth {
                    tseth.emit(head.room(TSETH));
                }
                reth.emit(head.room(RETH));
            }
            Self::Trimmed { meth } => meth.emit(head.room(METH)),
            Self::Ack(aeth) => aeth.emit(head.room(Aeth::LEN)),
            Self::Sack(seth, cc_state) => {
                seth.emit(head.room(Seth::LEN));
                cc_state.emit(head.room(CcState::LEN));
            }
            Self::Nack(neth) => neth.emit(head.room(Neth::LEN)),
            Self::Probe(peth) => peth.emit(head.room(Peth::LEN)),
        }
    }

    // spec: W-14
    fn parse(bth: &Bth, bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut rest = bytes;
        let body = match bth.opcode.kind() {
            Kind::Write => return Self::parse_write(bth, bytes),
            Kind::Ack => Self::Ack(take(&mut rest, Aeth::LEN, Aeth::parse)?),
            Kind::Sack => Self::Sack(
                take(&mut rest, Seth::LEN, Seth::parse)?,
                take(&mut rest, CcState::LEN, CcState::parse)?,
            ),
            Kind::Nack => Self::Nack(take(&mut rest, Neth::LEN, Neth::parse)?),
            Kind::Probe => Self::Probe(take(&mut rest, Peth::LEN, Peth::parse)?),
            Kind::Unsupported => {
                return Err(WireError::UnsupportedOpcode { opcode: bth.opcode });
            }
        };
        if rest.is_empty() {
            Ok(body)
        } else {
            Err(WireError::TrailingBytes { opcode: bth.opcode, extra: rest.len() })
        }
    }

    fn parse_write(bth: &Bth, mut rest: &'a [u8]) -> Result<Self, WireError> {
        let meth = take(&mut rest, METH, Meth::parse)?;
        let tseth = match bth.timestamp_present {
            true => Some(take(&mut rest, TSETH, Tseth::parse)?),
            false => None,
        };
        let reth = take(&mut rest, RETH, Reth::parse)?;
        check_data_length(bth.opcode, rest.len(), reth.dma_length)?;
        Ok(Self::Write { meth, tseth, reth, payload: rest })
    }

    // spec: NACK-1, NACK-2
    fn parse_trimmed(bth: &Bth, rest: &[u8]) -> Result<Self, WireError> {
        if !bth.opcode.is_data() {
            return Err(WireError::TrimmedOpcode { opcode: bth.opcode });
        }
        Ok(Self::Trimmed { meth: Meth::parse(rest)? })
    }
}

/// Parses a header from the front of `rest` and moves past it.
fn take<T>(
    rest: &mut &[u8],
    len: usize,
    parse: impl FnOnce(&[u8]) -> Result<T, WireError>,
) -> Result<T, WireError> {
    let value = parse(rest)?;
    *rest = rest.get(len..).unwrap_or_default();
    Ok(value)
}

/// The only packet of a message carries all of it; one of several carries some
/// of it, but not all.
// spec: SEG-3, W-14
fn check_data_length(opcode: Opcode, payload: usize, message: u32) -> Result<(), WireError> {
    let length = message as usize;
    let fits = match opcode.starts_message() && opcode.ends_message() {
        true => payload == length,
        false => 0 < payload && payload < length,
    };
    if fits { Ok(()) } else { Err(WireError::DataLength { opcode, payload, message }) }
}

/// Headers while they are written, one after the other.
struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Head {
    /// The next `len` bytes.
    fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.len;
        self.len += len;
        &mut self.bytes[start..self.len]
    }
}

impl<'a> Packet<'a> {
    /// Clears `out` and fills it with the frame, without FCS.
    ///
    /// The body must go with the BTH, and a payload is at most [`MAX_PAYLOAD`]
    /// bytes; debug builds check both.
    // spec: W-1, W-2, W-3, SEG-4
    pub fn emit(&self, format: &FrameFormat, macs: MacPair, out: &mut Vec<u8>) {
        debug_assert!(self.body.belongs_to(&self.bth), "{self:?}");
        debug_assert!(self.body.payload().len() <= MAX_PAYLOAD);
        let mut head = Head { bytes: [0; MAX_HEAD], len: 0 };
        macs.emit(&mut head.room(ETHERNET)[..12]);
        head.bytes[12..ETHERNET].copy_from_slice(&ETHERTYPE_IPV4.to_be_bytes());
        self.ipv4(format).emit(head.room(IPV4));
        self.udp(format).emit(head.room(UDP));
        self.bth.emit(head.room(BTH));
        self.body.emit_headers(&mut head);
        out.clear();
        out.extend_from_slice(&head.bytes[..head.len]);
        out.extend_from_slice(self.body.payload());
        if self.has_icrc(format)
            && let Some(icrc) = icrc::compute(&out[ETHERNET..])
        {
            out.extend_from_slice(&icrc);
        }
    }

    /// Bytes of the frame that [`Packet::emit`] makes.
    pub fn frame_len(&self, format: &FrameFormat) -> usize {
        ETHERNET + IPV4 + self.udp_len(format)
    }

    /// Bytes of the packet on the wire.
    // spec: SEG-4, WIRE-9
    pub fn wire_len(&self, format: &FrameFormat) -> u64 {
        wire_bytes(self.frame_len(format))
    }

    fn udp_len(&self, format: &FrameFormat) -> usize {
        let icrc = if self.has_icrc(format) { ICRC } else { 0 };
        UDP + BTH + self.body.header_bytes() + self.body.payload().len() + icrc
    }

    fn has_icrc(&self, format: &FrameFormat) -> bool {
        format.icrc && !matches!(self.body, Body::Trimmed { .. })
    }

    fn ipv4(&self, format: &FrameFormat) -> Ipv4 {
        Ipv4 {
            source: self.source,
            destination: self.destination,
            dscp: self.role.map_or(self.dscp, |role| format.codepoints.dscp(role)),
            ecn: self.ecn,
            total_length: (IPV4 + self.udp_len(format)) as u16,
        }
    }

    fn udp(&self, format: &FrameFormat) -> Udp {
        Udp {
            source_port: self.entropy,
            destination_port: format.udp_port,
            length: self.udp_len(format) as u16,
        }
    }

    /// Reads a frame without FCS. Ethernet padding is cut off; every checksum
    /// that is there is verified; a packet with a trimmed codepoint may name
    /// more bytes than it has.
    ///
    /// # Errors
    /// The first fault found.
    // spec: W-14
    pub fn parse(frame: &'a [u8], format: &FrameFormat) -> Result<Self, WireError> {
        let view = FrameView::new(frame)?;
        let role = format.codepoints.role(view.dscp());
        let trimmed = role.is_some_and(Role::is_trimmed);
        check_ipv4(view, trimmed)?;
        let udp = UdpView::new(view.payload())?;
        check_udp(view, udp, trimmed, format)?;
        let (bth, body) = match trimmed {
            true => parse_trimmed(view.payload())?,
            false => parse_whole(view, format)?,
        };
        Ok(Packet {
            source: view.source(),
            destination: view.destination(),
            role,
            dscp: view.dscp(),
            ecn: view.ecn(),
            entropy: udp.source_port(),
            bth,
            body,
        })
    }
}

/// What the frame view leaves open: options, fragments, another protocol, and
/// a total length beyond the frame, which only a trimmed packet may name.
// spec: W-1, W-14, W-16
fn check_ipv4(view: FrameView<'_>, trimmed: bool) -> Result<(), WireError> {
    let ipv4 = view.ipv4();
    if ipv4.header_words() != 5 {
        return Err(WireError::IpOptions { words: ipv4.header_words() });
    }
    let have = ipv4.header_len() + view.payload().len();
    if !trimmed && usize::from(ipv4.total_length()) != have {
        return Err(WireError::IpLength { named: ipv4.total_length(), have });
    }
    if ipv4.is_fragment() {
        return Err(WireError::IpFragment);
    }
    if ipv4.protocol() != PROTOCOL_UDP {
        return Err(WireError::IpProtocol { found: ipv4.protocol() });
    }
    Ok(())
}

/// The port, the length and the checksum. Of a trimmed packet whose UDP length
/// names more than is left the checksum cannot be verified.
// spec: W-2, W-14, W-16, WIRE-5
fn check_udp(
    view: FrameView<'_>,
    udp: UdpView<'_>,
    trimmed: bool,
    format: &FrameFormat,
) -> Result<(), WireError> {
    let have = view.payload().len();
    let named = usize::from(udp.length());
    if udp.destination_port() != format.udp_port {
        return Err(WireError::UdpPort { found: udp.destination_port() });
    }
    if named < have || (named > have && !trimmed) {
        return Err(WireError::UdpLength { named: udp.length(), have });
    }
    let verifiable = named == have && udp.checksum() != 0;
    if verifiable && !checksum::udp_is_valid(view.source(), view.destination(), view.payload()) {
        return Err(WireError::UdpChecksum { found: udp.checksum() });
    }
    Ok(())
}

/// BTH and METH of the UDP datagram of a trimmed packet; what a switch may
/// have left after them does not count.
// spec: NACK-1, W-16
fn parse_trimmed<'a>(udp_datagram: &[u8]) -> Result<(Bth, Body<'a>), WireError> {
    let bytes = udp_datagram.get(UDP..).unwrap_or_default();
    let Some(after_bth) = bytes.get(BTH..).filter(|rest| rest.len() >= METH) else {
        return Err(WireError::TrimmedTooShort { have: bytes.len() });
    };
    let bth = Bth::parse(bytes)?;
    Ok((bth, Body::parse_trimmed(&bth, after_bth)?))
}

/// BTH and body of a packet that nobody cut.
fn parse_whole<'a>(
    view: FrameView<'a>,
    format: &FrameFormat,
) -> Result<(Bth, Body<'a>), WireError> {
    let datagram = match format.icrc {
        true => without_icrc(view.datagram())?,
        false => view.datagram(),
    };
    let bytes = datagram.get(IPV4 + UDP..).unwrap_or_default();
    let bth = Bth::parse(bytes)?;
    Ok((bth, Body::parse(&bth, &bytes[BTH..])?))
}

/// Verifies the ICRC at the end of `datagram` and cuts it off.
// spec: W-3
fn without_icrc(datagram: &[u8]) -> Result<&[u8], WireError> {
    let have = datagram.len().saturating_sub(COMMON);
    let short = WireError::TooShort { header: Header::Icrc, have };
    let (covered, found) = datagram.split_last_chunk::<ICRC>().ok_or(short)?;
    let computed = icrc::compute(covered).ok_or(short)?;
    if computed != *found {
        return Err(WireError::Icrc { found: u32::from_be_bytes(*found) });
    }
    Ok(covered)
}
