//! A switch's attributes.

use super::factor::Factor;
use crate::time::Duration;
use crate::units::{Rate, Share};
use crate::wire::role::Codepoints;
use crate::wire::trim::TrimIpLength;

/// Traffic classes of a switch, and the most pools that its buffer may have.
// spec: SW-4
pub const SWITCH_CLASSES: usize = 8;

/// Every attribute of a switch. `Default` is the reference profile.
#[derive(Clone, PartialEq, Debug)]
pub struct SwitchAttributes {
    /// Rate of every port that a link does not set otherwise.
    pub data_rate: Rate,
    /// Whether serialization and link delay take modelled time (not in native).
    pub paced: bool,
    /// Delay of links between switches.
    pub delay: Duration,
    /// Takes one from the time to live of every packet, and drops it at 0.
    pub decrement_ttl: bool,
    /// Which of several equal ways a packet takes.
    pub paths: PathAttributes,
    /// What may wait in the switch, and where.
    pub buffer: SharedBufferAttributes,
    /// Three classes by the packet's role, each with its pool and a fixed
    /// queue limit; false: eight classes by codepoint.
    pub uet_policy_enabled: bool,
    /// Bytes that a path holds in a round trip; queue limits are multiples of it.
    pub plane_bdp: u64,
    /// Cuts trimmable packets that find their queue full to their headers.
    pub trimming_enabled: bool,
    /// What happens to the lengths of a trimmed packet.
    pub trim_ip_length: TrimIpLength,
    /// Which packet is cut when several could be.
    pub trim_victim: TrimVictim,
    /// When packets are marked.
    pub ecn: EcnAttributes,
    /// UDP destination port of the packets that may be trimmed.
    pub udp_port: u16,
    /// The six roles' codepoints.
    pub codepoints: Codepoints,
}

impl Default for SwitchAttributes {
    fn default() -> Self {
        Self {
            data_rate: Rate::gbps(400),
            paced: true,
            delay: Duration::from_ns(500),
            decrement_ttl: false,
            paths: PathAttributes::default(),
            buffer: SharedBufferAttributes::default(),
            uet_policy_enabled: true,
            plane_bdp: 300_000,
            trimming_enabled: true,
            trim_ip_length: TrimIpLength::Fix,
            trim_victim: TrimVictim::Arriving,
            ecn: EcnAttributes::default(),
            udp_port: 4791,
            codepoints: Codepoints::default(),
        }
    }
}

/// Which member of an equal-cost set a packet takes.
// spec: SW-12, SW-13, SW-14
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathAttributes {
    /// How a packet's flow becomes a member's number.
    pub hash: EcmpHashMethod,
    /// What becomes of a member whose link is down.
    pub link_down: LinkDownReaction,
    /// Whether a flow may change its member, and when.
    pub load_balancing: LoadBalancing,
    /// A flow that has been idle for so long may change its member; 0: at every
    /// packet.
    pub flowlet_gap: Duration,
    /// Such a flow avoids members that its class must not use now.
    pub pfc_aware: bool,
}

impl Default for PathAttributes {
    fn default() -> Self {
        Self {
            hash: EcmpHashMethod::Crc32WithSalt,
            link_down: LinkDownReaction::Keep,
            load_balancing: LoadBalancing::None,
            flowlet_gap: Duration::from_us(100),
            pfc_aware: true,
        }
    }
}

/// What a switch does with a port whose link has gone down.
// spec: SW-13
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDownReaction {
    /// The port stays in its equal-cost sets, and what takes it is lost: other
    /// entropy values are the way out.
    Keep,
    /// The port leaves its equal-cost sets until the link is up again.
    Remove,
}

/// What a switch does about members of an equal-cost set that are busier than
/// others.
// spec: SW-14
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadBalancing {
    /// Nothing: a flow keeps its member.
    None,
    /// A flow that was idle takes the member with the least to send.
    Flowlet,
}

impl EcmpHashMethod {
    /// Whether the destination alone decides.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Dpr | Self::DprWithFallback)
    }
}

/// How a switch makes 16 bits of a packet; these modulo the number of members
/// are the member that the packet takes.
// spec: SW-12
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcmpHashMethod {
    /// A CRC-32 of the flow that starts from the switch's salt, and a finalizer
    /// that is not linear: switches choose independently of each other.
    Crc32WithSalt,
    /// The CRC-32 alone: every switch chooses alike.
    Crc32,
    /// The XOR of the flow's 16-bit words and of the salt.
    HashWithSalt,
    /// The XOR of the flow's words alone.
    Hash,
    /// The low nine bits of the destination address less one.
    Dpr,
    /// The same where the set has a member of this number, otherwise
    /// [`EcmpHashMethod::Crc32WithSalt`].
    DprWithFallback,
}

/// Which packet a switch cuts to its headers when a queue is full.
// spec: SW-17
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrimVictim {
    /// The one that arrives.
    Arriving,
    /// That one or the newest in the queue, at random.
    Random,
}

/// The memory that all ports share, and who may use how much of it.
// spec: SW-4, SW-5, SW-9
#[derive(Clone, PartialEq, Debug)]
pub struct SharedBufferAttributes {
    /// Its size in bytes.
    pub total_bytes: u64,
    /// Bytes that a port may hold beyond a pause, per pool; set aside for every
    /// port when a class is lossless.
    pub headroom_per_port: u64,
    /// Each pool's share of what is not set aside.
    pub pool_shares: Vec<Share>,
    /// The pool of each class.
    pub class_pools: [u32; SWITCH_CLASSES],
    /// Whether each class is lossless.
    pub lossless: [bool; SWITCH_CLASSES],
    /// A port that holds more than this, in bytes per pool, pauses the senders
    /// of its lossless classes.
    pub xoff: u64,
    /// It lets them go on at this many bytes or fewer.
    pub xon: u64,
    /// A lossy queue may hold so many times what its pool has free; 0: a fixed
    /// limit.
    pub lossy_alpha: Factor,
    /// Which fixed limit: true: `queue_drop_threshold` times PlaneBDP; false:
    /// an equal part of the pool for each port.
    pub queue_drop_threshold_enable: bool,
    /// A fixed limit in units of PlaneBDP.
    pub queue_drop_threshold: u64,
}

impl Default for SharedBufferAttributes {
    fn default() -> Self {
        let shares = [900_000, 100_000, 0, 0, 0, 0, 0, 0];
        Self {
            total_bytes: 256_000_000,
            headroom_per_port: 256_000,
            pool_shares: shares.map(Share::from_ppm).to_vec(),
            class_pools: [0, 1, 0, 0, 0, 0, 0, 0],
            lossless: [false; SWITCH_CLASSES],
            xoff: 700_000,
            xon: 300_000,
            lossy_alpha: Factor::from_ppm(1_000_000),
            queue_drop_threshold_enable: false,
            queue_drop_threshold: 5,
        }
    }
}

/// When packets are marked as having met congestion.
// spec: SW-11
#[derive(Clone, PartialEq, Debug)]
pub struct EcnAttributes {
    /// Whether any are.
    pub enabled: bool,
    /// What the latest length counts for in a queue's mean.
    pub weight: Share,
    /// Below this share of its limit a queue's packets are not marked.
    pub min_threshold: Share,
    /// From this share on all are.
    pub max_threshold: Share,
    /// The probability that is reached between the two.
    pub max_probability: Share,
    /// Whether packets that leave towards a NIC are marked too.
    pub last_hop: bool,
}

impl Default for EcnAttributes {
    fn default() -> Self {
        Self {
            enabled: true,
            weight: Share::from_ppm(100_000),
            min_threshold: Share::from_ppm(200_000),
            max_threshold: Share::from_ppm(800_000),
            max_probability: Share::from_ppm(1_000_000),
            last_hop: true,
        }
    }
}

impl SwitchAttributes {
    /// The size of each pool of a switch with `ports` connected ports, in bytes.
    // spec: SW-5, SW-15
    pub fn pool_bytes(&self, ports: usize) -> Vec<u64> {
        let buffer = &self.buffer;
        let lossless = buffer.lossless.contains(&true);
        let reserved = if lossless { buffer.headroom_per_port } else { 0 };
        let rest = buffer.total_bytes.saturating_sub(reserved.saturating_mul(ports as u64));
        if self.uet_policy_enabled {
            let [trimmed, control] = [rest / 7 * 2 + rest % 7 * 2 / 7; 2];
            return vec![rest - trimmed - control, trimmed, control];
        }
        let used = buffer.pool_shares.iter().rposition(|share| share.as_ppm() > 0);
        let shares = &buffer.pool_shares[..used.map_or(0, |last| last + 1)];
        let mut pools: Vec<u64> = shares.iter().map(|share| share.of(rest)).collect();
        let ppm: u64 = shares.iter().map(|share| u64::from(share.as_ppm())).sum();
        let all = (u128::from(rest) * u128::from(ppm) / 1_000_000) as u64;
        let difference = all.saturating_sub(pools.iter().sum());
        pools.last_mut().into_iter().for_each(|last| *last += difference);
        pools
    }

    /// The pool of each class.
    // spec: SW-4, SW-15
    pub const fn class_pools(&self) -> [u32; SWITCH_CLASSES] {
        if self.uet_policy_enabled { [0, 1, 2, 0, 0, 0, 0, 0] } else { self.buffer.class_pools }
    }
}
