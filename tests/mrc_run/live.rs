//! What ordinary tools see and do in the lab while it runs.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use mrc_lab::capture::CapturedPacket;
use mrc_lab::wire::packet::{FrameFormat, Packet};

use crate::bench::{As, Bench, Run, demo, output, said, text, wait_for};
use crate::demo::{packets, was_dropped};

/// How long a tool may take to start, and to end after the lab.
const PATIENCE: Duration = Duration::from_secs(20);

/// What tcpdump and dumpcap say when they are ready.
const READY: [&str; 2] = ["listening on mrc0", "File: "];

/// An ordinary capture tool at mrc0 of b: tcpdump, or dumpcap for a user's lab.
struct Tool(Child);

impl Tool {
    /// Starts it and waits until it listens.
    fn start(bench: &Bench, run: &Run) -> Self {
        let errors = fs::File::create(bench.path("tool.err")).expect("made");
        let mut script = bench.script("capture.sh", run, "b mrc0 tool.pcap");
        script.stdin(Stdio::null()).stderr(errors);
        let child = script.spawn().unwrap_or_else(|error| panic!("{script:?}: {error}"));
        let mut tool = Self(child);
        wait_for("the tool listens (tests need tcpdump, dumpcap, nsenter)", PATIENCE, || {
            let said = text(&bench.read("tool.err"));
            assert!(tool.0.try_wait().expect("a child").is_none(), "{script:?}: {said}");
            READY.iter().any(|words| said.contains(words)).then_some(())
        });
        tool
    }

    /// Waits until it has seen the interface go; gives what it said.
    fn end(mut self, bench: &Bench) -> String {
        wait_for("the tool ends with the lab", PATIENCE, || self.0.try_wait().expect("a child"));
        text(&bench.read("tool.err"))
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The frames that b sent, and those that it received, in their order.
fn by_direction(packets: impl Iterator<Item = CapturedPacket>) -> [Vec<Vec<u8>>; 2] {
    let b = "10.0.0.2".parse().ok();
    let is_from_b = |frame: &[u8]| {
        let packet = Packet::parse(frame, &FrameFormat::default());
        packet.ok().map(|packet| packet.source) == b
    };
    let frames = packets.map(|packet| packet.frame);
    let (sent, received) = frames.partition(|frame: &Vec<u8>| is_from_b(frame));
    [sent, received]
}

/// Checks that the tool, which said `said`, saw what our capture has, byte for
/// byte and in order.
fn assert_same_frames(bench: &Bench, said: &str) {
    let ours = packets(&bench.path("out/b.pcapng"));
    assert!(ours.iter().any(was_dropped), "a fault kept some from the wire");
    let ours = by_direction(ours.into_iter().filter(|packet| !was_dropped(packet)));
    let theirs = by_direction(packets(&bench.path("tool.pcap")).into_iter());
    for (way, (ours, theirs)) in ["sent", "received"].into_iter().zip(ours.iter().zip(&theirs)) {
        assert!(ours.len() > 100);
        let first = ours.iter().zip(theirs).position(|(ours, theirs)| ours != theirs);
        let lens = (ours.len(), theirs.len());
        assert!(ours == theirs, "{way}: frame {first:?} differs first, of {lens:?}: {said}");
    }
}

// spec: RC-7, TIME-5, SW-20
#[test]
fn an_ordinary_tool_sees_the_frames_that_our_capture_has() {
    for who in As::both() {
        for clock in ["wall", "exact-wires"] {
            let bench = Bench::new(who);
            let text = demo("4 MiB").replace("probability = 0.001", "probability = 0.01");
            bench.write("lab.toml", &text);
            let mut run = bench.hold(&format!("lab.toml --clock {clock} --out out"));
            let tool = Tool::start(&bench, &run);
            run.release();
            run.end().well();
            let said = tool.end(&bench);
            assert_same_frames(&bench, &said);
        }
    }
}

// spec: REL-10
#[test]
fn an_idle_lab_carries_no_frame() {
    let bench = Bench::with_demo(As::User, "4 MiB");
    let run = bench.hold("lab.toml --out out");
    thread::sleep(Duration::from_secs(5));
    run.signal("INT");
    let end = run.end();
    assert_eq!(end.code, Some(1), "{end:#?}");
    let manifest = bench.json("out/run.json");
    let frames = manifest["frames_on_wire"].as_object().expect("counts");
    assert_eq!(frames.len(), 4);
    assert!(frames.values().all(|count| count.as_u64() == Some(0)), "{frames:?}");
}

/// Frames that mrc0 of b has received so far.
fn frames_at_b(bench: &Bench, run: &Run) -> u64 {
    let table = said(&mut bench.script("enter.sh", run, "b cat /proc/net/dev"));
    let line = table.lines().find_map(|line| line.trim().strip_prefix("mrc0:"));
    let packets = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    packets.unwrap_or_else(|| panic!("no mrc0: {table}"))
}

// spec: TIME-5
#[test]
fn an_interface_that_goes_down_ends_exact_wires_with_its_name() {
    for who in As::both() {
        let bench = Bench::with_demo(who, "64 MiB");
        let mut run = bench.hold("lab.toml --clock exact-wires --no-captures");
        run.release();
        wait_for("the run is in its middle", PATIENCE, || {
            (frames_at_b(&bench, &run) > 100).then_some(())
        });
        said(&mut bench.script("enter.sh", &run, "b ip link set mrc0 down"));
        let end = run.end();
        assert_eq!(end.code, Some(1), "{end:#?}");
        assert!(end.err.contains("interface mrc0 of b"), "{}", end.err);
        assert!(end.err.contains("set down?"), "{}", end.err);
    }
}

// spec: REL-10
#[test]
fn scripts_enter_a_running_lab_and_end_it() {
    for who in As::both() {
        let bench = Bench::with_demo(who, "4 MiB");
        let run = bench.hold("lab.toml");
        let addresses = said(&mut bench.script("enter.sh", &run, "b ip -brief address show mrc0"));
        assert!(addresses.contains("10.0.0.2/32"), "{addresses}");
        said(&mut bench.script("enter.sh", &run, "b true"));
        let failed = output(&mut bench.script("enter.sh", &run, "b false"));
        assert_eq!(failed.status.code(), Some(1));
        let nobody = output(&mut bench.script("enter.sh", &run, "nobody true"));
        assert_ne!(nobody.status.code(), Some(0));
        // A process that has ended is there until its parent knows.
        let pid = run.pid();
        let ended = thread::spawn(move || run.end());
        let down = said(&mut bench.script_for("down.sh", pid, ""));
        assert_eq!(down, format!("lab {pid} is down\n"));
        assert_eq!(ended.join().expect("it ended").code, Some(1));
    }
}

#[test]
fn the_lab_by_hand_runs_a_command() {
    for who in As::both() {
        let bench = Bench::new(who);
        let ping = "ip netns exec a ip -brief link show mrc0";
        let shown = said(bench.by_hand("two-hosts.sh").args(ping.split(' ')));
        assert!(shown.ends_with("<BROADCAST,MULTICAST,UP,LOWER_UP> \n"), "{shown}");
        let failed = output(bench.by_hand("two-hosts.sh").arg("false"));
        assert_eq!(failed.status.code(), Some(1));
    }
}

#[test]
fn scripts_are_clean() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let scripts = fs::read_dir(root.join("netns-scripts")).expect("the scripts");
    let scripts = scripts.map(|script| script.expect("a script").path());
    let others = [root.join(".ci/run"), root.join(".ci/demo"), root.join("tests/run.sh")];
    let found = output(Command::new("shellcheck").args(scripts.chain(others)));
    assert!(found.status.success(), "{}", text(&found.stdout));
}
