//! A real veth pair in namespaces of the test's own, so that nothing of the
//! host is touched and everything is gone with the process, however it ends.

use std::env;
use std::process::Command;

/// Set in the process that runs inside the namespaces.
const INSIDE: &str = "MRC_TEST_INSIDE_NAMESPACE";

/// Runs `test`, which must be the body of the test called `name`, in fresh
/// namespaces with a veth pair `left`-`right` that is up with an MTU of `mtu` bytes.
pub fn with_veth(name: &str, mtu: u32, test: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        ip(&format!("link add left mtu {mtu} type veth peer name right mtu {mtu}"));
        for end in ["left", "right"] {
            ip(&format!("link set {end} addrgenmode none"));
            ip(&format!("link set {end} up"));
        }
        return test();
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--net", "--"]);
    unshare.arg(env::current_exe().expect("the test's own path"));
    unshare.args([name, "--exact", "--include-ignored", "--nocapture"]).env(INSIDE, "1");
    let output = unshare.output().expect("this test needs `unshare` (util-linux)");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{name} failed inside namespaces of its own; it needs unprivileged user namespaces \
         and `ip`:\n{stdout}{stderr}"
    );
    println!("{stdout}");
}

/// Runs `ip` with `arguments`.
pub fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.expect("this test needs `ip` (iproute2)");
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
