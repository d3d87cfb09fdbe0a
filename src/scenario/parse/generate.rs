//! `[topology]`: nodes and links that follow from a few numbers.

use core::net::Ipv4Addr;

use toml::de::DeValue;

use super::findings::list;
use super::links;
use super::section::Section;
use crate::scenario::LinkSpec;
use crate::scenario::shape::{Parts, Place, Shape, ThreeTier};

const KINDS: [&str; 4] = ["two-hosts", "star", "leaf-spine", "three-tier"];
/// Tables that say what links are like.
const HOST_LINKS: &str = "host_links";
const FABRIC_LINKS: &str = "fabric_links";
/// Each has a byte of an address, and 10.255 is for what is added.
const MAX_PODS: usize = 254;
const MAX_LEAVES: usize = 256;
const MAX_HOSTS_PER_LEAF: usize = 254;
/// Switches of an upper tier, or of a pod's.
const MAX_UPPER: usize = 256;
const MAX_CORES: usize = 1_024;
const MAX_PARALLEL: usize = 64;

/// What a `[topology]` section makes.
pub(super) struct Generated<'a> {
    /// The section itself.
    pub section: Section<'a>,
    host_links: Class<'a>,
    fabric_links: Class<'a>,
    parts: Parts,
}

/// What all links of one kind are like, and where the file says so.
struct Class<'a> {
    section: Section<'a>,
    link: LinkSpec,
}

impl<'a> Generated<'a> {
    /// Reads the section, if there is one; `top` is the whole file.
    // spec: SW-1
    pub fn read(top: &Section<'a>) -> Option<Self> {
        let section = top.inner("topology")?;
        let shape = read_shape(&section)?;
        let links = shape.link_count();
        if links > links::MAX_LINKS {
            let most = links::MAX_LINKS;
            section.refuse(&format!(
                "makes {links} links, and a scenario has at most {most}; lower some of its numbers"
            ));
            return None;
        }
        let (host_links, fabric_links) =
            (Class::read(&section, HOST_LINKS), Class::read(&section, FABRIC_LINKS));
        Some(Self { section, host_links, fabric_links, parts: shape.parts() })
    }

    /// Names and addresses of the hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, Ipv4Addr)> {
        self.parts.hosts.iter().map(|(name, ip)| (name.as_str(), *ip))
    }

    /// Names of the switches.
    pub fn switches(&self) -> impl Iterator<Item = &str> {
        self.parts.switches.iter().map(String::as_str)
    }

    /// The links of a lab with `nics` NICs, those that are generated first.
    pub fn links(&self, nics: usize) -> impl Iterator<Item = (Section<'a>, LinkSpec)> {
        let number = move |place| match place {
            Place::Host(number) => number,
            Place::Switch(number) => nics + number,
        };
        let hosts = self.parts.host_links.iter().map(|ends| (&self.host_links, ends));
        let fabric = self.parts.fabric_links.iter().map(|ends| (&self.fabric_links, ends));
        hosts.chain(fabric).map(move |(class, ends)| {
            let link = LinkSpec { ends: ends.map(number), ..class.link.clone() };
            (class.section.clone(), link)
        })
    }
}

impl<'a> Class<'a> {
    fn read(topology: &Section<'a>, key: &str) -> Self {
        let section = topology.inner(key);
        if let Some(section) = &section {
            section.allow_keys(&links::PROPERTIES);
        }
        let section = section.unwrap_or(topology.clone());
        Self { link: links::read_properties(&section), section }
    }
}

/// The numbers of one kind of topology, read one by one.
struct Numbers<'s, 'a> {
    section: &'s Section<'a>,
}

impl Numbers<'_, '_> {
    fn required(&self, key: &str, max: usize) -> Option<usize> {
        if !self.section.has(key) {
            self.section
                .refuse(&format!("`{key}` is missing: it must be a whole number from 1 to {max}"));
            return None;
        }
        self.section.whole(key, 1, max as u64).map(|number| number as usize)
    }

    /// Links between the same two switches.
    fn parallel(&self) -> Option<usize> {
        match self.section.has("parallel_links") {
            true => self.required("parallel_links", MAX_PARALLEL),
            false => Some(1),
        }
    }
}

fn read_shape(section: &Section<'_>) -> Option<Shape> {
    let wanted = format!("one of {}", list(KINDS.into_iter()));
    let is_kind =
        |value: &DeValue<'_>| KINDS.into_iter().find(|kind| value.as_str() == Some(*kind));
    let kind = section.required("kind", &wanted, is_kind)?;
    let numbers = Numbers { section };
    match kind {
        "two-hosts" => {
            section.allow_keys(&["kind", "switch", HOST_LINKS]);
            let switch = section.optional("switch", "true or false", DeValue::as_bool);
            Some(Shape::TwoHosts { switch: switch.unwrap_or(true) })
        }
        "star" => {
            section.allow_keys(&["kind", "hosts", HOST_LINKS]);
            Some(Shape::Star { hosts: numbers.required("hosts", links::MAX_PORTS)? })
        }
        "leaf-spine" => read_leaf_spine(&numbers),
        _ => read_three_tier(&numbers),
    }
}

fn read_leaf_spine(numbers: &Numbers<'_, '_>) -> Option<Shape> {
    let own = ["kind", "leaves", "spines", "hosts_per_leaf", "parallel_links"];
    numbers.section.allow_keys(&[&own[..], &[HOST_LINKS, FABRIC_LINKS]].concat());
    let (leaves, spines, hosts_per_leaf, parallel) = (
        numbers.required("leaves", MAX_LEAVES),
        numbers.required("spines", MAX_UPPER),
        numbers.required("hosts_per_leaf", MAX_HOSTS_PER_LEAF),
        numbers.parallel(),
    );
    Some(Shape::LeafSpine {
        leaves: leaves?,
        spines: spines?,
        hosts_per_leaf: hosts_per_leaf?,
        parallel: parallel?,
    })
}

fn read_three_tier(numbers: &Numbers<'_, '_>) -> Option<Shape> {
    let own = ["kind", "pods", "leaves_per_pod", "aggs_per_pod", "cores", "hosts_per_leaf"];
    let links = ["parallel_links", HOST_LINKS, FABRIC_LINKS];
    numbers.section.allow_keys(&[&own[..], &links].concat());
    let (pods, leaves_per_pod, aggs_per_pod, cores, hosts_per_leaf, parallel) = (
        numbers.required("pods", MAX_PODS),
        numbers.required("leaves_per_pod", MAX_LEAVES),
        numbers.required("aggs_per_pod", MAX_UPPER),
        numbers.required("cores", MAX_CORES),
        numbers.required("hosts_per_leaf", MAX_HOSTS_PER_LEAF),
        numbers.parallel(),
    );
    let (cores, aggs_per_pod) = (cores?, aggs_per_pod?);
    if cores % aggs_per_pod != 0 {
        numbers.section.refuse_key("cores", &format!(
            "must be a multiple of aggs_per_pod = {aggs_per_pod}: the cores are dealt out evenly to the aggregation switches of a pod"
        ));
        return None;
    }
    Some(Shape::ThreeTier(ThreeTier {
        pods: pods?,
        leaves_per_pod: leaves_per_pod?,
        aggs_per_pod,
        cores,
        hosts_per_leaf: hosts_per_leaf?,
        parallel: parallel?,
    }))
}
