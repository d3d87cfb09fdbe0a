//! What can go wrong in the lab, in words that say what to do.

use std::io;

use super::plan::PlanError;

/// Why the lab could not be entered, built or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A process with several threads cannot move into a user namespace.
    #[error("the lab must be entered before any thread starts: this process has {0} threads")]
    Threads(usize),

    /// The machine does not let this user make namespaces.
    #[error("{0}")]
    Forbidden(String),

    /// The `ip` program is missing.
    #[error("ip not found in PATH: install iproute2")]
    IpMissing,

    /// An `ip` command was refused.
    #[error("`ip {command}` failed: {message}")]
    Ip {
        /// The command, as given to `ip`.
        command: String,
        /// What `ip` said.
        message: String,
    },

    /// The plan cannot be built.
    #[error("cannot build this network: {0}")]
    Plan(#[from] PlanError),

    /// The sandbox has a namespace of this name already.
    #[error("a namespace named {0} exists already")]
    NameTaken(String),

    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Wraps a system error with what was attempted.
pub(super) fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
    move |source| LabError::Io { doing: doing.into(), source }
}
