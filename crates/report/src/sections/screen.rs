//! The first screen of a run: from a diagnosis to what is said of it.

use super::cards::cards;
use super::names::{label, placement_words};
use super::{study, unapplied};
use crate::screen::{FindingLine, HostPart, PassedCheck, Row, RowReading, Screen, Tone};
use crate::text::numbers::bare;
use diagnose::bottom_line::{self, KeyReading, RunVerdict, bottom_line, key_readings};
use diagnose::key_figures::{self, Group};
use diagnose::reference::{Band, HostClass, Quality, Reading, References, Word};
use diagnose::words::{bytes, counted, guest};
use diagnose::{Diagnosis, Rule};
use machine::{Hypervisor, Machine};
use model::{Severity, VerdictKind, percent, unit_factor};
use stats::analysis::Judged;

/// Rows at most.
const ROWS: usize = 16;

/// How a reason begins that is want of time.
const NO_TIME: &str = "budget";

/// What stands behind a size that the kernel reports.
const REPORTED: &str = " reported";

/// Where published figures say little.
const OWN_REFERENCE: &str =
    "Most figures have no published reference. Best: your own second host, --reference RUN.";

/// The first screen of a run: of a study its answer, of all else key figures.
pub fn screen(diagnosis: &Diagnosis, references: &References, units: &[String]) -> Screen {
    let readings = key_readings(diagnosis, references);
    let line = bottom_line(diagnosis, &readings);
    let class = references.class_of(&diagnosis.machine);
    let mut rows: Vec<Row> = readings.iter().map(|own| key_row(own, &readings, diagnosis)).collect();
    rows.extend(others(diagnosis, references, &class, &rows));
    rows.truncate(ROWS);
    rows.sort_by_key(|row| Group::ALL.iter().position(|group| group.word() == row.group));
    let unread = rows.iter().filter(|row| row.reading.sign == '–').count();
    let mut remarks = network(diagnosis);
    remarks.extend(skipped(diagnosis, &readings));
    if 2 * unread > rows.len() && rows.len() > 2 {
        remarks.push((String::new(), OWN_REFERENCE.into()));
    }
    rows.iter_mut().for_each(|row| in_units(row, units));
    let answer = study::answer(diagnosis, !readings.is_empty());
    let screen = Screen {
        host: host(diagnosis),
        notices: notices(diagnosis),
        word: line.verdict.words().into(),
        tone: match line.verdict {
            RunVerdict::NotValid | RunVerdict::Faulty => Tone::Bad,
            RunVerdict::UsableWithCaution => Tone::Care,
            RunVerdict::Healthy => Tone::Good,
            RunVerdict::NoFaultFound => Tone::Strong,
        },
        sentences: line.sentences,
        cards: cards(&rows, &readings, diagnosis),
        findings: findings(diagnosis, &readings, &rows),
        rows,
        remarks,
        passed: diagnosis
            .clean
            .iter()
            .filter(|rule| !rule.calm.is_empty())
            .map(|rule| passed(rule))
            .collect(),
        not_applicable: unapplied::subjects(diagnosis, &diagnosis.not_applicable),
        blocks: Vec::new(),
        next: Vec::new(),
        figures: diagnosis.series.iter().filter(measured).count(),
    };
    match answer {
        Some(answer) => answer.on(screen, line.verdict != RunVerdict::NotValid, diagnosis),
        None => screen,
    }
}

fn measured(judged: &&Judged) -> bool {
    judged.series.metric.headline && judged.analysis.verdict.kind != VerdictKind::Skipped
}

/// Host, what it is, how long it took.
fn host(diagnosis: &Diagnosis) -> Vec<HostPart> {
    let header = &diagnosis.run.header;
    let mut parts = vec![HostPart::needed(header.host.clone())];
    parts.extend(about(&diagnosis.machine));
    parts.extend(header.labels.iter().map(|(key, value)| HostPart::spare(format!("{key}={value}"))));
    let elapsed = elapsed(diagnosis.elapsed_s());
    let text = match day(&header.started) {
        Some(day) => format!("{elapsed} on {day}"),
        None => elapsed.clone(),
    };
    parts.push(HostPart { text, short: elapsed, spare: false });
    parts
}

/// What a host is: guest or not, CPUs, memory, kernel.
pub(crate) fn about(machine: &Machine) -> Vec<HostPart> {
    let mut parts = Vec::new();
    parts.extend(match &machine.hypervisor {
        Hypervisor::Unknown => None,
        Hypervisor::None => Some(HostPart::spare("bare metal")),
        Hypervisor::Guest(name) => Some(HostPart::needed(guest(name))),
    });
    parts.extend(machine.around().map(|enclosure| HostPart::spare(enclosure.name)));
    parts.extend(cpus(machine));
    parts.extend(machine.memory.total_bytes.map(|total| HostPart::spare(bytes(total as f64))));
    let release = machine.kernel.release.as_deref().map(|release| {
        let ends = release.match_indices(|c: char| !c.is_ascii_digit()).map(|(at, _)| at).nth(1);
        &release[..ends.unwrap_or(release.len())]
    });
    parts.extend(release.map(|release| HostPart::spare(format!("Linux {release}"))));
    parts
}

fn notices(diagnosis: &Diagnosis) -> Vec<String> {
    let mut notices = Vec::new();
    notices.extend(diagnosis.run.header.pretend.map(|seed| format!("INVENTED SAMPLES (--pretend {seed})")));
    notices.extend(diagnosis.planted().map(|words| format!("SLOWED ON PURPOSE (--planted: {words})")));
    if diagnosis.run.summary.is_none() && diagnosis.run.events.iter().any(|event| event.kind == "interrupted")
    {
        notices.push("INTERRUPTED".to_string());
    }
    notices
}

/// `2 CPUs of an AMD EPYC`, shorter `2 CPUs, AMD EPYC`.
fn cpus(machine: &Machine) -> Option<HostPart> {
    let cpus = &machine.cpus;
    let count = match cpus.online.len() {
        0 => return None,
        count => counted(count, "CPU"),
    };
    let packages = cpus.packages.as_ref().map_or(1, Vec::len);
    Some(match processor(machine) {
        None => HostPart::needed(count),
        Some(name) if packages > 1 => HostPart {
            text: format!("{count} of {packages} × {name}"),
            short: format!("{count}, {packages} × {name}"),
            spare: false,
        },
        Some(name) => HostPart {
            text: format!("{count} of {} {name}", article(&name)),
            short: format!("{count}, {name}"),
            spare: false,
        },
    })
}

/// The processor by its name, with its maker's name of the design: `Intel Xeon 6 (Granite Rapids)`.
/// A name without a number says less than the generation.
fn processor(machine: &Machine) -> Option<String> {
    let name = machine.cpus.name().map(|name| compare::processor(&name)).filter(|name| !name.is_empty());
    let Some(generation) = machine.generation() else { return name };
    let vendor = match generation.class.split('/').next() {
        Some("intel") => "Intel ",
        Some("amd") => "AMD ",
        _ => "",
    };
    let numbered = name.filter(|name| name.chars().any(|c| c.is_ascii_digit()));
    let name = numbered.unwrap_or_else(|| format!("{vendor}{}", generation.product));
    Some(format!("{name} ({})", generation.core))
}

fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O']) { "an" } else { "a" }
}

/// `28 Nov 2026` of a time as run files have it.
pub(crate) fn day(started: &str) -> Option<String> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = started.get(..10)?.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?)?;
    Some(format!("{} {month} {year}", day.parse::<u32>().ok()?))
}

/// `75 s`, `9 min 40 s`.
fn elapsed(seconds: f64) -> String {
    match seconds.round() as u64 {
        s if s < 120 => format!("{s} s"),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{} min {} s", s / 60, s % 60),
    }
}

fn key_row(own: &KeyReading, all: &[KeyReading], diagnosis: &Diagnosis) -> Row {
    let (measured, figure) = (&own.measured, own.measured.figure);
    let typical = match (&own.reading, measured.reported) {
        (_, Some(reported)) => format!("{}{REPORTED}", bare(reported)),
        (Some(reading), None) => typical(&reading.band),
        (None, None) => String::new(),
    };
    let mut reading = match &own.reading {
        _ if measured.verdict == VerdictKind::Rejected => rejected(),
        _ if own.is_small() => sign(Word::Slow, Quality::Size),
        _ if own.is_large() => sign(Word::Fast, Quality::Size),
        _ if figure.is_size() && measured.reported.is_some() => sign(Word::Normal, Quality::Size),
        Some(reading) => row_reading(reading, measured.low_high),
        None => RowReading::default(),
    };
    reading.extra = extra(own, all, diagnosis);
    let two_cpus = figure.name == "line-transfer" && diagnosis.machine.cpus.online.len() == 2;
    let named =
        |label: &str| if two_cpus { label.replace("another", "the other") } else { label.to_string() };
    Row {
        name: Some(figure.name),
        key: measured.key.clone(),
        group: figure.group.word(),
        label: named(figure.label),
        alone: named(figure.alone),
        value: measured.value,
        low_high: measured.low_high,
        unit: figure.unit.into(),
        typical,
        band: match (&own.reading, measured.reported) {
            (_, Some(reported)) => [Some(reported); 2],
            (Some(reading), None) => [reading.band.low, reading.band.high],
            (None, None) => [None; 2],
        },
        reading,
    }
}

/// What stands behind a reading, or in place of one.
fn extra(own: &KeyReading, all: &[KeyReading], diagnosis: &Diagnosis) -> String {
    /// A clock that moves by more is no steady one.
    const UNSTEADY: f64 = 0.05;
    let name = own.measured.figure.name;
    if let Some(suspicion) = own.reading.as_ref().and_then(|reading| reading.suspicion.clone()) {
        return suspicion;
    }
    match own.measured.verdict {
        VerdictKind::Multimodal => return "two values".into(),
        VerdictKind::Drifting => return "drifts".into(),
        _ => {}
    }
    let is_unsteady = || diagnosis.clock_movement().is_some_and(|moved| moved > UNSTEADY);
    if name == "core-clock" && is_unsteady() {
        return "unsteady".into();
    }
    let one = all.iter().find(|other| other.measured.figure.name == "read-one-cpu");
    match (name, own.measured.value, one.and_then(|one| one.measured.value)) {
        ("read-all-cpus", Some(all), Some(one)) if own.reading.is_none() => {
            format!("{:.1} × one CPU", all / one)
        }
        _ => own
            .reading
            .as_ref()
            .zip(own.measured.value)
            .map_or(String::new(), |(own, value)| near(own, value)),
    }
}

/// `±15 %`: of a value that is normal, and outside of the band that is shown.
fn near(reading: &Reading, value: f64) -> String {
    reading.tolerated(value).map_or(String::new(), |share| format!("±{}", percent(share)))
}

fn rejected() -> RowReading {
    RowReading { sign: '✗', word: "rejected".into(), tone: Tone::Bad, wide: false, extra: String::new() }
}

pub(super) fn sign(word: Word, quality: Quality) -> RowReading {
    let (sign, tone) = match word {
        Word::Fast => ('▲', Tone::Good),
        Word::Normal => ('●', Tone::Plain),
        Word::Slow => ('▼', Tone::Care),
        Word::Bad | Word::TooGoodToBeTrue => ('✗', Tone::Bad),
    };
    RowReading { sign, word: word.words(quality).into(), tone, wide: false, extra: String::new() }
}

/// The reading of what nothing real reaches.
const TOO_GOOD: &str = "too good";

/// A figure without an interval has no certain word.
fn row_reading(reading: &Reading, interval: Option<[f64; 2]>) -> RowReading {
    let mut own = sign(reading.word, Quality::Speed);
    if interval.is_none() && reading.word != Word::TooGoodToBeTrue {
        own.sign = '?';
    }
    if reading.word == Word::TooGoodToBeTrue {
        own.word = TOO_GOOD.into();
    }
    match reading.unsure {
        Some(worse) => {
            let word = format!("{} or {}", worse.words(Quality::Speed), own.word);
            RowReading { sign: '?', word, wide: reading.wide, ..own }
        }
        None => RowReading { wide: reading.wide, ..own },
    }
}

fn typical(band: &Band) -> String {
    band_words([band.low, band.high])
}

/// `102–139`, `up to 3.9`, `from 891`.
fn band_words([low, high]: [Option<f64>; 2]) -> String {
    match (low, high) {
        (Some(low), Some(high)) if bare(low) == bare(high) => bare(low),
        (Some(low), Some(high)) => format!("{}–{}", bare(low), bare(high)),
        (None, Some(high)) => format!("up to {}", bare(high)),
        (Some(low), None) => format!("from {}", bare(low)),
        (None, None) => String::new(),
    }
}

/// Rows beside the key figures: what is read as slow or bad; in a run without key figures all that
/// was measured.
fn others(diagnosis: &Diagnosis, references: &References, class: &HostClass, rows: &[Row]) -> Vec<Row> {
    let shown = |judged: &&Judged| {
        let key = &judged.series.key;
        rows.iter().all(|row| row.key.as_ref() != Some(key)) && key_figures::of_key(key).is_none()
    };
    let row = |judged: &Judged| {
        let series = &judged.series;
        let label = match series.case.placement.name.as_ref() {
            "one-cpu" => label(diagnosis, judged),
            place => format!("{}, {}", label(diagnosis, judged), placement_words(place)),
        };
        let mut own = bare_row(judged, label, &series.metric.unit);
        let read = read(&mut own, judged, references, class);
        // By the reference of a wider class a figure that few look for is no news.
        (read.filter(|reading| !reading.wide && reading.unsure.is_none()).map(|reading| reading.word), own)
    };
    let all = diagnosis.series.iter().filter(measured).filter(shown).map(row);
    if rows.is_empty() {
        all.map(|(_, row)| row).collect()
    } else {
        let mut slow: Vec<(Word, Row)> =
            all.filter_map(|(word, row)| Some((word.filter(|word| *word >= Word::Slow)?, row))).collect();
        slow.sort_by_key(|(word, _)| std::cmp::Reverse(*word));
        slow.into_iter().map(|(_, row)| row).collect()
    }
}

/// A series as a row that nothing was read of yet, in a unit that measures the same.
pub fn bare_row(judged: &Judged, label: String, unit: &str) -> Row {
    let (series, analysis) = (&judged.series, &judged.analysis);
    let factor = unit_factor(&series.metric.unit, unit).unwrap_or(1.0);
    let estimate = analysis.figure().filter(|_| analysis.verdict.usable());
    let interval = estimate.and_then(|one| one.interval);
    Row {
        key: Some(series.key.clone()),
        group: Group::of_bench(&series.case.bench).word(),
        alone: label.clone(),
        label,
        value: estimate.map(|one| one.median * factor),
        low_high: interval.map(|interval| [interval.low * factor, interval.high * factor]),
        unit: unit.replace("us", "µs"),
        reading: if estimate.is_none() { rejected() } else { RowReading::default() },
        ..Row::default()
    }
}

/// Reads such a row against what is normal, and says what is odd about its samples.
pub fn read(row: &mut Row, judged: &Judged, references: &References, class: &HostClass) -> Option<Reading> {
    let reading = references.reading(class, &judged.series.key, row.value?, row.low_high, &row.unit);
    if let Some(reading) = &reading {
        row.typical = typical(&reading.band);
        row.band = [reading.band.low, reading.band.high];
        row.reading = row_reading(reading, row.low_high);
    }
    let verdict = &judged.analysis.verdict;
    row.reading.extra = match (reading.as_ref().and_then(|own| own.suspicion.clone()), verdict.kind) {
        (Some(suspicion), _) => suspicion,
        (None, VerdictKind::Multimodal) => "two values".into(),
        (None, VerdictKind::Drifting) => "drifts".into(),
        // The reason begins with the rule whose finding is the cause.
        (None, VerdictKind::TrustedWithCause) => {
            let rule = verdict.reason.split(": ").next().unwrap_or_default();
            diagnose::topic(rule).map_or(String::new(), |topic| format!("see {topic}"))
        }
        (None, _) => String::new(),
    };
    reading
}

/// A row in the unit that was asked for, if any measures the same.
pub fn in_units(row: &mut Row, units: &[String]) {
    let Some((unit, factor)) = units.iter().find_map(|unit| Some((unit, unit_factor(&row.unit, unit)?)))
    else {
        return;
    };
    if *unit != row.unit {
        row.value = row.value.map(|value| value * factor);
        row.low_high = row.low_high.map(|ends| ends.map(|end| end * factor));
        row.unit = unit.replace("us", "µs");
        row.band = row.band.map(|end| end.map(|end| end * factor));
        let reported = if row.typical.ends_with(REPORTED) { REPORTED } else { "" };
        row.typical = format!("{}{reported}", band_words(row.band));
    }
}

/// Key figures for which there was no time.
fn skipped(diagnosis: &Diagnosis, readings: &[KeyReading]) -> Option<(String, String)> {
    let mut figures: Vec<&'static str> = Vec::new();
    for judged in diagnosis.series.iter().filter(|judged| judged.series.metric.headline) {
        let verdict = &judged.analysis.verdict;
        let Some(figure) = key_figures::of_key(&judged.series.key) else { continue };
        let has_row = readings.iter().any(|own| own.measured.figure.name == figure.name);
        let is_late = verdict.kind == VerdictKind::Skipped && verdict.reason.starts_with(NO_TIME);
        if is_late && !has_row && !figures.contains(&figure.alone) {
            figures.push(figure.alone);
        }
    }
    (!figures.is_empty()).then(|| (String::new(), format!("no time was left for: {}", figures.join("; "))))
}

/// Why there is no figure between hosts.
fn network(diagnosis: &Diagnosis) -> Vec<(String, String)> {
    let of_network = |judged: &&Judged| judged.series.case.bench.starts_with("network.");
    let mut all = diagnosis.series.iter().filter(of_network).filter(measured).peekable();
    let text = match (all.peek().is_some(), all.any(key_figures::is_between_hosts)) {
        (false, _) | (_, true) => return Vec::new(),
        (true, false) => "not tested: both ends were this host (assay serve on another host, then --to HOST)",
    };
    vec![(Group::Network.word().into(), text.into())]
}

/// The findings, and what is to be said of the file that they were read from.
fn findings(diagnosis: &Diagnosis, readings: &[KeyReading], rows: &[Row]) -> Vec<FindingLine> {
    let file = |text: String| FindingLine {
        severity: Severity::Warning,
        topic: "run file",
        text,
        advice: String::new(),
        rule: String::new(),
        more: 0,
    };
    let damage = &diagnosis.run.damage;
    let damaged = (!damage.is_empty()).then(|| match damage.len() {
        1 => file(format!("A line of the file cannot be read: {}", damage[0])),
        count => file(format!("{count} lines of the file cannot be read, first {}", damage[0])),
    });
    let thinned = diagnosis
        .run
        .thinned
        .as_ref()
        .map(|thinned| FindingLine { severity: Severity::Note, ..file(thinned.words()) });
    let own = bottom_line::finding_lines(diagnosis, readings);
    // Of key figures the verdict speaks, too.
    let others = rows.iter().filter(|row| row.name.is_none() && row.reading.word == TOO_GOOD);
    let others: Vec<&str> = others.map(|row| row.alone.as_str()).collect();
    let too_good = bottom_line::too_good_line(&others, Severity::Note);
    let mut all: Vec<FindingLine> = own.into_iter().chain(damaged).chain(thinned).chain(too_good).collect();
    all.sort_by_key(|line| std::cmp::Reverse(line.severity));
    all
}

fn passed(rule: &Rule) -> PassedCheck {
    PassedCheck { text: rule.calm.into(), looked_at: rule.looked_at.into(), rule: rule.id.to_string() }
}
