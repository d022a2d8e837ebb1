//! What benchmarks remarked about their own visits.

use super::pairs;
use crate::block::{Block, Section};
use crate::notes::notes;
use diagnose::Diagnosis;

/// No more are shown: a remark with a number of its own in each visit would fill pages.
const MOST: usize = 24;

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let all = notes(diagnosis);
    if all.is_empty() {
        return None;
    }
    let rows = all.iter().take(MOST).map(|note| (note.benches.join(", "), note.text.clone()));
    let mut blocks = vec![Block::Table(pairs(["benchmark", "remark"], rows.collect()))];
    if all.len() > MOST {
        blocks.push(Block::Prose(format!("and {} more, in the run file", all.len() - MOST)));
    }
    Some(Section::new("notes", "Notes of the benchmarks", blocks).about(
        "Notes from passes: what they worked on, what the system refused, what they \
                 left out.",
    ))
}
