//! From `main` to a verb and its exit code: prepares the process, then runs the verb.

use std::ffi::c_int;
use std::panic::PanicHookInfo;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use signal_hook::consts::{SIGXCPU, SIGXFSZ};

use super::output::eprint_line;
use super::{Cli, case, complain};
use report::plain::plain;
use session::measure::child;
use sys::{events, start};

/// An error, as everywhere.
const ERROR: c_int = 3;

const TIME_IS_OVER: &str = "assay: this process has used up its CPU time (ulimit -t). Raise the limit; the \
  run file has the results so far\n";

/// Runs the command of the arguments, on the stack that there is; a stack that is too small is an
/// error.
pub fn start() -> c_int {
    std::panic::set_hook(Box::new(end_with_a_fault));
    start::ignore_broken_pipes();
    if let Err(error) = start::open_streams() {
        eprint_line(&format!(
            "assay: a standard stream is closed, and neither /dev/null nor a pipe can be opened in its place: {error}"
        ));
        return ERROR;
    }
    if let Err(why) = start::check_stack() {
        eprint_line(&format!("assay: {why}"));
        return ERROR;
    }
    // Where these are refused the signals end us as they always did.
    if events::exit_on(SIGXCPU, TIME_IS_OVER, ERROR).is_ok() {
        start::warn_of_cpu_limit();
    }
    // Caught, a file size limit (ulimit -f) is an error of writing like a full disk instead of our
    // death.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    std::process::exit(run())
}

#[inline(never)]
fn run() -> c_int {
    // A run starts thousands of visits: to learn all verbs would take longer than many a visit's
    // own start.
    let is_visit = std::env::args_os().skip(1).eq([child::CASE_COMMAND]);
    let done = if is_visit { case::run() } else { Cli::parse().run() };
    let code = done.unwrap_or_else(|error| complain(&error));
    // The standard library does not expose the number of an exit code.
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).map_or(ERROR, c_int::from)
}

/// A panic ends with a message and an exit code. Nothing is unwound: a pass's parent and the
/// watchdog clean up.
fn end_with_a_fault(panic: &PanicHookInfo) {
    let words = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    eprint_line(&format!(
        "assay: this is a bug in Assay: {}{}. Please report this line, the command and version {}",
        plain(words, 1000),
        place.unwrap_or_default(),
        env!("CARGO_PKG_VERSION")
    ));
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        eprint_line(&trace.to_string());
    }
    signal_hook::low_level::exit(ERROR)
}
