//! `mrc topology`: who is joined to whom in a scenario, and by which ways.

mod map;
mod svg;
mod text;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use serde::Serialize;

use super::failure::Failure;
use super::output::{json_line, say};
use super::scenario::{SourceArgs, read};
use map::Map;
use mrc_lab::scenario::{NodeKind, Topology};

/// Options of `mrc topology`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draw a scenario's nodes and links as text.
    Show(ShowArgs),
}

/// Options of `mrc topology show`.
#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// The scenario file (TOML).
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
    #[command(flatten)]
    source: SourceArgs,
    /// Write a drawing to this file (SVG).
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print nodes, links and routes as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Command::Show(args) = &args.command;
    let (scenario, _) = read(&args.scenario, "SCENARIO", &args.source)?;
    let topology = Topology::new(&scenario);
    let map = Map::new(&scenario.name, &topology);
    if let Some(file) = &args.svg {
        fs::write(file, svg::draw(&map)).with_context(|| format!("writing {}", file.display()))?;
    }
    match args.json {
        true => say(&json_line(&listing(&map))?),
        false => say(&text::draw(&map)),
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Listing<'m> {
    name: &'m str,
    nodes: Vec<NodeRow<'m>>,
    links: Vec<LinkRow<'m>>,
    routes: Vec<RouteRow<'m>>,
}

#[derive(Debug, Serialize)]
struct NodeRow<'m> {
    name: &'m str,
    kind: &'static str,
    tier: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<std::net::Ipv4Addr>,
}

#[derive(Debug, Serialize)]
struct LinkRow<'m> {
    ends: [&'m str; 2],
    ports: [u16; 2],
    rate_bps: u64,
    delay_ps: u64,
    mtu: u32,
}

/// An equal-cost set: the ports of `switch` on a shortest way to `to`.
#[derive(Debug, Serialize)]
struct RouteRow<'m> {
    switch: &'m str,
    to: String,
    ports: Vec<u16>,
}

fn listing<'m>(map: &Map<'m>) -> Listing<'m> {
    let Topology { nodes, links, .. } = map.topology;
    let node_rows = nodes.iter().enumerate().map(|(number, node)| NodeRow {
        name: &node.name,
        kind: if node.ip().is_some() { "nic" } else { "switch" },
        tier: map.tier(number),
        ip: node.ip(),
    });
    let link_rows = links.iter().map(|link| LinkRow {
        ends: link.ends.map(|end| nodes[end.node.0 as usize].name.as_str()),
        ports: link.ends.map(|end| end.port.0),
        rate_bps: link.rate.as_bps(),
        delay_ps: link.delay.as_ps(),
        mtu: link.mtu,
    });
    let mut routes = Vec::new();
    for node in nodes {
        let NodeKind::Switch(switch) = &node.kind else { continue };
        routes.extend(switch.routes.iter().map(|route| RouteRow {
            switch: &node.name,
            to: format!("{}/{}", route.prefix, route.length),
            ports: route.ports.iter().map(|port| port.0).collect(),
        }));
    }
    Listing { name: map.name, nodes: node_rows.collect(), links: link_rows.collect(), routes }
}

#[cfg(test)]
mod tests;
