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

// spec: TIME-3, SW-1, WL-1
#[test]
fn a_fabric_in_the_wall_clock() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &FABRIC.replace("1 MiB", "100 KB"));
    let end = bench.run("lab.toml").well();
    assert_eq!(end.line("sha-256: "), "equal");
}
