//! `mrc run`: a scenario from the first namespace to the answer.

use std::io::{self, IsTerminal, Write};
use std::mem;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use super::failure::Failure;
use super::hold::hold;
use super::notice::notice;
use super::number::number32;
use super::scenario::{SourceArgs, read};
use mrc_lab::config::Profile;
use mrc_lab::lab::run::{PreparedRun, RunError, RunPlan, auto_tdf};
use mrc_lab::lab::{LabError, Processes, share_out};
use mrc_lab::record::Clock;
use mrc_lab::scenario::{Scenario, Topology};
use mrc_lab::time::Duration;
use mrc_lab::units::parse_duration;

/// Options of `mrc run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario file (TOML): nodes, links, faults, what is sent.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// wall: a daemon for each node, in slowed time; exact-wires: every frame
    /// crosses its wire, time is exact; exact: in memory, without privileges.
    #[arg(long, value_name = "CLOCK", default_value = "wall", value_parser = clock)]
    clock: Clock,
    /// The time dilation factor of the wall clock, or `auto`: 1000, or as many
    /// thousands as this machine's cores need.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = tdf)]
    tdf: Tdf,
    /// How many processes run the nodes in the wall clock: a number, `each` for
    /// one a node, or `auto`: one a node, or one a core where those are fewer.
    #[arg(long, value_name = "N", default_value = "auto", value_parser = Processes::from_str)]
    processes: Processes,
    /// The folder for captures, records and run.json [default: out/NAME-CLOCK].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the summary as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write no captures.
    #[arg(long)]
    no_captures: bool,
    /// Keep this many bytes of each captured frame; 0 keeps all.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number32)]
    snaplen: u32,
    /// Give the run up at this protocol time, such as `100 ms` [default: 1 s in
    /// the exact clocks; in the wall clock what takes 10 minutes].
    #[arg(long, value_name = "TIME", value_parser = time)]
    time_limit: Option<Duration>,
    /// Build the lab, then wait until Enter is pressed (or standard input ends)
    /// before anything is sent: time to attach tcpdump or Wireshark. The lab
    /// stays half a second after the run, so that they get the last frames.
    #[arg(long)]
    hold: bool,
}

/// A time dilation factor as given.
#[derive(Clone, Copy, Debug)]
pub enum Tdf {
    Auto,
    Given(u32),
}

fn clock(name: &str) -> Result<Clock, String> {
    let clocks = [Clock::Wall, Clock::ExactWires, Clock::Exact];
    let found = clocks.into_iter().find(|clock| clock.name() == name);
    found.ok_or_else(|| {
        format!("no such clock; choose one of {}", clocks.map(Clock::name).join(", "))
    })
}

// spec: TIME-2, TIME-3
pub fn tdf(text: &str) -> Result<Tdf, String> {
    if text == "auto" {
        return Ok(Tdf::Auto);
    }
    let number = text.parse().ok().filter(|tdf| *tdf > 0);
    number
        .map(Tdf::Given)
        .ok_or_else(|| format!("`auto` or a whole number from 1 to {} is allowed", u32::MAX))
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

impl Args {
    fn plan(&self) -> Result<RunPlan, Failure> {
        let (scenario, text) = read(&self.scenario, "SCENARIO", &self.source)?;
        self.check_programs(&scenario)?;
        let tdf = self.tdf_for(&scenario)?;
        let out = self.out.clone().unwrap_or_else(|| {
            PathBuf::from("out").join(format!("{}-{}", scenario.name, self.clock.name()))
        });
        Ok(RunPlan {
            clock: self.clock,
            tdf,
            shares: share_out(&Topology::new(&scenario), self.processes, cores()),
            out,
            captures: !self.no_captures,
            snap_len: self.snaplen,
            time_limit: self.time_limit.unwrap_or_else(|| self.default_limit(tdf)),
            scenario_file: self.scenario.clone(),
            scenario_text: text,
            scenario,
        })
    }

    /// Programs take the time they take: no exact clock can wait for them.
    // spec: TIME-5
    fn check_programs(&self, scenario: &Scenario) -> Result<(), Failure> {
        if self.clock == Clock::Wall || scenario.execs.is_empty() {
            return Ok(());
        }
        Err(Failure::bad_input(format!(
            "--clock {}: {} has [[exec]] sections, and programs run in the wall clock only; use \
             --clock wall, or remove them",
            self.clock.name(),
            self.scenario.display()
        )))
    }

    // spec: TIME-3
    fn tdf_for(&self, scenario: &Scenario) -> Result<u32, Failure> {
        match (self.clock, self.tdf) {
            (Clock::Wall, tdf) => wall_tdf(scenario, tdf),
            (_, Tdf::Auto) => Ok(1),
            (_, Tdf::Given(tdf)) => Err(Failure::bad_input(format!(
                "--tdf {tdf}: only the wall clock is slowed; leave --tdf out, or use --clock wall"
            ))),
        }
    }

    fn default_limit(&self, tdf: u32) -> Duration {
        const WALL_SECONDS: u64 = 600;
        match self.clock {
            Clock::Exact | Clock::ExactWires => Duration::from_secs(1),
            Clock::Wall => {
                Duration::from_ps(Duration::from_secs(WALL_SECONDS).as_ps() / u64::from(tdf))
            }
        }
    }
}

/// The time dilation factor of the wall clock for `scenario`.
// spec: TIME-3
pub fn wall_tdf(scenario: &Scenario, tdf: Tdf) -> Result<u32, Failure> {
    match tdf {
        Tdf::Auto => Ok(auto_tdf(scenario, &Topology::new(scenario), cores())),
        Tdf::Given(tdf) if tdf != 1 && scenario.profile == Profile::Native => {
            Err(Failure::bad_input(format!(
                "--tdf {tdf}: the native profile runs at the host's own speed, TDF 1; leave --tdf \
                 out, or choose another profile"
            )))
        }
        Tdf::Given(tdf) => Ok(tdf),
    }
}

/// How many cores this process may use.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How long a lab that was held stays after its run.
const LINGER: std::time::Duration = std::time::Duration::from_millis(500);

/// Runs a scenario and prints what came of it.
pub fn run(args: &Args) -> Result<(), Failure> {
    let plan = args.plan()?;
    let announcement = announce(&plan);
    // Namespaces first: the handler of signals is a thread.
    let prepared = PreparedRun::build(plan).map_err(run_failure)?;
    let stopped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stopped);
    ctrlc::set_handler(move || flag.store(true, Ordering::Release))
        .context("setting a signal handler")?;
    if !args.json {
        notice(announcement);
    }
    let bar = progress_bar(args.json);
    let mut holding = args.hold;
    let mut progress = |done: u64, total: u64| {
        if mem::take(&mut holding) {
            hold(&stopped);
        }
        bar.set_length(total);
        bar.set_position(done);
        !stopped.load(Ordering::Acquire)
    };
    let outcome = prepared.execute(&mut progress).map_err(run_failure)?;
    bar.finish_and_clear();
    if args.hold {
        // For captures that were attached meanwhile: a tool takes the last frames
        // late, and none once the lab is gone.
        thread::sleep(LINGER);
    }
    let summary = prepared.summarize(outcome);
    let text = if args.json {
        serde_json::to_string(&summary).context("writing the summary as JSON")?
    } else {
        summary.to_string()
    };
    writeln!(io::stdout(), "{}", text.trim_end()).context("writing to standard output")?;
    if summary.ok() { Ok(()) } else { Err(Failure::Incomplete) }
}

/// What runs, and where to look.
// spec: TIME-3, TIME-5
fn announce(plan: &RunPlan) -> String {
    let bytes = plan.scenario.flows.iter().map(|f| u64::from(f.bytes) * u64::from(f.messages));
    let slowed = match plan.clock {
        Clock::Wall => {
            let nodes = plan.scenario.nics.len() + plan.scenario.switches.len();
            format!(", TDF {}, {nodes} nodes in {} processes", plan.tdf, plan.shares.len())
        }
        Clock::Exact | Clock::ExactWires => String::new(),
    };
    format!(
        "{}: {} in the {} clock{slowed}, profile {}, seed {}; files in {}",
        plan.scenario.name,
        HumanBytes(bytes.sum()),
        plan.clock.name(),
        plan.scenario.profile.name(),
        plan.scenario.seed,
        plan.out.display()
    )
}

fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {elapsed}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A folder that cannot be had and what the machine lacks are for the user to
/// mend: exit code 2.
pub fn run_failure(error: RunError) -> Failure {
    match &error {
        RunError::Out { .. }
        | RunError::Exec { .. }
        | RunError::Lab(LabError::Forbidden(_) | LabError::IpMissing | LabError::Plan(_)) => {
            Failure::BadInput(error.into())
        }
        _ => Failure::Failed(error.into()),
    }
}
