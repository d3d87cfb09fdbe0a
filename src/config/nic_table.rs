//! The attributes of a NIC by their names.

use super::buffers::QueueScheduling;
use super::congestion::CONGESTION;
use super::kind::{
    Address, AnyRate, AnyShare, Array, Choice, ClassFlags, Flag, List, Or, Size, Time, Whole,
};
use super::nic::{NicAttributes, RttTimestampMode};
use super::table::{Attribute, Field, Group, Table, attribute};
use crate::time::Duration;
use crate::wire::psn::Psn;

macro_rules! nic {
    ($($attribute:tt)*) => { attribute!(NicAttributes, $($attribute)*) };
}

const CODEPOINT: Whole<u8> = Whole { min: 0, max: 63 };
const BUFFER: Size = Size { min: 1, max: 1 << 40 };
const POOL_SHARES: List<AnyShare> = List { of: AnyShare, min: 1, max: 8 };
const QP_COUNT: Whole<u32> = Whole { min: 1, max: 1_048_576 };

/// The attributes of a NIC.
pub static NIC_ATTRIBUTES: Table<NicAttributes> = Table {
    owner: "NIC",
    groups: &[
        QUEUE_PAIRS,
        LINK,
        ROUND_TRIPS,
        CONGESTION,
        LOSS,
        TRIMMING,
        MULTIPATH,
        PCIE,
        EGRESS,
        INGRESS,
        PFC,
        WIRE_FORMAT,
        LIMITS,
    ],
};

// spec: SEG-1, SEG-5, SCHED-1, SCHED-7, W-7
const QUEUE_PAIRS: Group<NicAttributes> = Group {
    name: "Queue pairs",
    attributes: &[
        nic!("MSS", Whole { min: 1, max: 8_192 }, mss, "Payload bytes in a full packet."),
        nic!(
            "MaxPSNRange",
            Whole { min: 1, max: 32_640 },
            max_psn_range,
            "Packets allowed beyond the cumulative PSN."
        ),
        Attribute {
            name: "InitialPsn",
            doc: "The first PSN of every QP; \"random\": drawn from the seed.",
            place: &Field {
                kind: Or { word: "random", kind: Whole { min: 0, max: 0xff_ffff } },
                get: |nic: &NicAttributes| nic.initial_psn.map(|psn| u64::from(psn.value())),
                set: |nic, value| nic.initial_psn = value.map(Psn::masked),
            },
        },
        nic!(
            "QPGroupsEnabled",
            Flag,
            qp_groups_enabled,
            "All QPs to one peer share a congestion window and a place in the schedule."
        ),
    ],
};

// spec: TIME-3, PB-16
const LINK: Group<NicAttributes> = Group {
    name: "Link",
    attributes: &[
        nic!(
            "DataRate",
            AnyRate,
            data_rate,
            "The NIC's rate; its link runs at the lower of both ends' rates."
        ),
        nic!(
            "Delay",
            Time { min: Duration::ZERO, max: Duration::from_secs(1) },
            delay,
            "The delay of the NIC's link."
        ),
        nic!(
            "Paced",
            Flag,
            paced,
            "Serialization, the link's delay and PCIe take modelled time; false: the host's own speed."
        ),
    ],
};

// spec: RTT-2
const ROUND_TRIPS: Group<NicAttributes> = Group {
    name: "Round trips",
    attributes: &[
        nic!(
            "ConfigBaseRTT",
            Time { min: Duration::from_ps(1), max: Duration::from_secs(1) },
            config_base_rtt,
            "The round trip that the window is computed from."
        ),
        nic!(
            "RTTTimestampMode",
            Choice(&[
                ("LocalDatabase", RttTimestampMode::LocalDatabase),
                ("WireTimestamp", RttTimestampMode::WireTimestamp),
            ]),
            rtt_timestamp_mode,
            "How round-trip times are sampled."
        ),
    ],
};

// spec: LOSS-7, RTO-4, RTO-5, RTO-6, RTO-8
const LOSS: Group<NicAttributes> = Group {
    name: "Loss recovery",
    attributes: &[
        nic!(
            "SACKLossMinRetxPkts",
            Whole { min: 0, max: 32_640 },
            sack_loss_min_retx_pkts,
            "How many PSNs below the highest listed one a packet may be before it is presumed lost."
        ),
        nic!(
            "SackGapRecoveryGate",
            Flag,
            sack_gap_recovery_gate,
            "No further gaps are looked for until the recovery point is acknowledged."
        ),
        nic!(
            "InitialAckTimeout",
            Time { min: Duration::from_ns(1), max: Duration::from_secs(8) },
            initial_ack_timeout,
            "The base retransmission timeout."
        ),
        nic!(
            "LinearRetryCount",
            Whole { min: 0, max: 7 },
            linear_retry_count,
            "Timers that run at the base timeout."
        ),
        nic!(
            "ExponentialRetryCount",
            Whole { min: 0, max: 25 },
            exponential_retry_count,
            "Timers that double; 25: a packet is retried for ever."
        ),
        nic!(
            "FixedRexmitTimeEnable",
            Flag,
            fixed_rexmit_time_enable,
            "Every timer runs at the base timeout."
        ),
    ],
};

// spec: DSCP-2
const TRIMMING: Group<NicAttributes> = Group {
    name: "Trimming",
    attributes: &[
        nic!(
            "TrimmingEnabled",
            Flag,
            trimming_enabled,
            "Marks packets as trimmable and answers trimmed ones with NACKs."
        ),
        nic!(
            "UseDistinctDSCPForRetransmits",
            Flag,
            use_distinct_dscp_for_retransmits,
            "Every retransmission carries the trimmable-retransmission codepoint."
        ),
    ],
};

// spec: MP-2
const MULTIPATH: Group<NicAttributes> = Group {
    name: "Multipath",
    attributes: &[
        nic!(
            "EntropyMaskBits",
            Whole { min: 0, max: 8 },
            entropy_mask_bits,
            "The entropy set has 2^this values."
        ),
        nic!(
            "StartingPortOffset",
            Whole { min: 0, max: u16::MAX },
            starting_port_offset,
            "The first entropy value of the set, a UDP source port."
        ),
    ],
};

// spec: PB-1, PB-4, PCIE-1
const PCIE: Group<NicAttributes> = Group {
    name: "PCIe",
    attributes: &[
        nic!(
            "ReadRequestSize",
            Whole { min: 1, max: 4_096 },
            read_request_bytes,
            "Bytes of the request by which the NIC fetches a packet's payload."
        ),
        nic!(
            "PcieNicSide.LaneCount",
            Whole { min: 1, max: 16 },
            pcie_nic.lane_count,
            "Lanes that the NIC sends on, to the host."
        ),
        nic!(
            "PcieNicSide.LaneBps",
            AnyRate,
            pcie_nic.lane_rate,
            "The rate of each of these lanes."
        ),
        nic!(
            "PcieNicSide.TXDataBufferSize",
            BUFFER,
            pcie_nic.tx_data_bytes,
            "Payload that may wait at the NIC to be sent."
        ),
        nic!(
            "PcieNicSide.RXDataBufferSize",
            BUFFER,
            pcie_nic.rx_data_bytes,
            "Payload that may wait at the NIC after it has arrived."
        ),
        nic!(
            "PcieNicSide.TXHeaderBufferSize",
            BUFFER,
            pcie_nic.tx_header_bytes,
            "Overhead of transfers that may wait at the NIC to be sent."
        ),
        nic!(
            "PcieNicSide.RXHeaderBufferSize",
            BUFFER,
            pcie_nic.rx_header_bytes,
            "Overhead of transfers that may wait at the NIC after it has arrived."
        ),
        nic!(
            "PcieHostSide.LaneCount",
            Whole { min: 1, max: 16 },
            pcie_host.lane_count,
            "Lanes that the host sends on, to the NIC."
        ),
        nic!(
            "PcieHostSide.LaneBps",
            AnyRate,
            pcie_host.lane_rate,
            "The rate of each of these lanes."
        ),
        nic!(
            "PcieHostSide.TXDataBufferSize",
            BUFFER,
            pcie_host.tx_data_bytes,
            "Payload that may wait at the host to be sent."
        ),
        nic!(
            "PcieHostSide.RXDataBufferSize",
            BUFFER,
            pcie_host.rx_data_bytes,
            "Payload that may wait at the host after it has arrived."
        ),
        nic!(
            "PcieHostSide.TXHeaderBufferSize",
            BUFFER,
            pcie_host.tx_header_bytes,
            "Overhead of transfers that may wait at the host to be sent."
        ),
        nic!(
            "PcieHostSide.RXHeaderBufferSize",
            BUFFER,
            pcie_host.rx_header_bytes,
            "Overhead of transfers that may wait at the host after it has arrived."
        ),
    ],
};

// spec: PB-8, PB-10
const EGRESS: Group<NicAttributes> = Group {
    name: "Egress buffer",
    attributes: &[
        nic!(
            "EgressBufferManager.TotalBufferSize",
            BUFFER,
            egress_buffer.total_bytes,
            "The buffer of packets that wait to be sent."
        ),
        nic!(
            "EgressBufferManager.PoolAllocationVector",
            POOL_SHARES,
            egress_buffer.shares,
            "Each class's share of it, data first, then control."
        ),
        nic!(
            "QueueSchedulingType",
            Choice(&[
                ("StrictPriority", QueueScheduling::StrictPriority),
                ("RoundRobin", QueueScheduling::RoundRobin),
                ("WeightedRoundRobin", QueueScheduling::WeightedRoundRobin),
            ]),
            queue_scheduling,
            "Which class sends next: control first, each in turn, or each by its weight."
        ),
        nic!(
            "WRRQueueWeights",
            Array(Whole { min: 1, max: 1_000 }),
            wrr_weights,
            "Packets a turn under WeightedRoundRobin at most, of data and of control."
        ),
    ],
};

// spec: PB-11, PB-14
const INGRESS: Group<NicAttributes> = Group {
    name: "Ingress buffer",
    attributes: &[
        nic!(
            "IngressBufferManager.TotalBufferSize",
            BUFFER,
            ingress_buffer.total_bytes,
            "The buffer of packets that have arrived."
        ),
        nic!(
            "IngressBufferManager.PoolAllocationVector",
            POOL_SHARES,
            ingress_buffer.shares,
            "Each class's share of it, data first, then control."
        ),
        nic!(
            "ReceiverCongestionLowThreshold",
            AnyShare,
            receiver_congestion_low,
            "How full the data pool is when senders begin to be slowed."
        ),
        nic!(
            "ReceiverCongestionHighThreshold",
            AnyShare,
            receiver_congestion_high,
            "How full the data pool is when senders are slowed most."
        ),
        nic!(
            "RestoreCWindEnable",
            Flag,
            restore_cwnd,
            "Tells senders to restore their window when they need not be slow any more."
        ),
    ],
};

// spec: PB-12
const PFC: Group<NicAttributes> = Group {
    name: "PFC",
    attributes: &[
        nic!(
            "PFCEnableVector",
            ClassFlags,
            pfc.enabled,
            "Whether the peer is paused when a pool fills up, for data and for control."
        ),
        nic!(
            "PfcStaticXoffThreshold",
            AnyShare,
            pfc.xoff,
            "How full the pool is when the peer is paused."
        ),
        nic!(
            "PfcXonResumeThreshold",
            AnyShare,
            pfc.xon,
            "How full the pool still is when the peer may go on."
        ),
        nic!(
            "QuantaValue",
            Whole { min: 1, max: u16::MAX },
            pfc.quanta,
            "How long a pause lasts, in quanta of 512 bit times."
        ),
    ],
};

// spec: W-2, W-3, W-13
const WIRE_FORMAT: Group<NicAttributes> = Group {
    name: "Wire format",
    attributes: &[
        nic!(
            "UdpPort",
            Whole { min: 1, max: u16::MAX },
            udp_port,
            "UDP destination port of every packet."
        ),
        nic!("Icrc", Flag, icrc, "Frames end in the RoCEv2 ICRC."),
        nic!(
            "DscpNoTrim",
            CODEPOINT,
            codepoints.no_trim,
            "Codepoint of packets that are not trimmed."
        ),
        nic!(
            "DscpTrimmable",
            CODEPOINT,
            codepoints.trimmable,
            "Codepoint of trimmable first transmissions."
        ),
        nic!(
            "DscpTrimmableRetransmission",
            CODEPOINT,
            codepoints.trimmable_rtx,
            "Codepoint of trimmable retransmissions."
        ),
        nic!(
            "DscpTrimmed",
            CODEPOINT,
            codepoints.trimmed,
            "Codepoint of packets trimmed on the way."
        ),
        nic!(
            "DscpTrimmedLastHop",
            CODEPOINT,
            codepoints.trimmed_last_hop,
            "Codepoint of packets trimmed on the last hop."
        ),
        nic!("DscpControl", CODEPOINT, codepoints.control, "Codepoint of ACKs, SACKs and NACKs."),
    ],
};

// spec: REL-1, REL-4
const LIMITS: Group<NicAttributes> = Group {
    name: "Limits",
    attributes: &[
        nic!("MaxQps", QP_COUNT, max_qps, "How many receiving sides there may be."),
        nic!(
            "MaxReceiveQpsPerPeer",
            QP_COUNT,
            max_receive_qps_per_peer,
            "How many receiving sides one peer may have."
        ),
        nic!(
            "AllowedPeers",
            List { of: Address, min: 0, max: 65_536 },
            allowed_peers,
            "Who may send to this NIC; []: everyone."
        ),
        nic!(
            "QpIdleTimeout",
            Time { min: Duration::from_us(1), max: Duration::from_secs(3_600) },
            qp_idle_timeout,
            "How long a receiving side may be idle before it is closed."
        ),
        nic!(
            "QpTombstoneTime",
            Or {
                word: "auto",
                kind: Time { min: Duration::ZERO, max: Duration::from_secs(3_600) }
            },
            qp_tombstone_time,
            "How long a closed receiving side is remembered; \"auto\": 512 base timeouts, at most 60 s."
        ),
        nic!(
            "MaxTombstones",
            Whole { min: 0, max: 1_048_576 },
            max_tombstones,
            "How many closed receiving sides are remembered; the oldest go first."
        ),
    ],
};
