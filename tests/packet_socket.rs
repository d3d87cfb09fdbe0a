//! Packet sockets on a real veth pair.

mod veth;

use std::io;
use std::thread;
use std::time::Duration;

use mrc_lab::io::clock::monotonic_ns;
use mrc_lab::io::{HostErrors, PacketSocket, PacketSocketOptions, Waiter, Woken};
use veth::{ip, with_veth};

/// The EtherType for local experiments: tells our frames from the kernel's.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// Runs `test`, the body of the test called `name`, with a pair that takes jumbo
/// frames and carries frames both ways already.
fn with_pair(name: &str, test: impl FnOnce()) {
    with_veth(name, 9_004, || {
        await_link(&mut open("left", 64), &mut open("right", 64));
        await_link(&mut open("right", 64), &mut open("left", 64));
        test();
    });
}

/// A frame of `len` bytes to a host that is not there, told apart by `number`.
fn frame(len: usize, number: u32) -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0xfe, 0xed, 0x02, 0, 0, 0, 0, 0x01];
    frame.extend(ETHERTYPE);
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..len).map(|at| (at as u32 * 31).wrapping_add(number) as u8));
    frame
}

/// Opens an end of the pair with a ring of `frames` jumbo frames.
fn open(interface: &str, frames: usize) -> PacketSocket {
    let options = PacketSocketOptions { frame_capacity: 9_018, ring_frames: frames, ..DEFAULT };
    PacketSocket::open(interface, &options).expect("opens")
}

const DEFAULT: PacketSocketOptions = PacketSocketOptions {
    frame_capacity: 4_224,
    ring_frames: 1_024,
    qdisc_bypass: false,
    promiscuous: false,
};

/// Sends until something arrives: for a moment after an end came up the kernel
/// drops what is sent from the other.
fn await_link(from: &mut PacketSocket, to: &mut PacketSocket) {
    for _ in 0..500 {
        // Errors are those of an end that is not up yet.
        let _ = from.send(&frame(60, u32::MAX));
        thread::sleep(Duration::from_millis(10));
        if !received_now(to).is_empty() {
            return;
        }
    }
    panic!("no frame passes from {} to {}", from.interface(), to.interface());
}

/// Every frame of ours that `socket` holds.
fn received_now(socket: &mut PacketSocket) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(frame) = socket.receive() {
        if frame[12..14] == ETHERTYPE {
            all.push(frame.to_vec());
        }
    }
    all
}

/// The next frames of ours: `count` of them, unless they fail to come.
fn received(socket: &mut PacketSocket, count: usize) -> Vec<Vec<u8>> {
    let give_up = monotonic_ns() + 5_000_000_000;
    let mut all = Vec::new();
    while all.len() < count && monotonic_ns() < give_up {
        all.extend(received_now(socket));
    }
    all
}

/// The kernel's drops once they stopped growing.
fn settled_drops(socket: &mut PacketSocket) -> u64 {
    let mut drops = 0;
    loop {
        thread::sleep(Duration::from_millis(50));
        let now = socket.kernel_drops().expect("known");
        if now == drops {
            return drops;
        }
        drops = now;
    }
}

#[test]
fn frames_arrive_equal_and_in_order_whoever_they_are_for() {
    with_pair("frames_arrive_equal_and_in_order_whoever_they_are_for", || {
        let (mut left, mut right) = (open("left", 64), open("right", 64));
        let lens = [60, 94, 4_170, 9_000, 9_018];
        let sent: Vec<_> = lens.iter().zip(0..).map(|(len, number)| frame(*len, number)).collect();
        for frame in &sent {
            left.send(&frame[..]).expect("sent");
        }
        assert_eq!(received(&mut right, sent.len()), sent);
        assert!(!right.has_frames());
        assert_eq!(right.odd_frames(), Default::default());
        assert_eq!(left.interface(), "left");
    });
}

#[test]
fn frames_sent_here_are_not_seen() {
    with_pair("frames_sent_here_are_not_seen", || {
        let (mut left, mut right) = (open("left", 64), open("right", 64));
        // The kernel never shows a socket its own frames, but another's.
        let mut neighbour = open("left", 64);
        left.send(&frame(60, 1)).expect("sent");
        neighbour.send(&frame(60, 2)).expect("sent");
        assert_eq!(received(&mut right, 2).len(), 2);
        thread::sleep(Duration::from_millis(50));
        assert_eq!(received_now(&mut left), Vec::<Vec<u8>>::new());
        assert_eq!(received_now(&mut neighbour), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn batches_arrive_whole_and_in_order() {
    with_pair("batches_arrive_whole_and_in_order", || {
        let mut left = PacketSocket::open("left", &PacketSocketOptions::default()).expect("opens");
        let mut right = PacketSocket::open("right", &DEFAULT).expect("opens");
        let batch: Vec<_> = (0..1_000).map(|number| frame(4_170, number)).collect();
        let result = left.send_batch(&batch);
        assert!(result.error.is_none() && result.sent == 1_000, "{result:?}");
        assert!(received(&mut right, 1_000) == batch, "all 1,000 in order");
        assert_eq!(right.kernel_drops().expect("known"), 0);
    });
}

#[test]
fn a_small_ring_goes_round_and_round() {
    with_pair("a_small_ring_goes_round_and_round", || {
        let (mut left, mut right) = (open("left", 64), open("right", 2));
        for round in 0..500_u32 {
            let batch: Vec<_> = (0..20).map(|n| frame(100, round * 20 + n)).collect();
            assert_eq!(left.send_batch(&batch).sent, 20);
            assert!(received(&mut right, 20) == batch, "round {round}");
        }
        assert_eq!(right.kernel_drops().expect("known"), 0);
    });
}

// spec: REL-8, TIME-6
#[test]
fn a_full_ring_shows_in_the_kernels_drops() {
    with_pair("a_full_ring_shows_in_the_kernels_drops", || {
        let (mut left, mut right) = (open("left", 64), open("right", 64));
        let batch: Vec<_> = (0..1_000).map(|number| frame(94, number)).collect();
        assert_eq!(left.send_batch(&batch).sent, 1_000);
        let drops = settled_drops(&mut right);
        let kept = received_now(&mut right);
        assert!(kept.len() >= 64 && drops > 0);
        assert_eq!(kept.len() as u64 + drops, 1_000);
        assert!(kept == batch[..kept.len()], "the first are kept");

        assert_eq!(left.send_batch(&batch).sent, 1_000);
        assert_eq!(settled_drops(&mut right), 2 * drops, "drops add up");
    });
}

#[test]
fn frames_that_do_not_fit_or_lost_a_tag_are_counted_not_handed_over() {
    with_pair("frames_that_do_not_fit_or_lost_a_tag_are_counted_not_handed_over", || {
        let mut left = open("left", 64);
        let mut right = PacketSocket::open("right", &DEFAULT).expect("opens");
        let mut tagged = frame(100, 3);
        tagged.splice(12..12, [0x81, 0x00, 0x00, 0x07]);
        let fitting = frame(4_224, 2);
        for frame in [&frame(9_018, 0), &tagged, &fitting] {
            left.send(frame).expect("sent");
        }
        assert_eq!(received(&mut right, 1), [fitting]);
        assert_eq!((right.odd_frames().truncated, right.odd_frames().vlan_tagged), (1, 1));
    });
}

// spec: REL-7
#[test]
fn errors_of_the_host_are_answers_and_pass() {
    with_pair("errors_of_the_host_are_answers_and_pass", || {
        let (mut left, mut right) = (open("left", 64), open("right", 64));
        let mut errors = HostErrors::default();
        let batch = [frame(60, 0), frame(9_019, 1), frame(60, 2)];
        let result = left.send_batch(&batch);
        assert_eq!(result.sent, 1);
        errors.record(&result.error.expect("longer than the MTU allows"));

        ip("link set left down");
        errors.record(&left.send(&frame(60, 3)).expect_err("down"));
        errors.record(&left.send_batch(&[frame(60, 4)]).error.expect("down"));
        assert_eq!(errors.iter().collect::<Vec<_>>(), [("EMSGSIZE", 1), ("ENETDOWN", 2)]);

        ip("link set left up");
        // The kernel keeps the news of the outage for the next send.
        errors.record(&left.send(&frame(60, 4)).expect_err("told once more"));
        left.send(&frame(60, 5)).expect("up again");
        assert_eq!(received(&mut right, 2), [frame(60, 0), frame(60, 5)]);
        await_link(&mut right, &mut left);
    });
}

#[test]
fn what_cannot_be_opened_says_why() {
    with_pair("what_cannot_be_opened_says_why", || {
        let error = PacketSocket::open("nowhere", &DEFAULT).expect_err("no such interface");
        assert!(error.to_string().starts_with("nowhere: finding the interface"), "{error}");
        let options = PacketSocketOptions { frame_capacity: 0, ..DEFAULT };
        let error = PacketSocket::open("left", &options).expect_err("no capacity");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    });
}

#[test]
fn a_sleeping_waiter_wakes_for_a_frame() {
    with_pair("a_sleeping_waiter_wakes_for_a_frame", || {
        let (mut left, mut right) = (open("left", 64), open("right", 64));
        let mut waiter = Waiter::new().expect("made");
        waiter.watch_frames(&right);
        let sender = thread::spawn(move || {
            for number in 0..10 {
                thread::sleep(Duration::from_millis(5));
                left.send(&frame(60, number)).expect("sent");
            }
        });
        let give_up = monotonic_ns() + 10_000_000_000;
        let mut seen = Vec::new();
        while seen.len() < 10 {
            let woken = waiter.wait(Some(give_up), || right.has_frames()).expect("waits");
            assert_eq!(woken, Woken::Ready);
            seen.extend(received_now(&mut right));
        }
        assert_eq!(seen, (0..10).map(|number| frame(60, number)).collect::<Vec<_>>());
        sender.join().expect("no panic");
    });
}

#[test]
fn an_interface_that_goes_down_ends_one_wait() {
    with_pair("an_interface_that_goes_down_ends_one_wait", || {
        let right = open("right", 64);
        let mut waiter = Waiter::new().expect("made");
        waiter.watch_frames(&right);
        ip("link set right down");
        let mut wait = |ns| waiter.wait(Some(monotonic_ns() + ns), || false).expect("waits");
        // A busy machine takes its time before it lets the waiter sleep.
        assert_eq!([wait(20_000_000_000), wait(200_000_000)], [Woken::Ready, Woken::Deadline]);
    });
}

/// Prints frames a second over one hop, with and without the qdisc.
#[test]
#[ignore = "a measurement"]
fn throughput_of_one_hop() {
    with_pair("throughput_of_one_hop", || {
        for (len, qdisc_bypass) in [(4_170, false), (4_170, true), (90, false), (90, true)] {
            let options = PacketSocketOptions { qdisc_bypass, ..DEFAULT };
            let mut left = PacketSocket::open("left", &options).expect("opens");
            let mut right = PacketSocket::open("right", &options).expect("opens");
            let end = monotonic_ns() + 1_000_000_000;
            let sender = thread::spawn(move || {
                let batch: Vec<_> = (0..64).map(|number| frame(len, number)).collect();
                while monotonic_ns() < end {
                    left.send_batch(&batch);
                }
            });
            let (mut frames, mut bytes) = (0_u64, 0_u64);
            let mut waiter = Waiter::new().expect("made");
            waiter.watch_frames(&right);
            while waiter.wait(Some(end), || right.has_frames()).expect("waits") != Woken::Deadline {
                while let Some(frame) = right.receive() {
                    frames += 1;
                    bytes += frame.iter().step_by(64).map(|byte| u64::from(*byte)).sum::<u64>();
                }
            }
            sender.join().expect("no panic");
            let drops = right.kernel_drops().expect("known");
            println!("{len} bytes, bypass {qdisc_bypass}: {frames}/s, {drops} dropped ({bytes})");
        }
    });
}
