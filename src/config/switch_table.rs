//! The attributes of a switch by name.

use super::SwitchAttributes;
use super::factor::AnyFactor;
use super::kind::{AnyRate, AnyShare, Array, Bit, Choice, Flag, List, Size, Time, Whole};
use super::switch::{EcmpHashMethod, LinkDownReaction, LoadBalancing, SWITCH_CLASSES, TrimVictim};
use super::table::{Attribute, Field, Group, Table, attribute};
use crate::time::Duration;
use crate::wire::trim::TrimIpLength;

macro_rules! switch {
    ($($attribute:tt)*) => { attribute!(SwitchAttributes, $($attribute)*) };
}

/// The attributes of a switch. Its UDP port and codepoints are the lab's, set
/// with the NICs'.
pub static SWITCH_ATTRIBUTES: Table<SwitchAttributes> =
    Table { owner: "switch", groups: &[FORWARDING, PATHS, BUFFER, QUEUES, ECN] };

const ANY_SIZE: Size = Size { min: 0, max: 1 << 40 };

// spec: TIME-3, SW-1
const FORWARDING: Group<SwitchAttributes> = Group {
    name: "Links and forwarding",
    attributes: &[
        switch!(
            "DataRate",
            AnyRate,
            data_rate,
            "Rate of every port that a link does not set otherwise."
        ),
        switch!(
            "Delay",
            Time { min: Duration::ZERO, max: Duration::from_secs(1) },
            delay,
            "Delay of links between switches."
        ),
        switch!(
            "Paced",
            Flag,
            paced,
            "Serialization and the links' delays take modelled time; false: the host's own speed."
        ),
        switch!(
            "DecrementTtl",
            Flag,
            decrement_ttl,
            "Takes one from the time to live of every packet, and drops the packet at 0."
        ),
    ],
};

// spec: SW-12, SW-13, SW-14
const PATHS: Group<SwitchAttributes> = Group {
    name: "Paths",
    attributes: &[
        switch!(
            "EcmpHashMethod",
            Choice(&[
                ("crc32WithSalt", EcmpHashMethod::Crc32WithSalt),
                ("crc32", EcmpHashMethod::Crc32),
                ("hashWithSalt", EcmpHashMethod::HashWithSalt),
                ("hash", EcmpHashMethod::Hash),
                ("dpr", EcmpHashMethod::Dpr),
                ("dprWithFallback", EcmpHashMethod::DprWithFallback),
            ]),
            paths.hash,
            "How a packet chooses among equal-cost ports, modulo their number: by its flow, with a salt of the switch's own or without; dpr: by the low nine bits of its destination address less one; dprWithFallback: the same without the modulo, and crc32WithSalt where there is no such port."
        ),
        switch!(
            "LinkDownReaction",
            Choice(&[("keep", LinkDownReaction::Keep), ("remove", LinkDownReaction::Remove)]),
            paths.link_down,
            "Whether a port whose link is down stays among equal-cost ports, and loses what takes it, or leaves them until the link is up again."
        ),
        switch!(
            "LoadBalancingMethod",
            Choice(&[("none", LoadBalancing::None), ("flowlet", LoadBalancing::Flowlet)]),
            paths.load_balancing,
            "Whether a flow keeps its port, or takes the one with the least to send whenever it has been idle."
        ),
        switch!(
            "FlowletGap",
            Time { min: Duration::ZERO, max: Duration::from_secs(2) },
            paths.flowlet_gap,
            "How long a flow has been idle before it may change its port under flowlet; 0 s: it may at every packet."
        ),
        switch!(
            "PFCAware",
            Flag,
            paths.pfc_aware,
            "Under flowlet a flow avoids ports whose peer has paused its class, unless all are."
        ),
    ],
};

// spec: SW-4, SW-5, SW-9
const BUFFER: Group<SwitchAttributes> = Group {
    name: "Shared buffer",
    attributes: &[
        switch!(
            "TotalSharedBufferSize",
            Size { min: 1, max: 1 << 40 },
            buffer.total_bytes,
            "Memory for what waits in the switch, shared by all ports."
        ),
        switch!(
            "HeadRoomPerPortLimit",
            ANY_SIZE,
            buffer.headroom_per_port,
            "What a port may hold beyond a pause, per pool; set aside first for every port where EnablePFC has a lossless class."
        ),
        switch!(
            "PoolAllocationMap",
            List { of: AnyShare, min: 1, max: SWITCH_CLASSES },
            buffer.pool_shares,
            "Each pool's share of what is not set aside; not used under the UET policy."
        ),
        switch!(
            "TrafficClassPoolMapping",
            Array(Whole { min: 0_u32, max: 7 }),
            buffer.class_pools,
            "The pool of each traffic class, TC0 first; not used under the UET policy."
        ),
        switch!(
            "EnablePFC",
            Array(Bit),
            buffer.lossless,
            "Whether each traffic class is lossless, TC0 first."
        ),
        switch!(
            "StaticPoolXoffThreshold",
            ANY_SIZE,
            buffer.xoff,
            "A port that holds more than this, per pool, pauses the senders of its lossless classes."
        ),
        switch!(
            "StaticPoolXonThreshold",
            ANY_SIZE,
            buffer.xon,
            "A port that holds this or less, per pool, and no headroom, lets them go on."
        ),
        switch!(
            "LossyAlpha",
            AnyFactor,
            buffer.lossy_alpha,
            "A lossy queue may hold so many times what its pool has free; 0: a fixed limit. Not used under the UET policy."
        ),
        switch!(
            "QueueDropThresholdEnable",
            Flag,
            buffer.queue_drop_threshold_enable,
            "Which limit is the fixed one: true: QueueDropThreshold x PlaneBDP; false: an equal part of the pool for each port."
        ),
        switch!(
            "QueueDropThreshold",
            Whole { min: 1_u64, max: 1_000 },
            buffer.queue_drop_threshold,
            "A queue's fixed limit in units of PlaneBDP; under the UET policy where TrimmingEnabled is false."
        ),
    ],
};

// spec: SW-2, SW-15, SW-16, SW-17
const QUEUES: Group<SwitchAttributes> = Group {
    name: "Classes and trimming",
    attributes: &[
        switch!(
            "UETPolicyEnabled",
            Flag,
            uet_policy_enabled,
            "Three traffic classes by the packet's role, each with its pool and a fixed queue limit; false: eight, DSCP / 8."
        ),
        switch!(
            "PlaneBDP",
            Size { min: 64, max: 1 << 40 },
            plane_bdp,
            "What a path holds in a round trip; in a scenario that does not set it the lowest DataRate of a NIC x its ConfigBaseRTT. Under the UET policy with trimming the queue limit per port and class, in bytes of IP datagrams."
        ),
        switch!(
            "TrimmingEnabled",
            Flag,
            trimming_enabled,
            "Cuts trimmable packets that find their queue full to their headers."
        ),
        switch!(
            "TrimIpLength",
            Choice(&[("fix", TrimIpLength::Fix), ("keep", TrimIpLength::Keep)]),
            trim_ip_length,
            "Whether a trimmed packet's lengths say what is left or what was there."
        ),
        switch!(
            "TrimVictim",
            Choice(&[("arriving", TrimVictim::Arriving), ("random", TrimVictim::Random)]),
            trim_victim,
            "Which packet is cut when the queue is full: the arriving one, or that or the newest in the queue at random."
        ),
    ],
};

// spec: SW-11, SW-15
const ECN: Group<SwitchAttributes> = Group {
    name: "ECN",
    attributes: &[
        switch!("EnableEcn", Flag, ecn.enabled, "Marks packets that leave long queues."),
        switch!(
            "EwmaWeight",
            AnyShare,
            ecn.weight,
            "What the latest length counts for in a queue's mean, which decides."
        ),
        switch!(
            "MinThreshold",
            AnyShare,
            ecn.min_threshold,
            "Below this share of the static limit no packet is marked."
        ),
        switch!(
            "MaxThreshold",
            AnyShare,
            ecn.max_threshold,
            "From this share of the static limit on every packet is marked."
        ),
        switch!(
            "MaxMarkProbability",
            AnyShare,
            ecn.max_probability,
            "The probability that is reached in a straight line between the two."
        ),
        switch!("EcnLastHop", Flag, ecn.last_hop, "Marks packets that leave towards a NIC too."),
    ],
};
