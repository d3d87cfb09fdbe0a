//! Into a node of a lab that stands.

use std::env;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

use super::{LabState, StandingError};
use crate::lab::namespace::NamespaceHandle;
use crate::lab::sys;

/// Moves this process, which has one thread, into the namespaces of `node`, and
/// stays in the folder it is in where the lab has that.
///
/// # Errors
/// When there is no such node, or the kernel refuses.
pub fn enter(lab: &LabState, node: &str) -> Result<(), StandingError> {
    if !lab.nodes.iter().any(|known| known.name == node) {
        let known = lab.nodes.iter().map(|node| node.name.clone()).collect();
        let (lab, node) = (lab.name.clone(), node.to_owned());
        return Err(StandingError::NoNode { lab, node, known });
    }
    enter_sandbox(lab)?;
    let namespace = NamespaceHandle::open(node)?;
    sys::join_namespace(namespace.as_fd(), libc::CLONE_NEWNET)
        .map_err(StandingError::io(format!("entering {node}")))
}

/// Moves this process, which has one thread, into the sandbox of a lab, into
/// none of its nodes, and stays in the folder it is in where the lab has that.
///
/// # Errors
/// When the kernel refuses.
pub fn enter_sandbox(lab: &LabState) -> Result<(), StandingError> {
    let folder = env::current_dir();
    let path = |kind| format!("/proc/{}/ns/{kind}", lab.keeper);
    let doing = |kind| format!("entering the {kind} namespace of lab {}", lab.name);
    let identity = |path: &str| fs::metadata(path).map(|found| found.ino()).ok();
    let all =
        [("user", libc::CLONE_NEWUSER), ("net", libc::CLONE_NEWNET), ("mnt", libc::CLONE_NEWNS)];
    for (kind, flag) in all {
        // Root's labs have no user namespace of their own.
        if identity(&path(kind)) == identity(&format!("/proc/self/ns/{kind}")) {
            continue;
        }
        let namespace = File::open(path(kind)).map_err(StandingError::io(doing(kind)))?;
        sys::join_namespace(namespace.as_fd(), flag).map_err(StandingError::io(doing(kind)))?;
    }
    if let Ok(folder) = folder {
        // The lab has a /run of its own: who was there is at the root now.
        let _ = env::set_current_dir(folder);
    }
    Ok(())
}
