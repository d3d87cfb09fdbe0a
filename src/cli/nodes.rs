//! `mrc nodes`: several daemons of a lab in one process.

use std::path::PathBuf;

use super::daemon::run_group;
use super::failure::Failure;
use super::number::number;
use super::scenario::ScenarioArgs;
use mrc_lab::lab::{NodesOptions, OpenError, open_nodes};

/// Options of `mrc nodes`, which only `mrc` itself gives.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The names of the nodes.
    #[arg(value_name = "NODE", required = true)]
    nodes: Vec<String>,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// The lab's folder.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// The time dilation factor.
    #[arg(long, value_name = "N")]
    tdf: u32,
    /// When protocol time is 0, in nanoseconds of CLOCK_MONOTONIC.
    #[arg(long, value_name = "N", value_parser = number)]
    epoch_ns: u64,
    /// Capture each NIC's link.
    #[arg(long)]
    captures: bool,
    /// Keep this many bytes of each captured frame; 0 keeps all.
    #[arg(long, value_name = "N", default_value_t = 0)]
    snaplen: u32,
}

/// Runs the nodes until they are told to stop.
pub fn run(args: &Args) -> Result<(), Failure> {
    let scenario = args.scenario.read()?;
    let options = NodesOptions {
        nodes: args.nodes.clone(),
        dir: args.dir.clone(),
        tdf: args.tdf,
        epoch_ns: args.epoch_ns,
        captures: args.captures.then_some(args.snaplen),
    };
    let group = open_nodes(&scenario, &options).map_err(|error| match error {
        OpenError::Daemon(error) => error.into(),
        OpenError::Lab(_) => Failure::Failed(error.into()),
    })?;
    run_group(group, None)
}
