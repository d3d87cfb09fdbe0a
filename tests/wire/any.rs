//! Arbitrary packets: every field over its whole range, its ends likelier.

use core::net::Ipv4Addr;

use mrc_lab::wire::aeth::Aeth;
use mrc_lab::wire::bth::Bth;
use mrc_lab::wire::cc_state::CcState;
use mrc_lab::wire::meth::Meth;
use mrc_lab::wire::neth::{NackReason, Neth};
use mrc_lab::wire::opcode::Opcode;
use mrc_lab::wire::packet::{Body, Ecn, Packet};
use mrc_lab::wire::peth::Peth;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::qpn::{Qpn, RKey};
use mrc_lab::wire::reth::Reth;
use mrc_lab::wire::role::{Codepoints, Role};
use mrc_lab::wire::seth::{PathMark, SackSubject, Seth};
use mrc_lab::wire::tseth::Tseth;
use proptest::prelude::*;
use proptest::sample::select;

const U24: u32 = 0xFF_FFFF;

/// 0 to `max`; the ends as often as all between.
fn up_to(max: u32) -> impl Strategy<Value = u32> {
    prop_oneof![1 => Just(0), 1 => Just(max), 2 => 0..=max]
}

fn word() -> impl Strategy<Value = u16> {
    up_to(u16::MAX.into()).prop_map(|word| word as u16)
}

fn long() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), any::<u64>()]
}

fn psn() -> impl Strategy<Value = Psn> {
    up_to(U24).prop_map(|psn| Psn::masked(psn.into()))
}

fn qpn() -> impl Strategy<Value = Qpn> {
    up_to(U24).prop_map(Qpn::masked)
}

/// Opcodes an endpoint handles.
fn opcode() -> impl Strategy<Value = Opcode> {
    use Opcode::*;
    select(vec![WriteFirst, WriteMiddle, WriteLast, WriteOnly, Ack, Sack, Nack, Probe])
}

pub fn bth() -> impl Strategy<Value = Bth> {
    let flags = any::<[bool; 4]>();
    (opcode(), qpn(), flags, psn()).prop_map(|(opcode, destination_qp, flags, psn)| {
        let [ack_request, retransmission, timestamp_present, connect] = flags;
        Bth { opcode, destination_qp, ack_request, retransmission, timestamp_present, connect, psn }
    })
}

pub fn meth() -> impl Strategy<Value = Meth> {
    (word(), word()).prop_map(|(rqmsn, msn)| Meth { rqmsn, msn })
}

pub fn tseth() -> impl Strategy<Value = Tseth> {
    word().prop_map(|timestamp| Tseth { timestamp })
}

pub fn reth() -> impl Strategy<Value = Reth> {
    (long(), up_to(u32::MAX), up_to(Reth::MAX_DMA_LENGTH)).prop_map(|(va, rkey, dma_length)| Reth {
        va,
        rkey: RKey(rkey),
        dma_length,
    })
}

pub fn aeth() -> impl Strategy<Value = Aeth> {
    up_to(U24).prop_map(|msn| Aeth { msn })
}

fn signed() -> impl Strategy<Value = i16> {
    word().prop_map(|word| word as i16)
}

fn subject() -> impl Strategy<Value = SackSubject> {
    prop_oneof![
        signed().prop_map(|ack_psn_offset| SackSubject::Data { ack_psn_offset }),
        word().prop_map(|probe_id| SackSubject::Probe { probe_id }),
    ]
}

pub fn seth() -> impl Strategy<Value = Seth> {
    let mark = select(vec![PathMark::None, PathMark::SkipOnce, PathMark::AlwaysSkip]);
    (mark, subject(), word(), qpn(), psn(), up_to(255), signed(), long()).prop_map(
        |(ce_mark, subject, entropy, source_qp, cumulative, range, sack_offset, bitmap)| Seth {
            ce_mark,
            subject,
            entropy,
            source_qp,
            cumulative,
            max_psn_range: range as u8,
            sack_offset,
            bitmap,
        },
    )
}

pub fn cc_state() -> impl Strategy<Value = CcState> {
    let out_of_order = up_to(CcState::MAX_OUT_OF_ORDER.into());
    let penalty = up_to(CcState::MAX_PENALTY.into());
    (word(), out_of_order, any::<bool>(), penalty, up_to(U24)).prop_map(
        |(timestamp_or_service, out_of_order, restore_cwnd, penalty, received_units)| CcState {
            timestamp_or_service,
            out_of_order: out_of_order as u16,
            restore_cwnd,
            penalty: penalty as u8,
            received_units,
        },
    )
}

pub fn neth() -> impl Strategy<Value = Neth> {
    let reason = any::<u8>().prop_map(NackReason::from_code);
    (reason, word(), qpn(), psn(), word()).prop_map(
        |(reason, entropy, source_qp, psn, timestamp)| Neth {
            reason,
            entropy,
            source_qp,
            psn,
            timestamp,
        },
    )
}

pub fn peth() -> impl Strategy<Value = Peth> {
    (word(), qpn(), word()).prop_map(|(probe_id, source_qp, timestamp)| Peth {
        probe_id,
        source_qp,
        timestamp,
    })
}

/// Any packet, its payload taken from `payload`.
pub fn packet(payload: &'static [u8]) -> impl Strategy<Value = Packet<'static>> {
    let addresses = (any::<u32>(), any::<u32>());
    let ecn = select(vec![Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce]);
    (bth_and_body(payload), addresses, 0..64_u8, ecn, word()).prop_map(
        |((mut bth, body), (source, destination), dscp, ecn, entropy)| {
            let trimmed = matches!(body, Body::Trimmed { .. });
            let dscp = fitting_codepoint(dscp, trimmed);
            if let Body::Write { tseth, .. } = body {
                bth.timestamp_present = tseth.is_some();
            }
            Packet {
                source: Ipv4Addr::from_bits(source),
                destination: Ipv4Addr::from_bits(destination),
                role: Codepoints::default().role(dscp),
                dscp,
                ecn,
                entropy,
                bth,
                body,
            }
        },
    )
}

/// A trimmed codepoint for what is trimmed, another one for what is not.
fn fitting_codepoint(dscp: u8, trimmed: bool) -> u8 {
    let codepoints = Codepoints::default();
    match codepoints.role(dscp).is_some_and(Role::is_trimmed) {
        is_trimmed if is_trimmed == trimmed => dscp,
        _ if trimmed => codepoints.trimmed,
        _ => codepoints.trimmable,
    }
}

fn bth_and_body(payload: &'static [u8]) -> impl Strategy<Value = (Bth, Body<'static>)> {
    bth().prop_flat_map(move |bth| (Just(bth), body(bth.opcode, payload)))
}

fn body(opcode: Opcode, payload: &'static [u8]) -> BoxedStrategy<Body<'static>> {
    match opcode {
        Opcode::Ack => aeth().prop_map(Body::Ack).boxed(),
        Opcode::Sack => {
            (seth(), cc_state()).prop_map(|(seth, state)| Body::Sack(seth, state)).boxed()
        }
        Opcode::Nack => neth().prop_map(Body::Nack).boxed(),
        Opcode::Probe => peth().prop_map(Body::Probe).boxed(),
        data => prop_oneof![
            1 => meth().prop_map(|meth| Body::Trimmed { meth }),
            3 => write(data, payload),
        ]
        .boxed(),
    }
}

/// A write whose sizes agree with its opcode.
fn write(opcode: Opcode, bytes: &'static [u8]) -> impl Strategy<Value = Body<'static>> {
    let only = opcode == Opcode::WriteOnly;
    let least = if only { 0 } else { 1 };
    (meth(), proptest::option::of(tseth()), reth(), least..=bytes.len()).prop_map(
        move |(meth, tseth, mut reth, len)| {
            let message = len as u32;
            reth.dma_length = if only { message } else { reth.dma_length.max(message + 1) };
            Body::Write { meth, tseth, reth, payload: &bytes[..len] }
        },
    )
}
