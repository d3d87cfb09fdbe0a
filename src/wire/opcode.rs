//! The one table of opcodes: it drives parsing, building and checks.

use super::header::Header;

/// A BTH opcode of MRC.
// spec: W-4
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Opcode {
    /// The first packet of a message of several.
    WriteFirst,
    /// A packet between a message's first and last.
    WriteMiddle,
    /// The last packet of a message of several.
    WriteLast,
    /// The same with immediate data; known, not handled.
    WriteLastImmediate,
    /// The only packet of a message.
    WriteOnly,
    /// The same with immediate data; known, not handled.
    WriteOnlyImmediate,
    /// Cumulative acknowledgement.
    Ack,
    /// Endpoint request; known, not handled.
    EndpointRequest,
    /// Endpoint response; known, not handled.
    EndpointResponse,
    /// Selective acknowledgement.
    Sack,
    /// Negative acknowledgement.
    Nack,
    /// Path probe.
    Probe,
}

/// What kind of packet an opcode makes: decides its body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A part of an RDMA Write.
    Write,
    /// Cumulative acknowledgement.
    Ack,
    /// Selective acknowledgement.
    Sack,
    /// Negative acknowledgement.
    Nack,
    /// Path probe.
    Probe,
    /// A name that is known and a packet that is dropped.
    Unsupported,
}

/// One row of [`OPCODES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpcodeInfo {
    /// The opcode.
    pub opcode: Opcode,
    /// Byte 0 of the BTH.
    pub code: u8,
    /// The name as people know it.
    pub name: &'static str,
    /// Which body follows.
    pub kind: Kind,
    /// The headers after the BTH in every packet of this opcode, in order. A
    /// TSETH, when the BTH announces one, comes after the METH.
    pub headers: &'static [Header],
    /// True for a message's first packet.
    pub starts_message: bool,
    /// True for a message's last packet.
    pub ends_message: bool,
}

impl OpcodeInfo {
    /// True when the packet carries data of a message.
    pub const fn is_data(&self) -> bool {
        matches!(self.kind, Kind::Write)
    }

    /// True when an endpoint acts on the packet, false when it only knows the name.
    pub const fn is_handled(&self) -> bool {
        !matches!(self.kind, Kind::Unsupported)
    }
}

const WRITE: &[Header] = &[Header::Meth, Header::Reth];

/// Every opcode, in the order of [`Opcode`].
// spec: W-4
pub const OPCODES: [OpcodeInfo; 12] = {
    use Opcode::*;
    [
        write(WriteFirst, 0xC6, "WRITE_FIRST", true, false),
        write(WriteMiddle, 0xC7, "WRITE_MIDDLE", false, false),
        write(WriteLast, 0xC8, "WRITE_LAST", false, true),
        other(WriteLastImmediate, 0xC9, "WRITE_LAST_IMM", Kind::Unsupported, &[]),
        write(WriteOnly, 0xCA, "WRITE_ONLY", true, true),
        other(WriteOnlyImmediate, 0xCB, "WRITE_ONLY_IMM", Kind::Unsupported, &[]),
        other(Ack, 0xD1, "ACK", Kind::Ack, &[Header::Aeth]),
        other(EndpointRequest, 0xD8, "ENDPOINT_REQUEST", Kind::Unsupported, &[]),
        other(EndpointResponse, 0xD9, "ENDPOINT_RESPONSE", Kind::Unsupported, &[]),
        other(Sack, 0xDC, "SACK", Kind::Sack, &[Header::Seth, Header::CcState]),
        other(Nack, 0xDD, "NACK", Kind::Nack, &[Header::Neth]),
        other(Probe, 0xDE, "PROBE", Kind::Probe, &[Header::Peth]),
    ]
};

const fn write(
    opcode: Opcode,
    code: u8,
    name: &'static str,
    starts_message: bool,
    ends_message: bool,
) -> OpcodeInfo {
    let kind = Kind::Write;
    OpcodeInfo { opcode, code, name, kind, headers: WRITE, starts_message, ends_message }
}

const fn other(
    opcode: Opcode,
    code: u8,
    name: &'static str,
    kind: Kind,
    headers: &'static [Header],
) -> OpcodeInfo {
    let (starts_message, ends_message) = (false, false);
    OpcodeInfo { opcode, code, name, kind, headers, starts_message, ends_message }
}

/// The opcode of each byte, filled from [`OPCODES`].
const BY_CODE: [Option<Opcode>; 256] = {
    let mut by_code = [None; 256];
    let mut row = 0;
    while row < OPCODES.len() {
        by_code[OPCODES[row].code as usize] = Some(OPCODES[row].opcode);
        row += 1;
    }
    by_code
};

impl Opcode {
    /// The opcode of a BTH's first byte, handled or only known.
    pub const fn from_code(code: u8) -> Option<Self> {
        BY_CODE[code as usize]
    }

    /// This opcode's row of the table.
    pub const fn info(self) -> &'static OpcodeInfo {
        &OPCODES[self as usize]
    }

    /// Byte 0 of the BTH.
    pub const fn code(self) -> u8 {
        self.info().code
    }

    /// The name as people know it, such as `WRITE_FIRST`.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// Which body follows.
    pub const fn kind(self) -> Kind {
        self.info().kind
    }

    /// True when the packet carries data of a message.
    pub const fn is_data(self) -> bool {
        self.info().is_data()
    }

    /// True for a message's first packet.
    pub const fn starts_message(self) -> bool {
        self.info().starts_message
    }

    /// True for a message's last packet.
    pub const fn ends_message(self) -> bool {
        self.info().ends_message
    }

    /// The opcode of a data packet from its place in the message.
    // spec: SEG-3
    pub const fn write(is_first: bool, is_last: bool) -> Self {
        match (is_first, is_last) {
            (true, false) => Self::WriteFirst,
            (false, false) => Self::WriteMiddle,
            (false, true) => Self::WriteLast,
            (true, true) => Self::WriteOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: W-4
    #[test]
    fn every_row_is_found_by_its_opcode_and_by_its_code() {
        for (index, row) in OPCODES.iter().enumerate() {
            assert_eq!(row.opcode as usize, index, "{}", row.name);
            assert_eq!(row.opcode.info(), row);
            assert_eq!(Opcode::from_code(row.code), Some(row.opcode));
        }
        let known = (0..=255).filter(|&code| Opcode::from_code(code).is_some()).count();
        assert_eq!(known, OPCODES.len());
    }

    // spec: W-4
    #[test]
    fn only_the_named_codes_are_handled() {
        let handled: Vec<u8> =
            OPCODES.iter().filter(|row| row.is_handled()).map(|row| row.code).collect();
        assert_eq!(handled, [0xC6, 0xC7, 0xC8, 0xCA, 0xD1, 0xDC, 0xDD, 0xDE]);
    }

    // spec: SEG-3
    #[test]
    fn the_opcode_marks_first_middle_last_and_only() {
        for (is_first, is_last, code) in
            [(true, false, 0xC6), (false, false, 0xC7), (false, true, 0xC8), (true, true, 0xCA)]
        {
            let opcode = Opcode::write(is_first, is_last);
            assert_eq!(opcode.code(), code);
            assert_eq!((opcode.starts_message(), opcode.ends_message()), (is_first, is_last));
            assert_eq!(opcode.info().headers, [Header::Meth, Header::Reth]);
        }
    }
}
