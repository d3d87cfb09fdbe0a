//! A leaf-spine fabric in three clocks.

use mrc_lab::io::clock::monotonic_ns;

use crate::bench::{As, Bench};

const FABRIC: &str = include_str!("../../scenarios/leaf-spine-8.toml");

// spec: TIME-5, SW-1, WL-1
#[test]
fn a_fabric_in_exact_clocks_is_the_same_with_and_without_wires() {
    let bench = Bench::new(As::User);
    // 64 MiB in all.
    bench.write("lab.toml", &FABRIC.replace("1 MiB", "8 MiB"));
    let events = ["exact", "exact-wires"].map(|clock| {
        let start = monotonic_ns();
        let run = format!("lab.toml --clock {clock} --out {clock} --no-captures");
        let end = bench.run(&run).well();
        println!("64 MiB, {clock}: {:.2} s", (monotonic_ns() - start) as f64 / 1e9);
        assert_eq!(end.line("sha-256: "), "equal");
        bench.read(&format!("{clock}/leaf-spine-8-mrc-events-0.csv"))
    });
    assert!(events[0] == events[1] && !events[0].is_empty(), "the events differ");
}

// spec: TIME-5, RC-7
#[test]
fn two_runs_of_one_seed_over_wires_give_equal_captures() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &FABRIC.replace("1 MiB", "100 KB"));
    let captures = ["first", "second"].map(|out| {
        bench.run(&format!("lab.toml --clock exact-wires --out {out}")).well();
        ["h0", "h7", "merged"].map(|name| bench.read(&format!("{out}/{name}.pcapng")))
    });
    assert!(captures[0] == captures[1], "the captures differ");
    bench.run("lab.toml --clock exact-wires --out third --seed 9").well();
    assert!(bench.read("third/h0.pcapng") != captures[0][0], "another seed is another run");
}

// spec: TIME-1, WL-1
#[test]
fn in_every_clock_a_flow_starts_when_the_file_says() {
    let bench = Bench::new(As::User);
    let later = "[[write]]\nfrom = \"h7\"\nto = \"h0\"\nbytes = 1\nstart = \"300 us\"\n";
    bench.write("lab.toml", &(FABRIC.replace("1 MiB", "10 KB") + later));
    for clock in ["exact", "exact-wires", "wall"] {
        bench.run(&format!("lab.toml --clock {clock} --out {clock} --no-captures")).well();
        let events = bench.read(&format!("{clock}/leaf-spine-8-mrc-events-0.csv"));
        let events = String::from_utf8(events).expect("text");
        let rows = events.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let posted = rows.filter(|row| row[1] == "h7" && row[7] == "WQE_CREATED");
        let times: Vec<f64> = posted.map(|row| row[0].parse().expect("a time")).collect();
        let [first, second] = times[..] else { panic!("two postings at h7: {events}") };
        match clock {
            // The run started some time after the daemons.
            "wall" => assert!(first < second && second >= 300_000.0, "{first}, then {second}"),
            _ => assert_eq!((first, second), (0.0, 300_000.0)),
        }
    }
}

// spec: TIME-3, SW-1, WL-1
#[test]
fn a_fabric_in_the_wall_clock() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &FABRIC.replace("1 MiB", "100 KB"));
    let end = bench.run("lab.toml").well();
    assert_eq!(end.line("sha-256: "), "equal");
}
