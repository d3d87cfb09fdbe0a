//! The one contract between the system itself and whatever drives it.
//!
//! A node (a NIC, a switch) is a plain struct. It takes frames and the time and
//! gives back frames, deadlines and events. It reads no clock, no socket and no
//! random number but the stream in [`Ctx`].

use crate::rng::Rng;
use crate::time::Instant;
use crate::trace::{Event, NodeId, TraceSink};

pub mod link;

mod drops;
mod fault;
mod frame;
mod serializer;
mod tap;

pub use drops::Drops;
pub use frame::{Frame, FramePool};
pub use serializer::Serializer;
pub use tap::{FrameTap, NoTap, TapDirection};

/// A port of a node, counted from 0. A NIC has port 0 only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PortId(pub u16);

/// What a node may reach of the world, handed to every call.
pub struct Ctx<'a> {
    /// The instant of this call, never earlier than that of the call before.
    pub now: Instant,
    /// Which node is being called, for its trace events.
    pub node: NodeId,
    /// The node's own seeded random stream.
    pub rng: &'a mut Rng,
    /// Where frames come from and go back to.
    pub frames: &'a mut FramePool,
    /// Where events go.
    pub trace: &'a mut dyn TraceSink,
}

impl Ctx<'_> {
    /// Records `event` of this node at the instant of this call.
    pub fn record(&mut self, event: Event) {
        self.trace.record(self.now, self.node, &event);
    }

    /// Records the event that `event` builds, when packets are being traced.
    pub fn record_packet(&mut self, event: impl FnOnce() -> Event) {
        if self.trace.wants_packets() {
            self.record(event());
        }
    }
}

/// A frame whose last bit leaves `port` at the instant of the call.
#[derive(Debug)]
pub struct Transmit {
    /// The port it leaves by.
    pub port: PortId,
    /// The frame, from the destination MAC address up to the last byte before the FCS.
    pub frame: Frame,
}

/// A NIC or a switch.
///
/// The order of calls:
///
/// 1. The driver calls `handle_frame` or `handle_timeout` (or, on a NIC, posts
///    work) with the instant at which it happens. `handle_timeout` is due when
///    `poll_timeout` says so; calling it earlier does nothing.
/// 2. After any such call the driver calls `poll_transmit` with the same
///    instant until it gives `None`.
/// 3. Then it reads `poll_timeout`.
///
/// Before any such call it says with `handle_link_state` which links have gone
/// down or up since the call before ([`link::LinkWatch`] knows).
///
/// Time never goes back between calls. A late driver makes up for it: it calls
/// `handle_timeout` once for every deadline that has passed, in order, each with
/// `now` = that deadline, before it hands over frames. No call blocks, allocates
/// per packet in the steady state, or panics on bytes from the network.
///
/// Serialization at the port's rate happens inside the node: a transmitted frame
/// is given out when its last bit leaves. Propagation delay and faults belong to
/// the link behind the port.
pub trait Node {
    /// A frame has arrived whole at `port`. The node owns it and gives its
    /// buffer back to [`Ctx::frames`] when it is done with it.
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, port: PortId, frame: Frame);

    /// The instant that `poll_timeout` named has come.
    fn handle_timeout(&mut self, ctx: &mut Ctx<'_>);

    /// The link that the node sends on behind `port` went down, or up again, not
    /// after `ctx.now` and after the call before. All links are up at first.
    // spec: SW-13
    fn handle_link_state(&mut self, _ctx: &mut Ctx<'_>, _port: PortId, _up: bool) {}

    /// The next frame whose last bit leaves at `ctx.now`.
    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit>;

    /// When the node next wants `handle_timeout`; `None` when it waits for frames only.
    // spec: TIME-1
    fn poll_timeout(&self) -> Option<Instant>;
}
