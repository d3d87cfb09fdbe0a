//! The real `mrc` in a folder of its own, as root or as an ordinary user.

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use mrc_lab::io::clock::monotonic_ns;
use serde_json::Value;
use tempfile::TempDir;

/// The demo's scenario.
const DEMO: &str = include_str!("../../scenarios/two-hosts.toml");
/// How long anything may take that is not measured.
const PATIENCE: Duration = Duration::from_secs(90);
/// The environment variable by which all processes of a run are known.
const MARK: &str = "MRC_TEST_RUN";

/// Held by every bench, for writing by one that wants the machine for itself.
static MACHINE: RwLock<()> = RwLock::new(());

/// The part of [`MACHINE`] that a bench holds.
enum Share {
    Some { _guard: RwLockReadGuard<'static, ()> },
    All { _guard: RwLockWriteGuard<'static, ()> },
}

/// Who runs `mrc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum As {
    Root,
    User,
}

impl As {
    /// Root and an ordinary user; from an ordinary user's session only that one.
    pub fn both() -> Vec<Self> {
        if is_root() {
            return vec![Self::User, Self::Root];
        }
        println!("not run as root: this user is not");
        vec![Self::User]
    }
}

fn is_root() -> bool {
    said(Command::new("id").arg("-u")) == "0\n"
}

/// What `command` prints; it has to succeed.
pub fn said(command: &mut Command) -> String {
    let output = output(command);
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// What comes of `command`, whose program has to be there.
pub fn output(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("this test needs {:?}: {error}", command.get_program()))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Tries until `done` gives something; `what` is what is waited for.
pub fn wait_for<T>(what: &str, patience: Duration, mut done: impl FnMut() -> Option<T>) -> T {
    let give_up = monotonic_ns() + patience.as_nanos() as u64;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(monotonic_ns() < give_up, "not within {patience:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The two-hosts scenario with less data.
pub fn demo(size: &str) -> String {
    let scenario = DEMO.replace("64 MiB", size);
    assert!(scenario != DEMO || size == "64 MiB");
    scenario
}

/// A folder with copies of the binary and the scripts that everybody may read,
/// and one inside that everybody may write to.
pub struct Bench {
    who: As,
    dir: TempDir,
    runs: AtomicU32,
    _share: Share,
}

impl Bench {
    pub fn new(who: As) -> Self {
        let guard = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
        Self::with_share(who, Share::Some { _guard: guard })
    }

    /// No other bench is there at the same time: for what depends on the host's
    /// speed.
    pub fn alone(who: As) -> Self {
        let guard = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
        Self::with_share(who, Share::All { _guard: guard })
    }

    fn with_share(who: As, share: Share) -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let bench = Self { who, dir, runs: AtomicU32::new(0), _share: share };
        bench.open_to_all("", 0o755);
        fs::create_dir(bench.path("")).expect("made");
        bench.open_to_all("work", 0o777);
        fs::copy(env!("CARGO_BIN_EXE_mrc"), bench.program()).expect("copied");
        bench.open_to_all("mrc", 0o755);
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("netns-scripts");
        for script in fs::read_dir(scripts).expect("the scripts") {
            let script = script.expect("a script");
            fs::copy(script.path(), bench.dir.path().join(script.file_name())).expect("copied");
        }
        bench
    }

    /// With the demo's scenario and `size` of data in `lab.toml`.
    pub fn with_demo(who: As, size: &str) -> Self {
        let bench = Self::new(who);
        bench.write("lab.toml", &demo(size));
        bench
    }

    fn open_to_all(&self, name: &str, mode: u32) {
        let path = self.dir.path().join(name);
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    }

    pub fn program(&self) -> PathBuf {
        self.dir.path().join("mrc")
    }

    /// A file in the folder that runs work in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// `program` as this bench's user, in its folder.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = if self.who == As::User && is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
            command.arg(program.as_ref());
            command
        } else {
            Command::new(program.as_ref())
        };
        command.current_dir(self.path(""));
        command
    }

    /// `mrc` with these words.
    pub fn mrc(&self, words: &str) -> Command {
        let mut command = self.command(self.program());
        command.args(words.split_whitespace());
        command
    }

    /// A script of netns-scripts for `run`, with these words.
    pub fn script(&self, name: &str, run: &Run, words: &str) -> Command {
        self.script_for(name, run.pid(), words)
    }

    /// A script of netns-scripts for the run with this process, with these words.
    pub fn script_for(&self, name: &str, run: u32, words: &str) -> Command {
        let mut command = self.by_hand(name);
        command.args(words.split_whitespace()).env("MRC_PID", run.to_string());
        command
    }

    /// A script of netns-scripts.
    pub fn by_hand(&self, name: &str) -> Command {
        self.command(self.dir.path().join(name))
    }

    /// A copy of this test's own binary, for tests that run a part of it in the lab.
    pub fn copy_of_this_test(&self) -> PathBuf {
        let copy = self.dir.path().join("test");
        fs::copy(env::current_exe().expect("its path"), &copy).expect("copied");
        self.open_to_all("test", 0o755);
        copy
    }

    /// Starts `mrc run` with these words.
    pub fn start(&self, words: &str) -> Run {
        self.start_as(self.mrc(&format!("run {words}")))
    }

    /// Starts `command`, which becomes `mrc run`.
    pub fn start_as(&self, mut command: Command) -> Run {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let name = self.dir.path().file_name().unwrap_or_default().to_string_lossy();
        let mark = format!("{name}-{number}");
        let [out, err] = ["out", "err"].map(|end| self.dir.path().join(format!("{number}.{end}")));
        let file = |path| Stdio::from(File::create(path).expect("made"));
        command.env(MARK, &mark);
        command.stdin(Stdio::piped()).stdout(file(&out)).stderr(file(&err));
        let child = command.spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        Run { child, stdin, mark: format!("{MARK}={mark}"), out, err }
    }

    /// Starts a run that holds, and waits until its lab stands.
    pub fn hold(&self, words: &str) -> Run {
        let mut run = self.start(&format!("--hold {words}"));
        wait_for("the lab stands", PATIENCE, || {
            assert!(run.is_running(), "{}", run.said());
            run.said().contains("holding: ").then_some(())
        });
        run
    }

    /// Runs `mrc run` with these words to its end.
    pub fn run(&self, words: &str) -> End {
        self.start(words).end()
    }
}

/// A running `mrc run`; killed when dropped.
pub struct Run {
    child: Child,
    stdin: Option<ChildStdin>,
    mark: String,
    out: PathBuf,
    err: PathBuf,
}

/// What came of a run.
#[derive(Debug)]
pub struct End {
    /// `None` when a signal ended it.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Run {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has said on standard error.
    pub fn said(&self) -> String {
        text(&fs::read(&self.err).expect("readable"))
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Presses Enter.
    pub fn release(&mut self) {
        let stdin = self.stdin.as_mut().expect("held once");
        stdin.write_all(b"\n").expect("it reads");
    }

    pub fn signal(&self, name: &str) {
        said(Command::new("kill").args(["-s", name, &self.pid().to_string()]));
    }

    /// Waits for its end.
    pub fn end(mut self) -> End {
        let status =
            wait_for("the end of the run", PATIENCE, || self.child.try_wait().expect("it"));
        let out = text(&fs::read(&self.out).expect("readable"));
        End { code: status.code(), out, err: self.said() }
    }

    /// The processes of this run that are alive, but for zombies.
    pub fn processes(&self) -> Vec<u32> {
        processes().filter(|pid| self.owns(*pid)).collect()
    }

    fn owns(&self, pid: u32) -> bool {
        // Processes of others may not be read; zombies have none.
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
    }

    /// The network namespaces of its processes, but for the machine's.
    pub fn namespaces(&self) -> BTreeSet<PathBuf> {
        let machine = namespace("self");
        let all = self.processes().into_iter().filter_map(|pid| namespace(&pid.to_string()));
        all.filter(|found| Some(found) != machine.as_ref()).collect()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The network namespace of a process that may be read.
fn namespace(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether any process is in one of `namespaces`.
pub fn any_process_in(namespaces: &BTreeSet<PathBuf>) -> bool {
    processes()
        .filter_map(|pid| namespace(&pid.to_string()))
        .any(|found| namespaces.contains(&found))
}

impl End {
    /// Checks that the run went well.
    #[track_caller]
    pub fn well(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// The summary's line that starts with `start`, without it.
    #[track_caller]
    pub fn line(&self, start: &str) -> &str {
        let line = self.out.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no line {start:?}: {self:#?}"))
    }

    /// The one JSON object on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("not one JSON value: {error}: {self:#?}"));
        assert!(value.is_object() && self.out.lines().count() == 1, "{}", self.out);
        value
    }
}
