//! Options that every command with a scenario has.

use std::fs;
use std::path::{Path, PathBuf};

use mrc_lab::config::Profile;
use mrc_lab::scenario::{Overrides, Scenario, parse};

use super::failure::Failure;
use super::number::number;

/// Which scenario.
#[derive(Debug, clap::Args)]
pub struct ScenarioArgs {
    /// The scenario file (TOML): nodes, links, faults, attributes.
    #[arg(long, value_name = "FILE")]
    scenario: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
}

/// What of a scenario is to be otherwise.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// Take attributes from this profile instead of the scenario's: reference,
    /// native or tuned.
    #[arg(long, value_parser = profile)]
    pub profile: Option<Profile>,
    /// Take this seed instead of the scenario's.
    #[arg(long, value_name = "N", value_parser = number)]
    pub seed: Option<u64>,
}

/// The profile of this name.
pub fn profile(name: &str) -> Result<Profile, String> {
    let names = || Profile::ALL.map(Profile::name).join(", ");
    Profile::from_name(name).ok_or_else(|| format!("no such profile; choose one of {}", names()))
}

impl ScenarioArgs {
    /// Reads and checks the scenario.
    pub fn read(&self) -> Result<Scenario, Failure> {
        read(&self.scenario, "--scenario", &self.source).map(|(scenario, _)| scenario)
    }
}

/// Reads and checks the scenario in `path`, which the user gave as `option`;
/// gives the file's text too.
pub fn read(path: &Path, option: &str, source: &SourceArgs) -> Result<(Scenario, String), Failure> {
    let file = path.display();
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::bad_input(format!("{option} {file}: {error}; give a scenario file"))
    })?;
    let overrides = Overrides { profile: source.profile, seed: source.seed };
    let scenario = parse(&text, &file.to_string(), &overrides).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Failure::bad_input(lines.join("\n"))
    })?;
    Ok((scenario, text))
}
