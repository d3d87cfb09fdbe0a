//! The wire format: every byte of an MRC frame, one header per file.
//!
//! Each header has a *view* (`BthView`), which borrows its bytes and reads
//! fields on demand, and a *value* (`Bth`) with `parse` and `emit`. Views hold
//! an array of the header's exact length, so a getter cannot run past its end.
//! All fields are big-endian.
//!
//! ```text
//! Ethernet 14 | IPv4 20 | UDP 8 | BTH 12 | ... | [ICRC 4] | FCS 4 (never in a buffer)
//!   data      METH 4, [TSETH 4], RETH 16, payload
//!   trimmed   METH 4, nothing more
//!   ACK       AETH 4
//!   SACK      SETH 28, CC_STATE 8
//!   NACK      NETH 20
//!   probe     PETH 16
//! ```
//!
//! Beside MRC's packets there are two frames of the link itself: [`pfc`] and,
//! to find a router on a link that is not a lab's, [`arp`].
//!
//! What never panics: every `new`, `parse` and getter, whatever the bytes.
//! What may panic: `emit` of a header into a slice that is shorter than it.

pub mod aeth;
pub mod arp;
pub mod bth;
pub mod cc_state;
pub mod checksum;
pub mod error;
pub mod frame;
pub mod header;
pub mod icrc;
pub mod ipv4;
pub mod mac;
pub mod meth;
pub mod neth;
pub mod opcode;
pub mod packet;
pub mod peth;
pub mod pfc;
pub mod psn;
pub mod qpn;
pub mod reth;
pub mod role;
pub mod seth;
pub mod trim;
pub mod tseth;
pub mod udp;

/// A 24-bit big-endian number.
const fn u24([a, b, c]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

/// The low 24 bits of `value`, big-endian.
const fn u24_bytes(value: u32) -> [u8; 3] {
    let [_, a, b, c] = value.to_be_bytes();
    [a, b, c]
}
