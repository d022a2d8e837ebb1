//! Breadth-first search and shortest paths from the hub of a graph that fills the arena.
//!
//! Literature: D. Chakrabarti, Y. Zhan and C. Faloutsos, "R-MAT: A Recursive Model for Graph
//! Mining" (2004), with probabilities 9/16, 3/16, 3/16, 1/16; E. W. Dijkstra, "A Note on Two
//! Problems in Connexion with Graphs" (1959), with the buckets of R. B. Dial, "Algorithm 360:
//! Shortest-Path Forest with Topological Ordering" (1969). The checks are those of the Graph500
//! benchmark. In character like SPEC's mcf: dependent reads all over memory.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;
use anyhow::ensure;
use sys::block::{Arena, Block};

pub(super) const COMPONENT: Component = Component {
    id: ids::GRAPH,
    title: "Breadth-first search and shortest paths",
    about: "Searches an R-MAT graph breadth-first and finds shortest paths by Dijkstra's algorithm.",
    reading: "Edges followed per second; more is better. Nearly each is a read at another place of memory. It is built to need \
              low memory latency, large caches, huge pages and many misses in flight. The column \"bound by\" of a \
              run names the actual limit.",
    method: "Adjacency lists with weights 1–255 fill the footprint. Dijkstra uses Dial's buckets, doubly linked \
             lists through the vertices. At every edge the ends are at most a level apart and obey the triangle \
             inequality. Every vertex has a parent one level up and a neighbour that its distance comes from.",
    source: file!(),
    character: Character::Latency,
    units: "edges",
    // Million edges per second.
    reference: 90.0,
    expected_checksum: 0x2ab3_852e_f8eb_31eb,
    make: |arena| Ok(Box::new(Graph::new(arena)?)),
};

/// The end of a list of vertices.
const NO_VERTEX: u32 = u32::MAX;
/// [`DISTANCE`] of a vertex that the search has not reached.
const NOT_REACHED: u32 = u32::MAX;
/// [`Graph::visits`] of a vertex that the search has not reached.
const UNVISITED: u64 = u64::MAX;
/// Bytes per vertex without its edges: vertex, visit and place in the queue.
const VERTEX_BYTES: u64 = 16 + 8 + 4;
const EDGE_BYTES: u64 = 8;
/// The arena holds this many directed edges per vertex on average, or more: its size between two
/// powers of two goes into further edges.
const MIN_DEGREE: u64 = 12;
/// An edge of weight 255 ends at most this many distances further (a power of two).
const BUCKETS: usize = 256;

/// A vertex: its distance, its predecessor and successor in the list of its bucket, and the index
/// of its first edge.
type Vertex = [u32; 4];
const DISTANCE: usize = 0;
const PREVIOUS: usize = 1;
const NEXT: usize = 2;
const FIRST_EDGE: usize = 3;

struct Graph {
    root: u32,
    /// Directed edges by start vertex: weight (upper half) and end vertex.
    edges: Block<u64>,
    /// A [`Vertex`] for each vertex, and one more whose `FIRST_EDGE` ends the last one's edges.
    vertices: Block<u32>,
    /// Level in the search (upper half) and parent of each vertex.
    visits: Block<u64>,
    /// Vertices in the order of the search. While the graph is built: counts, then write positions.
    queue: Block<u32>,
    /// Vertices that the last search reached. 0, for [`Work::verify`] to report, if both searches
    /// did not follow the same number of edges.
    reached: u64,
    /// Directed edges that the last search followed.
    followed: u64,
}

/// The list of undirected edges, by R-MAT. At each level of its recursion each end has the bit 1
/// with a probability of 1/4, so that the quarters of the matrix have 9/16, 3/16, 3/16 and 1/16.
struct EdgeList {
    rng: Rng,
    mask: u32,
}

impl EdgeList {
    fn new(vertices: u32) -> EdgeList {
        // "graph!" in ASCII.
        EdgeList { rng: Rng(0x6772_6170_6821), mask: vertices - 1 }
    }
    /// Permutes the vertices, so that labels are independent of degrees: twice an odd factor and a
    /// shift, which can be undone. The factors are 2^32 over the golden ratio, and the first one of
    /// MurmurHash3's finalizer.
    fn label(&self, vertex: u32) -> u32 {
        let half = self.mask.count_ones() / 2;
        let mut label = vertex.wrapping_mul(0x9e37_79b1) & self.mask;
        label ^= label >> half.max(1);
        label = label.wrapping_mul(0x85eb_ca6b) & self.mask;
        label ^ label >> half.max(1)
    }
    fn next(&mut self) -> (u32, u32, u8) {
        let (from, to) = (self.rng.next(), self.rng.next());
        let mixed = (from ^ to.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let weight = 1 + ((mixed * 255) >> 24);
        // The AND of two random bits is 1 with a probability of 1/4.
        let from = (from & from >> 32) as u32 & self.mask;
        let to = (to & to >> 32) as u32 & self.mask;
        (self.label(from), self.label(to), weight as u8)
    }
}

impl Graph {
    fn new(arena: &mut Arena) -> anyhow::Result<Graph> {
        let max_vertices = arena.bytes / (VERTEX_BYTES + MIN_DEGREE * EDGE_BYTES);
        ensure!(
            max_vertices >= 1024,
            "the graph needs at least 126,976 bytes; the arena has {}",
            arena.bytes
        );
        let count = 1u64 << max_vertices.ilog2().min(31);
        // The end vertex takes 16 bytes. An even number: each edge is stored in both directions.
        let left = arena.bytes - VERTEX_BYTES * count - 16;
        // Vertices store the index of their first edge in 32 bits.
        let edges = (left / EDGE_BYTES).min(u64::from(u32::MAX) - 1) & !1;
        let (vertices, directed) = (usize::try_from(count)?, usize::try_from(edges)?);
        let mut graph = Graph {
            root: 0,
            edges: arena.u64s(directed)?,
            vertices: arena.u32s(4 * (vertices + 1))?,
            visits: arena.u64s(vertices)?,
            queue: arena.u32s(vertices)?,
            reached: 0,
            followed: 0,
        };
        graph.fill(count as u32, edges / 2);
        (graph.reached, graph.followed) = graph.search();
        Ok(graph)
    }

    /// Builds the adjacency lists of `count` vertices from the list of undirected edges.
    fn fill(&mut self, count: u32, edges: u64) {
        // 1. Count the edges of each vertex, in `queue`.
        let mut list = EdgeList::new(count);
        self.root = list.label(0);
        for _ in 0..edges {
            let (from, to, _) = list.next();
            self.queue[from as usize] += 1;
            self.queue[to as usize] += 1;
        }
        // 2. Prefix sums: the first edge of each vertex. `queue` becomes the write positions.
        let mut begin = 0;
        let (vertices, _) = self.vertices.as_chunks_mut::<4>();
        for (vertex, count) in vertices.iter_mut().zip(self.queue.iter_mut()) {
            vertex[FIRST_EDGE] = begin;
            begin += *count;
            *count = vertex[FIRST_EDGE];
        }
        if let Some(end) = vertices.last_mut() {
            end[FIRST_EDGE] = begin;
        }
        // 3. Generate the same list again and place its edges, in both directions.
        let mut list = EdgeList::new(count);
        for _ in 0..edges {
            let (from, to, weight) = list.next();
            for (from, to) in [(from, to), (to, from)] {
                let place = self.queue[from as usize] as usize;
                self.queue[from as usize] += 1;
                self.edges[place] = u64::from(weight) << 32 | u64::from(to);
            }
        }
    }

    /// Breadth-first search: the numbers of vertices reached and edges followed.
    fn search(&mut self) -> (u64, u64) {
        let (vertices, _) = self.vertices.as_chunks::<4>();
        let (edges, visits, queue) = (&self.edges, &mut self.visits, &mut self.queue);
        with_widest_vectors(
            #[inline(always)]
            || search_breadth_first(self.root, vertices, edges, visits, queue),
        )
    }
}

#[inline(always)]
fn search_breadth_first(
    root: u32,
    vertices: &[Vertex],
    edges: &[u64],
    visits: &mut [u64],
    queue: &mut [u32],
) -> (u64, u64) {
    visits.fill(UNVISITED);
    visits[root as usize] = u64::from(root);
    queue[0] = root;
    let (mut head, mut tail, mut followed) = (0, 1, 0);
    while head < tail {
        let from = queue[head];
        head += 1;
        let visit = ((visits[from as usize] >> 32) + 1) << 32 | u64::from(from);
        let [begin, end] = [from, from + 1].map(|vertex| vertices[vertex as usize][FIRST_EDGE] as usize);
        followed += (end - begin) as u64;
        for &edge in &edges[begin..end] {
            let to = edge as u32;
            let to_visit = &mut visits[to as usize];
            if *to_visit == UNVISITED {
                *to_visit = visit;
                queue[tail] = to;
                tail += 1;
            }
        }
    }
    (tail as u64, followed)
}

/// Dijkstra's algorithm with Dial's buckets: writes the distance of every vertex from `root` and
/// returns the number of edges followed.
#[inline(always)]
fn find_distances(root: u32, vertices: &mut [Vertex], edges: &[u64]) -> u64 {
    for vertex in vertices.iter_mut() {
        vertex[DISTANCE] = NOT_REACHED;
    }
    // The first vertex of each bucket's list; a bucket holds vertices of one distance modulo 256.
    let mut buckets = [NO_VERTEX; BUCKETS];
    vertices[root as usize] = [0, NO_VERTEX, NO_VERTEX, vertices[root as usize][FIRST_EDGE]];
    buckets[0] = root;
    let (mut waiting, mut distance, mut followed) = (1u32, 0u32, 0);
    while waiting > 0 {
        // Take a vertex out of the current bucket: its distance is final.
        let from = buckets[distance as usize & (BUCKETS - 1)];
        if from == NO_VERTEX {
            distance += 1;
            continue;
        }
        waiting -= 1;
        let [_, _, next, begin] = vertices[from as usize];
        let end = vertices[from as usize + 1][FIRST_EDGE];
        buckets[distance as usize & (BUCKETS - 1)] = next;
        if next != NO_VERTEX {
            vertices[next as usize][PREVIOUS] = NO_VERTEX;
        }
        let range = begin as usize..end as usize;
        followed += range.len() as u64;
        for &edge in &edges[range] {
            let (to, weight) = (edge as u32, (edge >> 32) as u32);
            let candidate = distance + weight;
            let [old, previous, next, begin] = vertices[to as usize];
            if candidate >= old {
                continue;
            }
            // Unlink the vertex from the bucket of its old distance.
            if old == NOT_REACHED {
                waiting += 1;
            } else {
                if next != NO_VERTEX {
                    vertices[next as usize][PREVIOUS] = previous;
                }
                if previous == NO_VERTEX {
                    buckets[old as usize & (BUCKETS - 1)] = next;
                } else {
                    vertices[previous as usize][NEXT] = next;
                }
            }
            // Insert it at the head of the bucket of its new distance.
            let bucket = &mut buckets[candidate as usize & (BUCKETS - 1)];
            vertices[to as usize] = [candidate, NO_VERTEX, *bucket, begin];
            if *bucket != NO_VERTEX {
                vertices[*bucket as usize][PREVIOUS] = to;
            }
            *bucket = to;
        }
    }
    followed
}

impl Work for Graph {
    fn iterate(&mut self) {
        (self.reached, self.followed) = self.search();
        let (vertices, _) = self.vertices.as_chunks_mut::<4>();
        let edges = &self.edges;
        let followed = with_widest_vectors(
            #[inline(always)]
            || find_distances(self.root, vertices, edges),
        );
        if followed != self.followed {
            self.reached = 0;
        }
    }
    fn units(&self) -> u64 {
        2 * self.followed
    }
    fn verify(&mut self) -> Result<u64, String> {
        let (vertices, _) = self.vertices.as_chunks::<4>();
        let root = self.root as usize;
        if self.visits[root] != root as u64 || vertices[root][DISTANCE] != 0 {
            return Err("the root does not have level 0 and distance 0".into());
        }
        let mut reached = 0;
        let mut sum = Checksum::new();
        for (vertex, (&visit, pair)) in self.visits.iter().zip(vertices.windows(2)).enumerate() {
            let (level, parent, distance) = (visit >> 32, visit as u32, pair[0][DISTANCE]);
            sum.word(visit);
            sum.word(u64::from(distance));
            if (visit == UNVISITED) != (distance == NOT_REACHED) {
                return Err(format!("only one search reached vertex {vertex}"));
            }
            let mut has_parent = vertex == root || visit == UNVISITED;
            let mut has_predecessor = has_parent;
            reached += u64::from(visit != UNVISITED);
            let range = pair[0][FIRST_EDGE] as usize..pair[1][FIRST_EDGE] as usize;
            for &edge in &self.edges[range] {
                let (to, weight) = (edge as u32, edge >> 32);
                let (to_visit, to_distance) = (self.visits[to as usize], vertices[to as usize][DISTANCE]);
                let to_level = to_visit >> 32;
                if (to_visit == UNVISITED) != (visit == UNVISITED) || to_level.abs_diff(level) > 1 {
                    return Err(format!(
                        "the edge from {vertex} to {to} joins levels {level} and {to_level}"
                    ));
                }
                if visit != UNVISITED && u64::from(to_distance) > u64::from(distance) + weight {
                    return Err(format!(
                        "the edge from {vertex} to {to} shortens the distance {to_distance}"
                    ));
                }
                has_parent |= to == parent && to_level + 1 == level;
                has_predecessor |= u64::from(to_distance) + weight == u64::from(distance);
            }
            if !(has_parent && has_predecessor) {
                return Err(format!(
                    "vertex {vertex} lacks its parent {parent} or a predecessor on its path"
                ));
            }
        }
        if reached != self.reached {
            return Err(format!("{reached} vertices have a level, but the search reached {}", self.reached));
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        let bytes_of_u64s = size_of_val::<[u64]>(&self.edges) + size_of_val::<[u64]>(&self.visits);
        let bytes_of_u32s = size_of_val::<[u32]>(&self.vertices) + size_of_val::<[u32]>(&self.queue);
        (bytes_of_u64s + bytes_of_u32s) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::STANDARD_BYTES;
    use super::*;

    fn small(bytes: u64) -> anyhow::Result<Graph> {
        let mut graph = Graph::new(&mut Arena::new(bytes))?;
        graph.iterate();
        Ok(graph)
    }

    #[test]
    fn levels_and_distances_are_those_of_exhaustive_relaxation() -> anyhow::Result<()> {
        let graph = small(200_000)?;
        let (vertices, _) = graph.vertices.as_chunks::<4>();
        let count = graph.visits.len();
        let mut best = vec![(u32::MAX, u32::MAX); count];
        best[graph.root as usize] = (0, 0);
        loop {
            let before = best.clone();
            for at in 0..count {
                for edge in vertices[at][FIRST_EDGE] as usize..vertices[at + 1][FIRST_EDGE] as usize {
                    let to = &mut best[graph.edges[edge] as u32 as usize];
                    let from = before[at];
                    to.0 = to.0.min(from.0.saturating_add(1));
                    to.1 = to.1.min(from.1.saturating_add((graph.edges[edge] >> 32) as u32));
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
        let good = graph.verify();
        assert!(good.is_ok());
        let mut rng = Rng(5);
        for _ in 0..200 {
            let (at, bit) = (rng.below(graph.visits.len() as u64) as usize, rng.below(64));
            graph.visits[at] ^= 1 << bit;
            assert!(graph.verify().is_err(), "visit {at} bit {bit}");
            graph.visits[at] ^= 1 << bit;
            graph.vertices[4 * at + DISTANCE] ^= 1 << (bit & 31);
            assert!(graph.verify().is_err(), "distance {at} bit {bit}");
            graph.vertices[4 * at + DISTANCE] ^= 1 << (bit & 31);
        }
        assert_eq!(graph.verify(), good);
        Ok(())
    }

    #[test]
    fn it_fills_any_arena_or_reports_its_needs() -> anyhow::Result<()> {
        for bytes in [16 << 20, (17 << 20) + 12_345, (24 << 20) - 1] {
            let mut graph = small(bytes)?;
            assert!(graph.verify().is_ok());
            assert!(graph.bytes() <= bytes && graph.bytes() * 10 >= bytes * 9);
        }
        assert!(small(60_000).is_err());
        Ok(())
    }

    #[test]
    fn the_checksum_is_as_expected_with_and_without_wide_vectors() -> anyhow::Result<()> {
        let mut graph = small(STANDARD_BYTES)?;
        assert_eq!(graph.verify(), Ok(COMPONENT.expected_checksum));
        let (vertices, _) = graph.vertices.as_chunks_mut::<4>();
        let followed = find_distances(graph.root, vertices, &graph.edges);
        let (vertices, _) = graph.vertices.as_chunks::<4>();
        let found =
            search_breadth_first(graph.root, vertices, &graph.edges, &mut graph.visits, &mut graph.queue);
        assert_eq!((graph.reached, graph.followed, followed), (found.0, found.1, found.1));
        assert_eq!(graph.verify(), Ok(COMPONENT.expected_checksum));
        Ok(())
    }
}
