use mrc_lab::scenario::{Overrides, Scenario, parse};

use super::*;

const LEAF_SPINE: &str = include_str!("../../../scenarios/leaf-spine-8.toml");
const TWO_HOSTS: &str = include_str!("../../../scenarios/two-hosts.toml");
const THREE_TIER: &str = "[topology]\nkind = 'three-tier'\npods = 2\nleaves_per_pod = 2\n\
    aggs_per_pod = 2\ncores = 4\nhosts_per_leaf = 2\n[topology.fabric_links]\nrate = '800 Gbps'\n\
    [[switch]]\nname = 'x'\n[[link]]\nends = ['x', 'leaf0']\n[[link]]\nends = ['leaf0', 'leaf1']\n\
    delay = '1 us'\n";

fn scenario(text: &str) -> Scenario {
    parse(text, "lab.toml", &Overrides::default()).expect("the scenario is right")
}

fn with_map<R>(text: &str, f: impl FnOnce(&Map<'_>) -> R) -> R {
    let scenario = scenario(text);
    f(&Map::new(&scenario.name, &Topology::new(&scenario)))
}

#[test]
fn a_leaf_spine_as_text() {
    assert_eq!(
        with_map(LEAF_SPINE, text::draw),
        "\
leaf-spine-8: 8 NICs, 4 switches, 16 links

tier 2  spine0, spine1
   |      each of leaf0, leaf1 to each of spine0, spine1: 2 x 400 Gbps, 500 ns
tier 1  leaf0, leaf1
   |      each of h0 .. h3 to leaf0: 400 Gbps, 100 ns
   |      each of h4 .. h7 to leaf1: 400 Gbps, 100 ns
NICs    h0 .. h7

equal-cost sets
  leaf0, leaf1 to 4 NICs by 1 port, 4 NICs by 4 ports
  spine0, spine1 to 8 NICs by 2 ports
"
    );
}

#[test]
fn nodes_of_lists_as_text() {
    assert_eq!(
        with_map(TWO_HOSTS, text::draw),
        "\
two-hosts: 2 NICs, 1 switch, 2 links

tier 1  s
   |      a to s: 400 Gbps, 100 ns
   |      b to s: 200 Gbps, 100 ns
NICs    a, b

equal-cost sets
  s to 2 NICs by 1 port
"
    );
    let direct = "[topology]\nkind = 'two-hosts'\nswitch = false\n";
    assert_eq!(
        with_map(direct, text::draw),
        "\
lab: 2 NICs, 0 switches, 1 link

NICs    h0, h1
   =      h0 to h1: 400 Gbps, 100 ns
"
    );
}

#[test]
fn three_tiers_and_what_is_added_as_text() {
    assert_eq!(
        with_map(THREE_TIER, text::draw),
        "\
lab: 8 NICs, 13 switches, 26 links

tier 3  core0 .. core3
   |      each of agg0, agg2 to each of core0, core1: 800 Gbps, 500 ns
   |      each of agg1, agg3 to each of core2, core3: 800 Gbps, 500 ns
tier 2  agg0 .. agg3, x
   |      each of leaf0, leaf1 to each of agg0, agg1: 800 Gbps, 500 ns
   |      leaf0 to x: 400 Gbps, 500 ns
   |      each of leaf2, leaf3 to each of agg2, agg3: 800 Gbps, 500 ns
tier 1  leaf0 .. leaf3
   =      leaf0 to leaf1: 400 Gbps, 1 us
   |      each of h0, h1 to leaf0: 400 Gbps, 100 ns
   |      each of h2, h3 to leaf1: 400 Gbps, 100 ns
   |      each of h4, h5 to leaf2: 400 Gbps, 100 ns
   |      each of h6, h7 to leaf3: 400 Gbps, 100 ns
NICs    h0 .. h7

equal-cost sets
  leaf0, leaf1, agg0 .. agg3 to 4 NICs by 1 port, 4 NICs by 2 ports
  leaf2, leaf3 to 2 NICs by 1 port, 6 NICs by 2 ports
  core0 .. core3, x to 8 NICs by 1 port
"
    );
}

/// The names of an SVG's elements in their order; fails where it is not well-formed.
fn elements(xml: &str) -> Vec<&str> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    let mut rest = xml;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains(['>', '&']), "{}", &rest[..start]);
        let end = start + rest[start..].find('>').expect("every tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        let name = tag.trim_matches('/').split_whitespace().next().expect("a tag has a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else {
            found.push(name);
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    found
}

#[test]
fn a_drawing_has_each_node_and_each_link_once() {
    for text in [LEAF_SPINE, TWO_HOSTS, THREE_TIER] {
        let scenario = scenario(text);
        let drawing = with_map(text, svg::draw);
        let elements = elements(&drawing);
        let count = |name| elements.iter().filter(|element| **element == name).count();
        let names = scenario.nics.iter().map(|nic| &nic.name);
        let names: Vec<_> = names.chain(scenario.switches.iter().map(|s| &s.name)).collect();
        assert_eq!((count("svg"), count("g")), (1, names.len()));
        assert_eq!(count("path"), scenario.links.len());
        for name in names {
            assert_eq!(drawing.matches(&format!("id=\"node-{name}\"")).count(), 1, "{name}");
        }
        for link in 0..scenario.links.len() {
            assert_eq!(drawing.matches(&format!("id=\"link-{link}\"")).count(), 1, "{link}");
        }
    }
}

#[test]
fn links_that_differ_or_have_faults_look_different() {
    let drawing = with_map(TWO_HOSTS, svg::draw);
    let class = |link: &str| {
        let (_, after) = drawing.split_once(&format!("id=\"link-{link}\" class=\"")).expect("it");
        after.split('"').next().expect("a class").to_owned()
    };
    assert_eq!([class("0"), class("1")], ["link faulty", "link faulty"]);
    let drawing = with_map(THREE_TIER, svg::draw);
    assert_eq!(drawing.matches("class=\"link odd\"").count(), 2);
    assert!(drawing.contains("<title>leaf0 to leaf1: 400 Gbps, 1 us</title>"));
    assert!(drawing.contains("<title>h7 10.1.1.2</title>"));
}

#[test]
fn json_has_nodes_links_and_routes() {
    let json = with_map(LEAF_SPINE, |map| serde_json::to_value(listing(map)).expect("JSON"));
    assert_eq!(json["name"], "leaf-spine-8");
    let nic = serde_json::json!({ "name": "h4", "kind": "nic", "tier": 0, "ip": "10.0.1.1" });
    assert_eq!(json["nodes"][4], nic);
    let switch = serde_json::json!({ "name": "spine1", "kind": "switch", "tier": 2 });
    assert_eq!(json["nodes"][11], switch);
    let link = serde_json::json!({
        "ends": ["leaf0", "spine0"],
        "ports": [5, 1],
        "rate_bps": 400_000_000_000_u64,
        "delay_ps": 500_000,
        "mtu": 4200,
    });
    assert_eq!(json["links"][9], link);
    let routes = json["routes"].as_array().expect("a list");
    assert_eq!(routes.len(), 4 * 8);
    let far = serde_json::json!({ "switch": "leaf0", "to": "10.0.1.1/32", "ports": [4, 5, 6, 7] });
    assert_eq!(routes[4], far);
}
