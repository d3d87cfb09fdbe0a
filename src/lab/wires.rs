//! The exact clock over real wires: every frame crosses its veth pair, and
//! what a node gets is what was read from the far end's ring.

use std::collections::BTreeMap;
use std::thread;

use super::error::{LabError, while_doing};
use super::network::Network;
use crate::io::clock::monotonic_ns;
use crate::io::{PacketSocket, PacketSocketOptions};
use crate::node::{Frame, FramePool};
use crate::scenario::{End, Topology};
use crate::sim::{Carrier, CarryError};

/// One end of a wire.
#[derive(Debug)]
struct WireEnd {
    socket: PacketSocket,
    /// `interface mrc0 of a`.
    name: String,
}

/// A packet socket on each veth end of a network, all in this process.
// spec: TIME-5
#[derive(Debug)]
pub struct Wires {
    ends: BTreeMap<End, WireEnd>,
    strays: u64,
}

impl Wires {
    /// How long a frame may take to cross before it counts as lost, in nanoseconds.
    const PATIENCE_NS: u64 = 1_000_000_000;
    /// Frames are read as soon as they are sent, so few wait in a ring.
    const RING_FRAMES: usize = 64;

    /// Opens both ends of every link.
    ///
    /// # Errors
    /// When a namespace cannot be entered or a socket cannot be opened.
    pub fn open(network: &Network, topology: &Topology) -> Result<Self, LabError> {
        let mut ends = BTreeMap::new();
        for (index, link) in topology.links.iter().enumerate() {
            let Some(interfaces) = network.interfaces(index) else { continue };
            let options = PacketSocketOptions {
                frame_capacity: link.mtu as usize + 14,
                ring_frames: Self::RING_FRAMES,
                ..PacketSocketOptions::default()
            };
            for (end, interface) in link.ends.iter().zip(interfaces) {
                let node = &topology.nodes[end.node.0 as usize].name;
                let name = format!("interface {interface} of {node}");
                let Some(namespace) = network.namespace(node) else { continue };
                let socket = namespace
                    .enter_scope(|| PacketSocket::open(interface, &options))?
                    .map_err(while_doing(format!("open a packet socket on {name}")))?;
                ends.insert(*end, WireEnd { socket, name });
            }
        }
        Ok(Self { ends, strays: 0 })
    }

    fn end(&mut self, end: End) -> Result<&mut WireEnd, CarryError> {
        self.ends.get_mut(&end).ok_or_else(|| CarryError(format!("{end:?} has no interface")))
    }

    /// That a frame from `from` is not at `to`, and what became of it. An end
    /// that is down keeps its peer from sending, so both are named.
    fn lost(&mut self, from: End, to: End, what: &str) -> CarryError {
        let mut name = |end| self.end(end).map_or_else(|e| e.to_string(), |end| end.name.clone());
        let (sender, receiver) = (name(from), name(to));
        CarryError(format!("a frame from {sender} to {receiver} {what}; was either set down?"))
    }
}

impl Carrier for Wires {
    fn carry(
        &mut self,
        from: End,
        to: End,
        frame: Frame,
        frames: &mut FramePool,
    ) -> Result<Frame, CarryError> {
        if let Err(error) = self.end(from)?.socket.send(&frame) {
            return Err(self.lost(from, to, &format!("could not be sent ({error})")));
        }
        let sent_at = monotonic_ns();
        loop {
            let received = self.end(to)?.socket.receive().map(|received| {
                // What arrives is read from the ring, not taken for what was sent.
                frames.copy_of(&received)
            });
            if let Some(arrived) = received {
                if arrived == frame {
                    frames.give(frame);
                    return Ok(arrived);
                }
                frames.give(arrived);
                self.strays += 1;
            } else if monotonic_ns() - sent_at > Self::PATIENCE_NS {
                return Err(self.lost(from, to, "did not arrive"));
            } else {
                thread::yield_now();
            }
        }
    }

    fn strays(&self) -> u64 {
        self.strays
    }
}
