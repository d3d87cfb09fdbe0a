//! The NIC's port: packets of two classes waiting for one transmitter, and the
//! pools that bound them.

use std::collections::VecDeque;

use super::class::Class;
use super::pool::Pool;
use super::requester::Outgoing;
use crate::config::{NicAttributes, QueueScheduling};
use crate::node::{Frame, Serializer};
use crate::time::Instant;
use crate::trace::PacketEvent;
use crate::units::Rate;
use crate::wire::packet::{FrameFormat, Packet};
use crate::wire::pfc::Pfc;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

/// A data packet that waits to be sent. Its frame is built when its turn comes.
#[derive(Clone, Copy, Debug)]
pub struct DataPacket {
    /// The sending QP.
    pub qpn: Qpn,
    /// What of it is sent.
    pub outgoing: Outgoing,
    /// The peer's number as known when the packet was built; [`Qpn::NONE`] before.
    pub remote_qpn: Qpn,
    /// Its entropy value.
    pub entropy: u16,
    /// The ACK-request flag.
    pub ack_request: bool,
    /// When it was built, in 128 ns steps, where packets carry that.
    pub timestamp: Option<u16>,
    /// Bytes of the data pool that it has reserved: its size on the wire.
    pub reserved: u64,
}

/// What is known of a frame while its bits leave.
#[derive(Debug)]
pub struct Departing {
    /// The frame.
    pub frame: Frame,
    /// The pool that it is charged to and how much; `None`: a PFC frame, which is
    /// charged nowhere.
    pub charged: Option<(Class, u64)>,
    /// The QP and packet whose timer starts when the last bit has left.
    pub timed: Option<(Qpn, PsnExt, u32)>,
    /// What the trace says when the last bit has left.
    pub event: Option<PacketEvent>,
}

/// What leaves next.
#[derive(Debug)]
pub enum Next {
    /// A control packet and its size on the wire.
    Control(Packet<'static>, u64),
    /// A data packet.
    Data(DataPacket),
    /// A PFC frame.
    Pfc(Pfc),
}

/// Which class goes on when both have packets waiting, and for how many more.
// spec: PB-10
#[derive(Debug)]
struct Turns {
    scheduling: QueueScheduling,
    weights: [u32; 2],
    class: Class,
    left: u32,
}

impl Turns {
    fn new(attributes: &NicAttributes) -> Self {
        let weights = match attributes.queue_scheduling {
            QueueScheduling::WeightedRoundRobin => attributes.wrr_weights,
            _ => [1, 1],
        };
        let class = Class::Control;
        let left = weights[class.index()];
        Self { scheduling: attributes.queue_scheduling, weights, class, left }
    }

    /// The class that sends one packet now, of those that `can_send`.
    // spec: PB-10, DSCP-3, ACK-3
    fn take(&mut self, can_send: impl Fn(Class) -> bool) -> Option<Class> {
        if self.scheduling == QueueScheduling::StrictPriority {
            return Class::ALL.into_iter().rev().find(|class| can_send(*class));
        }
        if self.left == 0 || !can_send(self.class) {
            let other = self.class.other();
            let class = [other, self.class].into_iter().find(|class| can_send(*class))?;
            (self.class, self.left) = (class, self.weights[class.index()]);
        }
        self.left -= 1;
        Some(self.class)
    }
}

/// Two queues and their pools before one port.
// spec: DSCP-3, PB-8, PB-9
#[derive(Debug)]
pub struct Egress {
    format: FrameFormat,
    pools: [Pool; 2],
    control: VecDeque<(Packet<'static>, u64)>,
    /// Bytes on the wire of what waits in `control`.
    control_bytes: u64,
    data: VecDeque<DataPacket>,
    /// What the peer is to be told of each class, in quanta.
    pfc: [Option<u16>; 2],
    /// Until when the peer has paused each class.
    paused_until: [Instant; 2],
    turns: Turns,
    /// The transmitter.
    pub port: Serializer<Departing>,
}

impl Egress {
    /// Empty queues before a port of `rate`; `None` when nothing is paced.
    pub fn new(attributes: &NicAttributes, rate: Option<Rate>) -> Self {
        let pool = |class: Class| Pool::new(attributes.egress_buffer.pool_bytes(class.index()));
        Self {
            format: attributes.frame_format(),
            pools: Class::ALL.map(pool),
            control: VecDeque::new(),
            control_bytes: 0,
            data: VecDeque::new(),
            pfc: [None; 2],
            paused_until: [Instant::ZERO; 2],
            turns: Turns::new(attributes),
            port: Serializer::new(rate),
        }
    }

    /// The pool of `class`.
    pub fn pool(&self, class: Class) -> &Pool {
        &self.pools[class.index()]
    }

    /// Reserves room for a data packet of `wire_bytes`, which there is.
    // spec: SEG-7, PB-9
    #[must_use]
    pub fn reserve_data(&mut self, wire_bytes: u64) -> bool {
        self.pools[Class::Data.index()].charge(wire_bytes)
    }

    /// `bytes` of the pool of `class` are free again; true when it is the data
    /// pool and holds half its size or less now.
    // spec: SEG-7, SEG-9
    pub fn release(&mut self, class: Class, bytes: u64) -> bool {
        let pool = &mut self.pools[class.index()];
        pool.release(bytes);
        class == Class::Data && pool.used() <= pool.size() / 2
    }

    /// Queues a control packet; false when its pool has no room for it.
    // spec: PB-9
    #[must_use]
    pub fn queue_control(&mut self, packet: Packet<'static>) -> bool {
        let bytes = packet.wire_len(&self.format);
        let fits = self.pools[Class::Control.index()].charge(bytes);
        if fits {
            self.control.push_back((packet, bytes));
            self.control_bytes += bytes;
        }
        fits
    }

    /// Bytes on the wire of the control packets that wait.
    // spec: RTT-3
    pub fn control_waiting(&self) -> u64 {
        self.control_bytes
    }

    /// Queues a data packet, whose room is reserved.
    pub fn queue_data(&mut self, packet: DataPacket) {
        self.data.push_back(packet);
    }

    /// Takes the packets of `qpn` out that have not begun to leave; gives what
    /// they had reserved.
    // spec: RTO-11
    pub fn discard(&mut self, qpn: Qpn) -> impl Iterator<Item = u64> + use<> {
        let all = core::mem::take(&mut self.data);
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|packet| packet.qpn == qpn);
        self.data = kept.into();
        gone.into_iter().map(|packet| packet.reserved)
    }

    /// Queues a PFC frame that pauses `class` for so many quanta, ahead of all
    /// packets and in the place of one for that class that has not begun to leave.
    // spec: PB-10
    pub fn queue_pfc(&mut self, class: Class, quanta: u16) {
        self.pfc[class.index()] = Some(quanta);
    }

    /// The peer pauses `class` until `until`; an instant that is not to come
    /// ends a pause.
    // spec: PB-13
    pub fn pause(&mut self, class: Class, until: Instant) {
        self.paused_until[class.index()] = until;
    }

    /// Takes what leaves next at `now`: a PFC frame, or a packet of the class
    /// whose turn it is of those that are not paused.
    // spec: PB-10, PB-13, DSCP-3, ACK-3
    pub fn take_next(&mut self, now: Instant) -> Option<Next> {
        for class in Class::ALL {
            if let Some(quanta) = self.pfc[class.index()].take() {
                return Some(Next::Pfc(Pfc::one(class.index(), quanta)));
            }
        }
        let can_send =
            Class::ALL.map(|class| self.waits(class) && self.paused_until[class.index()] <= now);
        match self.turns.take(|class| can_send[class.index()])? {
            Class::Data => self.data.pop_front().map(Next::Data),
            Class::Control => {
                let (packet, bytes) = self.control.pop_front()?;
                self.control_bytes -= bytes;
                Some(Next::Control(packet, bytes))
            }
        }
    }

    fn waits(&self, class: Class) -> bool {
        match class {
            Class::Data => !self.data.is_empty(),
            Class::Control => !self.control.is_empty(),
        }
    }

    /// When the port has to be looked at again: the frame that is leaving has
    /// left, or a pause that holds packets back is over.
    pub fn next(&self) -> Option<Instant> {
        let resumes = || {
            let held = Class::ALL.into_iter().filter(|class| self.waits(*class));
            held.map(|class| self.paused_until[class.index()]).min()
        };
        self.port.ends().or_else(resumes)
    }
}

#[cfg(test)]
mod tests;
