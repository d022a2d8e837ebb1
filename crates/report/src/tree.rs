//! Which set of CPUs holds which: packages, nodes, dies, caches and cores as one tree.

use std::collections::BTreeMap;

use diagnose::words;
use machine::{CacheKind, Machine};
use model::CpuSet;

/// What a set of CPUs is; one set is often several things at once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Package(i64),
    Node(u32),
    Die,
    Cache { level: u32, kind: CacheKind, size_bytes: Option<u64> },
    Cluster,
    Core,
}

/// A set of CPUs and the smaller ones inside it.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub parts: Vec<Part>,
    pub cpus: CpuSet,
    pub children: Vec<Item>,
    /// Equal for items that differ in numbers only.
    pub shape: usize,
}

impl Item {
    fn new(parts: Vec<Part>, cpus: CpuSet) -> Item {
        Item { parts, cpus, children: Vec::new(), shape: 0 }
    }

    pub fn is_core(&self) -> bool {
        self.parts.contains(&Part::Core)
    }

    /// Levels of items below this one.
    pub fn height(&self) -> usize {
        self.children.iter().map(|child| child.height() + 1).max().unwrap_or(0)
    }

    /// CPUs that no child holds.
    pub fn uncovered(&self) -> CpuSet {
        let covered: CpuSet = CpuSet::union_of(self.children.iter().map(|child| &child.cpus));
        self.cpus.difference(&covered)
    }
}

/// More sets than the largest host has; a hostile tree may have more, whose smallest are left
/// out.
const MAX_SETS: usize = 16_384;

/// More sets inside each other than any host has (package, die, node, caches, cluster, core); a
/// hostile tree may have a chain of thousands, which could not be drawn.
const DEEPEST: usize = 24;

/// The tree of a host (its root holds all online CPUs), and the sets that cross others and so
/// have no place in it.
pub(super) fn build(machine: &Machine) -> (Item, Vec<String>) {
    let mut sets: BTreeMap<CpuSet, Vec<Part>> = BTreeMap::new();
    let mut add = |cpus: &CpuSet, part: Part| {
        if !cpus.is_empty() {
            sets.entry(cpus.clone()).or_default().push(part);
        }
    };
    let cpus = &machine.cpus;
    cpus.packages.iter().flatten().for_each(|package| add(&package.cpus, Part::Package(package.id)));
    machine.nodes.iter().for_each(|node| add(&node.cpus, Part::Node(node.id)));
    cpus.dies.iter().flatten().for_each(|die| add(die, Part::Die));
    cpus.clusters.iter().flatten().for_each(|cluster| add(cluster, Part::Cluster));
    for cache in &machine.caches {
        let (level, kind, size_bytes) = (cache.level, cache.kind, cache.size_bytes);
        add(&cache.cpus, Part::Cache { level, kind, size_bytes });
    }
    cpus.cores.iter().flatten().for_each(|core| add(&core.cpus, Part::Core));

    let mut items: Vec<Item> = Vec::new();
    for (cpus, mut parts) in sets {
        parts.sort_by_key(rank);
        // Dies and clusters that are the same as something better known say nothing.
        let known = parts.iter().any(|part| !matches!(part, Part::Die | Part::Cluster));
        parts.retain(|part| !known || !matches!(part, Part::Die | Part::Cluster));
        items.push(Item::new(parts, cpus));
    }
    items.sort_by_key(|item| (std::cmp::Reverse(item.cpus.len()), item.cpus.first()));
    items.truncate(MAX_SETS);
    let mut root = Item::new(Vec::new(), cpus.online.clone());
    let mut crossing = Vec::new();
    for item in items {
        let item = split(item);
        if let Err(item) = insert(&mut root, item, DEEPEST) {
            crossing.push(format!("{} (CPUs {})", name(&item.parts), item.cpus));
        }
    }
    shapes(&mut root, &mut BTreeMap::new());
    (root, crossing)
}

/// What a set of CPUs is, in words.
pub(super) fn name(parts: &[Part]) -> String {
    parts.iter().map(part_name).collect::<Vec<_>>().join(", ")
}

pub(super) fn part_name(part: &Part) -> String {
    match part {
        Part::Package(id) => format!("package {id}"),
        Part::Node(id) => format!("node {id}"),
        Part::Die => "die".to_string(),
        Part::Cluster => "cluster".to_string(),
        Part::Core => "core".to_string(),
        Part::Cache { level, kind, size_bytes } => {
            let kind = match kind {
                CacheKind::Data => "d",
                CacheKind::Instruction => "i",
                CacheKind::Unified => "",
            };
            let size = size_bytes.map_or("of unknown size".to_string(), |bytes| words::bytes(bytes as f64));
            format!("L{level}{kind} {size}")
        }
    }
}

/// The order of parts in a title: from what holds most.
fn rank(part: &Part) -> (u32, u32, u32) {
    match part {
        Part::Package(_) => (0, 0, 0),
        Part::Node(_) => (1, 0, 0),
        Part::Die => (2, 0, 0),
        Part::Cluster => (3, 0, 0),
        Part::Core => (4, 0, 0),
        Part::Cache { level, kind, .. } => (5, 9u32.saturating_sub(*level), *kind as u32),
    }
}

/// A core that fills its package (or node) is a box inside it, with the inner caches.
fn split(item: Item) -> Item {
    let holder = |part: &Part| matches!(part, Part::Package(_) | Part::Node(_));
    let outer = |part: &Part| holder(part) || matches!(part, Part::Cache { level: 3.., .. });
    if !item.is_core() || !item.parts.iter().any(holder) {
        return item;
    }
    let (outside, inside): (Vec<Part>, Vec<Part>) = item.parts.into_iter().partition(outer);
    let mut whole = Item::new(outside, item.cpus.clone());
    whole.children.push(Item::new(inside, item.cpus));
    whole
}

/// Puts an item into the smallest that holds it; gives it back where it crosses another or would be
/// nested too deeply. Bigger ones come first.
fn insert(parent: &mut Item, item: Item, deepest: usize) -> Result<(), Item> {
    if item.cpus == parent.cpus && parent.parts.is_empty() {
        parent.parts = item.parts;
        parent.children = item.children;
        return Ok(());
    }
    if let Some(holder) = parent.children.iter_mut().find(|child| item.cpus.is_subset(&child.cpus)) {
        return if deepest > 0 { insert(holder, item, deepest - 1) } else { Err(item) };
    }
    if parent.children.iter().any(|child| !child.cpus.is_disjoint(&item.cpus)) {
        return Err(item);
    }
    let at = parent.children.partition_point(|child| child.cpus.first() < item.cpus.first());
    parent.children.insert(at, item);
    Ok(())
}

/// Numbers the shapes: parts without their numbers, count of CPUs, shapes of the children.
fn shapes(item: &mut Item, known: &mut BTreeMap<String, usize>) {
    for child in &mut item.children {
        shapes(child, known);
    }
    let part = |part: &Part| match part {
        Part::Package(_) => "package".to_string(),
        Part::Node(_) => "node".to_string(),
        other => format!("{other:?}"),
    };
    let parts: Vec<String> = item.parts.iter().map(part).collect();
    let inside: Vec<usize> = item.children.iter().map(|child| child.shape).collect();
    let key = format!("{parts:?} {} {inside:?}", item.cpus.len());
    let next = known.len();
    item.shape = *known.entry(key).or_insert(next);
}
