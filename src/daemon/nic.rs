//! What a NIC's daemon answers.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::protocol::{Fill, FlowFill, PostWrite, Posted, QpReport, Region, Request, Response};
use super::role::{Role, not_here};
use crate::io::EventLoop;
use crate::io::event_loop::FRAMES_A_TURN;
use crate::nic::{Access, BufferCounters, Nic, PoolCounters, QpChoice, WorkRequest};
use crate::node::Drops;
use crate::rng::Rng;
use crate::scenario::{Flow, NodeKind};
use crate::time::Duration;
use crate::wire::qpn::{Qpn, RKey};
use crate::workload::flow_data;

/// The longest memory region, in bytes.
const MAX_REGION: u64 = 4 << 30;

impl Role for Nic {
    const COMMAND: &'static str = "nic";
    const FRAMES_A_TURN: usize = FRAMES_A_TURN;

    fn build(kind: &NodeKind, rng: &mut Rng) -> Option<Self> {
        match kind {
            NodeKind::Nic(config) => Some(Self::new((**config).clone(), rng)),
            NodeKind::Switch(_) => None,
        }
    }

    fn answer(
        event_loop: &mut EventLoop<Self>,
        _: &[String],
        request: Request,
    ) -> Result<Response, String> {
        match request {
            Request::RegisterMemory { length, access, fill } => {
                let bytes = contents(length, &fill)?;
                Ok(register(event_loop, bytes, access))
            }
            Request::DeregisterMemory { rkey } => {
                let bytes = event_loop.call(|nic, _| nic.deregister_memory(RKey(rkey)));
                bytes.map(|_| Response::Deregistered {}).ok_or_else(|| no_region(rkey))
            }
            Request::PostWrite(write) => post(event_loop, &write),
            Request::ListQps {} => {
                Ok(Response::Qps { qps: event_loop.node().qps().map(QpReport::from).collect() })
            }
            Request::Counters {} => Ok(counters(event_loop.node())),
            Request::Close { qpn } => close(event_loop, qpn),
            Request::Digest { rkey } => {
                let digest = Sha256::digest(region(event_loop.node(), rkey)?);
                Ok(Response::Digest { sha256: hexadecimal(&digest) })
            }
            Request::Save { rkey, file } => save(region(event_loop.node(), rkey)?, &file),
            // The daemon itself answers these, whatever its node is.
            Request::Subscribe {}
            | Request::FaultAdd { .. }
            | Request::FaultList {}
            | Request::FaultClear { .. }
            | Request::Report {}
            | Request::Stop {} => Err(not_here::<Self>()),
        }
    }

    fn forget_events(event_loop: &mut EventLoop<Self>) {
        event_loop.call(|nic, _| while nic.poll_event().is_some() {});
    }
}

// spec: REL-2
fn register(event_loop: &mut EventLoop<Nic>, bytes: Vec<u8>, access: Access) -> Response {
    let region = event_loop.call(|nic, ctx| nic.register_memory(ctx, bytes, access));
    Response::Region(Region { va: region.va, rkey: region.rkey.0, length: region.length })
}

/// The bytes of a new region.
fn contents(length: u64, fill: &Fill) -> Result<Vec<u8>, String> {
    if length > MAX_REGION {
        return Err(format!("a region of {length} bytes is longer than {MAX_REGION}"));
    }
    let mut bytes = match fill {
        Fill::Zero(true) => Vec::new(),
        Fill::Zero(false) => return Err("`zero` is always true; leave it out".to_owned()),
        Fill::Flow(flow) => flow_bytes(length, flow)?,
        Fill::File(file) => read_file(length, file)?,
    };
    let length = length as usize;
    let missing = length.saturating_sub(bytes.len());
    bytes.try_reserve_exact(missing).map_err(|error| format!("{length} bytes: {error}"))?;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// That a fill of `fill` bytes has room in a region.
fn check_room(length: u64, fill: u64) -> Result<(), String> {
    let text = || format!("{fill} bytes do not fit a region of {length}");
    (fill <= length).then_some(()).ok_or_else(text)
}

fn flow_bytes(length: u64, flow: &FlowFill) -> Result<Vec<u8>, String> {
    let &FlowFill { seed, number, bytes, messages } = flow;
    check_room(length, u64::from(bytes) * u64::from(messages))?;
    let start = Duration::ZERO;
    let flow = Flow { from: 0, to: 0, bytes, messages, one_qp: false, depth: 1, start };
    Ok(flow_data(seed, number, &flow))
}

fn read_file(length: u64, path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    // Others, such as pipes, might never end.
    if !fs::metadata(path).map_err(fail)?.is_file() {
        return Err(format!("{}: not a regular file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(fail)?;
    file.take(length + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > length {
        return Err(format!("{}: longer than the region of {length} bytes", path.display()));
    }
    Ok(bytes)
}

fn post(event_loop: &mut EventLoop<Nic>, write: &PostWrite) -> Result<Response, String> {
    let qp = match write.qp {
        None => QpChoice::New,
        Some(qpn) => QpChoice::Existing(qp_number(qpn)?),
    };
    let work = WorkRequest {
        wqe_id: write.wqe_id,
        peer: write.peer,
        lkey: RKey(write.lkey),
        local_va: write.local_va,
        length: write.length,
        remote_va: write.remote_va,
        rkey: RKey(write.rkey),
    };
    event_loop.call(|nic, ctx| {
        let qpn = nic.post_write(ctx, qp, work).map_err(|error| error.to_string())?;
        Ok(Response::Posted(Posted { qpn: qpn.value(), at_ps: ctx.now.as_ps() }))
    })
}

fn close(event_loop: &mut EventLoop<Nic>, qpn: u32) -> Result<Response, String> {
    let number = qp_number(qpn)?;
    let closed = event_loop.call(|nic, ctx| nic.close_qp(ctx, number));
    let info = closed.ok_or_else(|| format!("this NIC has no QP {qpn}"))?;
    Ok(Response::Closed { qp: info.into() })
}

fn qp_number(qpn: u32) -> Result<Qpn, String> {
    Qpn::new(qpn).ok_or_else(|| format!("{qpn} is no QP number: those have 24 bits"))
}

fn region(nic: &Nic, rkey: u32) -> Result<&[u8], String> {
    nic.memory(RKey(rkey)).ok_or_else(|| no_region(rkey))
}

fn no_region(rkey: u32) -> String {
    format!("no memory region has the key {rkey:#x}")
}

fn save(bytes: &[u8], path: &Path) -> Result<Response, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{}: not a regular file", path.display()));
    }
    fs::write(path, bytes).map_err(fail)?;
    Ok(Response::Saved { bytes: bytes.len() as u64 })
}

fn counters(nic: &Nic) -> Response {
    Response::NicCounters {
        counters: fields(nic.counters()),
        pools: pools(&nic.buffers()),
        drops: causes(nic.drops()),
    }
}

/// The pools of a NIC's buffers, each with its name.
// spec: PB-15
fn pools(buffers: &BufferCounters) -> Vec<Map<String, Value>> {
    let [egress_data, egress_control] = &buffers.egress;
    let [ingress_data, ingress_control] = &buffers.ingress;
    let named = [
        ("egress data", egress_data),
        ("egress control", egress_control),
        ("ingress data", ingress_data),
        ("ingress control", ingress_control),
    ];
    let one = |(name, counters): (&str, &PoolCounters)| {
        let mut pool = fields(counters);
        pool.insert("pool".to_owned(), name.into());
        pool
    };
    named.into_iter().map(one).collect()
}

/// The fields of a struct of counters by name.
pub(super) fn fields(counters: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(counters) {
        Ok(Value::Object(fields)) => fields,
        // Structs of numbers are objects.
        _ => Map::new(),
    }
}

/// Drops by cause.
pub(super) fn causes(drops: &Drops) -> BTreeMap<String, u64> {
    drops.iter().map(|(cause, count)| (cause.to_owned(), count)).collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowFill = FlowFill { seed: 7, number: 2, bytes: 100, messages: 3 };

    // spec: WL-1
    #[test]
    fn a_flow_fills_a_region_with_the_bytes_that_it_sends_everywhere() {
        let bytes = contents(301, &Fill::Flow(FLOW)).expect("fits");
        let start = Duration::from_us(5);
        let flow = Flow { from: 4, to: 5, bytes: 100, messages: 3, one_qp: true, depth: 9, start };
        assert_eq!(bytes[..300], flow_data(7, 2, &flow));
        assert_eq!((bytes.len(), bytes[300]), (301, 0));
    }

    #[test]
    fn a_fill_has_to_fit_its_region() {
        let flow = Fill::Flow(FlowFill { bytes: u32::MAX, messages: u32::MAX, ..FLOW });
        assert!(contents(299, &Fill::Flow(FLOW)).is_err() && contents(300, &flow).is_err());
        assert!(contents(u64::MAX, &Fill::Zero(true)).expect_err("huge").contains("longer than"));
        assert!(contents(1, &Fill::Zero(false)).is_err());
        assert_eq!(contents(3, &Fill::Zero(true)), Ok(vec![0; 3]));
    }

    // spec: WL-1
    #[test]
    fn files_are_read_and_written_when_they_are_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("data");
        assert_eq!(save(b"abc", &path), Ok(Response::Saved { bytes: 3 }));
        assert_eq!(contents(5, &Fill::File(path.clone())), Ok(b"abc\0\0".to_vec()));
        assert!(contents(2, &Fill::File(path)).expect_err("short").contains("longer than"));
        let folder = dir.path().to_owned();
        assert!(save(b"abc", &folder).is_err() && contents(2, &Fill::File(folder)).is_err());
    }

    #[test]
    fn digests_are_spelled_in_hexadecimal() {
        let digest = Sha256::digest(b"abc");
        let want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hexadecimal(&digest), want);
    }
}
