//! The NIC's port: packets of two classes waiting for one transmitter.

use std::collections::VecDeque;

use crate::node::{Frame, Serializer};
use crate::time::Instant;
use crate::trace::PacketEvent;
use crate::units::Rate;
use crate::wire::packet::Packet;
use crate::wire::psn::PsnExt;
use crate::wire::qpn::Qpn;

use super::requester::Outgoing;

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
}

/// What is known of a frame while its bits leave.
#[derive(Debug)]
pub struct Departing {
    /// The frame.
    pub frame: Frame,
    /// The QP and packet whose timer starts when the last bit has left.
    pub timed: Option<(Qpn, PsnExt, u32)>,
    /// What the trace says when the last bit has left.
    pub event: PacketEvent,
}

/// What leaves next.
#[derive(Debug)]
pub enum Next {
    /// A control packet.
    Control(Packet<'static>),
    /// A data packet.
    Data(DataPacket),
}

/// Two queues before one port.
// spec: DSCP-3, ACK-3
#[derive(Debug)]
pub struct Egress {
    control: VecDeque<Packet<'static>>,
    data: VecDeque<DataPacket>,
    /// The transmitter.
    pub port: Serializer<Departing>,
}

impl Egress {
    /// Empty queues before a port of `rate`; `None` when nothing is paced.
    pub fn new(rate: Option<Rate>) -> Self {
        Self { control: VecDeque::new(), data: VecDeque::new(), port: Serializer::new(rate) }
    }

    /// Queues a control packet.
    pub fn queue_control(&mut self, packet: Packet<'static>) {
        self.control.push_back(packet);
    }

    /// Queues a data packet.
    pub fn queue_data(&mut self, packet: DataPacket) {
        self.data.push_back(packet);
    }

    /// Takes what leaves next: control ahead of waiting data.
    // spec: DSCP-3, ACK-3
    pub fn take_next(&mut self) -> Option<Next> {
        let control = self.control.pop_front().map(Next::Control);
        control.or_else(|| self.data.pop_front().map(Next::Data))
    }

    /// When the frame that is leaving has left.
    pub fn ends(&self) -> Option<Instant> {
        self.port.ends()
    }
}
