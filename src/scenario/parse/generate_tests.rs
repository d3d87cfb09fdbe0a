use super::tests::{errors_of, read_text};
use super::*;
use crate::scenario::{NodeKind, Topology};
use crate::time::Duration;
use crate::units::Rate;

const LEAF_SPINE: &str = "\
[topology]
kind = 'leaf-spine'
leaves = 2
spines = 2
hosts_per_leaf = 1
parallel_links = 2
[topology.host_links]
rate = '200 Gbps'
mtu = 4500
[topology.fabric_links]
delay = '2 us'
queue_limit = '90 KB'
";

fn read_right(text: &str) -> Scenario {
    read_text(text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// A scenario's nodes and links, as a file without `[topology]` has them.
fn written_out(scenario: &Scenario) -> String {
    let mut text = String::new();
    for nic in &scenario.nics {
        text += &format!("[[nic]]\nname = '{}'\nip = '{}'\n", nic.name, nic.ip);
    }
    for switch in &scenario.switches {
        text += &format!("[[switch]]\nname = '{}'\n", switch.name);
    }
    for link in &scenario.links {
        let [a, b] = link.ends.map(|node| name(scenario, node));
        text += &format!("[[link]]\nends = ['{a}', '{b}']\n");
        if let Some(rate) = link.rate {
            text += &format!("rate = '{rate}'\n");
        }
        if let Some(delay) = link.delay {
            text += &format!("delay = '{} ps'\n", delay.as_ps());
        }
        if let Some(limit) = link.queue_limit {
            text += &format!("queue_limit = {limit}\n");
        }
        text += &format!("mtu = {}\n", link.mtu);
    }
    text
}

fn name(scenario: &Scenario, node: usize) -> &str {
    match scenario.nics.get(node) {
        Some(nic) => &nic.name,
        None => &scenario.switches[node - scenario.nics.len()].name,
    }
}

fn links(scenario: &Scenario) -> Vec<String> {
    let ends = scenario.links.iter().map(|link| link.ends.map(|node| name(scenario, node)));
    ends.map(|[a, b]| format!("{a}-{b}")).collect()
}

fn ips(scenario: &Scenario) -> Vec<String> {
    scenario.nics.iter().map(|nic| nic.ip.to_string()).collect()
}

#[test]
fn a_leaf_spine_is_what_its_lists_written_out_are() {
    let text = "\
[[nic]]
name = 'h0'
ip = '10.0.0.1'
[[nic]]
name = 'h1'
ip = '10.0.1.1'
[[switch]]
name = 'leaf0'
[[switch]]
name = 'leaf1'
[[switch]]
name = 'spine0'
[[switch]]
name = 'spine1'
[[link]]
ends = ['h0', 'leaf0']
rate = '200 Gbps'
mtu = 4500
[[link]]
ends = ['h1', 'leaf1']
rate = '200 Gbps'
mtu = 4500
";
    let mut text = text.to_owned();
    for ends in ["leaf0', 'spine0", "leaf0', 'spine1", "leaf1', 'spine0", "leaf1', 'spine1"] {
        let link = format!("[[link]]\nends = ['{ends}']\ndelay = '2 us'\nqueue_limit = '90 KB'\n");
        text += &link.repeat(2);
    }
    assert_eq!(read_right(LEAF_SPINE), read_right(&text));
}

// spec: SW-1
#[test]
fn every_generated_lab_is_the_same_written_out() {
    for kind in [
        "kind = 'two-hosts'",
        "kind = 'two-hosts'\nswitch = false",
        "kind = 'star'\nhosts = 300",
        "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nparallel_links = 2",
        "kind = 'three-tier'\npods = 2\nleaves_per_pod = 2\naggs_per_pod = 2\ncores = 4\nhosts_per_leaf = 2",
    ] {
        let generated = read_right(&format!("[topology]\n{kind}\n"));
        assert_eq!(read_right(&written_out(&generated)), generated, "{kind}");
    }
}

#[test]
fn small_labs_have_the_addresses_of_lists() {
    let two = read_right("[topology]\nkind = 'two-hosts'\n");
    assert_eq!(
        (links(&two), ips(&two)),
        (vec!["h0-s0".into(), "h1-s0".into()], vec!["10.0.0.1".into(), "10.0.0.2".into()])
    );
    let direct = read_right("[topology]\nkind = 'two-hosts'\nswitch = false\n");
    assert_eq!((links(&direct), direct.switches.len()), (vec!["h0-h1".into()], 0));
    let star = read_right("[topology]\nkind = 'star'\nhosts = 255\n");
    assert_eq!(ips(&star)[253..], ["10.0.0.254", "10.0.1.1"]);
}

#[test]
fn a_three_tier_lab_has_pods_on_shared_cores() {
    let text = "[topology]\nkind = 'three-tier'\npods = 2\nleaves_per_pod = 1\naggs_per_pod = 2\n\
                cores = 4\nhosts_per_leaf = 2\n";
    let lab = read_right(text);
    assert_eq!(ips(&lab), ["10.0.0.1", "10.0.0.2", "10.1.0.1", "10.1.0.2"]);
    assert_eq!(
        links(&lab).join(" "),
        "h0-leaf0 h1-leaf0 h2-leaf1 h3-leaf1 \
         leaf0-agg0 leaf0-agg1 leaf1-agg2 leaf1-agg3 \
         agg0-core0 agg0-core1 agg1-core2 agg1-core3 agg2-core0 agg2-core1 agg3-core2 agg3-core3"
    );
}

// 1,024 hosts in 8 pods: a host's leaf has all 4 aggregation switches of its pod
// for another pod, each of these its 4 cores, and each core one way down.
// spec: SW-1
#[test]
fn a_thousand_hosts_are_routed_over_all_shortest_ways() {
    let text = "[topology]\nkind = 'three-tier'\npods = 8\nleaves_per_pod = 4\naggs_per_pod = 4\n\
                cores = 16\nhosts_per_leaf = 32\n";
    let scenario = read_right(text);
    let topology = Topology::new(&scenario);
    let last = scenario.nics[1_023].ip;
    assert_eq!(last.to_string(), "10.7.3.32");
    let members = |name: &str| {
        let node = topology.node(name).expect("it is there");
        let NodeKind::Switch(switch) = &topology.nodes[node.0 as usize].kind else { panic!() };
        assert_eq!(switch.routes.len(), 1_024);
        switch.routes[1_023].ports.len()
    };
    let found = ["leaf0", "agg0", "core0", "agg28", "leaf31"].map(members);
    assert_eq!(found, [4, 4, 1, 1, 1]);
    assert_eq!(scenario.links.len(), 1_024 + 32 * 4 + 32 * 4);
}

#[test]
fn sections_change_generated_nodes_and_add_others() {
    let more = "\
[[nic]]
name = 'h1'
ip = '10.9.9.9'
[nic.attributes]
MSS = 1024
[[switch]]
name = 'spine1'
[switch.attributes]
PlaneBDP = '50 KB'
[[nic]]
name = 'storage'
[[link]]
ends = ['storage', 'spine1']
[[fault]]
from = 'leaf0'
to = 'spine1'
drop = true
[[write]]
from = 'h0'
to = 'storage'
bytes = 1
";
    let scenario = read_right(&format!("{LEAF_SPINE}{more}"));
    assert_eq!(ips(&scenario), ["10.0.0.1", "10.9.9.9", "10.255.0.1"]);
    let mss: Vec<_> = scenario.nics.iter().map(|nic| nic.attributes.mss).collect();
    assert_eq!(mss, [4096, 1024, 4096]);
    let bdp: Vec<_> = scenario.switches.iter().map(|s| s.attributes.plane_bdp).collect();
    assert_eq!(bdp, [300_000, 300_000, 300_000, 50_000]);
    assert_eq!(links(&scenario)[10..], ["storage-spine1"]);
    let faults = scenario.links.iter().map(|link| link.faults[0].len());
    assert_eq!(faults.collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
    assert_eq!((scenario.flows[0].from, scenario.flows[0].to), (0, 2));
    assert_eq!(scenario.links[0].rate, Some(Rate::gbps(200)));
    assert_eq!(scenario.links[2].delay, Some(Duration::from_us(2)));
}

#[test]
fn numbers_that_make_no_topology_are_refused() {
    let found = |text: &str| errors_of(&format!("[topology]\n{text}\n"));
    let kinds = "must be one of two-hosts, star, leaf-spine, three-tier";
    assert_eq!(found("kind = 'torus'"), [format!("2: [topology] kind = 'torus': {kinds}")]);
    assert_eq!(found("hosts = 2"), [format!("1: [topology] `kind` is missing: it {kinds}")]);
    assert_eq!(
        found("kind = 'star'\nhosts = 1025\nspines = 2"),
        [
            "3: [topology] hosts = 1025: must be a whole number from 1 to 1024",
            "4: [topology] unknown key `spines`; correct or remove it: the keys here are kind, hosts, host_links",
        ]
    );
    assert_eq!(
        found("kind = 'leaf-spine'\nleaves = 0\nparallel_links = 65"),
        [
            "1: [topology] `spines` is missing: it must be a whole number from 1 to 256",
            "1: [topology] `hosts_per_leaf` is missing: it must be a whole number from 1 to 254",
            "3: [topology] leaves = 0: must be a whole number from 1 to 256",
            "4: [topology] parallel_links = 65: must be a whole number from 1 to 64",
        ]
    );
    assert_eq!(
        found("kind = 'leaf-spine'\nleaves = 256\nspines = 256\nhosts_per_leaf = 1"),
        [
            "1: [topology] makes 65792 links, and a scenario has at most 65536; lower some of its numbers"
        ]
    );
    let tiers = "kind = 'three-tier'\npods = 1\nleaves_per_pod = 1\naggs_per_pod = 2\ncores = 3\nhosts_per_leaf = 1";
    assert_eq!(
        found(tiers),
        [
            "6: [topology] cores = 3: must be a multiple of aggs_per_pod = 2: the cores are dealt out evenly to the aggregation switches of a pod"
        ]
    );
}

#[test]
fn what_is_wrong_with_all_generated_links_is_said_once() {
    assert_eq!(
        errors_of(&LEAF_SPINE.replace("mtu = 4500", "mtu = 1500").replace("'2 us'", "2")),
        [
            "9: [topology.host_links] mtu = 1500: too small for MSS = 4096 of NIC h0, whose full packets are IP datagrams of 4156 bytes; set mtu to 4156 or more, or a smaller MSS",
            "11: [topology.fabric_links] delay = 2: must be a time with a unit (ps, ns, us, ms, s), such as \"150 us\"",
        ]
    );
}

#[test]
fn names_and_addresses_of_generated_nodes_are_taken() {
    let more = "[[nic]]\nname = 'leaf0'\nip = '10.0.1.1'\n[[link]]\nends = ['h0', 'leaf1']\n";
    let found = errors_of(&format!("{LEAF_SPINE}{more}"));
    for wanted in [
        "1: [topology] makes a node leaf0, and another has this name; rename that one",
        "1: [topology] NIC h0 is an end of 2 links; a NIC has one port, so give it one [[link]]",
        "15: [[nic]] ip = '10.0.1.1': NIC h1 has the address 10.0.1.1 too; give each NIC its own",
    ] {
        assert!(found.iter().any(|found| found == wanted), "{wanted}\n{found:#?}");
    }
}
