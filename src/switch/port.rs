//! An egress port: three queues before one transmitter.

use std::collections::VecDeque;

use super::counters::PortCounters;
use super::{SwitchPort, TrafficClass};
use crate::node::{Frame, Serializer};
use crate::time::Instant;
use crate::wire::packet::{ip_bytes, wire_bytes};

/// The least that a frame counts for in a queue: an Ethernet frame's least payload.
const LEAST_CHARGE: u64 = 46;

/// A frame in an egress queue.
#[derive(Debug)]
pub(super) struct Queued {
    pub frame: Frame,
    /// This switch has cut it.
    pub trimmed_here: bool,
}

/// The frames of one class.
#[derive(Debug, Default)]
struct EgressQueue {
    waiting: VecDeque<Queued>,
    /// Bytes of the waiting frames and of the one that is being sent.
    charged: u64,
}

/// A port of the switch.
#[derive(Debug)]
pub(super) struct Port {
    pub config: SwitchPort,
    pub counters: PortCounters,
    queues: [EgressQueue; TrafficClass::ALL.len()],
    transmitter: Serializer<(TrafficClass, Queued)>,
}

impl Port {
    /// An idle port; without pacing sending takes no time.
    pub fn new(config: SwitchPort, paced: bool) -> Self {
        Self {
            transmitter: Serializer::new(paced.then_some(config.rate)),
            config,
            counters: PortCounters::default(),
            queues: Default::default(),
        }
    }

    /// Bytes charged to `class`.
    pub fn charged(&self, class: TrafficClass) -> u64 {
        self.queues[class.index()].charged
    }

    /// Queues the frame and charges it, or gives it back when `class` would
    /// hold more than `limit`.
    // spec: SW-6
    pub fn admit(&mut self, class: TrafficClass, limit: u64, queued: Queued) -> Result<(), Queued> {
        let queue = &mut self.queues[class.index()];
        let charged = queue.charged + charge(&queued.frame);
        if charged > limit {
            return Err(queued);
        }
        queue.charged = charged;
        queue.waiting.push_back(queued);
        let high_water = &mut self.counters.high_water[class.index()];
        *high_water = charged.max(*high_water);
        Ok(())
    }

    /// How many frames wait, in all classes.
    pub fn waiting(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum()
    }

    /// Whether no frame is being sent.
    pub fn is_idle(&self) -> bool {
        self.transmitter.is_idle()
    }

    /// Starts to send the first frame of the highest class; says when its last
    /// bit leaves. `None` when nothing waits.
    // spec: DSCP-4
    pub fn start_next(&mut self, now: Instant) -> Option<Instant> {
        let mut by_priority = TrafficClass::ALL.into_iter().rev();
        let (class, next) = by_priority
            .find_map(|class| Some((class, self.queues[class.index()].waiting.pop_front()?)))?;
        self.transmitter.start(now, wire_bytes(next.frame.len()), (class, next));
        self.transmitter.ends()
    }

    /// The frame whose last bit has left by `now`; its charge is released.
    // spec: SW-3
    pub fn finish(&mut self, now: Instant) -> Option<Frame> {
        let (class, Queued { frame, trimmed_here }) = self.transmitter.finish(now)?;
        self.queues[class.index()].charged -= charge(&frame);
        self.counters.frames_out += 1;
        self.counters.bytes_out += wire_bytes(frame.len());
        self.counters.trim_sent += u64::from(trimmed_here);
        Some(frame)
    }
}

/// What a frame counts for in a queue: its IP datagram.
// spec: SW-6
fn charge(frame: &Frame) -> u64 {
    ip_bytes(frame.len()).max(LEAST_CHARGE)
}
