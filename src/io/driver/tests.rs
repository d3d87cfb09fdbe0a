//! Late drivers in exact terms.

use core::net::Ipv4Addr;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::*;
use crate::config::Profile;
use crate::nic::{Access, Nic, NicConfig, QpChoice, WorkRequest};
use crate::node::link::{FaultAction, FaultRule, PacketMatch};
use crate::node::{Serializer, Transmit};
use crate::time::Duration;
use crate::trace::NoTrace;
use crate::units::Rate;
use crate::wire::mac::MacPair;
use crate::wire::packet::{FrameFormat, wire_bytes};
use crate::wire::qpn::RKey;

const PORT: PortId = PortId(0);

/// What a driver did to a node, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Call {
    Frame(u8),
    Timeout,
    Link(bool),
}

/// A node with one port that sends what it is given, and whose alarms ring.
struct Plain {
    port: Serializer<Frame>,
    queue: VecDeque<Frame>,
    alarms: VecDeque<Instant>,
    calls: Vec<(Instant, Call)>,
}

impl Plain {
    fn new(rate: Option<Rate>) -> Self {
        let (queue, alarms) = (VecDeque::new(), VecDeque::new());
        Self { port: Serializer::new(rate), queue, alarms, calls: Vec::new() }
    }
}

impl Node for Plain {
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, _: PortId, frame: Frame) {
        self.calls.push((ctx.now, Call::Frame(frame[0])));
        ctx.frames.give(frame);
    }

    fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        while self.alarms.front().is_some_and(|at| *at <= ctx.now) {
            self.alarms.pop_front();
            self.calls.push((ctx.now, Call::Timeout));
        }
    }

    fn handle_link_state(&mut self, ctx: &mut Ctx<'_>, port: PortId, up: bool) {
        assert_eq!(port, PORT);
        self.calls.push((ctx.now, Call::Link(up)));
    }

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        loop {
            if let Some(frame) = self.port.finish(ctx.now) {
                return Some(Transmit { port: PORT, frame });
            }
            if !self.port.is_idle() {
                return None;
            }
            let frame = self.queue.pop_front()?;
            self.port.start(ctx.now, wire_bytes(frame.len()), frame);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.port.ends(), self.alarms.front().copied()].into_iter().flatten().min()
    }
}

fn ns(ns: u64) -> Instant {
    Instant::ZERO + Duration::from_ns(ns)
}

fn link(delay: Duration, rules: Vec<FaultRule>) -> Link {
    Link::new(delay, rules, FrameFormat::default(), Rng::derive(1, "link", 0))
}

fn driver<N: Node>(node: N, link: Link, trace: impl TraceSink + 'static) -> Driver<N> {
    Driver::new(node, NodeId(3), vec![link], Rng::derive(1, "node", 0), Box::new(trace))
}

/// A paced node at 8 Gbit/s: a byte a nanosecond.
fn paced(delay: Duration) -> Driver<Plain> {
    driver(Plain::new(Some(Rate::gbps(8))), link(delay, Vec::new()), NoTrace)
}

/// Frames that take `ns` nanoseconds at 8 Gbit/s, numbered from 0.
fn queue(driver: &mut Driver<Plain>, now: Instant, count: u8, ns: u64) {
    let overhead = wire_bytes(1_000) - 1_000;
    driver.call(now, |node, _| {
        node.queue.extend((0..count).map(|number| vec![number; (ns - overhead) as usize]));
    });
}

/// Takes everything that is outgoing: when it was scheduled, and its first byte.
fn take(driver: &mut Driver<impl Node>) -> Vec<(Instant, u8)> {
    let mut all = Vec::new();
    while driver.has_outgoing() {
        let frames = driver.outgoing(PORT);
        all.extend(frames.iter().map(|o| (o.scheduled, o.frame[0])));
        driver.remove_outgoing(PORT, frames.len());
    }
    all
}

// spec: TIME-7
#[test]
fn frames_of_a_late_driver_follow_each_other_without_a_gap() {
    let mut late = paced(Duration::from_ns(100));
    queue(&mut late, Instant::ZERO, 4, 1_000);
    assert_eq!(late.next_deadline(), Some(ns(1_000)));
    late.advance(ns(3_333));
    assert_eq!(take(&mut late), [(ns(1_100), 0), (ns(2_100), 1), (ns(3_100), 2)]);
    assert_eq!((late.now(), late.next_deadline()), (ns(3_333), Some(ns(4_000))));
    late.advance(ns(9_999));
    assert_eq!(take(&mut late), [(ns(4_100), 3)]);
    assert_eq!(late.next_deadline(), None);
}

// spec: TIME-7
#[test]
fn deadlines_are_replayed_in_order_each_at_its_own_instant() {
    let mut late = paced(Duration::ZERO);
    late.call(ns(0), |node, _| node.alarms.extend([ns(10), ns(20), ns(20), ns(35), ns(50)]));
    late.advance(ns(40));
    let at = |at| (ns(at), Call::Timeout);
    assert_eq!(late.node().calls, [at(10), at(20), at(20), at(35)]);
    assert_eq!(late.next_deadline(), Some(ns(50)));
}

// spec: TIME-7
#[test]
fn a_frame_comes_after_the_replay_at_the_instant_at_which_it_was_taken() {
    let mut late = paced(Duration::ZERO);
    late.call(ns(0), |node, _| node.alarms.extend([ns(10), ns(20)]));
    late.frame(ns(17), PORT, &[7]);
    late.frame(ns(18), PORT, &[8]);
    late.advance(ns(25));
    let frame = |at, byte| (ns(at), Call::Frame(byte));
    let alarm = |at| (ns(at), Call::Timeout);
    assert_eq!(late.node().calls, [alarm(10), frame(17, 7), frame(18, 8), alarm(20)]);
}

// spec: TIME-7
#[test]
fn time_never_goes_back() {
    let mut driver = paced(Duration::ZERO);
    driver.advance(ns(30));
    driver.frame(ns(29), PORT, &[1]);
    driver.call(ns(28), |node, ctx| {
        assert_eq!(ctx.now, ns(30));
        node.alarms.push_back(ns(5));
    });
    driver.advance(ns(27));
    driver.advance(ns(31));
    assert_eq!(driver.node().calls, [(ns(30), Call::Frame(1)), (ns(30), Call::Timeout)]);
}

// spec: SW-20
#[test]
fn a_held_frame_lets_those_behind_it_pass() {
    let matches = PacketMatch { nth: Some(1), ..PacketMatch::default() };
    let hold = FaultRule { matches, action: FaultAction::Hold(Duration::from_ns(1_500)) };
    let plain = Plain::new(Some(Rate::gbps(8)));
    let mut driver = driver(plain, link(Duration::ZERO, vec![hold]), NoTrace);
    queue(&mut driver, ns(0), 3, 1_000);
    driver.advance(ns(5_000));
    assert_eq!(take(&mut driver), [(ns(2_000), 1), (ns(2_500), 0), (ns(3_000), 2)]);
}

type Seen = Rc<RefCell<Vec<(Instant, TapDirection, u8, bool)>>>;

/// Writes down instants, directions, first bytes, and whether there was a comment.
struct Notes(Seen);

impl FrameTap for Notes {
    fn frame(
        &mut self,
        at: Instant,
        _: PortId,
        direction: TapDirection,
        frame: &[u8],
        comment: Option<&str>,
    ) {
        self.0.borrow_mut().push((at, direction, frame[0], comment.is_some()));
    }
}

/// Writes down the faults.
struct Faults(Rc<RefCell<Vec<(Instant, NodeId, String)>>>);

impl TraceSink for Faults {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        if let Event::Fault { what } = event {
            self.0.borrow_mut().push((at, node, what.clone()));
        }
    }
}

// spec: SW-20, SW-21
#[test]
fn taps_see_frames_when_they_leave_and_come_and_lost_ones_with_their_fault() {
    let matches = PacketMatch { nth: Some(2), ..PacketMatch::default() };
    let drop = FaultRule { matches, action: FaultAction::Drop };
    let (seen, faults) = (Seen::default(), Rc::default());
    let link = link(Duration::from_ns(70), vec![drop]);
    let mut driver = driver(Plain::new(Some(Rate::gbps(8))), link, Faults(Rc::clone(&faults)));
    driver.set_tap(Box::new(Notes(Rc::clone(&seen))));
    queue(&mut driver, ns(0), 3, 1_000);
    driver.frame(ns(2_500), PORT, &[9]);
    driver.advance(ns(4_000));

    assert_eq!(take(&mut driver), [(ns(1_070), 0), (ns(3_070), 2)]);
    let sent = |at, byte, lost| (ns(at), TapDirection::Sent, byte, lost);
    let received = (ns(2_500), TapDirection::Received, 9, false);
    let expected = [sent(1_000, 0, false), sent(2_000, 1, true), received, sent(3_000, 2, false)];
    assert_eq!(*seen.borrow(), expected);
    let faults = faults.borrow();
    assert_eq!((faults.len(), faults[0].0, faults[0].1), (1, ns(2_000), NodeId(3)));
    assert!(faults[0].2.starts_with("dropped by rule 1"), "{}", faults[0].2);
}

// spec: TIME-7
#[test]
fn a_node_that_is_not_paced_waits_for_the_host() {
    let mut driver = driver(Plain::new(None), link(Duration::ZERO, Vec::new()), NoTrace);
    driver.set_hold(Some(4));
    queue(&mut driver, ns(0), 10, 1_000);
    driver.call(ns(1), |node, _| node.alarms.push_back(ns(2)));
    assert_eq!((driver.outgoing(PORT).len(), driver.node().queue.len()), (4, 6));
    assert_eq!(driver.next_deadline(), None, "nothing to do before the host takes a frame");
    driver.advance(ns(5));
    driver.frame(ns(6), PORT, &[1]);
    assert_eq!(driver.node().calls, [(ns(6), Call::Frame(1))], "frames come in all the same");

    driver.remove_outgoing(PORT, 3);
    assert_eq!(driver.next_deadline(), Some(ns(6)));
    driver.advance(ns(7));
    assert_eq!(driver.node().calls.last(), Some(&(ns(6), Call::Timeout)));
    assert_eq!((take(&mut driver).len(), driver.node().queue.len()), (4, 3));
    driver.advance(ns(8));
    assert_eq!((take(&mut driver).len(), driver.node().queue.len()), (3, 0));
}

fn nic() -> Nic {
    let config = NicConfig {
        ip: Ipv4Addr::new(10, 0, 0, 1),
        macs: MacPair::default(),
        link_rate: Rate::gbps(400),
        attributes: Profile::Reference.nic(),
    };
    Nic::new(config, &mut Rng::derive(1, "nic", 0))
}

/// What a NIC schedules for the wire in 300 us without an answer, called only
/// every `step`: a window, and what its timers make of it.
fn schedule(step: Duration) -> Vec<(Instant, Vec<u8>)> {
    let mut driver = driver(nic(), link(Duration::from_ns(100), Vec::new()), NoTrace);
    driver.call(ns(5), |nic, ctx| {
        let region = nic.register_memory(ctx, vec![7; 100_000], Access::Local);
        let work = WorkRequest {
            wqe_id: 1,
            peer: Ipv4Addr::new(10, 0, 0, 2),
            lkey: region.rkey,
            local_va: region.va,
            length: 100_000,
            remote_va: 0,
            rkey: RKey(0),
        };
        nic.post_write(ctx, QpChoice::New, work).expect("taken");
    });
    let mut sent = Vec::new();
    while driver.now() < ns(300_000) {
        driver.advance((driver.now() + step).min(ns(300_000)));
        let frames = driver.outgoing(PORT);
        sent.extend(frames.iter().map(|o| (o.scheduled, o.frame.clone())));
        driver.remove_outgoing(PORT, frames.len());
    }
    assert!(!driver.has_outgoing(), "one slice holds all in a queue that is emptied");
    sent
}

// spec: TIME-7
#[test]
fn a_nic_schedules_the_same_however_late_its_driver_is() {
    let punctual = schedule(Duration::from_ns(1));
    assert!(punctual.len() > 25, "a window and retransmissions: {}", punctual.len());
    assert!(schedule(Duration::from_us(7)) == punctual);
    assert!(schedule(Duration::from_us(300)) == punctual);
}

// spec: SW-13, SW-21
#[test]
fn a_node_is_told_of_its_links_before_its_next_call() {
    let down = |from, until| FaultRule {
        matches: PacketMatch { from: Some(from), until, ..PacketMatch::default() },
        action: FaultAction::Down,
    };
    let link = link(Duration::ZERO, vec![down(ns(10), Some(ns(20)))]);
    let mut driver = driver(Plain::new(None), link, NoTrace);
    driver.call(ns(5), |node, _| node.alarms.extend([ns(14), ns(30)]));
    driver.frame(ns(9), PORT, &[1]);
    // A late driver replays the alarm at its instant, when the link was down.
    driver.frame(ns(40), PORT, &[2]);
    driver.with_links(ns(50), |now, links| links[0].add_rule(2, down(now, None)));
    driver.frame(ns(60), PORT, &[3]);
    driver.with_links(ns(70), |_, links| links[0].clear_rules(None));
    driver.frame(ns(80), PORT, &[4]);
    let expected = [
        (ns(9), Call::Frame(1)),
        (ns(14), Call::Link(false)),
        (ns(14), Call::Timeout),
        (ns(30), Call::Link(true)),
        (ns(30), Call::Timeout),
        (ns(40), Call::Frame(2)),
        (ns(60), Call::Link(false)),
        (ns(60), Call::Frame(3)),
        (ns(80), Call::Link(true)),
        (ns(80), Call::Frame(4)),
    ];
    assert_eq!(driver.node().calls, expected);
}
