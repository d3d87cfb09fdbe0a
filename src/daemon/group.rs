//! The daemons of one process. They share a thread that gives each its turn;
//! otherwise they know nothing of each other: a frame from one to another goes
//! over their interfaces like any frame.

use core::fmt;
use std::io;

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
        let mut captures = Vec::new();
        let ran = self.take_turns(&mut captures);
        let ends: Vec<_> =
            self.members.into_iter().map(|member| finish(member, &mut captures)).collect();
        ran.and(ends.into_iter().collect()).map(|()| captures)
    }

    fn take_turns(&mut self, captures: &mut Vec<CaptureSummary>) -> Result<(), DaemonError> {
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
            self.turn(now_ns, look, captures)?;
            if self.members.is_empty() {
                return Ok(());
            }
            something_happened = self.wait(&mut waiter).map_err(failed())? == Woken::Event;
        }
    }

    /// Gives a turn to each daemon that has frames or a deadline, and to all
    /// when it is time to `look` for what else happened.
    fn turn(
        &mut self,
        now_ns: u64,
        look: bool,
        captures: &mut Vec<CaptureSummary>,
    ) -> Result<(), DaemonError> {
        let mut index = 0;
        while let Some(member) = self.members.get_mut(index) {
            let is_due = member.deadline_ns().is_some_and(|at_ns| at_ns <= now_ns);
            let goes_on = if look || is_due || member.is_ready() {
                member.turn(look).map_err(DaemonError::io("waiting"))?
            } else {
                true
            };
            if goes_on {
                index += 1;
            } else {
                finish(self.members.remove(index), captures)?;
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

fn finish(
    mut member: Box<dyn Member>,
    captures: &mut Vec<CaptureSummary>,
) -> Result<(), DaemonError> {
    captures.extend(member.finish().map_err(DaemonError::CaptureLost)?);
    Ok(())
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.descriptions()).finish()
    }
}
