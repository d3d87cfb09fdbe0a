//! `[traffic]`: flows between many NICs that follow from a pattern.

use toml::de::DeValue;

use super::findings::list;
use super::flows;
use super::names::Names;
use super::section::Section;
use crate::rng::Rng;
use crate::scenario::Flow;

const KINDS: [&str; 4] = ["permutation", "incast", "all-to-all", "ring"];

/// Reads the section, if there is one; `top` is the whole file, and `seed` draws
/// a permutation.
// spec: WL-1
pub(super) fn read(top: &Section<'_>, names: &Names, seed: u64) -> Vec<Flow> {
    let Some(section) = top.inner("traffic") else { return Vec::new() };
    let wanted = format!("one of {}", list(KINDS.into_iter()));
    let find = |value: &DeValue<'_>| KINDS.into_iter().find(|kind| value.as_str() == Some(*kind));
    let Some(kind) = section.required("kind", &wanted, find) else {
        return Vec::new();
    };
    let own: &[&str] = match kind {
        "permutation" => &["kind", "hosts", "shift"],
        "incast" => &["kind", "hosts", "to"],
        _ => &["kind", "hosts"],
    };
    section.allow_keys(&[own, &flows::PROPERTIES].concat());
    let flow = flows::read_properties(&section);
    let to = if kind == "incast" { names.nic(&section, "to") } else { None };
    let pairs = read_hosts(&section, names).and_then(|hosts| match kind {
        "permutation" => permutation(&section, &hosts, seed),
        "incast" => Some(incast(&hosts, to?)),
        "ring" => Some(shifted(&hosts, 1)),
        _ => Some((1..hosts.len()).flat_map(|shift| shifted(&hosts, shift)).collect()),
    });
    let (Some(flow), Some(pairs)) = (flow, pairs) else { return Vec::new() };
    pairs.into_iter().map(|(from, to)| Flow { from, to, ..flow.clone() }).collect()
}

type Pairs = Vec<(usize, usize)>;

/// The NICs that take part: those that the section names, or all.
fn read_hosts(section: &Section<'_>, names: &Names) -> Option<Vec<usize>> {
    let hosts = match section.has("hosts") {
        true => names.nics(section, "hosts")?,
        false => (0..names.nic_count()).collect(),
    };
    if hosts.len() < 2 {
        section.refuse("needs two NICs or more to send between");
        return None;
    }
    Some(hosts)
}

/// Each host sends to the one that comes `shift` after it.
fn shifted(hosts: &[usize], shift: usize) -> Pairs {
    let to = hosts.iter().cycle().skip(shift);
    hosts.iter().zip(to).map(|(from, to)| (*from, *to)).collect()
}

/// Each host sends to one and receives from one. Drawn, they are all on one
/// cycle, so that none sends to itself.
fn permutation(section: &Section<'_>, hosts: &[usize], seed: u64) -> Option<Pairs> {
    if section.has("shift") {
        let shift = section.whole("shift", 1, hosts.len() as u64 - 1)?;
        return Some(shifted(hosts, shift as usize));
    }
    let mut rng = Rng::derive(seed, "traffic permutation", 0);
    let mut to = hosts.to_vec();
    for last in (1..to.len()).rev() {
        to.swap(last, rng.below(last as u64) as usize);
    }
    Some(hosts.iter().copied().zip(to).collect())
}

/// Each other host sends to one.
fn incast(hosts: &[usize], to: usize) -> Pairs {
    hosts.iter().filter(|from| **from != to).map(|from| (*from, to)).collect()
}
