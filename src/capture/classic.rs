//! Decoding of classic pcap files: one interface without a name, no comments.

use std::io;

use super::Interface;
use super::fields::{ByteOrder, Fields, corrupt};
use super::reader::{CapturedPacket, MAX_BLOCK_LEN};

/// The length of the file header after its magic number, in bytes.
pub(super) const HEADER_LEN: usize = 20;
/// The length of a record's header, in bytes.
pub(super) const RECORD_HEADER_LEN: usize = 16;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const NS_PER_S: u64 = 1_000_000_000;

/// What a file's magic number says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classic {
    order: ByteOrder,
    ns_per_unit: u64,
}

impl Classic {
    /// The variant that begins with `magic`, if it is one.
    pub(super) fn from_magic(magic: [u8; 4]) -> Option<Self> {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            match order.u32(magic) {
                MAGIC_MICROSECONDS => return Some(Self { order, ns_per_unit: 1_000 }),
                MAGIC_NANOSECONDS => return Some(Self { order, ns_per_unit: 1 }),
                _ => {}
            }
        }
        None
    }

    /// The interface that the file header describes.
    pub(super) fn interface(self, header: &[u8; HEADER_LEN]) -> io::Result<Interface> {
        let mut fields = Fields::new(header, self.order);
        fields.bytes(12, "version and time zone")?;
        let snap_len = fields.u32("snap length")?;
        let link_type = fields.u32("link type")? as u16; // the rest tells of the FCS
        Ok(Interface { name: String::new(), link_type, snap_len })
    }

    /// The packet that a record's header announces, its frame still zeros.
    pub(super) fn packet(self, header: &[u8; RECORD_HEADER_LEN]) -> io::Result<CapturedPacket> {
        let mut fields = Fields::new(header, self.order);
        let seconds = u64::from(fields.u32("seconds")?);
        let fraction = u64::from(fields.u32("fraction of a second")?);
        let captured = fields.u32("captured length")? as usize;
        if captured > MAX_BLOCK_LEN {
            return Err(corrupt(format!("a captured length of {captured} bytes")));
        }
        Ok(CapturedPacket {
            interface: 0,
            timestamp_ns: seconds * NS_PER_S + fraction * self.ns_per_unit,
            direction: None,
            original_len: fields.u32("original length")?,
            frame: vec![0; captured],
            comment: None,
        })
    }
}
