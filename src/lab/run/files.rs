//! Where a run's files go.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{RunError, RunPlan};
use crate::capture;
use crate::daemon::check_socket_path;
use crate::record::{EventsCsv, MRC_EVENTS, RunManifest, UnixTime, file_name};
use crate::scenario::{Scenario, Topology};

/// How the name of a control socket ends.
const SOCKET: &str = ".sock";

/// The files of a run in its folder, which no other run uses meanwhile.
#[derive(Clone, Debug)]
pub struct RunFiles {
    dir: PathBuf,
    name: String,
    /// The folder, locked until the last copy of this value is dropped.
    folder: Arc<File>,
}

impl RunFiles {
    /// The files of `scenario`, whose text is `text`, in the folder `dir`, which
    /// is made when it is not there; `with_sockets` says whether its nodes have
    /// control sockets. Call it before the lab is entered.
    ///
    /// # Errors
    /// [`RunError::Out`] when the folder cannot be had.
    pub fn create(
        dir: &Path,
        scenario: &Scenario,
        text: &str,
        with_sockets: bool,
    ) -> Result<Self, RunError> {
        let opened = fs::create_dir_all(dir).and_then(|()| File::open(dir));
        let folder = opened.map_err(|error| refused(dir, &format!("{error}; {ANOTHER}")))?;
        if !lock(&folder) {
            let what = format!("another run is writing there; wait for its end, or {ANOTHER}");
            return Err(refused(dir, &what));
        }
        let (dir, name) = (dir.to_owned(), scenario.name.clone());
        let files = Self { dir, name, folder: Arc::new(folder) };
        if with_sockets {
            files.check_control_paths(scenario)?;
        }
        fs::write(files.scenario(), text)
            .map_err(|error| refused(&files.dir, &format!("{error}; {ANOTHER}")))?;
        Ok(files)
    }

    fn check_control_paths(&self, scenario: &Scenario) -> Result<(), RunError> {
        let nics = scenario.nics.iter().map(|nic| &nic.name);
        let mut names = nics.chain(scenario.switches.iter().map(|switch| &switch.name));
        names.try_for_each(|name| {
            let path = self.control(name);
            check_socket_path(&path)
                .map_err(|error| refused(&self.dir, &format!("{}: {error}", path.display())))
        })
    }

    /// That the lab, now entered, leads to the same folder.
    ///
    /// # Errors
    /// [`RunError::Out`] when it does not: files would end with the lab.
    pub fn check_visible(&self) -> Result<(), RunError> {
        let identity = |found: fs::Metadata| (found.dev(), found.ino());
        let outside = self.folder.metadata().map(identity);
        match (outside, fs::metadata(&self.dir).map(identity)) {
            (Ok(outside), Ok(inside)) if outside == inside => Ok(()),
            _ => Err(refused(&self.dir, &format!("the lab has a /run of its own; {ANOTHER}"))),
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The scenario as it was read, for the run's daemons and for a repetition.
    pub fn scenario(&self) -> PathBuf {
        self.dir.join("scenario.toml")
    }

    /// Writes the manifest of a run that starts now; `protocol_time_0` is when
    /// protocol time 0 was, where it follows the wall clock.
    ///
    /// # Errors
    /// When the file cannot be written.
    // spec: RC-1, TIME-4
    pub fn manifest(
        &self,
        plan: &RunPlan,
        topology: &Topology,
        protocol_time_0: Option<UnixTime>,
    ) -> Result<RunManifest, RunError> {
        let file = plan.scenario_file.display().to_string();
        let scenario = (file.as_str(), plan.scenario_text.as_str());
        let run = plan.id();
        let manifest = RunManifest::new(run, scenario, topology, unix_now(), protocol_time_0);
        self.write_manifest(&manifest)?;
        Ok(manifest)
    }

    /// Writes the manifest again, with what the run has added.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_manifest(&self, manifest: &RunManifest) -> Result<(), RunError> {
        let path = self.dir.join(RunManifest::FILE);
        let text = serde_json::to_string_pretty(manifest).map_err(io::Error::from);
        text.and_then(|text| fs::write(&path, text + "\n"))
            .map_err(RunError::io(format!("writing {}", path.display())))
    }

    /// The capture of a node's link.
    pub fn capture(&self, node: &str) -> PathBuf {
        Self::capture_in(&self.dir, node)
    }

    /// The capture of a node's link in the folder `dir`.
    pub fn capture_in(dir: &Path, node: &str) -> PathBuf {
        dir.join(format!("{node}.pcapng"))
    }

    /// All captures in one.
    fn merged(&self) -> PathBuf {
        self.dir.join("merged.pcapng")
    }

    /// What a process of this name said.
    pub fn log(&self, process: &str) -> PathBuf {
        self.dir.join(format!("{process}.log"))
    }

    /// What the scenario's program of this number, from 1, has said.
    pub fn exec_log(&self, number: usize) -> PathBuf {
        self.dir.join(format!("exec-{number}.log"))
    }

    /// A node's control socket.
    pub fn control(&self, node: &str) -> PathBuf {
        Self::control_in(&self.dir, node)
    }

    /// A node's control socket in the folder `dir`.
    pub fn control_in(dir: &Path, node: &str) -> PathBuf {
        dir.join(format!("{node}{SOCKET}"))
    }

    /// The control sockets in a run's folder, by the names of their nodes.
    /// They are there while a run in the wall clock is under way.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn controls(dir: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()?.strip_suffix(SOCKET));
            if let Some(node) = name {
                found.insert(node.to_owned(), path.clone());
            }
        }
        Ok(found)
    }

    /// The record of QP events, new.
    ///
    /// # Errors
    /// When the file cannot be made.
    // spec: RC-1, RC-3
    pub fn events(&self) -> Result<EventsCsv<BufWriter<File>>, RunError> {
        let path = self.dir.join(file_name(&self.name, MRC_EVENTS));
        let open = File::create(&path).and_then(|file| EventsCsv::new(BufWriter::new(file)));
        open.map_err(RunError::io(format!("making {}", path.display())))
    }

    /// Merges `captures` and gives all paths, the merged one last.
    ///
    /// # Errors
    /// When a capture cannot be read or the merged one cannot be written.
    // spec: RC-7
    pub fn merge(&self, mut captures: Vec<PathBuf>) -> Result<Vec<PathBuf>, RunError> {
        if captures.is_empty() {
            return Ok(captures);
        }
        let merged = self.merged();
        capture::merge(&captures, &merged).map_err(RunError::io("merging the captures"))?;
        captures.push(merged);
        Ok(captures)
    }

    /// Removes what a run before may have left at `path`.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn clear(path: &Path) -> Result<(), RunError> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RunError::io(format!("removing {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }
}

/// Locks the folder unless another run has it; a file system without locks has
/// no say. The kernel may take a moment to end a run that was killed.
fn lock(folder: &File) -> bool {
    const ATTEMPTS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(20);
    (0..ATTEMPTS).any(|attempt| {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        !matches!(folder.try_lock(), Err(TryLockError::WouldBlock))
    })
}

/// What to do about a folder that cannot be had.
const ANOTHER: &str = "choose another folder";

fn refused(dir: &Path, what: &str) -> RunError {
    RunError::Out { dir: dir.to_owned(), what: what.to_owned() }
}

/// The calendar's time now.
#[expect(clippy::disallowed_methods, reason = "a manifest says when its run was")]
pub fn unix_now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime { ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Clock;
    use crate::scenario::{Overrides, parse};
    use crate::time::Duration as ProtocolDuration;

    const TEXT: &str = include_str!("../../../scenarios/two-hosts.toml");

    fn plan(out: PathBuf, clock: Clock) -> RunPlan {
        RunPlan {
            scenario: parse(TEXT, "x.toml", &Overrides::default()).expect("it is right"),
            scenario_file: "x.toml".into(),
            scenario_text: TEXT.to_owned(),
            clock,
            tdf: 1,
            shares: Vec::new(),
            out,
            captures: true,
            snap_len: 0,
            time_limit: ProtocolDuration::ZERO,
        }
    }

    fn create(plan: &RunPlan) -> Result<RunFiles, RunError> {
        let with_sockets = plan.clock == Clock::Wall;
        RunFiles::create(&plan.out, &plan.scenario, &plan.scenario_text, with_sockets)
    }

    fn refusal(plan: &RunPlan) -> String {
        create(plan).expect_err("refused").to_string()
    }

    #[test]
    fn a_folder_serves_one_run_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = plan(dir.path().join("out"), Clock::Exact);
        let first = create(&plan).expect("free");
        assert_eq!(fs::read_to_string(first.scenario()).expect("there"), TEXT);
        let error = refusal(&plan);
        assert!(error.contains("--out") && error.contains("another run"), "{error}");
        drop(first);
        create(&plan).expect("free again");
    }

    #[test]
    fn folders_that_cannot_be_had_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("file"), "").expect("written");
        let error = refusal(&plan(dir.path().join("file"), Clock::Exact));
        assert!(error.contains("file: ") && error.contains("choose another folder"), "{error}");
        let long = dir.path().join("x".repeat(100));
        let error = refusal(&plan(long.clone(), Clock::Wall));
        assert!(error.contains("a.sock: ") && error.contains("107 bytes"), "{error}");
        create(&plan(long, Clock::Exact)).expect("it has no sockets");
    }

    #[test]
    fn a_folder_that_the_lab_hides_is_noticed() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = plan(dir.path().join("out"), Clock::Exact);
        let files = create(&plan).expect("free");
        files.check_visible().expect("nothing hides it");
        fs::rename(&plan.out, dir.path().join("moved")).expect("moved");
        files.check_visible().expect_err("not there");
        fs::create_dir(&plan.out).expect("made");
        let error = files.check_visible().expect_err("another folder").to_string();
        assert!(error.contains("/run of its own"), "{error}");
    }

    #[test]
    fn control_sockets_of_a_run_are_found_by_their_nodes() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = plan(dir.path().join("out"), Clock::Wall);
        let files = create(&plan).expect("free");
        assert!(RunFiles::controls(&plan.out).expect("a folder").is_empty());
        fs::write(files.control("a.b"), "").expect("written");
        let found = RunFiles::controls(&plan.out).expect("a folder");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [("a.b".into(), files.control("a.b"))]);
        RunFiles::controls(&dir.path().join("none")).expect_err("not there");
    }
}
