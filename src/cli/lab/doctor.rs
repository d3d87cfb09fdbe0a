//! `mrc lab doctor`: what is wrong with this machine, or with a lab.

use std::path::PathBuf;

use anyhow::Context;

use super::place;
use crate::cli::failure::Failure;
use crate::cli::output::say;
use crate::cli::run::{Tdf, cores, wall_tdf};
use crate::cli::scenario::{SourceArgs, profile, read};
use mrc_lab::lab::doctor::{Finding, Verdict, examine, machine};
use mrc_lab::lab::standing::enter_sandbox;
use mrc_lab::lab::{LabError, Network, Sandbox, network_plan};
use mrc_lab::scenario::{Overrides, Scenario, Topology, parse};

/// What is built when no scenario is given.
const TWO_HOSTS: &str = "[topology]\nkind = \"two-hosts\"\n";

/// Options of `mrc lab doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// The scenario whose lab is built for the checks and removed again
    /// [default: two hosts and a switch].
    #[arg(value_name = "SCENARIO", conflicts_with = "lab")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    /// Look at this lab, which is up, instead.
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

/// Examines, and says what was found; fails when something is bad.
pub fn run(args: &Doctor) -> Result<(), Failure> {
    let (scenario, tdf) = subject(args)?;
    let plan = network_plan(&Topology::new(&scenario));
    // While this process still sees the machine's own settings.
    let mut findings = machine(cores(), tdf);
    if let Some(name) = &args.lab {
        enter_sandbox(&place(Some(name))?.standing()?)?;
        findings.extend(examine(&plan).context("looking at the lab")?);
    } else {
        match Sandbox::enter() {
            Ok(sandbox) => {
                let who = if sandbox.is_rootless() { "without root" } else { "as root" };
                findings.push(Finding::good("namespaces", format!("allowed, {who}")));
                let network = Network::build(&sandbox, &plan).context("building the lab")?;
                findings.extend(examine(&plan).context("looking at the lab")?);
                drop(network);
            }
            Err(error @ LabError::Forbidden(_)) => {
                findings.push(Finding::bad("namespaces", error.to_string()));
            }
            Err(error) => return Err(Failure::Failed(error.into())),
        }
    }
    let text: String = findings.iter().map(|finding| format!("{finding}\n")).collect();
    say(&text)?;
    let bad = findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    if bad { Err(Failure::Incomplete) } else { Ok(()) }
}

/// The scenario that is looked at, and its time dilation factor.
fn subject(args: &Doctor) -> Result<(Scenario, u32), Failure> {
    if let Some(name) = &args.lab {
        let place = place(Some(name))?;
        let state = place.standing()?;
        let file = place.dir().join("scenario.toml");
        let source = SourceArgs { profile: profile(&state.profile).ok(), seed: Some(state.seed) };
        return Ok((read(&file, "--lab", &source)?.0, state.tdf));
    }
    let scenario = match &args.scenario {
        Some(file) => read(file, "SCENARIO", &args.source)?.0,
        None => {
            let overrides = Overrides { profile: args.source.profile, seed: args.source.seed };
            parse(TWO_HOSTS, "two-hosts", &overrides).map_err(|errors| {
                let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
                Failure::bad_input(lines.join("\n"))
            })?
        }
    };
    let tdf = wall_tdf(&scenario, Tdf::Auto)?;
    Ok((scenario, tdf))
}
