//! A small script with the system's own tools, by one shell or by several at once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, bail};

use super::super::check_answer;
use super::copies::{Loops, Test};
use sys::program;
use sys::scratch::Scratch;

const SHELL: &str = "/bin/sh";
/// What the suite sets for all its tests: C where a system does not have it.
const LANGUAGE: &str = "en_US.utf8";
const TOOLS: [&str; 6] = ["sort", "od", "grep", "tee", "wc", "rm"];

/// Sorts the text, sorts a dump of that by its offsets, keeps and counts the lines that a word is
/// in.
const STEPS: &str = "\
sort <text >sorted.$$
od sorted.$$ | sort -n -k 1 >dump.$$
grep the sorted.$$ | tee found.$$ | wc >count.$$
";
/// A file that is missing makes the script fail.
const AWAY: &str = "rm sorted.$$ dump.$$ found.$$ count.$$\n";

/// Runs several scripts at once; all of them must succeed.
const SEVERAL: &str = "\
left=$1
while [ $left -gt 0 ]; do
    /bin/sh script &
    scripts=\"$scripts $!\"
    left=$((left - 1))
done
for one in $scripts; do
    wait $one || exit 1
done
";

/// Lines of the text, of 5 words each, 9 KB in all.
const LINES: u32 = 360;
const WORDS: [&str; 16] = [
    "server", "cache", "the", "memory", "page", "of", "kernel", "reads", "and", "disk", "a", "clock",
    "wakes", "each", "line", "core",
];

/// The same text everywhere, in no order.
fn text() -> String {
    let mut state = 2_463_534_242u32;
    let mut text = String::new();
    for line in 0..LINES * 5 {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        text.push_str(WORDS[(state >> 8) as usize % WORDS.len()]);
        text.push(if line % 5 == 4 { '\n' } else { ' ' });
    }
    text
}

/// The folders in which this user's tools are found, as a `PATH` without any others; or what is
/// missing.
pub fn path() -> Result<String, String> {
    if !program::is_executable(program::SHELL) {
        return Err(format!("this system has no {SHELL}"));
    }
    let own = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    let folders: Vec<PathBuf> = std::env::split_paths(&own).filter(|folder| folder.is_absolute()).collect();
    let mut used: Vec<PathBuf> = Vec::new();
    for tool in TOOLS {
        let found = folders.iter().find(|folder| is_program(&folder.join(tool)));
        let folder = found.ok_or_else(|| format!("this system has no {tool} (in PATH)"))?;
        if !used.contains(folder) {
            used.push(folder.clone());
        }
    }
    let joined = std::env::join_paths(used).map_err(|why| why.to_string())?;
    joined.into_string().map_err(|path| format!("PATH is not valid text: {path:?}"))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

struct Scripts {
    command: Command,
    folder: Rc<Scratch>,
}

/// Puts the scripts and their text into a folder for all copies, and tries them once.
pub fn prepare(folder: &Scratch) -> anyhow::Result<()> {
    for (name, content) in
        [("text", text()), ("script", format!("{STEPS}{AWAY}")), ("several", SEVERAL.into())]
    {
        folder.put(name, content.as_bytes())?;
    }
    try_once(folder)
}

const FILES: usize = 3;

/// Those, and what the scripts and the first try of their steps make.
pub const HOLDS: &[&str] = &[
    "text",
    "script",
    "several",
    "sorted.#",
    "dump.#",
    "found.#",
    "count.#",
    "sorted.tried",
    "dump.tried",
    "found.tried",
    "count.tried",
];

/// Does the steps once, keeps their output, and checks it.
fn try_once(folder: &Scratch) -> anyhow::Result<()> {
    let steps = STEPS.replace("$$", "tried");
    let status =
        shell(folder, "C")?.args(["-c", &steps]).status().with_context(|| format!("cannot start {SHELL}"))?;
    check_answer(status.success(), || format!("the script's steps ended with {status}"))?;
    let made = |name: &str| -> anyhow::Result<String> {
        Ok(String::from_utf8_lossy(&folder.take(&format!("{name}.tried"))?).into_owned())
    };
    let (sorted, dump, found, count) = (made("sorted")?, made("dump")?, made("found")?, made("count")?);
    let text = text();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    check_answer(sorted.lines().eq(lines.iter().copied()), || "sort has not sorted the text".to_string())?;
    lines.retain(|line| line.contains("the"));
    check_answer(found.lines().eq(lines.iter().copied()), || {
        format!("grep found {} lines instead of {}", found.lines().count(), lines.len())
    })?;
    let words: usize = lines.iter().map(|line| line.split(' ').count()).sum();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    let meant = [lines.len(), words, bytes].map(|number| number.to_string());
    check_answer(count.split_whitespace().eq(meant.iter().map(String::as_str)), || {
        format!("wc counted {:?} instead of {meant:?}", count.trim())
    })?;
    // 16 bytes a line, then the length.
    let meant = text.len().div_ceil(16) + 1;
    check_answer(dump.lines().count() == meant, || {
        format!("the dump has {} lines instead of {meant}", dump.lines().count())
    })
}

/// A shell in the folder, which finds the tools and nothing else, in an environment of two
/// variables.
fn shell(folder: &Scratch, language: &str) -> anyhow::Result<Command> {
    let path = match path() {
        Ok(path) => path,
        Err(why) => bail!(why),
    };
    let mut command = Command::new(SHELL);
    command.current_dir(folder.path()).env_clear().env("PATH", path).env("LANG", language);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// The loops of a copy: each runs this many scripts at once.
pub fn scripts(folder: Rc<Scratch>, at_once: u32) -> anyhow::Result<Loops> {
    let mut command = shell(&folder, LANGUAGE)?;
    command.args(["several", &at_once.to_string()]);
    Ok(Box::new(Scripts { command, folder }))
}

impl Test for Scripts {
    fn work(&mut self, loops: u64) -> anyhow::Result<()> {
        for _ in 0..loops {
            let status = self.command.status().with_context(|| format!("cannot start {SHELL}"))?;
            check_answer(status.success(), || format!("the shell of the scripts ended with {status}"))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        let files = self.folder.count()?;
        check_answer(files == FILES, || format!("the scripts left {} files", files.saturating_sub(FILES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WrongAnswer;

    fn folder(parent: &Path) -> Rc<Scratch> {
        Rc::new(Scratch::new(parent, HOLDS).expect("a folder of our own"))
    }

    #[test]
    fn scripts_leave_nothing_and_a_failing_one_is_noticed() {
        if path().is_err() {
            return;
        }
        let parent = tempfile::tempdir().expect("a folder");
        let folder = folder(parent.path());
        prepare(&folder).expect("the tools work");
        let mut several = scripts(folder.clone(), 3).expect("a shell");
        several.work(2).and_then(|()| several.finish()).expect("they run");
        std::fs::remove_file(folder.path().join("text")).expect("planted");
        let error = several.work(1).expect_err("there is nothing to sort");
        assert!(error.downcast_ref::<WrongAnswer>().is_some(), "{error}");
        for name in ["text", "left"] {
            std::fs::write(folder.path().join(name), "x").expect("planted");
        }
        assert!(several.finish().is_err());
    }

    #[test]
    fn the_text_is_one_to_sort_and_to_search() {
        let text = text();
        assert_eq!(text.lines().count(), LINES as usize);
        assert!((6_000..12_000).contains(&text.len()), "{} bytes", text.len());
        let found = text.lines().filter(|line| line.contains("the")).count();
        assert!((50..250).contains(&found), "{found}");
        assert!(!text.lines().is_sorted());
    }

    #[test]
    fn only_the_folders_of_the_tools_are_searched() {
        let Ok(path) = path() else { return };
        for folder in std::env::split_paths(&path) {
            assert!(TOOLS.iter().any(|tool| is_program(&folder.join(tool))), "{}", folder.display());
        }
    }
}
