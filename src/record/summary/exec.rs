//! How the programs of a run ended.

use core::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExecEnd {
    /// By itself, with this exit status.
    Exit(i32),
    /// By a signal that the run did not send.
    Signal(i32),
    /// With the run, which ended it.
    Stopped,
    /// The run was over before its time came.
    NotStarted,
}

impl fmt::Display for ExecEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(status) => write!(f, "exit status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Stopped => f.write_str("ended with the run"),
            Self::NotStarted => f.write_str("not started"),
        }
    }
}

/// What became of a program of the scenario.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExecSummary {
    /// The host on which it ran.
    pub node: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// It is a server, which ends with the run.
    pub background: bool,
    /// How it ended.
    pub end: ExecEnd,
    /// What it has said.
    pub log: PathBuf,
}

impl ExecSummary {
    /// Whether nothing is wrong: a program that is no server has ended well.
    pub fn ok(&self) -> bool {
        self.background || self.end == ExecEnd::Exit(0)
    }
}

/// `exec on a: ping -c 3 10.0.0.2: exit status 0; out/exec-1.log`.
impl fmt::Display for ExecSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (node, command, end) = (&self.node, self.command.join(" "), self.end);
        let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(f, "exec on {node}: {command}: {end}; {}", self.log.display())
    }
}
