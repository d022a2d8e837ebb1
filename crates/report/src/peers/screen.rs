//! The first screen of a fleet. Words: `ONE HOST IS SLOWER THAN ITS PEERS`, `TWO HOSTS ARE SLOWER
//! THAN THEIR PEERS`, `ALL HOSTS ARE ALIKE`, `CANNOT TELL` (no make-up has enough hosts).

use super::{column, counted, flagged, warnings};
use crate::block::{Block, Cell, Table};
use crate::screen::{FindingLine, HostPart, Screen, Tone};
use crate::sections::screen::day;
use crate::text::screen::bare;
use compare::peers::{DRIFT, Group, LEAST_HOSTS, Peers, SLOW, Standing};
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use model::{Finding, Severity, percent, unit_factor};
use stats::order::median;

/// Hosts that are behind, on the screen at most; figures of each.
const HOSTS: usize = 8;
const FIGURES: usize = 2;

/// Makes with a picture, and key figures of each.
const MAKES: usize = 2;
const PICTURED: usize = 5;

/// Lines of findings.
const FINDINGS: usize = 5;

/// Names that a sentence lists.
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
        (count, _) => (format!("{} HOSTS ARE SLOWER THAN THEIR PEERS", in_letters(count)), Tone::Bad),
    };
    let mut sentences = match (behind.len(), peers.judged()) {
        (_, 0) => vec![format!("No make-up has {LEAST_HOSTS} hosts; among fewer none can be called slow.")],
        (0, _) => vec![format!("{alike} were held against hosts of the same make; none is behind.")],
        _ => vec![format!("{}. {alike} are alike.", listed(&names))],
    };
    if !unjudged.is_empty() && peers.judged() > 0 {
        sentences
            .push(format!("Not judged: {} (makes of fewer than {LEAST_HOSTS} hosts).", listed(&unjudged)));
    }
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(table_of(peers, &behind));
    let judged = peers.groups.iter().filter(|group| group.is_judged());
    blocks.extend(judged.take(MAKES).filter_map(|group| make(peers, group)));
    Screen {
        host: about(peers),
        word,
        tone,
        sentences,
        blocks,
        findings: findings(peers, &behind),
        figures: peers.fleet.metrics.len(),
        ..Screen::default()
    }
}

fn in_letters(count: usize) -> String {
    const WORDS: [&str; 10] = ["NO", "ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE"];
    WORDS.get(count).map_or_else(|| count.to_string(), |word| word.to_string())
}

/// `db-07, db-31 and db-40`; of more than three how many besides.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => one.to_string(),
        names if names.len() <= NAMED => {
            format!("{} and {}", names[..names.len() - 1].join(", "), names[names.len() - 1])
        }
        names => format!("{} and {} more", names[..NAMED].join(", "), names.len() - NAMED),
    }
}

/// `48 hosts`, `2 makes`, when they were measured.
fn about(peers: &Peers) -> Vec<HostPart> {
    let hosts = &peers.fleet.hosts;
    let mut days: Vec<&str> = hosts.iter().filter_map(|host| host.started.get(..10)).collect();
    days.sort_unstable();
    let span = match (days.first().and_then(|first| day(first)), days.last().and_then(|last| day(last))) {
        (Some(first), Some(last)) if first == last => Some(format!("newest run of each: {first}")),
        (Some(first), Some(last)) => Some(format!("newest run of each: {first} to {last}")),
        _ => None,
    };
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
        (0..peers.standings.len()).filter(|place| flagged(&peers.standings[*place])).collect();
    all.sort_by(|a, b| lowest(&peers.standings[*a]).total_cmp(&lowest(&peers.standings[*b])).then(a.cmp(b)));
    all
}

fn lowest(standing: &Standing) -> f64 {
    let parts = standing.scores.iter().filter(|score| score.flagged).map(|score| score.ratio);
    parts.chain(standing.flags.iter().map(|flag| flag.ratio)).fold(f64::INFINITY, f64::min)
}

fn unjudged(peers: &Peers) -> Vec<&str> {
    let hosts = peers.fleet.hosts.iter().zip(&peers.standings);
    hosts.filter(|(_, standing)| standing.peers == 0).map(|(host, _)| host.name.as_str()).collect()
}

/// A row for each key figure in which a host is behind, with the value and its peers' median; one
/// for the rest.
fn table_of(peers: &Peers, behind: &[usize]) -> Option<Block> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for place in behind.iter().take(HOSTS) {
        let (host, standing) = (&peers.fleet.hosts[*place], &peers.standings[*place]);
        // Other series of the same benchmark are no key figures.
        let known = KEY_FIGURES.iter().filter_map(|figure| {
            let metric = metric_of(peers, figure)?;
            let flag = standing.flags.iter().find(|flag| flag.metric == metric)?;
            Some((figure, metric, flag.ratio))
        });
        let known: Vec<(&KeyFigure, usize, f64)> = known.take(FIGURES).collect();
        let mut own: Vec<[String; 4]> = Vec::new();
        for (figure, metric, ratio) in &known {
            let [value, middle] = beside(peers, standing, *place, *metric, figure);
            own.push([figure.alone.to_string(), value, middle, percent(1.0 - ratio)]);
        }
        if let (true, Some(part)) = (known.is_empty(), standing.worst()) {
            let what = format!("{}, {}", part.component, counted(part.metrics, "figure"));
            own.push([what, String::new(), String::new(), percent(1.0 - part.ratio)]);
        }
        let more = standing.flags.len() - known.len();
        if more > 0 && !own.is_empty() {
            own.push([
                format!("{more} more {}", if more == 1 { "figure" } else { "figures" }),
                String::new(),
                String::new(),
                String::new(),
            ]);
        }
        if let (true, Some(worst)) = (own.is_empty(), standing.flags.first()) {
            own.push([
                counted(standing.flags.len(), "figure"),
                String::new(),
                String::new(),
                percent(1.0 - worst.ratio),
            ]);
        }
        for (at, [what, value, middle, far]) in own.into_iter().enumerate() {
            let name = if at == 0 { host.name.clone() } else { String::new() };
            rows.push(vec![
                Cell::Text(name),
                Cell::Text(what),
                Cell::Number(value),
                Cell::Number(middle),
                Cell::Number(far),
            ]);
        }
    }
    if behind.len() > HOSTS {
        let more = format!("{} more", behind.len() - HOSTS);
        rows.push([Cell::Text(more)].into_iter().chain((0..4).map(|_| Cell::Empty)).collect());
    }
    let columns = vec![
        column("host", false),
        column("slower in", false),
        column("value", true),
        column("peers", true),
        column("behind", true),
    ];
    (!rows.is_empty()).then_some(Block::Table(Table { columns, rows, folded: false }))
}

/// A host's value of a key figure, and the median of the group that it was held against.
fn beside(
    peers: &Peers,
    standing: &Standing,
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

/// The key figures of a make from its slowest host to its fastest: where most of them are.
fn make(peers: &Peers, group: &Group) -> Option<Block> {
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
        let (slowest, fastest) = (all.first()?, all.last()?);
        (all.len() >= LEAST_HOSTS).then(|| {
            vec![
                Cell::Text(figure.alone.to_string()),
                Cell::Text(fleet.hosts[slowest.1].name.clone()),
                Cell::Number(bare(slowest.0)),
                Cell::Text(strip(&all.iter().map(|(value, _)| *value).collect::<Vec<_>>())),
                Cell::Number(bare(fastest.0)),
                Cell::Text(figure.unit.to_string()),
            ]
        })
    };
    let rows: Vec<Vec<Cell>> = KEY_FIGURES.iter().filter_map(row).take(PICTURED).collect();
    let title = format!("make {}, {}", group.name, counted(group.hosts.len(), "host"));
    let columns = vec![
        column(&title, false),
        column("slowest", false),
        column("", true),
        column("■ eight of ten hosts", false),
        column("fastest", true),
        column("", false),
    ];
    (!rows.is_empty()).then_some(Block::Table(Table { columns, rows, folded: false }))
}

/// Values in their order on a line from the first to the last: `■` from the tenth to the ninetieth
/// of a hundred.
fn strip(values: &[f64]) -> String {
    const WIDTH: usize = 22;
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return String::new() };
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let place = |value: f64| match last - first {
        0.0 => 0,
        range => {
            ((value - first) / range * (WIDTH - 1) as f64).round().clamp(0.0, (WIDTH - 1) as f64) as usize
        }
    };
    let (from, to) = (place(at(0.1)), place(at(0.9)));
    (0..WIDTH).map(|at| if (from..=to).contains(&at) { '■' } else { '·' }).collect()
}

/// What differs about the hosts that are behind, what is to be known of the fleet, and what else
/// was found.
fn findings(peers: &Peers, behind: &[usize]) -> Vec<FindingLine> {
    let line = |severity, topic, text: String, rule: &str| FindingLine {
        severity,
        topic,
        text,
        rule: rule.to_string(),
        advice: String::new(),
        more: 0,
    };
    let about = |finding: &Finding, host: &str| {
        let own = finding.rule == SLOW && finding.headline.starts_with(&format!("Host {host} is "));
        own.then(|| (finding.severity, finding.cause.clone()))
    };
    let hosts = behind.iter().map(|place| peers.fleet.hosts[*place].name.as_str());
    let causes = hosts.filter_map(|host| {
        let (severity, cause) = peers.findings.iter().find_map(|finding| about(finding, host))?;
        let cause = cause.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string();
        Some(line(severity, "why", format!("{host}: {cause}."), SLOW))
    });
    let fleet = warnings(peers).into_iter().map(|text| {
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
        line(Severity::Warning, "results", format!("{first}{}.", letters.as_str()), "")
    });
    let others = peers.findings.iter().filter(|finding| finding.rule != SLOW).map(|finding| {
        let topic = match finding.rule.as_str() {
            DRIFT => "differs",
            _ => "guest",
        };
        let text = format!("{}.", finding.headline.trim_end_matches('.'));
        line(finding.severity, topic, text, &finding.rule)
    });
    let mut all: Vec<FindingLine> = causes.take(NAMED).chain(fleet).chain(others).collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    all.truncate(FINDINGS);
    all
}
