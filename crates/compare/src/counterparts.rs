//! Series of different tools that measure the same thing in their own ways: bandwidths of memory
//! under names of their own, and TCP that was sent between other CPUs or in other pieces. They
//! stand on one line with what differs, and nothing is concluded from it.

use std::collections::BTreeSet;

use super::matching::{Match, unit_scale};
use super::{ComparisonSide, Member};
use diagnose::words;
use model::vocabulary::{memory, network};

/// How another tool calls work on memory that we know.
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
        differs: "STREAM reports its best pass and pins no thread",
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
        differs: "likwid-bench reports the mean of all its passes",
    },
    Row {
        bench: "sysbench.memory",
        work: "operation",
        words: &[("read", "read"), ("write", "write")],
        beside: &[("scope", "global"), ("scope", "local")],
        differs: "sysbench moves one word at a time, pins no thread and reports the mean over its whole time",
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Memory,
    Tcp,
}

/// What is measured, by how many and on how much.
struct Counterpart<'a> {
    member: &'a Member,
    kind: Kind,
    op: String,
    /// Tasks, or connections.
    tasks: u64,
    /// Bytes: the blocks of all tasks together, or one message over TCP; `None` if the tool does
    /// not print it.
    bytes: Option<u64>,
    /// What the tool does otherwise than we do.
    differs: &'static str,
}

impl<'a> Counterpart<'a> {
    fn of(member: &'a Member) -> Option<Counterpart<'a>> {
        if !member.case.knobs.is_empty() {
            return None;
        }
        match member.case.id() {
            Some(memory::BANDWIDTH) => Counterpart::own_memory(member),
            Some(network::TCP) => Counterpart::tcp(member),
            _ => Counterpart::foreign_memory(member),
        }
    }

    fn count(member: &Member, name: &str) -> Option<u64> {
        u64::try_from(member.point.named(name)?.int()?).ok()
    }

    fn own_memory(member: &'a Member) -> Option<Counterpart<'a>> {
        let (params, placement) = (&member.case.params, &member.case.placement);
        // A cache's or a node's own is not the host's.
        if member.metric.name != memory::metric::BANDWIDTH || params.len() != 1 {
            return None;
        }
        let op = params.get(memory::param::OP)?.to_string();
        let tasks = match placement.seats.len() as u64 {
            0 => u64::from(placement.name == "one-cpu"),
            seats => seats,
        };
        let bytes = Self::count(member, memory::param::BYTES.as_str())?.checked_mul(tasks)?;
        let found = Counterpart { member, kind: Kind::Memory, op, tasks, bytes: Some(bytes), differs: "" };
        (tasks > 0).then_some(found)
    }

    fn foreign_memory(member: &'a Member) -> Option<Counterpart<'a>> {
        let row = ROWS.iter().find(|row| row.bench == member.case.bench.as_ref())?;
        let params = &member.case.params;
        let said = params.named(row.work)?.to_string();
        let mut parts = said.split('_');
        let word = [parts.next()?, if parts.any(|part| part == "mem") { "_mem" } else { "" }].concat();
        let (_, op) = row.words.iter().find(|(theirs, _)| *theirs == word)?;
        let is_plain = |(name, value): (&String, &model::Value)| {
            name == row.work || row.beside.contains(&(name.as_str(), value.to_string().as_str()))
        };
        if member.metric.name != memory::metric::BANDWIDTH || !params.iter().all(is_plain) {
            return None;
        }
        let count = |name: &str| Self::count(member, name);
        let tasks = count("threads")?;
        let bytes = match row.bench {
            // Arrays of doubles: triad works on three, copy on two. The key has other sizes.
            "memory.stream" => count("elements")?.checked_mul(if *op == "triad" { 24 } else { 16 })?,
            "sysbench.memory" if params.named("scope")?.to_string() == "local" => {
                count("block")?.checked_mul(tasks)?
            }
            "sysbench.memory" => count("block")?,
            _ => count("bytes")?,
        };
        let op = op.to_string();
        Some(Counterpart { member, kind: Kind::Memory, op, tasks, bytes: Some(bytes), differs: row.differs })
    }

    fn tcp(member: &'a Member) -> Option<Counterpart<'a>> {
        let arrived = member.metric.name == network::metric::BANDWIDTH;
        if !arrived && member.metric.name != network::metric::SENT {
            return None;
        }
        Some(Counterpart {
            member,
            kind: Kind::Tcp,
            op: member.case.params.iter().map(|(name, value)| format!("{name}={value} ")).collect(),
            tasks: Self::count(member, network::param::STREAMS.as_str()).unwrap_or(1),
            bytes: Self::count(member, network::param::BYTES.as_str()),
            differs: if arrived { "" } else { "sent, not received" },
        })
    }

    fn does_as(&self, other: &Counterpart) -> bool {
        (self.kind, &self.op, self.tasks) == (other.kind, &other.op, other.tasks)
    }

    /// Whether it is the same but for the size.
    fn stands_where(&self, other: &Counterpart) -> bool {
        let [own, theirs] = [self, other].map(|one| &one.member.case);
        self.does_as(other) && (&own.bench, &own.placement.name) == (&theirs.bench, &theirs.placement.name)
    }

    /// How far apart the sizes are, a logarithm; if one is unknown, the largest is nearest.
    fn apart(&self, other: &Counterpart) -> f64 {
        let [own, theirs] = [self, other].map(|one| one.bytes.map(|bytes| (bytes as f64).ln()));
        match (own, theirs) {
            (Some(own), Some(theirs)) => (own - theirs).abs(),
            (one, other) => -one.or(other).unwrap_or(0.0),
        }
    }

    /// Whether another figure of the same result stands for it: of curves over blocks of memory the
    /// largest, of TCP what arrived.
    fn gives_way_to(&self, other: &Counterpart) -> bool {
        let own = |one: &Counterpart| one.member.case.id() == Some(memory::BANDWIDTH);
        other.does_as(self)
            && match self.kind {
                Kind::Memory => own(self) && own(other) && other.bytes > self.bytes,
                Kind::Tcp => !self.differs.is_empty() && other.differs.is_empty(),
            }
    }

    /// Less than STREAM's own rule asks for.
    fn is_near(&self, llc: u64) -> bool {
        self.kind == Kind::Memory && self.bytes.is_some_and(|bytes| bytes < llc.saturating_mul(BEYOND))
    }

    /// Too little for another tool, so that a cache is measured; ours are beyond it.
    fn in_cache(&self, llc_bytes: Option<u64>) -> Option<String> {
        let (bytes, llc) = (self.bytes?, llc_bytes?);
        (self.is_near(llc) && self.member.case.placement.seats.is_empty()).then(|| {
            let [bytes, llc] = [bytes, llc].map(size);
            format!("worked on {bytes}, less than {BEYOND} times the last-level caches ({llc}): it measured a cache")
        })
    }
}

/// Blocks of all tasks together are this many times the last-level caches, or a cache is measured.
const BEYOND: u64 = 4;

fn counterparts(arm: &ComparisonSide) -> Vec<Counterpart<'_>> {
    let all: Vec<Counterpart> = arm.valued().filter_map(Counterpart::of).collect();
    let stays = |at: &usize| !all.iter().any(|other| all[*at].gives_way_to(other));
    let stay: BTreeSet<usize> = (0..all.len()).filter(stays).collect();
    all.into_iter().enumerate().filter(|(at, _)| stay.contains(at)).map(|(_, one)| one).collect()
}

fn size(bytes: u64) -> String {
    words::bytes(bytes as f64)
}

/// What differs between two that measure the same.
fn notes(x: &Counterpart, y: &Counterpart, llc_bytes: Option<u64>) -> String {
    // The line has A's name.
    let mut notes = vec![format!("B is {}", y.member.title)];
    notes.extend([x, y].map(|one| one.differs.to_string()));
    notes.dedup();
    let places = [x, y].map(|one| one.member.case.placement.name.as_ref());
    if x.kind == Kind::Tcp && places[0] != places[1] {
        notes.push(format!("{} in A, {} in B", places[0], places[1]));
    }
    match (x.bytes, y.bytes) {
        (one, other) if one == other => {}
        (Some(one), Some(other)) => notes.push(format!("{} at once in A, {} in B", size(one), size(other))),
        (one, _) => notes.push(format!(
            "{} does not report how much it sent at once",
            if one.is_none() { "A" } else { "B" }
        )),
    }
    match llc_bytes {
        None if x.kind == Kind::Memory => {
            notes.push("size of the caches unknown: it may have measured a cache".to_string())
        }
        Some(llc) => notes.extend([("A", x), ("B", y)].into_iter().filter(|(_, one)| one.is_near(llc)).map(
            |(side, _)| format!("in {side} a part may come from the last-level caches ({})", size(llc)),
        )),
        None => {}
    }
    notes.retain(|note| !note.is_empty());
    notes.join("; ")
}

/// Pairs that different tools measured, in A's order, and why some are none. Those of `taken`, A's
/// keys, have a match or a reason against one already.
pub fn pairs<'a>(
    a: &'a ComparisonSide,
    b: &'a ComparisonSide,
    taken: &BTreeSet<String>,
) -> Vec<Result<Match<'a>, (Match<'a>, String)>> {
    if !a.imported && !b.imported {
        return Vec::new();
    }
    let llc_bytes = [a.llc_bytes, b.llc_bytes].into_iter().flatten().max();
    let (of_a, of_b) = (counterparts(a), counterparts(b));
    let mut pairs = Vec::new();
    for x in of_a.iter().filter(|x| !taken.contains(&x.member.key)) {
        // The same tool's own figures are matched by their keys.
        let is_other = |y: &&Counterpart| x.kind == Kind::Tcp || y.member.case.bench != x.member.case.bench;
        for y in of_b.iter().filter(|y| y.does_as(x)).filter(is_other) {
            let nearest = |all: &[Counterpart], one: &Counterpart, other: &Counterpart| {
                let rivals = all.iter().filter(|rival| rival.stands_where(one));
                rivals.map(|rival| rival.apart(other)).fold(f64::INFINITY, f64::min)
            };
            if x.apart(y) > nearest(&of_a, x, y) || x.apart(y) > nearest(&of_b, y, x) {
                continue;
            }
            let Some(scale) = unit_scale(&x.member.metric.unit, &y.member.metric.unit) else { continue };
            let pair = Match {
                a: x.member,
                b: y.member,
                scale,
                note: Some(notes(x, y, llc_bytes)),
                headline: x.member.metric.headline || y.member.metric.headline,
                across: true,
            };
            let small = [("A", x), ("B", y)]
                .iter()
                .find_map(|(side, one)| Some(format!("{side} {}", one.in_cache(llc_bytes)?)));
            pairs.push(match small {
                Some(reason) => Err((pair, reason)),
                None => Ok(pair),
            });
        }
    }
    pairs
}
