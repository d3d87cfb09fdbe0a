//! The folders of labs that stand.

use std::env;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind::{BrokenPipe, ConnectionReset};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::{LabState, StandingError};
use crate::lab::plan::is_valid_name;
use crate::lab::sys;

/// The longest name of a lab, in bytes: control sockets have short paths.
const MAX_NAME: usize = 40;

/// The folder of one lab, whether it stands or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    name: String,
    dir: PathBuf,
}

impl Place {
    /// How long a lab may take to go down.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// The place of the lab `name` of this user.
    ///
    /// # Errors
    /// When the name is no good, or the folder of all labs is not safe.
    // spec: REL-10
    pub fn named(name: &str) -> Result<Self, StandingError> {
        if name.len() > MAX_NAME || !is_valid_name(name) {
            return Err(StandingError::Name(name.to_owned()));
        }
        Ok(Self { name: name.to_owned(), dir: root()?.join(name) })
    }

    /// All places of this user, by name.
    ///
    /// # Errors
    /// When the folder of all labs cannot be read.
    pub fn all() -> Result<Vec<Self>, StandingError> {
        let root = root()?;
        let reading = || format!("reading {}", root.display());
        let mut places = Vec::new();
        for entry in fs::read_dir(&root).map_err(StandingError::io(reading()))? {
            let entry = entry.map_err(StandingError::io(reading()))?;
            if let Some(name) = entry.file_name().to_str() {
                places.push(Self { name: name.to_owned(), dir: entry.path() });
            }
        }
        places.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(places)
    }

    /// The names of the labs that are up.
    ///
    /// # Errors
    /// As for [`all`](Self::all).
    pub fn up() -> Result<Vec<String>, StandingError> {
        let up = Self::all()?.into_iter().filter(|place| place.state().is_some());
        Ok(up.map(|place| place.name).collect())
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the keeper listens.
    pub(super) fn keeper_socket(dir: &Path) -> PathBuf {
        dir.join("keeper")
    }

    /// Where the keeper says what stands.
    pub(super) fn state_file(dir: &Path) -> PathBuf {
        dir.join("lab.json")
    }

    /// Whether a keeper has the place.
    pub fn is_kept(&self) -> bool {
        File::open(&self.dir)
            .is_ok_and(|dir| matches!(dir.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// What stands; `None` when nothing does.
    pub fn state(&self) -> Option<LabState> {
        let text = fs::read_to_string(Self::state_file(&self.dir)).ok()?;
        serde_json::from_str(&text).ok().filter(|_| self.is_kept())
    }

    /// What stands.
    ///
    /// # Errors
    /// When nothing does.
    pub fn standing(&self) -> Result<LabState, StandingError> {
        let up = Self::up()?;
        self.state().ok_or_else(|| StandingError::NotUp { name: self.name.clone(), up })
    }

    /// Removes what a lab has left; tells whether there was anything. The
    /// kernel may take a moment to end a keeper that was killed.
    ///
    /// # Errors
    /// [`StandingError::Up`] when the lab stands.
    // spec: REL-10
    pub fn clear(&self) -> Result<bool, StandingError> {
        if !self.dir.exists() {
            return Ok(false);
        }
        const MOMENT: Duration = Duration::from_millis(500);
        if !self.ends_within(MOMENT) {
            return Err(StandingError::Up(self.name.clone()));
        }
        let removing = format!("removing {}", self.dir.display());
        fs::remove_dir_all(&self.dir).map_err(StandingError::io(removing))?;
        Ok(true)
    }

    /// Takes the lab down; tells whether there was anything to take down.
    ///
    /// # Errors
    /// When the keeper does not end.
    // spec: REL-10
    pub fn down(&self) -> Result<bool, StandingError> {
        if let Ok(mut keeper) = UnixStream::connect(Self::keeper_socket(&self.dir)) {
            let asked = keeper
                .set_read_timeout(Some(Self::PATIENCE))
                .and_then(|()| keeper.write_all(b"down\n"))
                .and_then(|()| keeper.read_to_end(&mut Vec::new()));
            match asked {
                // It is ending already.
                Err(error) if matches!(error.kind(), ConnectionReset | BrokenPipe) => {}
                Err(error) => {
                    let doing = format!("taking lab {} down", self.name);
                    return Err(StandingError::io(doing)(error));
                }
                Ok(_) => {}
            }
            self.ends_within(Self::PATIENCE);
        }
        self.clear()
    }

    fn ends_within(&self, patience: Duration) -> bool {
        const PAUSE: Duration = Duration::from_millis(10);
        let mut left = patience;
        while self.is_kept() {
            if left.is_zero() {
                return false;
            }
            thread::sleep(PAUSE);
            left = left.saturating_sub(PAUSE);
        }
        true
    }
}

/// The folder of all labs of this user, which nobody else may enter.
// spec: REL-9
fn root() -> Result<PathBuf, StandingError> {
    let root = env::temp_dir().join(format!("mrc-lab-{}", sys::effective_uid()));
    match DirBuilder::new().mode(0o700).create(&root) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StandingError::io(format!("making {}", root.display()))(error));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&root)
        .map_err(StandingError::io(format!("looking at {}", root.display())))?;
    let ours = found.is_dir() && found.uid() == sys::effective_uid() && found.mode() & 0o077 == 0;
    if ours { Ok(root) } else { Err(StandingError::Root(root)) }
}
