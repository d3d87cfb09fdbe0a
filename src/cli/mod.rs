//! The command line: one file for each subcommand.

mod attributes;
mod ctl;
mod daemon;
mod failure;
mod fault;
mod hold;
mod host_nic;
mod lab;
mod nodes;
mod notice;
mod number;
mod output;
mod run;
mod scenario;
mod table;
mod topology;
mod user;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Multipath Reliable Connection (MRC) in userspace: NICs, a switch, and a lab
/// of network namespaces to run them in.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 all went well; 1 something failed; 2 the input was bad.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a scenario: build its lab, send what it says, and say what came of it.
    Run(run::Args),
    /// Keep a lab up for work by hand: up, down, status, enter, doctor.
    Lab(lab::Args),
    /// Run a NIC in this network namespace: of a scenario, or on an interface
    /// of this host.
    Nic(daemon::NicArgs),
    /// Run a switch of a scenario in this network namespace.
    Switch(daemon::SwitchArgs),
    /// Run nodes of a lab in one process: `mrc run` and `mrc lab up` start these.
    #[command(hide = true)]
    Nodes(nodes::Args),
    /// Ask a running NIC or switch over its control socket.
    Ctl(ctl::Args),
    /// Let the links of a running lab go wrong.
    Fault(fault::Args),
    /// List the attributes of NICs and switches: what can be set, and to what.
    Attributes(attributes::Args),
    /// Show who is joined to whom in a scenario.
    Topology(topology::Args),
}

impl Command {
    fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Run(args) => run::run(args),
            Self::Lab(args) => lab::run(args),
            Self::Nic(args) => daemon::run_nic(args),
            Self::Switch(args) => daemon::run_switch(args),
            Self::Nodes(args) => nodes::run(args),
            Self::Ctl(args) => ctl::run(args),
            Self::Fault(args) => fault::run(args),
            Self::Attributes(args) => attributes::run(args),
            Self::Topology(args) => topology::run(args),
        }
    }
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
