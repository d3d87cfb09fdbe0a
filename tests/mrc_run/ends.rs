//! Runs that end before they are done: killed, interrupted, given up.

use std::process::Command;
use std::thread;
use std::time::Duration;

use mrc_lab::io::clock::monotonic_ns;

use crate::bench::{As, Bench, any_process_in, demo, said, wait_for};
use crate::demo::packets;

/// How soon nothing may be left of a killed run.
const GRACE: Duration = Duration::from_secs(2);
/// How long a run may take to come to its middle.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the machine knows of namespaces and interfaces.
fn machine() -> [String; 2] {
    [&["netns", "list"][..], &["-brief", "link"]].map(|words| said(Command::new("ip").args(words)))
}

/// Kills runs at ten moments, from the first to the last.
fn kill_at_ten_moments(who: As, clock: &str) {
    if !As::both().contains(&who) {
        return;
    }
    let bench = Bench::with_demo(who, "1 MiB");
    let run = format!("lab.toml --clock {clock}");
    let (before, start) = (machine(), monotonic_ns());
    bench.run(&run).well();
    let whole = monotonic_ns() - start;
    let mut most = 0;
    for moment in 0..10 {
        let killed = bench.start(&run);
        thread::sleep(Duration::from_nanos(whole * moment / 10));
        let namespaces = killed.namespaces();
        most = most.max(namespaces.len());
        killed.signal("KILL");
        let what = format!("nothing is left of a run killed at moment {moment}");
        wait_for(&what, GRACE, || {
            (killed.processes().is_empty() && !any_process_in(&namespaces)).then_some(())
        });
        assert_eq!(machine(), before);
        bench.run(&run).well();
    }
    // The sandbox's, in which daemons are at home too.
    assert_eq!(most, 1, "the killed runs had namespaces");
}

// spec: REL-10
#[test]
fn kill_9_leaves_nothing_of_a_users_run_in_the_wall_clock() {
    kill_at_ten_moments(As::User, "wall");
}

// spec: REL-10
#[test]
fn kill_9_leaves_nothing_of_roots_run_over_wires() {
    kill_at_ten_moments(As::Root, "exact-wires");
}

// spec: REL-10
#[test]
#[ignore = "long; the other half"]
fn kill_9_leaves_nothing_of_roots_run_in_the_wall_clock() {
    kill_at_ten_moments(As::Root, "wall");
}

// spec: REL-10
#[test]
#[ignore = "long; the other half"]
fn kill_9_leaves_nothing_of_a_users_run_over_wires() {
    kill_at_ten_moments(As::User, "exact-wires");
}

// spec: RC-1, RC-6, RC-7
#[test]
fn an_interrupted_run_leaves_whole_files() {
    for clock in ["wall", "exact-wires", "exact"] {
        let bench = Bench::with_demo(As::User, "64 MiB");
        let mut run = bench.start(&format!("lab.toml --clock {clock} --out out"));
        wait_for("the run is in its middle", PATIENCE, || {
            assert!(run.is_running(), "{clock}: {}", run.said());
            let size = bench.path("out/b.pcapng").metadata().map_or(0, |file| file.len());
            (size > 1 << 20).then_some(())
        });
        run.signal("INT");
        let end = run.end();
        assert_eq!(end.code, Some(1), "{clock}: {end:#?}");
        assert!(end.line("a -> b").contains("incomplete"), "{end:#?}");
        for capture in ["a", "b", "merged"] {
            assert!(packets(&bench.path(&format!("out/{capture}.pcapng"))).len() > 100);
        }
        assert_eq!(bench.json("out/run.json")["clock"], clock);
        let events = String::from_utf8(bench.read("out/two-hosts-mrc-events-0.csv")).expect("text");
        assert!(events.ends_with('\n') && events.contains("QP_CREATED"), "{events}");
    }
}

// spec: DONE-1, RC-9
#[test]
fn a_message_that_cannot_arrive_is_given_up() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &demo("64 KB").replace("probability = 0.01", "probability = 1"));
    for clock in ["wall", "exact-wires", "exact"] {
        let end = bench.run(&format!("lab.toml --clock {clock} --time-limit 3ms"));
        assert_eq!(end.code, Some(1), "{clock}: {end:#?}");
        assert!(end.line("a -> b").contains("incomplete"), "{end:#?}");
        assert_eq!(end.line("sha-256: "), "DIFFERENT");
    }
}
