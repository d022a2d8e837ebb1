//! The tree of a host as nested boxes, folded until it fits.

use diagnose::words::counted;
use std::collections::BTreeSet;

use machine::Machine;
use model::CpuSet;

use super::Style;
use super::facts::size;
use super::line::{Line, Role};
use crate::plain::plain;
use crate::tree::{Item, Part, build, part_name};

/// Different shapes beside each other that are drawn before the rest is only counted.
const SHAPES: usize = 6;

pub(super) struct Drawing<'a> {
    machine: &'a Machine,
    style: Style,
    root: Item,
    crossing: Vec<String>,
}

/// Heights of items of which equal ones are drawn once.
type Folds = Vec<usize>;

impl<'a> Drawing<'a> {
    pub fn new(machine: &'a Machine, style: Style) -> Drawing<'a> {
        let (root, crossing) = build(machine);
        Drawing { machine, style, root, crossing }
    }

    /// The boxes in at most `lines` lines if folding can achieve it: first alike cores become a
    /// list, then alike packages are drawn once, then what is between.
    pub fn fit(&self, lines: usize) -> Vec<Line> {
        if self.root.cpus.is_empty() {
            return vec![Line::of(Role::Muted, "CPUs unknown")];
        }
        let mut drawn = Vec::new();
        for folds in foldings(self.root.height()) {
            drawn = self.draw(&folds);
            if drawn.len() <= lines {
                break;
            }
        }
        for crossing in self.crossing.iter().take(3) {
            let text = format!("not drawn, fits no other box: {}", plain(crossing, 200));
            drawn.push(Line::of(Role::Warning, plain(&text, self.style.width)));
        }
        drawn
    }

    fn draw(&self, folds: &Folds) -> Vec<Line> {
        if self.root.parts.is_empty() && !self.root.children.is_empty() {
            self.inside(&self.root, self.style.width, folds)
        } else {
            let (title, lines) = self.content(&[&self.root], self.style.width - 4, folds);
            frame(lines, &title, 0, &self.style)
        }
    }

    /// What stands in one box for an item, or for several alike: its title and the lines inside.
    fn content(&self, items: &[&Item], width: usize, folds: &Folds) -> (String, Vec<Line>) {
        let Some(first) = items.first() else { return (String::new(), Vec::new()) };
        let title = match items.len() {
            1 => self.title(first),
            count => format!("{count} × {}", self.title_of_many(items)),
        };
        let mut lines = Vec::new();
        if items.len() > 1 {
            lines.push(Line::of(Role::Cpu, self.cpu_lists(items, width)));
        }
        lines.extend(self.inside(first, width, folds));
        (plain(&title, width), lines)
    }

    /// What stands inside an item's box.
    fn inside(&self, item: &Item, width: usize, folds: &Folds) -> Vec<Line> {
        if item.children.is_empty() {
            return vec![Line::of(Role::Cpu, plain(&format!("CPUs {}", item.cpus), width))];
        }
        let groups = groups(&item.children, folds);
        let shapes: BTreeSet<usize> = item.children.iter().map(|child| child.shape).collect();
        let many = !folds.is_empty() && shapes.len() > SHAPES;
        let shown = if many { SHAPES.min(groups.len()) } else { groups.len() };
        let mut lines = Vec::new();
        let mut boxes: Vec<(String, Vec<Line>)> = Vec::new();
        for group in &groups[..shown] {
            if group[0].children.is_empty() && group[0].is_core() {
                self.flow(&mut lines, std::mem::take(&mut boxes), width);
                lines.extend(self.cores(group, width, folds.contains(&0)));
            } else {
                boxes.push(self.content(group, width.saturating_sub(4), folds));
            }
        }
        self.flow(&mut lines, boxes, width);
        if shown < groups.len() {
            let rest: usize = groups[shown..].iter().map(Vec::len).sum();
            lines.push(Line::of(Role::Muted, format!("… and {rest} more of other shapes")));
        }
        let uncovered = item.uncovered();
        if !uncovered.is_empty() {
            lines.push(Line::of(Role::Cpu, plain(&format!("CPUs {uncovered}"), width)));
        }
        lines
    }

    /// Boxes of one width side by side as long as they fit, then in the next row.
    fn flow(&self, lines: &mut Vec<Line>, boxes: Vec<(String, Vec<Line>)>, width: usize) {
        let wide = |(title, content): &(String, Vec<Line>)| inner_width(content, title);
        let widest = boxes.iter().map(wide).max().unwrap_or(0);
        // One much wider box must not blow up the others.
        let narrowest = boxes.iter().map(wide).min().unwrap_or(0);
        let least = if widest <= narrowest + narrowest / 4 { widest } else { 0 };
        let framed = boxes.into_iter().map(|(title, content)| frame(content, &title, least, &self.style));
        flow(lines, framed.collect(), width);
    }

    /// Alike cores: a line that says what each has, then a cell of CPUs for each, or a list of
    /// them.
    fn cores(&self, cores: &[&Item], width: usize, folded: bool) -> Vec<Line> {
        let each: Vec<String> =
            cores[0].parts.iter().filter(|part| **part != Part::Core).map(part_name).collect();
        let mut said = counted(cores.len(), "core");
        if cores[0].cpus.len() > 1 {
            said.push_str(&format!(" × {} threads", cores[0].cpus.len()));
        }
        if !each.is_empty() {
            said.push_str(&format!(": {}", each.join(", ")));
            said.push_str(if cores.len() > 1 { " each" } else { "" });
        }
        let mut lines = vec![Line::of(Role::Plain, plain(&said, width))];
        if folded {
            lines.push(Line::of(Role::Cpu, self.cpu_lists(cores, width)));
        } else {
            let cells: Vec<Line> = cores.iter().map(|core| self.cpus(&core.cpus)).collect();
            let widest = cells.iter().map(Line::width).max().unwrap_or(0);
            let cells = cells.into_iter().map(|mut cell| {
                cell.pad(widest);
                frame(vec![cell], "", 0, &self.style)
            });
            flow(&mut lines, cells.collect(), width);
        }
        lines
    }

    /// CPU numbers, those that this process may not use in brackets.
    fn cpus(&self, cpus: &CpuSet) -> Line {
        let mut line = Line::default();
        for (at, cpu) in cpus.iter().enumerate() {
            let gap = if at > 0 { " " } else { "" };
            if self.machine.cpus.allowed.contains(cpu) {
                line.push(Role::Cpu, format!("{gap}{cpu}"))
            } else {
                line.push(Role::Muted, format!("{gap}({cpu})"))
            }
        }
        line
    }

    /// The CPUs of each of several items, the middle left out where it does not fit.
    fn cpu_lists(&self, items: &[&Item], width: usize) -> String {
        let lists: Vec<String> = items.iter().map(|item| item.cpus.to_string()).collect();
        let all = format!("CPUs {}", lists.join(" · "));
        if all.chars().count() <= width {
            return all;
        }
        let last = lists.last().map(String::as_str).unwrap_or("");
        let mut text = format!("CPUs {}", lists[0]);
        for list in &lists[1..lists.len() - 1] {
            let longer = format!("{text} · {list}");
            if longer.chars().count() + last.chars().count() + 7 > width {
                break;
            }
            text = longer;
        }
        plain(&format!("{text} · … · {last}"), width)
    }

    fn title(&self, item: &Item) -> String {
        let named = |part: &Part| match part {
            Part::Node(id) => match self.memory(*id) {
                Some(bytes) => format!("node {id} ({})", size(bytes)),
                None => format!("node {id}"),
            },
            other => part_name(other),
        };
        item.parts.iter().map(named).collect::<Vec<_>>().join(", ")
    }

    fn memory(&self, id: u32) -> Option<u64> {
        self.machine.nodes.iter().find(|node| node.id == id)?.total_bytes
    }

    fn title_of_many(&self, items: &[&Item]) -> String {
        let first = items[0];
        let numbers = |pick: &dyn Fn(&Part) -> Option<u32>| -> CpuSet {
            items.iter().flat_map(|item| item.parts.iter().filter_map(pick)).collect()
        };
        let named = |part: &Part| match part {
            Part::Package(_) => {
                let ids = numbers(&|part| match part {
                    Part::Package(id) => u32::try_from(*id).ok(),
                    _ => None,
                });
                format!("package ({})", plain(&ids.to_string(), 24))
            }
            Part::Node(_) => {
                let ids = numbers(&|part| match part {
                    Part::Node(id) => Some(*id),
                    _ => None,
                });
                let sizes: Vec<u64> = ids.iter().filter_map(|id| self.memory(id)).collect();
                let range = match (sizes.iter().min(), sizes.iter().max()) {
                    (Some(low), Some(high)) if size(*low) == size(*high) => format!(", {} each", size(*low)),
                    (Some(low), Some(high)) => format!(", {}–{}", size(*low), size(*high)),
                    _ => String::new(),
                };
                format!("node ({}{range})", plain(&ids.to_string(), 24))
            }
            other => part_name(other),
        };
        let cores = count_cores(first);
        let mut title = first.parts.iter().map(named).collect::<Vec<_>>().join(", ");
        if cores > 1 {
            title.push_str(&format!(": {cores} cores each"));
        }
        if !first.children.is_empty() {
            title.push_str(", first drawn");
        }
        title
    }
}

/// Alike neighbours; where they are folded, alike items wherever they stand.
fn groups<'i>(children: &'i [Item], folds: &Folds) -> Vec<Vec<&'i Item>> {
    let mut groups: Vec<Vec<&Item>> = Vec::new();
    for child in children {
        let leaf = child.children.is_empty() && child.is_core();
        let folded = folds.contains(&child.height());
        let mut known = groups.iter_mut().rev();
        let same = |group: &&mut Vec<&Item>| group[0].shape == child.shape;
        let group = match (folded, leaf) {
            (true, _) => known.find(same),
            (false, true) => known.next().filter(same),
            (false, false) => None,
        };
        match group {
            Some(group) => group.push(child),
            None => groups.push(vec![child]),
        }
    }
    groups
}

fn count_cores(item: &Item) -> usize {
    if item.is_core() { 1 } else { item.children.iter().map(count_cores).sum() }
}

/// Ways to fold a tree of this height, the least folded first.
fn foldings(height: usize) -> Vec<Folds> {
    let mut ways = vec![vec![], vec![0]];
    let mut outer = Vec::new();
    for level in (1..height).rev() {
        outer.push(level);
        ways.push(outer.clone());
        ways.push([outer.as_slice(), &[0]].concat());
    }
    ways
}

fn inner_width(lines: &[Line], title: &str) -> usize {
    lines.iter().map(Line::width).max().unwrap_or(0).max(title.chars().count())
}

/// A box around lines, as wide as its content and title need, at least `least` inside.
pub(super) fn frame(lines: Vec<Line>, title: &str, least: usize, style: &Style) -> Vec<Line> {
    let title_width = title.chars().count();
    let inner = inner_width(&lines, title).max(least).min(style.width.saturating_sub(4));
    let mut top = Line::of(Role::Frame, "┌");
    match title_width {
        0 => top.push(Role::Frame, "─".repeat(inner + 2)),
        _ => {
            top.push(Role::Title, format!(" {title} "));
            top.push(Role::Frame, "─".repeat(inner.saturating_sub(title_width)));
        }
    }
    top.push(Role::Frame, "┐");
    let mut framed = vec![top];
    for mut line in lines {
        line.cut(inner);
        line.pad(inner);
        let mut row = Line::of(Role::Frame, "│ ");
        row.append(line);
        row.push(Role::Frame, " │");
        framed.push(row);
    }
    framed.push(Line::of(Role::Frame, format!("└{}┘", "─".repeat(inner + 2))));
    framed
}

/// Blocks side by side as long as they fit, then in the next row.
pub(super) fn flow(lines: &mut Vec<Line>, blocks: Vec<Vec<Line>>, width: usize) {
    let mut row: Vec<Vec<Line>> = Vec::new();
    let mut used = 0;
    for block in blocks {
        let wide = block.iter().map(Line::width).max().unwrap_or(0);
        if !row.is_empty() && used + 1 + wide > width {
            beside(lines, std::mem::take(&mut row));
            used = 0;
        }
        used += wide + usize::from(!row.is_empty());
        row.push(block);
    }
    beside(lines, row);
}

fn beside(lines: &mut Vec<Line>, row: Vec<Vec<Line>>) {
    let height = row.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        row.iter().map(|block| block.iter().map(Line::width).max().unwrap_or(0)).collect();
    for at in 0..height {
        let mut line = Line::default();
        for (block, wide) in row.iter().zip(&widths) {
            if line.width() > 0 {
                line.push(Role::Plain, " ");
            }
            let end = line.width() + wide;
            block.get(at).into_iter().for_each(|part| line.append(part.clone()));
            line.pad(end);
        }
        lines.push(line);
    }
}
