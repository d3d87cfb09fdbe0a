//! A summary as text.

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeMap;

use super::{Agreement, FlowSummary, Summary};

/// The table's columns; names stand left, numbers right.
const COLUMNS: [&str; 8] =
    ["flow", "bytes", "messages", "completion", "ideal", "ratio", "goodput", "sent again"];

// spec: RC-9, TIME-4, TIME-6
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_title(f)?;
        write_table(f, &self.flows)?;
        write_failures(f, &self.flows)?;
        write_finishes(f, &self.flows)?;
        if let Some(ratio) = self.worst_ratio_to_ideal {
            writeln!(f, "worst ratio to ideal: {ratio:.3}")?;
        }
        self.write_retransmissions(f)?;
        writeln!(f, "timeouts: {}", self.network.timeouts)?;
        writeln!(f, "trims: {}", self.network.trims)?;
        writeln!(f, "marks: {}", self.network.marks)?;
        write_counts(f, "drops", &self.network.drops)?;
        write_counts(f, "faults", &self.network.faults)?;
        if !self.network.frames_on_wire.is_empty() {
            write_counts(f, "frames on wire", &self.network.frames_on_wire)?;
        }
        self.execs.iter().try_for_each(|exec| writeln!(f, "{exec}"))?;
        writeln!(f, "fidelity: {}", self.fidelity)?;
        let equal = match self.sha256 {
            Agreement::Equal => "equal",
            Agreement::Different => "DIFFERENT",
        };
        write!(f, "sha-256: {equal}")?;
        self.captures.iter().try_for_each(|path| write!(f, "\ncapture: {}", path.display()))
    }
}

impl Summary {
    /// `two-hosts: profile reference, seed 1, wall clock, TDF 1000`.
    fn write_title(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = &self.run;
        let (name, profile, clock) = (&run.name, run.profile.name(), run.clock.name());
        write!(f, "{name}: profile {profile}, seed {}, {clock} clock", run.seed)?;
        match run.tdf {
            Some(tdf) => writeln!(f, ", TDF {tdf}"),
            None => writeln!(f),
        }
    }

    // spec: DONE-2
    fn write_retransmissions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.retransmissions;
        let causes = &all.by_cause;
        writeln!(
            f,
            "retransmissions: {} (timeout {}, nack {}, sack gap {}); completion re-requests: {}",
            all.total, causes.timeout, causes.nack, causes.sack_gap, causes.rerequest
        )
    }
}

/// `drops: bad_icrc 2, unknown_qp 1`, or `drops: none`.
fn write_counts(
    f: &mut fmt::Formatter<'_>,
    label: &str,
    counts: &BTreeMap<String, u64>,
) -> fmt::Result {
    let parts: Vec<_> = counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
    let all = if parts.is_empty() { "none".to_owned() } else { parts.join(", ") };
    writeln!(f, "{label}: {all}")
}

/// `b -> a failed: QP 10.0.0.2:7 is in the error state`.
fn write_failures(f: &mut fmt::Formatter<'_>, flows: &[FlowSummary]) -> fmt::Result {
    for flow in flows {
        if let Some(failure) = &flow.failure {
            writeln!(f, "{} -> {} failed: {failure}", flow.from, flow.to)?;
        }
    }
    Ok(())
}

/// `finished: first a -> b at 160.500 us, last c -> b at 200.000 us`, where there
/// is more than one flow.
fn write_finishes(f: &mut fmt::Formatter<'_>, flows: &[FlowSummary]) -> fmt::Result {
    let mut finishes: Vec<_> = flows.iter().filter(|flow| flow.finished_ns.is_some()).collect();
    finishes.sort_by(|a, b| a.finished_ns.partial_cmp(&b.finished_ns).unwrap_or(Ordering::Equal));
    let text = |flow: &FlowSummary| {
        format!("{} -> {} at {}", flow.from, flow.to, time(flow.finished_ns.unwrap_or_default()))
    };
    match &finishes[..] {
        [first, .., last] => writeln!(f, "finished: first {}, last {}", text(first), text(last)),
        _ => Ok(()),
    }
}

fn time(ns: f64) -> String {
    format!("{:.3} us", ns / 1e3)
}

fn write_table(f: &mut fmt::Formatter<'_>, flows: &[FlowSummary]) -> fmt::Result {
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(flows.iter().map(cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..COLUMNS.len()).filter_map(width).collect();
    for row in &rows {
        write!(f, "{:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(f, "  {cell:>width$}")?;
        }
        writeln!(f)?;
    }
    Ok(())
}

fn cells(flow: &FlowSummary) -> [String; COLUMNS.len()] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        format!("{} -> {}", flow.from, flow.to),
        flow.bytes.to_string(),
        format!("{}/{}", flow.completed, flow.messages),
        flow.completion_ns.map_or_else(|| "incomplete".to_owned(), time),
        or_dash(flow.ideal_ns.map(time)),
        or_dash(flow.ratio_to_ideal.map(|ratio| format!("{ratio:.3}"))),
        or_dash(flow.goodput_gbps.map(|gbps| format!("{gbps:.3} Gbps"))),
        flow.retransmissions.total.to_string(),
    ]
}
