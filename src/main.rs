//! The `mrc` command.

fn main() {}
