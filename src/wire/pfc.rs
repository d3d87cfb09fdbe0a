//! PFC: the pause frame of IEEE 802.1Qbb, a MAC control frame. Between the
//! Ethernet header and the FCS it has 46 bytes.
//!
//! | byte | field |
//! |---|---|
//! | 0-1 | opcode: 0x0101 |
//! | 2-3 | class enable vector: bit n for priority n, the high 8 bits reserved |
//! | 4-19 | a timer of 16 bits for each priority, 0 to 7 |
//! | 20-45 | padding |

use core::array;

use super::error::WireError;
use super::header::{Header, chunk};
use super::mac::{ETHERTYPE_MAC_CONTROL, EthernetView, MacAddr, MacPair};

/// The group address of MAC control: a bridge never forwards it.
const DESTINATION: MacAddr = MacAddr([0x01, 0x80, 0xC2, 0x00, 0x00, 0x01]);
const OPCODE: u16 = 0x0101;
/// Where MAC control starts in a frame.
const MAC_CONTROL: usize = Header::Ethernet.size();
/// Where the timers start in a frame.
const TIMERS: usize = MAC_CONTROL + 4;

/// What follows the Ethernet header of a MAC control frame, over its bytes.
#[derive(Clone, Copy, Debug)]
pub struct PfcView<'a>(&'a [u8; Header::Pfc.size()]);

impl<'a> PfcView<'a> {
    /// MAC control at the start of `bytes`; nothing but the size is checked.
    ///
    /// # Errors
    /// [`WireError::TooShort`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        chunk(bytes, Header::Pfc).map(Self)
    }

    /// The opcode of MAC control.
    pub const fn opcode(self) -> u16 {
        u16::from_be_bytes([self.0[0], self.0[1]])
    }

    /// The class enable vector without its reserved half: bit n for priority n.
    pub const fn class_enable(self) -> u8 {
        self.0[3]
    }

    /// The timer of each priority, in quanta of 512 bit times, enabled or not.
    pub fn timers(self) -> [u16; 8] {
        array::from_fn(|priority| {
            let at = 4 + 2 * priority;
            u16::from_be_bytes([self.0[at], self.0[at + 1]])
        })
    }
}

/// Which priorities the neighbour on a link pauses, and for how long.
// spec: PB-13
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pfc {
    /// For each priority whose enable bit is set the time to pause in quanta
    /// of 512 bit times; 0 resumes.
    pub quanta: [Option<u16>; 8],
}

impl Pfc {
    /// Bytes of the frame in a buffer, without FCS.
    // spec: PB-13
    pub const FRAME_BYTES: usize = MAC_CONTROL + Header::Pfc.size();

    /// Pauses one priority (0 to 7) for `quanta` of 512 bit times.
    ///
    /// # Panics
    /// When there is no such priority.
    pub const fn one(priority: usize, quanta: u16) -> Self {
        let mut all = [None; 8];
        all[priority] = Some(quanta);
        Self { quanta: all }
    }

    /// True when the frame's EtherType is MAC control's: [`Pfc::parse`] reads
    /// it or names its fault.
    pub fn is_pfc(frame: &[u8]) -> bool {
        EthernetView::new(frame).is_ok_and(|view| view.ethertype() == ETHERTYPE_MAC_CONTROL)
    }

    /// Reads a frame without FCS. The reserved half of the class enable vector,
    /// the timers of priorities that are not enabled, and the padding's content
    /// are not looked at.
    ///
    /// # Errors
    /// Shorter than [`Pfc::FRAME_BYTES`], another EtherType, another
    /// destination than the group address of MAC control, or another opcode,
    /// such as 0x0001 of the PAUSE without priorities.
    // spec: PB-13, W-14
    pub fn parse(frame: &[u8]) -> Result<Self, WireError> {
        let ethernet = EthernetView::new(frame)?;
        if ethernet.ethertype() != ETHERTYPE_MAC_CONTROL {
            return Err(WireError::EtherType { found: ethernet.ethertype() });
        }
        let view = PfcView::new(&frame[MAC_CONTROL..])?;
        if ethernet.macs().destination != DESTINATION {
            return Err(WireError::PfcDestination { found: ethernet.macs().destination });
        }
        if view.opcode() != OPCODE {
            return Err(WireError::PfcOpcode { found: view.opcode() });
        }
        let (enable, timers) = (view.class_enable(), view.timers());
        let quanta = |priority: usize| (enable >> priority & 1 == 1).then_some(timers[priority]);
        Ok(Self { quanta: array::from_fn(quanta) })
    }

    /// Clears `out` and fills it with the frame of the port with the address
    /// `source`, without FCS.
    // spec: PB-13
    pub fn emit(&self, source: MacAddr, out: &mut Vec<u8>) {
        out.clear();
        out.resize(Self::FRAME_BYTES, 0);
        MacPair { source, destination: DESTINATION }.emit(out);
        out[12..MAC_CONTROL].copy_from_slice(&ETHERTYPE_MAC_CONTROL.to_be_bytes());
        out[MAC_CONTROL..MAC_CONTROL + 2].copy_from_slice(&OPCODE.to_be_bytes());
        let timers = out[TIMERS..].chunks_exact_mut(2);
        let mut enable = 0;
        for (priority, (timer, quanta)) in timers.zip(self.quanta).enumerate() {
            enable |= u8::from(quanta.is_some()) << priority;
            timer.copy_from_slice(&quanta.unwrap_or(0).to_be_bytes());
        }
        out[TIMERS - 1] = enable;
    }
}
