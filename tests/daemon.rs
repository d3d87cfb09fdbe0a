//! Daemons as real processes on real interfaces. Each test starts itself again
//! inside user and network namespaces of its own; everything in there is gone
//! with the process, however it ends.

#[path = "daemon/lab.rs"]
mod lab;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use mrc_lab::capture::PcapngReader;
use mrc_lab::daemon::ClientError;
use mrc_lab::daemon::protocol::{EventReport, Request, Response};
use mrc_lab::scenario::Flow;
use mrc_lab::trace::QpEventKind;
use mrc_lab::workload::flow_data;
use serde_json::Value;

use lab::{Lab, Running, inside, ip, mode, text, wait_for};

/// Events of `daemon` from its first on, up to the first of `kind`.
fn events_until(daemon: &Running, kind: QpEventKind) -> Vec<EventReport> {
    let mut client = daemon.client();
    let subscribed = client.request(&Request::Subscribe {}).expect("subscribed");
    assert_eq!(subscribed, Response::Subscribed { forgotten: 0 });
    let mut events = Vec::new();
    while events.last().is_none_or(|event: &EventReport| event.kind != kind) {
        let event = client.next_event(Duration::from_secs(20)).expect("connected");
        events.push(event.expect("an event in time"));
    }
    events
}

/// The number in a field of an answer.
fn number(answer: &Value, field: &str) -> u64 {
    answer[field].as_u64().unwrap_or_else(|| panic!("no number {field} in {answer}"))
}

/// Regions of 300,000 bytes at a and at b: key and address of each.
fn register(lab: &Lab) -> [[u64; 2]; 2] {
    let local = lab.ctl_json("a register --length 300000 --flow 5:0:100000:3");
    let remote = lab.ctl_json("b register --length 300000 --access remote-write");
    [local, remote].map(|region| ["rkey", "va"].map(|field| number(&region, field)))
}

/// Posts 300,000 bytes from a to b; gives the number of the QP.
fn post(lab: &Lab, [[lkey, local_va], [rkey, remote_va]]: [[u64; 2]; 2]) -> u64 {
    let posted = lab.ctl_json(&format!(
        "a write --peer 10.0.0.2 --lkey {lkey:#x} --local-va {local_va} --length 300000 \
         --remote-va {remote_va} --rkey {rkey} --wqe-id 7"
    ));
    number(&posted, "qpn")
}

/// Writes 300,000 bytes from a to b over the control sockets; gives the keys of
/// both regions and the number of the QP.
fn write_message(lab: &Lab) -> [u64; 3] {
    let regions = register(lab);
    let qpn = post(lab, regions);
    [regions[0][0], regions[1][0], qpn]
}

// spec: TIME-2, TIME-5, TIME-6, RC-3, RC-6, RC-7, WL-1, REL-2, TIME-4
#[test]
fn a_message_crosses_the_switch_and_everything_is_told() {
    inside("a_message_crosses_the_switch_and_everything_is_told", || {
        let lab = Lab::new();
        let [mut a, b, s] = lab.start_all();
        let [lkey, rkey, qpn] = write_message(&lab);

        let events = events_until(&a, QpEventKind::WqeComplete);
        let kinds: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
        assert_eq!(kinds, ["QP_CREATED", "WQE_CREATED", "SEND_COMPLETE", "WQE_COMPLETE"]);
        assert!(events.is_sorted_by_key(|event| event.at_ps));
        assert_eq!((events[3].wqe_id, events[3].wqe_bytes), (Some(7), Some(300_000)));
        assert_eq!(u64::from(events[3].local.qpn.value()), qpn);
        let received = events_until(&b, QpEventKind::RecvComplete);
        assert_eq!(received[0].remote, events[0].local);

        assert_same_bytes(&lab, lkey, rkey);
        assert_counters(&lab);
        let closed = lab.ctl_json(&format!("a close {qpn}"));
        assert_eq!(closed["qp"]["messages"], 0);
        assert_eq!(lab.ctl_json("a qps")["qps"], Value::Array(Vec::new()));
        assert_report(&lab);

        a.signal("TERM");
        assert_eq!(a.exit_code(), Some(0));
        assert_capture(&lab);
        drop((b, s));
    });
}

fn assert_same_bytes(lab: &Lab, lkey: u64, rkey: u64) {
    let sent = lab.ctl(&format!("a digest {lkey:#x}"));
    let received = lab.ctl(&format!("b digest {rkey}"));
    assert_eq!(text(&sent.stdout), text(&received.stdout));
    assert_eq!(sent.stdout.len(), 65);
    assert!(lab.ctl(&format!("b save {rkey} out")).status.success());
    let (bytes, start) = (100_000, Default::default());
    let flow = Flow { from: 0, to: 1, bytes, messages: 3, one_qp: false, depth: 1, start };
    assert_eq!(fs::read(lab.path("out")).expect("saved"), flow_data(5, 0, &flow));
}

fn assert_counters(lab: &Lab) {
    let [a, b, s] = ["a", "b", "s"].map(|node| lab.ctl_json(&format!("{node} counters")));
    assert!(number(&a["counters"], "write_pkts_sent") >= 74);
    assert_eq!(number(&a["counters"], "wqes_completed"), 1);
    assert_eq!(number(&b["counters"], "messages_rcvd"), 1);
    assert!(number(&s["ports"][0], "frames_in") >= 74);
    assert_eq!(s["ports"][1]["interface"], "s1");
    for node in ["a", "b", "s"] {
        let shown = lab.ctl(&format!("{node} counters"));
        assert!(shown.status.success() && text(&shown.stdout).lines().count() > 2);
    }
}

fn assert_report(lab: &Lab) {
    let report = lab.ctl_json("a report");
    assert_eq!((number(&report, "tdf"), number(&report, "packet_time_ps")), (1_000, 83_480));
    assert!(number(&report["lateness"], "count") >= 74);
    assert_eq!(number(&report, "kernel_drops"), 0);
    assert!(report["fidelity"].as_str().is_some_and(|text| !text.is_empty()));
    assert!(number(&report["capture"], "packets") >= 148);
    assert!(text(&lab.ctl("a report").stdout).contains("fidelity"));
}

fn assert_capture(lab: &Lab) {
    let mut capture = PcapngReader::open(&lab.path("a.pcapng")).expect("a capture");
    let mut packets = 0;
    for packet in capture.by_ref() {
        let at_ns = packet.expect("whole").timestamp_ns;
        assert!(at_ns < 60_000_000_000, "protocol time");
        packets += 1;
    }
    assert!(packets >= 148, "{packets} packets");
    assert_eq!(capture.interfaces()[0].name, "a.a0");
    assert!(capture.section_comments()[0].contains("TDF: 1000"));
}

// case D03: the peer is stopped; timers fire once a period, nothing spins, and
// the work goes on when the peer does.
// spec: REL-5, RTO-4
#[test]
fn a_stopped_peer_costs_no_processor_time() {
    inside("a_stopped_peer_costs_no_processor_time", || {
        let lab = Lab::new();
        let [a, b, s] = lab.start_all();
        let regions = register(&lab);
        b.signal("STOP");
        post(&lab, regions);
        wait_for("a timeout", || {
            (number(&lab.ctl_json("a counters")["counters"], "rto") > 0).then_some(())
        });
        let (before, second) = (a.cpu_time(), Duration::from_secs(1));
        std::thread::sleep(second);
        let busy = a.cpu_time() - before;
        assert!(busy < second / 2, "{busy:?} of a second");
        let waiting = lab.ctl_json("a qps");
        assert_eq!(number(&waiting["qps"][0], "messages"), 1);
        b.signal("CONT");
        events_until(&a, QpEventKind::WqeComplete);
        // 74 packets time out together, once in 150 ms at most.
        let counters = &lab.ctl_json("a counters")["counters"];
        let periods = number(counters, "rto") / 74;
        assert!(periods <= number(&lab.ctl_json("a report"), "now_ps") / 150_000_000);
        drop((a, b, s));
    });
}

// spec: REL-6
#[test]
fn a_peer_that_is_killed_and_started_again_is_a_new_peer() {
    inside("a_peer_that_is_killed_and_started_again_is_a_new_peer", || {
        let lab = Lab::new();
        let [a, b, s] = lab.start_all();
        write_message(&lab);
        events_until(&a, QpEventKind::WqeComplete);
        drop(b);
        fs::remove_file(lab.path("b")).expect("left by the killed daemon");
        let b = lab.start("nic --node b --interface b0");
        let [lkey, rkey, _] = write_message(&lab);
        events_until(&b, QpEventKind::RecvComplete);
        assert_same_bytes(&lab, lkey, rkey);
        drop((a, b, s));
    });
}

// spec: REL-9
#[test]
fn only_what_is_needed_is_kept() {
    inside("only_what_is_needed_is_kept", || {
        let lab = Lab::new();
        let a = lab.start("nic --node a --interface a0 --capture a.pcapng");
        assert_eq!(mode(&a.control), 0o600);
        // CAP_NET_RAW is number 13. The capture's thread has no more.
        for set in ["CapEff", "CapPrm", "CapBnd"] {
            assert_eq!(a.status(set), "0000000000002000", "{set}");
        }
        assert_eq!(a.status("CapInh"), "0000000000000000");
        let tasks = fs::read_dir(format!("/proc/{}/task", a.child.id())).expect("threads");
        for task in tasks {
            let path = task.expect("a thread").path().join("status");
            let status = fs::read_to_string(path).expect("readable");
            assert!(status.contains("CapEff:\t0000000000002000"), "{status}");
        }
    });
}

// spec: TIME-2, TIME-3, W-7
#[test]
fn time_and_lives_are_as_the_options_say() {
    inside("time_and_lives_are_as_the_options_say", || {
        let lab = Lab::new();
        let a = lab.start("nic --node a --interface a0 --tdf 50 --epoch-ns 1 --life 9");
        assert!(a.ready.starts_with("ready nic a 10.0.0.1 control a tdf 50 epoch-ns 1 life 9"));
        let report = lab.ctl_json("a report");
        assert_eq!((number(&report, "tdf"), number(&report, "life")), (50, 9));
        assert_eq!(number(&report, "epoch_ns"), 1);

        let b = lab.start("nic --node b --interface b0 --profile native");
        let report = lab.ctl_json("b report");
        assert_eq!(number(&report, "tdf"), 1);
        assert_eq!(report["packet_time_ps"], Value::Null);
        assert!(report["fidelity"].as_str().is_some_and(|text| text.starts_with("not judged")));
        // A life that nobody gave is drawn.
        let first_life = number(&report, "life");
        drop(b);
        let _again = lab.start("nic --node b --interface b0 --profile native");
        assert_ne!(number(&lab.ctl_json("b report"), "life"), first_life);
    });
}

#[test]
fn every_end_is_clean() {
    inside("every_end_is_clean", || {
        let lab = Lab::new();
        for signal in ["TERM", "INT"] {
            let mut a = lab.start("nic --node a --interface a0");
            a.signal(signal);
            assert_eq!(a.exit_code(), Some(0), "{signal}");
            assert!(!a.control.exists());
        }
        let mut a = lab.start("nic --node a --interface a0");
        assert_eq!(text(&lab.ctl("a stop").stdout), "stopping\n");
        assert_eq!(a.exit_code(), Some(0));
        assert!(!a.control.exists());
        // What a killed daemon leaves behind is in nobody's way.
        let mut a = lab.start("nic --node a --interface a0");
        a.signal("KILL");
        assert_eq!(a.exit_code(), None);
        assert!(a.control.exists());
        let _a = lab.start("nic --node a --interface a0");
        assert_eq!(lab.ctl_json("a qps")["qps"], Value::Array(Vec::new()));
    });
}

// spec: REL-9
#[test]
fn a_process_that_may_not_open_sockets_is_told_what_it_lacks() {
    inside("a_process_that_may_not_open_sockets_is_told_what_it_lacks", || {
        let lab = Lab::new();
        let mrc = lab.mrc("nic --scenario lab.toml --control c --node a --interface a0");
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-net_raw").arg(mrc.get_program()).args(mrc.get_args());
        let output = command.current_dir(lab.dir.path()).output().expect("setpriv (util-linux)");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("CAP_NET_RAW"), "{}", text(&output.stderr));
    });
}

/// The daemon's answer to a line.
fn answer(daemon: &Running, line: &[u8]) -> Value {
    let mut stream = UnixStream::connect(&daemon.control).expect("it listens");
    stream.write_all(line).expect("taken");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("answered");
    serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer:?}: {error}"))
}

#[test]
fn bad_requests_are_answered() {
    inside("bad_requests_are_answered", || {
        let lab = Lab::new();
        let a = lab.start("nic --node a --interface a0");
        let s = lab.start("switch --node s --interface s0 --interface s1");
        for (line, reason) in [
            ("{", "not a request"),
            ("{}", "request"),
            (r#"{"request":"fly"}"#, "fly"),
            (r#"{"request":"counters","colour":1}"#, "colour"),
            (r#"{"request":"close","qpn":5}"#, "no QP 5"),
            (r#"{"request":"close","qpn":16777216}"#, "24 bits"),
            (r#"{"request":"digest","rkey":1}"#, "no memory region"),
            (r#"{"request":"deregister_memory","rkey":1}"#, "no memory region"),
            (r#"{"request":"save","rkey":1,"file":"x"}"#, "no memory region"),
            (r#"{"request":"register_memory","length":99999999999,"access":"local"}"#, "longer"),
            (
                r#"{"request":"register_memory","length":9,"access":"local","fill":{"file":"/dev/zero"}}"#,
                "not a regular file",
            ),
            (
                r#"{"request":"post_write","peer":"10.0.0.2","lkey":1,"local_va":0,"length":9,"remote_va":0,"rkey":0,"wqe_id":0}"#,
                "registered region",
            ),
            ("\u{0}\u{1}\u{ff}", "not a request"),
        ] {
            let answer = answer(&a, format!("{line}\n").as_bytes());
            assert_eq!(answer["ok"], false, "{line}");
            let error = answer["error"].as_str().expect("an error");
            assert!(error.contains(reason), "{line}: {error}");
        }
        let refused = answer(&s, b"{\"request\":\"list_qps\"}\n");
        assert_eq!(refused["error"], "a switch does not know this request");
        assert_eq!(answer(&a, b"\n\n{\"request\":\"list_qps\"}\n")["ok"], true);
        // From the shell: the refusal is the message and the exit code 1.
        let refused = lab.ctl("a close 5");
        assert_eq!(refused.status.code(), Some(1));
        assert_eq!(text(&refused.stderr), "error: this NIC has no QP 5\n");
    });
}

#[test]
fn a_message_that_nobody_reads_is_no_crash() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut mrc = Command::new(env!("CARGO_BIN_EXE_mrc"));
    let status = mrc.args(["ctl", "nobody", "qps"]).stderr(writer).status().expect("runs");
    assert_eq!(status.code(), Some(2));
}

#[test]
fn bad_clients_do_no_harm() {
    inside("bad_clients_do_no_harm", || {
        let lab = Lab::new();
        let _all = lab.start_all();
        let [a, b, _] = &_all;
        // One that never ends its line.
        let mut endless = UnixStream::connect(&a.control).expect("it listens");
        endless.set_write_timeout(Some(Duration::from_secs(5))).expect("set");
        let written = endless.write_all(&vec![b'x'; 4 << 20]);
        assert!(written.is_err(), "it is cut off");
        // One that asks and never reads.
        let mut mute = UnixStream::connect(&b.control).expect("it listens");
        mute.set_write_timeout(Some(Duration::from_secs(20))).expect("set");
        let requests = b"{\"request\":\"counters\"}\n".repeat(1_000);
        wait_for("the end of a client that never reads", || mute.write_all(&requests).err());
        // Ones that do nothing, as many as there can be and more.
        let idle: Vec<_> = (0..70).map(|_| UnixStream::connect(&b.control)).collect();
        let mut last = idle.last().and_then(|last| last.as_ref().ok()).expect("connected");
        let mut refusal = String::new();
        last.read_to_string(&mut refusal).expect("turned away");
        assert!(refusal.contains("64 clients"), "{refusal}");
        drop(idle);
        // The daemons work as before.
        wait_for("room for a client", || lab.ctl("b qps").status.success().then_some(()));
        write_message(&lab);
        events_until(a, QpEventKind::WqeComplete);
    });
}

#[test]
fn a_closed_connection_is_told_to_the_client() {
    inside("a_closed_connection_is_told_to_the_client", || {
        let lab = Lab::new();
        let a = lab.start("nic --node a --interface a0");
        let mut client = a.client();
        client.request(&Request::Subscribe {}).expect("subscribed");
        assert_eq!(client.next_event(Duration::from_millis(1)).expect("connected"), None);
        let refused = client.request(&Request::Close { qpn: 9 }).expect_err("no QP");
        assert!(matches!(refused, ClientError::Refused(text) if text.contains("no QP 9")));
        let stopping = client.request(&Request::Stop {}).expect("answered");
        assert_eq!(stopping, Response::Stopping {});
        let end = client.next_event(Duration::from_secs(20)).expect_err("the end");
        assert!(matches!(end, ClientError::Closed), "{end}");
    });
}

#[test]
fn bad_options_say_what_to_do() {
    inside("bad_options_say_what_to_do", || {
        let lab = Lab::new();
        fs::write(lab.path("bad.toml"), "[[nic]]\nname = 5\n").expect("written");
        ip("link add narrow mtu 1500 type veth peer name other mtu 1500");
        let nic = "nic --scenario lab.toml --control c";
        let switch = "switch --scenario lab.toml --control c --node s";
        for (arguments, parts) in [
            (format!("{nic} --node a --interface a0 --tdf 0"), vec!["'0'", "--tdf", "from 1 to"]),
            (format!("{nic} --node a --interface a0 --profile x"), vec!["--profile", "native"]),
            (format!("{nic} --node x --interface a0"), vec!["--node x", "a, b, s"]),
            (format!("{nic} --node s --interface s0"), vec!["--node s", "`mrc switch`"]),
            (format!("{nic} --node a --interface zz"), vec!["--interface zz", "a0"]),
            (format!("{nic} --node a --interface narrow"), vec!["1500", "4156", "mtu"]),
            (format!("{nic} --node a --interface a0 --capture /x/y"), vec!["--capture /x/y"]),
            (format!("{switch} --interface s0"), vec!["1 given", "2 link(s)"]),
            (format!("{switch} --interface s0 --interface s0"), vec!["s0: given twice"]),
            (switch.to_owned(), vec!["--interface"]),
            ("nic --scenario no --control c --node a --interface a0".into(), vec!["--scenario no"]),
            (
                "nic --scenario bad.toml --control c --node a --interface a0".into(),
                vec!["bad.toml"],
            ),
            ("nic --scenario lab.toml --control d/c --node a --interface a0".into(), vec!["d/c"]),
            (format!("{nic} --node a --interface a0 --life x"), vec!["'x'", "--life", "from 0 to"]),
            ("ctl nobody qps".into(), vec!["at nobody", "No such file", "--control"]),
        ] {
            let output = lab.mrc(&arguments).output().expect("runs");
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{arguments}: {error}");
            assert!(!lab.path("c").exists(), "{arguments}");
        }
    });
}

/// What `mrc fault` with `arguments` prints; it has to succeed.
fn fault(lab: &Lab, arguments: &[&str]) -> String {
    let output = lab.mrc("fault").args(arguments).output().expect("runs");
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

// spec: SW-20, SW-21
#[test]
fn faults_come_and_go_while_messages_do() {
    inside("faults_come_and_go_while_messages_do", || {
        let lab = Lab::new();
        let [a, b, s] = lab.start_all();
        assert_eq!(fault(&lab, &["add", "a", "--down"]), "added fault 1\n");
        let added = fault(&lab, &["add", "s", "--to", "b", "--hold", "2 us", "--psn", "0x10"]);
        assert_eq!(added, "added fault 1\n");
        let listed = fault(&lab, &["list", "a"]);
        assert!(listed.contains("a -> s  DOWN"), "{listed}");
        let [lkey, rkey, _] = write_message(&lab);
        wait_for("a timeout", || {
            (number(&lab.ctl_json("a counters")["counters"], "rto") > 0).then_some(())
        });
        let listed: Value =
            serde_json::from_str(&fault(&lab, &["list", "a", "--json"])).expect("JSON");
        let link = &listed["links"][0];
        assert!(link["up"] == false && number(&link["faults"][0], "acted") >= 74, "{link}");
        assert_eq!(number(&lab.ctl_json("b counters")["counters"], "pkts_rcvd"), 0);

        assert_eq!(fault(&lab, &["clear", "a", "--id", "1"]), "1 faults cleared\n");
        assert!(fault(&lab, &["list", "a"]).contains("a -> s  up"));
        events_until(&a, QpEventKind::WqeComplete);
        assert_same_bytes(&lab, lkey, rkey);
        let faults = &lab.ctl_json("a report")["faults"];
        assert!(number(faults, "lost by rule 1 (down)") >= 74, "{faults}");
        assert_eq!(fault(&lab, &["clear", "s"]), "1 faults cleared\n");
        drop((a, b, s));
    });
}

// spec: SW-20
#[test]
fn faults_that_cannot_be_added_say_why() {
    inside("faults_that_cannot_be_added_say_why", || {
        let lab = Lab::new();
        let s = lab.start("switch --node s --interface s0 --interface s1");
        fs::create_dir(lab.path("empty")).expect("made");
        for (arguments, code, parts) in [
            ("add s --to b --drop --nth 0", 2, vec!["--nth 0: must be", "from 1 to"]),
            ("add s --to b --drop --kind SAK", 2, vec!["--kind \"SAK\": must be", "SACK"]),
            ("add s --to b --hold 5", 2, vec!["--hold 5: must be a time with a unit"]),
            ("add s --to b --nth 3", 2, vec!["needs exactly one of drop"]),
            ("add s --to c --drop", 1, vec!["no link leads to \"c\"", "a, b"]),
            ("add s --drop", 1, vec!["`to` is missing", "a, b"]),
            ("clear s --id 9", 1, vec!["no fault here has the number 9"]),
            ("list nobody", 2, vec!["no daemon answers at nobody"]),
            ("list --run empty", 2, vec!["--run empty", "no daemon runs there"]),
            ("add --run empty --drop", 2, vec!["--from is missing"]),
            ("list", 2, vec!["--run"]),
        ] {
            let output = lab.mrc(&format!("fault {arguments}")).output().expect("runs");
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{arguments}: {error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{arguments}: {error}");
        }
        // Nothing has happened.
        assert!(!fault(&lab, &["list", "s"]).contains("loss"));
        // By the names of nodes, where the folder is that of a run.
        fs::rename(lab.path("s"), lab.path("empty/s.sock")).expect("moved");
        let at = ["--run", "empty", "--from", "s"];
        fault(&lab, &[&["add"][..], &at, &["--to", "b", "--drop"]].concat());
        assert!(fault(&lab, &["list", "--run", "empty"]).contains("s -> b  up     1"));
        assert_eq!(fault(&lab, &["clear", "--run", "empty"]), "1 faults cleared\n");
        drop(s);
    });
}
