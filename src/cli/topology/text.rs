//! A topology as text.

use super::map::{Bundle, Map};
use mrc_lab::scenario::NodeKind;

/// Draws the map: the highest tier first, below each the links that lead down
/// from it, and at the end how many ways the switches have.
pub fn draw(map: &Map<'_>) -> String {
    let switches = map.topology.nodes.len() - map.nodes_of(0).len();
    let mut text = format!(
        "{}: {}, {}, {}\n\n",
        map.name,
        counted(map.nodes_of(0).len(), "NIC", "NICs"),
        counted(switches, "switch", "switches"),
        counted(map.topology.links.len(), "link", "links"),
    );
    for tier in (0..=map.top()).rev() {
        let label = if tier == 0 { "NICs".to_owned() } else { format!("tier {tier}") };
        text += &format!("{label:<8}{}\n", names(map, &map.nodes_of(tier)));
        text += &links(map, tier, tier, '=');
        if tier > 0 {
            text += &links(map, tier - 1, tier, '|');
        }
    }
    text + &equal_cost_sets(map)
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The links between two tiers. Nodes that are joined to the same nodes in the
/// same manner share a line.
fn links(map: &Map<'_>, lower: usize, upper: usize, mark: char) -> String {
    let mut lines: Vec<(String, Vec<usize>, Vec<usize>)> = Vec::new();
    let bundles: Vec<&Bundle> = map.bundles_between(lower, upper).collect();
    for of_node in bundles.chunk_by(|a, b| a.ends[0] == b.ends[0]) {
        for (quality, above) in by_quality(of_node) {
            let node = of_node[0].ends[0];
            let same = |(q, _, a): &&mut (String, Vec<_>, Vec<_>)| *q == quality && *a == above;
            match lines.iter_mut().rev().find(same) {
                Some((_, nodes, _)) => nodes.push(node),
                None => lines.push((quality, vec![node], above)),
            }
        }
    }
    let line = |(quality, below, above): (String, Vec<usize>, Vec<usize>)| {
        let [of, to] = [&below, &above].map(|nodes| if nodes.len() > 1 { "each of " } else { "" });
        let (below, above) = (names(map, &below), names(map, &above));
        format!("   {mark}      {of}{below} to {to}{above}: {quality}\n")
    };
    lines.into_iter().map(line).collect()
}

/// A node's links upwards: what they are like, and to whom.
fn by_quality(bundles: &[&Bundle]) -> Vec<(String, Vec<usize>)> {
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    for bundle in bundles {
        let quality = match bundle.links.len() {
            1 => bundle.quality.text(),
            count => format!("{count} x {}", bundle.quality.text()),
        };
        match found.iter_mut().find(|(known, _)| *known == quality) {
            Some((_, above)) => above.push(bundle.ends[1]),
            None => found.push((quality, vec![bundle.ends[1]])),
        }
    }
    found
}

/// How many NICs each switch reaches by how many ports; switches that are alike
/// share a line.
fn equal_cost_sets(map: &Map<'_>) -> String {
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    for (number, node) in map.topology.nodes.iter().enumerate() {
        let NodeKind::Switch(switch) = &node.kind else { continue };
        let mut sizes = std::collections::BTreeMap::<usize, usize>::new();
        for route in &switch.routes {
            *sizes.entry(route.ports.len()).or_default() += 1;
        }
        let parts = sizes.iter().map(|(ports, nics)| {
            format!("{} by {}", counted(*nics, "NIC", "NICs"), counted(*ports, "port", "ports"))
        });
        let sets = parts.collect::<Vec<_>>().join(", ");
        match found.iter_mut().find(|(known, _)| *known == sets) {
            Some((_, switches)) => switches.push(number),
            None => found.push((sets, vec![number])),
        }
    }
    let lines = found.iter().map(|(sets, switches)| {
        let sets = if sets.is_empty() { "nothing" } else { sets };
        format!("  {} to {sets}\n", names(map, switches))
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\nequal-cost sets\n{lines}") }
}

/// Names with runs of three and more cut short: `h0 .. h7, storage`.
fn names(map: &Map<'_>, nodes: &[usize]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| map.node_name(*node)).collect();
    let runs = names.chunk_by(|a, b| follows(a, b)).map(|run| match run {
        [first, _, .., last] => format!("{first} .. {last}"),
        _ => run.join(", "),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// Whether `b` is `a` with the next number.
fn follows(a: &str, b: &str) -> bool {
    let number = |name: &str| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name[stem..].parse::<u64>().ok().map(|number| (stem, number))
    };
    match (number(a), number(b)) {
        (Some((at, n)), Some((bt, m))) => a[..at] == b[..bt] && n.checked_add(1) == Some(m),
        _ => false,
    }
}
