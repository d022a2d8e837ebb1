//! `assay restore`: kernel knobs back to what they were, and an end to what a killed session left.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;

use super::output;
use knobs::{Knobs, watchdog};
use session::objects;

/// Put back the kernel knobs that a killed session left changed, and end what else it left
#[derive(clap::Args)]
#[command(after_help = "\
Whatever changes a kernel knob (assay sweep, assay smt table) notes it in a journal first and puts it back when it ends, \
by itself or by a signal; after kill -9 a watchdog process does it at once. Where that is killed too, the next measurement, or this verb, puts it back: in the \
same boot only, and only where the value is still the one that assay set. The journal is /var/lib/assay/knobs.json, for \
other users than root assay/knobs.json in $XDG_STATE_HOME or ~/.local/state; $ASSAY_STATE names another folder.
A run that makes files of its own in a folder or System V semaphores in the common namespace, runs programs (guard, nexmark) or a job on another's Flink cluster keeps a \
journal beside it, objects-NUMBER.json, of what would outlive it. It is ended in the same ways, where it is proved to be ours: by namespace, key, maker \
and time, by the control group's name and inode, by a mark in a program's environment, by the job's number, or by the marker in a folder. From another PID namespace \
nothing is said to be gone.
Exit codes: 0 nothing is left, 3 something could not be put back or ended, or a session that lives has knobs changed")]
pub struct Args {
    /// Knobs and journal of the tree below this folder
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
    /// Wait for the end of standard input first: what a session starts beside itself
    #[arg(long, hide = true)]
    watch: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let knobs = Knobs::of(&args.root);
    let mut failed = Vec::new();
    let mut said = Vec::new();
    if args.watch {
        let session = watchdog::parent();
        let told = watchdog::wait()?;
        let has_more = session.is_some_and(|session| objects::has_journal_of(knobs.folder(), session));
        if has_more || !told.is_empty() {
            watchdog::wait_for_the_end_of(session);
        }
        let cleared = objects::clear_told(&told);
        said.extend(cleared.said);
        failed.extend(cleared.failed);
    }
    let cleared = objects::clear(knobs.folder());
    said.extend(cleared.said);
    failed.extend(cleared.failed);
    let back = if args.watch { watchdog::put_back(&knobs) } else { knobs.put_back_what_was_left() };
    match back {
        Ok(lines) => said.extend(lines),
        Err(error) => failed.push(format!("{error:#}")),
    }
    if said.is_empty() && failed.is_empty() {
        said.push(
            "no kernel knob is left changed, and no kernel object, guarded program or folder is left"
                .to_string(),
        );
    }
    output::print_text(&said.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    Ok(ExitCode::SUCCESS)
}
