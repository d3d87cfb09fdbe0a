//! Named sets of attribute values.

use super::nic_table::NIC_ATTRIBUTES;
use super::switch_table::SWITCH_ATTRIBUTES;
use super::table::Table;
use super::{NicAttributes, SwitchAttributes};

/// A named set of attribute values; any attribute can still be set otherwise.
// spec: TIME-3
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// The protocol's documented defaults, in dilated time.
    #[default]
    Reference,
    /// The host's own speed: nothing is paced.
    Native,
    /// Reference with values that were measured to be better.
    Tuned,
}

/// A value that a profile gives an attribute in place of the reference's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The attribute.
    pub name: &'static str,
    /// Its value, as a scenario file writes it but for the quotes around text.
    pub value: &'static str,
    /// Why it is not the reference's.
    pub reason: &'static str,
}

const fn setting(name: &'static str, value: &'static str, reason: &'static str) -> Setting {
    Setting { name, value, reason }
}

// spec: TIME-3, W-3
const NATIVE_NIC: &[Setting] = &[
    setting("InitialPsn", "random", "as on a real network"),
    setting("DataRate", "10 Gbps", "nominal, for rules that need a rate"),
    setting("Delay", "0 s", "the host's own"),
    setting("Paced", "false", "nothing takes modelled time"),
    setting("ConfigBaseRTT", "200 us", "what hosts need for a round trip"),
    setting("ReferenceNetworkLinkSpeed", "10 Gbps", "as DataRate: the multipliers as they are"),
    setting("ReferenceNetworkRTT", "200 us", "as ConfigBaseRTT: the multipliers as they are"),
    setting("TargetQueueDelayMargin", "16667 ns", "ConfigBaseRTT / 12"),
    setting("BaseRttMargin", "16667 ns", "ConfigBaseRTT / 12"),
    setting(
        "KeepConfiguredMaxWindow",
        "true",
        "the host's jitter makes the shortest round trip a poor guide",
    ),
    setting("InitialAckTimeout", "20 ms", "hosts schedule in milliseconds"),
    setting("Icrc", "true", "the wires are real"),
];

// spec: TIME-3, SW-5
const NATIVE_SWITCH: &[Setting] = &[
    setting("DataRate", "10 Gbps", "nominal, for rules that need a rate"),
    setting("Delay", "0 s", "the host's own"),
    setting("Paced", "false", "nothing takes modelled time"),
    setting("TotalSharedBufferSize", "16 MB", "a host need not have 256 MB to spare"),
    setting("PlaneBDP", "250 KB", "10 Gbps over 200 us"),
];

// spec: TIME-3
const TUNED_NIC: &[Setting] = &[
    setting("MaxPSNRange", "4096", "the sender goes on longer while a gap is open"),
    setting("SACKLossMinRetxPkts", "64", "a loss is found sooner"),
    setting("SackGapRecoveryGate", "false", "every SACK may find a loss"),
];

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Reference, Self::Native, Self::Tuned];

    /// The name in scenario files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Native => "native",
            Self::Tuned => "tuned",
        }
    }

    /// The profile of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// What it sets of a NIC.
    pub const fn nic_settings(self) -> &'static [Setting] {
        match self {
            Self::Reference => &[],
            Self::Native => NATIVE_NIC,
            Self::Tuned => TUNED_NIC,
        }
    }

    /// What it sets of a switch.
    pub const fn switch_settings(self) -> &'static [Setting] {
        match self {
            Self::Reference | Self::Tuned => &[],
            Self::Native => NATIVE_SWITCH,
        }
    }

    /// A NIC's attributes under this profile.
    pub fn nic(self) -> NicAttributes {
        apply(self.nic_settings(), &NIC_ATTRIBUTES, NicAttributes::default())
    }

    /// A switch's attributes under this profile.
    pub fn switch(self) -> SwitchAttributes {
        apply(self.switch_settings(), &SWITCH_ATTRIBUTES, SwitchAttributes::default())
    }
}

fn apply<T>(settings: &[Setting], table: &Table<T>, mut holder: T) -> T {
    for Setting { name, value, .. } in settings {
        // The settings are constants, and a test applies all of them.
        table.set(&mut holder, name, value).expect("a profile sets allowed values");
    }
    holder
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use crate::units::Rate;

    // spec: TIME-3, W-3, SW-5
    #[test]
    fn native_takes_no_modelled_time_and_has_its_own_values() {
        let (nic, switch) = (Profile::Native.nic(), Profile::Native.switch());
        assert!(!nic.paced && nic.icrc && !switch.paced);
        assert_eq!((nic.delay, switch.delay), (Duration::ZERO, Duration::ZERO));
        assert_eq!((nic.data_rate, nic.initial_psn), (Rate::gbps(10), None));
        assert_eq!(nic.max_window(nic.data_rate), 375_000);
        assert_eq!(nic.initial_ack_timeout, Duration::from_ms(20));
        assert_eq!((switch.data_rate, switch.plane_bdp), (Rate::gbps(10), 250_000));
        assert_eq!(switch.buffer.total_bytes, 16_000_000);
    }

    // spec: TIME-3
    #[test]
    fn tuned_differs_from_reference_in_three_values_only() {
        let tuned = Profile::Tuned.nic();
        let back = NicAttributes {
            max_psn_range: 1024,
            sack_loss_min_retx_pkts: 512,
            sack_gap_recovery_gate: true,
            ..tuned.clone()
        };
        assert_eq!(back, Profile::Reference.nic());
        assert_eq!((tuned.max_psn_range, tuned.sack_loss_min_retx_pkts), (4096, 64));
        assert!(!tuned.sack_gap_recovery_gate);
    }

    /// Every setting applies, is shown as it is written, and changes something.
    fn check<T>(settings: &[Setting], table: &Table<T>, reference: &T, profiled: &T) {
        for Setting { name, value, .. } in settings {
            let attribute = table.find(name).unwrap_or_else(|| panic!("no attribute {name}"));
            assert_eq!(attribute.show(profiled), *value, "{name}");
            assert_ne!(attribute.show(reference), *value, "{name}");
        }
    }

    // spec: TIME-3
    #[test]
    fn every_setting_applies() {
        let (nic, switch) = (NicAttributes::default(), SwitchAttributes::default());
        for profile in Profile::ALL {
            check(profile.nic_settings(), &NIC_ATTRIBUTES, &nic, &profile.nic());
            check(profile.switch_settings(), &SWITCH_ATTRIBUTES, &switch, &profile.switch());
        }
    }
}
