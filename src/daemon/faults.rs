//! Faults on the links of a running node.

use serde_json::{Map, Value};

use super::protocol::{FaultReport, LinkFaults, Response, read_fault};
use crate::node::link::{ArmedRule, Link};
use crate::time::Instant;

/// The most faults that a link may have.
const MAX_FAULTS: usize = 1_000;

/// Adds, lists and clears faults on the sending ends of a node's links.
// spec: SW-20, SW-21
#[derive(Debug)]
pub(super) struct FaultDesk {
    node: String,
    /// The node at the other end of each port's link.
    peers: Vec<String>,
    /// The largest number that any fault has had.
    last_id: u64,
}

impl FaultDesk {
    /// For `node`, whose `links` lead from its ports to `peers`.
    pub(super) fn new<'l>(
        node: String,
        peers: Vec<String>,
        links: impl Iterator<Item = &'l Link>,
    ) -> Self {
        let ids = links.flat_map(Link::rules).map(ArmedRule::id);
        Self { node, peers, last_id: ids.max().unwrap_or(0) }
    }

    /// Puts `fault` on the links to `to`. Its times count from `now`.
    ///
    /// # Errors
    /// What the client is told.
    pub(super) fn add(
        &mut self,
        now: Instant,
        links: &mut [Link],
        to: Option<&str>,
        fault: &Map<String, Value>,
    ) -> Result<Response, String> {
        let rule = read_fault(fault).map_err(|errors| errors.join("; "))?;
        let rule = rule.starting_at(now);
        let ports = self.ports(to)?;
        if to.is_none() && ports.iter().any(|port| self.peers[*port] != self.peers[0]) {
            return Err(format!("`to` is missing: it must be one of {}", self.known()));
        }
        if ports.iter().any(|port| links[*port].rules().len() >= MAX_FAULTS) {
            return Err(format!("a link has at most {MAX_FAULTS} faults; clear some"));
        }
        self.last_id += 1;
        ports.iter().for_each(|port| links[*port].add_rule(self.last_id, rule.clone()));
        Ok(Response::FaultAdded { id: self.last_id })
    }

    /// All links with their faults.
    pub(super) fn list(&self, now: Instant, links: &[Link]) -> Response {
        let ports = links.iter().zip(&self.peers).enumerate();
        let links = ports.map(|(port, (link, to))| LinkFaults {
            port,
            to: to.clone(),
            up: link.is_up(now),
            faults: link.rules().iter().map(fault_report).collect(),
        });
        Response::Faults { node: self.node.clone(), links: links.collect() }
    }

    /// Takes faults from the links to `to`, or from all.
    ///
    /// # Errors
    /// What the client is told.
    pub(super) fn clear(
        &self,
        links: &mut [Link],
        to: Option<&str>,
        id: Option<u64>,
    ) -> Result<Response, String> {
        let ports = self.ports(to)?;
        let count = ports.iter().map(|port| links[*port].clear_rules(id)).sum();
        match id {
            Some(id) if count == 0 => Err(format!("no fault here has the number {id}")),
            _ => Ok(Response::FaultsCleared { count }),
        }
    }

    /// The ports whose links lead to `to`, or all.
    fn ports(&self, to: Option<&str>) -> Result<Vec<usize>, String> {
        let leads = |port: &usize| to.is_none_or(|to| self.peers[*port] == to);
        let ports: Vec<_> = (0..self.peers.len()).filter(leads).collect();
        match to {
            Some(to) if ports.is_empty() => {
                Err(format!("no link leads to \"{to}\"; choose one of {}", self.known()))
            }
            _ => Ok(ports),
        }
    }

    /// The nodes at the other ends, each once.
    fn known(&self) -> String {
        let mut known = self.peers.clone();
        known.sort();
        known.dedup();
        known.join(", ")
    }
}

fn fault_report(armed: &ArmedRule) -> FaultReport {
    FaultReport {
        id: armed.id(),
        rule: armed.rule().to_string(),
        seen: armed.seen(),
        acted: armed.acted(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::link::{FaultAction, FaultRule, PacketMatch};
    use crate::rng::Rng;
    use crate::time::Duration;
    use crate::wire::packet::FrameFormat;

    const NOW: Instant = Instant::from_ps(5_000_000);

    /// A switch with two links to b and one to a, on which is a fault already.
    fn desk() -> (FaultDesk, Vec<Link>) {
        let loss = FaultRule { matches: PacketMatch::default(), action: FaultAction::Drop };
        let link = |rules| {
            Link::new(Duration::ZERO, rules, FrameFormat::default(), Rng::derive(1, "link", 0))
        };
        let links = vec![link(vec![]), link(vec![loss]), link(vec![])];
        let peers = ["b", "a", "b"].map(str::to_owned).to_vec();
        (FaultDesk::new("s".to_owned(), peers, links.iter()), links)
    }

    fn fault(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).expect("an object")
    }

    fn ids(links: &[Link]) -> Vec<Vec<u64>> {
        links.iter().map(|link| link.rules().iter().map(ArmedRule::id).collect()).collect()
    }

    // spec: SW-20
    #[test]
    fn faults_are_added_to_all_links_to_a_node_and_cleared_by_number() {
        let (mut desk, mut links) = desk();
        let third = fault(r#"{"drop":true,"kind":"SACK","nth":3,"after":"1 us"}"#);
        let added = desk.add(NOW, &mut links, Some("b"), &third);
        assert_eq!(added, Ok(Response::FaultAdded { id: 2 }));
        assert_eq!(ids(&links), [vec![2], vec![1], vec![2]]);
        // One microsecond after it was added.
        let from = links[0].rules()[0].rule().matches.from;
        assert_eq!(from, Some(Instant::from_ps(6_000_000)));
        assert!(desk.add(NOW, &mut links, Some("a"), &fault(r#"{"down":true}"#)).is_ok());
        assert_eq!(ids(&links), [vec![2], vec![3, 1], vec![2]]);
        let Response::Faults { links: listed, .. } = desk.list(NOW, &links) else { panic!() };
        assert_eq!(listed.iter().map(|link| link.up).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!((listed[1].to.as_str(), listed[1].faults[1].rule.as_str()), ("a", "loss"));

        assert!(desk.clear(&mut links, Some("a"), Some(2)).is_err(), "it is on no link to a");
        let gone = |count| Ok(Response::FaultsCleared { count });
        assert_eq!(desk.clear(&mut links, None, Some(2)), gone(2));
        assert_eq!(desk.clear(&mut links, Some("a"), None), gone(2));
        assert_eq!(desk.clear(&mut links, None, None), gone(0));
        // A number is never given twice.
        let again = desk.add(NOW, &mut links, Some("b"), &third);
        assert_eq!(again, Ok(Response::FaultAdded { id: 4 }));
    }

    // spec: SW-20
    #[test]
    fn what_cannot_be_added_is_refused_with_what_can() {
        let (mut desk, mut links) = desk();
        for (to, json, reason) in [
            (Some("c"), r#"{"drop":true}"#, "no link leads to \"c\"; choose one of a, b"),
            (None, r#"{"drop":true}"#, "`to` is missing: it must be one of a, b"),
            (Some("a"), r#"{"drop":true,"nth":0}"#, "nth = 0: must be a whole number from 1"),
            (Some("a"), r#"{"drop":true,"to":"b"}"#, "unknown key `to`"),
            (Some("a"), r#"{}"#, "needs exactly one of drop"),
            (Some("a"), r#"{"drop":true,"kind":"SACK\" # x\n"}"#, "kind = "),
            (Some("a"), r#"{"drop":null}"#, "not TOML"),
            (Some("a"), r#"{"drop":{"a":1}}"#, "not TOML"),
        ] {
            let refused = desk.add(NOW, &mut links, to, &fault(json)).expect_err(json);
            assert!(refused.contains(reason), "{json}: {refused}");
        }
        assert_eq!(ids(&links), [vec![], vec![1], vec![]]);
        let drop = fault(r#"{"drop":true}"#);
        let added =
            (0..=MAX_FAULTS).filter(|_| desk.add(NOW, &mut links, Some("b"), &drop).is_ok());
        assert_eq!(added.count(), MAX_FAULTS);
    }
}
