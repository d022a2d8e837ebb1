//! Whether memory has one speed (`assay memmap`). Words: `ONE SPEED`, `TWO SPEEDS`, `THREE SPEEDS`,
//! `CANNOT TELL`.

use super::super::memory_map;
use super::{Answer, sentence};
use crate::block::Block;
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::memory_map::NodeMap;
use stats::memory_map::Answer as Found;

/// What a node comes to has up to three parts, and a verdict as many sentences.
const SENTENCES: usize = 3;

/// Lines of a picture at most.
const LINES: usize = 12;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let maps = diagnosis.memory_maps();
    if maps.is_empty() {
        return None;
    }
    let is_uniform = |found: &&NodeMap| matches!(found.map.answer, Found::Uniform);
    let speeds = maps.iter().filter_map(|found| Some(found.speeds()?.speeds.len())).max();
    let (word, tone) = match speeds {
        Some(2) => ("TWO SPEEDS", Tone::Bad),
        Some(_) => ("THREE SPEEDS", Tone::Bad),
        None if maps.iter().all(|found| is_uniform(&found)) => ("ONE SPEED", Tone::Good),
        None => ("CANNOT TELL", Tone::Care),
    };
    // Nodes of several speeds first, then those that are in doubt.
    let mut deciding: Vec<&NodeMap> = maps.iter().collect();
    deciding.sort_by_key(|found| (found.speeds().is_none(), is_uniform(found)));
    let said: Vec<String> = deciding.iter().take(2).map(|found| found.words()).collect();
    let said = said.iter().flat_map(|words| words.split("; ")).map(sentence).take(SENTENCES);
    let regions = diagnosis.regions();
    let moved = regions.first().and_then(|own| own.moved.as_ref()).map(|moved| moved.sentence());
    // Whether memory moved has a line of its own.
    let is_why = |text: &String| moved.as_ref().is_none_or(|own| !text.starts_with(own.as_str()));
    let why = regions.iter().flat_map(|own| own.sentences()).filter(is_why).take(SENTENCES);
    let mut answer = Answer::new(word, tone).sentences(said.chain(why)).table(memory_map::nodes(&maps));
    let drawn = deciding.first().filter(|found| found.speeds().is_some());
    let drawn = drawn.and_then(|found| memory_map::strings(found));
    answer.blocks.extend(moved.map(Block::Prose));
    answer.blocks.extend(drawn.filter(|text| text.lines().count() <= LINES).map(Block::Preformatted));
    Some(answer)
}
