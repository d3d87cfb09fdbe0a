//! A run in the exact clock: in memory, or over real wires.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use super::network::LabNetwork;
use super::{Outcome, RunError, RunFiles, RunPlan};
use crate::capture::{CaptureFile, CaptureInfo, PortCapture, QueuePolicy, Timestamps};
use crate::lab::Wires;
use crate::node::PortId;
use crate::record::{EventsSink, Fidelity, FlowDigests, NetworkCounts};
use crate::scenario::{NodeKind, Topology};
use crate::sim::{Carrier, InMemory, RunEnd, SimWorld, run_workload};
use crate::time::Instant;
use crate::trace::{Event, NodeId, TraceSink};

pub fn run_in_memory(
    plan: &RunPlan,
    topology: &Topology,
    files: &RunFiles,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    files.manifest(plan, topology, None)?;
    run_with(plan, topology, files, InMemory, progress)
}

// spec: TIME-5
pub fn run_over_wires(
    plan: &RunPlan,
    topology: &Topology,
    lab: &LabNetwork,
    files: &RunFiles,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    let mut manifest = files.manifest(plan, topology, None)?;
    let wires = Wires::open(&lab.network, topology)?;
    let mut outcome = run_with(plan, topology, files, wires, progress)?;
    outcome.fidelity.kernel_drops = lab.add_frames(topology, &mut outcome.network)?;
    manifest.frames_on_wire.clone_from(&outcome.network.frames_on_wire);
    files.write_manifest(&manifest)?;
    Ok(outcome)
}

fn run_with<C: Carrier>(
    plan: &RunPlan,
    topology: &Topology,
    files: &RunFiles,
    carrier: C,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    let names = topology.nodes.iter().map(|node| node.name.clone()).collect();
    let events = EventsSink::new(files.events()?, names);
    let mut trace = RunTrace { events, counts: NetworkCounts::default() };
    let mut world = SimWorld::new(topology, plan.scenario.seed, carrier, &mut trace);
    let captures =
        if plan.captures { tap_nics(plan, topology, files, &mut world)? } else { vec![] };
    let limit = Instant::ZERO + plan.time_limit;
    let end = run_workload(&mut world, &plan.scenario, limit, progress)?;
    let digests = digests(plan, &world, &end);
    let mut network = counts(topology, &world);
    drop(world);
    network.faults = trace.counts.faults;
    trace.events.finish().map_err(RunError::io("writing the record of events"))?;
    let mut paths = Vec::new();
    for (capture, path) in captures {
        capture.finish().map_err(RunError::io(format!("writing {}", path.display())))?;
        paths.push(path);
    }
    Ok(Outcome {
        execs: Vec::new(),
        flows: end.workload.results().cloned().collect(),
        digests,
        network,
        fidelity: Fidelity::EXACT,
        captures: files.merge(paths)?,
    })
}

/// A capture of each NIC's link.
// spec: RC-7, TIME-4
fn tap_nics<C: Carrier>(
    plan: &RunPlan,
    topology: &Topology,
    files: &RunFiles,
    world: &mut SimWorld<'_, C>,
) -> Result<Vec<(PortCapture, PathBuf)>, RunError> {
    // Protocol time has no place on the calendar here, and two runs of one
    // seed give equal captures.
    let info = CaptureInfo {
        timestamps: Timestamps::Protocol,
        tdf: 1,
        wall_ns_at_zero: 0,
        snap_len: plan.snap_len,
    };
    let mut captures = Vec::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        if let NodeKind::Nic(_) = node.kind {
            let path = files.capture(&node.name);
            let file = CaptureFile::create(&path, &info, QueuePolicy::Lossless)
                .map_err(RunError::io(format!("making {}", path.display())))?;
            let capture = PortCapture::new(file, [node.name.as_str()]);
            world.set_tap(NodeId(index as u32), Box::new(capture.clone()));
            captures.push((capture, path));
        }
    }
    Ok(captures)
}

fn digests<C: Carrier>(plan: &RunPlan, world: &SimWorld<'_, C>, end: &RunEnd) -> Vec<FlowDigests> {
    let flows = plan.scenario.flows.iter().zip(&end.memory).map(|(flow, memory)| {
        let bytes = |node: usize, key| world.nic(NodeId(node as u32)).memory(key).unwrap_or(&[]);
        FlowDigests::of(
            bytes(flow.from, memory.source.rkey),
            bytes(flow.to, memory.destination.rkey),
        )
    });
    flows.collect()
}

/// What all nodes have counted.
fn counts<C: Carrier>(topology: &Topology, world: &SimWorld<'_, C>) -> NetworkCounts {
    let mut counts = NetworkCounts::default();
    for (index, node) in topology.nodes.iter().enumerate() {
        let id = NodeId(index as u32);
        match &node.kind {
            NodeKind::Nic(_) => {
                let nic = world.nic(id);
                counts.timeouts += nic.counters().rto;
                counts.add_drops(nic.drops().iter());
            }
            NodeKind::Switch(config) => {
                let switch = world.switch(id);
                for port in (0..config.ports.len()).map(|port| switch.counters(PortId(port as u16)))
                {
                    counts.trims += port.trim;
                    counts.marks += port.marked;
                }
                counts.add_drops(switch.drops().iter());
            }
        }
    }
    // Frames that somebody else put on the wires, which no node was given.
    let strays = Some(("stray", world.carrier().strays()));
    counts.add_drops(strays.into_iter().filter(|(_, count)| *count > 0));
    counts
}

/// Writes QP events and counts faults.
struct RunTrace {
    events: EventsSink<BufWriter<File>>,
    counts: NetworkCounts,
}

impl TraceSink for RunTrace {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        self.events.record(at, node, event);
        self.counts.record(at, node, event);
    }
}
