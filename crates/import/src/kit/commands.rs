//! Lines that a shell was given, as steps: the program with what it is started by, what else they
//! run before and behind it, and where. Loops are run, so that each run has values of its own.

use std::collections::VecDeque;

use crate::above::{MOVERS, STARTERS, folder, name, prompt};

/// Longer lines are cut.
const MAX_LINE_CHARS: usize = 4_000;
/// Longer ranges are not expanded.
const MAX_RANGE: u32 = 100;
/// Turns of loops that bring no run.
const MAX_IDLE: usize = 100;
/// Folders in which a program is the system's own.
const OWN_FOLDERS: [&str; 4] = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/usr/sbin/"];
/// Programs that change nothing for a run after them, and print nothing about a host.
const IDLE: [&str; 11] =
    ["sleep", "date", "ls", "pwd", "clear", "exit", "logout", "wait", "vi", "history", "true"];
/// Words of a shell around commands.
const AROUND: [&str; 5] = ["do", "then", "else", "fi", "if"];
const LOOPS: [&str; 3] = ["for", "while", "until"];

/// The options in a list of words.
pub fn options(list: &str) -> Vec<&str> {
    list.split_whitespace().collect()
}

/// Where a program is among the words of a command that starts it.
pub type ProgramFinder<'a> = &'a dyn Fn(&[&str]) -> Option<usize>;

/// A command that a text shows before what it printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Command {
    /// Behind the program's name, up to where its shell goes on.
    pub words: Vec<String>,
    /// What it was started by, as `taskset -c 0`; without what changes nothing.
    pub under: String,
    /// Where its program is, as far as that is given and is no place of the system's own.
    pub program: String,
    /// What stands before the program on its line, as it is, where that says anything.
    pub before: String,
    /// The rest of the line, from the program on.
    pub line: String,
}

impl Command {
    /// By the words of a command in which the program is at this place.
    fn of(words: &[&str], at: usize) -> Command {
        let (before, path) = (&words[..at], words[at]);
        let says = |word: &&str| !STARTERS.contains(&name(word)) && !speaks(word);
        let first = before.iter().position(says).map(|first| {
            let is_plain = MOVERS.contains(&name(before[first])) || before[first].contains('=');
            // It is an option or a value of the word before: `timeout 10`.
            if is_plain || first == 0 { first } else { first - 1 }
        });
        let is_own = OWN_FOLDERS.iter().any(|folder| path.strip_prefix(folder) == Some(name(path)));
        let is_end = |word: &&&str| word.contains(['<', '>']) || word.starts_with('|');
        let words = words[at + 1..].iter().take_while(|word| !is_end(word));
        Command {
            words: words.map(|word| unquoted(word)).collect(),
            under: first.map_or(String::new(), |first| before[first..].join(" ")),
            program: if is_own || !path.contains('/') { String::new() } else { path.to_string() },
            before: String::new(),
            line: path.to_string(),
        }
    }

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

    /// Whether an option, a file or an order stands behind the program, as in no heading.
    fn asks(&self) -> bool {
        let letters = |text: &str| text.starts_with(|one: char| one.is_ascii_alphabetic());
        let is_file = |word: &str| {
            word.contains('/') || word.rsplit_once('.').is_some_and(|(_, ending)| letters(ending))
        };
        let is_option = |word: &str| {
            word.strip_prefix('-').is_some_and(|rest| letters(rest.strip_prefix('-').unwrap_or(rest)))
        };
        let first = self.words.first().map_or("", String::as_str);
        is_option(first) || is_file(first) || self.words.last().is_some_and(|word| word == "run")
    }
}

/// Whether a word sets the language of programs.
fn speaks(word: &str) -> bool {
    word.contains('=') && (word.starts_with("LC_") || word.starts_with("LANG"))
}

fn unquoted(text: &str) -> String {
    text.replace(['"', '\'', '`'], "")
}

/// The place of a program of this name in a command that starts it.
pub fn place(words: &[&str], program: &str) -> Option<usize> {
    let at = words.iter().position(|word| name(word) == program)?;
    is_start(&words[..at]).then_some(at)
}

/// Whether what stands before a program starts it.
pub fn is_start(before: &[&str]) -> bool {
    let first = before.iter().find(|word| !word.contains('='));
    first.is_none_or(|word| STARTERS.contains(&name(word)) || MOVERS.contains(&name(word)))
}

/// What a line makes a shell do, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Run(Command),
    /// Another command, which may change the system or describe it.
    Other(String),
    /// It goes to a folder.
    Into(String),
    /// What stands up to its end is done in turns.
    Loop(Loop),
    Done,
}

/// A loop of a shell, with the words over which it goes, as far as they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    variable: Option<String>,
    values: Option<Vec<String>>,
    turn: usize,
}

/// A line that a shell was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShellLine {
    /// Host and folder that the prompt names.
    pub host: Option<String>,
    pub folder: String,
    /// It has a prompt, which names no host where the shell has another.
    pub is_prompted: bool,
    pub steps: Vec<Step>,
}

impl ShellLine {
    /// A line with a prompt, or one that is nothing but a command that runs this program.
    pub fn of(line: &str, program: &str) -> Option<ShellLine> {
        let found = prompt(line);
        let is_prompted = found.is_some();
        if !is_prompted && !line.contains(program) {
            return None;
        }
        let (host, text) = found.unwrap_or((None, line.trim()));
        let typed = ShellLine::new(host, folder(line), text, &|words| place(words, program));
        let is_heading = line.starts_with("# ") && typed.runs().next().is_some();
        let is_typed = is_prompted && !is_heading || typed.runs().any(Command::asks);
        is_typed.then_some(ShellLine { is_prompted: is_prompted && !line.starts_with('+'), ..typed })
    }

    /// The commands that run the program.
    pub fn runs(&self) -> impl Iterator<Item = &Command> {
        self.steps.iter().filter_map(|step| if let Step::Run(command) = step { Some(command) } else { None })
    }

    /// What stands behind a prompt that names these.
    pub fn new(host: Option<String>, folder: &str, text: &str, finds: ProgramFinder) -> ShellLine {
        let text: String = text.chars().take(MAX_LINE_CHARS).collect();
        let mut steps: Vec<Step> = parts(&text).iter().filter_map(|part| step(part, finds)).collect();
        let first = steps.iter().find(|step| !matches!(step, Step::Loop(_)));
        let is_alone = matches!(first, Some(Step::Run(command)) if command.under.is_empty());
        for step in &mut steps {
            let Step::Run(command) = step else { continue };
            let is_word = |at: usize| text[..at].ends_with([' ', ';', '(', '\t']) || at == 0;
            let found = text.match_indices(command.line.as_str()).find(|(at, _)| is_word(*at));
            let Some((at, _)) = found else { continue };
            command.before = if is_alone { String::new() } else { text[..at].trim().to_string() };
            command.line = text[at..].to_string();
        }
        ShellLine { host, folder: folder.to_string(), is_prompted: true, steps }
    }
}

/// The command in a line that runs this program, from the program on: `fio --name=a` of
/// `root@box:~# sudo fio --name=a`.
pub fn command(line: &str, program: &str) -> Option<String> {
    ShellLine::of(line, program)?.runs().next().map(|command| command.line.clone())
}

/// The commands of a line, without the brackets around several.
fn parts(text: &str) -> Vec<String> {
    let text = text.replace("&&", ";").replace("||", ";").replace(" & ", ";");
    let bare = |part: &str| {
        let part = part.trim();
        let part = part.strip_prefix("{ ").unwrap_or(part);
        let (opened, closed) = (part.matches('(').count(), part.matches(')').count());
        let part = if opened > closed { part.strip_prefix('(').unwrap_or(part) } else { part };
        let part = if closed > opened { part.strip_suffix(')').unwrap_or(part) } else { part };
        part.trim_end_matches('&').trim().to_string()
    };
    text.split(';').map(bare).filter(|part| !part.is_empty() && part != "}").collect()
}

/// The words of a command behind those by which a shell begins it.
fn words(part: &str) -> Vec<&str> {
    part.split_whitespace().skip_while(|word| ["do", "then", "else"].contains(word)).collect()
}

fn step(part: &str, finds: ProgramFinder) -> Option<Step> {
    let words = words(part);
    let first = *words.first()?;
    if let Some(at) = finds(&words) {
        return Some(Step::Run(Command::of(&words, at)));
    }
    match name(first) {
        "cd" => words.get(1).map(|folder| Step::Into(unquoted(folder))),
        "done" => Some(Step::Done),
        first if LOOPS.contains(&first) => Some(Step::Loop(Loop::of(&words))),
        first if IDLE.contains(&first) || AROUND.contains(&first) => None,
        // What is printed is read below it.
        "echo" | "printf" if !part.contains(['>', '|']) => None,
        _ if !part.contains(char::is_alphabetic) => None,
        _ => Some(Step::Other(unquoted(&words.join(" ")))),
    }
}

/// Whether a loop has begun and not ended.
pub fn is_open(text: &str) -> bool {
    parts(text).iter().map(|part| depth(part)).sum::<i32>() > 0
}

/// 1 where a loop begins, -1 where one ends.
fn depth(part: &str) -> i32 {
    match words(part).first() {
        Some(&"done") => -1,
        Some(word) if LOOPS.contains(word) => 1,
        _ => 0,
    }
}

/// The next step that is none of loops', whose turns are done one by one as they are asked for.
pub fn next(steps: &mut VecDeque<Step>) -> Option<Step> {
    for _ in 0..MAX_IDLE {
        let one = match steps.pop_front()? {
            Step::Loop(one) => one,
            Step::Done => continue,
            step => return Some(step),
        };
        let body = body(steps);
        let is_run = |step: &Step| matches!(step, Step::Run(_));
        let Some(last) = body.iter().rposition(is_run) else {
            body.into_iter().rev().for_each(|step| steps.push_front(step));
            continue;
        };
        let Some(value) = one.value() else { continue };
        // What is the same in each turn and stands behind the run holds for the next one's.
        let holds = |(at, step): &(usize, Step)| {
            *at > last && matches!(step, Step::Other(command) if !command.contains('$'))
        };
        let (first, rest): (Vec<_>, Vec<_>) = body.into_iter().enumerate().partition(holds);
        let body: Vec<Step> = first.into_iter().chain(rest).map(|(_, step)| step).collect();
        let turn = body.iter().map(|step| step.with(one.variable.as_deref(), &value));
        let later = Loop { turn: one.turn + 1, ..one.clone() };
        let turn: Vec<Step> =
            turn.chain([Step::Loop(later)]).chain(body.clone()).chain([Step::Done]).collect();
        turn.into_iter().rev().for_each(|step| steps.push_front(step));
    }
    None
}

/// Takes what stands up to the end of a loop that has begun.
pub fn body(steps: &mut VecDeque<Step>) -> Vec<Step> {
    let mut open = 1;
    let end = steps.iter().position(|step| {
        open += match step {
            Step::Loop(_) => 1,
            Step::Done => -1,
            _ => 0,
        };
        open == 0
    });
    let mut body: Vec<Step> = steps.drain(..end.map_or(steps.len(), |end| end + 1)).collect();
    body.truncate(end.unwrap_or(body.len()));
    body
}

impl Loop {
    fn of(head: &[&str]) -> Loop {
        let (variable, values) = match head {
            ["for", name, "in", values @ ..] => {
                let values: Option<Vec<Vec<String>>> = values.iter().map(|word| value(word)).collect();
                (Some(name.to_string()), values.map(|values| values.concat()))
            }
            _ => (None, None),
        };
        Loop { variable, values, turn: 0 }
    }

    /// What its variable is in its turn, by its name where only a shell knows; `None` behind the
    /// last turn.
    fn value(&self) -> Option<impl Fn(&str) -> String> {
        let turn = self.turn;
        let known = match &self.values {
            Some(values) => Some(values.get(turn)?.clone()),
            None => None,
        };
        Some(move |name: &str| known.clone().unwrap_or_else(|| format!("${name}#{}", turn + 1)))
    }
}

/// The values of one word: `4`, `{1..4}`.
fn value(word: &str) -> Option<Vec<String>> {
    let range = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')?.split_once(".."));
    if let Some((from, to)) = range {
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        return (to.saturating_sub(from) < MAX_RANGE)
            .then(|| (from..=to).map(|value| value.to_string()).collect());
    }
    (!word.contains(['$', '`', '*', '?', '[', '{', '('])).then(|| vec![unquoted(word)])
}

impl Step {
    /// The same with the value of a variable; `None` means each.
    fn with(&self, variable: Option<&str>, value: &dyn Fn(&str) -> String) -> Step {
        let with = |text: &String| with(text, variable, value);
        match self {
            Step::Run(command) => Step::Run(Command {
                words: command.words.iter().map(with).collect(),
                under: with(&command.under),
                program: with(&command.program),
                ..command.clone()
            }),
            Step::Other(command) => Step::Other(with(command)),
            Step::Into(folder) => Step::Into(with(folder)),
            Step::Loop(one) => {
                let values = one.values.as_ref().map(|values| values.iter().map(with).collect());
                Step::Loop(Loop { values, ..one.clone() })
            }
            Step::Done => Step::Done,
        }
    }
}

/// A command with the value of a variable; `None` means each.
fn with(part: &str, variable: Option<&str>, value: &dyn Fn(&str) -> String) -> String {
    let (mut text, mut rest) = (String::new(), part);
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let inner = rest.strip_prefix('{').unwrap_or(rest);
        let end = inner.find(|one: char| !(one.is_ascii_alphanumeric() || one == '_')).unwrap_or(inner.len());
        let name = &inner[..end];
        if name.is_empty() || variable.is_some_and(|own| own != name) {
            text.push('$');
            continue;
        }
        text.push_str(&value(name));
        rest = if inner.len() < rest.len() {
            inner[end..].strip_prefix('}').unwrap_or(&inner[end..])
        } else {
            &inner[end..]
        };
    }
    text + rest
}
