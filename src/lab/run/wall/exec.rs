//! The programs of a scenario: started on their hosts, waited for, ended.

use std::fs::File;
use std::io::ErrorKind;
use std::mem;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::super::network::LabNetwork;
use super::super::{RunError, RunFiles, RunPlan};
use crate::io::clock::monotonic_ns;
use crate::lab::sys;
use crate::record::{ExecEnd, ExecSummary};
use crate::scenario::Exec;

/// A program and what is known of it.
#[derive(Debug)]
struct Program<'a> {
    exec: &'a Exec,
    node: &'a str,
    log: PathBuf,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting,
    Running(Child),
    Ended(ExecEnd),
}

/// All programs of a run. They end with this value.
#[derive(Debug)]
pub struct Programs<'a> {
    lab: &'a LabNetwork,
    programs: Vec<Program<'a>>,
    began_ns: Option<u64>,
}

impl<'a> Programs<'a> {
    /// How long a program may take to end when it is asked to, in nanoseconds.
    const PATIENCE_NS: u64 = 1_000_000_000;
    const POLL: Duration = Duration::from_millis(5);

    /// The programs of `plan`; none is started yet.
    pub fn new(plan: &'a RunPlan, lab: &'a LabNetwork, files: &RunFiles) -> Self {
        let execs = plan.scenario.execs.iter().zip(1..);
        let programs = execs.map(|(exec, number)| Program {
            exec,
            node: &plan.scenario.nics[exec.node].name,
            log: files.exec_log(number),
            state: State::Waiting,
        });
        Self { lab, programs: programs.collect(), began_ns: None }
    }

    /// Starts those whose time has come, counted from the first call, and sees
    /// which have ended.
    ///
    /// # Errors
    /// When a program cannot be started or waited for.
    pub fn advance(&mut self) -> Result<(), RunError> {
        let now = monotonic_ns();
        let since = now - *self.began_ns.get_or_insert(now);
        for program in &mut self.programs {
            if let State::Running(child) = &mut program.state
                && let Some(status) =
                    child.try_wait().map_err(RunError::io("waiting for a program"))?
            {
                // What it has started and left behind ends with it.
                sys::signal_group(child.id(), libc::SIGKILL);
                program.state = State::Ended(end_of(status));
            }
            if matches!(program.state, State::Waiting) && program.exec.start.as_ns() <= since {
                program.state = State::Running(program.start(self.lab)?);
            }
        }
        Ok(())
    }

    /// Whether all but servers have ended.
    pub fn are_over(&self) -> bool {
        let mut awaited = self.programs.iter().filter(|program| !program.exec.background);
        awaited.all(|program| matches!(program.state, State::Ended(_)))
    }

    /// Ends those that still run and says what became of each.
    pub fn finish(mut self) -> Vec<ExecSummary> {
        self.stop();
        let summaries = self.programs.iter().map(|program| ExecSummary {
            node: program.node.to_owned(),
            command: program.exec.command.clone(),
            background: program.exec.background,
            end: match program.state {
                State::Ended(end) => end,
                State::Running(_) => ExecEnd::Stopped,
                State::Waiting => ExecEnd::NotStarted,
            },
            log: program.log.clone(),
        });
        summaries.collect()
    }

    /// Asks those that still run to end, and ends those that do not.
    fn stop(&mut self) {
        let mut running = Vec::new();
        for program in &mut self.programs {
            match mem::replace(&mut program.state, State::Ended(ExecEnd::Stopped)) {
                State::Running(child) => running.push(child),
                other => program.state = other,
            }
        }
        running.iter().for_each(|child| sys::signal_group(child.id(), libc::SIGTERM));
        let deadline = monotonic_ns() + Self::PATIENCE_NS;
        while running.iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
            && monotonic_ns() < deadline
        {
            thread::sleep(Self::POLL);
        }
        for mut child in running {
            // What it has started may be there when it is not.
            sys::signal_group(child.id(), libc::SIGKILL);
            let _ = child.wait();
        }
    }
}

impl Drop for Programs<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Program<'_> {
    fn start(&self, lab: &LabNetwork) -> Result<Child, RunError> {
        let making = format!("making {}", self.log.display());
        let log = File::create(&self.log).map_err(RunError::io(making))?;
        let second = log.try_clone().map_err(RunError::io("copying a file handle"))?;
        let mut command = Command::new(&self.exec.command[0]);
        // Ctrl-C is for the coordinator, which ends the programs.
        command.args(&self.exec.command[1..]).process_group(0);
        command.stdin(Stdio::null()).stdout(log).stderr(second);
        let namespace = lab.network.namespace(self.node).ok_or_else(|| RunError::Exec {
            node: self.node.to_owned(),
            what: "the host has no namespace".to_owned(),
        })?;
        lab.sandbox.spawn_in(namespace, command).map_err(|error| self.error(error))
    }

    fn error(&self, error: std::io::Error) -> RunError {
        let program = &self.exec.command[0];
        let what = match error.kind() {
            ErrorKind::NotFound => "is not found",
            // What execvp says of a name that no readable folder of PATH has.
            ErrorKind::PermissionDenied => "is not found, or may not be run",
            _ => "cannot be started",
        };
        let what = format!("{program} {what} ({error}); install it, or correct `command`");
        RunError::Exec { node: self.node.to_owned(), what }
    }
}

fn end_of(status: ExitStatus) -> ExecEnd {
    match status.code() {
        Some(code) => ExecEnd::Exit(code),
        None => ExecEnd::Signal(status.signal().unwrap_or(0)),
    }
}
