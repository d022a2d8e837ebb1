//! What verbs print: text for people, JSON for programs.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::Context;
use serde::Serialize;

use diagnose::Diagnosis;
use diagnose::words::counted;
use machine::Machine;
use model::vocabulary::guard;
use model::{Header, Severity};
use report::json;
use report::plain::{ascii, plain};
use report::text::Style;

/// How text looks, instead of what terminal and locale ask for.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Display")]
pub struct DisplayArgs {
    /// Colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: When,
    /// ASCII signs and units, as without a UTF-8 locale
    #[arg(long, global = true)]
    ascii: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// The options of the command line, set before anything is printed.
static LOOK: OnceLock<DisplayArgs> = OnceLock::new();

impl DisplayArgs {
    pub fn settle(self) {
        // A second command line in one process there is not.
        let _ = LOOK.set(self);
    }
}

fn look() -> DisplayArgs {
    LOOK.get().copied().unwrap_or_default()
}

/// How text looks on a stream.
pub fn style(terminal: bool) -> Style {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = match look().color {
        When::Auto => terminal && !no_color && !dumb_terminal(),
        When::Always => true,
        When::Never => false,
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || rustix::termios::tcgetwinsize(std::io::stderr()).ok().map(|size| usize::from(size.ws_col));
    let width = columns.or_else(|| size().filter(|_| terminal)).filter(|width| *width >= 40).unwrap_or(100);
    Style { color, unicode: unicode(), width }
}

/// A terminal without escape sequences: no colours and no redrawn lines.
pub fn dumb_terminal() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Whether the user's locale is UTF-8, as it is if none is set.
fn unicode() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    !look().ascii && locale.is_none_or(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}

/// Text as the user's locale can show it.
fn shown(text: &str) -> Cow<'_, str> {
    if unicode() { Cow::Borrowed(text) } else { Cow::Owned(ascii(text)) }
}

/// Prints lines on standard error, without control characters: they may quote a foreign file. A
/// closed pipe or a full disk must not end a measurement.
pub fn eprint_line(text: &str) {
    let lines: Vec<String> = text.split('\n').map(|line| plain(line, usize::MAX)).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(&lines.join("\n")));
}

/// Prints text that is laid out and sanitised already, with its colours.
pub fn eprint_as_is(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", shown(text));
}

/// A mistake of usage, which ends the program with exit code 2.
#[derive(Debug)]
struct Misuse(String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// An error of usage.
pub fn misuse(why: impl std::fmt::Display) -> anyhow::Error {
    Misuse(format!("{why:#}")).into()
}

/// An error of usage if there is a reason to refuse.
pub fn refuse(why: Option<impl std::fmt::Display>) -> anyhow::Result<()> {
    why.map_or(Ok(()), |why| Err(misuse(why)))
}

pub fn refuse_if(is_wrong: bool, why: &str) -> anyhow::Result<()> {
    refuse(is_wrong.then_some(why))
}

/// Prints the error that ended a verb, in one line: it may quote a foreign file.
pub fn complain(error: &anyhow::Error) -> ExitCode {
    let is_misuse = error.is::<Misuse>();
    let text = format!("{error:#}");
    let text = if is_misuse { text } else { plain(&text, 4000) };
    eprint_line(&format!("assay: {text}"));
    ExitCode::from(if is_misuse { 2 } else { 3 })
}

/// Text for people on standard output.
pub fn print_text(text: &str) -> anyhow::Result<()> {
    print(&shown(text))
}

/// Writes to standard output; a closed pipe (`| head`) is not an error.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Streams to standard output; a closed pipe is not an error.
pub fn print_with(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let is_closed = |error: &anyhow::Error| {
        error.chain().any(|cause| {
            let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            let json =
                || cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
            io.or_else(json) == Some(std::io::ErrorKind::BrokenPipe)
        })
    };
    match write(&mut out).and_then(|()| out.flush().context("cannot write to standard output")) {
        Err(error) if !is_closed(&error) => Err(error),
        _ => Ok(()),
    }
}

/// JSON of anything, for people to read too.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print(&json::pretty(value)?)
}

/// The first lines of a measuring verb: which host, how long.
pub fn greet(machine: &Machine, header: &Header, pretended: bool) {
    let runnable = header.plan.iter().filter(|planned| planned.unmet.is_none()).count();
    let cpus = machine.cpus.online.len();
    // A guarded program takes as long as it takes; its budget is the sum of its time limits.
    let foreign = header.plan.iter().all(|planned| planned.case.bench == guard::COMMAND);
    let limit = if foreign { String::new() } else { format!(", at most {:.0} s", header.budget_s) };
    eprint_line(&format!(
        "{}: measuring {} on {}{limit}{}",
        plain(&header.host, 60),
        counted(runnable, "case"),
        counted(cpus, "CPU"),
        if pretended { " (invented samples)" } else { "" }
    ));
}

/// The exit code of a verb that judged a run.
pub fn exit_code(diagnosis: &Diagnosis, fail_on: Option<Severity>) -> ExitCode {
    ExitCode::from(exit(diagnosis, fail_on).0)
}

/// The same, with its meaning.
pub fn exit(diagnosis: &Diagnosis, fail_on: Option<Severity>) -> (u8, &'static str) {
    let gravest = diagnosis.findings.iter().map(|finding| finding.severity).max();
    if !diagnosis.has_usable_numbers() {
        return (3, "nothing valid was measured");
    }
    if fail_on.is_some_and(|limit| gravest.is_some_and(|gravest| gravest >= limit)) {
        (1, "a finding reached --fail-on")
    } else {
        (0, "measured")
    }
}

/// The folder for what is made from a run file: the given one, or that of the run file.
pub fn beside(run_file: &Path, out: &Option<PathBuf>) -> PathBuf {
    let mut above = run_file.ancestors().skip(1);
    // What is above a run of a bundle is a file.
    let own = above.find(|dir| dir.as_os_str().is_empty() || dir.is_dir());
    let own = own.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    out.clone().unwrap_or_else(|| own.to_path_buf())
}
