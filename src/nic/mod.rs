//! The NIC: queue pairs over one port, as a plain struct.
//!
//! What happens at an instant happens in this order: what arrived is taken in
//! (`receive`), the transmit process hands packets to the egress queues
//! (`transmit`), and the port sends them one after the other (`depart`).

mod admission;
mod api;
mod class;
mod congestion;
mod counters;
mod depart;
mod egress;
mod group;
mod groups;
mod ingress;
mod memory;
mod next_hops;
mod numbers;
mod pause;
mod pcie;
mod pool;
mod receive;
mod received;
mod requester;
mod responder;
mod responders;
mod retransmit;
#[cfg(test)]
mod reuse_tests;
mod rtt;
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
use crate::trace::{Event, QpAddress, QpEvent, QpEventKind, WindowEvent};
use crate::units::Rate;
use crate::wire::mac::MacPair;
use crate::wire::packet::FrameFormat;
use crate::wire::qpn::Qpn;

use class::Class;
use congestion::{CongestionSettings, WindowChange, WindowChanges};
use egress::Egress;
use groups::{GroupId, Groups};
use ingress::Ingress;
use memory::Memory;
use numbers::QpNumbers;
use pcie::PcieLink;
use requester::{Requester, RequesterLimits, Sending};
use responders::Responders;
use retransmit::RetransmitSchedule;
use spraying::Spraying;
use timers::{Timer, Timers};
use tombstones::Tombstones;
use transmit::TransmitScheduler;

pub use api::{PostError, QpChoice, QpInfo, QpSide, WorkRequest};
pub use counters::NicCounters;
pub use group::WindowInfo;
pub use memory::{Access, MemoryRegion};
pub use next_hops::NextHops;
pub use pool::{BufferCounters, PoolCounters};
pub use requester::{QpErrorReason, RetransmitCounts};
pub use rtt::RttStatistics;

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
    next_hops: NextHops,
    format: FrameFormat,
    limits: RequesterLimits,
    schedule: RetransmitSchedule,
    memory: Memory,
    numbers: QpNumbers,
    requesters: BTreeMap<Qpn, Requester>,
    responders: Responders,
    tombstones: Tombstones,
    groups: Groups,
    sprayings: BTreeMap<Ipv4Addr, Spraying>,
    scheduler: TransmitScheduler,
    timers: Timers,
    /// What a call has done to a window, until it is counted.
    window_changes: WindowChanges,
    pcie: PcieLink,
    ingress: Ingress,
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
        let congestion = CongestionSettings::new(attributes, config.link_rate);
        let tombstones =
            Tombstones::new(attributes.tombstone_time(), attributes.max_tombstones as usize);
        let next_hop = Some(config.macs.destination);
        Self {
            next_hops: NextHops { default: next_hop, peers: BTreeMap::new() },
            format,
            limits: RequesterLimits::new(attributes),
            schedule: RetransmitSchedule::new(attributes),
            memory: Memory::default(),
            numbers: QpNumbers::new(rng),
            requesters: BTreeMap::new(),
            responders: Responders::new(attributes),
            tombstones,
            groups: Groups::new(attributes.qp_groups_enabled, congestion),
            sprayings: BTreeMap::new(),
            scheduler: TransmitScheduler::default(),
            timers: Timers::default(),
            window_changes: WindowChanges::new(),
            pcie: PcieLink::new(attributes),
            ingress: Ingress::new(attributes, config.link_rate),
            egress: Egress::new(attributes, attributes.paced.then_some(config.link_rate)),
            events: VecDeque::new(),
            counters: NicCounters::default(),
            drops: Drops::default(),
            config,
        }
    }

    /// Sends to these MAC addresses from now on, in place of the one that its
    /// link leads to.
    pub fn set_next_hops(&mut self, next_hops: NextHops) {
        self.next_hops = next_hops;
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

    /// What its buffers hold and have counted.
    // spec: PB-15
    pub fn buffers(&self) -> BufferCounters {
        BufferCounters {
            egress: Class::ALL.map(|class| self.egress.pool(class).counters()),
            ingress: Class::ALL.map(|class| self.ingress.pool(class).counters()),
        }
    }

    /// The receiver penalty that its SACKs carry now, 0 to 127.
    // spec: PB-14
    pub fn receiver_penalty(&self) -> u8 {
        self.ingress.penalty()
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
        self.bound_sprayings();
        let attributes = &self.config.attributes;
        self.sprayings.entry(peer).or_insert_with(|| Spraying::new(attributes)).next_value()
    }

    /// Forgets the sprayings of peers without a group when there are more than
    /// twice as many as groups can be: whoever makes up addresses would make the
    /// map grow. At least half of it goes, so each one forgotten pays for itself.
    // spec: W-14, REL-1
    fn bound_sprayings(&mut self) {
        let groups = &self.groups;
        let may_have_groups = groups.len().max(self.config.attributes.max_qps as usize);
        if self.sprayings.len() > 2 * may_have_groups {
            self.sprayings.retain(|peer, _| groups.in_use(*peer));
        }
    }

    /// A sending side leaves its group, which goes with the last one.
    // spec: SCHED-3
    fn leave_group(&mut self, id: GroupId) {
        if self.groups.leave(id) {
            self.scheduler.remove(id);
        }
    }

    /// A receiving side from `peer` leaves the group of the QPs to that peer.
    // spec: SCHED-3
    fn leave_group_receiving(&mut self, peer: Ipv4Addr) {
        if let Some(gone) = self.groups.leave_receiving(peer) {
            self.scheduler.remove(gone);
        }
    }

    /// Calls `f` with the sending side `qpn` and what it shares with the NIC.
    fn with_requester<R>(
        &mut self,
        qpn: Qpn,
        f: impl FnOnce(&mut Requester, &mut Sending<'_>) -> R,
    ) -> Option<R> {
        let requester = self.requesters.get_mut(&qpn)?;
        let group = self.groups.get_mut(requester.group())?;
        let mut env = Sending {
            group,
            timers: &mut self.timers,
            counters: &mut self.counters,
            schedule: self.schedule,
            window_changes: &mut self.window_changes,
        };
        Some(f(requester, &mut env))
    }

    /// Counts and records what was just done to the window of the group of `qpn`.
    fn report_window(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn) {
        let peer = self.requesters.get(&qpn).map(|requester| requester.remote().ip);
        for WindowChange { cause, window, in_flight } in self.window_changes.drain(..) {
            self.counters.count_window(cause);
            if let Some(peer) = peer {
                let event = WindowEvent { peer, cause, window, in_flight };
                ctx.record_packet(|| Event::Window(event));
            }
        }
    }

    /// Puts the sending side `qpn` into the error state; its group is done with it.
    // spec: RTO-11, SCHED-3
    fn fail_qp(&mut self, ctx: &mut Ctx<'_>, qpn: Qpn, reason: QpErrorReason) {
        let ends = self.with_requester(qpn, |requester, env| {
            requester.fail(env.group, reason);
            (requester.group(), (requester.local(), requester.remote()))
        });
        if let Some((group, ends)) = ends {
            self.discard_unsent(ctx.now, qpn);
            self.leave_group(group);
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
            self.report_window(ctx, qpn);
            if let Some(Err(reason)) = verdict {
                self.fail_qp(ctx, qpn, reason);
            }
            self.activate(qpn);
            self.request_pass(now);
        }
    }

    /// What every call ends with: payloads that have arrived become packets, a
    /// pass of the transmit process runs where one is due (without pacing its
    /// payloads arrive at once), and no timer is in front that means nothing any
    /// longer.
    // spec: REL-5, PB-7
    fn settle(&mut self, ctx: &mut Ctx<'_>) {
        self.release_written(ctx.now);
        self.take_payloads(ctx);
        self.transmit_pass_if_due(ctx);
        self.take_payloads(ctx);
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
        self.refresh_pauses(ctx.now);
        self.close_idle(ctx);
        self.run_timers(ctx);
        self.settle(ctx);
    }

    fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Transmit> {
        let frame = self.next_departed(ctx)?;
        Some(Transmit { port: PortId(0), frame })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [
            self.egress.next(),
            self.pcie.next(),
            self.ingress.next_refresh(),
            self.timers.next(),
            self.scheduler.next_pass(),
            self.tombstones.next_expiry(),
            self.responders.next_look(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
