//! The runs in a text, and which of them are repetitions of each other.
//!
//! Two runs are repetitions where all that the text tells of them is the same: host, heading, what
//! started them, and the facts that their format names. What stands unread between two runs is the
//! heading of the second, so that runs with another text above are never pooled.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Does, Hit, Table};
use crate::above::{MOVERS, STARTERS, name, prompt};
use crate::builder::Builder;
use crate::own::{Against, short};
use crate::{Format, Imported};

/// More runs in one file are a mistake or an attack.
const MOST_RUNS: usize = 2_000;
/// Lines of one run that are kept.
const MOST_LINES: usize = 20_000;
/// Lines before a run begins that are kept.
const MOST_AHEAD: usize = 100;
/// More results in one file are a mistake or an attack.
const MOST_RESULTS: usize = 200;
/// Lines of a heading that are told.
const MOST_ABOVE: usize = 3;

/// A command that a text shows before what it printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Behind the program's name, up to where its shell goes on.
    pub words: Vec<String>,
    /// What it was started by, as `taskset -c 0`; without what changes nothing.
    pub under: String,
}

impl Asked {
    /// The value of an option: `--name=value`, `--name value`, `-n value`, `-nvalue`. The names are
    /// with their dashes.
    pub fn value(&self, names: &[&str]) -> Option<&str> {
        self.words.iter().enumerate().find_map(|(at, word)| {
            names.iter().find_map(|name| {
                let rest = word.strip_prefix(name)?;
                match (rest, name.starts_with("--")) {
                    ("", _) => self.words.get(at + 1).map(String::as_str),
                    (_, true) => rest.strip_prefix('='),
                    (_, false) => Some(rest),
                }
            })
        })
    }

    /// What else it asks for than these options, the first of which have a value.
    pub fn without(&self, valued: &[&str], flags: &[&str]) -> String {
        let mut left: Vec<&str> = Vec::new();
        let mut words = self.words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or_default();
            let glued = |option: &&&str| option.len() == 2 && word.len() > 2 && word.starts_with(**option);
            if flags.contains(&name) || valued.iter().any(|option| glued(&option)) {
                continue;
            }
            match valued.contains(&name) {
                true if word.contains('=') => {}
                true => _ = words.next(),
                false => left.push(word),
            }
        }
        left.join(" ")
    }

    pub fn has(&self, names: &[&str]) -> bool {
        self.words.iter().any(|word| names.contains(&word.as_str()))
    }
}

/// One run of a program, as far as the text has it.
#[derive(Debug, Default)]
pub struct Run<'t> {
    pub asked: Option<Asked>,
    pub host: String,
    /// What stands above it and is none of the program's.
    pub heading: String,
    pub hits: Vec<Hit<'t>>,
    ended: bool,
}

impl<'t> Run<'t> {
    pub fn all(&self, name: &str) -> impl Iterator<Item = &Hit<'t>> {
        self.hits.iter().filter(move |hit| hit.name == name)
    }

    pub fn hit(&self, name: &str) -> Option<&Hit<'t>> {
        self.hits.iter().find(|hit| hit.name == name)
    }

    /// The field `value` of a line.
    pub fn text(&self, name: &str) -> Option<&'t str> {
        self.hit(name)?.text("value")
    }

    fn is_fresh(&self) -> bool {
        !self.ended && self.hits.iter().all(|hit| matches!(hit.does, Does::Begins | Does::Ahead))
    }
}

/// What a text holds of a program.
#[derive(Debug, Default)]
pub struct Log<'t> {
    pub runs: Vec<Run<'t>>,
    /// Lines inside of runs that nobody knows: the first, and how many.
    unread: Option<(&'t str, usize)>,
    left_out: usize,
}

/// The runs in a text of this program.
pub fn log<'t>(text: &'t str, program: &str, table: &Table) -> Log<'t> {
    let mut log = Log::default();
    let (mut host, mut heading, mut asked) = (String::new(), String::new(), None);
    // Lines that nobody knows since the last that somebody does.
    let mut above: Vec<&str> = Vec::new();
    let mut ahead: Vec<Hit> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let Some(hit) = table.hit(line) else {
            match prompted(line, program) {
                Prompt::Runs { on, command } => {
                    (asked, open) = (Some(command), false);
                    if !on.is_empty() {
                        host = on;
                    }
                }
                Prompt::Idle => {}
                Prompt::None if line.chars().any(char::is_alphanumeric) => above.push(line.trim()),
                Prompt::None => {}
            }
            continue;
        };
        if hit.does == Does::Nothing {
            continue;
        }
        let last = log.runs.last_mut().filter(|_| open);
        let again = |run: &Run| match hit.does {
            Does::Begins => true,
            Does::Once => run.ended || run.hit(hit.name).is_some(),
            Does::Ahead => !run.is_fresh() || run.hit(hit.name).is_some(),
            _ => run.ended,
        };
        match last {
            Some(run) if !again(&*run) => {
                let ends = hit.does == Does::Ends;
                run.ended |= ends;
                if run.hits.len() < MOST_LINES {
                    run.hits.push(hit);
                }
                if let Some(first) = above.first().copied() {
                    log.unread.get_or_insert((first, 0)).1 += above.len();
                    above.clear();
                }
                continue;
            }
            _ if hit.does == Does::Ahead => {
                if ahead.len() < MOST_AHEAD {
                    ahead.push(hit);
                }
                continue;
            }
            // Nothing has begun that it could end.
            _ if hit.does == Does::Ends => continue,
            _ => {}
        }
        if log.runs.len() >= MOST_RUNS {
            log.left_out += 1;
            open = false;
            continue;
        }
        if let Some(title) = title(&std::mem::take(&mut above)) {
            heading = title;
        }
        let mut hits = std::mem::take(&mut ahead);
        hits.push(hit);
        log.runs.push(Run {
            asked: asked.clone(),
            host: host.clone(),
            heading: heading.clone(),
            hits,
            ended: false,
        });
        open = true;
    }
    if let Some(first) = above.first().copied() {
        log.unread.get_or_insert((first, 0)).1 += above.len();
    }
    log
}

enum Prompt {
    /// It runs the program.
    Runs {
        on: String,
        command: Asked,
    },
    /// What changes nothing for the runs that follow.
    Idle,
    None,
}

/// Programs that change nothing for a run after them.
const IDLE: [&str; 14] = [
    "sleep", "date", "cd", "ls", "pwd", "clear", "exit", "logout", "for", "do", "done", "wait", "vi",
    "history",
];
/// A shell's prompt with a command, or a command alone.
fn prompted(line: &str, program: &str) -> Prompt {
    let shown = prompt(line);
    let (host, text) = shown.clone().unwrap_or((None, line.trim()));
    let mut idle = true;
    for command in text.split([';', '|', '&']) {
        let words: Vec<&str> =
            command.split_whitespace().take(200).take_while(|word| !word.starts_with(['>', '<'])).collect();
        let Some(first) = words.first().map(|word| name(word)) else { continue };
        let Some(at) = words.iter().position(|word| name(word) == program) else {
            idle &= IDLE.contains(&first);
            continue;
        };
        let mover = words[..at].iter().position(|word| MOVERS.contains(&name(word)));
        let known = at == 0
            || mover == Some(0)
            || STARTERS.contains(&first)
            || (first.contains('=') && !first.contains(':'));
        // Without its prompt it must look like nothing but a command.
        let bare =
            words.get(at + 1).is_some_and(|word| word.starts_with('-') || words.last() == Some(&"run"));
        if known && (shown.is_some() || bare) {
            let under = mover.map_or(String::new(), |mover| words[mover..at].join(" "));
            let words = words[at + 1..].iter().map(|word| word.replace(['"', '\''], "")).collect();
            return Prompt::Runs { on: host.unwrap_or_default(), command: Asked { words, under } };
        }
        idle = false;
    }
    if shown.is_some() && idle { Prompt::Idle } else { Prompt::None }
}

/// What lines above a run call it; `None` where they only count or tell the time.
fn title(above: &[&str]) -> Option<String> {
    static COUNT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)^\W*(?:(?:run|iteration|iter|pass|round|try|trial|rep|repetition|attempt|sample)\W*)?\d+(?:\W*(?:of|/)\W*\d+)?\W*$")
            .expect("a pattern that a test tries")
    });
    // Runs of one day may repeat each other; those of two days are told apart.
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s*[AP]M\b)?")
            .expect("a pattern that a test tries")
    });
    let told: Vec<String> = above
        .iter()
        .filter(|line| !COUNT.is_match(line))
        .map(|line| TIME.replace_all(line, "").trim_matches(|one| "#=*-_ \t".contains(one)).to_string())
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    let last = told.len().saturating_sub(MOST_ABOVE);
    let told: Vec<String> = told[last..].iter().map(|line| short(line)).collect();
    (!told.is_empty()).then(|| told.join(" / ").trim_end_matches(':').to_string())
}

/// Everything that the text tells of a run and that is no part of its series.
#[derive(Clone, Debug, PartialEq)]
struct Identity {
    host: String,
    heading: String,
    under: String,
    facts: Vec<(&'static str, String)>,
}

/// The results that runs come to.
pub struct Results {
    format: Format,
    remark: &'static str,
    all: Vec<(Identity, Builder, Against)>,
    /// What runs printed that no other prints by chance, by the place of their result.
    seen: BTreeSet<(usize, String)>,
    again: usize,
    left_out: usize,
}

impl Results {
    /// `remark` stands beside each.
    pub fn new(format: Format, remark: &'static str) -> Results {
        Results { format, remark, all: Vec::new(), seen: BTreeSet::new(), again: 0, left_out: 0 }
    }

    /// The result that a run is part of, by all that is told of it; `None` where there are too
    /// many, or where it stands in the text a second time. Of the facts, `kernel` and its like,
    /// those with a name are told of the result. `unique`: no two runs print alike by chance.
    pub fn of(
        &mut self,
        run: &Run,
        facts: Vec<(&'static str, String)>,
        unique: bool,
    ) -> Option<(&mut Builder, &mut Against)> {
        let facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let told =
            |name: &str| facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let identity = Identity {
            host: told("host").unwrap_or_else(|| run.host.clone()),
            heading: run.heading.clone(),
            under: run.asked.as_ref().map_or(String::new(), |asked| asked.under.clone()),
            facts,
        };
        let place = self.all.iter().position(|(known, _, _)| *known == identity);
        let place = match place {
            Some(place) => place,
            None if self.all.len() >= MOST_RESULTS => {
                self.left_out += 1;
                return None;
            }
            None => {
                let mut builder = Builder::new(self.format, &identity.host);
                builder.remarks.push(self.remark.to_string());
                builder.fact("heading", &identity.heading);
                builder.fact("started by", &identity.under);
                for (name, value) in &identity.facts {
                    if !["", "host"].contains(name) {
                        builder.fact(name, value);
                    }
                }
                self.all.push((identity, builder, Against::default()));
                self.all.len() - 1
            }
        };
        if unique {
            let lines: Vec<&str> = run.hits.iter().map(Hit::line).collect();
            if !self.seen.insert((place, lines.join("\n"))) {
                self.again += 1;
                return None;
            }
        }
        self.all.get_mut(place).map(|(_, builder, against)| (builder, against))
    }

    /// The results in the text's order, the first with what is to be said of the text.
    pub fn finish(self, log: &Log) -> Vec<Imported> {
        let mut remarks = Vec::new();
        if let Some((first, count)) = log.unread {
            remarks.push(format!("{count} of its lines are not read; the first of them: {:?}", short(first)));
        }
        if self.again > 0 {
            remarks.push(format!("{} runs stand in the text twice, and count once", self.again));
        }
        for (left_out, what) in [(log.left_out, "runs"), (self.left_out, "runs of further results")] {
            if left_out > 0 {
                remarks.push(format!("{left_out} {what} were left out: the file has too many"));
            }
        }
        let results = self.all.into_iter().filter(|(_, builder, _)| !builder.is_empty());
        results
            .map(|(_, mut builder, against)| {
                builder.remarks.append(&mut remarks);
                Imported { findings: against.findings(), ..builder.finish() }
            })
            .collect()
    }
}

/// Marks which metrics say most of a result.
pub fn headlines(imported: &mut Imported, names: &[&str]) {
    let figures = imported.figures.iter_mut().map(|figure| &mut figure.judged.series.metric);
    let titles = imported.catalogue.iter_mut().flat_map(|title| &mut title.metrics);
    figures.chain(titles).for_each(|metric| metric.headline = names.contains(&metric.name.as_ref()));
}
