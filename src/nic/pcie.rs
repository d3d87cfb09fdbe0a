//! The PCIe link between the NIC and its host, as a timed stage.
//!
//! Payloads to send come over it as fetches, received ones leave over it as
//! writes. Requests and writes share the direction to the host; completions
//! have the other one to themselves. Runs leave in order and the receiving end
//! consumes at once, so each run's end is known when it is queued: a run that
//! waits before the transmit buffer would have had to wait for the link as long.

use std::collections::VecDeque;

use super::class::Class;
use super::requester::Segment;
use crate::config::{NicAttributes, PcieSide};
use crate::time::Instant;
use crate::units::Rate;
use crate::wire::qpn::Qpn;

/// One direction of the link: runs leave in order, one after the other.
// spec: PB-1, PB-3, PB-7
#[derive(Debug)]
struct Direction {
    /// `None` when PCIe takes no time.
    rate: Option<Rate>,
    free_at: Instant,
}

impl Direction {
    fn new(rate: Option<Rate>) -> Self {
        Self { rate, free_at: Instant::ZERO }
    }

    /// Queues a run of `payload` bytes at `now`; its last bit leaves at the
    /// instant that is given back.
    // spec: PB-2, PB-3
    fn send(&mut self, now: Instant, payload: u64) -> Instant {
        let start = self.free_at.max(now);
        let bytes = payload + PcieSide::overhead(payload);
        self.free_at = self.rate.map_or(start, |rate| start + rate.time_for(bytes));
        self.free_at
    }
}

/// A run in the direction to the host.
#[derive(Clone, Copy, Debug)]
struct Run {
    ends: Instant,
    payload: u64,
    /// What a write's packet is charged in the receive pools, which is released
    /// when the write is accepted.
    charged: Option<(Class, u64)>,
}

/// The NIC's transmit buffer: runs from their acceptance until their last bit
/// has left, and those that wait before it.
// spec: PB-4
#[derive(Debug)]
struct TransmitBuffer {
    data_size: u64,
    header_size: u64,
    data_used: u64,
    header_used: u64,
    accepted: VecDeque<Run>,
    waiting: VecDeque<Run>,
}

impl TransmitBuffer {
    /// The empty buffer of this end.
    fn new(side: &PcieSide) -> Self {
        Self {
            data_size: side.tx_data_bytes,
            header_size: side.tx_header_bytes,
            data_used: 0,
            header_used: 0,
            accepted: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Takes a run in, or lets it wait; true when it was accepted at once.
    fn push(&mut self, run: Run) -> bool {
        let accepted = self.waiting.is_empty() && self.fits(&run);
        if accepted {
            self.accept(run);
        } else {
            self.waiting.push_back(run);
        }
        accepted
    }

    /// Whether there is room. A payload larger than the whole buffer, from a peer
    /// with a larger MSS, goes through it alone: it must not wait for ever.
    // spec: PB-4, REL-5
    fn fits(&self, run: &Run) -> bool {
        let data = self.data_used + run.payload;
        let header = self.header_used + PcieSide::overhead(run.payload);
        self.accepted.is_empty() || (data <= self.data_size && header <= self.header_size)
    }

    fn accept(&mut self, run: Run) {
        self.data_used += run.payload;
        self.header_used += PcieSide::overhead(run.payload);
        self.accepted.push_back(run);
    }

    /// Accepts what waited and has room by `now`, up to the next write; gives
    /// what that one's packet is charged.
    fn pop_accepted(&mut self, now: Instant) -> Option<(Class, u64)> {
        loop {
            if let Some(run) = self.waiting.front().copied().filter(|run| self.fits(run)) {
                self.waiting.pop_front();
                self.accept(run);
                if run.charged.is_some() {
                    return run.charged;
                }
            } else {
                let left = self.accepted.pop_front_if(|run| run.ends <= now)?;
                self.data_used -= left.payload;
                self.header_used -= PcieSide::overhead(left.payload);
            }
        }
    }

    /// When room is made for what waits; `None` when nothing does.
    fn next(&self) -> Option<Instant> {
        self.waiting.front().and(self.accepted.front()).map(|run| run.ends)
    }
}

/// A payload on its way from the host.
// spec: PCIE-1
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    arrives: Instant,
    /// The sending QP.
    pub qpn: Qpn,
    /// What of its message is fetched.
    pub segment: Segment,
    /// What the packet has reserved in the egress pool: its bytes on the wire.
    pub reserved: u64,
}

/// Both directions, and what is on its way.
#[derive(Debug)]
pub struct PcieLink {
    to_host: Direction,
    to_nic: Direction,
    request_bytes: u64,
    buffer: TransmitBuffer,
    fetches: VecDeque<Fetch>,
}

impl PcieLink {
    /// The idle link of a NIC with these attributes.
    // spec: PB-1, PB-7
    pub fn new(attributes: &NicAttributes) -> Self {
        let NicAttributes { pcie_nic, pcie_host, paced, .. } = attributes;
        Self {
            to_host: Direction::new(paced.then(|| pcie_nic.rate())),
            to_nic: Direction::new(paced.then(|| pcie_host.rate())),
            request_bytes: attributes.read_request_bytes.into(),
            buffer: TransmitBuffer::new(pcie_nic),
            fetches: VecDeque::new(),
        }
    }

    /// Issues the read request for a segment; the host answers at once.
    // spec: PCIE-1, PCIE-2, PCIE-6, PB-2
    pub fn fetch(&mut self, now: Instant, qpn: Qpn, segment: Segment, reserved: u64) {
        let requested = self.to_host.send(now, self.request_bytes);
        let request = Run { ends: requested, payload: self.request_bytes, charged: None };
        self.buffer.push(request);
        let arrives = self.to_nic.send(requested, segment.length.into());
        self.fetches.push_back(Fetch { arrives, qpn, segment, reserved });
    }

    /// The next payload that has arrived by `now`, in the order of the requests.
    // spec: PCIE-2, PCIE-3
    pub fn pop_fetched(&mut self, now: Instant) -> Option<Fetch> {
        self.fetches.pop_front_if(|fetch| fetch.arrives <= now)
    }

    /// Forgets the fetches of `qpn` and gives them back. The link stays taken as
    /// long as before.
    // spec: RTO-11
    pub fn discard(&mut self, qpn: Qpn) -> impl Iterator<Item = Fetch> + use<> {
        let all = core::mem::take(&mut self.fetches);
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|fetch| fetch.qpn == qpn);
        self.fetches = kept.into();
        gone.into_iter()
    }

    /// Queues the write of a received payload; true when the transmit buffer
    /// accepts it at once. Else its packet stays `charged` to the receive pool
    /// until [`Self::pop_accepted`] gives that back.
    // spec: PCIE-7, PB-4, PB-5
    #[must_use]
    pub fn write(&mut self, now: Instant, payload: u64, charged: (Class, u64)) -> bool {
        let ends = self.to_host.send(now, payload);
        self.buffer.push(Run { ends, payload, charged: Some(charged) })
    }

    /// What the packet of the next write is charged that was accepted by `now`, of
    /// those that had to wait. To be asked until it gives `None` before anything
    /// else is queued.
    // spec: PCIE-7, PB-4
    pub fn pop_accepted(&mut self, now: Instant) -> Option<(Class, u64)> {
        self.buffer.pop_accepted(now)
    }

    /// When something arrives or is accepted next.
    pub fn next(&self) -> Option<Instant> {
        let arrival = self.fetches.front().map(|fetch| fetch.arrives);
        arrival.into_iter().chain(self.buffer.next()).min()
    }
}

#[cfg(test)]
mod tests;
