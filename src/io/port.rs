//! A socket with what an event loop counts and remembers of it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::event_loop::PortReport;
use super::host_errors::HostErrors;
use super::outgoing::Outgoing;
use super::packet_socket::{BatchResult, PacketSocket, Received};
use super::waiter::Waiter;

/// One port's socket.
#[derive(Debug)]
pub(super) struct Port {
    socket: PacketSocket,
    sent: u64,
    received: u64,
    errors: HostErrors,
    /// Its send buffer was full at the last attempt.
    blocked: bool,
}

/// How far a port got with its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendOutcome {
    /// The first so many are with the kernel.
    pub sent: usize,
    /// The first so many are with the kernel or lost.
    pub gone: usize,
    /// The next one waits until the socket has room.
    pub is_blocked: bool,
}

impl Port {
    pub(super) fn new(socket: PacketSocket) -> Self {
        Self { socket, sent: 0, received: 0, errors: HostErrors::default(), blocked: false }
    }

    /// Has frames that arrive end a wait.
    pub(super) fn watch(&self, waiter: &mut Waiter) {
        waiter.watch_frames(&self.socket);
    }

    /// Has room in the send buffer end a wait too, or no longer.
    pub(super) fn watch_room(&mut self, waiter: &mut Waiter, blocked: bool) {
        if self.blocked != blocked {
            self.blocked = blocked;
            waiter.watch_room(&self.socket, blocked);
        }
    }

    /// The socket once more.
    pub(super) fn duplicate_socket(&self) -> io::Result<OwnedFd> {
        self.socket.as_fd().try_clone_to_owned()
    }

    /// Whether an attempt to send now is vain.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Whether there is anything to receive.
    pub(super) fn has_frames(&self) -> bool {
        self.socket.has_frames()
    }

    /// The next frame that arrived.
    pub(super) fn receive(&mut self) -> Option<Received<'_>> {
        let frame = self.socket.receive()?;
        self.received += 1;
        Some(frame)
    }

    /// Sends `frames` in order until one is refused. Such a frame is counted
    /// and lost; when `waits` and the send buffer is full, it is left to be
    /// sent later, and counted when the wait begins.
    // spec: REL-7
    pub(super) fn send(&mut self, frames: &[Outgoing], waits: bool) -> SendOutcome {
        let BatchResult { sent, error } = self.socket.send_batch(frames);
        self.sent += sent as u64;
        let Some(error) = error else {
            return SendOutcome { sent, gone: sent, is_blocked: false };
        };
        let is_blocked = waits && error.kind() == io::ErrorKind::WouldBlock;
        if !(is_blocked && self.blocked) {
            self.errors.record(&error);
        }
        SendOutcome { sent, gone: sent + usize::from(!is_blocked), is_blocked }
    }

    // spec: REL-8
    pub(super) fn report(&mut self) -> io::Result<PortReport> {
        Ok(PortReport {
            interface: self.socket.interface().to_owned(),
            sent: self.sent,
            received: self.received,
            host_errors: self.errors.clone(),
            kernel_drops: self.socket.kernel_drops()?,
            odd: self.socket.odd_frames(),
        })
    }
}
