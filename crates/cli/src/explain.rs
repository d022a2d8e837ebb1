//! `assay explain ID`: what a benchmark, a rule, a verdict or another topic means, from the very
//! row that does it.

use super::output::{self, misuse};
use std::collections::HashSet;
use std::io::IsTerminal;
use std::process::ExitCode;

use bench::{self, Benchmark};
use diagnose::key_figures::{KEY_FIGURES, KeyFigure};
use diagnose::{Rule, rules};
use model::vocabulary::host::rule::LLC_DIFFERS;
use model::{Better, Grade, Metric, VerdictKind, did_you_mean, unit_words};
use report::plain::lines;
use session::explained::STATES;

mod code;
mod items;
mod labels;
mod search;
mod topics;

use topics::{HARNESS, TOPICS, Topic};

/// Explain a benchmark, a rule, a verdict or any word of a screen
#[derive(clap::Args)]
pub struct Args {
    /// Name or word to explain [default: all names]
    ///
    /// A group (memory), a benchmark (memory.latency), a rule (background-load), a verdict
    /// (imprecise), a grade (rough), a placement (same-cpu), a topic (harness), a word of a screen
    /// ("left out") or of a symptom ("slow disk").
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Source of a benchmark with the loops that it times, or of the harness
    #[arg(long, requires = "id")]
    code: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let width = output::style(std::io::stdout().is_terminal()).width;
    let Some(id) = args.id else {
        output::print_text(&contents(width))?;
        return Ok(ExitCode::SUCCESS);
    };
    // A series' key names its benchmark before the @.
    let wanted = &id.split('@').next().unwrap_or(&id).to_lowercase();
    if args.code {
        return source_of(wanted);
    }
    // People write `context switch` for `sched.context-switch`; a dot or a hyphen makes it a name.
    let words = || if wanted.contains(['.', '-']) { None } else { about(wanted, width) };
    let text = named(wanted, width).or_else(|| named(&wanted.replace(' ', "-"), width)).or_else(words);
    let Some(text) = text else {
        let names = names();
        let meant = did_you_mean(wanted, names.iter().map(String::as_str));
        return Err(misuse(format!("nothing is called {id:?}{meant}; `assay explain` lists all names")));
    };
    output::print_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All that a name stands for: it may name a benchmark and stand on a screen, too.
pub fn named(wanted: &str, width: usize) -> Option<String> {
    let text = bench::find(wanted)
        .map(|bench| benchmark(bench, width))
        .or_else(|| meanings(wanted, width))
        .or_else(|| topic(wanted, width))
        .or_else(|| group(wanted))
        .or_else(|| last_part(wanted, width))
        .or_else(|| key_figure(wanted, width))
        .or_else(|| rules_of(wanted, width));
    let labels = labels::meanings(wanted).into_iter().map(|(title, about)| section(&title, about, width));
    let parts: Vec<String> = text.into_iter().chain(labels).collect();
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The names whose explanations have the words of a question.
fn about(question: &str, width: usize) -> Option<String> {
    let found = search::found(question);
    let lines: String = found.iter().map(|(id, title)| indented(&format!("{id}: {title}"), width)).collect();
    (!found.is_empty())
        .then(|| format!("Explanations about {question:?}; assay explain NAME shows one\n{lines}"))
}

/// Prints code as it is: nothing in it is wrapped.
fn source_of(wanted: &str) -> anyhow::Result<ExitCode> {
    let text = match bench::find(wanted) {
        Some(bench) => code::of_benchmark(bench),
        None if wanted == HARNESS => code::of_harness(),
        None => None,
    };
    let none = || misuse(format!("no code is kept for {wanted:?}: name a benchmark, or harness"));
    output::print_text(&text.ok_or_else(none)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The words for placements, how well a figure is known, states of a pass, and topics.
pub fn words() -> Vec<String> {
    let placements = bench::placement::EXPLAINED.iter().map(|(name, _)| name.to_string());
    let verdicts = VERDICTS.iter().map(|(kind, _)| kind.words().to_string());
    let grades = GRADES.iter().map(|(grade, _, _)| grade.word().to_string());
    let states = STATES.iter().map(|state| state.words[0].to_string());
    let topics = TOPICS.iter().map(|topic| topic.id.to_string());
    let mut words: Vec<String> =
        placements.chain(verdicts).chain(grades).chain(states).chain(topics).collect();
    let mut seen = HashSet::new();
    words.retain(|word| seen.insert(word.clone()));
    words
}

/// All benchmarks but those of Assay's own tests; some have a command of their own.
pub fn benches() -> impl Iterator<Item = &'static Benchmark> {
    bench::all().filter(|bench| bench.group() != "selftest")
}

/// All that can be explained.
fn names() -> Vec<String> {
    let benches = benches().flat_map(|bench| [bench.id.as_str(), bench.group()]);
    let placements = bench::placement::EXPLAINED.iter().map(|(name, _)| *name);
    let states = STATES.iter().flat_map(|state| state.words.iter().copied());
    let topics = TOPICS.iter().map(|topic| topic.id);
    let fixed =
        benches.chain(rules().map(|rule| rule.id.as_str())).chain(placements).chain(states).chain(topics);
    let grades = GRADES.iter().map(|(grade, _, _)| grade.word().to_string());
    let fixed = fixed.chain(search::symptoms());
    fixed
        .map(str::to_string)
        .chain(VERDICTS.iter().map(|(kind, _)| kind.words().to_string()))
        .chain(grades)
        .collect()
}

fn contents(width: usize) -> String {
    let benches: Vec<String> = benches().map(|bench| bench.id.to_string()).collect();
    let rules: Vec<String> = rules().map(|rule| rule.id.to_string()).collect();
    let verdicts: Vec<String> = VERDICTS.iter().map(|(kind, _)| kind.words().to_string()).collect();
    let grades: Vec<String> =
        GRADES.iter().map(|(grade, _, _)| format!("{grade:?} ({})", grade.word())).collect();
    let list = |title: &str, ids: &[String]| {
        let mark = if ids.iter().any(|id| id.contains(',')) { "; " } else { ", " };
        let text = format!("{title}: {}", ids.join(mark));
        lines(&text, width.clamp(40, 100)).iter().map(|line| format!("{line}\n")).collect::<String>()
    };
    let topics: Vec<String> = TOPICS.iter().map(|topic| topic.id.to_string()).collect();
    let states: Vec<String> = STATES.iter().map(|state| state.words[0].to_string()).collect();
    list("benchmarks", &benches)
        + &list("rules", &rules)
        + &list("verdicts", &verdicts)
        + &list("grades", &grades)
        + &list("states of a pass", &states)
        + &list("topics", &topics)
}

/// The benchmarks of a group, by name and title.
fn group(wanted: &str) -> Option<String> {
    let own = benches().filter(|bench| bench.group() == wanted);
    let lines: Vec<String> = own.map(|bench| format!("  {}: {}\n", bench.id, bench.title)).collect();
    (!lines.is_empty()).then(|| format!("Group {wanted}\n{}", lines.concat()))
}

/// The benchmark whose id ends in a word, `hackbench` for `sched.hackbench`; of several their
/// names.
fn last_part(wanted: &str, width: usize) -> Option<String> {
    let is_own =
        |bench: &&'static Benchmark| bench.id.as_str().split_once('.').is_some_and(|(_, own)| own == wanted);
    let found: Vec<&Benchmark> = bench::all().filter(is_own).collect();
    match found.as_slice() {
        [] => None,
        [one] => Some(benchmark(one, width)),
        several => {
            let lines = several.iter().map(|bench| format!("  {}: {}\n", bench.id, bench.title));
            Some(format!("Benchmarks called {wanted}\n{}", lines.collect::<String>()))
        }
    }
}

/// The benchmark that a key figure comes from, by the figure's name or by what screens call it; of
/// a size the rule that reads it off the latency ladder.
fn key_figure(wanted: &str, width: usize) -> Option<String> {
    let is_own = |figure: &&KeyFigure| {
        [figure.name, figure.label, figure.alone].iter().any(|name| name.to_lowercase() == wanted)
    };
    let figure = KEY_FIGURES.iter().find(is_own)?;
    let bench = figure.patterns().first().and_then(|key| bench::find(key.split('@').next()?));
    let bench = bench.or_else(|| bench::find(figure.patterns().first()?.split(['?', '@']).next()?));
    match bench {
        Some(bench) => Some(benchmark(bench, width)),
        None => meanings(LLC_DIFFERS.as_str(), width),
    }
}

/// The rules whose findings screens call by this word.
fn rules_of(wanted: &str, width: usize) -> Option<String> {
    let own: Vec<&Rule> = rules().filter(|rule| rule.topic.to_lowercase() == wanted).collect();
    let is_so_called =
        |topic: &&Topic| import::topic(topic.id).is_some_and(|word| word.to_lowercase() == wanted);
    let imported: Vec<&Topic> = TOPICS.iter().filter(is_so_called).collect();
    match (own.as_slice(), imported.as_slice()) {
        ([], []) => None,
        ([one], []) => Some(rule(one, width)),
        ([], [one]) => topic(one.id, width),
        (rules, topics) => {
            let rules = rules.iter().map(|rule| format!("  {}: {}\n", rule.id, rule.title));
            let topics = topics.iter().map(|topic| format!("  {}: {}\n", topic.id, topic.title));
            Some(format!("Findings called {wanted:?}\n{}", rules.chain(topics).collect::<String>()))
        }
    }
}

fn benchmark(bench: &Benchmark, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", bench.id, bench.title);
    text.push_str(&section("What it measures", bench.about, width));
    text.push_str(&section("How to read it", bench.reading, width));
    text.push_str("Figures\n");
    for metric in bench.metrics {
        text.push_str(&indented(&format!("{}: {}", metric.name, figure_words(metric)), width));
    }
    if !bench.params.is_empty() {
        text.push_str("\nParameters\n");
        for param in bench.params {
            let line = format!("{}: {} ({})", param.name, param.about, param.range);
            text.push_str(&indented(&line, width));
        }
    }
    text.push_str(&format!(
        "\nMeasure it: assay run --only {0}\nIts code: assay explain {0} --code\n\n",
        bench.id
    ));
    if !bench.method.is_empty() {
        text.push_str(&section("How it is measured", bench.method, width));
    }
    text.push_str(&format!("Source: {}\n", bench.source));
    text
}

/// What a figure is, where its name does not say it, with its unit and better side.
fn figure_words(metric: &Metric) -> String {
    let better = match metric.better {
        Better::Higher => "higher is better",
        Better::Lower => "lower is better",
        Better::Neither => "",
    };
    let title = if metric.title == metric.name { "" } else { &metric.title };
    let words = [title, unit_words(&metric.unit), better];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}

fn rule(rule: &Rule, width: usize) -> String {
    let mut text = format!("{}: {}\n\n", rule.id, rule.title);
    text.push_str(&section("What it means", rule.meaning, width));
    text.push_str(&action(rule.action, width));
    text.push_str(&section("When it appears", rule.when, width));
    if !rule.how.is_empty() {
        text.push_str(&section("How it is computed", rule.how, width));
    }
    text.push_str(&format!("Source: {}\n", rule.source));
    text
}

/// What to do, with the command that shows it unbroken on a line of its own.
fn action(text: &str, width: usize) -> String {
    let Some((words, command)) = text.split_once("See it: ") else {
        return section("What to do", text, width);
    };
    format!("What to do\n{}  See it: {command}\n\n", indented(words.trim_end(), width))
}

const VERDICTS: &[(VerdictKind, &str)] = &[
    (
        VerdictKind::Trusted,
        "Use the figure. Its interval is as narrow as the profile asks. No test found drift, several values or dependence, and no \
         finding limits it.",
    ),
    (
        VerdictKind::TrustedWithCause,
        "Use the figure, and read the reason: it names what moved the figure or limits its meaning.",
    ),
    (
        VerdictKind::Imprecise,
        "There are too few passes, or they scatter too widely, for the precision that the profile asks. The reason says how many \
         more passes are needed. Reports call the figure rough where its interval lies within 10 % (5 % in the standard and full \
         profiles), wide where it does not, and imprecise where it has none.",
    ),
    (
        VerdictKind::Multimodal,
        "The figure has several values. The reason lists them with their shares. Find out what chooses between them before you \
         use one.",
    ),
    (
        VerdictKind::Drifting,
        "The figure was still moving when measuring ended, so its median depends on the time. Measure longer, or on a host at rest.",
    ),
    (
        VerdictKind::Rejected,
        "Do not use the figure. An answer was wrong, a value lies above a physical limit, or the conditions made it worthless.",
    ),
    (
        VerdictKind::Skipped,
        "Not measured: this host or this user lacks something, or the time limit came first. The reason says which.",
    ),
    (VerdictKind::Unverified, "Imported from another tool: Assay did not watch the measurement."),
];

/// How well a number is known. Each is found by its letter, its word and further words.
const GRADES: &[(Grade, &[&str], &str)] = &[
    (
        Grade::A,
        &["trusted at a clock"],
        "Good for everything. The interval is as narrow as the profile asks: 3 % in the quick profile, 1 % in the others. \"At a \
         clock\": the time is a count of core cycles, and the figure is converted to the one core clock beside it. The time as \
         measured, while the clock moved, is shown too.",
    ),
    (
        Grade::B,
        &[],
        "Good for comparisons and for the index. The interval is wider than the profile asks, and within 10 % (5 % in the standard \
         and full profiles). Lists of all figures show two digits.",
    ),
    (
        Grade::C,
        &[],
        "Good for large differences only: those beyond its range. The interval is wider than that of grade B; only its range is \
         shown, and no index counts it.",
    ),
    (
        Grade::U,
        &[],
        "Conclude nothing from it. There is no interval or no single value: too few passes, several values, drift, a rejected \
         figure or one that was not measured.",
    ),
];

fn topic(wanted: &str, width: usize) -> Option<String> {
    let topic = TOPICS.iter().find(|topic| topic.is_called(wanted))?;
    let sections = (topic.sections)();
    let sections: String = sections.iter().map(|(title, about)| section(title, about, width)).collect();
    let code = if topic.id == HARNESS { "Its code: assay explain harness --code\n" } else { "" };
    let title = lines(&format!("{}: {}", topic.id, topic.title), width.clamp(40, 100)).join("\n");
    Some(format!("{title}\n\n{sections}{code}Source: {}\n", topic.source))
}

/// A state of a pass, or how it ends, by its word.
fn state(wanted: &str, width: usize) -> Option<String> {
    let state = STATES.iter().find(|state| state.words.contains(&wanted))?;
    let text = section(&format!("{}: {}", state.words[0], state.title), &state.about(), width);
    Some(text + "All states of a pass: assay explain pass\n")
}

/// A placement, by its word.
fn placement(wanted: &str, width: usize) -> Option<String> {
    let (name, about) = bench::placement::EXPLAINED.iter().find(|(name, _)| *name == wanted)?;
    let text = section(&format!("Placement {name}"), about, width);
    Some(text + "All placements: assay explain placements\n")
}

/// What a word means: several things may have the same one, as a rule and a pass with a wrong
/// answer.
fn meanings(wanted: &str, width: usize) -> Option<String> {
    let rule = rules().find(|rule| rule.id == *wanted).map(|rule| self::rule(rule, width));
    let found =
        [rule, verdict(wanted, width), grade(wanted, width), state(wanted, width), placement(wanted, width)];
    let found = found.into_iter().flatten().map(|text| format!("{}\n", text.trim_end()));
    let found: Vec<String> = found.collect();
    (!found.is_empty()).then(|| found.join("\n"))
}

/// A verdict as the JSON contract writes it.
fn word(kind: VerdictKind) -> String {
    serde_json::to_value(kind).ok().and_then(|value| Some(value.as_str()?.to_string())).unwrap_or_default()
}

fn verdict(id: &str, width: usize) -> Option<String> {
    let (kind, about) = VERDICTS.iter().find(|(kind, _)| word(*kind) == id || kind.words() == id)?;
    Some(section(&format!("Verdict {}", kind.words()), about, width))
}

fn grade(id: &str, width: usize) -> Option<String> {
    let found = |(grade, words, _): &&(Grade, &[&str], &str)| {
        format!("{grade:?}").to_lowercase() == id || grade.word() == id || words.contains(&id)
    };
    let (grade, _, about) = GRADES.iter().find(found)?;
    Some(section(&format!("Grade {grade:?}, {}", grade.word()), about, width))
}

fn section(title: &str, about: &str, width: usize) -> String {
    format!("{title}\n{}\n", indented(about, width))
}

/// Broken into lines, two columns in.
fn indented(text: &str, width: usize) -> String {
    let room = width.clamp(40, 100) - 2;
    lines(text, room).iter().map(|line| format!("  {line}\n")).collect()
}
