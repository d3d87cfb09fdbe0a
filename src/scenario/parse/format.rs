//! What all nodes of a lab must agree on.

use super::section::Section;
use crate::config::{Attribute, NIC_ATTRIBUTES, NicAttributes};
use crate::scenario::{NicSpec, SwitchSpec};

/// The attributes that decide how frames look.
const SHARED: [&str; 8] = [
    "Icrc",
    "UdpPort",
    "DscpNoTrim",
    "DscpTrimmable",
    "DscpTrimmableRetransmission",
    "DscpTrimmed",
    "DscpTrimmedLastHop",
    "DscpControl",
];

fn shared() -> impl Iterator<Item = &'static Attribute<NicAttributes>> {
    NIC_ATTRIBUTES.attributes().filter(|attribute| SHARED.contains(&attribute.name))
}

/// Refuses NICs whose frames would look different.
// spec: W-3, W-13
pub(super) fn check(nics: &[(Section<'_>, NicSpec)]) {
    let Some(((_, first), others)) = nics.split_first() else { return };
    for (section, nic) in others {
        for attribute in shared() {
            let [ours, firsts] = [nic, first].map(|nic| attribute.show(&nic.attributes));
            if ours != firsts {
                let (name, key) = (&nic.name, attribute.name);
                section.refuse(&format!(
                    "NIC {name} has {key} = {ours} and NIC {} has {key} = {firsts}; all NICs must agree, so set it in [nic_defaults]",
                    first.name
                ));
            }
        }
    }
}

/// Switches know MRC's packets by the same port and codepoints as the NICs.
// spec: W-13, SW-16
pub(super) fn give_to_switches(nics: &[NicSpec], switches: &mut [SwitchSpec]) {
    let Some(first) = nics.first() else { return };
    for switch in switches {
        switch.attributes.udp_port = first.attributes.udp_port;
        switch.attributes.codepoints = first.attributes.codepoints;
    }
}
