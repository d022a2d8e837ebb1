//! A host as people read it in a terminal: nested boxes as lstopo made them known, then the
//! facts.

mod boxes;
mod dimms;
mod disk;
mod facts;
mod line;
mod network;
mod screen;

use machine::{Hypervisor, Machine};

use super::plain::plain;
use boxes::Drawing;
use line::{Line, Role};
pub use screen::screen;

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub color: bool,
    /// Box-drawing characters; otherwise ASCII only.
    pub unicode: bool,
    /// Columns of the terminal.
    pub width: usize,
}

/// Lines that the whole picture should stay below, however big the host is.
const LINES: usize = 58;

/// Narrower than this nothing can be drawn.
const NARROWEST: usize = 40;

/// The host as text, at most `style.width` columns wide.
pub fn draw(machine: &Machine, style: Style) -> String {
    let style = Style { width: style.width.clamp(NARROWEST, 400), ..style };
    let mut after = memory_only(machine, &style);
    after.extend(offline(machine, &style));
    after.extend(distances(machine, &style));
    after.extend(dimms::lines(machine, &style));
    after.push(Line::default());
    after.extend(facts::lines(machine, &style));

    // A small host is drawn in full; a big one gets the lines that the facts leave.
    let least = if machine.cpus.online.len() <= 64 { 36 } else { 16 };
    let budget = least.max(LINES.saturating_sub(after.len() + 3));
    let mut lines = headline(machine, &style);
    // Of a host that only SMBIOS tables describe there is nothing to draw but its modules.
    if !machine.cpus.online.is_empty() || machine.dimms.is_empty() {
        lines.extend(Drawing::new(machine, style).fit(budget));
    }
    lines.extend(after);
    line::render(&lines, &style)
}

fn headline(machine: &Machine, style: &Style) -> Vec<Line> {
    if machine.cpus.online.is_empty() && !machine.dimms.is_empty() {
        let dmi = &machine.dmi;
        let made: Vec<String> =
            [&dmi.vendor, &dmi.product].into_iter().flatten().map(|text| plain(text, 60)).collect();
        let made = if made.is_empty() { "unnamed system".to_string() } else { made.join(" ") };
        let title = Line::of(Role::Title, format!("{made}: "));
        return facts::wrapped(title, "by its SMBIOS tables alone", style.width, "  ");
    }
    let summary = machine.summary();
    let count = |number: Option<usize>, one: &str| match number {
        Some(number) => diagnose::words::counted(number, one),
        None => format!("? {one}s"),
    };
    let host = machine.host.as_deref().map_or("unnamed host".to_string(), |host| plain(host, NARROWEST - 4));
    let mut words = vec![
        count(summary.packages, "package"),
        count(summary.numa_nodes, "NUMA node"),
        count(summary.cores, "core"),
        count(summary.cpus, "CPU"),
    ];
    words.extend(machine.memory.total_bytes.map(facts::size));
    words.extend(machine.kernel.release.as_deref().map(|release| format!("Linux {}", plain(release, 40))));
    words.push(match &machine.hypervisor {
        Hypervisor::Unknown => "hypervisor unknown".to_string(),
        Hypervisor::None => "bare metal".to_string(),
        Hypervisor::Guest(name) => diagnose::words::guest(name),
    });
    let mut title = Line::of(Role::Title, host);
    title.push(Role::Plain, ": ");
    let mut lines = facts::wrapped(title, &words.join(", "), style.width, "  ");
    lines.push(Line::default());
    lines
}

/// Nodes without CPUs stand beside the boxes of those that have some.
fn memory_only(machine: &Machine, style: &Style) -> Vec<Line> {
    let nodes: Vec<_> = machine.nodes.iter().filter(|node| node.cpus.is_empty()).collect();
    let mut groups: Vec<(String, model::CpuSet)> = Vec::new();
    for node in nodes {
        let memory = match node.total_bytes {
            Some(0) => "neither CPUs nor memory".to_string(),
            Some(bytes) if node.memory_only() => format!("memory only, {}", facts::size(bytes)),
            Some(bytes) => format!("all CPUs offline, {}", facts::size(bytes)),
            None => "no CPUs, memory unknown".to_string(),
        };
        match groups.iter_mut().find(|(known, _)| *known == memory) {
            Some((_, ids)) => ids.insert(node.id),
            None => groups.push((memory, model::CpuSet::one(node.id))),
        }
    }
    let said = |(memory, ids): (String, model::CpuSet)| {
        let each = if ids.len() > 1 { " each" } else { "" };
        boxes::frame(vec![Line::of(Role::Plain, format!("NUMA node {ids}: {memory}{each}"))], "", 0, style)
    };
    groups.into_iter().flat_map(said).collect()
}

fn offline(machine: &Machine, style: &Style) -> Vec<Line> {
    let list = plain(&machine.cpus.offline.to_string(), 300);
    if list.is_empty() {
        Vec::new()
    } else {
        facts::wrapped(Line::of(Role::Muted, "offline: "), &format!("CPUs {list}"), style.width, "  ")
    }
}

/// More nodes than this make no table.
const MATRIX: usize = 16;

fn distances(machine: &Machine, style: &Style) -> Vec<Line> {
    let nodes: Vec<_> = machine.nodes.iter().filter(|node| !node.distances.is_empty()).collect();
    if nodes.len() < 2 || nodes.len() != machine.nodes.len() {
        return Vec::new();
    }
    let highest = nodes.iter().flat_map(|node| node.distances.iter().chain([&node.id])).max();
    let width = highest.map_or(1, |highest| highest.to_string().len()).max(3) + 1;
    if nodes.len() > MATRIX || (nodes.len() + 2) * width > style.width {
        let mut values: Vec<u32> = nodes.iter().flat_map(|node| node.distances.iter().copied()).collect();
        values.sort_unstable();
        values.dedup();
        let values: Vec<String> = values.iter().map(u32::to_string).collect();
        let text =
            format!("{} nodes at distances {} (all of them in --json)", nodes.len(), values.join(", "));
        return vec![Line::of(Role::Muted, plain(&text, style.width))];
    }
    let mut lines = vec![Line::default()];
    let mut head = Line::of(Role::Muted, format!("{:>width$}", "to", width = width * 2));
    nodes.iter().for_each(|node| head.push(Role::Muted, format!("{:>width$}", node.id)));
    lines.push(head);
    for (at, node) in nodes.iter().enumerate() {
        let from = if at == 0 { "node" } else { "" };
        let mut row = Line::of(Role::Muted, format!("{from:<width$}{:>width$}", node.id));
        for (other, distance) in node.distances.iter().enumerate() {
            let role = if other == at { Role::Muted } else { Role::Plain };
            row.push(role, format!("{distance:>width$}"));
        }
        lines.push(row);
    }
    lines
}

#[cfg(test)]
mod tests;
