//! `assay restore`: kernel knobs back to what they were.

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use crate::knobs::Knobs;

/// Put back the kernel knobs that a killed session left changed
#[derive(clap::Args)]
#[command(after_help = "\
Whatever changes a kernel knob (assay smt table switches SMT) notes it in a journal first and puts it back when it ends, \
by itself or by a signal. Only kill -9 or a crash leaves it; the next measurement, or this verb, then puts it back: in the \
same boot only, and only where the value is still the one that assay set. The journal is /var/lib/assay/knobs.json, for \
other users than root assay/knobs.json in $XDG_STATE_HOME or ~/.local/state; $ASSAY_STATE names another folder.
Exit codes: 0 nothing is left changed, 3 something could not be put back, or a session that lives has knobs changed")]
pub struct Args {
    /// Knobs and journal of the tree below this folder
    #[arg(long, value_name = "DIR", hide = true, default_value = "/")]
    root: PathBuf,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let said = Knobs::of(&args.root).put_back_what_was_left()?;
    let text = match said.as_slice() {
        [] => "no kernel knob is left changed".to_string(),
        said => said.join("\n"),
    };
    output::print_text(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}
