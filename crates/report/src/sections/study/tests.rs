//! What studies with a known answer print: a word a case.

use super::*;
use crate::screen::Screen;
use crate::sections::screen::screen;
use crate::text::Style;
use crate::text::screen::{Wanted, render};
use diagnose::diagnose;
use diagnose::reference::References;
use model::vocabulary::memory_map::metric::BANDWIDTH;
use model::{Packed, Verdict, VerdictKind};

fn of(diagnosis: &Diagnosis) -> Screen {
    screen(diagnosis, &References::published(), &[])
}

fn printed(screen: &Screen, width: usize) -> String {
    render(screen, Wanted::default(), &[], Style { color: false, unicode: true, width })
}

#[test]
fn a_second_thread_and_what_it_adds() {
    let kinds = [("loop", 1.25), ("chase", 1.9), ("stream", 0.7)];
    let shown = of(&diagnose(testkit::capacity::made_of(&kinds, true)));
    assert_eq!(shown.word, "A SECOND THREAD ADDS 25 %");
    for width in [80, 100] {
        insta::assert_snapshot!(format!("smt_{width}"), printed(&shown, width));
    }
    let costs = of(&diagnose(testkit::capacity::made(0.8, true)));
    assert_eq!(costs.word, "A SECOND THREAD COSTS 20 %");
    assert_eq!(of(&diagnose(testkit::capacity::made(2.0, false))).word, "NO SECOND THREADS");
    assert_eq!(of(&diagnose(testkit::capacity::made(1.25, false))).word, "SECOND THREADS ARE HIDDEN");
    let mut disturbed = diagnose(testkit::capacity::made(2.0, false));
    for judged in &mut disturbed.series {
        judged.analysis.verdict = Verdict::new(VerdictKind::Rejected, "other work".to_string());
    }
    let disturbed = of(&disturbed);
    assert!(["NOT VALID", "NO CONCLUSION"].contains(&disturbed.word.as_str()), "{}", disturbed.word);
}

#[test]
fn memory_of_two_speeds_and_of_one() {
    let two = of(&diagnose(testkit::memory_map::made(&[1.5, 1.0], true)));
    assert_eq!(two.word, "TWO SPEEDS");
    for width in [80, 100] {
        insta::assert_snapshot!(format!("memmap_{width}"), printed(&two, width));
    }
    assert_eq!(of(&diagnose(testkit::memory_map::made(&[1.0], false))).word, "ONE SPEED");
}

#[test]
fn what_noise_could_hide_is_said_and_not_cut() {
    let mut noisy = testkit::memory_map::made(&[1.0], false);
    for (chunk, samples) in noisy.visits.iter_mut().flat_map(|visit| visit.samples.iter_mut().enumerate()) {
        if samples.metrics == [BANDWIDTH.to_string()] {
            let off = |round: usize| ((chunk * 7919 + round * 104_729) % 101) as f64 / 50.0 - 1.0;
            let work = (0..samples.ns.len()).map(|round| 40.0 * (1.0 + 0.3 * off(round))).collect();
            samples.work = Packed::pack(work);
        }
    }
    let shown = of(&diagnose(noisy));
    let text = printed(&shown, 60);
    assert_eq!(shown.word, "CANNOT TELL");
    assert!(text.contains("or a higher --limit") && !text.contains('…'), "{text}");
}

#[test]
fn tables_keep_sixteen_rows_and_lose_columns_on_the_right() {
    let rows = (0..20).map(|row| (0..9).map(|at| Cell::Text(format!("cell {row}.{at}"))).collect::<Vec<_>>());
    let columns = (0..9).map(|at| crate::sections::column(&format!("column {at}"))).collect();
    let answer = Answer::new("WORD", Tone::Plain).table(Table::new(columns, rows));
    let text = printed(&Screen { blocks: answer.blocks, ..Screen::default() }, 60);
    assert!(text.contains("cell 14.0") && !text.contains("cell 15.0") && text.contains("5 more"), "{text}");
    assert!(text.contains("cell 3.4") && !text.contains("cell 3.8"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}
