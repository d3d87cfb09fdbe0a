//! What a node has been told of its links.

use super::Link;
use crate::node::PortId;
use crate::time::Instant;

/// Tells a node which of its links went down or up, whichever driver owns them.
///
/// A driver asks [`is_due`](Self::is_due) before each call of the node. A change
/// between two calls is told before the second one; it does nothing by itself,
/// so it is no deadline.
// spec: SW-13, SW-21
#[derive(Debug)]
pub struct LinkWatch {
    /// Of each port, whether the node takes its link for up.
    told: Vec<bool>,
    /// No link changes before.
    due: Instant,
}

impl LinkWatch {
    /// For a node with so many ports, which takes all its links for up.
    pub fn new(ports: usize) -> Self {
        Self { told: vec![true; ports], due: Instant::ZERO }
    }

    /// Whether there may be something to tell at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        self.due <= now
    }

    /// The links' rules are not what they were: something is due at once.
    pub fn rules_changed(&mut self) {
        self.due = Instant::ZERO;
    }

    /// Calls `tell` for each of the `links`, in the order of the ports, that is
    /// not as the node was told.
    pub fn update<'l>(
        &mut self,
        now: Instant,
        links: impl Iterator<Item = &'l Link>,
        mut tell: impl FnMut(PortId, bool),
    ) {
        self.due = Instant::MAX;
        for ((told, link), port) in self.told.iter_mut().zip(links).zip(0..) {
            let up = link.is_up(now);
            if up != *told {
                *told = up;
                tell(PortId(port), up);
            }
            self.due = link.next_change(now).map_or(self.due, |at| at.min(self.due));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::link::{FaultAction, FaultRule, PacketMatch};
    use crate::rng::Rng;
    use crate::time::Duration;
    use crate::wire::packet::FrameFormat;

    fn us(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn link(action: FaultAction, from: u64, until: Option<u64>, every: Option<u64>) -> Link {
        let (from, until) = (Some(us(from)), until.map(us));
        let every = every.map(Duration::from_us);
        let matches = PacketMatch { from, until, every, ..PacketMatch::default() };
        let rules = vec![FaultRule { matches, action }];
        Link::new(Duration::ZERO, rules, FrameFormat::default(), Rng::derive(1, "link", 0))
    }

    /// What is told when a node is called each microsecond up to `end`.
    fn told(watch: &mut LinkWatch, links: &[Link], end: u64) -> Vec<(u64, u16, bool)> {
        let mut told = Vec::new();
        for now in 0..=end {
            if watch.is_due(us(now)) {
                watch.update(us(now), links.iter(), |port, up| told.push((now, port.0, up)));
            }
        }
        told
    }

    // spec: SW-13
    #[test]
    fn each_change_is_told_once_when_it_comes() {
        let links = [
            link(FaultAction::Down, 3, Some(5), Some(10)),
            link(FaultAction::Drop, 1, Some(9), None),
            link(FaultAction::Down, 4, None, None),
            link(FaultAction::Down, 0, Some(7), None),
        ];
        let mut watch = LinkWatch::new(links.len());
        let expected = [
            (0, 3, false),
            (3, 0, false),
            (4, 2, false),
            (5, 0, true),
            (7, 3, true),
            (13, 0, false),
            (15, 0, true),
        ];
        assert_eq!(told(&mut watch, &links, 20), expected);
    }

    // spec: SW-13
    #[test]
    fn nothing_is_due_where_no_link_changes_until_its_rules_do() {
        let mut links = [link(FaultAction::Drop, 0, Some(5), Some(6))];
        let mut watch = LinkWatch::new(1);
        assert_eq!(told(&mut watch, &links, 0), []);
        assert!(!watch.is_due(us(1_000_000)));
        let matches = PacketMatch { from: Some(us(2)), ..PacketMatch::default() };
        links[0].add_rule(7, FaultRule { matches, action: FaultAction::Down });
        watch.rules_changed();
        assert_eq!(told(&mut watch, &links, 9), [(2, 0, false)]);
        links[0].clear_rules(None);
        watch.rules_changed();
        assert_eq!(told(&mut watch, &links, 9), [(0, 0, true)]);
    }
}
