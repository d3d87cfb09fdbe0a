//! A receiver whose host is a little too slow: 256 MiB at full rate over 13 lanes.

use std::cell::RefCell;
use std::rc::Rc;

use mrc_lab::nic::{NicCounters, QpChoice};
use mrc_lab::node::{FrameTap, PortId, TapDirection};
use mrc_lab::time::Instant;
use mrc_lab::trace::NoTrace;
use mrc_lab::wire::packet::{Body, FrameFormat, Packet};
use mrc_lab::wire::pfc::Pfc;

use crate::lab::*;
use crate::peer::*;

const PACKETS: u64 = 65_536;
const PACKET: u64 = 4_174;
/// The write of a full payload: 4,368 bytes at 13 x 31.52 Gbps.
const WRITE: u64 = 85_280;
/// Writes that the transmit buffer takes: 16,000 bytes of overhead, 272 each.
const BUFFERED: u64 = 58;

/// What a hears.
#[derive(Default)]
struct Heard {
    /// The penalty of the SACKs, whenever it is another than before.
    penalties: Vec<u8>,
    pauses: Vec<(Instant, Pfc)>,
}

/// A's ear for PFC frames and SACKs.
struct Ear(FrameFormat, Rc<RefCell<Heard>>);

impl FrameTap for Ear {
    fn frame(
        &mut self,
        at: Instant,
        _: PortId,
        direction: TapDirection,
        frame: &[u8],
        _: Option<&str>,
    ) {
        if direction == TapDirection::Sent {
            return;
        }
        let mut heard = self.1.borrow_mut();
        if Pfc::is_pfc(frame) {
            heard.pauses.push((at, Pfc::parse(frame).expect("a pause frame")));
        } else if let Body::Sack(_, cc_state) = Packet::parse(frame, &self.0).expect("good").body
            && heard.penalties.last() != Some(&cc_state.penalty)
        {
            heard.penalties.push(cc_state.penalty);
        }
    }
}

/// How the message went.
struct Story {
    heard: Heard,
    /// When b paused a or let it go on: the instant, the bytes in the pool.
    signals: Vec<(Instant, u64)>,
    /// Packets that the pool had taken when it turned one away.
    taken_before_drop: Option<u64>,
    counters: [NicCounters; 2],
    drops: u64,
    peak: u64,
    penalty_at_peak: u8,
}

fn tell(pfc: bool) -> Story {
    let mut scenario = back_to_back();
    scenario.nics[1].attributes.pcie_nic.lane_count = 13;
    scenario.nics[1].attributes.pfc.enabled = [pfc, false];
    let mut trace = NoTrace;
    let mut stage = Stage::new(&scenario, &mut trace);
    let heard = Rc::new(RefCell::new(Heard::default()));
    stage.world.set_tap(A, Box::new(Ear(stage.format, heard.clone())));
    let message = stage.message(A, B, PACKETS as usize * 4_096);
    let (_, wqe_id) = stage.post(QpChoice::New, &message);
    let (mut signals, mut taken_before_drop) = (Vec::new(), None);
    let mut penalty_at_peak = 0;
    while !stage.is_complete(A, wqe_id) {
        assert!(stage.step());
        let nic = stage.world.nic(B);
        let pool = nic.buffers().ingress[0];
        let counters = nic.counters();
        if counters.pfc_pauses_sent + counters.pfc_resumes_sent > signals.len() as u64 {
            signals.push((stage.world.now(), pool.used_bytes));
        }
        if pool.drops == 1 && taken_before_drop.is_none() {
            taken_before_drop = Some(pool.packets_in);
        }
        penalty_at_peak = penalty_at_peak.max(nic.receiver_penalty());
    }
    assert!(stage.is_placed(&message));
    let nic = |node| stage.world.nic(node);
    let counters = [A, B].map(|node| nic(node).counters().clone());
    let (drops, peak) = (nic(B).drops().total(), nic(B).buffers().ingress[0].peak_bytes);
    assert_eq!(drops, stage.drops(B, "ingress_data_full"));
    drop(stage);
    let heard = Rc::into_inner(heard).expect("the tap is gone").into_inner();
    Story { heard, signals, taken_before_drop, counters, drops, peak, penalty_at_peak }
}

/// How many packets the pool holds when the `nth` has arrived: the writes that
/// have not ended, but for those in the transmit buffer.
fn held(nth: u64) -> u64 {
    let behind = (nth - 1) * (WRITE - FULL);
    (WRITE + behind).div_ceil(WRITE).saturating_sub(BUFFERED)
}

/// The first packet with which the pool would hold so many.
fn first_that_makes(packets: u64) -> u64 {
    (1..).find(|nth| held(*nth) == packets).expect("it grows without end")
}

// spec: PB-4, PB-11, PB-14, PB-15, PCIE-7, RX-1, LOSS-1
#[test]
fn without_pfc_the_pool_fills_and_drops_and_the_message_still_completes() {
    let story = tell(false);
    // 3,600,000 bytes hold 862 packets. Each packet comes 1.8 ns too soon.
    let first_dropped = first_that_makes(863);
    assert_eq!(first_dropped, 43_542);
    assert_eq!(story.taken_before_drop, Some(first_dropped - 1));
    assert_eq!(story.peak, 862 * PACKET);
    // The penalty rises from a quarter of the pool to three quarters, step by step.
    let rise: Vec<u8> = (0..=127).collect();
    assert_eq!(story.heard.penalties[..128], rise);
    assert_eq!(story.penalty_at_peak, 127);
    let [sender, receiver] = &story.counters;
    // Gaps and timers find what was dropped, and nothing else is sent again. While
    // the sender waits for them the pool drains: few packets are dropped.
    assert!(story.drops > 10 && sender.rtx_sack_gap > 0, "{}", story.drops);
    assert_eq!((sender.rtx, receiver.dup_events), (story.drops, 0));
    assert_eq!((receiver.pfc_pauses_sent, story.heard.pauses.len()), (0, 0));
}

// spec: PB-12, PB-13, PB-14, PCIE-7
#[test]
fn with_pfc_the_sender_is_paused_and_nothing_is_dropped() {
    let story = tell(true);
    assert_eq!((story.drops, story.counters[0].rtx, story.counters[0].rto), (0, 0, 0));
    // 690 packets are four fifths of the pool or more, 344 two fifths or less.
    let (paused, resumed) = (690 * PACKET, 344 * PACKET);
    let used: Vec<u64> = story.signals.iter().map(|(_, used)| *used).collect();
    assert_eq!(used, [paused, resumed, paused, resumed]);
    let at = FETCHED + first_that_makes(690) * FULL + DELAY;
    assert_eq!(story.signals[0].0, ps(at));
    // Each is on the wire at once, 64 bytes ahead of the packet's SACK.
    let heard: Vec<_> = story.heard.pauses.iter().map(|(at, _)| at.as_ps()).collect();
    assert!(story.signals.iter().map(|(at, _)| at.as_ps() + 1_280 + DELAY).eq(heard));
    let quanta = story.heard.pauses.iter().map(|(_, pfc)| *pfc);
    assert!(quanta.eq([65_535, 0, 65_535, 0].map(|quanta| Pfc::one(0, quanta))));
    // What was on its way when the pause frame left still came, as fast as the
    // pool drained: a handful of packets more than the 346 between the two marks.
    assert!(story.peak <= paused + PACKET);
    let drained = story.signals[1].0.since(story.signals[0].0).as_ps() / WRITE;
    assert!((346..352).contains(&drained), "{drained}");
    assert_eq!(story.heard.penalties[..128], (0..=127).collect::<Vec<u8>>());
}
