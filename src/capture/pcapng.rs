//! Decoding of pcapng blocks.

use std::io;

use super::block::{
    BYTE_ORDER_MAGIC, DIRECTION_MASK, FLAG_INBOUND, FLAG_OUTBOUND, OPT_COMMENT, OPT_END,
    OPT_EPB_FLAGS, OPT_IF_NAME, OPT_IF_TSOFFSET, OPT_IF_TSRESOL,
};
use super::fields::{ByteOrder, Fields, corrupt};
use super::reader::CapturedPacket;
use super::{Direction, Interface};

const NS_PER_S: i128 = 1_000_000_000;
const DEFAULT_TSRESOL: u8 = 6;

/// How an interface counts time.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeUnit {
    units_per_s: u128,
    offset_s: i64,
}

impl TimeUnit {
    /// The unit that if_tsresol and if_tsoffset state: a power of ten, or of
    /// two when the top bit is set.
    fn new(tsresol: u8, offset_s: i64) -> io::Result<Self> {
        let exponent = u32::from(tsresol & 0x7f);
        let base = if tsresol & 0x80 == 0 { 10_u128 } else { 2 };
        let units_per_s = base
            .checked_pow(exponent)
            .ok_or_else(|| corrupt(format!("a time unit of {base}^-{exponent} s")))?;
        Ok(Self { units_per_s, offset_s })
    }

    /// `units` in nanoseconds, rounded down, kept within 64 bits.
    fn to_ns(self, units: u64) -> u64 {
        let ns = u128::from(units) * NS_PER_S as u128 / self.units_per_s;
        let ns = ns as i128 + i128::from(self.offset_s) * NS_PER_S;
        ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// The byte order that a section header's magic tells.
pub(super) fn section_order(magic: [u8; 4]) -> io::Result<ByteOrder> {
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| order.u32(magic) == BYTE_ORDER_MAGIC)
        .ok_or_else(|| corrupt("a section header without byte-order magic"))
}

/// The comments of a section header; `fields` begins after the magic.
pub(super) fn section_comments(mut fields: Fields<'_>) -> io::Result<Vec<String>> {
    let major = fields.u16("major version")?;
    if major != 1 {
        return Err(corrupt(format!("pcapng version {major}, only 1 is known")));
    }
    fields.bytes(10, "minor version and section length")?;
    let mut comments = Vec::new();
    while let Some((code, value)) = next_option(&mut fields)? {
        if code == OPT_COMMENT {
            comments.push(text(value));
        }
    }
    Ok(comments)
}

/// An interface description.
pub(super) fn interface(mut fields: Fields<'_>) -> io::Result<(Interface, TimeUnit)> {
    let link_type = fields.u16("link type")?;
    fields.u16("reserved field")?;
    let snap_len = fields.u32("snap length")?;
    let (mut name, mut tsresol, mut offset_s) = (String::new(), DEFAULT_TSRESOL, 0);
    while let Some((code, value)) = next_option(&mut fields)? {
        match code {
            OPT_IF_NAME => name = text(value),
            OPT_IF_TSRESOL => tsresol = fields.over(value).bytes(1, "if_tsresol")?[0],
            OPT_IF_TSOFFSET => offset_s = fields.over(value).u64("if_tsoffset")? as i64,
            _ => {}
        }
    }
    Ok((Interface { name, link_type, snap_len }, TimeUnit::new(tsresol, offset_s)?))
}

/// An enhanced packet. `units` are those of the section's interfaces; the
/// packet's interface is numbered within the section.
pub(super) fn packet(mut fields: Fields<'_>, units: &[TimeUnit]) -> io::Result<CapturedPacket> {
    let interface = fields.u32("interface")?;
    let unit = (units.get(interface as usize))
        .ok_or_else(|| corrupt(format!("a packet of interface {interface}, not described")))?;
    let high = u64::from(fields.u32("timestamp")?);
    let low = u64::from(fields.u32("timestamp")?);
    let captured = fields.u32("captured length")? as usize;
    let mut packet = CapturedPacket {
        interface,
        timestamp_ns: unit.to_ns(high << 32 | low),
        direction: None,
        original_len: fields.u32("original length")?,
        frame: fields.padded(captured, "frame")?.to_vec(),
        comment: None,
    };
    while let Some((code, value)) = next_option(&mut fields)? {
        match code {
            OPT_COMMENT => add_comment(&mut packet.comment, text(value)),
            OPT_EPB_FLAGS => packet.direction = direction(fields.over(value).u32("epb_flags")?),
            _ => {}
        }
    }
    Ok(packet)
}

fn direction(flags: u32) -> Option<Direction> {
    match flags & DIRECTION_MASK {
        FLAG_INBOUND => Some(Direction::Inbound),
        FLAG_OUTBOUND => Some(Direction::Outbound),
        _ => None,
    }
}

/// A further comment goes on a line of its own.
fn add_comment(comment: &mut Option<String>, more: String) {
    match comment {
        Some(text) => {
            text.push('\n');
            text.push_str(&more);
        }
        None => *comment = Some(more),
    }
}

/// The next option's code and value; `None` at the end of the options.
fn next_option<'a>(fields: &mut Fields<'a>) -> io::Result<Option<(u16, &'a [u8])>> {
    if fields.is_empty() {
        return Ok(None);
    }
    let code = fields.u16("option code")?;
    let len = usize::from(fields.u16("option length")?);
    if code == OPT_END {
        return Ok(None);
    }
    Ok(Some((code, fields.padded(len, "option")?)))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}
