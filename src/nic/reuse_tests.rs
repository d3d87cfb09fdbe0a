//! A QP number that comes back.

use core::net::Ipv4Addr;

use super::numbers::QpNumbers;
use super::{Access, MemoryRegion, Nic, NicConfig, QpChoice, WorkRequest};
use crate::config::NicAttributes;
use crate::node::{Ctx, Frame, FramePool, Node, PortId};
use crate::rng::Rng;
use crate::time::Instant;
use crate::trace::{NoTrace, NodeId, QpEvent, QpEventKind};
use crate::units::Rate;
use crate::wire::mac::MacPair;
use crate::wire::qpn::Qpn;

/// A NIC with what its driver keeps for it.
struct Host {
    nic: Nic,
    rng: Rng,
    frames: FramePool,
    events: Vec<QpEvent>,
}

impl Host {
    /// The NIC 10.0.0.`last`; `start` counts its lives.
    fn new(last: u8, start: u64) -> Self {
        let attributes = NicAttributes {
            linear_retry_count: 2,
            exponential_retry_count: 0,
            ..NicAttributes::default()
        };
        let ip = Ipv4Addr::new(10, 0, 0, last);
        let (macs, link_rate) = (MacPair::default(), Rate::gbps(400));
        let mut rng = Rng::derive(1, &ip.to_string(), start);
        let nic = Nic::new(NicConfig { ip, macs, link_rate, attributes }, &mut rng);
        Self { nic, rng, frames: FramePool::default(), events: Vec::new() }
    }

    fn call<R>(&mut self, now: Instant, f: impl FnOnce(&mut Nic, &mut Ctx<'_>) -> R) -> R {
        let Self { rng, frames, .. } = self;
        let mut ctx = Ctx { now, node: NodeId(0), rng, frames, trace: &mut NoTrace };
        let result = f(&mut self.nic, &mut ctx);
        self.events.extend(core::iter::from_fn(|| self.nic.poll_event()));
        result
    }

    /// What leaves at `now`.
    fn poll(&mut self, now: Instant) -> Vec<Frame> {
        let sent = self.call(now, |nic, ctx| {
            core::iter::from_fn(|| nic.poll_transmit(ctx)).collect::<Vec<_>>()
        });
        sent.into_iter().map(|transmit| transmit.frame).collect()
    }

    fn register(&mut self, now: Instant, bytes: Vec<u8>, access: Access) -> MemoryRegion {
        self.call(now, |nic, ctx| nic.register_memory(ctx, bytes, access))
    }

    fn has(&self, kind: QpEventKind) -> bool {
        self.events.iter().any(|event| event.kind == kind)
    }
}

/// Two NICs on a wire without delay, which may be cut.
struct Pair {
    now: Instant,
    hosts: [Host; 2],
    cut: bool,
}

impl Pair {
    /// The next thing happens at one of them, and what that makes them send arrives.
    fn step(&mut self) {
        let due = |host: &Host| host.nic.poll_timeout();
        self.now = self.hosts.iter().filter_map(due).min().expect("something is due");
        let now = self.now;
        for host in &mut self.hosts {
            host.call(now, |nic, ctx| nic.handle_timeout(ctx));
        }
        while self.carry(0) + self.carry(1) > 0 {}
    }

    /// Carries what host `from` sends now; how many frames that were.
    fn carry(&mut self, from: usize) -> usize {
        let now = self.now;
        let sent = self.hosts[from].poll(now);
        let count = sent.len();
        for frame in sent.into_iter().filter(|_| !self.cut) {
            self.hosts[1 - from].call(now, |nic, ctx| nic.handle_frame(ctx, PortId(0), frame));
        }
        count
    }

    /// Host 0 sends `bytes` of `byte` to host 1 on a new QP; gives that and the target.
    fn post(&mut self, byte: u8, bytes: usize) -> (Qpn, MemoryRegion) {
        let now = self.now;
        let source = self.hosts[0].register(now, vec![byte; bytes], Access::Local);
        let target = self.hosts[1].register(now, vec![0; bytes], Access::RemoteWrite);
        let work = WorkRequest {
            wqe_id: 0,
            peer: self.hosts[1].nic.ip(),
            lkey: source.rkey,
            local_va: source.va,
            length: bytes as u32,
            remote_va: target.va,
            rkey: target.rkey,
        };
        let qpn = self.hosts[0].call(now, |nic, ctx| nic.post_write(ctx, QpChoice::New, work));
        (qpn.expect("a good request"), target)
    }

    fn step_until(&mut self, happened: impl Fn(&[Host; 2]) -> bool) {
        while !happened(&self.hosts) {
            self.step();
        }
    }
}

// case A13: the peer fails with work outstanding; then a QP of the same number
// on our side works with the peer's next life.
// spec: REL-6, RTO-11, W-7
#[test]
fn a_number_whose_qp_has_failed_can_be_used_again() {
    const BYTES: usize = 100 * 4_096;
    let number = Qpn::masked(1_000);
    let hosts = [Host::new(1, 0), Host::new(2, 0)];
    let mut pair = Pair { now: Instant::ZERO, hosts, cut: false };
    pair.hosts[0].nic.numbers = QpNumbers::starting_at(number.value());
    let (old, _) = pair.post(1, BYTES);
    pair.step_until(|[_, peer]| peer.nic.counters().write_pkts_rcvd > 10);
    pair.cut = true;
    pair.step_until(|[ours, _]| ours.has(QpEventKind::QpError));
    let now = pair.now;
    let closed = pair.hosts[0].call(now, |nic, ctx| nic.close_qp(ctx, old));
    assert!(closed.is_some_and(|info| info.error.is_some()));
    assert_eq!(pair.hosts[0].nic.holdings(), [0; 4]);

    pair.hosts[1] = Host::new(2, 1);
    pair.cut = false;
    pair.hosts[0].nic.numbers = QpNumbers::starting_at(number.value());
    let (new, target) = pair.post(2, BYTES);
    assert_eq!((old, new), (number, number));
    pair.step_until(|[ours, _]| ours.has(QpEventKind::WqeComplete));
    assert_eq!(pair.hosts[1].nic.memory(target.rkey), Some(&vec![2; BYTES][..]));
    let counters = pair.hosts[0].nic.counters();
    assert_eq!((counters.qp_error, counters.wqes_completed), (1, 1));
    assert_eq!(pair.hosts[0].nic.drops().total(), 0);
}
