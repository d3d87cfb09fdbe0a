//! A third host that says what others have said.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use mrc_lab::capture::PcapngReader;
use mrc_lab::io::{PacketSocket, PacketSocketOptions};
use mrc_lab::scenario::{Overrides, Topology, parse};
use mrc_lab::wire::mac::MacPair;
use mrc_lab::wire::packet::{Body, FrameFormat, Packet};
use mrc_lab::wire::qpn::RKey;

use crate::bench::{As, Bench, demo, wait_for};

/// Set for the process that forges: the folder of the run's captures.
const FORGER: &str = "MRC_TEST_FORGER";

const C: &str = "
[[nic]]
name = \"c\"
ip = \"10.0.0.3\"

[[link]]
ends = [\"c\", \"s\"]
";

fn three_hosts() -> String {
    demo("32 MiB") + C
}

/// The addresses on c's link.
fn macs_of_c() -> MacPair {
    let scenario = parse(&three_hosts(), "lab.toml", &Overrides::default()).expect("it is right");
    let [source, destination] = Topology::new(&scenario).links[2].macs;
    MacPair { source, destination }
}

/// The packets of a capture that is still being written, as c would send them:
/// to the same QPs, but with a key and with bytes that nobody gave out.
fn forged(capture: &Path, out: &mut Vec<Vec<u8>>) {
    let (format, macs) = (FrameFormat::default(), macs_of_c());
    let Ok(reader) = PcapngReader::open(capture) else { return };
    for captured in reader.map_while(Result::ok).take(2_000) {
        let Ok(mut packet) = Packet::parse(&captured.frame, &format) else { continue };
        packet.source = [10, 0, 0, 3].into();
        let payload = packet.body.payload().iter().map(|byte| !byte).collect::<Vec<_>>();
        if let Body::Write { reth, payload: bytes, .. } = &mut packet.body {
            reth.rkey = RKey(!reth.rkey.0);
            *bytes = &payload;
        }
        let mut frame = Vec::new();
        packet.emit(&format, macs, &mut frame);
        out.push(frame);
    }
}

/// Runs on host c until it is killed, or for a while.
#[test]
#[ignore = "a part of another test"]
fn forger() {
    let Some(dir) = env::var_os(FORGER).map(PathBuf::from) else { return };
    let options = PacketSocketOptions { frame_capacity: 4_224, ..PacketSocketOptions::default() };
    let mut socket = PacketSocket::open("mrc0", &options).expect("c's interface");
    for _ in 0..1_000 {
        let mut frames = Vec::new();
        ["a", "b"].iter().for_each(|host| forged(&dir.join(format!("{host}.pcapng")), &mut frames));
        for batch in frames.chunks(20) {
            // What a full queue refuses is not missed.
            socket.send_batch(batch);
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

// spec: REL-1, REL-2, REL-3
#[test]
fn forged_packets_of_a_third_host_change_nothing() {
    let bench = Bench::new(As::User);
    bench.write("lab.toml", &three_hosts());
    let mut run = bench.hold("lab.toml --json --out out");
    let test = bench.copy_of_this_test();
    let words = format!("c {} forge::forger --exact --ignored --nocapture", test.display());
    let mut forger = bench.script("enter.sh", &run, &words);
    forger.env(FORGER, bench.path("out")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut forger = forger.spawn().expect("enter.sh starts");
    run.release();
    wait_for("the end of the run", Duration::from_secs(60), || (!run.is_running()).then_some(()));
    let forging = forger.try_wait().expect("a child").is_none();
    // It may have ended; that is looked at below.
    let _ = forger.kill();
    let _ = forger.wait();
    let end = run.end().well();
    assert!(forging, "the forger ended too soon");
    let summary = end.json();
    assert_eq!(summary["sha256"], "equal");
    let forged = summary["frames_on_wire"]["c mrc0"].as_u64().expect("a count");
    assert!(forged > 200, "{summary:#}");
    let drops = summary["drops"].as_object().expect("by cause");
    let of = |cause: &str| drops.get(cause).and_then(|count| count.as_u64()).unwrap_or(0);
    assert!(of("bad_source") > 0, "acknowledgements for another's QP: {summary:#}");
}
