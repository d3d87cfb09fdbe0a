//! The daemons of one process. They share a thread that gives each its turn;
//! otherwise they know nothing of each other: a frame from one to another goes
//! over their interfaces like any frame.

use core::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use super::error::DaemonError;
use super::role::Role;
use super::run::{Daemon, Stopper};
use crate::capture::CaptureSummary;
use crate::io::clock::monotonic_ns;
use crate::io::waiter::POLL_EVERY_NS;
use crate::io::{Waiter, Watched, Woken};

/// What a group needs of a daemon, whatever its node is.
pub(super) trait Member {
    /// Who it is, in one line.
    fn description(&self) -> &str;
    /// What ends its run.
    fn stopper(&self) -> Stopper;
    /// Adds what brings a turn on to what the group sleeps for.
    fn watch(&self, watched: &mut Watched);
    /// When its next turn is due, in nanoseconds of CLOCK_MONOTONIC.
    fn deadline_ns(&self) -> Option<u64>;
    /// Whether it has frames to receive or to send.
    fn is_ready(&self) -> bool;
    /// Begins what needs a thread of its own.
    fn start(&mut self) -> io::Result<()>;
    /// Does what there is to do, without waiting; tells whether to go on.
    fn turn(&mut self, something_happened: bool) -> io::Result<bool>;
    /// Its packet sockets once more, as far as there are descriptors: they stay
    /// open when it is dropped.
    fn duplicate_sockets(&self) -> Vec<OwnedFd>;
    /// Ends; tells how the capture went when there was one.
    fn finish(&mut self) -> io::Result<Option<CaptureSummary>>;
}

/// Daemons that are ready to run: their sockets are open. Drop privileges
/// before [`Group::run`], which starts a thread for each capture.
#[derive(Default)]
pub struct Group {
    members: Vec<Box<dyn Member>>,
}

impl Group {
    /// Adds a daemon.
    pub fn add<N: Role + 'static>(&mut self, daemon: Daemon<N>) {
        self.members.push(Box::new(daemon));
    }

    /// Who they are, each in one line: `nic a 10.0.0.1 control PATH tdf 1000 ...`.
    pub fn descriptions(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.description())
    }

    /// What ends the run of each.
    pub fn stoppers(&self) -> Vec<Stopper> {
        self.members.iter().map(|member| member.stopper()).collect()
    }

    /// Runs each until it is stopped; tells how the captures went.
    ///
    /// # Errors
    /// When the host fails the waiting, or a capture is not complete. All
    /// captures end properly in any case.
    // spec: TIME-5
    pub fn run(mut self) -> Result<Vec<CaptureSummary>, DaemonError> {
        let mut ends = Ends::default();
        let ran = self.take_turns(&mut ends);
        let others: Vec<_> = self.members.into_iter().map(|member| ends.add(member)).collect();
        close_at_once(ends.sockets);
        ran.and(others.into_iter().collect()).map(|()| ends.captures)
    }

    fn take_turns(&mut self, ends: &mut Ends) -> Result<(), DaemonError> {
        let failed = || DaemonError::io("waiting");
        let mut waiter = Waiter::new().map_err(failed())?;
        for member in &mut self.members {
            member.start().map_err(DaemonError::io("starting the capture"))?;
        }
        let mut looked_ns = 0;
        let mut something_happened = true;
        loop {
            let now_ns = monotonic_ns();
            let look = something_happened || now_ns - looked_ns >= POLL_EVERY_NS;
            if look {
                looked_ns = now_ns;
            }
            self.turn(now_ns, look, ends)?;
            if self.members.is_empty() {
                return Ok(());
            }
            something_happened = self.wait(&mut waiter).map_err(failed())? == Woken::Event;
        }
    }

    /// Gives a turn to each daemon that has frames or a deadline, and to all
    /// when it is time to `look` for what else happened.
    fn turn(&mut self, now_ns: u64, look: bool, ends: &mut Ends) -> Result<(), DaemonError> {
        let mut index = 0;
        while let Some(member) = self.members.get_mut(index) {
            let is_due = || member.deadline_ns().is_some_and(|at_ns| at_ns <= now_ns);
            let goes_on = if look || member.is_ready() || is_due() {
                member.turn(look).map_err(DaemonError::io("waiting"))?
            } else {
                true
            };
            if goes_on {
                index += 1;
            } else {
                ends.add(self.members.remove(index))?;
            }
        }
        Ok(())
    }

    /// Waits until a daemon has something to do.
    fn wait(&self, waiter: &mut Waiter) -> io::Result<Woken> {
        let members = &self.members;
        let deadline_ns = members.iter().filter_map(|member| member.deadline_ns()).min();
        waiter.wait_with(
            deadline_ns,
            || members.iter().any(|member| member.is_ready()),
            |watched| members.iter().for_each(|member| member.watch(watched)),
        )
    }
}

/// What is left of daemons that have ended.
#[derive(Default)]
struct Ends {
    captures: Vec<CaptureSummary>,
    sockets: Vec<OwnedFd>,
}

impl Ends {
    fn add(&mut self, mut member: Box<dyn Member>) -> Result<(), DaemonError> {
        self.sockets.extend(member.duplicate_sockets());
        self.captures.extend(member.finish().map_err(DaemonError::CaptureLost)?);
        Ok(())
    }
}

/// Closes packet sockets, each in a thread of its own: the kernel waits some
/// 25 ms with every close until nobody looks at the socket any more, and that
/// for all of them at the same time.
fn close_at_once(sockets: Vec<OwnedFd>) {
    thread::scope(|scope| {
        for socket in sockets {
            scope.spawn(move || drop(socket));
        }
    });
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.descriptions()).finish()
    }
}
