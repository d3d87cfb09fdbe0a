//! NICs on ordinary interfaces, outside any lab: two hosts on an Ethernet, a
//! router between them, several NICs on one host. Each test starts itself again
//! in namespaces of its own.

#[path = "daemon/lab.rs"]
#[allow(dead_code)]
mod lab;
#[path = "host_nic/net.rs"]
mod net;

use std::fs;
use std::net::Ipv4Addr;

use mrc_lab::config::Profile;
use mrc_lab::daemon::protocol::{Request, Response};
use mrc_lab::nic::Access;
use mrc_lab::wire::arp::ETHERTYPE_ARP;
use mrc_lab::wire::mac::{EthernetView, MacAddr, MacPair};
use mrc_lab::wire::opcode::Kind;
use mrc_lab::wire::packet::Packet;

use lab::{Lab, Running, ip, mode, wait_for};
use net::*;

const MIB: u64 = 1 << 20;
const LEFT: MacAddr = MacAddr([6, 0, 0, 0, 0, 1]);
const RIGHT: MacAddr = MacAddr([6, 0, 0, 0, 0, 2]);
const TO_RIGHT: &str = "--interface eth0 --peer-mac 10.0.0.2=06:00:00:00:00:02";
const TO_LEFT: &str = "--interface eth0 --peer-mac 06:00:00:00:00:01";

/// Asserts of every frame in a capture that it is an MRC packet with a right
/// ICRC between these addresses, one way or the other, but for the ARP of the
/// hosts' kernels; gives each one's TTL.
fn check_frames(frames: &[Vec<u8>], macs: [MacAddr; 2]) -> Vec<u8> {
    let format = Profile::Native.nic().frame_format();
    assert!(format.icrc);
    let there = MacPair { source: macs[0], destination: macs[1] };
    let mut writes = 0;
    let packets = || frames.iter().filter(|frame| frame[12..14] != ETHERTYPE_ARP.to_be_bytes());
    for frame in packets() {
        let pair = EthernetView::new(frame).expect("Ethernet").macs();
        assert!([there, there.reversed()].contains(&pair), "{pair:?}");
        // A wrong checksum, of IPv4 or the ICRC, is an error.
        let packet = Packet::parse(frame, &format).expect("an MRC packet");
        writes += usize::from(packet.bth.opcode.kind() == Kind::Write);
    }
    assert!(writes > 0);
    packets().map(|frame| frame[22]).collect()
}

/// ICMP messages that the kernel of each host has sent.
fn icmp_sent(hosts: &[&str]) -> u64 {
    hosts.iter().map(|host| kernel_counter(host, "Icmp", "OutMsgs")).sum()
}

/// Stops a daemon, so that its capture is whole.
fn stop(mut nic: Running) {
    nic.signal("TERM");
    assert_eq!(nic.exit_code(), Some(0));
}

// case E09: what the interfaces are set to stays as it is.
// spec: W-3, TIME-3
#[test]
fn two_hosts_on_an_ethernet_write_with_the_addresses_of_their_interfaces() {
    inside("two_hosts_on_an_ethernet_write_with_the_addresses_of_their_interfaces", false, || {
        two_hosts(4_200);
        let settings = || {
            let shown = ["left", "right"].map(|host| shown(host, "eth0"));
            shown.map(|mut interface| {
                interface.as_object_mut().expect("an object").remove("stats64");
                interface
            })
        };
        let offloads = || ["left", "right"].map(|host| exec(host, "ethtool -k eth0"));
        let before = (settings(), offloads());
        let lab = Lab::new();
        let left = start(&lab, "left", &format!("{TO_RIGHT} --capture left.pcapng"));
        let right = start(&lab, "right", &format!("{TO_LEFT} --capture right.pcapng"));
        assert!(left.ready.starts_with("ready nic eth0 10.0.0.1 control left tdf 1 "));
        write(&left, &right, "10.0.0.2", 4 * MIB);
        write(&right, &left, "10.0.0.1", MIB);
        assert_eq!((settings(), offloads()), before);
        // The kernels saw every packet and said nothing.
        assert_eq!(icmp_sent(&["left", "right"]), 0);
        for host in ["left", "right"] {
            assert!(kernel_counter(host, "Ip", "InDelivers") > 0, "{host}");
            assert_eq!(kernel_counter(host, "Udp", "NoPorts"), 0, "{host}");
        }
        stop(left);
        stop(right);
        for capture in ["left.pcapng", "right.pcapng"] {
            let ttls = check_frames(&frames(&lab.path(capture)), [LEFT, RIGHT]);
            assert!(ttls.len() >= 1_280 && ttls.iter().all(|ttl| *ttl == 64));
        }
    });
}

#[test]
fn a_nic_may_be_a_station_of_its_own() {
    inside("a_nic_may_be_a_station_of_its_own", false, || {
        two_hosts(1_500);
        let lab = Lab::new();
        let own = [MacAddr([2, 0, 0, 0, 0, 9]), RIGHT];
        let left = start(
            &lab,
            "left",
            &format!("{TO_RIGHT} --set MSS=1024 --ip 10.0.0.9 --own-mac {} --capture c", own[0]),
        );
        let right = start(
            &lab,
            "right",
            &format!("--interface eth0 --set MSS=1024 --peer-mac 10.0.0.9={}", own[0]),
        );
        assert_eq!(
            ["left", "right"].map(|host| shown(host, "eth0")["promiscuity"].clone()),
            [1, 0]
        );
        write(&left, &right, "10.0.0.2", MIB);
        write(&right, &left, "10.0.0.9", MIB);
        assert_eq!(icmp_sent(&["left", "right"]), 0);
        stop(left);
        assert_eq!(shown("left", "eth0")["promiscuity"], 0);
        check_frames(&frames(&lab.path("c")), own);
        drop(right);
    });
}

// A router lowers the TTL and makes a new IPv4 checksum; the ICRC holds.
// spec: W-3
#[test]
fn a_gateway_is_found_by_arp_and_routes() {
    inside("a_gateway_is_found_by_arp_and_routes", false, || {
        add_hosts(&["left", "router", "right"]);
        join([("left", "eth0", "10.0.1.2/24", 1), ("router", "eth1", "10.0.1.1/24", 0x11)], 4_200);
        join([("right", "eth0", "10.0.2.2/24", 2), ("router", "eth2", "10.0.2.1/24", 0x12)], 4_200);
        shell("router", "echo 1 >/proc/sys/net/ipv4/ip_forward");
        let lab = Lab::new();
        let left = start(
            &lab,
            "left",
            "--interface eth0 --ip 10.0.1.2/24 --gateway 10.0.1.1 --capture left.pcapng",
        );
        let right =
            start(&lab, "right", "--interface eth0 --gateway 10.0.2.1 --capture right.pcapng");
        write(&left, &right, "10.0.2.2", 2 * MIB);
        assert_eq!(icmp_sent(&["left", "router", "right"]), 0);
        stop(left);
        stop(right);
        let router = |last| MacAddr([6, 0, 0, 0, 0, last]);
        let left = check_frames(&frames(&lab.path("left.pcapng")), [LEFT, router(0x11)]);
        let right = check_frames(&frames(&lab.path("right.pcapng")), [RIGHT, router(0x12)]);
        for ttls in [left, right] {
            assert!([63, 64].iter().all(|ttl| ttls.contains(ttl)), "sent and received");
            assert!(ttls.iter().all(|ttl| [63, 64].contains(ttl)));
        }
    });
}

#[test]
fn a_peer_may_be_its_own_gateway_and_a_permanent_neighbour_need_not_answer() {
    let name = "a_peer_may_be_its_own_gateway_and_a_permanent_neighbour_need_not_answer";
    inside(name, false, || {
        two_hosts(4_200);
        let lab = Lab::new();
        let right = start(&lab, "right", "--interface eth0 --gateway 10.0.0.1");
        // 10.0.0.7 is not there; the kernel was told who is.
        ip("-n left neighbour add 10.0.0.7 lladdr 06:00:00:00:00:02 dev eth0 nud permanent");
        let left = start(&lab, "left", "--interface eth0 --gateway 10.0.0.7");
        write(&left, &right, "10.0.0.2", MIB);
        drop((left, right));
    });
}

#[test]
fn mistakes_are_named_with_what_is_allowed() {
    inside("mistakes_are_named_with_what_is_allowed", false, || {
        two_hosts(1_500);
        let lab = Lab::new();
        let small = "--set MSS=1024 --interface eth0";
        for (arguments, parts) in [
            ("--interface eth0", vec!["--peer-mac IP=MAC", "--gateway IP", "--scenario FILE"]),
            (
                TO_RIGHT,
                vec!["--interface eth0", "MTU of 1500", "4160", "MSS = 4096", "--set MSS=1436"],
            ),
            ("--interface eth9 --gateway 10.0.0.2", vec!["--interface eth9", "there are", "eth0"]),
            (
                "--interface lo --set MSS=90000 --gateway 10.0.0.2",
                vec!["--set MSS=90000", "1 to 8192"],
            ),
            (&format!("{small} --set Mss=7 --gateway 10.0.0.2"), vec!["--set Mss=7", "`MSS`"]),
            (
                &format!("{small} --gateway 10.0.0.77"),
                vec!["--gateway 10.0.0.77", "ARP on eth0", "--peer-mac MAC"],
            ),
            (
                &format!("{small} --ip 10.0.0.1/24 --gateway 10.0.9.1"),
                vec!["--gateway 10.0.9.1", "10.0.0.1/24"],
            ),
            (&format!("{small} --ip 10.0.0.1 --gateway 10.0.0.1"), vec!["the NIC's own address"]),
            (
                &format!("{small} --ip 10.0.0.8 --gateway 10.0.0.2"),
                vec!["--ip 10.0.0.8", "eth0 has 10.0.0.1/24", "--own-mac"],
            ),
            (
                &format!("{small} --ip 10.0.0 --gateway 10.0.0.2"),
                vec!["--ip", "10.0.0'", "192.168.1.5/24"],
            ),
            (&format!("{small} --peer-mac 10.0.0.2=1"), vec!["--peer-mac", "02:00:00:00:00:01"]),
            (
                &format!("{small} --peer-mac 02:00:00:00:00:01 --gateway 10.0.0.2"),
                vec!["--peer-mac 02:00:00:00:00:01", "--gateway"],
            ),
            (
                &format!("{small} --own-mac 01:00:00:00:00:01 --gateway 10.0.0.2"),
                vec!["--own-mac", "group's"],
            ),
            (
                &format!("{small} --gateway 10.0.0.2 --user nosuchuser"),
                vec!["--user", "/etc/passwd", "UID:GID"],
            ),
            (
                "--interface eth0 --scenario lab.toml --node a --gateway 10.0.0.2",
                vec!["--gateway", "--scenario"],
            ),
            ("--interface eth0 --scenario lab.toml", vec!["--node"]),
        ] {
            let said = refused(&lab, "left", arguments);
            assert!(parts.iter().all(|part| said.contains(part)), "{arguments}: {said}");
        }
        ip("-n left address add 10.0.0.3/24 dev eth0");
        let said = refused(&lab, "left", &format!("{small} --gateway 10.0.0.2"));
        assert!(said.contains("--ip") && said.contains("10.0.0.1/24, 10.0.0.3/24"), "{said}");
    });
}

#[test]
fn interfaces_that_come_later_are_waited_for() {
    inside("interfaces_that_come_later_are_waited_for", false, || {
        add_hosts(&["left", "right"]);
        let lab = Lab::new();
        let wait = nic_command(&lab, "left", "left", &format!("{TO_RIGHT} --wait 20"));
        let waiting = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lab.launch(wait, "left"));
            let ends = [("left", "eth0", "10.0.0.1/24", 1), ("right", "eth0", "10.0.0.2/24", 2)];
            join(ends, 4_200);
            waiting.join().expect("it starts")
        });
        drop(waiting);
        let said = refused(&lab, "left", "--interface eth9 --gateway 10.0.0.2 --wait 1");
        assert!(said.contains("no such interface"), "{said}");
    });
}

// case F20: two NICs on one host, and a NIC and itself.
#[test]
fn two_nics_on_one_host_work_and_on_one_address_are_refused() {
    inside("two_nics_on_one_host_work_and_on_one_address_are_refused", false, || {
        add_hosts(&["one"]);
        join([("one", "eth0", "10.0.0.1/24", 1), ("one", "eth1", "10.0.0.2/24", 2)], 4_200);
        let lab = Lab::new();
        let start = |control: &str, arguments: &str| {
            lab.launch(nic_command(&lab, "one", control, arguments), control)
        };
        let first = start("first", TO_RIGHT);
        let said = refused(&lab, "one", &format!("{TO_RIGHT} --ip 10.0.0.1"));
        assert!(said.contains("--ip 10.0.0.1") && said.contains("port 4791"), "{said}");
        let second = start("second", "--interface eth1 --peer-mac 06:00:00:00:00:01");
        write(&first, &second, "10.0.0.2", MIB);
        // On the loopback interface, whose MAC address is all zeros.
        let lo = "--interface lo --peer-mac 00:00:00:00:00:00 --ip";
        let third = start("third", &format!("{lo} 127.0.0.1"));
        let fourth = start("fourth", &format!("{lo} 127.0.0.2"));
        write(&third, &fourth, "127.0.0.2", MIB);
        assert_eq!(icmp_sent(&["one"]), 0);
        let from = register(&first, 8, Access::Local);
        let to = register(&first, 8, Access::RemoteWrite);
        let write = format!(
            "first write --peer 10.0.0.1 --length 8 --lkey {} --local-va {} --rkey {} --remote-va {}",
            from.rkey, from.va, to.rkey, to.va
        );
        let output = lab.ctl(&write);
        assert_eq!(output.status.code(), Some(1));
        let said = lab::text(&output.stderr);
        assert!(said.contains("does not send to itself"), "{said}");
        drop((first, second, third, fourth));
    });
}

/// The daemon's counts of what the host refused to send.
fn host_errors(nic: &Running) -> u64 {
    match nic.client().request(&Request::Report {}).expect("known") {
        Response::Report(report) => report.host_errors.values().sum(),
        other => panic!("{other:?}"),
    }
}

// case F11: the host refuses what is sent, and answers for a peer that restarts
// with "port unreachable".
// spec: REL-6, REL-7
#[test]
fn errors_of_the_host_and_of_a_restarting_peer_end_nothing() {
    inside("errors_of_the_host_and_of_a_restarting_peer_end_nothing", false, || {
        two_hosts(4_200);
        let lab = Lab::new();
        let left = start(&lab, "left", TO_RIGHT);
        let right = start(&lab, "right", TO_LEFT);
        let from = register(&left, MIB, Access::Local);
        let to = register(&right, MIB, Access::RemoteWrite);
        right.signal("KILL");
        drop(right);
        // Nobody has the port now: the kernel says so to the sender's.
        let lost = post(&left, from, "10.0.0.2", to);
        wait_for("an ICMP message", || (icmp_sent(&["right"]) > 0).then_some(()));
        wait_for("its arrival", || {
            (kernel_counter("left", "Icmp", "InDestUnreachs") > 0).then_some(())
        });
        ip("-n left link set eth0 down");
        wait_for("a refusal", || (host_errors(&left) > 0).then_some(()));
        ip("-n left link set eth0 up");
        let right = start(&lab, "right", TO_LEFT);
        let closed = left.client().request(&Request::Close { qpn: lost }).expect("known");
        assert!(matches!(closed, Response::Closed { .. }), "{closed:?}");
        write(&left, &right, "10.0.0.2", MIB);
        write(&right, &left, "10.0.0.1", MIB);
        drop((left, right));
    });
}

/// Resident memory of a daemon in bytes, and its open descriptors.
fn held(nic: &Running) -> (u64, usize) {
    let resident = nic.status("VmRSS");
    let kib: u64 = resident.split(' ').next().and_then(|n| n.parse().ok()).expect("kB");
    let descriptors = fs::read_dir(format!("/proc/{}/fd", nic.child.id())).expect("it runs");
    (kib << 10, descriptors.count())
}

// case F21: QPs are opened, used and closed 10,000 times.
// spec: QP-9
#[test]
fn ten_thousand_qps_leave_neither_memory_nor_descriptors() {
    /// What a daemon keeps for subscribers, at most, in bytes: five events a QP.
    const EVENT_LOG_A_QP: u64 = 5 * 128;
    /// What may come and go for reasons of the allocator.
    const SLACK: u64 = 2 << 20;
    inside("ten_thousand_qps_leave_neither_memory_nor_descriptors", false, || {
        two_hosts(4_200);
        let lab = Lab::new();
        // Tombstones are kept for a time, not for the test's.
        let keep = "--set QpTombstoneTime=1ms";
        let left = start(&lab, "left", &format!("{TO_RIGHT} {keep}"));
        let right = start(&lab, "right", &format!("{TO_LEFT} {keep}"));
        let from = register(&left, 8, Access::Local);
        let to = register(&right, 8, Access::RemoteWrite);
        let (mut here, mut there) = (left.client(), right.client());
        let mut rounds = |count: u32| {
            for _ in 0..count {
                use_a_qp(&mut here, &mut there, from, to);
            }
            [held(&left), held(&right)]
        };
        let early = rounds(2_000);
        let late = rounds(8_000);
        for ((before, fds_before), (after, fds_after)) in early.into_iter().zip(late) {
            assert_eq!(fds_before, fds_after);
            let grown = after.saturating_sub(before);
            assert!(
                grown < 8_000 * EVENT_LOG_A_QP + SLACK,
                "{grown} bytes more: {early:?} {late:?}"
            );
        }
        let qps =
            |nic: &Running| lab.ctl_json(&format!("{} qps", nic.control.display()))["qps"].clone();
        assert_eq!([qps(&left), qps(&right)], [serde_json::json!([]), serde_json::json!([])]);
    });
}

/// Writes 8 bytes on a new QP and closes both of its sides.
fn use_a_qp(
    here: &mut mrc_lab::daemon::Client,
    there: &mut mrc_lab::daemon::Client,
    from: mrc_lab::daemon::protocol::Region,
    to: mrc_lab::daemon::protocol::Region,
) {
    let peer = Ipv4Addr::new(10, 0, 0, 2);
    let qpn = match here.request(&write_request(peer, from, to)).expect("posted") {
        Response::Posted(posted) => posted.qpn,
        other => panic!("{other:?}"),
    };
    let closed = loop {
        let Response::Qps { qps } = here.request(&Request::ListQps {}).expect("known") else {
            panic!("not a list");
        };
        if let Some(qp) = qps.iter().find(|qp| qp.local.qpn.value() == qpn && qp.messages == 0) {
            break qp.remote.qpn.value();
        }
    };
    here.request(&Request::Close { qpn }).expect("known");
    there.request(&Request::Close { qpn: closed }).expect("known");
}

// spec: REL-9
#[test]
fn an_ordinary_user_goes_on_when_sockets_are_open() {
    let name = "an_ordinary_user_goes_on_when_sockets_are_open";
    if lab::text(&std::process::Command::new("id").arg("-u").output().expect("id").stdout) != "0\n"
    {
        println!("skipped: only root can become another user");
        return;
    }
    inside(name, true, || {
        two_hosts(4_200);
        let lab = Lab::new();
        let left = start(&lab, "left", &format!("{TO_RIGHT} --user 65534:65533 --capture c"));
        let right = start(&lab, "right", &format!("{TO_LEFT} --user nobody"));
        assert_eq!(left.status("Uid"), ["65534"; 4].join("\t"));
        assert_eq!(left.status("Gid"), ["65533"; 4].join("\t"));
        assert_eq!(
            (left.status("Groups"), left.status("NoNewPrivs")),
            (String::new(), "1".to_owned())
        );
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(left.status(set), "0000000000000000", "{set}");
            assert_eq!(right.status(set), "0000000000000000", "{set}");
        }
        for file in [&left.control, &lab.path("c")] {
            use std::os::unix::fs::MetadataExt;
            let found = fs::symlink_metadata(file).expect("there");
            assert_eq!((found.uid(), found.gid()), (65_534, 65_533), "{file:?}");
        }
        assert_eq!(mode(&left.control), 0o600);
        write(&left, &right, "10.0.0.2", MIB);
        drop((left, right));
    });
}

// spec: REL-9
#[test]
fn a_user_that_cannot_be_become_is_told() {
    inside("a_user_that_cannot_be_become_is_told", false, || {
        two_hosts(4_200);
        let lab = Lab::new();
        // This user namespace has user 0 alone.
        let said = refused(&lab, "left", &format!("{TO_RIGHT} --user 65534:65534"));
        assert!(said.contains("--control") && said.contains("--user"), "{said}");
    });
}
