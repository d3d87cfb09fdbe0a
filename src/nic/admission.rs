//! Who gets a receiving side, and when it is taken away again.

use super::Nic;
use super::responder::Responder;
use super::responders::Room;
use crate::node::Ctx;
use crate::trace::{QpAddress, QpEventKind};
use crate::wire::neth::NackReason;
use crate::wire::packet::Packet;
use crate::wire::psn::{Psn, PsnExt};
use crate::wire::qpn::Qpn;

impl Nic {
    /// Makes the receiving side for the peer's QP `remote` that `packet`, its
    /// first to arrive, asks for. At a limit another makes way, or the packet is
    /// refused.
    ///
    /// # Errors
    /// The cause for which the packet is dropped.
    // spec: REL-1, QP-5
    pub(super) fn admit(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Packet<'_>,
        remote: QpAddress,
        first: Psn,
    ) -> Result<Qpn, &'static str> {
        if !self.responders.allows(remote.ip) {
            return Err("peer_not_allowed");
        }
        if self.next_hops.to(remote.ip).is_none() {
            return Err("no_next_hop");
        }
        match self.responders.room_for(remote.ip) {
            Room::Free => {}
            Room::Closing(qpn) => {
                self.close_responder(ctx, qpn);
            }
            Room::None => {
                // spec: W-11
                if self.responders.may_tell_refusal(ctx.now) {
                    self.queue_nack(packet, remote, Qpn::NONE, NackReason::NoResource);
                }
                return Err("no_resource");
            }
        }
        self.create_responder(ctx, remote, first)
    }

    // spec: QP-5, QP-8
    fn create_responder(
        &mut self,
        ctx: &mut Ctx<'_>,
        remote: QpAddress,
        first: Psn,
    ) -> Result<Qpn, &'static str> {
        let qpn = self.allocate_qpn().ok_or("no_qp_number")?;
        let local = QpAddress { ip: self.config.ip, qpn };
        let range = self.config.attributes.max_psn_range;
        let responder = Responder::new(local, remote, PsnExt::first(first), range);
        self.responders.insert(responder, ctx.now);
        self.groups.join_receiving(remote.ip, ctx.now);
        self.counters.qp_created += 1;
        self.emit(ctx, QpEventKind::QpCreated, (local, remote), None);
        Ok(qpn)
    }

    /// Closes the receiving sides that have been idle for their time, complete or not.
    // spec: REL-1
    pub(super) fn close_idle(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(qpn) = self.responders.idle_too_long(ctx.now) {
            self.close_responder(ctx, qpn);
        }
    }
}
