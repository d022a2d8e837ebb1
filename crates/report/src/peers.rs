//! Hosts beside their peers, as JSON and as a report of its own.

mod screen;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::block::{
    Block, Cell, Check, CheckMark, Column, FINDINGS, RESULTS, Report, Section, Table, column, columns, right,
};
use super::comparing::hosts;
use super::json;
use compare::peers::{Difference, Followed, Group, MIN_HOSTS, Peers, Score, limit};
use diagnose::words::counted;
use model::{Finding, SCHEMA, percent};

/// Rows of a table that is not asked for as a whole; findings in a terminal.
const SHOWN: usize = 30;

/// What `assay peers --json` gives.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Output<'p> {
    pub schema: u32,
    /// Version of the binary that wrote this.
    pub assay: String,
    /// The first screen's.
    pub verdict: json::bottom_line::OutputVerdict,
    /// Results that were used, older ones of a host included.
    pub runs: usize,
    /// Hosts that were compared with at least eight others of their make, or nearly so.
    pub judged: usize,
    /// The largest first.
    pub groups: Vec<OutputGroup>,
    /// In the order in which their results were given.
    #[schemars(with = "Vec<OutputHost>")]
    pub hosts: OutputHosts<'p>,
    /// Labels that hosts behind their peers share and others mostly do not, the surest first.
    pub followed: Vec<Followed>,
    /// The gravest first, of one severity the slowest.
    pub findings: Vec<Finding>,
    /// What is to be known before anything is read.
    pub warnings: Vec<String>,
    pub left_out: Vec<json::LeftOutFile>,
}

/// Hosts of one make-up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputGroup {
    pub name: String,
    pub hosts: Vec<String>,
    /// Label and value.
    pub make_up: Vec<(String, String)>,
    /// Fields that some of its hosts do not report, and how many.
    pub untold: Vec<(String, usize)>,
    /// Whether it has the eight hosts without which nothing can be called an outlier.
    pub judged: bool,
    /// Limit of robust z for this number of hosts; null if the group is not compared.
    pub limit: Option<f64>,
    /// The group that a smaller one is compared with, and in what the two differ; null where there
    /// is none.
    pub near: Option<OutputNear>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputNear {
    pub group: String,
    pub differences: Vec<Difference>,
}

/// A host and its peers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputHost {
    pub host: String,
    pub file: String,
    pub started: String,
    pub boot_id: Option<String>,
    /// Of `--label`.
    pub labels: BTreeMap<String, String>,
    pub group: String,
    /// The group that it was compared with: its own, or the nearest; null where there is none.
    pub against: Option<String>,
    /// Other hosts in that group.
    pub peers: usize,
    /// Older results of it.
    pub earlier: usize,
    pub flagged: bool,
    pub scores: Vec<Score>,
    /// Benchmarks in which it is far behind, the worst first.
    pub flags: Vec<OutputFlag>,
    /// Ratios of its older results in its worst part, the newest first.
    pub history: Vec<f64>,
}

/// The hosts, each made as it is written: there may be a million.
#[derive(Clone, Debug)]
pub struct OutputHosts<'p>(&'p Peers);

impl<'p> OutputHosts<'p> {
    pub fn iter(&self) -> impl Iterator<Item = OutputHost> + use<'p> {
        let peers = self.0;
        (0..peers.fleet.hosts.len()).map(|place| host(peers, place))
    }
}

impl Serialize for OutputHosts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputFlag {
    pub key: String,
    pub ratio: f64,
    pub z: f64,
    pub peers: usize,
}

pub fn output(peers: &Peers) -> Output<'_> {
    let fleet = &peers.fleet;
    let group = |group: &Group| OutputGroup {
        name: group.name.clone(),
        hosts: group.hosts.iter().map(|place| fleet.hosts[*place].name.clone()).collect(),
        make_up: group.make_up.clone(),
        untold: group.unreported.clone(),
        judged: group.is_judged(),
        limit: limit(group.hosts.len()),
        near: group.near.as_ref().map(|near| OutputNear {
            group: peers.groups[near.group].name.clone(),
            differences: near.differences.clone(),
        }),
    };
    Output {
        schema: SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        verdict: json::bottom_line::OutputVerdict::of(&screen::screen(peers)),
        runs: fleet.hosts.iter().map(|host| 1 + host.earlier.len()).sum(),
        judged: peers.judged(),
        groups: peers.groups.iter().map(group).collect(),
        hosts: OutputHosts(peers),
        followed: peers.followed.clone(),
        findings: peers.findings.clone(),
        warnings: warnings(peers),
        left_out: json::left_out_files(&fleet.left_out),
    }
}

fn host(peers: &Peers, place: usize) -> OutputHost {
    let (host, standing) = (&peers.fleet.hosts[place], &peers.standings[place]);

    let flags = standing.flags.iter().map(|flag| OutputFlag {
        key: peers.fleet.metrics[flag.metric].key.clone(),
        ratio: flag.ratio,
        z: flag.z,
        peers: flag.peers,
    });
    OutputHost {
        host: host.name.clone(),
        file: host.file.clone(),
        started: host.started.clone(),
        boot_id: host.boot_id.clone(),
        labels: host.labels.iter().map(|(label, value)| (label.to_string(), value.to_string())).collect(),
        group: peers.groups[standing.group].name.clone(),
        against: (standing.peers > 0).then(|| peers.groups[standing.against].name.clone()),
        peers: standing.peers,
        earlier: host.earlier.len(),
        flagged: standing.is_behind(),
        scores: standing.scores.clone(),
        flags: flags.collect(),
        history: standing.history.iter().map(|one| one.ratio).collect(),
    }
}

/// What is to be said before any figure.
fn warnings(peers: &Peers) -> Vec<String> {
    let mut all = of_the_fleet(peers);
    all.extend(peers.followed.iter().map(|one| one.words("hosts that are behind")));
    if !peers.groups.is_empty() && peers.judged() == 0 {
        all.push(format!("no group has {MIN_HOSTS} hosts: fewer hosts cannot show an outlier"));
    }
    all
}

/// What is to be known of the results that were given.
fn of_the_fleet(peers: &Peers) -> Vec<String> {
    let fleet = &peers.fleet;
    let mut all = Vec::new();
    let pretended = fleet.hosts.iter().filter(|host| host.pretended).count();
    if pretended > 0 {
        all.push(format!("the samples of {} were invented (--pretend)", counted(pretended, "host")));
    }
    let imported = fleet.hosts.iter().filter(|host| host.imported).count();
    if imported > 0 {
        all.push(format!(
            "the results of {} are imported: Assay did not watch the measurement",
            counted(imported, "host")
        ));
    }
    if fleet.twice > 0 {
        all.push(format!("given twice, counted once: {}", counted(fleet.twice, "result")));
    }
    let versions: BTreeSet<&str> = fleet.hosts.iter().map(|host| host.assay.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().filter(|version| !version.is_empty()).collect();
    if versions.len() > 1 {
        all.push(format!("measured by several versions of Assay: {}", versions.join(", ")));
    }
    if fleet.cut > 0 {
        all.push(format!("summaries that had no room for all figures: {}", fleet.cut));
    }
    if let Some((file, why)) = fleet.left_out.first() {
        let (count, name) = (fleet.left_out.len(), file.rsplit('/').next().unwrap_or(file));
        let first = if count == 1 { "" } else { "the first, " };
        let why = why.trim_end_matches('.');
        all.push(format!("left out: {}; {first}{name}: {why}", counted(count, "result")));
    }
    all
}

/// The report. `all`: every host, and not only those that were flagged.
pub fn report(peers: &Peers, all: bool) -> anyhow::Result<Report> {
    let fleet = &peers.fleet;
    let checks = warnings(peers).into_iter().map(|text| Check { mark: CheckMark::Care, text }).collect();
    let screen = screen::screen(peers);
    let overview = section("overview", "Who is behind", "", screen.blocks.clone());
    let mut sections = vec![Section { long: true, ..overview }, findings(peers, all), groups(peers, all)];
    sections.extend(hosts(peers, all));
    sections.extend(left_out(peers, all));
    let hosts = fleet.hosts.len();
    let behind = peers.standings.iter().filter(|standing| standing.is_behind()).count();
    Ok(Report {
        screen: Some(screen),
        tone: crate::screen::Tone::Plain,
        title: format!(
            "{} compared with {} peers",
            counted(hosts, "host"),
            if hosts == 1 { "its" } else { "their" }
        ),
        machine: format!(
            "{} in {}, {} judged",
            counted(hosts, "host"),
            counted(peers.groups.len(), "group"),
            peers.judged()
        ),
        subtitle: format!("{behind} behind their peers"),
        checks,
        sections,
        json: String::new(),
    })
}

/// Of more hosts a page has no JSON in it, which would make it larger than a browser takes.
const EMBEDDED: usize = 10_000;

/// The report as a page, which holds its JSON.
pub fn page(peers: &Peers, all: bool) -> anyhow::Result<Report> {
    let json = match peers.fleet.hosts.len() {
        ..=EMBEDDED => json::pretty(&output(peers))?,
        _ => String::new(),
    };
    Ok(Report { json, ..report(peers, all)? })
}

/// A table without the columns in which nothing stands: they take room from the others.
fn filled(mut columns: Vec<Column>, mut rows: Vec<Vec<Cell>>) -> Table {
    for place in (0..columns.len()).rev() {
        let is_empty = |row: &Vec<Cell>| match &row[place] {
            Cell::Text(text) | Cell::Number(text) => text.is_empty(),
            cell => matches!(cell, Cell::Empty),
        };
        if !rows.is_empty() && rows.iter().all(is_empty) {
            columns.remove(place);
            rows.iter_mut().for_each(|row| drop(row.remove(place)));
        }
    }
    Table::new(columns, rows)
}

fn section(id: &str, title: &str, about: &str, blocks: Vec<Block>) -> Section {
    Section::new(id, title, blocks).about(about)
}

/// The first rows, and how many there are besides.
fn cut(mut rows: Vec<Vec<Cell>>, all: bool) -> (Vec<Vec<Cell>>, Option<Block>) {
    let more = rows.len().saturating_sub(SHOWN);
    if all || more == 0 {
        return (rows, None);
    }
    rows.truncate(SHOWN);
    (rows, Some(Block::Prose(format!("And {more} more: --all shows them."))))
}

fn findings(peers: &Peers, all: bool) -> Section {
    let shown = if all { peers.findings.len() } else { SHOWN.min(peers.findings.len()) };
    let mut blocks = vec![Block::Findings(peers.findings[..shown].to_vec())];
    if peers.findings.is_empty() {
        let none = if peers.judged() == 0 { "No host was compared." } else { "No host is behind its peers." };
        blocks = vec![Block::Prose(none.to_string())];
    }
    if shown < peers.findings.len() {
        blocks.push(Block::Prose(format!("And {} more: --all shows them.", peers.findings.len() - shown)));
    }
    section(FINDINGS, "Findings", "", blocks)
}

fn groups(peers: &Peers, all: bool) -> Section {
    let row = |group: &Group| {
        let make_up: Vec<String> = group
            .make_up
            .iter()
            .map(|(label, value)| match label.as_str() {
                "memory_gib" => format!("memory {value} GiB"),
                label => format!("{} {value}", hosts::label(label)),
            })
            .collect();
        let said = match (&group.near, group.is_judged()) {
            (_, true) => match group.unreported.as_slice() {
                [] => String::new(),
                untold => {
                    let untold: Vec<String> =
                        untold.iter().map(|(label, count)| format!("{label} ({count})")).collect();
                    format!("not reported by all: {}", untold.join(", "))
                }
            },
            (Some(near), false) => {
                let labels: Vec<&str> = near.differences.iter().map(|one| one.label.as_str()).collect();
                let labels =
                    if labels.is_empty() { "unreported fields".to_string() } else { labels.join(", ") };
                format!(
                    "fewer than {MIN_HOSTS}: compared with {}, differs in {labels}",
                    peers.groups[near.group].name
                )
            }
            (None, false) => format!("fewer than {MIN_HOSTS}: not compared"),
        };
        vec![
            Cell::Text(group.name.clone()),
            Cell::Number(group.hosts.len().to_string()),
            Cell::Text(said),
            Cell::Text(make_up.join(", ")),
        ]
    };
    let (rows, more) = cut(peers.groups.iter().map(row).collect(), all);
    let columns = vec![column("group"), right("hosts"), column("judged"), column("make")];
    let blocks = [Some(Block::Table(filled(columns, rows))), more].into_iter().flatten().collect();
    let about = "Hosts of one make are peers. Settings and firmware form no groups; they are compared if a host is behind.";
    section("groups", "Groups", about, blocks)
}

/// The parts of the host, a column each; the worst hosts first.
fn hosts(peers: &Peers, all: bool) -> Option<Section> {
    let mut places: Vec<usize> = (0..peers.standings.len())
        .filter(|place| peers.standings[*place].peers > 0 && (all || peers.standings[*place].is_behind()))
        .collect();
    if places.is_empty() {
        return None;
    }
    let lowest = |place: &usize| {
        let standing = &peers.standings[*place];
        let ratios = standing
            .scores
            .iter()
            .map(|score| score.ratio)
            .chain(standing.flags.iter().map(|flag| flag.ratio));
        ratios.fold(f64::INFINITY, f64::min)
    };
    places.sort_by(|a, b| lowest(a).total_cmp(&lowest(b)).then(a.cmp(b)));
    let parts: BTreeSet<&str> = places
        .iter()
        .flat_map(|place| &peers.standings[*place].scores)
        .map(|score| &*score.component)
        .collect();
    let row = |place: &usize| {
        let (host, standing) = (&peers.fleet.hosts[*place], &peers.standings[*place]);
        let mut row = vec![
            Cell::Text(host.name.clone()),
            Cell::Text(peers.groups[standing.group].name.clone()),
            Cell::Number(standing.peers.to_string()),
        ];
        for part in &parts {
            let score = standing.scores.iter().find(|score| *score.component == **part);
            row.push(score.map_or(Cell::Empty, |score| {
                let mark = if score.flagged { " !" } else { "" };
                Cell::Number(format!("{}{mark}", percent(score.ratio)))
            }));
        }
        row.push(Cell::Number(standing.flags.len().to_string()));
        row.push(Cell::Number(host.earlier.len().to_string()));
        row
    };
    let mut columns = vec![column("host"), column("group"), right("peers")];
    columns.extend(parts.iter().map(|part| right(part)));
    columns.extend([right("benchmarks behind"), right("older runs")]);
    let (rows, more) = cut(places.iter().map(row).collect(), all);
    let blocks = [Some(Block::Table(Table::new(columns, rows))), more].into_iter().flatten().collect();
    let about =
        "Each part of the host as a share of the peers' median. Below 100 % is worse; ! is beyond the limit.";
    Some(section(RESULTS, "Hosts", about, blocks))
}

fn left_out(peers: &Peers, all: bool) -> Option<Section> {
    let row = |(file, why): &(String, String)| vec![Cell::Code(file.clone()), Cell::Text(why.clone())];
    let (rows, more) = cut(peers.fleet.left_out.iter().map(row).collect(), all);
    if rows.is_empty() {
        return None;
    }
    let columns = vec![column("file"), column("why")];
    let blocks = [Some(Block::Table(Table::new(columns, rows))), more].into_iter().flatten().collect();
    Some(section("left-out", "Not used", "", blocks))
}
