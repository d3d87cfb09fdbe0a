//! The receiving side of a QP.

use std::collections::BTreeMap;

use super::received::{Arrival, ReceivedPsns};
use crate::time::Duration;
use crate::trace::QpAddress;
use crate::wire::cc_state::CcState;
use crate::wire::psn::PsnExt;
use crate::wire::seth::{PathMark, SackSubject, Seth};
use crate::wire::tseth::TIMESTAMP_STEP_NS;

/// What a data packet tells the receiving side beside its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataArrival {
    /// Its PSN.
    pub psn: PsnExt,
    /// Payload bytes.
    pub payload: u32,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// Whether it is its message's last packet.
    pub ends_message: bool,
    /// Its message's length in bytes.
    pub message_bytes: u32,
    /// The ACK-request flag.
    pub ack_request: bool,
    /// The retransmit flag.
    pub retransmission: bool,
    /// Whether a switch marked it.
    pub congestion_marked: bool,
    /// Its UDP source port.
    pub entropy: u16,
    /// The timestamp it carried.
    pub timestamp: Option<u16>,
}

/// How things stand at the NIC when a SACK is queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// From the packet's arrival to the SACK's departure, at the link's rate.
    pub service: Duration,
    /// The receiver penalty, 0 to 127.
    pub penalty: u8,
    /// Whether the sender may restore its window.
    pub restore_cwnd: bool,
}

impl Condition {
    /// The service time in whole steps of 128 ns, mod 2^16.
    // spec: RTT-3
    fn service_steps(&self) -> u16 {
        (self.service.as_ns() / TIMESTAMP_STEP_NS) as u16
    }
}

/// What an arrival draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// A SACK.
    pub sack: bool,
    /// A cumulative ACK.
    pub ack: bool,
}

/// CC_STATE counts received bytes in units of this.
pub const RECEIVED_UNIT: u64 = 256;

/// The receiving side of a QP.
// spec: QP-1, RX-5
#[derive(Debug)]
pub struct Responder {
    local: QpAddress,
    remote: QpAddress,
    first: PsnExt,
    received: ReceivedPsns,
    max_psn_range: u32,
    /// The highest PSN that was received or arrived trimmed.
    highest: PsnExt,
    /// The last PSN of the last message that is whole.
    whole_through: PsnExt,
    /// Lengths of messages whose last packet has arrived, until each is whole
    /// and has been told.
    ends: BTreeMap<PsnExt, u32>,
    messages: u32,
    since_sack: u32,
    marked_since_sack: bool,
    received_bytes: u64,
}

impl Responder {
    /// Data counts at least this much towards a SACK.
    const COALESCING_MINIMUM: u32 = 1_024;
    /// A SACK is due when the count passes this.
    const COALESCING_LIMIT: u32 = 4_095;
    /// SETH names MaxPSNRange in units of this.
    const RANGE_UNIT: u32 = 128;

    /// A receiving side at `local` for the peer's QP `remote`, whose first PSN is `first`.
    pub fn new(local: QpAddress, remote: QpAddress, first: PsnExt, max_psn_range: u32) -> Self {
        Self {
            local,
            remote,
            first,
            received: ReceivedPsns::new(first, max_psn_range),
            max_psn_range,
            highest: first.prev(),
            whole_through: first.prev(),
            ends: BTreeMap::new(),
            messages: 0,
            since_sack: 0,
            marked_since_sack: false,
            received_bytes: 0,
        }
    }

    /// This end.
    pub fn local(&self) -> QpAddress {
        self.local
    }

    /// The peer's end.
    pub fn remote(&self) -> QpAddress {
        self.remote
    }

    /// The QP's first PSN.
    pub fn first_psn(&self) -> PsnExt {
        self.first
    }

    /// The highest PSN received in order.
    // spec: ACK-1
    pub fn cumulative(&self) -> PsnExt {
        self.received.cumulative()
    }

    /// PSNs held out of order.
    pub fn held(&self) -> u32 {
        self.received.held()
    }

    /// How many messages have arrived whole, of those that were told.
    pub fn messages(&self) -> u32 {
        self.messages
    }

    /// Whether there is neither a gap nor an incomplete message. A trimmed packet
    /// leaves a gap (its sender will send it again), also when it is the first
    /// of its QP; a packet that is refused or out of the window leaves nothing,
    /// so a side that has met no others is settled.
    // spec: REL-1, NACK-2
    pub fn is_settled(&self) -> bool {
        // The highest is at or above the cumulative PSN, which is at or above
        // the end of a whole message: all three are one.
        self.highest == self.whole_through
    }

    /// What `psn` would be if it arrived now.
    pub fn classify(&self, psn: PsnExt) -> Arrival {
        self.received.classify(psn)
    }

    /// A data packet has arrived trimmed.
    // spec: NACK-2
    pub fn note_trimmed(&mut self, psn: PsnExt) {
        self.highest = self.highest.max(psn);
    }

    /// A data packet that was received before has arrived again.
    // spec: RX-7
    pub fn accept_duplicate(&mut self, data: &DataArrival) -> Response {
        let due = self.coalesce(data);
        Response { sack: due || data.ack_request || data.retransmission, ack: data.ack_request }
    }

    /// A data packet whose payload has been written is recorded; the messages
    /// that are whole now are there for [`Self::pop_whole`], which takes them all
    /// before the next packet.
    // spec: RX-6, ACK-2, SACK-2, SACK-3, SACK-4, SACK-5, SACK-6
    pub fn accept(&mut self, data: &DataArrival) -> Response {
        self.received_bytes += u64::from(data.payload);
        self.highest = self.highest.max(data.psn);
        if data.ends_message {
            self.ends.insert(data.psn, data.message_bytes);
        }
        let asked = self.received.insert(data.psn, data.ack_request);
        let whole = self.has_whole();
        let due = self.coalesce(data);
        Response {
            sack: due || data.ack_request || data.retransmission || asked || whole,
            ack: data.ack_request || whole,
        }
    }

    fn has_whole(&self) -> bool {
        self.ends.first_key_value().is_some_and(|(end, _)| *end <= self.cumulative())
    }

    /// The next message that has become whole: its number and its length.
    // spec: RX-8
    pub fn pop_whole(&mut self) -> Option<(u32, u32)> {
        let cumulative = self.cumulative();
        let oldest = self.ends.first_entry().filter(|end| *end.key() <= cumulative)?;
        let number = self.messages;
        self.messages = number.wrapping_add(1);
        self.whole_through = *oldest.key();
        Some((number, oldest.remove()))
    }

    /// Counts a data packet towards the next SACK; true when that is due.
    // spec: SACK-2, W-9
    fn coalesce(&mut self, data: &DataArrival) -> bool {
        self.since_sack =
            self.since_sack.saturating_add(data.payload.max(Self::COALESCING_MINIMUM));
        self.marked_since_sack |= data.congestion_marked;
        self.since_sack > Self::COALESCING_LIMIT
    }

    /// The headers of the SACK that `data` draws.
    // spec: SACK-7, SACK-9, W-9, W-10, RX-7, RTT-2, RTT-3, PB-14
    pub fn sack(&mut self, data: &DataArrival, condition: Condition) -> (Seth, CcState) {
        self.since_sack = 0;
        let marked = core::mem::take(&mut self.marked_since_sack);
        let block = self.received.next_sack_block();
        let behind = data.psn.offset_from(self.cumulative());
        let offset = behind.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16;
        let seth = Seth {
            ce_mark: if marked { PathMark::SkipOnce } else { PathMark::None },
            subject: SackSubject::Data { ack_psn_offset: offset },
            entropy: data.entropy,
            source_qp: self.local.qpn,
            cumulative: self.cumulative().wire(),
            max_psn_range: u8::try_from(self.max_psn_range / Self::RANGE_UNIT).unwrap_or(u8::MAX),
            sack_offset: block.offset,
            bitmap: block.bitmap,
        };
        let units = self.received_bytes.div_ceil(RECEIVED_UNIT);
        let cc_state = CcState {
            // A packet's timestamp is echoed later by the service time, so that the
            // difference to the sender's clock is the sample.
            timestamp_or_service: data
                .timestamp
                .unwrap_or(0)
                .wrapping_add(condition.service_steps()),
            out_of_order: self.held().min(0x7fff) as u16,
            restore_cwnd: condition.restore_cwnd,
            penalty: condition.penalty,
            received_units: (units & 0xff_ffff) as u32,
        };
        (seth, cc_state)
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::wire::psn::Psn;
    use crate::wire::qpn::Qpn;

    fn end(last: u8, qpn: u32) -> QpAddress {
        QpAddress { ip: Ipv4Addr::new(10, 0, 0, last), qpn: Qpn::masked(qpn) }
    }

    fn responder() -> (PsnExt, Responder) {
        let first = PsnExt::first(Psn::masked(0));
        (first, Responder::new(end(2, 20), end(1, 10), first, 1_024))
    }

    fn data(psn: PsnExt, payload: u32) -> DataArrival {
        DataArrival {
            psn,
            payload,
            wire_bytes: payload + 78,
            ends_message: false,
            message_bytes: 100_000,
            ack_request: false,
            retransmission: false,
            congestion_marked: false,
            entropy: 50_000,
            timestamp: None,
        }
    }

    const CALM: Condition = Condition { service: Duration::ZERO, penalty: 0, restore_cwnd: false };
    const NOTHING: Response = Response { sack: false, ack: false };
    const SACK: Response = Response { sack: true, ack: false };
    const BOTH: Response = Response { sack: true, ack: true };

    // spec: SACK-2
    #[test]
    fn a_sack_is_drawn_when_the_count_passes_4095() {
        let (first, mut responder) = responder();
        assert_eq!(responder.accept(&data(first, 4_095)), NOTHING);
        assert_eq!(responder.accept(&data(first.plus(1), 1)), SACK);
        responder.sack(&data(first.plus(1), 1), CALM);
        for psn in 2..5 {
            assert_eq!(responder.accept(&data(first.plus(psn), 1)), NOTHING);
        }
        assert_eq!(responder.accept(&data(first.plus(5), 1)), SACK);
    }

    // spec: SACK-3, SACK-4, ACK-2
    #[test]
    fn flags_draw_acknowledgements_even_from_duplicates() {
        let (first, mut responder) = responder();
        let asks = DataArrival { ack_request: true, ..data(first, 1) };
        assert_eq!(responder.accept(&asks), BOTH);
        assert_eq!(responder.accept_duplicate(&asks), BOTH);
        let again = DataArrival { retransmission: true, ..data(first, 1) };
        assert_eq!(responder.accept_duplicate(&again), SACK);
        assert_eq!(responder.accept_duplicate(&data(first, 0)), SACK, "counts towards coalescing");
    }

    // spec: RX-7, SACK-2
    #[test]
    fn duplicates_count_towards_coalescing_but_not_as_received_bytes() {
        let (first, mut responder) = responder();
        responder.accept(&data(first, 300));
        assert_eq!(responder.accept_duplicate(&data(first, 3_071)), NOTHING);
        assert_eq!(responder.accept_duplicate(&data(first, 1)), SACK);
        assert_eq!(responder.sack(&data(first, 1), CALM).1.received_units, 2);
    }

    // spec: RX-8, SACK-6, ACK-2, ACK-5
    #[test]
    fn a_message_is_whole_when_no_gap_remains_before_its_last_packet() {
        let (first, mut responder) = responder();
        let last = DataArrival { ends_message: true, ..data(first.plus(1), 1) };
        assert_eq!(responder.accept(&last), NOTHING);
        assert_eq!((responder.pop_whole(), responder.messages()), (None, 0));
        assert_eq!(responder.accept(&data(first, 1)), BOTH);
        assert_eq!((responder.pop_whole(), responder.pop_whole()), (Some((0, 100_000)), None));
        assert_eq!(responder.messages(), 1);
    }

    // spec: SACK-5
    #[test]
    fn a_closed_gap_draws_a_sack_for_the_packet_that_asked() {
        let (first, mut responder) = responder();
        let asks = DataArrival { ack_request: true, ..data(first.plus(1), 1) };
        assert_eq!(responder.accept(&asks), BOTH);
        responder.sack(&asks, CALM);
        assert_eq!(responder.accept(&data(first, 1)), SACK);
    }

    // spec: SACK-7, SACK-9, W-9
    #[test]
    fn the_sack_says_what_drew_it_and_what_is_held() {
        let (first, mut responder) = responder();
        responder.accept(&DataArrival { congestion_marked: true, ..data(first.plus(2), 1) });
        let drew = data(first.plus(3), 4_096);
        assert_eq!(responder.accept(&drew), SACK);
        let (seth, cc_state) = responder.sack(&drew, CALM);
        assert_eq!(seth.subject, SackSubject::Data { ack_psn_offset: 4 });
        assert_eq!(seth.cumulative, first.prev().wire());
        assert_eq!((seth.sack_offset, seth.bitmap), (1, 0b1100));
        assert_eq!(
            (seth.entropy, seth.source_qp, seth.max_psn_range),
            (50_000, Qpn::masked(20), 8)
        );
        assert_eq!(seth.ce_mark, PathMark::SkipOnce, "a coalesced mark is not lost");
        assert_eq!((cc_state.out_of_order, cc_state.received_units), (2, 17));
        assert_eq!(responder.sack(&drew, CALM).0.ce_mark, PathMark::None);
    }

    // spec: RTT-2, RTT-3, PB-14
    #[test]
    fn the_sack_tells_the_service_time_in_steps_of_128_ns_and_the_penalty() {
        let (first, mut responder) = responder();
        let held_up =
            |ns| Condition { service: Duration::from_ns(ns), penalty: 9, restore_cwnd: true };
        let mut field = |timestamp, ns| {
            let data = DataArrival { timestamp, ..data(first, 4_096) };
            let (_, cc_state) = responder.sack(&data, held_up(ns));
            assert_eq!((cc_state.penalty, cc_state.restore_cwnd), (9, true));
            cc_state.timestamp_or_service
        };
        assert_eq!((field(None, 83), field(None, 127), field(None, 128)), (0, 0, 1));
        // A timestamp comes back later by the service time.
        assert_eq!((field(Some(1_000), 256), field(Some(u16::MAX), 256)), (1_002, 1));
    }

    // spec: REL-1, NACK-2
    #[test]
    fn a_gap_or_an_incomplete_message_is_unsettled() {
        let (first, mut responder) = responder();
        let end = |psn| DataArrival { ends_message: true, ..data(psn, 1) };
        assert!(responder.is_settled(), "nothing is known of");
        let take = |responder: &mut Responder, data: DataArrival| {
            responder.accept(&data);
            while responder.pop_whole().is_some() {}
            responder.is_settled()
        };
        assert!(!take(&mut responder, data(first, 1)), "a first packet");
        assert!(!take(&mut responder, end(first.plus(2))), "an end with a gap before it");
        assert!(take(&mut responder, data(first.plus(1), 1)), "the gap is closed");
        assert!(!take(&mut responder, end(first.plus(4))), "a whole message behind a gap");
        assert!(take(&mut responder, end(first.plus(3))), "another in it");
        responder.note_trimmed(first.plus(4));
        assert!(responder.is_settled(), "a trimmed copy of what is there");
        responder.note_trimmed(first.plus(5));
        assert!(!responder.is_settled(), "a trimmed packet leaves a gap");
        assert!(take(&mut responder, end(first.plus(5))));
    }

    // case B10: old data is answered with the current cumulative PSN and changes nothing.
    // spec: RX-7
    #[test]
    fn a_replayed_message_changes_nothing() {
        let (first, mut responder) = responder();
        let last = DataArrival { ends_message: true, ack_request: true, ..data(first, 1) };
        responder.accept(&last);
        responder.accept(&data(first.plus(1), 1));
        assert!(responder.pop_whole().is_some());
        assert_eq!(responder.classify(first), Arrival::Duplicate);
        assert_eq!(responder.accept_duplicate(&last), BOTH);
        assert_eq!((responder.cumulative(), responder.pop_whole()), (first.plus(1), None));
    }
}
