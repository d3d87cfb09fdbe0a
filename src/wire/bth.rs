//! BTH: the base transport header, 12 bytes, in every packet.
//!
//! | byte | field |
//! |---|---|
//! | 0 | opcode |
//! | 1 | SE (1), M (1), pad count (2), transport version (4) |
//! | 2-3 | P_Key |
//! | 4 | reserved |
//! | 5-7 | destination queue pair number |
//! | 8 | A (bit 7), reserved, RTX (5), TS (4), C (3), reserved |
//! | 9-11 | PSN |
//!
//! SE, M, the P_Key and reserved bits are not looked at on receipt.

use super::error::WireError;
use super::header::{Header, chunk};
use super::opcode::Opcode;
use super::psn::Psn;
use super::qpn::Qpn;
use super::{u24, u24_bytes};

/// The partition key of every packet: the default partition.
const P_KEY: [u8; 2] = [0xFF, 0xFF];
const ACK_REQUEST: u8 = 1 << 7;
const RETRANSMISSION: u8 = 1 << 5;
const TIMESTAMP_PRESENT: u8 = 1 << 4;
const CONNECT: u8 = 1 << 3;

/// A BTH over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct BthView<'a>(&'a [u8; Bth::LEN]);

impl<'a> BthView<'a> {
    /// The header at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Bth).map(Self)
    }

    /// The opcode byte, known or not.
    pub const fn opcode_byte(self) -> u8 {
        self.0[0]
    }

    /// The opcode; `None` when nobody knows it.
    pub const fn opcode(self) -> Option<Opcode> {
        Opcode::from_code(self.0[0])
    }

    /// The migration bit, which nothing depends on.
    pub const fn migration_request(self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// The pad count; MRC pads nothing.
    pub const fn pad_count(self) -> u8 {
        (self.0[1] >> 4) & 3
    }

    /// The transport version.
    pub const fn version(self) -> u8 {
        self.0[1] & 0x0F
    }

    /// The partition key.
    pub const fn p_key(self) -> u16 {
        u16::from_be_bytes([self.0[2], self.0[3]])
    }

    /// The destination queue pair number, or the sender's own when
    /// [`BthView::connect`] is set.
    pub const fn destination_qp(self) -> Qpn {
        Qpn::masked(u24([self.0[5], self.0[6], self.0[7]]))
    }

    /// A: the packet asks for an acknowledgement.
    pub const fn ack_request(self) -> bool {
        self.0[8] & ACK_REQUEST != 0
    }

    /// RTX: a retransmission, or the answer to one.
    pub const fn retransmission(self) -> bool {
        self.0[8] & RETRANSMISSION != 0
    }

    /// TS: a TSETH follows the METH.
    pub const fn timestamp_present(self) -> bool {
        self.0[8] & TIMESTAMP_PRESENT != 0
    }

    /// C: the destination queue pair number is the sender's own.
    pub const fn connect(self) -> bool {
        self.0[8] & CONNECT != 0
    }

    /// The packet sequence number.
    pub const fn psn(self) -> Psn {
        Psn::masked(u24([self.0[9], self.0[10], self.0[11]]) as u64)
    }

    /// The opcode when this endpoint handles it.
    // spec: W-4
    fn handled_opcode(self) -> Result<Opcode, WireError> {
        let found = self.opcode_byte();
        let opcode = self.opcode().ok_or(WireError::UnknownOpcode { found })?;
        if opcode.info().is_handled() {
            Ok(opcode)
        } else {
            Err(WireError::UnsupportedOpcode { opcode })
        }
    }
}

/// A BTH.
// spec: WIRE-4
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bth {
    /// The opcode.
    pub opcode: Opcode,
    /// The destination queue pair number; the sender's own when `connect` is set.
    pub destination_qp: Qpn,
    /// A: the packet asks for an acknowledgement.
    pub ack_request: bool,
    /// RTX: a retransmission, or the answer to one.
    // spec: W-5
    pub retransmission: bool,
    /// TS: a TSETH follows the METH (a trim may have cut it off).
    pub timestamp_present: bool,
    /// C: the sender does not know the receiving side's number yet.
    // spec: W-6
    pub connect: bool,
    /// The packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// Bytes on the wire.
    pub const LEN: usize = Header::Bth.size();

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Too short, a pad count, another version, an opcode that is unknown or
    /// not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let view = BthView::new(bytes)?;
        if view.version() != 0 {
            return Err(WireError::BthVersion { found: view.version() });
        }
        if view.pad_count() != 0 {
            return Err(WireError::BthPad { found: view.pad_count() });
        }
        Ok(Self {
            opcode: view.handled_opcode()?,
            destination_qp: view.destination_qp(),
            ack_request: view.ack_request(),
            retransmission: view.retransmission(),
            timestamp_present: view.timestamp_present(),
            connect: view.connect(),
            psn: view.psn(),
        })
    }

    /// Writes the header.
    ///
    /// # Panics
    /// When `out` is shorter than [`Bth::LEN`].
    pub fn emit(&self, out: &mut [u8]) {
        out[0] = self.opcode.code();
        out[1] = 0;
        out[2..4].copy_from_slice(&P_KEY);
        out[4] = 0;
        out[5..8].copy_from_slice(&u24_bytes(self.destination_qp.value()));
        out[8] = self.flags();
        out[9..12].copy_from_slice(&u24_bytes(self.psn.value()));
    }

    fn flags(&self) -> u8 {
        [
            (self.ack_request, ACK_REQUEST),
            (self.retransmission, RETRANSMISSION),
            (self.timestamp_present, TIMESTAMP_PRESENT),
            (self.connect, CONNECT),
        ]
        .into_iter()
        .fold(0, |flags, (set, bit)| if set { flags | bit } else { flags })
    }
}
