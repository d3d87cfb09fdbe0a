//! Answers of a daemon as text for people.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::cli::table::Table;
use mrc_lab::daemon::protocol::{EventReport, LinkFaults, QpReport, Report, Response};
use mrc_lab::nic::QpSide;
use mrc_lab::time::{Duration, Instant};

/// An answer as lines of text.
pub fn response(response: &Response) -> String {
    match response {
        Response::Region(region) => format!(
            "va      {:#x}\nrkey    {:#x}\nlength  {}\n",
            region.va, region.rkey, region.length
        ),
        Response::Deregistered {} => "forgotten\n".to_owned(),
        Response::Posted(posted) => {
            format!("posted on QP {} at {}\n", posted.qpn, instant(posted.at_ps))
        }
        Response::Qps { qps } if qps.is_empty() => "no QPs\n".to_owned(),
        Response::Qps { qps } => qp_table(qps),
        Response::NicCounters { counters, pools, drops } => {
            format!("{}{}{}", numbers(counters), columns(&POOL, pools), drop_lines(drops))
        }
        Response::SwitchCounters { ports, drops } => {
            format!("{}{}{}", columns(&PORT, ports), drop_lines(drops), class_drops(ports))
        }
        Response::Closed { qp } => qp_table(std::slice::from_ref(qp)),
        Response::Digest { sha256 } => format!("{sha256}\n"),
        Response::Saved { bytes } => format!("{bytes} bytes written\n"),
        Response::Subscribed { forgotten: 0 } => String::new(),
        Response::Subscribed { forgotten } => {
            format!("({forgotten} earlier events are no longer kept)\n")
        }
        Response::FaultAdded { id } => format!("added fault {id}\n"),
        Response::Faults { node, links } => fault_table(node, links),
        Response::FaultsCleared { count } => format!("{count} faults cleared\n"),
        Response::Report(report) => report_lines(report),
        Response::Stopping {} => "stopping\n".to_owned(),
    }
}

/// The links of `node`, each with its state and its faults.
// spec: SW-20
fn fault_table(node: &str, links: &[LinkFaults]) -> String {
    let mut table = Table::to_the_left();
    table.row(["link", "state", "fault", "seen", "acted", "rule"].map(str::to_owned).to_vec());
    for link in links {
        let state = if link.up { "up" } else { "DOWN" };
        let name = format!("{node} -> {}", link.to);
        if link.faults.is_empty() {
            table.row(vec![name, state.to_owned(), "none".to_owned()]);
            continue;
        }
        for fault in &link.faults {
            let numbers = [fault.id, fault.seen, fault.acted].map(|number| number.to_string());
            let mut row = vec![name.clone(), state.to_owned()];
            row.extend(numbers.into_iter().chain([fault.rule.clone()]));
            table.row(row);
        }
    }
    table.text()
}

/// An event as a line of text.
pub fn event(event: &EventReport) -> String {
    let message = match (event.wqe_id, event.wqe_bytes) {
        (Some(id), Some(bytes)) => format!("  message {id}, {bytes} bytes"),
        (Some(id), None) => format!("  message {id}"),
        _ => String::new(),
    };
    let (at, kind) = (instant(event.at_ps), event.kind.name());
    format!("{at:>16}  {kind:13}  {} -> {}{message}\n", event.local, event.remote)
}

fn instant(ps: u64) -> String {
    format!("{} ns", Instant::from_ps(ps))
}

fn duration(ps: u64) -> String {
    Duration::from_ps(ps).to_string()
}

fn qp_table(qps: &[QpReport]) -> String {
    let mut table = Table::new([
        "local",
        "remote",
        "side",
        "cumulative",
        "messages",
        "beyond",
        "timeout",
        "nack",
        "sack_gap",
        "rerequest",
        "rtt min",
        "rtt mean",
        "rtt last",
        "window",
        "in flight",
        "error",
    ]);
    for qp in qps {
        let side = match qp.side {
            QpSide::Requester => "sends",
            QpSide::Responder => "receives",
        };
        let again = &qp.retransmissions;
        let [min, mean, last] = match &qp.rtt {
            Some(rtt) => [rtt.min_ps, rtt.mean_ps, rtt.last_ps].map(duration),
            None => ["-", "-", "-"].map(str::to_owned),
        };
        let [window, in_flight] = match &qp.window {
            Some(window) => [window.bytes, window.in_flight_bytes].map(|bytes| bytes.to_string()),
            None => ["-", "-"].map(str::to_owned),
        };
        let cells: [&dyn Display; 16] = [
            &qp.local,
            &qp.remote,
            &side,
            &qp.cumulative_psn,
            &qp.messages,
            &qp.beyond_cumulative,
            &again.timeout,
            &again.nack,
            &again.sack_gap,
            &again.rerequest,
            &min,
            &mean,
            &last,
            &window,
            &in_flight,
            &qp.error.as_deref().unwrap_or("-"),
        ];
        table.row(cells.iter().map(ToString::to_string).collect());
    }
    table.text()
}

/// Names and numbers, those that are not 0.
fn numbers(counters: &Map<String, Value>) -> String {
    let mut table = Table::new(["counter", "value"]);
    for (name, value) in counters.iter().filter(|(_, value)| value.as_u64() != Some(0)) {
        table.row(vec![name.clone(), value.to_string()]);
    }
    table.text()
}

fn drop_lines(drops: &BTreeMap<String, u64>) -> String {
    drops.iter().map(|(cause, count)| format!("dropped, {cause}: {count}\n")).collect()
}

/// Where a switch's ports dropped packets for want of room:
/// `mrc0, TC0, queue_full: 3`.
// spec: SW-19
fn class_drops(ports: &[Map<String, Value>]) -> String {
    let mut lines = String::new();
    for port in ports {
        let interface = port.get("interface").and_then(Value::as_str).unwrap_or("?");
        let classes = port.get("classes").and_then(Value::as_array);
        for (class, counters) in classes.into_iter().flatten().enumerate() {
            let drops = counters.get("drops").and_then(Value::as_object);
            for (cause, count) in drops.into_iter().flatten() {
                lines += &format!("{interface}, TC{class}, {cause}: {count}\n");
            }
        }
    }
    lines
}

/// What is shown of a switch's port.
const PORT: [&str; 8] = [
    "interface",
    "frames_in",
    "bytes_in",
    "frames_out",
    "bytes_out",
    "trim",
    "trim_sent",
    "trim_drop",
];

/// What is shown of a pool of a NIC's buffers.
const POOL: [&str; 7] =
    ["pool", "size_bytes", "used_bytes", "peak_bytes", "packets_in", "packets_out", "drops"];

/// A line for each of `things`, with those of its fields that `names` names.
fn columns<const N: usize>(names: &[&'static str; N], things: &[Map<String, Value>]) -> String {
    let mut table = Table::new(*names);
    for thing in things {
        let cell = |name: &str| match thing.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => "-".to_owned(),
        };
        table.row(names.iter().map(|name| cell(name)).collect());
    }
    table.text()
}

fn report_lines(report: &Report) -> String {
    let lateness = &report.lateness;
    let mut lines = vec![
        format!("node          {}", report.node),
        format!("protocol time {}", instant(report.now_ps)),
        format!("tdf           {}", report.tdf),
        format!("life          {}", report.life),
        format!("frames sent   {}", lateness.count),
        format!(
            "lateness      p50 {}, p99 {}, max {}",
            duration(lateness.p50_ps),
            duration(lateness.p99_ps),
            duration(lateness.max_ps)
        ),
    ];
    if let Some(ps) = report.packet_time_ps {
        lines.push(format!("packet time   {}", duration(ps)));
    }
    lines.push(format!("fidelity      {}", report.fidelity));
    lines.push(format!("kernel drops  {}", report.kernel_drops));
    for (name, count) in &report.host_errors {
        lines.push(format!("host errors   {name}: {count}"));
    }
    if let Some(capture) = &report.capture {
        let (packets, dropped) = (capture.packets, capture.dropped);
        lines.push(format!("capture       {packets} frames, {dropped} left out"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: SW-19
    #[test]
    fn a_switchs_drops_are_shown_by_port_class_and_cause() {
        let port = serde_json::json!({
            "interface": "s0",
            "classes": [{"drops": {"pool_full": 1, "queue_full": 3}}, {"drops": {}}, {"drops": {"queue_full": 2}}],
        });
        let Value::Object(port) = port else { panic!("an object") };
        let drops = [("queue_full".to_owned(), 6)].into();
        let text = response(&Response::SwitchCounters { ports: vec![port], drops });
        let lines: Vec<_> = text.lines().skip(2).collect();
        let classes = ["s0, TC0, pool_full: 1", "s0, TC0, queue_full: 3", "s0, TC2, queue_full: 2"];
        assert_eq!(lines[0], "dropped, queue_full: 6");
        assert_eq!(lines[1..], classes);
    }
}
