//! The daemons of one process. They share a thread that gives each its turn;
//! otherwise they know nothing of each other: a frame from one to another goes
//! over their interfaces like any frame.

use core::fmt;
use std::io;
use std::os::fd::RawFd;

use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::error::DaemonError;
use super::role::Role;
use super::run::{Daemon, Stopper};
use crate::capture::CaptureSummary;
use crate::io::Waiter;
use crate::io::clock::monotonic_ns;

/// What a group needs of a daemon, whatever its node is.
pub(super) trait Member {
    /// Who it is, in one line.
    fn description(&self) -> &str;
    /// What ends its run.
    fn stopper(&self) -> Stopper;
    /// Readable when something happened to it.
    fn poll_fd(&self) -> RawFd;
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

/// A daemon in the group.
struct Seat {
    member: Box<dyn Member>,
    token: Token,
    something_happened: bool,
}

/// Daemons that are ready to run: their sockets are open. Drop privileges
/// before [`Group::run`], which starts a thread for each capture.
#[derive(Default)]
pub struct Group {
    seats: Vec<Seat>,
}

impl Group {
    /// Adds a daemon.
    pub fn add<N: Role + 'static>(&mut self, daemon: Daemon<N>) {
        let token = Token(self.seats.len());
        // Whatever happened so far is no news for epoll.
        self.seats.push(Seat { member: Box::new(daemon), token, something_happened: true });
    }

    /// Who they are, each in one line: `nic a 10.0.0.1 control PATH tdf 1000 ...`.
    pub fn descriptions(&self) -> impl Iterator<Item = &str> {
        self.seats.iter().map(|seat| seat.member.description())
    }

    /// What ends the run of each.
    pub fn stoppers(&self) -> Vec<Stopper> {
        self.seats.iter().map(|seat| seat.member.stopper()).collect()
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
        let rest: Result<(), _> =
            self.seats.drain(..).try_for_each(|seat| finish(seat, &mut captures));
        ran.and(rest).map(|()| captures)
    }

    fn take_turns(&mut self, captures: &mut Vec<CaptureSummary>) -> Result<(), DaemonError> {
        let failed = || DaemonError::io("waiting");
        let mut waiter = Waiter::new().map_err(failed())?;
        for Seat { member, token, .. } in &mut self.seats {
            let fd = member.poll_fd();
            let registry = waiter.registry();
            registry.register(&mut SourceFd(&fd), *token, Interest::READABLE).map_err(failed())?;
            member.start().map_err(DaemonError::io("starting the capture"))?;
        }
        loop {
            self.turn(captures)?;
            if self.seats.is_empty() {
                return Ok(());
            }
            self.wait(&mut waiter).map_err(failed())?;
        }
    }

    /// Gives a turn to each daemon that has something to do.
    fn turn(&mut self, captures: &mut Vec<CaptureSummary>) -> Result<(), DaemonError> {
        let now_ns = monotonic_ns();
        let mut index = 0;
        while let Some(Seat { member, something_happened, .. }) = self.seats.get_mut(index) {
            let is_due = member.deadline_ns().is_some_and(|at_ns| at_ns <= now_ns);
            let happened = core::mem::take(something_happened);
            let goes_on = if happened || is_due || member.is_ready() {
                member.turn(happened).map_err(DaemonError::io("waiting"))?
            } else {
                true
            };
            if goes_on {
                index += 1;
            } else {
                finish(self.seats.remove(index), captures)?;
            }
        }
        Ok(())
    }

    /// Waits until a daemon has something to do.
    fn wait(&mut self, waiter: &mut Waiter) -> io::Result<()> {
        let deadline_ns = self.seats.iter().filter_map(|seat| seat.member.deadline_ns()).min();
        waiter.wait(deadline_ns, || self.seats.iter().any(|seat| seat.member.is_ready()))?;
        for token in waiter.events() {
            // Seats stay in the order of their tokens.
            if let Ok(index) = self.seats.binary_search_by_key(&token, |seat| seat.token) {
                self.seats[index].something_happened = true;
            }
        }
        Ok(())
    }
}

fn finish(mut seat: Seat, captures: &mut Vec<CaptureSummary>) -> Result<(), DaemonError> {
    captures.extend(seat.member.finish().map_err(DaemonError::CaptureLost)?);
    Ok(())
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.descriptions()).finish()
    }
}
