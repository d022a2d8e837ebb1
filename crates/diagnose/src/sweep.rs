//! The result of a sweep: whether its knobs matter, the best setting, and what it costs.

pub mod swept;

use self::swept::{Facet, MetricGrid, advice, words};
use super::words::{capital, figure, shell};
use super::{Evidence, Rule};
use model::vocabulary as ids;
use model::{Better, Fact, Finding, Sweep, percent};
use stats::sweep::Region;

pub const RULES: &[Rule] = &[EFFECT, TRADE];

const EFFECT: Rule = Rule {
    id: ids::sweep::rule::SWEEP_EFFECT,
    title: "What the knobs of a sweep do",
    topic: "setting",
    meaning: "It shows whether the benchmark depends on the knobs, where its response is best, and how much better than before. No \
             effect is a result too. Cells that cannot be separated from the best one are named with it.",
    action: "Set the knobs as the finding advises, then measure the old and the new setting once more. See it: assay sweep \
             BENCHMARK --knob NAME=OLD,NEW",
    when: "A sweep finds an effect at 5 % over all its questions. Or it finds none, and would have seen one of 10 %.",
    how: "Each pass measures all cells in random order, and the old setting before every eighth. Level, drift and noise are \
             fitted together on logarithms (docs/method/sweeps.md). First all passes together answer the general questions: each \
             knob, its trend if its values are numbers, whether knobs depend on each other. Then cells are compared in pairs, by \
             permutation within passes, at 5 % over all questions (closed testing). Core-bound work is brought to one core clock, \
             unless the knobs move that. Best cells are those within the simultaneous 95 % bound of the best one. Regions are the \
             shortest description of rows and columns as falling, ragged and flat pieces. Switches are counted in the same \
             passes. A rank correlation is named from 0.7 on, and is no proof. Advised is the area of neighbouring settings with \
             the largest gain, at the lower end of an interval that holds for all areas together. A compromise is the same among \
             those with a response at most 10 % worse.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: effect,
};

const TRADE: Rule = Rule {
    id: ids::sweep::rule::SWEEP_TRADE,
    title: "Throughput against response",
    topic: "trade-off",
    meaning: "One setting is rarely best for both. Long slices and few preemptions finish fixed work sooner, but a woken task waits \
             longer. No setting beats the listed ones in both; the rest of the map does not matter.",
    action: "Choose among the listed settings by what your service needs, throughput or response. See it: assay sweep BENCHMARK \
             --knob NAME=OLD,NEW",
    when: "The sweep measured throughput and response at each setting, and one of them depends on the knobs.",
    how: "A setting dominates another if one figure is better by more than the noise of both, and the other is not worse by more \
             than that. Settings that no other dominates form the Pareto front.",
    calm: "",
    looked_at: "",
    source: file!(),
    check: trade,
};

/// More settings of a front than this are not listed.
const LISTED: usize = 6;

fn effect(evidence: &Evidence) -> Option<Vec<Finding>> {
    let swept = swept::evaluate_sweep(evidence)?;
    let mut findings = Vec::new();
    for facet in &swept.facets {
        let both = [Some(&facet.target), facet.response.as_ref()].into_iter().flatten();
        // If only a huge effect would have been seen, seeing none is no finding; the section of the
        // report shows it.
        let tells = |charted: &&MetricGrid| charted.surface.matters.yes || charted.is_sensitive();
        findings.extend(both.filter(tells).map(|charted| effect_of(swept.sweep, facet, charted)));
    }
    Some(findings)
}

fn effect_of(sweep: &Sweep, facet: &Facet, charted: &MetricGrid) -> Finding {
    let whose = match facet.label.as_str() {
        "" => charted.title.clone(),
        words => format!("{} ({words})", charted.title),
    };
    let draft = match charted.surface.matters.yes {
        true => Finding::note(EFFECT.id, effect_words(sweep, charted, &whose))
            .cause(cause_of(sweep, charted))
            .facts(fit_facts(sweep, charted))
            .facts(words::best(sweep, charted).map(|best| fact("best", best)))
            .facts(region_facts(sweep, charted)),
        false => Finding::note(
            EFFECT.id,
            format!(
                "No setting of {} changes {whose} by {} or more",
                words::knobs(sweep),
                percent(charted.surface.matters.floor.exp() - 1.0)
            ),
        )
        .cause(format!(
            "All {} cells lie within the noise: passes of one cell differ by {}. Effects from this size on would show: {}.",
            charted.cells,
            percent(charted.surface.noise),
            words::seen(sweep, charted)
        ))
        .facts(fit_facts(sweep, charted)),
    };
    draft.confirm(confirm(sweep, facet, charted)).advice(said(sweep, facet))
}

/// Of all cells' passes together, not of one series.
fn fact(label: &str, value: String) -> Fact {
    Fact::new(label, value, "passes")
}

/// The noise of the map, its answers, and the level at the setting before.
fn fit_facts(sweep: &Sweep, charted: &MetricGrid) -> Vec<Fact> {
    let surface = &charted.surface;
    let looks: usize = surface.levels.iter().flatten().map(|level| level.n).sum();
    let floor = percent(surface.matters.floor.exp() - 1.0);
    let mut facts = vec![
        fact("cells", format!("{} in {looks} passes: {}", charted.cells, charted.verdicts())),
        fact("noise of one pass", percent(surface.noise)),
        fact("drift taken out", percent(surface.drift)),
        fact("smallest visible difference between two cells", floor),
    ];
    facts.extend(
        charted.clock.map(|ghz| fact("all passes brought to one core clock", format!("{ghz:.2} GHz"))),
    );
    facts.extend(surface.test_results.iter().map(|answer| {
        let said = format!("{} ({})", words::answer(sweep, answer), p_words(answer.adjusted));
        fact(&words::asked(sweep, answer.hypothesis), said)
    }));
    let level = figure(surface.control_level, &charted.metric.unit);
    facts.push(fact("at the setting before", format!("{level} ({})", words::before(sweep))));
    facts
}

/// What the knobs do, where they matter.
fn effect_words(sweep: &Sweep, charted: &MetricGrid, whose: &str) -> String {
    let (knobs, before) = (words::knobs(sweep), words::before(sweep));
    match charted.surface.best.first() {
        _ if charted.significant_effects().next().is_some() => knob_by_knob(sweep, charted, whose),
        Some(best) if !charted.beats(*best) => {
            let ratios = (0..charted.cells).filter_map(|cell| charted.ratio(cell));
            let most = ratios.map(|ratio| ratio.ln().abs()).fold(0.0, f64::max).exp() - 1.0;
            let most = percent(most);
            format!("{} changes by up to {most} with {knobs}. No setting beats {before}.", capital(whose))
        }
        Some(best) => {
            let change = words::change(charted.ratio(*best).unwrap_or(1.0));
            format!("{} is {change} at {} than at {before}", capital(whose), words::setting(sweep, *best))
        }
        None => format!("{} depends on {knobs}, in {} settings", capital(whose), charted.cells),
    }
}

fn region_facts(sweep: &Sweep, charted: &MetricGrid) -> Vec<Fact> {
    let region_fact = |(index, region): (usize, &Region)| {
        let why = words::why(charted, region.kind, &region.cells);
        let because = if why.is_empty() { String::new() } else { format!(": {why}") };
        let label = format!("region {}, {}", words::letter(index), words::kind(sweep, region));
        fact(&label, format!("{}{because}", words::span(sweep, &region.cells)))
    };
    charted.surface.regions.iter().enumerate().map(region_fact).collect()
}

/// What to set.
fn said(sweep: &Sweep, facet: &Facet) -> String {
    let all = advice::recommendations(sweep, facet);
    all.into_iter().map(|one| one.text).collect::<Vec<_>>().join(". ")
}

/// What each knob does at all values of the other.
fn knob_by_knob(sweep: &Sweep, charted: &MetricGrid, whose: &str) -> String {
    let of = |axis: usize| {
        charted.significant_effects().filter(move |answer| answer.hypothesis.axis() == Some(axis))
    };
    let (matter, silent): (Vec<usize>, Vec<usize>) =
        (0..sweep.axes.len()).partition(|axis| of(*axis).next().is_some());
    let names = |axes: &[usize]| axes.iter().map(|axis| words::name(&sweep.axes[*axis])).collect::<Vec<_>>();
    // A trend says more than that its values differ.
    let said = matter.iter().filter_map(|axis| of(*axis).last());
    let said: Vec<String> = said.filter_map(|answer| words::brief(sweep, answer)).collect();
    let verb = if matter.len() == 1 { "matters" } else { "matter" };
    let names_of = |axes: &[usize]| capital(&names(axes).join(" and "));
    let mut text = format!("{} {verb} for {whose}", names_of(&matter));
    if !said.is_empty() {
        text.push_str(&format!(": {}", said.join(", ")));
    }
    if charted.has_interaction() {
        text.push_str(". How much depends on the other knob.");
    } else if !silent.is_empty() {
        text.push_str(&format!(". {} shows no effect.", names_of(&silent)));
    }
    text
}

fn p_words(p: f64) -> String {
    if p <= 0.001 { "p ≤ 0.001".to_string() } else { format!("p = {p:.3}") }
}

fn cause_of(sweep: &Sweep, charted: &MetricGrid) -> String {
    let together = words::together(charted);
    let counted = match (together.as_str(), charted.covariate(ids::hackbench::metric::INVOLUNTARY)) {
        ("", None) => "Nothing was counted that could explain it.".to_string(),
        ("", Some(_)) => format!(
            "Over the whole map neither switches nor waiting follow it closely{}. The regions show where they do.",
            words::closest(charted)
        ),
        (together, _) => format!("Over the map it correlates with {together}."),
    };
    match sweep.target.bench == ids::hackbench::HACKBENCH && charted.measure == &sweep.target {
        true => format!(
            "Tasks of one group sleep when a partner has nothing for them (voluntary switches). Groups compete for CPUs: \
             their turns end by preemption or with the slice (involuntary switches), which these knobs change. {counted}"
        ),
        false => counted,
    }
}

/// The two settings side by side once more.
fn confirm(sweep: &Sweep, facet: &Facet, charted: &MetricGrid) -> String {
    let [columns, _] = sweep.shape();
    let best = charted.surface.best.first().copied().unwrap_or(0);
    let at = [best % columns.max(1), best / columns.max(1)];
    let mut command = format!("assay sweep {}", shell(&sweep.target.bench));
    for (axis, index) in sweep.axes.iter().zip(at) {
        let option = if axis.of == model::sweep::AxisOf::Knob { "--knob" } else { "--param" };
        let mut values: Vec<&str> = axis.before.as_deref().into_iter().collect();
        values.extend(
            axis.values.get(index).map(String::as_str).filter(|own| Some(*own) != axis.before.as_deref()),
        );
        if values.len() < 2 {
            values.extend(axis.values.iter().map(String::as_str).find(|own| !values.contains(own)));
        }
        command.push_str(&format!(" {option} {}", shell(&format!("{}={}", axis.name, values.join(",")))));
    }
    let facets = sweep.facets.iter().zip(&facet.values).map(|(axis, value)| (&axis.name, value));
    for (name, value) in sweep.fixed.iter().map(|(name, value)| (name, value)).chain(facets) {
        command.push_str(&format!(" --param {}", shell(&format!("{name}={value}"))));
    }
    command
}

fn trade(evidence: &Evidence) -> Option<Vec<Finding>> {
    let swept = swept::evaluate_sweep(evidence)?;
    let facets = swept.facets.iter().filter(|facet| facet.response.is_some());
    let facets: Vec<&Facet> = facets.collect();
    if facets.is_empty() {
        return None;
    }
    Some(facets.into_iter().filter_map(|facet| trade_of(swept.sweep, facet)).collect())
}

fn trade_of(sweep: &Sweep, facet: &Facet) -> Option<Finding> {
    let response = facet.response.as_ref()?;
    let (first, rest) = facet.front.split_first()?;
    let count = rest.len() + 1;
    let spot = |cell: usize| {
        format!(
            "{} {}, {} {}",
            facet.target.metric.title,
            words::against_before(&facet.target, cell),
            response.metric.title,
            words::against_before(response, cell)
        )
    };
    let further = || fact("further settings of the Pareto front", (count - LISTED).to_string());
    let kept = facet.front.contains(&facet.target.control);
    let own = if kept { "The present one is among them." } else { "The present one is not." };
    let headline = match count {
        1 => format!(
            "{} is the best of {} settings in both throughput and response",
            capital(&words::setting(sweep, *first)),
            facet.target.cells
        ),
        count => format!(
            "No other setting beats {count} of {} in both throughput and response. {own}",
            facet.target.cells
        ),
    };
    let sides = [&facet.target, response].map(|charted| match charted.metric.better {
        Better::Higher => format!("more {}", charted.metric.title),
        _ => format!("less {}", charted.metric.title),
    });
    Some(Finding::note(TRADE.id, headline)
        .cause(format!(
            "Each setting has a figure for throughput ({}) and one for response ({}). Between the listed settings one \
             figure gains what the other loses, or nothing significant.",
            sides[0], sides[1]
        ))
        .facts(facet.front.iter().take(LISTED).map(|cell| fact(&words::setting(sweep, *cell), spot(*cell))))
        .facts((count > LISTED).then(further))
        .confirm(confirm(sweep, facet, response))
        .advice(said(sweep, facet)))
}
