//! Hosts on a real Ethernet: network namespaces and veth pairs without a lab.

use std::env;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};

use mrc_lab::daemon::protocol::{EventReport, PostWrite, Region, Request, Response};
use mrc_lab::daemon::protocol::{Fill, FlowFill};
use mrc_lab::nic::Access;
use mrc_lab::trace::QpEventKind;
use serde_json::Value;

use crate::lab::{Lab, Running, ip, text};

/// Set in the process that runs inside the namespaces.
const INSIDE: &str = "MRC_TEST_INSIDE_NAMESPACE";

/// Runs `test`, the body of the test called `name`, in user, mount and network
/// namespaces of its own; as root without a user namespace where `as_root`.
pub fn inside(name: &str, as_root: bool, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        // Names of namespaces that nobody else sees.
        run("mount", "-t tmpfs -o mode=0755 mrc-test /run");
        let writable = fs::OpenOptions::new().write(true).open("/proc/sys/net/ipv4/ip_forward");
        if writable.is_err() {
            run("mount", "-o remount,bind,rw /proc/sys");
        }
        return test();
    }
    let mut unshare = Command::new("unshare");
    if !as_root {
        unshare.args(["--user", "--map-root-user"]);
    }
    unshare.args(["--net", "--mount", "--"]);
    unshare.arg(env::current_exe().expect("the test's own path"));
    unshare.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
    let output = unshare.output().expect("this test needs `unshare` (util-linux)");
    assert!(
        output.status.success() && text(&output.stdout).contains("1 passed"),
        "{name} failed inside namespaces of its own:\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// What a program prints; it has to succeed.
pub fn run(program: &str, arguments: &str) -> String {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {arguments}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Namespaces of these names, each as an untouched host has them.
pub fn add_hosts(names: &[&str]) {
    for name in names {
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        shell(name, "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6");
    }
}

/// Joins two hosts' interfaces of these names by a wire; each has an address
/// and a MAC address that ends in the number given.
pub fn join(ends: [(&str, &str, &str, u8); 2], mtu: u32) {
    let [left, right] = ends.map(|(host, name, _, mac)| {
        format!("{name} mtu {mtu} address 06:00:00:00:00:{mac:02x} netns {host}")
    });
    ip(&format!("link add {left} type veth peer name {right}"));
    for (host, name, address, _) in ends {
        ip(&format!("-n {host} address add {address} dev {name}"));
        ip(&format!("-n {host} link set {name} up"));
    }
    // Asking makes the kernel notice the carrier now.
    for (host, name, ..) in ends {
        shown(host, name);
    }
}

/// The wire of most tests: `left` eth0 10.0.0.1 -- 10.0.0.2 eth0 `right`.
pub fn two_hosts(mtu: u32) {
    add_hosts(&["left", "right"]);
    join([("left", "eth0", "10.0.0.1/24", 1), ("right", "eth0", "10.0.0.2/24", 2)], mtu);
}

/// Runs a command on a host.
pub fn exec(host: &str, command: &str) -> String {
    run("ip", &format!("netns exec {host} {command}"))
}

/// Runs a line of shell on a host.
pub fn shell(host: &str, line: &str) {
    let status = Command::new("ip").args(["netns", "exec", host, "sh", "-c", line]).status();
    assert!(status.expect("ip (iproute2)").success(), "{line}");
}

/// A counter of the host's kernel, as /proc/net/snmp names it.
pub fn kernel_counter(host: &str, protocol: &str, name: &str) -> u64 {
    let table = exec(host, "cat /proc/net/snmp");
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.expect("known protocol"));
    let at = names.split_whitespace().position(|found| found == name).expect("known counter");
    values.split_whitespace().nth(at).and_then(|value| value.parse().ok()).expect("a number")
}

/// `mrc nic` on a host, with its control socket named `control`.
pub fn nic_command(lab: &Lab, host: &str, control: &str, arguments: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host, env!("CARGO_BIN_EXE_mrc"), "nic", "--control", control]);
    command.args(arguments.split(' ')).current_dir(lab.dir.path());
    command
}

/// Starts such a NIC.
pub fn start(lab: &Lab, host: &str, arguments: &str) -> Running {
    lab.launch(nic_command(lab, host, host, arguments), host)
}

/// The refusal of one that does not start: exit code 2, and what it says.
pub fn refused(lab: &Lab, host: &str, arguments: &str) -> String {
    let Output { status, stdout, stderr } =
        nic_command(lab, host, "refused", arguments).output().expect("runs");
    let said = text(&stderr);
    assert_eq!(status.code(), Some(2), "{arguments}: {said}{}", text(&stdout));
    assert!(!lab.path("refused").exists());
    said
}

/// A region of the NIC, with what flow 0 of a run with seed 3 sends, or zeros.
pub fn register(nic: &Running, length: u64, access: Access) -> Region {
    let flow = FlowFill { seed: 3, number: 0, bytes: length as u32, messages: 1 };
    let fill = match access {
        Access::RemoteWrite => Fill::Zero(true),
        Access::Local => Fill::Flow(flow),
    };
    let request = Request::RegisterMemory { length, access, fill };
    match nic.client().request(&request).expect("registered") {
        Response::Region(region) => region,
        other => panic!("{other:?}"),
    }
}

/// A request to write all of `from` to `to` at `peer`, on a new QP.
pub fn write_request(peer: Ipv4Addr, from: Region, to: Region) -> Request {
    Request::PostWrite(PostWrite {
        peer,
        lkey: from.rkey,
        local_va: from.va,
        length: from.length as u32,
        remote_va: to.va,
        rkey: to.rkey,
        qp: None,
        wqe_id: 1,
    })
}

/// Posts all of `from` at `sender` to `to` at `peer`; gives the QP's number.
pub fn post(sender: &Running, from: Region, peer: &str, to: Region) -> u32 {
    let request = write_request(peer.parse().expect("an address"), from, to);
    match sender.client().request(&request).expect("posted") {
        Response::Posted(posted) => posted.qpn,
        other => panic!("{other:?}"),
    }
}

/// Waits until the message on the QP is complete.
pub fn await_completion(nic: &Running, qpn: u32) -> EventReport {
    let mut client = nic.client();
    client.request(&Request::Subscribe {}).expect("subscribed");
    loop {
        let event = client.next_event(std::time::Duration::from_secs(30)).expect("connected");
        let event = event.expect("an event in time");
        if event.kind == QpEventKind::WqeComplete && event.local.qpn.value() == qpn {
            return event;
        }
    }
}

/// Writes `length` bytes from `sender` to `peer`, and asserts that what arrived
/// is what was sent.
pub fn write(sender: &Running, receiver: &Running, peer: &str, length: u64) {
    let (from, to) =
        (register(sender, length, Access::Local), register(receiver, length, Access::RemoteWrite));
    let qpn = post(sender, from, peer, to);
    await_completion(sender, qpn);
    assert_eq!(digest(sender, from), digest(receiver, to));
}

fn digest(nic: &Running, region: Region) -> String {
    match nic.client().request(&Request::Digest { rkey: region.rkey }).expect("known") {
        Response::Digest { sha256 } => sha256,
        other => panic!("{other:?}"),
    }
}

/// An interface of a host as `ip -j -d` shows it.
pub fn shown(host: &str, interface: &str) -> Value {
    let shown = run("ip", &format!("-n {host} -j -d link show dev {interface}"));
    serde_json::from_str::<Value>(&shown).expect("JSON")[0].take()
}

/// The frames in a capture.
pub fn frames(path: &Path) -> Vec<Vec<u8>> {
    let capture = mrc_lab::capture::PcapngReader::open(path).expect("a capture");
    capture.map(|packet| packet.expect("whole").frame).collect()
}
