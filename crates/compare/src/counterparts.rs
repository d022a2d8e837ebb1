//! Series of other tools, under names of their own, that measure what one of ours or of a third tool
//! does: the same work on memory, by as many tasks, on blocks that no cache holds.

use super::matching::{Match, unit_scale};
use super::{Arm, Member};
use model::figure;
use model::vocabulary::memory as ids;

/// How another tool calls work that we know.
struct Row {
    bench: &'static str,
    /// The parameter that names the work.
    work: &'static str,
    /// Its word for the work, and ours.
    words: &'static [(&'static str, &'static str)],
    /// Other parameters that the work may have; with any else it is other work.
    beside: &'static [(&'static str, &'static str)],
    differs: &'static str,
}

const ROWS: [Row; 3] = [
    Row {
        bench: "memory.stream",
        work: "op",
        words: &[("copy", "copy"), ("triad", "triad")],
        beside: &[],
        differs: "STREAM tells its best pass and pins no thread",
    },
    // Its `triad` has one array more. Behind the first `_` stand the vectors; `mem` stores past the
    // caches.
    Row {
        bench: "memory.likwid-bench",
        work: "test",
        words: &[
            ("copy", "copy"),
            ("copy_mem", "copy-nt"),
            ("load", "read"),
            ("store", "write"),
            ("store_mem", "write-nt"),
            ("stream", "triad"),
            ("update", "read-write"),
        ],
        beside: &[],
        differs: "likwid-bench tells the mean of all its passes",
    },
    Row {
        bench: "sysbench.memory",
        work: "operation",
        words: &[("read", "read"), ("write", "write")],
        beside: &[("scope", "global"), ("scope", "local")],
        differs: "sysbench moves a word at a time, pins no thread and tells the mean of all its time",
    },
];

/// A bandwidth of memory by what is done, by how many and on how much.
struct Counterpart<'a> {
    member: &'a Member,
    op: String,
    tasks: u64,
    /// What all tasks together work on.
    bytes: u64,
    differs: &'static str,
}

impl<'a> Counterpart<'a> {
    fn of(member: &'a Member) -> Option<Counterpart<'a>> {
        let (case, params) = (&member.case, &member.case.params);
        if member.metric.name != ids::metric::BANDWIDTH || !case.knobs.is_empty() {
            return None;
        }
        let count = |name: &str| u64::try_from(member.point.named(name)?.int()?).ok();
        if case.bench == ids::BANDWIDTH {
            // A cache's or a node's own is not the machine's.
            let op = params.get(ids::param::OP).filter(|_| params.len() == 1)?.to_string();
            let tasks = match case.placement.seats.len() as u64 {
                0 => u64::from(case.placement.name == "one-cpu"),
                seats => seats,
            };
            let bytes = count(ids::param::BYTES.as_str())?.checked_mul(tasks)?;
            return (tasks > 0).then_some(Counterpart { member, op, tasks, bytes, differs: "" });
        }
        let row = ROWS.iter().find(|row| row.bench == case.bench.as_ref())?;
        let said = params.named(row.work)?.to_string();
        let mut parts = said.split('_');
        let word = [parts.next()?, if parts.any(|part| part == "mem") { "_mem" } else { "" }].concat();
        let (_, op) = row.words.iter().find(|(theirs, _)| *theirs == word)?;
        let is_plain = |(name, value): (&String, &model::Value)| {
            name == row.work || row.beside.contains(&(name.as_str(), value.to_string().as_str()))
        };
        if !params.iter().all(is_plain) {
            return None;
        }
        let tasks = count("threads")?;
        let bytes = match row.bench {
            // Doubles; a key tells where they are not.
            "memory.stream" => count("elements")?.checked_mul(if *op == "triad" { 24 } else { 16 })?,
            "sysbench.memory" if params.named("scope")?.to_string() == "local" => {
                count("block")?.checked_mul(tasks)?
            }
            "sysbench.memory" => count("block")?,
            _ => count("bytes")?,
        };
        Some(Counterpart { member, op: op.to_string(), tasks, bytes, differs: row.differs })
    }

    fn is_ours(&self) -> bool {
        self.differs.is_empty()
    }

    fn does_as(&self, other: &Counterpart) -> bool {
        (self.op.as_str(), self.tasks) == (other.op.as_str(), other.tasks)
    }
}

/// Bandwidths of memory of a result; of our curves their largest blocks.
fn counterparts(arm: &Arm) -> Vec<Counterpart<'_>> {
    let all: Vec<Counterpart> = arm.valued().filter_map(Counterpart::of).collect();
    let sizes: Vec<(String, u64, u64)> =
        all.iter().filter(|one| one.is_ours()).map(|one| (one.op.clone(), one.tasks, one.bytes)).collect();
    let is_largest = |one: &Counterpart| {
        !sizes.iter().any(|(op, tasks, bytes)| *op == one.op && *tasks == one.tasks && *bytes > one.bytes)
    };
    all.into_iter().filter(|one| !one.is_ours() || is_largest(one)).collect()
}

/// Blocks of all tasks together are this many times the last-level caches, or a cache is measured:
/// STREAM's own rule.
const BEYOND: u64 = 4;

fn size(bytes: u64) -> String {
    figure(bytes as f64, "B")
}

/// Pairs that different tools measured, each with what differs, or why they are none.
pub fn pairs<'a>(a: &'a Arm, b: &'a Arm) -> Vec<Result<Match<'a>, (Match<'a>, String)>> {
    let llc_bytes = [a.llc_bytes, b.llc_bytes].into_iter().flatten().max();
    let (of_a, of_b) = (counterparts(a), counterparts(b));
    let mut pairs = Vec::new();
    for x in &of_a {
        for y in of_b.iter().filter(|y| y.does_as(x) && y.member.case.bench != x.member.case.bench) {
            let Some(scale) = unit_scale(&x.member.metric.unit, &y.member.metric.unit) else { continue };
            let mut notes: Vec<String> =
                [x, y].iter().filter(|one| !one.is_ours()).map(|one| one.differs.to_string()).collect();
            if x.bytes != y.bytes {
                notes.push(format!("blocks of {} in A, {} in B", size(x.bytes), size(y.bytes)));
            }
            if llc_bytes.is_none() {
                notes.push("nothing tells whether a cache holds them".to_string());
            }
            let headline = x.member.metric.headline || y.member.metric.headline;
            let pair = Match {
                a: x.member,
                b: y.member,
                scale,
                note: Some(notes.join("; ")),
                headline,
                across: true,
            };
            let small = [("A", x), ("B", y)].into_iter().find(|(_, one)| {
                !one.is_ours() && llc_bytes.is_some_and(|llc| one.bytes < llc.saturating_mul(BEYOND))
            });
            pairs.push(match small.zip(llc_bytes) {
                Some(((side, one), llc)) => {
                    let reason = format!(
                        "{side} worked on {}, less than {BEYOND} times the last-level caches ({}): it measured a cache",
                        size(one.bytes),
                        size(llc)
                    );
                    Err((pair, reason))
                }
                None => Ok(pair),
            });
        }
    }
    pairs
}
