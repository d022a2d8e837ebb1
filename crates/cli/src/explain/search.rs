//! Explanations found by words that are no name: symptoms such as "slow disk", subjects such as
//! "context switch".

use std::collections::BTreeSet;

use super::topics::TOPICS;
use diagnose::rules;
use model::vocabulary::host::rule;
use model::vocabulary::kernel::VM_PAGE_FAULT;
use model::vocabulary::smt::LOAD;

/// What people call a thing that has another name here, and the names that explain it.
const SYMPTOMS: &[(&[&str], &[&str])] = &[
    (
        &["hyperthreading", "hyper-threading", "hyperthreads", "ht"],
        &[LOAD.as_str(), "utilization", rule::SHARED_CORE.as_str()],
    ),
    (
        &["jitter", "noise", "noisy", "variance", "scatter", "unrepeatable", "fluctuates"],
        &[
            rule::BACKGROUND_LOAD.as_str(),
            rule::STEAL.as_str(),
            rule::MOVING_CLOCK.as_str(),
            rule::FREE_PLACEMENT.as_str(),
            rule::DRIFT.as_str(),
            "interval",
        ],
    ),
    (&["hugepages", "thp", "transparent"], &[rule::NO_HUGE_PAGES.as_str(), VM_PAGE_FAULT.as_str()]),
    (
        &["neighbour", "neighbours", "neighbor", "neighbors"],
        &[rule::STEAL.as_str(), rule::PREEMPTED_CPUS.as_str(), rule::BACKGROUND_LOAD.as_str()],
    ),
    (&["drifts", "drifted"], &[rule::DRIFT.as_str()]),
    (&["stolen"], &[rule::STEAL.as_str(), rule::PREEMPTED_CPUS.as_str()]),
    (&["throttling", "thermal", "overheating"], &[rule::SLOW_CLOCK.as_str(), rule::MOVING_CLOCK.as_str()]),
];

/// Words of a question that do not name its subject.
const FILLERS: &[&str] = &[
    "a", "an", "and", "are", "at", "bad", "does", "fast", "high", "how", "in", "is", "it", "low", "my",
    "not", "of", "on", "slow", "so", "the", "to", "too", "what", "why",
];

/// At most this many names are listed, so that the best are seen.
const MOST: usize = 10;

/// Something that can be explained, with the texts that a question is compared with.
struct Entry {
    id: &'static str,
    title: &'static str,
    text: String,
}

fn entries() -> impl Iterator<Item = Entry> {
    let benches = super::benches().map(|bench| {
        let figures = bench.metrics.iter().map(|metric| format!("{} {}", metric.name, metric.title));
        let text = format!("{} {} {}", bench.about, bench.reading, figures.collect::<Vec<_>>().join(" "));
        Entry { id: bench.id.as_str(), title: bench.title, text }
    });
    let rules = rules().map(|rule| Entry {
        id: rule.id.as_str(),
        title: rule.title,
        text: format!("{} {}", rule.topic, rule.meaning),
    });
    let topics =
        TOPICS.iter().map(|topic| Entry { id: topic.id, title: topic.title, text: topic.also.join(" ") });
    benches.chain(rules).chain(topics)
}

/// Names and titles that a question's words lead to, the best first; empty where a word leads
/// nowhere.
pub fn found(question: &str) -> Vec<(&'static str, &'static str)> {
    let by_symptom = by_symptom(question);
    if !by_symptom.is_empty() {
        return by_symptom;
    }
    let words = words(question);
    let subject: Vec<&String> = words.iter().filter(|word| !FILLERS.contains(&word.as_str())).collect();
    if subject.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(usize, Entry)> = entries()
        .filter_map(|entry| {
            let named = self::words(&format!("{} {}", entry.id, entry.title));
            let text = self::words(&entry.text);
            let score = |word: &&String| match (begins(&named, word), begins(&text, word)) {
                (true, _) => Some(3),
                (false, true) => Some(1),
                (false, false) => None,
            };
            let of_subject: Option<Vec<usize>> = subject.iter().map(score).collect();
            let of_all: usize = words.iter().filter_map(|word| score(&word)).sum();
            of_subject.map(|_| (of_all, entry))
        })
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MOST).map(|(_, entry)| (entry.id, entry.title)).collect()
}

/// What explains a symptom that [`SYMPTOMS`] names.
fn by_symptom(question: &str) -> Vec<(&'static str, &'static str)> {
    let asked = words(question);
    let known = SYMPTOMS
        .iter()
        .find(|(names, _)| asked.iter().any(|word| names.iter().any(|name| singular(name) == *word)));
    let ids = known.map_or(&[][..], |(_, ids)| ids);
    ids.iter()
        .filter_map(|id| entries().find(|entry| entry.id == *id))
        .map(|entry| (entry.id, entry.title))
        .collect()
}

/// All words that name a symptom.
pub fn symptoms() -> impl Iterator<Item = &'static str> {
    SYMPTOMS.iter().flat_map(|(names, _)| names.iter().copied())
}

/// The words of a text, in small letters; a plural counts as its singular.
fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    let words = lower
        .split(|letter: char| !letter.is_alphanumeric() && letter != '-')
        .filter(|word| !word.is_empty());
    let parts = words.flat_map(|word| word.split('-').chain(std::iter::once(word)));
    parts.filter(|part| !part.is_empty()).map(singular).collect()
}

fn singular(word: &str) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 3 && !stem.ends_with('s') => stem.to_string(),
        _ => word.to_string(),
    }
}

/// Whether one of the words begins with this one: `swap` leads to `swapping`.
fn begins(words: &BTreeSet<String>, wanted: &str) -> bool {
    words.range(wanted.to_string()..).next().is_some_and(|word| word.starts_with(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_symptoms_lead_to_what_explains_them() {
        for (question, first) in [
            ("why is my disk slow", "disk"),
            ("Swap", "swapping"),
            ("lost messages", "network-loss"),
            ("stolen time", "steal"),
            ("hyperthreading", "smt.load"),
            ("variance", "background-load"),
        ] {
            let found = found(question);
            assert!(found.iter().any(|(id, _)| id.starts_with(first)), "{question}: {found:?}");
            assert!(found.len() <= MOST, "{question}");
        }
        assert!(found("xyzzy disk").is_empty(), "one word leads nowhere");
        assert!(found("why is it").is_empty(), "no subject");
    }

    #[test]
    fn each_symptom_leads_to_names_that_exist() {
        for (names, ids) in SYMPTOMS {
            assert_eq!(by_symptom(names[0]).len(), ids.len(), "{names:?}");
        }
    }
}
