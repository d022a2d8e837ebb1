//! Several printouts in one text: those of one system, and which system is judged.

use std::collections::{BTreeMap, BTreeSet};

use model::printout::Structure;

/// What a text has of one system.
#[derive(Default)]
struct Printed<'a> {
    /// What names it: maker, product, serial number and UUID.
    name: [Option<&'a str>; 4],
    structures: Vec<Structure<'a>>,
    seen: BTreeSet<Structure<'a>>,
    /// Later printouts of it that say other things of its slots.
    others: usize,
}

/// More systems in one text are not told apart.
const SYSTEMS_MOST: usize = 50;

impl<'a> Printed<'a> {
    /// Whether all that both tell is alike.
    fn is_named(&self, name: &[Option<&str>; 4]) -> bool {
        self.name.iter().zip(name).all(|(own, other)| own.is_none() || other.is_none() || own == other)
    }

    /// Adds what is not there yet. Without handles two slots may have the same words, so that only
    /// what a later part repeats is told twice.
    fn add(&mut self, part: Vec<Structure<'a>>) {
        if self.contradicts(&part) {
            self.others += 1;
            return;
        }
        let mut unnumbered = Vec::new();
        for one in part.into_iter().filter(|one| one.kind != u32::MAX) {
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

    /// Whether a part tells something else of a slot that is known: by its handle, or by a name
    /// that no other slot has.
    fn contradicts(&self, part: &[Structure<'a>]) -> bool {
        let known = slots_by_name(&self.structures);
        let slots = slots_by_name(part);
        let by_handle = |one: &Structure| {
            let same = |other: &&Structure| other.kind == 17 && other.handle == one.handle;
            self.structures.iter().filter(same).any(|other| other != one)
                && !self.structures.iter().any(|other| other == one)
        };
        part.iter().filter(|one| one.kind == 17 && one.handle.is_some()).any(by_handle)
            || slots.iter().any(|(name, own)| {
                let [own] = own.as_slice() else { return false };
                known
                    .get(name)
                    .is_some_and(|other| matches!(other.as_slice(), [other] if other.fields != own.fields))
            })
    }

    fn has_modules(&self) -> bool {
        self.structures.iter().any(|one| one.kind == 17)
    }
}

type SlotName<'a> = (&'a str, &'a str);

/// Slots by both their names.
fn slots_by_name<'a, 'b>(all: &'b [Structure<'a>]) -> BTreeMap<SlotName<'a>, Vec<&'b Structure<'a>>> {
    let mut slots: BTreeMap<SlotName, Vec<&Structure>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.kind == 17) {
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
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    for one in all.into_iter().filter(|one| !one.fields.is_empty()) {
        if matches!(one.kind, 0 | 1) && !seen.insert(one.kind) {
            seen = [one.kind].into_iter().collect();
            parts.push(Vec::new());
        }
        parts.last_mut().into_iter().for_each(|part| part.push(one.clone()));
    }
    let mut systems: Vec<Printed> = Vec::new();
    for part in parts {
        let own = part.iter().find(|one| one.kind == 1);
        let name = ["Manufacturer", "Product Name", "Serial Number", "UUID"]
            .map(|field| own.and_then(|one| one.get(&[field])));
        let at = systems.iter().position(|system| system.is_named(&name)).unwrap_or_else(|| {
            systems.push(Printed::default());
            systems.len() - 1
        });
        let known = &mut systems[at].name;
        known.iter_mut().zip(name).for_each(|(known, own)| *known = known.or(own));
        systems[at].add(part);
        if systems.len() > SYSTEMS_MOST {
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
            "the text has printouts of {} systems: only {named}, the first, is judged; give each a file of its own",
            others + 1,
        ));
    }
    if chosen.others > 0 {
        remarks.push(format!(
            "the text has {} printouts of one machine ({named}) that tell other things of the same slots, as before and \
             after a change: only the first is judged; give each a file of its own",
            chosen.others + 1
        ));
    }
    chosen.structures
}
