//! PSN arithmetic over both wraps: 2^24 on the wire and 2^32 in the caller's
//! counters.

use mrc_lab::wire::psn::{Psn, PsnExt};
use proptest::prelude::*;

const WRAP: u64 = 1 << 24;

fn psn(value: u32) -> Psn {
    Psn::new(value).expect("24 bits")
}

#[test]
fn a_psn_fits_24_bits_or_is_refused() {
    assert_eq!(Psn::new(0xFF_FFFF).map(Psn::value), Some(0xFF_FFFF));
    assert_eq!(Psn::new(0x100_0000), None);
    assert_eq!(Psn::new(0x100_0005), None);
    assert_eq!(Psn::new(u32::MAX), None);
}

#[test]
fn the_encoder_masks_past_24_and_past_32_bits() {
    assert_eq!(Psn::masked(0x100_0005), psn(5));
    assert_eq!(Psn::masked(0x1_0000_0005), psn(5));
    assert_eq!(Psn::masked(u64::MAX), psn(0xFF_FFFF));
    assert_eq!(PsnExt::first(psn(0xFF_FFFF)).plus(1 << 32).wire(), psn(0xFF_FFFF));
    assert_eq!(psn(7).plus(u32::MAX), psn(6));
    assert_eq!(psn(7).minus(u32::MAX), psn(8));
}

#[test]
fn counting_goes_on_over_the_wrap() {
    let mut at = PsnExt::first(psn(0xFF_FFFE));
    let before = at.prev();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(at.wire().value());
        assert!(at > before);
        at = at.next();
    }
    assert_eq!(seen, [0xFF_FFFE, 0xFF_FFFF, 0, 1]);
}

// spec: ACK-1
#[test]
fn the_number_before_the_first_exists() {
    let first = PsnExt::first(psn(0));
    assert_eq!(first.prev().wire(), psn(0xFF_FFFF));
    assert_eq!(first.offset_from(first.prev()), 1);
    assert_eq!(first.prev().offset_from(first), -1);
}

/// Every window a receiver may have (1 to 32,640), placed so that the wrap
/// falls on its start, its end and inside it.
#[test]
fn every_window_over_the_wrap_is_in_order() {
    for window in 1..=32_640_u32 {
        for before in [0, 1, window / 2, window - 1, window] {
            let low = psn(0).minus(before);
            let high = low.plus(window);
            assert_eq!(high.distance_from(low), window as i32);
            assert_eq!(low.distance_from(high), -(window as i32));
            let cumulative = PsnExt::first(low);
            assert_eq!(PsnExt::nearest(high, cumulative), cumulative.plus(window.into()));
            assert_eq!(PsnExt::nearest(low, cumulative.plus(window.into())), cumulative);
        }
    }
}

#[test]
fn the_distance_reaches_half_way_round() {
    assert_eq!(psn(0x7F_FFFF).distance_from(psn(0)), 0x7F_FFFF);
    assert_eq!(psn(0x80_0000).distance_from(psn(0)), -0x80_0000);
    assert_eq!(psn(0).distance_from(psn(0x80_0000)), -0x80_0000);
}

proptest! {
    #[test]
    fn plus_and_minus_undo_each_other(at in 0..WRAP, n: u32) {
        let at = Psn::masked(at);
        prop_assert_eq!(at.plus(n).minus(n), at);
        prop_assert_eq!(u64::from(at.plus(n).value()), (u64::from(at.value()) + u64::from(n)) % WRAP);
    }

    #[test]
    fn distance_is_what_plus_went(at in 0..WRAP, n in 0..0x80_0000_u32) {
        let at = Psn::masked(at);
        prop_assert_eq!(at.plus(n).distance_from(at), n as i32);
        prop_assert_eq!(at.minus(n).distance_from(at), -(n as i32));
    }

    #[test]
    fn the_nearest_number_is_found_again(
        first in 0..WRAP,
        gone in 0..1_u64 << 40,
        offset in -0x80_0000..0x80_0000_i64,
    ) {
        let reference = PsnExt::first(Psn::masked(first)).plus(gone);
        let number = match offset {
            0.. => reference.plus(offset as u64),
            _ => reference.minus(offset.unsigned_abs()),
        };
        prop_assert_eq!(PsnExt::nearest(number.wire(), reference), number);
        prop_assert_eq!(number.offset_from(reference), offset);
    }
}
