//! System calls that std does not offer, behind safe functions: the only file
//! of the lab with `unsafe` in it.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The number of CAP_NET_RAW, from linux/capability.h.
const CAP_NET_RAW: u32 = 13;

/// How a mount point is to be attached or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mount {
    /// Make this mount and all below it private to this mount namespace.
    PrivateTree,
    /// Attach a new, empty tmpfs of mode 0755.
    Tmpfs,
    /// Make an existing mount writable.
    Writable,
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "path holds a zero byte"))
}

/// The effective user id of this process.
pub(super) fn effective_uid() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// The effective group id of this process.
pub(super) fn effective_gid() -> u32 {
    // SAFETY: getegid takes nothing and cannot fail.
    unsafe { libc::getegid() }
}

/// Moves this process into new namespaces; `flags` are `libc::CLONE_NEW*`.
pub(super) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: unshare reads no memory of ours.
    check(unsafe { libc::unshare(flags) })
}

/// Moves this process, which has one thread, into `namespace`; `kind` is its
/// `libc::CLONE_NEW*`.
pub(super) fn join_namespace(namespace: BorrowedFd<'_>, kind: c_int) -> io::Result<()> {
    set_namespace(namespace.as_raw_fd(), kind)
}

/// Makes the child of `command` the leader of a session without a terminal.
pub(super) fn lead_a_session(command: &mut Command) {
    // SAFETY: the closure makes one system call and touches no memory: nothing
    // that is forbidden between fork and exec.
    unsafe { command.pre_exec(|| check(libc::setsid())) };
}

/// Moves the calling thread into the network namespace `namespace`.
pub(super) fn set_network_namespace(namespace: BorrowedFd<'_>) -> io::Result<()> {
    set_namespace(namespace.as_raw_fd(), libc::CLONE_NEWNET)
}

fn set_namespace(namespace: RawFd, kind: c_int) -> io::Result<()> {
    // SAFETY: setns reads no memory of ours; a stale descriptor is an error, not a fault.
    check(unsafe { libc::setns(namespace, kind) })
}

/// Attaches or changes the mount at `target`.
pub(super) fn mount(how: Mount, target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    let (kind, flags, options): (&CStr, _, &CStr) = match how {
        Mount::PrivateTree => (c"none", libc::MS_REC | libc::MS_PRIVATE, c""),
        Mount::Tmpfs => (c"tmpfs", libc::MS_NOSUID | libc::MS_NODEV, c"mode=0755"),
        Mount::Writable => (c"none", libc::MS_REMOUNT | libc::MS_BIND, c""),
    };
    let source = c"mrc-lab".as_ptr();
    let data = options.as_ptr().cast::<c_void>();
    // SAFETY: all four pointers are to strings that end in zero and outlive the call.
    check(unsafe { libc::mount(source, target.as_ptr(), kind.as_ptr(), flags, data) })
}

/// Detaches the mount at `target`; it goes away when its last user does.
pub(super) fn detach(target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: the pointer is to a string that ends in zero and outlives the call.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) })
}

/// Makes the child of `command` receive SIGKILL when the thread that spawned
/// it ends, however that ends.
pub(super) fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    // SAFETY: the closure makes two system calls and touches no memory but its
    // own copy of `parent`: nothing that is forbidden between fork and exec.
    unsafe { command.pre_exec(move || bind_life_to(parent)) };
}

/// Sends `signal` to every process of the group that `leader` leads or has led
/// until just now; a group that is empty needs none.
pub(super) fn signal_group(leader: u32, signal: c_int) {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    unsafe { libc::kill(-(leader as libc::pid_t), signal) };
}

/// Makes the child of `command` start in the network namespace `namespace`,
/// a descriptor that has to stay open until the child is spawned.
pub(super) fn start_in_namespace(command: &mut Command, namespace: BorrowedFd<'_>) {
    let namespace = namespace.as_raw_fd();
    // SAFETY: the closure makes one system call and touches no memory but its
    // own copy of the number: nothing that is forbidden between fork and exec.
    unsafe { command.pre_exec(move || set_namespace(namespace, libc::CLONE_NEWNET)) };
}

fn bind_life_to(parent: u32) -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as c_ulong)?;
    // A parent that ended before the call above sends no signal any more.
    if std::os::unix::process::parent_id() == parent {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// One of prctl's options that take a number and point to nothing.
fn prctl(option: c_int, argument: c_ulong) -> io::Result<()> {
    let zero: c_ulong = 0;
    // SAFETY: the options used here read four numbers and no memory.
    check(unsafe { libc::prctl(option, argument, zero, zero, zero) })
}

/// An offload: its name in `ethtool -K` and the ioctl commands that read and
/// write it.
struct Offload {
    name: &'static str,
    get: u32,
    set: u32,
}

/// What makes a frame on a veth differ from a frame on a wire: unfinished
/// checksums and frames that were never cut or were glued together.
/// Commands from linux/ethtool.h.
const OFFLOADS: [Offload; 5] = [
    Offload { name: "tso", get: 0x1e, set: 0x1f },
    Offload { name: "gso", get: 0x23, set: 0x24 },
    Offload { name: "gro", get: 0x2b, set: 0x2c },
    Offload { name: "tx", get: 0x16, set: 0x17 },
    Offload { name: "rx", get: 0x14, set: 0x15 },
];

/// `struct ethtool_value` of linux/ethtool.h.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns off segmentation (`tso`, `gso`), gluing (`gro`) and checksum (`tx`,
/// `rx`) offloads of `interface` in the calling thread's network namespace.
/// An offload that the interface does not know is off already.
pub(super) fn disable_offloads(interface: &str) -> io::Result<()> {
    let socket = control_socket()?;
    for offload in &OFFLOADS {
        ethtool(&socket, interface, offload.set, 0)?;
    }
    Ok(())
}

/// The names, as `ethtool -K` spells them, of those of `tso`, `gso`, `gro`,
/// `tx` and `rx` that are on at `interface` in the calling thread's network
/// namespace.
///
/// # Errors
/// ENODEV when there is no such interface.
pub fn active_offloads(interface: &str) -> io::Result<Vec<&'static str>> {
    let socket = control_socket()?;
    let mut active = Vec::new();
    for offload in &OFFLOADS {
        if ethtool(&socket, interface, offload.get, 0)? != 0 {
            active.push(offload.name);
        }
    }
    Ok(active)
}

/// Whether `interface` in the calling thread's network namespace has a carrier.
/// The kernel lets it send only after it has noticed a new carrier, up to a
/// second later; asking makes it notice now.
pub(super) fn notice_carrier(interface: &str) -> io::Result<bool> {
    /// `ETHTOOL_GLINK` of linux/ethtool.h.
    const GET_LINK: u32 = 0x0a;
    Ok(ethtool(&control_socket()?, interface, GET_LINK, 0)? != 0)
}

/// A socket to send interface ioctls to; it belongs to the calling thread's
/// network namespace.
fn control_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket reads no memory of ours.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(fd)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// One ethtool command with one value in and out; 0 when it is not supported.
fn ethtool(socket: &OwnedFd, interface: &str, command: u32, data: u32) -> io::Result<u32> {
    let mut value = EthtoolValue { command, data };
    // SAFETY: all bytes zero is a valid ifreq: arrays of numbers and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the name ends in zero; the kernel reads and writes one
    // ethtool_value through ifru_data, and `value` outlives the call.
    let done = check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &request) });
    match done {
        Ok(()) => Ok(value.data),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(0),
        Err(error) => Err(error),
    }
}

/// `struct __user_cap_header_struct` of linux/capability.h.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

/// `struct __user_cap_data_struct`: 32 capabilities of each set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityWord {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3`: two words, low one first.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Gives up every capability of the calling thread but CAP_NET_RAW (kept if it
/// was there), for good: the bounding and ambient sets go too, and no program
/// started later gains any. Call it before other threads start, which would
/// keep theirs.
///
/// # Errors
/// What the kernel says; capabilities may then be partly dropped.
// spec: REL-9
pub fn drop_capabilities_but_net_raw() -> io::Result<()> {
    drop_capabilities_but(1 << CAP_NET_RAW)
}

/// Goes on as an ordinary user: the calling thread's user and group become
/// `uid` and `gid` for good, it is in no other group, and it has no capability
/// and never gets one again. Call it before other threads start, which would
/// stay what they are.
///
/// # Errors
/// EPERM without CAP_SETUID and CAP_SETGID, EINVAL when this user namespace has
/// no such user; the change may then be partly done.
// spec: REL-9
pub fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: with a length of 0 the call reads nothing.
    check(unsafe { libc::setgroups(0, std::ptr::null()) })?;
    // What could be gained back goes first: that takes a capability.
    drop_bounding_set(0)?;
    // SAFETY: these take numbers only.
    check(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: as above.
    check(unsafe { libc::setresuid(uid, uid, uid) })?;
    // Leaving user 0 loses them, but whoever was no user 0 still has them.
    drop_capabilities_but(0)
}

/// Gives up what is not in `kept`, a set of the first 32 capabilities.
fn drop_capabilities_but(kept: u32) -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)?;
    drop_bounding_set(kept)?;
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut words = [CapabilityWord::default(); 2];
    // SAFETY: version 3 of the call writes two words, which `words` has.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) };
    check(got as c_int)?;
    let kept = words[0].permitted & kept;
    // An empty inheritable set empties the ambient one.
    let low = CapabilityWord { effective: kept, permitted: kept, inheritable: 0 };
    let words = [low, CapabilityWord::default()];
    // SAFETY: version 3 of the call reads two words, which `words` has.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, words.as_ptr()) };
    check(set as c_int)
}

/// Drops all but those in `kept` from the bounding set. A process that may not
/// (EPERM: an ordinary user's) has nothing that the set could give it.
fn drop_bounding_set(kept: u32) -> io::Result<()> {
    for capability in (0..u64::BITS).filter(|&number| u64::from(kept) >> number & 1 == 0) {
        let dropped = prctl(libc::PR_CAPBSET_DROP, c_ulong::from(capability));
        match dropped.as_ref().map_err(io::Error::raw_os_error) {
            Ok(()) => {}
            // EINVAL: past the last capability that this kernel knows.
            Err(Some(libc::EINVAL | libc::EPERM)) => return Ok(()),
            Err(_) => return dropped,
        }
    }
    Ok(())
}
