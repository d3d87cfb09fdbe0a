//! Where frames go, and what does not pass.

use super::*;

fn macs(frame: &Frame) -> MacPair {
    FrameView::new(frame).unwrap().macs()
}

// spec: SW-1
#[test]
fn frames_leave_by_their_route_with_the_macs_of_the_next_hop_and_no_other_change() {
    let cases = [
        (data(Role::Trimmable, HOST), DOWN, mac(2, 0)),
        (ack(BEHIND_UP), UP, mac(2, 1)),
        (foreign(Role::NoTrim, HOST), DOWN, mac(3, 0)),
        (ping(HOST), DOWN, mac(3, 0)),
        (ping(BEHIND_UP), UP, mac(3, 1)),
    ];
    for (frame, port, destination) in cases {
        let mut bench = Bench::new(config(300_000));
        bench.arrive(Instant::ZERO, frame.clone());
        bench.run();
        let (_, by, sent) = &bench.sent[0];
        assert_eq!(*by, port);
        assert_eq!(macs(sent), MacPair { source: mac(1, port.0), destination });
        assert_eq!(sent[12..], frame[12..]);
    }
}

// spec: SW-12
#[test]
fn an_equal_cost_set_is_used_by_flow() {
    let mut bench = Bench::new(config(300_000));
    for _ in 0..2 {
        for entropy in 0..64 {
            let mut packet = data_with(Role::Trimmable, BEHIND_BOTH, &[0; 64]);
            packet.entropy = entropy;
            bench.arrive(Instant::ZERO, frame_of(&packet, 4_791));
        }
    }
    bench.run();
    let paths: std::collections::BTreeSet<_> =
        bench.sent.iter().map(|(_, port, frame)| (parse(frame).entropy, *port)).collect();
    assert_eq!(paths.len(), 64, "each flow keeps to one path");
    let left = paths.iter().filter(|(_, port)| *port == LEFT).count();
    assert!((16..=48).contains(&left), "{left} of 64 flows on one of two paths");
    assert!(paths.iter().all(|(_, port)| [LEFT, RIGHT].contains(port)));
}

// spec: SW-1, SW-19
#[test]
fn what_has_no_route_or_is_not_ipv4_is_dropped_and_counted() {
    let mut arp = vec![0xFF; 60];
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let mut broken = ping(HOST);
    broken[24] ^= 1;
    let cases = [
        (ping(Ipv4Addr::new(192, 168, 0, 1)), "no_route"),
        (arp, "drop_ethertype"),
        (broken, "drop_ip_checksum"),
        (vec![1, 2, 3], "drop_short_ethernet"),
    ];
    let mut bench = Bench::new(config(300_000));
    for (frame, cause) in cases {
        bench.arrive(Instant::ZERO, frame);
        assert_eq!(bench.switch.counters(UP).drops.of(cause), 1, "{cause}");
        assert_eq!(bench.switch.drops().of(cause), 1, "{cause}");
        assert_eq!(bench.events().last(), Some(&Event::Drop { cause }));
    }
    bench.run();
    assert_eq!(bench.sent, []);
    assert_eq!(bench.switch.drops().total(), 4);
    assert_eq!(bench.switch.counters(UP).frames_in, 4);
}

// spec: SW-19
#[test]
fn counters_are_records() {
    let mut bench = Bench::new(config(300_000));
    bench.arrive(Instant::ZERO, data(Role::Trimmable, HOST));
    bench.arrive(Instant::ZERO, vec![1, 2, 3]);
    bench.run();
    let port = |port| serde_json::to_value(bench.switch.counters(port)).unwrap();
    assert_eq!(port(UP)["frames_in"], 2);
    assert_eq!(port(UP)["bytes_in"], 4_174 + 7);
    assert_eq!(port(UP)["drops"], serde_json::json!({ "drop_short_ethernet": 1 }));
    assert_eq!(port(DOWN)["frames_out"], 1);
    assert_eq!(port(DOWN)["bytes_out"], 4_174);
    assert_eq!(port(DOWN)["classes"][0]["bytes_out"], 4_174);
    let pool = serde_json::to_value(bench.switch.pool_counters(DOWN).next()).unwrap();
    assert_eq!(
        (&pool["egress_high_water"], &pool["bytes_out"]),
        (&FULL_IP.into(), &FULL_IP.into())
    );
}

#[test]
#[should_panic(expected = "every route leads to one of the 4 ports")]
fn a_route_to_a_port_that_is_not_there_is_refused() {
    let mut config = config(300_000);
    config.routes[0].ports.push(PortId(4));
    Switch::new(config);
}
