//! Traffic classes: what a port tells apart when it queues and sends.

use crate::config::{SWITCH_CLASSES, SwitchAttributes};
use crate::wire::role::Role;

/// TC0 to TC7; the highest leaves first.
// spec: SW-4, SW-10
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TrafficClass(u8);

impl TrafficClass {
    /// TC0: under the UET policy everything that is in no other class.
    pub const DATA: Self = Self(0);
    /// TC1: under the UET policy packets cut to their headers, here or on the
    /// way here.
    pub const TRIMMED: Self = Self(1);
    /// TC2: under the UET policy ACKs, SACKs and NACKs.
    pub const CONTROL: Self = Self(2);

    /// All classes, TC0 first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..SWITCH_CLASSES as u8).map(Self)
    }

    /// Its number, 0 to 7.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The class of a packet under the UET policy.
    // spec: DSCP-4, SW-15
    pub const fn of_role(role: Option<Role>) -> Self {
        match role {
            Some(Role::Control) => Self::CONTROL,
            Some(role) if role.is_trimmed() => Self::TRIMMED,
            _ => Self::DATA,
        }
    }

    /// The class of a packet without the UET policy.
    // spec: DSCP-7, SW-4
    pub const fn of_codepoint(dscp: u8) -> Self {
        Self((dscp & 0x3F) / 8)
    }

    /// The class of a packet with this role and codepoint.
    pub(super) const fn of(attributes: &SwitchAttributes, role: Option<Role>, dscp: u8) -> Self {
        if attributes.uet_policy_enabled { Self::of_role(role) } else { Self::of_codepoint(dscp) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: DSCP-4, SW-15
    #[test]
    fn the_role_gives_the_class_under_the_uet_policy() {
        let classes = [
            (Some(Role::NoTrim), TrafficClass::DATA),
            (Some(Role::Trimmable), TrafficClass::DATA),
            (Some(Role::TrimmableRtx), TrafficClass::DATA),
            (Some(Role::Trimmed), TrafficClass::TRIMMED),
            (Some(Role::TrimmedLastHop), TrafficClass::TRIMMED),
            (Some(Role::Control), TrafficClass::CONTROL),
            (None, TrafficClass::DATA),
        ];
        let uet = SwitchAttributes::default();
        for (role, class) in classes {
            assert_eq!(TrafficClass::of(&uet, role, 63), class, "{role:?}");
        }
    }

    // spec: DSCP-7, SW-4
    #[test]
    fn without_it_the_codepoint_gives_the_class_eight_to_each() {
        let plain = SwitchAttributes { uet_policy_enabled: false, ..SwitchAttributes::default() };
        for dscp in 0..64 {
            let class = TrafficClass::of(&plain, Some(Role::Control), dscp);
            assert_eq!(class.index(), usize::from(dscp) / 8);
        }
    }
}
