//! Caches: their reported and measured sizes, and memory blocks that fit in them.

use super::ladder::{CacheSize, ladder};
use super::words::{bytes, figure, shell, sizes};
use super::{Evidence, Rule};
use machine::Hypervisor;
use model::vocabulary as ids;
use model::{CpuSet, Fact, Finding, Severity};
use stats::analysis::Judged;

pub const RULES: &[Rule] = &[INSIDE, DIFFERS];

const INSIDE: Rule = Rule {
    id: ids::host::rule::BLOCK_INSIDE_CACHE,
    title: "A block that measures memory fits in a cache",
    topic: "L3 cache",
    meaning: "The bandwidth of memory needs blocks far larger than the last-level cache. Part of this block \
        lay in the cache, so the figure is too high for memory.",
    action: "Free memory or raise the memory limit, and measure again. Until then the figure is an upper \
        bound. See it: assay run --only memory.latency,memory.bandwidth --profile standard",
    when: "The largest block, times the tasks that share a last-level cache, is below 1.9 times that cache. \
        The figures carry the cause.",
    how: "1.9 is twice the cache, less what rounding to lines and tasks takes. The cache's size is the one \
        of llc-differs: the latency ladder's where that contradicts the kernel, else the kernel's. Today's \
        caches hold hundreds of megabytes, and a guest may reach a host's cache that its kernel does not \
        report. Old benchmarks with fixed block sizes fail this way.",
    calm: "memory blocks exceed the L3",
    looked_at: "block sizes",
    source: file!(),
    check: inside,
};

/// Twice, less what rounding blocks to whole lines and tasks takes.
const MIN_COVER: f64 = 1.9;

fn inside(evidence: &Evidence) -> Option<Vec<Finding>> {
    let ladder = ladder(evidence);
    let last = ladder.as_ref().and_then(|ladder| Some((ladder.claimed.last()?.1, ladder.last_size()?)));
    let (mut facts, mut series, mut looked) = (Vec::new(), Vec::new(), false);
    let mut worst: Option<(f64, WorstBlock)> = None;
    for (case, planned) in
        evidence.cases().filter(|(_, planned)| planned.case.bench == ids::memory::BANDWIDTH)
    {
        let block = |judged: &Judged| judged.series.number(ids::memory::param::BYTES);
        let largest = evidence.series_of(case).filter_map(block).fold(0.0, f64::max);
        let Some((times, tasks, cache)) = least_cover(evidence, &planned.case.placement.seats, largest, last)
        else {
            continue;
        };
        looked = true;
        if times >= MIN_COVER {
            continue;
        }
        if worst.as_ref().is_none_or(|(least, _)| times < *least) {
            worst = Some((times, WorstBlock { block: largest * tasks as f64, cache }));
        }
        let (each, size) = (bytes(largest), bytes(cache.at));
        let what = format!("{tasks} × {each} in a cache of {size} ({})", cache.source());
        facts.push(Fact::new("largest block", what, planned.case.key()));
        let own = evidence.series_of(case).filter(|judged| block(judged) == Some(largest));
        series.extend(own.map(|judged| judged.series.key.clone()));
    }
    if !looked {
        return None;
    }
    if facts.is_empty() {
        return Some(Vec::new());
    }
    facts.truncate(8);
    let (times, inside) = worst?;
    let headline = format!(
        "The largest block ({}) is {times:.1} times the L3 ({}). Its bandwidth is partly the cache's.",
        bytes(inside.block),
        bytes(inside.cache.at)
    );
    Some(vec![
        Finding::warning(INSIDE.id, headline)
            .cause(if inside.cache.by_ladder {
                "The latency ladder shows a cache of another size than the kernel reports."
            } else {
                "Free memory, or a memory limit, allowed no larger block."
            })
            .facts(facts)
            .confirm("assay run --only memory.latency,memory.bandwidth --profile standard")
            .advice("Free memory or raise the limit, then measure again. Until then it is an upper bound.")
            .explains(series),
    ])
}

/// Bytes of all blocks in one cache, and the cache.
struct WorstBlock {
    block: f64,
    cache: CacheSize,
}

/// Among the last-level caches that these seats use, the one that its blocks exceed least: the
/// ratio, its tasks and its size. `last` is the reported size of the ladder's cache, and its
/// size. `None` where no size is known.
fn least_cover(
    evidence: &Evidence,
    seats: &[model::Seat],
    block: f64,
    last: Option<(f64, CacheSize)>,
) -> Option<(f64, usize, CacheSize)> {
    let machine = evidence.machine;
    let mut caches: Vec<(Option<&CpuSet>, usize, Option<CacheSize>)> = Vec::new();
    for seat in seats {
        let cache = seat.cpus.first().and_then(|cpu| machine.last_level_cache(cpu));
        let claimed = cache.and_then(|cache| cache.size_bytes).map(|bytes| bytes as f64);
        let cpus = cache.map(|cache| &cache.cpus);
        // Caches of one reported size count as equal.
        let measured = last.filter(|(of, _)| claimed.is_none_or(|claimed| claimed == *of));
        let size = measured.map(|(_, size)| size).or(claimed.map(CacheSize::claimed));
        match caches.iter_mut().find(|(other, ..)| *other == cpus) {
            Some((_, tasks, _)) => *tasks += 1,
            None => caches.push((cpus, 1, size)),
        }
    }
    let covers = caches.into_iter().filter_map(|(_, tasks, size)| {
        let size = size.filter(|size| size.at > 0.0 && block > 0.0)?;
        Some((block * tasks as f64 / size.at, tasks, size))
    });
    covers.min_by(|one, other| one.0.total_cmp(&other.0))
}

const DIFFERS: Rule = Rule {
    id: ids::host::rule::LLC_DIFFERS,
    title: "The last-level cache is not as large as the kernel reports",
    topic: "L3 cache",
    meaning: "The latency ladder shows how much of the last cache one task gets. A guest may get a small \
        share, or reach a larger cache of its host. Software that sizes its data by the reported size is \
        wrong by that factor.",
    action: "Plan for the measured size. Ask the provider whether it limits caches (CAT); on bare metal look \
        at /sys/fs/resctrl and at other work. See it: assay run --only memory.latency --profile full",
    when: "The reported size lies 1.25 times beyond the measured bounds. Or a block of twice that size \
        answers within 45 ns, which no memory does. A factor of 2 or more is a warning, less is a note.",
    how: "The ladder times random loads on huge pages. Its levels are fitted as sums of miss curves, with \
        bounds for each size; docs/method/cache-ladder.md has the measured error rates. No memory answers \
        within 55 ns, and no server cache takes longer than 45 ns; in between it stays open. A ladder that \
        ends below 55 ns does not show where the cache ends.",
    calm: "L3 as large as reported",
    looked_at: "latency ladder",
    source: file!(),
    check: differs,
};

fn differs(evidence: &Evidence) -> Option<Vec<Finding>> {
    let ladder = ladder(evidence)?;
    let (name, claimed) = ladder.claimed.last()?;
    let CacheSize { at, low, high, by_ladder } = ladder.last_size()?;
    if !by_ladder {
        return Some(Vec::new());
    }
    let words = sizes(at, low, high);
    let larger = low > *claimed;
    let factor = if larger { low / claimed } else { claimed / high };
    let guest = matches!(evidence.machine.hypervisor, Hypervisor::Guest(_));
    let (cause, advice) = match (larger, guest) {
        (true, true) => (
            "The host's cache is larger than reported here. Other guests may take it at any time.",
            "Do not count on it: figures of blocks in between depend on the other guests.",
        ),
        (true, false) => (
            "There is a further cache (memory-side, or an L4), or firmware reports too little.",
            "Size data by the latency ladder.",
        ),
        (false, true) => (
            "The host limits this guest's share of the cache (CAT), or its other guests use the rest.",
            "Plan for what one task gets. Ask the provider whether it limits caches (CAT).",
        ),
        (false, false) => (
            "Other work or a reservation (resctrl, devices) takes cache, or it is several caches.",
            "Look at /sys/fs/resctrl and at other work, and measure again.",
        ),
    };
    // Blocks that are cached by the reported size and not by the measured one, or the reverse.
    let disputed = ladder.curve.series.iter().filter(|judged| {
        let size = judged.series.number(ids::memory::param::BYTES).unwrap_or(0.0);
        size > low.min(*claimed) && size <= high.max(*claimed)
    });
    let (size, reported) = (bytes(at), bytes(*claimed));
    let headline = match (larger, high.is_finite()) {
        (true, true) => format!(
            "One task gets {size}; the kernel reports {reported} of {name}. Do not count on the rest."
        ),
        (true, false) => format!(
            "One task gets {size} or more; the kernel reports {reported} of {name}. Do not count on the rest."
        ),
        (false, _) => {
            format!("One task gets {size} of the {reported} that the kernel reports. Plan for {size}.")
        }
    };
    let severity = if factor >= 2.0 { Severity::Warning } else { Severity::Note };
    Some(vec![
        Finding::of(DIFFERS.id, severity, headline)
            .cause(cause)
            .fact("measured by the ladder", words, &ladder.curve.key)
            .fact("reported", reported, "/sys/devices/system/cpu/cpu*/cache")
            .fact("latency of the largest block", figure(ladder.end_ns, "ns"), &ladder.curve.key)
            .fact("points of the ladder", ladder.curve.points.len(), &ladder.curve.key)
            .confirm(format!("assay run --only {} --profile full", shell(&ids::memory::LATENCY)))
            .advice(advice)
            .concerns(disputed.map(|judged| &judged.series.key)),
    ])
}
