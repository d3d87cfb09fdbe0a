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

use crate::nic::Access;

pub use faults::{FaultReport, LinkFaults, read_fault};
pub use report::{CaptureReport, EventReport, LatenessReport, QpReport, Report, RttReport};

mod faults;
mod report;

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
    /// Puts a fault on the links to a node; it is asked before all others.
    FaultAdd {
        /// The node at the other end; may be absent when there is one only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// The keys of a scenario's `[[fault]]` section, but for its ends.
        fault: Map<String, Value>,
    },
    /// Every link with its faults.
    FaultList {},
    /// Takes faults away.
    FaultClear {
        /// From the links to this node; absent: from all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// The fault's number; absent: all faults.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
    },
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
    /// A fault was added.
    FaultAdded {
        /// Its number.
        id: u64,
    },
    /// Faults on all links.
    Faults {
        /// The node that sends.
        node: String,
        /// Its links in the order of its ports.
        links: Vec<LinkFaults>,
    },
    /// Faults are gone.
    FaultsCleared {
        /// How many, on all links together.
        count: usize,
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

/// [`Access`] on the control socket.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Access", rename_all = "snake_case")]
enum AccessDef {
    Local,
    RemoteWrite,
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
    use super::*;

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
        assert_eq!(requests.len(), 14, "every request is documented: {requests:?}");
        answers.sort();
        answers.dedup();
        assert_eq!(answers.len(), 16, "every answer; events and errors have no type: {answers:?}");
    }

    #[test]
    fn requests_with_fields_that_are_not_known_are_refused() {
        for line in [
            r#"{"request":"counters","x":1}"#,
            r#"{"request":"close","qpn":1,"x":1}"#,
            r#"{"request":"fault_add","fault":{},"x":1}"#,
            r#"{"request":"register_memory","length":1,"access":"local","fill":{"flow":
                {"seed":1,"number":0,"bytes":1,"messages":1,"x":1}}}"#,
            r#"{"request":"post_write","peer":"10.0.0.2","lkey":1,"local_va":0,"length":9,
                "remote_va":0,"rkey":0,"wqe_id":0,"x":1}"#,
        ] {
            let error = serde_json::from_str::<Request>(line).expect_err("refused").to_string();
            assert!(error.contains("unknown field `x`"), "{error}");
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
