//! A profile taken apart: what each of its knobs does alone, in pairs, and all together.

use super::{column, number, pairs, right, text};
use crate::block::{Block, Cell, Section, Table};
use diagnose::Diagnosis;
use diagnose::shares::{EvaluatedProfile, words};
use diagnose::words::{figure, percent};

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let factors = diagnosis.run.header.factors.as_ref()?;
    let mut blocks = Vec::new();
    if let Some(shared) = diagnosis.profile_effects() {
        if shared.is_rejected() {
            blocks.push(Block::Prose(
                "Most of these settings are rejected; the findings give the reasons. Measure again before using this table.".into(),
            ));
        }
        blocks.push(Block::Table(table(&shared)));
        blocks.push(Block::Prose(format!(
            "Measurements of one setting differ by {} after removing passes and drift. Shares are of the logarithm of the whole difference; they \
             are given if that difference is significant.",
            percent(shared.shares.noise)
        )));
    } else {
        blocks.push(Block::Prose("Too little was measured to attribute the difference.".into()));
    }
    if !factors.left_out.is_empty() {
        let rows = factors.left_out.iter().map(|left| {
            let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".to_string());
            (format!("{}: {} → {}", left.name, said(&left.before), said(&left.after)), left.why.clone())
        });
        blocks.push(Block::Table(Table { folded: true, ..pairs(["not tested", "why"], rows.collect()) }));
    }
    let remarks = factors.remarks.iter().map(|remark| Block::Prose(format!("{remark}.")));
    blocks.extend(remarks);
    Some(Section::new("profile", format!("What {} does, setting by setting", factors.after), blocks).about(
        "Each setting changed alone, pairs of the strong ones, and all at once, in random order pass \
                 by pass.",
    ))
}

/// Settings with what they do: none and all turned, each knob alone, pairs, what is not shared out.
pub fn table(shared: &EvaluatedProfile) -> Table {
    let (shares, factors) = (&shared.shares, shared.factors);
    let median = |mask: u64| {
        let found = shared.medians.iter().find(|(own, _)| *own == mask);
        found.map_or(Cell::Empty, |(_, median)| number(figure(*median, &shared.metric.unit)))
    };
    let share = |share: Option<f64>| share.map_or(Cell::Empty, |share| number(percent(share)));
    let all = (1u64 << shared.factors.factors.len()) - 1;
    let mut rows = vec![
        vec![text(format!("none changed ({})", factors.before)), median(0), Cell::Empty, Cell::Empty],
        vec![
            text(format!("all changed ({})", factors.after)),
            median(all),
            number(words(&shares.total)),
            Cell::Empty,
        ],
    ];
    let mut mains: Vec<_> = shares.mains.iter().collect();
    mains.sort_by(|one, other| other.effect.ln.abs().total_cmp(&one.effect.ln.abs()));
    let strong = shares.strong();
    for main in mains {
        let mark = if strong.contains(&main.factor) { ", responsible" } else { "" };
        rows.push(vec![
            text(format!("{} alone{mark}", shared.turn(main.factor))),
            median(1 << main.factor),
            number(words(&main.effect)),
            share(main.share),
        ]);
    }
    for pair in &shares.pairs {
        let [one, other] = pair.factors;
        rows.push(vec![
            text(format!("{} with {}, beyond the sum of both", shared.name(one), shared.name(other))),
            median(1 << one | 1 << other),
            number(words(&pair.effect)),
            share(pair.share),
        ]);
    }
    rows.push(vec![text("not attributed"), Cell::Empty, number(words(&shares.remainder)), Cell::Empty]);
    let columns = vec![
        column("setting"),
        right(&shared.metric.title),
        right("effect, with its 95 % interval"),
        right("of the difference"),
    ];
    Table::new(columns, rows)
}
