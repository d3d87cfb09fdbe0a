//! A switch's attributes.

use super::table::{Attribute, Kind};
use crate::time::Duration;
use crate::units::Rate;
use crate::wire::role::Codepoints;
use crate::wire::trim::TrimIpLength;

/// Every attribute of a switch. `Default` is the reference profile.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchAttributes {
    /// Rate of every port that a link does not set otherwise.
    pub data_rate: Rate,
    /// Whether serialization and link delay take modelled time (not in native).
    pub paced: bool,
    /// Delay of links between switches.
    pub delay: Duration,
    /// Egress queue limit per port and class, in bytes of IP datagrams.
    pub plane_bdp: u64,
    /// Cuts trimmable packets that find their queue full to their headers.
    pub trimming_enabled: bool,
    /// What happens to the lengths of a trimmed packet.
    pub trim_ip_length: TrimIpLength,
    /// UDP destination port of the packets that may be trimmed.
    pub udp_port: u16,
    /// The six roles' codepoints.
    pub codepoints: Codepoints,
}

impl Default for SwitchAttributes {
    fn default() -> Self {
        Self {
            data_rate: Rate::gbps(400),
            paced: true,
            delay: Duration::from_ns(500),
            plane_bdp: 300_000,
            trimming_enabled: true,
            trim_ip_length: TrimIpLength::Fix,
            udp_port: 4791,
            codepoints: Codepoints::default(),
        }
    }
}

/// The attributes of a switch. Its UDP port and codepoints are the lab's, set
/// with the NICs'.
// spec: SW-2, SW-16
pub static SWITCH_ATTRIBUTES: &[Attribute<SwitchAttributes>] = &[
    Attribute {
        name: "DataRate",
        kind: Kind::Rate { get: |a| a.data_rate, set: |a, rate| a.data_rate = rate },
        doc: "Rate of every port that a link does not set otherwise.",
    },
    Attribute {
        name: "Delay",
        kind: Kind::Time {
            min: Duration::ZERO,
            max: Duration::from_secs(1),
            get: |a| a.delay,
            set: |a, delay| a.delay = delay,
        },
        doc: "Delay of links between switches.",
    },
    Attribute {
        name: "PlaneBDP",
        kind: Kind::Size {
            min: 64,
            max: 1 << 40,
            get: |a| a.plane_bdp,
            set: |a, bytes| a.plane_bdp = bytes,
        },
        doc: "Egress queue limit per port and class, counted in bytes of IP datagrams.",
    },
    Attribute {
        name: "TrimmingEnabled",
        kind: Kind::Flag {
            get: |a| a.trimming_enabled,
            set: |a, enabled| a.trimming_enabled = enabled,
        },
        doc: "Cuts trimmable packets that find their queue full to their headers.",
    },
    Attribute {
        name: "TrimIpLength",
        kind: Kind::Choice {
            names: &["fix", "keep"],
            get: |a| usize::from(a.trim_ip_length == TrimIpLength::Keep),
            set: |a, index| a.trim_ip_length = [TrimIpLength::Fix, TrimIpLength::Keep][index],
        },
        doc: "Whether a trimmed packet's lengths say what is left or what was there.",
    },
];
