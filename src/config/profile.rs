//! Named sets of attribute values.

use super::{NicAttributes, SwitchAttributes};
use crate::time::Duration;
use crate::units::Rate;

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

    /// A NIC's attributes under this profile.
    pub fn nic(self) -> NicAttributes {
        let reference = NicAttributes::default();
        match self {
            Self::Reference => reference,
            // A host schedules in milliseconds, so timers are long and the
            // window follows a nominal 10 Gbps over 200 us.
            Self::Native => NicAttributes {
                initial_psn: None,
                data_rate: Rate::gbps(10),
                paced: false,
                delay: Duration::ZERO,
                config_base_rtt: Duration::from_us(200),
                initial_ack_timeout: Duration::from_ms(20),
                icrc: true,
                ..reference
            },
            // A wider PSN window keeps the sender busy while a gap is open; a
            // smaller reorder allowance finds a loss sooner; without the gate
            // every SACK may find one.
            Self::Tuned => NicAttributes {
                max_psn_range: 4_096,
                sack_loss_min_retx_pkts: 64,
                sack_gap_recovery_gate: false,
                ..reference
            },
        }
    }

    /// A switch's attributes under this profile.
    pub fn switch(self) -> SwitchAttributes {
        let reference = SwitchAttributes::default();
        match self {
            Self::Reference | Self::Tuned => reference,
            Self::Native => SwitchAttributes {
                data_rate: Rate::gbps(10),
                paced: false,
                delay: Duration::ZERO,
                plane_bdp: 250_000,
                ..reference
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: TIME-3
    #[test]
    fn native_takes_no_modelled_time_and_has_its_own_values() {
        let nic = Profile::Native.nic();
        assert!(!nic.paced && nic.icrc);
        assert_eq!(nic.window(nic.data_rate), 375_000);
        assert_eq!(nic.initial_ack_timeout, Duration::from_ms(20));
        assert_eq!(Profile::Native.switch().plane_bdp, 250_000);
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
}
