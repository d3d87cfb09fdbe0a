//! The workload of a run, posted to daemons over their control sockets.

use std::fs::File;
use std::io::BufWriter;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use super::super::{RunError, RunPlan};
use super::exec::Programs;
use crate::daemon::protocol::{EventReport, Fill, FlowFill, PostWrite, Region, Request, Response};
use crate::daemon::{Client, ClientError};
use crate::io::clock::monotonic_ns;
use crate::lab::daemons::{Daemons, unexpected};
use crate::nic::Access;
use crate::record::EventsCsv;
use crate::time::{self as protocol, Instant};
use crate::trace::NodeId;
use crate::wire::qpn::Qpn;
use crate::workload::{Action, FlowResult, Workload};

/// The regions of one flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowRegions {
    /// What is sent, at the sender.
    pub source: Region,
    /// Where it goes, at the receiver.
    pub destination: Region,
}

type News = (NodeId, Result<EventReport, ClientError>);

/// Posts what the workload says, and tells it what the daemons report.
#[derive(Debug)]
pub struct Coordinator<'a> {
    plan: &'a RunPlan,
    workload: Workload,
    regions: Vec<FlowRegions>,
    news: Receiver<News>,
    record: EventsCsv<BufWriter<File>>,
}

impl<'a> Coordinator<'a> {
    /// How long to wait for news before progress is told.
    const TICK: Duration = Duration::from_millis(100);
    /// How often the NICs are asked how many bytes have arrived, in nanoseconds.
    const COUNT_EVERY_NS: u64 = 1_000_000_000;

    /// Registers every flow's memory and listens to every NIC.
    ///
    /// # Errors
    /// When a daemon refuses or cannot be asked.
    pub fn start(
        plan: &'a RunPlan,
        daemons: &mut Daemons,
        record: EventsCsv<BufWriter<File>>,
    ) -> Result<Self, RunError> {
        let regions = register_flows(plan, daemons)?;
        let (sender, news) = mpsc::channel();
        for node in 0..plan.scenario.nics.len() {
            listen(NodeId(node as u32), daemons.connect(node)?, sender.clone());
        }
        let workload = Workload::new(&plan.scenario);
        Ok(Self { plan, workload, regions, news, record })
    }

    /// Runs the workload and `programs` until every flow and every program that
    /// is no server is over, the run is given up, or `progress` says so. Nothing
    /// is posted or started before the first answer of `progress`.
    ///
    /// # Errors
    /// When a daemon ends, a program cannot be started, or a record cannot be
    /// written.
    // spec: QP-9, REL-1, WL-1
    pub fn run(
        &mut self,
        daemons: &mut Daemons,
        programs: &mut Programs<'_>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<(), RunError> {
        let total = self.workload.total_bytes();
        if !progress(0, total) {
            return Ok(());
        }
        let begun = monotonic_ns();
        let deadline_ns = begun.saturating_add(self.wall_ns(self.plan.time_limit));
        let (mut arrived, mut count_at) = (0, 0);
        loop {
            let now = monotonic_ns();
            let elapsed_ns = (now - begun) / u64::from(self.plan.tdf);
            self.workload.start_due(protocol::Duration::from_ns(elapsed_ns));
            self.act(daemons)?;
            programs.advance()?;
            if (self.workload.is_over() && programs.are_over()) || now > deadline_ns {
                return Ok(());
            }
            if now >= count_at {
                count_at = now + Self::COUNT_EVERY_NS;
                arrived = self.arrived(daemons)?;
            }
            if !progress(arrived, total) {
                return Ok(());
            }
            let next = self.workload.next_start().map(|start| begun + self.wall_ns(start));
            let idle = next.map(|at| Duration::from_nanos(at.saturating_sub(monotonic_ns())));
            self.hear(idle.map_or(Self::TICK, |idle| idle.min(Self::TICK)))?;
        }
    }

    /// How long `time` of protocol time takes, in nanoseconds of the wall clock.
    fn wall_ns(&self, time: protocol::Duration) -> u64 {
        time.as_ns().saturating_mul(self.plan.tdf.into())
    }

    /// Bytes that have arrived at all NICs.
    fn arrived(&self, daemons: &mut Daemons) -> Result<u64, RunError> {
        let mut arrived = 0;
        for node in 0..self.plan.scenario.nics.len() {
            if let Response::NicCounters { counters, .. } =
                daemons.ask(node, &Request::Counters {})?
            {
                arrived += counters.get("write_bytes_rcvd").map_or(0, |n| n.as_u64().unwrap_or(0));
            }
        }
        Ok(arrived)
    }

    /// Takes one event from the daemons, if one comes in time.
    fn hear(&mut self, timeout: Duration) -> Result<bool, RunError> {
        let (node, news) = match self.news.recv_timeout(timeout) {
            Ok(news) => news,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Ok(false),
        };
        let name = &self.plan.scenario.nics[node.0 as usize].name;
        let report = news.map_err(|source| RunError::Client { node: name.clone(), source })?;
        let (at, event) = (report.at(), report.event());
        self.record
            .write_row(at, name, node.0, &event)
            .map_err(RunError::io("writing the record of events"))?;
        self.workload.on_event(at, node, &event);
        Ok(true)
    }

    fn act(&mut self, daemons: &mut Daemons) -> Result<(), RunError> {
        while let Some(action) = self.workload.next_action() {
            match action {
                Action::Post { flow, message, qp } => self.post(daemons, flow, message, qp)?,
                Action::Close { node, qpn } => self.close(daemons, node, qpn)?,
            }
        }
        Ok(())
    }

    fn post(
        &mut self,
        daemons: &mut Daemons,
        number: usize,
        message: u32,
        qp: Option<Qpn>,
    ) -> Result<(), RunError> {
        let flow = &self.plan.scenario.flows[number];
        let FlowRegions { source, destination } = self.regions[number];
        let offset = u64::from(flow.bytes) * u64::from(message);
        let request = Request::PostWrite(PostWrite {
            peer: self.plan.scenario.nics[flow.to].ip,
            lkey: source.rkey,
            local_va: source.va + offset,
            length: flow.bytes,
            remote_va: destination.va + offset,
            rkey: destination.rkey,
            qp: qp.map(Qpn::value),
            wqe_id: Workload::wqe_id(number, message),
        });
        match daemons.ask(flow.from, &request) {
            Ok(Response::Posted(posted)) => {
                let at = Instant::from_ps(posted.at_ps);
                self.workload.posted(number, Qpn::masked(posted.qpn), at);
                Ok(())
            }
            Ok(other) => Err(unexpected(&other)),
            Err(RunError::Client { source: ClientError::Refused(reason), .. }) => {
                self.workload.refused(number, reason);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Closes a side of a QP; one that is gone already needs no more.
    fn close(&mut self, daemons: &mut Daemons, node: NodeId, qpn: Qpn) -> Result<(), RunError> {
        match daemons.ask(node.0 as usize, &Request::Close { qpn: qpn.value() }) {
            Ok(Response::Closed { qp }) => {
                self.workload.closed(qp.local, qp.retransmissions);
                Ok(())
            }
            Ok(other) => Err(unexpected(&other)),
            Err(RunError::Client { source: ClientError::Refused(_), .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Each flow's result, with what QPs that are still open have sent again.
    ///
    /// # Errors
    /// When a daemon cannot be asked, or the record cannot be written.
    pub fn finish(
        mut self,
        daemons: &mut Daemons,
    ) -> Result<(Vec<FlowResult>, Vec<FlowRegions>), RunError> {
        for node in 0..self.plan.scenario.nics.len() {
            if let Response::Qps { qps } = daemons.ask(node, &Request::ListQps {})? {
                for qp in qps {
                    self.workload.closed(qp.local, qp.retransmissions);
                }
            }
        }
        // What the last closings made, which the daemons have sent by now.
        while self.hear(Self::TICK)? {}
        self.record.flush().map_err(RunError::io("writing the record of events"))?;
        Ok((self.workload.results().cloned().collect(), self.regions))
    }
}

fn register_flows(plan: &RunPlan, daemons: &mut Daemons) -> Result<Vec<FlowRegions>, RunError> {
    let mut regions = Vec::new();
    for (number, flow) in plan.scenario.flows.iter().enumerate() {
        let length = u64::from(flow.bytes) * u64::from(flow.messages);
        let mut register = |node: usize, access, fill| {
            let request = Request::RegisterMemory { length, access, fill };
            match daemons.ask(node, &request)? {
                Response::Region(region) => Ok(region),
                other => Err(unexpected(&other)),
            }
        };
        let data = FlowFill {
            seed: plan.scenario.seed,
            number,
            bytes: flow.bytes,
            messages: flow.messages,
        };
        regions.push(FlowRegions {
            source: register(flow.from, Access::Local, Fill::Flow(data))?,
            destination: register(flow.to, Access::RemoteWrite, Fill::default())?,
        });
    }
    Ok(regions)
}

/// Sends every event of a NIC to `sender`, from a thread of its own.
fn listen(node: NodeId, mut client: Client, sender: Sender<News>) {
    const PATIENCE: Duration = Duration::from_secs(1);
    thread::spawn(move || {
        if let Err(error) = client.request(&Request::Subscribe {}) {
            let _ = sender.send((node, Err(error)));
            return;
        }
        loop {
            let news = match client.next_event(PATIENCE) {
                Ok(Some(event)) => Ok(event),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            let last = news.is_err();
            // Nobody listens once the run is over.
            if sender.send((node, news)).is_err() || last {
                return;
            }
        }
    });
}
