//! `assay restore`: restores settings and ends what a killed session left.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;

use super::output;
use knobs::{Knobs, watchdog};
use session::objects;

/// Restore settings and remove the remains of a killed run
#[derive(clap::Args)]
#[command(after_help = "\
`assay sweep`, `explain-profile` and `smt table` write each change of a kernel setting to a journal first, and \
restore it when they end, also by a signal. After kill -9 a watchdog process does it. If that is killed too, the \
next run or this command does it: in the same boot only, and only where the value is still Assay's.
The journal is /var/lib/assay/knobs.json; for users other than root it is assay/knobs.json in $XDG_STATE_HOME or \
~/.local/state. $ASSAY_STATE names another folder.
Runs that create files, System V semaphores, programs (guard, nexmark) or jobs on a Flink cluster have a journal \
objects-NUMBER.json next to it. Assay removes only what is provably its own: by namespace, key, maker and time; by \
control group name and inode; by a mark in the environment; by job number; or by a marker file in a folder. It does \
not see into other PID namespaces.
Exit codes: 0 nothing is left, 3 something could not be restored or ended, or a live run has settings changed")]
pub struct Args {
    /// Root of the /proc and /sys to restore
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
    /// Wait for the end of standard input first (watchdog of a session)
    #[arg(long, hide = true)]
    watch: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let knobs = Knobs::of(&args.root);
    let mut failed = Vec::new();
    let mut said = Vec::new();
    if args.watch {
        let session = watchdog::parent();
        let received = watchdog::wait()?;
        let has_more = session.is_some_and(|session| objects::has_journal_of(knobs.folder(), session));
        if has_more || !received.is_empty() {
            watchdog::wait_for_the_end_of(session);
        }
        let cleared = objects::clear_received(&received);
        said.extend(cleared.said);
        failed.extend(cleared.failed);
    }
    let cleared = objects::clear(knobs.folder());
    said.extend(cleared.said);
    failed.extend(cleared.failed);
    let back = if args.watch { watchdog::restore(&knobs) } else { knobs.restore_what_was_left() };
    match back {
        Ok(lines) => said.extend(lines),
        Err(error) => failed.push(format!("{error:#}")),
    }
    if said.is_empty() && failed.is_empty() {
        said.push("nothing is left: no changed setting, kernel object, program or folder".to_string());
    }
    output::print_text(&said.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(ExitCode::SUCCESS)
}
