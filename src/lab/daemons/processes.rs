//! Which process runs which of a lab's nodes.

use core::fmt;
use core::str::FromStr;

use crate::scenario::{NodeKind, Topology};
use crate::trace::NodeId;

/// How many processes run the nodes of a lab in the wall clock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Processes {
    /// One for each node while there are cores enough, otherwise one for each
    /// core.
    #[default]
    Auto,
    /// One for each node.
    Each,
    /// So many, or one for each node when those are fewer.
    Count(usize),
}

impl FromStr for Processes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "each" => Ok(Self::Each),
            number => {
                number.parse().ok().filter(|count| *count > 0).map(Self::Count).ok_or_else(|| {
                    "`auto`, `each` or a whole number from 1 on is allowed".to_owned()
                })
            }
        }
    }
}

impl fmt::Display for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Each => f.write_str("each"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// The nodes of each process on a machine with `cores` cores, every node once.
///
/// Switches and NICs do not share a process where there are two or more: a
/// switch has most of the work, and what it sends should be received meanwhile.
// spec: TIME-5
pub fn share_out(topology: &Topology, processes: Processes, cores: usize) -> Vec<Vec<NodeId>> {
    let nodes = (0..topology.nodes.len() as u32).map(NodeId);
    let wanted = match processes {
        Processes::Auto => cores,
        Processes::Each => topology.nodes.len(),
        Processes::Count(count) => count,
    };
    if wanted >= topology.nodes.len() {
        return nodes.map(|node| vec![node]).collect();
    }
    if wanted <= 1 {
        return vec![nodes.collect()];
    }
    let is_switch =
        |node: &NodeId| matches!(topology.nodes[node.0 as usize].kind, NodeKind::Switch(_));
    let (switches, nics): (Vec<_>, Vec<_>) = nodes.partition(is_switch);
    let for_switches = wanted_for_switches(wanted, switches.len(), nics.len());
    let mut shares = in_blocks(&nics, wanted - for_switches);
    shares.extend(in_blocks(&switches, for_switches));
    shares
}

/// How many of `wanted` processes are for switches: half of them, but no more
/// than there are, and no fewer than leave each NIC one process at most.
fn wanted_for_switches(wanted: usize, switches: usize, nics: usize) -> usize {
    (wanted / 2).min(switches).max(wanted.saturating_sub(nics))
}

/// `nodes` in `blocks` runs of nearly the same length, none of them empty.
fn in_blocks(nodes: &[NodeId], blocks: usize) -> Vec<Vec<NodeId>> {
    let start = |block: usize| block * nodes.len() / blocks;
    (0..blocks).map(|block| nodes[start(block)..start(block + 1)].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, parse};

    fn shares(text: &str, processes: Processes, cores: usize) -> Vec<Vec<u32>> {
        let scenario = parse(text, "x.toml", &Overrides::default()).expect("a good scenario");
        let shares = share_out(&Topology::new(&scenario), processes, cores);
        shares.into_iter().map(|nodes| nodes.into_iter().map(|node| node.0).collect()).collect()
    }

    const TWO_HOSTS: &str = "[topology]\nkind = \"two-hosts\"\n";
    /// NICs 0 to 7, then leaves and spines: 8 to 11.
    const FABRIC: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\n\
                          hosts_per_leaf = 4\n";

    // spec: TIME-5
    #[test]
    fn nodes_share_processes_where_cores_are_fewer() {
        let each: Vec<_> = (0..3).map(|node| vec![node]).collect();
        assert_eq!(shares(TWO_HOSTS, Processes::Auto, 3), each);
        assert_eq!(shares(TWO_HOSTS, Processes::Each, 1), each);
        assert_eq!(shares(TWO_HOSTS, Processes::Count(9), 1), each);
        assert_eq!(shares(TWO_HOSTS, Processes::Auto, 2), [vec![0, 1], vec![2]]);
        assert_eq!(shares(TWO_HOSTS, Processes::Auto, 1), [vec![0, 1, 2]]);
    }

    // spec: TIME-5
    #[test]
    fn switches_and_nics_are_apart_and_nobody_is_forgotten() {
        let quarters = shares(FABRIC, Processes::Auto, 4);
        assert_eq!(quarters, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], vec![8, 9], vec![10, 11]]);
        for processes in 1..=13 {
            let shares = shares(FABRIC, Processes::Count(processes), 2);
            assert_eq!(shares.len(), processes.min(12));
            assert!(shares.iter().all(|share| !share.is_empty()), "{shares:?}");
            let mut nodes = shares.concat();
            nodes.sort_unstable();
            assert_eq!(nodes, (0..12).collect::<Vec<_>>());
        }
    }

    #[test]
    fn counts_are_read_and_nonsense_is_refused() {
        for good in ["auto", "each", "4"] {
            assert_eq!(good.parse::<Processes>().expect("good").to_string(), good);
        }
        for bad in ["0", "-1", "two", ""] {
            assert!(bad.parse::<Processes>().expect_err("bad").contains("from 1 on"));
        }
    }
}
