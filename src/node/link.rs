//! The sending end of one direction of a link: propagation delay and faults.
//! One pure implementation, called by whichever driver sends.

use core::fmt;

use super::fault::{PacketFacts, Stage};
use super::{Frame, FramePool};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::wire::opcode::Kind;
use crate::wire::packet::{FrameFormat, wire_bytes};
use crate::wire::role::Role;
use crate::wire::trim::{TrimIpLength, trim};

use line::Line;

pub use watch::LinkWatch;

pub use super::fault::{ArmedRule, Bottleneck, FaultAction, FaultRule, PacketMatch, Shape};

mod line;
mod watch;

/// One direction of a link. Unless a rule says otherwise, frames do not wait
/// for each other: each arrives after the delay and what a fault adds to it.
// spec: SW-20, SW-21
#[derive(Clone, Debug)]
pub struct Link {
    line: Line,
    /// The order in which they are asked.
    rules: Vec<ArmedRule>,
    /// Frames that wait for later ones: no more than the largest number of
    /// frames that one of them waits for.
    waiting: Vec<Waiting>,
    format: FrameFormat,
    rng: Rng,
}

/// A frame on its way, or one that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When it arrives whole at the other end; `None` when it is lost and on no wire.
    pub arrives: Option<Instant>,
    /// The frame as faults left it.
    pub frame: Frame,
    /// What each fault did, with rule and packet:
    /// `dropped by rule 2 (SACK, 0.1 % loss): SACK PSN 17`.
    pub comments: Vec<String>,
}

impl Passage {
    /// All comments, one on each line.
    pub fn comment(&self) -> Option<String> {
        (!self.comments.is_empty()).then(|| self.comments.join("\n"))
    }
}

/// A frame between the port and the line.
#[derive(Clone, Debug)]
struct Traveller {
    frame: Frame,
    subject: Subject,
    comments: Vec<String>,
    /// How much later than others it arrives.
    held: Duration,
}

/// A frame that waits for later ones.
#[derive(Clone, Debug)]
struct Waiting {
    /// For how many.
    left: u32,
    traveller: Traveller,
}

/// What a rule did to a frame.
enum Deed {
    Dropped,
    Duplicated,
    Flipped(u64),
    Held(Duration),
    Reordered(u32),
    Trimmed,
    LostOnDownLink,
    Shaped,
    FoundFullQueue,
    /// The frame was not one to which it can be done.
    Failed,
}

impl Link {
    /// A link with this propagation delay. The rules have the numbers from 1 on
    /// and are asked in order; the first one that matches acts, and those after
    /// it do not see the packet. Whether the link is down, and then how fast it
    /// is, is asked in the same way of the rules about that, for packets that
    /// the others leave.
    ///
    /// `format` says which frames are MRC and with which codepoints a trim
    /// marks them; `rng` is this direction's own stream.
    pub fn new(delay: Duration, rules: Vec<FaultRule>, format: FrameFormat, rng: Rng) -> Self {
        let rules = (1..).zip(rules).map(|(id, rule)| ArmedRule::new(id, rule)).collect();
        Self { line: Line::new(delay), rules, waiting: Vec::new(), format, rng }
    }

    /// The rules in the order in which they are asked.
    pub fn rules(&self) -> &[ArmedRule] {
        &self.rules
    }

    /// Adds a rule with a number of the caller's; it is asked before all others.
    // spec: SW-20
    pub fn add_rule(&mut self, id: u64, rule: FaultRule) {
        self.rules.insert(0, ArmedRule::new(id, rule));
    }

    /// Removes the rules with this number, or all; gives how many those were.
    /// What they did to packets under way stays done.
    // spec: SW-20
    pub fn clear_rules(&mut self, id: Option<u64>) -> usize {
        let before = self.rules.len();
        self.rules.retain(|rule| id.is_some_and(|id| id != rule.id()));
        before - self.rules.len()
    }

    /// Whether no rule has taken the link down at `now`.
    // spec: SW-20
    pub fn is_up(&self, now: Instant) -> bool {
        !self.rules.iter().any(|rule| rule.takes_down(now))
    }

    /// When, after `now`, a rule next takes the link down or lets it up; `None`
    /// when none does.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        self.rules.iter().filter_map(|rule| rule.next_change(now)).min()
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
        if self.rules.is_empty() && self.waiting.is_empty() {
            let arrives = Some(self.line.arrival(now));
            return out.push(Passage { arrives, frame, comments: Vec::new() });
        }
        let overtaken = self.take_overtaken();
        let packet = PacketFacts::read(&frame, &self.format);
        let subject = Subject { packet, bytes: frame.len() };
        let traveller = Traveller { frame, subject, comments: Vec::new(), held: Duration::ZERO };
        match self.acting_rule(Stage::Packet, now, packet.as_ref()) {
            Some(index) => self.meet(index, now, traveller, frames, out),
            None => self.pass(now, traveller, out),
        }
        overtaken.into_iter().for_each(|waited| self.pass(now, waited.traveller, out));
    }

    /// Another frame has come: those that have waited for it only.
    fn take_overtaken(&mut self) -> Vec<Waiting> {
        self.waiting.iter_mut().for_each(|waiting| waiting.left -= 1);
        self.waiting.extract_if(.., |waiting| waiting.left == 0).collect()
    }

    /// The first rule for `stage` that matches.
    fn acting_rule(
        &mut self,
        stage: Stage,
        now: Instant,
        packet: Option<&PacketFacts>,
    ) -> Option<usize> {
        let rng = &mut self.rng;
        self.rules
            .iter_mut()
            .position(|rule| rule.rule().action.stage() == stage && rule.acts(now, packet, rng))
    }

    /// Does to a packet what rule `index` says about single packets.
    fn meet(
        &mut self,
        index: usize,
        now: Instant,
        mut traveller: Traveller,
        frames: &mut FramePool,
        out: &mut Vec<Passage>,
    ) {
        let deed = self.act(index, &mut traveller);
        let comment = self.comment(index, &deed, &traveller.subject);
        if matches!(deed, Deed::Duplicated) {
            let frame = frames.copy_of(&traveller.frame);
            let copy = Traveller { frame, comments: vec![comment], ..traveller };
            self.pass(now, traveller, out);
            return self.pass(now, copy, out);
        }
        traveller.comments.push(comment);
        match deed {
            Deed::Dropped => out.push(traveller.lost()),
            Deed::Reordered(left) => self.waiting.push(Waiting { left, traveller }),
            _ => self.pass(now, traveller, out),
        }
    }

    /// Changes a packet as rule `index` says.
    fn act(&mut self, index: usize, traveller: &mut Traveller) -> Deed {
        match self.rules[index].rule().action {
            FaultAction::Drop => Deed::Dropped,
            FaultAction::Duplicate => Deed::Duplicated,
            FaultAction::Corrupt { bit } => self.corrupt(bit, &mut traveller.frame),
            FaultAction::Hold(time) => {
                traveller.held = time;
                Deed::Held(time)
            }
            FaultAction::Reorder { behind } => Deed::Reordered(behind),
            FaultAction::Trim { last_hop } => self.trim(last_hop, traveller),
            // Rules of the line act there.
            FaultAction::Down | FaultAction::Shape(_) => Deed::Failed,
        }
    }

    /// Puts a packet on the line, if there is one.
    fn pass(&mut self, now: Instant, mut traveller: Traveller, out: &mut Vec<Passage>) {
        let packet = traveller.subject.packet;
        if let Some(index) = self.acting_rule(Stage::State, now, packet.as_ref()) {
            let comment = self.comment(index, &Deed::LostOnDownLink, &traveller.subject);
            traveller.comments.push(comment);
            return out.push(traveller.lost());
        }
        let Some(index) = self.acting_rule(Stage::Pace, now, packet.as_ref()) else {
            return out.push(traveller.arriving(self.line.arrival(now)));
        };
        out.push(self.shape(index, now, traveller));
    }

    // spec: SW-20
    fn shape(&mut self, index: usize, now: Instant, mut traveller: Traveller) -> Passage {
        let FaultAction::Shape(shape) = self.rules[index].rule().action else {
            return traveller.arriving(self.line.arrival(now));
        };
        let bytes = wire_bytes(traveller.frame.len());
        let unshaped = self.line.arrival(now);
        let Some(arrives) = self.line.shaped_arrival(now, &shape, bytes, &mut self.rng) else {
            let comment = self.comment(index, &Deed::FoundFullQueue, &traveller.subject);
            traveller.comments.push(comment);
            return traveller.lost();
        };
        let comment = self.comment(index, &Deed::Shaped, &traveller.subject);
        traveller.comments.push(format!("{comment}, by {}", arrives.since(unshaped)));
        traveller.arriving(arrives)
    }

    fn comment(&self, index: usize, deed: &Deed, subject: &Subject) -> String {
        let rule = &self.rules[index];
        format!("{deed} by rule {} ({}): {subject}", rule.id(), rule.rule())
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
    fn trim(&self, last_hop: bool, traveller: &mut Traveller) -> Deed {
        let is_data =
            traveller.subject.packet.is_some_and(|packet| packet.opcode.kind() == Kind::Write);
        let role = if last_hop { Role::TrimmedLastHop } else { Role::Trimmed };
        let dscp = self.format.codepoints.dscp(role);
        if is_data && trim(&mut traveller.frame, dscp, TrimIpLength::Fix).is_ok() {
            Deed::Trimmed
        } else {
            Deed::Failed
        }
    }
}

impl Traveller {
    /// It is lost.
    fn lost(self) -> Passage {
        Passage { arrives: None, frame: self.frame, comments: self.comments }
    }

    /// It arrives, when not held, at `at`.
    fn arriving(self, at: Instant) -> Passage {
        Passage { arrives: Some(at + self.held), frame: self.frame, comments: self.comments }
    }
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped => f.write_str("dropped"),
            Self::Duplicated => f.write_str("duplicated"),
            Self::Flipped(bit) => write!(f, "bit {bit} flipped"),
            Self::Held(time) => write!(f, "held {time}"),
            Self::Reordered(_) => f.write_str("reordered"),
            Self::LostOnDownLink => f.write_str("lost"),
            Self::Shaped => f.write_str("delayed"),
            Self::FoundFullQueue => f.write_str("dropped at a full queue"),
            Self::Trimmed => f.write_str("trimmed"),
            Self::Failed => f.write_str("left as it was"),
        }
    }
}

/// The frame that a comment is about, as it was before the fault.
#[derive(Clone, Copy, Debug)]
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
