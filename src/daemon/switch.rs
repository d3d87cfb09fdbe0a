//! What a switch's daemon answers.

use serde_json::Value;

use super::nic::{causes, fields};
use super::protocol::{Request, Response};
use super::role::{Role, not_here};
use crate::io::EventLoop;
use crate::io::event_loop::FRAMES_A_TURN;
use crate::node::PortId;
use crate::rng::Rng;
use crate::scenario::NodeKind;
use crate::switch::Switch;

impl Role for Switch {
    const COMMAND: &'static str = "switch";
    /// What it receives is what it sends: longer turns cost less a frame, and
    /// nothing waits that would not wait behind it anyway.
    const FRAMES_A_TURN: usize = 2 * FRAMES_A_TURN;

    fn build(kind: &NodeKind, _: &mut Rng) -> Option<Self> {
        match kind {
            NodeKind::Switch(config) => Some(Self::new((**config).clone())),
            NodeKind::Nic(_) => None,
        }
    }

    fn answer(
        event_loop: &mut EventLoop<Self>,
        interfaces: &[String],
        request: Request,
    ) -> Result<Response, String> {
        let Request::Counters {} = request else { return Err(not_here::<Self>()) };
        let switch = event_loop.node();
        let ports = (0..).zip(interfaces).map(|(number, interface)| {
            let mut port = fields(switch.counters(PortId(number)));
            let pools = switch.pool_counters(PortId(number)).map(fields).map(Value::Object);
            port.insert("pools".to_owned(), Value::Array(pools.collect()));
            port.insert("interface".to_owned(), Value::from(interface.as_str()));
            port
        });
        Ok(Response::SwitchCounters { ports: ports.collect(), drops: causes(switch.drops()) })
    }

    fn forget_events(_: &mut EventLoop<Self>) {}
}
