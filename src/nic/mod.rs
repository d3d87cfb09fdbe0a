//! The NIC: queue pairs over one port, as a plain struct.
//!
//! What happens at an instant happens in this order: what arrived is taken in
//! (`receive`), the transmit process hands packets to the egress queues
//! (`transmit`), and the port sends them one after the other (`depart`).

mod api;
mod counters;
mod depart;
mod egress;
mod group;
mod memory;
mod numbers;
mod receive;
mod received;
mod requester;
mod responder;
mod retransmit;
mod sent_packets;
mod spraying;
mod timers;
mod tombstones;
mod transmit;

use core::net::Ipv4Addr;
use std::collections::{BTreeMap, VecDeque};

use crate::config::NicAttributes;
use crate::node::{Ctx, Drops, Frame, Node, PortId, Transmit};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::trace::{Event, QpAddress, QpEvent, QpEventKind};
use crate::units::Rate;
use crate::wire::mac::MacPair;
use crate::wire::packet::FrameFormat;
use crate::wire::qpn::Qpn;

use egress::Egress;
use group::QpGroup;
use memory::Memory;
use numbers::QpNumbers;
use requester::{Requester, RequesterLimits, Sending};
use responder::Responder;
use retransmit::RetransmitSchedule;
use spraying::Spraying;
use timers::{Timer, Timers};
use tombstones::Tombstones;
use transmit::TransmitScheduler;

pub use api::{PostError, QpChoice, QpInfo, QpSide, WorkRequest};
pub use counters::NicCounters;
pub use memory::{Access, MemoryRegion};
pub use requester::{QpErrorReason, RetransmitCounts};

/// Who a NIC is and what it is joined to.
#[derive(Clone, Debug)]
pub struct NicConfig {
    /// Its IPv4 address.
    pub ip: Ipv4Addr,
    /// Its own MAC address and that of the port at the other end of its link.
    pub macs: MacPair,
    /// The link's rate: the lower of both ends' rates.
    // spec: WIRE-7
    pub link_rate: Rate,
    /// Its attributes.
    pub attributes: NicAttributes,
}

/// An MRC NIC.
#[derive(Debug)]
pub struct Nic {
    config: NicConfig,
    format: FrameFormat,
    limits: RequesterLimits,
    schedule: RetransmitSchedule,
    window: u64,
    memory: Memory,
    numbers: QpNumbers,
    requesters: BTreeMap<Qpn, Requester>,
    responders: BTreeMap<Qpn, Responder>,
    /// Receiving sides by the peer's end.
    by_remote: BTreeMap<QpAddress, Qpn>,
    tombstones: Tombstones,
    groups: BTreeMap<Ipv4Addr, QpGroup>,
    sprayings: BTreeMap<Ipv4Addr, Spraying>,
    scheduler: TransmitScheduler,
    timers: Timers,
    egress: Egress,
    events: VecDeque<QpEvent>,
    counters: NicCounters,
    drops: Drops,
}

impl Nic {
    /// From the doorbell to the transmit process.
    // spec: QP-4
    pub const DOORBELL_DELAY: Duration = Duration::from_ns(15);

    /// A NIC that has neither QPs nor memory; `rng` is its own stream.
    pub fn new(config: NicConfig, rng: &mut Rng) -> Self {
        let attributes = &config.attributes;
        let format = attributes.frame_format();
        let tombstones =
            Tombstones::new(attributes.tombstone_time(), attributes.max_tombstones as usize);
        Self {
            format,
            limits: RequesterLimits::new(attributes),
            schedule: RetransmitSchedule::new(attributes),
            window: attributes.window(config.link_rate),
            memory: Memory::default(),
            numbers: QpNumbers::new(rng),
            requesters: BTreeMap::new(),
            responders: BTreeMap::new(),
            by_remote: BTreeMap::new(),
            tombstones,
            groups: BTreeMap::new(),
            sprayings: BTreeMap::new(),
            scheduler: TransmitScheduler::default(),
            timers: Timers::default(),
            egress: Egress::new(attributes.paced.then_some(config.link_rate)),
            events: VecDeque::new(),
            counters: NicCounters::default(),
            drops: Drops::default(),
            config,
        }
    }

    /// Its IPv4 address.
    pub fn ip(&self) -> Ipv4Addr {
        self.config.ip
    }

    /// Its attributes.
    pub fn attributes(&self) -> &NicAttributes {
        &self.config.attributes
    }

    /// What it has counted.
    pub fn counters(&self) -> &NicCounters {
        &self.counters
    }

    /// What it has dropped, by cause.
    pub fn drops(&self) -> &Drops {
        &self.drops
    }

    /// Records `kind` of the QP with these ends and tells the application.
    fn emit(
        &mut self,
        ctx: &mut Ctx<'_>,
        kind: QpEventKind,
        ends: (QpAddress, QpAddress),
        message: Option<(u64, u32)>,
    ) {
        let event = QpEvent {
            kind,
            local: ends.0,
            remote: ends.1,
            wqe_id: message.map(|(id, _)| id),
            wqe_bytes: message.map(|(_, bytes)| u64::from(bytes)),
        };
        ctx.record(Event::Qp(event));
        self.events.push_back(event);
    }

    /// The next entropy value towards `peer`.
    // spec: SCHED-2
    fn next_entropy(&mut self, peer: Ipv4Addr) -> u16 {
        let attributes = &self.config.attributes;
        self.sprayings.entry(peer).or_insert_with(|| Spraying::new(attributes)).next_value()
    }

    /// A side of a QP to `peer` joins its group, which is made when there is none.
    // spec: SCHED-1, SCHED-3
    fn join_group(&mut self, peer: Ipv4Addr) {
        let window = self.window;
        self.groups.entry(peer).or_insert_with(|| QpGroup::new(window)).join();
    }

    /// A side of a QP to `peer` leaves its group, which goes with the last one.
    // spec: SCHED-3
    fn leave_group(&mut self, peer: Ipv4Addr) {
        if self.groups.get_mut(&peer).is_some_and(QpGroup::leave)
            && self.groups.remove(&peer).is_some_and(|group| group.listed)
        {
            self.scheduler.remove(peer);
        }
    }

    /// Calls `f` with the sending side `qpn` and what it shares with the NIC.
    fn with_requester<R>(
        &mut self,
        qpn: Qpn,
        f: impl FnOnce(&mut Requester, &mut Sending<'_>) -> R,
    ) -> Option<R> {
        let requester = self.requesters.get_mut(&qpn)?;
        let group = self.groups.get_mut(&requester.remote().ip)?;
        let mut env = Sending {
            group,
            timers: &mut self.timers,
            counters: &mut self.counters,
            schedule: self.schedule,
        };
        Some(f(requester, &mut env))
    }

    /// Puts the sending side `qpn` into the error state; its group is done with it.
    // spec: RTO-11, SCHED-3
    fn fail_qp(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, reason: QpErrorReason) {
        let ends = self.with_requester(qpn, |requester, env| {
            requester.fail(env.group, reason);
            (requester.local(), requester.remote())
        });
        if let Some(ends) = ends {
            self.leave_group(ends.1.ip);
            self.counters.qp_error += 1;
            self.emit(ctx, QpEventKind::QpError, ends, None);
        }
    }

    // spec: RTO-2, RTO-3, RTO-8, SCHED-8
    fn run_timers(&mut self, ctx: &mut Ctx<'_>) {
        while let Some(timer) = self.timers.pop_due(ctx.now) {
            if !timer_is_live(&self.requesters, &timer) {
                continue;
            }
            let qpn = timer.qpn();
            let now = ctx.now;
            let verdict = self.with_requester(qpn, |qp, env| qp.on_timer(env, timer, now));
            if let Some(Err(reason)) = verdict {
                self.fail_qp(ctx, qpn, reason);
            }
            self.activate(qpn);
            self.request_pass(now);
        }
    }

    /// What every call ends with: a pass of the transmit process where one is
    /// due, and no timer in front that means nothing any longer.
    // spec: REL-5
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        self.transmit_pass_if_due(ctx);
        let requesters = &self.requesters;
        self.timers.discard_front(|timer| !timer_is_live(requesters, timer));
    }
}

fn timer_is_live(requesters: &BTreeMap<Qpn, Requester>, timer: &Timer) -> bool {
    requesters.get(&timer.qpn()).is_some_and(|requester| requester.timer_is_live(timer))
}

impl Node for Nic {
    fn handle_frame(&mut self, ctx: &mut Ctx<'_>, _: PortId, frame: Frame) {
        self.receive(ctx, &frame);
        ctx.frames.give(frame);
        self.settle(ctx);
    }

    fn handle_timeout(&mut self, ctx: &mut Ctx<'_>) {
        self.tombstones.expire(ctx.now);
        self.run_timers(ctx);
        self.settle(ctx);
    }

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        let frame = self.next_departed(ctx)?;
        Some(Transmit { port: PortId(0), frame })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [
            self.egress.ends(),
            self.timers.next(),
            self.scheduler.pass_at(),
            self.tombstones.next_expiry(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
