//! `[[fault]]`: what goes wrong on a link, and with which packets.

use toml::de::DeValue;

use super::LinkSpec;
use super::parse::{Names, Section, list, whole};
use crate::node::link::{FaultAction, FaultRule, PacketMatch};
use crate::time::Instant;
use crate::wire::opcode::Kind;
use crate::wire::psn::Psn;
use crate::wire::qpn::Qpn;
use crate::wire::role::Role;

const ACTIONS: [&str; 5] = ["drop", "duplicate", "corrupt_bit", "hold", "trim"];
const KEYS: [&str; 18] = [
    "from",
    "to",
    "drop",
    "duplicate",
    "corrupt_bit",
    "hold",
    "trim",
    "kind",
    "role",
    "qpn",
    "psn",
    "entropy",
    "retransmission",
    "probability",
    "nth",
    "limit",
    "after",
    "before",
];
const KINDS: [(&str, Kind); 5] = [
    ("WRITE", Kind::Write),
    ("ACK", Kind::Ack),
    ("SACK", Kind::Sack),
    ("NACK", Kind::Nack),
    ("PROBE", Kind::Probe),
];
/// Queue pair numbers and PSNs have 24 bits.
const MAX_24: u64 = 0xff_ffff;

/// Reads a fault and puts its rule on the links between its ends, each of which
/// counts for itself. `links_complete` says whether a link that is not there is
/// a fault's error, and not that of a `[[link]]`.
// spec: SW-20
pub(super) fn read<'l>(
    section: &Section<'_>,
    names: &Names,
    links: impl Iterator<Item = &'l mut LinkSpec>,
    links_complete: bool,
) {
    section.allow_keys(&KEYS);
    let matches = read_match(section);
    let (action, from, to) =
        (read_action(section), names.node(section, "from"), names.node(section, "to"));
    let (Some(from), Some(to)) = (from, to) else { return };
    let mut found = false;
    for link in links {
        let Some(side) = side_towards(link, from, to) else { continue };
        found = true;
        if let Some(action) = action {
            link.faults[side].push(FaultRule { matches: matches.clone(), action });
        }
    }
    if !found && links_complete {
        let (from, to) = (names.name(from), names.name(to));
        section.refuse(&format!(
            "there is no link between {from} and {to}; a fault is on one link, so name its two ends"
        ));
    }
}

/// The end of `link` that sends from node `from` to node `to`.
fn side_towards(link: &LinkSpec, from: usize, to: usize) -> Option<usize> {
    (0..2).find(|side| link.ends[*side] == from && link.ends[1 - side] == to)
}

// spec: SW-20
fn read_action(section: &Section<'_>) -> Option<FaultAction> {
    let given: Vec<_> = ACTIONS.into_iter().filter(|key| section.has(key)).collect();
    let [key] = given[..] else {
        let given = list(given.into_iter());
        let what = format!("needs exactly one of {}; there is: {given}", ACTIONS.join(", "));
        section.refuse(&what);
        return None;
    };
    match key {
        "drop" => yes(section, key, FaultAction::Drop),
        "duplicate" => yes(section, key, FaultAction::Duplicate),
        "corrupt_bit" => section.optional(key, "a bit's number from 0, or \"random\"", read_bit),
        "hold" => section.time(key).map(FaultAction::Hold),
        _ => section.optional(key, "\"last-hop\" or \"on-the-way\"", read_trim),
    }
}

fn yes(section: &Section<'_>, key: &str, action: FaultAction) -> Option<FaultAction> {
    section.optional(key, "true, or not be there", |v| v.as_bool()?.then_some(action))
}

fn read_bit(value: &DeValue<'_>) -> Option<FaultAction> {
    let bit = match value.as_str() {
        Some(text) => return (text == "random").then_some(FaultAction::Corrupt { bit: None }),
        None => u32::try_from(whole(value)?).ok()?,
    };
    Some(FaultAction::Corrupt { bit: Some(bit) })
}

fn read_trim(value: &DeValue<'_>) -> Option<FaultAction> {
    match value.as_str()? {
        "last-hop" => Some(FaultAction::Trim { last_hop: true }),
        "on-the-way" => Some(FaultAction::Trim { last_hop: false }),
        _ => None,
    }
}

// spec: SW-20
fn read_match(section: &Section<'_>) -> PacketMatch {
    let kinds = format!("one of {}", list(KINDS.iter().map(|(name, _)| *name)));
    let roles = format!("one of {}", list(Role::ALL.iter().map(|role| role.name())));
    PacketMatch {
        kind: section.optional("kind", &kinds, |value| {
            let name = value.as_str()?;
            KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
        }),
        role: section.optional("role", &roles, |value| Role::from_name(value.as_str()?)),
        qpn: section.whole("qpn", 0, MAX_24).and_then(|qpn| Qpn::new(qpn as u32)),
        psn: section.whole("psn", 0, MAX_24).map(Psn::masked),
        entropy: section.whole("entropy", 0, u16::MAX.into()).map(|value| value as u16),
        retransmission: section.optional("retransmission", "true or false", DeValue::as_bool),
        from: section.time("after").map(|time| Instant::ZERO + time),
        until: section.time("before").map(|time| Instant::ZERO + time),
        nth: section.whole("nth", 1, u64::MAX),
        limit: section.whole("limit", 1, u64::MAX),
        probability: section
            .optional("probability", "above 0 and at most 1, such as 0.01", read_probability)
            .unwrap_or(1.0),
    }
}

fn read_probability(value: &DeValue<'_>) -> Option<f64> {
    let number = match value.as_float() {
        Some(float) => float.as_str().parse().ok()?,
        None => whole(value)? as f64,
    };
    (number > 0.0 && number <= 1.0).then_some(number)
}
