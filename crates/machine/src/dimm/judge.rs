//! Whether a population is balanced: the verdict, and the evidence for it.
//!
//! Placement alone makes the verdict. `balanced`: every channel of every socket holds the same;
//! `near_balanced`: sockets and filled channels are alike and one interleave set covers them, but
//! channels are empty (the words of Dell's white papers); `unbalanced`: channels, controllers or
//! sockets differ, a socket has no memory, or the filled channels need several interleave sets;
//! `balanced_with_differences`: channels hold the same, of different modules. Mixed modules and
//! speeds below the rated one are findings beside it.

use std::collections::{BTreeMap, BTreeSet};

use super::balance::{Placed, finding, gib, listed};
use super::cpus::{Cpu, Facts, SPEED_SOURCE};
use super::place::{self, Unplaced};
use super::platforms::Rule;
use super::population::{Confidence, DimmFinding, Population, SocketMemory};
use super::speed::{self, Cause, Slow};
use super::{Dimm, Hypervisor, Processor, Tables, moves};
use model::Severity;

pub(super) fn judge(
    tables: &Tables,
    cpu: Option<Cpu>,
    rule: Option<&Rule>,
    hypervisor: &Hypervisor,
) -> Population {
    let mut judged = Population {
        dimm_arrays: tables.arrays.clone(),
        dimm_ranges: tables.ranges.clone(),
        ..Population::default()
    };
    let memory: Vec<&Dimm> = tables.dimms.iter().filter(|dimm| dimm.is_memory()).collect();
    if memory.is_empty() {
        judged.dimm_remarks = [listing(tables), tables.remarks.clone()].concat();
        return judged;
    }
    let facts = cpu.map(|cpu| cpu.facts);
    judged.dimm_remarks = remarks(tables, cpu, rule, hypervisor);
    judged.dimm_platform = rule.map(|rule| rule.family.to_string());
    judged.dimm_source = rule.map(|rule| rule.source.to_string());
    judged.dimm_cpu_family = facts.map(|facts| facts.name.to_string());
    judged.dimm_cpu_source = facts.map(|facts| facts.source.to_string());
    let (speeds, slow) = speed::speed(&tables.dimms, cpu, is_whole(tables));
    let mut findings = modules(&memory);
    findings.extend(below_rated(&slow, speeds.cpu_limit));
    judged.dimm_speed = Some(speeds);
    let unknown = rule.and_then(|rule| unknown_channels(tables, facts, rule));
    judged.dimm_remarks.extend(unknown.clone());
    let is_told = tables.dimms.iter().all(|dimm| !dimm.is_untold);
    if let Some(rule) = rule
        && is_told
        && is_whole(tables)
        && unknown.is_none()
        && memory.iter().all(|dimm| dimm.socket.is_some() && dimm.size_bytes.is_some())
    {
        let sockets = sockets(tables, facts, rule);
        let mut placed = Placed { sockets: &sockets, facts, unbalanced: false, confidence: Confidence::High };
        let mut found = placed.findings();
        let verdict = placed.verdict(&findings, &found);
        if sockets.iter().any(|socket| socket.slots.is_none()) || facts.is_none() {
            placed.confidence = placed.confidence.min(Confidence::Medium);
        }
        judged.dimm_move = moves::remedy(&tables.dimms, &sockets, facts, verdict, rule.is_order_known);
        // The gravest of them says what to do.
        found.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        if let Some(first) = found.first_mut() {
            first.remedy = judged.dimm_move.clone();
        }
        judged.dimm_verdict = Some(verdict);
        judged.dimm_confidence = Some(placed.confidence);
        judged.dimm_sockets = sockets;
        findings = [found, findings].concat();
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    judged.dimm_findings = findings;
    judged
}

fn remarks(tables: &Tables, cpu: Option<Cpu>, rule: Option<&Rule>, hypervisor: &Hypervisor) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Hypervisor::Guest(name) = hypervisor {
        remarks.push(format!("a guest ({name}) sees modules that its hypervisor invents, not the host's"));
    }
    // Whose names and channels the invented ones would be is no question.
    let invented = !remarks.is_empty();
    match rule {
        None if invented || !is_whole(tables) => {}
        None if tables.is_soldered() => {
            remarks.push("the memory is soldered (LPDDR): no module can be moved".to_string())
        }
        None => remarks.push(why_not_placed(tables, cpu)),
        Some(rule) if rule.is_chipsets => {
            remarks.push("the processors share the chipset's memory: it counts as socket 0's".to_string())
        }
        Some(_) if cpu.is_none() => remarks.push(
            "the processor family is unknown: the number of channels per socket comes from the slots' names"
                .to_string(),
        ),
        _ => {}
    }
    remarks.extend(rule.filter(|rule| !rule.is_seen()).map(|rule| {
        format!(
            "the rule for these slots ({}) comes from a document only; it was never tested with an inventory of \
             such a board",
            rule.family
        )
    }));
    remarks.extend(cpu.filter(|cpu| rule.is_some() && !cpu.facts.is_seen()).map(|cpu| {
        format!(
            "the number of channels of this processor ({}) comes from a document only; it was never tested with \
             an inventory",
            cpu.facts.name
        )
    }));
    let disabled =
        tables.processors.iter().filter(|processor| processor.is_disabled).map(|one| &one.designation);
    let disabled = listed(disabled.map(|name| name.chars().take(40).collect()));
    if !disabled.is_empty() {
        remarks.push(format!("a processor is switched off ({disabled}): its socket needs no memory"));
    }
    remarks.extend(persistent(tables));
    remarks.extend(listing(tables));
    remarks.extend(tables.remarks.iter().cloned());
    let unknown = tables.dimms.iter().filter(|dimm| dimm.size_bytes.is_none() && !dimm.is_untold).count();
    if unknown > 0 {
        remarks.push(format!("the size of {unknown} modules is unknown: their placement is not judged"));
    }
    remarks
}

/// Modules that keep their content, which stand apart.
fn persistent(tables: &Tables) -> Option<String> {
    let modules: Vec<&Dimm> =
        tables.dimms.iter().filter(|dimm| dimm.persistent && dimm.is_filled()).collect();
    let bytes: u64 = modules.iter().filter_map(|dimm| dimm.size_bytes).sum();
    let names = listed(modules.iter().take(6).map(|dimm| dimm.name().chars().take(40).collect()));
    (!modules.is_empty()).then(|| {
        format!(
            "persistent modules (NVDIMM, Optane) count separately: {}, {} ({names})",
            modules.len(),
            gib(bytes)
        )
    })
}

const NOT_JUDGED: &str = "so the placement is not judged";

/// Whether all slots are listed, as far as known.
fn is_whole(tables: &Tables) -> bool {
    let missing = tables.missing;
    tables.cut.is_none() && missing.slots == 0 && (missing.perhaps == 0 || tables.is_ended)
}

/// Numbers of the sockets whose processor works and has memory of its own.
fn working<'a>(tables: &'a Tables, rule: &Rule) -> impl Iterator<Item = u32> + use<'a> {
    let most = if rule.is_chipsets { 1 } else { usize::MAX };
    let works = |(_, one): &(usize, &Processor)| one.populated == Some(true) && !one.is_disabled;
    tables.processors.iter().enumerate().take(most).filter(works).map(|(number, _)| number as u32)
}

/// Why it is not known which channels are empty, though slots are distinguished by channel.
fn unknown_channels(tables: &Tables, facts: Option<&Facts>, rule: &Rule) -> Option<String> {
    if !is_whole(tables) {
        return None;
    }
    let is_placed = tables.dimms.iter().all(|dimm| dimm.socket.is_some());
    let is_listed = |socket: u32| tables.dimms.iter().any(|dimm| dimm.socket == Some(socket));
    let silent = working(tables, rule).find(|socket| is_placed && !tables.is_ended && !is_listed(*socket));
    if let Some(socket) = silent {
        return Some(format!(
            "socket {socket} has a processor but no listed slot, and the list has no end: its slots may be \
             empty or left out, {NOT_JUDGED}; give all that dmidecode prints"
        ));
    }
    let announced: u32 = tables.arrays.iter().filter_map(|array| array.slots).fold(0, u32::saturating_add);
    let is_all = announced > 0 && announced as usize <= tables.dimms.len();
    let none_empty = tables.dimms.iter().all(|dimm| dimm.is_filled());
    (facts.is_none() && none_empty && !is_all).then(|| {
        format!(
            "neither the processor nor an empty slot is listed: the number of channels is unknown, \
             {NOT_JUDGED}; give all that dmidecode prints (without -t)"
        )
    })
}

/// What the text does not list, or not of all.
fn listing(tables: &Tables) -> Vec<String> {
    let mut remarks = Vec::new();
    let untold = tables.dimms.iter().filter(|dimm| dimm.is_untold).count();
    if untold > 0 {
        remarks.push(format!(
            "{untold} slots have no size lines in the text: whether they hold modules is unknown, so the \
             placement is too"
        ));
    }
    if let Some(why) = &tables.cut {
        remarks.push(format!("{why}: it is cut, {NOT_JUDGED}; give all that dmidecode prints"));
    }
    let (more, perhaps, ended) = (tables.missing.slots, tables.missing.perhaps, tables.is_ended);
    match tables.cut {
        None if more > 0 && ended => remarks.push(format!(
            "the board's arrays have {more} more slots than the complete list: a contradiction, {NOT_JUDGED}"
        )),
        None if more > 0 => remarks.push(format!(
            "the board's arrays have {more} more slots than the text lists: it is cut, {NOT_JUDGED}; give all \
             that dmidecode prints"
        )),
        None if perhaps > 0 && !ended => remarks.push(format!(
            "{perhaps} devices in the arrays are not modules, so {perhaps} slots are not listed: the text may \
             be cut, {NOT_JUDGED}; give all that dmidecode prints (without -t)"
        )),
        _ => {}
    }
    remarks
}

/// The true reason why slots are unknown apart by channel.
fn why_not_placed(tables: &Tables, cpu: Option<Cpu>) -> String {
    let system = tables.dmi.vendor.is_some() || tables.dmi.board_vendor.is_some();
    let lacking = match (system, !tables.processors.is_empty() || cpu.is_some()) {
        (false, false) => Some("name neither the system nor the processors"),
        (false, true) => Some("do not name the system"),
        (true, false) => Some("do not name the processors"),
        (true, true) => None,
    };
    if let Some(lacking) = lacking {
        return format!(
            "the tables {lacking}, so the channels of slots are unknown: give all that dmidecode prints \
             (without -t)"
        );
    }
    let cut = |text: &str| text.chars().take(60).collect::<String>();
    let version = tables.processors.iter().find_map(|processor| processor.version.as_deref());
    let why = match place::why_not(tables, cpu) {
        Unplaced::Names => "Assay has no rule for this platform's slots".to_string(),
        Unplaced::Processor => match version {
            Some(version) => {
                format!("Assay does not know the processor \"{}\" and has no rule for slots", cut(version))
            }
            None => {
                "the tables do not name the processor model, which decides the rule for slots".to_string()
            }
        },
        Unplaced::OtherProcessors => {
            "Assay knows this platform only with other processors and has no rule for slots".to_string()
        }
        Unplaced::Contradiction(rule) => {
            format!("the list contradicts the rule for its names ({}) with slots", rule.family)
        }
        Unplaced::Slots(rule, known, listed) => {
            let known: Vec<String> = known.iter().map(usize::to_string).collect();
            format!(
                "the rule for such names ({}) needs {} slots per processor, but the text lists {listed} slots",
                rule.family,
                known.join(" or ")
            )
        }
        Unplaced::Stray(rule, name) => {
            return format!(
                "the device \"{}\" fits no slot of this platform's rule ({}) and may not be a module: the \
                 placement is not judged",
                cut(&name),
                rule.family
            );
        }
        Unplaced::Twice(name) => {
            format!(
                "the slot \"{}\" is listed twice, as if the text joined two printouts of slots",
                cut(&name)
            )
        }
    };
    let name = tables.dimms.iter().find(|dimm| dimm.is_memory()).map_or("", |dimm| dimm.name());
    format!("{why} named like \"{}\": the channels are unknown, and the placement is not judged", cut(name))
}

/// Sockets with a processor, or without one but with memory.
fn sockets(tables: &Tables, facts: Option<&Facts>, rule: &Rule) -> Vec<SocketMemory> {
    let mut numbers: BTreeSet<u32> =
        tables.dimms.iter().filter(|dimm| dimm.is_memory()).filter_map(|dimm| dimm.socket).collect();
    numbers.extend(working(tables, rule));
    let placed = tables.dimms.iter().all(|dimm| dimm.socket.is_some());
    let widest = tables.dimms.iter().filter_map(|dimm| dimm.channel).max().map(|channel| channel + 1);
    let channels = facts.map(|facts| facts.channels).or(widest.filter(|_| placed));
    numbers.into_iter().map(|number| socket(number, tables, facts, channels, placed)).collect()
}

fn socket(
    number: u32,
    tables: &Tables,
    facts: Option<&Facts>,
    channels: Option<u32>,
    placed: bool,
) -> SocketMemory {
    let own = || tables.dimms.iter().filter(|dimm| dimm.socket == Some(number));
    let memory: Vec<&Dimm> = own().filter(|dimm| dimm.is_memory()).collect();
    let mut dimms_per_channel: BTreeMap<u32, usize> = BTreeMap::new();
    let mut bytes_per_channel: BTreeMap<u32, u64> = BTreeMap::new();
    let mut dimms_per_controller: BTreeMap<u32, usize> = BTreeMap::new();
    for dimm in &memory {
        let channel = dimm.channel.unwrap_or(0);
        *dimms_per_channel.entry(channel).or_default() += 1;
        *bytes_per_channel.entry(channel).or_default() += dimm.size_bytes.unwrap_or(0);
        if let Some(controller) = dimm.controller {
            *dimms_per_controller.entry(controller).or_default() += 1;
        }
    }
    let controllers_total = facts.and_then(|facts| facts.controllers);
    let speeds: Option<Vec<f64>> = memory.iter().map(|dimm| super::super::module_gb_per_s(dimm)).collect();
    let each =
        speeds.filter(|speeds| !speeds.is_empty()).map(|speeds| speeds.into_iter().fold(f64::MAX, f64::min));
    SocketMemory {
        socket: number,
        cpu: tables.processors.get(number as usize).and_then(|one| one.version.clone()),
        dimms: memory.len(),
        bytes: memory.iter().filter_map(|dimm| dimm.size_bytes).sum(),
        slots: placed.then(|| own().count()),
        channels_populated: dimms_per_channel.len(),
        channels_total: channels,
        gb_per_s: each.map(|each| each * dimms_per_channel.len() as f64),
        gb_per_s_all_channels: each.zip(channels).map(|(each, channels)| each * f64::from(channels)),
        dimms_per_channel,
        bytes_per_channel,
        dimms_per_controller: controllers_total.map(|_| dimms_per_controller),
        controllers_total,
    }
}

/// What the modules differ in, wherever they sit.
fn modules(memory: &[&Dimm]) -> Vec<DimmFinding> {
    let mut found = Vec::new();
    let mut mixed = |kind: &'static str, what: &str, of: &dyn Fn(&Dimm) -> Option<String>| {
        let mut groups: BTreeMap<Option<String>, usize> = BTreeMap::new();
        memory.iter().for_each(|dimm| *groups.entry(of(dimm)).or_default() += 1);
        if groups.len() < 2 {
            return;
        }
        // What is unknown of some modules may be the same all the same.
        let known = groups.keys().flatten().count();
        let confidence = if known < 2 { Confidence::Low } else { Confidence::High };
        let words = groups.iter().take(6).map(|(value, count)| {
            let value: String = value.as_deref().unwrap_or("unknown").chars().take(40).collect();
            format!("{count} × {value}")
        });
        let text = format!("modules differ in {what}: {}", listed(words));
        found.push(finding(kind, Severity::Note, confidence, text));
    };
    mixed("mixed_sizes", "size", &|dimm| dimm.size_bytes.map(gib));
    mixed("mixed_ranks", "rank", &|dimm| dimm.ranks.map(|ranks| format!("{ranks} ranks")));
    mixed("mixed_speeds", "rated speed", &|dimm| dimm.speed_mts.map(|mts| format!("{mts} MT/s")));
    mixed("mixed_parts", "part number", &|dimm| dimm.part.clone());
    mixed("mixed_manufacturers", "manufacturer", &|dimm| dimm.manufacturer.as_deref().map(maker));
    found
}

/// A maker's name; of JEDEC's code with codes of factory and date behind it, the code.
fn maker(text: &str) -> String {
    let code = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if code { text[..4].to_ascii_uppercase() } else { text.trim().to_ascii_lowercase() }
}

/// Of each cause, the slowest modules that it slows.
fn below_rated(slow: &[Slow], cpu_limit: Option<u32>) -> Vec<DimmFinding> {
    let mut found: Vec<(String, DimmFinding)> = Vec::new();
    for Slow { rated, runs, cause } in slow {
        let (why, severity, confidence) = match cause {
            Cause::Processor => {
                (format!("the processor's limit ({SPEED_SOURCE})"), Severity::Note, Confidence::High)
            }
            Cause::SlowestModule => {
                ("the slowest module sets the speed".to_string(), Severity::Note, Confidence::High)
            }
            Cause::Modules(limit, source) => {
                (format!("{limit} ({source})"), Severity::Note, Confidence::Medium)
            }
            _ if rated.abs_diff(2 * runs) <= 2 => {
                let why = "half of it, perhaps the clock (two transfers per cycle) and not the transfer rate";
                (why.to_string(), Severity::Note, Confidence::Low)
            }
            Cause::Unknown(why) => (why.clone(), Severity::Note, Confidence::Low),
            Cause::Unexplained => {
                let drives = cpu_limit.map(|limit| format!("; the processor drives {limit} MT/s"));
                let why = format!(
                    "limit unknown{}; check the firmware's memory settings",
                    drives.unwrap_or_default()
                );
                (why, Severity::Warning, Confidence::Medium)
            }
        };
        if found.iter().any(|(known, _)| *known == why) {
            continue;
        }
        let text = format!("modules rated {rated} MT/s run at {runs} MT/s: {why}");
        found.push((why, finding("below_rated_speed", severity, confidence, text)));
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_cause_the_slowest_modules_are_named() {
        let slow = |rated, runs, cause| Slow { rated, runs, cause };
        let found = below_rated(
            &[
                slow(3200, 2400, Cause::Processor),
                slow(3200, 2666, Cause::SlowestModule),
                slow(3200, 2933, Cause::Processor),
                slow(4800, 2400, Cause::Unexplained),
            ],
            Some(2933),
        );
        let texts: Vec<&str> = found.iter().map(|finding| finding.text.as_str()).collect();
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].starts_with("modules rated 3200 MT/s run at 2400 MT/s: the processor's limit"));
        assert!(texts[1].starts_with("modules rated 3200 MT/s run at 2666 MT/s: the slowest module"));
        assert!(texts[2].contains("half of it, perhaps the clock"), "{texts:?}");
        let unexplained = below_rated(&[slow(3200, 2400, Cause::Unexplained)], Some(2933));
        assert!(unexplained[0].text.contains("limit unknown; the processor drives 2933 MT/s"));
    }
}
