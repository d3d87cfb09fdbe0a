//! Frames forwarded in a second over two veth pairs, by the Linux bridge and by
//! `mrc switch`, in turn. See `benches/forwarding.sh`.
//!
//! Sender and receiver are processes of their own, the same ones in both cases:
//! this program again, told by its first argument which of them it is. The
//! sender has core 0; the receiver has core 1, where it looks into its ring once
//! a millisecond and sleeps. The switch has core 1; the bridge works where the
//! kernel has it work, in the sender's system call.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, ensure};
use mrc_lab::daemon::Client;
use mrc_lab::io::clock::monotonic_ns;
use mrc_lab::io::{PacketSocket, PacketSocketOptions};
use mrc_lab::lab::{NamespaceHandle, Network, NetworkPlan, Sandbox, network_plan};
use mrc_lab::scenario::{Overrides, Topology, parse};
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::mac::{MacAddr, MacPair};
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, Ecn, Packet};
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::Role;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/forwarding.toml");
/// A full packet, and one about as long as an acknowledgement.
const SIZES: [usize; 2] = [4_170, 90];
/// Bytes of a frame that are no payload.
const HEADERS: usize = 74;
/// Frames that the sender hands over at once.
const BATCH: usize = 64;
const SECOND_NS: u64 = 1_000_000_000;
/// When nothing has come for so long, nothing more will.
const SILENCE_NS: u64 = 300_000_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", interface, bytes, towards] => send(interface, bytes.parse()?, towards),
        ["receive", interface, bytes] => receive(interface, bytes.parse()?),
        _ => compare(arguments),
    }
}

/// A way from one host to the other, through whatever forwards in the middle.
struct Way<'a> {
    network: &'a Network,
    /// Sender and receiver.
    hosts: [&'a str; 2],
    /// Where the sender sends its frames.
    towards: MacAddr,
}

/// What one second gave.
struct Round {
    /// Thousands of frames a second that arrived.
    kpps: f64,
    /// Of the frames sent, in percent.
    lost: f64,
}

/// Measures the bridge and each of the binaries in turn, and prints medians.
fn compare(mut binaries: Vec<String>) -> Result<()> {
    if binaries.is_empty() {
        binaries.push(env!("CARGO_BIN_EXE_mrc").to_owned());
    }
    let rounds = env::var("ROUNDS").map_or(Ok(7), |text| text.parse()).context("ROUNDS")?;
    let text = fs::read_to_string(SCENARIO)?;
    let scenario = parse(&text, SCENARIO, &Overrides::default());
    let scenario = scenario.map_err(|errors| anyhow!("{errors:?}"))?;
    let topology = Topology::new(&scenario);
    let (folder, sandbox) = (tempfile::tempdir()?, Sandbox::enter()?);
    let plan = network_plan(&topology);
    let switched = Network::build(&sandbox, &plan)?;
    let bridged = Network::build(&sandbox, &beside(plan))?;
    make_bridge(&sandbox, &bridged, &topology)?;
    let [port, nic] = [topology.links[0].macs[1], topology.links[1].macs[1]];
    let through_switch = Way { network: &switched, hosts: ["a", "b"], towards: port };
    let through_bridge = Way { network: &bridged, hosts: ["bridged-a", "bridged-b"], towards: nic };
    for bytes in SIZES {
        let mut bridge = Vec::new();
        let mut switches: Vec<Vec<Round>> = binaries.iter().map(|_| Vec::new()).collect();
        for _ in 0..rounds {
            bridge.push(through_bridge.measure(&sandbox, bytes)?);
            for (binary, results) in binaries.iter().zip(&mut switches) {
                let _daemon = Daemon::start(&sandbox, &switched, binary, folder.path())?;
                results.push(through_switch.measure(&sandbox, bytes)?);
            }
        }
        print_row(bytes, "Linux bridge", &bridge, &bridge);
        for (binary, results) in binaries.iter().zip(&switches) {
            print_row(bytes, binary, results, &bridge);
        }
    }
    Ok(())
}

/// The same network under other names.
fn beside(mut plan: NetworkPlan) -> NetworkPlan {
    let ends = plan.links.iter_mut().flat_map(|link| &mut link.ends).map(|end| &mut end.node);
    plan.nodes.iter_mut().chain(ends).for_each(|name| name.insert_str(0, "bridged-"));
    plan
}

/// Has the kernel forward in the middle: nothing is learnt, flooded or snooped.
fn make_bridge(sandbox: &Sandbox, network: &Network, topology: &Topology) -> Result<()> {
    let [a, b] = [topology.links[0].macs[0], topology.links[1].macs[1]].map(mac_text);
    let script = format!(
        "ip link add br0 type bridge stp_state 0 mcast_snooping 0
        for port in mrc0 mrc1; do
            ip link set $port master br0
            bridge link set dev $port learning off
        done
        bridge fdb replace {a} dev mrc0 master static
        bridge fdb replace {b} dev mrc1 master static
        ip link set br0 up"
    );
    let mut shell = Command::new("sh");
    shell.args(["-euc", &script]).env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    let status = sandbox.spawn_in(namespace(network, "bridged-s")?, shell)?.wait()?;
    ensure!(status.success(), "the bridge cannot be made");
    Ok(())
}

fn mac_text(MacAddr(octets): MacAddr) -> String {
    octets.map(|octet| format!("{octet:02x}")).join(":")
}

fn namespace<'a>(network: &'a Network, name: &str) -> Result<&'a NamespaceHandle> {
    network.namespace(name).with_context(|| format!("no namespace {name}"))
}

/// `program` on `core`.
fn pinned(core: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}

impl Way<'_> {
    /// Sends for a second and waits for what arrives.
    fn measure(&self, sandbox: &Sandbox, bytes: usize) -> Result<Round> {
        let start = |host, core, role: &str, rest: &[String]| {
            let mut command = pinned(core, env::current_exe()?);
            command.args([role, "mrc0", &bytes.to_string()]).args(rest).stdout(Stdio::piped());
            let mut child = sandbox.spawn_in(namespace(self.network, host)?, command)?;
            let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
            anyhow::Ok((child, lines))
        };
        let (mut receiver, mut received) = start(self.hosts[1], "1", "receive", &[])?;
        received.next().context("no receiver")??;
        let towards = self.towards.0.map(|octet| octet.to_string()).join(".");
        let (mut sender, mut sent) = start(self.hosts[0], "0", "send", &[towards])?;
        let sent: f64 = sent.next().context("no sender")??.parse()?;
        let line = received.next().context("nothing received")??;
        let (count, ns) = line.split_once(' ').context("two numbers")?;
        let (count, ns): (f64, f64) = (count.parse()?, ns.parse()?);
        ensure!(sender.wait()?.success() && receiver.wait()?.success(), "an end failed");
        Ok(Round { kpps: 1e6 * count / ns, lost: 100.0 * (1.0 - count / sent) })
    }
}

/// The switch's daemon, which ends with this value.
struct Daemon(Child);

impl Daemon {
    fn start(sandbox: &Sandbox, network: &Network, binary: &str, folder: &Path) -> Result<Self> {
        let control = folder.join("s.sock");
        let _ = fs::remove_file(&control);
        let mut command = pinned("1", binary);
        command.args(["switch", "--node", "s", "--interface", "mrc0", "--interface", "mrc1"]);
        command.args(["--scenario", SCENARIO, "--control"]).arg(&control).stdout(Stdio::null());
        let daemon = Self(sandbox.spawn_in(namespace(network, "s")?, command)?);
        let patience = monotonic_ns() + 10 * SECOND_NS;
        while Client::connect(&control).is_err() {
            ensure!(monotonic_ns() < patience, "{binary} does not start");
            sleep(Duration::from_millis(5));
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended already needs no more.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints the medians of `rounds`, and that of each round's rate against the
/// rate of the bridge in the same round.
fn print_row(bytes: usize, name: &str, rounds: &[Round], bridge: &[Round]) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let kpps = median(rounds.iter().map(|round| round.kpps).collect());
    let lost = median(rounds.iter().map(|round| round.lost).collect());
    let pairs = rounds.iter().zip(bridge);
    let ratio = median(pairs.map(|(ours, bridge)| ours.kpps / bridge.kpps).collect());
    println!("{bytes:5} bytes {kpps:6.0} kpps {lost:5.1} % lost {ratio:5.2} {name}");
}

/// Sends for a second, as fast as frames are taken, and says how many those were.
fn send(interface: &str, bytes: usize, towards: &str) -> Result<()> {
    let mut socket = PacketSocket::open(interface, &PacketSocketOptions::default())?;
    let octets = towards.split('.').map(str::parse).collect::<Result<Vec<u8>, _>>()?;
    let frame = frame(bytes, MacAddr(octets.as_slice().try_into()?));
    ensure!(frame.len() == bytes, "{} bytes are no frame's", bytes);
    let batch = [frame.as_slice(); BATCH];
    let (end, mut sent) = (monotonic_ns() + SECOND_NS, 0);
    while monotonic_ns() < end {
        sent += socket.send_batch(&batch).sent;
    }
    println!("{sent}");
    Ok(())
}

/// A part of an RDMA Write, as a NIC sends it.
fn frame(bytes: usize, destination: MacAddr) -> Vec<u8> {
    let payload = vec![0xa5; bytes.saturating_sub(HEADERS)];
    let packet = Packet {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        role: Some(Role::Trimmable),
        dscp: 0,
        ecn: Ecn::Ect0,
        entropy: 49_152,
        bth: Bth {
            opcode: Opcode::WriteMiddle,
            destination_qp: Qpn::masked(0x123),
            ack_request: false,
            retransmission: false,
            timestamp_present: false,
            connect: false,
            psn: Psn::masked(1),
        },
        body: Body::Write {
            meth: Meth { rqmsn: 0, msn: 0 },
            tseth: None,
            reth: Reth { va: 0, rkey: RKey(1), dma_length: 1 << 20 },
            payload: &payload,
        },
    };
    let mut frame = Vec::new();
    let macs = MacPair { source: MacAddr([2, 1, 0, 0, 0, 1]), destination };
    packet.emit(&Default::default(), macs, &mut frame);
    frame
}

/// Counts frames until no more come, and says how many, in how many nanoseconds.
fn receive(interface: &str, bytes: usize) -> Result<()> {
    // Room for ten milliseconds and more: what is lost, others have lost.
    let options = PacketSocketOptions { ring_frames: 4_096, ..PacketSocketOptions::default() };
    let mut socket = PacketSocket::open(interface, &options)?;
    println!("ready");
    let (mut count, mut first, mut last) = (0_u64, None, monotonic_ns());
    // The sender takes a moment to start.
    while monotonic_ns() < last + if count == 0 { 10 * SECOND_NS } else { SILENCE_NS } {
        let before = count;
        while let Some(frame) = socket.receive() {
            count += u64::from(frame.len() == bytes);
        }
        if count > before {
            last = monotonic_ns();
            first.get_or_insert(last);
        }
        sleep(Duration::from_millis(1));
    }
    let first = first.context("no frame came")?;
    println!("{count} {}", last - first);
    Ok(())
}
