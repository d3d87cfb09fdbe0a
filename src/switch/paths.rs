//! The port by which a packet leaves.

use super::{Switch, TrafficClass};
use crate::node::{Ctx, PortId};
use crate::wire::frame::FrameView;

impl Switch {
    /// The port by which a packet of `class` leaves.
    // spec: SW-1, SW-12, SW-14
    pub(super) fn egress(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: FrameView<'_>,
        class: TrafficClass,
    ) -> Option<PortId> {
        let set = self.routes.towards(packet.destination())?;
        let ports = &self.routes.sets()[set];
        if let [port] = ports[..] {
            return Some(port);
        }
        if let Some(slot) = self.flowlets.slot(set, self.hasher.hash(packet)) {
            let kept = self.flowlets.kept(slot, ctx.now);
            let port = kept.or_else(|| self.least_busy(ctx, set, class))?;
            self.flowlets.take(slot, port, ctx.now);
            return Some(port);
        }
        let member = self.hasher.member(packet, ports.len())?;
        Some(ports[member])
    }

    /// The port of `set` with the least to send, one of several at random; where
    /// the switch cares, one of those that `class` may leave by, if there is one.
    // spec: SW-14
    fn least_busy(&self, ctx: &mut Ctx<'_>, set: usize, class: TrafficClass) -> Option<PortId> {
        let pfc_aware = self.attributes.paths.pfc_aware;
        let cost = |id: PortId| {
            let paused = self.ports[usize::from(id.0)].is_paused(class, ctx.now);
            (pfc_aware && paused, self.buffer.port_egress(id))
        };
        let ports = &self.routes.sets()[set];
        let least = ports.iter().map(|id| cost(*id)).min()?;
        let equal = || ports.iter().copied().filter(|id| cost(*id) == least);
        let drawn = ctx.rng.below(equal().count() as u64);
        equal().nth(drawn as usize)
    }
}
