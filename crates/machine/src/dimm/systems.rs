//! Several printouts in one text: those of one system, and which system is judged.

use std::collections::{BTreeMap, BTreeSet};

use model::dmidecode_text::Structure;

/// What a text has of one system.
#[derive(Default)]
struct Printed<'a> {
    /// What names it: maker, product, serial number and UUID.
    name: [Option<&'a str>; 4],
    structures: Vec<Structure<'a>>,
    seen: BTreeSet<Structure<'a>>,
    /// Later printouts of it that say other things of its slots.
    others: usize,
    /// Whether a serial number or a UUID says that one of those is of another time, and not of
    /// another machine.
    is_same: bool,
}

/// More systems in one text are unknown apart.
const MAX_SYSTEMS: usize = 50;

impl<'a> Printed<'a> {
    /// Whether all that both report is alike.
    fn is_named(&self, name: &[Option<&str>; 4]) -> bool {
        self.name.iter().zip(name).all(|(own, other)| own.is_none() || other.is_none() || own == other)
    }

    /// Adds what is not there yet. Without handles two slots may have the same words, so that only
    /// what a later part repeats is counted twice.
    fn add(&mut self, part: Vec<Structure<'a>>, name: [Option<&'a str>; 4]) {
        if self.contradicts(&part) {
            self.others += 1;
            let is_told = |at: usize| self.name[at].is_some() && self.name[at] == name[at];
            self.is_same |= is_told(SERIAL) || is_told(UUID);
            return;
        }
        self.name.iter_mut().zip(name).for_each(|(known, own)| *known = known.or(own));
        let mut unnumbered = Vec::new();
        for one in part.into_iter().filter(|one| one.kind.is_some()) {
            if self.seen.contains(&one) {
                continue;
            }
            match one.handle {
                Some(_) => drop(self.seen.insert(one.clone())),
                None => unnumbered.push(one.clone()),
            }
            self.structures.push(one);
        }
        self.seen.extend(unnumbered);
    }

    /// Whether a part reports something else of a slot that is known, by its handle or by a name
    /// that no other slot has, or has other slots.
    fn contradicts(&self, part: &[Structure<'a>]) -> bool {
        let known = slots_by_name(&self.structures);
        let slots = slots_by_name(part);
        let by_handle = |one: &Structure| {
            let same = |other: &&Structure| other.kind == Some(17) && other.handle == one.handle;
            self.structures.iter().filter(same).any(|other| other != one)
                && !self.structures.iter().any(|other| other == one)
        };
        part.iter().filter(|one| one.kind == Some(17) && one.handle.is_some()).any(by_handle)
            || slots.iter().any(|(name, own)| {
                let [own] = own.as_slice() else { return false };
                known
                    .get(name)
                    .is_some_and(|other| matches!(other.as_slice(), [other] if other.fields != own.fields))
            })
            || !slots.is_empty() && !known.is_empty() && slots.keys().ne(known.keys())
    }

    fn has_modules(&self) -> bool {
        self.structures.iter().any(|one| one.kind == Some(17))
    }
}

type SlotName<'a> = (&'a str, &'a str);

/// Places of a system's serial number and UUID in its name.
const SERIAL: usize = 2;
const UUID: usize = 3;

/// What names one machine among others of its model; firmware and those who pass a text on write
/// words in its place, and a number that counts up.
fn of_one_machine(text: &str) -> Option<&str> {
    const WORDS: [&str; 8] =
        ["serial", "not ", "settable", "redacted", "removed", "hidden", "123456789", "00020003-0004"];
    let plain = text.to_ascii_lowercase();
    let is_made_up = WORDS.iter().any(|word| plain.contains(word))
        || plain.chars().all(|c| "x0*-.#_?".contains(c))
        || plain == "03000200-0400-0500-0006-000700080009";
    (!is_made_up && super::stated(text).is_some()).then_some(text)
}

/// Whether a slot that a part has, by its handle, is reported otherwise: the next printout begins.
fn begins_anew(part: &[Structure], one: &Structure) -> bool {
    let is_same = |other: &&Structure| other.kind == Some(17) && other.handle == one.handle;
    one.kind == Some(17)
        && one.handle.is_some()
        && part.iter().any(|other| is_same(&other))
        && part.iter().filter(is_same).all(|other| other != one)
}

/// Slots by both their names.
fn slots_by_name<'a, 'b>(all: &'b [Structure<'a>]) -> BTreeMap<SlotName<'a>, Vec<&'b Structure<'a>>> {
    let mut slots: BTreeMap<SlotName, Vec<&Structure>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.kind == Some(17)) {
        if let Some(name) = one.get(&["Locator"]) {
            slots.entry((name, one.get(&["Bank Locator"]).unwrap_or_default())).or_default().push(one);
        }
    }
    slots
}

/// The structures of one system, each once: a text may have its printout twice, and those of other
/// systems behind it. No table has a second structure of the firmware or of the system.
pub(super) fn of_one_system<'a>(all: Vec<Structure<'a>>, remarks: &mut Vec<String>) -> Vec<Structure<'a>> {
    let mut parts: Vec<Vec<Structure>> = vec![Vec::new()];
    let mut seen: BTreeSet<Option<u32>> = BTreeSet::new();
    for one in all.into_iter().filter(|one| !one.fields.is_empty()) {
        let is_again = matches!(one.kind, Some(0 | 1)) && !seen.insert(one.kind);
        if is_again || parts.last().is_some_and(|part| begins_anew(part, &one)) {
            seen = [one.kind].into_iter().collect();
            parts.push(Vec::new());
        }
        parts.last_mut().into_iter().for_each(|part| part.push(one.clone()));
    }
    let mut systems: Vec<Printed> = Vec::new();
    for part in parts {
        let own = part.iter().find(|one| one.kind == Some(1));
        let mut name = ["Manufacturer", "Product Name", "Serial Number", "UUID"]
            .map(|field| own.and_then(|one| one.get(&[field])));
        name[SERIAL..].iter_mut().for_each(|own| *own = own.and_then(of_one_machine));
        let at = systems.iter().position(|system| system.is_named(&name)).unwrap_or_else(|| {
            systems.push(Printed::default());
            systems.len() - 1
        });
        systems[at].add(part, name);
        if systems.len() > MAX_SYSTEMS {
            break;
        }
    }
    let others = systems.iter().filter(|system| system.has_modules()).count().saturating_sub(1);
    let chosen = systems.iter().position(Printed::has_modules).unwrap_or(0);
    let chosen = systems.swap_remove(chosen);
    let named: Vec<&str> = chosen.name.iter().take(2).flatten().copied().collect();
    let named: String = named.join(" ").chars().take(60).collect();
    if others > 0 {
        remarks.push(format!(
            "the text has printouts of {} systems: only the first, {named}, is judged; give each its own file",
            others + 1,
        ));
    }
    let more = chosen.others + 1;
    if chosen.others > 0 && !chosen.is_same {
        let of = if named.is_empty() { String::new() } else { format!(" ({named})") };
        remarks.push(format!(
            "the text has {more} different printouts without serial number or UUID, of one host or several of \
             one model{of}: only the first is judged; give each its own file"
        ));
    } else if chosen.others > 0 {
        remarks.push(format!(
            "the text has {more} different printouts of one host ({named}), as before and after a change: only \
             the first is judged; give each its own file"
        ));
    }
    chosen.structures
}
