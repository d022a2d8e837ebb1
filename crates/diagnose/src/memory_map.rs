//! Evaluated maps of memory: one speed, several, or too much noise.

use super::Diagnosis;
use super::chunks::{BANDWIDTH, by_chunk, index, list};
use super::regions::rows as regions_of;
use super::words::bytes as bytes_words;
use machine::{Hypervisor, Machine, channels};
use model::vocabulary::MetricId;
use model::vocabulary::memory_map as ids;
use model::{Fact, Planned, Run, Visit, figure, percent};
use stats::memory_map::{
    Answer, Candidate, Doubt, Known, Map, Speeds, Support, candidates, evaluate_map, loss, runs_test_p,
};
use stats::order::median;
use stats::regions::{Cause, regions};

#[cfg(test)]
pub mod tests;

/// The map of one node: the pass that found several speeds, else the last one.
pub struct NodeMap<'a> {
    pub visit: &'a Visit,
    /// Key of the case.
    pub case: String,
    /// `None` if the kernel reports no nodes.
    pub node: Option<u32>,
    pub chunk_bytes: u64,
    /// Memory of the whole node, bytes.
    pub node_bytes: Option<u64>,
    /// Bandwidth of the median chunk, GB/s: median of the rounds.
    pub typical: f64,
    /// The ratio of two speeds that the map had to be able to show.
    pub asked: f64,
    pub map: Map,
    /// Middle and spread of the physical addresses of each chunk, GiB; `None` where they are
    /// hidden.
    pub physical: Option<Vec<[f64; 2]>>,
    pub known: Known,
    /// Whether this is a guest, which does not see the host's modules.
    pub guest: bool,
    /// Whether its regions show translation or distance as a cause, which modules could be as well.
    pub explained: bool,
}

/// The second speed that a map must be able to show, if the case has no limit, percent.
const DEFAULT_LIMIT_PERCENT: f64 = 10.0;
/// Maps are planted from this seed: the same run gives the same answer.
const SEED: u64 = 1;

/// The maps of a run, in the order of the plan.
pub fn maps<'a>(run: &'a Run, machine: &Machine) -> Vec<NodeMap<'a>> {
    let plan = run.header.plan.iter().enumerate();
    plan.filter(|(_, planned)| planned.case.bench == ids::MAP)
        .filter_map(|(at, planned)| {
            let visits =
                run.visits.iter().filter(|visit| visit.case as usize == at && visit.reason.is_none());
            let mut last = None;
            for visit in visits {
                let found = node_map(run, machine, planned, visit);
                let several = found.as_ref().is_some_and(|found| found.speeds().is_some());
                last = found.or(last);
                if several {
                    break;
                }
            }
            last
        })
        .collect()
}

fn node_map<'a>(run: &Run, machine: &Machine, planned: &Planned, visit: &'a Visit) -> Option<NodeMap<'a>> {
    let input = |name: &str| planned.case.inputs.get(name)?.parse::<f64>().ok();
    let rows = by_chunk(visit, ids::metric::BANDWIDTH, BANDWIDTH);
    let typical = median(&rows.iter().filter_map(|row| median(row)).collect::<Vec<f64>>())?;
    let chunk_bytes = input("chunk_bytes").filter(|bytes| *bytes >= 1.0)? as u64;
    let node = index(&planned.case.params, ids::param::NODE);
    let of_node = machine.nodes.iter().find(|own| Some(own.id) == node);
    let node_bytes = match node {
        Some(_) => of_node.and_then(|node| node.total_bytes),
        None => machine.memory.total_bytes,
    };
    let asked = 1.0 + input("limit").filter(|limit| *limit > 0.0).unwrap_or(DEFAULT_LIMIT_PERCENT) / 100.0;
    let map = evaluate_map(&rows, asked, SEED);
    let guest = matches!(machine.hypervisor, Hypervisor::Guest(_));
    let mut found = NodeMap {
        visit,
        case: planned.case.key(),
        node,
        chunk_bytes,
        node_bytes,
        typical,
        asked,
        physical: physical(visit, map.medians.len()),
        map,
        known: Known::default(),
        guest,
        explained: regions(&regions_of(visit))
            .is_some_and(|found| found.named().any(|own| own.cause != Cause::Transfer)),
    };
    if let Some(speeds) = found.speeds() {
        let ratio = speeds.ratio;
        found.known = Known {
            ratio,
            slow_share: found.slow_of_node().filter(|_| !guest),
            channels: channels_of_socket(run, machine).filter(|_| !guest),
        };
    }
    Some(found)
}

/// Places of all chunks, where the pass noted them.
fn physical(visit: &Visit, chunks: usize) -> Option<Vec<[f64; 2]>> {
    let column = |metric: MetricId| Some(list(visit, metric)).filter(|values| values.len() == chunks);
    let (places, spreads) = (column(ids::metric::PHYSICAL)?, column(ids::metric::SPREAD)?);
    Some(places.into_iter().zip(spreads).map(|(place, spread)| [place, spread]).collect())
}

/// Populated channels per socket; `None` if firmware does not report them or they do not divide.
fn channels_of_socket(run: &Run, machine: &Machine) -> Option<usize> {
    let all = channels(&machine.dimms, &run.header.snapshot)?.count;
    let sockets = machine.cpus.packages.as_ref().map_or(1, Vec::len).max(1);
    all.is_multiple_of(sockets).then_some(all / sockets)
}

impl NodeMap<'_> {
    pub fn speeds(&self) -> Option<&Speeds> {
        match &self.map.answer {
            Answer::Speeds(speeds) => Some(speeds),
            Answer::Uniform | Answer::Inconclusive(_) => None,
        }
    }

    pub fn chunks(&self) -> usize {
        self.map.medians.len()
    }

    /// `node 0`, or `memory` where there are none.
    pub fn name(&self) -> String {
        self.node.map_or("memory".to_string(), |node| format!("node {node}"))
    }

    /// Bytes of a number of chunks.
    pub fn bytes_of(&self, chunks: f64) -> f64 {
        chunks * self.chunk_bytes as f64
    }

    pub fn slow_bytes(&self) -> Option<f64> {
        Some(self.bytes_of(self.speeds()?.slow_share() * self.chunks() as f64))
    }

    /// Least and most share of the node's memory that is slow.
    fn slow_of_node(&self) -> Option<[f64; 2]> {
        let (slow, all) = (self.slow_bytes()?, self.node_bytes? as f64);
        let unknown = (all - self.bytes_of(self.chunks() as f64)).max(0.0);
        (all > 0.0).then(|| [slow / all, (slow + unknown) / all])
    }

    /// Chunks by their physical addresses, lowest first; `None` where these are hidden.
    pub fn physical_order(&self) -> Option<Vec<usize>> {
        let places = self.physical.as_ref()?;
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by(|one, other| places[*one][0].total_cmp(&places[*other][0]));
        Some(order)
    }

    /// `FFFFSSFF` in an order of the chunks (`None`: that of allocation); `None` where there is one
    /// speed.
    pub fn letters(&self, order: Option<&[usize]>) -> Option<String> {
        let speeds = self.speeds()?;
        Some(match order {
            Some(order) => order.iter().map(|chunk| speeds.letter(*chunk)).collect(),
            None => (0..self.chunks()).map(|chunk| speeds.letter(chunk)).collect(),
        })
    }

    /// p of the slow chunks lying together by chance, in an order of the chunks.
    pub fn together(&self, order: Option<&[usize]>) -> Option<f64> {
        let letters = self.letters(order)?;
        let slow: Vec<bool> = letters.chars().filter(|c| *c != '.').map(|c| c != 'F').collect();
        runs_test_p(&slow, SEED)
    }

    /// Whether modules may be the cause: not in a guest, whose modules are its host's, and not
    /// where load latencies explain the speeds.
    fn may_be_modules(&self) -> bool {
        !self.guest && !self.explained
    }

    /// Populations of channels that could make the speeds.
    pub fn candidates(&self) -> Vec<Candidate> {
        let asked = self.speeds().is_some() && self.may_be_modules();
        if asked { candidates(&self.known) } else { Vec::new() }
    }

    /// Losses against fast memory: of a process that lies wholly in the slowest part, and of one
    /// spread over all that was measured.
    pub fn losses(&self) -> Option<[f64; 2]> {
        let speeds = self.speeds()?;
        let fast = speeds.speeds.last()?.median;
        let spread: f64 = speeds.speeds.iter().map(|speed| speed.share * fast / speed.median).sum();
        Some([loss(speeds.ratio, 1.0), 1.0 - 1.0 / spread])
    }

    /// The answer in a sentence, without a full stop.
    pub fn words(&self) -> String {
        let name = self.name();
        match &self.map.answer {
            Answer::Speeds(speeds) => format!(
                "{name} has {} speeds: {} and {}, {:.2} times apart; {} of {} are slow ({})",
                if speeds.speeds.len() == 2 { "two" } else { "three" },
                self.speed_words(speeds, speeds.speeds.len() - 1),
                self.speed_words(speeds, 0),
                speeds.ratio,
                bytes_words(self.slow_bytes().unwrap_or(0.0)),
                bytes_words(self.bytes_of(self.chunks() as f64)),
                percent(speeds.slow_share()),
            ),
            Answer::Uniform => format!("{name} is uniform: {}", self.seen_words()),
            Answer::Inconclusive(doubt) => {
                format!("{name} is inconclusive: {}", self.doubt_words(*doubt))
            }
        }
    }

    /// The headline of a finding where memory has several speeds.
    pub fn headline(&self) -> Option<String> {
        let speeds = self.speeds()?;
        let of = self.node.map_or(String::new(), |node| format!(" on node {node}"));
        Some(format!(
            "{} of {} of memory{of} run at {} instead of {}.{}",
            bytes_words(self.slow_bytes()?),
            bytes_words(self.bytes_of(self.chunks() as f64)),
            self.speed_words(speeds, 0),
            self.speed_words(speeds, speeds.speeds.len() - 1),
            if self.may_be_modules() { " Check the modules." } else { "" },
        ))
    }

    fn speed_words(&self, speeds: &Speeds, at: usize) -> String {
        let median = speeds.speeds.get(at).map_or(1.0, |speed| speed.median);
        figure(median * self.typical, "GB/s")
    }

    /// `a second speed 6 % apart in 10 % of the memory would have been seen`. A larger share is
    /// named only where a smaller difference would be seen in it.
    pub fn seen_words(&self) -> String {
        let mut steps: Vec<(f64, f64)> =
            self.map.limits.iter().filter_map(|limit| Some((limit.share, limit.ratio?))).collect();
        steps.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut least = f64::INFINITY;
        steps.retain(|(_, ratio)| {
            let is_less = *ratio < least;
            least = least.min(*ratio);
            is_less
        });
        let words =
            |(share, ratio): &(f64, f64)| format!("{} apart in {}", percent(ratio - 1.0), percent(*share));
        let seen: Vec<String> = steps.iter().map(words).collect();
        if seen.is_empty() {
            "no second speed that was planted would have been seen".to_string()
        } else {
            format!("a second speed {} of the memory would have been seen", seen.join(" or "))
        }
    }

    fn doubt_words(&self, doubt: Doubt) -> String {
        let chunks = self.chunks();
        match doubt {
            Doubt::FewChunks => format!(
                "{chunks} chunks of {} were measured, and 32 are needed; allow more memory, or free some",
                bytes_words(self.chunk_bytes as f64)
            ),
            Doubt::FewRounds => format!("{} rounds were counted, and 6 are needed", self.map.rounds),
            Doubt::Noise => format!(
                "a second speed of {} could hide in the noise, in a tenth of the memory; {}. Use a quieter \
                 host, more rounds (--rounds 25) or a higher --limit",
                percent(self.asked - 1.0),
                self.seen_words()
            ),
        }
    }

    /// Facts of the answer.
    pub fn facts(&self) -> Vec<Fact> {
        let fact = |label: &str, value: String| Fact::new(label, value, &self.case);
        let mut facts = Vec::new();
        if let Some(speeds) = self.speeds() {
            for speed in &speeds.speeds {
                let share = format!(
                    "{} in {} ({})",
                    figure(speed.median * self.typical, "GB/s"),
                    percent(speed.share),
                    bytes_words(self.bytes_of(speed.share * self.chunks() as f64))
                );
                facts.push(fact("speed", share));
            }
        }
        facts.push(fact(
            "measured",
            format!(
                "{} chunks of {}, {} rounds, chunks scatter by {}",
                self.chunks(),
                bytes_words(self.chunk_bytes as f64),
                self.map.rounds,
                percent(self.map.sigma)
            ),
        ));
        if let Some(rho) = self.map.repeatability {
            facts.push(fact("odd rounds against even ones", format!("Spearman's rho {rho:.2}")));
        }
        let order = self.physical_order();
        let orders = [("in the order of allocation", None), ("in physical order", order.as_deref())];
        for (words, order) in orders.into_iter().take(if order.is_some() { 2 } else { 1 }) {
            let Some(p) = self.together(order) else { continue };
            let lie = if p < 0.01 { "slow chunks lie together" } else { "slow chunks lie anywhere" };
            facts.push(fact(words, format!("{lie} (p {p:.3})")));
        }
        if let Some([whole, spread]) = self.losses() {
            facts.push(fact("loss of a process wholly in the slow part", percent(whole)));
            facts.push(fact("loss of one spread over all of it", percent(spread)));
        }
        for candidate in self.candidates().iter().take(3) {
            let [wide, narrow] = candidate.sets;
            facts.push(fact(&format!("{wide}+{narrow} channels"), candidate_words(candidate, &self.known)));
        }
        facts
    }
}

/// The evidence for and against a candidate.
pub fn candidate_words(candidate: &Candidate, known: &Known) -> String {
    let [ratio, share] = candidate.expected();
    let mut words = vec![format!(
        "ratio {ratio:.2} expected, {:.2} measured: {}",
        known.ratio,
        ratio_word(candidate.ratio)
    )];
    if let (Some(says), Some([least, most])) = (candidate.share, known.slow_share) {
        words.push(format!(
            "slow share {} expected, {}–{} of the node: {}",
            percent(share),
            percent(least),
            percent(most),
            says.word()
        ));
    }
    if let (Some(says), Some(channels)) = (candidate.channels, known.channels) {
        words.push(format!("{channels} populated channels by firmware: {}", says.word()));
    }
    words.join("; ")
}

fn ratio_word(says: Support) -> &'static str {
    match says {
        Support::Open => "could be, if the cores cannot use the wide set",
        says => says.word(),
    }
}

impl Diagnosis {
    /// The maps of memory that the run has.
    pub fn memory_maps(&self) -> Vec<NodeMap<'_>> {
        maps(&self.run, &self.machine)
    }
}
