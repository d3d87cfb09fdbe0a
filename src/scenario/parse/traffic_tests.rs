use super::tests::{errors_of, errors_with, read_text};
use super::*;
use crate::time::Duration;

const STAR: &str = "[topology]\nkind = 'star'\nhosts = 5\n";

fn flows_of(traffic: &str) -> Vec<(usize, usize)> {
    let text = format!("{STAR}[traffic]\nbytes = '1 KB'\n{traffic}\n");
    let scenario = read_text(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    scenario.flows.iter().map(|flow| (flow.from, flow.to)).collect()
}

// spec: WL-1
#[test]
fn patterns_have_the_flows_of_their_kind() {
    assert_eq!(flows_of("kind = 'ring'"), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
    assert_eq!(flows_of("kind = 'incast'\nto = 'h2'"), [(0, 2), (1, 2), (3, 2), (4, 2)]);
    let two = "kind = 'permutation'\nshift = 2";
    assert_eq!(flows_of(two), [(0, 2), (1, 3), (2, 4), (3, 0), (4, 1)]);
    let all = flows_of("kind = 'all-to-all'\nhosts = ['h4', 'h0', 'h1']");
    assert_eq!(all, [(4, 0), (0, 1), (1, 4), (4, 1), (0, 4), (1, 0)]);
    let some = flows_of("kind = 'incast'\nto = 'h3'\nhosts = ['h0', 'h1']");
    assert_eq!(some, [(0, 3), (1, 3)]);
}

// spec: WL-1
#[test]
fn a_permutation_is_drawn_from_the_seed() {
    let drawn = |seed: u64| flows_of_seed(seed, "kind = 'permutation'");
    let first = drawn(1);
    let mut to: Vec<_> = first.iter().map(|(_, to)| *to).collect();
    to.sort_unstable();
    assert_eq!(to, [0, 1, 2, 3, 4]);
    assert!(first.iter().all(|(from, to)| from != to), "{first:?}");
    assert_eq!(drawn(1), first);
    assert!((2..10).any(|seed| drawn(seed) != first));
}

fn flows_of_seed(seed: u64, traffic: &str) -> Vec<(usize, usize)> {
    let text = format!("{STAR}[traffic]\nbytes = 1\n{traffic}\n");
    let overrides = Overrides { seed: Some(seed), profile: None };
    let scenario = parse(&text, "x.toml", &overrides).expect("it is right");
    scenario.flows.iter().map(|flow| (flow.from, flow.to)).collect()
}

// spec: WL-1
#[test]
fn writes_come_before_traffic_and_have_the_same_keys() {
    let write = "[[write]]\nfrom = 'h4'\nto = 'h0'\nbytes = 1\n";
    let traffic = "[traffic]\nkind = 'ring'\nhosts = ['h1', 'h3']\nbytes = '2 KB'\nmessages = 3\nqp = 'one'\ndepth = 4\nstart = '5 us'\n";
    let scenario = read_text(&format!("{STAR}{traffic}{write}")).expect("it is right");
    let start = Duration::from_us(5);
    let ring =
        |from, to| Flow { from, to, bytes: 2_000, messages: 3, one_qp: true, depth: 4, start };
    assert_eq!((scenario.flows[0].from, scenario.flows[0].bytes), (4, 1));
    assert_eq!(scenario.flows[1..], [ring(1, 3), ring(3, 1)]);
}

// spec: WL-1, W-8
#[test]
fn writes_that_cannot_be_are_refused() {
    let write = |more: &str| errors_with(&format!("[[write]]\nfrom = 'a'\n{more}\n"));
    assert_eq!(
        write("to = 'a'\nbytes = 1"),
        ["13: [[write]] to = 'a': a NIC does not send to itself; name another NIC"]
    );
    assert_eq!(
        write("to = 'b'\nbytes = '3 GiB'"),
        ["14: [[write]] bytes = '3 GiB': must be a size of at most 2 GiB, such as \"64 MiB\""]
    );
    assert_eq!(
        write("to = 'b'"),
        [
            "11: [[write]] `bytes` is missing: it must be a size of at most 2 GiB, such as \"64 MiB\""
        ]
    );
    assert_eq!(
        write("to = 'b'\nbytes = '2 GiB'\nmessages = 33"),
        [
            "11: [[write]] 33 messages of 2147483648 bytes are more than the 68719476736 bytes of one flow; send fewer or smaller ones"
        ]
    );
    assert_eq!(
        write("to = 'b'\nbytes = 1\nmessages = 0\ndepth = 0\nqp = 'two'\nstart = 5"),
        [
            "15: [[write]] messages = 0: must be a whole number from 1 to 1048576",
            "16: [[write]] depth = 0: must be a whole number from 1 to 1048576",
            "17: [[write]] qp = 'two': must be \"one\" or \"each\"",
            "18: [[write]] start = 5: must be a time with a unit (ps, ns, us, ms, s), such as \"150 us\"",
        ]
    );
}

// spec: WL-1
#[test]
fn traffic_that_cannot_be_is_refused() {
    let found = |traffic: &str| errors_of(&format!("{STAR}[traffic]\n{traffic}\n"));
    assert_eq!(
        found("kind = 'storm'\nbytes = 1"),
        ["5: [traffic] kind = 'storm': must be one of permutation, incast, all-to-all, ring"]
    );
    assert_eq!(
        found("kind = 'ring'\nto = 'h0'\nhosts = ['h0']"),
        [
            "4: [traffic] `bytes` is missing: it must be a size of at most 2 GiB, such as \"64 MiB\"",
            "4: [traffic] needs two NICs or more to send between",
            "6: [traffic] unknown key `to`; correct or remove it: the keys here are kind, hosts, bytes, messages, qp, depth, start",
        ]
    );
    assert_eq!(
        found("kind = 'permutation'\nbytes = 1\nshift = 5"),
        ["7: [traffic] shift = 5: must be a whole number from 1 to 4"]
    );
    assert_eq!(
        found("kind = 'incast'\nbytes = 1\nhosts = ['h0', 's0']"),
        [
            "4: [traffic] `to` is missing: it must be the name of a NIC, such as \"a\"",
            "7: [traffic] hosts = ['h0', 's0']: \"s0\": no NIC of that name; the NICs are h0, h1, h2, h3, h4",
        ]
    );
    assert_eq!(
        found("kind = 'ring'\nbytes = 1\nhosts = ['h0', 'h0']"),
        [
            "7: [traffic] hosts = ['h0', 'h0']: must be a list of names of NICs, each once, such as [\"a\", \"b\"]"
        ]
    );
}
