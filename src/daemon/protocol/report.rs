//! What daemons report: QPs, events, how the run goes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::capture::CaptureSummary;
use crate::nic::{QpInfo, QpSide, RetransmitCounts, RttStatistics, WindowInfo};
use crate::time::{Duration, Instant};
use crate::trace::{QpAddress, QpEvent, QpEventKind};

/// A side of a QP.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QpReport {
    /// Which side.
    #[serde(with = "QpSideDef")]
    pub side: QpSide,
    /// This end.
    #[serde(with = "qp_address")]
    pub local: QpAddress,
    /// The other end; its number is 0 until it is known.
    #[serde(with = "qp_address")]
    pub remote: QpAddress,
    /// The cumulative PSN.
    pub cumulative_psn: u32,
    /// Sending: messages that are not complete. Receiving: messages received.
    pub messages: u64,
    /// Sending: packets sent beyond the cumulative PSN. Receiving: packets held
    /// out of order.
    pub beyond_cumulative: u64,
    /// Sending: packets sent again, by cause.
    pub retransmissions: RetransmitCounts,
    /// Sending: round-trip times of the QPs that share its congestion window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<RttReport>,
    /// Sending: the congestion window of its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowReport>,
    /// Why it is in the error state, when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl From<QpInfo> for QpReport {
    fn from(info: QpInfo) -> Self {
        Self {
            side: info.side,
            local: info.local,
            remote: info.remote,
            cumulative_psn: info.cumulative.value(),
            messages: info.messages,
            beyond_cumulative: info.beyond_cumulative,
            retransmissions: info.retransmissions,
            rtt: info.rtt.as_ref().map(RttReport::from),
            window: info.window.as_ref().map(WindowReport::from),
            error: info.error.map(|reason| reason.name().to_owned()),
        }
    }
}

/// Round-trip times, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RttReport {
    /// How many were sampled.
    pub samples: u64,
    /// The shortest.
    pub min_ps: u64,
    /// The mean.
    pub mean_ps: u64,
    /// The longest.
    pub max_ps: u64,
    /// The latest.
    pub last_ps: u64,
}

impl From<&RttStatistics> for RttReport {
    fn from(statistics: &RttStatistics) -> Self {
        Self {
            samples: statistics.samples,
            min_ps: statistics.min.as_ps(),
            mean_ps: statistics.mean().as_ps(),
            max_ps: statistics.max.as_ps(),
            last_ps: statistics.last.as_ps(),
        }
    }
}

/// A congestion window: sizes in bytes, times in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WindowReport {
    /// The window.
    pub bytes: u64,
    /// What is in flight.
    pub in_flight_bytes: u64,
    /// The round trip of an empty network, as far as is known.
    pub base_rtt_ps: u64,
    /// The average queueing delay, where congestion control keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_delay_ps: Option<u64>,
}

impl From<&WindowInfo> for WindowReport {
    fn from(info: &WindowInfo) -> Self {
        Self {
            bytes: info.bytes,
            in_flight_bytes: info.in_flight,
            base_rtt_ps: info.base_rtt.as_ps(),
            average_delay_ps: info.average_delay.map(Duration::as_ps),
        }
    }
}

/// A QP event and when it happened.
// spec: RC-3
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EventReport {
    /// When, in picoseconds of protocol time.
    pub at_ps: u64,
    /// What happened, under the name of the records.
    #[serde(with = "QpEventKindDef")]
    pub kind: QpEventKind,
    /// This end of the QP.
    #[serde(with = "qp_address")]
    pub local: QpAddress,
    /// The other end; its number is 0 until it is known.
    #[serde(with = "qp_address")]
    pub remote: QpAddress,
    /// The message: the poster's number for it, the receiver's count of
    /// messages on the QP. Absent when the event is about no message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wqe_id: Option<u64>,
    /// The message's length in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wqe_bytes: Option<u64>,
}

impl EventReport {
    /// The report of `event`, which happened at `at`.
    pub fn new(at: Instant, event: &QpEvent) -> Self {
        let &QpEvent { kind, local, remote, wqe_id, wqe_bytes } = event;
        Self { at_ps: at.as_ps(), kind, local, remote, wqe_id, wqe_bytes }
    }

    /// When it happened.
    pub fn at(&self) -> Instant {
        Instant::from_ps(self.at_ps)
    }

    /// What happened.
    pub fn event(&self) -> QpEvent {
        let &Self { kind, local, remote, wqe_id, wqe_bytes, .. } = self;
        QpEvent { kind, local, remote, wqe_id, wqe_bytes }
    }
}

/// How a daemon's run goes.
// spec: TIME-4, TIME-6
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The node's name.
    pub node: String,
    /// The time dilation factor.
    pub tdf: u32,
    /// Protocol time 0, in nanoseconds of CLOCK_MONOTONIC.
    pub epoch_ns: u64,
    /// Protocol time now, in picoseconds.
    pub now_ps: u64,
    /// The start number of the node: seeds its random stream with the run's seed.
    pub life: u64,
    /// How late frames were handed to the host.
    pub lateness: LatenessReport,
    /// The time of one full packet on the fastest of the node's links, in
    /// picoseconds; absent in the native profile, which models none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_time_ps: Option<u64>,
    /// Errors of the host when it was to send, by name.
    pub host_errors: BTreeMap<String, u64>,
    /// Frames that the host dropped before the daemon saw them.
    pub kernel_drops: u64,
    /// What fault rules did on the node's links, by deed and rule.
    pub faults: BTreeMap<String, u64>,
    /// Whether the run was faithful to protocol time, in words.
    pub fidelity: String,
    /// The capture, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureReport>,
}

/// Lateness in picoseconds of protocol time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LatenessReport {
    /// How many frames were measured.
    pub count: u64,
    /// The median.
    pub p50_ps: u64,
    /// What 99 of 100 frames did not exceed.
    pub p99_ps: u64,
    /// The latest.
    pub max_ps: u64,
}

/// How a capture goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CaptureReport {
    /// Frames recorded.
    pub packets: u64,
    /// Frames left out because the disk was slower than the traffic.
    pub dropped: u64,
}

impl From<CaptureSummary> for CaptureReport {
    fn from(CaptureSummary { packets, dropped }: CaptureSummary) -> Self {
        Self { packets, dropped }
    }
}

/// [`QpSide`] on the control socket.
#[derive(Serialize, Deserialize)]
#[serde(remote = "QpSide", rename_all = "snake_case")]
enum QpSideDef {
    Requester,
    Responder,
}

/// [`QpEventKind`] on the control socket: the names of the records.
#[derive(Serialize, Deserialize)]
#[serde(remote = "QpEventKind", rename_all = "SCREAMING_SNAKE_CASE")]
enum QpEventKindDef {
    QpCreated,
    WqeCreated,
    SendComplete,
    WqeComplete,
    RecvComplete,
    QpClosed,
    QpError,
}

/// [`QpAddress`] on the control socket: `IPv4:QPN`, as in the records.
mod qp_address {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::trace::QpAddress;
    use crate::wire::qpn::Qpn;

    pub(super) fn serialize<S: Serializer>(end: &QpAddress, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(end)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<QpAddress, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text)
            .ok_or_else(|| D::Error::custom(format!("`{text}` is not of the form IPv4:QPN")))
    }

    fn parse(text: &str) -> Option<QpAddress> {
        let (ip, qpn) = text.split_once(':')?;
        Some(QpAddress { ip: ip.parse().ok()?, qpn: Qpn::new(qpn.parse().ok()?)? })
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::super::{Line, event_line};
    use super::*;
    use crate::wire::qpn::Qpn;

    fn end(qpn: u32) -> QpAddress {
        QpAddress { ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::masked(qpn) }
    }

    // spec: RC-3
    #[test]
    fn events_keep_every_value_and_have_the_names_of_the_records() {
        for kind in [
            QpEventKind::QpCreated,
            QpEventKind::WqeCreated,
            QpEventKind::SendComplete,
            QpEventKind::WqeComplete,
            QpEventKind::RecvComplete,
            QpEventKind::QpClosed,
            QpEventKind::QpError,
        ] {
            let (local, remote) = (end(0xff_ffff), end(0));
            let event = QpEvent { kind, local, remote, wqe_id: Some(u64::MAX), wqe_bytes: None };
            let report = EventReport::new(Instant::MAX, &event);
            let line = event_line(&report).expect("JSON");
            assert!(line.contains(&format!("\"kind\":\"{}\"", kind.name())), "{line}");
            assert!(line.contains("10.0.0.1:16777215"), "{line}");
            assert_eq!(Line::parse(line.as_bytes()).expect("read back"), Line::Event(report));
            assert_eq!((report.at(), report.event()), (Instant::MAX, event));
        }
    }

    #[test]
    fn addresses_of_qps_are_read_strictly() {
        for bad in ["", "10.0.0.1", "10.0.0.1:", "10.0.0.1:16777216", "10.0.0:1", "10.0.0.1:-1"] {
            let line = format!(
                r#"{{"event":{{"at_ps":1,"kind":"QP_ERROR","local":"{bad}","remote":"10.0.0.1:1"}}}}"#
            );
            assert!(Line::parse(line.as_bytes()).is_err(), "{bad}");
        }
    }
}
