//! `mrc nic` and `mrc switch`: daemons in the foreground.

use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::Context;

use super::failure::Failure;
use super::host_nic::{HostArgs, warn_of_offloads};
use super::notice::notice;
use super::number::{number, number32};
use super::scenario::{ScenarioArgs, SourceArgs, read};
use super::user::{User, user};
use mrc_lab::capture::CaptureSummary;
use mrc_lab::daemon::{Daemon, Group, Options, Stopper};
use mrc_lab::io::Interface;
use mrc_lab::io::clock::monotonic_ns;
use mrc_lab::lab::{become_user, drop_capabilities_but_net_raw};
use mrc_lab::nic::Nic;
use mrc_lab::switch::Switch;

/// Options of `mrc nic`.
#[derive(Debug, clap::Args)]
pub struct NicArgs {
    /// The NIC's name: the one in the scenario, where there is one [default:
    /// the interface's].
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// The network interface that it sends and receives on.
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// The scenario file (TOML) that the NIC is in: nodes, links, faults,
    /// attributes.
    #[arg(long, value_name = "FILE", requires = "node")]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    host: HostArgs,
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
    scenario: ScenarioArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// What both have.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The daemon")]
struct CommonArgs {
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
    /// Wait up to this many seconds until the interfaces are there and up, where
    /// something else makes them meanwhile, such as a container's engine.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = number32)]
    wait: u32,
    /// Go on as this user once sockets and files are open: a name, a number, or
    /// UID:GID. Control socket and capture are then that user's.
    #[arg(long, value_name = "NAME|UID[:GID]", value_parser = user)]
    user: Option<User>,
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

impl CommonArgs {
    /// Waits for `interfaces` as long as it may. Whoever opens them says what is
    /// missing then.
    fn await_interfaces(&self, interfaces: &[String]) {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        let give_up = monotonic_ns() + u64::from(self.wait) * 1_000_000_000;
        let is_up = |list: &[Interface], name: &String| {
            list.iter().any(|interface| interface.name == *name && interface.is_up)
        };
        while monotonic_ns() < give_up {
            let list = Interface::list();
            if interfaces.iter().all(|name| is_up(&list, name)) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The daemon's options, once its interfaces are there.
    fn options(&self, node: &str, interfaces: Vec<String>) -> Options {
        self.await_interfaces(&interfaces);
        Options {
            node: node.to_owned(),
            interfaces,
            control: self.control.clone(),
            tdf: self.tdf,
            epoch_ns: self.epoch_ns,
            life: self.life,
            owner: self.user.map(|user| (user.uid, user.gid)),
            capture: self.capture.clone(),
            snap_len: self.snaplen,
        }
    }
}

impl NicArgs {
    /// The NIC's daemon, with its sockets open.
    fn open(&self) -> Result<Daemon<Nic>, Failure> {
        let node = self.node.as_ref().unwrap_or(&self.interface);
        let options = self.common.options(node, vec![self.interface.clone()]);
        let Some(file) = &self.scenario else {
            let nic = self.host.nic(&self.source)?;
            warn_of_offloads(&self.interface);
            return Ok(Daemon::on_host(&nic, &options)?);
        };
        if let Some(option) = self.host.given().next() {
            let text = format!("{option}: with --scenario, the scenario says that; leave one out");
            return Err(Failure::bad_input(text));
        }
        let (scenario, _) = read(file, "--scenario", &self.source)?;
        Ok(Daemon::open(&scenario, &options)?)
    }
}

/// Runs a NIC's daemon until it is told to stop.
pub fn run_nic(args: &NicArgs) -> Result<(), Failure> {
    let mut group = Group::default();
    group.add(args.open()?);
    run_group(group, args.common.user)
}

/// Runs a switch's daemon until it is told to stop.
pub fn run_switch(args: &SwitchArgs) -> Result<(), Failure> {
    let scenario = args.scenario.read()?;
    let options = args.common.options(&args.node, args.interface.clone());
    let mut group = Group::default();
    group.add(Daemon::<Switch>::open(&scenario, &options)?);
    run_group(group, args.common.user)
}

/// Runs daemons, whose sockets are open, until they are told to stop.
// spec: REL-9
pub fn run_group(group: Group, user: Option<User>) -> Result<(), Failure> {
    match user {
        None => drop_capabilities_but_net_raw().context("dropping capabilities")?,
        Some(User { uid, gid }) => become_user(uid, gid).with_context(|| {
            format!("--user {uid}:{gid}: start as root, with this user in its user namespace")
        })?,
    }
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
