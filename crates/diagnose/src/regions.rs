//! Evaluated regions of memory: what their latencies and bandwidths show about pages, nodes,
//! channels and other work.

use super::chunks::{BANDWIDTH, LATENCY, by_chunk, list};
use super::moved::Moved;
use super::words::percent_range;
use super::{Diagnosis, Evidence};
use machine::Hypervisor;
use model::vocabulary::MetricId;
use model::vocabulary::memory_map::{self as ids, metric};
use model::{Fact, Form, Value, Visit, figure, percent};
use stats::memory_map::runs_test_p;
use stats::order::{Interval, mean, median, median_interval, quantile};
use stats::regions::{
    Blocks, Cause, Difference, Far, Moment, Neighbour, Region, Regions, Walked, far, neighbour, regions,
    small,
};

/// The regions of one case, evaluated over its passes.
pub struct EvaluatedRegions<'a> {
    /// Key of the case.
    pub case: String,
    pub node: Option<u32>,
    /// The pass whose regions these are: one with a named difference, else the last.
    pub visit: &'a Visit,
    pub found: Regions,
    pub region_bytes: u64,
    /// Huge pages of all passes that are translated like small ones, and that lie farther than
    /// others of their region; `None` if there are none, or if they were not measured.
    pub small: Option<Blocks>,
    pub far: Option<Far>,
    /// What reading whole pages in any order costs against groups of them, as a share of bandwidth.
    pub hopping_loss: Option<Interval>,
    /// Bandwidth of pages in order over that of pages in any order, on huge pages: what is fetched
    /// beyond the end of a page before it is asked for.
    pub order_gain: Option<Interval>,
    /// Slowdowns by other work; `None` if the run was too short.
    pub neighbour: Option<Neighbour>,
    /// Share of a program's lines that others left in the shared cache for a quarter of a
    /// millisecond, over all probes.
    pub kept: Option<Interval>,
    /// What moved the memory meanwhile; `None` if the run did not record it.
    pub moved: Option<Moved>,
    pub guest: bool,
}

/// Share of huge pages from which a block counts as backed by them.
pub(super) const HUGE_ENOUGH: f64 = 0.95;
/// Twice the cost of a hit in the TLB's second level, and less than a page walk.
pub(super) const MAX_CYCLES_WITHOUT_WALK: f64 = 20.0;
/// The clock to assume if it is unknown; a low one allows more time per access.
pub(super) const ASSUMED_GHZ: f64 = 2.0;

/// Seed of the permutations: the same run gives the same answer.
const SEED: u64 = 1;

/// The evaluated regions of each case that measured some, in the order of the plan.
pub fn evaluated_regions<'a>(evidence: &Evidence<'a>) -> Vec<EvaluatedRegions<'a>> {
    let run = evidence.run;
    let most_ns = MAX_CYCLES_WITHOUT_WALK / evidence.core_clock_ghz().unwrap_or(ASSUMED_GHZ);
    let step_ns = run.header.clock.resolution_ns;
    let plan = run.header.plan.iter().enumerate();
    let own = plan.filter(|(_, planned)| [ids::MAP, ids::REGIONS].iter().any(|id| planned.case.bench == *id));
    own.filter_map(|(at, planned)| {
        let ran = run.visits.iter().filter(|visit| visit.case as usize == at && visit.reason.is_none());
        let visits: Vec<&Visit> = ran.filter(|visit| times_loads(visit, step_ns)).collect();
        let read: Vec<(&Visit, Regions)> =
            visits.iter().filter_map(|visit| Some((*visit, regions(&rows(visit))?))).collect();
        let named = |(_, found): &&(&Visit, Regions)| found.named().next().is_some();
        // A difference counts where most passes have one.
        let many = read.iter().filter(named).count();
        let (visit, found) = match 2 * many > read.len() {
            true => read.iter().find(named),
            false => read.iter().rev().find(|one| !named(one)).or(read.last()),
        }?;
        Some(EvaluatedRegions {
            moved: Moved::of(visit),
            case: planned.case.key(),
            node: planned
                .case
                .params
                .get(ids::param::NODE)
                .and_then(Value::int)
                .and_then(|node| u32::try_from(node).ok()),
            visit,
            found: found.clone(),
            region_bytes: planned
                .case
                .inputs
                .get("chunk_bytes")
                .and_then(|bytes| bytes.parse().ok())
                .unwrap_or(0),
            small: small(&walked(&on_huge_pages(&visits)), most_ns),
            far: far(&near_pages(&on_huge_pages(&visits))),
            hopping_loss: ratio(&visits, [metric::STREAM_HOPPING, metric::STREAM_NEAR])
                .map(|Interval { low, high }| Interval { low: 1.0 - high, high: 1.0 - low }),
            order_gain: ratio(&on_huge_pages(&visits), [metric::STREAM, metric::STREAM_HOPPING]),
            neighbour: neighbour(&visits.iter().map(|visit| moments(visit)).collect::<Vec<_>>()),
            kept: median_interval(
                &visits.iter().flat_map(|visit| list(visit, metric::KEPT)).collect::<Vec<_>>(),
                0.95,
            ),
            guest: matches!(evidence.machine.hypervisor, Hypervisor::Guest(_)),
        })
    })
    .collect()
}

/// Loads are timed one by one: the step of the clock is at most this part of a load. Emulated
/// guests and clocks of a device have longer steps.
const MAX_STEP_SHARE: f64 = 0.5;

fn times_loads(visit: &Visit, step_ns: f64) -> bool {
    let near = by_chunk(visit, metric::NEAR, LATENCY).concat();
    median(&near).is_none_or(|ns| step_ns <= MAX_STEP_SHARE * ns)
}

pub(super) fn rows(visit: &Visit) -> Vec<Region> {
    let hopping = by_chunk(visit, metric::HOPPING, LATENCY);
    let scattered = by_chunk(visit, metric::SCATTERED, LATENCY);
    let near = by_chunk(visit, metric::NEAR, LATENCY);
    let bandwidth = by_chunk(visit, metric::BANDWIDTH, BANDWIDTH);
    let all = hopping.into_iter().zip(scattered).zip(near).zip(bandwidth);
    all.map(|(((hopping, scattered), near), bandwidth)| Region { hopping, scattered, near, bandwidth })
        .collect()
}

/// The loads of each reading in the order of time: the pass noted when it read which chunk.
pub fn moments(visit: &Visit) -> Vec<Moment> {
    let mut walks = [metric::HOPPING, metric::SCATTERED, metric::NEAR]
        .map(|metric| by_chunk(visit, metric, LATENCY).into_iter().map(Vec::into_iter).collect::<Vec<_>>());
    let chunks = list(visit, metric::CHUNK_IN_TIME);
    let looks = chunks.iter().zip(list(visit, metric::MOMENT));
    looks
        .filter_map(|(chunk, ms)| {
            let own: Option<Vec<f64>> =
                walks.iter_mut().map(|walk| walk.get_mut(*chunk as usize)?.next()).collect();
            Some(Moment { at_s: ms / 1e3, region: *chunk as usize, load_ns: mean(&own?)? })
        })
        .collect()
}

/// Passes of memory that huge pages back.
fn on_huge_pages<'a>(visits: &[&'a Visit]) -> Vec<&'a Visit> {
    let huge =
        |visit: &&&Visit| visit.process.huge_share.is_some_and(|share| (HUGE_ENOUGH..=1.0).contains(&share));
    visits.iter().filter(huge).copied().collect()
}

/// The huge pages of all regions.
fn walked(visits: &[&Visit]) -> Vec<Walked> {
    let of_visit = |visit: &Visit| {
        let scattered = by_chunk(visit, metric::SCATTERED, LATENCY);
        let hopping = by_chunk(visit, metric::HUGE_PAGE, Form::Value);
        let mut near = by_chunk(visit, metric::HUGE_PAGE_NEAR, Form::Value).into_iter();
        let pages = hopping.into_iter().zip(scattered);
        let own = pages.map(|(hopping, scattered)| {
            let [even, odd] = halves(&near.next().unwrap_or_default());
            let near = even.iter().zip(&odd).map(|(even, odd)| (even * odd).sqrt()).collect();
            Some(Walked { hopping, near, scattered: median(&scattered)? })
        });
        own.flatten().collect::<Vec<Walked>>()
    };
    visits.iter().flat_map(|visit| of_visit(visit)).collect()
}

/// Near loads of each huge page, by even and by odd readings; by region of each pass.
fn near_pages(visits: &[&Visit]) -> Vec<[Vec<f64>; 2]> {
    let of_visit = |visit: &&Visit| by_chunk(visit, metric::HUGE_PAGE_NEAR, Form::Value);
    visits.iter().flat_map(of_visit).map(|levels| halves(&levels)).collect()
}

fn halves(levels: &[f64]) -> [Vec<f64>; 2] {
    let (even, odd) = levels.split_at(levels.len() / 2);
    [even.to_vec(), odd.to_vec()]
}

/// Bandwidth of one order of pages over that of another, reading by reading.
fn ratio(visits: &[&Visit], metrics: [MetricId; 2]) -> Option<Interval> {
    let pairs = visits.iter().flat_map(|visit| {
        let [one, other] = metrics.map(|metric| by_chunk(visit, metric, BANDWIDTH).concat());
        one.into_iter().zip(other)
    });
    median_interval(&pairs.map(|(one, other)| one / other).collect::<Vec<f64>>(), 0.95)
}

/// `1.7–1.8 % of 4096`.
fn of_blocks(blocks: &Blocks) -> String {
    let Interval { low, high } = blocks.share();
    let share = if percent(low) == percent(high) { percent(low) } else { percent_range(low, high) };
    format!("{share} of {}", blocks.of)
}

impl EvaluatedRegions<'_> {
    /// `node 0`, or `memory` where there are none.
    pub fn name(&self) -> String {
        self.node.map_or("memory".to_string(), |node| format!("node {node}"))
    }

    /// The cause of a difference in words.
    pub fn cause_words(&self, cause: Cause) -> &'static str {
        match (cause, self.guest) {
            (Cause::Translation, true) => {
                "address translation, by smaller pages: the guest's own or the host's behind them"
            }
            (Cause::Translation, false) => "address translation, by smaller pages",
            (Cause::Distance, true) => "consistent with memory on another node of the host",
            (Cause::Distance, false) => "consistent with memory of another node or another kind",
            (Cause::Transfer, true) => "consistent with fewer channels of the host",
            (Cause::Transfer, false) => "consistent with fewer channels",
        }
    }

    /// `25 % of the regions cost 45 ns more per load (38–61)`.
    pub fn size_words(&self, difference: &Difference) -> String {
        let Difference { size, interval: Interval { low, high }, .. } = difference;
        let share = percent(difference.slow_share());
        match difference.cause {
            Cause::Translation => {
                let (size, low, high) = (figure(*size, "ns"), figure(*low, ""), figure(*high, ""));
                format!("{share} of the regions cost {size} more per load ({low}–{high})")
            }
            Cause::Distance => {
                format!("{share} of the regions take {size:.2} times as long per load ({low:.2}–{high:.2})")
            }
            Cause::Transfer => format!(
                "{share} of the regions have {size:.2} times less bandwidth at equal latency ({low:.2}–{high:.2})"
            ),
        }
    }

    /// Where the slow regions of a difference lie, as a sentence: together in physical memory
    /// (guest-physical in a guest), allocated one after the other, or scattered.
    pub fn place_words(&self, difference: &Difference) -> String {
        const BY_CHANCE: f64 = 0.01;
        let slow = &difference.slow;
        let together = |order: &[usize]| {
            let sides: Vec<bool> = order.iter().map(|region| slow[*region]).collect();
            runs_test_p(&sides, SEED).is_some_and(|p| p < BY_CHANCE)
        };
        let places = list(self.visit, metric::PHYSICAL);
        let taken: Vec<usize> = (0..slow.len()).collect();
        let mut by_place = taken.clone();
        if places.len() == slow.len() {
            by_place.sort_by(|one, other| places[*one].total_cmp(&places[*other]));
            let own: Vec<f64> =
                taken.iter().filter(|region| slow[**region]).map(|region| places[*region]).collect();
            let half = quantile(&own, 0.25).zip(quantile(&own, 0.75));
            if let (true, Some((from, to))) = (together(&by_place), half) {
                let whose = if self.guest { "guest-physical" } else { "physical" };
                return format!(
                    "They lie together in {whose} memory, half of them from {from:.1} to {to:.1} GiB."
                );
            }
        }
        match together(&taken) {
            true => "They were allocated one after the other.".to_string(),
            false => "They are scattered.".to_string(),
        }
    }

    /// A sentence on the host's pages behind huge pages; `None` if they were not measured.
    pub fn pages_words(&self) -> Option<String> {
        let small = self.small?;
        let Interval { low, high } = small.share();
        let behind = if self.guest { "of this guest's huge pages" } else { "of the huge pages" };
        Some(match (low, high) {
            (low, _) if low > 0.5 => {
                format!("Most {behind} behave as backed by small ones ({}).", of_blocks(&small))
            }
            (_, high) if high < 0.05 => {
                let many = if small.surely == 0 { "All" } else { "Nearly all" };
                format!("{many} {behind} are translated as such ({} measured).", small.of)
            }
            (low, high) if high - low > 0.5 => {
                format!("How many {behind} are backed by small ones is open ({}).", of_blocks(&small))
            }
            _ => format!("Some {behind} behave as backed by small ones ({}).", of_blocks(&small)),
        })
    }

    /// `1.7 % of 4096 huge pages take 1.45 times as long per load`, if there are such.
    pub fn far_size(&self) -> Option<String> {
        let far = self.far.filter(Far::is_named)?;
        Some(format!("{} huge pages take {:.2} times as long per load", of_blocks(&far.blocks), far.times))
    }

    /// The results in sentences.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self
            .found
            .named()
            .map(|found| {
                let (size, cause) = (self.size_words(found), self.cause_words(found.cause));
                format!("{size}: {cause}. {}", self.place_words(found))
            })
            .collect();
        if sentences.is_empty() {
            sentences.push(match self.found.differences.iter().find(|found| found.is_notable()) {
                None => "No region differs in translation, distance or transfer.".to_string(),
                Some(found) => format!("{}: too little to name a cause.", self.size_words(found)),
            });
        }
        sentences
            .extend(self.far_size().map(|size| format!("{size}: {}.", self.cause_words(Cause::Distance))));
        sentences.extend(self.pages_words());
        sentences.extend(self.neighbour_words());
        sentences.extend(self.moved_words());
        sentences
    }

    /// Whether the memory moved meanwhile, and in a guest the cost of its first touch.
    fn moved_words(&self) -> Option<String> {
        let moved = self.moved.as_ref()?;
        let touch = moved.touch_sentence().filter(|_| self.guest);
        Some(touch.map_or(moved.sentence(), |touch| format!("{} {touch}", moved.sentence())))
    }

    fn neighbour_words(&self) -> Option<String> {
        let found = self.neighbour.as_ref()?;
        Some(match (found.is_named(), found.is_quiet()) {
            (true, _) => format!(
                "Other work slowed memory: in {} of the time loads took {:.2} times as long.",
                percent(found.share),
                found.slower
            ),
            (false, true) => "No other work slowed memory.".to_string(),
            (false, false) => "At times memory was slower: whether other work did it is open.".to_string(),
        })
    }

    /// The facts behind the sentences.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |label: &str, value: String| Fact::new(label, value, &self.case);
        let interval = |interval: Interval, unit: &str| {
            format!("{}–{}", figure(interval.low, ""), figure(interval.high, unit))
        };
        let mut facts: Vec<Fact> = self
            .found
            .differences
            .iter()
            .map(|found| {
                let name = match found.cause {
                    Cause::Translation => "translation differs",
                    Cause::Distance => "latency differs",
                    Cause::Transfer => "bandwidth differs",
                };
                match found.is_named() {
                    true => fact(name, format!("{}. {}", self.size_words(found), self.place_words(found))),
                    false => fact(name, format!("{}, too little to name a cause", self.size_words(found))),
                }
            })
            .collect();
        facts.extend(
            self.found.translation_ns.map(|ns| fact("translation that misses every TLB", interval(ns, "ns"))),
        );
        facts.extend(
            self.found.price_ns.map(|ns| fact("the same against loads on few pages", interval(ns, "ns"))),
        );
        facts.extend(
            self.small.map(|small| fact("huge pages that behave as backed by small ones", of_blocks(&small))),
        );
        facts.extend(self.far.map(|far| {
            let times =
                if far.blocks.surely > 0 { format!(", {:.2} times", far.times) } else { String::new() };
            fact(
                "huge pages that lie farther than others of their region",
                format!("{}{times}", of_blocks(&far.blocks)),
            )
        }));
        facts.extend(
            self.hopping_loss.map(|loss| {
                fact("bandwidth lost by pages in random order", percent_range(loss.low, loss.high))
            }),
        );
        facts.extend(self.moved.iter().flat_map(|moved| moved.facts(&self.case)));
        facts
    }
}

impl Diagnosis {
    /// The evaluated regions of the run.
    pub fn regions(&self) -> Vec<EvaluatedRegions<'_>> {
        evaluated_regions(&Evidence::new(&self.run, &self.machine, self.clock, &self.series))
    }
}
