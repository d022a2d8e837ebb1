//! Before measuring: what killed sessions have left is put back and ended, and what this one may
//! leave is noted.

use super::leftovers;
use super::output::eprint_line;
use bench::leaves;
use knobs::Knobs;
use model::Planned;
use session::objects::{self, Cleared, Keep};

/// Whoever was killed before us may have left kernel knobs turned, and more.
pub fn put_back_what_was_left(knobs: &Knobs) {
    let Cleared { said, failed } = objects::clear(knobs.folder());
    said.iter().chain(&failed).for_each(|line| eprint_line(&format!("  {line}")));
    match knobs.put_back_what_was_left() {
        Ok(said) => said.iter().for_each(|line| eprint_line(&format!("  {line}"))),
        // A run that turns no knob itself needs nothing put back; one that does is refused to.
        Err(error) => eprint_line(&format!(
            "  {error:#}; kernel settings that a killed run changed may still be in effect now"
        )),
    }
}

/// Keeps what the visits of a plan would leave.
pub fn keep_for(knobs: &Knobs, planned: &[Planned]) -> Keep {
    let keep = Keep::of(knobs);
    let runnable = || planned.iter().filter(|planned| planned.unmet.is_none());
    let places = leftovers::worked_in(runnable()).map(|place| place.canonicalize().unwrap_or(place));
    let said = keep.prepare(runnable().filter_map(|planned| leaves(&planned.case)), places.collect());
    said.iter().for_each(|line| eprint_line(&format!("  {line}")));
    keep
}
