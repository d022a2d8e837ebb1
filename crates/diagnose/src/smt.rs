//! What a busy sibling or second core costs, what a second thread adds, and how full cores are
//! compared with CPU%.

pub mod capacity;
pub mod pays;

use self::capacity::{Levels, Second, Study, yield_words};
use super::neighbours::{Cost, Row, Tally, VARIANTS, Variant, expectation, neighbour, rows};
use super::words::{capital, percent_range, uncapital};
use super::{Evidence, Rule};
use model::vocabulary::smt as ids;
use model::{Fact, Finding, percent};
use stats::smt::Yield;

pub const RULES: &[Rule] = &[COST, CAPACITY];

const COST: Rule = Rule {
    id: ids::rule::SMT_COST,
    title: "What a busy sibling or second core costs",
    topic: "SMT",
    meaning: "Two threads of a core share its units and caches. While both are busy, each is slower than alone, yet CPU% counts \
             two full CPUs. Without SMT the second CPU is another core, which shares memory, L3, turbo and kernel locks.",
    action: "Judge headroom by the cost of the calls that your service makes, not by CPU%. See it: assay smt table --profile \
             standard",
    when: "A pinned call surely takes longer with a busy sibling or second core, or another time with SMT off. Surely means that \
             its whole 95 % interval lies beyond 2 %.",
    how: "Each pinned call of assay smt table is measured alone, with the same work on the second CPU, with a spinner there, and \
             with SMT off. All of these alternate. Costs are ratios of pairs of the same pass. A call is the same if its whole \
             interval lies within 2 %. Calls of several processes are those with several tasks, and those that create children. \
             Published expectation (lmbench tables with hyper-threading on and off): single-process calls unaffected, pipe and \
             fork+exit pay a little.",
    calm: "a busy sibling costs nothing",
    looked_at: "each call twice",
    source: file!(),
    check: cost_of_neighbours,
};

fn cost_of_neighbours(evidence: &Evidence) -> Option<Vec<Finding>> {
    let rows = rows(evidence.series);
    if rows.is_empty() {
        return None;
    }
    let beside = neighbour(evidence.machine, &rows);
    let title = |row: &Row| evidence.title(&row.alone.series.case.bench);
    let of_all =
        [Variant::SameWork, Variant::Spinner].into_iter().filter_map(|variant| dearest(&rows, variant));
    let of_all = of_all.max_by(|(_, one), (_, other)| one.ratio.ratio.total_cmp(&other.ratio.ratio));
    let expected = expectation(&rows);
    let headline = if let Some((row, cost)) = of_all {
        format!(
            "A busy {beside} makes {} take up to {:.2} times as long. Plan by this, not by CPU%.",
            uncapital(&title(row)),
            cost.ratio.ratio
        )
    } else if let (Some(_), Some((row, cost))) = (&expected, dearest(&rows, Variant::Off)) {
        format!("{} takes {:.2} times as long with SMT off", title(row), cost.ratio.ratio)
    } else {
        return Some(Vec::new());
    };
    let merely_on = expected.unwrap_or_else(|| {
        "SMT could not be switched off here, so its cost while merely on is unknown".into()
    });
    let cause = match beside {
        "SMT sibling" => "Two threads of a core share its units, caches and branch predictors.",
        _ => {
            "No SMT sibling is online here: the second CPU is another core, which shares memory, last-level cache, turbo \
             and the kernel's locks."
        }
    };
    let pays = pays::what_pays(evidence.machine, &rows);
    Some(vec![Finding::note(COST.id, headline)
        .cause(format!("{cause} {merely_on}."))
        .facts(VARIANTS.into_iter().flat_map(|variant| facts_of(&rows, variant)))
        .facts(pays.map(|words| Fact::new("what pays", words, "smt table")))
        .confirm("assay smt table --profile standard")
        .advice("Judge headroom by the cost of your service's calls, not by CPU%. Two busy threads are not two cores.")])
}

/// The call that a variant moves most, of those that surely pay for it.
fn dearest<'r, 'a>(rows: &'r [Row<'a>], variant: Variant) -> Option<(&'r Row<'a>, &'r Cost<'a>)> {
    let costs = rows.iter().filter_map(|row| Some((row, row.costs[variant as usize].as_ref()?)));
    let paying = costs.filter(|(_, cost)| cost.pays() || variant == Variant::Off && cost.gains());
    let moved = |cost: &Cost| cost.ratio.ratio.ln().abs();
    paying.max_by(|(_, one), (_, other)| moved(one).total_cmp(&moved(other)))
}

/// What the calls pay in one variant, by their kind.
fn facts_of(rows: &[Row], variant: Variant) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (several, class) in [(false, "single-process calls"), (true, "calls of several processes")] {
        let tally = Tally::of(rows, several, variant);
        if tally.rows > 0 {
            facts.push(Fact::new(format!("{class}, {}", variant.words()), tally.words(), "smt table"));
        }
    }
    facts.extend(dearest(rows, variant).map(|(_, cost)| {
        let words = format!("{:.2}× as long as alone", cost.ratio.ratio);
        Fact::new(format!("most moved, {}", variant.words()), words, &cost.judged.series.key)
    }));
    facts
}

const CAPACITY: Rule = Rule {
    id: ids::rule::SMT_CAPACITY,
    title: "Real core use beside CPU%",
    topic: "SMT",
    meaning: "Linux counts each thread of a core as a CPU. With one of two siblings busy CPU% shows half, though the second thread \
             adds far less than the first. So a host with SMT looks emptier than it is.",
    action: "Find the throughput at full load and keep a margin of it. Never extrapolate from CPU%. See it: assay smt --fine; assay \
             utilization",
    when: "assay smt measured what a second thread adds. Without SMT: work is more than 3 points ahead of CPU%, or a second core \
             gives less than 1.7 times one. Contradicting figures of one core and of all are a warning.",
    how: "s: work per second of both siblings over one, for eight kinds of work (1.27: the second thread adds 27 %). It is the \
             median of pairs of a pass, with its exact interval. Used share of a core: U = t1 / s + t2. t1 is the share of time \
             with one sibling busy, t2 that with both, times the clock over the clock with everything busy. The host's U is the \
             mean over its cores. Work can grow to 1 / U times today's; CPU% u suggests 1 / u. Attainment is the work done over \
             the most that was done. The gap is the most by which it exceeds CPU%, with a bootstrap interval over passes. Without \
             siblings CPU% counts as right if the whole interval of U lies within 3 points of it. It must at 10, 20, 30, 50, 70 \
             and 90 %, with one core busy first and with both alike. An s below 1 counts as 1: such a core does most with one \
             thread busy. Idle cores are taken first, as Linux does, unless noted. Assumed: future work is of the same kind, and \
             only CPU limits it. A second core below 1.7 times one, by its whole interval, is a hidden sibling, or a quota, a \
             busy host or a falling clock slows it. U is defined as in IBM's PURR; published values of s are 1.15–1.6.",
    calm: "CPU% of two cores within 3 points",
    looked_at: "work at each load",
    source: file!(),
    check: capacity_of_cores,
};

/// Two cores that together do less than this many times the work of one are not two.
const TWO_CORES: f64 = 1.7;

const FULL_LOAD: &str = "Find the throughput at full load and keep a margin of it. Never extrapolate from CPU%. assay \
                         utilization shows how full the cores are now.";

fn capacity_of_cores(evidence: &Evidence) -> Option<Vec<Finding>> {
    let levels = Levels::of(evidence.series);
    let study = capacity::study(evidence.run, &levels)?;
    let contradiction = study.contradiction();
    if study.doubt().is_some() && contradiction.is_none() {
        return None;
    }
    let found = study.main()?.found.throughput.value;
    let half = half_words(&study);
    let (draft, advice) = match contradiction {
        Some(words) => (
            Finding::warning(CAPACITY.id, contradicting(&study, &words))
                .cause("Shared memory, power and clock can only reduce work. So one of the two figures was disturbed, or \
                        the two CPUs are not threads of one core. No conclusion is drawn."),
            "Measure again on a quiet host. assay run --only cpu.pair-slowdown shows which CPUs share a core.",
        ),
        None if study.smt => (
            Finding::note(CAPACITY.id, format!("{}{half}", second_thread(found))).cause(of_threads(found)),
            FULL_LOAD,
        ),
        None if found.hi < TWO_CORES => (
            Finding::warning(CAPACITY.id, format!(
                "Two CPUs do {:.2} times the work of one, although the kernel reports them as two cores",
                found.mid
            ))
                .cause("The kernel reports no SMT, yet the second CPU adds much less than a core. Causes: hidden siblings, \
                        a quota, a busy host, or a clock that falls with load."),
            "Look for hidden siblings (assay run --only cpu.pair-slowdown), and for findings on quota, steal and clock.",
        ),
        // Each CPU is a core of its own if the second adds what a core adds. Values in between
        // decide nothing.
        None if found.lo < TWO_CORES => return None,
        // The sentences are those of the study's table.
        None => match (study.cpu_percent_tells(), study.sentence(0.5)) {
            (Some(false), _) => (
                Finding::note(CAPACITY.id, format!("Two cores do {:.2} times the work of one{half}", found.mid))
                    .cause("Cores share turbo, power, caches and memory, and a request costs more CPU time at light load. \
                            So work does not grow as CPU% does."),
                FULL_LOAD,
            ),
            (Some(true), _) => return Some(Vec::new()),
            (None, _) => return None,
        },
    };
    Some(vec![draft.facts(study_facts(&study)).confirm("assay smt --fine").advice(advice)])
}

fn of_threads(found: Yield) -> &'static str {
    match found {
        Yield { hi, .. } if hi < 1.0 => {
            "Two threads of a core slow each other at this work. The core does most with one of them busy, where CPU% shows \
             half."
        }
        Yield { lo, .. } if lo > TWO_CORES => {
            "At this work two threads do nearly what two cores do. Work that waits less may gain far less. Or these CPUs \
             are cores that the kernel reports as threads."
        }
        _ => {
            "Two threads of a core share its units and caches. CPU% counts the second as a CPU of its own, so the core looks half \
             empty while one thread uses most of it."
        }
    }
}

fn study_facts(study: &Study) -> Vec<Fact> {
    let of_second = |second: &Second| {
        let judged = second.both.judged(ids::metric::PERFORMANCE);
        let key = judged.map_or(ids::LOAD.as_str(), |judged| &judged.series.key);
        let what = format!("work of two over work of one, {}", second.kind);
        Fact::new(what, yield_words(&second.found.throughput), key)
    };
    let mut facts: Vec<Fact> = study.seconds.iter().map(of_second).collect();
    facts.extend(study.gap().map(|gap| {
        let interval = gap
            .interval
            .map_or(String::new(), |between| format!(" ({})", percent_range(between.low, between.high)));
        let first = if study.smt { ", idle cores first" } else { "" };
        let words =
            format!("{}{interval} of the capacity, at {} CPU{first}", percent(gap.gap), percent(gap.at));
        Fact::new("work done is ahead of CPU% by at most", words, ids::LOAD)
    }));
    facts.extend(study.bottom_line().map(|line| Fact::new("bottom line", line, ids::LOAD)));
    facts
}

/// `The second thread of a core adds 31 %`; where it takes work away, that.
fn second_thread(Yield { lo, mid, hi }: Yield) -> String {
    match mid - 1.0 {
        change if change.abs() < SAME && lo <= 1.0 && 1.0 <= hi => {
            format!("The second thread of a core adds nothing ({lo:.2}–{hi:.2} times the work of one)")
        }
        change if change < 0.0 => {
            format!("The second thread of a core costs {} of the work", percent(-change))
        }
        change => format!("The second thread of a core adds {}", percent(change)),
    }
}

/// A change of work by less is none, where the interval holds none.
const SAME: f64 = 0.02;

/// Both figures in short.
fn contradicting(study: &Study, words: &str) -> String {
    let found = study.main().map(|main| &main.found);
    let both = found.and_then(|found| Some((found.throughput.value.mid, found.all_cores?.value.mid)));
    both.map_or(capital(words), |(pair, all)| {
        format!(
            "Two threads of one core do {pair:.2} times the work of one, on all cores {all:.2} times. Measure again."
        )
    })
}

/// `. At 50 % CPU the cores are 79 % full.`, where that is known.
fn half_words(study: &Study) -> String {
    study.sentence(0.5).map_or(String::new(), |half| {
        format!(". At {} % CPU the cores are {} full.", half.says(), half.used_alone())
    })
}
