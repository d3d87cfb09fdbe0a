//! Into a queue and out of it: charges, trims, marks and drops.

use super::buffer::Fate;
use super::port::{Queued, charge};
use super::{Arrival, Switch, TrafficClass};
use crate::config::TrimVictim;
use crate::node::{Ctx, Frame, PortId};
use crate::time::Instant;
use crate::trace::Event;
use crate::wire::frame::set_ce;
use crate::wire::packet::{Ecn, wire_bytes};
use crate::wire::role::Role;
use crate::wire::trim::trim;

impl Switch {
    /// Charges the packet where it came in and offers it to its queue at `to`.
    // spec: SW-6, SW-7, DSCP-4, DSCP-5, DSCP-8
    pub(super) fn offer(&mut self, ctx: &mut Ctx<'_>, to: PortId, arrival: Arrival) {
        let Arrival { frame, from, class, role, ecn, is_mrc } = arrival;
        let counters = &mut self.port(from).counters.classes[class.index()];
        counters.frames_in += 1;
        counters.bytes_in += wire_bytes(frame.len());
        let bytes = charge(&frame);
        let admission = self.buffer.charge_ingress(from, class, bytes);
        if admission.pause {
            self.pause(ctx, ctx.now, from, self.buffer.pool(class));
        }
        if let Some(cause) = admission.refused {
            return self.drop_packet(ctx, from, class, cause, frame);
        }
        let may_trim =
            self.attributes.trimming_enabled && is_mrc && role.is_some_and(Role::is_trimmable);
        let ect = matches!(ecn, Ecn::Ect0 | Ecn::Ect1);
        let queued = Queued { frame, from, ect, may_trim, trimmed_here: false };
        let retransmission = role == Some(Role::TrimmableRtx);
        match self.buffer.charge_egress(to, class, bytes, retransmission) {
            Ok(()) => self.enqueue(ctx, to, class, queued),
            Err(_) if may_trim => {
                let victim = self.victim(ctx, to, class, queued, retransmission);
                self.release_ingress(ctx, ctx.now, victim.from, class, charge(&victim.frame));
                self.trim(ctx, to, class, victim);
            }
            Err(cause) => {
                self.release_ingress(ctx, ctx.now, from, class, bytes);
                self.drop_packet(ctx, to, class, cause, queued.frame);
            }
        }
    }

    /// Which packet is trimmed for `arriving`, which has no room at `to`: itself,
    /// or one whose place it takes.
    // spec: SW-17
    fn victim(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: PortId,
        class: TrafficClass,
        arriving: Queued,
        retransmission: bool,
    ) -> Queued {
        if self.attributes.trim_victim == TrimVictim::Arriving || ctx.rng.below(2) == 0 {
            return arriving;
        }
        let Self { ports, buffer, .. } = self;
        let newest = ports[usize::from(to.0)].newest(class).filter(|newest| newest.may_trim);
        let Some(newest) = newest else { return arriving };
        let (bytes, released) = (charge(&arriving.frame), charge(&newest.frame));
        if !buffer.exchange(to, class, bytes, released, retransmission) {
            return arriving;
        }
        core::mem::replace(newest, arriving)
    }

    fn enqueue(&mut self, ctx: &mut Ctx<'_>, to: PortId, class: TrafficClass, queued: Queued) {
        self.port(to).enqueue(class, queued);
        self.send_soon(ctx, ctx.now, to);
    }

    /// Cuts the packet of `class`, which is charged nowhere, to its headers and
    /// offers these to `to`.
    // spec: SW-16, DSCP-5
    fn trim(&mut self, ctx: &mut Ctx<'_>, to: PortId, class: TrafficClass, mut queued: Queued) {
        let faces_nic = self.port(to).config.faces_nic;
        let role = if faces_nic { Role::TrimmedLastHop } else { Role::Trimmed };
        let dscp = self.attributes.codepoints.dscp(role);
        if trim(&mut queued.frame, dscp, self.attributes.trim_ip_length).is_err() {
            return self.drop_packet(ctx, to, class, "queue_full", queued.frame);
        }
        ctx.record(Event::Trimmed { port: to.0 });
        self.port(to).counters.trim += 1;
        let (class, bytes) = (TrafficClass::of_role(Some(role)), charge(&queued.frame));
        if !self.charge_both(queued.from, to, class, bytes) {
            self.port(to).counters.trim_drop += 1;
            return self.drop_packet(ctx, to, class, "trim_drop", queued.frame);
        }
        self.enqueue(ctx, to, class, Queued { may_trim: false, trimmed_here: true, ..queued });
    }

    /// Charges what a trim left of a packet; no class is lossless where packets
    /// are trimmed.
    fn charge_both(&mut self, from: PortId, to: PortId, class: TrafficClass, bytes: u64) -> bool {
        if self.buffer.charge_ingress(from, class, bytes).refused.is_some() {
            return false;
        }
        let fits = self.buffer.charge_egress(to, class, bytes, false).is_ok();
        if !fits {
            self.buffer.release_ingress(from, class, bytes);
        }
        fits
    }

    /// Marks a packet that starts to leave, if its queue has been long.
    // spec: SW-11
    pub(super) fn mark(
        &mut self,
        ctx: &mut Ctx<'_>,
        port: PortId,
        class: TrafficClass,
        queued: &mut Queued,
    ) {
        let faces_nic = self.port(port).config.faces_nic;
        if !queued.ect || !self.marker.works(faces_nic) {
            return;
        }
        let pool = self.buffer.pool(class);
        let mean = self.buffer.mean_egress(port, pool);
        let limit = self.buffer.static_limit(port, pool);
        if self.marker.marks(mean, limit, ctx.rng) && set_ce(&mut queued.frame).is_ok() {
            let counters = &mut self.port(port).counters;
            counters.marked += 1;
            counters.classes[class.index()].marked += 1;
        }
    }

    /// A packet has left by `port`: its charges end.
    // spec: SW-3, SW-8
    pub(super) fn packet_left(
        &mut self,
        ctx: &mut Ctx<'_>,
        now: Instant,
        port: PortId,
        class: TrafficClass,
        queued: &Queued,
    ) {
        let bytes = charge(&queued.frame);
        self.buffer.count(port, class, Fate::Sent(bytes));
        self.buffer.release_egress(port, class, bytes);
        self.release_ingress(ctx, now, queued.from, class, bytes);
    }

    // spec: SW-8
    fn release_ingress(
        &mut self,
        ctx: &mut Ctx<'_>,
        now: Instant,
        from: PortId,
        class: TrafficClass,
        bytes: u64,
    ) {
        if self.buffer.release_ingress(from, class, bytes) {
            self.resume(ctx, now, from, self.buffer.pool(class));
        }
    }

    /// Drops a packet for want of room at `port`.
    // spec: SW-19
    fn drop_packet(
        &mut self,
        ctx: &mut Ctx<'_>,
        port: PortId,
        class: TrafficClass,
        cause: &'static str,
        frame: Frame,
    ) {
        self.port(port).counters.classes[class.index()].drops.count(cause);
        self.buffer.count(port, class, Fate::Dropped(cause));
        self.discard(ctx, port, cause, frame);
    }

    pub(super) fn discard(
        &mut self,
        ctx: &mut Ctx<'_>,
        at: PortId,
        cause: &'static str,
        frame: Frame,
    ) {
        self.drops.count(cause);
        self.port(at).counters.drops.count(cause);
        ctx.record(Event::Drop { cause });
        ctx.frames.give(frame);
    }
}
