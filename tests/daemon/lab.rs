//! Two NICs and a switch as real processes, in namespaces of the test's own.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, fs};

use mrc_lab::daemon::Client;
use mrc_lab::io::clock::monotonic_ns;
use tempfile::TempDir;

/// Set in the process that runs inside the namespaces.
const INSIDE: &str = "MRC_TEST_INSIDE_NAMESPACE";

/// a and b behind s; small windows of the clock keep the test short.
const SCENARIO: &str = r#"
seed = 5
[[nic]]
name = "a"
ip = "10.0.0.1"
[[nic]]
name = "b"
ip = "10.0.0.2"
[[switch]]
name = "s"
[[link]]
ends = ["a", "s"]
[[link]]
ends = ["b", "s"]
"#;

/// Runs `test`, which must be the body of the test called `name`, in fresh
/// user and network namespaces with the interfaces of a [`Lab`].
pub fn inside(name: &str, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        for (left, right) in [("a0", "s0"), ("b0", "s1")] {
            ip(&format!("link add {left} mtu 4200 type veth peer name {right} mtu 4200"));
            for end in [left, right] {
                ip(&format!("link set {end} addrgenmode none"));
                ip(&format!("link set {end} up"));
            }
        }
        return test();
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--net", "--"]);
    unshare.arg(env::current_exe().expect("the test's own path"));
    unshare.args([name, "--exact", "--nocapture"]).env(INSIDE, "1");
    let output = unshare.output().expect("this test needs `unshare` (util-linux)");
    assert!(
        output.status.success() && text(&output.stdout).contains("1 passed"),
        "{name} failed inside namespaces of its own; it needs unprivileged user namespaces \
         and `ip`:\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}

/// Runs `ip` with `arguments`.
pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.expect("this test needs `ip` (iproute2)");
    assert!(output.status.success(), "ip {arguments}: {}", text(&output.stderr));
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Tries until `done` gives something.
pub fn wait_for<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let give_up = monotonic_ns() + 20_000_000_000;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(monotonic_ns() < give_up, "{what} does not happen");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A directory with a scenario for the interfaces a0-s0 and b0-s1.
pub struct Lab {
    pub dir: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("lab.toml"), SCENARIO).expect("written");
        Self { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `mrc` with `arguments`, in the lab's directory.
    pub fn mrc(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mrc"));
        command.args(arguments.split(' ')).current_dir(self.dir.path());
        command
    }

    /// Starts a daemon and waits until it is ready. Its control socket is
    /// called like its node.
    pub fn start(&self, arguments: &str) -> Running {
        let mut command = self.mrc(arguments);
        let node =
            arguments.split(' ').skip_while(|word| *word != "--node").nth(1).expect("a node");
        command.args(["--scenario", "lab.toml", "--control", node]);
        self.launch(command, node)
    }

    /// Starts a daemon whose control socket is called `control`, and waits until
    /// it is ready.
    pub fn launch(&self, mut command: Command, control: &str) -> Running {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("mrc starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut ready = String::new();
        stdout.read_line(&mut ready).expect("readable");
        assert!(ready.starts_with("ready "), "{command:?}: {ready}");
        Running { child, ready, stdout, control: self.path(control) }
    }

    pub fn start_all(&self) -> [Running; 3] {
        [
            self.start("nic --node a --interface a0 --capture a.pcapng"),
            self.start("nic --node b --interface b0"),
            self.start("switch --node s --interface s0 --interface s1"),
        ]
    }

    /// `mrc ctl` with `arguments`: what it says, and whether it succeeds.
    pub fn ctl(&self, arguments: &str) -> Output {
        self.mrc(&format!("ctl {arguments}")).output().expect("mrc ctl runs")
    }

    /// The JSON that `mrc ctl` prints for `arguments`, which has to succeed.
    pub fn ctl_json(&self, arguments: &str) -> serde_json::Value {
        let output = self.ctl(&format!("{arguments} --json"));
        assert!(output.status.success(), "ctl {arguments}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// A daemon; killed when dropped.
pub struct Running {
    pub child: Child,
    pub ready: String,
    stdout: BufReader<ChildStdout>,
    pub control: PathBuf,
}

impl Running {
    pub fn client(&self) -> Client {
        Client::connect(&self.control).expect("it listens")
    }

    /// A field of its /proc status.
    pub fn status(&self, field: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("known field");
        line.trim_start_matches(':').trim().to_owned()
    }

    /// How long it has run on a processor, in user and kernel mode.
    pub fn cpu_time(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.expect("it runs");
        // Fields 14 and 15, in ticks of 10 ms; the second is the name in parentheses.
        let (_, fields) = stat.rsplit_once(") ").expect("a name");
        let ticks = fields.split(' ').skip(11).take(2).map(|n| n.parse::<u64>().expect("ticks"));
        Duration::from_millis(10 * ticks.sum::<u64>())
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(sent.success());
    }

    /// Its exit code once it ends, and that it said nothing after it was ready.
    pub fn exit_code(&mut self) -> Option<i32> {
        let status = wait_for("the end", || self.child.try_wait().expect("a child"));
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("readable");
        assert_eq!(rest, "");
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The permission bits of a file.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::symlink_metadata(path).expect("there").permissions().mode() & 0o777
}
