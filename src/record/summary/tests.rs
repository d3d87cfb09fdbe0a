use serde_json::{Value, json};

use super::*;
use crate::record::{Clock, LatenessReport, Verdict};
use crate::scenario::{Overrides, parse};

fn scenario() -> Scenario {
    let text = "[[nic]]\nname = 'a'\n[[nic]]\nname = 'b'\n[[link]]\nends = ['a', 'b']\n\
                [[write]]\nfrom = 'a'\nto = 'b'\nbytes = 1000\nmessages = 2\n\
                [[write]]\nfrom = 'b'\nto = 'a'\nbytes = 0\n";
    parse(text, "pair.toml", &Overrides::default()).expect("the scenario is right")
}

/// Two messages of 1,000 bytes in 160.5 ns, ideally 100 ns.
fn complete() -> FlowResult {
    FlowResult {
        completed: 2,
        started: Some(Instant::from_ps(1_000)),
        finished: Some(Instant::from_ps(161_500)),
        retransmissions: RetransmitCounts { timeout: 1, nack: 20, sack_gap: 300, rerequest: 4 },
        failure: None,
    }
}

fn summary(results: [FlowResult; 2], arrived: &[u8]) -> Summary {
    let scenario = scenario();
    let ideals = [Some(Duration::from_ns(100)), None];
    let flows = scenario.flows.iter().zip(&results).zip(ideals).map(|((flow, result), ideal)| {
        FlowSummary::new(&scenario, flow, result, ideal, FlowDigests::of(b"abc", arrived))
    });
    let mut network = NetworkCounts { timeouts: 7, marks: 5, ..NetworkCounts::default() };
    for what in [
        Event::Trimmed { port: 0 },
        Event::Drop { cause: "queue_full" },
        Event::Drop { cause: "queue_full" },
        Event::Fault { what: "dropped by rule 1 (WRITE, 1 % loss): WRITE_ONLY PSN 7".into() },
    ] {
        network.record(Instant::ZERO, NodeId(0), &what);
    }
    let run = RunId::new(&scenario, Clock::Exact, None);
    Summary::new(run, flows.collect(), network, Fidelity::EXACT, vec!["run/a.pcapng".into()])
}

fn done() -> FlowResult {
    FlowResult { completed: 1, finished: Some(Instant::from_ps(300_250)), ..complete() }
}

// spec: RC-9, DONE-2, TIME-4
#[test]
fn text_ends_with_the_digests_and_the_captures() {
    let failed = FlowResult { failure: Some("no room".into()), ..FlowResult::default() };
    assert_eq!(
        summary([complete(), failed], b"abc").to_string(),
        "\
pair: profile reference, seed 1, exact clock
flow    bytes  messages  completion     ideal  ratio      goodput  sent again
a -> b   2000       2/2    0.161 us  0.100 us  1.605  99.688 Gbps         321
b -> a      0       0/1  incomplete         -      -            -           0
b -> a failed: no room
worst ratio to ideal: 1.605
retransmissions: 321 (timeout 1, nack 20, sack gap 300); completion re-requests: 4
timeouts: 7
trims: 1
marks: 5
drops: queue_full 2
faults: dropped by rule 1 (WRITE, 1 % loss) 1
fidelity: exact
sha-256: equal
capture: run/a.pcapng"
    );
    let different = summary([complete(), done()], b"abd").to_string();
    let finished = "\nfinished: first a -> b at 0.162 us, last b -> a at 0.300 us\nworst ratio";
    assert!(different.contains(finished), "{different}");
    assert!(different.ends_with("\nsha-256: DIFFERENT\ncapture: run/a.pcapng"), "{different}");
}

// spec: RC-9
#[test]
fn json_is_one_object_with_the_same() {
    let text = serde_json::to_string(&summary([complete(), done()], b"abc")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let digest = crate::record::sha256_hex(b"abc");
    assert_eq!(
        value["flows"][0],
        json!({
            "from": "a", "to": "b", "bytes": 2000, "message_bytes": 1000, "messages": 2,
            "completed": 2, "failure": null, "started_ns": 1.0, "finished_ns": 161.5,
            "completion_ns": 160.5, "ideal_ns": 100.0, "ratio_to_ideal": 1.605,
            "goodput_gbps": 16_000.0 / 160.5,
            "retransmissions":
                {"timeout": 1, "nack": 20, "sack_gap": 300, "rerequest": 4, "total": 321},
            "sha256": {"source": digest, "destination": digest, "equal": true},
        })
    );
    assert_eq!(value["flows"][1]["ideal_ns"], Value::Null);
    let mut rest = value.as_object().unwrap().clone();
    rest.remove("flows");
    assert_eq!(
        Value::from(rest),
        json!({
            "name": "pair", "profile": "reference", "seed": 1, "clock": "exact", "tdf": null,
            "first_finish_ns": 161.5, "last_finish_ns": 300.25,
            "worst_ratio_to_ideal": 1.605, "sha256": "equal",
            "retransmissions":
                {"timeout": 2, "nack": 40, "sack_gap": 600, "rerequest": 8, "total": 642},
            "fidelity":
                {"verdict": "exact", "lateness": null, "kernel_drops": 0, "try_tdf": null},
            "timeouts": 7, "trims": 1, "marks": 5, "drops": {"queue_full": 2},
            "faults": {"dropped by rule 1 (WRITE, 1 % loss)": 1},
            "frames_on_wire": {}, "captures": ["run/a.pcapng"],
        })
    );
}

#[test]
fn a_run_is_right_when_all_is_complete_and_equal() {
    assert!(summary([complete(), done()], b"abc").ok());
    assert!(!summary([complete(), done()], b"abd").ok());
    let unfinished = FlowResult { completed: 0, finished: None, ..complete() };
    assert!(!summary([complete(), unfinished], b"abc").ok());
    assert_eq!(summary([complete(), done()], b"abc").worst_ratio_to_ideal(), Some(1.605));
}

// spec: TIME-4, TIME-6
#[test]
fn a_run_in_the_wall_clock_states_its_dilation_and_fidelity() {
    let run = RunId::new(&scenario(), Clock::Wall, Some(2000));
    let lateness = LatenessReport { unit: "packet times", p50: 0.1, p99: 0.4, max: 2.0 };
    let fidelity = Fidelity { verdict: Verdict::Good, lateness: Some(lateness), ..Fidelity::EXACT };
    let frames = [("a.mrc0".to_owned(), 12)].into();
    let network = NetworkCounts { frames_on_wire: frames, ..NetworkCounts::default() };
    let text = Summary::new(run, Vec::new(), network, fidelity, Vec::new()).to_string();
    assert!(text.starts_with("pair: profile reference, seed 1, wall clock, TDF 2000\n"), "{text}");
    let end = "drops: none\nfaults: none\nframes on wire: a.mrc0 12\n\
               fidelity: good (p50 0.10, p99 0.40, max 2.00 packet times; 0 kernel drops)\n\
               sha-256: equal";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn programs_are_listed_and_a_failed_one_fails_the_run() {
    let exec = |background, end| ExecSummary {
        node: "a".into(),
        command: vec!["ping".into(), "10.0.0.2".into()],
        background,
        end,
        log: "run/exec-1.log".into(),
    };
    let with = |exec| summary([complete(), done()], b"abc").with_execs(vec![exec]);
    let well = with(exec(false, ExecEnd::Exit(0)));
    let text = well.to_string();
    assert!(well.ok());
    assert!(text.contains("\nexec on a: ping 10.0.0.2: exit status 0; run/exec-1.log\n"), "{text}");
    let json = serde_json::to_value(&well).expect("it serializes");
    assert_eq!(
        json["execs"][0],
        json!({"node": "a", "command": ["ping", "10.0.0.2"], "background": false,
               "end": {"exit": 0}, "log": "run/exec-1.log"})
    );
    let ends = [ExecEnd::Exit(1), ExecEnd::Signal(9), ExecEnd::Stopped, ExecEnd::NotStarted];
    for end in ends {
        assert!(!with(exec(false, end)).ok(), "{end}");
        assert!(with(exec(true, end)).ok(), "{end}");
    }
    let json = serde_json::to_value(with(exec(true, ExecEnd::Stopped))).expect("it serializes");
    assert_eq!(json["execs"][0]["end"], "stopped");
}
