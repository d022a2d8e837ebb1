//! Matrices: of pairs of CPUs, and of nodes and memories.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::figures::value_words;
use super::names::{Subject, label, told_apart, traits_with_place};
use super::topology::Places;
use super::{column, number, right, text};
use crate::block::{Block, Cell, Chart, ChartKind, Column, Section, Side, Table};
use diagnose::Diagnosis;
use diagnose::words::figure;
use machine::Machine;
use model::{Better, Case, Metric, Title, Value, VerdictKind, unit_words};
use stats::analysis::Judged;
use stats::order::median;

/// More cells than the pairs of 2048 CPUs only a damaged file has.
const MOST_CELLS: usize = 1 << 22;

/// A matrix of at most this many rows and columns is read as a table.
pub const SMALL: usize = 8;

/// More rows of pairs than this nobody reads.
const MOST_PAIRS: usize = 500;

/// One matrix of a benchmark: cases that differ in its two parameters only.
pub struct Grid<'a> {
    /// In what it differs from the benchmark's other matrices; empty where it is the only one.
    pub name: String,
    pub metric: &'a Metric,
    pub rows: Vec<Value>,
    pub columns: Vec<Value>,
    /// What was measured, in series order.
    pub pairs: Vec<Pair<'a>>,
    params: [&'a str; 2],
    /// Only one direction of each pair was measured, and both are the same.
    mirrored: bool,
}

/// One measured cell.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub row: usize,
    pub column: usize,
    pub median: f64,
    pub judged: &'a Judged,
}

impl Pair<'_> {
    pub fn rejected(&self) -> bool {
        self.judged.analysis.verdict.kind == VerdictKind::Rejected
    }
}

/// The matrices of a benchmark, each with something measured.
pub fn grids<'a>(diagnosis: &'a Diagnosis, title: &'a Title, params: [&'a str; 2]) -> Vec<Grid<'a>> {
    let Some(metric) = title.metrics.iter().find(|metric| metric.headline) else { return Vec::new() };
    let own = diagnosis.series.iter().filter(|judged| {
        let series = &judged.series;
        series.case.bench == title.id
            && series.metric.name == metric.name
            && judged.analysis.figure().is_some()
    });
    let mut groups: Vec<(Case, Vec<&Judged>)> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut last: Option<(usize, usize)> = None;
    for judged in own {
        // One case may have a hundred thousand pairs: it is looked at once.
        let group = match last {
            Some((planned, group)) if planned == judged.series.planned => group,
            _ => {
                let mut rest = judged.series.case.clone();
                rest.params.retain(|name, _| !params.contains(&name.as_str()));
                let key = format!("{:?}", traits_with_place(&rest));
                *seen.entry(key).or_insert_with(|| {
                    groups.push((rest, Vec::new()));
                    groups.len() - 1
                })
            }
        };
        last = Some((judged.series.planned, group));
        groups[group].1.push(judged);
    }
    let names = match groups.len() {
        0 | 1 => vec![String::new(); groups.len()],
        _ => told_apart(&groups.iter().map(|(case, _)| case).collect::<Vec<_>>()),
    };
    let grids = groups.into_iter().zip(names).map(|((_, judged), name)| grid(name, metric, params, &judged));
    grids.filter(|grid| !grid.pairs.is_empty()).collect()
}

fn grid<'a>(name: String, metric: &'a Metric, params: [&'a str; 2], judged: &[&'a Judged]) -> Grid<'a> {
    let cells: Vec<(Value, Value, &Judged)> = judged
        .iter()
        .filter_map(|judged| {
            let series = &judged.series;
            let of =
                |name: &str| series.point.named(name).or_else(|| series.case.params.named(name)).cloned();
            Some((of(params[0])?, of(params[1])?, *judged))
        })
        .collect();
    let (rows, columns) = (cells.iter().map(|cell| &cell.0), cells.iter().map(|cell| &cell.1));
    let square = Subject::of(params[0]) == Subject::Cpu && Subject::of(params[1]) == Subject::Cpu;
    let (rows, columns) = match square {
        true => (distinct(rows.clone().chain(columns.clone())), distinct(rows.chain(columns))),
        false => (distinct(rows), distinct(columns)),
    };
    let index = |values: &[Value]| -> HashMap<String, usize> {
        values.iter().enumerate().map(|(index, value)| (value.to_string(), index)).collect()
    };
    let (row_index, column_index) = (index(&rows), index(&columns));
    let pairs: Vec<Pair> = cells
        .iter()
        .filter_map(|(row, column, judged)| {
            let (row, column) = (*row_index.get(&row.to_string())?, *column_index.get(&column.to_string())?);
            Some(Pair { row, column, median: judged.analysis.figure()?.median, judged })
        })
        .collect();
    let there: HashSet<(usize, usize)> = pairs.iter().map(|pair| (pair.row, pair.column)).collect();
    let both_ways = |pair: &Pair| pair.row != pair.column && there.contains(&(pair.column, pair.row));
    let mirrored = square && !pairs.iter().any(both_ways);
    Grid { name, metric, rows, columns, pairs, params, mirrored }
}

/// Each value once, numbers by size and before texts.
fn distinct<'a>(values: impl Iterator<Item = &'a Value>) -> Vec<Value> {
    let unique: BTreeMap<String, &Value> = values.map(|value| (value.to_string(), value)).collect();
    let mut values: Vec<Value> = unique.into_values().cloned().collect();
    values.sort_by(|one, other| {
        let number = |value: &Value| value.number().unwrap_or(f64::INFINITY);
        number(one).total_cmp(&number(other))
    });
    values
}

impl<'a> Grid<'a> {
    pub fn is_small(&self) -> bool {
        self.rows.len() <= SMALL && self.columns.len() <= SMALL
    }

    fn cpus(&self, pair: &Pair) -> Option<[u32; 2]> {
        let both = [&self.rows[pair.row], &self.columns[pair.column]];
        let cpu = |at: usize| match Subject::of(self.params[at]) {
            Subject::Cpu => u32::try_from(both[at].int()?).ok(),
            _ => None,
        };
        Some([cpu(0)?, cpu(1)?])
    }

    /// How far the two are apart, with a number that rises with the distance; CPUs by their place,
    /// nodes by what firmware says.
    fn relation(&self, machine: &Machine, places: &Places, pair: &Pair) -> Option<(u32, String)> {
        if let Some([one, other]) = self.cpus(pair) {
            let (rank, name) = places.relation(one, other);
            return Some((rank, name.to_string()));
        }
        if self.params.map(Subject::of) != [Subject::Node; 2] {
            return None;
        }
        let [from, to] = [&self.rows[pair.row], &self.columns[pair.column]].map(Value::int);
        let at = |id: Option<i64>| machine.nodes.iter().position(|node| Some(i64::from(node.id)) == id);
        let distance = *machine.nodes[at(from)?].distances.get(at(to)?)?;
        Some((distance, if from == to { "local".into() } else { format!("distance {distance}") }))
    }

    /// The pairs by distance, nearest first; one nameless group where nothing tells of distances.
    pub fn by_relation(&self, machine: &Machine) -> Vec<(String, Vec<Pair<'a>>)> {
        let places = Places::of(machine);
        let mut groups: BTreeMap<(u32, String), Vec<Pair>> = BTreeMap::new();
        for pair in &self.pairs {
            let relation = self.relation(machine, &places, pair).unwrap_or((u32::MAX, String::new()));
            groups.entry(relation).or_default().push(*pair);
        }
        groups.into_iter().map(|((_, name), pairs)| (name, pairs)).collect()
    }

    fn side(&self, places: &Places, at: usize) -> Side {
        let values = if at == 0 { &self.rows } else { &self.columns };
        let subject = Subject::of(self.params[at]);
        let labels = values.iter().map(|value| side_label(subject, value)).collect();
        let mut topology_order: Vec<usize> = (0..values.len()).collect();
        if subject == Subject::Cpu {
            topology_order.sort_by_key(|index| {
                values[*index].int().and_then(|cpu| u32::try_from(cpu).ok()).map(|cpu| places.rank(cpu))
            });
        }
        // CPUs say themselves what they are.
        let title = if subject == Subject::Cpu { String::new() } else { side_title(self.params[at]) };
        Side { title, labels, topology_order }
    }

    /// The values as a table, for terminals.
    pub fn table(&self, name: &str) -> Table {
        let [rows, columns] = self.params.map(Subject::of);
        let mut titles = vec![column(&format!("{name}, {}", unit_words(&self.metric.unit)))];
        titles.extend(self.columns.iter().map(|value| {
            right(&match self.params[1] {
                "memory" => format!("memory {value}"),
                _ => side_label(columns, value),
            })
        }));
        let mut cells = vec![vec![Cell::Empty; self.columns.len()]; self.rows.len()];
        for pair in &self.pairs {
            let words = if pair.rejected() { "rejected".to_string() } else { figure(pair.median, "") };
            if self.mirrored && pair.row != pair.column {
                cells[pair.column][pair.row] = number(words.clone());
            }
            cells[pair.row][pair.column] = number(words);
        }
        let rows = self.rows.iter().zip(cells).map(|(value, cells)| {
            std::iter::once(text(side_label(rows, value))).chain(cells).collect::<Vec<Cell>>()
        });
        Table::new(titles, rows)
    }
}

fn side_label(subject: Subject, value: &Value) -> String {
    match subject {
        Subject::Cpu => format!("CPU {value}"),
        Subject::Node => format!("node {value}"),
        _ => value.to_string(),
    }
}

fn side_title(param: &str) -> String {
    match param {
        "node" => "CPUs of".into(),
        "memory" => "memory of".into(),
        other => other.to_string(),
    }
}

/// The best pair last: of several equal ones any.
pub fn from_worst_to_best(pairs: &mut [Pair], better: Better) {
    pairs.sort_by(|one, other| one.median.total_cmp(&other.median));
    if better == Better::Lower {
        pairs.reverse();
    }
}

pub fn section(diagnosis: &Diagnosis, title: &Title, params: [&str; 2]) -> Option<Section> {
    let grids = grids(diagnosis, title, params);
    let id = title.id.replace('.', "-");
    let mut blocks = Vec::new();
    for (index, grid) in grids.iter().enumerate() {
        let chart_id = if index == 0 { format!("chart-{id}") } else { format!("chart-{id}-{index}") };
        let (chart, left_out) = chart(diagnosis, title, grid, chart_id);
        blocks.push(chart.into());
        blocks.extend(left_out.map(Block::Prose));
    }
    Section::new(id, &*title.title, blocks).about(&*title.reading).long().unless_empty()
}

/// The drawing with its pairs, and what the table of pairs leaves out.
fn chart(diagnosis: &Diagnosis, title: &Title, grid: &Grid, id: String) -> (Chart, Option<String>) {
    let places = Places::of(&diagnosis.machine);
    let [rows, columns] = [0, 1].map(|at| grid.side(&places, at));
    let fits = rows.labels.len().saturating_mul(columns.labels.len()) <= MOST_CELLS;
    let mut values = match fits {
        true => vec![vec![None; columns.labels.len()]; rows.labels.len()],
        false => Vec::new(),
    };
    let mut rejected = Vec::new();
    for pair in grid.pairs.iter().filter(|_| fits) {
        let mut put = |row: usize, column: usize| match pair.rejected() {
            true => rejected.push([row, column]),
            false => values[row][column] = Some(pair.median),
        };
        put(pair.row, pair.column);
        if grid.mirrored && pair.row != pair.column {
            put(pair.column, pair.row);
        }
    }
    let (data, left_out) = pair_table(diagnosis, grid, &places);
    let suffix = if grid.name.is_empty() { String::new() } else { format!(", {}", grid.name) };
    let mirrored = if grid.mirrored { " Each pair was measured once and appears on both sides." } else { "" };
    let chart = Chart {
        id,
        title: format!("{}{suffix}", title.title),
        about: format!(
            "Medians of {} pairs: {}, {}. Crossed out: rejected; empty: not measured.{mirrored}",
            grid.pairs.len(),
            grid.metric.title,
            unit_words(&grid.metric.unit)
        ),
        kind: ChartKind::Matrix {
            unit: unit_words(&grid.metric.unit).to_string(),
            rows,
            columns,
            values,
            rejected,
        },
        summary: distances(diagnosis, grid),
        data,
    };
    (chart, left_out)
}

/// The pairs as rows: what is wrong first, then the worst.
fn pair_table(diagnosis: &Diagnosis, grid: &Grid, places: &Places) -> (Table, Option<String>) {
    let mut shown = grid.pairs.clone();
    if shown.len() > MOST_PAIRS {
        from_worst_to_best(&mut shown, grid.metric.better);
        shown.sort_by_key(|pair| pair.judged.analysis.verdict.kind == VerdictKind::Trusted);
    }
    let left_out = shown.len().saturating_sub(MOST_PAIRS);
    shown.truncate(MOST_PAIRS);
    let rows = shown.iter().map(|pair| {
        let estimate = pair.judged.analysis.figure();
        let [row, column] = [0, 1].map(|at| Subject::of(grid.params[at]));
        let relation = grid.relation(&diagnosis.machine, places, pair).unwrap_or_default();
        vec![
            text(side_label(row, &grid.rows[pair.row])),
            text(side_label(column, &grid.columns[pair.column])),
            text(relation.1),
            number(value_words(pair.judged)),
            number(estimate.map_or(String::new(), |estimate| estimate.n.to_string())),
            Cell::Verdict(pair.judged.analysis.verdict.clone()),
        ]
    });
    let titles = grid.params.map(side_title);
    let columns: Vec<Column> = vec![
        column(&titles[0]),
        column(&titles[1]),
        column("apart"),
        right("median (95 %)"),
        right("n"),
        column("verdict"),
    ];
    let table = Table::new(columns, rows).folded();
    let note = (left_out > 0).then(|| {
        format!(
            "The table lists the {MOST_PAIRS} pairs that are not fully trusted or worst. \
                 The other {left_out} are in the run's JSON (element assay-report of this page, report.json), as series \
                 of {}.",
            diagnosis.series.iter().find(|judged| std::ptr::eq(*judged, grid.pairs[0].judged)).map_or_else(
                String::new,
                |judged| judged.series.case.key()
            )
        )
    });
    (table, note)
}

/// What pairs at each distance have in common, where there is more than one distance.
fn distances(diagnosis: &Diagnosis, grid: &Grid) -> Option<Table> {
    let groups = grid.by_relation(&diagnosis.machine);
    if groups.len() < 2 || grid.pairs.len() < 4 {
        return None;
    }
    let rows = groups.into_iter().filter_map(|(name, pairs)| {
        let good: Vec<f64> = pairs.iter().filter(|pair| !pair.rejected()).map(|pair| pair.median).collect();
        let unit = &grid.metric.unit;
        let ends =
            [good.iter().copied().reduce(f64::min)?, median(&good)?, good.iter().copied().reduce(f64::max)?];
        let [low, middle, high] = ends.map(|value| number(figure(value, unit)));
        let name = if name.is_empty() { "unknown".to_string() } else { name };
        Some(vec![text(name), number(good.len().to_string()), low, middle, high])
    });
    let columns = vec![column("apart"), right("pairs"), right("lowest"), right("median"), right("highest")];
    Some(Table::new(columns, rows))
}

/// The series that stand for a large matrix, with what to call them: of each distance the median
/// pair, or, where distances are unknown, the best, the median and the worst pair.
pub fn summary<'a>(diagnosis: &'a Diagnosis, grid: &Grid<'a>) -> Vec<(&'a Judged, String, Option<String>)> {
    let called = |pair: &Pair<'a>, what: &str| {
        let name = label(diagnosis, pair.judged);
        (pair.judged, format!("{name} ({what})"))
    };
    let groups = grid.by_relation(&diagnosis.machine);
    let several = groups.len() > 1;
    let mut rows = Vec::new();
    for (apart, mut pairs) in groups {
        if pairs.iter().any(|pair| !pair.rejected()) {
            pairs.retain(|pair| !pair.rejected());
        }
        from_worst_to_best(&mut pairs, grid.metric.better);
        let count = pairs.len();
        let middle = called(&pairs[count / 2], &format!("median of {count}"));
        if several {
            rows.push((middle.0, middle.1, Some(apart)));
            continue;
        }
        let (best, worst) = (called(&pairs[count - 1], "best"), called(&pairs[0], "worst"));
        rows.extend([best, middle, worst].map(|(judged, name)| (judged, name, None)));
    }
    rows
}

#[cfg(test)]
mod tests;
