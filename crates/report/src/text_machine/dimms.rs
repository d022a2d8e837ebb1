//! Memory modules as a small map: a box for each socket, a line for each channel; then what the
//! population shows.

use std::collections::BTreeMap;

use super::Style;
use super::boxes::{flow, frame};
use super::facts::{size, wrapped};
use super::line::{Line, Role};
use crate::plain::plain;
use machine::{Dimm, Machine, SocketMemory};
use model::Severity;

/// More sockets than this are not drawn.
const SOCKETS: usize = 8;
/// A foreign name is cut at so many characters.
const NAME: usize = 24;
/// Column where sentences begin.
const INDENT: usize = 14;

/// Nothing where no module is told of.
pub(super) fn lines(machine: &Machine, style: &Style) -> Vec<Line> {
    let population = &machine.population;
    if !machine.dimms.iter().any(Dimm::is_memory) {
        return Vec::new();
    }
    let mut lines = vec![Line::default()];
    let filled = machine.dimms.iter().filter(|dimm| dimm.is_memory()).count();
    let persistent = machine.dimms.iter().filter(|dimm| dimm.is_filled()).count() - filled;
    let untold = machine.dimms.iter().filter(|dimm| dimm.is_untold).count();
    let mut head = Line::of(Role::Title, "memory modules: ");
    let verdict = population.dimm_verdict.map_or("placement not judged", |verdict| verdict.words());
    head.push(Role::Title, verdict);
    let mut words = vec![format!("; {filled} of {} slots filled", machine.dimms.len())];
    words.extend((persistent > 0).then(|| format!(", {persistent} with persistent modules")));
    words.extend((untold > 0).then(|| format!(", {untold} unreported")));
    words.extend(population.dimm_platform.as_ref().map(|family| format!("; {}", plain(family, 80))));
    lines.extend(wrapped(head, &words.concat(), style.width, "  "));
    let sockets = population.dimm_sockets.iter().take(SOCKETS);
    let boxes: Vec<Vec<Line>> = sockets.map(|socket| socket_box(socket, &machine.dimms, style)).collect();
    flow(&mut lines, boxes, style.width);
    if population.dimm_sockets.len() > SOCKETS {
        let more = population.dimm_sockets.len() - SOCKETS;
        lines.push(Line::of(Role::Muted, format!("… and {more} more sockets (all of them in --json)")));
    }
    for finding in &population.dimm_findings {
        let role = if finding.severity == Severity::Note { Role::Muted } else { Role::Warning };
        let head = Line::of(role, format!("{:<INDENT$}", finding.severity.word()));
        lines.extend(wrapped(head, &plain(&finding.text, 600), style.width, &" ".repeat(INDENT)));
    }
    let remedy = population.dimm_move.iter().map(|text| ("what to do", text));
    for (name, text) in remedy.chain(population.dimm_remarks.iter().map(|text| ("note", text))) {
        let head = Line::of(Role::Title, format!("{name:<INDENT$}"));
        lines.extend(wrapped(head, &plain(text, 600), style.width, &" ".repeat(INDENT)));
    }
    lines
}

fn socket_box(socket: &SocketMemory, dimms: &[Dimm], style: &Style) -> Vec<Line> {
    let own: Vec<&Dimm> = dimms.iter().filter(|dimm| dimm.socket == Some(socket.socket)).collect();
    let shared = shared_words(&own);
    let mut channels: BTreeMap<(Option<u32>, u32), Vec<&Dimm>> = BTreeMap::new();
    for dimm in &own {
        if let Some(channel) = dimm.channel {
            channels.entry((dimm.controller, channel)).or_default().push(dimm);
        }
    }
    let mut lines = Vec::new();
    let cpu = socket.cpu.as_deref().map_or("processor unknown".to_string(), |cpu| plain(cpu, 40));
    lines.push(Line::of(Role::Plain, cpu));
    let mut last = None;
    for ((controller, channel), mut slots) in channels {
        slots.sort_by_key(|dimm| dimm.slot_in_channel);
        if controller != last {
            last = controller;
            lines.extend(
                controller.map(|controller| Line::of(Role::Muted, format!("controller {controller}"))),
            );
        }
        let mut line = Line::of(Role::Muted, format!("  channel {channel:<3}"));
        for dimm in slots {
            let name = plain(dimm.name().strip_prefix(shared.as_str()).unwrap_or(dimm.name()), NAME);
            let (role, text) = match dimm.size_bytes {
                Some(0) => (Role::Muted, "empty".to_string()),
                Some(bytes) => (Role::Cpu, size(bytes)),
                None => (Role::Cpu, "size unknown".to_string()),
            };
            line.push(role, format!("{:<14}", format!("{name} {text}")));
        }
        lines.push(line);
    }
    let mut title = format!("socket {}: {}", socket.socket, size(socket.bytes));
    if !shared.is_empty() {
        title.push_str(&format!(" in {}…", plain(shared.trim_end(), NAME)));
    }
    if let Some((now, all)) = socket.gb_per_s.zip(socket.gb_per_s_all_channels) {
        let of = if now < all { format!(" of {all:.0}") } else { String::new() };
        lines.push(Line::of(Role::Plain, format!("at most {now:.0}{of} GB/s")));
    }
    frame(lines, &title, 0, style)
}

/// What all names of a socket's slots begin with, up to a mark between words.
fn shared_words(dimms: &[&Dimm]) -> String {
    let Some(first) = dimms.first().map(|dimm| dimm.name()) else { return String::new() };
    let mut length = first.len();
    for dimm in dimms {
        let same = first.bytes().zip(dimm.name().bytes()).take_while(|(one, other)| one == other).count();
        length = length.min(same);
    }
    let shared = first.get(..length).unwrap_or("");
    let end = shared.rfind([' ', '_', '-']).map_or(0, |at| at + 1);
    if dimms.len() > 1 { shared[..end].to_string() } else { String::new() }
}
