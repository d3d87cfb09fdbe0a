use super::*;
use crate::config::{NicAttributes, SwitchAttributes};
use crate::node::link::{Bottleneck, FaultAction, FaultRule, PacketMatch, Shape};
use crate::scenario::parse_fault;
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::opcode::Kind;
use crate::wire::psn::Psn;
use crate::wire::qpn::Qpn;
use crate::wire::role::Role;

/// Two NICs and a switch, 8 lines; tests add what they are about.
pub(super) const LAB: &str = "\
[[nic]]
name = 'a'
[[nic]]
name = 'b'
[[switch]]
name = 's'
[[link]]
ends = ['a', 's']
[[link]]
ends = ['s', 'b']
";

pub(super) fn read_text(text: &str) -> Result<Scenario, Vec<String>> {
    parse(text, "labs/x.toml", &Overrides::default())
        .map_err(|errors| errors.iter().map(|error| error.to_string()).collect())
}

/// The messages for `text`, without the file's name.
pub(super) fn errors_of(text: &str) -> Vec<String> {
    let errors = read_text(text).expect_err("the text is wrong");
    errors.iter().map(|e| e.strip_prefix("labs/x.toml:").unwrap().trim().to_owned()).collect()
}

/// The messages for the lab of two hosts with `more` from its line 11 on.
pub(super) fn errors_with(more: &str) -> Vec<String> {
    errors_of(&format!("{LAB}{more}"))
}

fn lab_with(more: &str) -> Scenario {
    read_text(&format!("{LAB}{more}")).expect("the text is right")
}

// spec: WL-1, TIME-3
#[test]
fn what_is_not_given_has_its_default() {
    let scenario = lab_with("[[write]]\nfrom = 'a'\nto = 'b'\nbytes = 5\n");
    assert_eq!((scenario.name.as_str(), scenario.seed), ("x", 1));
    assert_eq!(scenario.profile, Profile::Reference);
    assert_eq!(scenario.nics[1].ip.to_string(), "10.0.0.2");
    assert_eq!(scenario.nics[0].attributes, NicAttributes::default());
    assert_eq!(scenario.switches[0].attributes, SwitchAttributes::default());
    let link = &scenario.links[1];
    assert_eq!((link.ends, link.rate, link.delay, link.queue_limit), ([2, 1], None, None, None));
    assert_eq!((link.mtu, &link.faults), (4_200, &[vec![], vec![]]));
    let Flow { messages, one_qp, depth, start, .. } = scenario.flows[0];
    assert_eq!((messages, one_qp, depth, start), (1, false, 128, Duration::ZERO));
}

// spec: WL-1
#[test]
fn what_is_given_is_taken() {
    let text = "\
name = 'lab-7'
profile = 'native'
seed = 18446744073709551615
nic_defaults = { InitialAckTimeout = '30 ms', MSS = 1024 }
[switch_defaults]
PlaneBDP = '50 KB'
[[nic]]
name = 'a'
ip = '192.168.7.9'
[nic.attributes]
MSS = 2048
[[nic]]
name = 'b'
[[link]]
ends = ['a', 'b']
rate = '25 Gbps'
delay = '2 us'
queue_limit = '10 KB'
mtu = 2200
[[write]]
from = 'b'
to = 'a'
bytes = '1 KiB'
messages = 9
qp = 'one'
depth = 2
start = '30 us'
";
    let scenario = read_text(text).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.seed), ("lab-7", u64::MAX));
    assert_eq!(scenario.profile, Profile::Native);
    let [a, b] = &scenario.nics[..] else { panic!("two NICs") };
    assert_eq!((a.ip.to_string(), b.ip.to_string()), ("192.168.7.9".into(), "10.0.0.2".into()));
    assert_eq!((a.attributes.mss, b.attributes.mss), (2048, 1024));
    assert_eq!(a.attributes.initial_ack_timeout, Duration::from_ms(30));
    assert!(a.attributes.icrc && !a.attributes.paced);
    let link = &scenario.links[0];
    assert_eq!((link.rate, link.delay), (Some(Rate::gbps(25)), Some(Duration::from_us(2))));
    assert_eq!((link.queue_limit, link.mtu), (Some(10_000), 2_200));
    let (bytes, start) = (1024, Duration::from_us(30));
    let flow = Flow { from: 1, to: 0, bytes, messages: 9, one_qp: true, depth: 2, start };
    assert_eq!(scenario.flows, [flow]);
}

// spec: TIME-3
#[test]
fn the_command_line_goes_before_the_file() {
    let overrides = Overrides { profile: Some(Profile::Tuned), seed: Some(9) };
    let text = format!("profile = 'native'\nseed = 4\n[nic_defaults]\nMaxPSNRange = 77\n{LAB}");
    let scenario = parse(&text, "x.toml", &overrides).unwrap();
    assert_eq!((scenario.profile, scenario.seed), (Profile::Tuned, 9));
    let nic = &scenario.nics[0].attributes;
    assert_eq!((nic.sack_loss_min_retx_pkts, nic.max_psn_range), (64, 77));
}

// spec: SW-20
#[test]
fn faults_become_rules_of_one_direction() {
    let scenario = lab_with(
        "[[fault]]\nfrom = 'a'\nto = 's'\ndrop = true\nkind = 'WRITE'\nprobability = 0.01\n\
         [[fault]]\nfrom = 's'\nto = 'a'\nhold = '2 ms'\nrole = 'TRIMMED'\nqpn = 7\npsn = 0xffffff\n\
         entropy = 49152\nretransmission = true\nnth = 3\nlimit = 1\nafter = '1 us'\nbefore = '2 us'\n\
         [[fault]]\nfrom = 's'\nto = 'a'\ntrim = 'last-hop'\n\
         [[fault]]\nfrom = 's'\nto = 'b'\ncorrupt_bit = 5\nprobability = 1\n\
         [[fault]]\nfrom = 's'\nto = 'b'\ncorrupt_bit = 'random'\n\
         [[fault]]\nfrom = 's'\nto = 'b'\nduplicate = true\n",
    );
    let loss = PacketMatch { kind: Some(Kind::Write), probability: 0.01, ..Default::default() };
    let hold = PacketMatch {
        role: Some(Role::Trimmed),
        qpn: Qpn::new(7),
        psn: Psn::new(0xff_ffff),
        entropy: Some(49_152),
        retransmission: Some(true),
        nth: Some(3),
        limit: Some(1),
        from: Some(Instant::ZERO + Duration::from_us(1)),
        until: Some(Instant::ZERO + Duration::from_us(2)),
        ..Default::default()
    };
    let any = |action| FaultRule { matches: PacketMatch::default(), action };
    assert_eq!(
        scenario.links[0].faults,
        [
            vec![FaultRule { matches: loss, action: FaultAction::Drop }],
            vec![
                FaultRule { matches: hold, action: FaultAction::Hold(Duration::from_ms(2)) },
                any(FaultAction::Trim { last_hop: true }),
            ],
        ]
    );
    assert_eq!(
        scenario.links[1].faults,
        [
            vec![
                any(FaultAction::Corrupt { bit: Some(5) }),
                any(FaultAction::Corrupt { bit: None }),
                any(FaultAction::Duplicate),
            ],
            vec![],
        ]
    );
}

#[test]
fn unknown_keys_are_named_with_what_is_known() {
    assert_eq!(
        errors_with("[[write]]\nfrom = 'a'\nto = 'b'\nbytes = 1\nbyte = 2\n"),
        [
            "15: [[write]] unknown key `byte`; correct or remove it: the keys here are from, to, bytes, messages, qp, depth, start"
        ]
    );
    assert_eq!(
        errors_of(&format!("sed = 1\n{LAB}")),
        [
            "1: unknown key `sed`; correct or remove it: the keys here are name, profile, seed, nic_defaults, switch_defaults, topology, nic, switch, link, fault, write, traffic, exec"
        ]
    );
    let found = errors_of(&format!("[nic_defaults]\nmss = 1\n[switch_defaults]\nFoo = 1\n{LAB}"));
    assert_eq!(
        found,
        [
            "2: [nic_defaults] `mss` is not an attribute of a NIC; did you mean `MSS`? `mrc attributes nic` lists them",
            "4: [switch_defaults] `Foo` is not an attribute of a switch; `mrc attributes switch` lists them",
        ]
    );
}

#[test]
fn attributes_out_of_range_are_refused() {
    let attributes = "[nic_defaults]\nMSS = 9000\nMaxPSNRange = 99999999999999999999\n";
    assert_eq!(
        errors_of(&format!("{attributes}{LAB}")),
        [
            "2: [nic_defaults] `MSS = 9000`: must be a whole number (1 to 8192); correct it, or remove it to keep 4096",
            "3: [nic_defaults] `MaxPSNRange = 99999999999999999999`: must be a whole number (1 to 32640); correct it, or remove it to keep 1024",
        ]
    );
    assert_eq!(
        errors_of(&format!("{LAB}[switch.attributes]\nDelay = 5\n")),
        [
            "12: [switch.attributes] `Delay = 5`: must be a time (\"0 s\" to \"1 s\"); correct it, or remove it to keep 500 ns"
        ]
    );
}

#[test]
fn attributes_with_dots_may_be_keys_or_tables() {
    let b = LAB.replace(
        "name = 'b'\n",
        "name = 'b'\n[nic.attributes.PcieNicSide]\nLaneCount = 3\nLaneBps = '1 Gbps'\n",
    );
    let dotted = "PcieNicSide.LaneCount = 2\n'PcieHostSide.LaneCount' = 7\n";
    let scenario = read_text(&format!("[nic_defaults]\n{dotted}{b}")).unwrap();
    let lanes = |nic: usize| {
        let NicAttributes { pcie_nic, pcie_host, .. } = &scenario.nics[nic].attributes;
        (pcie_nic.lane_count, pcie_host.lane_count)
    };
    assert_eq!((lanes(0), lanes(1)), ((2, 7), (3, 7)));
    assert_eq!(scenario.nics[1].attributes.pcie_nic.lane_rate, Rate::gbps(1));
    assert_eq!(
        errors_of(&format!(
            "[nic_defaults]\nPcieNicSide.LaneCount = 17\n[nic_defaults.PcieHostSide]\nLanes.n = 1\n{LAB}"
        )),
        [
            "2: [nic_defaults] `PcieNicSide.LaneCount = 17`: must be a whole number (1 to 16); correct it, or remove it to keep 16",
            "4: [nic_defaults] `PcieHostSide.Lanes.n` is not an attribute of a NIC; did you mean `PcieHostSide.LaneBps`? `mrc attributes nic` lists them",
        ]
    );
}

// spec: PB-8, RTT-2
#[test]
fn attributes_that_do_not_go_together_are_refused_at_their_nic() {
    let defaults = "[nic_defaults]\nEgressBufferManager.PoolAllocationVector = [1]\n";
    let a = "name = 'a'\nattributes = { RTTTimestampMode = 'WireTimestamp', InitialAckTimeout = '20 ms' }";
    let found = errors_of(&format!("{defaults}{}", LAB.replace("name = 'a'", a)));
    assert_eq!(found.len(), 2, "{found:?}");
    let starts = [
        "3: [[nic]] NIC a: `RTTTimestampMode = WireTimestamp`: ",
        "3: [[nic]] NICs a, b: `EgressBufferManager.PoolAllocationVector = [1]`: must have",
    ];
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}");
    }
}

#[test]
fn unknown_nodes_are_named_with_those_that_are_there() {
    assert_eq!(
        errors_with("[[write]]\nfrom = 'a'\nto = \"c\"\nbytes = 1\n"),
        ["13: [[write]] to = \"c\": no NIC of that name; the NICs are a, b"]
    );
    assert_eq!(
        errors_with("[[write]]\nfrom = 's'\nto = 'b'\nbytes = 1\n"),
        ["12: [[write]] from = 's': no NIC of that name; the NICs are a, b"]
    );
    assert_eq!(
        errors_with("[[link]]\nends = ['s', 'q']\n"),
        [
            "12: [[link]] ends = ['s', 'q']: \"q\": no node of that name; the NICs are a, b, the switches s"
        ]
    );
    assert_eq!(
        errors_with("[[fault]]\nfrom = 'q'\nto = 's'\ndrop = true\n"),
        ["12: [[fault]] from = 'q': no node of that name; the NICs are a, b, the switches s"]
    );
}

// spec: WIRE-9, W-3
#[test]
fn mtus_have_room_for_full_packets() {
    let lab =
        |attributes: &str, mtu: u32| format!("[nic_defaults]\n{attributes}\n{LAB}mtu = {mtu}\n");
    assert_eq!(
        errors_of(&lab("", 4155)),
        [
            "13: [[link]] mtu = 4155: too small for MSS = 4096 of NIC a, whose full packets are IP datagrams of 4156 bytes; set mtu to 4156 or more, or a smaller MSS"
        ]
    );
    assert_eq!(read_text(&lab("", 4156)).unwrap().links[1].mtu, 4156);
    let more = "Icrc = true\nRTTTimestampMode = 'WireTimestamp'\nMSS = 1000";
    assert!(errors_of(&lab(more, 1067))[0].contains("set mtu to 1068 or more"));
    assert!(read_text(&lab(more, 1068)).is_ok());
    assert_eq!(
        errors_of(&lab("MSS = 100", 575)),
        ["13: [[link]] mtu = 575: must be a whole number from 576 to 65535"]
    );
    let large = read_text(&format!("[nic_defaults]\nMSS = 8192\n{LAB}")).unwrap();
    assert_eq!(large.links[0].mtu, 8_260);
}

// spec: W-3, W-13
#[test]
fn all_nodes_agree_on_how_frames_look() {
    let b = "[[nic]]\nname = 'a'\n[[nic]]\nname = 'b'\n[nic.attributes]\n";
    let link = "[[link]]\nends = ['a', 'b']\n";
    assert_eq!(
        errors_of(&format!("{b}Icrc = true\nUdpPort = 5000\nDscpControl = 1\n{link}")),
        [
            "3: [[nic]] NIC b has UdpPort = 5000 and NIC a has UdpPort = 4791; all NICs must agree, so set it in [nic_defaults]",
            "3: [[nic]] NIC b has Icrc = true and NIC a has Icrc = false; all NICs must agree, so set it in [nic_defaults]",
            "3: [[nic]] NIC b has DscpControl = 1 and NIC a has DscpControl = 46; all NICs must agree, so set it in [nic_defaults]",
        ]
    );
    assert_eq!(
        errors_of(&format!("[nic_defaults]\nDscpControl = 12\n{LAB}")),
        [
            "3: [[nic]] NICs a, b: `DscpControl = 12`: DscpTrimmed is the same, and all six codepoints must differ; give each its own"
        ]
    );
}

// spec: W-13, SW-16
#[test]
fn switches_know_the_port_and_codepoints_of_the_nics() {
    let text = format!("[nic_defaults]\nUdpPort = 5000\nDscpControl = 1\n{LAB}");
    let scenario = read_text(&text).unwrap();
    let switch = &scenario.switches[0].attributes;
    assert_eq!((switch.udp_port, switch.codepoints.control), (5000, 1));
}

#[test]
fn names_and_addresses_are_right_and_used_once() {
    let lab = LAB.replace("'b'", "'a'").replace("['s', 'a']", "['s', 's']");
    assert_eq!(
        errors_of(&lab)[0],
        "4: [[nic]] name = 'a': another node has this name; give each node its own"
    );
    let twice = LAB.replace("name = 'a'", "name = 'a'\nip = '10.0.0.2'");
    assert_eq!(
        errors_of(&twice),
        ["4: [[nic]] NIC a has the address 10.0.0.2 too; give each NIC its own"]
    );
    for name in ["", "a b", "-a", "..", "é", &"n".repeat(65)] {
        let found = errors_of(&format!("name = \"{name}\"\n{LAB}"));
        assert!(found[0].contains("must be 1 to 64 letters"), "{found:?}");
    }
    for ip in ["10.0.0", "0.0.0.1", "127.0.0.1", "224.0.0.1", "255.255.255.255"] {
        let found = errors_of(&LAB.replace("name = 'a'", &format!("name = 'a'\nip = '{ip}'")));
        assert_eq!(
            found,
            [format!(
                "3: [[nic]] ip = '{ip}': must be the IPv4 address of one host, such as \"10.0.0.1\""
            )]
        );
    }
}

// spec: RC-7
#[test]
fn no_node_takes_the_name_of_the_merged_capture() {
    assert!(errors_of("[[nic]]\nname = 'merged'\n").contains(
        &"2: [[nic]] name = 'merged': the merged capture has this name; choose another".to_owned()
    ));
}

#[test]
fn a_nic_has_one_link_and_a_link_two_ends() {
    assert_eq!(
        errors_with("[[nic]]\nname = 'c'\n"),
        ["11: [[nic]] NIC c is an end of 0 links; a NIC has one port, so give it one [[link]]"]
    );
    assert_eq!(
        errors_with("[[link]]\nends = ['a', 'b']\n"),
        [
            "1: [[nic]] NIC a is an end of 2 links; a NIC has one port, so give it one [[link]]",
            "3: [[nic]] NIC b is an end of 2 links; a NIC has one port, so give it one [[link]]",
        ]
    );
    assert_eq!(
        errors_with("[[link]]\nends = ['s', 's']\n"),
        ["12: [[link]] ends = ['s', 's']: a link joins two different nodes"]
    );
    assert_eq!(
        errors_with("[[link]]\nends = ['s']\n"),
        ["12: [[link]] ends = ['s']: must be the names of two nodes, such as [\"a\", \"s\"]"]
    );
    assert_eq!(
        errors_with("[[link]]\nrate = '0 Gbps'\n"),
        [
            "11: [[link]] `ends` is missing: it must be the names of two nodes, such as [\"a\", \"s\"]",
            "12: [[link]] rate = '0 Gbps': must be a rate with a unit, such as \"200 Gbps\"",
        ]
    );
}

// spec: SW-20
#[test]
fn faults_slow_links_and_take_them_down() {
    let scenario = lab_with(
        "[[fault]]\nfrom = 'a'\nto = 's'\nrate = '10 Gbps'\ndelay = '5 us'\njitter = '1 us'\n\
         [[fault]]\nfrom = 'a'\nto = 's'\nrate = '10 Gbps'\nqueue_limit = 5000\n\
         [[fault]]\nfrom = 's'\nto = 'a'\njitter = '1 us'\n\
         [[fault]]\nfrom = 's'\nto = 'a'\nreorder = 3\nprobability = 0.5\n\
         [[fault]]\nfrom = 's'\nto = 'a'\ndown = true\nbefore = '2 us'\nevery = '5 us'\n",
    );
    let any = |action| FaultRule { matches: PacketMatch::default(), action };
    let slow = |queue_limit| Some(Bottleneck { rate: Rate::gbps(10), queue_limit });
    let [delay, jitter] = [5, 1].map(Duration::from_us);
    let shapes = [
        Shape { bottleneck: slow(250_000), delay, jitter },
        Shape { bottleneck: slow(5_000), ..Shape::default() },
    ];
    assert_eq!(scenario.links[0].faults[0], shapes.map(FaultAction::Shape).map(any));
    let half = PacketMatch { probability: 0.5, ..PacketMatch::default() };
    let flaps = PacketMatch {
        from: Some(Instant::ZERO),
        until: Some(Instant::ZERO + Duration::from_us(2)),
        every: Some(Duration::from_us(5)),
        ..PacketMatch::default()
    };
    assert_eq!(
        scenario.links[0].faults[1],
        [
            any(FaultAction::Shape(Shape { jitter, ..Shape::default() })),
            FaultRule { matches: half, action: FaultAction::Reorder { behind: 3 } },
            FaultRule { matches: flaps, action: FaultAction::Down },
        ]
    );
}

// spec: SW-20
#[test]
fn a_fault_alone_is_read_as_its_section_is() {
    let section = "kind = 'SACK'\nnth = 3\ndrop = true\n";
    let scenario = lab_with(&format!("[[fault]]\nfrom = 'a'\nto = 's'\n{section}"));
    assert_eq!(parse_fault(section), Ok(scenario.links[0].faults[0][0].clone()));
    assert_eq!(parse_fault("drop = true\nnth = 0\nto = 's'\n").expect_err("two errors").len(), 2);
    let nth = "nth = 0: must be a whole number from 1 to 18446744073709551615".to_owned();
    assert_eq!(parse_fault("drop = true\nnth = 0\n"), Err(vec![nth]));
    let error = parse_fault("drop = ").expect_err("no value").remove(0);
    assert!(error.starts_with("not TOML: "), "{error}");
}

#[test]
fn faults_need_a_link_and_one_action() {
    let fault = |more: &str| errors_with(&format!("[[fault]]\n{more}"));
    assert_eq!(
        fault("from = 'a'\nto = 'b'\ndrop = true\n"),
        [
            "11: [[fault]] there is no link between a and b; a fault is on one link, so name its two ends"
        ]
    );
    assert_eq!(
        fault("from = 'a'\nto = 's'\n"),
        [
            "11: [[fault]] needs exactly one of drop, duplicate, corrupt_bit, hold, reorder, trim, down, or any of rate, delay, jitter; there is: none"
        ]
    );
    assert_eq!(
        fault("from = 'a'\nto = 's'\ndrop = true\ntrim = 'last-hop'\n"),
        [
            "11: [[fault]] needs exactly one of drop, duplicate, corrupt_bit, hold, reorder, trim, down, or any of rate, delay, jitter; there is: drop, trim"
        ]
    );
    for (line, wanted) in [
        ("drop = false", "true, or not be there"),
        ("corrupt_bit = -1", "a bit's number from 0, or \"random\""),
        ("hold = 2", "a time with a unit (ps, ns, us, ms, s), such as \"150 us\""),
        ("trim = true", "\"last-hop\" or \"on-the-way\""),
        ("reorder = 1001", "a whole number from 1 to 1000"),
        ("down = false", "true, or not be there"),
        ("rate = '0 Gbps'", "a rate with a unit, such as \"200 Gbps\""),
        ("jitter = 5", "a time with a unit (ps, ns, us, ms, s), such as \"150 us\""),
    ] {
        assert_eq!(
            fault(&format!("from = 'a'\nto = 's'\n{line}\n")),
            [format!("14: [[fault]] {line}: must be {wanted}")]
        );
    }
    for (line, wanted) in [
        ("kind = 'sack'", "one of WRITE, ACK, SACK, NACK, PROBE"),
        (
            "role = 'X'",
            "one of NO_TRIM, TRIMMABLE, TRIMMABLE_RTX, TRIMMED, TRIMMED_LAST_HOP, CONTROL",
        ),
        ("psn = 16777216", "a whole number from 0 to 16777215"),
        ("probability = 0", "above 0 and at most 1, such as 0.01"),
        ("probability = nan", "above 0 and at most 1, such as 0.01"),
        ("probability = 1.5", "above 0 and at most 1, such as 0.01"),
        ("nth = 0", "a whole number from 1 to 18446744073709551615"),
    ] {
        assert_eq!(
            fault(&format!("from = 'a'\nto = 's'\ndrop = true\n{line}\n")),
            [format!("15: [[fault]] {line}: must be {wanted}")]
        );
    }
}

// spec: SW-1
#[test]
fn a_lab_in_parts_is_refused() {
    let apart = LAB.replace("ends = ['s', 'b']", "ends = ['r', 'b']\n[[switch]]\nname = 'r'");
    assert_eq!(
        errors_of(&apart),
        [
            "3: [[nic]] no links lead from NIC b to NIC a; join them by a [[link]], or make two scenarios of it"
        ]
    );
}

#[test]
fn a_switch_has_so_many_ports() {
    let host = |n| {
        format!(
            "[[nic]]\nname = 'n{n}'\nip = '10.1.{}.{}'\n[[link]]\nends = ['n{n}', 's']\n",
            n / 256,
            n % 256
        )
    };
    let star = |hosts| LAB.to_owned() + &(2..hosts).map(host).collect::<String>();
    assert!(read_text(&star(1_024)).is_ok());
    assert_eq!(
        errors_of(&star(1_025)),
        [
            "5: [[switch]] switch s is an end of 1025 links; a switch has at most 1024 ports, so spread them over more switches"
        ]
    );
}

#[test]
fn everything_wrong_is_found_at_once_in_the_order_of_the_file() {
    let text = "profile = 'fast'\nseed = -1\nlink = 5\n[[nic]]\nname = 'a'\nport = 1\n[[write]]\n";
    assert_eq!(
        errors_of(text),
        [
            "1: profile = 'fast': must be one of reference, native, tuned",
            "2: seed = -1: must be a whole number from 0 to 18446744073709551615",
            "3: `link` is an integer: write a section [[link]] for each",
            "4: [[nic]] NIC a is an end of 0 links; a NIC has one port, so give it one [[link]]",
            "6: [[nic]] unknown key `port`; correct or remove it: the keys here are name, ip, attributes",
            "7: [[write]] `from` is missing: it must be the name of a NIC, such as \"a\"",
            "7: [[write]] `to` is missing: it must be the name of a NIC, such as \"a\"",
            "7: [[write]] `bytes` is missing: it must be a size of at most 2 GiB, such as \"64 MiB\"",
        ]
    );
    assert_eq!(errors_of(""), ["there is no NIC; add a [[nic]] section for each, or a [topology]"]);
    assert_eq!(
        errors_of(
            "nic_defaults = 5\n[[nic]]\nname = 'a'\n[[nic]]\nname = 'b'\n[[link]]\nends = ['a', 'b']\n"
        ),
        ["1: [nic_defaults] is an integer: write it as a section"]
    );
}

#[test]
fn what_is_not_toml_is_said_with_its_line() {
    let found = errors_of("seed = 1\nname = \n[[nic]\n");
    assert!(found.len() >= 2, "{found:?}");
    assert!(found[0].starts_with("2: not TOML: "), "{found:?}");
    assert!(errors_of("seed = 1\nseed = 2\n")[0].starts_with("2: not TOML: duplicate key"));
}

#[test]
fn the_name_comes_from_the_file_when_none_is_given() {
    let name = |file| parse(LAB, file, &Overrides::default()).unwrap().name;
    assert_eq!(name("scenarios/incast.toml"), "incast");
    assert_eq!(name("my lab.v2.toml"), "my-lab.v2");
    assert_eq!(name("-"), "scenario");
}
