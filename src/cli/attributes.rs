//! `mrc attributes`: what can be set, to what, and what it is by default.

use clap::ValueEnum;
use serde::Serialize;

use super::failure::Failure;
use super::output::{json_line, say};
use super::scenario::profile;
use super::table::Table;
use mrc_lab::config::{self, NIC_ATTRIBUTES, Profile, SWITCH_ATTRIBUTES, Setting};

/// Options of `mrc attributes`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Whose attributes [default: both].
    owner: Option<Owner>,
    /// The profile whose values are shown: reference, native or tuned.
    #[arg(long, default_value = "reference", value_parser = profile)]
    profile: Profile,
    /// Print one JSON object.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown, with what the profiles set: docs/configuration.md.
    #[arg(long)]
    markdown: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Owner {
    /// A NIC's attributes.
    Nic,
    /// A switch's attributes.
    Switch,
}

/// An attribute with its value.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    group: &'static str,
    #[serde(rename = "type")]
    kind: String,
    range: String,
    value: String,
    description: &'static str,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Listing {
    profile: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    nic: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<Vec<Row>>,
}

/// Prints the attributes.
pub fn run(args: &Args) -> Result<(), Failure> {
    let listing = Listing::new(args.owner, args.profile);
    if args.json {
        say(&json_line(&listing)?)
    } else if args.markdown {
        say(&listing.markdown())
    } else {
        say(&listing.text())
    }
}

fn rows<T>(table: &config::Table<T>, holder: &T) -> Vec<Row> {
    let of_group = |group: &'static config::Group<T>| {
        group.attributes.iter().map(|attribute| Row {
            name: attribute.name,
            group: group.name,
            kind: attribute.kind(),
            range: attribute.range(),
            value: attribute.show(holder),
            description: attribute.doc,
        })
    };
    table.groups.iter().flat_map(of_group).collect()
}

fn groups(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a.group == b.group)
}

impl Listing {
    fn new(owner: Option<Owner>, profile: Profile) -> Self {
        let wanted = |one| owner.is_none_or(|owner| owner == one);
        Self {
            profile: profile.name(),
            nic: wanted(Owner::Nic).then(|| rows(&NIC_ATTRIBUTES, &profile.nic())),
            switch: wanted(Owner::Switch).then(|| rows(&SWITCH_ATTRIBUTES, &profile.switch())),
        }
    }

    /// The tables that there are, with what they are about.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &[Row])> {
        let nic = self.nic.as_deref().map(|rows| (NIC_ATTRIBUTES.owner, rows));
        let switch = self.switch.as_deref().map(|rows| (SWITCH_ATTRIBUTES.owner, rows));
        nic.into_iter().chain(switch)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (owner, rows) in self.parts() {
            let gap = if text.is_empty() { "" } else { "\n" };
            text += &format!(
                "{gap}Attributes of a {owner}: name, value in the {} profile, range, what\n",
                self.profile
            );
            for group in groups(rows) {
                text += &format!("\n{}\n{}", group[0].group, group_text(group));
            }
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        for (owner, rows) in self.parts() {
            text += &format!("## Attributes of a {owner}\n\n");
            for group in groups(rows) {
                text += &format!("### {}\n\n{}\n", group[0].group, group_markdown(group));
            }
        }
        text + &self.profiles_markdown()
    }

    /// What the profiles set of whoever is listed.
    fn profiles_markdown(&self) -> String {
        let mut text = "## Profiles\n".to_owned();
        let [nic, switch] = [self.nic.is_some(), self.switch.is_some()];
        for profile in Profile::ALL {
            let mut lines = String::new();
            if nic {
                let default = Profile::Reference.nic();
                lines += &settings(profile.nic_settings(), &NIC_ATTRIBUTES, &default);
            }
            if switch {
                let default = Profile::Reference.switch();
                lines += &settings(profile.switch_settings(), &SWITCH_ATTRIBUTES, &default);
            }
            if !lines.is_empty() {
                let name = profile.name();
                text += &format!(
                    "\n### Profile {name}\n\n| of | attribute | reference | {name} | why |\n|---|---|---|---|---|\n{lines}"
                );
            }
        }
        text
    }
}

fn group_text(group: &[Row]) -> String {
    let mut table = Table::to_the_left();
    for row in group {
        let name = format!("  {}", row.name);
        let cells = [&name, &row.value, &row.range, row.description];
        table.row(cells.map(str::to_owned).to_vec());
    }
    table.text()
}

fn group_markdown(group: &[Row]) -> String {
    let mut text =
        "| attribute | default | type | range | what |\n|---|---|---|---|---|\n".to_owned();
    for Row { name, kind, range, value, description, .. } in group {
        text += &format!("| `{name}` | {value} | {kind} | {range} | {description} |\n");
    }
    text
}

fn settings<T>(settings: &[Setting], table: &config::Table<T>, reference: &T) -> String {
    let mut text = String::new();
    for Setting { name, value, reason } in settings {
        let default = table.find(name).map_or(String::new(), |found| found.show(reference));
        text += &format!("| {} | `{name}` | {default} | {value} | {reason} |\n", table.owner);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line of docs/configuration.md that is written by hand.
    const MARK: &str = "<!-- From here on: mrc attributes --markdown -->\n";

    #[test]
    fn the_document_is_what_the_command_prints() {
        let document = include_str!("../../docs/configuration.md");
        let (_, printed) = document.split_once(MARK).expect("docs/configuration.md has the mark");
        let wanted = format!("\n{}", Listing::new(None, Profile::Reference).markdown());
        assert!(
            printed == wanted,
            "docs/configuration.md is not up to date; write it again with\n\
             sed -i '/^<!-- From here on/{{n;q}}' docs/configuration.md\n\
             cargo run -- attributes --markdown >>docs/configuration.md"
        );
    }

    #[test]
    fn values_are_those_of_the_profile() {
        let text = Listing::new(Some(Owner::Nic), Profile::Native).text();
        assert!(
            text.starts_with("Attributes of a NIC: name, value in the native profile"),
            "{text}"
        );
        assert!(text.contains("\n\nLoss recovery\n  SACKLossMinRetxPkts    512 "), "{text}");
        assert!(text.contains("\n  InitialAckTimeout      20 ms "), "{text}");
        assert!(!text.contains("PlaneBDP"), "{text}");
        let both = Listing::new(None, Profile::Reference).text();
        assert!(both.contains("\n\nAttributes of a switch: name, value in the reference profile"));
    }

    // spec: TIME-3
    #[test]
    fn profiles_are_listed_as_far_as_they_set_something() {
        let text = Listing::new(Some(Owner::Switch), Profile::Reference).markdown();
        let (_, profiles) = text.split_once("## Profiles\n").expect("it is there");
        assert!(
            profiles
                .contains("\n| switch | `PlaneBDP` | 300 KB | 250 KB | 10 Gbps over 200 us |\n")
        );
        assert!(!profiles.contains("NIC") && !profiles.contains("tuned"), "{profiles}");
    }

    #[test]
    fn json_has_every_attribute_by_its_owner() {
        let json = serde_json::to_value(Listing::new(None, Profile::Tuned)).expect("it is JSON");
        assert_eq!(json["profile"], "tuned");
        let count = |owner: &str| json[owner].as_array().map(Vec::len);
        assert_eq!(count("nic"), Some(NIC_ATTRIBUTES.attributes().count()));
        assert_eq!(count("switch"), Some(SWITCH_ATTRIBUTES.attributes().count()));
        let nic = json["nic"].as_array().expect("a list");
        let range = nic.iter().find(|row| row["name"] == "MaxPSNRange").expect("it is there");
        let want = serde_json::json!({
            "name": "MaxPSNRange",
            "group": "Queue pairs",
            "type": "whole number",
            "range": "1 to 32640",
            "value": "4096",
            "description": "Packets allowed beyond the cumulative PSN.",
        });
        assert_eq!(*range, want);
        let alone = serde_json::to_value(Listing::new(Some(Owner::Switch), Profile::Tuned));
        assert_eq!(alone.expect("it is JSON").get("nic"), None);
    }
}
