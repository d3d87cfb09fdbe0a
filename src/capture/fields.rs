//! Reading fields of either byte order out of a block of a capture.

use std::io;

/// The byte order of a capture: that of the host that wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }
}

/// The bytes of a block that have not been read yet.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8], order: ByteOrder) -> Self {
        Self { bytes, order }
    }

    /// The next `len` bytes; an error that names the field when they are not there.
    pub(super) fn bytes(&mut self, len: usize, field: &str) -> io::Result<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(len).ok_or_else(|| short(field))?;
        self.bytes = rest;
        Ok(head)
    }

    /// As [`Self::bytes`], and skips the padding to a multiple of 4 bytes.
    pub(super) fn padded(&mut self, len: usize, field: &str) -> io::Result<&'a [u8]> {
        let value = self.bytes(len, field)?;
        self.bytes(len.next_multiple_of(4) - len, field)?;
        Ok(value)
    }

    pub(super) fn u16(&mut self, field: &str) -> io::Result<u16> {
        Ok(self.order.u16(self.array(field)?))
    }

    pub(super) fn u32(&mut self, field: &str) -> io::Result<u32> {
        Ok(self.order.u32(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: &str) -> io::Result<u64> {
        Ok(self.order.u64(self.array(field)?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Fields over `bytes` in the same byte order.
    pub(super) fn over(&self, bytes: &'a [u8]) -> Self {
        Self { bytes, order: self.order }
    }

    fn array<const N: usize>(&mut self, field: &str) -> io::Result<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk().ok_or_else(|| short(field))?;
        self.bytes = rest;
        Ok(*head)
    }
}

/// An error about content that no capture has.
pub(super) fn corrupt(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

fn short(field: &str) -> io::Error {
    corrupt(format!("the block ends inside its {field}"))
}
