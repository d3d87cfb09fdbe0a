//! A run in the wall clock: a daemon for each node, and this process as their
//! coordinator.

mod exec;
mod workload;

use super::network::LabNetwork;
use super::{Outcome, RunError, RunFiles, RunPlan};
use crate::daemon::protocol::{LatenessReport, Report, Request, Response};
use crate::lab::daemons::{Daemons, DaemonsPlan, unexpected};
use crate::record::{Fidelity, FlowDigests, NetworkCounts};
use crate::scenario::Topology;
use crate::time::Duration;

use exec::Programs;
use workload::{Coordinator, FlowRegions};

pub fn run(
    plan: &RunPlan,
    topology: &Topology,
    lab: &LabNetwork,
    files: &RunFiles,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Outcome, RunError> {
    let daemons = DaemonsPlan {
        scenario: &plan.scenario,
        topology,
        tdf: plan.tdf,
        shares: &plan.shares,
        captures: plan.captures.then_some(plan.snap_len),
    };
    let mut daemons = Daemons::start(&daemons, &lab.sandbox, files)?;
    let mut manifest = files.manifest(plan, topology, Some(daemons.protocol_time_0()))?;
    let mut coordinator = Coordinator::start(plan, &mut daemons, files.events()?)?;
    let mut programs = Programs::new(plan, lab, files);
    coordinator.run(&mut daemons, &mut programs, progress)?;
    let execs = programs.finish();
    let (flows, regions) = coordinator.finish(&mut daemons)?;
    let digests = digests(plan, &mut daemons, &regions)?;
    let mut network = counts(&mut daemons)?;
    let dropped = lab.add_frames(topology, &mut network)?;
    manifest.frames_on_wire.clone_from(&network.frames_on_wire);
    files.write_manifest(&manifest)?;
    let reports = reports(&mut daemons)?;
    add_reports(&reports, &mut network);
    let fidelity = fidelity(&reports, plan.tdf, dropped);
    let captures = daemons.stop()?;
    Ok(Outcome { flows, digests, network, fidelity, execs, captures: files.merge(captures)? })
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
            Response::NicCounters { counters, drops, .. } => {
                counts.timeouts += counters.get("rto").map_or(0, |n| n.as_u64().unwrap_or(0));
                drops
            }
            Response::SwitchCounters { ports, drops } => {
                let sum =
                    |name| ports.iter().filter_map(|port| port.get(name)?.as_u64()).sum::<u64>();
                counts.trims += sum("trim");
                counts.marks += sum("marked");
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

/// Adds what fault rules did on all links, frames that hosts refused to send,
/// and frames that the captures lack.
// spec: SW-20, REL-7, RC-6
fn add_reports(reports: &[Report], network: &mut NetworkCounts) {
    for report in reports {
        for (deed, count) in &report.faults {
            *network.faults.entry(deed.clone()).or_default() += count;
        }
        let refused = report.host_errors.iter();
        network.add_drops(refused.map(|(name, count)| (name.as_str(), *count)));
        let left_out = report.capture.map_or(0, |capture| capture.dropped);
        network.add_drops(Some(("not_captured", left_out)).into_iter().filter(|(_, n)| *n > 0));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::protocol::CaptureReport;

    // spec: SW-20, REL-7, RC-6
    #[test]
    fn what_daemons_report_is_added_up() {
        let count = |name: &str, n| [(name.to_owned(), n)].into_iter().collect();
        let report = |left_out| Report {
            node: "a".into(),
            tdf: 1_000,
            epoch_ns: 0,
            now_ps: 0,
            life: 0,
            lateness: LatenessReport { count: 1, p50_ps: 0, p99_ps: 50_000, max_ps: 50_000 },
            packet_time_ps: Some(83_480),
            host_errors: count("ENOBUFS", 2),
            kernel_drops: 1,
            faults: count("dropped by rule 1 (1 % loss)", 3),
            fidelity: String::new(),
            capture: Some(CaptureReport { packets: 9, dropped: left_out }),
        };
        let reports = [report(0), report(4)];
        let mut network = NetworkCounts::default();
        add_reports(&reports, &mut network);
        assert_eq!(
            network.faults.into_iter().collect::<Vec<_>>(),
            [("dropped by rule 1 (1 % loss)".to_owned(), 6)]
        );
        let drops: Vec<_> = network.drops.into_iter().collect();
        assert_eq!(drops, [("ENOBUFS".to_owned(), 4), ("not_captured".to_owned(), 4)]);
        assert_eq!(fidelity(&reports, 1_000, 5).kernel_drops, 7);
    }
}
