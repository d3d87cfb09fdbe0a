//! The NIC in a loop of your own: two of them, joined by a queue of frames.
//!
//! A [`Nic`] is a plain struct. It is told the time and what arrived, and says
//! what leaves and when it wants to be called again; sockets, clocks and threads
//! are yours. Here the wire is a `VecDeque`, and time is whatever comes next.
//!
//! ```sh
//! cargo run --example embed
//! ```

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use mrc_lab::config::Profile;
use mrc_lab::nic::{Access, Nic, NicConfig, QpChoice, WorkRequest};
use mrc_lab::node::{Ctx, FramePool, Node, PortId};
use mrc_lab::rng::Rng;
use mrc_lab::time::Instant;
use mrc_lab::trace::{NoTrace, NodeId, QpEventKind};
use mrc_lab::wire::mac::{MacAddr, MacPair};

/// A NIC with what its driver keeps for it.
struct Host(Nic, Rng, FramePool);

impl Host {
    fn new(me: u8, peer: u8) -> Self {
        let attributes = Profile::Reference.nic();
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let config = NicConfig {
            ip: Ipv4Addr::new(10, 0, 0, me),
            macs: MacPair { source: mac(me), destination: mac(peer) },
            link_rate: attributes.data_rate,
            attributes,
        };
        let mut rng = Rng::derive(1, &format!("nic {me}"), 0);
        Self(Nic::new(config, &mut rng), rng, FramePool::default())
    }

    /// Calls `f` with the NIC and the door to the outside that every call takes.
    fn at<R>(&mut self, now: Instant, f: impl FnOnce(&mut Nic, &mut Ctx<'_>) -> R) -> R {
        let Self(nic, rng, frames) = self;
        f(nic, &mut Ctx { now, node: NodeId(0), rng, frames, trace: &mut NoTrace })
    }
}

fn main() {
    let mut hosts = [Host::new(1, 2), Host::new(2, 1)];
    let mut now = Instant::ZERO;
    let message = b"sent over sockets of your own".to_vec();
    let target =
        hosts[1].at(now, |nic, ctx| nic.register_memory(ctx, vec![0; 64], Access::RemoteWrite));
    hosts[0].at(now, |nic, ctx| {
        let source = nic.register_memory(ctx, message.clone(), Access::Local);
        let work = WorkRequest {
            wqe_id: 1,
            peer: Ipv4Addr::new(10, 0, 0, 2),
            lkey: source.rkey,
            local_va: source.va,
            length: message.len() as u32,
            remote_va: target.va,
            rkey: target.rkey,
        };
        nic.post_write(ctx, QpChoice::New, work).expect("the request names what exists");
    });

    // The loop: hand over what arrives, run what is due, take what leaves.
    let mut wire = VecDeque::new();
    loop {
        for (n, host) in hosts.iter_mut().enumerate() {
            let delay = host.0.attributes().delay;
            while let Some(sent) = host.at(now, |nic, ctx| nic.poll_transmit(ctx)) {
                wire.push_back((now + delay, 1 - n, sent.frame));
            }
        }
        let arrival = wire.front().map(|(at, ..)| *at);
        let due = hosts.iter().filter_map(|host| host.0.poll_timeout());
        now = due.chain(arrival).min().expect("something is always to come until it is done");
        if let Some((_, to, frame)) = wire.pop_front_if(|(at, ..)| *at <= now) {
            hosts[to].at(now, |nic, ctx| nic.handle_frame(ctx, PortId(0), frame));
        }
        for host in hosts.iter_mut() {
            // Before its time it does nothing.
            host.at(now, |nic, ctx| nic.handle_timeout(ctx));
        }
        let mut events = std::iter::from_fn(|| hosts[0].0.poll_event());
        if events.any(|event| event.kind == QpEventKind::WqeComplete) {
            break;
        }
    }

    let arrived = hosts[1].0.memory(target.rkey).expect("it is registered");
    assert!(arrived.starts_with(&message));
    println!("{} bytes acknowledged after {now:?}", message.len());
}
