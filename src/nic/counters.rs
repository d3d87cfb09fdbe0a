//! What a NIC counts.

use serde::Serialize;

use crate::trace::WindowCause;

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
    /// Times that a window grew because delay was above its target without a mark.
    pub cwnd_fair: u64,
    /// Times that a window grew because delay was below its target.
    pub cwnd_proportional: u64,
    /// Times that a window grew fast, after a whole one without delay.
    pub cwnd_fast: u64,
    /// Times that a window grew because a round trip had passed.
    pub cwnd_eta: u64,
    /// Times that a window was lowered on a mark with delay above its target.
    pub cwnd_decrease: u64,
    /// Times that a window became what had got through.
    pub quick_adapt: u64,
    /// Times that a trimmed packet was taken off a window.
    pub cwnd_trim: u64,
    /// Times that a packet was taken off a window after a timeout.
    pub cwnd_timeout: u64,
    /// Times that a packet was taken off a window after a SACK gap.
    pub cwnd_sack_gap: u64,
    /// Times that a window was lowered for the receiver's penalty.
    pub cwnd_penalty: u64,
    /// Times that a window returned to what it was before penalties.
    pub cwnd_restore: u64,
    /// Times that a base RTT fell.
    pub base_rtt_falls: u64,
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

impl NicCounters {
    /// A rule of congestion control has acted.
    // spec: CC-2, CC-3, CC-4, CC-5, CC-6, CC-7, CC-9
    pub(super) fn count_window(&mut self, cause: WindowCause) {
        let counter = match cause {
            WindowCause::Fair => &mut self.cwnd_fair,
            WindowCause::Proportional => &mut self.cwnd_proportional,
            WindowCause::Fast => &mut self.cwnd_fast,
            WindowCause::Eta => &mut self.cwnd_eta,
            WindowCause::Decrease => &mut self.cwnd_decrease,
            WindowCause::QuickAdapt => &mut self.quick_adapt,
            WindowCause::Trim => &mut self.cwnd_trim,
            WindowCause::Timeout => &mut self.cwnd_timeout,
            WindowCause::SackGap => &mut self.cwnd_sack_gap,
            WindowCause::Penalty => &mut self.cwnd_penalty,
            WindowCause::Restore => &mut self.cwnd_restore,
            WindowCause::BaseRtt => &mut self.base_rtt_falls,
        };
        *counter += 1;
    }
}
