//! The two classes of a NIC's own buffers.

use crate::wire::role::Role;

/// A class of the NIC's buffers; the higher one leaves first.
// spec: DSCP-3, PB-8
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Data, probes and whatever has an unknown codepoint.
    Data = 0,
    /// Acknowledgements, and packets that were trimmed.
    Control = 1,
}

impl Class {
    /// Both, lowest first.
    pub const ALL: [Self; 2] = [Self::Data, Self::Control];

    /// The class of a packet whose codepoint stands for `role`; `None`: for none of the six.
    // spec: DSCP-3
    pub const fn of(role: Option<Role>) -> Self {
        match role {
            Some(Role::Control | Role::Trimmed | Role::TrimmedLastHop) => Self::Control,
            _ => Self::Data,
        }
    }

    /// The one that it is not.
    pub const fn other(self) -> Self {
        match self {
            Self::Data => Self::Control,
            Self::Control => Self::Data,
        }
    }

    /// Its place in tables.
    pub const fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: DSCP-3
    #[test]
    fn what_is_neither_control_nor_trimmed_is_data() {
        for role in [Role::Control, Role::Trimmed, Role::TrimmedLastHop] {
            assert_eq!(Class::of(Some(role)), Class::Control);
        }
        for role in [Role::NoTrim, Role::Trimmable, Role::TrimmableRtx] {
            assert_eq!(Class::of(Some(role)), Class::Data);
        }
        assert_eq!(Class::of(None), Class::Data, "an unknown codepoint");
    }
}
