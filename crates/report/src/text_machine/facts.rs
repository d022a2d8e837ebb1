//! What does not fit into boxes: kernel, clock, power, limits, load.

use std::collections::BTreeMap;

use diagnose::words;
use machine::{Bound, ContainerKind, ContainerLimit, Dimm, Enclosure, Hypervisor, IdleState, Machine};
use model::CpuSet;

use super::super::plain::plain;
use super::Style;
use super::disk;
use super::line::{Line, Role};
use super::network;

/// Foreign strings are cut at this many characters.
const LONGEST: usize = 240;

/// A host that contradicts itself more often is not described better by more words.
const REMARKS: usize = 24;

/// Column where the facts begin.
const INDENT: usize = 14;

/// Bytes as people read them.
pub(super) fn size(bytes: u64) -> String {
    words::bytes(bytes as f64)
}

fn frequency(khz: u64) -> String {
    match khz {
        1_000_000.. => format!("{:.2} GHz", khz as f64 / 1e6),
        _ => format!("{} MHz", khz / 1000),
    }
}

/// The facts, each wrapped to the width.
pub(super) fn lines(machine: &Machine, style: &Style) -> Vec<Line> {
    let facts = [
        ("machine", hardware(machine)),
        ("processor", processor(machine)),
        ("kinds", sets(&machine.cpus.kinds)),
        ("usable", usable(machine)),
        ("memory", memory(machine)),
        ("modules", modules(machine)),
        ("huge pages", huge_pages(machine)),
        ("kernel", kernel(machine)),
        ("command line", machine.kernel.command_line.as_deref().map(|line| plain(line, LONGEST))),
        ("clock", clock(machine)),
        ("frequency", frequencies(machine)),
        ("idle states", idle_states(&machine.idle_states)),
        ("may use", may_use(machine, true)),
        ("scheduler", scheduler(machine)),
        ("mitigations", mitigations(&machine.kernel.mitigations)),
        ("disk", machine.disk.as_ref().map(disk::place)),
        ("devices", machine.disk.as_ref().and_then(disk::devices)),
        ("disk limits", machine.disk.as_ref().and_then(disk::limits)),
        ("load", load(machine)),
        ("interfaces", network::interfaces(machine)),
    ];
    let around = machine.enclosures.iter().map(|around| ("inside", Some(enclosure(around))));
    let limits =
        machine.container.iter().flat_map(|own| &own.limits).map(|own| ("container", Some(limit(own))));
    let around = around.chain(limits);
    let ends = network::ends(machine);
    let facts = facts.into_iter().chain(around).chain(ends.into_iter().map(|(name, end)| (name, Some(end))));
    let mut lines = Vec::new();
    // Where SMBIOS tables alone were given, nothing else was looked for.
    let tables_only = machine.cpus.online.is_empty() && !machine.dimms.is_empty();
    for (name, fact) in facts {
        let Some(fact) =
            fact.filter(|fact| !tables_only || !["unknown", "size unknown"].contains(&fact.as_str()))
        else {
            continue;
        };
        let head = Line::of(Role::Title, format!("{name:<INDENT$}"));
        lines.extend(wrapped(head, &fact, style.width, &" ".repeat(INDENT)));
    }
    for remark in machine.remarks.iter().take(REMARKS) {
        let head = Line::of(Role::Warning, format!("{:<INDENT$}", "note"));
        lines.extend(wrapped(head, &plain(remark, LONGEST), style.width, &" ".repeat(INDENT)));
    }
    if machine.remarks.len() > REMARKS {
        let more = format!("… and {} more notes (all of them in --json)", machine.remarks.len() - REMARKS);
        lines.push(Line::of(Role::Muted, plain(&more, style.width)));
    }
    lines
}

/// `text` broken at blanks behind a head, further lines indented. Words longer than a line are
/// broken anywhere.
pub(super) fn wrapped(head: Line, text: &str, width: usize, indent: &str) -> Vec<Line> {
    let margin = indent.chars().count();
    let mut used = head.width();
    let mut lines = vec![head];
    // No text behind the head or indent yet, so no blank before the next word.
    let mut fresh = true;
    for word in text.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        while !rest.is_empty() {
            let gap = usize::from(!fresh);
            let room = width.saturating_sub(used + gap);
            if rest.len() > room && (!fresh || used > margin) {
                lines.push(Line::of(Role::Plain, indent));
                (used, fresh) = (margin, true);
                continue;
            }
            let piece: String = rest.drain(..rest.len().min(room.max(1))).collect();
            used += gap + piece.chars().count();
            if let Some(line) = lines.last_mut() {
                line.push(Role::Plain, " ".repeat(gap) + &piece);
            }
            fresh = false;
        }
    }
    lines
}

fn joined(parts: Vec<Option<String>>, separator: &str) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(separator))
}

fn short(text: &Option<String>) -> Option<String> {
    text.as_deref().map(|text| plain(text, 80))
}

fn sets(named: &BTreeMap<String, CpuSet>) -> Option<String> {
    let said = |(name, cpus): (&String, &CpuSet)| {
        Some(format!("{}: {}", plain(name, 60), plain(&cpus.to_string(), 80)))
    };
    joined(named.iter().map(said).collect(), "; ")
}

fn hardware(machine: &Machine) -> Option<String> {
    let dmi = &machine.dmi;
    let vendor =
        dmi.vendor.as_ref().filter(|vendor| !dmi.product.as_ref().is_some_and(|p| p.starts_with(*vendor)));
    let made = joined(vec![short(&vendor.cloned()), short(&dmi.product)], " ");
    let board = short(&dmi.board).map(|board| format!("board {board}"));
    let bios = joined(vec![short(&dmi.bios_vendor), short(&dmi.bios_version), short(&dmi.bios_date)], " ");
    let hypervisor = match &machine.hypervisor {
        Hypervisor::Unknown => "whether it is a guest is unknown".to_string(),
        Hypervisor::None => "bare metal".to_string(),
        Hypervisor::Guest(name) => words::guest(name),
    };
    joined(vec![made, board, bios.map(|bios| format!("firmware {bios}")), Some(hypervisor)], ", ")
}

pub(super) fn processor(machine: &Machine) -> Option<String> {
    let cpus = &machine.cpus;
    // The other answers mean that there is nothing to switch.
    let smt = cpus.smt_control.as_deref().filter(|smt| matches!(*smt, "on" | "off" | "forceoff"));
    let smt = smt.map(|smt| format!("SMT {smt}"));
    let microcode = cpus.microcode.as_deref().map(|code| format!("microcode {}", plain(code, 20)));
    // Some kernels pad the name with blanks.
    let name = cpus.name().map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "));
    joined(vec![short(&name).or(short(&cpus.vendor)), short(&cpus.architecture), microcode, smt], ", ")
}

fn usable(machine: &Machine) -> Option<String> {
    let cpus = &machine.cpus;
    let list = |name: &str, set: &CpuSet| {
        (!set.is_empty()).then(|| format!("{name} {}", plain(&set.to_string(), 100)))
    };
    let part = (cpus.allowed != cpus.online).then(|| {
        let allowed = plain(&cpus.allowed.to_string(), 100);
        format!("CPUs {allowed} of {} online (the others are in brackets above)", cpus.online.len())
    });
    joined(vec![part, list("isolated", &cpus.isolated), list("without tick", &cpus.nohz_full)], ", ")
}

pub(super) fn memory(machine: &Machine) -> Option<String> {
    let memory = &machine.memory;
    let swap = match memory.swap_total_bytes {
        Some(0) => Some("no swap".to_string()),
        Some(total) => {
            let free = memory.swap_free_bytes.map(|free| format!(", {} of it free", size(free)));
            Some(format!("swap {}{}", size(total), free.unwrap_or_default()))
        }
        None => None,
    };
    let balancing = memory.numa_balancing.map(|on| format!("NUMA balancing {}", on_off(on)));
    let side = machine.nodes.iter().flat_map(|node| &node.memory_side_caches);
    let side = side.fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
    let side = (side > 0).then(|| format!("memory-side caches {}", size(side)));
    joined(
        vec![
            Some(memory.total_bytes.map_or("size unknown".to_string(), size)),
            memory.available_bytes.map(|bytes| format!("{} available", size(bytes))),
            swap,
            side,
            balancing,
            memory.page_bytes.map(|bytes| format!("pages of {}", size(bytes))),
        ],
        ", ",
    )
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Memory modules, counted by speed and size: `4 × 16 GiB, 6 × 64 GiB at 2400 MT/s`.
pub(super) fn modules(machine: &Machine) -> Option<String> {
    let mut by_speed: BTreeMap<String, BTreeMap<Option<u64>, usize>> = BTreeMap::new();
    let is_empty = |dimm: &&Dimm| dimm.size_bytes == Some(0);
    for dimm in machine.dimms.iter().filter(|dimm| dimm.is_memory()) {
        let speed = dimm.configured_mts.or(dimm.speed_mts).map(|speed| {
            let rated =
                dimm.speed_mts.filter(|rated| *rated != speed).map(|rated| format!(" (rated {rated})"));
            format!(" at {speed} MT/s{}", rated.unwrap_or_default())
        });
        let sizes = by_speed.entry(speed.unwrap_or_default()).or_default();
        *sizes.entry(dimm.size_bytes).or_default() += 1;
    }
    let filled = by_speed.into_iter().map(|(speed, sizes)| {
        let counted = |(bytes, count): (Option<u64>, usize)| {
            format!("{count} × {}", bytes.map_or("unknown size".to_string(), size))
        };
        let sizes: Vec<String> = sizes.into_iter().map(counted).collect();
        Some(format!("{}{speed}", sizes.join(", ")))
    });
    let empty = match machine.dimms.iter().filter(is_empty).count() {
        0 => None,
        slots => Some(words::counted(slots, "slot") + " empty"),
    };
    let untold = match machine.dimms.iter().filter(|dimm| dimm.is_untold).count() {
        0 => None,
        slots => Some(words::counted(slots, "slot") + " unreported"),
    };
    let kept: Vec<_> = machine.dimms.iter().filter(|dimm| dimm.is_filled() && dimm.persistent).collect();
    let bytes = kept.iter().filter_map(|dimm| dimm.size_bytes).sum();
    let kept = (!kept.is_empty())
        .then(|| format!("{} of {}", words::counted(kept.len(), "persistent module"), size(bytes)));
    joined(filled.chain([empty, untold, kept]).collect(), ", ")
}

pub(super) fn huge_pages(machine: &Machine) -> Option<String> {
    let memory = &machine.memory;
    let bytes =
        memory.transparent_huge_page_bytes.map(|bytes| format!(" of {}", size(bytes))).unwrap_or_default();
    let defrag = short(&memory.transparent_huge_page_defrag).map(|defrag| format!(", defrag {defrag}"));
    let transparent = short(&memory.transparent_huge_pages)
        .map(|mode| format!("transparent {mode}{bytes}{}", defrag.unwrap_or_default()));
    let pools = memory.huge_pages.iter().filter(|pool| pool.total > 0);
    let pool = |pool: &machine::HugePages| {
        Some(format!("{} × {} ({} free)", pool.total, size(pool.page_bytes), pool.free))
    };
    let pools = joined(pools.map(pool).collect(), ", ");
    let none = (!memory.huge_pages.is_empty()).then(|| "no explicit pages".to_string());
    joined(vec![transparent, pools.or(none)], ", ")
}

pub(super) fn kernel(machine: &Machine) -> Option<String> {
    let kernel = &machine.kernel;
    let release = short(&kernel.release).map(|release| format!("Linux {release}"));
    let preemption = short(&kernel.preemption).map(|preemption| format!("preemption {preemption}"));
    let slice = kernel.slice_ns.map(|ns| format!("slice {:.2} ms", ns as f64 / 1e6));
    let autogroup = kernel.autogroup.map(|on| format!("autogroup {}", on_off(on)));
    joined(vec![Some(release.unwrap_or("unknown".to_string())), preemption, slice, autogroup], ", ")
}

pub(super) fn clock(machine: &Machine) -> Option<String> {
    let clock = &machine.clock;
    let current = short(&clock.current)?;
    let others: Vec<&String> =
        clock.available.iter().filter(|name| clock.current.as_ref() != Some(name)).collect();
    let others = others.iter().map(|name| plain(name, 30)).collect::<Vec<_>>().join(", ");
    let others = (!others.is_empty()).then(|| format!("also offered: {others}"));
    let steady = clock
        .tsc_invariant
        .map(|steady| if steady { "TSC invariant".to_string() } else { "TSC not invariant".to_string() });
    joined(vec![Some(current), others, steady], "; ")
}

pub(super) fn frequencies(machine: &Machine) -> Option<String> {
    let told = &machine.frequency;
    let governors = match told.governors.len() {
        1 => told.governors.keys().next().map(|name| format!("governor {}", plain(name, 30))),
        _ => sets(&told.governors).map(|sets| format!("governors {sets}")),
    };
    let range = match (told.min_khz, told.max_khz) {
        (Some(low), Some(high)) => Some(format!("{:.2}–{:.2} GHz", low as f64 / 1e6, high as f64 / 1e6)),
        (None, Some(high)) => Some(format!("up to {}", frequency(high))),
        _ => None,
    };
    let turbo = told.turbo.map(|on| format!("turbo {}", on_off(on)));
    let base = told.base_khz.map(|khz| format!("nominal {}", frequency(khz)));
    let driver = short(&told.driver).map(|driver| format!("driver {driver}"));
    joined(vec![driver, governors, range, base, turbo], ", ")
}

fn idle_states(states: &[IdleState]) -> Option<String> {
    let state = |state: &IdleState| {
        let latency = state.latency_us.map(|us| format!(" {us} µs")).unwrap_or_default();
        let off = if state.disabled == Some(true) { " (off)" } else { "" };
        Some(format!("{}{latency}{off}", plain(&state.name, 20)))
    };
    joined(states.iter().take(12).map(state).collect(), ", ")
}

/// Containers and sandboxes by name, the innermost first.
pub(super) fn enclosures(machine: &Machine) -> Option<String> {
    let names = machine.around().map(|enclosure| Some(enclosure.name.to_string()));
    let mut names: Vec<Option<String>> = names.collect();
    let kind = machine.container.as_ref().map(|own| own.kind).filter(|kind| *kind != ContainerKind::None);
    // Containers come first.
    if let (Some(kind), Some(Some(name))) = (kind, names.first_mut()) {
        name.push_str(&format!(" ({})", kind.word()));
    }
    joined(names, ", ")
}

/// What a container takes away, what that costs, and the sign of it.
fn limit(limit: &ContainerLimit) -> String {
    format!("{}: {}; by {}", limit.limit, limit.costs, plain(&limit.sign, LONGEST))
}

/// The sign of one, and what it hides.
fn enclosure(enclosure: &Enclosure) -> String {
    let sign = plain(&enclosure.sign, LONGEST);
    format!("{}, by {sign}; hides: {}", enclosure.name, enclosure.hides.join("; "))
}

/// What may really be used: the tightest limit of each, where it stands only in the long form.
pub(super) fn may_use(machine: &Machine, is_long: bool) -> Option<String> {
    let (usable, limits) = (&machine.usable, &machine.limits);
    let bound = |bound: Bound, at: &Option<String>, more: Option<String>| {
        let at = at.as_deref().filter(|_| is_long).map(|at| format!(" of {}", plain(at, 100)));
        let more = more.map(|more| format!(", {more}")).unwrap_or_default();
        format!("({}{}{more})", bound.words(), at.unwrap_or_default())
    };
    let cpus = usable.cpus.as_ref().map(|cpus| match cpus.bound_by {
        Bound::Machine if cpus.of == 1 => "the one CPU".to_string(),
        Bound::Machine => format!("all {} CPUs", cpus.of),
        _ => {
            let period = cpus.period_us.filter(|_| is_long);
            let period = period.map(|us| format!("period {} ms", hundredths(us as f64 / 1000.0)));
            let bound = bound(cpus.bound_by, &cpus.at, period);
            format!("{} of {} {bound}", hundredths(cpus.cpus), words::counted(cpus.of, "CPU"))
        }
    });
    let memory = usable.memory.as_ref().map(|memory| match memory.bound_by {
        Bound::Machine => format!("all {}", size(memory.bytes)),
        _ => {
            let used = limits.memory_used_bytes.filter(|_| is_long && memory.bound_by == Bound::MemoryLimit);
            let bound = bound(memory.bound_by, &memory.at, used.map(|used| format!("{} used", size(used))));
            let of = memory.of_bytes.map(|bytes| format!(" of {}", size(bytes))).unwrap_or_default();
            format!("{}{of} {bound}", size(memory.bytes))
        }
    });
    let nodes: CpuSet = machine.nodes.iter().map(|node| node.id).collect();
    let mems = limits.mems.as_ref().filter(|mems| is_long && !nodes.is_subset(mems));
    let mems = mems.map(|mems| format!("memory nodes {} only", plain(&mems.to_string(), 80)));
    let tasks = usable.tasks.as_ref().map(|tasks| {
        let bound = is_long.then(|| bound(tasks.bound_by, &tasks.at, None));
        format!("{} tasks{}", tasks.tasks, bound.map(|bound| format!(" {bound}")).unwrap_or_default())
    });
    let above = (limits.groups_above == Some(true)).then(|| {
        if is_long {
            "limits of control groups above these cannot be seen".to_string()
        } else {
            "limits above unseen".to_string()
        }
    });
    joined(vec![cpus, memory, mems, tasks, above], "; ")
}

/// At most two digits behind the point, without zeros at the end.
fn hundredths(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn scheduler(machine: &Machine) -> Option<String> {
    let (cpu, levels) = machine.kernel.domains.iter().next()?;
    let level = |level: &machine::Domain| {
        let cpus =
            level.cpus.as_ref().map(|cpus| format!("({})", plain(&cpus.to_string(), 40))).unwrap_or_default();
        Some(format!("{}{cpus}", level.name.as_deref().map(|name| plain(name, 16)).unwrap_or_default()))
    };
    joined(levels.iter().map(level).collect(), ", ").map(|levels| format!("domains of CPU {cpu}: {levels}"))
}

/// How many vulnerabilities there are of each answer; those that are open by name.
fn mitigations(told: &BTreeMap<String, String>) -> Option<String> {
    let names = |matches: &dyn Fn(&str) -> bool| -> Vec<String> {
        told.iter().filter(|(_, said)| matches(said)).map(|(name, _)| plain(name, 40)).collect()
    };
    let open = names(&|said| said.starts_with("Vulnerable"));
    let mitigated = names(&|said| said.starts_with("Mitigation") || said.starts_with("KVM: Mitigation"));
    let safe = names(&|said| said == "Not affected");
    let other = told.len() - open.len() - mitigated.len() - safe.len();
    let listed = |word: &str, names: Vec<String>| {
        (!names.is_empty()).then(|| format!("{} {word} ({})", names.len(), names.join(", ")))
    };
    let counted = |count: usize, word: &str| (count > 0).then(|| format!("{count} {word}"));
    joined(
        vec![
            listed("open", open),
            listed("mitigated", mitigated),
            counted(safe.len(), "not affected"),
            counted(other, "unclear"),
        ],
        ", ",
    )
}

pub(super) fn load(machine: &Machine) -> Option<String> {
    let load = &machine.load;
    let average = load
        .average
        .map(|[one, five, fifteen]| format!("{one:.2} {five:.2} {fifteen:.2} (1, 5, 15 minutes)"));
    let pressure = [("CPU", load.psi_cpu), ("memory", load.psi_memory), ("I/O", load.psi_io)];
    let said = |(name, share): (&str, Option<f64>)| share.map(|share| format!("{name} {share:.1}%"));
    let pressure =
        joined(pressure.into_iter().map(said).collect(), ", ").map(|p| format!("tasks waiting for {p}"));
    let up = load.uptime_s.map(|seconds| match seconds {
        s if s < 7200.0 => format!("up {:.0} minutes", s / 60.0),
        s if s < 172_800.0 => format!("up {:.0} hours", s / 3600.0),
        s => format!("up {:.0} days", s / 86_400.0),
    });
    let still = (load.counters_keep_time == Some(false)).then(|| "counters stand still".to_string());
    joined(vec![average, still, pressure, up], "; ")
}
