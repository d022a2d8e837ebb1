//! The UnixBench index (`assay unixbench`). Words: `INDEX 602`, `INDEX 602 (1 COPY), 1310 (4
//! COPIES)`; `NO INDEX` where a test is missing.

use super::super::{column, number, right, text, unixbench};
use super::Answer;
use crate::block::{Cell, Table};
use crate::screen::Tone;
use diagnose::Diagnosis;
use model::vocabulary::unixbench as ids;
use stats::unixbench::{Form, Scores, Test, scores, usable};

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let all = scores(&diagnosis.series);
    let with_tests = || all.iter().filter(|scores| scores.tests().next().is_some());
    with_tests().next()?;
    let known =
        with_tests().filter_map(|scores| Some((scores.copies, scores.index(Form::Classic).ok()?.value)));
    let known: Vec<(i64, f64)> = known.collect();
    let missing = with_tests().find_map(|scores| scores.index(Form::Classic).err());
    let (word, tone) = if known.is_empty() {
        ("NO INDEX".to_string(), Tone::Care)
    } else {
        let word = |(copies, value): &(i64, f64)| match (copies, known.len()) {
            (1, 1) => format!("{value:.0}"),
            _ => format!("{value:.0} ({})", unixbench::copies_words(*copies).to_uppercase()),
        };
        let words: Vec<String> = known.iter().map(word).collect();
        (format!("INDEX {}", words.join(", ")), Tone::Strong)
    };
    let why = missing.filter(|_| known.is_empty()).map(|why| super::sentence(&why));
    let said = all.iter().filter_map(unixbench::index_words).chain(why);
    let of: Vec<&Scores> = with_tests().collect();
    Some(Answer::new(word, tone).sentences(said).table(tests(&of)))
}

/// A row a test: its index for each number of copies; of one its score, too.
fn tests(all: &[&Scores]) -> Table {
    let copies = |scores: &Scores| unixbench::copies_words(scores.copies);
    let mut columns = vec![column("test")];
    columns.extend(all.iter().map(|scores| right(&format!("index, {}", copies(scores)))));
    // Of several numbers of copies there is room for what they are compared by.
    let with_scores = all.len() == 1;
    columns.extend(with_scores.then(|| right(&ids::metric::SCORE)));
    let mut titles: Vec<&'static Test> = Vec::new();
    for (test, _) in all.iter().flat_map(|scores| scores.tests()) {
        if titles.iter().all(|known| known.name != test.name) {
            titles.push(test);
        }
    }
    let row = |test: &&'static Test| {
        let score = |scores: &&Scores| {
            let own = scores.tests().find(|(other, _)| other.name == test.name);
            own.and_then(|(_, judged)| usable(judged))
        };
        let unknown = || "–".to_string();
        let mut row: Vec<Cell> = vec![text(test.title)];
        let scores: Vec<Option<f64>> = all.iter().map(score).collect();
        row.extend(
            scores
                .iter()
                .map(|own| number(own.map_or_else(unknown, |own| format!("{:.1}", test.index(own))))),
        );
        let own = scores.first().copied().flatten();
        let score = || number(own.map_or_else(unknown, |own| format!("{own:.1} {}", test.unit)));
        row.extend(with_scores.then(score));
        row
    };
    Table::new(columns, titles.iter().map(row))
}
