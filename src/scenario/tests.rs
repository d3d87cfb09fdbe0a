use super::*;
use crate::node::link::FaultAction;
use crate::units::Rate;
use crate::wire::opcode::Kind;

const TWO_HOSTS: &str = include_str!("../../scenarios/two-hosts.toml");
const TWO_HOSTS_CLEAN: &str = include_str!("../../scenarios/two-hosts-clean.toml");

fn read(text: &str) -> Scenario {
    parse(text, "x.toml", &Overrides::default()).expect("the scenario is right")
}

fn ideals(scenario: &Scenario) -> Vec<Option<Duration>> {
    ideal_times(scenario, &Topology::new(scenario))
}

// spec: WL-1, SW-20
#[test]
fn the_two_hosts_have_a_narrow_place_and_two_faults() {
    let scenario = read(TWO_HOSTS);
    assert_eq!((scenario.name.as_str(), scenario.profile), ("two-hosts", Profile::Reference));
    let topology = Topology::new(&scenario);
    let rates: Vec<_> = topology.links.iter().map(|link| link.rate).collect();
    assert_eq!(rates, [Rate::gbps(400), Rate::gbps(200)]);
    assert_eq!(scenario.links[1].queue_limit, Some(100_000));
    let faults: Vec<_> = scenario.links.iter().flat_map(|link| &link.faults).collect();
    assert_eq!(faults.iter().map(|rules| rules.len()).collect::<Vec<_>>(), [1, 0, 0, 1]);
    let (loss, back) = (&faults[0][0], &faults[3][0]);
    assert_eq!((loss.action, loss.matches.probability), (FaultAction::Drop, 0.01));
    assert_eq!((back.action, back.matches.probability), (FaultAction::Drop, 0.001));
    assert_eq!(back.matches.kind, Some(Kind::Sack));
    assert_eq!((scenario.flows[0].bytes, scenario.flows[0].messages), (64 << 20, 1));
}

// spec: WL-1
#[test]
fn the_clean_lab_is_the_same_without_faults_and_rates() {
    let mut rough = read(TWO_HOSTS);
    rough.name = "two-hosts-clean".to_owned();
    for link in &mut rough.links {
        (link.rate, link.queue_limit, link.faults) = (None, None, Default::default());
    }
    assert_eq!(read(TWO_HOSTS_CLEAN), rough);
}

// 16,384 packets of 4,174 bytes over 200 Gbps: 40 ps a byte. Then the first link's
// 83,480 ps for a full packet, 62 bytes of ACK over both links (2,480 + 1,240 ps)
// and the delay of 100 ns four times.
// spec: RC-9, WIRE-9
#[test]
fn ideal_time_of_the_two_hosts() {
    let busy = 16_384 * 4_174 * 40;
    let expected = busy + 83_480 + 2_480 + 1_240 + 4 * 100_000;
    assert_eq!(ideals(&read(TWO_HOSTS)), [Some(Duration::from_ps(expected))]);
}

/// `senders` NICs that each send `bytes` to one, over a switch; 100 Gbps and 1 us everywhere.
fn incast(senders: usize, bytes: u32, attributes: &str) -> Scenario {
    let mut text = format!("[nic_defaults]\n{attributes}\n[[switch]]\nname = 's'\n");
    for node in 0..=senders {
        text += &format!("[[nic]]\nname = 'n{node}'\n[[link]]\nends = ['n{node}', 's']\n");
        text += "rate = '100 Gbps'\ndelay = '1 us'\n";
    }
    for node in 1..=senders {
        text += &format!("[[write]]\nfrom = 'n{node}'\nto = 'n0'\nbytes = {bytes}\n");
    }
    read(&text)
}

// 80 ps a byte at 100 Gbps: a full packet 333,920 ps, an ACK 4,960 ps. All of a
// path's links are equally fast, so of the unloaded round trip one serialization goes.
// spec: RC-9, SEG-4
#[test]
fn ideal_time_of_one_flow_and_of_an_incast() {
    let wire = 2_000_000 + 489 * 78;
    let rest = 333_920 + 2 * 4_960 + 4 * 1_000_000;
    let one = ideals(&incast(1, 2_000_000, ""));
    assert_eq!(one, [Some(Duration::from_ps(wire * 80 + rest))]);
    let fifteen = ideals(&incast(15, 2_000_000, ""));
    assert_eq!(fifteen, vec![Some(Duration::from_ps(15 * wire * 80 + rest)); 15]);
}

// spec: RC-9, SEG-2
#[test]
fn ideal_time_of_short_messages() {
    let ps = |bytes: u64| Some(Duration::from_ps(2 * bytes * 80 + 2 * 4_960 + 4_000_000));
    assert_eq!(ideals(&incast(1, 0, "")), [ps(78)]);
    assert_eq!(ideals(&incast(1, 5, "")), [ps(83)]);
}

// TSETH and ICRC are 4 bytes each; an ACK has an ICRC too.
// spec: RC-9, WIRE-9, W-3
#[test]
fn ideal_time_counts_timestamp_and_icrc() {
    let attributes = "Icrc = true\nRTTTimestampMode = 'WireTimestamp'";
    let wire = 8_192 + 2 * 86;
    let rest = (4_096 + 86) * 80 + 2 * 66 * 80 + 4_000_000;
    let found = ideals(&incast(1, 8_192, attributes));
    assert_eq!(found, [Some(Duration::from_ps(wire * 80 + rest))]);
}

// Four flows from each leaf share four ways to the other one, so no link has more
// to carry than a NIC's: 256 packets of 4,174 bytes at 20 ps a byte. Then three
// links' serialization of a full packet, four of an ACK, and the delays.
// spec: RC-9
#[test]
fn ideal_time_of_flows_that_are_spread_over_equal_ways() {
    let fabric = read(include_str!("../../scenarios/leaf-spine-8.toml"));
    let busy = (1_048_576 + 256 * 78) * 20;
    let rest = 3 * 4_174 * 20 + 4 * 62 * 20 + 2 * (100_000 + 500_000 + 500_000 + 100_000);
    assert_eq!(ideals(&fabric), [Some(Duration::from_ps(busy + rest)); 8]);
}

// Three flows of one leaf over two ways: each way has one and a half to carry.
// spec: RC-9
#[test]
fn ideal_time_where_the_fabric_is_the_narrow_place() {
    let text = "[nic_defaults]\nMSS = 1000\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
                hosts_per_leaf = 3\n[traffic]\nkind = 'permutation'\nshift = 3\nbytes = 100000\n";
    let busy = 3 * 100 * 1_078 / 2 * 20;
    let rest = 3 * 1_078 * 20 + 4 * 62 * 20 + 2_400_000;
    assert_eq!(ideals(&read(text)), [Some(Duration::from_ps(busy + rest)); 6]);
}

// spec: RC-9
#[test]
fn nothing_is_ideal_where_nothing_is_paced() {
    let native = Overrides { profile: Some(Profile::Native), seed: None };
    let scenario = parse(TWO_HOSTS, "x.toml", &native).expect("the scenario is right");
    assert_eq!(ideals(&scenario), [None]);
}

// spec: RC-9
#[test]
fn opposite_directions_of_a_link_are_not_shared() {
    let both = TWO_HOSTS_CLEAN.to_owned() + "[[write]]\nfrom = 'b'\nto = 'a'\nbytes = '64 MiB'\n";
    let alone = ideals(&read(TWO_HOSTS_CLEAN))[0];
    assert_eq!(ideals(&read(&both)), [alone, alone]);
}

// spec: TIME-3
#[test]
fn links_take_no_modelled_time_in_native() {
    let text = TWO_HOSTS.replace("queue_limit", "delay = \"5 us\"\nqueue_limit");
    let links = |profile| {
        let overrides = Overrides { profile: Some(profile), seed: None };
        let scenario = parse(&text, "x.toml", &overrides).expect("the scenario is right");
        let links = Topology::new(&scenario).links;
        links.iter().map(|link| (link.rate, link.delay)).collect::<Vec<_>>()
    };
    assert_eq!(links(Profile::Native), [(Rate::gbps(10), Duration::ZERO); 2]);
    assert_eq!(links(Profile::Tuned)[1], (Rate::gbps(200), Duration::from_us(5)));
}

// spec: TIME-3, PB-16
#[test]
fn links_take_no_modelled_time_where_an_end_is_not_paced() {
    let text = TWO_HOSTS.replace("name = \"b\"", "name = \"b\"\nattributes.Paced = false");
    let topology = Topology::new(&read(&text));
    let links: Vec<_> = topology.links.iter().map(|link| (link.rate, link.delay)).collect();
    assert_eq!(
        links,
        [(Rate::gbps(400), Duration::from_ns(100)), (Rate::gbps(400), Duration::ZERO)]
    );
    assert_eq!(topology.nodes.iter().map(NodePlan::paced).collect::<Vec<_>>(), [true, false, true]);
}

// spec: SW-9
#[test]
fn plane_bdp_is_that_of_the_slowest_nic_where_the_file_sets_none() {
    let lab = |nics: &str, switches: &str, one: &str| {
        let text = format!(
            "{nics}\n{switches}\n[topology]\nkind = 'leaf-spine'\nleaves = 1\nspines = 1\n\
             hosts_per_leaf = 2\n[[switch]]\nname = 'spine0'\n{one}"
        );
        let native = Overrides { profile: Some(Profile::Native), seed: None };
        [Overrides::default(), native].map(|overrides| {
            let scenario = parse(&text, "x.toml", &overrides).expect("the scenario is right");
            let switches = scenario.switches.iter();
            switches.map(|switch| switch.attributes.plane_bdp).collect::<Vec<_>>()
        })
    };
    // 400 Gbps x 6 us, and native 10 Gbps x 200 us.
    assert_eq!(lab("", "", ""), [[300_000; 2], [250_000; 2]]);
    let nics =
        "[[nic]]\nname = 'h1'\nattributes = { DataRate = '100 Gbps', ConfigBaseRTT = '8 us' }";
    assert_eq!(lab(nics, "", ""), [[100_000; 2], [250_000; 2]]);
    let nics = "[nic_defaults]\nDataRate = '4 Gbps'\nConfigBaseRTT = '8 us'";
    assert_eq!(lab(nics, "", ""), [[4_156; 2]; 2], "never less than a full packet");
    let one = "attributes = { PlaneBDP = '77 KB' }";
    assert_eq!(lab(nics, "", one), [[4_156, 77_000]; 2]);
    let all = "[switch_defaults]\nPlaneBDP = '88 KB'";
    assert_eq!(lab(nics, all, one), [[88_000, 77_000]; 2]);
    // A link is not its NIC, and a switch alone has its own default.
    assert_eq!(read(TWO_HOSTS).switches[0].attributes.plane_bdp, 300_000);
    assert_eq!(crate::config::SwitchAttributes::default().plane_bdp, 300_000);
}
