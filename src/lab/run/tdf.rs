//! How much protocol time is slowed when nobody says.

use crate::config::Profile;
use crate::scenario::{Scenario, Topology};
use crate::trace::NodeId;
use crate::wire::packet::DATA_OVERHEAD;

/// Data packets a second of real time that a core is trusted with. Two hosts and
/// a switch on two cores, captures on, were measured to be late by 2.5 packet
/// times (99th percentile) at 12,000 a second, by 1.1 at 6,000, and by 0.4, which
/// is good, at 4,000.
const PACKETS_PER_CORE: u64 = 2_000;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, parse};

    /// The factor for `senders` NICs that all send to one more, over a switch.
    fn incast(senders: usize, profile: Profile, cores: usize) -> u32 {
        let mut text = "[[switch]]\nname = \"s\"\n".to_owned();
        for nic in 0..=senders {
            text += &format!("[[nic]]\nname = \"n{nic}\"\n[[link]]\nends = [\"n{nic}\", \"s\"]\n");
            if nic > 0 {
                text += &format!("[[write]]\nfrom = \"n{nic}\"\nto = \"n0\"\nbytes = \"1 MB\"\n");
            }
        }
        let overrides = Overrides { profile: Some(profile), seed: None };
        let scenario = parse(&text, "incast.toml", &overrides).expect("a good scenario");
        auto_tdf(&scenario, &Topology::new(&scenario), cores)
    }

    // spec: TIME-3
    #[test]
    fn the_more_packets_are_planned_the_slower_protocol_time_runs() {
        // A NIC at 400 Gbps plans 11,978,917 packets a second.
        assert_eq!(incast(1, Profile::Reference, 12), 1_000);
        assert_eq!(incast(1, Profile::Reference, 2), 3_000);
        assert_eq!(incast(2, Profile::Reference, 2), 6_000);
        assert_eq!(incast(15, Profile::Tuned, 2), 45_000);
    }

    // spec: TIME-3
    #[test]
    fn native_runs_at_the_hosts_own_speed() {
        assert_eq!(incast(15, Profile::Native, 2), 1);
    }
}
