//! What a run leaves behind: event rows, a summary, and what is needed to
//! repeat it.

mod digest;
mod events;
mod fidelity;
mod manifest;
mod summary;
mod wall_clock;

use serde::{Serialize, Serializer};

use crate::config::Profile;
use crate::scenario::Scenario;

pub use digest::{FlowDigests, sha256_hex};
pub use events::{EventsCsv, EventsSink, MRC_EVENTS};
pub use fidelity::{Fidelity, LatenessReport, Verdict};
pub use manifest::{RunManifest, topology_sha256};
pub use summary::{
    Agreement, ExecEnd, ExecSummary, FlowSummary, NetworkCounts, Retransmissions, Summary,
};
pub use wall_clock::UnixTime;

/// Which clock a run had.
// spec: TIME-5
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// A discrete-event loop over links in memory.
    Exact,
    /// The same, and every frame crosses a real wire.
    ExactWires,
    /// The host's clock.
    Wall,
}

impl Clock {
    /// The name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ExactWires => "exact-wires",
            Self::Wall => "wall",
        }
    }
}

/// Which run an output belongs to.
// spec: RC-1, TIME-4
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RunId {
    /// The scenario's name.
    pub name: String,
    /// The profile that the attributes started from.
    #[serde(serialize_with = "by_name")]
    pub profile: Profile,
    /// The seed of every random stream.
    pub seed: u64,
    /// The clock.
    pub clock: Clock,
    /// How many times slower than protocol time the wall clock runs; `None` in
    /// the exact clocks, which are not bound to it.
    pub tdf: Option<u32>,
}

impl RunId {
    /// A run of `scenario`.
    pub fn new(scenario: &Scenario, clock: Clock, tdf: Option<u32>) -> Self {
        let Scenario { name, profile, seed, .. } = scenario;
        Self { name: name.clone(), profile: *profile, seed: *seed, clock, tdf }
    }
}

fn by_name<S: Serializer>(profile: &Profile, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(profile.name())
}

/// The name of the file in the run's folder that holds the rows of `record`,
/// such as [`MRC_EVENTS`].
// spec: RC-1
pub fn file_name(run: &str, record: &str) -> String {
    format!("{run}-{record}-0.csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: RC-1, RC-3
    #[test]
    fn files_are_named_after_run_and_record() {
        assert_eq!(file_name("two-hosts", MRC_EVENTS), "two-hosts-mrc-events-0.csv");
    }

    // spec: TIME-4, TIME-5
    #[test]
    fn a_run_is_named_the_same_in_every_output() {
        for clock in [Clock::Exact, Clock::ExactWires, Clock::Wall] {
            let run = RunId {
                name: "x".into(),
                profile: Profile::Tuned,
                seed: 7,
                clock,
                tdf: Some(1000),
            };
            let json = serde_json::to_string(&run).unwrap();
            let clock = clock.name();
            let expected = format!(
                r#"{{"name":"x","profile":"tuned","seed":7,"clock":"{clock}","tdf":1000}}"#
            );
            assert_eq!(json, expected);
        }
    }
}
