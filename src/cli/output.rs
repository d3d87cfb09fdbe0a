//! Answers on standard output.

use std::io::{self, Write};

use anyhow::Context;

use super::failure::Failure;

/// Writes to standard output. A reader that has gone (`| head`) is an error
/// like any other, not a panic.
pub fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(written.context("writing to standard output")?)
}

/// A value as a line of JSON.
pub fn json_line(value: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string(value).context("writing JSON")? + "\n")
}
