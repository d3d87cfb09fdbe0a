//! The sending end of one direction of a link: propagation delay and faults.
//! One pure implementation, called by whichever driver sends.

use core::fmt;

use super::fault::{ArmedRule, PacketFacts};
use super::{Frame, FramePool};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::wire::opcode::Kind;
use crate::wire::packet::FrameFormat;
use crate::wire::role::Role;
use crate::wire::trim::{TrimIpLength, trim};

pub use super::fault::{FaultAction, FaultRule, PacketMatch};

/// One direction of a link. Frames do not wait for each other: each arrives
/// after the delay and what a fault adds to it.
// spec: SW-20, SW-21
#[derive(Clone, Debug)]
pub struct Link {
    delay: Duration,
    rules: Vec<ArmedRule>,
    format: FrameFormat,
    rng: Rng,
}

/// A frame on its way, or one that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When it arrives whole at the other end; `None` when it is lost and on no wire.
    pub arrives: Option<Instant>,
    /// The frame as a fault left it.
    pub frame: Frame,
    /// What a fault did, with rule and packet:
    /// `dropped by rule 2 (SACK, 0.1 % loss): SACK PSN 17`.
    pub comment: Option<String>,
}

/// What a rule did to a frame.
enum Deed {
    Dropped,
    Duplicated,
    Flipped(u64),
    Held(Duration),
    Trimmed,
    /// The frame was not one to which it can be done.
    Failed,
}

impl Link {
    /// A link with this propagation delay. The rules are asked in order; the
    /// first one that matches acts, and those after it do not see the packet.
    /// `format` says which frames are MRC and with which codepoints a trim
    /// marks them; `rng` is this direction's own stream.
    pub fn new(delay: Duration, rules: Vec<FaultRule>, format: FrameFormat, rng: Rng) -> Self {
        Self { delay, rules: rules.into_iter().map(ArmedRule::new).collect(), format, rng }
    }

    /// A frame whose last bit left at `now` meets faults and delay. What
    /// becomes of it, and of copies, is pushed to `out`.
    // spec: SW-3, SW-20
    pub fn send(
        &mut self,
        now: Instant,
        frame: Frame,
        frames: &mut FramePool,
        out: &mut Vec<Passage>,
    ) {
        let mut passage = Passage { arrives: Some(now + self.delay), frame, comment: None };
        if self.rules.is_empty() {
            return out.push(passage);
        }
        let packet = PacketFacts::read(&passage.frame, &self.format);
        let Some(index) = self.acting_rule(now, packet.as_ref()) else {
            return out.push(passage);
        };
        let subject = Subject { packet, bytes: passage.frame.len() };
        let deed = self.act(index, packet, &mut passage);
        let rule = &self.rules[index].rule;
        let comment = Some(format!("{deed} by rule {} ({rule}): {subject}", index + 1));
        if matches!(deed, Deed::Duplicated) {
            let (arrives, copy) = (passage.arrives, frames.copy_of(&passage.frame));
            out.push(passage);
            return out.push(Passage { arrives, frame: copy, comment });
        }
        out.push(Passage { comment, ..passage });
    }

    /// The first rule that matches.
    fn acting_rule(&mut self, now: Instant, packet: Option<&PacketFacts>) -> Option<usize> {
        let rng = &mut self.rng;
        self.rules.iter_mut().position(|rule| rule.acts(now, packet, rng))
    }

    /// Does to `passage` what rule `index` says; the copy of a duplicate is the
    /// caller's to make.
    fn act(&mut self, index: usize, packet: Option<PacketFacts>, passage: &mut Passage) -> Deed {
        match self.rules[index].rule.action {
            FaultAction::Drop => {
                passage.arrives = None;
                Deed::Dropped
            }
            FaultAction::Duplicate => Deed::Duplicated,
            FaultAction::Corrupt { bit } => self.corrupt(bit, &mut passage.frame),
            FaultAction::Hold(time) => {
                passage.arrives = passage.arrives.map(|at| at + time);
                Deed::Held(time)
            }
            FaultAction::Trim { last_hop } => self.trim(last_hop, packet, &mut passage.frame),
        }
    }

    fn corrupt(&mut self, bit: Option<u32>, frame: &mut Frame) -> Deed {
        let bits = frame.len() as u64 * 8;
        let bit = bit.map_or_else(|| self.rng.below(bits), u64::from);
        match frame.get_mut((bit / 8) as usize) {
            Some(byte) => {
                *byte ^= 0x80 >> (bit % 8);
                Deed::Flipped(bit)
            }
            None => Deed::Failed,
        }
    }

    // spec: NACK-1
    fn trim(&self, last_hop: bool, packet: Option<PacketFacts>, frame: &mut Frame) -> Deed {
        let is_data = packet.is_some_and(|packet| packet.opcode.kind() == Kind::Write);
        let role = if last_hop { Role::TrimmedLastHop } else { Role::Trimmed };
        let dscp = self.format.codepoints.dscp(role);
        if is_data && trim(frame, dscp, TrimIpLength::Fix).is_ok() {
            Deed::Trimmed
        } else {
            Deed::Failed
        }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped => f.write_str("dropped"),
            Self::Duplicated => f.write_str("duplicated"),
            Self::Flipped(bit) => write!(f, "bit {bit} flipped"),
            Self::Held(time) => write!(f, "held {time}"),
            Self::Trimmed => f.write_str("trimmed"),
            Self::Failed => f.write_str("left as it was"),
        }
    }
}

/// The frame that a comment is about, as it was before the fault.
struct Subject {
    packet: Option<PacketFacts>,
    bytes: usize,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packet {
            Some(packet) => write!(f, "{packet}"),
            None => write!(f, "other frame of {} bytes", self.bytes),
        }
    }
}

#[cfg(test)]
mod tests;
