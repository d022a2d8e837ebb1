//! A graph that fills the room: breadth-first search and shortest paths from its hub.
//!
//! Literature: D. Chakrabarti, Y. Zhan and C. Faloutsos, "R-MAT: A Recursive Model for Graph
//! Mining" (2004), with probabilities 9/16, 3/16, 3/16, 1/16; E. W. Dijkstra, "A Note on Two
//! Problems in Connexion with Graphs" (1959), with the buckets of R. B. Dial, "Algorithm 360:
//! Shortest-Path Forest with Topological Ordering" (1969). The checks are those of the Graph500
//! benchmark. In character like SPEC's mcf: dependent reads all over memory.

use super::{Character, Component, Mix, Sum, Work, ids};
use crate::widest::widest;
use anyhow::ensure;
use sys::block::{Block, Room};

pub(super) const COMPONENT: Component = Component {
    id: ids::GRAPH,
    title: "graph: breadth-first search and shortest paths",
    about: "Searches an R-MAT graph breadth-first and finds shortest paths by Dijkstra's algorithm.",
    reading: "Edges followed a second; more is better. Nearly each is a read at another place of memory. It is built to need \
              low memory latency, large caches, huge pages and many misses in flight. The column \"bound by\" of a \
              run names the actual limit.",
    method: "Adjacency lists with weights 1–255 fill the footprint. Dijkstra uses Dial's buckets, doubly linked \
             lists through the vertices. At every edge the ends are at most a level apart and obey the triangle \
             inequality. Every vertex has a parent one level up and a neighbour that its distance comes from.",
    source: file!(),
    character: Character::Latency,
    units: "edges",
    reference: 90.0,
    answer: 0x2ab3_852e_f8eb_31eb,
    make,
};

const NONE: u32 = u32::MAX;
const UNSEEN: u64 = u64::MAX;
/// Bytes per vertex without its edges, and per edge in one direction.
const VERTEX: u64 = 28;
const EDGE: u64 = 8;

/// A vertex: its distance, the vertices before and after it in its bucket, where its edges begin.
type Vertex = [u32; 4];
const DISTANCE: usize = 0;
const BEFORE: usize = 1;
const AFTER: usize = 2;
const BEGIN: usize = 3;

struct Graph {
    root: u32,
    /// Weight (upper half) and end of each edge.
    arcs: Block<u64>,
    /// [`Vertex`] by vertex, and one more that ends the last one's edges.
    vertices: Block<u32>,
    /// Level (upper half) and parent of each vertex.
    visits: Block<u64>,
    queue: Block<u32>,
    reached: u64,
    edges: u64,
}

/// The edges, by R-MAT: at each level both ends' bits are 1 with a probability of 1/4.
struct Edges {
    mix: Mix,
    mask: u32,
}

impl Edges {
    fn new(vertices: u32) -> Edges {
        Edges { mix: Mix(0x6772_6170_6821), mask: vertices - 1 }
    }
    /// Spreads the labels (one to one), so that they tell nothing of the degree.
    fn label(&self, vertex: u32) -> u32 {
        let half = self.mask.count_ones() / 2;
        let mut label = vertex.wrapping_mul(0x9e37_79b1) & self.mask;
        label ^= label >> half.max(1);
        label = label.wrapping_mul(0x85eb_ca6b) & self.mask;
        label ^ label >> half.max(1)
    }
    fn next(&mut self) -> (u32, u32, u8) {
        let (from, to) = (self.mix.next(), self.mix.next());
        let mixed = (from ^ to.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let weight = 1 + ((mixed * 255) >> 24);
        let from = (from & from >> 32) as u32 & self.mask;
        let to = (to & to >> 32) as u32 & self.mask;
        (self.label(from), self.label(to), weight as u8)
    }
}

fn make(room: &mut Room) -> anyhow::Result<Box<dyn Work>> {
    Ok(Box::new(Graph::new(room)?))
}

impl Graph {
    fn new(room: &mut Room) -> anyhow::Result<Graph> {
        let most = room.bytes / (VERTEX + 12 * EDGE);
        ensure!(most >= 1024, "the graph needs 128 KiB or more; the room has {} bytes", room.bytes);
        let count = 1u64 << most.ilog2().min(31);
        let edges = ((room.bytes - VERTEX * count - 16) / EDGE).min(u64::from(NONE) - 1) & !1;
        let (size, length) = (usize::try_from(count)?, usize::try_from(edges)?);
        let mut graph = Graph {
            root: 0,
            arcs: room.u64s(length)?,
            vertices: room.u32s(4 * (size + 1))?,
            visits: room.u64s(size)?,
            queue: room.u32s(size)?,
            reached: 0,
            edges: 0,
        };
        graph.fill(count as u32, edges / 2);
        (graph.reached, graph.edges) = graph.search();
        Ok(graph)
    }

    fn fill(&mut self, count: u32, edges: u64) {
        let mut list = Edges::new(count);
        self.root = list.label(0);
        for _ in 0..edges {
            let (from, to, _) = list.next();
            self.queue[from as usize] += 1;
            self.queue[to as usize] += 1;
        }
        let mut begin = 0;
        let (vertices, _) = self.vertices.as_chunks_mut::<4>();
        for (vertex, next) in vertices.iter_mut().zip(self.queue.iter_mut()) {
            vertex[BEGIN] = begin;
            begin += *next;
            *next = vertex[BEGIN];
        }
        if let Some(end) = vertices.last_mut() {
            end[BEGIN] = begin;
        }
        let mut list = Edges::new(count);
        for _ in 0..edges {
            let (from, to, weight) = list.next();
            for (from, to) in [(from, to), (to, from)] {
                let at = self.queue[from as usize] as usize;
                self.queue[from as usize] += 1;
                self.arcs[at] = u64::from(weight) << 32 | u64::from(to);
            }
        }
    }

    /// Vertices reached and edges followed breadth-first.
    fn search(&mut self) -> (u64, u64) {
        let (vertices, _) = self.vertices.as_chunks::<4>();
        let (arcs, visits, queue) = (&self.arcs, &mut self.visits, &mut self.queue);
        widest(
            #[inline(always)]
            || breadth(self.root, vertices, arcs, visits, queue),
        )
    }
}

#[inline(always)]
fn breadth(
    root: u32,
    vertices: &[Vertex],
    arcs: &[u64],
    visits: &mut [u64],
    queue: &mut [u32],
) -> (u64, u64) {
    visits.fill(UNSEEN);
    visits[root as usize] = u64::from(root);
    queue[0] = root;
    let (mut head, mut tail, mut edges) = (0, 1, 0);
    while head < tail {
        let from = queue[head];
        head += 1;
        let visit = ((visits[from as usize] >> 32) + 1) << 32 | u64::from(from);
        let [begin, end] = [from, from + 1].map(|at| vertices[at as usize][BEGIN] as usize);
        edges += (end - begin) as u64;
        for &arc in &arcs[begin..end] {
            let to = arc as u32;
            let seen = &mut visits[to as usize];
            if *seen == UNSEEN {
                *seen = visit;
                queue[tail] = to;
                tail += 1;
            }
        }
    }
    (tail as u64, edges)
}

#[inline(always)]
fn distances(root: u32, vertices: &mut [Vertex], arcs: &[u64]) -> u64 {
    for vertex in vertices.iter_mut() {
        vertex[DISTANCE] = NONE;
    }
    let mut buckets = [NONE; 256];
    vertices[root as usize] = [0, NONE, NONE, vertices[root as usize][BEGIN]];
    buckets[0] = root;
    let (mut waiting, mut distance, mut edges) = (1u32, 0u32, 0);
    while waiting > 0 {
        let from = buckets[distance as usize & 255];
        if from == NONE {
            distance += 1;
            continue;
        }
        waiting -= 1;
        let [_, _, after, begin] = vertices[from as usize];
        let end = vertices[from as usize + 1][BEGIN];
        buckets[distance as usize & 255] = after;
        if after != NONE {
            vertices[after as usize][BEFORE] = NONE;
        }
        let edge = begin as usize..end as usize;
        edges += edge.len() as u64;
        for &arc in &arcs[edge] {
            let (to, weight) = (arc as u32, (arc >> 32) as u32);
            let closer = distance + weight;
            let [was, before, after, begin] = vertices[to as usize];
            if closer >= was {
                continue;
            }
            if was == NONE {
                waiting += 1;
            } else {
                if after != NONE {
                    vertices[after as usize][BEFORE] = before;
                }
                if before == NONE {
                    buckets[was as usize & 255] = after;
                } else {
                    vertices[before as usize][AFTER] = after;
                }
            }
            let first = &mut buckets[closer as usize & 255];
            vertices[to as usize] = [closer, NONE, *first, begin];
            if *first != NONE {
                vertices[*first as usize][BEFORE] = to;
            }
            *first = to;
        }
    }
    edges
}

impl Work for Graph {
    fn iterate(&mut self) {
        (self.reached, self.edges) = self.search();
        let (vertices, _) = self.vertices.as_chunks_mut::<4>();
        let arcs = &self.arcs;
        let edges = widest(
            #[inline(always)]
            || distances(self.root, vertices, arcs),
        );
        if edges != self.edges {
            self.reached = 0;
        }
    }
    fn units(&self) -> u64 {
        2 * self.edges
    }
    fn answer(&mut self) -> Result<u64, String> {
        let (vertices, _) = self.vertices.as_chunks::<4>();
        let root = self.root as usize;
        if self.visits[root] != root as u64 || vertices[root][DISTANCE] != 0 {
            return Err("the root is not at level and distance 0".into());
        }
        let mut reached = 0;
        let mut sum = Sum::new();
        for (at, (&visit, pair)) in self.visits.iter().zip(vertices.windows(2)).enumerate() {
            let (level, parent, distance) = (visit >> 32, visit as u32, pair[0][DISTANCE]);
            sum.word(visit);
            sum.word(u64::from(distance));
            if (visit == UNSEEN) != (distance == NONE) {
                return Err(format!("vertex {at} is reached by one search only"));
            }
            let mut found = [at == root || visit == UNSEEN; 2];
            reached += u64::from(visit != UNSEEN);
            let edge = pair[0][BEGIN] as usize..pair[1][BEGIN] as usize;
            for &arc in &self.arcs[edge] {
                let (to, weight) = (arc as u32, arc >> 32);
                let (other, far) = (self.visits[to as usize], vertices[to as usize][DISTANCE]);
                if (other == UNSEEN) != (visit == UNSEEN) || (other >> 32).abs_diff(level) > 1 {
                    return Err(format!(
                        "the edge from {at} to {to} joins levels {level} and {}",
                        other >> 32
                    ));
                }
                if visit != UNSEEN && u64::from(far) > u64::from(distance) + weight {
                    return Err(format!("the edge from {at} to {to} shortens the distance {far}"));
                }
                found[0] |= to == parent && (other >> 32) + 1 == level;
                found[1] |= u64::from(far) + weight == u64::from(distance);
            }
            if found != [true; 2] {
                return Err(format!("vertex {at} has no parent {parent} or none on its way"));
            }
        }
        if reached != self.reached {
            return Err(format!("{reached} vertices have a level; {} were found", self.reached));
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        (self.arcs.len() * 8 + self.vertices.len() * 4 + self.queue.len() * 12) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::STANDARD_BYTES;
    use super::*;

    fn small(bytes: u64) -> anyhow::Result<Graph> {
        let mut graph = Graph::new(&mut Room::new(bytes))?;
        graph.iterate();
        Ok(graph)
    }

    #[test]
    fn levels_and_distances_are_those_of_relaxing_until_nothing_changes() -> anyhow::Result<()> {
        let graph = small(200_000)?;
        let (vertices, _) = graph.vertices.as_chunks::<4>();
        let count = graph.visits.len();
        let mut best = vec![(u32::MAX, u32::MAX); count];
        best[graph.root as usize] = (0, 0);
        loop {
            let before = best.clone();
            for at in 0..count {
                for edge in vertices[at][BEGIN] as usize..vertices[at + 1][BEGIN] as usize {
                    let to = &mut best[graph.arcs[edge] as u32 as usize];
                    let from = before[at];
                    to.0 = to.0.min(from.0.saturating_add(1));
                    to.1 = to.1.min(from.1.saturating_add((graph.arcs[edge] >> 32) as u32));
                }
            }
            if best == before {
                break;
            }
        }
        for at in 0..count {
            assert_eq!((graph.visits[at] >> 32, vertices[at][DISTANCE]), (u64::from(best[at].0), best[at].1));
        }
        assert_eq!(graph.reached, best.iter().filter(|found| found.0 != u32::MAX).count() as u64);
        Ok(())
    }

    #[test]
    fn any_flipped_bit_is_noticed() -> anyhow::Result<()> {
        let mut graph = small(1 << 20)?;
        let good = graph.answer();
        assert!(good.is_ok());
        let mut mix = Mix(5);
        for _ in 0..200 {
            let (at, bit) = (mix.below(graph.visits.len() as u64) as usize, mix.below(64));
            graph.visits[at] ^= 1 << bit;
            assert!(graph.answer().is_err(), "visit {at} bit {bit}");
            graph.visits[at] ^= 1 << bit;
            graph.vertices[4 * at + DISTANCE] ^= 1 << (bit & 31);
            assert!(graph.answer().is_err(), "distance {at} bit {bit}");
            graph.vertices[4 * at + DISTANCE] ^= 1 << (bit & 31);
        }
        assert_eq!(graph.answer(), good);
        Ok(())
    }

    #[test]
    fn it_fills_any_room_or_says_what_it_needs() -> anyhow::Result<()> {
        for bytes in [16 << 20, (17 << 20) + 12_345, (24 << 20) - 1] {
            let mut graph = small(bytes)?;
            assert!(graph.answer().is_ok());
            assert!(graph.bytes() <= bytes && graph.bytes() * 10 >= bytes * 9);
        }
        assert!(small(60_000).is_err());
        Ok(())
    }

    #[test]
    fn the_answer_is_as_stored_and_the_same_without_wide_vectors() -> anyhow::Result<()> {
        let mut graph = small(STANDARD_BYTES)?;
        assert_eq!(graph.answer(), Ok(COMPONENT.answer));
        let (vertices, _) = graph.vertices.as_chunks_mut::<4>();
        let edges = distances(graph.root, vertices, &graph.arcs);
        let (vertices, _) = graph.vertices.as_chunks::<4>();
        let found = breadth(graph.root, vertices, &graph.arcs, &mut graph.visits, &mut graph.queue);
        assert_eq!((graph.reached, graph.edges, edges), (found.0, found.1, found.1));
        assert_eq!(graph.answer(), Ok(COMPONENT.answer));
        Ok(())
    }
}
