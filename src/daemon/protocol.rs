//! What is said over the control socket: a JSON object on each line.
//!
//! The client sends a [`Request`]; the daemon answers each with one line, in
//! order: `{"ok":true,"type":...}` with a [`Response`], or
//! `{"ok":false,"error":"..."}`. After `subscribe`, lines `{"event":{...}}` come
//! between answers.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::capture::CaptureSummary;
use crate::nic::{Access, QpInfo, QpSide, RetransmitCounts, RttStatistics};
use crate::time::Instant;
use crate::trace::{QpAddress, QpEvent, QpEventKind};

/// The longest line that a daemon reads, in bytes.
pub const MAX_REQUEST: usize = 64 << 10;

/// What a client asks of a daemon.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// NIC: makes a memory region.
    RegisterMemory {
        /// Its length in bytes.
        length: u64,
        /// What peers may do with it.
        #[serde(with = "AccessDef")]
        access: Access,
        /// What is in it; what the fill does not reach is zero.
        #[serde(default)]
        fill: Fill,
    },
    /// NIC: forgets a memory region.
    DeregisterMemory {
        /// The region's key.
        rkey: u32,
    },
    /// NIC: posts an RDMA Write.
    PostWrite(PostWrite),
    /// NIC: every side of a QP.
    ListQps {},
    /// What was counted and dropped.
    Counters {},
    /// NIC: closes a side of a QP.
    Close {
        /// Its number at this NIC.
        qpn: u32,
    },
    /// NIC: the SHA-256 of a region's bytes.
    Digest {
        /// The region's key.
        rkey: u32,
    },
    /// NIC: writes a region's bytes to a file of the daemon's host.
    Save {
        /// The region's key.
        rkey: u32,
        /// The file, which is replaced.
        file: PathBuf,
    },
    /// NIC: sends every QP event, from the first on.
    Subscribe {},
    /// How faithful the daemon was to protocol time, and what the host lost.
    Report {},
    /// Ends the daemon.
    Stop {},
}

/// An RDMA Write to post.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostWrite {
    /// The address of the NIC that it goes to.
    pub peer: Ipv4Addr,
    /// The key of the local region that it is read from.
    pub lkey: u32,
    /// Where it starts, an address in that region.
    pub local_va: u64,
    /// How many bytes.
    pub length: u32,
    /// Where it goes, an address in the peer's region.
    pub remote_va: u64,
    /// The key of the peer's region.
    pub rkey: u32,
    /// The QP to use; a new one when absent.
    #[serde(default)]
    pub qp: Option<u32>,
    /// The poster's own number for it, which its events carry.
    pub wqe_id: u64,
}

/// What a new memory region holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fill {
    /// Zeros; always `true`.
    Zero(bool),
    /// The bytes that a flow of a scenario sends.
    Flow(FlowFill),
    /// A file of the daemon's host, read when the region is made.
    File(PathBuf),
}

impl Default for Fill {
    fn default() -> Self {
        Self::Zero(true)
    }
}

/// The flow whose bytes fill a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowFill {
    /// The run's seed.
    pub seed: u64,
    /// The flow's number in the scenario, from 0.
    pub number: usize,
    /// Bytes of each message.
    pub bytes: u32,
    /// How many messages.
    pub messages: u32,
}

/// What a daemon answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Response {
    /// A region was made.
    Region(Region),
    /// A region is forgotten.
    Deregistered {},
    /// A message was posted.
    Posted(Posted),
    /// Every side of a QP, sending sides first.
    Qps {
        /// They.
        qps: Vec<QpReport>,
    },
    /// What a NIC has counted.
    NicCounters {
        /// Counters under the names of the records.
        counters: Map<String, Value>,
        /// The pools of its buffers.
        pools: Vec<Map<String, Value>>,
        /// Drops by cause.
        drops: BTreeMap<String, u64>,
    },
    /// What a switch has counted.
    SwitchCounters {
        /// Each port's counters, in port order.
        ports: Vec<Map<String, Value>>,
        /// Drops at all ports by cause.
        drops: BTreeMap<String, u64>,
    },
    /// A side of a QP was closed.
    Closed {
        /// How it stood.
        qp: QpReport,
    },
    /// What a region's bytes come to.
    Digest {
        /// Their SHA-256 in hexadecimal.
        sha256: String,
    },
    /// A region was written to a file.
    Saved {
        /// How many bytes.
        bytes: u64,
    },
    /// Events follow.
    Subscribed {
        /// Events from before the first that follows, which are no longer kept.
        forgotten: u64,
    },
    /// How the daemon's run goes.
    Report(Report),
    /// The daemon ends.
    Stopping {},
}

/// A registered memory region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Region {
    /// The address of its first byte.
    pub va: u64,
    /// The key that names it, here and to peers.
    pub rkey: u32,
    /// Its length in bytes.
    pub length: u64,
}

/// A posted message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Posted {
    /// The QP that it goes on.
    pub qpn: u32,
    /// The protocol time of posting, in picoseconds.
    pub at_ps: u64,
}

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

/// [`Access`] on the control socket.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Access", rename_all = "snake_case")]
enum AccessDef {
    Local,
    RemoteWrite,
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

/// An answer's line, without its end.
pub(super) fn answer_line(answer: &Result<Response, String>) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Accepted<'a> {
        ok: bool,
        #[serde(flatten)]
        response: &'a Response,
    }
    #[derive(Serialize)]
    struct Refused<'a> {
        ok: bool,
        error: &'a str,
    }
    match answer {
        Ok(response) => serde_json::to_string(&Accepted { ok: true, response }),
        Err(error) => serde_json::to_string(&Refused { ok: false, error }),
    }
}

/// An event's line, without its end.
pub(super) fn event_line(event: &EventReport) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'a EventReport,
    }
    serde_json::to_string(&Line { event })
}

/// A line from a daemon.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Line {
    /// The answer to the oldest request without one.
    Answer(Result<Response, String>),
    /// An event.
    Event(EventReport),
}

impl Line {
    /// Reads a line, with or without its end.
    ///
    /// # Errors
    /// When it is no line of this protocol.
    pub(super) fn parse(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Parts {
            ok: Option<bool>,
            error: Option<String>,
            event: Option<EventReport>,
            #[serde(flatten)]
            rest: Map<String, Value>,
        }
        let parts: Parts = serde_json::from_slice(line)?;
        if let Some(event) = parts.event {
            return Ok(Self::Event(event));
        }
        let answer = match parts.ok {
            Some(true) => Ok(serde_json::from_value(Value::Object(parts.rest))?),
            _ => Err(parts.error.unwrap_or_default()),
        };
        Ok(Self::Answer(answer))
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;
    use crate::wire::qpn::Qpn;

    fn end(qpn: u32) -> QpAddress {
        QpAddress { ip: Ipv4Addr::new(10, 0, 0, 1), qpn: Qpn::masked(qpn) }
    }

    /// Every line in the document that is JSON.
    fn documented() -> Vec<Value> {
        let text = include_str!("../../docs/control.md");
        let lines = text.lines().filter(|line| line.starts_with('{'));
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    #[test]
    fn every_line_of_the_document_is_of_this_protocol() {
        let (mut requests, mut answers) = (Vec::new(), Vec::new());
        for line in documented() {
            let text = line.to_string();
            if line.get("request").is_some() {
                serde_json::from_value::<Request>(line.clone()).unwrap_or_else(|error| {
                    panic!("{text}: {error}");
                });
                requests.push(line["request"].to_string());
            } else {
                Line::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
                answers.push(line["type"].to_string());
            }
        }
        requests.sort();
        requests.dedup();
        assert_eq!(requests.len(), 11, "every request is documented: {requests:?}");
        answers.sort();
        answers.dedup();
        assert_eq!(answers.len(), 13, "every answer; events and errors have no type: {answers:?}");
    }

    #[test]
    fn requests_with_fields_that_are_not_known_are_refused() {
        for line in [
            r#"{"request":"counters","x":1}"#,
            r#"{"request":"close","qpn":1,"x":1}"#,
            r#"{"request":"register_memory","length":1,"access":"local","fill":{"flow":
                {"seed":1,"number":0,"bytes":1,"messages":1,"x":1}}}"#,
            r#"{"request":"post_write","peer":"10.0.0.2","lkey":1,"local_va":0,"length":9,
                "remote_va":0,"rkey":0,"wqe_id":0,"x":1}"#,
        ] {
            let error = serde_json::from_str::<Request>(line).expect_err("refused").to_string();
            assert!(error.contains("unknown field `x`"), "{error}");
        }
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

    #[test]
    fn answers_keep_every_value() {
        let region = Region { va: u64::MAX, rkey: u32::MAX, length: 1 };
        for answer in [Ok(Response::Region(region)), Ok(Response::Stopping {}), Err("no".into())] {
            let line = answer_line(&answer).expect("JSON");
            assert!(line.starts_with(&format!("{{\"ok\":{}", answer.is_ok())), "{line}");
            assert_eq!(Line::parse(line.as_bytes()).expect("read back"), Line::Answer(answer));
        }
    }
}
