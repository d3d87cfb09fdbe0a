//! The demo in three clocks, and what it says at its end.

use std::collections::BTreeMap;
use std::path::Path;

use mrc_lab::capture::{CapturedPacket, Direction, PcapngReader};
use mrc_lab::wire::packet::{FrameFormat, Packet};
use serde_json::{Value, json};

use crate::bench::{As, Bench, End};

/// All packets of a capture, which has to be whole.
pub fn packets(path: &Path) -> Vec<CapturedPacket> {
    let reader = PcapngReader::open(path);
    let reader = reader.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let packets = reader.map(|packet| packet.unwrap_or_else(|e| panic!("{}: {e}", path.display())));
    packets.collect()
}

/// Whether a fault kept this packet from its wire.
pub fn was_dropped(packet: &CapturedPacket) -> bool {
    packet.comment.as_ref().is_some_and(|comment| comment.starts_with("dropped"))
}

/// Retransmissions in a summary: all of them, by timeout, by NACK, by SACK.
fn retransmissions(end: &End) -> [u64; 4] {
    let line = end.line("retransmissions: ");
    let (causes, _) = line.split_once("; ").expect("re-requests");
    let numbers = causes.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<u64> = numbers.map(|word| word.parse().expect("a number")).collect();
    assert!(line.contains("(timeout ") && line.contains(", nack ") && line.contains(", sack gap "));
    numbers.try_into().unwrap_or_else(|numbers| panic!("{line}: {numbers:?}"))
}

/// Checks what every demo has to come to.
fn assert_demo(end: &End) {
    assert_eq!(end.line("sha-256: "), "equal");
    let [all, timeout, nack, gap] = retransmissions(end);
    assert_eq!(all, timeout + nack + gap);
    assert!(nack > 0 && timeout + gap > 0, "{end:#?}");
    let count = |of: &str| end.line(of).parse::<u64>().expect("a number");
    assert!(count("trims: ") > 0 && count("marks: ") > 0, "{end:#?}");
    assert!(count("timeouts: ") >= timeout, "{end:#?}");
    assert_eq!(end.line("drops: "), "none");
    let captures: Vec<_> = end.out.lines().filter(|line| line.starts_with("capture: ")).collect();
    assert_eq!(captures.len(), 3);
}

// spec: TIME-5, RC-3, RC-9, SW-21, REL-10
#[test]
fn the_demo_in_exact_clocks_is_the_same_with_and_without_wires() {
    for who in As::both() {
        let bench = Bench::with_demo(who, if who == As::Root { "64 MiB" } else { "8 MiB" });
        let mut events = Vec::new();
        for clock in ["exact", "exact-wires"] {
            let end = bench.run(&format!("lab.toml --clock {clock} --out {clock}")).well();
            assert_demo(&end);
            assert_eq!(end.line("fidelity: "), "exact");
            events.push(bench.read(&format!("{clock}/two-hosts-mrc-events-0.csv")));
        }
        assert!(events[0] == events[1] && !events[0].is_empty(), "{who:?}: the events differ");
    }
}

// spec: TIME-3, TIME-5, TIME-6, REL-8, REL-10, RC-9, SW-20
#[test]
fn the_demo_in_the_wall_clock() {
    for who in As::both() {
        let bench = Bench::with_demo(who, if who == As::Root { "64 MiB" } else { "8 MiB" });
        let end = bench.run("lab.toml --tdf 1000").well();
        assert_demo(&end);
        let fidelity = end.line("fidelity: ");
        assert!(["good", "fair", "poor"].iter().any(|word| fidelity.starts_with(word)));
        assert!(fidelity.ends_with(" packet times; 0 kernel drops)"), "{fidelity}");
        assert!(
            end.out.starts_with("two-hosts: profile reference, seed 1, wall clock, TDF 1000\n")
        );
        assert!(bench.path("out/two-hosts-wall/run.json").exists());
    }
}

// spec: TIME-6
#[test]
fn a_clock_that_is_too_fast_is_told_with_a_slower_one() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    let end = bench.run("lab.toml --tdf 10 --no-captures");
    let fidelity = end.line("fidelity: ");
    assert!(fidelity.starts_with("poor (p99 lateness "), "{fidelity}");
    let (_, proposal) = fidelity.split_once("; try --tdf ").expect("a proposal");
    let tdf: u32 = proposal.split(')').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!(tdf > 10, "{fidelity}");
    assert_eq!(end.line("sha-256: "), "equal");
}

// spec: TIME-3, W-3
#[test]
fn nothing_is_lost_and_nothing_sent_twice_in_the_native_profile() {
    let bench = Bench::alone(As::User);
    bench.write("clean.toml", include_str!("../../scenarios/two-hosts-clean.toml"));
    // A machine that is busy otherwise may let a daemon sleep past its peer's
    // timers of 20 ms, but not every time.
    let mut ends = (0..5).map(|_| bench.run("--profile native clean.toml").well());
    let end = ends.find(|end| {
        assert!(end.line("retransmissions: ").contains("nack 0, sack gap 0"), "{end:#?}");
        end.line("retransmissions: ").starts_with("0 ")
    });
    let end = end.expect("a run of five without retransmissions");
    assert_eq!(end.line("sha-256: "), "equal");
    assert_eq!((end.line("trims: "), end.line("drops: ")), ("0", "none"));
    assert!(end.line("a -> b").contains("Gbps"), "{end:#?}");
    assert!(end.line("fidelity: ").starts_with("not judged"));
    let format = FrameFormat { icrc: true, ..FrameFormat::default() };
    let all = packets(&bench.path("out/two-hosts-clean-wall/b.pcapng"));
    assert!(all.len() > 16_384, "{}", all.len());
    for CapturedPacket { frame, .. } in &all {
        Packet::parse(frame, &format).expect("a packet with an ICRC");
    }
    let mut damaged = all[0].frame.clone();
    *damaged.last_mut().expect("an ICRC") ^= 1;
    assert!(Packet::parse(&damaged, &format).is_err());
}

/// What interfaces of the two hosts and their switch sent, by their captures.
fn frames_in_captures(bench: &Bench, dir: &str) -> Value {
    let mut frames = BTreeMap::new();
    for (host, port) in [("a", "mrc0"), ("b", "mrc1")] {
        let all = packets(&bench.path(&format!("{dir}/{host}.pcapng")));
        let (sent, came): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|packet| packet.direction == Some(Direction::Outbound));
        let on_wire = sent.iter().filter(|packet| !was_dropped(packet)).count();
        frames.insert(format!("{host} mrc0"), on_wire);
        frames.insert(format!("s {port}"), came.len());
    }
    json!(frames)
}

// spec: RC-1, RC-7, RC-9, TIME-4, TIME-6
#[test]
fn json_and_the_manifest_say_what_the_wires_carried() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    for clock in ["exact-wires", "wall"] {
        let end = bench.run(&format!("lab.toml --json --clock {clock} --out {clock}")).well();
        let summary = end.json();
        let flow = &summary["flows"][0];
        assert_eq!(flow["bytes"], 4 << 20);
        for number in ["completion_ns", "ideal_ns", "ratio_to_ideal", "goodput_gbps"] {
            assert!(flow[number].as_f64().is_some_and(|n| n > 0.0), "{number}: {flow}");
        }
        assert!(flow["retransmissions"]["total"].as_u64().is_some_and(|n| n > 0), "{flow}");
        assert_eq!(summary["worst_ratio_to_ideal"], flow["ratio_to_ideal"]);
        assert_eq!(summary["last_finish_ns"], flow["finished_ns"]);
        for count in ["trims", "marks"] {
            assert!(summary[count].as_u64().is_some_and(|n| n > 0), "{count}: {summary}");
        }
        assert_eq!(summary["sha256"], "equal");
        assert!(summary["fidelity"]["verdict"].is_string());
        assert_eq!(summary["fidelity"]["kernel_drops"], 0);
        let run = bench.json(&format!("{clock}/run.json"));
        assert_eq!(run["clock"], clock);
        assert_eq!(run["frames_on_wire"], summary["frames_on_wire"]);
        assert_eq!(run["frames_on_wire"], frames_in_captures(&bench, clock), "{clock}");
    }
}
