//! The lab's network during a run, and what the kernel counted on it.

use super::RunError;
use crate::lab::{InterfaceCounters, LabError, Network, Sandbox, network_plan};
use crate::record::NetworkCounts;
use crate::scenario::Topology;

/// A sandbox with the network of a topology in it, and the kernel's counters at
/// its beginning.
#[derive(Debug)]
pub struct LabNetwork {
    /// Where children are started.
    pub sandbox: Sandbox,
    /// The namespaces.
    pub network: Network,
    start: Vec<(String, InterfaceCounters)>,
}

impl LabNetwork {
    /// Enters a sandbox and builds the network.
    ///
    /// # Errors
    /// When the machine does not allow it.
    // spec: REL-10
    pub fn build(topology: &Topology) -> Result<Self, RunError> {
        let sandbox = Sandbox::enter()?;
        let network = Network::build(&sandbox, &network_plan(topology))?;
        let mut lab = Self { sandbox, network, start: Vec::new() };
        lab.start = lab.counters(topology)?;
        Ok(lab)
    }

    fn counters(&self, topology: &Topology) -> Result<Vec<(String, InterfaceCounters)>, LabError> {
        let mut counters = Vec::new();
        for (index, link) in topology.links.iter().enumerate() {
            let Some(interfaces) = self.network.interfaces(index) else { continue };
            for (end, interface) in link.ends.iter().zip(interfaces) {
                let node = &topology.nodes[end.node.0 as usize].name;
                let Some(namespace) = self.network.namespace(node) else { continue };
                let counted = namespace.interface_counters(interface)?;
                counters.push((format!("{node} {interface}"), counted));
            }
        }
        Ok(counters)
    }

    /// Adds what each interface sent since the beginning to `counts`, and gives
    /// how many frames the kernel dropped at any of them.
    ///
    /// # Errors
    /// When the kernel's counters cannot be read.
    // spec: TIME-6
    pub fn add_frames(
        &self,
        topology: &Topology,
        counts: &mut NetworkCounts,
    ) -> Result<u64, RunError> {
        let mut dropped = 0;
        for ((name, now), (_, start)) in self.counters(topology)?.into_iter().zip(&self.start) {
            dropped += now.tx_dropped - start.tx_dropped + now.rx_dropped - start.rx_dropped;
            counts.frames_on_wire.insert(name, now.tx_packets - start.tx_packets);
        }
        Ok(dropped)
    }
}
