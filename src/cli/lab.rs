//! `mrc lab`: labs that stay up for work by hand.

mod doctor;

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::Context;
use clap::Subcommand;

use super::failure::Failure;
use super::notice::notice;
use super::output::{json_line, say};
use super::run::{Tdf, cores, run_failure, tdf, wall_tdf};
use super::scenario::{SourceArgs, read};
use super::table::Table;
use mrc_lab::daemon::Client;
use mrc_lab::daemon::protocol::{Request, Response};
use mrc_lab::io::clock::monotonic_ns;
use mrc_lab::lab::standing::{KeepPlan, Keeper, LabState, Place, StandingError, enter, keep};
use mrc_lab::lab::{Processes, share_out};
use mrc_lab::scenario::Topology;

/// Options of `mrc lab`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Build the lab of a scenario, start its daemons and leave it standing.
    Up(Up),
    /// Take a lab down.
    Down {
        /// The lab's name; may be left out when one lab is up.
        name: Option<String>,
    },
    /// Show the labs that are up, or what stands in one.
    Status {
        /// The lab's name.
        name: Option<String>,
        /// Print one JSON object for each lab.
        #[arg(long)]
        json: bool,
    },
    /// Go into a host or switch of a lab: a shell there, or one command.
    Enter(Enter),
    /// Check this machine and a lab: what is wrong, and what to do about it.
    Doctor(doctor::Doctor),
    /// Keep a lab: `mrc lab up` starts this.
    #[command(hide = true)]
    Keep {
        #[command(flatten)]
        up: Up,
        /// The lab's folder.
        #[arg(long)]
        dir: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Up {
    /// The scenario file (TOML). What it sends is not sent.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// The lab's name [default: the scenario's].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The time dilation factor, or `auto`: 1000, or as many thousands as this
    /// machine's cores need for the scenario's flows.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = tdf)]
    tdf: Tdf,
    /// How many processes run the nodes: a number, `each` for one a node, or
    /// `auto`: one a node, or one a core where those are fewer.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = Processes::from_str)]
    processes: Processes,
}

#[derive(Debug, clap::Args)]
struct Enter {
    /// The host or switch.
    node: String,
    /// The lab's name; may be left out when one lab is up.
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
    /// What to run there [default: your shell].
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

/// Does what the arguments say.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Action::Up(args) => up(args),
        Action::Down { name } => down(name.as_deref()),
        Action::Status { name, json } => status(name.as_deref(), *json),
        Action::Enter(args) => go_in(args),
        Action::Doctor(args) => doctor::run(args),
        Action::Keep { up, dir } => keep_up(up, dir),
    }
}

// spec: REL-10
fn up(args: &Up) -> Result<(), Failure> {
    let started = monotonic_ns();
    let plan = plan(args, Path::new(""))?;
    let place = Place::named(args.name.as_deref().unwrap_or(&plan.scenario.name))?;
    place.clear()?;
    let program = env::current_exe().context("finding this program")?;
    let mut command = Command::new(program);
    command.args(["lab", "keep"]).arg(&args.scenario).arg("--dir").arg(place.dir());
    command.args(["--profile", plan.scenario.profile.name()]);
    command.args(["--seed", &plan.scenario.seed.to_string()]);
    command.args(["--processes", &args.processes.to_string()]);
    if let Tdf::Given(factor) = args.tdf {
        command.args(["--tdf", &factor.to_string()]);
    }
    let keeper = Keeper::start(command)?;
    let state = place.standing()?;
    keeper.leave()?;
    let name = place.name();
    let (nodes, processes) = (state.nodes.len(), plan.shares.len());
    notice(format_args!(
        "lab {name} is up after {:.1} s: {nodes} nodes in {processes} processes, TDF {}, profile {}",
        seconds_since(started),
        state.tdf,
        state.profile
    ));
    notice(format_args!(
        "go in with `mrc lab enter NODE --lab {name}`, take it down with `mrc lab down {name}`"
    ));
    say(&nodes_table(&state))
}

fn plan(args: &Up, dir: &Path) -> Result<KeepPlan, Failure> {
    let (scenario, scenario_text) = read(&args.scenario, "SCENARIO", &args.source)?;
    let topology = Topology::new(&scenario);
    Ok(KeepPlan {
        tdf: wall_tdf(&scenario, args.tdf)?,
        shares: share_out(&topology, args.processes, cores()),
        scenario,
        scenario_file: args.scenario.display().to_string(),
        scenario_text,
        dir: dir.to_owned(),
    })
}

fn keep_up(args: &Up, dir: &Path) -> Result<(), Failure> {
    let plan = plan(args, dir)?;
    keep(&plan, io::stdin(), io::stdout()).map_err(run_failure)
}

/// The place of the lab `name`, or of the only one that is up.
fn place(name: Option<&str>) -> Result<Place, Failure> {
    if let Some(name) = name {
        return Ok(Place::named(name)?);
    }
    match &Place::up()?[..] {
        [only] => Ok(Place::named(only)?),
        [] => Err(Failure::bad_input("no lab is up; start one with `mrc lab up SCENARIO`")),
        several => Err(Failure::bad_input(format!(
            "several labs are up; name one of {}",
            several.join(", ")
        ))),
    }
}

// spec: REL-10
fn down(name: Option<&str>) -> Result<(), Failure> {
    let started = monotonic_ns();
    let place = place(name)?;
    let name = place.name();
    if place.down()? {
        let seconds = seconds_since(started);
        notice(format_args!("lab {name} is down after {seconds:.1} s"));
    } else {
        notice(format_args!("no lab {name} was up"));
    }
    Ok(())
}

fn status(name: Option<&str>, json: bool) -> Result<(), Failure> {
    let places = match name {
        Some(name) => vec![Place::named(name)?],
        None => Place::all()?,
    };
    let single = name.is_some() || places.len() == 1;
    for place in places {
        let state = match (name, place.state()) {
            (_, Some(state)) => state,
            (Some(_), None) => place.standing()?,
            (None, None) => continue,
        };
        if json {
            say(&json_line(&state)?)?;
            continue;
        }
        say(&format!(
            "{}: {} nodes, TDF {}, profile {}, keeper {}, files in {}\n",
            state.name,
            state.nodes.len(),
            state.tdf,
            state.profile,
            state.keeper,
            place.dir().display()
        ))?;
        if single {
            say(&nodes_table(&state))?;
        }
    }
    Ok(())
}

fn seconds_since(started_ns: u64) -> f64 {
    (monotonic_ns() - started_ns) as f64 / 1e9
}

/// What stands, and how well it runs.
fn nodes_table(state: &LabState) -> String {
    let mut table = Table::to_the_left();
    let headings = ["node", "kind", "address", "process", "control socket", "runs"];
    table.row(headings.map(str::to_owned).to_vec());
    for node in &state.nodes {
        let asked = Client::connect(&node.control)
            .and_then(|mut daemon| daemon.request(&Request::Report {}));
        let runs = match asked {
            Ok(Response::Report(report)) => report.fidelity,
            Ok(_) => "answers another question".to_owned(),
            Err(error) => error.to_string(),
        };
        table.row(vec![
            node.name.clone(),
            node.kind.clone(),
            node.ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string()),
            node.process.to_string(),
            node.control.display().to_string(),
            runs,
        ]);
    }
    table.text()
}

fn go_in(args: &Enter) -> Result<(), Failure> {
    let state = place(args.lab.as_deref())?.standing()?;
    enter(&state, &args.node)?;
    let shell = || vec![env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())];
    let command = if args.command.is_empty() { shell() } else { args.command.clone() };
    let error = Command::new(&command[0]).args(&command[1..]).exec();
    Err(Failure::bad_input(format!("{}: {error}", command[0])))
}

impl From<StandingError> for Failure {
    fn from(error: StandingError) -> Self {
        match error {
            StandingError::NotKept(_) | StandingError::Io { .. } => Self::Failed(error.into()),
            _ => Self::BadInput(error.into()),
        }
    }
}
