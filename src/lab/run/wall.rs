//! A run in the wall clock: a daemon for each node, and this process as their
//! coordinator.

mod daemons;
mod workload;

use super::network::LabNetwork;
use super::{Outcome, RunError, RunFiles, RunPlan};
use crate::daemon::protocol::{LatenessReport, Report, Request, Response};
use crate::record::{Fidelity, FlowDigests, NetworkCounts};
use crate::scenario::Topology;
use crate::time::Duration;

use daemons::{Daemons, unexpected};
use workload::{Coordinator, FlowRegions};

pub fn run(
    plan: &RunPlan,
    topology: &Topology,
    lab: &LabNetwork,
    files: &RunFiles,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    let mut daemons = Daemons::start(plan, topology, lab, files)?;
    let mut manifest = files.manifest(plan, topology, Some(daemons.protocol_time_0()))?;
    let mut coordinator = Coordinator::start(plan, &mut daemons, files.events()?)?;
    coordinator.run(&mut daemons, progress)?;
    let (flows, regions) = coordinator.finish(&mut daemons)?;
    let digests = digests(plan, &mut daemons, &regions)?;
    let mut network = counts(&mut daemons)?;
    let dropped = lab.add_frames(topology, &mut network)?;
    manifest.frames_on_wire.clone_from(&network.frames_on_wire);
    files.write_manifest(&manifest)?;
    let reports = reports(&mut daemons)?;
    add_faults(&reports, &mut network);
    let fidelity = fidelity(&reports, plan.tdf, dropped);
    let captures = daemons.stop()?;
    Ok(Outcome { flows, digests, network, fidelity, captures: files.merge(captures)? })
}

fn digests(
    plan: &RunPlan,
    daemons: &mut Daemons,
    regions: &[FlowRegions],
) -> Result<Vec<FlowDigests>, RunError> {
    let mut digest = |node: usize, rkey: u32| match daemons.ask(node, &Request::Digest { rkey })? {
        Response::Digest { sha256 } => Ok(sha256),
        other => Err(unexpected(&other)),
    };
    let mut digests = Vec::new();
    for (flow, regions) in plan.scenario.flows.iter().zip(regions) {
        let source = digest(flow.from, regions.source.rkey)?;
        let destination = digest(flow.to, regions.destination.rkey)?;
        digests.push(FlowDigests::new(source, destination));
    }
    Ok(digests)
}

/// What all nodes have counted.
fn counts(daemons: &mut Daemons) -> Result<NetworkCounts, RunError> {
    let mut counts = NetworkCounts::default();
    for node in 0..daemons.len() {
        let drops = match daemons.ask(node, &Request::Counters {})? {
            Response::NicCounters { drops, .. } => drops,
            Response::SwitchCounters { ports, drops } => {
                counts.trims +=
                    ports.iter().filter_map(|port| port.get("trim")?.as_u64()).sum::<u64>();
                drops
            }
            other => return Err(unexpected(&other)),
        };
        counts.add_drops(drops.iter().map(|(cause, count)| (cause.as_str(), *count)));
    }
    Ok(counts)
}

/// What every daemon reports of its run.
fn reports(daemons: &mut Daemons) -> Result<Vec<Report>, RunError> {
    let nodes = 0..daemons.len();
    let report = |node| match daemons.ask(node, &Request::Report {})? {
        Response::Report(report) => Ok(report),
        other => Err(unexpected(&other)),
    };
    nodes.map(report).collect()
}

/// What fault rules did on all links.
// spec: SW-20
fn add_faults(reports: &[Report], network: &mut NetworkCounts) {
    for (deed, count) in reports.iter().flat_map(|report| &report.faults) {
        *network.faults.entry(deed.clone()).or_default() += count;
    }
}

/// That of the worst daemon, with what kernels dropped anywhere.
// spec: TIME-6, REL-8
fn fidelity(reports: &[Report], tdf: u32, dropped: u64) -> Fidelity {
    let judged = reports.iter().map(|report| {
        let LatenessReport { p50_ps, p99_ps, max_ps, .. } = report.lateness;
        let lateness = [p50_ps, p99_ps, max_ps].map(Duration::from_ps);
        Fidelity::judge(lateness, report.packet_time_ps.map(Duration::from_ps), 0, tdf)
    });
    let on_sockets: u64 = reports.iter().map(|report| report.kernel_drops).sum();
    judged.fold(Fidelity::EXACT, Fidelity::worse).with_kernel_drops(dropped + on_sockets)
}
