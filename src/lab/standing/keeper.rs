//! The process that keeps a lab.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};

use super::{LabState, NodeState, Place, StandingError};
use crate::lab::daemons::{Daemons, DaemonsPlan};
use crate::lab::run::{LabNetwork, RunError, RunFiles};
use crate::lab::sys;
use crate::scenario::{NodeKind, Scenario, Topology};
use crate::trace::NodeId;

/// What the keeper says when the lab stands.
const READY: &str = "ready";

/// A lab that is to stay.
#[derive(Debug)]
pub struct KeepPlan {
    /// What.
    pub scenario: Scenario,
    /// The scenario's file.
    pub scenario_file: String,
    /// What was in it, which the daemons read from the lab's folder.
    pub scenario_text: String,
    /// The time dilation factor.
    pub tdf: u32,
    /// The nodes of each process.
    pub shares: Vec<Vec<NodeId>>,
    /// The lab's folder.
    pub dir: PathBuf,
}

/// Builds a lab and keeps it until it is told to go down. Says `ready` on
/// `output` when all stands, and goes on only when it reads something from
/// `input` then: who asked for the lab may be gone. Call it while the process
/// has one thread.
///
/// # Errors
/// When the lab does not come up, or a daemon does not end.
// spec: REL-10
pub fn keep(plan: &KeepPlan, mut input: impl Read, mut output: impl Write) -> Result<(), RunError> {
    let files = RunFiles::create(&plan.dir, &plan.scenario, &plan.scenario_text, true)?;
    let topology = Topology::new(&plan.scenario);
    let lab = LabNetwork::build(&topology)?;
    files.check_visible()?;
    let daemons = DaemonsPlan {
        scenario: &plan.scenario,
        topology: &topology,
        tdf: plan.tdf,
        shares: &plan.shares,
        captures: None,
    };
    let daemons = Daemons::start(&daemons, &lab.sandbox, &files)?;
    let socket = Place::keeper_socket(&plan.dir);
    let listener = UnixListener::bind(&socket)
        .map_err(RunError::io(format!("listening at {}", socket.display())))?;
    let file = Place::state_file(&plan.dir);
    let state = serde_json::to_string_pretty(&state(plan, &topology, &daemons, &files));
    state
        .map_err(io::Error::from)
        .and_then(|text| fs::write(&file, text + "\n"))
        .map_err(RunError::io(format!("writing {}", file.display())))?;
    let wanted = writeln!(output, "{READY}")
        .and_then(|()| output.flush())
        .and_then(|()| input.read_exact(&mut [0]));
    let asked = wanted.and_then(|()| await_down(&listener));
    daemons.stop()?;
    lab.network.leave_to_sandbox();
    // Who asked learns by the end of the connection that all is gone.
    asked.map(drop).map_err(RunError::io("keeping the lab"))
}

/// Waits until a client says `down`; gives its connection.
fn await_down(listener: &UnixListener) -> io::Result<impl Sized> {
    loop {
        let (client, _) = listener.accept()?;
        let mut client = BufReader::new(client);
        let mut line = String::new();
        // A client that fails to ask has asked for nothing.
        if client.read_line(&mut line).is_ok() && line.trim() == "down" {
            return Ok(client);
        }
    }
}

fn state(plan: &KeepPlan, topology: &Topology, daemons: &Daemons, files: &RunFiles) -> LabState {
    let nodes = topology.nodes.iter().enumerate().map(|(number, node)| NodeState {
        name: node.name.clone(),
        kind: match node.kind {
            NodeKind::Nic(_) => "nic".to_owned(),
            NodeKind::Switch(_) => "switch".to_owned(),
        },
        ip: node.ip(),
        process: daemons.process_id(number),
        control: files.control(&node.name),
    });
    let name = plan.dir.file_name().map(|name| name.to_string_lossy().into_owned());
    LabState {
        name: name.unwrap_or_default(),
        scenario_file: plan.scenario_file.clone(),
        profile: plan.scenario.profile.name().to_owned(),
        seed: plan.scenario.seed,
        tdf: plan.tdf,
        keeper: process::id(),
        nodes: nodes.collect(),
    }
}

/// A keeper whose lab stands; it goes on only when it is told to.
#[derive(Debug)]
pub struct Keeper {
    child: Child,
}

impl Keeper {
    /// Starts `command`, which calls [`keep`] with its standard input and
    /// output, in a session of its own, and waits until the lab stands.
    ///
    /// # Errors
    /// When it does not come up, with what the keeper said.
    // spec: REL-10
    pub fn start(mut command: Command) -> Result<Self, StandingError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        sys::lead_a_session(&mut command);
        let starting = StandingError::io("starting the lab's keeper");
        let mut child = command.spawn().map_err(starting)?;
        let mut line = String::new();
        if let Some(output) = &mut child.stdout {
            // What cannot be read has not been said.
            let _ = BufReader::new(output).read_line(&mut line);
        }
        if line.trim() == READY {
            return Ok(Self { child });
        }
        let ended =
            child.wait_with_output().map_err(StandingError::io("waiting for the keeper"))?;
        let said = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        Err(StandingError::NotKept(said.trim_start_matches("error: ").to_owned()))
    }

    /// Lets the lab stand on its own.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn leave(mut self) -> Result<(), StandingError> {
        let told = self.child.stdin.take().map_or(Ok(()), |mut input| input.write_all(b"\n"));
        told.map_err(StandingError::io("leaving the lab to its keeper"))
    }
}
