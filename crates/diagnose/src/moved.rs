//! Whether memory moved while it was measured and by what, and which of it was new to the host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::chunks::{LATENCY, chunk_values, list};
use super::words::{capital, counted, listed};
use model::vocabulary::memory_map::metric;
use model::{Fact, Visit, figure, percent};
use stats::order::median;

/// What moved the memory of one pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Moved {
    /// Whether anything moved pages meanwhile; null if unknown.
    pub moved: Option<bool>,
    /// Share of the pages of each region that no longer lay at the end where they were taken, 0..1;
    /// empty where the kernel hides places.
    pub pages: Vec<f64>,
    /// What the kernel counted, for the whole host, while the memory was taken and while it was
    /// measured; null if this was not recorded.
    pub while_taken: Option<BTreeMap<String, f64>>,
    pub while_looked_at: Option<BTreeMap<String, f64>>,
    pub first_touch: Option<FirstTouch>,
}

/// Cost of the first write to memory, and of a second one after the memory was returned and taken
/// again.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FirstTouch {
    /// Median over regions, ns per page.
    pub first_ns: f64,
    pub second_ns: f64,
    /// Regions that were touched twice, and those of them that cost far more the first time.
    pub regions: usize,
    pub new: usize,
}

/// Least ratio and difference (ns per page) of a first write to the second where a guest's host had
/// no memory behind it yet: each fault then costs an exit and a cleared page. Up to the last ratio
/// the host had it; hosts that give huge pages may lie between.
const MIN_NEW_RATIO: f64 = 1.5;
const MIN_NEW_NS: f64 = 200.0;
const MAX_KNOWN_RATIO: f64 = 1.1;

/// Counters of what moves pages, and their words.
const MIGRATED: &str = "pgmigrate_success";
const MOVERS: &[(&str, &str)] = &[
    ("compact_success", "compaction"),
    ("numa_pages_migrated", "NUMA balancing"),
    ("balloon_inflate", "the balloon, which takes memory"),
    ("balloon_deflate", "the balloon, which gives memory back"),
    ("balloon_migrate", "the balloon"),
    ("ksm_pages_sharing", "KSM, which merges pages"),
    ("cow_ksm", "KSM, which parts pages"),
    ("ksm_swpin_copy", "KSM, which copies pages"),
    ("thp_collapse_alloc", "khugepaged"),
    ("pswpout", "swapping"),
];

impl Moved {
    /// `None` for a pass that did not record it.
    pub(super) fn of(visit: &Visit) -> Option<Moved> {
        let counts = visit.process.moves.as_ref();
        let pages = list(visit, metric::MOVED);
        let first_touch = first_touch(visit);
        if counts.is_none() && pages.is_empty() && first_touch.is_none() {
            return None;
        }
        let looking = counts.map(|counts| counts.looking.clone());
        let counted = looking.as_ref().filter(|counts| counts.contains_key(MIGRATED));
        let moved = if pages.is_empty() {
            counted.map(|counts| {
                let names = MOVERS.iter().map(|(name, _)| *name).chain([MIGRATED]);
                names.filter_map(|name| counts.get(name)).any(|count| *count > 0.0)
            })
        } else {
            Some(pages.iter().any(|share| *share > 0.0))
        };
        let while_taken = counts.map(|counts| counts.taking.clone());
        Some(Moved { moved, pages, while_taken, while_looked_at: looking, first_touch })
    }

    /// Share of all pages whose places were noted.
    fn share(&self) -> Option<f64> {
        (!self.pages.is_empty()).then(|| self.pages.iter().sum::<f64>() / self.pages.len() as f64)
    }

    /// `312 pages moved, by compaction and KSM, which merges pages`; `None` where none was counted.
    fn counted(counts: &BTreeMap<String, f64>) -> Option<String> {
        let count = |name: &str| counts.get(name).copied().filter(|count| *count > 0.0);
        let movers: Vec<&str> =
            MOVERS.iter().filter(|(name, _)| count(name).is_some()).map(|(_, words)| *words).collect();
        let pages = count(MIGRATED).map(|pages| format!("{} moved", counted(pages as usize, "page")));
        match (pages, movers.is_empty()) {
            (pages, true) => pages,
            (Some(pages), false) => Some(format!("{pages}, by {}", listed(&movers))),
            (None, false) => Some(format!("pages were moved, merged or taken by {}", listed(&movers))),
        }
    }

    /// Whether the regions stayed where they were, a sentence.
    pub fn sentence(&self) -> String {
        let elsewhere = self.while_looked_at.as_ref().and_then(Moved::counted);
        match (self.share(), elsewhere) {
            (Some(share), elsewhere) if share > 0.0 => {
                let by = elsewhere.map_or(String::new(), |words| format!(" (on the whole host {words})"));
                format!("{} of the pages moved while they were measured{by}.", percent(share))
            }
            (Some(_), None) => "No page moved meanwhile.".to_string(),
            (Some(_), Some(words)) => {
                format!("None of the measured pages moved meanwhile; elsewhere {words}.")
            }
            (None, Some(words)) => format!("On this host meanwhile {words}; only root sees which pages."),
            (None, None) if self.moved == Some(false) => {
                "The kernel moved no page of this host meanwhile.".to_string()
            }
            (None, None) => "The kernel does not report whether pages moved meanwhile.".to_string(),
        }
    }

    /// What its first touch shows of a guest's host, a sentence.
    pub fn touch_sentence(&self) -> Option<String> {
        let touch = self.first_touch.as_ref()?;
        let tried = counted(touch.regions, "region");
        if touch.new == 0 {
            let words = if touch.first_ns <= MAX_KNOWN_RATIO * touch.second_ns {
                "cost no more than a second one: consistent with memory that the host had given before"
            } else {
                "cost somewhat more than a second one: too little to name a cause"
            };
            return Some(format!("The first touch of {tried} {words}."));
        }
        let why = if self.was_compacted() {
            "this kernel compacted memory for them, which may be all of it"
        } else {
            "consistent with memory that the host gave only then, if nothing else ran"
        };
        let more = figure(touch.first_ns - touch.second_ns, "ns");
        Some(format!(
            "{} of {} regions cost {more} more per page at their first touch than at a second one: {why}.",
            touch.new, touch.regions
        ))
    }

    /// Whether taking the memory had to wait while the kernel moved other pages away.
    fn was_compacted(&self) -> bool {
        let stalls = self.while_taken.as_ref().and_then(|counts| counts.get("compact_stall"));
        stalls.is_some_and(|count| *count > 0.0)
    }

    pub(super) fn facts(&self, case: &str) -> Vec<Fact> {
        let counts = [
            ("while memory was taken", &self.while_taken),
            ("while memory was measured", &self.while_looked_at),
        ];
        let mut facts: Vec<Fact> = counts
            .into_iter()
            .filter_map(|(label, counts)| {
                let words = capital(&Moved::counted(counts.as_ref()?)?);
                Some(Fact::new(label, words, "/proc/vmstat, /sys/kernel/mm/ksm"))
            })
            .collect();
        facts.extend(self.share().map(|share| Fact::new("pages that moved meanwhile", percent(share), case)));
        facts.extend(self.first_touch.as_ref().map(|touch| {
            let (first, second) = (figure(touch.first_ns, ""), figure(touch.second_ns, "ns"));
            Fact::new("first and second touch of a page", format!("{first} and {second}"), case)
        }));
        facts
    }
}

fn first_touch(visit: &Visit) -> Option<FirstTouch> {
    let first: BTreeMap<usize, Vec<f64>> =
        chunk_values(visit, metric::FIRST_TOUCH, LATENCY).into_iter().collect();
    let second = chunk_values(visit, metric::SECOND_TOUCH, LATENCY);
    let pairs: Vec<[f64; 2]> = second
        .iter()
        .filter_map(|(chunk, second)| Some([*first.get(chunk)?.first()?, *second.first()?]))
        .filter(|pair| pair.iter().all(|ns| ns.is_finite()))
        .collect();
    let median_of = |at: usize| median(&pairs.iter().map(|pair| pair[at]).collect::<Vec<f64>>());
    let is_new =
        |[first, second]: &&[f64; 2]| *first > MIN_NEW_RATIO * second && *first > second + MIN_NEW_NS;
    Some(FirstTouch {
        first_ns: median_of(0)?,
        second_ns: median_of(1)?,
        regions: pairs.len(),
        new: pairs.iter().filter(is_new).count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::vocabulary::memory_map::param;
    use model::{Moves, Packed, Params, ProcessFacts, Samples, Value};

    fn counts(of: &[(&str, f64)]) -> BTreeMap<String, f64> {
        of.iter().map(|(name, count)| (name.to_string(), *count)).collect()
    }

    const STILL: [(&str, f64); 3] = [("pgmigrate_success", 0.0), ("compact_success", 0.0), ("cow_ksm", 0.0)];

    /// A pass with these counters while it measured, shares of pages that moved, and touches.
    fn visit(looking: &[(&str, f64)], moved: &[f64], touches: &[[f64; 2]]) -> Visit {
        let samples = |metric: &str, point: Params, work: Vec<f64>, ns: Vec<f64>| Samples {
            point,
            metrics: vec![metric.into()],
            work: Packed::pack(work),
            ns,
            warm_up: 0,
            beside: Default::default(),
            histograms: Vec::new(),
            linearity: None,
        };
        let mut all = vec![samples(&metric::MOVED, Params::new(), moved.to_vec(), vec![1.0; moved.len()])];
        for (chunk, both) in touches.iter().enumerate() {
            let at = Params::from([(param::CHUNK, Value::Int(chunk as i64))]);
            for (metric, ns) in [metric::FIRST_TOUCH, metric::SECOND_TOUCH].iter().zip(both) {
                all.push(samples(metric, at.clone(), vec![100.0], vec![100.0 * ns]));
            }
        }
        let moves = Moves { taking: counts(&STILL), looking: counts(looking) };
        let process = ProcessFacts { moves: Some(moves), ..ProcessFacts::default() };
        Visit { samples: all, process, ..Visit::unwatched(0) }
    }

    fn of(looking: &[(&str, f64)], moved: &[f64]) -> Moved {
        Moved::of(&visit(looking, moved, &[])).expect("it asked")
    }

    #[test]
    fn what_moved_is_said_by_pages_and_else_by_counters() {
        let busy = [("pgmigrate_success", 312.0), ("compact_success", 2.0), ("cow_ksm", 0.0)];
        for (looking, pages, moved, words) in [
            (&STILL[..], &[0.0, 0.0][..], Some(false), "No page moved meanwhile."),
            (
                &busy,
                &[0.0, 0.0],
                Some(false),
                "None of the measured pages moved meanwhile; elsewhere 312 pages moved, by compaction.",
            ),
            (
                &busy,
                &[0.5, 0.0],
                Some(true),
                "25 % of the pages moved while they were measured (on the whole host 312 pages moved, by compaction).",
            ),
            (&STILL, &[], Some(false), "The kernel moved no page of this host meanwhile."),
            (
                &busy,
                &[],
                Some(true),
                "On this host meanwhile 312 pages moved, by compaction; only root sees which pages.",
            ),
            (
                &[("pgmigrate_success", 0.0), ("balloon_inflate", 4.0)],
                &[],
                Some(true),
                "On this host meanwhile pages were moved, merged or taken by the balloon, which takes memory; only root sees \
                 which pages.",
            ),
            (&[], &[], None, "The kernel does not report whether pages moved meanwhile."),
        ] {
            let found = of(looking, pages);
            assert_eq!((found.moved, found.sentence().as_str()), (moved, words));
        }
        assert_eq!(Moved::of(&Visit::unwatched(0)), None, "nobody asked");
        // Fewer merged pages than before do not count as merging.
        assert_eq!(of(&[("pgmigrate_success", 0.0), ("ksm_pages_sharing", -9.0)], &[]).moved, Some(false));
    }

    #[test]
    fn memory_that_is_new_to_the_host_costs_more_the_first_time() {
        let touched = |touches: &[[f64; 2]]| {
            let found = Moved::of(&visit(&STILL, &[], touches)).expect("it asked");
            (found.first_touch.clone().expect("touches"), found.touch_sentence().expect("a sentence"))
        };
        let (known, words) = touched(&[[420.0, 400.0], [510.0, 400.0], [390.0, 410.0]]);
        assert_eq!((known.regions, known.new, known.second_ns), (3, 0, 400.0));
        assert!(words.contains("of 3 regions cost no more"), "{words}");
        let (between, words) = touched(&[[560.0, 400.0], [570.0, 400.0]]);
        assert_eq!(between.new, 0);
        assert!(words.contains("of 2 regions") && words.contains("too little to name a cause"), "{words}");
        let (new, words) = touched(&[[2400.0, 400.0], [2500.0, 400.0], [410.0, 400.0]]);
        assert_eq!((new.regions, new.new), (3, 2));
        assert!(words.starts_with("2 of 3 regions cost") && words.contains("2000 ns"), "{words}");
        assert!(words.contains("the host gave only then"), "{words}");
        // Where the guest's own kernel made room meanwhile, the host has nothing to do with it.
        let mut seen = visit(&STILL, &[], &[[2400.0, 400.0], [410.0, 400.0]]);
        seen.process.moves.as_mut().expect("counts").taking = counts(&[("compact_stall", 331.0)]);
        let words = Moved::of(&seen).expect("it asked").touch_sentence().expect("a sentence");
        assert!(words.contains("compacted memory") && !words.contains("host"), "{words}");
    }
}
