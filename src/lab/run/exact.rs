//! A run in the exact clock: in memory, or over real wires.

use std::path::PathBuf;

use super::network::LabNetwork;
use super::{Outcome, RunError, RunFiles, RunPlan};
use crate::capture::{CaptureFile, CaptureInfo, PortCapture, QueuePolicy, Timestamps};
use crate::lab::Wires;
use crate::node::{FrameTap, PortId};
use crate::record::{EventsSink, Fidelity, FlowDigests, NetworkCounts};
use crate::scenario::{NodeKind, Scenario, Topology};
use crate::sim::{Carrier, InMemory, RunEnd, SimWorld, run_workload};
use crate::time::{Duration, Instant};
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

/// Runs and writes the records.
fn run_with<C: Carrier>(
    plan: &RunPlan,
    topology: &Topology,
    files: &RunFiles,
    carrier: C,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    let names = topology.nodes.iter().map(|node| node.name.clone()).collect();
    let mut events = EventsSink::new(files.events()?, names);
    let captures = if plan.captures { captures(plan, topology, files)? } else { vec![] };
    let taps = captures.iter().map(|Capture { node, port, .. }| {
        let tap: Box<dyn FrameTap> = Box::new(port.clone());
        (*node, tap)
    });
    let run = ExactRun {
        scenario: &plan.scenario,
        topology,
        time_limit: plan.time_limit,
        trace: &mut events,
        taps: taps.collect(),
    };
    let mut outcome = run.execute(carrier, progress)?;
    events.finish().map_err(RunError::io("writing the record of events"))?;
    let mut paths = Vec::new();
    for Capture { port, path, .. } in captures {
        port.finish().map_err(RunError::io(format!("writing {}", path.display())))?;
        paths.push(path);
    }
    outcome.captures = files.merge(paths)?;
    Ok(outcome)
}

/// A run in the exact clock by itself: it writes no files.
pub struct ExactRun<'a> {
    /// What runs.
    pub scenario: &'a Scenario,
    /// Its topology.
    pub topology: &'a Topology,
    /// The run is given up at this protocol time.
    pub time_limit: Duration,
    /// Is told every event.
    pub trace: &'a mut dyn TraceSink,
    /// Who listens to the frames of which nodes.
    pub taps: Vec<(NodeId, Box<dyn FrameTap>)>,
}

impl ExactRun<'_> {
    /// Runs; `carrier` carries the frames, and `progress` is told how many bytes
    /// have arrived, of how many, and says whether to go on.
    ///
    /// # Errors
    /// When a frame cannot be carried.
    // spec: TIME-5
    pub fn execute<C: Carrier>(
        self,
        carrier: C,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Outcome, RunError> {
        let Self { scenario, topology, time_limit, trace, taps } = self;
        let mut trace = FaultCounter { trace, counts: NetworkCounts::default() };
        let mut world = SimWorld::new(topology, scenario.seed, carrier, &mut trace);
        for (node, tap) in taps {
            world.set_tap(node, tap);
        }
        let end = run_workload(&mut world, scenario, Instant::ZERO + time_limit, progress)?;
        let digests = digests(scenario, &world, &end);
        let mut network = counts(topology, &world);
        drop(world);
        network.faults = trace.counts.faults;
        Ok(Outcome {
            flows: end.workload.results().cloned().collect(),
            digests,
            network,
            fidelity: Fidelity::EXACT,
            execs: Vec::new(),
            captures: Vec::new(),
        })
    }
}

/// A capture of a node's link.
struct Capture {
    node: NodeId,
    port: PortCapture,
    path: PathBuf,
}

/// A capture of each NIC's link.
// spec: RC-7, TIME-4
fn captures(
    plan: &RunPlan,
    topology: &Topology,
    files: &RunFiles,
) -> Result<Vec<Capture>, RunError> {
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
            let port = PortCapture::new(file, [node.name.as_str()]);
            captures.push(Capture { node: NodeId(index as u32), port, path });
        }
    }
    Ok(captures)
}

fn digests<C: Carrier>(
    scenario: &Scenario,
    world: &SimWorld<'_, C>,
    end: &RunEnd,
) -> Vec<FlowDigests> {
    let flows = scenario.flows.iter().zip(&end.memory).map(|(flow, memory)| {
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

/// Counts faults, and passes every event on.
struct FaultCounter<'a> {
    trace: &'a mut dyn TraceSink,
    counts: NetworkCounts,
}

impl TraceSink for FaultCounter<'_> {
    fn record(&mut self, at: Instant, node: NodeId, event: &Event) {
        self.trace.record(at, node, event);
        if let Event::Fault { .. } = event {
            self.counts.record(at, node, event);
        }
    }
}
