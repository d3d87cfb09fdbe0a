//! The sandbox: namespaces of this process's own, in which it may do as it
//! likes and nobody else sees it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};

use super::error::{LabError, while_doing};
use super::namespace::NamespaceHandle;
use super::sys::{self, Mount};

/// Where `ip` keeps the names of namespaces, in a directory `netns`.
const RUN_DIR: &str = "/var/run";

/// CAP_NET_ADMIN and CAP_SYS_ADMIN: without both, a user namespace is needed.
const ADMIN: u64 = 1 << 12 | 1 << 21;

/// Proof that this process has left the machine's namespaces: what builds
/// networks asks for it, so that nothing can be built outside.
///
/// It has mount and network namespaces of its own, and as an ordinary user a
/// user namespace in which it is root. `/run` is empty and private in there.
/// All of it ends with the last process inside.
#[derive(Debug)]
pub struct Sandbox {
    rootless: bool,
}

impl Sandbox {
    /// Moves this process into namespaces of its own. There is no way back, not
    /// after an error either: the process should then say what is wrong and end.
    ///
    /// # Errors
    /// [`LabError::Threads`] when another thread runs, [`LabError::Forbidden`]
    /// when the machine does not let this user make namespaces, and
    /// [`LabError::Io`] when a step fails for another reason.
    // spec: REL-10
    pub fn enter() -> Result<Self, LabError> {
        let status = fs::read_to_string("/proc/self/status")
            .map_err(while_doing("read /proc/self/status"))?;
        let threads = status_field(&status, "Threads:").and_then(|field| field.parse().ok());
        match threads {
            Some(1) => {}
            other => return Err(LabError::Threads(other.unwrap_or(0))),
        }
        let capabilities = status_field(&status, "CapEff:")
            .and_then(|field| u64::from_str_radix(field, 16).ok())
            .unwrap_or(0);
        let rootless = capabilities & ADMIN != ADMIN;
        separate(rootless).map_err(|error| match error {
            LabError::Io { source, .. } if rootless && is_refusal(&source) => {
                LabError::Forbidden(explain_refusal(&source, read_sysctl))
            }
            other => other,
        })?;
        Ok(Self { rootless })
    }

    /// Whether the sandbox has a user namespace of its own, because the process
    /// was not allowed to do without.
    pub const fn is_rootless(&self) -> bool {
        self.rootless
    }

    /// Starts `command` in `namespace`. The child is killed when the calling
    /// thread ends, so call this from one that lasts.
    ///
    /// # Errors
    /// When the program cannot be started.
    // spec: REL-10
    pub fn spawn_in(&self, namespace: &NamespaceHandle, mut command: Command) -> io::Result<Child> {
        sys::start_in_namespace(&mut command, namespace.as_fd());
        self.spawn(command)
    }

    /// Starts `command` in the sandbox, in no node. The child is killed when
    /// the calling thread ends, so call this from one that lasts.
    ///
    /// # Errors
    /// When the program cannot be started.
    // spec: REL-10
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        sys::die_with_parent(&mut command);
        command.spawn()
    }
}

/// The first word after `name` in the text of a /proc status file.
fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()
}

/// Takes the namespaces and prepares the mounts in them.
fn separate(rootless: bool) -> Result<(), LabError> {
    let (uid, gid) = (sys::effective_uid(), sys::effective_gid());
    let user = if rootless { libc::CLONE_NEWUSER } else { 0 };
    sys::unshare(user | libc::CLONE_NEWNS | libc::CLONE_NEWNET)
        .map_err(while_doing("make namespaces"))?;
    if rootless {
        become_root(uid, gid)?;
    }
    let mount = |how, target: &Path| {
        sys::mount(how, target).map_err(while_doing(format!("mount {}", target.display())))
    };
    mount(Mount::PrivateTree, Path::new("/"))?;
    let run = fs::canonicalize(RUN_DIR).map_err(while_doing(format!("find {RUN_DIR}")))?;
    mount(Mount::Tmpfs, &run)?;
    if sysctls_are_read_only() {
        mount(Mount::Writable, Path::new("/proc/sys"))?;
    }
    Ok(())
}

/// Maps this process's user and group to root of the new user namespace.
fn become_root(uid: u32, gid: u32) -> Result<(), LabError> {
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {uid} 1")),
        ("gid_map", format!("0 {gid} 1")),
    ];
    for (file, text) in maps {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).map_err(while_doing(format!("write {path}")))?;
    }
    Ok(())
}

/// Containers mount /proc/sys read-only; nothing is written here.
fn sysctls_are_read_only() -> bool {
    let opened = OpenOptions::new().write(true).open("/proc/sys/net/ipv4/ip_forward");
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Sysctls that keep users from making namespaces: the value that does, and
/// one that does not.
const SWITCHES: [(&str, &str, &str); 5] = [
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("user.max_user_namespaces", "0", "15000"),
    ("user.max_net_namespaces", "0", "15000"),
    ("user.max_mnt_namespaces", "0", "15000"),
];

fn is_refusal(error: &io::Error) -> bool {
    // EUSERS: what kernels before 4.9 say for ENOSPC.
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS | libc::ENOSYS)
    )
}

/// Says which switch refuses namespaces and how to turn it, or who else may.
fn explain_refusal(error: &io::Error, sysctl: impl Fn(&str) -> Option<String>) -> String {
    let refused = format!("this machine forbids user namespaces ({error})");
    for (name, forbids, allows) in SWITCHES {
        if sysctl(name).as_deref() == Some(forbids) {
            return format!(
                "{refused}: {name} = {forbids}; run as root, or sysctl -w {name}={allows}"
            );
        }
    }
    if error.raw_os_error() == Some(libc::ENOSPC) {
        let limits: Vec<String> = SWITCHES
            .iter()
            .filter(|(name, ..)| name.starts_with("user."))
            .filter_map(|(name, ..)| Some(format!("{name} = {}", sysctl(name)?)))
            .collect();
        return format!(
            "{refused}: a limit is reached, of {}; run as root, or raise it with sysctl -w",
            limits.join(", ")
        );
    }
    format!(
        "{refused}: no sysctl does, so a security profile (seccomp, AppArmor, SELinux) must; \
         run as root, or in a container with --privileged"
    )
}

fn read_sysctl(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(errno: i32, sysctls: &[(&str, &str)]) -> String {
        explain_refusal(&io::Error::from_raw_os_error(errno), |name| {
            let found = sysctls.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    // spec: REL-10
    #[test]
    fn a_refusal_names_the_sysctl_its_value_and_the_cure() {
        let text = refusal(libc::EPERM, &[("kernel.unprivileged_userns_clone", "0")]);
        assert!(text.contains("forbids user namespaces"), "{text}");
        assert!(text.contains("kernel.unprivileged_userns_clone = 0"), "{text}");
        let cure = "run as root, or sysctl -w kernel.unprivileged_userns_clone=1";
        assert!(text.contains(cure), "{text}");

        let name = "kernel.apparmor_restrict_unprivileged_userns";
        let text = refusal(libc::EACCES, &[("user.max_user_namespaces", "9"), (name, "1")]);
        assert!(text.contains(&format!("{name} = 1")), "{text}");
    }

    #[test]
    fn a_reached_limit_is_told_from_a_security_profile() {
        let limits = [("user.max_user_namespaces", "7"), ("user.max_net_namespaces", "8")];
        let text = refusal(libc::ENOSPC, &limits);
        assert!(text.contains("user.max_user_namespaces = 7, user.max_net_namespaces = 8"));
        assert!(refusal(libc::EPERM, &limits).contains("seccomp"));
    }

    #[test]
    fn a_process_with_threads_is_told_to_enter_first() {
        let entered = std::thread::spawn(Sandbox::enter).join().expect("no panic");
        let error = entered.expect_err("more than one thread");
        assert!(error.to_string().contains("before any thread starts"), "{error}");
    }
}
