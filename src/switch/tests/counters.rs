//! What is counted, and that counters only grow.

use super::*;

/// Every number that `port` has counted, under its way through the record.
fn numbers(bench: &Bench, port: PortId) -> Vec<(String, u64)> {
    fn walk(path: String, value: &serde_json::Value, out: &mut Vec<(String, u64)>) {
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| walk(format!("{path}.{name}"), value, out));
            }
            serde_json::Value::Array(entries) => {
                let entries = entries.iter().enumerate();
                entries.for_each(|(index, value)| walk(format!("{path}.{index}"), value, out));
            }
            number => out.push((path, number.as_u64().unwrap())),
        }
    }
    let mut out = Vec::new();
    let pools: Vec<_> = bench.switch.pool_counters(port).collect();
    walk("port".into(), &serde_json::to_value(bench.switch.counters(port)).unwrap(), &mut out);
    walk("pool".into(), &serde_json::to_value(pools).unwrap(), &mut out);
    out
}

/// None of the numbers is smaller than it was, or gone.
fn assert_grown(before: &[(String, u64)], after: &[(String, u64)]) {
    for (name, was) in before {
        let is = after.iter().find(|(known, _)| known == name).map(|(_, is)| *is);
        assert!(is >= Some(*was), "{name}: {is:?} after {was}");
    }
}

// case E13: a queue is blocked until all is full, then freed: counters only grow,
// and at rest every trim has left or was dropped.
// spec: SW-19
#[test]
fn counters_only_grow_while_a_queue_is_blocked_and_freed() {
    let mut bench = Bench::new(config(3 * FULL_IP));
    let mut known = [UP, DOWN].map(|port| numbers(&bench, port));
    let mut look = |bench: &Bench| {
        for (port, known) in [UP, DOWN].into_iter().zip(&mut known) {
            let now = numbers(bench, port);
            assert_grown(known, &now);
            *known = now;
        }
    };
    // The peer pauses everything, so that nothing leaves.
    let mut frame = Frame::new();
    Pfc { quanta: [Some(u16::MAX); 8] }.emit(mac(2, DOWN.0), &mut frame);
    bench.arrive_at(DOWN, at(0), frame);
    for _ in 0..400 {
        bench.arrive(at(0), data(Role::Trimmable, HOST));
        bench.arrive(at(0), data(Role::NoTrim, HOST));
        bench.arrive(at(0), ack(HOST));
        look(&bench);
    }
    let counters = bench.switch.counters(DOWN);
    assert!(counters.trim > 0 && counters.trim_drop > 0);
    assert_eq!(counters.trim_sent, 0, "all is blocked");
    while let Some(due) = bench.switch.poll_timeout() {
        bench.run_until(due);
        look(&bench);
    }
    let counters = bench.switch.counters(DOWN);
    assert_eq!(counters.trim, counters.trim_sent + counters.trim_drop);
    assert!(counters.trim_sent > 0);
    assert_eq!(counters.frames_out + counters.drops.total(), 1_200);
    assert_eq!(counters.classes[0].pauses_rcvd, 1);
}

// spec: SW-19
#[test]
fn every_class_and_pool_has_its_drops_by_cause() {
    let mut bench = Bench::new(config(3 * FULL_IP));
    for _ in 0..300 {
        bench.offer(at(0), data(Role::Trimmable, HOST));
        bench.offer(at(0), data(Role::NoTrim, HOST));
        bench.offer(at(0), ack(HOST));
    }
    let counters = bench.switch.counters(DOWN);
    let of = |class: TrafficClass| counters.classes[class.index()].drops.iter().collect::<Vec<_>>();
    // 300 of each; data has room for three, control and what is trimmed for as
    // many bytes, of which one takes 46.
    let fit = 3 * FULL_IP / 46;
    let (acks, trims) = (300 - fit, 298 - fit);
    assert_eq!(of(TrafficClass::DATA), [("queue_full", 299)]);
    assert_eq!(of(TrafficClass::TRIMMED), [("trim_drop", trims)]);
    assert_eq!(of(TrafficClass::CONTROL), [("queue_full", acks)]);
    let by_pool = bench.switch.pool_counters(DOWN).map(|pool| pool.drops.iter().collect());
    let by_pool: Vec<Vec<_>> = by_pool.collect();
    let expected = [TrafficClass::DATA, TrafficClass::TRIMMED, TrafficClass::CONTROL].map(of);
    assert_eq!(by_pool, expected);
    assert_eq!(counters.drops.of("queue_full"), 299 + acks);
    assert_eq!(counters.drops.of("trim_drop"), trims);
    let shown = serde_json::to_value(counters).unwrap();
    assert_eq!(shown["classes"][0]["drops"], serde_json::json!({ "queue_full": 299 }));
}
