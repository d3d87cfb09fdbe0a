//! The daemons of a lab in the wall clock: started, asked, stopped.
//!
//! A few processes run all nodes ([`share_out`]). What a process is told on its
//! command line is here ([`Daemons::start`]), and so is what it makes of that
//! ([`open_nodes`]).

mod node_process;
mod processes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::Duration;

use super::run::{RunError, RunFiles, unix_now};
use super::sandbox::Sandbox;
use crate::daemon::Client;
use crate::daemon::protocol::{Request, Response};
use crate::io::clock::monotonic_ns;
use crate::record::UnixTime;
use crate::scenario::{NodeKind, Scenario, Topology};
use crate::trace::NodeId;

pub use node_process::{NodesOptions, OpenError, open_nodes};
pub use processes::{Processes, share_out};

use node_process::Launch;

/// Which daemons a lab has.
#[derive(Clone, Copy, Debug)]
pub struct DaemonsPlan<'a> {
    /// The nodes, and their attributes.
    pub scenario: &'a Scenario,
    /// The links between them.
    pub topology: &'a Topology,
    /// The time dilation factor.
    pub tdf: u32,
    /// The nodes of each process.
    pub shares: &'a [Vec<NodeId>],
    /// Whether each NIC's link is captured, and how many bytes of each frame
    /// are kept; 0 keeps all.
    pub captures: Option<u32>,
}

/// A process that runs nodes.
#[derive(Debug)]
struct NodeProcess {
    /// Their names, joined by commas.
    nodes: String,
    child: Child,
    log: PathBuf,
}

/// A node's daemon, somewhere in a process.
#[derive(Debug)]
struct NodeDaemon {
    name: String,
    process: usize,
    client: Client,
    control: PathBuf,
    capture: Option<PathBuf>,
}

/// All daemons of a lab, by node number. They end with this process, however
/// it ends.
#[derive(Debug)]
pub struct Daemons {
    processes: Vec<NodeProcess>,
    nodes: Vec<NodeDaemon>,
    protocol_time_0: UnixTime,
}

impl Daemons {
    /// How long a daemon may take to start, and to end, in nanoseconds.
    const PATIENCE_NS: u64 = 10_000_000_000;
    const POLL: Duration = Duration::from_millis(5);

    /// Starts the daemon of every node and connects to it. Protocol time 0 is
    /// now.
    ///
    /// # Errors
    /// When one does not start; what it said is in the error.
    // spec: TIME-2, TIME-5
    pub fn start(
        plan: &DaemonsPlan<'_>,
        sandbox: &Sandbox,
        files: &RunFiles,
    ) -> Result<Self, RunError> {
        let launch = Launch { plan, files, epoch_ns: monotonic_ns() };
        let protocol_time_0 = unix_now();
        for node in &plan.topology.nodes {
            RunFiles::clear(&files.control(&node.name))?;
        }
        let mut daemons = Self { processes: Vec::new(), nodes: Vec::new(), protocol_time_0 };
        for share in plan.shares {
            let (child, log) = launch.start(sandbox, share)?;
            let nodes = launch.names(share).join(", ");
            daemons.processes.push(NodeProcess { nodes, child, log });
        }
        for (index, node) in (0..).zip(&plan.topology.nodes) {
            let hosts = |share: &Vec<NodeId>| share.contains(&NodeId(index));
            let process = plan.shares.iter().position(hosts).unwrap_or_default();
            let control = files.control(&node.name);
            let client = daemons.await_start(process, &control)?;
            let is_nic = matches!(node.kind, NodeKind::Nic(_));
            let capture = plan.captures.filter(|_| is_nic).map(|_| files.capture(&node.name));
            let name = node.name.clone();
            daemons.nodes.push(NodeDaemon { name, process, client, control, capture });
        }
        Ok(daemons)
    }

    fn await_start(&mut self, process: usize, control: &Path) -> Result<Client, RunError> {
        let NodeProcess { nodes, child, log } = &mut self.processes[process];
        let deadline = monotonic_ns() + Self::PATIENCE_NS;
        loop {
            let error = match Client::connect(control) {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            if let Ok(Some(status)) = child.try_wait() {
                let said = fs::read_to_string(log).unwrap_or_default();
                let what = format!("did not start ({status}): {}", said.trim());
                return Err(RunError::Daemon { node: nodes.clone(), what });
            }
            if monotonic_ns() > deadline {
                return Err(RunError::Client { node: nodes.clone(), source: error });
            }
            thread::sleep(Self::POLL);
        }
    }

    /// When protocol time 0 was.
    pub fn protocol_time_0(&self) -> UnixTime {
        self.protocol_time_0
    }

    /// How many daemons there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of the process that runs node number `node`.
    pub fn process_id(&self, node: usize) -> u32 {
        self.processes[self.nodes[node].process].child.id()
    }

    /// Asks the daemon of node number `node`.
    ///
    /// # Errors
    /// When it refuses, or cannot be asked.
    pub fn ask(&mut self, node: usize, request: &Request) -> Result<Response, RunError> {
        let daemon = &mut self.nodes[node];
        let error = match daemon.client.request(request) {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let NodeProcess { nodes, child, log } = &mut self.processes[daemon.process];
        if let Ok(Some(status)) = child.try_wait() {
            let said = fs::read_to_string(log).unwrap_or_default();
            let what = format!("ended ({status}): {}", said.trim());
            return Err(RunError::Daemon { node: nodes.clone(), what });
        }
        Err(RunError::Client { node: daemon.name.clone(), source: error })
    }

    /// Another connection to the daemon of node number `node`.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn connect(&self, node: usize) -> Result<Client, RunError> {
        let daemon = &self.nodes[node];
        Client::connect(&daemon.control)
            .map_err(|source| RunError::Client { node: daemon.name.clone(), source })
    }

    /// Ends all daemons and gives the captures that they have written.
    ///
    /// # Errors
    /// When one does not end, or ends with an error.
    pub fn stop(mut self) -> Result<Vec<PathBuf>, RunError> {
        for node in 0..self.nodes.len() {
            self.ask(node, &Request::Stop {})?;
        }
        let deadline = monotonic_ns() + Self::PATIENCE_NS;
        for NodeProcess { nodes, child, .. } in &mut self.processes {
            let what = loop {
                match child.try_wait() {
                    Ok(Some(status)) if status.success() => break None,
                    Ok(Some(status)) => break Some(format!("ended with {status}")),
                    Ok(None) if monotonic_ns() > deadline => break Some("does not end".to_owned()),
                    Ok(None) => thread::sleep(Self::POLL),
                    Err(error) => break Some(format!("cannot be waited for: {error}")),
                }
            };
            if let Some(what) = what {
                return Err(RunError::Daemon { node: nodes.clone(), what });
            }
        }
        Ok(self.nodes.iter().filter_map(|node| node.capture.clone()).collect())
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for NodeProcess { child, .. } in &mut self.processes {
            // One that has ended already needs no more.
            let _ = child.kill();
            let _ = child.wait();
        }
        for node in &self.nodes {
            let _ = fs::remove_file(&node.control);
        }
    }
}

/// An answer that the request cannot have.
pub fn unexpected(response: &Response) -> RunError {
    // Answers of this protocol can always be written.
    let answer = serde_json::to_string(response).unwrap_or_default();
    let what = format!("gave an answer to another question: {answer}");
    RunError::Daemon { node: "a node".to_owned(), what }
}
