//! The control socket's file.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, lchown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that wait to be accepted at most.
const BACKLOG: i32 = 16;

/// Listens at a path that only its owner may use, and removes the file when
/// dropped.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: mio::net::UnixListener,
    _file: SocketFile,
}

impl ControlSocket {
    /// Listens at `path`. A socket there on which nobody listens is replaced.
    /// The file belongs to the user and group `owner`, or to this process's.
    ///
    /// # Errors
    /// When the path is in use or cannot be made.
    // spec: REL-9
    pub(super) fn bind(path: &Path, owner: Option<(u32, u32)>) -> io::Result<Self> {
        check_socket_path(path)?;
        make_way(path)?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        // The file gets the mode that the socket has when it is bound.
        let file = File::from(OwnedFd::from(socket));
        file.set_permissions(Permissions::from_mode(0o600))?;
        let socket = Socket::from(OwnedFd::from(file));
        socket.bind(&SockAddr::unix(path)?)?;
        let file = SocketFile::new(path)?;
        let (uid, gid) = owner.unzip();
        lchown(path, uid, gid).map_err(|error| {
            io::Error::new(error.kind(), format!("giving it to --user: {error}; start as root"))
        })?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        let listener = UnixListener::from(OwnedFd::from(socket));
        Ok(Self { listener: mio::net::UnixListener::from_std(listener), _file: file })
    }

    /// Where connections come in.
    pub(super) fn listener(&mut self) -> &mut mio::net::UnixListener {
        &mut self.listener
    }
}

/// That `path` is short enough for a socket.
///
/// # Errors
/// `InvalidInput` when it is not.
pub fn check_socket_path(path: &Path) -> io::Result<()> {
    // The kernel's 108 bytes, one of them for the zero at the end.
    const MAX_BYTES: usize = 107;
    let bytes = path.as_os_str().len();
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let text =
        format!("a socket's path may have {MAX_BYTES} bytes and this has {bytes}; shorten it");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// Removes a socket that a daemon left behind when it was killed.
fn make_way(path: &Path) -> io::Result<()> {
    let refuse = |text: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, text.to_owned()));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            refuse("a file is there that is no socket; choose another path or remove it")
        }
        Ok(_) => {
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            match socket.connect(&SockAddr::unix(path)?) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path)
                }
                Err(error) => Err(error),
                Ok(()) => refuse("another program listens there; stop it or choose another path"),
            }
        }
    }
}

/// A socket's file, removed when dropped unless another has taken its place.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn new(path: &Path) -> io::Result<Self> {
        // The daemon may change its working directory no more than its user may
        // move the socket; the path is kept absolute all the same.
        let path = std::path::absolute(path)?;
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            // A file that cannot be removed is found and replaced by the next daemon.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("there").permissions().mode() & 0o777
    }

    // spec: REL-9
    #[test]
    fn only_the_owner_may_use_the_socket_and_it_goes_away() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.sock");
        let socket = ControlSocket::bind(&path, None).expect("bound");
        assert_eq!(mode(&path), 0o600);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_live_one_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a.sock");
        drop(UnixListener::bind(&path).expect("bound"));
        let first = ControlSocket::bind(&path, None).expect("replaces the dead one");
        let second = ControlSocket::bind(&path, None).expect_err("somebody listens");
        assert!(second.to_string().contains("another program listens"), "{second}");
        // One that was replaced does not remove its successor's file.
        fs::remove_file(&path).expect("removed");
        let successor = ControlSocket::bind(&path, None).expect("free");
        drop(first);
        assert!(path.exists());
        drop(successor);
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("notes");
        fs::write(&path, "mine").expect("written");
        let error = ControlSocket::bind(&path, None).expect_err("a file");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(fs::read(&path).expect("still there"), b"mine");
        assert!(ControlSocket::bind(&dir.path().join("missing/a.sock"), None).is_err());
    }

    #[test]
    fn a_long_path_is_refused_with_both_lengths() {
        let path = PathBuf::from("/tmp").join("x".repeat(103));
        let error = ControlSocket::bind(&path, None).expect_err("108 bytes").to_string();
        assert!(error.contains("107 bytes") && error.contains("has 108"), "{error}");
        assert!(check_socket_path(&PathBuf::from("x".repeat(107))).is_ok());
    }
}
