//! Runs `ip -batch`: many commands, one process.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::error::{LabError, while_doing};

/// Directories that PATH of an ordinary user may lack.
const SBIN_DIRS: &str = "/usr/sbin:/sbin";

/// Runs `commands` in order in the calling thread's network namespace and stops
/// at the first that fails.
pub(super) fn batch(commands: &[String]) -> Result<(), LabError> {
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(find_ip(&format!("{path}:{SBIN_DIRS}"))?);
    command.args(["-batch", "-"]);
    let text = commands.join("\n") + "\n";
    let output = feed(command, text.as_bytes()).map_err(while_doing("run ip -batch -"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(refusal(commands, &String::from_utf8_lossy(&output.stderr)))
}

/// The queueing discipline of `interface` in the calling thread's network
/// namespace, as `ip link` tells it.
pub(super) fn queueing(interface: &str) -> Result<String, LabError> {
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(find_ip(&format!("{path}:{SBIN_DIRS}"))?);
    command.args(["-oneline", "link", "show", "dev", interface]);
    let output = command.output().map_err(while_doing("run ip link show"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut words = text.split_whitespace().skip_while(|word| *word != "qdisc");
    Ok(words.nth(1).unwrap_or("noqueue").to_owned())
}

/// The first `ip` in the directories `dirs`, which are joined by colons.
fn find_ip(dirs: &str) -> Result<PathBuf, LabError> {
    env::split_paths(dirs)
        .map(|dir| dir.join("ip"))
        .find(|candidate| candidate.is_file())
        .ok_or(LabError::IpMissing)
}

/// Runs `command` with `input`. Should this process die, the input ends, and so
/// does `command`.
fn feed(mut command: Command, input: &[u8]) -> io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input) {
            // It ended early, at a command that failed; its own words say more.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            other => other?,
        }
    }
    child.wait_with_output()
}

/// Finds in what `ip` said the command that failed: `Command failed -:3`.
fn refusal(commands: &[String], said: &str) -> LabError {
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("Command failed -:"))
        .and_then(|number| number.trim().parse::<usize>().ok())
        .and_then(|number| commands.get(number.checked_sub(1)?));
    let words: Vec<&str> =
        said.lines().filter(|line| !line.starts_with("Command failed")).collect();
    LabError::Ip {
        command: line.map_or("-batch -", String::as_str).to_owned(),
        message: words.join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_command() {
        let commands = ["netns add a".to_owned(), "netns add b".to_owned()];
        let said = "Cannot create namespace file: File exists\nCommand failed -:2\n";
        let text = refusal(&commands, said).to_string();
        assert_eq!(text, "`ip netns add b` failed: Cannot create namespace file: File exists");
    }

    #[test]
    fn a_refusal_without_a_line_number_keeps_the_words() {
        let text = refusal(&[], "what?\nCommand failed -:9\n").to_string();
        assert_eq!(text, "`ip -batch -` failed: what?");
    }

    #[test]
    fn a_missing_ip_is_told_with_the_package_to_install() {
        let error = find_ip("/nonexistent:/dev").expect_err("no ip there");
        assert_eq!(error.to_string(), "ip not found in PATH: install iproute2");
    }
}
