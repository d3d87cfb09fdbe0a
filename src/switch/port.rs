//! A port: eight queues before one transmitter, and what its peer has paused.

use std::collections::VecDeque;

use super::counters::PortCounters;
use super::{SwitchPort, TrafficClass};
use crate::config::SWITCH_CLASSES;
use crate::node::{Frame, PortId, Serializer};
use crate::time::{Duration, Instant};
use crate::units::Rate;
use crate::wire::packet::{ip_bytes, wire_bytes};
use crate::wire::pfc::Pfc;

/// The least that a frame counts for in a queue: an Ethernet frame's least payload.
const LEAST_CHARGE: u64 = 46;

/// A frame in an egress queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub frame: Frame,
    /// The port where it came in.
    pub from: PortId,
    /// Its transport takes part in ECN and no switch has marked it.
    pub ect: bool,
    /// This switch may cut it to its headers.
    pub may_trim: bool,
    /// This switch has cut it.
    pub trimmed_here: bool,
}

/// What the transmitter is busy with.
#[derive(Debug)]
enum Sending {
    Packet(TrafficClass, Queued),
    Pfc { class: TrafficClass, quanta: u16, frame: Frame },
}

/// What the transmitter is done with.
#[derive(Debug)]
pub(super) enum Finished {
    /// A packet, whose charges end.
    Packet(TrafficClass, Queued),
    /// A PFC frame.
    Pfc(Frame),
}

/// A port of the switch.
#[derive(Debug)]
pub(super) struct Port {
    pub config: SwitchPort,
    pub counters: PortCounters,
    queues: [VecDeque<Queued>; SWITCH_CLASSES],
    transmitter: Serializer<Sending>,
    /// The peer takes packets of a class again from then on.
    paused_until: [Instant; SWITCH_CLASSES],
    /// What the peer is to be told of each class: to pause for so many quanta.
    signals: [Option<u16>; SWITCH_CLASSES],
    /// When the port is to be looked at because the peer takes packets again.
    wake: Option<Instant>,
    /// Unpaced: it is among those that take turns.
    pub in_turn: bool,
}

impl Port {
    /// An idle port; without pacing sending takes no time.
    pub fn new(config: SwitchPort, paced: bool) -> Self {
        Self {
            transmitter: Serializer::new(paced.then_some(config.rate)),
            config,
            counters: PortCounters::default(),
            queues: Default::default(),
            paused_until: [Instant::ZERO; SWITCH_CLASSES],
            signals: [None; SWITCH_CLASSES],
            wake: None,
            in_turn: false,
        }
    }

    pub fn enqueue(&mut self, class: TrafficClass, queued: Queued) {
        self.queues[class.index()].push_back(queued);
    }

    /// The packet of `class` that came last and still waits.
    pub fn newest(&mut self, class: TrafficClass) -> Option<&mut Queued> {
        self.queues[class.index()].back_mut()
    }

    /// Whether anything waits to be sent, paused or not.
    pub fn has_work(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
            || self.signals.iter().any(Option::is_some)
    }

    /// Whether no frame is being sent.
    pub fn is_idle(&self) -> bool {
        self.transmitter.is_idle()
    }

    /// When the last bit of the frame being sent leaves.
    pub fn ends(&self) -> Option<Instant> {
        self.transmitter.ends()
    }

    /// The peer is to be told to pause `class`, or to go on (0 quanta).
    pub fn signal(&mut self, class: TrafficClass, quanta: u16) {
        self.signals[class.index()] = Some(quanta);
    }

    /// What the peer is to be told next.
    pub fn take_signal(&mut self) -> Option<(TrafficClass, u16)> {
        TrafficClass::all().find_map(|class| Some((class, self.signals[class.index()].take()?)))
    }

    /// Starts to tell the peer, in `frame`.
    // spec: SW-7, SW-8, SW-10
    pub fn start_pfc(&mut self, now: Instant, class: TrafficClass, quanta: u16, mut frame: Frame) {
        Pfc::one(class.index(), quanta).emit(self.config.mac, &mut frame);
        self.transmitter.start(now, wire_bytes(frame.len()), Sending::Pfc { class, quanta, frame });
    }

    /// The peer pauses its classes until then; an instant that has passed: it
    /// lets them go on.
    // spec: SW-10
    pub fn pause(&mut self, class: TrafficClass, until: Instant) {
        self.paused_until[class.index()] = until;
    }

    /// Whether the peer has paused `class`.
    pub fn is_paused(&self, class: TrafficClass, now: Instant) -> bool {
        self.paused_until[class.index()] > now
    }

    /// The first packet of the highest class that the peer has not paused.
    // spec: DSCP-4, SW-10
    pub fn take_next(&mut self, now: Instant) -> Option<(TrafficClass, Queued)> {
        TrafficClass::all().rev().find_map(|class| {
            if self.queues[class.index()].is_empty() || self.is_paused(class, now) {
                return None;
            }
            Some((class, self.queues[class.index()].pop_front()?))
        })
    }

    /// When the peer first takes again what waits, where all of it is paused and
    /// no earlier call has said so.
    pub fn next_wake(&mut self) -> Option<Instant> {
        let waiting = TrafficClass::all().filter(|class| !self.queues[class.index()].is_empty());
        let at = waiting.map(|class| self.paused_until[class.index()]).min()?;
        if self.wake.is_some_and(|known| known <= at) {
            return None;
        }
        self.wake = Some(at);
        self.wake
    }

    /// What [`Port::next_wake`] said has come.
    pub fn woken(&mut self, at: Instant) {
        self.wake = self.wake.filter(|known| *known > at);
    }

    /// Starts to send a packet.
    pub fn start(&mut self, now: Instant, class: TrafficClass, queued: Queued) {
        let bytes = wire_bytes(queued.frame.len());
        self.transmitter.start(now, bytes, Sending::Packet(class, queued));
    }

    /// What has been sent whole by `now`.
    // spec: SW-3, SW-19
    pub fn finish(&mut self, now: Instant) -> Option<Finished> {
        let sent = self.transmitter.finish(now)?;
        self.counters.frames_out += 1;
        match sent {
            Sending::Packet(class, queued) => {
                let bytes = wire_bytes(queued.frame.len());
                self.counters.bytes_out += bytes;
                self.counters.trim_sent += u64::from(queued.trimmed_here);
                let counters = &mut self.counters.classes[class.index()];
                counters.frames_out += 1;
                counters.bytes_out += bytes;
                Some(Finished::Packet(class, queued))
            }
            Sending::Pfc { class, quanta, frame } => {
                self.counters.bytes_out += wire_bytes(frame.len());
                let counters = &mut self.counters.classes[class.index()];
                let counter = match quanta {
                    0 => &mut counters.resumes_sent,
                    _ => &mut counters.pauses_sent,
                };
                *counter += 1;
                Some(Finished::Pfc(frame))
            }
        }
    }
}

/// What a frame counts for in a queue: its IP datagram.
// spec: SW-6
pub(super) fn charge(frame: &Frame) -> u64 {
    ip_bytes(frame.len()).max(LEAST_CHARGE)
}

/// How long `quanta` of 512 bit times last at `rate`.
// spec: SW-10
pub(super) fn pause_time(quanta: u16, rate: Rate) -> Duration {
    rate.time_for(u64::from(quanta) * 512 / 8)
}
