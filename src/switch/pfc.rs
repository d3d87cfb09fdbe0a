//! PFC: telling the sender at a port to stop and to go on, and being told.

use core::cmp::Reverse;

use super::port::pause_time;
use super::{Due, Switch, TrafficClass};
use crate::node::{Ctx, Frame, PortId};
use crate::time::Instant;
use crate::wire::pfc::Pfc;

/// How long a sender is asked to pause, in quanta of 512 bit times.
const QUANTA: u16 = u16::MAX;

impl Switch {
    /// Tells the sender at `port` to pause the lossless classes of `pool`, again
    /// after half the time that the pause lasts.
    // spec: SW-7
    pub(super) fn pause(&mut self, ctx: &mut Ctx<'_>, now: Instant, port: PortId, pool: usize) {
        let rate = self.port(port).config.rate;
        let repeat = now + pause_time(QUANTA / 2, rate);
        self.buffer.paused(port, pool, repeat);
        self.deadlines.push(Reverse((repeat, Due::Repeat(port, pool))));
        self.signal(ctx, now, port, pool, QUANTA);
    }

    /// Tells the sender again, if it still is to pause.
    // spec: SW-7
    pub(super) fn repeat_pause(
        &mut self,
        ctx: &mut Ctx<'_>,
        now: Instant,
        port: PortId,
        pool: usize,
    ) {
        if self.buffer.repeats(port, pool, now) {
            self.pause(ctx, now, port, pool);
        }
    }

    /// Lets the sender at `port` go on.
    // spec: SW-8
    pub(super) fn resume(&mut self, ctx: &mut Ctx<'_>, now: Instant, port: PortId, pool: usize) {
        self.signal(ctx, now, port, pool, 0);
    }

    fn signal(&mut self, ctx: &mut Ctx<'_>, now: Instant, id: PortId, pool: usize, quanta: u16) {
        let Self { ports, buffer, .. } = self;
        let concerned =
            |class: &TrafficClass| buffer.is_lossless(*class) && buffer.pool(*class) == pool;
        for class in TrafficClass::all().filter(concerned) {
            ports[usize::from(id.0)].signal(class, quanta);
        }
        self.send_soon(ctx, now, id);
    }

    /// The peer at `port` pauses classes of this switch or lets them go on.
    // spec: SW-7, SW-10
    pub(super) fn receive_pfc(&mut self, ctx: &mut Ctx<'_>, id: PortId, frame: Frame) {
        let pfc = match Pfc::parse(&frame) {
            Ok(pfc) => pfc,
            Err(error) => return self.discard(ctx, id, error.counter(), frame),
        };
        ctx.frames.give(frame);
        let port = self.port(id);
        for (class, quanta) in TrafficClass::all().zip(pfc.quanta) {
            let counters = &mut port.counters.classes[class.index()];
            match quanta {
                Some(0) => {
                    counters.resumes_rcvd += 1;
                    port.pause(class, ctx.now);
                }
                Some(quanta) => {
                    counters.pauses_rcvd += 1;
                    let time = pause_time(quanta, port.config.rate) + port.config.delay;
                    port.pause(class, ctx.now + time);
                }
                None => {}
            }
        }
        if port.has_work() {
            self.send_soon(ctx, ctx.now, id);
        }
    }
}
