//! What a NIC's attributes may not be together, though each is allowed by itself.

use super::buffers::{BufferAttributes, PcieSide};
use super::nic::{NicAttributes, RttTimestampMode};
use super::nic_table::NIC_ATTRIBUTES;
use crate::time::Duration;
use crate::units::show_duration;
use crate::wire::packet::SACK_WIRE_BYTES;
use crate::wire::role::{CodepointError, Role};

/// Why no NIC starts with certain attributes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{attribute} = {value}`: {wanted}; {remedy}")]
pub struct Problem {
    /// The attribute.
    pub attribute: &'static str,
    /// Its value, as a scenario file writes it but for the quotes around text.
    pub value: String,
    /// What is allowed.
    pub wanted: String,
    /// What to do.
    pub remedy: String,
}

/// The names of a buffer's attributes.
struct BufferNames {
    total: &'static str,
    shares: &'static str,
}

const EGRESS: BufferNames = BufferNames {
    total: "EgressBufferManager.TotalBufferSize",
    shares: "EgressBufferManager.PoolAllocationVector",
};
const INGRESS: BufferNames = BufferNames {
    total: "IngressBufferManager.TotalBufferSize",
    shares: "IngressBufferManager.PoolAllocationVector",
};

/// The names of a PCIe side's buffers: data and headers to be sent, data and
/// headers that have arrived.
type SideNames = [&'static str; 4];

const NIC_SIDE: SideNames = [
    "PcieNicSide.TXDataBufferSize",
    "PcieNicSide.TXHeaderBufferSize",
    "PcieNicSide.RXDataBufferSize",
    "PcieNicSide.RXHeaderBufferSize",
];
const HOST_SIDE: SideNames = [
    "PcieHostSide.TXDataBufferSize",
    "PcieHostSide.TXHeaderBufferSize",
    "PcieHostSide.RXDataBufferSize",
    "PcieHostSide.RXHeaderBufferSize",
];

/// What a PCIe side sends in one piece.
struct Run {
    what: &'static str,
    payload: u64,
    attribute: &'static str,
}

/// The longest base timeout under which timestamps on the wire, which repeat
/// after 8.388608 ms, tell round trips apart.
const LONGEST_TIMESTAMPED: Duration = Duration::from_ms(8);

/// All of a buffer, in millionths.
const WHOLE_PPM: u64 = 1_000_000;

impl NicAttributes {
    /// Everything for which no NIC starts with these attributes; empty when one
    /// does.
    // spec: PB-8
    pub fn problems(&self) -> Vec<Problem> {
        let mut check = Check { nic: self, found: Vec::new() };
        check.timestamps();
        check.congestion();
        check.pcie();
        check.buffer(&EGRESS, &self.egress_buffer);
        check.buffer(&INGRESS, &self.ingress_buffer);
        check.thresholds();
        check.codepoints();
        check.found
    }
}

struct Check<'a> {
    nic: &'a NicAttributes,
    found: Vec<Problem>,
}

impl Check<'_> {
    fn refuse(&mut self, attribute: &'static str, wanted: String, remedy: impl Into<String>) {
        let value = NIC_ATTRIBUTES.find(attribute).map_or_else(String::new, |a| a.show(self.nic));
        self.found.push(Problem { attribute, value, wanted, remedy: remedy.into() });
    }

    // spec: RTT-2
    fn timestamps(&mut self) {
        let timeout = self.nic.initial_ack_timeout;
        let mode = self.nic.rtt_timestamp_mode;
        if mode == RttTimestampMode::WireTimestamp && timeout > LONGEST_TIMESTAMPED {
            self.refuse(
                "RTTTimestampMode",
                format!(
                    "timestamps repeat after 8.388608 ms, so InitialAckTimeout must be at most {}, and it is {}",
                    show_duration(LONGEST_TIMESTAMPED),
                    show_duration(timeout)
                ),
                "lower InitialAckTimeout, or choose LocalDatabase",
            );
        }
    }

    // spec: CC-12
    fn congestion(&mut self) {
        let nic = self.nic;
        if nic.target_queue_delay() == Duration::ZERO {
            self.refuse("TargetQueueDelay", "must be above 0".to_owned(), "raise it");
        }
        if nic.congestion.reference_rtt == Duration::ZERO {
            self.refuse("ReferenceNetworkRTT", "must be above 0".to_owned(), "raise it");
        }
        let window = nic.data_rate.bytes_in(nic.config_base_rtt).saturating_mul(3) / 2;
        let (least, most) = (nic.nominal_packet(), u64::from(u32::MAX));
        if !(least..=most).contains(&window) {
            self.refuse(
                "ConfigBaseRTT",
                format!(
                    "1.5 x DataRate x ConfigBaseRTT, the largest window, must be {least} (a full packet) to {most} bytes, and is {window}"
                ),
                if window < least { "raise it, or DataRate" } else { "lower it, or DataRate" },
            );
        }
    }

    // spec: PB-2, PB-4
    fn pcie(&mut self) {
        let nic = self.nic;
        let payload =
            Run { what: "a full packet's payload", payload: u64::from(nic.mss), attribute: "MSS" };
        let request = Run {
            what: "a read request",
            payload: u64::from(nic.read_request_bytes),
            attribute: "ReadRequestSize",
        };
        self.pcie_side(&HOST_SIDE, &nic.pcie_host, &payload);
        let larger = if request.payload > payload.payload { request } else { payload };
        self.pcie_side(&NIC_SIDE, &nic.pcie_nic, &larger);
    }

    /// A side holds the largest run that it sends, and any transfer that it gets.
    fn pcie_side(&mut self, names: &SideNames, side: &PcieSide, run: &Run) {
        let [tx_data, tx_header, rx_data, rx_header] = *names;
        let Run { what, payload, attribute } = run;
        let lower = format!("raise it, or lower {attribute}");
        self.holds(tx_data, side.tx_data_bytes, *payload, what, &lower);
        let (needed, overhead) = (PcieSide::overhead(*payload), format!("the overhead of {what}"));
        self.holds(tx_header, side.tx_header_bytes, needed, &overhead, &lower);
        let (payload, overhead) = (PcieSide::TRANSFER_PAYLOAD, PcieSide::TRANSFER_OVERHEAD);
        self.holds(rx_data, side.rx_data_bytes, payload, "a transfer's payload", "raise it");
        self.holds(rx_header, side.rx_header_bytes, overhead, "a transfer's overhead", "raise it");
    }

    /// The buffer `name` of `bytes` has room for the `needed` bytes of `what`.
    fn holds(&mut self, name: &'static str, bytes: u64, needed: u64, what: &str, remedy: &str) {
        if bytes < needed {
            self.refuse(name, format!("must hold {what}, {needed} bytes"), remedy);
        }
    }

    // spec: PB-8
    fn buffer(&mut self, names: &BufferNames, buffer: &BufferAttributes) {
        let ppm = || buffer.shares.iter().map(|share| u64::from(share.as_ppm()));
        let used = ppm().filter(|ppm| *ppm > 0).count();
        let first = ppm().take_while(|ppm| *ppm > 0).count();
        if first < used {
            let wanted = "shares above 0 come first, without gaps".to_owned();
            self.refuse(names.shares, wanted, "move the zeros to the end");
        }
        if used < 2 {
            let wanted = "must have a share above 0 for data and one for control".to_owned();
            self.refuse(names.shares, wanted, "add what lacks, such as [0.9, 0.1]");
        }
        if ppm().sum::<u64>() > WHOLE_PPM {
            let wanted = "shares must add up to 1 at most".to_owned();
            self.refuse(names.shares, wanted, "lower some of them");
        }
        if first >= 2 {
            self.pools(names, buffer);
        }
    }

    /// Each pool holds the largest packet of its class.
    // spec: PB-8, W-3
    fn pools(&mut self, names: &BufferNames, buffer: &BufferAttributes) {
        let nic = self.nic;
        let packet = u64::from(nic.mss) + nic.data_overhead();
        let sack = SACK_WIRE_BYTES as u64 + nic.icrc_bytes();
        for (class, pool, needed, what, lower) in [
            (0, "data", packet, "a full packet", ", or lower MSS"),
            (1, "control", sack, "a SACK", ""),
        ] {
            let bytes = buffer.pool_bytes(class);
            if bytes < needed {
                let share = buffer.shares[class];
                let total = (needed * WHOLE_PPM).div_ceil(u64::from(share.as_ppm()));
                self.refuse(
                    names.total,
                    format!(
                        "its {pool} pool, {share} of it, must hold {what}, {needed} bytes, and has {bytes}"
                    ),
                    format!("raise it to {total} or more, or raise the share{lower}"),
                );
            }
        }
    }

    // spec: PB-12, PB-14
    fn thresholds(&mut self) {
        let nic = self.nic;
        if nic.pfc.xon > nic.pfc.xoff {
            self.refuse(
                "PfcXonResumeThreshold",
                format!("must be at most PfcStaticXoffThreshold, {}", nic.pfc.xoff),
                "lower it, or raise the other",
            );
        }
        let high = nic.receiver_congestion_high;
        if nic.receiver_congestion_low >= high {
            self.refuse(
                "ReceiverCongestionLowThreshold",
                format!("must be below ReceiverCongestionHighThreshold, {high}"),
                "lower it, or raise the other",
            );
        }
    }

    // spec: W-13
    fn codepoints(&mut self) {
        for fault in self.nic.codepoints.faults() {
            match fault {
                CodepointError::OutOfRange { role, .. } => {
                    self.refuse(codepoint(role), "must be 0 to 63".to_owned(), "lower it");
                }
                CodepointError::Shared { first, second, .. } => self.refuse(
                    codepoint(second),
                    format!("{} is the same, and all six codepoints must differ", codepoint(first)),
                    "give each its own",
                ),
            }
        }
    }
}

/// The attribute of this role's codepoint.
const fn codepoint(role: Role) -> &'static str {
    match role {
        Role::NoTrim => "DscpNoTrim",
        Role::Trimmable => "DscpTrimmable",
        Role::TrimmableRtx => "DscpTrimmableRetransmission",
        Role::Trimmed => "DscpTrimmed",
        Role::TrimmedLastHop => "DscpTrimmedLastHop",
        Role::Control => "DscpControl",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems of the reference with these attributes set.
    fn problems(settings: &[(&str, &str)]) -> Vec<String> {
        let mut nic = NicAttributes::default();
        for (name, value) in settings {
            NIC_ATTRIBUTES.set(&mut nic, name, value).expect("each is allowed by itself");
        }
        nic.problems().iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn assert_fine(settings: &[(&str, &str)]) {
        assert_eq!(problems(settings), [""; 0], "{settings:?}");
    }

    #[test]
    fn every_profile_is_fine() {
        for profile in crate::config::Profile::ALL {
            assert_eq!(profile.nic().problems(), [], "{profile:?}");
        }
    }

    // spec: PB-8
    #[test]
    fn pools_are_two_or_more_without_gaps_and_within_the_buffer() {
        for manager in ["Egress", "Ingress"] {
            let name = format!("{manager}BufferManager.PoolAllocationVector");
            let found = |value: &str| problems(&[(&name, value)]);
            let error = |value: &str, what: &str| [format!("`{name} = {value}`: {what}")];
            let gap = "shares above 0 come first, without gaps; move the zeros to the end";
            let few = "must have a share above 0 for data and one for control; add what lacks, such as [0.9, 0.1]";
            let much = "shares must add up to 1 at most; lower some of them";
            assert_eq!(found("[0.9, 0, 0.1]"), error("[0.9, 0, 0.1]", gap));
            assert_eq!(found("[1]"), error("[1]", few));
            assert_eq!(found("[0.9, 0.100001]"), error("[0.9, 0.100001]", much));
            assert_eq!(found("[0, 1]"), [error("[0, 1]", gap), error("[0, 1]", few)].concat());
            assert_fine(&[(&name, "[0.5, 0.25, 0.25, 0, 0]")]);
        }
    }

    // spec: PB-8, W-3
    #[test]
    fn each_pool_holds_the_largest_packet_of_its_class() {
        for manager in ["Egress", "Ingress"] {
            let total = format!("{manager}BufferManager.TotalBufferSize");
            let shares = format!("{manager}BufferManager.PoolAllocationVector");
            let with = |bytes: &str, more: &[(&str, &str)]| {
                problems(&[&[(total.as_str(), bytes), (&shares, "[0.5, 0.5]")], more].concat())
            };
            assert_eq!(with("8348", &[]), [""; 0]);
            assert_eq!(
                with("8347", &[]),
                [format!(
                    "`{total} = 8347 B`: its data pool, 0.5 of it, must hold a full packet, 4174 bytes, and has 4173; raise it to 8348 or more, or raise the share, or lower MSS"
                )]
            );
            let longer = [("Icrc", "true"), ("RTTTimestampMode", "WireTimestamp")];
            assert_eq!(with("8364", &longer), [""; 0]);
            assert!(with("8363", &longer)[0].contains("4182 bytes, and has 4181"));
            let small = [("MSS", "1")];
            assert_eq!(with("188", &small), [""; 0]);
            assert_eq!(
                with("187", &small),
                [format!(
                    "`{total} = 187 B`: its control pool, 0.5 of it, must hold a SACK, 94 bytes, and has 93; raise it to 188 or more, or raise the share"
                )]
            );
            assert!(with("195", &[("MSS", "1"), ("Icrc", "true")])[0].contains("98 bytes"));
        }
    }

    // spec: RTT-2
    #[test]
    fn timestamps_on_the_wire_need_a_short_timeout() {
        let mode = ("RTTTimestampMode", "WireTimestamp");
        assert_fine(&[mode, ("InitialAckTimeout", "8 ms")]);
        assert_fine(&[("InitialAckTimeout", "9 ms")]);
        assert_eq!(
            problems(&[mode, ("InitialAckTimeout", "8001 us")]),
            [
                "`RTTTimestampMode = WireTimestamp`: timestamps repeat after 8.388608 ms, so InitialAckTimeout must be at most 8 ms, and it is 8001 us; lower InitialAckTimeout, or choose LocalDatabase"
            ]
        );
    }

    // spec: PB-2, PB-4
    #[test]
    fn pcie_buffers_hold_what_is_sent_and_what_arrives() {
        for (side, field, enough, needed, remedy) in [
            ("NicSide", "TXData", "4096", "a full packet's payload, 4096 bytes", ", or lower MSS"),
            ("HostSide", "TXData", "4096", "a full packet's payload, 4096 bytes", ", or lower MSS"),
            (
                "NicSide",
                "TXHeader",
                "272",
                "the overhead of a full packet's payload, 272 bytes",
                ", or lower MSS",
            ),
            (
                "HostSide",
                "TXHeader",
                "272",
                "the overhead of a full packet's payload, 272 bytes",
                ", or lower MSS",
            ),
            ("NicSide", "RXData", "512", "a transfer's payload, 512 bytes", ""),
            ("HostSide", "RXData", "512", "a transfer's payload, 512 bytes", ""),
            ("NicSide", "RXHeader", "34", "a transfer's overhead, 34 bytes", ""),
            ("HostSide", "RXHeader", "34", "a transfer's overhead, 34 bytes", ""),
        ] {
            let name = format!("Pcie{side}.{field}BufferSize");
            assert_fine(&[(&name, enough)]);
            let less = (enough.parse::<u64>().unwrap() - 1).to_string();
            let found = problems(&[(&name, &less)]);
            assert_eq!(
                found,
                [format!("`{name} = {less} B`: must hold {needed}; raise it{remedy}")]
            );
        }
        let requests = |size| {
            let settings = [
                ("MSS", "1000"),
                ("ReadRequestSize", size),
                ("PcieNicSide.TXDataBufferSize", "2 KB"),
            ];
            problems(&settings)
        };
        assert_eq!(requests("2000"), [""; 0]);
        assert_eq!(
            requests("2001"),
            [
                "`PcieNicSide.TXDataBufferSize = 2 KB`: must hold a read request, 2001 bytes; raise it, or lower ReadRequestSize"
            ]
        );
    }

    // spec: PB-12, PB-14
    #[test]
    fn thresholds_are_in_order() {
        assert_fine(&[("PfcStaticXoffThreshold", "0.4")]);
        assert_fine(&[("ReceiverCongestionLowThreshold", "0.749999")]);
        assert_eq!(
            problems(&[
                ("PfcStaticXoffThreshold", "0.39"),
                ("ReceiverCongestionLowThreshold", "0.75")
            ]),
            [
                "`PfcXonResumeThreshold = 0.4`: must be at most PfcStaticXoffThreshold, 0.39; lower it, or raise the other",
                "`ReceiverCongestionLowThreshold = 0.75`: must be below ReceiverCongestionHighThreshold, 0.75; lower it, or raise the other",
            ]
        );
    }

    // spec: W-13
    #[test]
    fn codepoints_differ_and_fit() {
        assert_eq!(
            problems(&[("DscpTrimmed", "0"), ("DscpControl", "8")]),
            [
                "`DscpTrimmed = 0`: DscpNoTrim is the same, and all six codepoints must differ; give each its own",
                "`DscpControl = 8`: DscpTrimmableRetransmission is the same, and all six codepoints must differ; give each its own",
            ]
        );
        let mut nic = NicAttributes::default();
        nic.codepoints.trimmable = 64;
        assert_eq!(
            nic.problems()[0].to_string(),
            "`DscpTrimmable = 64`: must be 0 to 63; lower it"
        );
    }

    #[test]
    fn all_problems_are_found_at_once() {
        let found = problems(&[
            ("PcieHostSide.RXHeaderBufferSize", "1"),
            ("EgressBufferManager.PoolAllocationVector", "[1]"),
            ("IngressBufferManager.TotalBufferSize", "1"),
            ("PfcXonResumeThreshold", "1"),
            ("DscpControl", "0"),
        ]);
        assert_eq!(found.len(), 6, "{found:#?}");
    }
}
