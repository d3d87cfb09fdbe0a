//! A process that runs nodes of a lab: its command line, and what it opens.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::DaemonsPlan;
use crate::daemon::{Daemon, DaemonError, Group, Options};
use crate::lab::error::LabError;
use crate::lab::namespace::NamespaceHandle;
use crate::lab::plan::interface_name;
use crate::lab::run::{RunError, RunFiles};
use crate::lab::sandbox::Sandbox;
use crate::nic::Nic;
use crate::scenario::{NodeKind, Scenario, Topology};
use crate::switch::Switch;
use crate::trace::NodeId;

/// The subcommand of `mrc` that runs nodes of a lab.
pub(super) const COMMAND: &str = "nodes";

/// What all processes of a lab are started with.
pub(super) struct Launch<'a> {
    pub(super) plan: &'a DaemonsPlan<'a>,
    pub(super) files: &'a RunFiles,
    /// Protocol time 0, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) epoch_ns: u64,
}

impl Launch<'_> {
    /// The names of nodes.
    pub(super) fn names(&self, nodes: &[NodeId]) -> Vec<&str> {
        nodes.iter().map(|node| self.plan.topology.nodes[node.0 as usize].name.as_str()).collect()
    }

    /// Starts the process that runs `nodes`; what it says goes to a log, whose
    /// path is given too.
    // spec: TIME-2, TIME-5
    pub(super) fn start(
        &self,
        sandbox: &Sandbox,
        nodes: &[NodeId],
    ) -> Result<(Child, PathBuf), RunError> {
        let names = self.names(nodes);
        let path = match names[..] {
            [name] => self.files.log(name),
            _ => self.files.log(&format!("{}-and-{}-more", names[0], names.len() - 1)),
        };
        let making = format!("making {}", path.display());
        let log = File::create(&path).map_err(RunError::io(making))?;
        let second = log.try_clone().map_err(RunError::io("copying a file handle"))?;
        let mut command = self.command(&names)?;
        // Ctrl-C is for the coordinator, which ends the daemons in order.
        command.stdin(Stdio::null()).stdout(log).stderr(second).process_group(0);
        let starting = format!("starting the daemons of {}", names.join(", "));
        let child = sandbox.spawn(command).map_err(RunError::io(starting))?;
        Ok((child, path))
    }

    fn command(&self, names: &[&str]) -> Result<Command, RunError> {
        let program = std::env::current_exe().map_err(RunError::io("finding this program"))?;
        let DaemonsPlan { scenario, tdf, captures, .. } = self.plan;
        let mut command = Command::new(program);
        command.arg(COMMAND);
        command.arg("--scenario").arg(self.files.scenario());
        command.arg("--profile").arg(scenario.profile.name());
        command.arg("--seed").arg(scenario.seed.to_string());
        command.arg("--dir").arg(self.files.dir());
        command.arg("--tdf").arg(tdf.to_string());
        command.arg("--epoch-ns").arg(self.epoch_ns.to_string());
        if let Some(snap_len) = captures {
            command.arg("--captures").arg("--snaplen").arg(snap_len.to_string());
        }
        command.args(names);
        Ok(command)
    }
}

/// What a process that runs nodes is told.
#[derive(Clone, Debug)]
pub struct NodesOptions {
    /// The names of the nodes.
    pub nodes: Vec<String>,
    /// The lab's folder: control sockets and captures go there.
    pub dir: PathBuf,
    /// The time dilation factor.
    pub tdf: u32,
    /// Protocol time 0, in nanoseconds of CLOCK_MONOTONIC.
    pub epoch_ns: u64,
    /// Whether each NIC's link is captured, and how many bytes of each frame
    /// are kept; 0 keeps all.
    pub captures: Option<u32>,
}

/// Why nodes cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A namespace cannot be entered.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A daemon cannot be opened.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// Opens the daemons of nodes, each in the namespace of its name, which the
/// sandbox that this process was started in has.
///
/// # Errors
/// The first node that cannot be opened.
// spec: TIME-5
pub fn open_nodes(scenario: &Scenario, options: &NodesOptions) -> Result<Group, OpenError> {
    let topology = Topology::new(scenario);
    let mut group = Group::default();
    for name in &options.nodes {
        let id = topology.node(name).ok_or_else(|| DaemonError::UnknownNode {
            name: name.clone(),
            known: topology.nodes.iter().map(|node| node.name.clone()).collect(),
        })?;
        let is_nic = matches!(topology.nodes[id.0 as usize].kind, NodeKind::Nic(_));
        let capture = options.captures.filter(|_| is_nic);
        let ports = topology.sending_ends(id, scenario.seed).len() as u32;
        let daemon_options = Options {
            node: name.clone(),
            interfaces: (0..ports).map(interface_name).collect(),
            control: RunFiles::control_in(&options.dir, name),
            tdf: Some(options.tdf),
            epoch_ns: Some(options.epoch_ns),
            life: None,
            owner: None,
            capture: capture.map(|_| RunFiles::capture_in(&options.dir, name)),
            snap_len: capture.unwrap_or(0),
        };
        let namespace = NamespaceHandle::open(name)?;
        if is_nic {
            group.add(namespace.enter_scope(|| Daemon::<Nic>::open(scenario, &daemon_options))??);
        } else {
            let open = || Daemon::<Switch>::open(scenario, &daemon_options);
            group.add(namespace.enter_scope(open)??);
        }
    }
    Ok(group)
}
