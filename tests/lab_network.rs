//! The namespace lab against the real kernel, as root and as an ordinary user.
//!
//! A process with threads cannot enter a sandbox, so this binary has a small
//! runner of its own: each case starts the binary again, as a part (an
//! environment variable names it) that enters a sandbox and asserts in there.

#[path = "lab_network/parts.rs"]
mod parts;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::panic;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::{env, fs};

use tempfile::TempDir;

/// The environment variable that names the part to run.
const PART: &str = "MRC_LAB_TEST_PART";

/// Who runs a part. From an ordinary user's session there is only that user.
#[derive(Clone, Copy, PartialEq, Debug)]
enum As {
    Root,
    User,
}

type Case = (&'static str, fn(&Bench));

/// The cases by name.
const CASES: [Case; 12] = [
    ("two_hosts_and_a_switch_are_built_and_removed", built_and_removed),
    ("an_idle_lab_carries_no_frame", idle),
    ("long_names_do_not_collide", long_names),
    ("a_failed_build_leaves_nothing", failed_build),
    ("programs_run_in_their_node", programs),
    ("the_host_is_untouched", host_untouched),
    ("kill_9_after_building_leaves_nothing", killed_after),
    ("kill_9_while_building_leaves_nothing", killed_while),
    ("read_only_sysctls_are_made_writable", read_only_sysctls),
    ("forbidden_user_namespaces_are_explained", forbidden),
    ("capabilities_but_net_raw_are_dropped", capabilities),
    ("the_doctor_finds_what_was_broken", doctor),
];

// case E08: checksums are finished where a frame is seen.
// case E10: one datagram is one frame.
// case F05: no interface filters by reverse path.
// spec: REL-10, SW-1
fn built_and_removed(bench: &Bench) {
    bench.run_as_both("built_and_removed");
}

// case E07: different MTUs at the ends of a link; a full-size frame vanishes.
// case F05: the effective reverse path filter.
// case F09: a queueing discipline beside the lab's own.
// spec: REL-10
fn doctor(bench: &Bench) {
    bench.run_as_both("doctor");
}

// case F07: an idle lab is silent.
// spec: REL-10
fn idle(bench: &Bench) {
    bench.run(As::User, "idle");
}

// case F04: names that are equal where they would be cut.
// spec: REL-10
fn long_names(bench: &Bench) {
    bench.run(As::User, "long_names");
}

// spec: REL-10
fn failed_build(bench: &Bench) {
    bench.run(As::User, "failed_build");
}

// spec: REL-10
fn programs(bench: &Bench) {
    bench.run_as_both("programs");
}

// case F03: the host has an interface of the same name.
// spec: REL-10
fn host_untouched(bench: &Bench) {
    bench.run_as_both("host_untouched");
}

// spec: REL-10
fn killed_after(bench: &Bench) {
    bench.run_as_both("killed_after");
}

// spec: REL-10
fn killed_while(bench: &Bench) {
    bench.run_as_both("killed_while");
}

// spec: REL-10
fn read_only_sysctls(bench: &Bench) {
    bench.run_as_both("read_only_sysctls");
}

// spec: REL-10
fn forbidden(bench: &Bench) {
    bench.run(As::User, "forbidden");
}

// spec: REL-9
fn capabilities(bench: &Bench) {
    bench.run(As::User, "capabilities_of_a_user");
    bench.run_as_both("capabilities");
}

/// Starts parts: a copy of this binary that every user may read.
struct Bench {
    root: bool,
    binary: PathBuf,
    _dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let binary = dir.path().join("lab_network");
        fs::copy(env::current_exe().expect("this binary"), &binary).expect("copy this binary");
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).expect("chmod");
        let root = Command::new("id").arg("-u").output().expect("id").stdout == b"0\n";
        Self { root, binary, _dir: dir }
    }

    fn run_as_both(&self, part: &str) {
        self.run(As::User, part);
        if self.root {
            self.run(As::Root, part);
        } else {
            println!("    skipped as root: this user is not");
        }
    }

    fn run(&self, who: As, part: &str) {
        let mut command = if self.root && who == As::User {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&self.binary);
            command
        } else {
            Command::new(&self.binary)
        };
        let status = command.env(PART, part).current_dir("/").process_group(0).status();
        assert!(status.expect("start the part").success(), "part {part} as {who:?} failed");
    }
}

/// The words that are no options choose the cases whose name has one of them.
fn chosen(name: &str) -> bool {
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
}

fn main() -> ExitCode {
    if let Ok(part) = env::var(PART) {
        parts::run(&part);
        return ExitCode::SUCCESS;
    }
    let cases: Vec<_> = CASES.into_iter().filter(|(name, _)| chosen(name)).collect();
    if env::args().any(|word| word == "--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let bench = Bench::new();
    let mut failed = 0;
    for (name, case) in &cases {
        let passed = panic::catch_unwind(panic::AssertUnwindSafe(|| case(&bench))).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    println!("\ntest result: {} passed; {failed} failed", cases.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
