//! How a command fails.

use std::process::ExitCode;

use super::notice::notice;
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
        notice(format_args!("error: {}", with_causes(&error)));
        ExitCode::from(code)
    }
}

/// An error and its causes. Errors that say their own cause are not told it again.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
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

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("opening x: {source}")]
    struct SaysItsCause {
        source: io::Error,
    }

    #[test]
    fn each_cause_is_told_once() {
        let source = || io::Error::other("no room");
        let told = anyhow::Error::from(source()).context("opening x");
        assert_eq!(with_causes(&told), "opening x: no room");
        let tells = anyhow::Error::from(SaysItsCause { source: source() });
        assert_eq!(with_causes(&tells.context("starting")), "starting: opening x: no room");
    }
}
