//! How faithful a daemon's run was.

use std::collections::BTreeMap;

use super::protocol::{CaptureReport, LatenessReport, Report};
use super::run::Identity;
use crate::io::{IoReport, Lateness};
use crate::record::Fidelity;
use crate::time::Instant;

/// The report of a daemon from what its event loop has `counted`.
// spec: TIME-4, TIME-6, REL-7, REL-8
pub(super) fn report(
    identity: &Identity,
    now: Instant,
    counted: &IoReport,
    faults: &BTreeMap<String, u64>,
    capture: Option<CaptureReport>,
) -> Report {
    let kernel_drops = counted.ports.iter().map(|port| port.kernel_drops).sum();
    Report {
        node: identity.node.clone(),
        tdf: identity.clock.tdf(),
        epoch_ns: identity.epoch_ns,
        now_ps: now.as_ps(),
        life: identity.life,
        lateness: lateness_report(&counted.lateness),
        packet_time_ps: identity.packet_time.map(|time| time.as_ps()),
        host_errors: host_errors(counted),
        kernel_drops,
        faults: faults.clone(),
        fidelity: fidelity(identity, &counted.lateness, kernel_drops),
        capture,
    }
}

fn lateness_report(lateness: &Lateness) -> LatenessReport {
    LatenessReport {
        count: lateness.count(),
        p50_ps: lateness.p50().as_ps(),
        p99_ps: lateness.p99().as_ps(),
        max_ps: lateness.max().as_ps(),
    }
}

/// Errors of all ports by name.
fn host_errors(counted: &IoReport) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for (name, count) in counted.ports.iter().flat_map(|port| port.host_errors.iter()) {
        *errors.entry(name.to_owned()).or_default() += count;
    }
    errors
}

// spec: TIME-6, TIME-7
fn fidelity(identity: &Identity, lateness: &Lateness, kernel_drops: u64) -> String {
    let late = [lateness.p50(), lateness.p99(), lateness.max()];
    let tdf = identity.clock.tdf();
    Fidelity::judge(late, identity.packet_time, kernel_drops, tdf).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{HostErrors, PortReport, WallClock};
    use crate::time::Duration;

    fn identity(packet_time: Option<Duration>) -> Identity {
        Identity {
            node: "s".to_owned(),
            interfaces: Vec::new(),
            clock: WallClock::new(3, 1_000).expect("not zero"),
            epoch_ns: 3,
            life: 4,
            packet_time,
        }
    }

    fn port(kernel_drops: u64, errors: &[i32]) -> PortReport {
        let mut host_errors = HostErrors::default();
        for code in errors {
            host_errors.record(&std::io::Error::from_raw_os_error(*code));
        }
        let interface = String::new();
        let odd = crate::io::OddFrames::default();
        PortReport { interface, sent: 0, received: 0, host_errors, kernel_drops, odd }
    }

    fn counted(late_ps: u64, ports: Vec<PortReport>) -> IoReport {
        let mut lateness = Lateness::default();
        lateness.record(Instant::ZERO, Instant::from_ps(late_ps));
        IoReport { lateness, ports }
    }

    // spec: REL-7, REL-8, TIME-6
    #[test]
    fn what_all_ports_lost_is_added_up() {
        let packet_time = Some(Duration::from_ps(83_480));
        let ports = vec![port(1, &[libc::ENOBUFS, libc::EPERM]), port(2, &[libc::ENOBUFS])];
        let report = report(
            &identity(packet_time),
            Instant::ZERO,
            &counted(9, ports),
            &BTreeMap::new(),
            None,
        );
        assert_eq!((report.kernel_drops, report.lateness.count, report.lateness.p99_ps), (3, 1, 9));
        let errors: Vec<_> = report.host_errors.into_iter().collect();
        assert_eq!(errors, [("ENOBUFS".to_owned(), 2), ("EPERM".to_owned(), 1)]);
        // Never good with a kernel drop.
        assert!(report.fidelity.starts_with("fair ("), "{}", report.fidelity);
        assert_eq!((report.tdf, report.epoch_ns, report.life), (1_000, 3, 4));
    }

    // spec: TIME-6, TIME-7
    #[test]
    fn native_is_not_judged() {
        let counted = counted(1_500_000, vec![port(0, &[])]);
        let report = report(&identity(None), Instant::ZERO, &counted, &BTreeMap::new(), None);
        assert!(report.fidelity.starts_with("not judged (p50 1.50"), "{}", report.fidelity);
        assert_eq!(report.packet_time_ps, None);
    }
}
