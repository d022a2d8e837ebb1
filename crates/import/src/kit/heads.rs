//! What stands above a run: a shell's prompt, the command that started it, other commands, and
//! lines that call it something.

use std::sync::LazyLock;

use regex::Regex;

use crate::above::{MOVERS, STARTERS, folder, marked, name, prompt};
use crate::own::short;

/// Lines above a run that are looked at; each of them tells runs apart.
const MOST_ABOVE: usize = 40;
/// Lines of a heading that are told.
const MOST_SHOWN: usize = 3;
/// Folders in which a program is the system's own.
const OWN_FOLDERS: [&str; 4] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/usr/sbin/"];

/// A command that a text shows before what it printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Behind the program's name, up to where its shell goes on.
    pub words: Vec<String>,
    /// What it was started by, as `taskset -c 0`; without what changes nothing.
    pub under: String,
    /// Where its program is, as far as that is told and is no place of the system's own.
    pub program: String,
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

/// What has been told so far, while the lines above runs are read one by one.
#[derive(Debug, Default)]
pub struct Heads<'t> {
    pub host: String,
    /// The lines of the last heading.
    pub heading: Vec<String>,
    pub asked: Option<Asked>,
    /// Where the shell went.
    folder: &'t str,
    /// Lines that are a number alone count the runs.
    counts: bool,
    /// Lines that nobody knows since the last that somebody does.
    above: Vec<&'t str>,
}

impl<'t> Heads<'t> {
    /// Of a text of these lines.
    pub fn new(lines: impl Iterator<Item = &'t str>) -> Heads<'t> {
        Heads { counts: counts(lines), ..Heads::default() }
    }

    /// Reads a line that the program did not print; whether it starts the program.
    pub fn line(&mut self, line: &'t str, program: &str) -> bool {
        match prompted(line, program) {
            Prompt::Runs { on, mut command, into, beside } => {
                if !on.is_empty() {
                    self.host = on;
                }
                if !command.program.is_empty() && !command.program.starts_with(['/', '~']) {
                    let path = command.program.trim_start_matches("./");
                    let folder = Some(into).filter(|into| !into.is_empty()).unwrap_or(self.folder);
                    command.program = format!("{folder}/{path}").trim_start_matches('/').to_string();
                }
                // What else the line ran changes the system for this run and those behind it.
                self.above.extend(beside);
                self.asked = Some(command);
                return true;
            }
            Prompt::Idle { into } => self.folder = into.unwrap_or(self.folder),
            Prompt::None if line.chars().any(char::is_alphanumeric) => self.above.push(line.trim()),
            Prompt::None => {}
        }
        false
    }

    /// Whether lines stand above that call what follows something.
    pub fn is_headed(&self) -> bool {
        title(&self.above, self.counts).is_some()
    }

    /// The same, where one of them is marked as a heading.
    pub fn is_marked(&self) -> bool {
        self.above.iter().any(|line| marked(line).is_some()) && self.is_headed()
    }

    /// Lets the lines above be the heading of what follows; without one the last one holds.
    pub fn settle(&mut self) {
        if let Some(title) = title(&std::mem::take(&mut self.above), self.counts) {
            self.heading = title;
        }
    }

    /// The first of the lines above, and how many they are; they are none of a heading.
    pub fn drop_lines(&mut self) -> Option<(&'t str, usize)> {
        let above = std::mem::take(&mut self.above);
        Some((above.first().copied()?, above.len()))
    }
}

/// The lines of a heading that are not shown, and what is.
pub fn shown(heading: &[String]) -> (&[String], String) {
    let (above, last) = heading.split_at(heading.len().saturating_sub(MOST_SHOWN));
    (above, last.join(" / "))
}

enum Prompt<'t> {
    /// It runs the program.
    Runs {
        on: String,
        command: Asked,
        /// The folder in which it does.
        into: &'t str,
        /// Other commands of the line that ran before.
        beside: Vec<&'t str>,
    },
    /// What changes nothing for the runs that follow.
    Idle {
        into: Option<&'t str>,
    },
    None,
}

/// Programs that change nothing for a run after them.
const IDLE: [&str; 16] = [
    "sleep", "date", "cd", "ls", "pwd", "clear", "exit", "logout", "for", "do", "done", "wait", "vi",
    "history", "while", "true",
];

/// A shell's prompt with a command, or a command alone.
fn prompted<'t>(line: &'t str, program: &str) -> Prompt<'t> {
    let found = prompt(line);
    let shown = found.is_some();
    let (host, text) = found.unwrap_or((None, line.trim()));
    let (mut idle, mut into, mut beside) = (true, None, Vec::new());
    for command in text.split([';', '|', '&']) {
        let words: Vec<&str> =
            command.split_whitespace().take(200).take_while(|word| !word.starts_with(['>', '<'])).collect();
        let Some(first) = words.first().map(|word| name(word)) else { continue };
        let Some(at) = words.iter().position(|word| name(word) == program) else {
            match first {
                "cd" => into = words.get(1).copied(),
                first if IDLE.contains(&first) => {}
                _ => {
                    idle = false;
                    beside.push(command.trim());
                }
            }
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
        if known && (shown || bare) {
            let starts = words[..at].iter().position(|word| MOVERS.contains(&name(word)) || sets(word));
            let under = starts.map_or(String::new(), |starts| words[starts..at].join(" "));
            let path = words[at];
            let is_own = OWN_FOLDERS.iter().any(|folder| path.strip_prefix(folder) == Some(program));
            let program = if is_own || !path.contains('/') { String::new() } else { path.to_string() };
            let words = words[at + 1..].iter().map(|word| word.replace(['"', '\''], "")).collect();
            let command = Asked { words, under, program };
            let into = into.unwrap_or_else(|| folder(line));
            return Prompt::Runs { on: host.unwrap_or_default(), command, into, beside };
        }
        idle = false;
    }
    if shown && idle { Prompt::Idle { into } } else { Prompt::None }
}

/// Whether a word sets a variable for the program behind it, other than how it speaks.
fn sets(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    let is_name = name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    !name.is_empty() && is_name && !name.starts_with("LC_") && !name.starts_with("LANG")
}

/// A line that is a number and marks.
fn bare_number(line: &str) -> Option<u64> {
    let digits = line.trim_matches(|one: char| !one.is_alphanumeric());
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// Whether the lines that are a number alone count: 1, 2, 3, and perhaps from the begin again.
fn counts<'t>(lines: impl Iterator<Item = &'t str>) -> bool {
    let mut last = None;
    lines.filter_map(bare_number).all(|number| {
        let first = if last.is_none() { number <= 2 } else { number <= 1 };
        let next = last.is_some_and(|last: u64| last.checked_add(1) == Some(number));
        last = Some(number);
        first || next
    })
}

/// A line without times of a day. Runs of one day may repeat each other; those of two days are told
/// apart. An address of PCI (`82:00.1`) or of a network is no time.
fn without_times(line: &str) -> String {
    static TIME: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?(?:\s*[AP]M\b)?")
            .expect("a pattern that a test tries")
    });
    let (mut rest, mut after) = (String::new(), 0);
    for found in TIME.find_iter(line) {
        let (before, behind) = (line[..found.start()].chars().last(), line[found.end()..].chars().next());
        let goes_on = |one: Option<char>| one.is_some_and(|one| ".:".contains(one) || one.is_ascii_digit());
        // A sentence or a label may end behind it.
        let ends = line[found.end()..].trim_start_matches([':', '.']).is_empty()
            || line[found.end()..].starts_with(": ");
        if goes_on(before) || goes_on(behind) && !ends {
            continue;
        }
        rest.push_str(&line[after..found.start()]);
        after = found.end();
    }
    rest + &line[after..]
}

/// What lines above a run call it; `None` where they only count or tell the time.
fn title(above: &[&str], counts: bool) -> Option<Vec<String>> {
    static COUNT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)^\W*(?:(?:run|iteration|iter|pass|round|try|trial|rep|repetition|attempt|sample)\W*\d+|\d+\W*(?:of|/)\W*\d+)(?:\W*(?:of|/)\W*\d+)?\W*$")
            .expect("a pattern that a test tries")
    });
    // Of a page that folds results up.
    static FOLD: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)</?(?:details|summary)(?:\s[^<>]*)?>").expect("a pattern that a test tries")
    });
    let mut told: Vec<String> = above[above.len().saturating_sub(MOST_ABOVE)..]
        .iter()
        .filter(|line| !(COUNT.is_match(line) || counts && bare_number(line).is_some()))
        .map(|line| without_times(&FOLD.replace_all(line, "")))
        .map(|line| short(line.trim_matches(|one| "#=*-_ \t".contains(one))))
        .filter(|line| line.chars().any(char::is_alphanumeric))
        .collect();
    let last = told.pop()?;
    told.push(last.trim_end_matches(':').to_string());
    Some(told)
}
