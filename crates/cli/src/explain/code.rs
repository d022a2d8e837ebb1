//! `assay explain ID --code`: a benchmark's own source and the loops that it times, out of the
//! program itself.
//!
//! The build packs the sources (build.rs). From a row's `run` on, every item that is named is
//! followed through the `use` lines to where it is defined; what all benchmarks share, the harness,
//! stands in `assay explain harness --code`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;

use bench::Benchmark;

use super::items::{self, Import, Item, paths};

/// Packed by build.rs.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sources.deflate"));

/// What all benchmarks share; a name that ends in `/` is a folder.
const HARNESS: [&str; 17] = [
    "crates/bench/src/lib.rs",
    "crates/bench/src/sampler.rs",
    "crates/bench/src/sampler/",
    "crates/bench/src/placement.rs",
    "crates/bench/src/placement/",
    "crates/bench/src/pretend.rs",
    "crates/bench/src/leaves.rs",
    "crates/sys/src/lib.rs",
    "crates/sys/src/affinity.rs",
    "crates/sys/src/clock.rs",
    "crates/sys/src/counters.rs",
    "crates/sys/src/counters/",
    "crates/sys/src/core_counters.rs",
    "crates/sys/src/mapping.rs",
    "crates/sys/src/process.rs",
    "crates/sys/src/scratch.rs",
    "crates/sys/src/scratch/",
];

/// What of the harness is shown when it is asked for: how a window is timed.
const SHOWN_HARNESS: [&str; 4] = [
    "crates/bench/src/sampler.rs",
    "crates/bench/src/sampler/calibration.rs",
    "crates/bench/src/sampler/look.rs",
    "crates/sys/src/clock.rs",
];

/// Names that lead from a row to its planning, and not to what it times.
const PLANNING: [&str; 2] = ["cases", "BENCHMARKS"];

struct File {
    path: String,
    text: String,
    module: Vec<String>,
    items: Vec<Item>,
    imports: Vec<Import>,
}

/// An item: numbers of its file and of itself.
type Place = (usize, usize);

struct Sources {
    files: Vec<File>,
    modules: BTreeMap<Vec<String>, usize>,
    /// `impl`s of a type, by the type's own item.
    impls: BTreeMap<Place, Vec<Place>>,
}

/// The code of a benchmark; `None`: no source has its row, which a test excludes.
pub fn of_benchmark(bench: &Benchmark) -> Option<String> {
    of_benchmark_in(&Sources::unpack()?, bench)
}

fn of_benchmark_in(sources: &Sources, bench: &Benchmark) -> Option<String> {
    let (place, lines) = sources.row(bench)?;
    let row = sources.item(place).text.lines().collect::<Vec<&str>>();
    let row = row.get(lines.clone())?.join("\n");
    let shown = sources.reached(place, &row, bench);
    let mut text = format!("// {}: {}\n", bench.id, bench.title);
    text.push_str("// Its row and what that runs, the loops it times (crates/kernels), and its helpers.\n");
    text.push_str("// How samples are timed: assay explain harness --code\n");
    let whole = row.lines().count() == sources.item(place).text.lines().count();
    let first = sources.item(place).lines.start + lines.start;
    let order = |file: &usize| {
        let path = &sources.files[*file].path;
        (*file != place.0, !path.starts_with("crates/kernels"), path.starts_with("crates/sys"), *file)
    };
    let mut files: Vec<usize> = shown
        .iter()
        .map(|(file, _)| *file)
        .chain([place.0])
        .collect::<BTreeSet<usize>>()
        .into_iter()
        .collect();
    files.sort_by_key(order);
    let mut contents = String::from("//\n// In this order:\n");
    let mut code = String::new();
    for file in files {
        let own = shown.iter().filter(|shown| shown.0 == file && (**shown != place || whole));
        let mut parts: Vec<(usize, &str, &str)> = own
            .map(|place| sources.item(*place))
            .map(|item| (item.lines.start, item.text.as_str(), item.name.as_str()))
            .collect();
        if file == place.0 && !whole {
            parts.push((first, &row, bench.title));
        }
        parts.sort();
        let path = &sources.files[file].path;
        contents.push_str(&listed(path, &parts));
        code.push_str(&format!("\n// ==== {path} ====\n"));
        for (line, part, _) in parts {
            code.push_str(&format!("\n// line {}\n{part}\n", line + 1));
        }
    }
    text.push_str(&contents);
    text.push_str(&code);
    Some(text)
}

/// A file's line in the contents: its lines shown, and the names of what is defined in them.
fn listed(path: &str, parts: &[(usize, &str, &str)]) -> String {
    const NAMED: usize = 6;
    let lines: usize = parts.iter().map(|(_, part, _)| part.lines().count()).sum();
    let mut names: Vec<&str> = parts.iter().map(|(.., name)| *name).filter(|name| !name.is_empty()).collect();
    names.dedup();
    let more = if names.len() > NAMED { ", ..." } else { "" };
    names.truncate(NAMED);
    format!("//   {path} ({lines} lines): {}{more}\n", names.join(", "))
}

/// The code of the harness, file by file.
pub fn of_harness() -> Option<String> {
    let sources = Sources::unpack()?;
    let shown = sources.files.into_iter().filter(|file| SHOWN_HARNESS.contains(&file.path.as_str()));
    let text = shown.map(|file| format!("// ==== {} ====\n\n{}\n", file.path, file.text.trim_end()));
    Some(text.collect::<Vec<String>>().join("\n"))
}

impl Sources {
    fn unpack() -> Option<Sources> {
        let mut all = String::new();
        flate2::read::DeflateDecoder::new(PACKED).read_to_string(&mut all).ok()?;
        let mut files = Vec::new();
        let mut rest = all.as_str();
        while let Some((head, after)) = rest.split_once('\n') {
            let (path, bytes) = head.split_once(' ')?;
            let (text, next) = after.split_at_checked(bytes.parse().ok()?)?;
            let (items, imports) = items::parse(text);
            files.push(File {
                path: path.to_string(),
                text: text.to_string(),
                module: module_of(path),
                items,
                imports,
            });
            rest = next;
        }
        let modules = files.iter().enumerate().map(|(at, file)| (file.module.clone(), at)).collect();
        let mut sources = Sources { files, modules, impls: BTreeMap::new() };
        sources.impls = sources.impls_by_type();
        Some(sources)
    }

    fn item(&self, (file, item): Place) -> &Item {
        &self.files[file].items[item]
    }

    fn impls_by_type(&self) -> BTreeMap<Place, Vec<Place>> {
        let mut impls: BTreeMap<Place, Vec<Place>> = BTreeMap::new();
        for (file, source) in self.files.iter().enumerate() {
            for (at, item) in source.items.iter().enumerate().filter(|(_, item)| item.is_impl) {
                for of in self.resolve(&source.module, std::slice::from_ref(&item.name), 0) {
                    impls.entry(of).or_default().push((file, at));
                }
            }
        }
        impls
    }

    /// Where a row stands: its item, and its lines in that.
    fn row(&self, bench: &Benchmark) -> Option<(Place, std::ops::Range<usize>)> {
        let title = format!("\"{}\"", bench.title);
        let file = self.files.iter().position(|file| file.path == bench.source)?;
        let mut found = self.files[file].items.iter().enumerate().filter_map(|(at, item)| {
            let lines: Vec<&str> = item.text.lines().collect();
            let line = lines.iter().position(|line| line.contains(&title))?;
            Some(((file, at), element(&lines, line)))
        });
        found.next()
    }

    /// All items that a row leads to, itself among them.
    fn reached(&self, row: Place, code: &str, bench: &Benchmark) -> BTreeSet<Place> {
        let mut reached = BTreeSet::from([row]);
        let mut open: VecDeque<Place> = self.named_by(row.0, code).into();
        // A component of the rate suite is a row of data in `kernels`; what runs all of them is one
        // function.
        if bench.source.starts_with("crates/kernels/") {
            let words = |text: &str| text.split("::").map(str::to_string).collect::<Vec<String>>();
            open.extend(self.resolve(&words("bench"), &words("bench::rate::run"), 0));
        }
        while let Some(place) = open.pop_front() {
            if self.is_harness(place.0) || self.is_other_component(place.0, bench) || !reached.insert(place) {
                continue;
            }
            open.extend(self.named_by(place.0, &self.item(place).text));
            open.extend(self.impls.get(&place).into_iter().flatten());
        }
        reached
    }

    fn is_harness(&self, file: usize) -> bool {
        let path = &self.files[file].path;
        HARNESS.iter().any(|own| path == own || own.ends_with('/') && path.starts_with(own))
    }

    /// Whether a file belongs to another component of the rate suite than this row's.
    fn is_other_component(&self, file: usize, bench: &Benchmark) -> bool {
        let own = bench.source.trim_end_matches(".rs");
        let path = &self.files[file].path;
        bench.source.starts_with("crates/kernels/src/rate/")
            && path.starts_with("crates/kernels/src/rate/")
            && !path.starts_with(own)
    }

    /// What a piece of code of a file names.
    fn named_by(&self, file: usize, code: &str) -> Vec<Place> {
        let module = &self.files[file].module;
        let of_measuring = |path: &Vec<String>| !path.iter().any(|word| PLANNING.contains(&word.as_str()));
        let paths = paths(code).into_iter().filter(of_measuring);
        paths.flat_map(|path| self.resolve(module, &path, 0)).collect()
    }

    /// What a path that stands in a module leads to.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Vec<Place> {
        const DEEPEST: usize = 12;
        let Some(file) = self.modules.get(module).copied() else { return Vec::new() };
        let Some(first) = path.first().filter(|_| depth < DEEPEST) else { return Vec::new() };
        let below = |mut above: Vec<String>, rest: &[String]| match rest {
            [] => Vec::new(),
            rest => {
                // The longest module that the path begins with, then a name in it.
                let mut rest = rest;
                while let [next, after @ ..] = rest {
                    let deeper: Vec<String> = above.iter().cloned().chain([next.clone()]).collect();
                    if after.is_empty() || !self.modules.contains_key(&deeper) {
                        break;
                    }
                    (above, rest) = (deeper, after);
                }
                self.resolve(&above, rest, depth + 1)
            }
        };
        match first.as_str() {
            "crate" => return below(module[..1].to_vec(), &path[1..]),
            "self" => return below(module.to_vec(), &path[1..]),
            "super" => return below(module[..module.len().max(2) - 1].to_vec(), &path[1..]),
            _ => {}
        }
        let source = &self.files[file];
        let own: Vec<Place> = (source.items.iter().enumerate())
            .filter(|(_, item)| !item.is_impl && item.name == *first)
            .map(|(at, _)| (file, at))
            .collect();
        if !own.is_empty() {
            return own;
        }
        let child: Vec<String> = module.iter().cloned().chain([first.clone()]).collect();
        // A module's bare name leads nowhere, but a function may have the same.
        if path.len() > 1 && self.modules.contains_key(&child) {
            return below(child, &path[1..]);
        }
        let imported = source.imports.iter().filter(|import| import.name == *first && import.path != *path);
        for import in imported {
            let whole: Vec<String> = import.path.iter().chain(&path[1..]).cloned().collect();
            let found = self.resolve(module, &whole, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        if path.len() > 1 && self.modules.contains_key(std::slice::from_ref(first)) {
            return below(vec![first.clone()], &path[1..]);
        }
        for import in source.imports.iter().filter(|import| import.name == "*") {
            let whole: Vec<String> = import.path.iter().chain(path).cloned().collect();
            let found = self.resolve(module, &whole, depth + 1);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

/// The element of an item's list in which a line stands: the lines of a `Benchmark { … }`, a call,
/// or the whole item.
fn element(lines: &[&str], line: usize) -> std::ops::Range<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    if !lines[line].trim_start().starts_with("title:") && lines[line].ends_with("),") {
        return line..line + 1;
    }
    let above = |at: &usize| !lines[*at].trim().is_empty() && indent(lines[*at]) < indent(lines[line]);
    let begin = (0..line).rev().find(above).unwrap_or(0);
    if indent(lines[begin]) == 0 {
        return 0..lines.len();
    }
    let end = (line..lines.len()).find(|at| above(at)).unwrap_or(lines.len() - 1);
    begin..end + 1
}

/// The module that a file is; what is for one architecture is called alike on both.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("crates/").trim_end_matches(".rs");
    let (name, inside) = path.split_once("/src/").unwrap_or((path, ""));
    let words = inside.split('/').filter(|word| *word != "lib").map(|word| match word {
        "x86_64" | "aarch64" => "machine_code",
        word => word,
    });
    std::iter::once(name).chain(words).map(str::to_string).collect()
}

#[cfg(test)]
mod tests;
