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
                "Most of these settings are rejected (the findings say why): measure again before anything follows from this table.".into(),
            ));
        }
        blocks.push(Block::Table(table(&shared)));
        blocks.push(Block::Prose(format!(
            "Visits of one setting differ by {} with passes and drift taken out. Shares are of the logarithm of the whole difference; they are \
             given where that can be told from none.",
            percent(shared.shares.noise)
        )));
    } else {
        blocks.push(Block::Prose("Too little was measured to share anything out.".into()));
    }
    if !factors.left_out.is_empty() {
        let rows = factors.left_out.iter().map(|left| {
            let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "not said".to_string());
            (format!("{}: {} → {}", left.name, said(&left.before), said(&left.after)), left.why.clone())
        });
        blocks.push(Block::Table(Table {
            folded: true,
            ..pairs(["not measured here", "why"], rows.collect())
        }));
    }
    let remarks = factors.remarks.iter().map(|remark| Block::Prose(format!("{remark}.")));
    blocks.extend(remarks);
    Some(Section::new("profile", format!("What {} does, knob by knob", factors.after), blocks).about(
        "Each knob turned alone, pairs of the strong ones, and all at once, in random order pass \
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
        vec![text(format!("none turned ({})", factors.before)), median(0), Cell::Empty, Cell::Empty],
        vec![
            text(format!("all turned ({})", factors.after)),
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
            text(format!("{} with {}, beyond both alone", shared.name(one), shared.name(other))),
            median(1 << one | 1 << other),
            number(words(&pair.effect)),
            share(pair.share),
        ]);
    }
    rows.push(vec![text("not shared out"), Cell::Empty, number(words(&shares.remainder)), Cell::Empty]);
    let columns = vec![
        column("setting"),
        right(&shared.metric.title),
        right("effect, with its 95 % interval"),
        right("of the difference"),
    ];
    Table::new(columns, rows)
}
