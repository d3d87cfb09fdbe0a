//! How a command fails.

use std::process::ExitCode;

use mrc_lab::daemon::DaemonError;

/// Why a command failed, and with which exit code.
#[derive(Debug)]
pub enum Failure {
    /// The input was bad: exit code 2.
    BadInput(anyhow::Error),
    /// Something failed: exit code 1.
    Failed(anyhow::Error),
    /// A run ended without all that it was to bring, as its summary says: exit
    /// code 1.
    Incomplete,
}

impl Failure {
    /// Bad input, said in `text`.
    pub fn bad_input(text: impl Into<String>) -> Self {
        Self::BadInput(anyhow::Error::msg(text.into()))
    }

    /// Says on standard error what went wrong, and gives the exit code.
    pub fn report(self) -> ExitCode {
        let (error, code) = match self {
            Self::BadInput(error) => (error, 2),
            Self::Failed(error) => (error, 1),
            Self::Incomplete => return ExitCode::FAILURE,
        };
        eprintln!("error: {error:#}");
        ExitCode::from(code)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        if error.is_bad_input() { Self::BadInput(error.into()) } else { Self::Failed(error.into()) }
    }
}
