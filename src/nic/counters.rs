//! What a NIC counts.

use serde::Serialize;

/// A NIC's counters since it started. The names are those of the records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NicCounters {
    /// Packets sent.
    pub pkts_sent: u64,
    /// Packets received and understood.
    pub pkts_rcvd: u64,
    /// Data packets sent, retransmissions too.
    pub write_pkts_sent: u64,
    /// Untrimmed data packets received.
    pub write_pkts_rcvd: u64,
    /// Payload bytes of data packets that had not arrived before.
    pub write_bytes_rcvd: u64,
    /// Cumulative ACKs sent.
    pub ack_pkts_sent: u64,
    /// Cumulative ACKs received.
    pub ack_pkts_rcvd: u64,
    /// SACKs sent.
    pub sack_pkts_sent: u64,
    /// SACKs received.
    pub sack_pkts_rcvd: u64,
    /// NACKs sent.
    pub nack_pkts_sent: u64,
    /// NACKs received.
    pub nack_pkts_rcvd: u64,
    /// Trimmed data packets received.
    pub trimmed_pkts_rcvd: u64,
    /// Round-trip times sampled.
    pub rtt_samples: u64,
    /// Messages posted.
    pub wqes_created: u64,
    /// Messages covered by a cumulative ACK.
    pub wqes_completed: u64,
    /// Messages received whole.
    pub messages_rcvd: u64,
    /// Data packets that arrived ahead of a gap.
    pub out_of_order_events: u64,
    /// Data packets that had arrived before.
    pub dup_events: u64,
    /// Retransmission timers that expired on an outstanding packet.
    pub rto: u64,
    /// Retransmissions handed to the egress queue, whatever the cause.
    pub rtx: u64,
    /// Retransmissions caused by NACKs.
    pub rtx_nack: u64,
    /// Retransmissions caused by SACK gaps.
    pub rtx_sack_gap: u64,
    /// Retransmissions caused by timeouts.
    pub rtx_timeout: u64,
    /// Completion re-requests sent.
    pub completion_rerequests: u64,
    /// Sides of QPs created.
    pub qp_created: u64,
    /// Sides of QPs closed.
    pub qp_closed: u64,
    /// QPs that went into the error state.
    pub qp_error: u64,
    /// Times that a QP had to wait because its PSN window was full.
    pub psn_window_stalls: u64,
    /// Times that a group had to wait because its congestion window was full.
    pub cwnd_stalls: u64,
    /// Times that a pass stopped because the egress pool was full.
    pub egress_pool_stalls: u64,
    /// Pause frames sent.
    pub pfc_pauses_sent: u64,
    /// Resume frames (pauses of no time) sent.
    pub pfc_resumes_sent: u64,
    /// Pause frames received, for each of the NIC's classes that they name.
    pub pfc_pauses_rcvd: u64,
    /// Resume frames received, for each of the NIC's classes that they name.
    pub pfc_resumes_rcvd: u64,
    /// Data packets received with a CE mark.
    pub ecn_marked_rcvd: u64,
}
