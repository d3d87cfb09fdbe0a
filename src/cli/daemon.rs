//! `mrc nic` and `mrc switch`: daemons in the foreground.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;

use super::failure::Failure;
use super::notice::notice;
use super::number::{number, number32};
use super::scenario::ScenarioArgs;
use mrc_lab::capture::CaptureSummary;
use mrc_lab::daemon::{Daemon, Group, Options, Role, Stopper};
use mrc_lab::lab::drop_capabilities_but_net_raw;

/// Options of `mrc nic`.
#[derive(Debug, clap::Args)]
pub struct NicArgs {
    /// The NIC's name in the scenario.
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The network interface that it sends and receives on.
    #[arg(long, value_name = "NAME")]
    interface: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// Options of `mrc switch`.
#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// The switch's name in the scenario.
    #[arg(long, value_name = "NAME")]
    node: String,
    /// The network interface of a port; give it once for each port, in the
    /// order of the switch's links in the scenario.
    #[arg(long, value_name = "NAME", required = true)]
    interface: Vec<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// What both have.
#[derive(Debug, clap::Args)]
struct CommonArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Where to make the control socket, which only this user may use.
    #[arg(long, value_name = "PATH")]
    control: PathBuf,
    /// The time dilation factor: protocol time runs this many times slower
    /// than the clock [default: 1 in the native profile, otherwise 1000].
    #[arg(long, value_name = "N", value_parser = tdf)]
    tdf: Option<u32>,
    /// When protocol time is 0, in nanoseconds of CLOCK_MONOTONIC; the same for
    /// all nodes of a run [default: now].
    #[arg(long, value_name = "N", value_parser = number)]
    epoch_ns: Option<u64>,
    /// The start number: no two lives of a node in one run may have the same
    /// [default: drawn at random].
    #[arg(long, value_name = "N", value_parser = number)]
    life: Option<u64>,
    /// Record every frame of the interfaces in this file (pcapng).
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Keep this many bytes of each recorded frame; 0 keeps all.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number32, requires = "capture")]
    snaplen: u32,
}

// spec: TIME-2
fn tdf(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|tdf| *tdf > 0).ok_or_else(|| {
        format!(
            "a whole number from 1 to {} is allowed; leave the option out for the profile's own",
            u32::MAX
        )
    })
}

/// A daemon's scenario and the rest of its options.
pub struct Start<'a> {
    scenario: &'a ScenarioArgs,
    options: Options,
}

impl NicArgs {
    /// The daemon that they ask for.
    pub fn options(&self) -> Start<'_> {
        self.common.start(&self.node, vec![self.interface.clone()])
    }
}

impl SwitchArgs {
    /// The daemon that they ask for.
    pub fn options(&self) -> Start<'_> {
        self.common.start(&self.node, self.interface.clone())
    }
}

impl CommonArgs {
    fn start(&self, node: &str, interfaces: Vec<String>) -> Start<'_> {
        let options = Options {
            node: node.to_owned(),
            interfaces,
            control: self.control.clone(),
            tdf: self.tdf,
            epoch_ns: self.epoch_ns,
            life: self.life,
            capture: self.capture.clone(),
            snap_len: self.snaplen,
        };
        Start { scenario: &self.scenario, options }
    }
}

/// Runs a daemon until it is told to stop.
pub fn run<N: Role + 'static>(start: Start<'_>) -> Result<(), Failure> {
    let scenario = start.scenario.read()?;
    let mut group = Group::default();
    group.add(Daemon::<N>::open(&scenario, &start.options)?);
    run_group(group)
}

/// Runs daemons, whose sockets are open, until they are told to stop.
// spec: REL-9
pub fn run_group(group: Group) -> Result<(), Failure> {
    drop_capabilities_but_net_raw().context("dropping capabilities")?;
    // Threads start here: they have no more capabilities than this one.
    let stoppers = group.stoppers();
    ctrlc::set_handler(move || stoppers.iter().for_each(Stopper::stop))
        .context("setting a signal handler")?;
    let mut out = io::stdout();
    group
        .descriptions()
        .try_for_each(|who| writeln!(out, "ready {who}"))
        .and_then(|()| out.flush())
        .context("writing to standard output")?;
    for CaptureSummary { packets, dropped } in group.run()? {
        notice(format_args!("captured {packets} frames, left out {dropped}"));
    }
    Ok(())
}
