//! What goes wrong on links, as scenario files say it, and that messages arrive
//! all the same once it is over.

use mrc_lab::record::NetworkCounts;
use mrc_lab::scenario::{Overrides, Scenario, parse};
use mrc_lab::sim::{InMemory, SimWorld, run_workload};
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{Event, QpEventKind, TraceSink};

use crate::lab::*;

/// Two NICs at a switch with faults between them; `fault` is the sections'
/// text but for their ends: one on the way of the data from a, one on the way
/// of the data to b, and one on the way of what b answers.
fn lab(bytes: u32, messages: u32, fault: &str) -> Scenario {
    let faults: String = [("a", "s"), ("s", "b"), ("b", "s")]
        .iter()
        .map(|(from, to)| format!("[[fault]]\nfrom = '{from}'\nto = '{to}'\n{fault}\n"))
        .collect();
    let text = format!(
        "[[nic]]\nname = 'a'\n[[nic]]\nname = 'b'\n[[switch]]\nname = 's'\n\
         [[link]]\nends = ['a', 's']\n[[link]]\nends = ['b', 's']\n{faults}\
         [[write]]\nfrom = 'a'\nto = 'b'\nbytes = {bytes}\nmessages = {messages}\n"
    );
    parse(&text, "faults.toml", &Overrides::default()).expect("a good scenario")
}

/// What faults did, in order.
fn deeds(ran: &Ran) -> Vec<(Instant, &str)> {
    let faults = ran.trace.entries.iter().filter_map(|(at, _, event)| match event {
        Event::Fault { what } => Some((*at, what.as_str())),
        _ => None,
    });
    faults.collect()
}

/// Runs eight messages under `fault`, which is over after 200 us; all arrive.
/// Deeds of this name have to be among what happens.
fn heals(fault: &str, deed: &str) -> Ran {
    let scenario = lab(100_000, 8, &format!("{fault}\nbefore = '200 us'"));
    let ran = run(&scenario);
    assert!(ran.is_complete(), "{fault}");
    let done = deeds(&ran);
    assert!(done.iter().any(|(_, what)| what.starts_with(deed)), "{fault}: {done:?}");
    assert!(done.iter().all(|(at, _)| *at < us(200)), "{fault}");
    assert_eq!(ran.trace.entries, run(&scenario).trace.entries, "{fault}: one seed, one run");
    ran
}

// spec: SW-20, SW-21, REL-11
#[test]
fn messages_arrive_after_every_fault() {
    for (fault, deed) in [
        ("drop = true\nprobability = 0.1", "dropped"),
        ("duplicate = true\nprobability = 0.3", "duplicated"),
        ("hold = '3 us'\nprobability = 0.2", "held"),
        ("reorder = 4\nprobability = 0.1", "reordered"),
        ("trim = 'last-hop'\nprobability = 0.1", "trimmed"),
        ("rate = '10 Gbps'", "delayed"),
        ("rate = '25 Gbps'\nqueue_limit = '30 KB'", "dropped at a full queue"),
        ("delay = '20 us'", "delayed"),
        ("delay = '1 us'\njitter = '20 us'", "delayed"),
    ] {
        heals(fault, deed);
    }
}

// spec: SW-20, REL-11
#[test]
fn flipped_bits_of_packets_with_an_icrc_do_no_harm() {
    let fault = "corrupt_bit = 'random'\nprobability = 0.05\nbefore = '200 us'";
    let scenario = lab(100_000, 8, fault).with_attributes(|attributes| attributes.icrc = true);
    let ran = run(&scenario);
    assert!(ran.is_complete());
    assert!(deeds(&ran).iter().any(|(_, what)| what.starts_with("bit ")));
    assert!(ran.drops.iter().any(|drops| drops.total() > 0));
}

// spec: SW-20
#[test]
fn jitter_reorders_nothing() {
    let ran = heals("jitter = '20 us'", "delayed");
    assert_eq!((ran.counters[0].rtx, ran.counters[1].out_of_order_events), (0, 0));
    assert!(heals("reorder = 4\nprobability = 0.1", "").counters[1].out_of_order_events > 0);
}

// spec: SW-20
#[test]
fn a_black_hole_and_a_link_that_is_down_take_all_and_give_back_none() {
    for (fault, deed) in [("drop = true", "dropped"), ("down = true", "lost")] {
        let ran = heals(fault, deed);
        let done = deeds(&ran);
        assert!(done.iter().all(|(_, what)| what.starts_with(deed)), "{fault}");
        // Nothing has come through before it is over.
        assert!(ran.event_at(B, QpEventKind::RecvComplete) > us(200), "{fault}");
    }
}

// spec: SW-20
#[test]
fn a_link_that_flaps_is_survived() {
    let fault = "down = true\nafter = '2 us'\nbefore = '4 us'\nevery = '5 us'";
    let ran = run(&lab(400_000, 8, fault));
    assert!(ran.is_complete());
    let done = deeds(&ran);
    assert!(!done.is_empty());
    assert!(done.iter().all(|(at, _)| (2_000_000..4_000_000).contains(&(at.as_ps() % 5_000_000))));
    assert!(done.iter().any(|(at, _)| *at > us(5)));
}

/// When one message of one packet is complete at a.
fn complete_at(fault: &str) -> Instant {
    let ran = run(&lab(4_096, 1, fault));
    assert!(ran.is_complete());
    ran.event_at(A, QpEventKind::WqeComplete)
}

// spec: SW-20
#[test]
fn slow_links_take_the_time_that_they_take() {
    let clean = complete_at("drop = true\nafter = '1 s'\nbefore = '2 s'");
    // On two links there, on one back.
    assert_eq!(complete_at("delay = '7 us'"), clean + Duration::from_us(3 * 7));
    // Once more at 40 Gbps what the port has done at 400 Gbps.
    assert_eq!(
        complete_at("rate = '40 Gbps'\nkind = 'WRITE'"),
        clean + Duration::from_ps(2 * 10 * FULL)
    );
}

// spec: SW-20
#[test]
fn the_summary_counts_every_deed_by_its_rule() {
    let scenario = lab(100_000, 8, "rate = '10 Gbps'\nlimit = 3");
    let topology = mrc_lab::scenario::Topology::new(&scenario);
    let mut counts = NetworkCounts::default();
    let trace: &mut dyn TraceSink = &mut counts;
    let mut world = SimWorld::new(&topology, 1, InMemory, trace);
    run_workload(&mut world, &scenario, us(1_000_000), |_, _| true).expect("memory carries all");
    drop(world);
    let deed = "delayed by rule 1 (at most 3 times, rate of 10 Gbps with a queue of 250 KB)";
    assert_eq!(counts.faults.into_iter().collect::<Vec<_>>(), [(deed.to_owned(), 9)]);
}
