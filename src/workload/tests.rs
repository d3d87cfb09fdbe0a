use super::*;
use crate::config::Profile;
use crate::scenario::NicSpec;

fn workload(messages: u32, one_qp: bool, depth: u32) -> Workload {
    Workload::new(&scenario(messages, one_qp, depth))
}

fn scenario(messages: u32, one_qp: bool, depth: u32) -> Scenario {
    let nic = |name: &str, last| NicSpec {
        name: name.into(),
        ip: Ipv4Addr::new(10, 0, 0, last),
        attributes: Profile::Reference.nic(),
    };
    Scenario {
        name: "test".into(),
        seed: 1,
        profile: Profile::Reference,
        nics: vec![nic("a", 1), nic("b", 2)],
        switches: Vec::new(),
        links: Vec::new(),
        flows: vec![Flow {
            from: 0,
            to: 1,
            bytes: 10,
            messages,
            one_qp,
            depth,
            start: Duration::ZERO,
        }],
        execs: Vec::new(),
    }
}

fn end(last: u8, qpn: u32) -> QpAddress {
    QpAddress { ip: Ipv4Addr::new(10, 0, 0, last), qpn: Qpn::masked(qpn) }
}

fn actions(workload: &mut Workload) -> Vec<Action> {
    core::iter::from_fn(|| workload.next_action()).collect()
}

fn event(kind: QpEventKind, local: QpAddress, remote: QpAddress) -> QpEvent {
    QpEvent { kind, local, remote, wqe_id: None, wqe_bytes: None }
}

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

// spec: QP-7, QP-9, REL-1
#[test]
fn each_message_has_its_qp_and_both_sides_are_closed() {
    let mut workload = workload(3, false, 2);
    workload.start_due(Duration::ZERO);
    let post = |message| Action::Post { flow: 0, message, qp: None };
    assert_eq!(actions(&mut workload), [post(0), post(1)]);
    workload.posted(0, Qpn::masked(10), Instant::ZERO);
    workload.posted(0, Qpn::masked(11), Instant::ZERO);
    let at = Instant::from_ps(5);
    workload.on_event(at, B, &event(QpEventKind::QpCreated, end(2, 20), end(1, 10)));
    workload.on_event(at, A, &event(QpEventKind::WqeComplete, end(1, 10), end(2, 20)));
    let close = |node, qpn| Action::Close { node, qpn: Qpn::masked(qpn) };
    assert_eq!(actions(&mut workload), [close(A, 10), close(B, 20), post(2)]);
}

// spec: QP-7
#[test]
fn on_one_qp_the_first_posting_names_the_qp() {
    let mut workload = workload(3, true, 2);
    workload.start_due(Duration::ZERO);
    assert_eq!(actions(&mut workload), [Action::Post { flow: 0, message: 0, qp: None }]);
    let qp = Some(Qpn::masked(10));
    workload.posted(0, Qpn::masked(10), Instant::ZERO);
    assert_eq!(actions(&mut workload), [Action::Post { flow: 0, message: 1, qp }]);
    workload.on_event(Instant::ZERO, A, &event(QpEventKind::WqeComplete, end(1, 10), end(2, 0)));
    assert_eq!(actions(&mut workload), [Action::Post { flow: 0, message: 2, qp }]);
}

// spec: DONE-1
#[test]
fn a_flow_is_over_with_its_last_completion_or_an_error() {
    let mut complete = workload(1, false, 1);
    complete.start_due(Duration::ZERO);
    complete.posted(0, Qpn::masked(10), Instant::from_ps(3));
    let at = Instant::from_ps(10);
    complete.on_event(at, A, &event(QpEventKind::WqeComplete, end(1, 10), end(2, 0)));
    assert!(complete.is_over());
    let time = complete.results().next().and_then(FlowResult::completion_time);
    assert_eq!(time, Some(Duration::from_ps(7)));

    let mut failed = workload(1, false, 1);
    failed.start_due(Duration::ZERO);
    failed.posted(0, Qpn::masked(10), Instant::ZERO);
    failed.on_event(at, A, &event(QpEventKind::QpError, end(1, 10), end(2, 0)));
    assert!(failed.is_over() && failed.results().all(|r| r.finished.is_none()));
}

// spec: DONE-1
#[test]
fn a_flow_that_has_failed_has_no_completion_time_whatever_completes_later() {
    let mut workload = workload(2, false, 2);
    workload.start_due(Duration::ZERO);
    workload.posted(0, Qpn::masked(10), Instant::ZERO);
    workload.posted(0, Qpn::masked(11), Instant::ZERO);
    let at = Instant::from_ps(10);
    workload.on_event(at, A, &event(QpEventKind::QpError, end(1, 10), end(2, 0)));
    workload.on_event(at, A, &event(QpEventKind::WqeComplete, end(1, 11), end(2, 0)));
    let result = workload.results().next().expect("one flow");
    assert_eq!((result.completed, result.completion_time()), (1, None));
    assert!(workload.is_over());
}

// spec: WL-1
#[test]
fn flows_start_at_their_times_and_the_run_is_not_over_before() {
    let mut scenario = scenario(1, false, 1);
    let flow = |start| Flow { start: Duration::from_us(start), ..scenario.flows[0].clone() };
    scenario.flows = vec![flow(7), flow(0), flow(3), flow(7)];
    let mut workload = Workload::new(&scenario);
    let mut started = |elapsed, next: Option<u64>| {
        workload.start_due(elapsed);
        assert_eq!(workload.next_start(), next.map(Duration::from_us), "at {elapsed}");
        assert!(!workload.is_over());
        let posts = actions(&mut workload).into_iter().map(|action| match action {
            Action::Post { flow, message: 0, qp: None } => flow,
            other => panic!("{other:?}"),
        });
        posts.collect::<Vec<_>>()
    };
    assert_eq!(started(Duration::ZERO, Some(3)), [1]);
    assert_eq!(started(Duration::from_ns(2_999), Some(3)), [0; 0]);
    assert_eq!(started(Duration::from_us(3), Some(7)), [2]);
    assert_eq!(started(Duration::from_us(9), None), [0, 3]);
    assert_eq!(started(Duration::from_us(9), None), [0; 0]);
}

#[test]
fn data_comes_from_the_seed_and_differs_between_flows() {
    let start = Duration::ZERO;
    let flow = Flow { from: 0, to: 1, bytes: 100, messages: 2, one_qp: true, depth: 1, start };
    assert_eq!(flow_data(1, 0, &flow).len(), 200);
    assert_eq!(flow_data(1, 0, &flow), flow_data(1, 0, &flow));
    assert_ne!(flow_data(1, 0, &flow), flow_data(1, 1, &flow));
    assert_ne!(flow_data(1, 0, &flow), flow_data(2, 0, &flow));
}
