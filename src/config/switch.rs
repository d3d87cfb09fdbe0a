//! A switch's attributes.

use super::kind::{AnyRate, Choice, Flag, Size, Time};
use super::table::{Attribute, Field, Group, Table, attribute};
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

macro_rules! switch {
    ($($attribute:tt)*) => { attribute!(SwitchAttributes, $($attribute)*) };
}

/// The attributes of a switch. Its UDP port and codepoints are the lab's, set
/// with the NICs'.
pub static SWITCH_ATTRIBUTES: Table<SwitchAttributes> =
    Table { owner: "switch", groups: &[LINK, QUEUES] };

// spec: TIME-3
const LINK: Group<SwitchAttributes> = Group {
    name: "Link",
    attributes: &[
        switch!(
            "DataRate",
            AnyRate,
            data_rate,
            "Rate of every port that a link does not set otherwise."
        ),
        switch!(
            "Delay",
            Time { min: Duration::ZERO, max: Duration::from_secs(1) },
            delay,
            "Delay of links between switches."
        ),
        switch!(
            "Paced",
            Flag,
            paced,
            "Serialization and the links' delays take modelled time; false: the host's own speed."
        ),
    ],
};

// spec: SW-2, SW-16
const QUEUES: Group<SwitchAttributes> = Group {
    name: "Queues and trimming",
    attributes: &[
        switch!(
            "PlaneBDP",
            Size { min: 64, max: 1 << 40 },
            plane_bdp,
            "Egress queue limit per port and class, counted in bytes of IP datagrams."
        ),
        switch!(
            "TrimmingEnabled",
            Flag,
            trimming_enabled,
            "Cuts trimmable packets that find their queue full to their headers."
        ),
        switch!(
            "TrimIpLength",
            Choice(&[("fix", TrimIpLength::Fix), ("keep", TrimIpLength::Keep)]),
            trim_ip_length,
            "Whether a trimmed packet's lengths say what is left or what was there."
        ),
    ],
};
