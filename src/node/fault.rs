//! Fault rules: which packets on a link something happens to, and what.

use core::fmt;

use super::Frame;
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::units::{Rate, show_bytes, show_duration};
use crate::wire::bth::BthView;
use crate::wire::frame::FrameView;
use crate::wire::opcode::{Kind, Opcode};
use crate::wire::packet::{FrameFormat, UDP};
use crate::wire::psn::Psn;
use crate::wire::qpn::Qpn;
use crate::wire::role::Role;

/// Which packets a rule is about: everything that is given must hold. The
/// default is every packet.
///
/// The first six fields are MRC's: a rule that gives one of them passes over
/// frames that are not MRC.
// spec: SW-20
#[derive(Clone, PartialEq, Debug)]
pub struct PacketMatch {
    /// The kind of packet; a trimmed packet is a [`Kind::Write`].
    pub kind: Option<Kind>,
    /// The role that its codepoint names.
    pub role: Option<Role>,
    /// The destination queue pair number in its BTH.
    pub qpn: Option<Qpn>,
    /// The PSN in its BTH.
    pub psn: Option<Psn>,
    /// The entropy value: its UDP source port.
    pub entropy: Option<u16>,
    /// The retransmission flag in its BTH.
    pub retransmission: Option<bool>,
    /// The first instant at which the rule is in force.
    pub from: Option<Instant>,
    /// The instant at which the rule is in force no longer.
    pub until: Option<Instant>,
    /// The time from `from` to `until` comes again with this period.
    pub every: Option<Duration>,
    /// Of the packets with all of the above only this one, counted from 1.
    pub nth: Option<u64>,
    /// The rule acts at most this many times.
    pub limit: Option<u64>,
    /// How likely the rule acts on a packet with all of the above, 0.0 to 1.0.
    pub probability: f64,
}

impl Default for PacketMatch {
    fn default() -> Self {
        Self {
            kind: None,
            role: None,
            qpn: None,
            psn: None,
            entropy: None,
            retransmission: None,
            from: None,
            until: None,
            every: None,
            nth: None,
            limit: None,
            probability: 1.0,
        }
    }
}

/// What happens to a packet.
// spec: SW-20
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultAction {
    /// It is lost.
    Drop,
    /// A copy follows it.
    Duplicate,
    /// One of its bits is flipped.
    Corrupt {
        /// Which one, counted from the most significant bit of the destination
        /// MAC address; `None` for one that is drawn for each packet.
        bit: Option<u32>,
    },
    /// It arrives this much later. Those behind it do not wait for it.
    Hold(Duration),
    /// It waits until as many later packets have come to the link, and goes
    /// right behind the last of them.
    Reorder {
        /// How many.
        behind: u32,
    },
    /// It is cut to its headers, as a switch does it, if it is MRC data.
    Trim {
        /// It is marked as trimmed on the port that faces the receiver.
        last_hop: bool,
    },
    /// It passes a slower or longer link.
    Shape(Shape),
    /// The link is down: every packet is lost.
    Down,
}

/// How a link is slower or longer than it was. Packets stay in order: what has
/// passed such a link is overtaken by nothing, shaped or not.
// spec: SW-20
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shape {
    /// Where packets pass one after the other.
    pub bottleneck: Option<Bottleneck>,
    /// How much later each packet arrives.
    pub delay: Duration,
    /// Up to this much later still: drawn for each packet, every picosecond
    /// from zero to this as likely as any other.
    pub jitter: Duration,
}

/// A place in a link that is slower than the port before it. A packet that has
/// left the port whole passes it once the one before has passed.
// spec: SW-20
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bottleneck {
    /// The rate at which it sends.
    pub rate: Rate,
    /// How many bytes of frames may be in it, that being sent included. A
    /// packet that would make it more is lost.
    pub queue_limit: u64,
}

/// When in a packet's way an action has its turn. At each stage the first rule
/// that fits acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// First: with the packet itself.
    Packet,
    /// Then: whether there is a link at all.
    State,
    /// Last: how fast it goes.
    Pace,
}

impl FaultAction {
    pub(super) const fn stage(&self) -> Stage {
        match self {
            Self::Drop
            | Self::Duplicate
            | Self::Corrupt { .. }
            | Self::Hold(_)
            | Self::Reorder { .. }
            | Self::Trim { .. } => Stage::Packet,
            Self::Down => Stage::State,
            Self::Shape(_) => Stage::Pace,
        }
    }
}

/// One way in which a link goes wrong. Prints as `SACK, 0.1 % loss`.
// spec: SW-20
#[derive(Clone, PartialEq, Debug)]
pub struct FaultRule {
    /// Which packets.
    pub matches: PacketMatch,
    /// What happens to them.
    pub action: FaultAction,
}

impl FaultRule {
    /// The rule with times that count from `start` in place of time 0.
    pub fn starting_at(mut self, start: Instant) -> Self {
        let shifted = |at: Instant| start + at.since(Instant::ZERO);
        self.matches.from = self.matches.from.map(shifted);
        self.matches.until = self.matches.until.map(shifted);
        self
    }
}

impl PacketMatch {
    /// Whether the fields and the times hold.
    fn holds(&self, now: Instant, packet: Option<&PacketFacts>) -> bool {
        self.is_in_force(now) && packet.map_or(self.takes_any_frame(), |facts| self.fits(facts))
    }

    // spec: SW-20
    fn is_in_force(&self, now: Instant) -> bool {
        let from = self.from.unwrap_or(Instant::ZERO);
        let Some(until) = self.until else { return from <= now };
        let since = now.since(from).as_ps();
        let phase = match self.every {
            Some(every) => since % every.as_ps().max(1),
            None => since,
        };
        from <= now && phase < until.since(from).as_ps()
    }

    /// When the times next begin or cease to hold after `now`.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        let from = self.from.unwrap_or(Instant::ZERO);
        if now < from {
            return Some(from);
        }
        let length = self.until?.since(from).as_ps();
        let since = now.since(from).as_ps();
        let period = self.every.map(|every| every.as_ps().max(1));
        let phase = period.map_or(since, |period| since % period);
        let left = match period {
            _ if phase < length => length - phase,
            Some(period) => period - phase,
            None => return None,
        };
        Some(now + Duration::from_ps(left))
    }

    /// Whether no field of MRC is given.
    fn takes_any_frame(&self) -> bool {
        self.kind.is_none()
            && self.role.is_none()
            && self.qpn.is_none()
            && self.psn.is_none()
            && self.entropy.is_none()
            && self.retransmission.is_none()
    }

    fn fits(&self, packet: &PacketFacts) -> bool {
        self.kind.is_none_or(|kind| kind == packet.opcode.kind())
            && self.role.is_none_or(|role| Some(role) == packet.role)
            && self.qpn.is_none_or(|qpn| qpn == packet.qpn)
            && self.psn.is_none_or(|psn| psn == packet.psn)
            && self.entropy.is_none_or(|entropy| entropy == packet.entropy)
            && self.retransmission.is_none_or(|flag| flag == packet.retransmission)
    }
}

/// A rule with what it has seen and done.
#[derive(Clone, Debug)]
pub struct ArmedRule {
    id: u64,
    rule: FaultRule,
    seen: u64,
    acted: u64,
}

impl ArmedRule {
    pub(super) fn new(id: u64, rule: FaultRule) -> Self {
        Self { id, rule, seen: 0, acted: 0 }
    }

    /// Its number on the link.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it says.
    pub fn rule(&self) -> &FaultRule {
        &self.rule
    }

    /// How many packets came whose fields and times fitted.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// How often it has acted.
    pub fn acted(&self) -> u64 {
        self.acted
    }

    /// Whether the link is down at `now` by this rule.
    pub(super) fn takes_down(&self, now: Instant) -> bool {
        self.rule.action == FaultAction::Down && self.rule.matches.is_in_force(now)
    }

    /// When, after `now`, the rule next takes the link down or lets it up.
    pub(super) fn next_change(&self, now: Instant) -> Option<Instant> {
        let is_down = self.rule.action == FaultAction::Down;
        self.rule.matches.next_change(now).filter(|_| is_down)
    }

    /// Whether the rule acts on this packet, which counts as seen. The random
    /// stream is drawn from only when nothing but the probability is open.
    // spec: SW-20
    pub(super) fn acts(
        &mut self,
        now: Instant,
        packet: Option<&PacketFacts>,
        rng: &mut Rng,
    ) -> bool {
        let matches = &self.rule.matches;
        if !matches.holds(now, packet) {
            return false;
        }
        self.seen += 1;
        let acts = matches.nth.is_none_or(|nth| nth == self.seen)
            && matches.limit.is_none_or(|limit| self.acted < limit)
            && (matches.probability >= 1.0 || rng.chance(matches.probability));
        self.acted += u64::from(acts);
        acts
    }
}

/// What rules ask of an MRC packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PacketFacts {
    pub opcode: Opcode,
    role: Option<Role>,
    qpn: Qpn,
    psn: Psn,
    entropy: u16,
    retransmission: bool,
}

impl PacketFacts {
    /// The facts of an MRC packet; `None` for any other frame.
    pub fn read(frame: &Frame, format: &FrameFormat) -> Option<Self> {
        let view = FrameView::new(frame).ok()?;
        let udp = view.udp().filter(|udp| udp.destination_port() == format.udp_port)?;
        let bth = BthView::new(view.payload().get(UDP..)?).ok()?;
        Some(Self {
            opcode: bth.opcode()?,
            role: format.codepoints.role(view.dscp()),
            qpn: bth.destination_qp(),
            psn: bth.psn(),
            entropy: udp.source_port(),
            retransmission: bth.retransmission(),
        })
    }
}

/// `SACK PSN 17`, `WRITE_ONLY TRIMMED PSN 4 RTX`.
impl fmt::Display for PacketFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.opcode.name())?;
        if let Some(role) = self.role.filter(|role| role.is_trimmed()) {
            write!(f, " {role}")?;
        }
        write!(f, " PSN {}", self.psn)?;
        if self.retransmission { f.write_str(" RTX") } else { Ok(()) }
    }
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.matches)?;
        let probability = self.matches.probability;
        if probability < 1.0 {
            // Rounded, so that 0.07 prints as 7 and not as 7.000000000000001.
            write!(f, "{} % ", (probability * 1e12).round() / 1e10)?;
        }
        write!(f, "{}", self.action)
    }
}

/// Each condition but the probability, with a comma and a space after it.
impl fmt::Display for PacketMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rtx = |flag| if flag { "RTX" } else { "no RTX" }.to_owned();
        let conditions = [
            self.kind.map(|kind| kind_name(kind).to_owned()),
            self.role.map(|role| role.to_string()),
            self.qpn.map(|qpn| format!("QP {qpn}")),
            self.psn.map(|psn| format!("PSN {psn}")),
            self.entropy.map(|entropy| format!("entropy {entropy}")),
            self.retransmission.map(rtx),
            self.from.map(|at| format!("from {at} ns")),
            self.until.map(|at| format!("until {at} ns")),
            self.every.map(|period| format!("every {}", show_duration(period))),
            self.nth.map(|nth| format!("only match {nth}")),
            self.limit.map(|limit| format!("at most {limit} times")),
        ];
        conditions.into_iter().flatten().try_for_each(|condition| write!(f, "{condition}, "))
    }
}

impl fmt::Display for FaultAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("loss"),
            Self::Duplicate => f.write_str("duplication"),
            Self::Corrupt { bit: None } => f.write_str("corruption"),
            Self::Corrupt { bit: Some(bit) } => write!(f, "corruption of bit {bit}"),
            Self::Hold(time) => write!(f, "hold of {time}"),
            Self::Reorder { behind } => write!(f, "reorder behind {behind}"),
            Self::Trim { last_hop: false } => f.write_str("trim"),
            Self::Trim { last_hop: true } => f.write_str("trim on the last hop"),
            Self::Shape(shape) => write!(f, "{shape}"),
            Self::Down => f.write_str("down"),
        }
    }
}

/// `rate of 10 Gbps with a queue of 250 KB, delay of 5 us, jitter of 1 us`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |Bottleneck { rate, queue_limit }| {
            format!("rate of {rate} with a queue of {}", show_bytes(queue_limit))
        };
        let time = |name, time| {
            (time != Duration::ZERO).then(|| format!("{name} of {}", show_duration(time)))
        };
        let parts =
            [self.bottleneck.map(rate), time("delay", self.delay), time("jitter", self.jitter)];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "delay of nothing" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Write => "WRITE",
        Kind::Ack => "ACK",
        Kind::Sack => "SACK",
        Kind::Nack => "NACK",
        Kind::Probe => "PROBE",
        Kind::Unsupported => "UNSUPPORTED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(matches: PacketMatch, action: FaultAction) -> String {
        FaultRule { matches, action }.to_string()
    }

    // spec: SW-20
    #[test]
    fn rules_print_their_conditions_and_what_they_do() {
        let any = PacketMatch::default;
        assert_eq!(rule(any(), FaultAction::Drop), "loss");
        let sack = PacketMatch { kind: Some(Kind::Sack), probability: 0.001, ..any() };
        assert_eq!(rule(sack, FaultAction::Drop), "SACK, 0.1 % loss");
        let seventh = PacketMatch { psn: Psn::new(7), limit: Some(1), ..any() };
        let trim = FaultAction::Trim { last_hop: true };
        assert_eq!(rule(seventh, trim), "PSN 7, at most 1 times, trim on the last hop");
        let late = PacketMatch { from: Some(Instant::from_ps(1_500)), probability: 0.07, ..any() };
        let hold = FaultAction::Hold(Duration::from_us(2));
        assert_eq!(rule(late, hold), "from 1.5 ns, 7 % hold of 2000 ns");
    }

    // spec: SW-20
    #[test]
    fn every_condition_prints() {
        let all = PacketMatch {
            kind: Some(Kind::Write),
            role: Some(Role::Trimmable),
            qpn: Qpn::new(0x2A),
            psn: Psn::new(1),
            entropy: Some(2),
            retransmission: Some(true),
            from: Some(Instant::from_ps(3_000)),
            until: Some(Instant::from_ps(4_000)),
            every: Some(Duration::from_us(1)),
            nth: Some(5),
            limit: Some(6),
            probability: 0.5,
        };
        assert_eq!(
            rule(all, FaultAction::Duplicate),
            "WRITE, TRIMMABLE, QP 0x00002a, PSN 1, entropy 2, RTX, from 3 ns, until 4 ns, \
             every 1 us, only match 5, at most 6 times, 50 % duplication"
        );
    }

    // spec: SW-20
    #[test]
    fn every_action_prints() {
        let bottleneck = Some(Bottleneck { rate: Rate::gbps(10), queue_limit: 250_000 });
        let [delay, jitter] = [5, 1].map(Duration::from_us);
        for (action, text) in [
            (FaultAction::Corrupt { bit: None }, "corruption"),
            (FaultAction::Reorder { behind: 3 }, "reorder behind 3"),
            (FaultAction::Down, "down"),
            (
                FaultAction::Shape(Shape { bottleneck, delay, jitter }),
                "rate of 10 Gbps with a queue of 250 KB, delay of 5 us, jitter of 1 us",
            ),
            (FaultAction::Shape(Shape { jitter, ..Shape::default() }), "jitter of 1 us"),
            (FaultAction::Shape(Shape::default()), "delay of nothing"),
        ] {
            assert_eq!(rule(PacketMatch::default(), action), text);
        }
    }

    // spec: SW-20
    #[test]
    fn times_of_a_rule_may_come_again() {
        let [from, until] = [10, 13].map(|ps| Some(Instant::from_ps(ps)));
        let once = PacketMatch { from, until, ..PacketMatch::default() };
        let again = PacketMatch { every: Some(Duration::from_ps(5)), ..once.clone() };
        let in_force = |matches: &PacketMatch| {
            (0..25).filter(|ps| matches.is_in_force(Instant::from_ps(*ps))).collect::<Vec<_>>()
        };
        assert_eq!(in_force(&once), [10, 11, 12]);
        assert_eq!(in_force(&again), [10, 11, 12, 15, 16, 17, 20, 21, 22]);
        let rule = FaultRule { matches: again, action: FaultAction::Drop };
        let later = rule.starting_at(Instant::from_ps(10)).matches;
        assert_eq!(in_force(&later), [20, 21, 22]);
        // Its end comes before its beginning: never.
        assert!(in_force(&PacketMatch { from: until, until: from, ..once }).is_empty());
    }
}
