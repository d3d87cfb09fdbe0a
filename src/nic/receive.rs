//! What arrives at the NIC.

use super::Nic;
use super::class::Class;
use super::received::Arrival;
use super::requester::{NackNews, Refused};
use super::responder::{Condition, DataArrival, Response};
use super::rtt::RoundTrip;
use super::tombstones::Tombstone;
use crate::node::Ctx;
use crate::trace::{Direction, Event, PacketEvent, QpAddress, QpEventKind, RttSample};
use crate::wire::aeth::Aeth;
use crate::wire::bth::Bth;
use crate::wire::cc_state::CcState;
use crate::wire::mac::EthernetView;
use crate::wire::meth::Meth;
use crate::wire::neth::{NackReason, Neth};
use crate::wire::opcode::{Kind, Opcode};
use crate::wire::packet::{Body, Ecn, Packet, wire_bytes};
use crate::wire::pfc::Pfc;
use crate::wire::psn::{Psn, PsnExt};
use crate::wire::qpn::Qpn;
use crate::wire::reth::Reth;
use crate::wire::role::Role;
use crate::wire::seth::{SackSubject, Seth};

/// A data packet, whole or trimmed, that has found its place.
struct Data<'a> {
    packet: &'a Packet<'a>,
    meth: Meth,
    /// What a trimmed packet has lost.
    rest: Option<(Reth, Option<u16>, &'a [u8])>,
}

/// Where a data packet belongs.
enum Owner {
    Live(Qpn),
    Closed(Tombstone),
}

impl Nic {
    // spec: W-14, REL-3, RX-1, PB-11
    pub(super) fn receive(&mut self, ctx: &mut Ctx<'_>, frame: &[u8]) {
        self.release_written(ctx.now);
        if Pfc::is_pfc(frame) {
            return self.receive_pfc(ctx.now, frame);
        }
        if !self.is_for_us(frame) {
            return self.drops.count("other_mac");
        }
        let packet = match Packet::parse(frame, &self.format) {
            Ok(packet) => packet,
            Err(error) => return self.drops.count(error.counter()),
        };
        if packet.destination != self.config.ip {
            return self.drops.count("other_ip");
        }
        let (class, bytes) = (Class::of(packet.role), wire_bytes(frame.len()));
        if !self.charge_ingress(ctx.now, class, bytes) {
            return self.drops.count(match class {
                Class::Data => "ingress_data_full",
                Class::Control => "ingress_control_full",
            });
        }
        self.counters.pkts_rcvd += 1;
        self.trace_received(ctx, &packet, bytes);
        let written = u64::from(self.dispatch(ctx, &packet));
        if written == 0 || self.pcie.write(ctx.now, written, (class, bytes)) {
            self.release_ingress(class, bytes);
        }
    }

    /// Handles a packet by its kind; gives the payload bytes that go to the host.
    // spec: PCIE-7, PB-2
    fn dispatch(&mut self, ctx: &mut Ctx<'_>, packet: &Packet<'_>) -> u32 {
        match packet.body {
            Body::Write { meth, tseth, reth, payload } => {
                let rest = Some((reth, tseth.map(|t| t.timestamp), payload));
                return self.receive_data(ctx, &Data { packet, meth, rest });
            }
            Body::Trimmed { meth } => {
                return self.receive_data(ctx, &Data { packet, meth, rest: None });
            }
            Body::Ack(_) | Body::Sack(..) | Body::Nack(_) => self.receive_control(ctx, packet),
            Body::Probe(_) => self.drops.count("unexpected_probe"),
        }
        0
    }

    /// Whether a frame is addressed to this NIC's own MAC address.
    fn is_for_us(&self, frame: &[u8]) -> bool {
        EthernetView::new(frame)
            .is_ok_and(|ethernet| ethernet.macs().destination == self.config.macs.source)
    }

    fn trace_received(&self, ctx: &mut Ctx<'_>, packet: &Packet<'_>, wire_bytes: u64) {
        ctx.record_packet(|| {
            Event::Packet(PacketEvent {
                direction: Direction::Rx,
                kind: packet.bth.opcode.kind(),
                local: QpAddress { ip: packet.destination, qpn: packet.bth.destination_qp },
                remote: QpAddress { ip: packet.source, qpn: Qpn::NONE },
                psn: packet.bth.psn,
                wire_bytes: wire_bytes as u32,
                entropy: packet.entropy,
                role: packet.role,
                ack_request: packet.bth.ack_request,
                cause: None,
            })
        });
    }

    /// Gives the payload bytes that are written to memory.
    // spec: RX-2, RX-3, RX-4
    fn receive_data(&mut self, ctx: &mut Ctx<'_>, data: &Data<'_>) -> u32 {
        match self.find_owner(ctx, data) {
            Ok(Owner::Live(qpn)) => {
                let written = self.receive_for(ctx, qpn, data);
                self.responders.on_heard(qpn, ctx.now);
                return written;
            }
            Ok(Owner::Closed(stone)) => self.receive_late(&stone, data.packet),
            Err(cause) => self.drops.count(cause),
        }
        0
    }

    /// The receiving side that a data packet belongs to; its first packet makes one.
    // spec: RX-2, QP-5, QP-6, W-6, REL-3, REL-4
    fn find_owner(&mut self, ctx: &mut Ctx<'_>, data: &Data<'_>) -> Result<Owner, &'static str> {
        let (bth, source) = (&data.packet.bth, data.packet.source);
        let qpn = bth.destination_qp;
        if bth.connect {
            let remote = QpAddress { ip: source, qpn };
            if qpn.is_reserved() {
                return Err("reserved_qp");
            }
            if let Some(local) = self.responders.by_remote(remote) {
                return Ok(Owner::Live(local));
            }
            if let Some(stone) = self.tombstones.by_remote(remote) {
                return Ok(Owner::Closed(*stone));
            }
            let first = bth.psn.minus(u32::from(data.meth.rqmsn));
            return self.admit(ctx, data.packet, remote, first).map(Owner::Live);
        }
        if let Some(responder) = self.responders.get(qpn) {
            let ours = responder.remote().ip == source;
            return if ours { Ok(Owner::Live(qpn)) } else { Err("bad_source") };
        }
        match self.tombstones.by_local(qpn) {
            Some(stone) if stone.remote.ip == source => Ok(Owner::Closed(*stone)),
            Some(_) => Err("bad_source"),
            None => Err("unknown_qp"),
        }
    }

    /// A data packet of a live receiving side: out of window, trimmed,
    /// duplicate or new, in this order. Gives the payload bytes that are written.
    // spec: RX-3, RX-4, NACK-2, NACK-3, NACK-6
    fn receive_for(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, data: &Data<'_>) -> u32 {
        let Some(responder) = self.responders.get(qpn) else { return 0 };
        let psn = PsnExt::nearest(data.packet.bth.psn, responder.cumulative());
        if psn < responder.first_psn() {
            self.drops.count("psn_before_first");
            return 0;
        }
        let (remote, arrival) = (responder.remote(), responder.classify(psn));
        if arrival == Arrival::OutOfWindow {
            self.drops.count("psn_out_of_window");
            self.queue_nack(data.packet, remote, qpn, NackReason::PsnOutOfWindow);
            return 0;
        }
        let Some((reth, timestamp, payload)) = data.rest else {
            self.receive_trimmed(data.packet, psn, remote, qpn);
            return 0;
        };
        self.counters.write_pkts_rcvd += 1;
        let wire_bytes = data.packet.wire_len(&self.format) as u32;
        let arrived = data_arrival(data.packet, wire_bytes, psn, &reth, timestamp, payload);
        self.counters.ecn_marked_rcvd += u64::from(arrived.congestion_marked);
        if arrival == Arrival::Duplicate {
            self.receive_duplicate(qpn, &arrived);
            return 0;
        }
        // spec: REL-2
        let in_message = arrived.payload <= reth.dma_length;
        if !in_message || !self.memory.remote_write(reth.rkey, reth.va, payload) {
            self.drops.count("remote_access");
            self.queue_nack(data.packet, remote, qpn, NackReason::UnexpectedEvent);
            return 0;
        }
        self.counters.out_of_order_events += u64::from(arrival == Arrival::OutOfOrder);
        self.accept(ctx, qpn, &arrived);
        arrived.payload
    }

    // spec: RX-7
    fn receive_duplicate(&mut self, qpn: Qpn, arrived: &DataArrival) {
        self.counters.dup_events += 1;
        if let Some(responder) = self.responders.get_mut(qpn) {
            let response = responder.accept_duplicate(arrived);
            self.respond(qpn, arrived, response);
        }
    }

    // spec: NACK-2, NACK-3, NACK-4
    fn receive_trimmed(&mut self, packet: &Packet<'_>, psn: PsnExt, remote: QpAddress, qpn: Qpn) {
        if let Some(responder) = self.responders.get_mut(qpn) {
            responder.note_trimmed(psn);
        }
        self.counters.trimmed_pkts_rcvd += 1;
        if self.config.attributes.trimming_enabled {
            let reason = match packet.role {
                Some(Role::TrimmedLastHop) => NackReason::TrimmedLastHop,
                _ => NackReason::Trimmed,
            };
            self.queue_nack(packet, remote, qpn, reason);
        }
    }

    // spec: RX-8, DONE-1
    fn accept(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, arrived: &DataArrival) {
        let Some(responder) = self.responders.get_mut(qpn) else { return };
        let response = responder.accept(arrived);
        self.counters.write_bytes_rcvd += u64::from(arrived.payload);
        while let Some(responder) = self.responders.get_mut(qpn)
            && let Some((number, bytes)) = responder.pop_whole()
        {
            let ends = (responder.local(), responder.remote());
            self.counters.messages_rcvd += 1;
            let message = Some((u64::from(number), bytes));
            self.emit(ctx, QpEventKind::RecvComplete, ends, message);
        }
        self.respond(qpn, arrived, response);
    }

    /// Queues what an arrival draws: the SACK first, then the ACK.
    // spec: ACK-1, ACK-3, ACK-6, ACK-10, SACK-1, SACK-9, W-5, RTT-3, PB-14
    fn respond(&mut self, qpn: Qpn, arrived: &DataArrival, response: Response) {
        let Some(responder) = self.responders.get_mut(qpn) else { return };
        let (remote, cumulative) = (responder.remote(), responder.cumulative().wire());
        let messages = responder.messages();
        if response.sack {
            let ahead = u64::from(arrived.wire_bytes) + self.egress.control_waiting();
            let condition = Condition {
                service: self.egress.port.time_for(ahead),
                penalty: self.ingress.penalty(),
                restore_cwnd: self.config.attributes.restore_cwnd,
            };
            let (seth, cc_state) = responder.sack(arrived, condition);
            let bth = control_bth(Opcode::Sack, remote.qpn, cumulative, arrived.retransmission);
            let body = Body::Sack(seth, cc_state);
            self.queue_control(remote, arrived.entropy, bth, body);
        }
        if response.ack {
            self.queue_ack(remote, cumulative, messages);
        }
    }

    fn queue_ack(&mut self, remote: QpAddress, cumulative: Psn, messages: u32) {
        let entropy = self.next_entropy(remote.ip);
        let bth = control_bth(Opcode::Ack, remote.qpn, cumulative, false);
        let body = Body::Ack(Aeth { msn: messages & 0xff_ffff });
        self.queue_control(remote, entropy, bth, body);
    }

    /// Queues a NACK for `packet`; `qpn` is the receiving side's number, or
    /// [`Qpn::NONE`] when there is none.
    // spec: NACK-4, NACK-7, W-5, W-11, W-12
    pub(super) fn queue_nack(
        &mut self,
        packet: &Packet<'_>,
        remote: QpAddress,
        qpn: Qpn,
        reason: NackReason,
    ) {
        let psn = packet.bth.psn;
        let bth = control_bth(Opcode::Nack, remote.qpn, psn, packet.bth.retransmission);
        let timestamp = match packet.body {
            Body::Write { tseth: Some(tseth), .. } => tseth.timestamp,
            _ => 0,
        };
        let neth = Neth { reason, entropy: packet.entropy, source_qp: qpn, psn, timestamp };
        self.queue_control(remote, packet.entropy, bth, Body::Nack(neth));
    }

    // spec: DSCP-1, WIRE-5, WIRE-6
    fn queue_control(&mut self, remote: QpAddress, entropy: u16, bth: Bth, body: Body<'static>) {
        let queued = self.egress.queue_control(Packet {
            source: self.config.ip,
            destination: remote.ip,
            role: Some(Role::Control),
            dscp: self.format.codepoints.dscp(Role::Control),
            ecn: Ecn::NotEct,
            entropy,
            bth,
            body,
        });
        if !queued {
            self.drops.count("egress_control_full");
        }
    }

    /// A data packet of a receiving side that is closed. Trimmed or not, one that
    /// is sent again draws the final ACK: the side had it, so a NACK would fetch
    /// what nobody lacks. It need not be the last one: when a SACK has listed that
    /// and the ACK of what filled a gap before it is lost, only the latter is
    /// sent again.
    // spec: REL-4, W-6
    fn receive_late(&mut self, stone: &Tombstone, packet: &Packet<'_>) {
        self.drops.count("late_data");
        let psn = PsnExt::nearest(packet.bth.psn, stone.last);
        if psn > stone.last {
            let qpn = stone.local.qpn;
            self.queue_nack(packet, stone.remote, qpn, NackReason::UnexpectedEvent);
        } else if psn >= stone.first && packet.bth.retransmission {
            self.queue_ack(stone.remote, stone.last.wire(), stone.messages);
        }
    }

    // spec: W-15, REL-3, RTO-11
    fn receive_control(&mut self, ctx: &mut Ctx<'_>, packet: &Packet<'_>) {
        let qpn = packet.bth.destination_qp;
        let Some(requester) = self.requesters.get(&qpn) else {
            let late = self.numbers.was_given(qpn) && !self.responders.contains(qpn);
            return self.drops.count(if late { "late_control" } else { "unknown_qp" });
        };
        if requester.remote().ip != packet.source {
            return self.drops.count("bad_source");
        }
        if requester.error().is_some() {
            return self.drops.count("qp_in_error");
        }
        let taken = match &packet.body {
            Body::Ack(_) => self.receive_ack(ctx, qpn, packet.bth.psn),
            // Nothing here sends probes: it answers none.
            Body::Sack(Seth { subject: SackSubject::Probe { .. }, .. }, _) => {
                return self.drops.count("unexpected_probe_response");
            }
            Body::Sack(seth, cc_state) => {
                self.receive_sack(ctx, qpn, (seth, cc_state), packet.bth.retransmission)
            }
            Body::Nack(neth) => self.receive_nack(ctx, qpn, neth, packet.bth.retransmission),
            _ => Ok(()),
        };
        if taken == Err(Refused) {
            return self.drops.count("psn_never_sent");
        }
        self.activate(qpn);
        self.request_pass(ctx.now);
    }

    // spec: ACK-7, ACK-9
    fn receive_ack(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, psn: Psn) -> Result<(), Refused> {
        let now = ctx.now;
        let acknowledged = self.with_requester(qpn, |qp, env| qp.on_ack(env, psn, now));
        self.counters.ack_pkts_rcvd += 1;
        self.complete_messages(ctx, qpn, acknowledged.ok_or(Refused)??);
        Ok(())
    }

    // spec: SACK-8, SACK-9
    fn receive_sack(
        &mut self,
        ctx: &mut Ctx<'_>,
        qpn: Qpn,
        sack: (&Seth, &CcState),
        retransmission: bool,
    ) -> Result<(), Refused> {
        self.counters.sack_pkts_rcvd += 1;
        let now = ctx.now;
        let sample = self.with_requester(qpn, |qp, env| qp.on_sack(env, sack, retransmission, now));
        self.report_window(ctx, qpn);
        self.trace_rtt(ctx, qpn, Kind::Sack, sample.ok_or(Refused)??);
        Ok(())
    }

    // spec: NACK-7, NACK-11, RTO-9
    fn receive_nack(
        &mut self,
        ctx: &mut Ctx<'_>,
        qpn: Qpn,
        neth: &Neth,
        retransmission: bool,
    ) -> Result<(), Refused> {
        self.counters.nack_pkts_rcvd += 1;
        let now = ctx.now;
        let news = self.with_requester(qpn, |qp, env| qp.on_nack(env, neth, retransmission, now));
        self.report_window(ctx, qpn);
        match news.ok_or(Refused)?? {
            NackNews::Queued(sample) => self.trace_rtt(ctx, qpn, Kind::Nack, sample),
            NackNews::Ignored => {}
            NackNews::Fatal(reason) => self.fail_qp(ctx, qpn, reason),
        }
        Ok(())
    }

    /// A packet of this kind gave a sample, or none.
    fn trace_rtt(&self, ctx: &mut Ctx<'_>, qpn: Qpn, by: Kind, sample: Option<RoundTrip>) {
        if let (Some(RoundTrip { psn, time }), Some(qp)) = (sample, self.requesters.get(&qpn)) {
            let (local, remote, psn) = (qp.local(), qp.remote(), psn.wire());
            ctx.record_packet(|| Event::Rtt(RttSample { by, local, remote, psn, rtt: time }));
        }
    }
}

fn data_arrival(
    packet: &Packet<'_>,
    wire_bytes: u32,
    psn: PsnExt,
    reth: &Reth,
    timestamp: Option<u16>,
    payload: &[u8],
) -> DataArrival {
    DataArrival {
        psn,
        payload: payload.len() as u32,
        wire_bytes,
        ends_message: packet.bth.opcode.ends_message(),
        message_bytes: reth.dma_length,
        ack_request: packet.bth.ack_request,
        retransmission: packet.bth.retransmission,
        congestion_marked: packet.ecn == Ecn::Ce,
        entropy: packet.entropy,
        timestamp,
    }
}

/// The BTH of a control packet.
// spec: W-5
fn control_bth(opcode: Opcode, destination_qp: Qpn, psn: Psn, retransmission: bool) -> Bth {
    Bth {
        opcode,
        destination_qp,
        ack_request: false,
        retransmission,
        timestamp_present: false,
        connect: false,
        psn,
    }
}
