//! A NIC's attributes.

use core::net::Ipv4Addr;

use super::buffers::{BufferAttributes, PcieSide, PfcAttributes, QueueScheduling};
use super::congestion::CongestionAttributes;
use crate::time::Duration;
use crate::units::{Rate, Share};
use crate::wire::packet::{DATA_IP_OVERHEAD, DATA_OVERHEAD, FrameFormat, ICRC, TSETH};
use crate::wire::psn::Psn;
use crate::wire::role::Codepoints;

/// How round-trip times are sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RttTimestampMode {
    /// The sender keeps each packet's send time.
    LocalDatabase,
    /// Data packets carry the time at which they were built.
    WireTimestamp,
}

/// Every attribute of a NIC. `Default` is the reference profile.
#[derive(Clone, PartialEq, Debug)]
pub struct NicAttributes {
    /// Payload bytes in a full packet.
    pub mss: u32,
    /// Packets allowed beyond the cumulative PSN.
    pub max_psn_range: u32,
    /// The first PSN of every QP; drawn at random when `None`.
    pub initial_psn: Option<Psn>,
    /// The NIC's rate.
    pub data_rate: Rate,
    /// Whether serialization, link delay and PCIe take modelled time (not in native).
    pub paced: bool,
    /// The delay of the NIC's link.
    pub delay: Duration,
    /// The round trip that the window is computed from.
    pub config_base_rtt: Duration,
    /// How the congestion window starts and moves.
    pub congestion: CongestionAttributes,
    /// Marks packets as trimmable; answers trimmed ones with NACKs.
    pub trimming_enabled: bool,
    /// Retransmissions carry a codepoint of their own.
    pub use_distinct_dscp_for_retransmits: bool,
    /// The reorder allowance of SACK-gap loss detection, in PSNs.
    pub sack_loss_min_retx_pkts: u32,
    /// No further gaps are looked for during loss recovery.
    pub sack_gap_recovery_gate: bool,
    /// The base retransmission timeout.
    pub initial_ack_timeout: Duration,
    /// Timers that run at the base timeout before doubling begins.
    pub linear_retry_count: u32,
    /// Timers that double; 25 means no budget at all.
    pub exponential_retry_count: u32,
    /// Every timer runs at the base timeout.
    pub fixed_rexmit_time_enable: bool,
    /// How RTT is sampled.
    pub rtt_timestamp_mode: RttTimestampMode,
    /// The entropy set has 2^this values.
    pub entropy_mask_bits: u32,
    /// The first entropy value of the set.
    pub starting_port_offset: u16,
    /// UDP destination port.
    pub udp_port: u16,
    /// Frames end in the RoCEv2 ICRC.
    pub icrc: bool,
    /// The six roles' codepoints.
    pub codepoints: Codepoints,
    /// How long a closed receiving side is remembered; `None`: the smaller of
    /// 512 base timeouts and 60 s.
    pub qp_tombstone_time: Option<Duration>,
    /// How many closed receiving sides are remembered at most.
    pub max_tombstones: u32,
    /// How many receiving sides there may be.
    pub max_qps: u32,
    /// How many of them one peer may have.
    pub max_receive_qps_per_peer: u32,
    /// Who may send to this NIC; empty: everyone.
    pub allowed_peers: Vec<Ipv4Addr>,
    /// How long a receiving side may be idle before it is closed.
    pub qp_idle_timeout: Duration,
    /// All QPs to one peer share a congestion window and a place in the schedule.
    pub qp_groups_enabled: bool,
    /// The size of a PCIe read request, in bytes.
    pub read_request_bytes: u32,
    /// The NIC's end of the PCIe link.
    pub pcie_nic: PcieSide,
    /// The host's end of the PCIe link.
    pub pcie_host: PcieSide,
    /// The buffer of packets that wait to be sent.
    pub egress_buffer: BufferAttributes,
    /// Which class sends next.
    pub queue_scheduling: QueueScheduling,
    /// Packets a turn of each class under weighted round robin.
    pub wrr_weights: [u32; 2],
    /// The buffer of packets that have arrived.
    pub ingress_buffer: BufferAttributes,
    /// When the peer is paused.
    pub pfc: PfcAttributes,
    /// The share of the ingress data pool at which the receiver penalty begins.
    pub receiver_congestion_low: Share,
    /// The share of the ingress data pool at which the receiver penalty is full.
    pub receiver_congestion_high: Share,
    /// SACKs without a penalty let the sender's window return to what it was.
    pub restore_cwnd: bool,
}

impl Default for NicAttributes {
    fn default() -> Self {
        Self {
            mss: 4096,
            max_psn_range: 1024,
            initial_psn: Some(Psn::masked(0)),
            data_rate: Rate::gbps(400),
            paced: true,
            delay: Duration::from_ns(100),
            config_base_rtt: Duration::from_us(6),
            congestion: CongestionAttributes::default(),
            trimming_enabled: true,
            use_distinct_dscp_for_retransmits: true,
            sack_loss_min_retx_pkts: 512,
            sack_gap_recovery_gate: true,
            initial_ack_timeout: Duration::from_us(150),
            linear_retry_count: 7,
            exponential_retry_count: 25,
            fixed_rexmit_time_enable: false,
            rtt_timestamp_mode: RttTimestampMode::LocalDatabase,
            entropy_mask_bits: 7,
            starting_port_offset: 49_152,
            udp_port: 4791,
            icrc: false,
            codepoints: Codepoints::default(),
            qp_tombstone_time: None,
            max_tombstones: 65_536,
            max_qps: 65_536,
            max_receive_qps_per_peer: 4_096,
            allowed_peers: Vec::new(),
            qp_idle_timeout: Duration::from_secs(10),
            qp_groups_enabled: true,
            read_request_bytes: 64,
            pcie_nic: PcieSide::default(),
            pcie_host: PcieSide::default(),
            egress_buffer: BufferAttributes::of(256_000),
            queue_scheduling: QueueScheduling::StrictPriority,
            wrr_weights: [1, 5],
            ingress_buffer: BufferAttributes::of(4_000_000),
            pfc: PfcAttributes::default(),
            receiver_congestion_low: Share::from_ppm(250_000),
            receiver_congestion_high: Share::from_ppm(750_000),
            restore_cwnd: false,
        }
    }
}

impl NicAttributes {
    /// How frames of this NIC look.
    pub fn frame_format(&self) -> FrameFormat {
        FrameFormat { icrc: self.icrc, udp_port: self.udp_port, codepoints: self.codepoints }
    }

    /// What a data packet has on the wire beside its payload, in bytes: 78, and 4
    /// each for a timestamp and an ICRC.
    // spec: SEG-4, WIRE-9, W-3
    pub fn data_overhead(&self) -> u64 {
        let timestamped = self.rtt_timestamp_mode == RttTimestampMode::WireTimestamp;
        let timestamp = if timestamped { TSETH } else { 0 };
        (DATA_OVERHEAD + timestamp) as u64 + self.icrc_bytes()
    }

    /// The bytes of a packet's ICRC: 4 or none.
    // spec: W-3
    pub fn icrc_bytes(&self) -> u64 {
        if self.icrc { ICRC as u64 } else { 0 }
    }

    /// The unit of the congestion window: a full packet's IP datagram, MSS + 60 bytes.
    // spec: WIRE-9
    pub fn nominal_packet(&self) -> u64 {
        u64::from(self.mss) + DATA_IP_OVERHEAD as u64
    }

    /// What a path holds in a round trip when this is the slowest NIC, in bytes;
    /// at least one nominal packet.
    // spec: SW-9
    pub fn plane_bdp(&self) -> u64 {
        self.data_rate.bytes_in(self.config_base_rtt).max(self.nominal_packet())
    }

    /// The largest congestion window over a link of this rate, which a group starts
    /// with, in bytes: 1.5 bandwidth-delay products, or MaxCongestionWindow; at
    /// least one nominal packet, so that a slow link sends too.
    // spec: CC-11
    pub fn max_window(&self, link: Rate) -> u64 {
        let nominal = self.nominal_packet();
        match self.congestion.override_max_window {
            true => u64::from(self.congestion.max_window_packets) * nominal,
            false => self.derived_window(link, self.config_base_rtt),
        }
    }

    /// 1.5 bandwidth-delay products of a link of this rate and a round trip of
    /// `rtt`, in bytes; at least one nominal packet.
    // spec: CC-9, CC-11
    pub fn derived_window(&self, link: Rate, rtt: Duration) -> u64 {
        (link.bytes_in(rtt).saturating_mul(3) / 2).max(self.nominal_packet())
    }

    /// The queueing delay that congestion control aims at.
    pub fn target_queue_delay(&self) -> Duration {
        match (self.congestion.override_target_queue_delay, self.trimming_enabled) {
            (true, _) => self.congestion.target_queue_delay,
            (false, true) => Duration::from_ps(self.config_base_rtt.as_ps() / 4 * 3),
            (false, false) => self.config_base_rtt,
        }
    }

    /// How long a closed receiving side is remembered.
    // spec: REL-4
    pub fn tombstone_time(&self) -> Duration {
        let default = (self.initial_ack_timeout * 512).min(Duration::from_secs(60));
        self.qp_tombstone_time.unwrap_or(default)
    }
}
