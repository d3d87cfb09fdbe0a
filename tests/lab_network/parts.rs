//! What the cases run inside sandboxes, each in a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs, io};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use mrc_lab::lab::doctor::{Verdict, examine};
use mrc_lab::lab::{
    InterfaceCounters, Ipv4Prefix, LabError, LinkPlan, Network, NetworkPlan, Sandbox,
    active_offloads, drop_capabilities_but_net_raw, interface_mac,
};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use super::PART;

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const MTU: u32 = 4200;
/// Nodes of the lab that is killed while it is built.
const MANY: usize = 16;
/// How soon nothing may be left of a killed lab.
const GRACE: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(100);
/// `ETH_P_ALL` in network order.
const ALL_FRAMES: i32 = 0x0003_u16.to_be() as i32;

pub fn run(part: &str) {
    match part {
        "built_and_removed" => built_and_removed(),
        "idle" => idle(),
        "long_names" => long_names(),
        "failed_build" => failed_build(),
        "programs" => programs(),
        "host_untouched" => host_untouched(),
        "killed_after" => killed(&[("hold", 0), ("hold", 300)]),
        "killed_while" => killed(&[1, 3, 6, 10, 15, 20, 30, 45, 70, 100].map(|ms| ("churn", ms))),
        "read_only_sysctls" => read_only_sysctls(),
        "forbidden" => forbidden(),
        "capabilities" => capabilities(),
        "doctor" => doctor(),
        "capabilities_of_a_user" => capabilities_of_a_user(),
        "hold" => hold(),
        "churn" => churn(),
        "build_many" => drop(build(&enter(), &many_nodes())),
        other => panic!("no part is named {other}"),
    }
}

/// What the doctor finds wrong with the lab after `commands`, by check.
fn found_after(plan: &NetworkPlan, commands: &[&str]) -> Vec<(&'static str, Verdict)> {
    for command in commands {
        let done = Command::new("sh").args(["-c", command]).status().expect("sh");
        assert!(done.success(), "{command}");
    }
    let findings = examine(plan).unwrap_or_else(|error| panic!("{error}"));
    let wrong = findings.into_iter().filter(|finding| finding.verdict != Verdict::Good);
    wrong.map(|finding| (finding.check, finding.verdict)).collect()
}

fn doctor() {
    use Verdict::{Bad, Warning};
    let sandbox = enter();
    let plan = two_hosts();
    let network = build(&sandbox, &plan);
    assert_eq!(found_after(&plan, &[]), []);
    let good = examine(&plan).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(good.len(), 7, "{good:?}");
    let (ip, mac) = plan.links[0].ends[0].neighbours[0];
    let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
    let known = format!("ip -n a neighbour add {ip} lladdr {mac} dev mrc0 nud permanent");
    // Harm, cure, and what is found in between.
    type Harm<'a> = (&'a str, &'a str, &'a [(&'a str, Verdict)]);
    let cases: [Harm<'_>; 6] = [
        (
            "ip -n s link set mrc0 mtu 1500",
            "ip -n s link set mrc0 mtu 4200",
            &[("MTU", Bad), ("full-size frame", Bad)],
        ),
        (
            "ip netns exec a sh -c 'echo 1 >/proc/sys/net/ipv4/conf/all/rp_filter'",
            "ip netns exec a sh -c 'echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter'",
            &[("rp_filter", Bad)],
        ),
        (
            "ip netns exec b ethtool -K mrc0 gro on",
            "ip netns exec b ethtool -K mrc0 gro off",
            &[("offloads", Bad)],
        ),
        (
            "ip netns exec s tc qdisc add dev mrc1 root pfifo limit 1000",
            "ip netns exec s tc qdisc del dev mrc1 root",
            &[("queueing", Warning)],
        ),
        ("ip -n a neighbour flush all nud permanent", &known, &[("neighbours", Bad)]),
        ("ip -n b link set mrc0 down", "ip -n b link set mrc0 up", &[("full-size frame", Bad)]),
    ];
    for (harm, cure, expected) in cases {
        let found = found_after(&plan, &[harm]);
        let found = found.into_iter().filter(|(check, _)| {
            // Without its link b loses what it knew, too.
            !(harm.ends_with("mrc0 down") && *check == "neighbours")
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{harm}");
        found_after(&plan, &[cure]);
    }
    drop(network);
}

fn enter() -> Sandbox {
    Sandbox::enter().unwrap_or_else(|error| panic!("{error}"))
}

fn build(sandbox: &Sandbox, plan: &NetworkPlan) -> Network {
    Network::build(sandbox, plan).unwrap_or_else(|error| panic!("{error}"))
}

/// Two hosts, a and b, at ports 0 and 1 of a switch, s.
fn two_hosts() -> NetworkPlan {
    let mut plan = NetworkPlan::default();
    ["a", "s", "b"].into_iter().for_each(|node| plan.add_node(node));
    add_host(plan.add_link("a", "s", MTU), A, B, interface_mac(0, 1));
    add_host(plan.add_link("b", "s", MTU), B, A, interface_mac(1, 1));
    plan
}

fn add_host(link: &mut LinkPlan, address: Ipv4Addr, peer: Ipv4Addr, gateway: [u8; 6]) {
    link.ends[0].addresses.push(Ipv4Prefix { address, length: 24 });
    link.ends[0].neighbours.push((peer, gateway));
}

/// A ring of nodes.
fn many_nodes() -> NetworkPlan {
    let mut plan = NetworkPlan::default();
    let name = |number: usize| format!("n{}", number % MANY);
    (0..MANY).for_each(|number| plan.add_node(name(number)));
    for number in 0..MANY {
        plan.add_link(&name(number), &name(number + 1), MTU);
    }
    plan
}

/// The output of a program, which has to succeed.
fn said(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn namespaces() -> Vec<String> {
    let list = said("ip", "netns list");
    let mut names: Vec<String> =
        list.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    names.sort();
    names
}

/// An interface of `node` as `ip -j` shows it.
fn shown(network: &Network, node: &str, interface: &str) -> Value {
    let ip = || said("ip", &format!("-j -d link show dev {interface}"));
    let text = scope(network, node, ip);
    serde_json::from_str::<Value>(&text).expect("JSON")[0].take()
}

fn scope<T>(network: &Network, node: &str, work: impl FnOnce() -> T) -> T {
    network.namespace(node).expect("a node").enter_scope(work).expect("enter")
}

fn counters(network: &Network, node: &str, interface: &str) -> InterfaceCounters {
    network.namespace(node).expect("a node").interface_counters(interface).expect("counters")
}

fn built_and_removed() {
    let ordinary = said("id", "-u") != "0\n";
    let sandbox = enter();
    assert_eq!(sandbox.is_rootless(), ordinary);
    let plan = two_hosts();
    let mut network = build(&sandbox, &plan);
    assert_eq!(namespaces(), ["a", "b", "s"]);
    assert!(network.namespace("c").is_none());
    // Nothing but the sandbox's own loopback beside the nodes.
    assert_eq!(said("ip", "-o link").lines().count(), 1);
    check_carriers(&network);
    check_interfaces(&network, &plan);
    check_settings(&network);
    check_one_datagram_is_one_finished_frame(&network);

    network.down().expect("first time");
    network.down().expect("second time");
    assert!(namespaces().is_empty() && network.namespace("a").is_none());
    drop(build(&sandbox, &plan));
    assert!(namespaces().is_empty(), "dropping removes as well");
}

/// Looks at all interfaces of a node at once: asking for one, by its name, would
/// make the kernel notice its carrier.
fn check_carriers(network: &Network) {
    for node in ["a", "s", "b"] {
        let list = scope(network, node, || said("ip", "-j link show type veth"));
        let list: Vec<Value> = serde_json::from_str(&list).expect("JSON");
        assert!(list.iter().all(|interface| interface["operstate"] == "UP"), "{node}: {list:?}");
    }
}

fn check_interfaces(network: &Network, plan: &NetworkPlan) {
    for (link, names) in plan.links.iter().zip(plan.interface_names()) {
        assert_eq!(network.interfaces(0).expect("a link")[0], "mrc0");
        for (end, name) in link.ends.iter().zip(names) {
            let shown = shown(network, &end.node, &name);
            assert_eq!(shown["mtu"], MTU, "{shown}");
            assert!(shown["address"].as_str().expect("MAC").starts_with("02:00:"), "{shown}");
            let on = scope(network, &end.node, || active_offloads(&name)).expect("ioctl");
            assert!(on.is_empty(), "{}: {on:?} on", end.node);
            scope(network, &end.node, || check_offloads_as_ethtool_sees_them(&name));
        }
    }
}

fn check_offloads_as_ethtool_sees_them(interface: &str) {
    if Command::new("ethtool").arg("--version").output().is_err() {
        println!("    no second opinion on offloads: no ethtool");
        return;
    }
    let list = said("ethtool", &format!("-k {interface}"));
    for offload in [
        "rx-checksumming",
        "tx-checksumming",
        "tx-tcp-segmentation",
        "tx-udp-segmentation",
        "generic-segmentation-offload",
        "generic-receive-offload",
    ] {
        assert!(list.contains(&format!("{offload}: off")), "{list}");
    }
}

fn check_settings(network: &Network) {
    let setting = |path: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/{path}")).expect("a setting");
        text.trim().to_owned()
    };
    let entries = ["all", "default", "mrc0"];
    scope(network, "a", || {
        for entry in entries {
            fs::write(format!("/proc/sys/net/ipv4/conf/{entry}/rp_filter"), "1").expect("on");
        }
        fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("on");
    });
    network.namespace("a").expect("a node").apply_kernel_settings().expect("settings");
    for node in ["a", "s", "b"] {
        scope(network, node, || {
            for entry in entries {
                assert_eq!(setting(&format!("ipv4/conf/{entry}/rp_filter")), "0", "{node}");
                assert_eq!(setting(&format!("ipv6/conf/{entry}/disable_ipv6")), "1", "{node}");
            }
            assert_eq!(setting("ipv4/ip_forward"), "0", "{node}");
        });
    }
}

/// A datagram of a to b reaches the switch's port as one frame, addressed to the
/// port and with a finished checksum, and nobody has asked for a MAC address.
fn check_one_datagram_is_one_finished_frame(network: &Network) {
    let mut port = scope(network, "s", || {
        Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ALL_FRAMES))).expect("socket")
    });
    port.set_read_timeout(Some(GRACE)).expect("time-out");
    send_datagram(network);
    let mut frame = [0; 9000];
    let length = port.read(&mut frame).expect("a frame");
    let frame = &frame[..length];
    assert_eq!(frame[..6], interface_mac(0, 1));
    assert_eq!(frame[6..12], interface_mac(0, 0));
    let packet = SlicedPacket::from_ethernet(frame).expect("a packet");
    let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("UDP") };
    let header = udp.to_header();
    let sum = header.calc_checksum_ipv4_raw(A.octets(), B.octets(), udp.payload());
    assert_eq!(header.checksum, sum.expect("a length that fits"));
    let Some(NetSlice::Ipv4(ip)) = packet.net else { panic!("IPv4") };
    let header = ip.header().to_header();
    assert_eq!(header.header_checksum, header.calc_header_checksum());
}

fn send_datagram(network: &Network) {
    let frames = |node, interface| {
        let counters = counters(network, node, interface);
        (counters.tx_packets, counters.rx_packets)
    };
    let (sent, came) = (frames("a", "mrc0"), frames("s", "mrc0"));
    let socket = scope(network, "a", || UdpSocket::bind((A, 0)).expect("bind"));
    socket.send_to(&[7; 4000], (B, 9)).expect("send");
    assert_eq!(frames("a", "mrc0"), (sent.0 + 1, sent.1));
    assert_eq!(frames("s", "mrc0"), (came.0, came.1 + 1));
}

fn idle() {
    let sandbox = enter();
    let network = build(&sandbox, &two_hosts());
    sleep(Duration::from_secs(5));
    for (node, interface) in [("a", "mrc0"), ("s", "mrc0"), ("s", "mrc1"), ("b", "mrc0")] {
        let counters = counters(&network, node, interface);
        assert_eq!(counters, InterfaceCounters::default(), "{interface} of {node}");
    }
    send_datagram(&network);
}

fn long_names() {
    let sandbox = enter();
    let longest = "x".repeat(100);
    let nodes = ["verylongname1", "verylongname2", &longest];
    let mut plan = NetworkPlan::default();
    nodes.into_iter().for_each(|node| plan.add_node(node));
    plan.add_link(nodes[0], &longest, MTU);
    plan.add_link(nodes[1], &longest, MTU);
    let network = build(&sandbox, &plan);
    assert_eq!(namespaces(), nodes);
    let alias = |node, interface| shown(&network, node, interface)["ifalias"].clone();
    assert_eq!(alias(nodes[0], "mrc0"), format!("verylongname1_to_{longest}"));
    assert_eq!(alias(nodes[1], "mrc0"), format!("verylongname2_to_{longest}"));
    assert_eq!(alias(&longest, "mrc1"), format!("{longest}_to_verylongname2"));
}

fn failed_build() {
    let sandbox = enter();
    let kept = build(&sandbox, &many_nodes());
    let taken = Network::build(&sandbox, &many_nodes()).expect_err("names are taken");
    assert!(matches!(taken, LabError::NameTaken(ref name) if name == "n0"), "{taken}");
    assert_eq!(namespaces().len(), MANY, "the first network is still there");
    drop(kept);

    let mut plan = two_hosts();
    let route = Ipv4Prefix { address: Ipv4Addr::new(10, 1, 2, 3), length: 8 };
    plan.links[1].ends[0].routes.push(route);
    let error = Network::build(&sandbox, &plan).expect_err("host bits in a route");
    let text = error.to_string();
    assert!(text.starts_with("`ip route add 10.1.2.3/8 dev mrc0 scope link` failed: "), "{text}");
    assert!(namespaces().is_empty());
}

fn programs() {
    let sandbox = enter();
    let network = build(&sandbox, &two_hosts());
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net").stdout(Stdio::piped());
    let node = network.namespace("b").expect("a node");
    let child = sandbox.spawn_in(node, command).expect("readlink");
    let its = String::from_utf8(child.wait_with_output().expect("output").stdout).expect("text");
    let inside = scope(&network, "b", || said("readlink", "/proc/thread-self/ns/net"));
    assert_eq!(its, inside);
    assert_ne!(its, said("readlink", "/proc/self/ns/net"), "this process has not moved");

    let missing = sandbox.spawn_in(node, Command::new("/nonexistent"));
    assert_eq!(missing.expect_err("no program").kind(), io::ErrorKind::NotFound);
}

/// This process plays the host: it has an interface, an address and a namespace
/// named like the lab's.
fn host_untouched() {
    let _host = enter();
    // As systemd does: mounts in copies of this mount namespace show up in it.
    said("mount", "--make-rshared /");
    for command in [
        "link add mrc0 type veth peer name mrc1",
        // Else it gains addresses while the lab stands.
        "link set mrc0 addrgenmode none",
        "link set mrc1 addrgenmode none",
        "address add 10.0.0.1/24 dev mrc0",
        "link set mrc1 up",
        "link set mrc0 up",
        "netns add a",
    ] {
        said("ip", command);
    }
    let look = || {
        ["-d address", "neighbour", "route", "netns list", "-n a address"]
            .map(|what| said("ip", what))
    };
    let before = look();
    let mut lab = Part::start("hold");
    assert_eq!(look(), before, "while the lab stands");
    drop(lab.0.stdin.take());
    assert!(lab.0.wait().expect("wait").success());
    assert_eq!(look(), before, "after the lab has gone");
}

/// Kills a part the given number of milliseconds after it is ready.
/// As an ordinary user, this process plays a host that then has room for one lab
/// of many nodes exactly: a namespace that is left keeps it from being built.
fn killed(parts: &[(&str, u64)]) {
    let host = enter();
    let make_room_for = |namespaces: usize| {
        if host.is_rootless() {
            let limit = namespaces.to_string();
            fs::write("/proc/sys/user/max_net_namespaces", limit).expect("a limit");
        }
    };
    for &(part, milliseconds) in parts {
        make_room_for(1000);
        let mut lab = Part::start(part);
        sleep(Duration::from_millis(milliseconds));
        lab.0.kill().expect("kill -9");
        lab.0.wait().expect("wait");
        // This host's namespace, the lab's own, and one for each node.
        make_room_for(2 + MANY);
        within_grace("end all processes", || !group_is_alive(lab.0.id()));
        within_grace("build again", can_build_again);
    }
}

fn can_build_again() -> bool {
    Part::command("build_many").output().expect("run").status.success()
}

#[expect(clippy::disallowed_methods, reason = "what is waited for is the kernel's work")]
fn within_grace(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < GRACE, "not within two seconds: {what}");
        sleep(TICK);
    }
}

/// Whether any process but a zombie is in the process group `group`.
fn group_is_alive(group: u32) -> bool {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats.into_iter().any(|stat| {
        // pid (name) state parent group ...
        let (_, rest) = stat.rsplit_once(") ").expect("a name");
        let mut fields = rest.split(' ');
        let state = fields.next();
        fields.nth(1) == Some(&group.to_string()) && state != Some("Z")
    })
}

/// Another part, in a process group of its own; it has said that it is ready.
struct Part(Child);

impl Part {
    fn command(part: &str) -> Command {
        let mut command = Command::new(env::current_exe().expect("this binary"));
        command.env(PART, part);
        command
    }

    fn start(part: &str) -> Self {
        let mut command = Self::command(part);
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("start a part");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

fn say_ready() {
    println!("ready");
    io::stdout().flush().expect("flush");
}

/// A lab with a program in each node, until its input ends.
fn hold() {
    let sandbox = enter();
    let network = build(&sandbox, &two_hosts());
    let children = ["a", "s", "b"].map(|node| {
        let mut command = Command::new("sleep");
        command.arg("1000");
        sandbox.spawn_in(network.namespace(node).expect("a node"), command).expect("sleep")
    });
    say_ready();
    io::stdin().read_to_end(&mut Vec::new()).expect("end of input");
    for mut child in children {
        child.kill().and_then(|()| child.wait().map(drop)).expect("end sleep");
    }
}

/// Builds and removes a lab again and again.
fn churn() {
    let sandbox = enter();
    say_ready();
    loop {
        drop(build(&sandbox, &many_nodes()));
    }
}

/// As in a container: /proc/sys is mounted read-only.
fn read_only_sysctls() {
    let _host = enter();
    said("mount", "--bind /proc/sys /proc/sys");
    said("mount", "-o remount,bind,ro /proc/sys");
    fs::write("/proc/sys/net/ipv4/ip_forward", "0").expect_err("read-only");
    assert!(Part::command("build_many").status().expect("run").success());
}

fn forbidden() {
    let _host = enter();
    fs::write("/proc/sys/user/max_user_namespaces", "0").expect("a limit");
    drop_capabilities_but_net_raw().expect("drop");
    let text = Sandbox::enter().expect_err("forbidden").to_string();
    assert!(text.contains("user.max_user_namespaces = 0; run as root, or sysctl -w"), "{text}");
}

/// A set of capabilities in the text of a /proc status file.
fn capability_set(name: &str, status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a set");
    u64::from_str_radix(line.trim_start_matches(':').trim(), 16).expect("hexadecimal")
}

fn capabilities() {
    let sandbox = enter();
    let network = build(&sandbox, &two_hosts());
    let open = || Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(ALL_FRAMES)));
    scope(&network, "a", open).expect("before");
    drop_capabilities_but_net_raw().expect("drop");
    let mine = fs::read_to_string("/proc/self/status").expect("status");
    let childs = said("cat", "/proc/self/status");
    for status in [&mine, &childs] {
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(capability_set(set, status), 1 << 13, "{set}");
        }
        assert_eq!(capability_set("CapInh", status), 0);
        assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
        assert_eq!(capability_set("CapAmb", status), 0);
    }
    open().expect("CAP_NET_RAW is left");
    let refused = network.namespace("a").expect("a node").enter_scope(|| ());
    assert!(matches!(refused, Err(LabError::Io { .. })), "{refused:?}");
}

fn capabilities_of_a_user() {
    drop_capabilities_but_net_raw().expect("nothing to drop");
    let status = fs::read_to_string("/proc/self/status").expect("status");
    assert_eq!(capability_set("CapEff", &status), 0);
}
