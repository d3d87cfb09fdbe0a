//! What the host answers when it does not take a frame. Such an error is a
//! frame lost on the way out: it is counted here, the protocol repairs it, and
//! the daemon goes on.

use std::io;

/// The errors that sending on a packet socket is known to give.
const NAMED: [(i32, &str); 13] = [
    (libc::EAGAIN, "EAGAIN"),
    (libc::ECONNREFUSED, "ECONNREFUSED"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    (libc::EINTR, "EINTR"),
    (libc::EINVAL, "EINVAL"),
    (libc::EMSGSIZE, "EMSGSIZE"),
    (libc::ENETDOWN, "ENETDOWN"),
    (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ENOBUFS, "ENOBUFS"),
    (libc::ENODEV, "ENODEV"),
    (libc::ENOMEM, "ENOMEM"),
    (libc::ENXIO, "ENXIO"),
    (libc::EPERM, "EPERM"),
];

/// Send errors by name.
// spec: REL-7
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostErrors {
    named: [u64; NAMED.len()],
    other: u64,
}

impl HostErrors {
    /// Counts one error.
    pub fn record(&mut self, error: &io::Error) {
        let code = error.raw_os_error();
        match NAMED.iter().position(|(known, _)| Some(*known) == code) {
            Some(index) => self.named[index] += 1,
            None => self.other += 1,
        }
    }

    /// Name and count of each error that occurred, in the order of names; what
    /// has no name here comes last, as `other`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = NAMED.iter().zip(self.named).map(|((_, name), count)| (*name, count));
        named.chain([("other", self.other)]).filter(|(_, count)| *count > 0)
    }

    /// How many errors there were.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: REL-7
    #[test]
    fn errors_are_counted_by_name() {
        let mut errors = HostErrors::default();
        assert_eq!((errors.total(), errors.iter().count()), (0, 0));
        for code in [libc::EPERM, libc::ENOBUFS, libc::ENOBUFS, libc::EAGAIN, libc::EXDEV] {
            errors.record(&io::Error::from_raw_os_error(code));
        }
        errors.record(&io::Error::other("not from the kernel"));
        let counted: Vec<_> = errors.iter().collect();
        assert_eq!(counted, [("EAGAIN", 1), ("ENOBUFS", 2), ("EPERM", 1), ("other", 2)]);
        assert_eq!(errors.total(), 6);
    }

    #[test]
    fn names_are_in_order() {
        assert!(NAMED.is_sorted_by_key(|(_, name)| *name));
    }
}
