//! Where a run's files go.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{RunError, RunPlan};
use crate::capture;
use crate::record::{EventsCsv, MRC_EVENTS, RunManifest, UnixTime, file_name};
use crate::scenario::Topology;

/// The files of a run in its folder.
#[derive(Clone, Debug)]
pub struct RunFiles {
    dir: PathBuf,
    name: String,
}

impl RunFiles {
    /// The files of `plan`; its folder is made when it is not there.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn create(plan: &RunPlan) -> Result<Self, RunError> {
        fs::create_dir_all(&plan.out)
            .map_err(RunError::io(format!("making the folder {}", plan.out.display())))?;
        Ok(Self { dir: plan.out.clone(), name: plan.scenario.name.clone() })
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
        let text = serde_json::to_string_pretty(manifest).map_err(std::io::Error::from);
        text.and_then(|text| fs::write(&path, text + "\n"))
            .map_err(RunError::io(format!("writing {}", path.display())))
    }

    /// The capture of a node's link.
    pub fn capture(&self, node: &str) -> PathBuf {
        self.dir.join(format!("{node}.pcapng"))
    }

    /// All captures in one.
    fn merged(&self) -> PathBuf {
        self.dir.join("merged.pcapng")
    }

    /// What a node's daemon said.
    pub fn log(&self, node: &str) -> PathBuf {
        self.dir.join(format!("{node}.log"))
    }

    /// A node's control socket.
    pub fn control(&self, node: &str) -> PathBuf {
        self.dir.join(format!("{node}.sock"))
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
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(RunError::io(format!("removing {}", path.display()))(error))
            }
            _ => Ok(()),
        }
    }
}

/// The calendar's time now.
#[expect(clippy::disallowed_methods, reason = "a manifest says when its run was")]
pub fn unix_now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime { ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
}
