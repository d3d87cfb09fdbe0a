//! How much protocol time is slowed when nobody says.

use crate::config::Profile;
use crate::scenario::{Scenario, Topology};
use crate::trace::NodeId;
use crate::wire::packet::DATA_OVERHEAD;

/// Data packets a second of real time that a core is trusted with: it takes
/// each in at one or two nodes, with its acknowledgements, and still meets its
/// deadlines. A third of what two cores were measured to pass through a switch.
const PACKETS_PER_CORE: u64 = 33_000;

/// The time dilation factor for `scenario` on a machine with `cores` cores:
/// 1000, or the next thousand at which the packets that its senders plan are
/// few enough; 1 in the native profile.
// spec: TIME-3
pub fn auto_tdf(scenario: &Scenario, topology: &Topology, cores: usize) -> u32 {
    if scenario.profile == Profile::Native {
        return 1;
    }
    let planned: u64 = (0..scenario.nics.len())
        .filter(|nic| scenario.flows.iter().any(|flow| flow.from == *nic))
        .map(|nic| packets_per_second(scenario, topology, nic))
        .sum();
    let trusted = PACKETS_PER_CORE * cores.max(1) as u64;
    let thousands = planned.div_ceil(trusted * 1_000).max(1);
    u32::try_from(thousands * 1_000).unwrap_or(u32::MAX)
}

/// Full packets a second of protocol time that a NIC's link carries.
fn packets_per_second(scenario: &Scenario, topology: &Topology, nic: usize) -> u64 {
    let node = NodeId(nic as u32);
    let link = topology.links.iter().find(|link| link.ends.iter().any(|end| end.node == node));
    let frame = u64::from(scenario.nics[nic].attributes.mss) + DATA_OVERHEAD as u64;
    link.map_or(0, |link| link.rate.as_bps() / (8 * frame))
}
