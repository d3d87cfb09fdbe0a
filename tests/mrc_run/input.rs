//! Bad input, and machines that lack something: exit code 2, and a message that
//! says where, what, what else is allowed, and what to do.

use crate::bench::{As, Bench, End, demo};

#[track_caller]
fn assert_refused(end: &End, parts: &[&str]) {
    assert_eq!(end.code, Some(2), "{end:#?}");
    assert_eq!(end.out, "");
    for part in parts {
        assert!(end.err.contains(part), "no {part:?}: {end:#?}");
    }
}

// spec: WL-1, PB-8
#[test]
fn bad_scenarios_are_explained() {
    let bench = Bench::new(As::User);
    let a = "ip = \"10.0.0.1\"";
    let link = "ends = [\"a\", \"s\"]";
    for (from, to, parts) in [
        ("seed = 1", "seed = 1\ncolour = 5", ["unknown key `colour`", "remove it", "seed, "]),
        (
            link,
            &format!("{link}\nmtu = 1500"),
            ["mtu = 1500: too small", "MSS = 4096", "set mtu to"],
        ),
        ("to = \"b\"\nbytes", "to = \"z\"\nbytes", ["to = \"z\"", "no NIC", "the NICs are a, b"]),
        (
            a,
            &format!("{a}\nattributes = {{ MaxPSNRange = 70000000 }}"),
            ["MaxPSNRange", "70000000", "to"],
        ),
        (
            a,
            &format!("{a}\nattributes.EgressBufferManager.PoolAllocationVector = [1]"),
            ["EgressBufferManager.PoolAllocationVector = [1]", "one for control", "add what lacks"],
        ),
    ] {
        let text = demo("4 MiB").replacen(from, to, 1);
        assert_ne!(text, demo("4 MiB"), "{from}");
        bench.write("lab.toml", &text);
        let end = bench.run("lab.toml");
        assert_refused(&end, &parts);
        let line = end.err.strip_prefix("error: lab.toml:").and_then(|rest| rest.split_once(':'));
        assert!(line.is_some_and(|(line, _)| line.parse::<u32>().is_ok()), "{}", end.err);
    }
}

// spec: TIME-2, TIME-3
#[test]
fn bad_options_are_explained() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    for (words, parts) in [
        ("lab.toml --tdf 0", &["'0'", "--tdf", "`auto`", "from 1 to 4294967295"][..]),
        ("lab.toml --clock sundial", &["sundial", "--clock", "wall, exact-wires, exact"]),
        ("missing.toml", &["missing.toml", "No such file", "give a scenario file"]),
        ("lab.toml --clock exact --tdf 5", &["--tdf 5", "leave --tdf out", "--clock wall"]),
        ("lab.toml --profile native --tdf 5", &["--tdf 5", "native", "leave --tdf out"]),
        ("lab.toml --time-limit 5", &["'5'", "--time-limit", "ps, ns, us, ms, s"]),
    ] {
        assert_refused(&bench.run(words), parts);
    }
}

// spec: REL-10
#[test]
fn a_machine_without_ip_is_explained() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    // The directories of system programs are searched whatever PATH says.
    let hide = "for dir in /usr/sbin /usr/bin /sbin /bin; do
        [ ! -e $dir/ip ] || mount --bind /dev/null $dir/ip
    done
    exec \"$0\" run lab.toml";
    let mut command = bench.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", hide]).arg(bench.program());
    let end = bench.start_as(command).end();
    assert_refused(&end, &["ip not found in PATH", "install iproute2"]);
}

// spec: REL-10
#[test]
fn a_machine_that_forbids_user_namespaces_is_explained() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    // The sandbox needs one more than there may be.
    let forbid = "echo 0 >/proc/sys/user/max_user_namespaces || exit 9
    exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" run lab.toml";
    let mut command = bench.command("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", forbid]).arg(bench.program());
    let end = bench.start_as(command).end();
    let setting = "user.max_user_namespaces";
    assert_refused(&end, &[&format!("{setting} = 0; run as root, or sysctl -w {setting}=")]);
}
