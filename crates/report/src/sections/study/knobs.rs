//! What a knob does (`assay sweep`) and which of many does it (`assay explain-profile`). Words of a
//! sweep: `SET SLICE TO 3 ms`, `NOTHING TO GAIN`, `NO CONCLUSION`, `DEPENDS ON groups`; of a
//! profile: `THP DECIDES`, `NO SINGLE KNOB DECIDES`, `NO DIFFERENCE FOUND`, `NO CONCLUSION`.

use super::super::{profile, sweep};
use super::{Answer, sentence};
use crate::block::Block;
use crate::screen::Tone;
use diagnose::Diagnosis;
use diagnose::shares::words as effect_words;
use diagnose::swept::{EvaluatedSweep, Facet, MetricGrid, advice, words};
use model::vocabulary::sweep::rule::PROFILE_SHARES as SHARES;
use stats::sweep::Advised;

const SET: &str = "SET";
const NO_CONCLUSION: &str = "NO CONCLUSION";

pub fn sweep(diagnosis: &Diagnosis) -> Option<Answer> {
    let swept = diagnosis.swept()?;
    let first = swept.facets.first()?;
    let mut found: Vec<(String, Tone)> = Vec::new();
    for facet in &swept.facets {
        let own = of_facet(&swept, facet);
        if !found.contains(&own) {
            found.push(own);
        }
    }
    let (word, tone) = match (found.as_slice(), first.label.split(' ').next()) {
        ([one], _) => one.clone(),
        (_, Some(name)) => (format!("DEPENDS ON {name}"), Tone::Care),
        (_, None) => (NO_CONCLUSION.to_string(), Tone::Care),
    };
    let said: Vec<String> = match swept.facets.as_slice() {
        [one] if word.starts_with(SET) => sweep::sentences(&swept, one),
        // Where nothing is to be set, what more time buys says more than what else was not seen.
        [one] => {
            let first = sweep::sentences(&swept, one).into_iter().take(1);
            first.chain(advice::seen_of(&swept, &one.target)).collect()
        }
        all => all.iter().filter_map(|facet| sweep::sentences(&swept, facet).into_iter().next()).collect(),
    };
    let mut answer = Answer::new(word, tone).sentences(said);
    answer.blocks.push(Block::from(sweep::map_of(&swept, first)));
    Some(answer)
}

/// What a map alone comes to.
fn of_facet(swept: &EvaluatedSweep, facet: &Facet) -> (String, Tone) {
    let both = [Some(&facet.target), facet.response.as_ref()];
    let charted = || both.into_iter().flatten();
    let advice = &facet.advice;
    match advice.both.or(advice.target).or(advice.response) {
        _ if facet.target.is_rejected() => (NO_CONCLUSION.to_string(), Tone::Care),
        Some(advised) => (set(swept, &advised), Tone::Good),
        None if charted().all(|own: &MetricGrid| own.surface.matters.yes || own.is_sensitive()) => {
            ("NOTHING TO GAIN".to_string(), Tone::Strong)
        }
        None => (NO_CONCLUSION.to_string(), Tone::Care),
    }
}

/// `SET SLICE TO 3 ms`: the best cell of what is advised.
fn set(swept: &EvaluatedSweep, advised: &Advised) -> String {
    let sweep = swept.sweep;
    let columns = sweep.shape()[0].max(1);
    let place = [advised.cell % columns, advised.cell / columns];
    let knobs = sweep.axes.iter().zip(place).filter_map(|(axis, at)| {
        Some(format!("{} TO {}", words::name(axis).to_uppercase(), words::value(axis, axis.values.get(at)?)))
    });
    format!("{SET} {}", knobs.collect::<Vec<String>>().join(", "))
}

pub fn profile(diagnosis: &Diagnosis) -> Option<Answer> {
    diagnosis.run.header.factors.as_ref()?;
    let Some(shared) = diagnosis.profile_effects() else {
        let why = "Too little was measured to attribute the difference.".to_string();
        return Some(Answer::new(NO_CONCLUSION, Tone::Care).sentences([why]));
    };
    let found = diagnosis.findings.iter().find(|finding| SHARES == finding.rule);
    let strong = shared.shares.strong();
    let names: Vec<String> = strong.iter().map(|factor| shared.name(*factor).to_uppercase()).collect();
    let between = shared.shares.total.interval;
    let told = between.low > 0.0 || between.high < 0.0;
    let (word, tone) = match names.as_slice() {
        _ if shared.is_rejected() || found.is_none() => (NO_CONCLUSION.to_string(), Tone::Care),
        [one] => (format!("{one} DECIDES"), Tone::Strong),
        [one, other] => (format!("{one} AND {other} DECIDE"), Tone::Strong),
        [one, others @ ..] => (format!("{one} AND {} MORE DECIDE", others.len()), Tone::Strong),
        [] if told => ("NO SINGLE KNOB DECIDES".to_string(), Tone::Strong),
        [] => ("NO DIFFERENCE FOUND".to_string(), Tone::Strong),
    };
    let said = match found {
        Some(own) => vec![own.headline.clone(), own.advice.clone()],
        None => vec![format!(
            "With all settings changed, {} changes by {}: too uncertain for more",
            shared.metric.title,
            effect_words(&shared.shares.total)
        )],
    };
    Some(
        Answer::new(word, tone)
            .sentences(said.iter().map(|text| sentence(text)))
            .table(profile::table(&shared)),
    )
}
