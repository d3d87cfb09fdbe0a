//! Labs that stay up.

use std::process::Command;
use std::thread;
use std::time::Duration;

use mrc_lab::io::clock::monotonic_ns;

use crate::bench::{As, Bench, End, said, text, wait_for};

/// How soon nothing may be left of a killed lab.
const GRACE: Duration = Duration::from_secs(2);

/// `mrc lab` with these words, with all labs in the bench's folder.
fn lab(bench: &Bench, words: &str) -> Command {
    let mut command = bench.mrc(&format!("lab {words}"));
    command.env("TMPDIR", bench.path(""));
    command
}

/// What comes of `mrc lab` with these words.
fn end(bench: &Bench, words: &str) -> End {
    let output = lab(bench, words).output().expect("it starts");
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    End { code: output.status.code(), out, err }
}

/// What `mrc lab` with these words, which has to succeed, says.
fn well(bench: &Bench, words: &str) -> String {
    let End { code, out, err } = end(bench, words);
    assert_eq!(code, Some(0), "{words}: {err}");
    out + &err
}

/// Takes the lab `x` down at the end of a test, also of one that fails.
struct Down<'a>(&'a Bench);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        // There may be none.
        let _ = lab(self.0, "down x").output();
    }
}

fn keeper(bench: &Bench) -> String {
    let state: serde_json::Value =
        serde_json::from_str(&well(bench, "status --json")).expect("one lab");
    state["keeper"].to_string()
}

// spec: REL-10, SW-1
#[test]
fn a_lab_stands_is_entered_and_goes_down() {
    for who in As::both() {
        let bench = Bench::with_demo(who, "1 MiB");
        let _down = Down(&bench);
        let up = bench.start_as(lab(&bench, "up lab.toml --name x --processes 2"));
        let came = wait_for("the lab is up", Duration::from_secs(30), || {
            up.said().contains("take it down with").then(|| up.said())
        });
        assert!(came.contains("lab x is up") && came.contains("3 nodes in 2 processes"), "{came}");
        wait_for("only the lab runs", GRACE, || (up.processes().len() == 3).then_some(()));
        let status = well(&bench, "status");
        assert!(status.starts_with("x: 3 nodes, TDF "), "{status}");
        assert!(status.contains("10.0.0.2") && status.contains("x/s.sock"), "{status}");
        let address = well(&bench, "enter a ip -brief address show mrc0");
        assert!(address.contains("10.0.0.1/32"), "{address}");
        assert!(well(&bench, "enter b pwd").contains("work"), "the folder stays");
        let ping = well(&bench, "enter a --lab x ping -c 1 -W 5 10.0.0.2");
        assert!(ping.contains(" 0% packet loss"), "{ping}");
        let again = end(&bench, "up lab.toml --name x");
        assert_eq!(again.code, Some(2), "{again:?}");
        assert!(again.err.contains("lab x is up already"), "{again:?}");
        let nobody = end(&bench, "enter c true");
        assert!(nobody.code == Some(2) && nobody.err.contains("it has a, b, s"), "{nobody:?}");
        assert!(well(&bench, "down").contains("lab x is down"));
        assert_eq!(up.processes(), [0; 0], "nothing is left");
        assert_eq!(well(&bench, "status"), "");
        assert!(well(&bench, "down x").contains("no lab x was up"), "going down twice is no error");
        assert_eq!(up.end().code, Some(0));
    }
}

// spec: REL-10
#[test]
fn a_lab_killed_at_any_moment_does_not_keep_the_next_from_coming_up() {
    for who in As::both() {
        let bench = Bench::with_demo(who, "1 MiB");
        let _down = Down(&bench);
        let start = monotonic_ns();
        well(&bench, "up lab.toml --name x");
        let whole = monotonic_ns() - start;
        well(&bench, "down x");
        for moment in 0..10 {
            let killed = bench.start_as(lab(&bench, "up lab.toml --name x"));
            thread::sleep(Duration::from_nanos(whole * moment / 10));
            killed.signal("KILL");
            let what = format!("a start killed at moment {moment} leaves a whole lab or nothing");
            let stands = wait_for(&what, GRACE, || {
                let stands = well(&bench, "status").starts_with("x: 3 nodes");
                (stands || killed.processes().is_empty()).then_some(stands)
            });
            if stands {
                well(&bench, "down x");
            }
            well(&bench, "up lab.toml --name x");
            well(&bench, "down x");
        }
        let up = bench.start_as(lab(&bench, "up lab.toml --name x"));
        wait_for("the lab is up", GRACE, || up.said().contains("take it down").then_some(()));
        wait_for("it stands alone", GRACE, || (up.processes().len() <= 4).then_some(()));
        said(Command::new("kill").args(["-s", "KILL", &keeper(&bench)]));
        wait_for("all end with the keeper", GRACE, || up.processes().is_empty().then_some(()));
        assert_eq!(well(&bench, "status"), "");
        well(&bench, "up lab.toml --name x");
        well(&bench, "down x");
    }
}

// case E07: the ends of a link differ.
// spec: REL-10
#[test]
fn the_doctor_sees_what_is_wrong_with_a_lab_that_stands() {
    for who in As::both() {
        let bench = Bench::with_demo(who, "1 MiB");
        let _down = Down(&bench);
        assert!(well(&bench, "doctor").contains("ok      namespaces"));
        well(&bench, "doctor lab.toml");
        well(&bench, "up lab.toml --name x");
        well(&bench, "doctor --lab x");
        well(&bench, "enter b ip link set mrc0 mtu 1500");
        let End { code, out, .. } = end(&bench, "doctor --lab x");
        assert_eq!(code, Some(1), "{out}");
        let cure = "ip -n b link set mrc0 mtu 4200";
        assert!(out.lines().any(|l| l.starts_with("BAD     MTU") && l.ends_with(cure)), "{out}");
        well(&bench, "enter b ip link set mrc0 mtu 4200");
        well(&bench, "doctor --lab x");
        well(&bench, "down x");
    }
}

// spec: REL-9, REL-10
#[test]
fn names_and_folders_that_will_not_do_are_refused() {
    let bench = Bench::with_demo(As::User, "1 MiB");
    for name in ["../x", "-x", "a b"] {
        let output = lab(&bench, "up lab.toml").arg(format!("--name={name}")).output();
        let output = output.expect("it starts");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("lab name"), "{}", text(&output.stderr));
    }
    let none = end(&bench, "enter a");
    assert!(none.code == Some(2) && none.err.contains("mrc lab up SCENARIO"), "{none:?}");
    let missing = end(&bench, "up nothing.toml");
    assert!(missing.code == Some(2) && missing.err.contains("nothing.toml"), "{missing:?}");
    let uid = text(&bench.command("id").arg("-u").output().expect("id").stdout);
    let root = bench.path(&format!("mrc-lab-{}", uid.trim()));
    said(Command::new("chmod").arg("777").arg(root));
    let unsafe_folder = end(&bench, "status");
    assert!(unsafe_folder.err.contains("not a folder of this user alone"), "{unsafe_folder:?}");
}

// The limits are generous: the figures are in docs/performance.md.
// spec: REL-10, TIME-5
#[test]
fn sixty_four_hosts_come_up_and_go_down() {
    let bench = Bench::alone(As::User);
    bench.write("lab.toml", include_str!("../../scenarios/leaf-spine-64.toml"));
    let start = monotonic_ns();
    let _down = Down(&bench);
    let up = well(&bench, "up lab.toml --name x");
    let came_up = monotonic_ns();
    assert!(up.contains("76 nodes"), "{up}");
    let ping = well(&bench, "enter h0 ping -c 1 -W 5 10.0.7.8");
    assert!(ping.contains(" 0% packet loss"), "{ping}");
    let before_down = monotonic_ns();
    well(&bench, "down");
    let [up, down] = [came_up - start, monotonic_ns() - before_down].map(|ns| ns as f64 / 1e9);
    println!("64 hosts up in {up:.2} s, down in {down:.2} s");
    assert!(up < 60.0 && down < 20.0, "{up} s, {down} s");
}
