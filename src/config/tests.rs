use super::*;
use crate::time::Duration;
use crate::wire::psn::Psn;

fn set(name: &str, value: &str) -> Result<NicAttributes, AttributeError> {
    let mut nic = NicAttributes::default();
    let table: toml::Table = format!("v = {value}").parse().unwrap();
    set_attribute(NIC_ATTRIBUTES, "NIC", &mut nic, name, &table["v"])?;
    Ok(nic)
}

// spec: SEG-5, RTO-4, RTO-5, RTO-8
#[test]
fn values_are_taken_in_range_and_refused_outside() {
    assert_eq!(set("MaxPSNRange", "32640").unwrap().max_psn_range, 32_640);
    assert_eq!(set("LinearRetryCount", "0").unwrap().linear_retry_count, 0);
    let timeout = set("InitialAckTimeout", "\"200 us\"").unwrap().initial_ack_timeout;
    assert_eq!(timeout, Duration::from_us(200));
    for (name, value) in [
        ("MaxPSNRange", "0"),
        ("MaxPSNRange", "32641"),
        ("LinearRetryCount", "8"),
        ("ExponentialRetryCount", "26"),
        ("InitialAckTimeout", "\"0 ns\""),
        ("InitialAckTimeout", "\"9 s\""),
        ("InitialAckTimeout", "150"),
        ("Icrc", "1"),
        ("DataRate", "\"0 Gbps\""),
        ("DscpControl", "64"),
        ("RTTTimestampMode", "\"Both\""),
    ] {
        let error = set(name, value).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(value.trim_matches('"')), "{error}");
    }
}

// case A01: a starting PSN of more than 24 bits is refused, never masked.
#[test]
fn a_first_psn_beyond_24_bits_is_refused() {
    assert_eq!(set("InitialPsn", "0xFFFFF0").unwrap().initial_psn, Psn::new(0xff_fff0));
    let error = set("InitialPsn", "0x1000005").unwrap_err().to_string();
    assert_eq!(error, "`InitialPsn = 16777221`: a whole number from 0 to 16777215");
}

#[test]
fn an_unknown_name_lists_the_known_ones() {
    let error = set("maxpsnrange", "5").unwrap_err().to_string();
    assert!(error.contains("did you mean `MaxPSNRange`?"), "{error}");
    assert!(error.contains("InitialAckTimeout"), "{error}");
}

#[test]
fn every_default_is_in_its_own_range() {
    let nic = NicAttributes::default();
    for attribute in NIC_ATTRIBUTES {
        let shown = attribute.kind.show(&nic);
        let quoted = match attribute.kind {
            Kind::Integer { .. } | Kind::Flag { .. } | Kind::Size { .. } => shown,
            _ => format!("\"{shown}\""),
        };
        let again = set(attribute.name, &quoted).unwrap();
        assert_eq!(attribute.kind.show(&again), attribute.kind.show(&nic), "{}", attribute.name);
    }
}

/// A row of the tables in docs/scenarios.md.
fn row<T>(attribute: &Attribute<T>, holder: &T) -> String {
    let (shown, allowed) = (attribute.kind.show(holder), attribute.kind.allowed());
    format!("| `{}` | {shown} | {allowed} | {} |", attribute.name, attribute.doc)
}

#[test]
fn the_documented_tables_are_those_in_the_code() {
    let document = include_str!("../../docs/scenarios.md");
    let nic = Profile::Reference.nic();
    let switch = Profile::Reference.switch();
    let rows = NIC_ATTRIBUTES.iter().map(|attribute| row(attribute, &nic));
    let rows = rows.chain(SWITCH_ATTRIBUTES.iter().map(|attribute| row(attribute, &switch)));
    let missing: Vec<_> =
        rows.filter(|row| !document.lines().any(|line| line == row.as_str())).collect();
    assert!(missing.is_empty(), "docs/scenarios.md lacks:\n{}", missing.join("\n"));
}
