//! `[[nic]]`, `[[switch]]` and the attributes that all of a kind start from.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use toml::de::DeValue;

use super::assignments::Assignment;
use super::findings::list;
use super::generate::Generated;
use super::section::Section;
use crate::config::{
    NIC_ATTRIBUTES, NicAttributes, Problem, Profile, SWITCH_ATTRIBUTES, SwitchAttributes, Table,
};
use crate::scenario::{LinkSpec, NicSpec, SwitchSpec};

/// The longest name of a node or a scenario, in characters.
pub(super) const MAX_NAME: usize = 64;
/// What a name may be.
pub(super) const NAME: &str =
    "1 to 64 letters A-Z a-z, digits, and the characters . _ -, the first a letter or digit";

/// A run's captures are files named after its nodes, and this one has them all.
const MERGED: &str = "merged";

/// Whether `name` can name a node, a file and a namespace.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_name_character)
}

/// Whether `c` may be in a name.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The attributes that nodes start from: the profile's with the file's defaults.
pub(super) struct Defaults {
    nic: NicAttributes,
    switch: SwitchAttributes,
    /// Whether the file or an assignment says what the switches' PlaneBDP is.
    plane_bdp: bool,
}

impl Defaults {
    /// `top` is the whole file; `assignments` go before what it says.
    // spec: TIME-3
    pub fn read(profile: Profile, top: &Section<'_>, assignments: &[Assignment]) -> Self {
        let (mut nic, mut switch) = (profile.nic(), profile.switch());
        if let Some(section) = top.inner("nic_defaults") {
            set_attributes(&section, &NIC_ATTRIBUTES, &mut nic);
        }
        if let Some(section) = top.inner("switch_defaults") {
            set_attributes(&section, &SWITCH_ATTRIBUTES, &mut switch);
        }
        assignments.iter().for_each(|assignment| assignment.apply(&mut nic, &mut switch));
        let assigned = assignments.iter().any(|assignment| assignment.name() == PLANE_BDP);
        let plane_bdp = assigned || sets_plane_bdp(top, "switch_defaults");
        Self { nic, switch, plane_bdp }
    }

    /// The NIC of a section, with the address `ip` when it gives none.
    fn nic(&self, section: &Section<'_>, ip: Ipv4Addr) -> NicSpec {
        section.allow_keys(&["name", "ip", "attributes"]);
        let mut attributes = self.nic.clone();
        if let Some(section) = section.inner("attributes") {
            set_attributes(&section, &NIC_ATTRIBUTES, &mut attributes);
        }
        NicSpec {
            name: read_name(section),
            ip: section.optional("ip", ADDRESS, read_address).unwrap_or(ip),
            attributes,
        }
    }

    /// The switch of a section.
    fn switch(&self, section: &Section<'_>) -> SwitchSpec {
        section.allow_keys(&["name", "attributes"]);
        let mut attributes = self.switch.clone();
        if let Some(section) = section.inner("attributes") {
            set_attributes(&section, &SWITCH_ATTRIBUTES, &mut attributes);
        }
        SwitchSpec { name: read_name(section), attributes }
    }

    /// All NICs: those that are generated, each as a section of its name may
    /// change it, then those of the other sections.
    pub fn nics<'a>(
        &self,
        top: &Section<'a>,
        generated: Option<&Generated<'a>>,
    ) -> Vec<(Section<'a>, NicSpec)> {
        let mut sections = Sections::of(top, "nic");
        let mut nics = Vec::new();
        if let Some(generated) = generated {
            nics.extend(generated.hosts().map(|(name, ip)| match sections.take(name) {
                Some(section) => (section.clone(), self.nic(&section, ip)),
                None => {
                    let attributes = self.nic.clone();
                    (generated.section.clone(), NicSpec { name: name.to_owned(), ip, attributes })
                }
            }));
        }
        let first = if generated.is_some() { ADDED_BLOCK } else { FIRST_BLOCK };
        nics.extend(sections.left.into_iter().flatten().enumerate().map(|(index, section)| {
            let nic = self.nic(&section, default_address(first, index));
            (section, nic)
        }));
        nics
    }

    /// All switches in the same order.
    pub fn switches<'a>(
        &self,
        top: &Section<'a>,
        generated: Option<&Generated<'a>>,
    ) -> Vec<(Section<'a>, SwitchSpec)> {
        let mut sections = Sections::of(top, "switch");
        let mut switches = Vec::new();
        if let Some(generated) = generated {
            switches.extend(generated.switches().map(|name| match sections.take(name) {
                Some(section) => (section.clone(), self.switch(&section)),
                None => {
                    let attributes = self.switch.clone();
                    (generated.section.clone(), SwitchSpec { name: name.to_owned(), attributes })
                }
            }));
        }
        switches.extend(sections.left.into_iter().flatten().map(|section| {
            let switch = self.switch(&section);
            (section, switch)
        }));
        switches
    }

    /// Gives every switch for which nothing sets PlaneBDP what the slowest NIC
    /// makes of it.
    // spec: SW-9
    pub fn settle_plane_bdp(
        &self,
        nics: &[(Section<'_>, NicSpec)],
        switches: &mut [(Section<'_>, SwitchSpec)],
    ) {
        let attributes = nics.iter().map(|(_, nic)| &nic.attributes);
        let slowest = attributes.min_by_key(|nic| (nic.data_rate, nic.config_base_rtt));
        let Some(slowest) = slowest.filter(|_| !self.plane_bdp) else { return };
        for (section, switch) in switches {
            if !sets_plane_bdp(section, "attributes") {
                switch.attributes.plane_bdp = slowest.plane_bdp();
            }
        }
    }
}

/// The sections of all NICs, or of all switches, until each has become a node.
struct Sections<'a> {
    left: Vec<Option<Section<'a>>>,
    by_name: BTreeMap<&'a str, usize>,
}

impl<'a> Sections<'a> {
    fn of(top: &Section<'a>, key: &str) -> Self {
        let left = top.each(key);
        let mut by_name = BTreeMap::new();
        for (index, section) in left.iter().enumerate() {
            if let Some(name) = section.value("name").and_then(|name| name.get_ref().as_str()) {
                by_name.entry(name).or_insert(index);
            }
        }
        Self { left: left.into_iter().map(Some).collect(), by_name }
    }

    /// Takes the first section about the node `name`.
    fn take(&mut self, name: &str) -> Option<Section<'a>> {
        let index = self.by_name.remove(name)?;
        self.left[index].take()
    }
}

/// Sets the attributes of `holder` that the section has.
fn set_attributes<T>(section: &Section<'_>, table: &Table<T>, holder: &mut T) {
    set_part("", section, table, holder);
}

/// The same where names lack `prefix`: a table `PcieNicSide` has the attributes
/// `PcieNicSide.LaneCount` and so on.
fn set_part<T>(prefix: &str, section: &Section<'_>, table: &Table<T>, holder: &mut T) {
    for (key, _) in section.entries() {
        let name = format!("{prefix}{key}");
        if let Some(part) = section.part(key) {
            set_part(&format!("{name}."), &part, table, holder);
        } else if let Err(error) = table.set(holder, &name, section.source(key)) {
            section.refuse_entry(key, &error.to_string());
        }
    }
}

fn read_name(section: &Section<'_>) -> String {
    let name = section.required("name", NAME, |value| value.as_str().filter(|name| is_name(name)));
    name.unwrap_or_default().to_owned()
}

const ADDRESS: &str = "the IPv4 address of one host, such as \"10.0.0.1\"";

fn read_address(value: &DeValue<'_>) -> Option<Ipv4Addr> {
    let address: Ipv4Addr = value.as_str()?.parse().ok()?;
    let [first, ..] = address.octets();
    let one_host = first != 0 && !address.is_loopback() && first < 224;
    one_host.then_some(address)
}

/// Where addresses start that a file does not give: 10.0.0.1, and 10.255.0.1
/// beside generated NICs.
const FIRST_BLOCK: u32 = 0x0a00_0000;
const ADDED_BLOCK: u32 = 0x0aff_0000;

/// The first 254 addresses of `first`, then those of the next 256, and so on.
fn default_address(first: u32, index: usize) -> Ipv4Addr {
    let (block, host) = (index as u32 / 254, index as u32 % 254 + 1);
    Ipv4Addr::from_bits(first + (block << 8) + host)
}

/// Refuses attributes of NICs that do not go together.
// spec: PB-8
pub(super) fn check_attributes(nics: &[(Section<'_>, NicSpec)]) {
    let all = nics.iter().map(|(at, nic)| (at, nic.name.as_str(), nic.attributes.problems()));
    refuse_problems(["NIC", "NICs"], all);
}

/// Refuses attributes of switches that do not go together, or not with the
/// number of ports; the nodes' numbers follow those of `nics` NICs.
// spec: SW-5, SW-18, DSCP-6
pub(super) fn check_switches(
    nics: usize,
    switches: &[(Section<'_>, SwitchSpec)],
    links: &[(Section<'_>, LinkSpec)],
) {
    let all = (nics..).zip(switches).map(|(node, (section, switch))| {
        let ends = links.iter().flat_map(|(_, link)| link.ends);
        let ports = ends.filter(|end| *end == node).count();
        (section, switch.name.as_str(), switch.attributes.problems(ports))
    });
    refuse_problems(["switch", "switches"], all);
}

/// Refuses each problem once, at the first of the nodes that have it.
fn refuse_problems<'a, 'b: 'a>(
    [one, several]: [&str; 2],
    nodes: impl Iterator<Item = (&'a Section<'b>, &'a str, Vec<Problem>)>,
) {
    let mut found: Vec<(&Section<'_>, Problem, Vec<&str>)> = Vec::new();
    for (section, name, problems) in nodes {
        for problem in problems {
            match found.iter_mut().find(|(_, known, _)| *known == problem) {
                Some((.., names)) => names.push(name),
                None => found.push((section, problem, vec![name])),
            }
        }
    }
    for (section, problem, names) in found {
        let nodes = if names.len() == 1 { one } else { several };
        section.refuse(&format!("{nodes} {}: {problem}", list(names.into_iter())));
    }
}

const PLANE_BDP: &str = "PlaneBDP";

/// Whether the attributes at `key` have a PlaneBDP.
fn sets_plane_bdp(section: &Section<'_>, key: &str) -> bool {
    section.part(key).is_some_and(|attributes| attributes.has(PLANE_BDP))
}

/// Refuses names and addresses that are taken.
pub(super) fn check_unique(
    nics: &[(Section<'_>, NicSpec)],
    switches: &[(Section<'_>, SwitchSpec)],
) {
    let mut names = BTreeMap::new();
    let nic_names = nics.iter().map(|(section, nic)| (section, &nic.name));
    for (section, name) in nic_names.chain(switches.iter().map(|(s, switch)| (s, &switch.name))) {
        if names.insert(name, ()).is_some() && !name.is_empty() {
            match section.has("name") {
                true => {
                    section.refuse_key("name", "another node has this name; give each node its own")
                }
                false => section.refuse(&format!(
                    "makes a node {name}, and another has this name; rename that one"
                )),
            }
        }
        if name == MERGED {
            section.refuse_key("name", "the merged capture has this name; choose another");
        }
    }
    let mut owners = BTreeMap::<Ipv4Addr, &str>::new();
    for (section, nic) in nics {
        if let Some(owner) = owners.insert(nic.ip, &nic.name) {
            let what = format!("NIC {owner} has the address {} too; give each NIC its own", nic.ip);
            section.refuse_key("ip", &what);
        }
    }
}
