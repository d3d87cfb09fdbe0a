//! How a driver waits for frames and deadlines.
//!
//! Waking a sleeping thread costs its waker 8 us and comes 30 to 60 us late;
//! a thread that yields in a loop sees a frame within a microsecond and still
//! leaves the core to others. So a wait has two stages:
//!
//! 1. yield up to [`SPIN_YIELDS`] times, looking for frames and the deadline;
//! 2. block until a frame arrives, another file descriptor is ready, or the
//!    deadline is [`SPIN_LEAD_NS`] away; then yield up to the deadline.
//!
//! A busy driver never reaches stage 2, an idle one sleeps. Sockets with frames
//! are not in epoll but in a poll of stage 2: the kernel calls whoever waits for
//! a socket with every frame that comes and every frame that has gone, and epoll
//! would wait for it all the time.

use core::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};

use super::clock::monotonic_ns;
use super::sys::{self, PollFd};
use super::timer::DeadlineTimer;

/// How often a wait yields before it blocks: some 80 us on an idle core.
pub const SPIN_YIELDS: u32 = 200;
/// How long before a deadline a wait stops blocking and yields up to it, in
/// nanoseconds: a little more than a timer's 99th percentile of lateness.
pub const SPIN_LEAD_NS: u64 = 60_000;
/// How long a busy driver may go without a look at its other file
/// descriptors, in nanoseconds.
pub const POLL_EVERY_NS: u64 = 1_000_000;

/// The token that [`Waiter::events`] gives for the waker.
pub const WAKER: Token = Token(usize::MAX);
/// The token of the waiter's own timer, never given out.
const TIMER: Token = Token(usize::MAX - 1);

/// Why a wait ended. The caller looks after due deadlines and frames whatever
/// the reason: both may have come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The caller's check said so, or a watched socket.
    Ready,
    /// The deadline came.
    Deadline,
    /// The waker, or a file descriptor that the caller registered: see
    /// [`Waiter::events`].
    Event,
}

/// What a sleep waits for.
pub struct Watched(Vec<PollFd>);

/// Waits for frames, a deadline, a waker and any other file descriptors.
pub struct Waiter {
    poll: Poll,
    /// What a sleep waits for: `poll` itself, then the watched sockets.
    watched: Watched,
    events: Events,
    timer: DeadlineTimer,
    waker: Arc<Waker>,
    polled_at_ns: u64,
}

impl Waiter {
    /// A waiter that watches nothing but its waker yet.
    ///
    /// # Errors
    /// When the process is out of file descriptors.
    pub fn new() -> io::Result<Self> {
        let (poll, timer) = (Poll::new()?, DeadlineTimer::new()?);
        let source = timer.as_raw_fd();
        poll.registry().register(&mut SourceFd(&source), TIMER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let watched = Watched(vec![PollFd::new(poll.as_raw_fd())]);
        let events = Events::with_capacity(64);
        Ok(Self { poll, watched, events, timer, waker, polled_at_ns: 0 })
    }

    /// Wakes this waiter from other threads, or from signals.
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Wakes when frames arrive at `socket`, which must stay open as long as
    /// this waiter is used. Whether there are any is left to the check that each
    /// wait is given.
    pub fn watch_frames(&mut self, socket: &impl AsRawFd) {
        self.watched.0.push(PollFd::new(socket.as_raw_fd()));
    }

    /// Wakes as well when a watched `socket` has room to send, or no longer.
    pub fn watch_room(&mut self, socket: &impl AsRawFd, watched: bool) {
        let fd: RawFd = socket.as_raw_fd();
        let entries = self.watched.0.iter_mut().filter(|entry| entry.fd() == fd);
        entries.for_each(|entry| entry.set_writable(watched));
    }

    /// Where to register other file descriptors, under tokens that count from
    /// 0. Readiness is told once (edges): read until the source would block.
    pub fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// The tokens behind [`Woken::Event`], until the next wait.
    pub fn events(&self) -> impl Iterator<Item = Token> {
        let tokens = self.events.iter().map(|event| event.token());
        tokens.filter(|token| *token != TIMER)
    }

    /// Waits until `ready` says true, or `deadline_ns` of CLOCK_MONOTONIC
    /// comes, or something else that was registered happens.
    ///
    /// `ready` must be cheap, and true as long as any watched socket holds
    /// frames.
    ///
    /// # Errors
    /// Those of epoll and timerfd, which have none in normal operation.
    pub fn wait(
        &mut self,
        deadline_ns: Option<u64>,
        ready: impl FnMut() -> bool,
    ) -> io::Result<Woken> {
        self.wait_with(deadline_ns, ready, |_| {})
    }

    /// A [`wait`](Self::wait) that also ends, with [`Woken::Event`], when
    /// something happens that other waiters watch: `guests` is asked for what
    /// they watch before each sleep.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    pub fn wait_with(
        &mut self,
        deadline_ns: Option<u64>,
        mut ready: impl FnMut() -> bool,
        guests: impl Fn(&mut Watched),
    ) -> io::Result<Woken> {
        if self.look(false)? {
            return Ok(Woken::Event);
        }
        loop {
            if let Some(woken) = spin(deadline_ns, &mut ready) {
                return Ok(woken);
            }
            if let Some(woken) = self.block(deadline_ns, &guests)? {
                return Ok(woken);
            }
        }
    }

    /// Collects events without waiting, when it is time to or when something is
    /// known to have happened; tells whether there are any for the caller.
    ///
    /// # Errors
    /// Those of epoll, which has none in normal operation.
    pub fn look(&mut self, something_happened: bool) -> io::Result<bool> {
        self.events.clear();
        let unpolled_ns = monotonic_ns().saturating_sub(self.polled_at_ns);
        if something_happened || unpolled_ns >= POLL_EVERY_NS {
            return self.poll_events(Some(Duration::ZERO));
        }
        Ok(false)
    }

    /// Adds what this waiter watches to what another one sleeps for.
    pub fn add_to(&self, watched: &mut Watched) {
        watched.0.extend_from_slice(&self.watched.0);
    }

    /// Sleeps until shortly before the deadline or until something happens;
    /// tells what it was when it concerns the caller.
    fn block(
        &mut self,
        deadline_ns: Option<u64>,
        guests: &impl Fn(&mut Watched),
    ) -> io::Result<Option<Woken>> {
        match deadline_ns {
            Some(at_ns) => self.timer.arm(at_ns.saturating_sub(SPIN_LEAD_NS))?,
            None => self.timer.clear()?,
        }
        let own = self.watched.0.len();
        guests(&mut self.watched);
        let slept = sys::poll(&mut self.watched.0);
        let guests_called = self.watched.0.drain(own..).filter(PollFd::is_ready).count() > 0;
        match slept {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        if self.poll_events(Some(Duration::ZERO))? || guests_called {
            return Ok(Some(Woken::Event));
        }
        let ready = self.watched.0[1..].iter().any(PollFd::is_ready);
        Ok(ready.then_some(Woken::Ready))
    }

    /// Collects events; tells whether there are any for the caller.
    fn poll_events(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.events.clear(),
            other => other?,
        }
        self.polled_at_ns = monotonic_ns();
        Ok(self.events().next().is_some())
    }
}

/// Yields until `ready`, or the deadline, or (unless that is close) a number
/// of times; `None` when it is time to block.
fn spin(deadline_ns: Option<u64>, ready: &mut impl FnMut() -> bool) -> Option<Woken> {
    let mut yields = 0;
    loop {
        if ready() {
            return Some(Woken::Ready);
        }
        let left_ns = deadline_ns.map(|at_ns| at_ns.saturating_sub(monotonic_ns()));
        match left_ns {
            Some(0) => return Some(Woken::Deadline),
            Some(1..=SPIN_LEAD_NS) => {}
            _ if yields == SPIN_YIELDS => return None,
            _ => yields += 1,
        }
        thread::yield_now();
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(PollFd::fd)).finish()
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("timer", &self.timer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const MS: u64 = 1_000_000;
    const NEVER_READY: fn() -> bool = || false;

    /// Nanoseconds that this thread has run on a core.
    fn cpu_ns() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("procfs");
        stat.split(' ').next().expect("a field").parse().expect("a number")
    }

    #[test]
    fn deadlines_are_met_and_never_early() -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        for wait_ns in [0, 20_000, 150_000, 2 * MS] {
            let due = monotonic_ns() + wait_ns;
            assert_eq!(waiter.wait(Some(due), NEVER_READY)?, Woken::Deadline);
            let late_ns = monotonic_ns().checked_sub(due).expect("not early");
            assert!(late_ns < 500 * MS, "{late_ns} ns late");
        }
        Ok(())
    }

    #[test]
    fn waiting_long_uses_next_to_no_cpu() -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        let (before, due) = (cpu_ns(), monotonic_ns() + 200 * MS);
        assert_eq!(waiter.wait(Some(due), NEVER_READY)?, Woken::Deadline);
        let used = cpu_ns() - before;
        assert!(used < 20 * MS, "{used} ns of CPU in 200 ms");
        Ok(())
    }

    #[test]
    fn the_waker_ends_a_wait_without_deadline() -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        let waker = waiter.waker();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            waker.wake()
        });
        assert_eq!(waiter.wait(None, NEVER_READY)?, Woken::Event);
        assert_eq!(waiter.events().collect::<Vec<_>>(), [WAKER]);
        other.join().expect("no panic")
    }

    #[test]
    fn a_check_that_is_always_true_does_not_starve_other_descriptors() -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        let (near, mut far) = UnixStream::pair()?;
        let fd = near.as_raw_fd();
        waiter.registry().register(&mut SourceFd(&fd), Token(7), Interest::READABLE)?;
        far.write_all(b"x")?;
        let give_up = monotonic_ns() + 5_000 * MS;
        while waiter.wait(None, || true)? == Woken::Ready {
            assert_eq!(waiter.events().count(), 0);
            assert!(monotonic_ns() < give_up, "the descriptor was never looked at");
        }
        assert_eq!(waiter.events().collect::<Vec<_>>(), [Token(7)]);
        assert_eq!(waiter.wait(None, || true)?, Woken::Ready, "told once");
        Ok(())
    }

    #[test]
    fn a_watched_socket_ends_the_sleep_through_the_check() -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        let (near, mut far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        waiter.watch_frames(&near);
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            far.write_all(b"x").map(|()| far)
        });
        let near = socket2::Socket::from(near);
        let mut byte = [core::mem::MaybeUninit::uninit()];
        assert_eq!(waiter.wait(None, || near.peek(&mut byte).is_ok())?, Woken::Ready);
        other.join().expect("no panic").map(|_| ())
    }
}
