//! A run of a scenario, from the first namespace to the last byte of the
//! captures, in any clock.

mod exact;
mod files;
mod network;
mod tdf;
mod wall;

use std::io;
use std::path::PathBuf;

use crate::daemon::ClientError;
use crate::record::{
    Clock, ExecSummary, Fidelity, FlowDigests, FlowSummary, NetworkCounts, RunId, Summary,
};
use crate::scenario::{Scenario, Topology, ideal_times};
use crate::sim::CarryError;
use crate::time::Duration;
use crate::trace::NodeId;
use crate::workload::FlowResult;

use super::error::LabError;
pub(super) use network::LabNetwork;

pub use files::RunFiles;
pub(super) use files::unix_now;
pub use tdf::auto_tdf;

/// What to run and how.
#[derive(Debug)]
pub struct RunPlan {
    /// What.
    pub scenario: Scenario,
    /// The scenario's file.
    pub scenario_file: PathBuf,
    /// What was in it, which the wall clock's daemons read from the run's folder.
    pub scenario_text: String,
    /// In which clock.
    pub clock: Clock,
    /// The time dilation factor of the wall clock; the exact clocks have none.
    pub tdf: u32,
    /// The nodes of each process in the wall clock.
    pub shares: Vec<Vec<NodeId>>,
    /// Where the run's files go.
    pub out: PathBuf,
    /// Whether each NIC's link is captured.
    pub captures: bool,
    /// Bytes kept of each captured frame; 0 keeps all.
    pub snap_len: u32,
    /// The run is given up at this protocol time.
    pub time_limit: Duration,
}

impl RunPlan {
    /// How outputs name the run.
    pub fn id(&self) -> RunId {
        let tdf = (self.clock == Clock::Wall).then_some(self.tdf);
        RunId::new(&self.scenario, self.clock, tdf)
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Each flow's result, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Each flow's digests, at the sender and at the receiver.
    pub digests: Vec<FlowDigests>,
    /// What happened on the way.
    pub network: NetworkCounts,
    /// How faithful the run was to protocol time.
    pub fidelity: Fidelity,
    /// What became of the scenario's programs.
    pub execs: Vec<ExecSummary>,
    /// The captures: one for each NIC's link, and all of them merged.
    pub captures: Vec<PathBuf>,
}

/// Why a run came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The lab could not be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The run's folder cannot be had.
    #[error("--out {}: {what}", .dir.display())]
    Out {
        /// The folder.
        dir: PathBuf,
        /// Why not, and what to do.
        what: String,
    },
    /// A frame could not be carried over its wire.
    #[error(transparent)]
    Carry(#[from] CarryError),
    /// A daemon did not start, or ended by itself.
    #[error("the daemon of {node} {what}")]
    Daemon {
        /// The node.
        node: String,
        /// What it did, with what it said.
        what: String,
    },
    /// A daemon could not be asked.
    #[error("the daemon of {node}: {source}")]
    Client {
        /// The node.
        node: String,
        /// Why.
        source: ClientError,
    },
    /// A program of the scenario could not be run.
    #[error("[[exec]] on {node}: {what}")]
    Exec {
        /// The host.
        node: String,
        /// Why not, and what to do.
        what: String,
    },
    /// A file could not be written.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl RunError {
    /// Wraps a system error with what was attempted.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what: what.into(), source }
    }
}

/// The summary of what the run `id` of `scenario` came to.
// spec: RC-9
pub(super) fn summarize(
    id: RunId,
    scenario: &Scenario,
    topology: &Topology,
    outcome: Outcome,
) -> Summary {
    let ideals = ideal_times(scenario, topology);
    let flows = scenario.flows.iter().zip(&outcome.flows).zip(ideals).zip(outcome.digests);
    let flows = flows.map(|(((flow, result), ideal), digests)| {
        FlowSummary::new(scenario, flow, result, ideal, digests)
    });
    let Outcome { network, fidelity, execs, captures, .. } = outcome;
    Summary::new(id, flows.collect(), network, fidelity, captures).with_execs(execs)
}

/// A run whose lab stands.
#[derive(Debug)]
pub struct PreparedRun {
    plan: RunPlan,
    topology: Topology,
    files: RunFiles,
    lab: Option<LabNetwork>,
}

impl PreparedRun {
    /// Makes the folder of `plan` and builds what it needs: namespaces and links in a sandbox, which this
    /// process enters, or nothing in the exact clock. Call it while the process
    /// has one thread.
    ///
    /// # Errors
    /// When the folder cannot be had, or the machine does not allow a lab.
    // spec: REL-10
    pub fn build(plan: RunPlan) -> Result<Self, RunError> {
        let topology = Topology::new(&plan.scenario);
        let with_sockets = plan.clock == Clock::Wall;
        let files = RunFiles::create(&plan.out, &plan.scenario, &plan.scenario_text, with_sockets)?;
        let lab = match plan.clock {
            Clock::Exact => None,
            Clock::ExactWires | Clock::Wall => Some(LabNetwork::build(&topology)?),
        };
        files.check_visible()?;
        Ok(Self { plan, topology, files, lab })
    }

    /// Runs. `progress` is told now and then how many bytes have arrived, of how
    /// many, and says whether to go on; when it does not, the run ends early and
    /// its files are complete up to there. It is told once when all is ready and
    /// before anything is sent, and may take its time then.
    ///
    /// # Errors
    /// When a daemon fails, a frame cannot be carried, or a file cannot be written.
    // spec: TIME-5
    pub fn execute(&self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<Outcome, RunError> {
        let files = &self.files;
        match (&self.lab, self.plan.clock) {
            (Some(lab), Clock::Wall) => wall::run(&self.plan, &self.topology, lab, files, progress),
            (Some(lab), _) => {
                exact::run_over_wires(&self.plan, &self.topology, lab, files, progress)
            }
            (None, _) => exact::run_in_memory(&self.plan, &self.topology, files, progress),
        }
    }

    /// The summary of what the run came to.
    pub fn summarize(&self, outcome: Outcome) -> Summary {
        summarize(self.plan.id(), &self.plan.scenario, &self.topology, outcome)
    }
}
