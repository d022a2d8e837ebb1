//! `assay restore`: kernel knobs back to what they were.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use crate::knobs::{Knobs, watchdog};

/// Put back the kernel knobs that a killed session left changed
#[derive(clap::Args)]
#[command(after_help = "\
Whatever changes a kernel knob (assay sweep, assay smt table) notes it in a journal first and puts it back when it ends, \
by itself or by a signal; after kill -9 a watchdog process does it at once. Where that is killed too, the next measurement, or this verb, puts it back: in the \
same boot only, and only where the value is still the one that assay set. The journal is /var/lib/assay/knobs.json, for \
other users than root assay/knobs.json in $XDG_STATE_HOME or ~/.local/state; $ASSAY_STATE names another folder.
Exit codes: 0 nothing is left changed, 3 something could not be put back, or a session that lives has knobs changed")]
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
    let said = match args.watch {
        true => watchdog::wait_and_put_back(&knobs)?,
        false => knobs.put_back_what_was_left()?,
    };
    let text = match said.as_slice() {
        [] => "no kernel knob is left changed".to_string(),
        said => said.join("\n"),
    };
    output::print_text(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}
