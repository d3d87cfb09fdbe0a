//! The one event schema. Nodes and links say what happened; sinks write it
//! down, count it or throw it away.

use core::fmt;
use core::net::Ipv4Addr;

use crate::time::{Duration, Instant};
use crate::wire::opcode::Kind;
use crate::wire::psn::Psn;
use crate::wire::qpn::Qpn;
use crate::wire::role::Role;

/// A node of the run, counted from 0 in the order of the scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// One end of a QP: its IPv4 address and its own number (0 until it is known).
// spec: QP-8
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QpAddress {
    /// The NIC's address.
    pub ip: Ipv4Addr,
    /// The QP's number at that NIC.
    pub qpn: Qpn,
}

impl fmt::Display for QpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.ip, self.qpn.value())
    }
}

/// What happened to a QP or a message.
// spec: DONE-1
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QpEventKind {
    /// A side of a QP came to be.
    QpCreated,
    /// A message was posted.
    WqeCreated,
    /// The fetch of the message's last segment has been issued.
    SendComplete,
    /// A cumulative ACK covers the message's last packet.
    WqeComplete,
    /// The message has arrived whole.
    RecvComplete,
    /// A side of a QP was closed.
    QpClosed,
    /// The QP went into the error state.
    QpError,
}

impl QpEventKind {
    /// The name in the records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QpCreated => "QP_CREATED",
            Self::WqeCreated => "WQE_CREATED",
            Self::SendComplete => "SEND_COMPLETE",
            Self::WqeComplete => "WQE_COMPLETE",
            Self::RecvComplete => "RECV_COMPLETE",
            Self::QpClosed => "QP_CLOSED",
            Self::QpError => "QP_ERROR",
        }
    }
}

/// A QP event with its ends and, where it is about one, its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QpEvent {
    /// What happened.
    pub kind: QpEventKind,
    /// This end.
    pub local: QpAddress,
    /// The other end; its number is 0 until it is known.
    pub remote: QpAddress,
    /// The work request: the poster's number for the message, the receiver's
    /// count of messages on the QP.
    pub wqe_id: Option<u64>,
    /// The message's length in bytes.
    pub wqe_bytes: Option<u64>,
}

/// Why a packet is sent again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RetransmitCause {
    /// Its timer expired.
    Timeout,
    /// A NACK named it.
    Nack,
    /// A SACK left a gap far below its highest PSN.
    SackGap,
    /// Its message was acknowledged by SACKs only: asked for again.
    Rerequest,
}

impl RetransmitCause {
    /// The name in the records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeout => "TIMEOUT",
            Self::Nack => "NACK",
            Self::SackGap => "SACK_GAP",
            Self::Rerequest => "REREQUEST",
        }
    }
}

/// Which way a packet went, seen from the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Sent for the first time.
    Tx,
    /// Sent again.
    ReTx,
    /// Received.
    Rx,
}

/// A packet that a NIC sent (its last bit left) or received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketEvent {
    /// Which way.
    pub direction: Direction,
    /// What kind of packet.
    pub kind: Kind,
    /// The QP's end here; number 0 when the packet named none.
    pub local: QpAddress,
    /// The peer.
    pub remote: QpAddress,
    /// The PSN in its BTH.
    pub psn: Psn,
    /// Bytes on the wire, FCS included.
    pub wire_bytes: u32,
    /// Its UDP source port.
    pub entropy: u16,
    /// What its codepoint says; `None` when the codepoint is none of the six.
    pub role: Option<Role>,
    /// The ACK-request flag.
    pub ack_request: bool,
    /// Why it is a retransmission.
    pub cause: Option<RetransmitCause>,
}

/// A round-trip time that a sending side sampled.
// spec: RTT-1
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RttSample {
    /// The kind of packet that gave it: a SACK or a NACK.
    pub by: Kind,
    /// The QP's end here.
    pub local: QpAddress,
    /// The peer.
    pub remote: QpAddress,
    /// The PSN of the packet that it was taken of.
    pub psn: Psn,
    /// The sample.
    pub rtt: Duration,
}

/// Which rule of congestion control acted on a window.
// spec: CC-2, CC-3, CC-4, CC-5, CC-6, CC-7, CC-9
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WindowCause {
    /// The delay was above its target without a mark.
    Fair,
    /// The delay was below its target.
    Proportional,
    /// A whole window had arrived without delay.
    Fast,
    /// A round trip had passed.
    Eta,
    /// A mark, and delay above the target.
    Decrease,
    /// Too little had got through: the window is what did.
    QuickAdapt,
    /// A packet was trimmed.
    Trim,
    /// A retransmission timer expired.
    Timeout,
    /// SACKs left a gap.
    SackGap,
    /// The receiver's buffer fills up.
    Penalty,
    /// The receiver's buffer has room again.
    Restore,
    /// A shorter round trip than ever was sampled.
    BaseRtt,
}

impl WindowCause {
    /// The name in the records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fair => "FAIR",
            Self::Proportional => "PROPORTIONAL",
            Self::Fast => "FAST",
            Self::Eta => "ETA",
            Self::Decrease => "DECREASE",
            Self::QuickAdapt => "QUICK_ADAPT",
            Self::Trim => "TRIM",
            Self::Timeout => "TIMEOUT",
            Self::SackGap => "SACK_GAP",
            Self::Penalty => "PENALTY",
            Self::Restore => "RESTORE",
            Self::BaseRtt => "BASE_RTT",
        }
    }
}

/// A rule of congestion control acted on the window of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowEvent {
    /// The peer that the group's QPs go to.
    pub peer: Ipv4Addr,
    /// The rule.
    pub cause: WindowCause,
    /// The window after it, in bytes.
    pub window: u64,
    /// Bytes in flight then.
    pub in_flight: u64,
}

/// Anything that is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// About a QP or a message.
    Qp(QpEvent),
    /// A packet at a NIC.
    Packet(PacketEvent),
    /// A round-trip time was sampled; recorded where packets are.
    Rtt(RttSample),
    /// A congestion window was acted on; recorded where packets are.
    Window(WindowEvent),
    /// Input or a queued frame was dropped, with its cause.
    Drop {
        /// The drop counter's name.
        cause: &'static str,
    },
    /// A switch cut a packet to its headers.
    Trimmed {
        /// The egress port.
        port: u16,
    },
    /// A link's fault rule did something to a frame.
    Fault {
        /// What was done, in words, with rule and packet.
        what: String,
    },
}

/// Takes events.
pub trait TraceSink {
    /// `event` happened at `node`.
    fn record(&mut self, at: Instant, node: NodeId, event: &Event);

    /// Whether packet events and samples are wanted; building them costs time.
    fn wants_packets(&self) -> bool {
        false
    }
}

/// Keeps nothing.
#[derive(Debug, Default)]
pub struct NoTrace;

impl TraceSink for NoTrace {
    fn record(&mut self, _: Instant, _: NodeId, _: &Event) {}
}

/// One recorded event.
pub type Entry = (Instant, NodeId, Event);

/// Keeps everything in memory, packets too: for tests.
#[derive(Debug, Default)]
pub struct MemoryTrace {
    /// All events in the order in which they happened.
    pub entries: Vec<Entry>,
}

impl MemoryTrace {
    /// The QP events, in order.
    pub fn qp_events(&self) -> impl Iterator<Item = (Instant, NodeId, QpEvent)> + '_ {
        self.entries.iter().filter_map(|(at, node, event)| match event {
            Event::Qp(qp) => Some((*at, *node, *qp)),
            _ => None,
        })
    }

    /// The packet events, in order.
    pub fn packets(&self) -> impl Iterator<Item = (Instant, NodeId, PacketEvent)> + '_ {
        self.entries.iter().filter_map(|(at, node, event)| match event {
            Event::Packet(packet) => Some((*at, *node, *packet)),
            _ => None,
        })
    }

    /// What was done to congestion windows, in order.
    pub fn windows(&self) -> impl Iterator<Item = (Instant, NodeId, WindowEvent)> + '_ {
        self.entries.iter().filter_map(|(at, node, event)| match event {
            Event::Window(window) => Some((*at, *node, *window)),
            _ => None,
        })
    }

    /// The round-trip times sampled, in order.
    pub fn rtt_samples(&self) -> impl Iterator<Item = (Instant, NodeId, RttSample)> + '_ {
        self.entries.iter().filter_map(|(at, node, event)| match event {
            Event::Rtt(sample) => Some((*at, *node, *sample)),
            _ => None,
        })
    }
}

impl TraceSink for MemoryTrace {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        self.entries.push((at, node, event.clone()));
    }

    fn wants_packets(&self) -> bool {
        true
    }
}
