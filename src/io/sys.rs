//! The system calls that the drivers need, as safe functions. This is the only
//! file with unsafe code: everything that touches memory shared with the
//! kernel or hands it pointers is here, and nothing else.
#![allow(unsafe_code)]

use core::fmt;
use core::mem::{size_of, zeroed};
use core::ops::Deref;
use core::ptr::{self, NonNull};
use core::slice;
use core::sync::atomic::{AtomicU32, Ordering};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use socket2::{Domain, SockAddr, SockAddrStorage, SockRef, Socket, Type};

/// The most frames that one call of [`send_many`] hands to the kernel.
pub(super) const SEND_BATCH: usize = 64;

/// The largest frame that a ring slot may be asked to hold, in bytes.
const MAX_FRAME_CAPACITY: usize = 65_536;

/// A ring is made of blocks of this many bytes: a multiple of every page size
/// in use (4 to 64 KiB). A slot never crosses from one block into the next.
const BLOCK_BYTES: usize = 256 << 10;

/// Where the Ethernet header starts in a TPACKET_V2 slot. The kernel puts the
/// network header at the next multiple of 16 after the slot's header, the
/// socket address and 16 bytes for a link header; Ethernet's is 14 bytes long.
const FRAME_OFFSET: usize = align_up(libc::TPACKET2_HDRLEN + 16) - 14;

/// `bytes` rounded up to the alignment of slots.
const fn align_up(bytes: usize) -> usize {
    bytes.next_multiple_of(libc::TPACKET_ALIGNMENT)
}

/// The answer of a system call that reports errors as -1.
fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub(super) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writes. The call cannot fail: every Linux has
    // this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// A disarmed, non-blocking timer on CLOCK_MONOTONIC.
pub(super) fn timer_create() -> io::Result<OwnedFd> {
    let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
    // SAFETY: the call takes no pointers.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Arms `timer` for one expiry at `at_ns` of CLOCK_MONOTONIC; 0 disarms it.
pub(super) fn timer_set(timer: &impl AsRawFd, at_ns: u64) -> io::Result<()> {
    let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let at = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    let setting = libc::itimerspec { it_interval: never, it_value: at };
    let (fd, flags) = (timer.as_raw_fd(), libc::TFD_TIMER_ABSTIME);
    // SAFETY: `setting` is valid for reads; a null old value is allowed.
    check(unsafe { libc::timerfd_settime(fd, flags, &raw const setting, ptr::null_mut()) })?;
    Ok(())
}

/// A file descriptor to wait for.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct PollFd(libc::pollfd);

impl PollFd {
    /// Waits until `fd` is readable.
    pub(super) const fn new(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
    }

    /// Which descriptor it is.
    pub(super) const fn fd(&self) -> RawFd {
        self.0.fd
    }

    /// Waits until it is readable or, if so, writable.
    pub(super) const fn set_writable(&mut self, too: bool) {
        self.0.events = if too { libc::POLLIN | libc::POLLOUT } else { libc::POLLIN };
    }

    /// Whether the last wait found it readable, writable or in error.
    pub(super) const fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Sleeps until one of `fds` is ready. The error of a socket (its interface went
/// down) is taken, so that it ends one wait and not all; a later send has its own.
pub(super) fn poll(fds: &mut [PollFd]) -> io::Result<()> {
    const FOREVER: libc::c_int = -1;
    let (first, count) = (fds.as_mut_ptr().cast::<libc::pollfd>(), fds.len() as libc::nfds_t);
    // SAFETY: `first` points to `count` structs, valid for reads and writes:
    // PollFd is a pollfd and nothing else.
    check(unsafe { libc::poll(first, count, FOREVER) })?;
    for entry in fds.iter().filter(|entry| entry.0.revents & libc::POLLERR != 0) {
        // SAFETY: the kernel has just known the descriptor as open.
        let socket = unsafe { BorrowedFd::borrow_raw(entry.0.fd) };
        SockRef::from(&socket).take_error()?;
    }
    Ok(())
}

/// The index of the interface `name` in this thread's network namespace.
pub(super) fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a string that ends in a zero byte.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// The MTU of the interface `name` in this thread's network namespace, in
/// bytes of IP datagram.
///
/// # Errors
/// ENODEV when there is no such interface.
pub fn interface_mtu(name: &str) -> io::Result<u32> {
    // SAFETY: all bytes zero is a valid ifreq: arrays of numbers and a null pointer.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // Any socket will do: it only says which network namespace is meant.
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    // SAFETY: the name ends in zero; the kernel reads it and writes the MTU
    // into `request`, which is valid for writes.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) })?;
    // SAFETY: the call has set this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(mtu.unsigned_abs())
}

/// The address to bind a packet socket to: every protocol on one interface.
pub(super) fn packet_address(interface: u32) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: sockaddr_ll is one of the platform's address types.
    let address = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    address.sll_family = libc::AF_PACKET as libc::sa_family_t;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as libc::c_int;
    // SAFETY: the storage was set up as a sockaddr_ll and the length is its.
    unsafe { SockAddr::new(storage, size_of::<libc::sockaddr_ll>() as libc::socklen_t) }
}

/// Makes `socket` blind to frames that this host sends.
pub(super) fn ignore_outgoing(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::PACKET_IGNORE_OUTGOING, 1 as libc::c_int)
}

/// Makes `socket` send past the interface's queueing discipline.
pub(super) fn bypass_qdisc(socket: &Socket) -> io::Result<()> {
    set_option(socket, libc::PACKET_QDISC_BYPASS, 1 as libc::c_int)
}

/// Has the interface hand over frames to any MAC address, as long as `socket` is
/// open.
pub(super) fn receive_all(socket: &Socket, interface: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: interface as libc::c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::PACKET_ADD_MEMBERSHIP, membership)
}

/// Frames that did not fit the ring since the last call.
pub(super) fn take_drops(socket: &Socket) -> io::Result<u32> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let fd = socket.as_raw_fd();
    // SAFETY: `stats` is valid for writes of `len` bytes, `len` for both.
    check(unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        )
    })?;
    Ok(stats.tp_drops)
}

/// Sets an option of the packet layer. `T` is a type without padding.
fn set_option<T: Copy>(socket: &Socket, option: libc::c_int, value: T) -> io::Result<()> {
    let (fd, len) = (socket.as_raw_fd(), size_of::<T>() as libc::socklen_t);
    let value = (&raw const value).cast();
    // SAFETY: `value` points to `len` initialized bytes that outlive the call.
    check(unsafe { libc::setsockopt(fd, libc::SOL_PACKET, option, value, len) })?;
    Ok(())
}

/// Sends the first [`SEND_BATCH`] of `frames`, or fewer, in order and without
/// blocking, and tells how many the kernel took. An error speaks of the first
/// frame; where a later one fails, the answer is the number before it.
pub(super) fn send_many(socket: &Socket, frames: &[impl AsRef<[u8]>]) -> io::Result<usize> {
    // SAFETY: both are plain C structs for which all zero is a value.
    let mut vectors: [libc::iovec; SEND_BATCH] = unsafe { zeroed() };
    // SAFETY: as above.
    let mut messages: [libc::mmsghdr; SEND_BATCH] = unsafe { zeroed() };
    for ((frame, vector), message) in frames.iter().zip(&mut vectors).zip(&mut messages) {
        let bytes = frame.as_ref();
        vector.iov_base = bytes.as_ptr().cast_mut().cast();
        vector.iov_len = bytes.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    let count = frames.len().min(SEND_BATCH) as libc::c_uint;
    let (fd, first) = (socket.as_raw_fd(), messages.as_mut_ptr());
    // SAFETY: the first `count` messages each point to one vector, and that to
    // the bytes of a frame; all outlive the call, which does not write to them.
    let sent = check(unsafe { libc::sendmmsg(fd, first, count, libc::MSG_DONTWAIT) })?;
    Ok(sent as usize)
}

/// How a ring is laid out in its mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    slot_bytes: usize,
    slots_per_block: usize,
    blocks: usize,
}

impl Geometry {
    /// Slots for `frames` frames or a few more (whole blocks) of up to
    /// `frame_capacity` bytes each.
    fn new(frame_capacity: usize, frames: usize) -> io::Result<Self> {
        if frame_capacity == 0 || frame_capacity > MAX_FRAME_CAPACITY || frames == 0 {
            let message = format!(
                "a ring holds 1 or more frames of 1 to {MAX_FRAME_CAPACITY} bytes, \
                 not {frames} of {frame_capacity}"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let slot_bytes = align_up(FRAME_OFFSET + frame_capacity);
        let slots_per_block = BLOCK_BYTES / slot_bytes;
        Ok(Self { slot_bytes, slots_per_block, blocks: frames.div_ceil(slots_per_block) })
    }

    /// How many slots there are.
    fn slots(&self) -> usize {
        self.blocks * self.slots_per_block
    }

    /// Where slot `index` starts in the mapping.
    fn offset(&self, index: usize) -> usize {
        let (block, slot) = (index / self.slots_per_block, index % self.slots_per_block);
        block * BLOCK_BYTES + slot * self.slot_bytes
    }

    /// The same as the kernel wants to hear it; `None` past the kernel's 4 GiB.
    fn request(&self) -> Option<libc::tpacket_req> {
        u32::try_from(self.blocks.checked_mul(BLOCK_BYTES)?).ok()?;
        Some(libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: self.blocks as u32,
            tp_frame_size: self.slot_bytes as u32,
            tp_frame_nr: self.slots() as u32,
        })
    }
}

/// What the kernel says about the frame in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameInfo {
    /// Where the frame starts in the slot and how many of its bytes are there.
    start: usize,
    len: usize,
    /// How long the frame was on the wire, in bytes.
    wire_len: usize,
    status: u32,
}

impl FrameInfo {
    /// True when the slot was too small for the frame.
    pub(super) fn is_truncated(&self) -> bool {
        self.len < self.wire_len
    }

    /// True when the kernel took a VLAN tag out of the frame.
    pub(super) fn lost_vlan_tag(&self) -> bool {
        self.status & libc::TP_STATUS_VLAN_VALID != 0
    }

    /// True when the sender left a checksum to hardware that is not there.
    pub(super) fn lacks_checksum(&self) -> bool {
        self.status & libc::TP_STATUS_CSUMNOTREADY != 0
    }
}

/// A TPACKET_V2 receive ring: memory shared with the kernel, which fills slots
/// in order. A slot's status word says whose it is: the kernel writes to a slot
/// only while the word is TP_STATUS_KERNEL, we read it only while
/// TP_STATUS_USER is set.
#[derive(Debug)]
pub(super) struct RxRing {
    base: NonNull<u8>,
    geometry: Geometry,
    /// The slot to be read next.
    head: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for RxRing {}

impl RxRing {
    /// Gives `socket` a ring of at least `frames` slots for frames of up to
    /// `frame_capacity` bytes (memory: some 100 bytes more each), and maps it.
    pub(super) fn map(socket: &Socket, frame_capacity: usize, frames: usize) -> io::Result<Self> {
        let geometry = Geometry::new(frame_capacity, frames)?;
        let request = geometry.request().ok_or(io::ErrorKind::OutOfMemory)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, libc::PACKET_VERSION, version)?;
        set_option(socket, libc::PACKET_RX_RING, request)?;
        let (len, fd) = (geometry.blocks * BLOCK_BYTES, socket.as_raw_fd());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice; it
        // overlaps nothing that Rust knows of.
        let base = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, geometry, head: 0 })
    }

    /// The slot to be read next.
    fn slot(&self) -> NonNull<libc::tpacket2_hdr> {
        // SAFETY: the head is below the number of slots, so that the whole
        // slot lies inside the mapping. Slots are aligned to 16 bytes.
        unsafe { self.base.add(self.geometry.offset(self.head)) }.cast()
    }

    /// The status word of the slot to be read next.
    fn status(&self) -> &AtomicU32 {
        let slot = self.slot().as_ptr();
        // SAFETY: the word is aligned and lives as long as the mapping; both
        // sides access it atomically while its slot may change hands.
        unsafe { AtomicU32::from_ptr(&raw mut (*slot).tp_status) }
    }

    /// The next frame that arrived, if there is one.
    pub(super) fn head(&self) -> Option<FrameInfo> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot().as_ptr();
        // SAFETY: the slot is ours, and was written before its status was.
        let (start, len, wire_len) =
            unsafe { ((*slot).tp_mac, (*slot).tp_snaplen, (*slot).tp_len) };
        let start = usize::from(start).min(self.geometry.slot_bytes);
        let len = (len as usize).min(self.geometry.slot_bytes - start);
        Some(FrameInfo { start, len, wire_len: wire_len as usize, status })
    }

    /// Borrows the next frame; its slot goes back when the borrow is dropped.
    pub(super) fn take(&mut self) -> Option<Received<'_>> {
        let FrameInfo { start, len, .. } = self.head()?;
        // SAFETY: `head` keeps `start` within the slot.
        let bytes = unsafe { self.slot().cast::<u8>().add(start) };
        Some(Received { ring: self, bytes, len })
    }

    /// Gives the slot at the head back to the kernel and steps to the next;
    /// does nothing when it is the kernel's already.
    pub(super) fn release(&mut self) {
        if self.head().is_some() {
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.head = (self.head + 1) % self.geometry.slots();
        }
    }
}

impl Drop for RxRing {
    fn drop(&mut self) {
        let len = self.geometry.blocks * BLOCK_BYTES;
        // SAFETY: this is the whole mapping, and no borrow of it is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), len) };
    }
}

/// A frame in the receive ring: its bytes from the Ethernet header on, without
/// frame check sequence. The slot goes back to the kernel on drop.
pub struct Received<'a> {
    ring: &'a mut RxRing,
    bytes: NonNull<u8>,
    len: usize,
}

impl Deref for Received<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `head` keeps the frame within its slot, which stays ours
        // until `release`; that needs the ring, which this value borrows.
        unsafe { slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Drop for Received<'_> {
    fn drop(&mut self) {
        self.ring.release();
    }
}

impl fmt::Debug for Received<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Received({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_their_capacity_and_stay_inside_blocks() {
        for capacity in [1, 60, 4_224, 9_018, MAX_FRAME_CAPACITY] {
            let ring = Geometry::new(capacity, 1_000).expect("allowed");
            assert!(ring.slots() >= 1_000);
            assert!(ring.slot_bytes >= FRAME_OFFSET + capacity);
            for index in 0..ring.slots() {
                let (first, last) = (ring.offset(index), ring.offset(index) + ring.slot_bytes - 1);
                assert_eq!(first / BLOCK_BYTES, last / BLOCK_BYTES, "slot {index} of {ring:?}");
                assert_eq!(first % 16, 0);
                assert!(last < ring.blocks * BLOCK_BYTES);
            }
        }
    }

    #[test]
    fn sizes_that_no_ring_can_have_are_refused() {
        for (capacity, frames) in [(0, 1), (1, 0), (MAX_FRAME_CAPACITY + 1, 1)] {
            assert!(Geometry::new(capacity, frames).is_err());
        }
        let huge = Geometry::new(9_018, usize::MAX / 2).expect("counted only");
        assert!(huge.request().is_none());
    }
}
