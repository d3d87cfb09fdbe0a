//! One end of a veth pair as a pair of queues of Ethernet frames: received
//! through a ring mapped from the kernel (TPACKET_V2), sent with sendmmsg.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use socket2::{Domain, Socket, Type};

pub use super::sys::Received;
use super::sys::{self, FrameInfo, RxRing};

/// How to open a [`PacketSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketSocketOptions {
    /// The longest frame that can be received, in bytes from the Ethernet
    /// header on (1 to 65,536). The default of 4,224 holds an MTU of 4,200;
    /// jumbo frames need 9,018.
    pub frame_capacity: usize,
    /// How many frames the receive ring holds before the kernel drops: at
    /// least this many, 1,024 by default (4.3 MiB of kernel memory). The kernel
    /// goes round the whole ring: one that does not fit the caches has every
    /// frame come from memory.
    pub ring_frames: usize,
    /// Whether to send past the interface's queueing discipline. Off by
    /// default: frames sent so are invisible to captures on the sending
    /// interface and untouched by `tc`, and over veth it is hardly faster.
    pub qdisc_bypass: bool,
    /// Whether the hardware is to hand over frames to any MAC address, as it has
    /// to for a NIC with an address of its own. Off by default: veth ends have
    /// no filter.
    pub promiscuous: bool,
}

impl Default for PacketSocketOptions {
    fn default() -> Self {
        Self { frame_capacity: 4_224, ring_frames: 1_024, qdisc_bypass: false, promiscuous: false }
    }
}

/// How far a batch got.
#[derive(Debug)]
pub struct BatchResult {
    /// How many frames were sent: the first so many of the batch.
    pub sent: usize,
    /// Why the frame after those was not; `None` when all were sent.
    pub error: Option<io::Error>,
}

/// Frames with something odd about them, counted since the socket was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OddFrames {
    /// Longer than the socket's frame capacity: not handed over.
    pub truncated: u64,
    /// Had a VLAN tag, which the kernel cuts out: not handed over.
    pub vlan_tagged: u64,
    /// Handed over with a transport checksum that its sender left to hardware;
    /// its sender needs `ethtool -K ... tx off`.
    pub checksum_unfinished: u64,
}

impl OddFrames {
    /// Counts what is odd about a frame, and tells whether its bytes are those
    /// that were on the wire.
    fn admit(&mut self, frame: &FrameInfo) -> bool {
        self.truncated += u64::from(frame.is_truncated());
        self.vlan_tagged += u64::from(frame.lost_vlan_tag());
        self.checksum_unfinished += u64::from(frame.lacks_checksum());
        !frame.is_truncated() && !frame.lost_vlan_tag()
    }
}

/// A raw packet socket bound to one interface. It receives every frame that
/// arrives there, whatever its destination address, and none that this host
/// sends. It never blocks; [`AsRawFd`] is for waiting until frames arrive.
#[derive(Debug)]
pub struct PacketSocket {
    ring: RxRing,
    socket: Socket,
    interface: String,
    odd: OddFrames,
    drops: u64,
}

impl PacketSocket {
    /// Opens a socket on `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// When there is no such interface, when CAP_NET_RAW is missing, when the
    /// ring cannot be had (sizes or memory). The message names the step.
    pub fn open(interface: &str, options: &PacketSocketOptions) -> io::Result<Self> {
        let during = |step: &'static str| {
            move |e: io::Error| io::Error::new(e.kind(), format!("{interface}: {step}: {e}"))
        };
        let index = sys::interface_index(interface).map_err(during("finding the interface"))?;
        // Without a protocol a socket receives nothing. It gets one when it is
        // bound, so that no frame slips in before the options hold.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None)
            .map_err(during("opening a packet socket"))?;
        socket.set_nonblocking(true)?;
        sys::ignore_outgoing(&socket).map_err(during("ignoring frames sent here"))?;
        if options.qdisc_bypass {
            sys::bypass_qdisc(&socket).map_err(during("bypassing the qdisc"))?;
        }
        if options.promiscuous {
            sys::receive_all(&socket, index).map_err(during("receiving for all addresses"))?;
        }
        let ring = RxRing::map(&socket, options.frame_capacity, options.ring_frames)
            .map_err(during("mapping the receive ring"))?;
        socket.bind(&sys::packet_address(index)).map_err(during("binding"))?;
        let (interface, odd) = (interface.to_owned(), OddFrames::default());
        Ok(Self { ring, socket, interface, odd, drops: 0 })
    }

    /// The interface's name.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Whether the ring holds anything to receive. Makes no system call.
    pub fn has_frames(&self) -> bool {
        self.ring.head().is_some()
    }

    /// The next frame, borrowed from the ring. Makes no system call.
    ///
    /// Frames whose bytes are not those of the wire (truncated, untagged by
    /// the kernel) are counted and skipped.
    pub fn receive(&mut self) -> Option<Received<'_>> {
        while !self.odd.admit(&self.ring.head()?) {
            self.ring.release();
        }
        self.ring.take()
    }

    /// Sends one frame: 14 bytes or more, from the Ethernet header on.
    ///
    /// # Errors
    /// The host's refusal (ENOBUFS, EAGAIN, ENETDOWN, EMSGSIZE, ...): the frame
    /// is lost as on a wire; later ones may pass. An interface that was down
    /// shows once more in the first send after it came up.
    // spec: REL-7
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame).map(|_| ())
    }

    /// Sends `frames` in order, 64 to a system call, until one is refused.
    // spec: REL-7
    pub fn send_batch(&mut self, frames: &[impl AsRef<[u8]>]) -> BatchResult {
        let mut sent = 0;
        while sent < frames.len() {
            match sys::send_many(&self.socket, &frames[sent..]) {
                Ok(taken) => sent += taken,
                Err(error) => return BatchResult { sent, error: Some(error) },
            }
        }
        BatchResult { sent, error: None }
    }

    /// Frames that the kernel dropped because the ring was full, since the
    /// socket was opened.
    ///
    /// # Errors
    /// When the kernel does not answer.
    // spec: REL-8, TIME-6
    pub fn kernel_drops(&mut self) -> io::Result<u64> {
        // Reading resets the kernel's counter.
        self.drops += u64::from(sys::take_drops(&self.socket)?);
        Ok(self.drops)
    }

    /// Odd frames since the socket was opened.
    pub fn odd_frames(&self) -> OddFrames {
        self.odd
    }
}

impl AsRawFd for PacketSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
