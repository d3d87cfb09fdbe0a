//! What the command line sets for all NICs, switches or flows at once.

use toml::de::DeTable;

use super::findings::Findings;
use super::section::size;
use crate::config::{
    AttributeError, NIC_ATTRIBUTES, NicAttributes, SWITCH_ATTRIBUTES, SwitchAttributes,
};
use crate::nic::Nic;
use crate::scenario::Flow;

/// The name of what is no attribute: the size of every message.
const BYTES: &str = "bytes";

/// A value for an attribute, in place of the one that a scenario's defaults
/// give it; for `bytes`, for the messages of every flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    name: String,
    value: String,
    /// What `value` is when `name` is `bytes`.
    bytes: Option<u32>,
}

impl Assignment {
    /// Sets the attribute `name` of NICs, of switches, or where both have it of
    /// both, to what `value` says: TOML, or text without its quotes.
    ///
    /// # Errors
    /// When there is no such attribute, or the value is not allowed; says so and
    /// what to do.
    // spec: TIME-3
    pub fn new(name: &str, value: &str) -> Result<Self, String> {
        let bytes = match name {
            BYTES => Some(read_bytes(value).ok_or_else(|| {
                let most = Nic::MAX_MESSAGE;
                format!("`{BYTES} = {value}`: must be a size of at most 2 GiB ({most} bytes), such as 64 MiB; correct it")
            })?),
            _ => None,
        };
        let assignment = Self { name: name.to_owned(), value: value.to_owned(), bytes };
        if bytes.is_none() {
            assignment.try_out()?;
        }
        Ok(assignment)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value as it was given.
    pub fn value(&self) -> &str {
        &self.value
    }

    fn try_out(&self) -> Result<(), String> {
        let (mut nic, mut switch) = (NicAttributes::default(), SwitchAttributes::default());
        let results = [
            NIC_ATTRIBUTES.set(&mut nic, &self.name, &self.value),
            SWITCH_ATTRIBUTES.set(&mut switch, &self.name, &self.value),
        ];
        let errors: Vec<_> = results.into_iter().filter_map(Result::err).collect();
        let refused = errors.iter().find(|error| matches!(error, AttributeError::Refused { .. }));
        match refused {
            Some(error) => Err(error.to_string()),
            None if errors.len() == 2 => Err(self.unknown(&errors)),
            None => Ok(()),
        }
    }

    fn unknown(&self, errors: &[AttributeError]) -> String {
        let mut near: Vec<_> = errors.iter().flat_map(names_nearby).collect();
        near.sort_unstable();
        near.dedup();
        let meant = match &near[..] {
            [] => String::new(),
            near => format!(" did you mean {}?", near.join(" or ")),
        };
        format!(
            "`{}` is neither an attribute of a NIC or switch nor `{BYTES}`;{meant} `mrc attributes` lists them",
            self.name
        )
    }

    /// Sets the attribute where it is one.
    pub(super) fn apply(&self, nic: &mut NicAttributes, switch: &mut SwitchAttributes) {
        // Whoever does not have it needs no value.
        let _ = NIC_ATTRIBUTES.set(nic, &self.name, &self.value);
        let _ = SWITCH_ATTRIBUTES.set(switch, &self.name, &self.value);
    }

    /// Sets the size of the messages of `flows` where it is that.
    pub(super) fn apply_to_flows(&self, flows: &mut [Flow], findings: &Findings<'_>) {
        let Some(bytes) = self.bytes else { return };
        for flow in flows {
            flow.bytes = bytes;
            if let Err(error) = super::flows::check_size(bytes.into(), flow.messages.into()) {
                findings.add_general(error);
            }
        }
    }
}

fn names_nearby(error: &AttributeError) -> impl Iterator<Item = String> + '_ {
    let near: &[&str] = match error {
        AttributeError::Unknown { near, .. } => near,
        AttributeError::Refused { .. } => &[],
    };
    near.iter().map(|name| format!("`{name}`"))
}

/// A size as a scenario file has it, or without the quotes.
fn read_bytes(text: &str) -> Option<u32> {
    let toml = format!("{BYTES} = {text}");
    let quoted = format!("{BYTES} = {text:?}");
    let read = |toml: &str| size(DeTable::parse(toml).ok()?.get_ref().get(BYTES)?.get_ref());
    let bytes = read(&toml).or_else(|| read(&quoted))?;
    u32::try_from(bytes).ok().filter(|bytes| *bytes <= Nic::MAX_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::LAB;
    use super::*;
    use crate::config::Profile;
    use crate::scenario::{Overrides, Scenario, parse_with};
    use crate::units::Rate;

    fn read(text: &str, assignments: &[(&str, &str)]) -> Result<Scenario, Vec<String>> {
        let new = |(name, value): &(&str, &str)| Assignment::new(name, value).expect("allowed");
        let assignments: Vec<_> = assignments.iter().map(new).collect();
        let overrides = Overrides { profile: Some(Profile::Tuned), seed: None };
        parse_with(&format!("{text}{LAB}"), "x.toml", &overrides, &assignments)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    // spec: TIME-3
    #[test]
    fn they_go_before_the_defaults_of_the_file_and_behind_what_a_node_says() {
        let file = "[nic_defaults]\nMSS = 1000\nMaxPSNRange = 77\n[switch_defaults]\nDataRate = '7 Gbps'\n\
                    [[nic]]\nname = 'c'\nattributes = { MSS = 500 }\n[[link]]\nends = ['c', 's']\n";
        let set = [("MSS", "2000"), ("DataRate", "100 Gbps"), ("MinThreshold", "0.5")];
        let scenario = read(file, &set).expect("it is right");
        let mss: Vec<_> = scenario.nics.iter().map(|nic| nic.attributes.mss).collect();
        assert_eq!(mss, [500, 2_000, 2_000]);
        let (nic, switch) = (&scenario.nics[1].attributes, &scenario.switches[0].attributes);
        assert_eq!(nic.max_psn_range, 77);
        assert_eq!((nic.data_rate, switch.data_rate), (Rate::gbps(100), Rate::gbps(100)));
        assert_eq!(switch.ecn.min_threshold.as_ppm(), 500_000);
    }

    // spec: SW-9
    #[test]
    fn plane_bdp_follows_what_is_assigned() {
        let bdp = |set: &[_]| read("", set).expect("it is right").switches[0].attributes.plane_bdp;
        assert_eq!(bdp(&[("DataRate", "100 Gbps"), ("ConfigBaseRTT", "12 us")]), 150_000);
        assert_eq!(bdp(&[("PlaneBDP", "70 KB"), ("ConfigBaseRTT", "12 us")]), 70_000);
    }

    // spec: WL-1
    #[test]
    fn bytes_are_those_of_every_message() {
        let file = "traffic = { kind = 'ring', bytes = 5, messages = 9 }\n\
                    [[write]]\nfrom = 'a'\nto = 'b'\nbytes = 7\n";
        for (value, bytes) in [("2000000", 2_000_000), ("64 KiB", 65_536), ("'1 KB'", 1_000)] {
            let flows = read(file, &[("bytes", value)]).expect("it is right").flows;
            assert!(flows.len() == 3 && flows.iter().all(|flow| flow.bytes == bytes), "{value}");
        }
        let many = file.replace("messages = 9", "messages = 100");
        let expected = "x.toml: 100 messages of 2000000000 bytes are more than the 68719476736 bytes of one flow; send fewer or smaller ones";
        assert_eq!(read(&many, &[("bytes", "2 GB")]), Err(vec![expected.to_owned()]));
    }

    #[test]
    fn what_is_not_known_or_not_allowed_is_said() {
        for (name, value, error) in [
            ("MSS", "0", "`MSS = 0`: must be a whole number (1 to "),
            ("Delay", "5", "`Delay = 5`: must be a time"),
            ("MinTreshold", "0.1", "did you mean `MinThreshold`? `mrc attributes` lists them"),
            (
                "colour",
                "5",
                "`colour` is neither an attribute of a NIC or switch nor `bytes`; `mrc",
            ),
            ("bytes", "3 GiB", "`bytes = 3 GiB`: must be a size of at most 2 GiB"),
            ("bytes", "", "`bytes = `: must be a size"),
        ] {
            let found = Assignment::new(name, value).expect_err(name);
            assert!(found.contains(error), "{found}");
        }
    }

    // spec: PB-8
    #[test]
    fn what_does_not_go_together_is_refused() {
        let found = read("", &[("PfcXonResumeThreshold", "1")]).expect_err("above the other");
        assert!(found.len() == 1 && found[0].contains("PfcStaticXoffThreshold"), "{found:?}");
    }
}
