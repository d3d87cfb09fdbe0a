//! Pools and the limits of lossy queues.

use super::*;
use crate::config::Factor;

/// One pool of 40,000 bytes for all classes of four ports: ten datagrams of
/// 4,000 bytes.
fn one_pool(set: impl FnOnce(&mut SwitchAttributes)) -> Bench {
    plain(|attributes| {
        attributes.buffer.total_bytes = 40_000;
        attributes.buffer.pool_shares = vec![crate::units::Share::from_ppm(1_000_000)];
        attributes.buffer.class_pools = [0; 8];
        set(attributes);
    })
}

/// How many datagrams of 4,000 bytes are taken in at once towards each.
fn taken(bench: &mut Bench, destination: Ipv4Addr) -> u64 {
    let (_, port) = [(HOST, DOWN), (BEHIND_UP, UP)]
        .into_iter()
        .find(|(address, _)| *address == destination)
        .expect("a known destination");
    for _ in 0..20 {
        bench.arrive(at(0), datagram(4_000, 0, destination));
    }
    bench.switch.queued_bytes(port, TrafficClass::DATA) / 4_000
}

// spec: SW-9, SW-6
#[test]
fn a_lossy_queue_may_hold_as_much_as_its_pool_has_free() {
    let mut bench = one_pool(|_| {});
    assert_eq!(taken(&mut bench, HOST), 5, "20,000 of 40,000 bytes");
    assert_eq!(taken(&mut bench, BEHIND_UP), 3, "12,000, which leaves less than that");
    assert_eq!(bench.switch.drops().of("queue_full"), 32);
    bench.run();
    assert_eq!(taken(&mut bench, BEHIND_UP), 5, "what has left is free again");
}

// spec: SW-9
#[test]
fn alpha_scales_what_is_free_and_the_pool_bounds_it() {
    for (alpha, held) in [(500_000, 3), (1_000_000, 5), (2_000_000, 7), (1_000_000_000, 10)] {
        let mut bench = one_pool(|a| a.buffer.lossy_alpha = Factor::from_ppm(alpha));
        assert_eq!(taken(&mut bench, HOST), held, "{alpha} ppm");
    }
    let mut bench = one_pool(|a| a.buffer.lossy_alpha = Factor::from_ppm(1_000_000_000));
    taken(&mut bench, HOST);
    assert_eq!(bench.switch.drops().of("pool_full"), 10, "rolled back, each time");
    bench.run();
    assert_eq!(taken(&mut bench, HOST), 10);
}

// spec: SW-9
#[test]
fn without_alpha_the_limit_is_an_equal_part_or_a_multiple_of_plane_bdp() {
    let fixed = |enable, bdp| {
        let mut bench = one_pool(|a| {
            a.buffer.lossy_alpha = Factor::default();
            a.buffer.queue_drop_threshold_enable = enable;
            a.plane_bdp = bdp;
        });
        taken(&mut bench, HOST)
    };
    assert_eq!(fixed(false, 300_000), 2, "10,000 bytes for each of four ports");
    assert_eq!(fixed(true, 2_400), 3, "five times 2,400 bytes");
    assert_eq!(fixed(true, 2_399), 2);
}

// spec: SW-15, DSCP-8
#[test]
fn the_uet_policy_has_one_limit_with_trimming_and_five_times_it_without() {
    for (trimming, held) in [(true, 2), (false, 10)] {
        let mut config = config(0);
        config.ports.iter_mut().for_each(|port| port.queue_limit = None);
        config.attributes.trimming_enabled = trimming;
        config.attributes.plane_bdp = 8_000;
        let mut bench = Bench::new(config);
        assert_eq!(taken(&mut bench, HOST), held);
    }
}

// spec: SW-4, SW-5, DSCP-7
#[test]
fn classes_fill_the_pools_that_they_are_mapped_to() {
    let mut bench = plain(|a| a.buffer.class_pools = [0, 1, 1, 0, 0, 0, 0, 0]);
    for (dscp, count) in [(0, 1), (8, 2), (16, 3), (24, 4), (63, 5)] {
        (0..count).for_each(|_| bench.arrive(at(0), datagram(100, dscp, HOST)));
    }
    let held: Vec<_> =
        bench.switch.pool_counters(DOWN).map(|pool| pool.egress_high_water).collect();
    assert_eq!(held, [1_000, 500]);
    let came: Vec<_> = bench.switch.pool_counters(UP).map(|pool| pool.bytes_in).collect();
    assert_eq!(came, [1_000, 500]);
    bench.run();
    let classes = &bench.switch.counters(DOWN).classes;
    assert_eq!(classes.each_ref().map(|class| class.frames_out), [1, 2, 3, 4, 0, 0, 0, 5]);
}

// spec: SW-5, SW-6
#[test]
fn a_port_cannot_bring_in_more_than_its_pool_holds() {
    let mut bench = one_pool(|a| {
        a.buffer.lossless = [true; 8];
        a.buffer.headroom_per_port = 0;
        a.buffer.xoff = 1_000_000;
    });
    assert_eq!(taken(&mut bench, HOST), 10);
    assert_eq!(bench.switch.counters(UP).drops.of("pool_full"), 10, "counted where they came in");
    assert_eq!(bench.switch.counters(UP).classes[0].drops.of("pool_full"), 10);
}

// spec: SW-10
#[test]
fn higher_classes_leave_first() {
    let mut bench = plain(|_| {});
    bench.arrive(at(0), datagram(100, 0, HOST));
    for dscp in [8, 56, 0, 24, 48, 16, 40, 32] {
        bench.arrive(at(0), datagram(100, dscp, HOST));
    }
    bench.run();
    let order: Vec<_> = bench.sent.iter().map(|(.., frame)| frame[15] >> 2).collect();
    assert_eq!(order, [0, 56, 48, 40, 32, 24, 16, 8, 0]);
}

// spec: SW-1
#[test]
fn the_time_to_live_stays_or_is_counted_down() {
    for (decrement, ttl, left) in [(false, 1, Some(1)), (true, 64, Some(63)), (true, 1, None)] {
        let mut bench = plain(|a| a.decrement_ttl = decrement);
        let mut frame = datagram(100, 0, HOST);
        frame[22] = ttl;
        frame[24..26].fill(0);
        let checksum = checksum::ipv4(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        bench.arrive(at(0), frame);
        bench.run();
        let sent =
            bench.sent.first().map(|(.., frame)| FrameView::new(frame).unwrap().ipv4().ttl());
        assert_eq!(sent, left);
        assert_eq!(bench.switch.drops().of("ttl_expired"), u64::from(left.is_none()));
    }
}
