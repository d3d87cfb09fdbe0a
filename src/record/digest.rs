//! Whether what arrived is what was sent.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// The SHA-256 of `bytes` in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digests of what a flow sent and of what arrived.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FlowDigests {
    source: String,
    destination: String,
    equal: bool,
}

impl FlowDigests {
    /// From the two digests in hexadecimal, which may come from two machines.
    pub fn new(source: String, destination: String) -> Self {
        let equal = source == destination;
        Self { source, destination, equal }
    }

    /// From the bytes at both ends.
    pub fn of(source: &[u8], destination: &[u8]) -> Self {
        Self::new(sha256_hex(source), sha256_hex(destination))
    }

    /// Of what was sent.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Of what arrived.
    pub fn destination(&self) -> &str {
        &self.destination
    }

    /// Whether they are the same.
    pub fn are_equal(&self) -> bool {
        self.equal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_one_of_its_standard() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), expected);
        assert!(FlowDigests::of(b"abc", b"abc").are_equal());
        assert!(!FlowDigests::of(b"abc", b"abd").are_equal());
    }
}
