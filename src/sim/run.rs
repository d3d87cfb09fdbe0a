//! A workload under the exact clock, from the first posting to the last
//! completion.

use super::{Carrier, CarryError, SimWorld};
use crate::nic::{Access, MemoryRegion, QpChoice, WorkRequest};
use crate::scenario::{Flow, Scenario};
use crate::time::Instant;
use crate::trace::NodeId;
use crate::workload::{Action, Workload, flow_data};

/// The regions of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowMemory {
    /// What is sent, at the sender.
    pub source: MemoryRegion,
    /// Where it goes, at the receiver.
    pub destination: MemoryRegion,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// The workload with its results.
    pub workload: Workload,
    /// Each flow's regions; their bytes are still registered at the NICs.
    pub memory: Vec<FlowMemory>,
    /// When the last flow was over, or the limit.
    pub ended: Instant,
}

/// Runs the flows of `scenario` until each is over, nothing can happen any
/// more, or protocol time reaches `limit`. `progress` is told before anything is
/// posted, and now and then after that, how many bytes have arrived, of how many;
/// it says whether to go on.
///
/// # Errors
/// When the carrier could not carry a frame.
// spec: QP-9, REL-1, WL-1
pub fn run_workload<C: Carrier>(
    world: &mut SimWorld<'_, C>,
    scenario: &Scenario,
    limit: Instant,
    mut progress: impl FnMut(u64, u64) -> bool,
) -> Result<RunEnd, CarryError> {
    const STEPS_BETWEEN_REPORTS: u32 = 10_000;
    let memory = register_flows(world, scenario);
    let mut run =
        Run { flows: &scenario.flows, scenario, memory, workload: Workload::new(scenario) };
    let total = run.workload.total_bytes();
    let mut steps = 0;
    while steps % STEPS_BETWEEN_REPORTS != 0 || progress(run.arrived(world), total) {
        run.workload.start_due(world.now().since(Instant::ZERO));
        run.act(world);
        let start = run.workload.next_start().map(|start| Instant::ZERO + start);
        let next = [start, world.next_instant()].into_iter().flatten().min();
        let Some(next) = next.filter(|at| !run.workload.is_over() && *at <= limit) else { break };
        if world.next_instant() == Some(next) {
            world.step()?;
        } else {
            world.run_until(next)?;
        }
        while let Some((at, node, event)) = world.poll_event() {
            run.workload.on_event(at, node, &event);
        }
        steps += 1;
    }
    run.account_open_qps(world);
    Ok(RunEnd { workload: run.workload, memory: run.memory, ended: world.now() })
}

fn register_flows<C: Carrier>(world: &mut SimWorld<'_, C>, scenario: &Scenario) -> Vec<FlowMemory> {
    let flows = scenario.flows.iter().enumerate().map(|(number, flow)| {
        let data = flow_data(scenario.seed, number, flow);
        let zeros = vec![0; data.len()];
        let mut register = |node: usize, bytes, access| {
            world.with_nic(NodeId(node as u32), |nic, ctx| nic.register_memory(ctx, bytes, access))
        };
        FlowMemory {
            source: register(flow.from, data, Access::Local),
            destination: register(flow.to, zeros, Access::RemoteWrite),
        }
    });
    flows.collect()
}

struct Run<'s> {
    flows: &'s [Flow],
    scenario: &'s Scenario,
    memory: Vec<FlowMemory>,
    workload: Workload,
}

impl Run<'_> {
    fn act<C: Carrier>(&mut self, world: &mut SimWorld<'_, C>) {
        while let Some(action) = self.workload.next_action() {
            match action {
                Action::Post { flow, message, qp } => {
                    let from = NodeId(self.flows[flow].from as u32);
                    let choice = qp.map_or(QpChoice::New, QpChoice::Existing);
                    let work = self.work(flow, message);
                    let posted = world.with_nic(from, |nic, ctx| nic.post_write(ctx, choice, work));
                    match posted {
                        Ok(qpn) => self.workload.posted(flow, qpn, world.now()),
                        Err(error) => self.workload.refused(flow, error.to_string()),
                    }
                }
                Action::Close { node, qpn } => {
                    let info = world.with_nic(node, |nic, ctx| nic.close_qp(ctx, qpn));
                    if let Some(info) = info {
                        self.workload.closed(info.local, info.retransmissions);
                    }
                }
            }
        }
    }

    fn work(&self, flow: usize, message: u32) -> WorkRequest {
        let Flow { to, bytes, .. } = self.flows[flow];
        let FlowMemory { source, destination } = self.memory[flow];
        let offset = u64::from(bytes) * u64::from(message);
        WorkRequest {
            wqe_id: Workload::wqe_id(flow, message),
            peer: self.scenario.nics[to].ip,
            lkey: source.rkey,
            local_va: source.va + offset,
            length: bytes,
            remote_va: destination.va + offset,
            rkey: destination.rkey,
        }
    }

    /// Bytes that have arrived at all NICs.
    fn arrived<C: Carrier>(&self, world: &SimWorld<'_, C>) -> u64 {
        let nics = (0..self.scenario.nics.len()).map(|node| world.nic(NodeId(node as u32)));
        nics.map(|nic| nic.counters().write_bytes_rcvd).sum()
    }

    /// What QPs that were never closed have sent again counts too.
    fn account_open_qps<C: Carrier>(&mut self, world: &SimWorld<'_, C>) {
        for node in 0..self.scenario.nics.len() {
            for info in world.nic(NodeId(node as u32)).qps() {
                self.workload.closed(info.local, info.retransmissions);
            }
        }
    }
}
