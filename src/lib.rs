//! Multipath Reliable Connection (MRC) in userspace: a NIC and a switch as
//! plain structs that take frames and the time and give back frames, deadlines
//! and events, and the drivers that run them.
//!
//! Imports go down only:
//!
//! ```text
//!             cli (the binary)
//!      daemon      lab            processes, namespaces, control socket
//!   sim   io   capture  record    drivers and outputs
//!   nic   switch   scenario   workload   the system itself, pure
//!   wire   node   trace   config  bytes, the one contract, the one event schema
//!   time   units   rng
//! ```

pub mod rng;
pub mod time;
pub mod units;

pub mod config;
pub mod node;
pub mod trace;
pub mod wire;

pub mod nic;
pub mod scenario;
pub mod switch;
pub mod workload;

pub mod capture;
pub mod io;
pub mod record;
pub mod sim;

pub mod daemon;
pub mod lab;
