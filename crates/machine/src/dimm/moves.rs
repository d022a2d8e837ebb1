//! The move to make: from where modules are to where they should be, in the board's own names.
//!
//! Modules of one size that divide evenly over the sockets are moved: to the largest number of
//! channels that one interleave set covers, spread over the controllers, keeping in place what can
//! stay. Otherwise modules are added where channels hold less than the fullest one. Where a rule
//! does not report which slot of a channel is filled first, modules stay in the slots of their
//! channel.

use std::collections::{BTreeMap, BTreeSet};

use super::Dimm;
use super::cpus::Facts;
use super::population::{Balance, SocketMemory};

/// Names in one sentence.
const NAMES: usize = 16;

/// What helps; `None` where nothing has to, or where the slots are not all known by name.
pub(super) fn remedy(
    dimms: &[Dimm],
    sockets: &[SocketMemory],
    facts: Option<&Facts>,
    verdict: Balance,
    is_order_known: bool,
) -> Option<String> {
    let known = sockets.iter().all(|socket| socket.slots.is_some());
    if !known || matches!(verdict, Balance::Balanced | Balance::BalancedWithDifferences) {
        return None;
    }
    let facts = facts?;
    let board = Board::of(dimms, sockets, is_order_known);
    let moved = if verdict == Balance::Unbalanced { board.moved(facts) } else { None };
    let advice = moved.or_else(|| board.added(facts))?;
    let is_choice = || board.sockets.values().flat_map(BTreeMap::values).any(|slots| slots.len() > 1);
    Some(if !is_order_known && is_choice() {
        format!("{advice}; the board's manual names the slot of a channel to fill first")
    } else {
        advice
    })
}

/// The slots of a socket by channel, the first one first.
type Channels<'a> = BTreeMap<u32, Vec<&'a Dimm>>;

struct Board<'a> {
    /// By socket.
    sockets: BTreeMap<u32, Channels<'a>>,
    /// Names of the board that several slots have.
    repeated: BTreeSet<&'a str>,
}

impl<'a> Board<'a> {
    fn of(dimms: &'a [Dimm], sockets: &[SocketMemory], is_order_known: bool) -> Board<'a> {
        let mut board: BTreeMap<u32, Channels> =
            sockets.iter().map(|socket| (socket.socket, Channels::new())).collect();
        for dimm in dimms.iter().filter(|dimm| !dimm.persistent) {
            let (Some(socket), Some(channel)) = (dimm.socket, dimm.channel) else { continue };
            if let Some(channels) = board.get_mut(&socket) {
                channels.entry(channel).or_default().push(dimm);
            }
        }
        let all = board.values_mut().flat_map(BTreeMap::values_mut);
        all.for_each(|slots| {
            slots.sort_by_key(|dimm| (!is_order_known && !dimm.is_memory(), dimm.slot_in_channel));
        });
        let mut seen = BTreeSet::new();
        let repeated = dimms.iter().map(Dimm::name).filter(|name| !seen.insert(*name)).collect();
        Board { sockets: board, repeated }
    }

    /// A slot's name, with its bank's where the board's is that of several.
    fn name(&self, dimm: &Dimm) -> String {
        if self.repeated.contains(dimm.name()) && !dimm.bank.is_empty() {
            format!("{} {}", dimm.bank, dimm.name())
        } else {
            dimm.name().to_string()
        }
    }

    fn modules(&self) -> impl Iterator<Item = &'a Dimm> {
        let slots = self.sockets.values().flat_map(BTreeMap::values).flatten().copied();
        slots.filter(|dimm| dimm.is_memory())
    }

    fn moved(&self, facts: &Facts) -> Option<String> {
        let sizes: BTreeSet<Option<u64>> = self.modules().map(|dimm| dimm.size_bytes).collect();
        let count = self.modules().count();
        if sizes.len() != 1 || !count.is_multiple_of(self.sockets.len().max(1)) {
            return None;
        }
        let each = count / self.sockets.len();
        let filled = |channels: &Channels| {
            channels.values().filter(|slots| slots.iter().any(|dimm| dimm.is_memory())).count()
        };
        let all_have_some = self.sockets.values().all(|channels| filled(channels) > 0);
        let mut leaving: Vec<(u32, &Dimm)> = Vec::new();
        let mut filling: Vec<(u32, &Dimm)> = Vec::new();
        let mut used = Vec::new();
        for (socket, channels) in &self.sockets {
            let targets = targets(channels, each, facts)?;
            let wide = targets.iter().filter_map(|dimm| dimm.channel).collect::<BTreeSet<u32>>().len();
            // Fewer channels than now are no help, unless a socket goes without memory.
            if all_have_some && wide < filled(channels) {
                return None;
            }
            used.push(wide);
            let place = |dimm: &Dimm| (dimm.channel, dimm.slot_in_channel);
            let places: BTreeSet<_> = targets.iter().map(|dimm| place(dimm)).collect();
            let own = channels.values().flatten().filter(|dimm| dimm.is_memory());
            leaving.extend(own.filter(|dimm| !places.contains(&place(dimm))).map(|dimm| (*socket, *dimm)));
            filling.extend(targets.into_iter().filter(|dimm| !dimm.is_memory()).map(|dimm| (*socket, dimm)));
        }
        if leaving.is_empty() || leaving.len() != filling.len() {
            return None;
        }
        // Within a socket first, then from one to the other.
        let mut steps: Vec<(&Dimm, &Dimm)> = Vec::new();
        leaving.retain(|(socket, from)| match filling.iter().position(|(other, _)| other == socket) {
            Some(at) => {
                steps.push((from, filling.remove(at).1));
                false
            }
            None => true,
        });
        let across = !leaving.is_empty();
        steps.extend(leaving.iter().zip(&filling).map(|((_, from), (_, to))| (*from, *to)));
        let step = |(from, to): &(&Dimm, &Dimm)| format!("{} to {}", self.name(from), self.name(to));
        let words: Vec<String> = steps.iter().take(NAMES).map(step).collect();
        let controllers = facts.controllers.filter(|controllers| each.is_multiple_of(*controllers as usize));
        let aim = match controllers {
            Some(2) => format!("both controllers of each socket have {}", each / 2),
            Some(controllers) => {
                format!(
                    "the {controllers} controllers of each socket have {} each",
                    each / controllers as usize
                )
            }
            None => format!("each socket has {each} modules spread evenly over {} channels", used.first()?),
        };
        let more = if steps.len() > NAMES { " and so on" } else { "" };
        let cost = if across && used.iter().any(|used| *used < facts.channels as usize) {
            "; the same number of modules again would fill the other channels"
        } else {
            ""
        };
        Some(format!("move {}{more}: then {aim}{cost}", words.join(", ")))
    }

    /// Modules that bring every channel to what the fullest holds.
    fn added(&self, facts: &Facts) -> Option<String> {
        let held = |slots: &[&Dimm]| -> u64 { slots.iter().filter_map(|dimm| dimm.size_bytes).sum() };
        let fullest = self.sockets.values().flat_map(BTreeMap::values).map(|slots| held(slots)).max()?;
        let sizes: BTreeSet<u64> = self.modules().filter_map(|dimm| dimm.size_bytes).collect();
        let mut wanted: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for channels in self.sockets.values() {
            if channels.len() != facts.channels as usize {
                return None;
            }
            for slots in channels.values() {
                let missing = fullest - held(slots);
                let free: Vec<&&Dimm> = slots.iter().filter(|dimm| dimm.size_bytes == Some(0)).collect();
                if missing == 0 {
                    continue;
                }
                // The largest modules at hand that make up for it.
                let size = sizes
                    .iter()
                    .rev()
                    .find(|size| missing % **size == 0 && missing / **size <= free.len() as u64)?;
                let count = (missing / size) as usize;
                wanted.entry(*size).or_default().extend(free.iter().take(count).map(|dimm| self.name(dimm)));
            }
        }
        let words: Vec<String> = wanted
            .iter()
            .map(|(size, names)| {
                let more = if names.len() > NAMES { " and so on" } else { "" };
                let shown: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
                format!(
                    "{} × {} GiB in {}{more}",
                    names.len(),
                    *size as f64 / f64::from(1 << 30),
                    shown.join(", ")
                )
            })
            .collect();
        (!words.is_empty())
            .then(|| format!("add {}: then all channels have the same memory", words.join(" and ")))
    }
}

/// The slots of a socket that should have the modules: as many channels as one set covers, over the
/// controllers evenly.
fn targets<'a>(channels: &Channels<'a>, modules: usize, facts: &Facts) -> Option<Vec<&'a Dimm>> {
    let deepest = channels.values().map(Vec::len).min()?;
    let controllers = facts.controllers.unwrap_or(1);
    let fits = |count: &&u32| {
        let count = **count;
        let even = count.is_multiple_of(controllers) || count == 1;
        let each = modules / count.max(1) as usize;
        even && modules.is_multiple_of(count as usize) && each <= deepest && count as usize <= channels.len()
    };
    let count = facts.even.iter().filter(|count| fits(count)).max()?;
    let depth = modules / *count as usize;
    let of_each = (count / controllers).max(1) as usize;
    let mut chosen: Vec<u32> = Vec::new();
    for controller in 0..controllers {
        let mut own: Vec<u32> = channels
            .keys()
            .copied()
            .filter(|channel| facts.controller_of(*channel).unwrap_or(0) == controller)
            .collect();
        let filled = |channel: &u32| channels[channel].iter().filter(|dimm| dimm.is_memory()).count();
        own.sort_by_key(|channel| (std::cmp::Reverse(filled(channel).min(depth)), *channel));
        chosen.extend(own.into_iter().take(of_each));
    }
    chosen.truncate(*count as usize);
    let slots = chosen.iter().flat_map(|channel| channels[channel].iter().take(depth).copied());
    Some(slots.collect())
}
