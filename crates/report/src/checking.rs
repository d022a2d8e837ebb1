//! The first screen of an acceptance: the verdict, a row for each demand, what decides the open
//! ones.

use crate::plain::{key_lines, lines, plain};
use crate::screen::{HostPart, Screen, Tone};
use crate::sections::screen::day;
use crate::text::numbers::{bare, three};
use crate::text::screen::{closing, host, shown, verdict};
use crate::text::{Style, paint};
use check::{Demand, DemandStatus, LOOKS, Outcome, Verdict};
use diagnose::words::counted;
use model::unit_factor;

mod exported;
mod fleet;

pub use crate::text::Shown;
pub use exported::{prometheus, rows};
pub use fleet::{many, total};

/// Rows of demands on a first screen; above that met ones are counted.
const ROWS: usize = 30;

/// Lines that a first screen has at most.
const LINES: usize = 40;

/// No text from a spec or a run is longer on a screen.
const LONGEST: usize = 400;

/// One run's screen.
pub fn render(outcome: &Outcome, shown: Shown, style: Style) -> String {
    let style = Style { width: style.width.clamp(40, 140), ..style };
    if shown != Shown::First {
        return written(outcome, shown, ROWS, style);
    }
    // The table has fewer rows where cells take many lines.
    let text = |rows: usize| written(outcome, shown, rows, style);
    let fits = |rows: &usize| text(*rows).lines().count() <= LINES;
    text((3..=ROWS).rev().find(fits).unwrap_or(3))
}

/// Demands that a run's line names.
const NAMED: usize = 3;

/// A run in one line: `db-12: REJECT: core clock; TCP; 2 of 14 demands are missed, 12 are met.`
/// Who cuts it (a drain's reason, a node's condition) keeps what the verdict is about.
pub fn brief(outcome: &Outcome, style: Style) -> String {
    let first = outcome.sentences.first().map(String::as_str).unwrap_or_default();
    let deciding = match outcome.verdict {
        Verdict::Reject => Some(DemandStatus::Missed),
        Verdict::CannotTell => Some(DemandStatus::Undecided),
        Verdict::Accept | Verdict::NotUsable => None,
    };
    let named = outcome.demands.iter().filter(|demand| Some(demand.standing) == deciding);
    let named: Vec<&str> = named.map(Demand::alone).collect();
    let mut about = named[..named.len().min(NAMED)].join("; ");
    if named.len() > NAMED {
        about += &format!(" and {} more", named.len() - NAMED);
    }
    if !about.is_empty() {
        about += "; ";
    }
    let line = format!("{}: {}: {about}{first}", plain(&outcome.named(), LONGEST), outcome.verdict.words());
    self::shown(&line, style)
}

fn written(outcome: &Outcome, shown: Shown, rows: usize, style: Style) -> String {
    let screen = Screen {
        word: outcome.verdict.words().into(),
        tone: tone(outcome.verdict),
        sentences: outcome.sentences.clone(),
        ..Screen::default()
    };
    let judged = verdict(&screen, style);
    if shown == Shown::Quiet {
        return judged.join("\n").trim_start().to_string() + "\n";
    }
    let parts =
        [about(outcome, style), judged, table(outcome, shown, rows, style), ending(outcome, shown, style)];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| part.join("\n") + "\n")
        .collect::<Vec<_>>()
        .join("\n")
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Accept => Tone::Good,
        Verdict::Reject => Tone::Bad,
        Verdict::CannotTell | Verdict::NotUsable => Tone::Care,
    }
}

fn about(outcome: &Outcome, style: Style) -> Vec<String> {
    let run = match day(&outcome.started) {
        Some(day) => format!("{} run of {day}", outcome.profile),
        None => format!("{} run", outcome.profile),
    };
    let demands = counted(outcome.demands.len(), "demand");
    let mut parts = vec![HostPart::needed(outcome.host.clone())];
    parts.extend(outcome.about.iter().map(|part| HostPart::spare(part.clone())));
    if !outcome.demands.is_empty() {
        parts.extend([HostPart::needed(run), HostPart::needed(demands)]);
    }
    host(&parts, style)
}

/// Columns of a line of demands.
struct Columns {
    group: usize,
    label: usize,
    asked: usize,
    measured: usize,
}

impl Columns {
    fn of(width: usize) -> Columns {
        match width {
            width if width >= 96 => Columns { group: 10, label: 25, asked: 17, measured: 28 },
            width if width >= 80 => Columns { group: 0, label: 24, asked: 14, measured: 23 },
            width => {
                let rest = width - 2 - 11;
                Columns { group: 0, label: rest * 2 / 5, asked: rest * 3 / 10, measured: rest * 3 / 10 }
            }
        }
    }
}

fn table(outcome: &Outcome, how: Shown, rows: usize, style: Style) -> Vec<String> {
    if outcome.demands.is_empty() {
        return Vec::new();
    }
    let columns = Columns::of(style.width);
    let head = format!(
        "  {:group$}{:label$}{:asked$}{:measured$}result",
        "",
        "demand",
        "asked",
        "measured",
        group = columns.group,
        label = columns.label,
        asked = columns.asked,
        measured = columns.measured
    );
    let mut all = vec![paint(&head, Tone::Dim, style)];
    // Demands that are met are left out first.
    let mut spare = outcome.demands.len().saturating_sub(if how == Shown::All { usize::MAX } else { rows });
    let mut hidden = 0;
    let is_spare = |demand: &Demand| matches!(demand.standing, DemandStatus::Met | DemandStatus::NotAsked);
    let mut kept: Vec<&Demand> = outcome.demands.iter().collect();
    while spare > 0 {
        let Some(at) = kept.iter().rposition(|demand| is_spare(demand)) else { break };
        kept.remove(at);
        (spare, hidden) = (spare - 1, hidden + 1);
    }
    // Where even the others are too many, the last are counted.
    let cut = kept.len().saturating_sub(if how == Shown::All { usize::MAX } else { rows });
    kept.truncate(kept.len() - cut);
    let mut group = "";
    for demand in kept {
        let first = demand.group != group;
        group = &demand.group;
        all.extend(row(demand, first, how, &columns, style));
    }
    let more = |count: usize, what: &str| paint(&format!("  {count} more {what}: --all"), Tone::Dim, style);
    if cut > 0 {
        all.push(more(cut, "missed or undecided"));
    }
    if hidden > 0 {
        all.push(more(hidden, "met"));
    }
    all
}

/// `89.4 ns (88.9–90.1)`; of what has no value, what it was or why there is none.
fn measured(demand: &Demand, how: Shown) -> String {
    let short = |why: &str| why.split([':', ';']).next().unwrap_or_default().to_string();
    // In the unit of the limit.
    let asked = demand.asked.rsplit(' ').next().unwrap_or_default();
    let (unit, factor) = match unit_factor(&demand.unit, asked) {
        Some(factor) => (asked, factor),
        None => (demand.unit.as_str(), 1.0),
    };
    let number = |value: f64, short: fn(f64) -> String| match value * factor {
        value if value.abs() < 0.1 => model::figure(value, ""),
        value => short(value),
    };
    match (demand.value, demand.low_high) {
        (Some(value), Some([low, high])) => {
            format!("{} {unit} ({}–{})", number(value, three), number(low, bare), number(high, bare))
        }
        (Some(value), None) => format!("{} {unit}", number(value, three)),
        (None, _) if demand.measured.is_empty() && how == Shown::First => short(&demand.why),
        (None, _) => demand.measured.clone(),
    }
}

fn row(demand: &Demand, first: bool, how: Shown, columns: &Columns, style: Style) -> Vec<String> {
    let cell = |text: &str, width: usize| {
        lines(&shown(&plain(text, LONGEST), style), width.saturating_sub(1).max(4))
    };
    let label = match demand.key == demand.label {
        // A series that has no other name is broken at its parts.
        true => key_lines(&plain(&demand.key, LONGEST), columns.label - 1),
        false => cell(if columns.group == 0 { demand.alone() } else { &demand.label }, columns.label),
    };
    let (asked, measured) =
        (cell(&demand.asked, columns.asked), cell(&measured(demand, how), columns.measured));
    let looks = format!("{} of {LOOKS} runs", demand.missed_in.unwrap_or_default());
    let (sign, word, tone) = match demand.standing {
        DemandStatus::Met => ("✓", "met", Tone::Good),
        DemandStatus::Missed => ("✗", "missed", Tone::Bad),
        DemandStatus::Undecided if style.width >= 80 && waits(demand) => ("?", looks.as_str(), Tone::Care),
        DemandStatus::Undecided => ("?", "undecided", Tone::Care),
        DemandStatus::NotAsked => ("–", "optional", Tone::Dim),
    };
    let by = match demand.by {
        Some(by) if style.width >= 80 && !waits(demand) && by < 10.0 => format!(" by {:.0} %", 100.0 * by),
        Some(by) if style.width >= 80 && !waits(demand) => shown(&format!(" by {by:.0} ×"), style),
        _ => String::new(),
    };
    let count = label.len().max(asked.len()).max(measured.len());
    let mut all = Vec::new();
    for at in 0..count {
        let of = |cells: &[String]| cells.get(at).cloned().unwrap_or_default();
        let group = if at == 0 && first && columns.group > 0 { demand.group.as_str() } else { "" };
        let line = format!(
            "  {group:own$}{:label$}{:asked$}{:measured$}",
            of(&label),
            of(&asked),
            of(&measured),
            own = columns.group,
            label = columns.label,
            asked = columns.asked,
            measured = columns.measured
        );
        let result = if at == 0 {
            paint(&format!("{} {word}", shown(sign, style)), tone, style) + &by
        } else {
            String::new()
        };
        all.push(format!("{line}{result}").trim_end().to_string());
    }
    if how == Shown::All {
        let indent = 2 + columns.group + 2;
        let mut told = vec![demand.why.clone()];
        told.extend((!demand.confirm.is_empty()).then(|| format!("to decide: {}", demand.confirm)));
        for text in told.iter().filter(|text| !text.is_empty()) {
            let text = lines(&shown(&plain(text, LONGEST), style), style.width.saturating_sub(indent));
            all.extend(text.iter().map(|line| paint(&format!("{:indent$}{line}", ""), Tone::Dim, style)));
        }
        if demand.key != demand.label {
            let keys = key_lines(&plain(&demand.key, LONGEST), style.width.saturating_sub(indent));
            all.extend(keys.iter().map(|line| paint(&format!("{:indent$}{line}", ""), Tone::Dim, style)));
        }
    }
    all
}

fn ending(outcome: &Outcome, how: Shown, style: Style) -> Vec<String> {
    let mut all = Vec::new();
    let mut sentence = |text: &str| {
        let text = lines(&shown(text, style), style.width.saturating_sub(2));
        all.extend(text.iter().map(|line| paint(&format!("  {line}"), Tone::Dim, style)));
    };
    if outcome.demands.iter().any(|demand| demand.low_high.is_some()) {
        sentence(
            "A demand is met or missed only if the whole 95 % interval lies on that side; \"by\" counts from its near end.",
        );
    }
    if !outcome.reference.is_empty() {
        let name = plain(&outcome.reference, LONGEST);
        sentence(&format!("× is the ratio to the reference ({name}); within allows that much worse."));
    }
    if let Some(text) = deciding(outcome) {
        sentence(&text);
    }
    let exit = outcome.verdict.exit_code();
    let exit = if exit == 0 { String::new() } else { format!("exit {exit}") };
    let row = match (outcome.demands.is_empty(), how) {
        (true, _) => vec![exit],
        (false, Shown::All) => vec![WRITES.to_string(), String::new(), exit],
        (false, _) => vec![WRITES.to_string(), SHOWS.to_string(), exit],
    };
    all.extend(closing(&[row], style));
    all
}

const WRITES: &str = "--junit FILE, --out FILE.json write it";
const SHOWS: &str = "--all: keys and commands";

/// Whether it was missed, and too few runs confirm that.
fn waits(demand: &Demand) -> bool {
    demand.standing == DemandStatus::Undecided && demand.missed_in.is_some()
}

/// The one command that decides what is open, with what it needs.
fn deciding(outcome: &Outcome) -> Option<String> {
    let open: Vec<&Demand> =
        outcome.demands.iter().filter(|demand| demand.standing == DemandStatus::Undecided).collect();
    if let Some(waiting) = open.iter().find(|demand| waits(demand)) {
        return Some(format!("Not before then: {}, then run this check again.", waiting.confirm));
    }
    let commands: Vec<&str> = open.iter().filter_map(|own| own.confirm.strip_prefix("assay run")).collect();
    let mut benches: Vec<&str> = Vec::new();
    for command in &commands {
        let bench = command.strip_prefix(" --only ").and_then(|rest| rest.split(' ').next());
        benches.extend(bench.filter(|bench| !benches.contains(bench)));
    }
    let needs = |option: &str| commands.iter().any(|command| command.contains(option));
    let unmeasured = !commands.is_empty() && open.iter().all(|own| own.value.is_none());
    let (to, which) = match (unmeasured, open.len()) {
        (true, _) => ("measure", "what is open"),
        (false, 1) => ("decide", "the open one"),
        (false, _) => ("decide", "the open ones"),
    };
    // A figure that is read off several benchmarks takes them all.
    let only = if commands.iter().all(|command| command.starts_with(" --only ")) {
        format!(" --only {}", benches.join(","))
    } else {
        String::new()
    };
    let host = if needs(" --to HOST") { " --to HOST" } else { "" };
    let (stop, idle) = if needs(" --wait-idle") {
        ("stop other work (background-load), then ", " --wait-idle")
    } else {
        ("", "")
    };
    (!commands.is_empty())
        .then(|| format!("To {to} {which}: {stop}assay run{only}{host} --profile full{idle}"))
}
