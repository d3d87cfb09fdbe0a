//! Encoding of the three pcapng blocks that captures of this project hold.
//!
//! Everything is appended to a byte vector, in little-endian order on every
//! host, so that the same run gives the same bytes. A vector that holds whole
//! blocks has a length that is a multiple of 4: padding relies on it.

use super::{Direction, Interface};

/// Section header block. Its bytes read the same in both byte orders.
pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
/// Interface description block.
pub(super) const INTERFACE_DESCRIPTION: u32 = 1;
/// Enhanced packet block.
pub(super) const ENHANCED_PACKET: u32 = 6;
/// Tells the byte order of a section.
pub(super) const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// opt_endofopt: closes a list of options.
pub(super) const OPT_END: u16 = 0;
/// opt_comment: text, allowed in every block, also several times.
pub(super) const OPT_COMMENT: u16 = 1;
/// if_name: the interface's name.
pub(super) const OPT_IF_NAME: u16 = 2;
/// if_tsresol: the unit of timestamps.
pub(super) const OPT_IF_TSRESOL: u16 = 9;
/// if_tsoffset: seconds to add to timestamps.
pub(super) const OPT_IF_TSOFFSET: u16 = 14;
/// epb_flags: the direction is in bits 0 and 1.
pub(super) const OPT_EPB_FLAGS: u16 = 2;
/// The bits of epb_flags that tell the direction.
pub(super) const DIRECTION_MASK: u32 = 0b11;
/// epb_flags: received.
pub(super) const FLAG_INBOUND: u32 = 0b01;
/// epb_flags: sent.
pub(super) const FLAG_OUTBOUND: u32 = 0b10;

const OPT_SHB_USERAPPL: u16 = 4;
const NANOSECONDS: u8 = 9;
const USER_APPLICATION: &str = concat!("mrc-lab ", env!("CARGO_PKG_VERSION"));
/// An enhanced packet block with flags, an option head for the comment, the
/// end of options and all padding, but without frame and comment.
const MAX_PACKET_OVERHEAD: usize = 32 + 8 + 4 + 4 + 6;

/// What an enhanced packet block says.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    /// The interface's number in the section.
    pub(super) interface: u32,
    /// Nanoseconds since the section's time 0.
    pub(super) timestamp_ns: u64,
    /// Which way the frame passed, where known.
    pub(super) direction: Option<Direction>,
    /// The frame's length on the interface, in bytes.
    pub(super) original_len: u32,
    /// The bytes that are kept, at most [`super::MAX_CAPTURED_LEN`].
    pub(super) frame: &'a [u8],
    /// Text for the reader.
    pub(super) comment: Option<&'a str>,
}

impl Record<'_> {
    /// The block's length in bytes, rounded up a little.
    pub(super) fn max_encoded_len(&self) -> usize {
        MAX_PACKET_OVERHEAD + self.frame.len() + self.comment.map_or(0, str::len)
    }
}

/// Appends a section header of unknown section length.
pub(super) fn put_section_header(out: &mut Vec<u8>, comments: &[String]) {
    put_block(out, SECTION_HEADER, |out| {
        put_u32(out, BYTE_ORDER_MAGIC);
        put_u16(out, 1); // major version
        put_u16(out, 0); // minor version
        put_u64(out, u64::MAX); // section length: not stated
        for comment in comments {
            put_text_option(out, OPT_COMMENT, comment);
        }
        put_text_option(out, OPT_SHB_USERAPPL, USER_APPLICATION);
        put_option(out, OPT_END, &[]);
    });
}

/// Appends an interface description with nanosecond timestamps.
// spec: RC-7
pub(super) fn put_interface(out: &mut Vec<u8>, interface: &Interface) {
    put_block(out, INTERFACE_DESCRIPTION, |out| {
        put_u16(out, interface.link_type);
        put_u16(out, 0); // reserved
        put_u32(out, interface.snap_len);
        put_text_option(out, OPT_IF_NAME, &interface.name);
        put_option(out, OPT_IF_TSRESOL, &[NANOSECONDS]);
        put_option(out, OPT_END, &[]);
    });
}

/// Appends a packet.
// spec: RC-7, SW-20
pub(super) fn put_packet(out: &mut Vec<u8>, record: &Record<'_>) {
    put_block(out, ENHANCED_PACKET, |out| {
        put_u32(out, record.interface);
        put_u32(out, (record.timestamp_ns >> 32) as u32);
        put_u32(out, record.timestamp_ns as u32);
        put_u32(out, record.frame.len() as u32);
        put_u32(out, record.original_len);
        out.extend_from_slice(record.frame);
        pad(out);
        if let Some(comment) = record.comment {
            put_text_option(out, OPT_COMMENT, comment);
        }
        if let Some(direction) = record.direction {
            put_option(out, OPT_EPB_FLAGS, &flags(direction).to_le_bytes());
        }
        put_option(out, OPT_END, &[]);
    });
}

fn flags(direction: Direction) -> u32 {
    match direction {
        Direction::Inbound => FLAG_INBOUND,
        Direction::Outbound => FLAG_OUTBOUND,
    }
}

/// Type, length, `body`, and the same length again.
fn put_block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    put_u32(out, kind);
    put_u32(out, 0); // the length, known below
    body(out);
    let total = (out.len() - start + 4) as u32;
    out[start + 4..start + 8].copy_from_slice(&total.to_le_bytes());
    put_u32(out, total);
}

/// An option of text, cut to the 65,535 bytes that fit.
fn put_text_option(out: &mut Vec<u8>, code: u16, text: &str) {
    let mut end = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_option(out, code, &text.as_bytes()[..end]);
}

fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    put_u16(out, code);
    put_u16(out, value.len() as u16);
    out.extend_from_slice(value);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_bound_holds_for_every_padding() {
        for len in 0..9 {
            let frame = vec![0; len];
            let text = "x".repeat(8 - len);
            let record = Record {
                interface: 0,
                timestamp_ns: 0,
                direction: Some(Direction::Inbound),
                original_len: 0,
                frame: &frame,
                comment: Some(&text),
            };
            let mut out = Vec::new();
            put_packet(&mut out, &record);
            assert!(out.len() <= record.max_encoded_len(), "{len}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut out = Vec::new();
        put_text_option(&mut out, OPT_COMMENT, &"\u{e9}".repeat(40_000));
        assert_eq!(out[2..4], 65_534_u16.to_le_bytes());
        assert_eq!(out.len(), 4 + 65_536);
    }
}
