//! A frame of full size over a link.

use std::io;

use super::Finding;
use crate::io::clock::monotonic_ns;
use crate::io::{PacketSocket, PacketSocketOptions};
use crate::lab::error::{LabError, while_doing};
use crate::lab::namespace::NamespaceHandle;
use crate::wire::packet::ETHERNET;

/// How long a frame may take, in nanoseconds.
const PATIENCE_NS: u64 = 500_000_000;
/// The EtherType for local experiments (IEEE 802), which no node answers and no
/// router cuts in pieces.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
/// Nobody's MAC address, locally administered.
const NOBODY: [u8; 6] = [0x02, 0, 0, 0xff, 0xff, 0xff];

/// Sends a frame of `mtu` bytes and its Ethernet header from each of `sides` to
/// the other.
pub(super) fn full_size(
    mtu: u32,
    sides: [(&NamespaceHandle, &str); 2],
) -> Result<Option<Finding>, LabError> {
    let [near, far] = sides;
    for ((from, from_name), (to, to_name)) in [(near, far), (far, near)] {
        let open = |(namespace, name): (&NamespaceHandle, &str)| {
            let frame_capacity = (mtu as usize + ETHERNET).min(65_536);
            let options = PacketSocketOptions {
                frame_capacity,
                ring_frames: 64,
                ..PacketSocketOptions::default()
            };
            let doing = format!("open {name} in {}", namespace.name());
            namespace
                .enter_scope(|| PacketSocket::open(name, &options))?
                .map_err(while_doing(doing))
        };
        let mut sender = open((from, from_name))?;
        let mut receiver = open((to, to_name))?;
        let mut frame = [&NOBODY[..], &NOBODY, &EXPERIMENTAL].concat();
        frame.resize(mtu as usize + ETHERNET, 0x5a);
        if let Some(why) = lost(&mut sender, &mut receiver, &frame) {
            return Ok(Some(Finding::bad(
                "full-size frame",
                format!(
                    "{} bytes from {} {from_name} to {} {to_name}: {why}; look at the MTU of both, \
                     and that both are up (ip -n NODE link)",
                    frame.len(),
                    from.name(),
                    to.name()
                ),
            )));
        }
    }
    Ok(None)
}

/// Why `frame` did not arrive; `None` when it did.
fn lost(sender: &mut PacketSocket, receiver: &mut PacketSocket, frame: &[u8]) -> Option<String> {
    if let Err(error) = sender.send(frame) {
        return Some(match error.raw_os_error() {
            Some(libc::EMSGSIZE) => "too long for the sending end".to_owned(),
            _ => error.to_string(),
        });
    }
    let give_up = monotonic_ns() + PATIENCE_NS;
    while monotonic_ns() < give_up {
        while let Some(received) = receiver.receive() {
            if received[..] == *frame {
                return None;
            }
        }
        std::thread::yield_now();
    }
    Some(io::Error::from(io::ErrorKind::TimedOut).to_string())
}
