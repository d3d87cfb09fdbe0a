//! Points on the wall clock, as records print them.

use core::fmt;

use serde::{Serialize, Serializer};

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: u64 = 86_400;

/// Nanoseconds since 1970-01-01T00:00:00Z. Prints and serializes as RFC 3339,
/// `2026-01-31T12:00:00.000000001Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UnixTime {
    /// The nanoseconds (584 years fit).
    pub ns: u64,
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.ns / NS_PER_S, self.ns % NS_PER_S);
        let (days, second) = (seconds / S_PER_DAY, seconds % S_PER_DAY);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

impl Serialize for UnixTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Year, month and day of a number of days since 1970-01-01. Years begin in
/// March here, so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    // Days since 0000-03-01; an era is 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
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
            let time = UnixTime { ns: seconds * NS_PER_S + 1 };
            assert_eq!(time.to_string(), expected);
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{expected}\""));
        }
    }
}
