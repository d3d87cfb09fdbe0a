//! Every frame that passes a node's port, as packets and as lines of a ladder.

use std::cell::RefCell;
use std::rc::Rc;

use mrc_lab::node::{FrameTap, PortId, TapDirection};
use mrc_lab::time::Instant;
use mrc_lab::trace::NodeId;
use mrc_lab::wire::bth::BthView;
use mrc_lab::wire::opcode::{Kind, Opcode};
use mrc_lab::wire::packet::{Body, FrameFormat, Packet, wire_bytes};
use mrc_lab::wire::pfc::Pfc;
use mrc_lab::wire::psn::Psn;
use mrc_lab::wire::seth::{PathMark, Seth};

/// Where the BTH starts in a frame.
pub const BTH_AT: usize = 42;

/// A frame at a node's port.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub node: NodeId,
    pub sent: bool,
    /// What a fault did to it on its way out.
    pub fault: Option<String>,
    pub frame: Vec<u8>,
    format: FrameFormat,
}

impl Seen {
    pub fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.frame, &self.format).expect("nodes send what can be parsed")
    }

    /// What the BTH's opcode says, whatever the rest of the frame is like.
    fn kind(&self) -> Option<Kind> {
        BthView::new(&self.frame[BTH_AT..]).ok()?.opcode().map(Opcode::kind)
    }

    pub fn wire_bytes(&self) -> u64 {
        wire_bytes(self.frame.len())
    }

    pub fn is_data(&self) -> bool {
        self.pfc().is_none() && self.packet().bth.opcode.is_data()
    }

    /// What it pauses, when it is a PFC frame.
    pub fn pfc(&self) -> Option<Pfc> {
        Pfc::is_pfc(&self.frame).then(|| Pfc::parse(&self.frame).expect("nodes send good ones"))
    }

    pub fn seth(&self) -> Option<Seth> {
        match self.packet().body {
            Body::Sack(seth, _) => Some(seth),
            _ => None,
        }
    }

    /// `FIRST 0 C`, `LAST 7 A RTX`, `SACK 3 [5 8-9]`, `NACK 4 TRIMMED RTX`,
    /// `PAUSE 0:65535`.
    pub fn line(&self) -> String {
        if let Some(pfc) = self.pfc() {
            let classes = (0..).zip(pfc.quanta);
            let told = classes.filter_map(|(class, quanta)| Some(format!(" {class}:{}", quanta?)));
            return format!("PAUSE{}", told.collect::<String>());
        }
        let packet = self.packet();
        let bth = packet.bth;
        let mut line = bth.opcode.name().trim_start_matches("WRITE_").to_owned();
        line += &format!(" {}", signed(bth.psn));
        match packet.body {
            Body::Sack(seth, _) => line += &listed(&seth),
            Body::Nack(neth) => line += &format!(" {}", neth.reason.name()),
            Body::Trimmed { .. } => line += " TRIMMED",
            _ => {}
        }
        let flags = [(bth.ack_request, " A"), (bth.retransmission, " RTX"), (bth.connect, " C")];
        flags.into_iter().filter(|(set, _)| *set).for_each(|(_, name)| line += name);
        line
    }
}

/// A PSN as a number around 0: the one before 0 is -1.
fn signed(psn: Psn) -> i32 {
    psn.distance_from(Psn::masked(0))
}

/// The PSNs that a SACK's bitmap lists, and its mark.
fn listed(seth: &Seth) -> String {
    let base = i64::from(signed(seth.cumulative)) + i64::from(seth.sack_offset);
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for psn in (0..64).filter(|bit| seth.bitmap >> bit & 1 == 1).map(|bit| base + bit) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == psn => *end = psn,
            _ => runs.push((psn, psn)),
        }
    }
    let text = runs.iter().map(|(start, end)| match start == end {
        true => start.to_string(),
        false => format!("{start}-{end}"),
    });
    let text: Vec<_> = text.collect();
    let list = if text.is_empty() { String::new() } else { format!(" [{}]", text.join(" ")) };
    let mark = if seth.ce_mark == PathMark::SkipOnce { " CE" } else { "" };
    list + mark
}

/// What the taps of a world have seen, in order.
pub type Log = Rc<RefCell<Vec<Seen>>>;

/// A tap that writes to a log.
#[derive(Clone)]
pub struct Wiretap {
    pub node: NodeId,
    pub format: FrameFormat,
    pub log: Log,
}

impl Wiretap {
    /// The frames of `kind` that arrived, in order; trimmed ones are Writes.
    pub fn received(&self, kind: Kind) -> Vec<Vec<u8>> {
        let log = self.log.borrow();
        let received = log.iter().filter(|seen| !seen.sent && seen.kind() == Some(kind));
        received.map(|seen| seen.frame.clone()).collect()
    }
}

impl FrameTap for Wiretap {
    fn frame(
        &mut self,
        at: Instant,
        _: PortId,
        direction: TapDirection,
        frame: &[u8],
        comment: Option<&str>,
    ) {
        self.log.borrow_mut().push(Seen {
            at,
            node: self.node,
            sent: direction == TapDirection::Sent,
            fault: comment.map(str::to_owned),
            frame: frame.to_vec(),
            format: self.format,
        });
    }
}
