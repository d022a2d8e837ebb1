//! The first screen of a fleet. Words: `ONE HOST IS SLOWER THAN ITS PEERS`, `TWO HOSTS ARE SLOWER
//! THAN THEIR PEERS`, `ALL HOSTS ARE ALIKE`, `CANNOT TELL` (no make-up has enough hosts).

use super::{column, columns, filled, of_the_fleet, right};
use crate::block::{Block, Cell};
use crate::screen::{FindingLine, HostPart, Screen, Tone};
use crate::text::numbers::bare;
use compare::day_range;
use compare::peers::{DRIFT, Difference, Group, HostStanding, MIN_HOSTS, Peers, SLOW, Score};
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use diagnose::words::{capital, counted, listed, number_word};
use model::pattern::KeyParts;
use model::{Severity, percent, unit_factor};
use stats::order::median;

/// Hosts that are behind, on the screen at most; figures of each where they are few.
const HOSTS: usize = 6;
const FEW: usize = 3;
const FIGURES: usize = 2;

/// Makes that are named, those of them with a picture, and key figures in it.
const MAKES: usize = 4;
const PICTURES: usize = 2;
const PICTURED: usize = 5;

/// Where the description of a difference is longer, only its name is shown.
const CAUSE: usize = 56;

/// Lines of findings.
const FINDINGS: usize = 5;

/// Hosts whose cause has a line.
const NAMED: usize = 3;

pub fn screen(peers: &Peers) -> Screen {
    let behind = behind(peers);
    let names: Vec<&str> = behind.iter().map(|place| peers.fleet.hosts[*place].name.as_str()).collect();
    let unjudged: Vec<&str> = unjudged(peers);
    let alike = peers.judged() - behind.len();
    let (word, tone) = match (behind.len(), peers.judged()) {
        (_, 0) => ("CANNOT TELL".to_string(), Tone::Care),
        (0, _) => ("ALL HOSTS ARE ALIKE".to_string(), Tone::Good),
        (1, _) => ("ONE HOST IS SLOWER THAN ITS PEERS".to_string(), Tone::Bad),
        (count, _) => {
            (format!("{} HOSTS ARE SLOWER THAN THEIR PEERS", number_word(count).to_uppercase()), Tone::Bad)
        }
    };
    let mut sentences = match (behind.len(), peers.judged()) {
        (_, 0) => vec![format!(
            "No make has {MIN_HOSTS} hosts, which a comparison needs. Add results of equal hosts, or compare two: \
             assay compare A B."
        )],
        (0, _) => vec![format!("{alike} were compared with hosts of the same make; none is behind.")],
        _ => vec![format!("{}. The other {alike} are alike.", listed(&names))],
    };
    if let Some(one) = peers.followed.first() {
        sentences.push(format!("{}.", capital(&one.words("hosts that are behind"))));
    }
    if !unjudged.is_empty() && peers.judged() > 0 {
        sentences.push(format!("Not judged: {} (makes of fewer than {MIN_HOSTS} hosts).", listed(&unjudged)));
    }
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(table_of(peers, &behind));
    blocks.extend(makes(peers, &behind));
    let pictures = if behind.len() > FEW { 1 } else { PICTURES };
    blocks.extend(pictured(peers, &behind).take(pictures).filter_map(|group| picture(peers, group)));
    Screen {
        host: about(peers),
        word,
        tone,
        sentences,
        blocks,
        findings: findings(peers),
        figures: peers.fleet.metrics.len(),
        ..Screen::default()
    }
}

/// `48 hosts`, `2 makes`, when they were measured.
fn about(peers: &Peers) -> Vec<HostPart> {
    let hosts = &peers.fleet.hosts;
    let mut days: Vec<&str> = hosts.iter().filter_map(|host| host.started.get(..10)).collect();
    days.sort_unstable();
    let days = days.first().zip(days.last()).and_then(|(first, last)| day_range(first, last));
    let span = days.map(|days| format!("newest run of each: {days}"));
    let mut parts = vec![
        HostPart::needed(counted(hosts.len(), "host")),
        HostPart::needed(counted(peers.groups.len(), "make")),
    ];
    parts.extend(span.map(HostPart::spare));
    parts
}

/// Places of the hosts that are behind, the furthest first.
fn behind(peers: &Peers) -> Vec<usize> {
    let mut all: Vec<usize> =
        (0..peers.standings.len()).filter(|place| peers.standings[*place].is_behind()).collect();
    all.sort_by(|a, b| lowest(&peers.standings[*a]).total_cmp(&lowest(&peers.standings[*b])).then(a.cmp(b)));
    all
}

fn lowest(standing: &HostStanding) -> f64 {
    let parts = standing.scores.iter().filter(|score| score.flagged).map(|score| score.ratio);
    parts.chain(standing.flags.iter().map(|flag| flag.ratio)).fold(f64::INFINITY, f64::min)
}

fn unjudged(peers: &Peers) -> Vec<&str> {
    let hosts = peers.fleet.hosts.iter().zip(&peers.standings);
    hosts.filter(|(_, standing)| standing.peers == 0).map(|(host, _)| host.name.as_str()).collect()
}

/// A row for each key figure in which a host is behind, with the value, its peers' median, and what
/// about the host differs; one for the rest. Of many hosts each has one row.
fn table_of(peers: &Peers, behind: &[usize]) -> Option<Block> {
    let figures = if behind.len() > FEW { 1 } else { FIGURES };
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for place in behind.iter().take(HOSTS) {
        let mut cause = cause(peers, *place);
        let mut name = peers.fleet.hosts[*place].name.clone();
        for [what, value, middle, far] in slower_in(peers, *place, figures) {
            rows.push(vec![
                Cell::Text(std::mem::take(&mut name)),
                Cell::Text(what),
                Cell::Number(value),
                Cell::Number(middle),
                Cell::Number(far),
                Cell::Text(std::mem::take(&mut cause)),
            ]);
        }
    }
    if behind.len() > HOSTS {
        let more = format!("{} more", behind.len() - HOSTS);
        rows.push([Cell::Text(more)].into_iter().chain((0..5).map(|_| Cell::Empty)).collect());
    }
    let columns = columns("host | slower in | value: | peers: | behind: | cause");
    (!rows.is_empty()).then(|| Block::Table(filled(columns, rows)))
}

/// What a host is slower in, its value, its peers' and how far it is behind: key figures first, of
/// all else how many there are.
fn slower_in(peers: &Peers, place: usize, figures: usize) -> Vec<[String; 4]> {
    let standing = &peers.standings[place];
    // Other series of the same benchmark are no key figures.
    let known = KEY_FIGURES.iter().filter_map(|figure| {
        let metric = metric_of(peers, figure)?;
        let flag = standing.flags.iter().find(|flag| flag.metric == metric)?;
        Some((figure, metric, flag.ratio))
    });
    let mut known: Vec<(&KeyFigure, usize, f64)> = known.collect();
    known.sort_by(|a, b| a.2.total_cmp(&b.2));
    known.truncate(figures);
    let mut all: Vec<[String; 4]> = Vec::new();
    for (figure, metric, ratio) in &known {
        let [value, middle] = beside(peers, standing, place, *metric, figure);
        all.push([figure.alone.to_string(), value, middle, percent(1.0 - ratio)]);
    }
    let unsaid = |what: String, ratio: f64| [what, String::new(), String::new(), percent(1.0 - ratio)];
    let part = standing.worst().filter(|_| known.is_empty());
    if let Some(part) = part {
        all.push(unsaid(part_words(peers, standing, place, part), part.ratio));
    }
    let others: Vec<f64> = standing
        .flags
        .iter()
        .filter(|flag| !known.iter().any(|(_, metric, _)| *metric == flag.metric))
        .filter(|flag| part.is_none_or(|part| part.component != peers.fleet.metrics[flag.metric].component))
        .map(|flag| flag.ratio)
        .collect();
    match median(&others) {
        // Of many hosts each has its worst figure.
        Some(middle) if figures > 1 || all.is_empty() => {
            let more = if all.is_empty() { "figure" } else { "more figure" };
            all.push(unsaid(counted(others.len(), more), middle));
        }
        _ => {}
    }
    all
}

/// Benchmarks of a part that are named.
const BENCHES: usize = 3;

/// A part of the machine with those of its benchmarks in which a host is furthest behind:
/// `process: exec, spawn and shell (of 13 figures)`.
fn part_words(peers: &Peers, standing: &HostStanding, place: usize, part: &Score) -> String {
    let ratio = |metric: usize| {
        let own = peers.fleet.value(place, metric)?;
        let others = peers.groups[standing.against].hosts.iter().filter(|other| **other != place);
        let others: Vec<f64> = others.filter_map(|other| peers.fleet.value(*other, metric)).collect();
        let middle = median(&others)?;
        Some(if peers.fleet.metrics[metric].higher { own / middle } else { middle / own })
    };
    let of_part = peers.fleet.metrics.iter().enumerate().filter(|(_, one)| one.component == part.component);
    let mut all: Vec<(f64, &str)> = of_part
        .filter_map(|(metric, one)| {
            let bench = KeyParts::of(&one.key).bench;
            Some((ratio(metric)?, bench.split_once('.').map_or(bench, |(_, name)| name)))
        })
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut names: Vec<&str> = Vec::new();
    for (_, name) in all {
        if names.len() < BENCHES && !names.contains(&name) {
            names.push(name);
        }
    }
    let figures = counted(part.metrics, "figure");
    match names.len() {
        0 => format!("{}: {figures}", part.component),
        _ => format!("{}: {} (of {figures})", part.component, listed(&names)),
    }
}

/// What about a host that is behind differs from its peers, in a few words.
fn cause(peers: &Peers, place: usize) -> String {
    let suspected = &peers.suspected[place];
    let told = |one: &Difference| {
        let label = one.label.replace('_', " ");
        let whole = format!("{label} {} (peers {})", one.here, one.peers);
        if whole.chars().count() > CAUSE { format!("{label} differs from its peers") } else { whole }
    };
    match (suspected.likely.first(), suspected.other.len()) {
        (Some(first), _) => told(first),
        (None, 0) if !peers.fleet.hosts[place].findings.is_empty() => "see its own findings".to_string(),
        (None, 0) => "unknown: nothing reported differs".to_string(),
        (None, count) => {
            let labels: Vec<String> =
                suspected.other.iter().take(2).map(|one| one.label.replace('_', " ")).collect();
            let more = if count > 2 { format!(" and {} more", count - 2) } else { String::new() };
            format!("unknown; differs in {}{more}", labels.join(", "))
        }
    }
}

/// A host's value of a key figure, and the median of the group that it was compared with.
fn beside(
    peers: &Peers,
    standing: &HostStanding,
    place: usize,
    metric: usize,
    figure: &KeyFigure,
) -> [String; 2] {
    let others = peers.groups[standing.against].hosts.iter().filter(|other| **other != place);
    let others: Vec<f64> = others.filter_map(|other| in_unit(peers, *other, metric, figure)).collect();
    let middle = median(&others).map_or(String::new(), bare);
    let own = in_unit(peers, place, metric, figure);
    [own.map_or(String::new(), |own| format!("{} {}", bare(own), figure.unit)), middle]
}

/// The place of the series that a key figure is in this fleet.
fn metric_of(peers: &Peers, figure: &KeyFigure) -> Option<usize> {
    let metrics = &peers.fleet.metrics;
    let own = figure.find(metrics.iter(), |metric| &metric.key)?;
    metrics.iter().position(|metric| metric.key == own.key)
}

fn in_unit(peers: &Peers, host: usize, metric: usize, figure: &KeyFigure) -> Option<f64> {
    let factor = unit_factor(&peers.fleet.metrics[metric].unit, figure.unit)?;
    Some(peers.fleet.value(host, metric)? * factor)
}

/// The makes, what they are, and whether all of their hosts are alike.
fn makes(peers: &Peers, behind: &[usize]) -> Option<Block> {
    let line = |group: &Group| {
        let what = group.what().join(", ");
        let count = group.hosts.iter().filter(|host| behind.contains(host)).count();
        let alike = match (group.is_judged(), count) {
            (false, _) => format!("fewer than {MIN_HOSTS}"),
            (true, 0) => "all alike".to_string(),
            (true, count) => format!("{count} behind"),
        };
        let hosts = format!("{}, {alike}", counted(group.hosts.len(), "host"));
        let told = if what.is_empty() { hosts } else { format!("{hosts} · {what}") };
        (format!("make {}", group.name), told)
    };
    let mut all: Vec<(String, String)> = peers.groups.iter().take(MAKES).map(line).collect();
    if let Some(more @ 1..) = peers.groups.len().checked_sub(MAKES) {
        all.push((format!("{more} more"), String::new()));
    }
    (!all.is_empty()).then_some(Block::Facts(all))
}

/// Makes in which a host is behind, else the largest.
fn pictured<'a>(peers: &'a Peers, behind: &[usize]) -> impl Iterator<Item = &'a Group> {
    let judged: Vec<&Group> = peers.groups.iter().filter(|group| group.is_judged()).collect();
    let with_behind = |group: &&&Group| group.hosts.iter().any(|host| behind.contains(host));
    let some: Vec<&Group> = judged.iter().filter(with_behind).copied().collect();
    if some.is_empty() { judged.into_iter().take(1).collect::<Vec<_>>() } else { some }.into_iter()
}

/// The key figures of a make from slowest to fastest: who is behind, and where the others are.
fn picture(peers: &Peers, group: &Group) -> Option<Block> {
    let fleet = &peers.fleet;
    let row = |figure: &'static KeyFigure| {
        let place = metric_of(peers, figure)?;
        let value = |host: &usize| Some((in_unit(peers, *host, place, figure)?, *host));
        let mut all: Vec<(f64, usize)> = group.hosts.iter().filter_map(value).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        // The slowest stands left, whichever way is better.
        if !fleet.metrics[place].higher {
            all.reverse();
        }
        let flagged = |host: usize| peers.standings[host].flags.iter().any(|flag| flag.metric == place);
        let (slowest, fastest) = (*all.first()?, all.last()?.0);
        let who = if flagged(slowest.1) { fleet.hosts[slowest.1].name.clone() } else { String::new() };
        let others: Vec<f64> =
            all.iter().filter(|(_, host)| !flagged(*host)).map(|(value, _)| *value).collect();
        (all.len() >= MIN_HOSTS).then(|| {
            vec![
                Cell::Text(figure.alone.to_string()),
                Cell::Text(if who.is_empty() { who } else { format!("● {who}") }),
                Cell::Number(bare(slowest.0)),
                Cell::Code(strip(&others, slowest.0)),
                Cell::Number(bare(fastest)),
                Cell::Text(figure.unit.to_string()),
            ]
        })
    };
    let mut rows: Vec<Vec<Cell>> = KEY_FIGURES.iter().filter_map(row).collect();
    // Makes with a host behind come first.
    rows.sort_by_key(|row| matches!(&row[1], Cell::Text(who) if who.is_empty()));
    rows.truncate(PICTURED);
    let nobody = rows.iter().all(|row| matches!(&row[1], Cell::Text(who) if who.is_empty()));
    let columns = vec![
        column(&format!("make {}", group.name)),
        column("slowest"),
        right(if nobody { "slowest" } else { "value" }),
        column("■ eight of ten others"),
        right("fastest"),
        column("unit"),
    ];
    (!rows.is_empty()).then(|| Block::Table(filled(columns, rows)))
}

/// A line from the slowest value to the last of these in their order: `■` from the tenth to the
/// ninetieth of a hundred.
fn strip(values: &[f64], slowest: f64) -> String {
    const WIDTH: usize = 22;
    let Some(last) = values.last() else { return "·".repeat(WIDTH) };
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let end = (WIDTH - 1) as f64;
    let place = |value: f64| ((value - slowest) / (last - slowest) * end).round().clamp(0.0, end) as usize;
    // All of one value are everywhere between the slowest and the fastest.
    if *last == slowest {
        return "■".repeat(WIDTH);
    }
    let (from, to) = (place(at(0.1)), place(at(0.9)));
    (0..WIDTH).map(|at| if (from..=to).contains(&at) { '■' } else { '·' }).collect()
}

/// What is to be known of the fleet, and what else was found.
fn findings(peers: &Peers) -> Vec<FindingLine> {
    let line = |severity, topic, text: String, rule: &str| FindingLine {
        severity,
        topic,
        text,
        rule: rule.to_string(),
        advice: String::new(),
        more: 0,
    };
    let fleet = of_the_fleet(peers)
        .into_iter()
        .map(|text| line(Severity::Warning, "results", format!("{}.", capital(&text)), ""));
    let others = peers.findings.iter().filter(|finding| finding.rule != SLOW).map(|finding| {
        let topic = match finding.rule.as_str() {
            DRIFT => "differs",
            _ => "guest",
        };
        let text = format!("{}.", finding.headline.trim_end_matches('.'));
        line(finding.severity, topic, text, &finding.rule)
    });
    let idle = peers.idle_differences();
    let named: Vec<String> = idle
        .iter()
        .take(NAMED)
        .map(|(label, hosts)| format!("{} ({})", label.replace('_', " "), counted(*hosts, "host")))
        .collect();
    let more = if idle.len() > NAMED { format!(" and {} more", idle.len() - NAMED) } else { String::new() };
    let idle = (!named.is_empty()).then(|| {
        let text = format!("Hosts of a make differ in {}{more}, without effect on speed.", named.join(", "));
        line(Severity::Note, "differs", text, "")
    });
    let mut all: Vec<FindingLine> = fleet.chain(others).chain(idle).collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    all.truncate(FINDINGS);
    all
}
