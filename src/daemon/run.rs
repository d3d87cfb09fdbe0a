//! A daemon: one node in the wall clock, with a control socket.

use core::fmt;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::fchown;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use mio::{Token, Waker};

use super::error::DaemonError;
use super::events::{EventLog, LogSink, SharedLog};
use super::faults::FaultDesk;
use super::group::Member;
use super::ports;
use super::protocol::{CaptureReport, Request, Response};
use super::report::report;
use super::role::Role;
use super::server::ControlServer;
use super::socket::ControlSocket;
use crate::capture::{
    CaptureFile, CaptureInfo, CaptureSummary, PortCapture, QueuePolicy, Timestamps,
};
use crate::config::Profile;
use crate::io::clock::monotonic_ns;
use crate::io::{EventLoop, GuardSocket, PortIo, WallClock, Watched};
use crate::rng::Rng;
use crate::scenario::{NodeKind, Scenario, Topology};
use crate::time::Duration;
use crate::trace::NodeId;

/// The time dilation factor where none is given and the profile is paced.
// spec: TIME-2, TIME-3
pub const DEFAULT_TDF: u32 = 1_000;

/// What a daemon is told when it starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node's name in the scenario.
    pub node: String,
    /// The interfaces of its ports, in the order of the scenario's links.
    pub interfaces: Vec<String>,
    /// Where the control socket goes.
    pub control: PathBuf,
    /// The time dilation factor; `None`: 1 in the native profile, otherwise
    /// [`DEFAULT_TDF`].
    pub tdf: Option<u32>,
    /// Protocol time 0, in nanoseconds of CLOCK_MONOTONIC; `None`: now.
    pub epoch_ns: Option<u64>,
    /// The node's start number; `None`: drawn from the host.
    pub life: Option<u64>,
    /// The user and group that are to own the files that the daemon makes;
    /// `None`: this process's.
    pub owner: Option<(u32, u32)>,
    /// Where every frame of the ports goes.
    pub capture: Option<PathBuf>,
    /// The most bytes of a frame in the capture; 0 keeps whole frames.
    pub snap_len: u32,
}

/// Who a daemon is and how its time runs.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) node: String,
    pub(super) interfaces: Vec<String>,
    pub(super) clock: WallClock,
    pub(super) epoch_ns: u64,
    pub(super) life: u64,
    /// Of one full packet; `None` when nothing is paced.
    pub(super) packet_time: Option<Duration>,
}

/// A daemon that is ready to run: its sockets are open. A
/// [`Group`](super::Group) runs it.
pub struct Daemon<N> {
    identity: Identity,
    description: String,
    event_loop: EventLoop<N>,
    faults: FaultDesk,
    server: ControlServer,
    log: SharedLog,
    capture_file: Option<(File, CaptureInfo)>,
    capture: Option<PortCapture>,
    stopper: Stopper,
    ready: Vec<Token>,
    /// Held, no more.
    _guard: Option<GuardSocket>,
}

/// A node with its ports open: what there is before a daemon is made of it.
pub(super) struct Prepared<N> {
    pub(super) node: N,
    pub(super) id: NodeId,
    /// Its address, when it is a NIC.
    pub(super) ip: Option<Ipv4Addr>,
    pub(super) ports: Vec<PortIo>,
    /// What the other ends of its links are called.
    pub(super) peers: Vec<String>,
    pub(super) guard: Option<GuardSocket>,
    pub(super) profile: Profile,
    /// Of one full packet; `None` when nothing is paced.
    pub(super) packet_time: Option<Duration>,
    pub(super) rng: Rng,
    pub(super) life: u64,
}

/// Ends a daemon from elsewhere: a signal, another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    stopped: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Stopper {
    /// The daemon ends its turn and then its run.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // A daemon that is gone needs no waking.
        let _ = self.waker.wake();
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

impl<N: Role> Daemon<N> {
    /// Opens the sockets of the node that `options` name. Everything else about
    /// it (addresses, rates, faults, attributes) is in the scenario.
    ///
    /// # Errors
    /// When the options do not fit the scenario or this host.
    // spec: W-7, TIME-2, TIME-5
    pub fn open(scenario: &Scenario, options: &Options) -> Result<Self, DaemonError> {
        let topology = Topology::new(scenario);
        let id = find_node(&topology, &options.node)?;
        let life = options.life.map_or_else(draw_life, Ok)?;
        let mut rng = Rng::derive(scenario.seed, &options.node, life);
        let plan = &topology.nodes[id.0 as usize];
        let node = N::build(&plan.kind, &mut rng)
            .ok_or_else(|| wrong_kind(&options.node, N::COMMAND, &plan.kind))?;
        let packet_time = || ports::packet_time(scenario, &topology, id);
        let prepared = Prepared {
            node,
            id,
            ip: plan.ip(),
            ports: ports::open(scenario, &topology, id, &options.interfaces)?,
            peers: ports::peers(scenario, &topology, id),
            guard: None,
            profile: scenario.profile,
            packet_time: plan.paced().then(packet_time),
            rng,
            life,
        };
        Self::start(prepared, options)
    }

    /// Makes the daemon of a node whose ports are open.
    pub(super) fn start(prepared: Prepared<N>, options: &Options) -> Result<Self, DaemonError> {
        let Prepared { node, id, ports, peers, rng, life, packet_time, .. } = prepared;
        let links = ports.iter().map(|port| &port.link);
        let faults = FaultDesk::new(options.node.clone(), peers, links);
        let epoch_ns = options.epoch_ns.unwrap_or_else(monotonic_ns);
        let clock = clock(prepared.profile, epoch_ns, options.tdf)?;
        let (log, sink) = event_log();
        let event_loop = EventLoop::new(node, id, ports, clock, rng, Box::new(sink));
        let mut event_loop = event_loop.map_err(DaemonError::io("making the event loop"))?;
        event_loop.set_turn(N::FRAMES_A_TURN);
        event_loop.set_paced(packet_time.is_some());
        let (node, interfaces) = (options.node.clone(), options.interfaces.clone());
        let identity = Identity { node, interfaces, clock, epoch_ns, life, packet_time };
        let parts = (event_loop, faults);
        let daemon = Self::assemble(identity, prepared.ip, parts, log, options)?;
        Ok(Self { _guard: prepared.guard, ..daemon })
    }

    fn assemble(
        identity: Identity,
        ip: Option<Ipv4Addr>,
        (event_loop, faults): (EventLoop<N>, FaultDesk),
        log: SharedLog,
        options: &Options,
    ) -> Result<Self, DaemonError> {
        let path = options.control.as_path();
        let socket = ControlSocket::bind(path, options.owner)
            .map_err(|source| DaemonError::Control { path: path.to_owned(), source })?;
        let capture = options.capture.as_deref();
        let capture = capture.map(|path| create_capture(path, options, &identity)).transpose()?;
        let server = ControlServer::new(socket, event_loop.registry())
            .map_err(DaemonError::io("serving the control socket"))?;
        let stopper = Stopper { stopped: Arc::default(), waker: event_loop.waker() };
        let ip = ip.map(|ip| format!(" {ip}")).unwrap_or_default();
        let Identity { node, clock, epoch_ns, life, .. } = &identity;
        let description = format!(
            "{} {node}{ip} control {} tdf {} epoch-ns {epoch_ns} life {life}",
            N::COMMAND,
            path.display(),
            clock.tdf()
        );
        Ok(Self {
            identity,
            description,
            event_loop,
            faults,
            server,
            log,
            capture_file: capture,
            capture: None,
            stopper,
            ready: Vec::new(),
            _guard: None,
        })
    }

    // spec: RC-6, RC-7
    fn start_capture(&mut self) -> io::Result<()> {
        let Some((file, info)) = self.capture_file.take() else { return Ok(()) };
        let Identity { node, interfaces, .. } = &self.identity;
        let names: Vec<_> = interfaces.iter().map(|name| format!("{node}.{name}")).collect();
        let file = CaptureFile::to_writer(file, &info, QueuePolicy::Bounded)?;
        let capture = PortCapture::new(file, names.iter().map(String::as_str));
        self.event_loop.set_tap(Box::new(capture.clone()));
        self.capture = Some(capture);
        Ok(())
    }
}

impl<N: Role> Member for Daemon<N> {
    fn description(&self) -> &str {
        &self.description
    }

    fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    fn watch(&self, watched: &mut Watched) {
        self.event_loop.watch(watched);
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.event_loop.deadline_ns()
    }

    fn is_ready(&self) -> bool {
        self.event_loop.is_ready()
    }

    fn start(&mut self) -> io::Result<()> {
        self.start_capture()
    }

    fn turn(&mut self, something_happened: bool) -> io::Result<bool> {
        let Self { event_loop, faults, server, log, identity, capture, stopper, ready, .. } = self;
        let events_before = log.borrow().end();
        event_loop.turn_at_once(something_happened)?;
        ready.extend(event_loop.events());
        ready.drain(..).for_each(|token| server.on_ready(token));
        let busy = server.turn(log, &mut |request| match request {
            Request::Report {} => {
                let capture = capture.as_ref().map(|capture| capture.counts().into());
                answer_report(event_loop, identity, log.borrow().faults(), capture)
            }
            Request::Stop {} => {
                stopper.stop();
                Ok(Response::Stopping {})
            }
            Request::FaultAdd { to, fault } => {
                event_loop.with_links(|now, links| faults.add(now, links, to.as_deref(), &fault))
            }
            Request::FaultList {} => {
                Ok(event_loop.with_links(|now, links| faults.list(now, links)))
            }
            Request::FaultClear { to, id } => {
                event_loop.with_links(|_, links| faults.clear(links, to.as_deref(), id))
            }
            request => N::answer(event_loop, &identity.interfaces, request),
        });
        if log.borrow().end() != events_before {
            N::forget_events(event_loop);
        }
        if busy {
            stopper.waker.wake()?;
        }
        Ok(!stopper.is_stopped())
    }

    fn duplicate_sockets(&self) -> Vec<OwnedFd> {
        self.event_loop.duplicate_sockets()
    }

    fn finish(&mut self) -> io::Result<Option<CaptureSummary>> {
        self.server.finish();
        self.capture.as_ref().map(PortCapture::finish).transpose()
    }
}

fn answer_report<N: Role>(
    event_loop: &mut EventLoop<N>,
    identity: &Identity,
    faults: &BTreeMap<String, u64>,
    capture: Option<CaptureReport>,
) -> Result<Response, String> {
    let counted = event_loop.report().map_err(|error| format!("reading counters: {error}"))?;
    Ok(Response::Report(report(identity, event_loop.now(), &counted, faults, capture)))
}

impl<N> fmt::Debug for Daemon<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon").field("identity", &self.identity).finish_non_exhaustive()
    }
}

fn find_node(topology: &Topology, name: &str) -> Result<NodeId, DaemonError> {
    topology.node(name).ok_or_else(|| DaemonError::UnknownNode {
        name: name.to_owned(),
        known: topology.nodes.iter().map(|node| node.name.clone()).collect(),
    })
}

fn wrong_kind(name: &str, asked: &'static str, kind: &NodeKind) -> DaemonError {
    let actual = match kind {
        NodeKind::Nic(_) => "nic",
        NodeKind::Switch(_) => "switch",
    };
    DaemonError::WrongKind { name: name.to_owned(), asked, actual }
}

// spec: TIME-2, TIME-3
fn clock(profile: Profile, epoch_ns: u64, tdf: Option<u32>) -> Result<WallClock, DaemonError> {
    let default = if profile == Profile::Native { 1 } else { DEFAULT_TDF };
    WallClock::new(epoch_ns, tdf.unwrap_or(default)).ok_or(DaemonError::ZeroTdf)
}

/// A start number that no earlier life of the node had, of 53 bits: what every
/// reader of JSON can tell apart.
// spec: W-7
pub(super) fn draw_life() -> Result<u64, DaemonError> {
    let mut bytes = [0; 8];
    let drawn = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    drawn.map_err(DaemonError::io("reading /dev/urandom"))?;
    Ok(u64::from_le_bytes(bytes) >> 11)
}

fn event_log() -> (SharedLog, LogSink) {
    let log = Rc::new(RefCell::new(EventLog::new(EventLog::LIMIT)));
    (Rc::clone(&log), LogSink(log))
}

// spec: TIME-4
fn create_capture(
    path: &Path,
    options: &Options,
    identity: &Identity,
) -> Result<(File, CaptureInfo), DaemonError> {
    let (uid, gid) = options.owner.unzip();
    let file = File::create(path)
        .and_then(|file| fchown(&file, uid, gid).map(|()| file))
        .map_err(|source| DaemonError::CaptureFile { path: path.to_owned(), source })?;
    let since_1970 = identity.clock.epoch_wall().duration_since(SystemTime::UNIX_EPOCH);
    let wall_ns_at_zero = since_1970.map_or(0, |since| since.as_nanos() as u64);
    let (tdf, snap_len) = (identity.clock.tdf(), options.snap_len);
    let info = CaptureInfo { timestamps: Timestamps::Protocol, tdf, wall_ns_at_zero, snap_len };
    Ok((file, info))
}
