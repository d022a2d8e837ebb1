//! Huge pages that are translated like small ones.

use super::regions::{
    ASSUMED_GHZ, EvaluatedRegions, HUGE_ENOUGH, MAX_CYCLES_WITHOUT_WALK, evaluated_regions,
};
use super::words::{bytes, figure, percent};
use super::{Evidence, Rule};
use machine::Hypervisor;
use model::vocabulary as ids;
use model::{Fact, Finding};
use stats::analysis::Judged;
use stats::guarded::guarded;
use stats::order::{Interval, median};

pub const RULES: &[Rule] = &[SLOW_HUGE_PAGES];

const SLOW_HUGE_PAGES: Rule = Rule {
    id: ids::host::rule::SLOW_HUGE_PAGES,
    title: "Huge pages that are translated like small ones",
    topic: "TLB",
    meaning: "With huge pages (2 MiB) a few hundred TLB entries reach as far as a hundred thousand of small pages. In a guest this \
             needs huge pages of the host as well. Without them random accesses to a large block walk two page tables.",
    action: "Keep randomly accessed data within the reach of the TLB (a few MiB). Operator: back guests by huge pages. See it: \
             assay run --only memory.data-source,memory.tlb --new",
    when: "95 % of the block are huge pages, yet random order over it costs 20 cycles more than within 4 MiB. Or more than half \
             of the huge pages of memory.regions cost such a walk.",
    how: "memory.data-source, dram: lines of a block of up to 512 MiB in random order over the whole block, alternating with a \
             random order within groups of 4 MiB. On huge pages neither needs a walk: the block has at most 256 pages, and a \
             server's second TLB level holds 1024 or more. A hit there costs 7–9 cycles (published, not measured by Assay). On \
             small pages 4 MiB fit that level and the block does not. The whole 95 % interval of the extra cost must lie above 20 \
             cycles of the core clock (2 GHz if unknown). The finding gives the whole cost: over groups of 256 KiB, whose \
             translations fit the first level. KVM maps 2 MiB only where the host's page is as large, and a TLB keeps the smaller \
             of both. On Intel cores before 2013, which have no second level for huge pages, the host is not the cause.",
    calm: "huge pages translated as such",
    looked_at: "random DRAM reads",
    source: file!(),
    check: slow_huge_pages,
};

/// Groups that fit the first and the second level of a TLB for small pages, bytes.
const FIRST_LEVEL: f64 = 262_144.0;
const SECOND_LEVEL: f64 = 4_194_304.0;

fn slow_huge_pages(evidence: &Evidence) -> Option<Vec<Finding>> {
    let ghz = evidence.core_clock_ghz().unwrap_or(ASSUMED_GHZ);
    let most_ns = MAX_CYCLES_WITHOUT_WALK / ghz;
    let regions = evaluated_regions(evidence);
    let regions = regions.iter().find(|own| own.small.is_some());
    let found = match price(evidence, SECOND_LEVEL) {
        Some((second, walks)) => by_source(evidence, second, walks, most_ns)?,
        None => by_regions(regions?),
    };
    let Some((of, facts)) = found else { return Some(Vec::new()) };
    let most =
        format!("{} ({MAX_CYCLES_WITHOUT_WALK:.0} cycles at {})", figure(most_ns, "ns"), figure(ghz, "GHz"));
    let guest = matches!(evidence.machine.hypervisor, Hypervisor::Guest(_));
    let (headline, cause, advice) = match guest {
        true => (
            format!(
                "Address translation adds {} to a random access. The host backs huge pages by small ones.",
                of
            ),
            "The host backs this guest's memory by small pages, or by huge ones that are not aligned with the guest's. The \
             TLB then has 4 KiB entries, and most accesses walk two page tables.",
            "Keep randomly accessed data within the reach of the TLB (a few MiB), or use another instance type. Operator: \
             back guests by huge pages (hugetlbfs, or transparent_hugepage=always with memory aligned to 2 MiB).",
        ),
        false => (
            format!("Address translation adds {} to a random access despite huge pages", of),
            "This CPU's TLB has few entries for huge pages (Intel before 2013). Or this is a guest, and nothing reports it.",
            "Compare with pages of 1 GiB (hugetlbfs), and look at dTLB misses with perf.",
        ),
    };
    Some(vec![
        Finding::note(SLOW_HUGE_PAGES.id, headline)
            .cause(cause)
            .facts(facts)
            .facts(regions.into_iter().flat_map(EvaluatedRegions::facts))
            .fact("a translation without a walk costs at most", most, ids::cpu::CLOCK)
            .confirm("assay run --only memory.data-source,memory.tlb --profile standard --new")
            .advice(advice),
    ])
}

/// The cost by memory.data-source, if it is that of page walks; the outer `None`: the block was
/// not on huge pages.
fn by_source(evidence: &Evidence, second: &Judged, walks: Interval, most_ns: f64) -> Option<Option<Priced>> {
    let planned = second.series.planned as u32;
    let shares: Vec<f64> = evidence.visits_of(planned).filter_map(|visit| visit.process.huge_share).collect();
    let share = median(&shares).filter(|share| (HUGE_ENOUGH..=1.0).contains(share))?;
    if walks.low <= most_ns {
        return Some(None);
    }
    let (whole, _) = price(evidence, FIRST_LEVEL).unwrap_or((second, walks));
    let of = whole.median()?;
    let within = |judged: &Judged, interval: Interval| {
        let estimate = judged.median().unwrap_or(f64::NAN);
        let words = format!(
            "{} ({}–{})",
            figure(estimate, "ns"),
            figure(interval.low, ""),
            figure(interval.high, "")
        );
        let spread = spread(judged).unwrap_or(f64::NAN);
        Fact::new(format!("the whole block over {}", bytes(spread)), words, &judged.series.key)
    };
    let prices = [FIRST_LEVEL, SECOND_LEVEL].into_iter().filter_map(|spread| price(evidence, spread));
    let mut facts: Vec<Fact> = prices.map(|(judged, interval)| within(judged, interval)).collect();
    facts.push(Fact::new(
        "share of huge pages, as the kernel reports",
        percent(share),
        second.series.case.key(),
    ));
    Some(Some((figure(of, "ns"), facts)))
}

/// The cost by the regions, if most of their huge pages are translated like small ones.
fn by_regions(own: &EvaluatedRegions) -> Option<Priced> {
    own.small.filter(|small| small.share().low > 0.5)?;
    let price = own.found.price_ns?;
    Some((format!("{}–{}", figure(price.low, ""), figure(price.high, "ns")), Vec::new()))
}

/// A cost in words, and the facts on which it rests.
type Priced = (String, Vec<Fact>);

/// The extra cost of random order over a whole block of local memory against random order within
/// groups of `wanted` bytes, with its interval.
fn price<'a>(evidence: &Evidence<'a>, wanted: f64) -> Option<(&'a Judged, Interval)> {
    let dram = |judged: &&Judged| {
        let series = &judged.series;
        series.case.bench == ids::memory::DATA_SOURCE
            && series.metric.name == ids::memory::metric::TRANSLATION
            && series.case.placement.name == "one-cpu"
            && spread(judged) == Some(wanted)
    };
    let judged = evidence.series.iter().find(dram).filter(|judged| judged.analysis.verdict.usable())?;
    // Costs around zero have no logarithms, on which the interval of few passes is based: here it
    // is computed from the values.
    let few =
        || guarded(&judged.series.values().iter().filter_map(|windows| median(windows)).collect::<Vec<_>>());
    Some((judged, judged.analysis.estimate.as_ref()?.interval.or_else(few)?))
}

fn spread(judged: &Judged) -> Option<f64> {
    judged.series.number(ids::memory::param::WITHIN)
}
