//! `[[exec]]`: programs that run on hosts.

use super::names::Names;
use super::section::Section;
use crate::scenario::Exec;
use crate::time::Duration;

/// Reads a program; `None` when its host or its command is not there.
// spec: SW-1
pub(super) fn read(section: &Section<'_>, names: &Names) -> Option<Exec> {
    section.allow_keys(&["node", "command", "background", "start"]);
    let node = names.nic(section, "node");
    let wanted =
        "a list of a program and its arguments, such as [\"ping\", \"-c\", \"3\", \"10.0.0.2\"]";
    let command = section.required("command", wanted, |value| {
        let words = value.as_array()?.iter().map(|word| word.get_ref().as_str());
        let words: Vec<_> = words.collect::<Option<_>>()?;
        let can_be_passed = words.iter().all(|word| !word.contains('\0'));
        (can_be_passed && !words.first()?.is_empty()).then_some(words)
    });
    let background = section.optional("background", "true or false", |value| value.as_bool());
    let start = section.time("start").unwrap_or(Duration::ZERO);
    Some(Exec {
        node: node?,
        command: command?.into_iter().map(str::to_owned).collect(),
        background: background.unwrap_or(false),
        start,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{errors_of, read_text};
    use super::*;

    const LAB: &str = "[[nic]]\nname = 'a'\n[[nic]]\nname = 'b'\n[[link]]\nends = ['a', 'b']\n";

    // spec: SW-1
    #[test]
    fn programs_are_read_with_their_defaults() {
        let text = "[[exec]]\nnode = 'b'\ncommand = ['iperf3', '-s']\nbackground = true\n\
                    [[exec]]\nnode = 'a'\ncommand = ['true']\nstart = '500 ms'\n";
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (server, client) = (words(&["iperf3", "-s"]), words(&["true"]));
        assert_eq!(
            read_text(&format!("{LAB}{text}")).expect("right").execs,
            [
                Exec { node: 1, command: server, background: true, start: Duration::ZERO },
                Exec { node: 0, command: client, background: false, start: Duration::from_ms(500) },
            ]
        );
    }

    #[test]
    fn everything_wrong_with_programs_is_found_at_once() {
        let text = "[[exec]]\nnode = 'z'\ncommand = []\nback = 1\n\
                    [[exec]]\nnode = 'a'\nbackground = 'no'\nstart = 5\n\
                    [[exec]]\nnode = 'a'\ncommand = [\"a\\u0000\"]\n";
        let found = errors_of(&format!("{LAB}{text}"));
        let wanted = [
            "8: [[exec]] node = 'z': no NIC of that name; the NICs are a, b",
            "9: [[exec]] command = []: must be a list of a program and its arguments",
            "10: [[exec]] unknown key `back`; correct or remove it: the keys here are node, command",
            "11: [[exec]] `command` is missing",
            "13: [[exec]] background = 'no': must be true or false",
            "14: [[exec]] start = 5: must be a time with a unit",
            "17: [[exec]] command = [\"a\\u0000\"]: must be a list",
        ];
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.starts_with(wanted), "{found} is not {wanted}");
        }
    }
}
