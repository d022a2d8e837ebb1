//! What verbs print and write: text for people, JSON for programs, files for later.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, ensure};
use rustix::fs::{major, minor};
use serde::Serialize;

use super::leftovers;

use crate::diagnose::Diagnosis;
use crate::machine::Machine;
use crate::model::{Header, Severity};
use crate::report::block::Report;
use crate::report::plain::{ascii, plain};
use crate::report::text::{self, Style};
use crate::report::{html, json, sections};
use crate::run_file::EXTENSION;
use crate::sys::fresh::Fresh;

/// How text should look on a stream.
pub fn style(terminal: bool) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    let width = columns.or_else(|| size().filter(|_| terminal)).filter(|width| *width >= 40).unwrap_or(120);
    Style { color: terminal && !no_color && !dumb_terminal(), unicode: unicode(), width }
}

/// A terminal that knows no escape sequences: neither colours nor lines that are drawn again.
pub fn dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether the user's locale speaks UTF-8; one that says nothing is taken to.
fn unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    locale.is_none_or(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// Text as the user's locale can show it.
fn shown(text: &str) -> Cow<'_, str> {
    if unicode() { Cow::Borrowed(text) } else { Cow::Owned(ascii(text)) }
}

/// Lines for people on standard error, which may quote what a stranger wrote into a file. That nobody is there to read it (a closed pipe, a full disk) must not end a
/// measurement.
pub fn tell(text: &str) {
    let lines: Vec<String> = text.split('\n').map(|line| plain(line, usize::MAX)).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(&lines.join("\n")));
}

/// What ended a verb, as one line: it may quote what a stranger wrote into a file.
pub fn complain(error: &anyhow::Error) -> ExitCode {
    tell(&format!("assay: {}", plain(&format!("{error:#}"), 4000)));
    ExitCode::from(3)
}

/// Text for people on standard output.
pub fn print_text(text: &str) -> anyhow::Result<()> {
    print(&shown(text))
}

/// Writes to standard output; a closed pipe (`| head`) is no failure.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// JSON of anything, for people to read too.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&json::pretty(value)?)
}

/// The first lines of a measuring verb: which machine, how long.
pub fn greet(machine: &Machine, header: &Header, pretended: bool) {
    let runnable = header.plan.iter().filter(|planned| planned.unmet.is_none()).count();
    let cpus = machine.cpus.online.len();
    tell(&format!(
        "{}: measuring {} on {}, at most {:.0} s{}",
        plain(&header.host, 60),
        counted(runnable, "case"),
        counted(cpus, "CPU"),
        header.budget_s,
        if pretended { " (invented samples)" } else { "" }
    ));
}

/// `1 case`, `2 cases`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Renders a diagnosis: text (or JSON) on standard output. What is left to be saved.
pub fn show(diagnosis: &Diagnosis, as_json: bool) -> anyhow::Result<Report> {
    let report = sections::compose(diagnosis)?;
    match as_json {
        true => {
            print_json(&json::output(diagnosis))?;
            tell(text::render(&report, style(std::io::stderr().is_terminal())).trim_end());
        }
        false => print_text(&text::render(&report, style(std::io::stdout().is_terminal())))?,
    }
    Ok(report)
}

/// Writes `report.html` and `report.json` into `dir`, and says what was saved and how a measurement ended.
pub fn save(
    diagnosis: &Diagnosis,
    report: &Report,
    dir: &Path,
    run_file: &Path,
    fail_on: Option<Severity>,
    stopped: bool,
) -> anyhow::Result<ExitCode> {
    let (page, data) = (dir.join("report.html"), dir.join("report.json"));
    let written = write_file(&data, |file| Ok(file.write_all(report.json.as_bytes())?));
    write_file(&page, |file| html::write(report, file)).and(written)?;
    let (code, words) = match stopped {
        true => (130, "interrupted"),
        false => exit(diagnosis, fail_on),
    };
    let files = [run_file, &page, &data].map(|path| path.display().to_string());
    tell(&format!("\n  saved {}    exit {code} ({words})", files.join(", ")));
    Ok(ExitCode::from(code))
}

/// The exit code of a verb that judged a run.
pub fn exit_code(diagnosis: &Diagnosis, fail_on: Option<Severity>) -> ExitCode {
    ExitCode::from(exit(diagnosis, fail_on).0)
}

fn exit(diagnosis: &Diagnosis, fail_on: Option<Severity>) -> (u8, &'static str) {
    let gravest = diagnosis.findings.iter().map(|finding| finding.severity).max();
    if !diagnosis.has_usable_numbers() {
        return (3, "nothing could be measured validly");
    }
    match fail_on.is_some_and(|limit| gravest.is_some_and(|gravest| gravest >= limit)) {
        true => (1, "a finding reached --fail-on"),
        false => (0, "measured"),
    }
}

/// Writes a report, as [`replace_file`] does.
pub fn write_file(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let advice = || {
        format!(
            "cannot write {}; the run file is safe: `assay report` on it makes the page again, once there is room or \
             with --out and another folder",
            path.display()
        )
    };
    replace_file(path, &advice, write)
}

/// Puts a file there whole or not at all, readable for whom the user's umask lets: a full disk or a crash never leaves
/// half a file, and nobody reads one.
pub fn replace_file(
    path: &Path,
    advice: &dyn Fn() -> String,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let into = |file: File| {
        let mut buffered = BufWriter::new(file);
        write(&mut buffered).and_then(|()| Ok(buffered.flush()?)).with_context(advice)
    };
    if goes_through(path).with_context(advice)? {
        return into(OpenOptions::new().write(true).open(path).with_context(advice)?);
    }
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    leftovers::sweep([directory]);
    let fresh = Fresh::beside(path).with_context(advice)?;
    into(fresh.file().try_clone().map(File::from).with_context(advice)?)?;
    fresh.put().with_context(advice)
}

/// Whether what is there takes what is written and keeps nothing of its own (a pipe, a terminal, /dev/null). An error where
/// it holds what must not be replaced.
fn goes_through(path: &Path) -> anyhow::Result<bool> {
    let Ok(found) = std::fs::metadata(path) else { return Ok(false) };
    let kind = found.file_type();
    let nothing = || [(1, 3), (1, 7)].contains(&(major(found.rdev()), minor(found.rdev())));
    let terminal = || File::open(path).is_ok_and(|file| file.is_terminal());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if kind.is_file() {
        ensure!(
            !name.contains(EXTENSION),
            "{} is a run file by its name: a report never takes the place of measurements; name another file",
            path.display()
        );
        return Ok(false);
    }
    ensure!(!kind.is_dir(), "{} is a folder: name a file in it", path.display());
    ensure!(
        kind.is_fifo() || kind.is_char_device() && (nothing() || terminal()),
        "{} is a device or a socket, and no file can take its place: name another file",
        path.display()
    );
    Ok(true)
}

/// Where a verb that reads a run file puts what it makes: the folder given, or the run file's own.
pub fn beside(run_file: &Path, out: &Option<PathBuf>) -> PathBuf {
    let own = run_file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    out.clone().unwrap_or_else(|| own.to_path_buf())
}
