//! Words for people on standard error.

use core::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard error in one piece, so that the lines of several
/// processes do not mix. Where nobody listens any more (`2>&1 | head`), nothing
/// is said, and the command goes on.
pub fn notice(text: impl Display) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
