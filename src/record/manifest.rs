//! What is needed to repeat a run: `run.json`.

use core::fmt::Write;
use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{RunId, UnixTime, sha256_hex};
use crate::config::{NIC_ATTRIBUTES, SWITCH_ATTRIBUTES, Table};
use crate::scenario::{NodeKind, NodePlan, Topology};

/// The commit that the program was built from.
const COMMIT: &str = match option_env!("MRC_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Attributes by name, as a scenario file would write them.
type Attributes = BTreeMap<&'static str, String>;

/// The scenario file as it was read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct ScenarioFile {
    file: String,
    text: String,
}

/// A node with every attribute.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
struct NodeRecord {
    name: String,
    kind: &'static str,
    ip: Option<Ipv4Addr>,
    attributes: Attributes,
}

/// Everything that makes a run what it is.
// spec: RC-1, TIME-4
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunManifest {
    version: &'static str,
    commit: &'static str,
    #[serde(flatten)]
    run: RunId,
    started: UnixTime,
    protocol_time_0: Option<UnixTime>,
    scenario: ScenarioFile,
    topology_sha256: String,
    nodes: Vec<NodeRecord>,
    /// Frames that each interface sent, once the run is over; empty where
    /// there are no interfaces.
    pub frames_on_wire: BTreeMap<String, u64>,
}

impl RunManifest {
    /// The file's name in the run's folder.
    pub const FILE: &str = "run.json";

    /// The manifest of a run that starts at `started`. Protocol time 0 has a
    /// point on the wall clock only in runs that follow the wall clock.
    // spec: RC-1, TIME-4
    pub fn new(
        run: RunId,
        (file, text): (&str, &str),
        topology: &Topology,
        started: UnixTime,
        protocol_time_0: Option<UnixTime>,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: COMMIT,
            run,
            started,
            protocol_time_0,
            scenario: ScenarioFile { file: file.to_owned(), text: text.to_owned() },
            topology_sha256: topology_sha256(topology),
            nodes: topology.nodes.iter().map(node_record).collect(),
            frames_on_wire: BTreeMap::new(),
        }
    }
}

fn node_record(node: &NodePlan) -> NodeRecord {
    let (kind, attributes) = match &node.kind {
        NodeKind::Nic(config) => ("nic", all(&NIC_ATTRIBUTES, &config.attributes)),
        NodeKind::Switch(config) => ("switch", all(&SWITCH_ATTRIBUTES, &config.attributes)),
    };
    NodeRecord { name: node.name.clone(), kind, ip: node.ip(), attributes }
}

fn all<T>(table: &Table<T>, holder: &T) -> Attributes {
    table.attributes().map(|attribute| (attribute.name, attribute.show(holder))).collect()
}

/// The SHA-256 of who is there and how all are joined: names, addresses,
/// ports, rates, delays, MTUs and queue limits.
// spec: RC-1
pub fn topology_sha256(topology: &Topology) -> String {
    let mut text = String::new();
    for node in &topology.nodes {
        // Writing to a string does not fail.
        let _ = match &node.kind {
            NodeKind::Nic(config) => writeln!(text, "nic {} {}", node.name, config.ip),
            NodeKind::Switch(config) => {
                let limits = config.ports.iter().map(|port| port.queue_limit);
                writeln!(text, "switch {} {:?}", node.name, limits.collect::<Vec<_>>())
            }
        };
    }
    for link in &topology.links {
        let [a, b] = link.ends.map(|end| format!("{}.{}", end.node.0, end.port.0));
        let (rate, delay) = (link.rate.as_bps(), link.delay.as_ps());
        let _ = writeln!(text, "link {a} {b} {rate} bps {delay} ps {} bytes", link.mtu);
    }
    sha256_hex(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::Profile;
    use crate::record::Clock;
    use crate::scenario::{Overrides, parse};

    const TEXT: &str = include_str!("../../scenarios/two-hosts.toml");

    fn manifest(text: &str, profile: Profile) -> Value {
        let overrides = Overrides { profile: Some(profile), seed: None };
        let scenario = parse(text, "two-hosts.toml", &overrides).expect("it is right");
        let run = RunId::new(&scenario, Clock::Wall, Some(1000));
        let time = |ns| UnixTime { ns };
        let topology = Topology::new(&scenario);
        let source = ("two-hosts.toml", text);
        let mut manifest = RunManifest::new(run, source, &topology, time(5), Some(time(7)));
        manifest.frames_on_wire.insert("a.mrc0".into(), 3);
        serde_json::to_value(manifest).unwrap()
    }

    // spec: RC-1, TIME-4
    #[test]
    fn a_manifest_has_what_a_repetition_needs() {
        let run = manifest(TEXT, Profile::Reference);
        assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
        assert!(run["commit"].is_string());
        let facts = ["name", "profile", "seed", "clock", "tdf"].map(|key| run[key].clone());
        assert_eq!(Value::from(facts.to_vec()), json!(["two-hosts", "reference", 1, "wall", 1000]));
        assert_eq!(run["started"], "1970-01-01T00:00:00.000000005Z");
        assert_eq!(run["protocol_time_0"], "1970-01-01T00:00:00.000000007Z");
        assert_eq!(run["scenario"], json!({"file": "two-hosts.toml", "text": TEXT}));
        assert_eq!(run["frames_on_wire"], json!({"a.mrc0": 3}));
        let [a, _, s] = &run["nodes"].as_array().unwrap()[..] else { panic!("three nodes") };
        assert_eq!(
            (&a["name"], &a["kind"], &a["ip"]),
            (&json!("a"), &json!("nic"), &json!("10.0.0.1"))
        );
        assert_eq!(a["attributes"].as_object().unwrap().len(), NIC_ATTRIBUTES.attributes().count());
        assert_eq!(a["attributes"]["InitialAckTimeout"], "150 us");
        assert_eq!((&s["kind"], &s["ip"]), (&json!("switch"), &Value::Null));
        assert_eq!(
            s["attributes"].as_object().unwrap().len(),
            SWITCH_ATTRIBUTES.attributes().count()
        );
        assert_eq!(s["attributes"]["PlaneBDP"], "300 KB");
    }

    // spec: RC-1, W-7
    #[test]
    fn a_first_psn_that_is_drawn_is_no_number() {
        let psn = |run: Value| run["nodes"][0]["attributes"]["InitialPsn"].clone();
        assert_eq!(psn(manifest(TEXT, Profile::Native)), "random");
        assert_eq!(psn(manifest(TEXT, Profile::Reference)), "0");
    }

    // spec: RC-1
    #[test]
    fn the_topology_hash_tells_topologies_apart_and_nothing_else() {
        let hash = |text: &str| manifest(text, Profile::Reference)["topology_sha256"].clone();
        assert_eq!(hash(TEXT), hash(&TEXT.replace("seed = 1", "seed = 2")));
        for (from, to) in [
            ("200 Gbps", "300 Gbps"),
            ("100 KB", "200 KB"),
            ("10.0.0.2", "10.0.0.3"),
            ("ends = [\"a\", \"s\"]", "ends = [\"a\", \"s\"]\nmtu = 5000"),
            ("ends = [\"a\", \"s\"]", "ends = [\"a\", \"s\"]\ndelay = \"1 us\""),
        ] {
            assert_ne!(hash(TEXT), hash(&TEXT.replace(from, to)), "{to}");
        }
    }
}
