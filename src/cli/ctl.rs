//! `mrc ctl`: asks a running daemon.

pub mod show;

use core::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::{Subcommand, ValueEnum};

use super::failure::Failure;
use super::number::{number, number32};
use super::output::{json_line, say};
use mrc_lab::daemon::protocol::{Fill, FlowFill, PostWrite, Request, Response};
use mrc_lab::daemon::{Client, ClientError};
use mrc_lab::nic::Access;
use mrc_lab::units::parse_bytes;

/// How long a wait for the next event lasts before it is begun again.
const EVENT_WAIT: Duration = Duration::from_secs(3_600);

/// Options of `mrc ctl`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The daemon's control socket.
    socket: PathBuf,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a memory region of a NIC.
    Register(Register),
    /// Forget a memory region.
    Deregister {
        /// The region's key.
        #[arg(value_parser = number32)]
        rkey: u32,
    },
    /// Post an RDMA Write.
    Write(Write),
    /// List every side of a QP.
    Qps,
    /// Show what was counted and dropped.
    Counters,
    /// Close a side of a QP and show how it stood.
    Close {
        /// Its number at this NIC.
        #[arg(value_parser = number32)]
        qpn: u32,
    },
    /// Show the SHA-256 of a memory region.
    Digest {
        /// The region's key.
        #[arg(value_parser = number32)]
        rkey: u32,
    },
    /// Write a memory region to a file.
    Save {
        /// The region's key.
        #[arg(value_parser = number32)]
        rkey: u32,
        /// The file, which is replaced.
        file: PathBuf,
    },
    /// Show QP events, from the first on, as they happen.
    Events {
        /// End after this many.
        #[arg(long, value_name = "N", value_parser = number)]
        count: Option<u64>,
    },
    /// Show how late the daemon was and what the host lost.
    Report,
    /// End the daemon.
    Stop,
}

#[derive(Debug, clap::Args)]
struct Register {
    /// Its length: bytes, or a size such as `64 MiB`.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    length: u64,
    /// What peers may do with it.
    #[arg(long, value_enum, default_value_t = AccessArg::Local)]
    access: AccessArg,
    /// Fill it with this file [default: zeros].
    #[arg(long, value_name = "FILE", conflicts_with = "flow")]
    file: Option<PathBuf>,
    /// Fill it with what a flow of a scenario sends.
    #[arg(long, value_name = "SEED:NUMBER:BYTES:MESSAGES", value_parser = flow)]
    flow: Option<FlowFill>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum AccessArg {
    /// Nothing: it is to send from.
    Local,
    /// Write to it.
    RemoteWrite,
}

#[derive(Debug, clap::Args)]
struct Write {
    /// The address of the NIC that it goes to.
    #[arg(long, value_name = "IP")]
    peer: Ipv4Addr,
    /// The key of the local region.
    #[arg(long, value_name = "KEY", value_parser = number32)]
    lkey: u32,
    /// Where it starts in the local region.
    #[arg(long, value_name = "ADDRESS", value_parser = number)]
    local_va: u64,
    /// How much: bytes, or a size such as `64 MiB`; at most 2 GiB.
    #[arg(long, value_name = "SIZE", value_parser = message_size)]
    length: u32,
    /// Where it goes in the peer's region.
    #[arg(long, value_name = "ADDRESS", value_parser = number)]
    remote_va: u64,
    /// The key of the peer's region.
    #[arg(long, value_name = "KEY", value_parser = number32)]
    rkey: u32,
    /// The QP to use [default: a new one].
    #[arg(long, value_name = "QPN", value_parser = number32)]
    qp: Option<u32>,
    /// A number for its events.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number)]
    wqe_id: u64,
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok();
    bytes.map_or_else(|| parse_bytes(text).map_err(|error| error.to_string()), Ok)
}

fn message_size(text: &str) -> Result<u32, String> {
    u32::try_from(size(text)?).map_err(|_| "a message has at most 2 GiB".to_owned())
}

fn flow(text: &str) -> Result<FlowFill, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let wanted = || "four numbers are needed: SEED:NUMBER:BYTES:MESSAGES".to_owned();
    let [seed, index, bytes, messages] = parts[..] else { return Err(wanted()) };
    Ok(FlowFill {
        seed: number(seed)?,
        number: usize::try_from(number(index)?).map_err(|_| wanted())?,
        bytes: number32(bytes)?,
        messages: number32(messages)?,
    })
}

impl Register {
    fn request(&self) -> anyhow::Result<Request> {
        let fill = match (&self.file, self.flow) {
            // The daemon may have another working directory.
            (Some(file), _) => Fill::File(absolute(file)?),
            (None, Some(flow)) => Fill::Flow(flow),
            (None, None) => Fill::default(),
        };
        let access = match self.access {
            AccessArg::Local => Access::Local,
            AccessArg::RemoteWrite => Access::RemoteWrite,
        };
        Ok(Request::RegisterMemory { length: self.length, access, fill })
    }
}

impl From<&Write> for PostWrite {
    fn from(write: &Write) -> Self {
        Self {
            peer: write.peer,
            lkey: write.lkey,
            local_va: write.local_va,
            length: write.length,
            remote_va: write.remote_va,
            rkey: write.rkey,
            qp: write.qp,
            wqe_id: write.wqe_id,
        }
    }
}

fn absolute(file: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(file).with_context(|| file.display().to_string())
}

impl Command {
    fn request(&self) -> anyhow::Result<Request> {
        Ok(match self {
            Self::Register(register) => register.request()?,
            Self::Deregister { rkey } => Request::DeregisterMemory { rkey: *rkey },
            Self::Write(write) => Request::PostWrite(write.into()),
            Self::Qps => Request::ListQps {},
            Self::Counters => Request::Counters {},
            Self::Close { qpn } => Request::Close { qpn: *qpn },
            Self::Digest { rkey } => Request::Digest { rkey: *rkey },
            Self::Save { rkey, file } => Request::Save { rkey: *rkey, file: absolute(file)? },
            Self::Events { .. } => Request::Subscribe {},
            Self::Report => Request::Report {},
            Self::Stop => Request::Stop {},
        })
    }
}

/// Asks the daemon and prints what it answers.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut client = Client::connect(&args.socket).map_err(client_failure)?;
    let response = client.request(&args.command.request()?).map_err(client_failure)?;
    print(&response, args.json)?;
    match args.command {
        Command::Events { count } => follow(&mut client, count, args.json),
        _ => Ok(()),
    }
}

fn print(response: &Response, json: bool) -> Result<(), Failure> {
    say(&if json { json_line(response)? } else { show::response(response) })
}

/// Prints events until there were `count`, or the daemon ends.
fn follow(client: &mut Client, count: Option<u64>, json: bool) -> Result<(), Failure> {
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let event = match client.next_event(EVENT_WAIT) {
            Ok(Some(event)) => event,
            Ok(None) => continue,
            Err(ClientError::Closed) if count.is_none() => return Ok(()),
            Err(error) => return Err(client_failure(error)),
        };
        left -= 1;
        say(&if json { json_line(&event)? } else { show::event(&event) })?;
    }
    Ok(())
}

/// How a client that cannot ask fails.
pub fn client_failure(error: ClientError) -> Failure {
    match error {
        ClientError::Connect { .. } => Failure::BadInput(error.into()),
        _ => Failure::Failed(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_may_have_units() {
        assert_eq!((size("4096"), size("64 MiB")), (Ok(4_096), Ok(64 << 20)));
        assert!(size("many").is_err() && message_size("4 GiB").is_err());
    }

    // spec: WL-1
    #[test]
    fn a_flow_is_four_numbers() {
        let want = FlowFill { seed: 1, number: 2, bytes: 3, messages: 4 };
        assert_eq!(flow("1:2:3:4"), Ok(want));
        assert!(flow("1:2:3").is_err() && flow("1:2:3:4:5").is_err() && flow("1:2:3:x").is_err());
    }
}
