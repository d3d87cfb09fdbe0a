//! Nodes by their names.

use std::collections::{BTreeMap, BTreeSet};

use super::findings::list;
use super::section::Section;
use crate::scenario::{NicSpec, SwitchSpec};

/// The node numbers of all names. Of nodes with one name the first has it.
pub(in crate::scenario) struct Names {
    numbers: BTreeMap<String, usize>,
    nics: Vec<String>,
    switches: Vec<String>,
}

impl Names {
    pub fn new(nics: &[(Section<'_>, NicSpec)], switches: &[(Section<'_>, SwitchSpec)]) -> Self {
        let nics: Vec<_> = nics.iter().map(|(_, nic)| nic.name.clone()).collect();
        let switches: Vec<_> = switches.iter().map(|(_, switch)| switch.name.clone()).collect();
        let mut numbers = BTreeMap::new();
        for (number, name) in nics.iter().chain(&switches).enumerate() {
            numbers.entry(name.clone()).or_insert(number);
        }
        Self { numbers, nics, switches }
    }

    /// The node that `key` names.
    pub fn node(&self, section: &Section<'_>, key: &str) -> Option<usize> {
        let wanted = "the name of a NIC or switch, such as \"a\"";
        let name = section.required(key, wanted, |value| value.as_str())?;
        let found = self.find(name);
        if found.is_none() {
            section.refuse_key(key, &self.unknown_node());
        }
        found
    }

    /// The NIC that `key` names.
    pub fn nic(&self, section: &Section<'_>, key: &str) -> Option<usize> {
        let wanted = "the name of a NIC, such as \"a\"";
        let name = section.required(key, wanted, |value| value.as_str())?;
        let found = self.find(name).filter(|number| *number < self.nics.len());
        if found.is_none() {
            let known = list(self.nics.iter().map(String::as_str));
            section.refuse_key(key, &format!("no NIC of that name; the NICs are {known}"));
        }
        found
    }

    /// The NICs that the list at `key` names, each once.
    pub fn nics(&self, section: &Section<'_>, key: &str) -> Option<Vec<usize>> {
        let wanted = "a list of names of NICs, each once, such as [\"a\", \"b\"]";
        let names: Vec<&str> = section.optional(key, wanted, |value| {
            let names = value.as_array()?.iter().map(|name| name.get_ref().as_str());
            let names = names.collect::<Option<Vec<_>>>()?;
            (names.iter().collect::<BTreeSet<_>>().len() == names.len()).then_some(names)
        })?;
        let number = |name: &&str| self.find(name).filter(|number| *number < self.nics.len());
        let found: Vec<_> = names.iter().map(number).collect();
        if let Some(index) = found.iter().position(Option::is_none) {
            let known = list(self.nics.iter().map(String::as_str));
            let name = names[index];
            let what = format!("\"{name}\": no NIC of that name; the NICs are {known}");
            section.refuse_key(key, &what);
        }
        found.into_iter().collect()
    }

    /// How many NICs there are.
    pub fn nic_count(&self) -> usize {
        self.nics.len()
    }

    /// The number of the node of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// The name of a node.
    pub fn name(&self, node: usize) -> &str {
        match self.nics.get(node) {
            Some(name) => name,
            None => self.switches.get(node - self.nics.len()).map_or("", String::as_str),
        }
    }

    /// Why a name names no node.
    pub fn unknown_node(&self) -> String {
        let nics = list(self.nics.iter().map(String::as_str));
        let switches = list(self.switches.iter().map(String::as_str));
        format!("no node of that name; the NICs are {nics}, the switches {switches}")
    }
}
