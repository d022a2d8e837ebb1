//! CPUs and caches of two hosts, reported and measured.

use super::{column, table};
use crate::block::{Block, Cell, Section};
use crate::sections::believed::{MAX_PAINTED_CPUS, drawn};
use compare::Comparison;
use diagnose::views::Views;

/// The section of one comparison; `None` if neither result has a topology, or if both are of one
/// host that reports the same topology.
pub fn section(one: &Comparison, letter: &str) -> Option<Section> {
    let [a, b] = &one.views;
    let reported = |views: &Option<Views>| -> Vec<(String, Vec<Vec<u32>>)> {
        let groups = views.iter().flat_map(|views| &views.groups);
        groups.filter(|(label, _)| !label.ends_with("measured")).cloned().collect()
    };
    let [host, other] = [&one.names[0][0], &one.names[1][0]];
    if (a.is_none() && b.is_none()) || (host == other && reported(a) == reported(b)) {
        return None;
    }
    let sides = [("A", host, a), (letter, other, b)];
    let mut blocks = Vec::new();
    for (name, host, views) in sides {
        match views {
            Some(views) if views.cpus.len() <= MAX_PAINTED_CPUS => {
                blocks.push(Block::Prose(format!("{name} {host}")));
                blocks.push(Block::Tiles(drawn(views)));
            }
            Some(views) => {
                let many = views.cpus.len();
                blocks.push(Block::Prose(format!("{name} {host}: {many} CPUs are too many to draw.")));
            }
            None => {
                blocks.push(Block::Prose(format!("{name} {host}: the result does not describe its CPUs.")))
            }
        }
    }
    blocks.extend(caches(sides.map(|(name, _, views)| (name, views.as_ref()))));
    Some(
        Section::new(
            format!("views-{}", letter.to_lowercase()),
            "CPUs and caches, reported and measured",
            blocks,
        )
        .about(
            "Equal letters in a row: one group. Reported: what the kernel reads from firmware or the host. Measured: what \
                 passing cache lines, mutual slowdown and the latency curve show.",
        ),
    )
}

/// Each level of cache: what each kernel reports, and what was measured.
fn caches(sides: [(&str, Option<&Views>); 2]) -> Option<Block> {
    let both = sides.map(|(_, views)| views.map_or(&[][..], |views| &views.caches));
    let mut names: Vec<&str> = Vec::new();
    for [name, ..] in both.into_iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let text = |text: &str| Cell::Text(text.to_string());
    let row = |name: &&str| {
        let cells = both.iter().flat_map(|caches| {
            let own = caches.iter().find(|[other, ..]| other == name);
            own.map_or(["none", ""], |[_, believed, measured]| [believed, measured]).map(text)
        });
        std::iter::once(text(name)).chain(cells).collect()
    };
    let words = |name: &str| ["believed", "measured"].map(|word| column(&format!("{name} {word}")));
    let columns = std::iter::once(column("cache")).chain(sides.iter().flat_map(|(name, _)| words(name)));
    let rows: Vec<Vec<Cell>> = names.iter().map(row).collect();
    (!rows.is_empty()).then(|| table(columns.collect(), rows))
}
