//! Why a frame was refused. Each kind of fault has its own drop counter.
// spec: W-14

use super::header::Header;
use super::mac::MacAddr;
use super::opcode::Opcode;

/// A fault in a received frame, naming the field at fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WireError {
    /// The bytes end before the header does.
    #[error("{header} cut short: {have} of {} bytes", header.size())]
    TooShort {
        /// The header that does not fit.
        header: Header,
        /// Bytes that are there.
        have: usize,
    },
    /// The EtherType is not that of the packet to be read.
    #[error("EtherType {found:#06x} is another protocol's")]
    EtherType {
        /// The EtherType.
        found: u16,
    },
    /// The IP version is not 4.
    #[error("IPv4 version is {found}")]
    IpVersion {
        /// The version.
        found: u8,
    },
    /// The IPv4 header length is below 5 words.
    #[error("IPv4 header length of {words} words is below 5")]
    IpHeaderLength {
        /// The header length in 32-bit words.
        words: u8,
    },
    /// The IPv4 header carries options; MRC packets have none.
    #[error("IPv4 header of {words} words has options")]
    IpOptions {
        /// The header length in 32-bit words.
        words: u8,
    },
    /// The IPv4 total length is less than the header or more than the frame.
    #[error("IPv4 total length {named} does not fit the {have} bytes of the frame")]
    IpLength {
        /// The total length the header names.
        named: u16,
        /// Bytes after the Ethernet header.
        have: usize,
    },
    /// The IPv4 header checksum is wrong.
    #[error("IPv4 header checksum {found:#06x} is wrong")]
    IpChecksum {
        /// The checksum field.
        found: u16,
    },
    /// The packet is a fragment.
    #[error("IPv4 fragment")]
    IpFragment,
    /// The IPv4 protocol is not UDP.
    #[error("IPv4 protocol {found} is not UDP")]
    IpProtocol {
        /// The protocol number.
        found: u8,
    },
    /// The UDP destination port is not the lab's.
    #[error("UDP destination port {found} is not MRC's")]
    UdpPort {
        /// The destination port.
        found: u16,
    },
    /// The UDP length does not agree with the IPv4 total length.
    #[error("UDP length {named} does not agree with the {have} bytes of the IPv4 payload")]
    UdpLength {
        /// The length the header names.
        named: u16,
        /// Bytes of the IPv4 payload.
        have: usize,
    },
    /// A UDP checksum is present and wrong.
    #[error("UDP checksum {found:#06x} is wrong")]
    UdpChecksum {
        /// The checksum field.
        found: u16,
    },
    /// The invariant checksum is wrong.
    #[error("ICRC {found:#010x} is wrong")]
    Icrc {
        /// The trailer, its bytes in wire order.
        found: u32,
    },
    /// The BTH names a pad count.
    #[error("BTH pad count is {found}, not 0")]
    BthPad {
        /// The pad count.
        found: u8,
    },
    /// The BTH's transport version is not 0.
    #[error("BTH transport version is {found}, not 0")]
    BthVersion {
        /// The version.
        found: u8,
    },
    /// Nobody knows this opcode.
    #[error("BTH opcode {found:#04x} is unknown")]
    UnknownOpcode {
        /// The opcode byte.
        found: u8,
    },
    /// The opcode is MRC's, but an endpoint here does not handle it.
    #[error("BTH opcode {} is not supported", opcode.name())]
    UnsupportedOpcode {
        /// The opcode.
        opcode: Opcode,
    },
    /// A packet with a trimmed codepoint lacks the headers that a NACK needs.
    #[error("trimmed packet of {have} bytes after UDP lacks its BTH and METH")]
    TrimmedTooShort {
        /// Bytes after the UDP header.
        have: usize,
    },
    /// A packet with a trimmed codepoint is not a data packet.
    #[error("trimmed packet has the opcode {}", opcode.name())]
    TrimmedOpcode {
        /// The opcode.
        opcode: Opcode,
    },
    /// A control packet goes on after its last header.
    #[error("{} carries {extra} bytes after its headers", opcode.name())]
    TrailingBytes {
        /// The packet's opcode.
        opcode: Opcode,
        /// Bytes too many.
        extra: usize,
    },
    /// The payload's size does not go with the opcode and the message's length.
    #[error("{} with {payload} bytes of a message of {message}", opcode.name())]
    DataLength {
        /// The packet's opcode.
        opcode: Opcode,
        /// Payload bytes in the packet.
        payload: usize,
        /// RETH DMA length: the message's total bytes.
        message: u32,
    },
    /// The RETH names a message above 2^31 bytes.
    #[error("RETH DMA length {found} is above 2^31")]
    MessageLength {
        /// The DMA length.
        found: u32,
    },
    /// The TSETH is of a type that is not defined.
    #[error("TSETH ftype is {found}, not 1")]
    TsethType {
        /// The type.
        found: u8,
    },
    /// The AETH is not an acknowledgement.
    #[error("AETH syndrome {found:#04x} is not ACK (0x1f)")]
    AethSyndrome {
        /// The syndrome.
        found: u8,
    },
    /// The header carries another congestion control's state.
    #[error("{header} cc_type is {found}")]
    CcType {
        /// SETH or NETH.
        header: Header,
        /// The type.
        found: u8,
    },
    /// A MAC control frame for another address than PFC's.
    #[error("MAC control frame to {found}, not 01:80:c2:00:00:01")]
    PfcDestination {
        /// The destination.
        found: MacAddr,
    },
    /// A MAC control frame that is not PFC's.
    #[error("MAC control opcode {found:#06x} is not PFC (0x0101)")]
    PfcOpcode {
        /// The opcode of MAC control.
        found: u16,
    },
}

impl WireError {
    /// The name of the counter that counts this kind of fault. It never
    /// changes between versions: records and tools name it.
    // spec: W-14
    pub const fn counter(&self) -> &'static str {
        match self {
            Self::TooShort { header, .. } => too_short(*header),
            Self::EtherType { .. } => "drop_ethertype",
            Self::IpVersion { .. } => "drop_ip_version",
            Self::IpHeaderLength { .. } => "drop_ip_header_length",
            Self::IpOptions { .. } => "drop_ip_options",
            Self::IpLength { .. } => "drop_ip_length",
            Self::IpChecksum { .. } => "drop_ip_checksum",
            Self::IpFragment => "drop_ip_fragment",
            Self::IpProtocol { .. } => "drop_ip_protocol",
            Self::UdpPort { .. } => "drop_udp_port",
            Self::UdpLength { .. } => "drop_udp_length",
            Self::UdpChecksum { .. } => "drop_udp_checksum",
            Self::Icrc { .. } => "drop_icrc",
            Self::BthPad { .. } => "drop_bth_pad",
            Self::BthVersion { .. } => "drop_bth_version",
            Self::UnknownOpcode { .. } => "drop_unknown_opcode",
            Self::UnsupportedOpcode { .. } => "drop_unsupported_opcode",
            Self::TrimmedTooShort { .. } => "drop_trimmed_too_short",
            Self::TrimmedOpcode { .. } => "drop_trimmed_opcode",
            Self::TrailingBytes { .. } => "drop_trailing_bytes",
            Self::DataLength { .. } => "drop_data_length",
            Self::MessageLength { .. } => "drop_message_length",
            Self::TsethType { .. } => "drop_tseth_type",
            Self::AethSyndrome { .. } => "drop_aeth_syndrome",
            Self::CcType { .. } => "drop_cc_type",
            Self::PfcDestination { .. } => "drop_pfc_destination",
            Self::PfcOpcode { .. } => "drop_pfc_opcode",
        }
    }
}

const fn too_short(header: Header) -> &'static str {
    match header {
        Header::Ethernet => "drop_short_ethernet",
        Header::Ipv4 => "drop_short_ipv4",
        Header::Udp => "drop_short_udp",
        Header::Bth => "drop_short_bth",
        Header::Meth => "drop_short_meth",
        Header::Tseth => "drop_short_tseth",
        Header::Reth => "drop_short_reth",
        Header::Aeth => "drop_short_aeth",
        Header::Seth => "drop_short_seth",
        Header::CcState => "drop_short_cc_state",
        Header::Neth => "drop_short_neth",
        Header::Peth => "drop_short_peth",
        Header::Icrc => "drop_short_icrc",
        Header::Pfc => "drop_short_pfc",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const HEADERS: [Header; 14] = [
        Header::Ethernet,
        Header::Ipv4,
        Header::Udp,
        Header::Bth,
        Header::Meth,
        Header::Tseth,
        Header::Reth,
        Header::Aeth,
        Header::Seth,
        Header::CcState,
        Header::Neth,
        Header::Peth,
        Header::Icrc,
        Header::Pfc,
    ];

    fn one_of_each() -> Vec<WireError> {
        let opcode = Opcode::Ack;
        let mut errors = vec![
            WireError::EtherType { found: 0 },
            WireError::IpVersion { found: 0 },
            WireError::IpHeaderLength { words: 0 },
            WireError::IpOptions { words: 6 },
            WireError::IpLength { named: 0, have: 0 },
            WireError::IpChecksum { found: 0 },
            WireError::IpFragment,
            WireError::IpProtocol { found: 0 },
            WireError::UdpPort { found: 0 },
            WireError::UdpLength { named: 0, have: 0 },
            WireError::UdpChecksum { found: 0 },
            WireError::Icrc { found: 0 },
            WireError::BthPad { found: 1 },
            WireError::BthVersion { found: 1 },
            WireError::UnknownOpcode { found: 0 },
            WireError::UnsupportedOpcode { opcode },
            WireError::TrimmedTooShort { have: 0 },
            WireError::TrimmedOpcode { opcode },
            WireError::TrailingBytes { opcode, extra: 1 },
            WireError::DataLength { opcode, payload: 0, message: 0 },
            WireError::MessageLength { found: 0 },
            WireError::TsethType { found: 0 },
            WireError::AethSyndrome { found: 0 },
            WireError::CcType { header: Header::Seth, found: 1 },
            WireError::PfcDestination { found: MacAddr::default() },
            WireError::PfcOpcode { found: 1 },
        ];
        errors.extend(HEADERS.map(|header| WireError::TooShort { header, have: 0 }));
        errors
    }

    // spec: W-14
    #[test]
    fn every_kind_of_fault_has_a_counter_and_a_text_of_its_own() {
        let errors = one_of_each();
        let counters: BTreeSet<_> = errors.iter().map(WireError::counter).collect();
        let texts: BTreeSet<_> = errors.iter().map(WireError::to_string).collect();
        assert_eq!((counters.len(), texts.len()), (errors.len(), errors.len()));
        for counter in counters {
            assert!(
                counter.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            );
        }
    }
}
