//! Two NICs back to back over a real veth pair, each in an event loop in a
//! thread of its own.

mod veth;

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, JoinHandle};
use std::time::Duration as StdDuration;

use mio::Waker;
use mrc_lab::config::{NicAttributes, Profile};
use mrc_lab::io::clock::monotonic_ns;
use mrc_lab::io::waiter::WAKER;
use mrc_lab::io::{EventLoop, IoReport, PacketSocket, PacketSocketOptions, PortIo, WallClock};
use mrc_lab::nic::{Access, MemoryRegion, Nic, NicConfig, NicCounters, QpChoice, WorkRequest};
use mrc_lab::node::link::Link;
use mrc_lab::node::{Ctx, Frame, Node, PortId, Transmit};
use mrc_lab::record::Fidelity;
use mrc_lab::rng::Rng;
use mrc_lab::time::{Duration, Instant};
use mrc_lab::trace::{NoTrace, NodeId, QpEventKind};
use mrc_lab::wire::mac::{MacAddr, MacPair};
use veth::{ip, with_veth};

/// MTU of the pair: a full packet fits.
const MTU: u32 = 4_200;

const MS: u64 = 1_000_000;
const MIB: usize = 1 << 20;
/// One full packet at 400 Gbit/s.
const PACKET_TIME: Duration = Duration::from_ps(83_480);
/// When a run that hangs gives up, in ns.
const GIVE_UP: u64 = 60_000 * MS;

/// The NIC at an end of the pair: `left` is node 0, `right` node 1.
fn event_loop(node: u8, attributes: &NicAttributes, clock: WallClock) -> EventLoop<Nic> {
    let interface = ["left", "right"][usize::from(node)];
    let mac = |node| MacAddr([0x02, 0x4d, 0, 0, 0, node]);
    let config = NicConfig {
        ip: address(node),
        macs: MacPair { source: mac(node), destination: mac(1 - node) },
        link_rate: attributes.data_rate,
        attributes: attributes.clone(),
    };
    let rng = |label| Rng::derive(1, label, u64::from(node));
    let socket = PacketSocket::open(interface, &PacketSocketOptions::default()).expect("opens");
    let link = Link::new(attributes.delay, Vec::new(), attributes.frame_format(), rng("link"));
    let (nic, ports) = (Nic::new(config, &mut rng("nic")), vec![PortIo { socket, link }]);
    let (id, trace) = (NodeId(u32::from(node)), Box::new(NoTrace));
    EventLoop::new(nic, id, ports, clock, rng("node"), trace).expect("enough descriptors")
}

fn address(node: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, node + 1)
}

/// Nanoseconds that this thread has run on a core.
fn cpu_ns() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("procfs");
    stat.split(' ').next().expect("a field").parse().expect("a number")
}

/// Bytes that differ from place to place.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect()
}

/// Sends until frames pass: for a moment after an end came up the kernel drops
/// what is sent from the other.
fn await_link() {
    let open = |end| PacketSocket::open(end, &PacketSocketOptions::default()).expect("opens");
    let (mut left, mut right) = (open("left"), open("right"));
    while !(left.has_frames() && right.has_frames()) {
        // Errors are those of an end that is not up yet.
        let _ = (left.send(&[0; 60]), right.send(&[0; 60]));
        thread::sleep(StdDuration::from_millis(10));
    }
}

/// The receiving NIC in its thread.
struct Peer {
    region: MemoryRegion,
    waker: Arc<Waker>,
    stop: Arc<AtomicBool>,
    /// While it is set, nothing is taken from the socket.
    pause: Arc<AtomicBool>,
    thread: JoinHandle<(IoReport, Vec<u8>)>,
}

impl Peer {
    fn start(attributes: &NicAttributes, clock: WallClock, bytes: usize) -> Self {
        let (stop, pause): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let (sender, receiver) = channel();
        let (attributes, stopped, paused) = (attributes.clone(), stop.clone(), pause.clone());
        let thread = thread::spawn(move || {
            let mut peer = event_loop(1, &attributes, clock);
            // Not zeros: pages that nobody wrote to come while frames arrive.
            let memory = vec![0xff; bytes];
            let region =
                peer.call(|nic, ctx| nic.register_memory(ctx, memory, Access::RemoteWrite));
            sender.send((region, peer.waker())).expect("somebody waits");
            while !stopped.load(Ordering::Acquire) {
                peer.turn().expect("waits");
                while paused.load(Ordering::Acquire) {
                    thread::sleep(StdDuration::from_millis(1));
                }
            }
            let bytes = peer.call(|nic, _| nic.deregister_memory(region.rkey));
            (peer.report().expect("known"), bytes.expect("registered"))
        });
        let (region, waker) = receiver.recv().expect("it starts");
        Self { region, waker, stop, pause, thread }
    }

    /// What its sockets counted and what arrived in its memory.
    fn finish(self) -> (IoReport, Vec<u8>) {
        self.stop.store(true, Ordering::Release);
        self.waker.wake().expect("wakes");
        self.thread.join().expect("no panic")
    }
}

/// How a run went.
struct Outcome {
    sender: IoReport,
    receiver: IoReport,
    counters: NicCounters,
    /// From the doorbell to the completion, and how long of that the sender ran.
    ns: u64,
    cpu_ns: u64,
}

/// Sends one message of `bytes` from `left` to `right` and checks what arrived.
fn run(
    attributes: &NicAttributes,
    tdf: u32,
    bytes: usize,
    meanwhile: impl FnOnce(&Peer),
) -> Outcome {
    let clock = WallClock::new(monotonic_ns(), tdf).expect("not zero");
    let peer = Peer::start(attributes, clock, bytes);
    let (attributes, region) = (attributes.clone(), peer.region);
    let sender = thread::spawn(move || {
        let mut nic = event_loop(0, &attributes, clock);
        let message = pattern(bytes);
        let (began, cpu) = (monotonic_ns(), cpu_ns());
        post(&mut nic, region, message);
        await_completion(&mut nic);
        let (ns, cpu_ns) = (monotonic_ns() - began, cpu_ns() - cpu);
        (nic.report().expect("known"), nic.node().counters().clone(), ns, cpu_ns)
    });
    meanwhile(&peer);
    let (sender, counters, ns, cpu_ns) = sender.join().expect("no panic");
    let (receiver, arrived) = peer.finish();
    assert!(arrived == pattern(bytes), "the bytes differ");
    Outcome { sender, receiver, counters, ns, cpu_ns }
}

/// Posts `bytes` to be written to the peer's region.
fn post(nic: &mut EventLoop<Nic>, to: MemoryRegion, bytes: Vec<u8>) {
    nic.call(|nic, ctx| {
        let length = bytes.len() as u32;
        let from = nic.register_memory(ctx, bytes, Access::Local);
        let work = WorkRequest {
            wqe_id: 1,
            peer: address(1),
            lkey: from.rkey,
            local_va: from.va,
            length,
            remote_va: to.va,
            rkey: to.rkey,
        };
        nic.post_write(ctx, QpChoice::New, work).expect("taken");
    });
}

/// Turns until the message is complete.
fn await_completion(nic: &mut EventLoop<Nic>) {
    let give_up = monotonic_ns() + GIVE_UP;
    loop {
        nic.turn().expect("waits");
        while let Some(event) = nic.call(|nic, _| nic.poll_event()) {
            if event.kind == QpEventKind::WqeComplete {
                return;
            }
        }
        assert!(monotonic_ns() < give_up, "the message does not complete");
    }
}

// spec: TIME-2, TIME-5, TIME-6
#[test]
fn a_message_crosses_in_dilated_time() {
    with_veth("a_message_crosses_in_dilated_time", MTU, || {
        await_link();
        let outcome = run(&Profile::Reference.nic(), 1_000, MIB, |_| {});
        let Outcome { sender, receiver, counters, ns, .. } = outcome;
        // 256 packets of 83.48 us each.
        assert!(ns > 21 * MS, "faster than the link: {ns} ns");
        assert!(receiver.ports[0].received >= 256, "{counters:?}");
        assert_eq!(sender.ports[0].sent, sender.lateness.count());
        for (who, report) in [("sender", sender), ("receiver", receiver)] {
            let late = &report.lateness;
            let drops = report.ports[0].kernel_drops;
            let quantiles = [late.p50(), late.p99(), late.max()];
            let fidelity = Fidelity::judge(quantiles, Some(PACKET_TIME), drops, 1_000);
            println!("{who}: {fidelity}");
            assert_eq!((report.ports[0].host_errors.total(), drops), (0, 0));
        }
    });
}

#[test]
fn a_message_crosses_in_native_time() {
    with_veth("a_message_crosses_in_native_time", MTU, || {
        await_link();
        let outcome = run(&Profile::Native.nic(), 1, 4 * MIB, |_| {});
        assert_eq!(outcome.counters.wqes_completed, 1);
        assert_eq!(outcome.sender.ports[0].host_errors.total(), 0);
    });
}

// spec: REL-7
#[test]
fn an_interface_that_goes_down_costs_frames_but_not_the_message() {
    with_veth("an_interface_that_goes_down_costs_frames_but_not_the_message", MTU, || {
        await_link();
        let outcome = run(&Profile::Reference.nic(), 1_000, 8 * MIB, |_| {
            thread::sleep(StdDuration::from_millis(50));
            ip("link set left down");
            thread::sleep(StdDuration::from_millis(300));
            ip("link set left up");
        });
        let errors: Vec<_> = outcome.sender.ports[0].host_errors.iter().collect();
        assert!(matches!(errors[..], [("ENETDOWN", 1..)]), "{errors:?}");
        assert!(outcome.counters.rtx_timeout > 0, "{:?}", outcome.counters);
    });
}

/// Case D03: timers of a sender whose peer is stopped make no busy loop.
// spec: REL-8
#[test]
fn a_peer_that_stops_reading_makes_nobody_spin() {
    with_veth("a_peer_that_stops_reading_makes_nobody_spin", MTU, || {
        await_link();
        for (profile, tdf) in [(Profile::Reference, 1_000), (Profile::Native, 1)] {
            let outcome = run(&profile.nic(), tdf, 8 * MIB, |peer| {
                peer.pause.store(true, Ordering::Release);
                thread::sleep(StdDuration::from_millis(1_000));
                peer.pause.store(false, Ordering::Release);
            });
            let Outcome { counters, ns, cpu_ns, .. } = outcome;
            println!("{}: {cpu_ns} ns of {ns}, {} timeouts", profile.name(), counters.rto);
            assert!(ns > 900 * MS && cpu_ns < 400 * MS, "{cpu_ns} ns of {ns}");
        }
    });
}

/// Behind a slow queueing discipline the send buffer fills: the NIC waits.
// spec: REL-7
#[test]
fn a_full_send_buffer_is_waited_for_in_native_time() {
    with_veth("a_full_send_buffer_is_waited_for_in_native_time", MTU, || {
        await_link();
        let limit = "qdisc add dev left root tbf rate 50mbit burst 20kb limit 50mb";
        let shaped = Command::new("tc").args(limit.split(' ')).status();
        if !shaped.is_ok_and(|status| status.success()) {
            return println!("skipped: this host has no `tc` or no token bucket filter");
        }
        // No timer expires: what is sent again was lost.
        let initial_ack_timeout = Duration::from_secs(2);
        let attributes = NicAttributes { initial_ack_timeout, ..Profile::Native.nic() };
        let outcome = run(&attributes, 1, 4 * MIB, |_| {});
        let Outcome { sender, receiver, counters, ns, cpu_ns, .. } = outcome;
        let port = &sender.ports[0];
        let errors: Vec<_> = port.host_errors.iter().collect();
        println!("{errors:?}, {cpu_ns} ns of {ns}, {counters:?}");
        assert!(matches!(errors[..], [("EAGAIN", 1..)]), "{errors:?}");
        assert_eq!((port.sent, counters.rtx), (counters.pkts_sent, 0), "every frame has left");
        assert_eq!(port.sent, receiver.ports[0].received, "every frame has arrived");
        // A frame leaves every 670 us; each wait may yield some 100 us.
        assert!(ns > 640 * MS && cpu_ns < ns / 2, "{cpu_ns} ns of {ns}");
    });
}

/// A node that has frames to send for as long as it is asked, up to a number.
struct Greedy {
    left: usize,
}

impl Node for Greedy {
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, _: PortId, frame: Frame) {
        ctx.frames.give(frame);
    }

    fn handle_timeout(&mut self, _: &mut Ctx<'_>) {}

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        let mut frame = ctx.frames.take();
        frame.resize(60, 0);
        Some(Transmit { port: PortId(0), frame })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

// case D11: who has much to send receives all the same, after 32 frames at most.
// spec: TIME-7
#[test]
fn a_sender_without_end_receives_after_every_32_frames() {
    const TO_SEND: usize = 2_000;
    const WAITING: usize = 500;
    with_veth("a_sender_without_end_receives_after_every_32_frames", MTU, || {
        await_link();
        for paced in [false, true] {
            let open = |end| PacketSocket::open(end, &PacketSocketOptions::default());
            let (socket, mut peer) = (open("left").expect("opens"), open("right").expect("opens"));
            let (format, rng) = (Profile::Native.nic().frame_format(), || Rng::derive(1, "x", 0));
            let link = Link::new(Duration::ZERO, Vec::new(), format, rng());
            let clock = WallClock::new(monotonic_ns(), 1).expect("not zero");
            let ports = vec![PortIo { socket, link }];
            let (node, trace) = (Greedy { left: 0 }, Box::new(NoTrace));
            let mut node =
                EventLoop::new(node, NodeId(0), ports, clock, rng(), trace).expect("made");
            node.set_paced(paced);
            (0..WAITING).for_each(|_| peer.send(&[0; 60]).expect("sent"));
            node.call(|greedy, _| greedy.left = TO_SEND);
            let mut before = (0, 0);
            while before.0 < TO_SEND as u64 {
                node.turn().expect("waits");
                let port = node.report().expect("known").ports.remove(0);
                let (sent, received) = (port.sent - before.0, port.received - before.1);
                assert!(sent <= 32, "{sent} frames without a look at what came");
                assert_eq!(received, 32.min(WAITING as u64 - before.1), "after {before:?}");
                before = (port.sent, port.received);
            }
            assert_eq!(before, (TO_SEND as u64, WAITING as u64));
        }
    });
}

#[test]
fn an_idle_loop_sleeps_until_it_is_woken() {
    with_veth("an_idle_loop_sleeps_until_it_is_woken", MTU, || {
        await_link();
        let clock = WallClock::new(monotonic_ns(), 1_000).expect("not zero");
        let mut idle = event_loop(0, &Profile::Reference.nic(), clock);
        let waker = idle.waker();
        let other = thread::spawn(move || {
            thread::sleep(StdDuration::from_millis(1_000));
            waker.wake().expect("wakes");
        });
        let cpu = cpu_ns();
        while idle.events().next() != Some(WAKER) {
            idle.turn().expect("waits");
        }
        let used = cpu_ns() - cpu;
        assert!(used < 50 * MS, "{used} ns of CPU in a second");
        other.join().expect("no panic");
    });
}

/// Prints the goodput of one message, NIC to NIC.
#[test]
#[ignore = "a measurement"]
fn native_goodput() {
    with_veth("native_goodput", MTU, || {
        await_link();
        for _ in 0..5 {
            let outcome = run(&Profile::Native.nic(), 1, 64 * MIB, |_| {});
            let gbps = (64 * MIB * 8) as f64 / outcome.ns as f64;
            let Outcome { receiver, counters, cpu_ns, ns, .. } = outcome;
            println!(
                "{gbps:.2} Gbit/s, sender busy {} %, {} of {} packets again, {} dropped",
                cpu_ns * 100 / ns,
                counters.rtx,
                counters.write_pkts_sent,
                receiver.ports[0].kernel_drops
            );
        }
    });
}
