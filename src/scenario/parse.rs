//! Reads scenario files. Everything that is wrong with a file is found in one
//! go, each with its line and what to do about it.

mod assignments;
mod execs;
mod findings;
mod flows;
mod format;
mod generate;
mod links;
mod names;
mod nodes;
mod section;
mod traffic;

#[cfg(test)]
mod generate_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traffic_tests;

use std::path::Path;

use toml::Spanned;
use toml::de::DeTable;

use super::{Exec, Flow, LinkSpec, NicSpec, Scenario, SwitchSpec, fault};
use crate::config::Profile;
use generate::Generated;
use nodes::Defaults;

pub use assignments::Assignment;
pub use findings::ScenarioError;
pub(super) use findings::{Findings, list};
pub(super) use names::Names;
pub(super) use section::{Section, size, whole};

/// What the command line says in place of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Overrides {
    /// The profile.
    pub profile: Option<Profile>,
    /// The seed of every random stream.
    pub seed: Option<u64>,
}

const KEYS: [&str; 13] = [
    "name",
    "profile",
    "seed",
    "nic_defaults",
    "switch_defaults",
    "topology",
    "nic",
    "switch",
    "link",
    "fault",
    "write",
    "traffic",
    "exec",
];

/// Reads the scenario `text`; `file` is its file's name, for messages and as
/// the scenario's name when the text gives none.
///
/// # Errors
/// Everything that is wrong, in the order of the file. When the text is not
/// TOML, only that.
// spec: WL-1, TIME-3
pub fn parse(
    text: &str,
    file: &str,
    overrides: &Overrides,
) -> Result<Scenario, Vec<ScenarioError>> {
    parse_with(text, file, overrides, &[])
}

/// The same with `assignments` in place of the file's defaults, the last of
/// several for one attribute. What a node's own section sets stays.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(
    text: &str,
    file: &str,
    overrides: &Overrides,
    assignments: &[Assignment],
) -> Result<Scenario, Vec<ScenarioError>> {
    let findings = Findings::new(file, text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        findings.add(error.span().unwrap_or_default(), format!("not TOML: {}", error.message()));
    }
    let scenario = match errors.is_empty() {
        true => read(&table, file, (overrides, assignments), &findings),
        false => None,
    };
    match scenario.filter(|_| findings.is_empty()) {
        Some(scenario) => Ok(scenario),
        None => Err(findings.into_sorted()),
    }
}

/// A part of the scenario with the section that it was read from.
type Read<'a, T> = Vec<(Section<'a>, T)>;

/// All nodes. A node's number is its index, the switches' after the NICs'.
struct Nodes<'a> {
    nics: Read<'a, NicSpec>,
    switches: Read<'a, SwitchSpec>,
}

fn read<'a>(
    table: &'a Spanned<DeTable<'a>>,
    file: &str,
    (overrides, assignments): (&Overrides, &[Assignment]),
    findings: &'a Findings<'a>,
) -> Option<Scenario> {
    let top = Section::new("", table.span(), table.get_ref(), findings);
    top.allow_keys(&KEYS);
    let name = read_name(&top, file);
    let seed = top.whole("seed", 0, u64::MAX);
    let profile = read_profile(&top);
    let profile = overrides.profile.or(profile).unwrap_or_default();
    let defaults = Defaults::read(profile, &top, assignments);
    // Without the generated nodes hardly a name in the file would be known.
    let generated = match top.has("topology") {
        true => Some(Generated::read(&top)?),
        false => None,
    };
    let nodes = read_nodes(&top, &defaults, generated.as_ref(), findings);
    let names = Names::new(&nodes.nics, &nodes.switches);
    let links = read_links(&top, &nodes, generated.as_ref(), &names);
    nodes::check_switches(nodes.nics.len(), &nodes.switches, &links);
    let seed = overrides.seed.or(seed).unwrap_or(1);
    let mut flows = read_flows(&top, &names, seed);
    assignments.iter().for_each(|assignment| assignment.apply_to_flows(&mut flows, findings));
    let execs = read_execs(&top, &names);
    let mut scenario = Scenario {
        name,
        seed,
        profile,
        nics: parts(nodes.nics),
        switches: parts(nodes.switches),
        links: parts(links),
        flows,
        execs,
    };
    format::give_to_switches(&scenario.nics, &mut scenario.switches);
    Some(scenario)
}

fn parts<T>(read: Read<'_, T>) -> Vec<T> {
    read.into_iter().map(|(_, part)| part).collect()
}

fn read_name(top: &Section<'_>, file: &str) -> String {
    let given = top
        .optional("name", nodes::NAME, |value| value.as_str().filter(|name| nodes::is_name(name)));
    match given {
        Some(name) => name.to_owned(),
        None => name_of_file(file),
    }
}

/// The file's name without folder and ending, as far as a name may have its
/// characters.
fn name_of_file(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let fitting = |c: char| if nodes::is_name_character(c) { c } else { '-' };
    let name: String = stem.chars().map(fitting).take(nodes::MAX_NAME).collect();
    if nodes::is_name(&name) { name } else { "scenario".to_owned() }
}

// spec: TIME-3
fn read_profile(top: &Section<'_>) -> Option<Profile> {
    let wanted = format!("one of {}", list(Profile::ALL.iter().map(|profile| profile.name())));
    top.optional("profile", &wanted, |value| Profile::from_name(value.as_str()?))
}

fn read_nodes<'a>(
    top: &Section<'a>,
    defaults: &Defaults,
    generated: Option<&Generated<'a>>,
    findings: &Findings<'_>,
) -> Nodes<'a> {
    let nics = defaults.nics(top, generated);
    let mut switches = defaults.switches(top, generated);
    defaults.settle_plane_bdp(&nics, &mut switches);
    if nics.is_empty() && !top.has("nic") {
        let what = "there is no NIC; add a [[nic]] section for each, or a [topology]";
        findings.add_general(what.to_owned());
    }
    nodes::check_unique(&nics, &switches);
    nodes::check_attributes(&nics);
    format::check(&nics);
    Nodes { nics, switches }
}

/// Reads the links, and the faults on them.
fn read_links<'a>(
    top: &Section<'a>,
    nodes: &Nodes<'a>,
    generated: Option<&Generated<'a>>,
    names: &Names,
) -> Read<'a, LinkSpec> {
    let sections = top.each("link");
    let all = sections.len();
    let links = sections.into_iter().filter_map(|section| {
        let link = links::read(&section, names)?;
        Some((section, link))
    });
    let added: Vec<_> = links.collect();
    // Ends that are nowhere have been found already; they would look like
    // NICs without links and faults without links once more.
    let complete = added.len() == all;
    let mut links = generated.map_or_else(Vec::new, |lab| lab.links(nodes.nics.len()).collect());
    links.extend(added);
    if complete {
        links::check(nodes, &links);
    }
    links::settle_mtus(&nodes.nics, &mut links);
    for section in top.each("fault") {
        fault::read(&section, names, links.iter_mut().map(|(_, link)| link), complete);
    }
    links
}

fn read_execs(top: &Section<'_>, names: &Names) -> Vec<Exec> {
    top.each("exec").iter().filter_map(|section| execs::read(section, names)).collect()
}

fn read_flows(top: &Section<'_>, names: &Names, seed: u64) -> Vec<Flow> {
    let writes = top.each("write");
    let writes = writes.iter().filter_map(|section| flows::read(section, names));
    let mut flows: Vec<_> = writes.collect();
    flows.extend(traffic::read(top, names, seed));
    flows
}
