//! The first screen of a host's history. Its words:
//!
//! `MEMORY LATENCY BECAME 12 % WORSE ON 20 Nov`: one figure stepped to the worse and has not come
//! back; of several `3 FIGURES BECAME WORSE`, with the day where it is one. `FASTER`: steps to the
//! better and none to the worse. `CONFIRM THE LAST RUN`: only the last run or two lie off, which is
//! no step yet. `STEADY`: no step. `CANNOT TELL`: fewer than eight runs of one series; then the
//! figures stand by date.
//!
//! First sentence: from where to where, and since when. Second: what stayed, or what to do. A line
//! for each day with steps says what changed between the runs there.

mod data;
mod table;

pub use data::{Output, csv, output};

use std::collections::BTreeMap;

use crate::plain::{lines, plain};
use crate::screen::{FindingLine, HostPart, Screen, Tone};
pub use crate::text::Shown;
use crate::text::findings::{finding, topic_width};
use crate::text::numbers::bare;
use crate::text::screen::{closing, host, shown, verdict};
use crate::text::{Style, paint};
use compare::trend::{Changed, Figure, MIN_RUNS, Trend, Verdict, fact};
use compare::{between_hosts, moment};
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use diagnose::words::{self, capital, counted};
use model::pattern::KeyParts;
use model::{Severity, percent, unit_factor};

/// Lines that a first screen has at most.
const LINES: usize = 40;

/// Rows of figures on it: the key figures, and what stepped besides.
const ROWS: usize = 18;

/// Days with steps that have lines of their own.
const DAYS: usize = 4;

/// Figures and changes that a sentence lists.
const NAMED: usize = 3;

/// The longest text from a run on a screen, and the longest value of a setting.
const LONGEST: usize = 400;
const VALUE: usize = 40;

/// What people call a series that is no key figure, by its key.
pub type Names<'a> = &'a dyn Fn(&str) -> String;

/// A figure as a row: what it is called, in the unit that it is shown in.
struct Row<'a> {
    figure: &'a Figure,
    known: Option<&'static KeyFigure>,
    label: String,
    unit: String,
    scale: f64,
}

impl<'a> Row<'a> {
    fn of(figure: &'a Figure, known: Option<&'static KeyFigure>, names: Names) -> Row<'a> {
        let own = known.and_then(|known| Some((known, unit_factor(&figure.unit, known.unit)?)));
        let (unit, scale) = match (own, figure.unit.as_str()) {
            (Some((known, factor)), _) => (known.unit, factor),
            (None, "us") => ("µs", 1.0),
            (None, unit) => (unit, 1.0),
        };
        let label = known.map_or_else(|| names(&figure.key), |known| known.alone.to_string());
        Row { figure, known, label, unit: unit.to_string(), scale }
    }

    fn value(&self, value: f64) -> String {
        bare(value * self.scale)
    }
}

/// The key figures in their order, then other figures that stepped, one of a benchmark; with `all`
/// every figure.
fn rows<'a>(trend: &'a Trend, all: bool, names: Names) -> Vec<Row<'a>> {
    let figures = &trend.figures;
    let known = |figure: &'static KeyFigure| {
        let fits = figures.iter().filter(|one| !figure.between_hosts || between_hosts(&one.key));
        Some((figure, figure.find(fits, |one| &one.key)?))
    };
    let known: Vec<(&'static KeyFigure, &Figure)> = KEY_FIGURES.iter().filter_map(known).collect();
    let mut rows: Vec<Row> = known.iter().map(|(figure, own)| Row::of(own, Some(figure), names)).collect();
    let is_key = |one: &Figure| known.iter().any(|(_, own)| own.key == one.key);
    let mut others: Vec<&Figure> = figures.iter().filter(|one| !is_key(one)).collect();
    if all {
        others.sort_by_key(|one| &one.key);
        rows.extend(others.into_iter().map(|one| Row::of(one, None, names)));
        return rows;
    }
    others.retain(|one| one.standing().is_some() || one.last.is_some());
    let far = |one: &Figure| {
        let away = one.standing().map(|step| step.relative()).or(one.last.map(|last| last.relative()));
        (one.standing().is_some_and(|step| step.counts()), away.map_or(0.0, f64::abs))
    };
    others.sort_by(|a, b| {
        let ((bad_a, far_a), (bad_b, far_b)) = (far(a), far(b));
        bad_b.cmp(&bad_a).then(far_b.total_cmp(&far_a))
    });
    let mut benches: Vec<&str> = known.iter().map(|(_, own)| KeyParts::of(&own.key).bench).collect();
    for one in others {
        let bench = KeyParts::of(&one.key).bench;
        if rows.len() < ROWS && !benches.contains(&bench) {
            benches.push(bench);
            rows.push(Row::of(one, None, names));
        }
    }
    rows
}

/// The trend's screen; `exit` is the code that the verb ends with.
pub fn render(trend: &Trend, how: Shown, names: Names, exit: u8, style: Style) -> String {
    let style = Style { width: style.width.clamp(40, 140), ..style };
    if how != Shown::First {
        return written(trend, how, usize::MAX, names, exit, style);
    }
    let text = |rows: usize| written(trend, how, rows, names, exit, style);
    let fits = |rows: &usize| text(*rows).lines().count() <= LINES;
    text((3..=ROWS).rev().find(fits).unwrap_or(3))
}

fn written(trend: &Trend, how: Shown, most: usize, names: Names, exit: u8, style: Style) -> String {
    let screen = screen(trend, names);
    let mut found: Vec<String> = Vec::new();
    for line in &screen.findings {
        found.extend(finding(line, topic_width(&screen.findings), style));
    }
    let judged = verdict(&screen, style);
    let parts = match how {
        Shown::Quiet => {
            let judged = judged.join("\n").trim_start().to_string();
            vec![vec![judged], found]
        }
        _ => {
            let rows = rows(trend, how == Shown::All, names);
            let table = match screen.word.as_str() {
                CANNOT_TELL => table::by_date(trend, &rows, most, style),
                _ => table::over_runs(trend, &rows, most, how, style),
            };
            vec![host(&screen.host, style), judged, table, found, ending(trend, how, exit, style)]
        }
    };
    let filled = parts.iter().filter(|part| !part.is_empty()).map(|part| part.join("\n") + "\n");
    filled.collect::<Vec<_>>().join(if how == Shown::Quiet { "" } else { "\n" })
}

const CANNOT_TELL: &str = "CANNOT TELL";

/// Host, verdict, sentences and a line for each day with steps.
fn screen(trend: &Trend, names: Names) -> Screen {
    let days = days(trend, names);
    let (word, tone, sentences) = match trend.verdict() {
        Verdict::CannotTell => (CANNOT_TELL.to_string(), Tone::Care, too_few(trend)),
        Verdict::Steady => ("STEADY".to_string(), Tone::Good, vec![steady(trend)]),
        Verdict::Confirm => ("CONFIRM THE LAST RUN".to_string(), Tone::Care, to_confirm(trend, names)),
        Verdict::Better => ("FASTER".to_string(), Tone::Good, stepped(trend, &days, false)),
        Verdict::Worse => (worse(&days), Tone::Bad, stepped(trend, &days, true)),
    };
    let mut findings: Vec<FindingLine> = days.iter().rev().take(DAYS).map(|day| day.line(trend)).collect();
    findings.extend(confirmations(trend, names).filter(|_| trend.verdict() != Verdict::Confirm));
    findings.sort_by_key(|line| std::cmp::Reverse(line.severity));
    Screen { host: about(trend), word, tone, sentences, findings, ..Screen::default() }
}

fn about(trend: &Trend) -> Vec<HostPart> {
    let days = |place: Option<&compare::peers::HostResult>| Some(moment(&place?.started)?[0].clone());
    let span = match (days(trend.runs.first()), days(trend.runs.last())) {
        (Some(first), Some(last)) if first != last => format!(", {first} – {last}"),
        (Some(day), _) => format!(" of {day}"),
        _ => String::new(),
    };
    let mut parts = vec![
        HostPart::needed(trend.host.clone()),
        HostPart::needed(format!("{}{span}", counted(trend.runs.len(), "run"))),
    ];
    if let Some(newest) = trend.runs.last() {
        if !newest.profile.is_empty() {
            parts.push(HostPart::needed(format!("{} profile", newest.profile)));
        }
        if newest.pretended {
            parts.push(HostPart::needed("invented samples"));
        }
        parts.extend(fact(newest, "cpus").map(|cpus| HostPart::spare(format!("{cpus} CPUs"))));
        parts.extend(fact(newest, "cpu_model").map(HostPart::spare));
        parts.extend(fact(newest, "kernel").map(|kernel| HostPart::spare(format!("Linux {kernel}"))));
    }
    parts
}

/// The steps between two runs.
struct Day<'a> {
    between: [usize; 2],
    /// Of the first run after them: `20 Nov`.
    day: String,
    /// Name, change and whether it counts as one to the worse, the worst first.
    steps: Vec<(Row<'a>, &'a compare::trend::Step)>,
}

/// All steps by the runs that they lie between, the oldest first.
fn days<'a>(trend: &'a Trend, names: Names) -> Vec<Day<'a>> {
    let mut all: BTreeMap<[usize; 2], Vec<(Row<'a>, &compare::trend::Step)>> = BTreeMap::new();
    let known = rows(trend, true, names);
    for row in known {
        for step in &row.figure.steps {
            let own = Row { label: row.label.clone(), unit: row.unit.clone(), ..row };
            all.entry(step.between).or_default().push((own, step));
        }
    }
    let day = |(between, mut steps): ([usize; 2], Vec<(Row<'a>, &'a compare::trend::Step)>)| {
        // Key figures come first, and stand in their order.
        steps.sort_by_key(|(row, step)| (!step.counts(), row.known.is_none()));
        let after = trend.runs.get(between[1]);
        let day = after.and_then(|run| Some(moment(&run.started)?[0].clone())).unwrap_or_default();
        Day { between, day, steps }
    };
    all.into_iter().map(day).collect()
}

impl Day<'_> {
    fn worst(&self) -> Severity {
        if self.steps.iter().any(|(_, step)| step.counts()) { Severity::Problem } else { Severity::Note }
    }

    /// `memory latency +12 %, system call +8 % and 3 more`.
    fn listed(&self) -> String {
        let one = |(row, step): &(Row, &compare::trend::Step)| {
            format!("{} {}", lower(&row.label), signed(step.relative()))
        };
        listed(&self.steps.iter().map(one).collect::<Vec<_>>())
    }

    fn line(&self, trend: &Trend) -> FindingLine {
        let undone = self.steps.iter().all(|(_, step)| step.undone);
        let back = if undone { "; it came back later" } else { "" };
        FindingLine {
            severity: self.worst(),
            topic: "step",
            text: format!("{}: {}{back}. {}", self.day, self.listed(), cause(&trend.changed(self.between))),
            rule: String::new(),
            advice: String::new(),
            more: 0,
        }
    }
}

/// A label inside a sentence: what is written in capitals stays.
fn lower(label: &str) -> String {
    let mut letters = label.chars();
    let (first, second) = (letters.next(), label.chars().nth(1));
    match (first, second) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), letters.as_str())
        }
        _ => label.to_string(),
    }
}

fn listed(all: &[String]) -> String {
    words::listed(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A change in per cent, with its sign.
fn signed(share: f64) -> String {
    match share {
        share if share > 0.0 => format!("+{}", percent(share)),
        share => percent(share),
    }
}

/// What differs between the runs of a step. That it is the cause is more than is known.
fn cause(changed: &[Changed]) -> String {
    if changed.is_empty() {
        return "No recorded setting changed there.".to_string();
    }
    let short = |text: &str| text.chars().count() <= VALUE;
    let words = |one: &Changed| {
        let name = match one.label.as_str() {
            "assay" => "Assay".to_string(),
            "bios" => "BIOS".to_string(),
            "boot" => return "the host rebooted".to_string(),
            label => match label.strip_prefix("mitigation_") {
                Some(own) => format!("mitigation of {own}"),
                None => label.replace('_', " "),
            },
        };
        if short(&one.before) && short(&one.after) {
            format!("{name} from {} to {}", one.before, one.after)
        } else {
            name
        }
    };
    format!("Changed there: {}.", listed(&changed.iter().map(words).collect::<Vec<_>>()))
}

fn worse(days: &[Day]) -> String {
    let all: Vec<(&Day, &Row, f64)> = days
        .iter()
        .flat_map(|day| day.steps.iter().map(move |step| (day, step)))
        .filter(|(_, (_, step))| step.counts())
        .map(|(day, (row, step))| (day, row, step.relative()))
        .collect();
    let same_day = all.windows(2).all(|two| two[0].0.day == two[1].0.day);
    match all.as_slice() {
        [(day, row, relative)] => format!(
            "{} BECAME {} WORSE ON {}",
            row.label.to_uppercase().replace("µ", "u"),
            percent(relative.abs()),
            day.day
        ),
        [(day, ..), ..] if same_day => format!("{} FIGURES BECAME WORSE ON {}", all.len(), day.day),
        _ => format!("{} FIGURES BECAME WORSE", all.len()),
    }
}

/// What the last day with such a step shows.
fn stepped(trend: &Trend, days: &[Day], worse: bool) -> Vec<String> {
    let is_it = |step: &compare::trend::Step| {
        if worse { step.counts() } else { !step.undone && step.worse == Some(false) }
    };
    let steps = days.iter().flat_map(|day| day.steps.iter().map(move |own| (day, own)));
    let all: Vec<_> = steps.filter(|(_, (_, step))| is_it(step)).collect();
    let Some((_, (row, step))) = all.last() else { return Vec::new() };
    let runs = counted(trend.runs.len() - step.between[1], "run");
    let stayed = match row.figure.steps.last() {
        Some(last) if last.between != step.between => format!(", later to {}", row.value(last.after)),
        _ => format!(" and has stayed there for {runs}"),
    };
    // Of a single step to the worse the verdict names the figure.
    let what = if worse { "It".to_string() } else { capital(&row.label) };
    let first = match all.len() {
        1 => format!(
            "{what} went from {} to {} {}{stayed}.",
            row.value(step.before),
            row.value(step.after),
            row.unit
        ),
        _ => {
            let names = all
                .iter()
                .map(|(_, (row, step))| format!("{} {}", lower(&row.label), signed(step.relative())));
            format!("{}.", capital(&listed(&names.collect::<Vec<_>>())))
        }
    };
    let rest = trend.judged() - trend.figures.iter().filter(|one| one.standing().is_some()).count();
    vec![first, format!("As before: {}.", counted(rest, "other figure"))]
}

fn steady(trend: &Trend) -> String {
    format!(
        "None of {} changed over {}.",
        counted(trend.judged(), "figure"),
        counted(trend.runs.len(), "run")
    )
}

/// What lies off in the last run only, and the command that confirms it.
fn confirmations(trend: &Trend, names: Names) -> Option<FindingLine> {
    let sentences = to_confirm(trend, names);
    (!sentences.is_empty()).then(|| FindingLine {
        severity: Severity::Warning,
        topic: "confirm",
        text: sentences.join(" "),
        rule: String::new(),
        advice: String::new(),
        more: 0,
    })
}

fn to_confirm(trend: &Trend, names: Names) -> Vec<String> {
    let all = rows(trend, true, names);
    let off: Vec<(&Row, compare::trend::Last)> =
        all.iter().filter_map(|row| Some((row, row.figure.last?))).collect();
    let Some(runs) = off.iter().map(|(_, last)| last.runs).max() else { return Vec::new() };
    let one = |(row, last): &(&Row, compare::trend::Last)| {
        format!("{} {}", lower(&row.label), signed(last.relative()))
    };
    let which = if runs == 1 { "the last run" } else { "the last two runs" };
    let seen = format!("Seen in {which} only: {}.", listed(&off.iter().map(one).collect::<Vec<_>>()));
    vec![seen, format!("Confirm it: {}", confirm(trend))]
}

/// The command that measures again what lies off in the last run.
pub fn confirm(trend: &Trend) -> String {
    let off = trend.figures.iter().filter(|one| one.last.is_some());
    let mut benches: Vec<&str> = Vec::new();
    off.for_each(|one| {
        let bench = KeyParts::of(&one.key).bench;
        if !benches.contains(&bench) {
            benches.push(bench);
        }
    });
    let only = match benches.len() {
        count if count <= NAMED => format!(" --only {}", benches.join(",")),
        _ => String::new(),
    };
    format!("assay run{}{only}", profile(trend))
}

fn profile(trend: &Trend) -> String {
    let own = trend.runs.last().map(|run| run.profile.as_str()).filter(|own| !own.is_empty());
    own.map_or(String::new(), |own| format!(" --profile {own}"))
}

fn too_few(trend: &Trend) -> Vec<String> {
    let most = trend.figures.iter().map(|figure| figure.points.len()).max().unwrap_or(0);
    let here = match trend.runs.len() {
        0 => "there is none".to_string(),
        count => format!("there {} {count}", if count == 1 { "is" } else { "are" }),
    };
    let missing = MIN_RUNS.saturating_sub(most);
    let next = if trend.runs.is_empty() {
        String::new()
    } else {
        format!("Still needed: {} of `assay run{}`.", counted(missing, "run"), profile(trend))
    };
    vec![format!("A step needs {MIN_RUNS} runs of one profile and the same CPUs; {here}."), next]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect()
}

fn ending(trend: &Trend, how: Shown, exit: u8, style: Style) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    if !trend.apart.is_empty() {
        let kinds: Vec<String> =
            trend.apart.iter().map(|(why, runs)| format!("{why} ({})", counted(*runs, "run"))).collect();
        told.push(format!("Other runs, not compared: {}.", listed(&kinds)));
    }
    if trend.older > 0 {
        told.push(format!("{} left out.", counted(trend.older, "older run")));
    }
    let other = trend.figures.iter().filter(|figure| figure.measured_otherwise > 0).count();
    if other > 0 {
        told.push(format!("Measured differently now, older values left out: {}.", counted(other, "figure")));
    }
    let mut all = Vec::new();
    for text in told {
        let text = lines(&shown(&plain(&text, LONGEST), style), style.width.saturating_sub(2));
        all.extend(text.iter().map(|line| paint(&format!("  {line}"), Tone::Dim, style)));
    }
    let row = [
        if how == Shown::All { "" } else { "every figure: --all" }.to_string(),
        "values: --out trend.csv".to_string(),
        if exit == 0 { String::new() } else { format!("exit {exit}") },
    ];
    let row = row.into_iter().filter(|cell| !cell.is_empty()).collect();
    all.extend(closing(&[row], style));
    all
}
