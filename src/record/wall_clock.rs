//! Points on the wall clock, as records print them.

use core::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};

/// Nanoseconds since 1970-01-01T00:00:00Z. Prints and serializes as RFC 3339,
/// `2026-01-31T12:00:00.000000001Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UnixTime {
    /// The nanoseconds (584 years fit).
    pub ns: u64,
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since_1970 = Duration::from_nanos(self.ns);
        humantime::format_rfc3339_nanos(SystemTime::UNIX_EPOCH + since_1970).fmt(f)
    }
}

impl Serialize for UnixTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_rfc_3339() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000000001Z"),
            (951_782_399, "2000-02-28T23:59:59.000000001Z"),
            (951_782_400, "2000-02-29T00:00:00.000000001Z"),
            (951_868_800, "2000-03-01T00:00:00.000000001Z"),
            (1_234_567_890, "2009-02-13T23:31:30.000000001Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000001Z"),
        ] {
            let time = UnixTime { ns: seconds * 1_000_000_000 + 1 };
            assert_eq!(time.to_string(), expected);
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{expected}\""));
        }
    }
}
