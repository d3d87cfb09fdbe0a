//! The wall clock: the event loop that runs a node on packet sockets, and what
//! it needs from the host: deadlines, the mapping between protocol time and the
//! host's clock, the policy of waiting, and the measure of how late it was.
//!
//! ```text
//!   EventLoop      one node on packet sockets, in the wall clock
//!   Driver         its pure half: one node in late time
//!   PacketSocket   frames in through a mapped ring, out through sendmmsg
//!   Waiter         yields a bounded time, then blocks; spins up to deadlines
//!   WallClock      CLOCK_MONOTONIC <-> protocol time
//!   Lateness       scheduled against actual
//!   HostErrors     send errors of the host by name
//!   Interface      what this host's interfaces are called, and who is on their links
//!   GuardSocket    keeps the kernel from answering packets that are not for it
//! ```
//!
//! Nothing here knows the protocol; a node is anything that is a `Node`. Unsafe
//! code lives in one file, `sys`.

pub mod clock;
pub mod driver;
pub mod event_loop;
pub mod guard;
pub mod host_errors;
pub mod interface;
pub mod lateness;
mod outgoing;
pub mod packet_socket;
mod port;
mod sys;
pub mod timer;
pub mod waiter;

pub use clock::WallClock;
pub use driver::Driver;
pub use event_loop::{EventLoop, IoReport, PortIo, PortReport};
pub use guard::GuardSocket;
pub use host_errors::HostErrors;
pub use interface::Interface;
pub use lateness::Lateness;
pub use outgoing::Outgoing;
pub use packet_socket::{BatchResult, OddFrames, PacketSocket, PacketSocketOptions, Received};
pub use sys::interface_mtu;
pub use timer::DeadlineTimer;
pub use waiter::{Waiter, Watched, Woken};
