//! Before measuring: restores and ends what killed sessions left, and prepares the journal of this
//! one.

use super::leftovers;
use super::output::eprint_line;
use bench::leaves;
use knobs::Knobs;
use model::Planned;
use session::objects::{self, Cleared, ObjectKeeper};

/// A killed session may have left settings changed, and more.
pub fn restore_what_was_left(knobs: &Knobs) {
    let Cleared { said, failed } = objects::clear(knobs.folder());
    said.iter().chain(&failed).for_each(|line| eprint_line(&format!("  {line}")));
    match knobs.restore_what_was_left() {
        Ok(said) => said.iter().for_each(|line| eprint_line(&format!("  {line}"))),
        // A run that turns no knob itself needs nothing put back; one that does is refused to.
        Err(error) => eprint_line(&format!(
            "  {error:#}; kernel settings that a killed run changed may still be in effect now"
        )),
    }
}

/// The kernel objects of a plan's visits.
pub fn keep_for(knobs: &Knobs, planned: &[Planned]) -> ObjectKeeper {
    let keep = ObjectKeeper::of(knobs);
    let runnable = || planned.iter().filter(|planned| planned.unmet.is_none());
    let places = leftovers::worked_in(runnable()).map(|place| place.canonicalize().unwrap_or(place));
    let said = keep.prepare(runnable().filter_map(|planned| leaves(&planned.case)), places.collect());
    said.iter().for_each(|line| eprint_line(&format!("  {line}")));
    keep
}
