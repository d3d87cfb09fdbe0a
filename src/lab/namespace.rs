//! One node's network namespace, held open.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::error::{LabError, while_doing};
use super::sys;

/// Where `ip netns` keeps the names of namespaces.
const NAMES_DIR: &str = "/var/run/netns";

/// Kernel settings of every node's namespace, below /proc/sys/net. `*` stands
/// for every entry of the directory: `all`, `default` and each interface.
/// `ip_forward` comes first, because turning it off resets others.
const SETTINGS: [(&str, &str, &str); 4] = [
    // The switch daemon forwards, not the kernel behind it.
    ("ipv4", "ip_forward", "0"),
    // Replies may come over another path than the one the kernel would take.
    ("ipv4/conf/*", "rp_filter", "0"),
    // No announcements when an interface comes up...
    ("ipv4/conf/*", "arp_notify", "0"),
    // ... and no solicitations: an idle lab carries no frame.
    ("ipv6/conf/*", "disable_ipv6", "1"),
];

/// The path of the name of a namespace, for `ip netns` and for us.
pub(super) fn name_path(name: &str) -> PathBuf {
    Path::new(NAMES_DIR).join(name)
}

/// What the kernel counted on one interface since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InterfaceCounters {
    /// Frames received.
    pub rx_packets: u64,
    /// Received frames that the kernel dropped.
    pub rx_dropped: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Frames that were to be sent and that the kernel dropped.
    pub tx_dropped: u64,
}

/// An open network namespace of a lab. It lasts as long as this handle, a
/// process in it or its name.
#[derive(Debug)]
pub struct NamespaceHandle {
    name: String,
    file: File,
}

impl NamespaceHandle {
    /// Opens the namespace that `ip netns` knows as `name`.
    pub(super) fn open(name: &str) -> Result<Self, LabError> {
        let path = name_path(name);
        let file = File::open(&path).map_err(while_doing(format!("open {}", path.display())))?;
        Ok(Self { name: name.to_owned(), file })
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` with the calling thread in this namespace, and moves the
    /// thread back: sockets that `work` opens and processes that it starts stay
    /// in this namespace. Other threads are not moved.
    ///
    /// # Errors
    /// When the kernel refuses to move the thread; `work` has then not run.
    ///
    /// # Panics
    /// When the kernel refuses to move the thread back, rather than go on in the
    /// wrong place.
    pub fn enter_scope<T>(&self, work: impl FnOnce() -> T) -> Result<T, LabError> {
        let home = File::open("/proc/thread-self/ns/net")
            .map_err(while_doing("open this thread's network namespace"))?;
        sys::set_network_namespace(self.file.as_fd())
            .map_err(while_doing(format!("enter namespace {}", self.name)))?;
        let _return = ReturnTo(home);
        Ok(work())
    }

    /// Writes the kernel settings that a lab needs: no reverse path filter, no
    /// forwarding, no IPv6, no announcements, for all interfaces that there are
    /// or will be. [`super::Network::build`] has done so already.
    ///
    /// # Errors
    /// When a setting cannot be written.
    pub fn apply_kernel_settings(&self) -> Result<(), LabError> {
        self.enter_scope(|| {
            SETTINGS.iter().try_for_each(|(dir, setting, value)| write_setting(dir, setting, value))
        })?
    }

    /// What the kernel counted on `interface`.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn interface_counters(&self, interface: &str) -> Result<InterfaceCounters, LabError> {
        let table = self
            .enter_scope(|| fs::read_to_string("/proc/thread-self/net/dev"))?
            .map_err(while_doing("read /proc/thread-self/net/dev"))?;
        parse_counters(&table, interface).ok_or_else(|| LabError::Io {
            doing: format!("read the counters of {interface} in {}", self.name),
            source: io::ErrorKind::NotFound.into(),
        })
    }
}

impl AsFd for NamespaceHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Moves the thread back when dropped, also when the work in between panics.
struct ReturnTo(File);

impl Drop for ReturnTo {
    fn drop(&mut self) {
        if let Err(error) = sys::set_network_namespace(self.0.as_fd()) {
            panic!("cannot return to the network namespace the thread came from: {error}");
        }
    }
}

/// Writes one of [`SETTINGS`]; a protocol that the kernel lacks needs none.
fn write_setting(dir: &str, setting: &str, value: &str) -> Result<(), LabError> {
    let dir = Path::new("/proc/sys/net").join(dir);
    let Some(parent) = dir.parent().filter(|_| dir.ends_with("*")) else {
        return write_file(&dir.join(setting), value);
    };
    if !parent.exists() {
        return Ok(());
    }
    let reading = || format!("read {}", parent.display());
    for entry in fs::read_dir(parent).map_err(while_doing(reading()))? {
        let entry = entry.map_err(while_doing(reading()))?;
        write_file(&entry.path().join(setting), value)?;
    }
    Ok(())
}

fn write_file(path: &Path, value: &str) -> Result<(), LabError> {
    fs::write(path, value).map_err(while_doing(format!("write {value} to {}", path.display())))
}

/// Reads the line of `interface` in the text of /proc/net/dev.
fn parse_counters(table: &str, interface: &str) -> Option<InterfaceCounters> {
    let line = table.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == interface).then_some(counters)
    })?;
    // bytes packets errs drop fifo frame compressed multicast, received then sent
    let column = |index: usize| line.split_whitespace().nth(index)?.parse().ok();
    Some(InterfaceCounters {
        rx_packets: column(1)?,
        rx_dropped: column(3)?,
        tx_packets: column(9)?,
        tx_dropped: column(11)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  mrc1:    4170       1    0    2    0     0          0         0     8340       3    0    4    0     0       0          0
";

    #[test]
    fn counters_are_read_from_the_line_of_the_interface() {
        let want = InterfaceCounters { rx_packets: 1, rx_dropped: 2, tx_packets: 3, tx_dropped: 4 };
        assert_eq!(parse_counters(TABLE, "mrc1"), Some(want));
        assert_eq!(parse_counters(TABLE, "lo"), Some(InterfaceCounters::default()));
        assert_eq!(parse_counters(TABLE, "mrc"), None);
        assert_eq!(parse_counters("mrc1: 1 2 3", "mrc1"), None);
    }
}
