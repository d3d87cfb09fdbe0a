//! What is wrong with a lab that stands, in words that say what to do.
//!
//! [`examine`] looks at every interface of a plan in the sandbox that this
//! process is in, whoever built it and whatever happened to it since.

mod interface;
mod probe;

use core::fmt;
use std::collections::BTreeMap;
use std::fs;

use super::error::LabError;
use super::namespace::NamespaceHandle;
use super::plan::{EndPlan, NetworkPlan};
use interface::Facts;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Runs will work, but not as one may think.
    Warning,
    /// Runs will fail or mislead.
    Bad,
}

/// What one check found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The check.
    pub check: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What it is, and what to do about it.
    pub text: String,
}

impl Finding {
    /// That a check found nothing wrong.
    pub fn good(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Good, text: text.into() }
    }

    /// That something will not be as one may think.
    pub fn warning(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, text: text.into() }
    }

    /// That something is wrong.
    pub fn bad(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Bad, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Bad => "BAD",
        };
        write!(f, "{verdict:8}{:16}{}", self.check, self.text)
    }
}

/// An interface of the plan, and what is known of it.
struct Interface<'a> {
    name: String,
    end: &'a EndPlan,
    facts: Facts,
}

/// Looks at every link of `plan`, which this process's sandbox has.
///
/// # Errors
/// When a namespace of the plan is not there, or cannot be looked into.
pub fn examine(plan: &NetworkPlan) -> Result<Vec<Finding>, LabError> {
    let mut namespaces = BTreeMap::new();
    for name in &plan.nodes {
        namespaces.insert(name.as_str(), NamespaceHandle::open(name)?);
    }
    let mut findings = Vec::new();
    let mut all = Vec::new();
    for (link, names) in plan.links.iter().zip(plan.interface_names()) {
        let mut ends = Vec::new();
        for (end, name) in link.ends.iter().zip(names) {
            let namespace = &namespaces[end.node.as_str()];
            match Facts::gather(namespace, &name)? {
                Some(facts) => ends.push(Interface { name, end, facts }),
                None => findings.push(Finding::bad(
                    "interface",
                    format!("{} has no {name}; take the lab down and up again", end.node),
                )),
            }
        }
        if let [near, far] = &ends[..] {
            findings.extend(mtu(link.mtu, near, far));
            let sides = [near, far].map(|side| (&namespaces[side.end.node.as_str()], &*side.name));
            findings.extend(probe::full_size(link.mtu, sides)?);
        }
        all.extend(ends);
    }
    findings.extend(all.iter().flat_map(one_interface));
    findings.extend(summary(&findings, all.len()));
    Ok(findings)
}

/// The checks of [`examine`], with what is said when one found nothing.
const CHECKS: [(&str, &str); 7] = [
    ("MTU", "equal at both ends of every link"),
    ("full-size frame", "passes every link in both directions"),
    ("offloads", "off: one packet is one frame, with finished checksums"),
    ("rp_filter", "off, also by conf/all: replies may take another path"),
    ("IPv6", "off: an idle lab is silent"),
    ("neighbours", "all known, nobody has to ask"),
    ("queueing", "none: the nodes' own queues are the only ones"),
];

fn summary(findings: &[Finding], interfaces: usize) -> Vec<Finding> {
    let without = CHECKS.iter().filter(|(check, _)| findings.iter().all(|f| f.check != *check));
    let good = |(check, text): &(&'static str, &str)| {
        Finding::good(check, format!("{text} ({interfaces} interfaces)"))
    };
    without.map(good).collect()
}

fn mtu(planned: u32, near: &Interface<'_>, far: &Interface<'_>) -> Vec<Finding> {
    let wrong = [near, far].into_iter().filter(|side| side.facts.mtu != planned);
    let finding = |side: &Interface<'_>| {
        let (node, name, mtu) = (&side.end.node, &side.name, side.facts.mtu);
        Finding::bad(
            "MTU",
            format!(
                "{mtu} at {node} {name}, but the link has {planned}: larger packets vanish; \
                 ip -n {node} link set {name} mtu {planned}"
            ),
        )
    };
    wrong.map(finding).collect()
}

fn one_interface(side: &Interface<'_>) -> Vec<Finding> {
    let Interface { name, end, facts } = side;
    let node = &end.node;
    let mut findings = Vec::new();
    if !facts.offloads.is_empty() {
        let on: Vec<_> = facts.offloads.iter().map(|offload| format!("{offload} off")).collect();
        findings.push(Finding::bad(
            "offloads",
            format!(
                "on at {node} {name}: frames may be glued, or have unfinished checksums; \
                 ip netns exec {node} ethtool -K {name} {}",
                on.join(" ")
            ),
        ));
    }
    if facts.rp_filter != 0 {
        findings.push(Finding::bad(
            "rp_filter",
            format!(
                "{} at {node} {name} (the larger of conf/all and conf/{name}): replies over \
                 another path are dropped; set both to 0 with ip netns exec {node} sysctl -w",
                facts.rp_filter
            ),
        ));
    }
    if facts.ipv6 {
        findings.push(Finding::warning(
            "IPv6",
            format!(
                "on at {node} {name}: the kernel speaks unasked, captures show it; ip netns exec \
                 {node} sysctl -w net.ipv6.conf.{name}.disable_ipv6=1"
            ),
        ));
    }
    let unknown: Vec<_> =
        end.neighbours.iter().filter(|(ip, _)| !facts.neighbours.contains_key(ip)).collect();
    if let [(ip, mac), ..] = unknown[..] {
        let mac = super::plan::mac_text(*mac);
        findings.push(Finding::bad(
            "neighbours",
            format!(
                "{node} does not know {ip} and {} more for good, and nobody answers ARP; ip -n \
                 {node} neighbour replace {ip} lladdr {mac} dev {name} nud permanent",
                unknown.len() - 1
            ),
        ));
    }
    if facts.queueing != "noqueue" {
        findings.push(Finding::warning(
            "queueing",
            format!(
                "{} at {node} {name} delays or drops beside the lab's own links (netem keeps 1000 \
                 packets by default); ip netns exec {node} tc qdisc del dev {name} root",
                facts.queueing
            ),
        ));
    }
    findings
}

/// What this machine gives to a lab whose time dilation factor is `tdf` on
/// `cores` cores.
pub fn machine(cores: usize, tdf: u32) -> Vec<Finding> {
    /// A batch of full frames.
    const SEND_BUFFER: u64 = 200_000;
    let dilation = if tdf == 1 {
        format!("{cores}: native runs at their speed, a switch needs one of its own")
    } else {
        format!("{cores}: a TDF of {tdf} fits the packets that the scenario plans")
    };
    let mut findings = vec![Finding::good("cores", dilation)];
    let limit = fs::read_to_string("/proc/sys/net/core/wmem_max");
    findings.push(match limit.ok().and_then(|text| text.trim().parse::<u64>().ok()) {
        // Only the machine's own namespace has it; its default is 212,992.
        None => Finding::good("socket buffers", "rings receive; wmem_max is not visible here"),
        Some(bytes) if bytes < SEND_BUFFER => Finding::warning(
            "socket buffers",
            format!("net.core.wmem_max is {bytes}: sysctl -w net.core.wmem_max=212992"),
        ),
        Some(bytes) => Finding::good(
            "socket buffers",
            format!("wmem_max {bytes}; rmem_max does not bound the rings that receive"),
        ),
    });
    findings
}
