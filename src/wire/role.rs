//! Packet roles and the DSCP codepoints that carry them.

use core::fmt;

/// What a packet is to the network: decides its class, its trimming and how it
/// is recognised when trimmed.
// spec: DSCP-1
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Data that no switch may trim, and probes.
    NoTrim,
    /// Data that a switch may trim.
    Trimmable,
    /// A retransmission that a switch may trim.
    TrimmableRtx,
    /// Data that a switch has cut to its headers.
    Trimmed,
    /// The same, on the port that faces the receiving NIC.
    TrimmedLastHop,
    /// ACK, SACK and NACK.
    Control,
}

impl Role {
    /// All roles, in the order of [`Codepoints`]' fields.
    pub const ALL: [Self; 6] = [
        Self::NoTrim,
        Self::Trimmable,
        Self::TrimmableRtx,
        Self::Trimmed,
        Self::TrimmedLastHop,
        Self::Control,
    ];

    /// The name as records print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoTrim => "NO_TRIM",
            Self::Trimmable => "TRIMMABLE",
            Self::TrimmableRtx => "TRIMMABLE_RTX",
            Self::Trimmed => "TRIMMED",
            Self::TrimmedLastHop => "TRIMMED_LAST_HOP",
            Self::Control => "CONTROL",
        }
    }

    /// The role with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// True for what a switch has cut to its headers, on any hop.
    pub const fn is_trimmed(self) -> bool {
        matches!(self, Self::Trimmed | Self::TrimmedLastHop)
    }

    /// True for what a switch may trim.
    pub const fn is_trimmable(self) -> bool {
        matches!(self, Self::Trimmable | Self::TrimmableRtx)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The DSCP value (0 to 63) of each role: an operator's choice, the same
/// across a lab.
// spec: W-13
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Codepoints {
    /// Of [`Role::NoTrim`].
    pub no_trim: u8,
    /// Of [`Role::Trimmable`].
    pub trimmable: u8,
    /// Of [`Role::TrimmableRtx`].
    pub trimmable_rtx: u8,
    /// Of [`Role::Trimmed`].
    pub trimmed: u8,
    /// Of [`Role::TrimmedLastHop`].
    pub trimmed_last_hop: u8,
    /// Of [`Role::Control`].
    pub control: u8,
}

impl Default for Codepoints {
    fn default() -> Self {
        Self {
            no_trim: 0,
            trimmable: 4,
            trimmable_rtx: 8,
            trimmed: 12,
            trimmed_last_hop: 16,
            control: 46,
        }
    }
}

/// Why a set of codepoints cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodepointError {
    /// The value does not fit the DSCP field.
    #[error("the codepoint of {role} is {dscp}, above 63")]
    OutOfRange {
        /// The role.
        role: Role,
        /// Its value.
        dscp: u8,
    },
    /// Two roles could not be told apart.
    #[error("{first} and {second} have the same codepoint {dscp}")]
    Shared {
        /// One role.
        first: Role,
        /// The other.
        second: Role,
        /// Their value.
        dscp: u8,
    },
}

impl Codepoints {
    /// Each role whose codepoint cannot be used: above 63, or the same as that
    /// of a role before it.
    // spec: W-13
    pub fn faults(&self) -> Vec<CodepointError> {
        let fault = |(index, second): (usize, Role)| {
            let dscp = self.dscp(second);
            if dscp > 63 {
                return Some(CodepointError::OutOfRange { role: second, dscp });
            }
            let first = Role::ALL[..index].iter().find(|role| self.dscp(**role) == dscp)?;
            Some(CodepointError::Shared { first: *first, second, dscp })
        };
        Role::ALL.into_iter().enumerate().filter_map(fault).collect()
    }

    /// The DSCP value of `role`.
    pub const fn dscp(&self, role: Role) -> u8 {
        match role {
            Role::NoTrim => self.no_trim,
            Role::Trimmable => self.trimmable,
            Role::TrimmableRtx => self.trimmable_rtx,
            Role::Trimmed => self.trimmed,
            Role::TrimmedLastHop => self.trimmed_last_hop,
            Role::Control => self.control,
        }
    }

    /// The role with this DSCP value; `None` for a value that is no role's.
    pub fn role(&self, dscp: u8) -> Option<Role> {
        Role::ALL.into_iter().find(|&role| self.dscp(role) == dscp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: DSCP-1, W-13
    #[test]
    fn every_role_is_found_by_its_codepoint_and_its_name() {
        let codepoints = Codepoints::default();
        assert_eq!(codepoints.faults(), []);
        assert_eq!(Role::ALL.map(|role| codepoints.dscp(role)), [0, 4, 8, 12, 16, 46]);
        for role in Role::ALL {
            assert_eq!(codepoints.role(codepoints.dscp(role)), Some(role));
            assert_eq!(Role::from_name(role.name()), Some(role));
        }
        assert_eq!(codepoints.role(1), None);
    }

    // spec: W-13
    #[test]
    fn codepoints_that_are_shared_or_too_large_are_refused_by_name() {
        let wrong =
            Codepoints { trimmable: 64, control: 12, trimmed_last_hop: 0, ..Codepoints::default() };
        let messages: Vec<_> = wrong.faults().iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "the codepoint of TRIMMABLE is 64, above 63",
                "NO_TRIM and TRIMMED_LAST_HOP have the same codepoint 0",
                "TRIMMED and CONTROL have the same codepoint 12",
            ]
        );
    }
}
