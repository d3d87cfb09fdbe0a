//! `[[fault]]`: what goes wrong on a link, and with which packets.

use toml::de::{DeTable, DeValue};

use super::LinkSpec;
use super::parse::{Findings, Names, Section, list, size, whole};
use crate::node::link::{Bottleneck, FaultAction, FaultRule, PacketMatch, Shape};
use crate::time::{Duration, Instant};
use crate::units;
use crate::wire::opcode::Kind;
use crate::wire::psn::Psn;
use crate::wire::qpn::Qpn;
use crate::wire::role::Role;

/// A key of a `[[fault]]` section, but for `from` and `to`.
#[derive(Clone, Copy, Debug)]
pub struct FaultKey {
    /// Its name.
    pub name: &'static str,
    /// What its value is, in one word; empty when it is always `true`.
    pub value: &'static str,
    /// What it does.
    pub what: &'static str,
}

const fn key(name: &'static str, value: &'static str, what: &'static str) -> FaultKey {
    FaultKey { name, value, what }
}

/// Every key of a `[[fault]]` section, but for `from` and `to`.
// spec: SW-20
pub const FAULT_KEYS: [FaultKey; 23] = [
    key("drop", "", "Lose the packets; without conditions, a silent black hole"),
    key("duplicate", "", "Let a copy follow"),
    key("corrupt_bit", "N", "Flip this bit, counted from the frame's first, or a random one"),
    key("hold", "TIME", "Let them arrive that much later; others overtake them"),
    key("reorder", "N", "Let them wait until this many later packets have come"),
    key("trim", "WHERE", "Cut data to its headers: on-the-way or last-hop"),
    key("down", "", "Take the link down"),
    key("rate", "RATE", "Let them pass one after the other at this rate"),
    key("queue_limit", "SIZE", "What may wait for the rate [default: 250 KB]"),
    key("delay", "TIME", "Let them arrive that much later, in order"),
    key("jitter", "TIME", "Up to that much later still, drawn for each, in order"),
    key("kind", "KIND", "Only WRITE, ACK, SACK, NACK or PROBE"),
    key("role", "ROLE", "Only packets whose codepoint names this role"),
    key("qpn", "N", "Only to this destination QP number"),
    key("psn", "N", "Only with this PSN"),
    key("entropy", "N", "Only with this entropy value"),
    key("retransmission", "BOOL", "Only with the retransmit flag set, or not set"),
    key("nth", "N", "Only the Nth packet that the rest fits, from 1"),
    key("limit", "N", "At most this many times"),
    key("probability", "P", "With this probability"),
    key("after", "TIME", "From this time on"),
    key("before", "TIME", "Up to this time"),
    key("every", "TIME", "Let `after` to `before` come again with this period"),
];
/// Of these a fault has one, or else some of [`SHAPES`].
const ACTIONS: [&str; 7] = ["drop", "duplicate", "corrupt_bit", "hold", "reorder", "trim", "down"];
const SHAPES: [&str; 3] = ["rate", "delay", "jitter"];
/// What a fault that takes a link down may say more: it is about no packet.
const WITH_DOWN: [&str; 6] = ["from", "to", "down", "after", "before", "every"];
/// The most packets that one may wait for.
const MAX_BEHIND: u64 = 1_000;
/// What waits for a rate that is slower than the port's, in bytes, when the
/// file does not say.
const DEFAULT_QUEUE: u64 = 250_000;
const QUEUE_LIMITS: core::ops::RangeInclusive<u64> = 64..=1 << 40;
const KINDS: [(&str, Kind); 5] = [
    ("WRITE", Kind::Write),
    ("ACK", Kind::Ack),
    ("SACK", Kind::Sack),
    ("NACK", Kind::Nack),
    ("PROBE", Kind::Probe),
];
/// Queue pair numbers and PSNs have 24 bits.
const MAX_24: u64 = 0xff_ffff;

/// Reads a fault as a `[[fault]]` section has it, without `from` and `to`:
/// lines of TOML. Times count from when it comes to be.
///
/// # Errors
/// Everything that is wrong: `nth = 0: must be a whole number from 1 to ...`.
// spec: SW-20
pub fn parse_fault(text: &str) -> Result<FaultRule, Vec<String>> {
    let findings = Findings::new("", text);
    let rule = match DeTable::parse(text) {
        Ok(table) => {
            let section = Section::new("", table.span(), table.get_ref(), &findings);
            section.allow_keys(&FAULT_KEYS.map(|key| key.name));
            read_rule(&section)
        }
        Err(error) => {
            findings.add_general(format!("not TOML: {}", error.message()));
            None
        }
    };
    match rule.filter(|_| findings.is_empty()) {
        Some(rule) => Ok(rule),
        None => Err(findings.into_sorted().into_iter().map(|error| error.what).collect()),
    }
}

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
    let ends = ["from", "to"];
    let known: Vec<_> = ends.into_iter().chain(FAULT_KEYS.map(|key| key.name)).collect();
    section.allow_keys(&known);
    let rule = read_rule(section);
    let [from, to] = ends.map(|end| names.node(section, end));
    let (Some(from), Some(to)) = (from, to) else { return };
    let mut found = false;
    for link in links {
        let Some(side) = side_towards(link, from, to) else { continue };
        found = true;
        link.faults[side].extend(rule.clone());
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
fn read_rule(section: &Section<'_>) -> Option<FaultRule> {
    let matches = read_match(section);
    check_times(section, &matches);
    let action = read_action(section)?;
    if action == FaultAction::Down {
        let other = section.entries().find(|(key, _)| !WITH_DOWN.contains(key));
        other.into_iter().for_each(|(key, _)| {
            section.refuse_key(key, "a link is down for every packet; remove this or `down`");
        });
    }
    Some(FaultRule { matches, action })
}

fn check_times(section: &Section<'_>, matches: &PacketMatch) {
    let PacketMatch { from, until, every, .. } = matches;
    let from = from.unwrap_or(Instant::ZERO);
    match (until, every) {
        (Some(until), _) if *until <= from => {
            section.refuse_key("before", "must be later than `after`");
        }
        (Some(until), Some(every)) if *every < until.since(from) => {
            section.refuse_key("every", "must be at least the time from `after` to `before`");
        }
        (None, Some(_)) => {
            section.refuse_key("every", "needs `before`, the end of what comes again");
        }
        _ => {}
    }
}

// spec: SW-20
fn read_action(section: &Section<'_>) -> Option<FaultAction> {
    let given: Vec<_> = ACTIONS.into_iter().filter(|key| section.has(key)).collect();
    let shapes: Vec<_> = SHAPES.into_iter().filter(|key| section.has(key)).collect();
    if section.has("queue_limit") && !section.has("rate") {
        section.refuse_key("queue_limit", "needs `rate`, for which packets wait");
    }
    let key = match (&given[..], &shapes[..]) {
        ([key], []) => *key,
        ([], [_, ..]) => return Some(FaultAction::Shape(read_shape(section))),
        _ => {
            let there = list(given.into_iter().chain(shapes).collect::<Vec<_>>().into_iter());
            let (one, any) = (ACTIONS.join(", "), SHAPES.join(", "));
            section
                .refuse(&format!("needs exactly one of {one}, or any of {any}; there is: {there}"));
            return None;
        }
    };
    match key {
        "drop" => yes(section, key, FaultAction::Drop),
        "duplicate" => yes(section, key, FaultAction::Duplicate),
        "corrupt_bit" => section.optional(key, "a bit's number from 0, or \"random\"", read_bit),
        "hold" => section.time(key).map(FaultAction::Hold),
        "reorder" => {
            let behind = section.whole(key, 1, MAX_BEHIND)? as u32;
            Some(FaultAction::Reorder { behind })
        }
        "down" => yes(section, key, FaultAction::Down),
        _ => section.optional(key, "\"last-hop\" or \"on-the-way\"", read_trim),
    }
}

// spec: SW-20
fn read_shape(section: &Section<'_>) -> Shape {
    let rate = "a rate with a unit, such as \"200 Gbps\"";
    let rate = section.optional("rate", rate, |value| units::parse_rate(value.as_str()?).ok());
    let queue = "a size from 64 B to 1024 GiB, such as \"100 KB\"";
    let queue = section.optional("queue_limit", queue, |value| {
        size(value).filter(|bytes| QUEUE_LIMITS.contains(bytes))
    });
    let queue_limit = queue.unwrap_or(DEFAULT_QUEUE);
    let bottleneck = rate.map(|rate| Bottleneck { rate, queue_limit });
    let [delay, jitter] =
        ["delay", "jitter"].map(|key| section.time(key).unwrap_or(Duration::ZERO));
    Shape { bottleneck, delay, jitter }
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
    let from = section.time("after").map(|time| Instant::ZERO + time);
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
        // What comes again has a beginning, so that it can be another one.
        from: from.or(section.has("every").then_some(Instant::ZERO)),
        until: section.time("before").map(|time| Instant::ZERO + time),
        every: section.time("every"),
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

#[cfg(test)]
mod tests {
    use super::*;

    // spec: SW-20
    #[test]
    fn every_key_is_documented() {
        let text = include_str!("../../docs/scenarios.md");
        for FaultKey { name, .. } in FAULT_KEYS {
            let spelled = [format!("`{name}`"), format!("`{name} = ")];
            assert!(spelled.iter().any(|spelled| text.contains(spelled)), "{name}");
        }
    }

    // spec: SW-20
    #[test]
    fn faults_that_contradict_themselves_are_refused() {
        for (lines, wanted) in [
            ("drop = true\nrate = '1 Gbps'", "needs exactly one of"),
            ("drop = true\nqueue_limit = 500", "queue_limit = 500: needs `rate`"),
            ("down = true\npsn = 5", "psn = 5: a link is down for every packet"),
            ("drop = true\nafter = '1 us'\nbefore = '1 us'", "must be later than `after`"),
            ("drop = true\nbefore = '2 us'\nevery = '1 us'", "must be at least the time from"),
            ("drop = true\nevery = '1 us'", "needs `before`"),
        ] {
            let found = parse_fault(lines).expect_err(lines);
            assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
        }
    }
}
