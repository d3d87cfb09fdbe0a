//! The port: packets become frames and leave.

use super::Nic;
use super::class::Class;
use super::egress::{DataPacket, Departing, Next};
use super::requester::Requester;
use crate::node::{Ctx, Frame};
use crate::trace::{Direction, Event, PacketEvent, QpAddress};
use crate::wire::bth::Bth;
use crate::wire::mac::MacPair;
use crate::wire::meth::Meth;
use crate::wire::opcode::Kind;
use crate::wire::packet::{Body, Ecn, Packet, wire_bytes};
use crate::wire::pfc::Pfc;
use crate::wire::qpn::Qpn;
use crate::wire::reth::Reth;
use crate::wire::role::Role;
use crate::wire::tseth::Tseth;

impl Nic {
    /// The next frame whose last bit leaves at `ctx.now`; the port goes on with
    /// the one behind it.
    // spec: WIRE-7, WIRE-8, TIME-7
    pub(super) fn next_departed(&mut self, ctx: &mut Ctx<'_>) -> Option<Frame> {
        loop {
            if let Some(departing) = self.egress.port.finish(ctx.now) {
                return Some(self.departed(ctx, departing));
            }
            if !self.egress.port.is_idle() {
                return None;
            }
            let next = self.egress.take_next(ctx.now)?;
            self.start(ctx, next);
        }
    }

    // spec: WIRE-8, SEG-7, PB-9
    fn departed(&mut self, ctx: &mut Ctx<'_>, departing: Departing) -> Frame {
        if let Some((class, bytes)) = departing.charged {
            self.release_egress(ctx.now, class, bytes);
        }
        if let Some((qpn, psn, transmission)) = departing.timed {
            let now = ctx.now;
            self.with_requester(qpn, |requester, env| {
                requester.on_serialized(env, psn, transmission, now);
            });
        }
        if let Some(event) = departing.event {
            self.count_sent(event.kind);
            ctx.record_packet(|| Event::Packet(event));
        }
        departing.frame
    }

    fn count_sent(&mut self, kind: Kind) {
        self.counters.pkts_sent += 1;
        match kind {
            Kind::Write => self.counters.write_pkts_sent += 1,
            Kind::Ack => self.counters.ack_pkts_sent += 1,
            Kind::Sack => self.counters.sack_pkts_sent += 1,
            Kind::Nack => self.counters.nack_pkts_sent += 1,
            Kind::Probe | Kind::Unsupported => {}
        }
    }

    /// The port starts to send what is next.
    fn start(&mut self, ctx: &mut Ctx<'_>, next: Next) {
        let departing = match next {
            Next::Control(packet, bytes) => {
                Some(self.emit_frame(ctx, &packet, (Class::Control, bytes), None))
            }
            Next::Data(data) => {
                let built = self.build_data(ctx, &data);
                if built.is_none() {
                    self.release_egress(ctx.now, Class::Data, data.reserved);
                }
                built
            }
            Next::Pfc(pfc) => Some(self.emit_pfc(ctx, &pfc)),
        };
        if let Some(departing) = departing {
            let bytes = wire_bytes(departing.frame.len());
            self.egress.port.start(ctx.now, bytes, departing);
        }
    }

    /// The frame of a packet; `data` is what it was built from, when it is data.
    fn emit_frame(
        &self,
        ctx: &mut Ctx<'_>,
        packet: &Packet<'_>,
        charged: (Class, u64),
        data: Option<&DataPacket>,
    ) -> Departing {
        let cause = data.and_then(|data| data.outgoing.cause);
        let qpn = data.map_or(Qpn::NONE, |data| data.qpn);
        let timed = data.and_then(|data| {
            data.outgoing.transmission.map(|number| (data.qpn, data.outgoing.psn, number))
        });
        let mut frame = ctx.frames.take();
        // There was a way when the QP was made.
        let next_hop = self.next_hops.to(packet.destination);
        let destination = next_hop.unwrap_or(self.config.macs.destination);
        let macs = MacPair { destination, ..self.config.macs };
        packet.emit(&self.format, macs, &mut frame);
        let direction = if cause.is_some() { Direction::ReTx } else { Direction::Tx };
        let event = PacketEvent {
            direction,
            kind: packet.bth.opcode.kind(),
            local: QpAddress { ip: packet.source, qpn },
            remote: QpAddress { ip: packet.destination, qpn: packet.bth.destination_qp },
            psn: packet.bth.psn,
            wire_bytes: wire_bytes(frame.len()) as u32,
            entropy: packet.entropy,
            role: packet.role,
            ack_request: packet.bth.ack_request,
            cause,
        };
        Departing { frame, charged: Some(charged), timed, event: Some(event) }
    }

    // spec: PB-13
    fn emit_pfc(&mut self, ctx: &mut Ctx<'_>, pfc: &Pfc) -> Departing {
        for quanta in pfc.quanta.iter().flatten() {
            match quanta {
                0 => self.counters.pfc_resumes_sent += 1,
                _ => self.counters.pfc_pauses_sent += 1,
            }
        }
        let mut frame = ctx.frames.take();
        pfc.emit(self.config.macs.source, &mut frame);
        Departing { frame, charged: None, timed: None, event: None }
    }

    fn build_data(&self, ctx: &mut Ctx<'_>, data: &DataPacket) -> Option<Departing> {
        let requester = self.requesters.get(&data.qpn).filter(|q| q.error().is_none())?;
        let segment = data.outgoing.segment;
        let source = segment.work.local_va + u64::from(segment.offset);
        let payload = match segment.length {
            0 => &[],
            length => self.memory.read(segment.work.lkey, source, length as usize)?,
        };
        let packet = self.data_packet(requester, data, payload);
        Some(self.emit_frame(ctx, &packet, (Class::Data, data.reserved), Some(data)))
    }

    /// The packet with all its headers.
    // spec: WIRE-1, WIRE-3, WIRE-4, WIRE-5, W-6, W-8, SEG-3, QP-6
    fn data_packet<'a>(
        &self,
        requester: &Requester,
        data: &DataPacket,
        payload: &'a [u8],
    ) -> Packet<'a> {
        let DataPacket { outgoing, .. } = data;
        let segment = outgoing.segment;
        let connect = data.remote_qpn == Qpn::NONE;
        let role = self.data_role(outgoing.cause.is_some());
        let since_first = outgoing.psn.offset_from(requester.first_psn());
        Packet {
            source: self.config.ip,
            destination: requester.remote().ip,
            role: Some(role),
            dscp: self.format.codepoints.dscp(role),
            ecn: Ecn::Ect0,
            entropy: data.entropy,
            bth: Bth {
                opcode: segment.opcode,
                destination_qp: if connect { data.qpn } else { data.remote_qpn },
                ack_request: data.ack_request,
                retransmission: outgoing.cause.is_some(),
                timestamp_present: data.timestamp.is_some(),
                connect,
                psn: outgoing.psn.wire(),
            },
            body: Body::Write {
                meth: Meth {
                    rqmsn: if connect { since_first as u16 } else { 0 },
                    msn: segment.msn,
                },
                tseth: data.timestamp.map(|timestamp| Tseth { timestamp }),
                reth: Reth {
                    va: segment.work.remote_va.wrapping_add(u64::from(segment.offset)),
                    rkey: segment.work.rkey,
                    dma_length: segment.work.length,
                },
                payload,
            },
        }
    }

    /// The role of a data packet.
    // spec: DSCP-1, DSCP-2, NACK-10
    fn data_role(&self, retransmission: bool) -> Role {
        let attributes = &self.config.attributes;
        match (retransmission, attributes.trimming_enabled) {
            (true, _) if attributes.use_distinct_dscp_for_retransmits => Role::TrimmableRtx,
            (_, true) => Role::Trimmable,
            (_, false) => Role::NoTrim,
        }
    }
}
