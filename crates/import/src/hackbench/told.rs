//! What a text tells of a run beside its host and its heading: other commands that ran before it or
//! on its line, the program's path, variables and starters, and what lines between two runs say.
//! Runs of which it tells the same may be repetitions of each other.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::above::{STARTERS, name};

/// In the make-up of a result: what another one of the same name has not.
pub const APART: &str = "told apart by";
/// Of one run more is not kept.
const MOST: usize = 20;
const LONGEST: usize = 120;

/// Commands that change nothing and print nothing about a machine.
const IDLE: [&str; 8] = ["sleep", "clear", "wait", "true", "exit", "logout", "history", "date"];
/// Words of a shell around commands.
const AROUND: [&str; 6] = ["for", "while", "until", "done", "if", "fi"];

/// What the text says of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
    /// Commands that ran since the run before, and what lines say since then.
    commands: Vec<String>,
    lines: Vec<String>,
    /// The last command of each kind.
    settings: BTreeMap<String, String>,
    /// Variables, starters and the program's path.
    by: String,
}

/// Follows a text from run to run.
#[derive(Default)]
pub struct Teller {
    told: Told,
    commands: Vec<String>,
    lines: Vec<String>,
    /// Commands that stand behind the program in its own line.
    behind: Vec<String>,
}

impl Teller {
    /// Takes a command line that was typed in a folder. `program` finds the program among words.
    pub fn command(&mut self, folder: &str, line: &str, program: impl Fn(&[&str]) -> Option<usize>) {
        let line: String = line.chars().take(4000).filter(|c| !"\"'`".contains(*c)).collect();
        let line = line.replace("&&", ";").replace("||", ";");
        let parts: Vec<&str> =
            line.split(';').map(|part| part.trim_matches([' ', '(', ')', '{', '}'])).collect();
        let is_loop = parts.contains(&"done");
        let mut ran = false;
        for part in parts {
            let words: Vec<&str> =
                part.split_whitespace().skip_while(|word| ["do", "then"].contains(word)).collect();
            let Some(first) = words.first() else { continue };
            match program(&words) {
                Some(at) => {
                    self.told.by = by(folder, &words[..=at]);
                    ran = true;
                }
                None if AROUND.contains(first) || IDLE.contains(first) => {}
                // What is printed is read below it.
                None if *first == "echo" && !part.contains(['>', '|']) => {}
                None if !part.contains(char::is_alphabetic) => {}
                None if ran && !is_loop => self.behind.push(plain(part)),
                None => self.commands.push(plain(part)),
            }
        }
        self.behind.truncate(MOST);
        self.commands.truncate(MOST);
    }

    /// Takes a line that says something of the run that follows.
    pub fn line(&mut self, text: &str) {
        if self.lines.len() < MOST {
            self.lines.push(plain(text));
        }
    }

    /// What is told of the run that begins now: what was told of the one before, if nothing stands
    /// between them.
    pub fn begin(&mut self) -> Told {
        if !(self.commands.is_empty() && self.lines.is_empty()) {
            self.told.lines = std::mem::take(&mut self.lines);
            self.told.commands = std::mem::take(&mut self.commands);
            for command in &self.told.commands {
                if self.told.settings.len() < MOST {
                    self.told.settings.insert(kind(command), command.clone());
                }
            }
        }
        self.commands = std::mem::take(&mut self.behind);
        self.told.clone()
    }
}

impl Told {
    pub fn words(&self) -> String {
        let parts = std::iter::once(&self.by).chain(self.settings.values()).chain(&self.lines);
        let parts: Vec<&str> = parts.map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }
}

/// Whether a line says something, beside which of counted runs it is of and what time it was.
pub fn says(line: &str) -> bool {
    plain(line).contains(char::is_alphanumeric)
}

/// A line without the number of the run, and without the time of the day.
pub fn plain(text: &str) -> String {
    static COUNT: LazyLock<Regex> = LazyLock::new(|| {
        let count = r"(?i)\b(?:run|iteration|iter|pass|round|trial|attempt|repetition|repeat|loop)s?[ _#:.-]*\d+(?:\s*(?:/|of)\s*\d+)?";
        let time = r"\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b";
        Regex::new(&format!("{count}|{time}")).expect("a pattern that a test tries")
    });
    COUNT.replace_all(text, "").trim().chars().take(LONGEST).collect()
}

/// What a command sets, so that the next one of its kind sets it anew.
fn kind(command: &str) -> String {
    let first = command.split_whitespace().find(|word| *word != "sudo").unwrap_or_default();
    let into = command.split_once('>').or_else(|| command.split_once("tee ")).map_or("", |(_, into)| into);
    format!("{} {}", name(first), into.trim())
}

/// How the program was called, without what changes nothing.
fn by(folder: &str, words: &[&str]) -> String {
    let Some((program, before)) = words.split_last() else { return String::new() };
    let plain = |word: &&&str| {
        !STARTERS.contains(&name(word)) && !word.starts_with("LC_") && !word.starts_with("LANG")
    };
    let mut by: Vec<String> = before.iter().filter(plain).map(|word| word.to_string()).collect();
    if program.contains('/') {
        let inside =
            if program.starts_with('/') || folder.is_empty() { String::new() } else { format!("{folder}/") };
        by.push(format!("{inside}{program}"));
    }
    by.join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::above::folder;

    fn program(words: &[&str]) -> Option<usize> {
        words.iter().position(|word| name(word) == "x")
    }

    /// What is told of each run of commands, in which `x` runs once a line.
    fn told(lines: &[&str]) -> Vec<Told> {
        let mut teller = Teller::default();
        let mut all = Vec::new();
        for line in lines {
            teller.command(folder(line), line.rsplit(['$', '%']).next().unwrap_or(line), program);
            all.extend(line.contains('x').then(|| teller.begin()));
        }
        all
    }

    #[test]
    fn runs_of_which_the_same_is_told() {
        for same in [
            ["x -g 1", "x -g 1"],
            ["sudo x", "sleep 5; x"],
            ["echo 1 > a; x", "echo 1 > a; x"],
            ["cat run1.log; x", "cat run2.log; x"],
            ["for i in 1 2; do x; echo 3 > drop; done", "for i in 1 2; do x; echo 3 > drop; done"],
            ["A=b x", "A=b x"],
            ["date; x 2>&1 | tee a", "x | tee b"],
        ] {
            let all = told(&same);
            assert_eq!(all[0], all[1], "{same:?}");
        }
        for other in [
            ["echo 1 > a; x", "echo 0 > a; x"],
            ["x", "LD_PRELOAD=b.so x"],
            ["./old/x", "./new/x"],
            ["me@box:/old$ ./x", "me@box:/new$ ./x"],
            ["taskset -c 0 x", "taskset -c 8 x"],
            ["ssh a x", "ssh b x"],
            ["x", "cpupower frequency-set -g powersave && x"],
            ["x; echo 0 > a", "x"],
        ] {
            let all = told(&other);
            assert_ne!(all[0], all[1], "{other:?}");
            assert_ne!(all[0].words(), all[1].words(), "{other:?}");
        }
        // What was set and set back is as before, and another command alters it.
        let all = told(&["echo 1 > a; x", "echo 0 > a; x", "echo 1 > a; x", "swapoff b; x", "echo 1 > a; x"]);
        assert!(all[0] == all[2] && all[2] != all[3] && all[0] != all[4], "{all:?}");
    }

    #[test]
    fn counts_and_times_say_nothing() {
        for nothing in ["run 2", "Iteration 2 of 5", "== Run #3 ==", "pass 1/3", "11:22:33", "---"] {
            assert!(!says(nothing), "{nothing}");
        }
        for something in ["kernel 6.1", "1:10 overcommit", "node2", "1500", "run 2 on b", "82:00.1"] {
            assert!(says(something), "{something}");
        }
    }
}
