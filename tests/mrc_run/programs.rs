//! Programs of the hosts beside the NICs: what is not MRC crosses the switch too.

use std::time::Duration;

use crate::bench::{As, Bench, End, text, wait_for};

/// Two hosts and a switch; tests add what they are about.
const LAB: &str = "\
[[nic]]
name = 'a'
[[nic]]
name = 'b'
[[switch]]
name = 's'
[[link]]
ends = ['a', 's']
delay = '10 us'
[[link]]
ends = ['s', 'b']
delay = '10 us'
";

/// The server's part: two tests, then what the host's network stack has counted.
const SERVER: &str = "iperf3 -s -1 && iperf3 -s -1 && cat /proc/net/snmp";
/// Pings, and sends a second of TCP and one of UDP. The server may take a moment.
const CLIENT: &str = "ping -M do -s 4172 -c 3 -i 0.05 10.0.0.2
ping -s 9000 -c 3 -i 0.05 10.0.0.2
until iperf3 -c 10.0.0.2 -t 1; do sleep 0.1; done
until iperf3 -c 10.0.0.2 -t 1 -u -l 4096 -b 500M; do sleep 0.1; done
cat /proc/net/snmp";

fn exec(node: &str, script: &str, more: &str) -> String {
    format!("[[exec]]\nnode = '{node}'\ncommand = ['sh', '-ec', '''{script}''']\n{more}\n")
}

/// The counter `name` of `protocol` in the text of /proc/net/snmp.
#[track_caller]
fn counter(snmp: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut columns = names.split(' ').zip(values.split(' '));
    let value = columns.find_map(|(known, value)| (known == name).then_some(value));
    value.unwrap_or_else(|| panic!("no {protocol} {name}: {snmp}")).parse().expect("a number")
}

// spec: SW-1
#[test]
fn ping_tcp_and_udp_cross_the_switch_beside_a_write() {
    for who in As::both() {
        let bench = Bench::alone(who);
        let (server, client) = (exec("b", SERVER, ""), exec("a", CLIENT, ""));
        let write = "[[write]]\nfrom = 'a'\nto = 'b'\nbytes = '4 MiB'\n";
        bench.write("lab.toml", &format!("profile = 'native'\n{LAB}{write}{server}{client}"));
        let end = bench.run("lab.toml --no-captures --out run --json").well();
        let json = end.json();
        assert_eq!(json["execs"].as_array().expect("a list").len(), 2);
        assert!(json["execs"].as_array().expect("a list").iter().all(|e| e["end"]["exit"] == 0));
        let [server, client] =
            ["run/exec-1.log", "run/exec-2.log"].map(|log| text(&bench.read(log)));
        for pings in client.split(" statistics").skip(1) {
            assert!(pings.contains("3 packets transmitted, 3 received"), "{client}");
        }
        for snmp in [&server, &client] {
            for (protocol, name) in [("Tcp", "InCsumErrors"), ("Udp", "InCsumErrors")] {
                assert_eq!(counter(snmp, protocol, name), 0, "{snmp}");
            }
        }
        assert!(counter(&server, "Tcp", "InSegs") > 1_000, "{server}");
        // 500 Mbit/s for a second, of which a busy machine may lose much.
        assert!(counter(&server, "Udp", "InDatagrams") > 1_000, "{server}");
        // The large pings alone were cut: three a way into three parts each.
        assert_eq!(counter(&client, "Ip", "FragCreates"), 9, "{client}");
        assert_eq!(counter(&server, "Ip", "ReasmOKs"), 3, "{server}");
    }
}

/// The least round-trip time that ping says, in milliseconds.
#[track_caller]
fn least_rtt(ping: &str) -> f64 {
    let numbers = ping.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let least = numbers.and_then(|numbers| numbers.split('/').next());
    least.unwrap_or_else(|| panic!("no times: {ping}")).parse().expect("a number")
}

// spec: SW-1, SW-2, TIME-2
#[test]
fn a_ping_in_slowed_time_takes_the_delays_behind_the_switch() {
    let bench = Bench::new(As::User);
    let ping = exec("a", "ping -c 3 -i 0.2 10.0.0.2", "");
    bench.write("lab.toml", &format!("{LAB}{ping}"));
    let end = bench.run("lab.toml --no-captures --tdf 1000 --out run").well();
    assert!(end.line("exec on a: ").contains("exit status 0; run/exec-1.log"), "{end:#?}");
    // 10 us there and 10 us back, a thousand times slower.
    let rtt = least_rtt(&text(&bench.read("run/exec-1.log")));
    assert!(rtt >= 20.0, "{rtt} ms");
}

#[track_caller]
fn run(bench: &Bench, execs: &str, words: &str) -> End {
    bench.write("lab.toml", &format!("profile = 'native'\n{LAB}{execs}"));
    bench.run(&format!("lab.toml --no-captures --out run {words}"))
}

// spec: SW-1
#[test]
fn a_program_that_fails_fails_the_run_and_a_server_ends_with_it() {
    let bench = Bench::new(As::User);
    let server = exec("b", "echo ready; sleep 1000", "background = true");
    let late = exec("a", "echo 'not in time' >&2; exit 3", "start = '200 ms'");
    let end = run(&bench, &format!("{server}{late}"), "");
    assert_eq!(end.code, Some(1), "{end:#?}");
    assert!(end.out.contains("sleep 1000: ended with the run; run/exec-1.log"), "{end:#?}");
    assert!(end.out.contains("exit 3: exit status 3; run/exec-2.log"), "{end:#?}");
    assert_eq!(text(&bench.read("run/exec-1.log")), "ready\n");
    assert_eq!(text(&bench.read("run/exec-2.log")), "not in time\n");

    let never = exec("a", "true", "start = '1000 s'");
    let end = run(&bench, &never, "--time-limit 100ms");
    assert_eq!(end.code, Some(1), "{end:#?}");
    assert!(end.out.contains("true: not started"), "{end:#?}");
}

// spec: TIME-5
#[test]
fn programs_that_cannot_run_are_explained() {
    let bench = Bench::new(As::User);
    for clock in ["exact", "exact-wires"] {
        let end = run(&bench, &exec("a", "true", ""), &format!("--clock {clock}"));
        assert_eq!(end.code, Some(2), "{end:#?}");
        assert!(end.err.contains("lab.toml has [[exec]] sections"), "{}", end.err);
        assert!(end.err.contains("use --clock wall"), "{}", end.err);
    }
    let end = run(&bench, "[[exec]]\nnode = 'a'\ncommand = ['no-such-program']\n", "");
    assert_eq!(end.code, Some(2), "{end:#?}");
    assert!(end.err.contains("[[exec]] on a: no-such-program is not found"), "{}", end.err);
}

// spec: REL-10
#[test]
fn programs_end_with_the_run_however_it_ends() {
    let bench = Bench::new(As::User);
    let patience = Duration::from_secs(20);
    // One that does not want to end, with one that it has started, and a plain one.
    let stubborn = "trap \"\" TERM; sleep 1000; sleep 1000";
    for (signal, script) in [("INT", stubborn), ("KILL", "exec sleep 1000")] {
        let exec = exec("a", script, "");
        bench.write("lab.toml", &format!("profile = 'native'\n{LAB}{exec}"));
        let run = bench.start(&format!("lab.toml --no-captures --out {signal}"));
        let sleeps = |pid: &u32| std::fs::read(format!("/proc/{pid}/comm")).ok();
        wait_for("the program runs", patience, || {
            let names: Vec<_> = run.processes().iter().filter_map(sleeps).collect();
            names.iter().any(|name| name == b"sleep\n").then_some(())
        });
        run.signal(signal);
        wait_for("all is gone", patience, || run.processes().is_empty().then_some(()));
    }
}
