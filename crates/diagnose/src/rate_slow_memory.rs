//! Whether runs of a rate suite follow where their memory lay.

use super::placed::{Placed, percents, placed};
use super::suite::suite;
use super::{Evidence, Rule};
use model::vocabulary::rate as ids;
use model::{Effect, Fact, Finding, Severity, percent};
use stats::places::{Follows, Joined};
use stats::repeat::APART;

pub const RULES: &[Rule] = &[SLOW_MEMORY];

const SLOW_MEMORY: Rule = Rule {
    id: ids::rule::RATE_SLOW_MEMORY,
    title: "Runs follow their shares of slow memory",
    topic: "memory",
    meaning: "If memory has two speeds, a run is as fast as the memory that it got. Assay compares the rate of each run with its \
             share of slow memory. What the share predicts is explained; the rest has another cause.",
    action: "If it explains the runs, find the slow modules with assay memmap and assay machine. Otherwise look at the clock and at \
             other work. See it: assay rate --with-map --new",
    when: "With a map (as root) the share removes 70 % of the variance between runs, or 30 % (in part). Runs more than 5 % apart \
             that it does not explain are reported too.",
    how: "4096 pages of all copies are counted in blocks of 64 MiB. A block has the speed of the map's chunks in it, or of its \
             neighbours where these agree. A run passes through its memory piece by piece, so times add up: a (1 + m (t - 1)) per \
             unit of work, t the mean time of its pages over fast memory; a and m are fitted to all other runs. Explained also \
             needs a correlation with p < 0.05 by permutation. Not explained: less, or memory could move the runs by less than a \
             third of their distance.",
    calm: "runs do not depend on slow memory",
    looked_at: "pagemap",
    source: file!(),
    check: slow_memory,
};

fn slow_memory(evidence: &Evidence) -> Option<Vec<Finding>> {
    let suite = suite(evidence.run, evidence.series)?;
    let placed = placed(evidence.run, evidence.machine, &suite)?;
    if placed.iter().all(|one| one.joined.is_err()) {
        return None;
    }
    Some(placed.iter().filter_map(finding).collect())
}

fn finding(one: &Placed) -> Option<Finding> {
    let joined = one.joined.as_ref().ok()?;
    let apart = one.part.runs.as_ref().is_some_and(|runs| runs.apart > APART);
    let severity = match joined.follows {
        Follows::Steady => return None,
        Follows::Memory | Follows::Partly => Severity::Warning,
        Follows::Not if apart => Severity::Warning,
        Follows::Not => return None,
    };
    let key = &one.part.rate.series.key;
    let explained = joined.follows != Follows::Not;
    let headline = one.headline()?;
    Some(Finding::of(SLOW_MEMORY.id, severity, headline)
        .cause(match joined.follows {
            Follows::Not => "Something else changes them: other work, the clock or other guests.",
            _ => "Part of the physical memory is slower, and each run keeps the pages that it got.",
        })
        .facts(facts(joined, key))
        .confirm(format!("assay rate --component {} --with-map --new", one.part.name()))
        .advice(match explained {
            true => "Look for the slow part: assay memmap draws it, assay machine shows which slots are filled.",
            false => "Look at the clock and at other work during the runs, and add runs.",
        })
        .affects(if explained { Effect::Explains } else { Effect::None }, [key]))
}

fn facts(joined: &Joined, key: &str) -> Vec<Fact> {
    const SHOWN: usize = 16;
    let mean = joined.measured.iter().sum::<f64>() / joined.measured.len() as f64;
    let of_mean = |rates: &[f64]| {
        let shown: Vec<String> =
            rates.iter().take(SHOWN).map(|rate| format!("{:.1}", 100.0 * rate / mean)).collect();
        shown.join(", ")
    };
    let slow = percents(joined.lay.iter().take(SHOWN).map(|lay| lay.slow));
    let known = joined.lay.iter().map(|lay| lay.known).fold(1.0, f64::min);
    let mut facts = vec![
        Fact::new("share of slow memory of each run, %", slow, "visits"),
        Fact::new("measured, % of the mean", of_mean(&joined.measured), key),
        Fact::new("predicted from all other runs, % of the mean", of_mean(&joined.predicted), key),
        Fact::new("unexplained, at most", percent(joined.left), key),
        Fact::new("pages on mapped memory, at least", percent(known), "visits"),
    ];
    if let (Some([r, p]), Some(bound)) = (joined.correlation, joined.bound) {
        let words = format!("{r:.2} (p {p:.3}); memory decides {} of its time", percent(bound));
        facts.insert(3, Fact::new("correlation", words, key));
    }
    facts
}
