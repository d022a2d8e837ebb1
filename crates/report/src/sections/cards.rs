//! Score cards: a grade for each group that was tested, and for stability.

use super::screen::sign;
use crate::screen::{Card, Row};
use diagnose::Diagnosis;
use diagnose::bottom_line::KeyReading;
use diagnose::key_figures::Group;
use diagnose::reference::{Quality, Word};

/// A group's grade is that of its worst key figure that is certain; it is fast where all that have
/// a reference are.
pub(super) fn cards(rows: &[Row], readings: &[KeyReading], diagnosis: &Diagnosis) -> Vec<Card> {
    let word = |row: &Row| {
        let own = readings.iter().find(|own| Some(own.measured.figure.name) == row.name)?;
        let small = own.is_small().then_some(Word::Slow);
        small.or_else(|| own.reading.as_ref().filter(|_| own.certain).map(|reading| reading.word))
    };
    let card = |group: Group| {
        let own = || rows.iter().filter(|row| row.group == group.word() && row.name.is_some());
        let graded: Vec<(Word, &Row)> = own().filter_map(|row| Some((word(row)?, row))).collect();
        let worst = graded.iter().max_by_key(|(word, _)| *word);
        let all_fast = graded.iter().all(|(word, _)| *word == Word::Fast);
        let reading = worst.map(|(word, row)| match word {
            Word::Fast if !all_fast => sign(Word::Normal, Quality::Speed),
            _ => row.reading.clone(),
        });
        let row = worst.map(|(_, row)| *row).or_else(|| own().next()).cloned();
        Card { group: group.word(), row, reading }
    };
    let untested =
        |card: &Card| card.row.is_some() || (card.group == Group::Network.word() && !rows.is_empty());
    let groups = Group::ALL.into_iter().map(card).filter(untested);
    groups.chain(stability(diagnosis)).collect()
}

/// How steady the core clock was.
fn stability(diagnosis: &Diagnosis) -> Option<Card> {
    const STEADY: f64 = 0.05;
    const UNSTABLE: f64 = 0.20;
    let moved = diagnosis.clock_movement()?;
    let word = match moved {
        moved if moved <= STEADY => Word::Normal,
        moved if moved <= UNSTABLE => Word::Slow,
        _ => Word::Bad,
    };
    let reading = sign(word, Quality::Stability);
    let label = "core clock variation".to_string();
    let row = Row {
        group: "stability",
        alone: label.clone(),
        label,
        value: Some(100.0 * moved),
        unit: "%".into(),
        typical: format!("0–{:.0}", 100.0 * STEADY),
        band: [Some(0.0), Some(100.0 * STEADY)],
        reading: reading.clone(),
        ..Row::default()
    };
    Some(Card { group: "stability", row: Some(row), reading: Some(reading) })
}
