//! PFC at the NIC: telling the peer to stop and to go on, and being told.

use super::Nic;
use super::class::Class;
use super::ingress::{Signal, pause_time};
use crate::time::Instant;
use crate::wire::pfc::Pfc;

impl Nic {
    /// A packet of `bytes` has arrived: whether there is room for it.
    // spec: RX-1, PB-11, PB-12
    pub(super) fn charge_ingress(&mut self, now: Instant, class: Class, bytes: u64) -> bool {
        let (fits, signal) = self.ingress.charge(now, class, bytes);
        self.signal(class, signal);
        fits
    }

    /// A packet of `bytes` is done with.
    // spec: PB-11, PB-12
    pub(super) fn release_ingress(&mut self, class: Class, bytes: u64) {
        let signal = self.ingress.release(class, bytes);
        self.signal(class, signal);
    }

    /// What was waiting for its PCIe write and has been accepted by `now` is done with.
    // spec: PCIE-7, PB-4
    pub(super) fn release_written(&mut self, now: Instant) {
        while let Some((class, bytes)) = self.pcie.pop_accepted(now) {
            self.release_ingress(class, bytes);
        }
    }

    // spec: PB-12
    pub(super) fn refresh_pauses(&mut self, now: Instant) {
        self.release_written(now);
        while let Some((class, signal)) = self.ingress.pop_refresh(now) {
            self.signal(class, Some(signal));
        }
    }

    // spec: PB-12, PB-13
    fn signal(&mut self, class: Class, signal: Option<Signal>) {
        let quanta = match signal {
            Some(Signal::Pause) => self.config.attributes.pfc.quanta,
            Some(Signal::Resume) => 0,
            None => return,
        };
        self.egress.queue_pfc(class, quanta);
    }

    /// The peer pauses classes of this NIC, whatever it does itself; priorities
    /// that are none of its classes have no effect.
    // spec: PB-13
    pub(super) fn receive_pfc(&mut self, now: Instant, frame: &[u8]) {
        let pfc = match Pfc::parse(frame) {
            Ok(pfc) => pfc,
            Err(error) => return self.drops.count(error.counter()),
        };
        let (rate, delay) = (self.config.link_rate, self.config.attributes.delay);
        for class in Class::ALL {
            match pfc.quanta[class.index()] {
                Some(0) => {
                    self.counters.pfc_resumes_rcvd += 1;
                    self.egress.pause(class, now);
                }
                Some(quanta) => {
                    self.counters.pfc_pauses_rcvd += 1;
                    self.egress.pause(class, now + pause_time(quanta, rate, delay));
                }
                None => {}
            }
        }
    }
}
