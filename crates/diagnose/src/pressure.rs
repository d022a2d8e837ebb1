//! Memory that ran short during the run.

use super::environment::graded;
use super::evidence::Total;
use super::words::{counted, percent};
use super::{Evidence, Rule};
use model::vocabulary::host as ids;
use model::{Conditions, Effect, Fact, Finding, Visit};

pub const RULES: &[Rule] = &[PRESSURE];

const PRESSURE: Rule = Rule {
    id: ids::rule::MEMORY_PRESSURE,
    title: "Memory ran short while measuring",
    topic: "memory short",
    meaning: "Without free memory an allocation must free pages first: it takes milliseconds instead of a fraction of a microsecond. \
             Files fall out of the page cache, and in the end the kernel kills processes. The host may be short, or one control \
             group with a limit.",
    action: "Free memory or raise the group's limit (memory.max), and measure again. See it: cat /proc/pressure/memory",
    when: "Tasks stalled for memory 1 % of the time, or the kernel killed a process. Or direct reclaim or limit hits exceeded one \
             per second. Figures are rejected if Assay's group stalled 10 % of the time, or the host did and the limit was met.",
    how: "Stalls are the kernel's pressure totals (some), of the host and of Assay's control group. Direct reclaim is allocstall \
             of /proc/vmstat, limit hits are those of memory.events or memory.failcnt. On a quiet host all of these stand still, so \
             the limits need only exceed what a single event makes. Benchmarks that saw it carry the cause; pressure elsewhere need \
             not have touched them.",
    calm: "memory pressure: none seen",
    looked_at: "/proc/pressure",
    source: file!(),
    check: pressure,
};

/// Shares of the time with a task stalled: reported from the first, rejected from the second on.
const STALLED_NOTABLE: f64 = 0.01;
const STALLED_REJECTED: f64 = 0.10;

/// Memory shortage during some passes; unknown counters count as 0.
struct Shortage {
    wall_s: f64,
    /// Share of the time with a task of the host stalled, 0..1.
    stalled: f64,
    /// The same for Assay's control group.
    group_stalled: f64,
    reclaims: f64,
    limit_hits: f64,
    kills: f64,
    refaults: f64,
}

impl Shortage {
    /// `None` if none of the counters is known.
    fn during<'a>(visits: impl Iterator<Item = &'a Visit>) -> Option<Shortage> {
        let visits: Vec<&Visit> = visits.collect();
        let total = |part: fn(&Conditions) -> Option<f64>| Evidence::total(visits.iter().copied(), part);
        let known = [
            total(|c| c.psi_memory_ms),
            total(|c| c.group_psi_memory_ms),
            total(|c| c.reclaim_stalls),
            total(|c| c.limit_hits),
            total(|c| c.oom_kills),
        ];
        let [stalled, group_stalled, reclaims, limit_hits, kills] = known;
        let wall_ms = known.iter().flatten().map(|total| total.wall_ms).reduce(f64::max)?;
        let share = |total: Option<Total>| total.map_or(0.0, |total| total.rate());
        let count = |total: Option<Total>| total.map_or(0.0, |total| total.value);
        Some(Shortage {
            wall_s: wall_ms / 1e3,
            stalled: share(stalled),
            group_stalled: share(group_stalled),
            reclaims: count(reclaims),
            limit_hits: count(limit_hits),
            kills: count(kills),
            refaults: count(total(|c| c.refaulted_pages)),
        })
    }

    /// Whether events came more than once per second; a single event never counts.
    fn often(&self, events: f64) -> bool {
        events > self.wall_s.max(1.0)
    }

    fn effect(&self) -> Effect {
        let own_group = self.group_stalled >= STALLED_REJECTED
            || (self.stalled >= STALLED_REJECTED && self.often(self.limit_hits));
        let notable = self.stalled >= STALLED_NOTABLE
            || self.group_stalled >= STALLED_NOTABLE
            || self.often(self.reclaims)
            || self.often(self.limit_hits)
            || self.kills >= 1.0;
        if own_group {
            Effect::Rejects
        } else if notable {
            Effect::Explains
        } else {
            Effect::None
        }
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut add = |is_shown: bool, label: &str, value: String, source: &str| {
            if is_shown {
                facts.push(Fact::new(label, value, source));
            }
        };
        let count = |events: f64| format!("{events:.0} times");
        add(true, "a task stalled", percent(self.stalled), "/proc/pressure/memory over these passes");
        let source = "memory.pressure of Assay's control group";
        add(self.group_stalled > 0.0, "a task of Assay's group stalled", percent(self.group_stalled), source);
        add(self.reclaims > 0.0, "direct reclaim", count(self.reclaims), "/proc/vmstat, allocstall");
        let source = "memory.events or memory.failcnt of Assay's control groups";
        add(self.limit_hits > 0.0, "a memory limit was met", count(self.limit_hits), source);
        add(
            self.kills > 0.0,
            "processes killed for lack of memory",
            format!("{:.0}", self.kills),
            "/proc/vmstat",
        );
        let pages = format!("{:.0} pages", self.refaults);
        add(self.refaults > 0.0, "read again after eviction", pages, "/proc/vmstat, workingset_refault");
        facts
    }
}

fn pressure(evidence: &Evidence) -> Option<Vec<Finding>> {
    Shortage::during(evidence.visits())?;
    let (mut explained, mut rejected, mut short) = (Vec::new(), Vec::new(), Vec::new());
    for (case, _) in evidence.cases() {
        let effect =
            Shortage::during(evidence.visits_of(case)).map_or(Effect::None, |shortage| shortage.effect());
        match effect {
            Effect::Rejects => rejected.extend(evidence.keys_of(case)),
            Effect::Explains => explained.extend(evidence.keys_of(case)),
            Effect::None => continue,
        }
        short.push(case);
    }
    if short.is_empty() {
        return Some(Vec::new());
    }
    let shortage = Shortage::during(evidence.visits().filter(|visit| short.contains(&visit.case)))?;
    let headline = match (shortage.kills >= 1.0, shortage.stalled >= STALLED_NOTABLE) {
        (true, _) => {
            let killed = counted(shortage.kills as usize, "time");
            format!("Memory ran out, and the kernel killed processes {killed}")
        }
        (false, true) => format!("Tasks waited for free memory {} of the time", percent(shortage.stalled)),
        (false, false) => {
            let times = shortage.reclaims + shortage.limit_hits;
            format!("Tasks had to free memory {times:.0} times during the run")
        }
    };
    let finding = Finding::warning(PRESSURE.id, headline)
        .cause("The host, or a control group with a limit, has less memory than its work needs. Tasks waited while pages \
                were freed.")
        .facts(shortage.facts())
        .confirm("cat /proc/pressure/memory; grep -E 'allocstall|oom_kill|workingset_refault' /proc/vmstat")
        .advice("Free memory, stop what uses it or raise the group's limit (memory.max, memory.limit_in_bytes), and \
                 measure again.");
    Some(graded(evidence, explained, rejected, finding))
}
