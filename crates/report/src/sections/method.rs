//! How it was measured and judged, in this very run.

use super::pairs;
use crate::block::{Block, METHOD, Section};
use diagnose::Diagnosis;
use diagnose::words::percent;

pub fn section(diagnosis: &Diagnosis) -> Section {
    let header = &diagnosis.run.header;
    let clock = &header.clock;
    let mut facts = vec![
        (
            "clock".to_string(),
            format!(
                "{}, step {:.1} ns, {:.1} ns per reading{}",
                clock.source,
                clock.resolution_ns,
                clock.cost_ns,
                clock.why.as_ref().map_or(String::new(), |why| format!(" ({why})"))
            ),
        ),
        (
            "order".to_string(),
            format!("each pass measures every benchmark once, in an order drawn from seed {}", header.seed),
        ),
        (
            "precision asked".to_string(),
            format!(
                "±{} for a trusted figure, ±{} for a rough one (half-width of the 95 % interval)",
                percent(header.precision),
                percent(model::rough(header.precision))
            ),
        ),
        (
            "reported figure".to_string(),
            "median of the passes' medians with a 95 % interval from order statistics; for 5–14 passes from Student's t on \
             logarithms, stretched to inner order statistics"
                .into(),
        ),
        ("CPUs allowed".to_string(), header.allowed_cpus.to_string()),
        ("run file schema".to_string(), header.schema.to_string()),
    ];
    if let Some(worst) = worst_linearity(diagnosis) {
        facts.push(("doubled work".to_string(), worst));
    }
    let rules = |rules: &[&diagnose::Rule]| {
        rules.iter().map(|rule| (rule.id.to_string(), rule.title.to_string())).collect::<Vec<_>>()
    };
    let benchmarks = header.catalogue.iter().map(|title| (title.id.to_string(), title.about.to_string()));
    let mut blocks = vec![
        Block::Facts(facts),
        Block::Prose("What was measured, and how:".into()),
        Block::Table(pairs(["benchmark", "method"], benchmarks.collect())),
    ];
    if !diagnosis.clean.is_empty() {
        blocks.push(Block::Prose("Rules that were checked and found nothing:".into()));
        blocks.push(Block::Table(pairs(["rule", "what it looks for"], rules(&diagnosis.clean))));
    }
    if !diagnosis.not_applicable.is_empty() {
        blocks.push(Block::Prose(
            "Rules that could not be checked, because this host does not report what they need:".into(),
        ));
        blocks.push(Block::Table(pairs(["rule", "what it looks for"], rules(&diagnosis.not_applicable))));
    }
    Section::new(METHOD, "Method", blocks)
        .about("`assay explain WORD` explains a word or a rule, with thresholds and reasons.")
        .long()
}

/// Calibration asks that twice the work take twice the time; the series that kept it least.
fn worst_linearity(diagnosis: &Diagnosis) -> Option<String> {
    let all = diagnosis.series.iter().flat_map(|judged| {
        judged.series.processes.iter().filter_map(|process| Some((process.linearity?, &judged.series.key)))
    });
    let (worst, key) = all.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!(
        "should take twice the time: the largest deviation is {}, in {key}. A large deviation means that part of the time does not \
         grow with the work; it affects that figure only",
        percent(worst)
    ))
}
