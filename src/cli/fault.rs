//! `mrc fault`: lets the links of running NICs and switches go wrong.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, FromArgMatches, Subcommand};
use serde_json::{Map, Value};

use super::ctl::{client_failure, show};
use super::failure::Failure;
use super::number::number;
use super::output::{json_line, say};
use mrc_lab::daemon::Client;
use mrc_lab::daemon::protocol::{Request, read_fault};
use mrc_lab::lab::run::RunFiles;
use mrc_lab::scenario::{FAULT_KEYS, FaultKey};

/// Options of `mrc fault`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON instead of text: a line for each daemon.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a fault on a link; it is asked before all others.
    Add(Add),
    /// Show every link with its state and its faults.
    List(At),
    /// Take faults away.
    Clear(Clear),
}

#[derive(Debug, clap::Args)]
struct Add {
    #[command(flatten)]
    at: At,
    /// The node at the other end of the link [default: the only one].
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    #[command(flatten)]
    fault: Fault,
}

#[derive(Debug, clap::Args)]
struct Clear {
    #[command(flatten)]
    at: At,
    /// Only from the links to this node.
    #[arg(long, value_name = "NODE")]
    to: Option<String>,
    /// Only the fault with this number, as `list` shows it.
    #[arg(long, value_name = "N", value_parser = number)]
    id: Option<u64>,
}

/// The sending ends of which links.
#[derive(Debug, clap::Args)]
struct At {
    /// The control socket of the NIC or switch that sends on the link.
    #[arg(conflicts_with = "run")]
    socket: Option<PathBuf>,
    /// The folder of a run in the wall clock that is under way.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
    /// The NIC or switch of the run that sends on the link.
    #[arg(long, value_name = "NODE", requires = "run")]
    from: Option<String>,
}

/// A fault, with the keys of a scenario's `[[fault]]` section as options.
#[derive(Debug)]
struct Fault(Map<String, Value>);

impl clap::Args for Fault {
    // spec: SW-20
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(FAULT_KEYS.iter().map(option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

fn option(key: &FaultKey) -> Arg {
    let option = Arg::new(key.name).long(key.name).help(key.what).help_heading("Fault");
    match key.value {
        "" => option.action(ArgAction::SetTrue),
        name => option.value_name(name).allow_negative_numbers(true),
    }
}

impl FromArgMatches for Fault {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut fault = Map::new();
        for FaultKey { name, value, .. } in FAULT_KEYS {
            let given = match value {
                "" => matches.get_flag(name).then_some(Value::Bool(true)),
                _ => matches.get_one::<String>(name).map(|text| value_of(text)),
            };
            fault.extend(given.map(|given| (name.to_owned(), given)));
        }
        Ok(Self(fault))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A number or truth value where the text is one, or else the text.
fn value_of(text: &str) -> Value {
    if let Ok(number) = number(text) {
        return number.into();
    }
    match serde_json::from_str(text) {
        Ok(value @ (Value::Bool(_) | Value::Number(_))) => value,
        _ => text.into(),
    }
}

impl Fault {
    /// That it is one, by the rules of scenario files.
    fn check(&self) -> Result<(), Failure> {
        match read_fault(&self.0) {
            Ok(_) => Ok(()),
            Err(errors) => {
                let lines: Vec<_> = errors.iter().map(|error| as_option(error)).collect();
                Err(Failure::bad_input(lines.join("\n")))
            }
        }
    }
}

/// An error of a section, `nth = 0: ...`, as one of an option: `--nth 0: ...`.
fn as_option(error: &str) -> String {
    let named = FAULT_KEYS.iter().find_map(|key| {
        let rest = error.strip_prefix(key.name)?.strip_prefix(" = ")?;
        Some(format!("--{} {rest}", key.name))
    });
    named.unwrap_or_else(|| format!("a fault {error}"))
}

impl At {
    /// The control sockets that are meant.
    fn sockets(&self) -> Result<Vec<PathBuf>, Failure> {
        match (&self.socket, &self.run) {
            (Some(socket), _) => Ok(vec![socket.clone()]),
            (None, Some(dir)) => self.sockets_of_run(dir),
            (None, None) => {
                Err(Failure::bad_input("no daemon is named: give its control socket, or --run DIR"))
            }
        }
    }

    fn sockets_of_run(&self, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
        let shown = dir.display();
        let mut found = RunFiles::controls(dir).map_err(|error| {
            Failure::bad_input(format!("--run {shown}: {error}; give the folder of a run"))
        })?;
        if found.is_empty() {
            return Err(Failure::bad_input(format!(
                "--run {shown}: no daemon runs there; give the folder of a run in the wall clock \
                 that is under way"
            )));
        }
        let Some(from) = &self.from else { return Ok(found.into_values().collect()) };
        match found.remove(from) {
            Some(socket) => Ok(vec![socket]),
            None => {
                let known = found.into_keys().collect::<Vec<_>>().join(", ");
                Err(Failure::bad_input(format!("--from {from}: choose one of {known}")))
            }
        }
    }
}

/// Asks the daemons and prints what they answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (at, request) = match &args.command {
        Command::Add(Add { at, to, fault }) => {
            fault.check()?;
            if at.run.is_some() && at.from.is_none() {
                return Err(Failure::bad_input("--from is missing: name the node that sends"));
            }
            (at, Request::FaultAdd { to: to.clone(), fault: fault.0.clone() })
        }
        Command::List(at) => (at, Request::FaultList {}),
        Command::Clear(Clear { at, to, id }) => {
            (at, Request::FaultClear { to: to.clone(), id: *id })
        }
    };
    for socket in at.sockets()? {
        let mut client = Client::connect(&socket).map_err(client_failure)?;
        let response = client.request(&request).map_err(client_failure)?;
        say(&if args.json { json_line(&response)? } else { show::response(&response) })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: SW-20
    #[test]
    fn values_are_numbers_where_they_look_like_it() {
        for (text, value) in [
            ("3", Value::from(3)),
            ("0x10", Value::from(16)),
            ("0.5", Value::from(0.5)),
            ("-1", Value::from(-1)),
            ("true", Value::from(true)),
            ("2 ms", Value::from("2 ms")),
            ("SACK", Value::from("SACK")),
            ("null", Value::from("null")),
        ] {
            assert_eq!(value_of(text), value, "{text}");
        }
    }

    // spec: SW-20
    #[test]
    fn errors_name_the_option() {
        assert_eq!(as_option("nth = 0: must be x"), "--nth 0: must be x");
        assert_eq!(as_option("needs one of x"), "a fault needs one of x");
        let refused = Fault(Map::new()).check().expect_err("no action");
        assert!(matches!(refused, Failure::BadInput(_)));
    }
}
