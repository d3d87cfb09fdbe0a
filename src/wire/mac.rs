//! Ethernet addresses and the Ethernet header.

use core::fmt;
use core::str::FromStr;

use super::error::WireError;
use super::header::{Header, chunk};

/// The EtherType of IPv4.
pub const ETHERTYPE_IPV4: u16 = 0x0800;
/// The EtherType of MAC control: pause frames.
pub const ETHERTYPE_MAC_CONTROL: u16 = 0x8808;

/// An Ethernet (MAC) address: 6 bytes, written `02:00:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MacAddr(pub [u8; 6]);

/// Who sends a frame on its link and who takes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct MacPair {
    /// The sender's address.
    pub source: MacAddr,
    /// The next hop's address.
    pub destination: MacAddr,
}

impl MacPair {
    /// The pair for the way back.
    pub const fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }

    /// Writes the two addresses of the Ethernet header.
    ///
    /// # Panics
    /// When `out` is shorter than 12 bytes.
    pub fn emit(&self, out: &mut [u8]) {
        out[0..6].copy_from_slice(&self.destination.0);
        out[6..12].copy_from_slice(&self.source.0);
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is not an Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an Ethernet address such as 02:00:00:00:00:01")]
pub struct MacAddrError(String);

impl FromStr for MacAddr {
    type Err = MacAddrError;

    /// Reads six pairs of hexadecimal digits with colons between them.
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        octets(text).map(Self).ok_or_else(|| MacAddrError(text.to_owned()))
    }
}

fn octets(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut parts = text.split(':');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(octets)
}

/// An Ethernet header over its 14 bytes.
#[derive(Clone, Copy, Debug)]
pub struct EthernetView<'a>(&'a [u8; 14]);

impl<'a> EthernetView<'a> {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Ethernet).map(Self)
    }

    /// Both addresses.
    pub const fn macs(self) -> MacPair {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = *self.0;
        MacPair {
            source: MacAddr([s0, s1, s2, s3, s4, s5]),
            destination: MacAddr([d0, d1, d2, d3, d4, d5]),
        }
    }

    /// The EtherType.
    pub const fn ethertype(self) -> u16 {
        u16::from_be_bytes([self.0[12], self.0[13]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_and_read_the_same() {
        let mac = MacAddr([0x02, 0, 0x5E, 0x10, 0xFF, 0x01]);
        assert_eq!(mac.to_string(), "02:00:5e:10:ff:01");
        assert_eq!("02:00:5E:10:ff:01".parse(), Ok(mac));
        for bad in
            ["", "02:00:5e:10:ff", "02:00:5e:10:ff:01:02", "2:0:5e:10:ff:1", "+2:00:5e:10:ff:01"]
        {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }
}
