//! Slots to sockets, controllers and channels: the first rule that all modules' names follow,
//! without contradiction.

use std::collections::{BTreeMap, BTreeSet};

use super::cpus::{Cpu, Facts};
use super::names::{Fields, fields};
use super::platforms::{Layout, Rule};
use super::{Dimm, Processor, Tables, boards, says_empty, spoken};

/// More slots per channel are no channel.
const MAX_SLOTS: u32 = 4;
/// No board has more sockets than this whose slots stand in one table.
const MAX_SOCKETS: u32 = 16;

/// Where a slot sits: socket, channel, slot in the channel.
type Place = (u32, u32, u32);

/// Writes into each slot where it sits; the rule by which it knows, `None` where none holds.
pub(super) fn place(tables: &mut Tables, cpu: Option<Cpu>) -> Option<&'static Rule> {
    let facts = cpu.map(|cpu| cpu.facts);
    let rule = rules().find_map(|rule| {
        let applies = made_by(tables, rule)
            && (rule.cpus.is_empty() || facts.is_some_and(|facts| rule.cpus.contains(&facts.family)));
        let places = applies.then(|| places(rule, tables, facts)).flatten()?;
        Some((rule, places))
    });
    let (rule, places) = rule?;
    for (dimm, place) in tables.dimms.iter_mut().zip(places) {
        if let Some((socket, channel, slot)) = place {
            dimm.socket = Some(socket);
            dimm.channel = Some(channel);
            dimm.slot_in_channel = Some(slot);
            dimm.controller = facts.and_then(|facts| facts.controller_of(channel));
        }
    }
    Some(rule)
}

/// Why slots cannot be distinguished by channel.
pub(super) enum Unplaced {
    /// No rule of this maker's boards is for such names.
    Names,
    /// There is one, but not for a processor that is unknown.
    Processor,
    /// There is one, for other processors.
    OtherProcessors,
    /// There is one, which the slots contradict.
    Contradiction(&'static Rule),
    /// There is one for boards with this many slots per processor, of which others are listed.
    Slots(&'static Rule, Vec<usize>, usize),
    /// There is one, which all slots follow but the one of this name.
    Stray(&'static Rule, String),
    /// A slot of this name is listed twice.
    Twice(String),
}

pub(super) fn why_not(tables: &Tables, cpu: Option<Cpu>) -> Unplaced {
    let filled = || tables.dimms.iter().filter(|dimm| dimm.is_filled());
    let mut seen = BTreeSet::new();
    let is_named = |dimm: &&Dimm| !dimm.name().is_empty() && !says_empty(dimm.name());
    let mut named = tables.dimms.iter().filter(is_named);
    if let Some(dimm) = named.find(|dimm| !seen.insert((&dimm.locator, &dimm.bank))) {
        return Unplaced::Twice(dimm.name().to_string());
    }
    let family = cpu.map(|cpu| cpu.facts.family);
    let is_for =
        |rule: &&Rule| rule.cpus.is_empty() || family.is_some_and(|family| rule.cpus.contains(&family));
    let own: Vec<&Rule> = rules().filter(|rule| made_by(tables, rule)).collect();
    let reads = |rule: &&Rule| filled().all(|dimm| read(rule, dimm).is_some());
    let mut rules: Vec<&Rule> = own.iter().copied().filter(reads).collect();
    // What the maker's own boards mean by such names counts before what they could mean.
    if rules.iter().any(|rule| !rule.vendors.is_empty()) {
        rules.retain(|rule| !rule.vendors.is_empty());
    }
    if rules.is_empty() {
        let mut strays = own.iter().copied().filter(is_for).filter_map(|rule| {
            let strays: Vec<&Dimm> = filled().filter(|dimm| read(rule, dimm).is_none()).collect();
            let [stray] = strays.as_slice() else { return None };
            (filled().count() > 2).then(|| Unplaced::Stray(rule, stray.name().to_string()))
        });
        return strays.next().unwrap_or(Unplaced::Names);
    }
    if cpu.is_none() {
        return Unplaced::Processor;
    }
    let Some(rule) = rules.iter().copied().find(is_for) else {
        return Unplaced::OtherProcessors;
    };
    if let Layout::Lists(lists) = rule.layout {
        let lengths: Vec<usize> = lists.iter().map(|list| list.len()).collect();
        let mut slots: BTreeMap<(Option<u32>, Option<u32>), usize> = BTreeMap::new();
        for fields in tables.dimms.iter().filter_map(|dimm| read(rule, dimm)) {
            let socket = fields.socket.or_else(|| by_number(rule, &fields));
            *slots.entry((socket, fields.socket_letter)).or_default() += 1;
        }
        if let Some(count) = slots.into_values().find(|count| !lengths.contains(count)) {
            return Unplaced::Slots(rule, lengths, count);
        }
    }
    Unplaced::Contradiction(rule)
}

fn made_by(tables: &Tables, rule: &Rule) -> bool {
    let makers = [&tables.dmi.vendor, &tables.dmi.board_vendor];
    let mut makers = makers.into_iter().flatten().map(|maker| maker.to_ascii_lowercase());
    let product =
        || tables.dmi.product.as_ref().map(|product| product.to_ascii_lowercase()).unwrap_or_default();
    let board = tables.dmi.board.as_deref().unwrap_or_default();
    let is_named = rule.products.is_empty() || {
        let product = product();
        rule.products.iter().any(|known| product.contains(known) || board == *known)
    };
    let is_dells = || rule.vendors.contains(&DELL) && is_dells_part(board);
    is_named
        && (rule.vendors.is_empty()
            || makers.any(|maker| rule.vendors.iter().any(|known| maker.starts_with(known)))
            || is_dells())
}

const DELL: &str = "dell";

/// Whether a board's name is a part number of Dell (`0JP31P`), also if another company sells the
/// machine under its own name.
fn is_dells_part(board: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    board.len() == 6
        && board.starts_with('0')
        && board.bytes().all(|byte| is_digit(byte) || byte.is_ascii_uppercase())
        && !board.bytes().all(is_digit)
}

/// The socket of a slot that is counted over all of them.
fn by_number(rule: &Rule, fields: &Fields) -> Option<u32> {
    Some(fields.number?.checked_sub(rule.first_number)? / rule.each?)
}

/// What both names of a slot say by a rule.
fn read(rule: &Rule, dimm: &Dimm) -> Option<Fields> {
    let by = |patterns: &[&str], name: &str| match patterns {
        [] => Some(Fields::default()),
        _ => patterns.iter().find_map(|pattern| fields(pattern, name)),
    };
    let fields = by(rule.locators, &dimm.locator)?.or(by(rule.banks, &dimm.bank)?);
    let (Some((each, slots)), Some(card)) = (rule.cards, fields.card) else { return Some(fields) };
    let card = card.checked_sub(1)?;
    let number = fields.number? + card % each * slots;
    Some(Fields { socket: Some(card / each), number: Some(number), ..fields })
}

/// Letters of channels from 0, of which some boards leave out the I, so that no one reads a 1.
fn close_letters(read: &mut [Option<Fields>]) {
    let letters: BTreeSet<u32> = read.iter().flatten().filter_map(|fields| fields.channel_letter).collect();
    let i = u32::from(b'i' - b'a');
    if !letters.contains(&i) && letters.contains(&(i - 1)) && letters.contains(&(i + 1)) {
        let beyond = read.iter_mut().flatten().filter_map(|fields| fields.channel_letter.as_mut());
        beyond.filter(|letter| **letter > i).for_each(|letter| *letter -= 1);
    }
}

/// Places of all slots (`None`: an empty slot that has lost its name), or nothing if the rule does
/// not hold.
fn places(rule: &Rule, tables: &Tables, facts: Option<&Facts>) -> Option<Vec<Option<Place>>> {
    let names = Names::of(rule, tables, facts)?;
    let sockets = names.sockets(tables.processors.len() as u32)?;
    if !are_there(&sockets, tables, facts) {
        return None;
    }
    let seats = Seats::of(&names, &sockets, tables)?;
    let place = |(fields, socket): (&Option<Fields>, &Option<u32>)| match (fields, socket) {
        (Some(fields), Some(socket)) => seats.place(fields, *socket).map(Some),
        _ => Some(None),
    };
    let places: Option<Vec<Option<Place>>> = names.fields.iter().zip(&sockets).map(place).collect();
    let mut places = places?;
    if names.all().any(|fields| fields.slot.is_none()) && matches!(rule.layout, Layout::Named) {
        count_slots(&mut places);
    }
    is_possible(&places, facts).then_some(places)
}

/// What a rule reads in the names of all slots.
struct Names<'a> {
    rule: &'a Rule,
    facts: Option<&'a Facts>,
    /// `None`: an empty slot that has lost its name.
    fields: Vec<Option<Fields>>,
}

impl<'a> Names<'a> {
    /// `None` where a module has another name, or the rule is for other machines.
    fn of(rule: &'a Rule, tables: &Tables, facts: Option<&'a Facts>) -> Option<Names<'a>> {
        let mut fields: Vec<Option<Fields>> = tables.dimms.iter().map(|dimm| read(rule, dimm)).collect();
        close_letters(&mut fields);
        let is_lost = tables.dimms.iter().zip(&fields).any(|(dimm, read)| dimm.is_filled() && read.is_none());
        let names = Names { rule, facts, fields };
        let fits = !is_lost && tables.dimms.iter().any(Dimm::is_filled) && names.is_for(tables);
        fits.then_some(names)
    }

    fn all(&self) -> impl Iterator<Item = &Fields> {
        self.fields.iter().flatten()
    }

    /// Whether the rule is for a machine with these processors.
    fn is_for(&self, tables: &Tables) -> bool {
        // Processors that are known here have controllers of their own, and so has every Opteron.
        let is_opteron = |one: &Processor| {
            one.version.as_ref().is_some_and(|name| name.contains("AMD") || name.contains("Opteron"))
        };
        let has_controllers = self.facts.is_some() || tables.processors.iter().any(is_opteron);
        // One letter before many numbers is a processor's.
        let letters: BTreeSet<u32> = self.all().filter_map(|fields| fields.channel_letter).collect();
        let names_controllers = self.all().any(|fields| fields.controller.is_some());
        let is_processors = letters.len() == 1 && !names_controllers && tables.dimms.len() > 2;
        let has_several = tables.processors.len() > 1 || is_processors;
        !(self.rule.is_chipsets && has_controllers || self.rule.is_alone && has_several)
    }

    /// The socket of each slot. A value that a readable name lacks breaks the rule; a name that is
    /// lost does not.
    fn sockets(&self, sockets: u32) -> Option<Vec<Option<u32>>> {
        let each = self.fields.iter().map(|fields| match fields {
            Some(fields) => self.socket(fields, sockets).map(Some),
            None => Some(None),
        });
        each.collect()
    }

    fn socket(&self, fields: &Fields, sockets: u32) -> Option<u32> {
        let rule = self.rule;
        match (fields.socket, fields.socket_letter, fields.channel_letter) {
            _ if rule.is_alone || rule.is_chipsets => Some(0),
            (Some(0), ..) if rule.is_zero_last => sockets.checked_sub(1),
            (Some(number), ..) => number.checked_sub(rule.first_socket),
            (None, Some(letter), _) => Some(letter),
            (None, None, Some(letter)) => Some(letter / self.facts?.channels),
            (None, None, None) => by_number(rule, fields),
        }
    }
}

/// Whether the machine can have modules in these sockets.
fn are_there(socket_of: &[Option<u32>], tables: &Tables, facts: Option<&Facts>) -> bool {
    let sockets = tables.processors.len() as u32;
    // Firmware may leave out a processor that is not there, and list its empty slots.
    let is_alone = facts.is_none_or(|facts| facts.family.is_alone());
    let most = if sockets > 0 { sockets } else { MAX_SOCKETS };
    // No firmware sees a module of a socket without a processor.
    let is_vacant = |socket: u32| {
        tables.processors.get(socket as usize).is_some_and(|processor| processor.populated == Some(false))
    };
    tables.dimms.iter().zip(socket_of).all(|(dimm, socket)| {
        let most = if dimm.is_filled() || is_alone { most } else { MAX_SOCKETS };
        socket.is_none_or(|socket| socket < most && !(dimm.is_filled() && is_vacant(socket)))
    })
}

/// Finds the channel of a slot, and where in it the slot is.
struct Seats<'a> {
    rule: &'a Rule,
    facts: Option<&'a Facts>,
    /// How many slots each socket has.
    slots: BTreeMap<u32, usize>,
    nodes: Nodes,
    /// The number of the first slot of a channel.
    lowest: u32,
    /// Channels of one controller, where names have its number.
    of_controller: u32,
    highest_number: Option<u32>,
}

impl<'a> Seats<'a> {
    fn of(names: &Names<'a>, sockets: &[Option<u32>], tables: &Tables) -> Option<Seats<'a>> {
        let mut slots: BTreeMap<u32, usize> = BTreeMap::new();
        sockets.iter().flatten().for_each(|socket| *slots.entry(*socket).or_default() += 1);
        let highest = names.all().filter_map(|fields| fields.channel.or(fields.channel_letter)).max();
        Some(Seats {
            rule: names.rule,
            facts: names.facts,
            slots,
            nodes: Nodes::of(&names.fields, sockets, names.facts, names.rule, tables)?,
            lowest: names.all().filter_map(|fields| fields.slot).min().unwrap_or(0),
            of_controller: highest.map_or(1, |highest| highest + 1),
            highest_number: names.all().filter_map(|fields| fields.number).max(),
        })
    }

    fn place(&self, fields: &Fields, socket: u32) -> Option<Place> {
        let slots = *self.slots.get(&socket)?;
        if self.rule.each.is_some_and(|each| slots != each as usize) {
            return None;
        }
        let number = || fields.number?.checked_sub(self.rule.first_number);
        let channels = || self.facts.map(|facts| facts.channels);
        let (channel, slot) = match &self.rule.layout {
            Layout::Round => (number()? % channels()?, number()? / channels()?),
            Layout::Lists(lists) => {
                let list = lists.iter().find(|list| list.len() == slots)?;
                *list.get(number()? as usize % list.len())?
            }
            Layout::Board(list) => {
                let (number, own) = (number()? as usize, list.len() / 2);
                let goes_on = self.highest_number >= Some(self.rule.first_number + own as u32);
                let number = if goes_on { number } else { number + own * socket as usize };
                *list.get(number).filter(|_| number / own == socket as usize && slots == own)?
            }
            Layout::Rows => row(number()?, slots as u32, channels()?)?,
            Layout::RowsGoOn => {
                let number = number()?.checked_sub(socket * slots as u32)?;
                row(number, slots as u32, channels()?)?
            }
            Layout::Named | Layout::Nodes | Layout::Halves => self.named(fields)?,
        };
        Some((socket, channel, slot))
    }

    /// Where a slot is whose name contains its channel.
    fn named(&self, fields: &Fields) -> Option<(u32, u32)> {
        // A name that contains the socket has letters that begin anew, unless they go on.
        let letter = || match (fields.channel_letter?, self.facts) {
            (letter, Some(facts)) => Some(letter % facts.channels),
            (letter, None) => {
                let is_own = self.rule.is_alone || self.rule.is_chipsets || fields.socket.is_some();
                is_own.then_some(letter)
            }
        };
        let channel = match fields.channel {
            Some(channel) => channel.checked_sub(self.rule.first_channel),
            None => letter(),
        };
        let channel = channel.or(fields.controller.map(|_| 0))?;
        let channel = channel + fields.controller.unwrap_or(0) * self.of_controller;
        let slot = match fields.slot {
            Some(slot) => slot.checked_sub(self.lowest)?,
            None => fields.number.unwrap_or(0),
        };
        Some((self.nodes.channel(fields.node, channel), slot))
    }
}

/// Slots that have numbers over all channels, counted in each channel.
fn count_slots(places: &mut [Option<Place>]) {
    let all: BTreeSet<Place> = places.iter().flatten().copied().collect();
    for place in places.iter_mut().flatten() {
        let before = |other: &&Place| (other.0, other.1) == (place.0, place.1) && other.2 < place.2;
        place.2 = all.iter().filter(before).count() as u32;
    }
}

/// Channel and slot of a number from 0 where channels are rows: the first slot is the outer one of
/// either half.
fn row(number: u32, slots: u32, channels: u32) -> Option<(u32, u32)> {
    let each = slots / channels;
    if each == 0 || !slots.is_multiple_of(channels) || number >= slots {
        return None;
    }
    let (channel, inside) = (number / each, number % each);
    Some((channel, if channel < channels / 2 { inside } else { each - 1 - inside }))
}

/// No two slots in one place, no more channels than the processor has.
fn is_possible(places: &[Option<Place>], facts: Option<&Facts>) -> bool {
    let mut seen = BTreeSet::new();
    let most = facts.map_or(16, |facts| facts.channels);
    places.iter().flatten().all(|place| place.1 < most && place.2 < MAX_SLOTS && seen.insert(*place))
}

/// What the node in a bank's string stands for.
struct Nodes {
    /// Channels of one controller; `None`: the node is the socket once more.
    each: Option<u32>,
    controllers: u32,
}

impl Nodes {
    fn of(
        read: &[Option<Fields>],
        sockets: &[Option<u32>],
        facts: Option<&Facts>,
        rule: &Rule,
        tables: &Tables,
    ) -> Option<Nodes> {
        let mut nodes: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let mut highest = 0;
        for (fields, socket) in read.iter().zip(sockets) {
            if let (Some(Fields { node: Some(node), channel: Some(channel), .. }), Some(socket)) =
                (fields, socket)
            {
                nodes.entry(*socket).or_default().insert(*node);
                highest = highest.max(*channel);
            }
        }
        let most = nodes.values().map(BTreeSet::len).max().unwrap_or(0) as u32;
        let supermicro = tables.dmi.vendor.as_deref().is_some_and(|vendor| vendor.starts_with("Supermicro"));
        let controllers = facts.and_then(|facts| facts.controllers);
        let fits =
            |controllers: u32| facts.is_some_and(|facts| highest < facts.channels / controllers.max(1));
        let controllers = match (controllers, most) {
            (Some(controllers), 2..) if fits(controllers) => controllers,
            // All the modules may sit on one controller.
            (Some(controllers), 1) if supermicro && fits(controllers) => controllers,
            (None, 2..) if fits(most) => most,
            (_, 2..) if matches!(rule.layout, Layout::Halves) && fits(most) => most,
            _ => 0,
        };
        let is_of_nodes = matches!(rule.layout, Layout::Nodes | Layout::Halves);
        if is_of_nodes && facts.is_some() && most > 1 && controllers == 0 {
            return None;
        }
        let each = facts.filter(|_| is_of_nodes && controllers > 0).map(|facts| facts.channels / controllers);
        Some(Nodes { each, controllers })
    }

    fn channel(&self, node: Option<u32>, channel: u32) -> u32 {
        match (self.each, node) {
            (Some(each), Some(node)) => node % self.controllers.max(1) * each + channel,
            _ => channel,
        }
    }
}

/// All rules in the order in which they are tried.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    boards::INFERRED.iter().chain(boards::RULES).chain(spoken::RULES)
}
