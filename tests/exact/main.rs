//! The protocol in the exact clock: figures to the picosecond, faults, hostile
//! peers.

mod acks;
mod bench;
mod buffers;
mod cases;
mod closing;
mod dying;
mod figures;
mod golden;
mod hostile;
mod lab;
mod limits;
mod loss;
mod marking;
mod nacks;
mod pcie;
mod peer;
mod receiving;
mod scheduling;
mod segmentation;
mod swarm;
mod thirteen_lanes;
mod timers;
mod walk;
mod window;
mod wiretap;
