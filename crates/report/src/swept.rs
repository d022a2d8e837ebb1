//! What a sweep comes to, as JSON has it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::Diagnosis;
use diagnose::swept::advice::{recommendations, seen};
use diagnose::swept::curve::curves;
use diagnose::swept::{EvaluatedSweep, Facet, MetricGrid, words};
use model::{Better, Sweep};
use stats::sweep::fit::Contrast;
use stats::sweep::{Change, Hypothesis, Kind};

/// A benchmark over one or two knobs. Effects are shares (0.05: 5 %), ratios are over the setting
/// that was there before.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputSweep {
    pub knobs: Vec<OutputKnob>,
    /// The effect of a knob that was to be seen (`--effect`); null in runs that did not ask.
    pub effect_asked: Option<f64>,
    /// From its beginning to the end of its last visit, s.
    pub spent_s: f64,
    /// One, or one for each combination of further parameters.
    pub maps: Vec<OutputSwept>,
}

/// A knob or parameter that is an axis of the map.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputKnob {
    pub name: String,
    pub values: Vec<String>,
    /// What it was set to before; null where that is not known.
    pub before: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputSwept {
    /// Further parameters.
    pub params: BTreeMap<String, String>,
    /// What was swept for, then the response.
    pub metrics: Vec<OutputSweptMetric>,
    /// For throughput, response and a compromise; or for the benchmark alone.
    pub recommendations: Vec<OutputRecommendation>,
}

/// A metric over the map.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputSweptMetric {
    pub bench: String,
    pub metric: String,
    pub better: Better,
    /// Whether any question has an answer, at 5 % over all of them.
    pub matters: bool,
    /// Relative standard deviation of one visit.
    pub noise: f64,
    /// The smallest effect of a knob that would have been seen.
    pub effect_seen: Option<f64>,
    /// Whether that is as little as was asked for.
    pub seen_as_asked: Option<bool>,
    /// Where it is not: the time in all that it takes to see what was asked for, s.
    pub needed_s: Option<f64>,
    /// And what a time within reach would show.
    pub more_time: Option<OutputMoreTime>,
    pub questions: Vec<OutputQuestion>,
    /// Of the map, where the knobs matter.
    pub regions: Vec<OutputRegion>,
    /// Of each knob with the other one fixed, where the knobs matter.
    pub curves: Vec<OutputCurve>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputMoreTime {
    /// In all, s.
    pub s: f64,
    pub effect_seen: f64,
}

/// What was asked of all visits together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputQuestion {
    /// `knob`: do its values differ; `trend`: does the metric rise or fall along it; `interaction`:
    /// does what one knob does depend on the other; `any`: do any two cells differ.
    pub asked: String,
    pub knob: Option<String>,
    pub yes: bool,
    /// Over all questions.
    pub p: f64,
    pub effect_seen: Option<f64>,
    /// Of a knob each value over the one before; of a trend its end over its beginning.
    pub effects: Vec<OutputChange>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputChange {
    /// The knob's value; null for a trend.
    pub value: Option<String>,
    pub ratio: f64,
    pub ci95: [f64; 2],
}

/// From a knob's value to another one, both included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRange {
    pub knob: String,
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRegion {
    pub letter: String,
    /// `fall`, `ragged` or `flat`.
    pub kind: String,
    /// The rectangle around its cells.
    pub ranges: Vec<OutputRange>,
    pub cells: usize,
    /// Why, by the switches that were counted; empty where none were.
    pub why: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCurve {
    pub knob: String,
    /// The other knob's value.
    pub fixed: BTreeMap<String, String>,
    pub regions: Vec<OutputCurveRegion>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputCurveRegion {
    /// Its number along the curve, from 1 (a letter before: letters are regions of the map).
    pub letter: String,
    pub kind: String,
    pub from: String,
    pub to: String,
    pub text: String,
}

/// What to set.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OutputRecommendation {
    /// `benchmark`, `throughput`, `response` or `compromise`.
    #[serde(rename = "for")]
    pub purpose: String,
    /// Nothing is surely better than the setting that was there.
    pub leave: bool,
    /// The region in which the gain holds; empty where nothing is to be changed.
    pub ranges: Vec<OutputRange>,
    /// The best setting in it.
    pub setting: BTreeMap<String, String>,
    /// Of the metric that it is about, over the region.
    pub gain: Option<OutputChange>,
    /// Of the other metric there.
    pub other: Option<OutputChange>,
    pub text: String,
}

/// `None` of a run that is no sweep.
pub fn output(diagnosis: &Diagnosis) -> Option<OutputSweep> {
    let swept = diagnosis.swept()?;
    let knob = |axis: &model::sweep::Axis| OutputKnob {
        name: axis.name.clone(),
        values: axis.values.clone(),
        before: axis.before.clone(),
    };
    Some(OutputSweep {
        knobs: swept.sweep.axes.iter().map(knob).collect(),
        effect_asked: swept.sweep.effect,
        spent_s: swept.spent_s,
        maps: swept.facets.iter().map(|facet| map(&swept, facet)).collect(),
    })
}

fn map(swept: &EvaluatedSweep, facet: &Facet) -> OutputSwept {
    let sweep = swept.sweep;
    let params = sweep.facets.iter().map(|axis| axis.name.clone()).zip(facet.values.clone());
    let both = [Some(&facet.target), facet.response.as_ref()].into_iter().flatten();
    let recommendations = recommendations(sweep, facet).into_iter().map(|one| OutputRecommendation {
        purpose: one.purpose.name().to_string(),
        leave: one.advised.is_none(),
        ranges: one.advised.map_or(Vec::new(), |advised| {
            ranges(sweep, &advised.area.cells(sweep.shape()[0]).collect::<Vec<usize>>())
        }),
        setting: one.advised.map_or(BTreeMap::new(), |advised| setting(sweep, advised.cell)),
        gain: one.advised.map(|advised| change(advised.gain)),
        other: one.advised.and_then(|advised| advised.other).map(change),
        text: one.text,
    });
    OutputSwept {
        params: params.collect(),
        metrics: both.map(|charted| metric(swept, facet, charted)).collect(),
        recommendations: recommendations.collect(),
    }
}

fn metric(swept: &EvaluatedSweep, facet: &Facet, charted: &MetricGrid) -> OutputSweptMetric {
    let (sweep, surface) = (swept.sweep, &charted.surface);
    let seen = seen(swept, charted);
    let regions = surface.regions.iter().enumerate().filter(|_| surface.matters.yes);
    OutputSweptMetric {
        bench: charted.measure.bench.clone(),
        metric: charted.measure.metric.clone(),
        better: charted.metric.better,
        matters: surface.matters.yes,
        noise: surface.noise,
        effect_seen: seen.as_ref().map(|seen| seen.effect),
        seen_as_asked: seen.as_ref().and_then(|seen| seen.enough),
        needed_s: seen.as_ref().and_then(|seen| seen.needed_s),
        more_time: seen.and_then(|seen| seen.more).map(|(s, effect_seen)| OutputMoreTime { s, effect_seen }),
        questions: surface.test_results.iter().map(|answer| question(sweep, answer)).collect(),
        regions: regions
            .map(|(index, region)| OutputRegion {
                letter: words::letter(index),
                kind: kind(region.kind).to_string(),
                ranges: ranges(sweep, &region.cells),
                cells: region.cells.len(),
                why: words::why(charted, region.kind, &region.cells),
            })
            .collect(),
        curves: curves(sweep, facet, charted)
            .into_iter()
            .map(|curve| {
                let (axis, other) = (&sweep.axes[curve.axis], sweep.axes.get(1 - curve.axis));
                let fixed = other.map(|other| (other.name.clone(), other.values[curve.across].clone()));
                let regions = curve.pieces.into_iter().map(|piece| OutputCurveRegion {
                    letter: piece.number.to_string(),
                    kind: kind(piece.segment.kind).to_string(),
                    from: axis.values[piece.segment.from].clone(),
                    to: axis.values[piece.segment.to].clone(),
                    text: piece.text,
                });
                OutputCurve {
                    knob: axis.name.clone(),
                    fixed: fixed.into_iter().collect(),
                    regions: regions.collect(),
                }
            })
            .collect(),
    }
}

fn question(sweep: &Sweep, answer: &stats::sweep::TestResult) -> OutputQuestion {
    let axis = answer.hypothesis.axis().and_then(|axis| sweep.axes.get(axis));
    let asked = match answer.hypothesis {
        Hypothesis::Main { .. } => "knob",
        Hypothesis::Trend { .. } => "trend",
        Hypothesis::Interaction => "interaction",
        Hypothesis::Any => "any",
    };
    let value = |place: usize| match answer.hypothesis {
        Hypothesis::Main { .. } => axis.and_then(|axis| axis.values.get(place).cloned()),
        _ => None,
    };
    let effects = answer.effects.iter().enumerate();
    let effect = |(place, effect): (usize, &Option<Contrast>)| {
        let (effect, value) = ((*effect)?, value(place));
        Some(OutputChange { value, ..change(Change { ln: effect.value, interval: effect.interval() }) })
    };
    OutputQuestion {
        asked: asked.to_string(),
        knob: axis.map(|axis| axis.name.clone()),
        yes: answer.is_yes(),
        p: answer.adjusted,
        effect_seen: answer.floor.map(|floor| floor.exp() - 1.0),
        effects: effects.filter_map(effect).collect(),
    }
}

fn change(change: Change) -> OutputChange {
    let ci95 = [change.interval.low.exp(), change.interval.high.exp()];
    OutputChange { value: None, ratio: change.ln.exp(), ci95 }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Fall => "fall",
        Kind::Ragged => "ragged",
        Kind::Flat => "flat",
    }
}

/// Column and row.
fn place(sweep: &Sweep, cell: usize) -> [usize; 2] {
    let columns = sweep.shape()[0].max(1);
    [cell % columns, cell / columns]
}

fn setting(sweep: &Sweep, cell: usize) -> BTreeMap<String, String> {
    let each = sweep.axes.iter().zip(place(sweep, cell));
    each.map(|(axis, at)| (axis.name.clone(), axis.values[at].clone())).collect()
}

fn ranges(sweep: &Sweep, cells: &[usize]) -> Vec<OutputRange> {
    let each = sweep.axes.iter().enumerate().filter_map(|(index, axis)| {
        let places = cells.iter().map(|cell| place(sweep, *cell)[index]);
        let (low, high) = (places.clone().min()?, places.max()?);
        let value = |place: usize| axis.values[place].clone();
        Some(OutputRange { knob: axis.name.clone(), from: value(low), to: value(high) })
    });
    each.collect()
}
