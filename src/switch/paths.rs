//! The port by which a packet leaves.

use super::{Switch, TrafficClass};
use crate::config::LinkDownReaction;
use crate::node::{Ctx, PortId};
use crate::wire::frame::FrameView;

impl Switch {
    /// The port by which a packet of `class` leaves; the error is a drop's cause.
    // spec: SW-1, SW-12, SW-13, SW-14
    pub(super) fn egress(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: FrameView<'_>,
        class: TrafficClass,
    ) -> Result<PortId, &'static str> {
        let number = self.routes.towards(packet.destination()).ok_or("no_route")?;
        let set = &self.routes.sets()[number];
        if let [port] = *set.usable() {
            return Ok(port);
        }
        let none = if set.all().is_empty() { "no_route" } else { "next_hop_down" };
        let Some(slot) = self.flowlets.slot(number, || self.hasher.hash(packet)) else {
            return self.hasher.port(packet, set).ok_or(none);
        };
        let kept = self.flowlets.kept(slot, ctx.now).filter(|port| set.is_usable(*port));
        let port = kept.or_else(|| self.least_busy(ctx, set.usable(), class)).ok_or(none)?;
        self.flowlets.take(slot, port, ctx.now);
        Ok(port)
    }

    /// The link that this switch sends on behind `port` went down or up.
    // spec: SW-13
    pub(super) fn link_changed(&mut self, port: PortId, up: bool) {
        if self.attributes.paths.link_down == LinkDownReaction::Remove {
            self.routes.set_usable(port, up);
        }
    }

    /// The one of `ports` with the least to send, one of several at random; where
    /// the switch cares, one of those that `class` may leave by, if there is one.
    // spec: SW-14
    fn least_busy(
        &self,
        ctx: &mut Ctx<'_>,
        ports: &[PortId],
        class: TrafficClass,
    ) -> Option<PortId> {
        let pfc_aware = self.attributes.paths.pfc_aware;
        let cost = |id: PortId| {
            let paused = self.ports[usize::from(id.0)].is_paused(class, ctx.now);
            (pfc_aware && paused, self.buffer.port_egress(id))
        };
        let least = ports.iter().map(|id| cost(*id)).min()?;
        let equal = || ports.iter().copied().filter(|id| cost(*id) == least);
        let drawn = ctx.rng.below(equal().count() as u64);
        equal().nth(drawn as usize)
    }
}
