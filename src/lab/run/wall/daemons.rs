//! The daemons of a run: started, asked, stopped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::super::files::unix_now;
use super::super::network::LabNetwork;
use super::super::{RunError, RunFiles, RunPlan};
use crate::daemon::protocol::{Request, Response};
use crate::daemon::{Client, ClientError};
use crate::io::clock::monotonic_ns;
use crate::record::UnixTime;
use crate::scenario::{NodeKind, Topology};
use crate::trace::NodeId;

/// One node's daemon.
#[derive(Debug)]
struct DaemonProcess {
    node: String,
    child: Child,
    client: Client,
    control: PathBuf,
    capture: Option<PathBuf>,
}

/// All daemons of a run, by node number. They end with this process, however
/// it ends.
#[derive(Debug)]
pub struct Daemons {
    running: Vec<DaemonProcess>,
    files: RunFiles,
    protocol_time_0: UnixTime,
}

impl Daemons {
    /// How long a daemon may take to start, and to end, in nanoseconds.
    const PATIENCE_NS: u64 = 10_000_000_000;
    const POLL: Duration = Duration::from_millis(5);

    /// Starts the daemon of every node in its namespace and connects to it.
    /// Protocol time 0 is now.
    ///
    /// # Errors
    /// When one does not start; what it said is in the error.
    // spec: TIME-2, TIME-5
    pub fn start(
        plan: &RunPlan,
        topology: &Topology,
        lab: &LabNetwork,
        files: &RunFiles,
    ) -> Result<Self, RunError> {
        let (epoch_ns, protocol_time_0) = (monotonic_ns(), unix_now());
        let mut starting = Vec::new();
        for (index, node) in topology.nodes.iter().enumerate() {
            let control = files.control(&node.name);
            RunFiles::clear(&control)?;
            let mut command = command(plan, topology, lab, NodeId(index as u32))?;
            command.arg("--scenario").arg(files.scenario());
            command.arg("--control").arg(&control);
            command.arg("--epoch-ns").arg(epoch_ns.to_string());
            let is_nic = matches!(node.kind, NodeKind::Nic(_));
            let capture = (plan.captures && is_nic).then(|| files.capture(&node.name));
            if let Some(path) = &capture {
                command.arg("--capture").arg(path);
                command.arg("--snaplen").arg(plan.snap_len.to_string());
            }
            let log = files.log(&node.name);
            let making = format!("making {}", log.display());
            let log = File::create(&log).map_err(RunError::io(making))?;
            let second = log.try_clone().map_err(RunError::io("copying a file handle"))?;
            // Ctrl-C is for the coordinator, which ends the daemons in order.
            command.stdin(Stdio::null()).stdout(log).stderr(second).process_group(0);
            let namespace = lab.network.namespace(&node.name).ok_or_else(|| RunError::Daemon {
                node: node.name.clone(),
                what: "has no namespace".to_owned(),
            })?;
            let starting_it = format!("starting the daemon of {}", node.name);
            let child =
                lab.sandbox.spawn_in(namespace, command).map_err(RunError::io(starting_it))?;
            starting.push((node.name.clone(), child, control, capture));
        }
        let mut daemons = Self { running: Vec::new(), files: files.clone(), protocol_time_0 };
        for (node, child, control, capture) in starting {
            let running = daemons.await_start(node, child, control, capture)?;
            daemons.running.push(running);
        }
        Ok(daemons)
    }

    fn await_start(
        &self,
        node: String,
        mut child: Child,
        control: PathBuf,
        capture: Option<PathBuf>,
    ) -> Result<DaemonProcess, RunError> {
        let deadline = monotonic_ns() + Self::PATIENCE_NS;
        loop {
            let error = match Client::connect(&control) {
                Ok(client) => return Ok(DaemonProcess { node, child, client, control, capture }),
                Err(error) => error,
            };
            if let Ok(Some(status)) = child.try_wait() {
                let said = fs::read_to_string(self.files.log(&node)).unwrap_or_default();
                let what = format!("did not start ({status}): {}", said.trim());
                return Err(RunError::Daemon { node, what });
            }
            if monotonic_ns() > deadline {
                return Err(RunError::Client { node, source: error });
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
        self.running.len()
    }

    /// Asks the daemon of node number `node`.
    ///
    /// # Errors
    /// When it refuses, or cannot be asked.
    pub fn ask(&mut self, node: usize, request: &Request) -> Result<Response, RunError> {
        let daemon = &mut self.running[node];
        daemon.client.request(request).map_err(|source| describe(daemon, source, &self.files))
    }

    /// Another connection to the daemon of node number `node`.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn connect(&self, node: usize) -> Result<Client, RunError> {
        let daemon = &self.running[node];
        Client::connect(&daemon.control)
            .map_err(|source| RunError::Client { node: daemon.node.clone(), source })
    }

    /// Ends all daemons and gives the captures that they have written.
    ///
    /// # Errors
    /// When one does not end, or ends with an error.
    pub fn stop(mut self) -> Result<Vec<PathBuf>, RunError> {
        for node in 0..self.running.len() {
            self.ask(node, &Request::Stop {})?;
        }
        let deadline = monotonic_ns() + Self::PATIENCE_NS;
        for daemon in &mut self.running {
            let what = loop {
                match daemon.child.try_wait() {
                    Ok(Some(status)) if status.success() => break None,
                    Ok(Some(status)) => break Some(format!("ended with {status}")),
                    Ok(None) if monotonic_ns() > deadline => break Some("does not end".to_owned()),
                    Ok(None) => thread::sleep(Self::POLL),
                    Err(error) => break Some(format!("cannot be waited for: {error}")),
                }
            };
            if let Some(what) = what {
                return Err(RunError::Daemon { node: daemon.node.clone(), what });
            }
        }
        Ok(self.running.iter().filter_map(|daemon| daemon.capture.clone()).collect())
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for daemon in &mut self.running {
            // One that has ended already needs no more.
            let _ = daemon.child.kill();
            let _ = daemon.child.wait();
            let _ = fs::remove_file(&daemon.control);
        }
    }
}

/// The command of a node's daemon, but for its files.
fn command(
    plan: &RunPlan,
    topology: &Topology,
    lab: &LabNetwork,
    node: NodeId,
) -> Result<Command, RunError> {
    let program = std::env::current_exe().map_err(RunError::io("finding this program"))?;
    let mut command = Command::new(program);
    let kind = match topology.nodes[node.0 as usize].kind {
        NodeKind::Nic(_) => "nic",
        NodeKind::Switch(_) => "switch",
    };
    command.arg(kind);
    command.arg("--node").arg(&topology.nodes[node.0 as usize].name);
    for (index, link) in topology.links.iter().enumerate() {
        for (side, end) in link.ends.iter().enumerate() {
            if end.node == node
                && let Some(interfaces) = lab.network.interfaces(index)
            {
                command.arg("--interface").arg(&interfaces[side]);
            }
        }
    }
    command.arg("--profile").arg(plan.scenario.profile.name());
    command.arg("--seed").arg(plan.scenario.seed.to_string());
    command.arg("--tdf").arg(plan.tdf.to_string());
    Ok(command)
}

fn describe(daemon: &mut DaemonProcess, source: ClientError, files: &RunFiles) -> RunError {
    let node = daemon.node.clone();
    if let Ok(Some(status)) = daemon.child.try_wait() {
        let said = fs::read_to_string(files.log(&node)).unwrap_or_default();
        return RunError::Daemon { node, what: format!("ended ({status}): {}", said.trim()) };
    }
    RunError::Client { node, source }
}

/// An answer that the request cannot have.
pub fn unexpected(response: &Response) -> RunError {
    // Answers of this protocol can always be written.
    let answer = serde_json::to_string(response).unwrap_or_default();
    let what = format!("gave an answer to another question: {answer}");
    RunError::Daemon { node: "a node".to_owned(), what }
}
