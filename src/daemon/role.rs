//! What a daemon's node is: a NIC or a switch.

use super::protocol::{Request, Response};
use crate::io::EventLoop;
use crate::node::Node;
use crate::rng::Rng;
use crate::scenario::NodeKind;

/// A kind of node that a daemon can be.
pub trait Role: Node + Sized {
    /// Its subcommand of `mrc`, and its name in messages.
    const COMMAND: &'static str;

    /// The most frames that it sends before it receives, and the reverse.
    const FRAMES_A_TURN: usize;

    /// The node of a scenario's plan; `None` when the plan is for another kind.
    /// `rng` is the node's own stream.
    fn build(kind: &NodeKind, rng: &mut Rng) -> Option<Self>;

    /// Answers what depends on the kind of node. `interfaces` are the names of
    /// its ports' interfaces, in port order.
    ///
    /// # Errors
    /// What the client is told.
    fn answer(
        event_loop: &mut EventLoop<Self>,
        interfaces: &[String],
        request: Request,
    ) -> Result<Response, String>;

    /// Takes from the node the events that its trace has told already.
    fn forget_events(event_loop: &mut EventLoop<Self>);
}

/// The refusal of a request that is for another kind of node.
pub(super) fn not_here<R: Role>() -> String {
    format!("a {} does not know this request", R::COMMAND)
}
