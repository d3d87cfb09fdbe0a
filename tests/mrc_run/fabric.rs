//! A leaf-spine fabric in three clocks.

use crate::bench::{As, Bench};

const FABRIC: &str = include_str!("../../scenarios/leaf-spine-8.toml");

// spec: TIME-5, SW-1, WL-1
#[test]
fn a_fabric_in_exact_clocks_is_the_same_with_and_without_wires() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", FABRIC);
    let events = ["exact", "exact-wires"].map(|clock| {
        let end = bench.run(&format!("lab.toml --clock {clock} --out {clock}")).well();
        assert_eq!(end.line("sha-256: "), "equal");
        assert!(end.line("retransmissions: ").starts_with("0 "), "{end:#?}");
        bench.read(&format!("{clock}/leaf-spine-8-mrc-events-0.csv"))
    });
    assert!(events[0] == events[1] && !events[0].is_empty(), "the events differ");
}

// spec: TIME-3, SW-1, WL-1
#[test]
fn a_fabric_in_the_wall_clock() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &FABRIC.replace("1 MiB", "100 KB"));
    let end = bench.run("lab.toml").well();
    assert_eq!(end.line("sha-256: "), "equal");
}
