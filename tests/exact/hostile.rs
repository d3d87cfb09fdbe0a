//! Strangers, liars and broken frames in the middle of a transfer.

use core::net::Ipv4Addr;

use mrc_lab::nic::{Access, MemoryRegion, QpChoice, QpSide};
use mrc_lab::node::link::{FaultAction, PacketMatch};
use mrc_lab::scenario::Scenario;
use mrc_lab::time::Duration;
use mrc_lab::trace::{NoTrace, NodeId, QpEventKind};
use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::checksum;
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::neth::{NackReason, Neth};
use mrc_lab::wire::opcode::{Kind, Opcode};
use mrc_lab::wire::packet::{Body, DATA_OVERHEAD};
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::Role;
use mrc_lab::wire::seth::{PathMark, SackSubject, Seth};
use proptest::prelude::*;

use crate::lab::*;
use crate::peer::*;
use crate::wiretap::BTH_AT;

const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);

/// A transfer from a to b that others disturb, with regions of b's host before
/// and behind its target.
struct Disturbed<'t> {
    stage: Stage<'t>,
    message: Message,
    guards: [MemoryRegion; 2],
    sender: Qpn,
    receiver: Qpn,
    wqe_id: u64,
}

impl<'t> Disturbed<'t> {
    const GUARD: u8 = 0xa5;

    /// The transfer of `bytes` is under way: b has its side, a knows its number.
    fn new(mut stage: Stage<'t>, bytes: usize) -> Self {
        let guard = |stage: &mut Stage<'_>| {
            stage.register(B, vec![Self::GUARD; 4_096], Access::RemoteWrite)
        };
        let before = guard(&mut stage);
        let message = stage.message(A, B, bytes);
        let guards = [before, guard(&mut stage)];
        let (sender, wqe_id) = stage.post(QpChoice::New, &message);
        stage.step_until(|stage| {
            stage.side(A, QpSide::Requester).is_some_and(|info| info.remote.qpn != Qpn::NONE)
        });
        let receiver = stage.side(B, QpSide::Responder).expect("b's side").local.qpn;
        Self { stage, message, guards, sender, receiver, wqe_id }
    }

    /// Whether nothing but the target was written to.
    fn guards_are_whole(&self) -> bool {
        let nic = self.stage.world.nic(B);
        self.guards.iter().all(|guard| nic.memory(guard.rkey) == Some(&[Self::GUARD; 4_096][..]))
    }

    fn is_complete(&self) -> bool {
        self.stage.is_complete(A, self.wqe_id)
    }

    fn finish(&mut self) {
        self.stage.step_until(|stage| stage.is_complete(A, self.wqe_id));
        assert!(self.stage.is_placed(&self.message) && self.guards_are_whole());
    }
}

fn sack(source_qp: Qpn, cumulative: u64, sack_offset: i16, bitmap: u64) -> Body<'static> {
    let seth = Seth {
        ce_mark: PathMark::None,
        subject: SackSubject::Data { ack_psn_offset: 0 },
        entropy: 50_000,
        source_qp,
        cumulative: Psn::masked(cumulative),
        max_psn_range: 8,
        sack_offset,
        bitmap,
    };
    Body::Sack(seth, CcState::default())
}

fn nack(reason: NackReason, psn: u64) -> Body<'static> {
    let psn = Psn::masked(psn);
    Body::Nack(Neth { reason, entropy: 50_000, source_qp: Qpn::masked(77), psn, timestamp: 0 })
}

fn write(rkey: RKey, va: u64, payload: &[u8]) -> Body<'_> {
    Body::Write {
        meth: Meth { rqmsn: 0, msn: 0 },
        tseth: None,
        reth: Reth { va, rkey, dma_length: payload.len() as u32 },
        payload,
    }
}

fn with_connect(bth: Bth) -> Bth {
    Bth { connect: true, ..bth }
}

/// Who gets a forged frame, the frame, and the counter that it must move.
type Forgery = (NodeId, Vec<u8>, &'static str);

/// What c sends: the right numbers under wrong addresses, wrong numbers.
fn strangers(transfer: &Disturbed<'_>) -> Vec<Forgery> {
    let Disturbed { stage, message, sender, receiver, .. } = transfer;
    let (c, psn) = (stage.ip(C), Psn::masked(500));
    let data = |source, bth| {
        stage.forge(source, B, bth, write(message.target.rkey, message.target.va, b"evil"))
    };
    let only = |qpn| plain_bth(Opcode::WriteOnly, qpn, psn);
    let trimmed = Body::Trimmed { meth: Meth { rqmsn: 0, msn: 0 } };
    let unknown = Qpn::masked(receiver.value() ^ 0x80_0000);
    let mut forgeries = vec![
        (B, data(NOBODY, only(*receiver)), "bad_source"),
        (B, data(c, only(*receiver)), "bad_source"),
        (B, stage.forge(c, B, only(*receiver), trimmed), "bad_source"),
        (B, data(c, only(unknown)), "unknown_qp"),
        (B, data(stage.ip(A), only(unknown)), "unknown_qp"),
        (B, data(c, only(Qpn::NONE)), "unknown_qp"),
        (B, data(c, with_connect(only(Qpn::masked(2)))), "reserved_qp"),
        (B, data(stage.ip(A), with_connect(only(Qpn::NONE))), "reserved_qp"),
    ];
    let reasons = [NackReason::Trimmed, NackReason::NoResource, NackReason::UnexpectedEvent];
    let control = [
        (Opcode::Ack, Body::Ack(Aeth { msn: 1 })),
        (Opcode::Sack, sack(Qpn::masked(77), 500, 1, 1)),
    ];
    let nacks = reasons.map(|reason| (Opcode::Nack, nack(reason, 500)));
    for (opcode, body) in control.into_iter().chain(nacks) {
        let to = |qpn, source| stage.forge(source, A, plain_bth(opcode, qpn, psn), body);
        forgeries.push((A, to(*sender, c), "bad_source"));
        forgeries.push((A, to(*sender, NOBODY), "bad_source"));
        forgeries.push((A, to(Qpn::masked(sender.value() ^ 0x80_0000), c), "unknown_qp"));
    }
    forgeries
}

/// What a broken b would send: acknowledgements of what was never sent.
fn liars(transfer: &Disturbed<'_>) -> Vec<Forgery> {
    let Disturbed { stage, sender, receiver, .. } = transfer;
    let (b, sent) = (stage.ip(B), 1 << 20);
    let bth = |opcode, psn| plain_bth(opcode, *sender, Psn::masked(psn));
    let bodies = [
        (bth(Opcode::Ack, sent), Body::Ack(Aeth { msn: 1 })),
        (bth(Opcode::Ack, 0xff_fffe), Body::Ack(Aeth { msn: 1 })),
        (bth(Opcode::Sack, sent), sack(*receiver, sent, 1, 0)),
        (bth(Opcode::Sack, 0xff_fffe), sack(*receiver, 0xff_fffe, 1, 0)),
        (bth(Opcode::Sack, 0xff_ffff), sack(*receiver, 0xff_ffff, i16::MAX, 1)),
        (bth(Opcode::Sack, 0xff_ffff), sack(*receiver, 0xff_ffff, 2_000, 1 << 63)),
        (bth(Opcode::Nack, sent), nack(NackReason::Trimmed, sent)),
        (bth(Opcode::Nack, 0xff_ffff), nack(NackReason::UnexpectedEvent, 0xff_ffff)),
    ];
    bodies.map(|(bth, body)| (A, stage.forge(b, A, bth, body), "psn_never_sent")).to_vec()
}

// spec: REL-3, W-14, W-15, QP-8
#[test]
fn strangers_and_liars_are_counted_and_change_nothing() {
    let mut trace = NoTrace;
    let stage = Stage::new(&three_hosts(), &mut trace);
    let mut transfer = Disturbed::new(stage, 2_000 * 4_096);
    let forgeries: Vec<_> = strangers(&transfer).into_iter().chain(liars(&transfer)).collect();
    const ROUNDS: u64 = 50;
    for _ in 0..ROUNDS {
        forgeries.iter().for_each(|(_, frame, _)| transfer.stage.inject_by_c(frame.clone()));
        transfer.stage.run_for(Duration::from_us(2));
    }
    assert!(!transfer.is_complete(), "all of them came in the middle of it");
    transfer.finish();
    for (node, _, cause) in &forgeries {
        let of_cause = forgeries.iter().filter(|(at, _, c)| at == node && c == cause).count();
        assert_eq!(transfer.stage.drops(*node, cause), ROUNDS * of_cause as u64, "{cause}");
    }
    let nic = |node| transfer.stage.world.nic(node);
    assert_eq!(
        [A, B].map(|node| nic(node).drops().total()).iter().sum::<u64>(),
        ROUNDS * forgeries.len() as u64
    );
    assert_eq!((nic(A).counters().rtx, nic(A).counters().qp_error), (0, 0));
    assert_eq!((nic(B).counters().qp_created, nic(B).counters().dup_events), (1, 0));
    assert_eq!(nic(C).counters().pkts_rcvd, 0, "nobody answers");
}

// spec: REL-2, W-14
#[test]
fn a_packet_one_byte_outside_a_region_writes_nothing() {
    let mut trace = NoTrace;
    let stage = Stage::new(&three_hosts(), &mut trace);
    let mut transfer = Disturbed::new(stage, 100_000);
    let target = transfer.message.target;
    let end = target.va + target.length;
    for (n, (va, bytes)) in [
        (target.va - 1, 4),
        (end - 3, 4),
        (end, 1),
        (target.va - 4_096, 4_096),
        (0, 1),
        (u64::MAX, 2),
        (u64::MAX - 3, 4),
    ]
    .into_iter()
    .enumerate()
    {
        let bth =
            with_connect(plain_bth(Opcode::WriteOnly, Qpn::masked(100 + n as u32), Psn::masked(0)));
        let payload = vec![0xee; bytes];
        let frame =
            transfer.stage.forge(transfer.stage.ip(C), B, bth, write(target.rkey, va, &payload));
        transfer.stage.inject_by_c(frame);
    }
    transfer.finish();
    assert_eq!(transfer.stage.drops(B, "remote_access"), 7);
    assert_eq!(transfer.stage.world.nic(B).counters().nack_pkts_sent, 7);
    assert_eq!(transfer.stage.drops(C, "unknown_qp"), 7, "c never had such QPs");
}

// spec: REL-2, RTO-11
#[test]
fn a_sender_that_is_one_byte_off_ends_in_the_error_state() {
    for (shift, bytes, written) in [(1, 1_000, 0), (1, 5_000, 4_096)] {
        let mut trace = NoTrace;
        let mut stage = Stage::new(&back_to_back(), &mut trace);
        let mut message = stage.message(A, B, bytes);
        message.target.va += shift;
        stage.post(QpChoice::New, &message);
        stage.run_for(Duration::from_us(100));
        let failed = |(_, node, event): &(_, NodeId, mrc_lab::trace::QpEvent)| {
            *node == A && event.kind == QpEventKind::QpError
        };
        assert_eq!(stage.events.iter().filter(|event| failed(event)).count(), 1);
        let memory = stage.world.nic(B).memory(message.target.rkey).expect("b's region");
        assert_eq!(memory[0], 0);
        assert_eq!(memory[1..=written], message.data[..written]);
        assert!(memory[written + 1..].iter().all(|byte| *byte == 0));
        assert_eq!(stage.world.nic(A).bytes_in_flight(stage.ip(B)), 0);
    }
}

/// Small packets, a trim, and the ICRC where it is wanted: every kind of packet
/// in a run of a few microseconds.
fn every_kind(icrc: bool) -> Scenario {
    let trimmed = PacketMatch { psn: Psn::new(5), nth: Some(1), ..PacketMatch::default() };
    back_to_back()
        .with_attributes(|a| a.icrc = icrc)
        .with_attributes(|a| a.mss = 64)
        .with_fault(rule(FaultAction::Trim { last_hop: true }, trimmed))
}

/// The `nth` packet that fits `matches` with each of its bits flipped, one run
/// for each; `check` sees how the run of bit n ended.
fn flip_each_bit(
    scenario: &Scenario,
    matches: &PacketMatch,
    bytes: usize,
    check: impl Fn(u32, &Ran),
) {
    let back = matches.role == Some(Role::Control);
    for bit in 0..8 * bytes as u32 {
        let mut scenario = scenario.clone();
        let flip = rule(FaultAction::Corrupt { bit: Some(bit) }, matches.clone());
        scenario.links[0].faults[usize::from(back)].insert(0, flip);
        check(bit, &run_to(&scenario, us(100_000)));
    }
}

fn one(kind: Kind, role: Role, nth: u64) -> PacketMatch {
    PacketMatch { kind: Some(kind), role: Some(role), nth: Some(nth), ..PacketMatch::default() }
}

// Bits that the ICRC covers are found wrong, the others change nothing.
// spec: W-3, W-14
#[test]
fn with_the_icrc_every_flipped_bit_of_every_kind_of_packet_is_survived() {
    let scenario = every_kind(true).with_flow(flow(12 * 64, 1));
    for (kind, role, nth, bytes) in [
        (Kind::Write, Role::Trimmable, 1, DATA_OVERHEAD + 64),
        (Kind::Write, Role::Trimmable, 4, DATA_OVERHEAD + 64),
        (Kind::Write, Role::TrimmableRtx, 1, DATA_OVERHEAD + 64),
        (Kind::Ack, Role::Control, 1, 62),
        (Kind::Sack, Role::Control, 2, 94),
        (Kind::Nack, Role::Control, 1, 78),
    ] {
        // The ICRC is as long as the FCS, which no frame in memory has.
        flip_each_bit(&scenario, &one(kind, role, nth), bytes, |bit, ran| {
            assert!(ran.is_complete(), "{kind:?} {nth}, bit {bit}");
            assert_eq!(ran.counters[0].qp_error, 0, "{kind:?} {nth}, bit {bit}");
            assert_eq!(ran.holdings, [[0; 4]; 2], "{kind:?} {nth}, bit {bit}");
        });
    }
}

// A trimmed packet has no ICRC: a flipped bit may name another packet or
// another QP, but never bytes.
// spec: W-3, W-14, NACK-2
#[test]
fn every_flipped_bit_of_a_trimmed_packet_is_survived() {
    let scenario = every_kind(true).with_flow(flow(12 * 64, 1));
    let first = one(Kind::Write, Role::Trimmable, 6);
    let trim = rule(FaultAction::Trim { last_hop: true }, first);
    // The trim happens on the way to the switch, the flip behind it.
    let mut switched = Scenario { links: over_a_switch().links, ..over_a_switch() };
    switched.nics = scenario.nics.clone();
    switched.flows = scenario.flows.clone();
    switched.links[0].faults[0].push(trim);
    for bit in 0..58 * 8 {
        let mut scenario = switched.clone();
        let matches = one(Kind::Write, Role::TrimmedLastHop, 1);
        scenario.links[1].faults[0].push(rule(FaultAction::Corrupt { bit: Some(bit) }, matches));
        let ran = run_to(&scenario, us(20_000));
        assert!(ran.is_complete(), "bit {bit}");
        assert_eq!(ran.counters[0].qp_error, 0, "bit {bit}");
    }
}

// Without the ICRC nothing tells that a bit of the payload was flipped, so it
// reaches memory. A flipped address or key may end the QP, a flipped first PSN
// puts every later packet out of the window; then the budget ends the QP.
// spec: W-14, REL-2, RTO-8, RTO-9
#[test]
fn without_the_icrc_a_flipped_bit_reaches_the_message_at_most() {
    let scenario = every_kind(false)
        .with_flow(flow(12 * 64, 1))
        .with_attributes(|a| a.exponential_retry_count = 0);
    let payload = DATA_OVERHEAD - 4;
    for (kind, role, bytes) in [
        (Kind::Write, Role::Trimmable, payload + 64),
        (Kind::Ack, Role::Control, 58),
        (Kind::Sack, Role::Control, 90),
        (Kind::Nack, Role::Control, 74),
    ] {
        flip_each_bit(&scenario, &one(kind, role, 1), bytes, |bit, ran| {
            // A SACK that acknowledges too much takes away what was to be sent again.
            assert!(kind == Kind::Sack || ran.end.workload.is_over(), "{kind:?}, bit {bit}");
            if kind == Kind::Write && bit >= payload as u32 * 8 {
                assert_eq!((&ran.equal[..], ran.counters[0].rtx), (&[false][..], 1), "bit {bit}");
            }
        });
    }
}

/// One frame of each kind, with the NIC that receives it, as they pass in an
/// undisturbed run; all of them old when they come again.
fn samples(scenario: &Scenario) -> Vec<(NodeId, Vec<u8>)> {
    let mut trace = NoTrace;
    let mut stage = Stage::new(scenario, &mut trace);
    let [at_a, at_b] = [A, B].map(|node| stage.listen(node));
    let transfer = &mut Disturbed::new(stage, 4_000 * 64);
    transfer.finish();
    let control = [Kind::Ack, Kind::Sack, Kind::Nack];
    let mut samples: Vec<_> = control.map(|kind| (A, at_a.received(kind)[0].clone())).to_vec();
    let data = at_b.received(Kind::Write);
    // First, middle, trimmed.
    let chosen = [0, 1, 5].map(|n| (B, data[n].clone()));
    samples.extend(chosen);
    samples
}

/// `frame` cut to `len` bytes; `fixed` lets its lengths and its IPv4 checksum
/// agree.
fn cut(frame: &[u8], len: usize, fixed: bool) -> Vec<u8> {
    let mut cut = frame[..len].to_vec();
    if fixed && len >= BTH_AT {
        cut[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
        cut[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
        cut[24..26].copy_from_slice(&[0, 0]);
        let sum = checksum::ipv4(&cut[14..34]);
        cut[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    cut
}

// spec: W-14, W-16, W-17
#[test]
fn every_truncation_of_every_kind_of_packet_is_dropped() {
    for (icrc, fixed) in [(true, false), (true, true), (false, false), (false, true)] {
        let scenario = every_kind(icrc);
        let samples = samples(&scenario);
        let mut trace = NoTrace;
        let mut transfer = Disturbed::new(Stage::new(&scenario, &mut trace), 4_000 * 64);
        let mut injected = 0;
        for (to, frame) in &samples {
            let other = if *to == A { B } else { A };
            for len in 0..frame.len() {
                transfer.stage.inject(other, port0(*to), cut(frame, len, fixed));
                injected += 1;
            }
            transfer.stage.run_for(Duration::from_ns(100));
        }
        assert!(!transfer.is_complete(), "all of them came in the middle of it");
        transfer.finish();
        let drops = [A, B].map(|node| transfer.stage.world.nic(node).drops().total());
        // Whole datagrams of a shorter middle or first packet are what they say
        // they are: old ones, where no ICRC tells otherwise.
        let whole = if fixed && !icrc { 2 * 63 } else { 0 };
        assert_eq!(drops.iter().sum::<u64>(), injected - whole, "ICRC {icrc}, lengths {fixed}");
        assert_eq!(transfer.stage.world.nic(A).counters().qp_error, 0);
    }
}

/// An Ethernet, IPv4 and UDP header for `body` from `source` to `node`.
fn udp_datagram(
    stage: &Stage<'_>,
    source: Ipv4Addr,
    node: NodeId,
    dscp: u8,
    body: &[u8],
) -> Vec<u8> {
    let ack = Body::Ack(Aeth { msn: 0 });
    let bth = plain_bth(Opcode::Ack, Qpn::NONE, Psn::masked(0));
    let mut frame = stage.forge(source, node, bth, ack);
    frame.truncate(BTH_AT);
    frame[15] = dscp << 2;
    frame.extend_from_slice(body);
    let len = frame.len();
    cut(&frame, len, true)
}

/// Bytes after UDP: anything, or an opcode and numbers that get past the first checks.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let opcodes = prop::sample::select(vec![0xc6, 0xc7, 0xc8, 0xca, 0xd1, 0xdc, 0xdd, 0xde_u8]);
    let anything = prop::collection::vec(any::<u8>(), 0..120);
    let likely = (opcodes, prop::collection::vec(any::<u8>(), 11..120), any::<bool>());
    prop_oneof![
        anything,
        likely.prop_map(|(opcode, mut rest, fits)| {
            rest.insert(0, opcode);
            rest[1] = 0;
            if fits && rest.len() > 32 {
                let payload = rest.len() as u32 - 32;
                rest[28..32].copy_from_slice(&payload.to_be_bytes());
            }
            rest
        })
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // spec: W-14, REL-3
    #[test]
    fn random_bytes_after_udp_disturb_nobody(
        datagrams in prop::collection::vec((0..3_u8, any::<bool>(), 0..64_u8, bodies()), 1..100),
        names_the_qp in any::<bool>(),
    ) {
        let mut trace = NoTrace;
        let mut transfer = Disturbed::new(Stage::new(&three_hosts(), &mut trace), 300 * 4_096);
        for (source, to_a, dscp, mut body) in datagrams {
            let (node, qpn) = if to_a { (A, transfer.sender) } else { (B, transfer.receiver) };
            // Only a stranger's packets name the right QP: a or b could do harm.
            let stranger = names_the_qp || source == 2;
            if names_the_qp && body.len() > 8 {
                body[5..8].copy_from_slice(&qpn.value().to_be_bytes()[1..]);
            }
            let stage = &mut transfer.stage;
            let source = if stranger { NOBODY } else { stage.ip(NodeId(u32::from(source))) };
            let frame = udp_datagram(stage, source, node, dscp, &body);
            stage.inject_by_c(frame);
            stage.run_for(Duration::from_ns(200));
        }
        transfer.finish();
        prop_assert_eq!(transfer.stage.world.nic(A).counters().qp_error, 0);
    }
}

// A QP that goes on after a liar's NACK ends cleanly when the peer itself says
// that a packet makes no sense.
// spec: REL-2, REL-3, W-11
#[test]
fn only_the_peer_can_end_a_qp() {
    let mut trace = NoTrace;
    let stage = Stage::new(&three_hosts(), &mut trace);
    let mut transfer = Disturbed::new(stage, 2_000 * 4_096);
    let (sender, b) = (transfer.sender, transfer.stage.ip(B));
    let end = |source, stage: &Stage<'_>| {
        let bth = plain_bth(Opcode::Nack, sender, Psn::masked(0));
        stage.forge(source, A, bth, nack(NackReason::UnexpectedEvent, 0))
    };
    let (forged, real) = (end(transfer.stage.ip(C), &transfer.stage), end(b, &transfer.stage));
    transfer.stage.inject_by_c(forged);
    transfer.stage.run_for(Duration::from_us(10));
    assert_eq!(transfer.stage.world.nic(A).counters().qp_error, 0);
    transfer.stage.inject_by_c(real);
    transfer.stage.run_for(Duration::from_us(10));
    assert_eq!(transfer.stage.world.nic(A).counters().qp_error, 1);
    transfer.stage.run_for(Duration::from_secs(1));
    assert!(!transfer.is_complete() && transfer.guards_are_whole());
}
