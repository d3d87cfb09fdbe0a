//! The memory that all ports share: what each port has brought in and what
//! waits to leave by it, per pool, and who may still bring in more.
//!
//! Every packet is counted twice: where it came in and where it leaves.

use crate::config::{Factor, SWITCH_CLASSES, SwitchAttributes};
use crate::node::PortId;
use crate::time::Instant;
use crate::units::Share;

use super::TrafficClass;
use super::counters::PoolCounters;

/// Pools at most.
const POOLS: usize = SWITCH_CLASSES;

/// A part of the memory.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    size: u64,
    /// What has come in and not left, of all ports, headroom not included.
    ingress: u64,
    /// What waits to leave, of all ports.
    egress: u64,
}

/// What one port has in one pool.
#[derive(Clone, Debug, Default)]
struct Account {
    /// What came in here, headroom not included.
    occupancy: u64,
    /// What came in here after the sender was told to pause.
    headroom: u64,
    /// The sender is paused; the next pause goes out then.
    repeat: Option<Instant>,
    /// What waits to leave here, the frame that is being sent included.
    egress: u64,
    /// A moving average of `egress` over admissions.
    mean: f64,
    counters: PoolCounters,
}

impl Account {
    /// Charges a packet that came in though the sender has been told to pause.
    // spec: SW-7
    fn charge_headroom(&mut self, bytes: u64, limit: u64) -> Admission {
        let headroom = self.headroom + bytes;
        if headroom > limit {
            return Admission { pause: false, refused: Some("headroom_full") };
        }
        self.headroom = headroom;
        raise(&mut self.counters.headroom_high_water, headroom);
        Admission::default()
    }
}

/// How the limit of a lossy queue comes about.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// The same for all.
    Fixed(u64),
    /// An equal part of the pool for each port.
    EqualPart,
    /// So many times what the pool has free.
    OfFree(Factor),
}

/// What the memory says to a packet that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Admission {
    /// The sender is to be paused.
    pub pause: bool,
    /// The packet is not charged, and dropped for this cause.
    pub refused: Option<&'static str>,
}

/// All pools, and the accounts of all ports in them.
// spec: SW-5, SW-6
#[derive(Debug)]
pub(super) struct SharedBuffer {
    pools: [Pool; POOLS],
    accounts: Vec<[Account; POOLS]>,
    /// Of each port, when its link sets one.
    own_limits: Vec<Option<u64>>,
    limit: Limit,
    class_pools: [u8; SWITCH_CLASSES],
    lossless: [bool; SWITCH_CLASSES],
    headroom: u64,
    xoff: u64,
    xon: u64,
    weight: f64,
    /// Retransmissions may use half as much again.
    uet: bool,
}

impl SharedBuffer {
    /// An empty buffer; `own_limits` has an entry for every connected port.
    pub fn new(attributes: &SwitchAttributes, own_limits: Vec<Option<u64>>) -> Self {
        let mut pools = [Pool::default(); POOLS];
        for (pool, size) in pools.iter_mut().zip(attributes.pool_bytes(own_limits.len())) {
            pool.size = size;
        }
        let buffer = &attributes.buffer;
        Self {
            pools,
            accounts: vec![Default::default(); own_limits.len()],
            own_limits,
            limit: limit(attributes),
            class_pools: attributes.class_pools().map(|pool| pool as u8),
            lossless: buffer.lossless,
            headroom: buffer.headroom_per_port,
            xoff: buffer.xoff,
            xon: buffer.xon,
            weight: as_f64(attributes.ecn.weight),
            uet: attributes.uet_policy_enabled,
        }
    }

    /// The pool of `class`.
    pub fn pool(&self, class: TrafficClass) -> usize {
        self.class_pools[class.index()].into()
    }

    /// Whether `class` is never dropped for want of egress room.
    pub fn is_lossless(&self, class: TrafficClass) -> bool {
        self.lossless[class.index()]
    }

    /// What waits to leave by `port` in `pool`.
    pub fn egress(&self, port: PortId, pool: usize) -> u64 {
        self.accounts[index(port)][pool].egress
    }

    /// What waits to leave by `port`.
    pub fn port_egress(&self, port: PortId) -> u64 {
        self.accounts[index(port)].iter().map(|account| account.egress).sum()
    }

    /// The moving average of [`SharedBuffer::egress`].
    pub fn mean_egress(&self, port: PortId, pool: usize) -> f64 {
        self.accounts[index(port)][pool].mean
    }

    /// What `port` has counted in `pool`.
    pub fn counters(&self, port: PortId, pool: usize) -> &PoolCounters {
        &self.accounts[index(port)][pool].counters
    }

    /// The pools that classes use, in order.
    pub fn used_pools(&self) -> impl Iterator<Item = usize> + '_ {
        (0..POOLS).filter(|pool| self.pools[*pool].size > 0)
    }

    /// A packet of `bytes` came in at `port`: charges it if there is room.
    // spec: SW-6, SW-7
    pub fn charge_ingress(&mut self, port: PortId, class: TrafficClass, bytes: u64) -> Admission {
        let lossless = self.is_lossless(class);
        let number = self.pool(class);
        let (pool, account) = (&mut self.pools[number], &mut self.accounts[index(port)][number]);
        account.counters.frames_in += 1;
        account.counters.bytes_in += bytes;
        if lossless && account.repeat.is_some() {
            return account.charge_headroom(bytes, self.headroom);
        }
        let pause = lossless && account.occupancy + bytes > self.xoff;
        if pool.ingress + bytes > pool.size {
            return Admission { pause, refused: Some("pool_full") };
        }
        pool.ingress += bytes;
        account.occupancy += bytes;
        raise(&mut account.counters.ingress_high_water, account.occupancy);
        Admission { pause, refused: None }
    }

    /// A packet that came in at `port` has left or has been dropped: whether the
    /// sender may go on.
    // spec: SW-8
    pub fn release_ingress(&mut self, port: PortId, class: TrafficClass, bytes: u64) -> bool {
        let lossless = self.is_lossless(class);
        let number = self.pool(class);
        let (pool, account) = (&mut self.pools[number], &mut self.accounts[index(port)][number]);
        let headroom = if lossless { account.headroom.min(bytes) } else { 0 };
        account.headroom -= headroom;
        account.occupancy -= bytes - headroom;
        pool.ingress -= bytes - headroom;
        let resumes = account.headroom == 0 && account.occupancy <= self.xon;
        resumes && account.repeat.take().is_some()
    }

    /// The sender at `port` has been told to pause; it is told again at `repeat`.
    pub fn paused(&mut self, port: PortId, pool: usize, repeat: Instant) {
        self.accounts[index(port)][pool].repeat = Some(repeat);
    }

    /// Whether the sender at `port` is to be told again at `now`.
    pub fn repeats(&self, port: PortId, pool: usize, now: Instant) -> bool {
        self.accounts[index(port)][pool].repeat == Some(now)
    }

    /// A packet of `bytes` is to leave by `port`: charges it, or gives the cause
    /// for which it is dropped. `retransmission`: one that may be trimmed.
    // spec: SW-6, SW-9, SW-15, DSCP-4
    pub fn charge_egress(
        &mut self,
        port: PortId,
        class: TrafficClass,
        bytes: u64,
        retransmission: bool,
    ) -> Result<(), &'static str> {
        let number = self.pool(class);
        if !self.is_lossless(class) {
            self.check_egress(port, number, bytes, retransmission)?;
        }
        self.add_egress(port, class, bytes);
        Ok(())
    }

    // spec: SW-6, SW-11
    fn add_egress(&mut self, port: PortId, class: TrafficClass, bytes: u64) {
        let number = self.pool(class);
        let (pool, account) = (&mut self.pools[number], &mut self.accounts[index(port)][number]);
        pool.egress += bytes;
        account.egress += bytes;
        account.mean += self.weight * (account.egress as f64 - account.mean);
        raise(&mut account.counters.egress_high_water, account.egress);
    }

    /// Charges a packet of `bytes` at `port` in place of another one of
    /// `released` bytes, unless even that leaves no room.
    // spec: SW-17
    pub fn exchange(
        &mut self,
        port: PortId,
        class: TrafficClass,
        bytes: u64,
        released: u64,
        retransmission: bool,
    ) -> bool {
        let more = bytes.saturating_sub(released);
        let fits = self.check_egress(port, self.pool(class), more, retransmission).is_ok();
        if fits {
            self.release_egress(port, class, released);
            self.add_egress(port, class, bytes);
        }
        fits
    }

    fn check_egress(
        &self,
        port: PortId,
        number: usize,
        bytes: u64,
        retransmission: bool,
    ) -> Result<(), &'static str> {
        let pool = self.pools[number];
        let limit = self.queue_limit(port, number);
        let half = if retransmission && self.uet { limit / 2 } else { 0 };
        if self.egress(port, number) + bytes > limit.saturating_add(half) {
            return Err("queue_full");
        }
        if pool.egress + bytes > pool.size {
            return Err("pool_full");
        }
        Ok(())
    }

    /// A packet has left by `port`, or was dropped after all.
    pub fn release_egress(&mut self, port: PortId, class: TrafficClass, bytes: u64) {
        let number = self.pool(class);
        let (pool, account) = (&mut self.pools[number], &mut self.accounts[index(port)][number]);
        pool.egress -= bytes;
        account.egress -= bytes;
    }

    /// A packet of `bytes` has left by `port`, or was dropped.
    pub fn count(&mut self, port: PortId, class: TrafficClass, fate: Fate) {
        let number = self.pool(class);
        let counters = &mut self.accounts[index(port)][number].counters;
        match fate {
            Fate::Sent(bytes) => {
                counters.frames_out += 1;
                counters.bytes_out += bytes;
            }
            Fate::Dropped(cause) => counters.drops.count(cause),
        }
    }

    /// The most that `port` may hold in `pool` now.
    // spec: SW-9, SW-15
    fn queue_limit(&self, port: PortId, pool: usize) -> u64 {
        match self.limit {
            Limit::OfFree(alpha) if self.own_limits[index(port)].is_none() => {
                let Pool { size, egress, .. } = self.pools[pool];
                alpha.of(size.saturating_sub(egress))
            }
            _ => self.static_limit(port, pool),
        }
    }

    /// What marking thresholds are fractions of.
    // spec: SW-11, SW-15
    pub fn static_limit(&self, port: PortId, pool: usize) -> u64 {
        let size = self.pools[pool].size;
        self.own_limits[index(port)].unwrap_or(match self.limit {
            Limit::Fixed(bytes) => bytes,
            Limit::EqualPart => size / self.own_limits.len().max(1) as u64,
            Limit::OfFree(_) => size,
        })
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// It left, with so many bytes.
    Sent(u64),
    /// It is gone, for this cause.
    Dropped(&'static str),
}

// spec: SW-9, SW-15
fn limit(attributes: &SwitchAttributes) -> Limit {
    let (buffer, bdp) = (&attributes.buffer, attributes.plane_bdp);
    let threshold = Limit::Fixed(bdp.saturating_mul(buffer.queue_drop_threshold));
    match attributes.uet_policy_enabled {
        true if attributes.trimming_enabled => Limit::Fixed(bdp),
        true => threshold,
        false if !buffer.lossy_alpha.is_zero() => Limit::OfFree(buffer.lossy_alpha),
        false if buffer.queue_drop_threshold_enable => threshold,
        false => Limit::EqualPart,
    }
}

fn index(PortId(port): PortId) -> usize {
    port.into()
}

fn raise(mark: &mut u64, to: u64) {
    *mark = to.max(*mark);
}

/// A share as a number from 0 to 1.
pub(super) fn as_f64(share: Share) -> f64 {
    f64::from(share.as_ppm()) / 1e6
}
