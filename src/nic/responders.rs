//! A NIC's receiving sides.

use std::collections::BTreeMap;

use super::responder::Responder;
use crate::trace::QpAddress;
use crate::wire::qpn::Qpn;

/// The receiving sides of a NIC, by their own number and by the peer's end.
// spec: RX-2, QP-8
#[derive(Debug, Default)]
pub struct Responders {
    by_local: BTreeMap<Qpn, Responder>,
    by_remote: BTreeMap<QpAddress, Qpn>,
}

impl Responders {
    /// The side with the number `qpn` here.
    pub fn get(&self, qpn: Qpn) -> Option<&Responder> {
        self.by_local.get(&qpn)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, qpn: Qpn) -> Option<&mut Responder> {
        self.by_local.get_mut(&qpn)
    }

    /// Whether a side has the number `qpn` here.
    pub fn contains(&self, qpn: Qpn) -> bool {
        self.by_local.contains_key(&qpn)
    }

    /// The number here of the side that belongs to the peer's QP `remote`.
    // spec: QP-6
    pub fn by_remote(&self, remote: QpAddress) -> Option<Qpn> {
        self.by_remote.get(&remote).copied()
    }

    /// A side has been made.
    pub fn insert(&mut self, responder: Responder) {
        let local = responder.local().qpn;
        self.by_remote.insert(responder.remote(), local);
        self.by_local.insert(local, responder);
    }

    /// Takes a side out.
    pub fn remove(&mut self, qpn: Qpn) -> Option<Responder> {
        let responder = self.by_local.remove(&qpn)?;
        self.by_remote.remove(&responder.remote());
        Some(responder)
    }

    /// Every side, in the order of the numbers here.
    pub fn iter(&self) -> impl Iterator<Item = &Responder> {
        self.by_local.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_local.len()
    }
}
