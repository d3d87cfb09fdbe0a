//! Serialization, classes and queue limits.

use super::*;

fn without_trimming(queue_limit: u64) -> Bench {
    let mut config = config(queue_limit);
    config.attributes.trimming_enabled = false;
    Bench::new(config)
}

// spec: SW-2, SW-3, TIME-7
#[test]
fn frames_leave_one_after_the_other_without_a_gap() {
    for (gbps, full, small) in [(400, 83_480, 1_240), (200, 166_960, 2_480)] {
        let mut config = config(300_000);
        config.ports[0].rate = Rate::gbps(gbps);
        let mut bench = Bench::new(config);
        bench.arrive(at(1_000), data(Role::Trimmable, HOST));
        bench.arrive(at(1_000), data(Role::Trimmable, HOST));
        bench.arrive(at(2_000), trimmed(HOST));
        bench.run();
        let expected = [1_000 + full, 1_000 + full + small, 1_000 + 2 * full + small];
        assert_eq!(bench.departures(), expected.map(|end| (end, DOWN)));
    }
}

// spec: TIME-7
#[test]
fn a_late_call_does_not_delay_what_follows() {
    let mut bench = Bench::new(config(300_000));
    bench.arrive(at(0), data(Role::Trimmable, HOST));
    bench.arrive(at(0), data(Role::Trimmable, HOST));
    bench.arrive(at(100_000), data(Role::Trimmable, HOST));
    assert_eq!(bench.sent.len(), 1);
    assert_eq!(bench.switch.poll_timeout(), Some(at(2 * 83_480)));
    bench.call(at(200_000), |switch, ctx| switch.handle_timeout(ctx));
    assert_eq!(bench.switch.poll_timeout(), Some(at(3 * 83_480)));
}

// spec: SW-3
#[test]
fn ports_send_at_the_same_time_and_the_lowest_comes_first() {
    let mut bench = Bench::new(config(300_000));
    bench.arrive(at(0), data(Role::Trimmable, BEHIND_UP));
    bench.arrive(at(0), data(Role::Trimmable, HOST));
    bench.run();
    assert_eq!(bench.departures(), [(83_480, DOWN), (83_480, UP)]);
}

// spec: DSCP-4
#[test]
fn control_leaves_before_trimmed_and_trimmed_before_data() {
    let mut bench = Bench::new(config(300_000));
    bench.arrive(at(0), data(Role::NoTrim, HOST));
    for frame in [data(Role::Trimmable, HOST), trimmed(HOST), ack(HOST)] {
        bench.arrive(at(0), frame);
    }
    bench.run();
    let order = [Role::NoTrim, Role::Control, Role::Trimmed, Role::Trimmable];
    assert_eq!(bench.roles(), order.map(Some), "what is being sent is not interrupted");
}

// spec: SW-6
#[test]
fn a_frame_that_fills_its_queue_fits_and_one_byte_more_does_not() {
    for (limit, fit) in [(2 * FULL_IP, 2), (2 * FULL_IP - 1, 1), (FULL_IP, 1), (FULL_IP - 1, 0)] {
        let mut bench = without_trimming(limit);
        for _ in 0..3 {
            bench.arrive(at(0), data(Role::Trimmable, HOST));
        }
        assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), fit * FULL_IP);
        bench.run();
        assert_eq!(bench.sent.len() as u64, fit);
        let counters = bench.switch.counters(DOWN);
        assert_eq!(counters.drops.of("queue_full"), 3 - fit);
        assert_eq!(counters.classes[0].drops.of("queue_full"), 3 - fit);
        let pools: Vec<_> = bench.switch.pool_counters(DOWN).collect();
        assert_eq!(
            pools.iter().map(|p| p.egress_high_water).collect::<Vec<_>>(),
            [fit * FULL_IP, 0, 0]
        );
    }
}

// spec: SW-6
#[test]
fn a_small_frame_counts_for_46_bytes() {
    let mut bench = without_trimming(2 * 46);
    for _ in 0..3 {
        bench.arrive(at(0), ping(HOST));
    }
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), 2 * 46);
    assert_eq!(bench.switch.drops().of("queue_full"), 1);
}

// spec: DSCP-4
#[test]
fn classes_do_not_take_each_others_room() {
    let mut bench = without_trimming(FULL_IP);
    for frame in [data(Role::Trimmable, HOST), ack(HOST), trimmed(HOST)] {
        bench.arrive(at(0), frame);
    }
    let held = [TrafficClass::DATA, TrafficClass::TRIMMED, TrafficClass::CONTROL]
        .map(|class| bench.switch.queued_bytes(DOWN, class));
    assert_eq!(held, [FULL_IP, 46, 46]);
    assert_eq!(bench.switch.drops().total(), 0);
}

// spec: DSCP-4
#[test]
fn a_trimmable_retransmission_may_use_half_as_much_again() {
    let mut bench = without_trimming(2 * FULL_IP);
    for _ in 0..2 {
        bench.arrive(at(0), data(Role::Trimmable, HOST));
    }
    bench.arrive(at(0), data(Role::NoTrim, HOST));
    assert_eq!(bench.switch.drops().of("queue_full"), 1);
    bench.arrive(at(0), data(Role::TrimmableRtx, HOST));
    assert_eq!(bench.switch.drops().of("queue_full"), 1);
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), 3 * FULL_IP);
    bench.arrive(at(0), data(Role::TrimmableRtx, HOST));
    assert_eq!(bench.switch.drops().of("queue_full"), 2);
}

// spec: SW-3
#[test]
fn a_charge_is_released_at_the_end_of_serialization() {
    let end = at(0) + FULL_TIME;
    for (now, drops) in [(end - Duration::from_ps(1), 1), (end, 0)] {
        let mut bench = without_trimming(FULL_IP);
        bench.arrive(at(0), data(Role::Trimmable, HOST));
        bench.arrive(now, data(Role::Trimmable, HOST));
        assert_eq!(bench.switch.drops().of("queue_full"), drops, "at {now:?}");
    }
}

// spec: SW-2
#[test]
fn without_pacing_frames_wait_only_until_they_are_taken() {
    let mut config = config(300_000);
    config.attributes.paced = false;
    let mut bench = Bench::new(config);
    bench.offer(at(5), data(Role::Trimmable, HOST));
    bench.offer(at(5), data(Role::Trimmable, BEHIND_UP));
    bench.offer(at(5), ack(HOST));
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), FULL_IP);
    assert_eq!(bench.switch.poll_timeout(), None);
    bench.take_sent(at(5));
    assert_eq!(bench.departures(), [(5, DOWN), (5, UP), (5, DOWN)], "ports take turns");
    assert_eq!(bench.roles()[0], Some(Role::Control));
    assert_eq!(bench.switch.queued_bytes(DOWN, TrafficClass::DATA), 0);
    assert_eq!(bench.switch.counters(DOWN).frames_out, 2);
}
