//! A topology as a drawing: one SVG file that needs nothing else. Names have no
//! character that XML treats as its own.

use std::collections::BTreeMap;

use super::map::{Bundle, Map, Quality};

/// Sizes in user units, which are pixels where the drawing is not scaled.
const MARGIN: usize = 16;
/// The column of labels at the left.
const LABELS: usize = 110;
const HEADER: usize = 40;
const ROW: usize = 120;
const BOX: [usize; 2] = [64, 26];
/// From the middle of a node to that of the next one.
const PITCH: usize = 76;
/// Between parallel links.
const GAP: f64 = 5.0;

const STYLE: &str = "text{font:12px sans-serif;fill:#222;text-anchor:middle}\
    .label{text-anchor:start;fill:#666}.title{font-size:15px;text-anchor:start}\
    .nic{fill:#e3f0e3;stroke:#4a7}.switch{fill:#e4ecf7;stroke:#47a}\
    .link{stroke:#999;fill:none}.odd{stroke:#c60}.faulty{stroke-dasharray:5 3;stroke:#c33}";

/// Draws the map: NICs at the bottom, each tier above the one below. What the
/// links of a tier are like stands at the left; links that differ are of another
/// colour, and those with faults are dashed.
pub fn draw(map: &Map<'_>) -> String {
    let drawing = Drawing::new(map);
    let (width, height) = (drawing.width, HEADER + (map.top() + 1) * ROW);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"24\">{}</text>\n",
        map.name
    );
    for tier in 0..=map.top() {
        text += &drawing.tier_label(tier);
    }
    for bundle in &map.bundles {
        text += &drawing.links(bundle);
    }
    for node in 0..map.topology.nodes.len() {
        text += &drawing.node(node);
    }
    text + "</svg>\n"
}

struct Drawing<'m> {
    map: &'m Map<'m>,
    width: usize,
    /// The middle of each node.
    places: Vec<[f64; 2]>,
    /// What most links down from each tier are like, those within it included.
    usual: Vec<Option<Quality>>,
}

impl<'m> Drawing<'m> {
    fn new(map: &'m Map<'m>) -> Self {
        let rows: Vec<_> = (0..=map.top()).map(|tier| row(map, tier)).collect();
        let widest = rows.iter().map(Vec::len).max().unwrap_or(0).max(3);
        let width = LABELS + widest * PITCH + MARGIN;
        let mut places = vec![[0.0; 2]; map.topology.nodes.len()];
        for (tier, row) in rows.iter().enumerate() {
            let y = HEADER + (map.top() - tier) * ROW + ROW / 2;
            let step = (widest * PITCH) as f64 / row.len() as f64;
            for (index, node) in row.iter().enumerate() {
                places[*node] = [LABELS as f64 + step * (index as f64 + 0.5), y as f64];
            }
        }
        let usual = (0..=map.top()).map(|tier| usual(map, tier)).collect();
        Self { map, width, places, usual }
    }

    fn tier_label(&self, tier: usize) -> String {
        let y = HEADER + (self.map.top() - tier) * ROW + ROW / 2 + 4;
        let name = if tier == 0 { "NICs".to_owned() } else { format!("tier {tier}") };
        let label = |y: usize, text: &str| {
            format!("<text class=\"label\" x=\"{MARGIN}\" y=\"{y}\">{text}</text>\n")
        };
        let usual = self.usual[tier].map_or_else(String::new, |quality| {
            let text = quality.text();
            let (rate, delay) = text.split_once(", ").unwrap_or((&text, ""));
            label(y + ROW / 2 - 18, rate) + &label(y + ROW / 2 - 2, delay)
        });
        label(y, &name) + &usual
    }

    fn node(&self, node: usize) -> String {
        let [x, y] = self.places[node];
        let [width, height] = BOX;
        let plan = &self.map.topology.nodes[node];
        let class = if plan.ip().is_some() { "nic" } else { "switch" };
        let more = plan.ip().map_or_else(String::new, |ip| format!(" {ip}"));
        let name = &plan.name;
        let fit = match name.len() > 9 {
            true => format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", width - 6),
            false => String::new(),
        };
        format!(
            "<g id=\"node-{name}\"><title>{name}{more}</title><rect class=\"{class}\" rx=\"4\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\"/><text x=\"{x:.1}\" y=\"{:.1}\"{fit}>{name}</text></g>\n",
            x - width as f64 / 2.0,
            y - height as f64 / 2.0,
            y + 4.0,
        )
    }

    fn links(&self, bundle: &Bundle) -> String {
        let middle = (bundle.links.len() - 1) as f64 / 2.0;
        let links = bundle.links.iter().enumerate();
        links.map(|(index, link)| self.link(bundle, *link, (index as f64 - middle) * GAP)).collect()
    }

    fn link(&self, bundle: &Bundle, link: usize, aside: f64) -> String {
        let [[ax, ay], [bx, by]] = bundle.ends.map(|node| self.places[node]);
        let [a, b] = bundle.ends.map(|node| self.map.node_name(node));
        let half = BOX[1] as f64 / 2.0;
        // Within a tier a link goes over what is between its ends.
        let path = if ay == by {
            let (x, top) = ((ax + bx) / 2.0, ay - half - 40.0 + 2.0 * aside);
            format!("M{ax:.1} {:.1}Q{x:.1} {top:.1} {bx:.1} {:.1}", ay - half, by - half)
        } else {
            format!("M{:.1} {:.1}L{:.1} {:.1}", ax + aside, ay - half, bx + aside, by + half)
        };
        let faulty = self.map.topology.links[link].faults.iter().any(|rules| !rules.is_empty());
        let odd = self.usual[self.map.tier(bundle.ends[1])] != Some(bundle.quality);
        let class = match (faulty, odd) {
            (true, _) => "link faulty",
            (_, true) => "link odd",
            _ => "link",
        };
        let quality = bundle.quality.text();
        format!(
            "<path id=\"link-{link}\" class=\"{class}\" d=\"{path}\"><title>{a} to {b}: {quality}</title></path>\n"
        )
    }
}

/// The nodes of a tier from left to right: NICs beside those of the same switch.
fn row(map: &Map<'_>, tier: usize) -> Vec<usize> {
    let mut row = map.nodes_of(tier);
    if tier == 0 {
        let above: BTreeMap<_, _> = map.bundles.iter().map(|b| (b.ends[0], b.ends[1])).collect();
        row.sort_by_key(|node| above.get(node).copied());
    }
    row
}

/// What most of the links down from `tier` and within it are like.
fn usual(map: &Map<'_>, tier: usize) -> Option<Quality> {
    let mut counts = BTreeMap::<Quality, usize>::new();
    for bundle in map.bundles.iter().filter(|bundle| map.tier(bundle.ends[1]) == tier) {
        *counts.entry(bundle.quality).or_default() += bundle.links.len();
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(quality, _)| quality)
}
