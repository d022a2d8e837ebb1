//! How platforms name their slots: one rule for each family of boards, tried in order, those of
//! makers (`boards`) before names that contain their channel (`spoken`). A rule is data;
//! `place` applies it.

use super::cpus::Family;

/// One family of boards.
#[derive(Debug)]
pub struct Rule {
    pub family: &'static str,
    /// Beginnings of the system's or the board's maker, lower case; empty: anyone's.
    pub vendors: &'static [&'static str],
    /// Words of the system's product name, lower case, or the board's whole name; empty: any.
    pub products: &'static [&'static str],
    /// Processors; empty: any.
    pub cpus: &'static [Family],
    /// Patterns (see `names`), of which every module's locator follows one; empty: it does not
    /// matter.
    pub locators: &'static [&'static str],
    /// The same of banks.
    pub banks: &'static [&'static str],
    /// The number of the first socket.
    pub first_socket: u32,
    /// Whether a socket of number 0 is the last one, after those from 1.
    pub is_zero_last: bool,
    /// The number of the first channel.
    pub first_channel: u32,
    /// The number of a processor's first slot.
    pub first_number: u32,
    /// For boards of one processor: names have no socket.
    pub is_alone: bool,
    /// Slots of each processor, where nothing but the slot's number shows which one it belongs
    /// to.
    pub each: Option<u32>,
    /// Where slots sit on cards: cards of each processor and slots of a card; names count both
    /// from 1.
    pub cards: Option<(u32, u32)>,
    /// For processors without a memory controller: the memory is the chipset's, which they share,
    /// and stands as socket 0.
    pub is_chipsets: bool,
    pub layout: Layout,
    pub source: &'static str,
    /// Whether it is known which slot of a channel is filled first.
    pub is_order_known: bool,
}

/// A rule of anyone's boards with any processors, sockets counted from 0.
pub(super) const fn rule(family: &'static str, layout: Layout, source: &'static str) -> Rule {
    Rule {
        family,
        vendors: &[],
        products: &[],
        cpus: &[],
        locators: &[],
        banks: &[],
        first_socket: 0,
        is_zero_last: false,
        first_channel: 0,
        first_number: 1,
        is_alone: false,
        each: None,
        cards: None,
        is_chipsets: false,
        layout,
        source,
        is_order_known: true,
    }
}

impl Rule {
    pub(super) const fn by(self, vendors: &'static [&'static str]) -> Rule {
        Rule { vendors, ..self }
    }

    pub(super) const fn named(self, products: &'static [&'static str]) -> Rule {
        Rule { products, ..self }
    }

    pub(super) const fn of(self, cpus: &'static [Family]) -> Rule {
        Rule { cpus, ..self }
    }

    pub(super) const fn locators(self, locators: &'static [&'static str]) -> Rule {
        Rule { locators, ..self }
    }

    pub(super) const fn banks(self, banks: &'static [&'static str]) -> Rule {
        Rule { banks, ..self }
    }

    pub(super) const fn counting_from_one(self) -> Rule {
        Rule { first_socket: 1, ..self }
    }

    pub(super) const fn zero_last(self) -> Rule {
        Rule { is_zero_last: true, ..self }
    }

    pub(super) const fn channels_from_one(self) -> Rule {
        Rule { first_channel: 1, ..self }
    }

    pub(super) const fn numbers_from_zero(self) -> Rule {
        Rule { first_number: 0, ..self }
    }

    pub(super) const fn alone(self) -> Rule {
        Rule { is_alone: true, ..self }
    }

    pub(super) const fn each(self, slots: u32) -> Rule {
        Rule { each: Some(slots), ..self }
    }

    pub(super) const fn cards(self, each: u32, slots: u32) -> Rule {
        Rule { cards: Some((each, slots)), ..self }
    }

    pub(super) const fn of_chipset(self) -> Rule {
        Rule { is_chipsets: true, ..self }
    }

    /// Whether an inventory of a board that it is for was seen: of the fixtures or of linuxhw/DMI's
    /// servers.
    pub fn is_seen(&self) -> bool {
        !UNSEEN.contains(&self.family)
    }

    /// It is not known which slot of a channel is filled first.
    pub(super) const fn unordered(self) -> Rule {
        Rule { is_order_known: false, ..self }
    }
}

/// Rules that rest on their documents alone: no inventory was seen for which they hold.
pub(super) const UNSEEN: &[&str] = &[
    "Dell PowerEdge nodes and blades, 14th generation (Xeon Scalable)",
    "HPE Synergy 480 Gen10 (Xeon Scalable)",
    "Lenovo ThinkEdge SE455 V3 (EPYC 8004)",
    "Lenovo ThinkSystem SD630 V2 (Xeon Scalable)",
    "Lenovo ThinkSystem SR680a V3 (Xeon Scalable)",
    "Lenovo ThinkSystem V3 (EPYC 9004)",
    "Lenovo ThinkSystem V3 (Xeon Scalable)",
    "Lenovo ThinkSystem V3 nodes (EPYC 9004)",
    "Lenovo ThinkSystem V3 nodes (Xeon Scalable)",
    "Lenovo ThinkSystem V4 (Xeon 6)",
    "Oracle Server X9-2 (Xeon Scalable)",
    "channel's letter and slot, bank NODE (Amazon EC2)",
    "locator CPU Channel DIMM (Amazon EC2)",
];

/// From what a name says to channel and slot.
#[derive(Debug)]
pub enum Layout {
    /// Numbers go round the channels: the first slots of all, then the second ones.
    Round,
    /// A list for each number of slots that a socket may have: channel and slot of its first
    /// number, the second one, ...
    Lists(&'static [&'static [(u32, u32)]]),
    /// Channel and slot of number 1, 2, ... over both processors of a board, where the second one's
    /// numbers go on or begin anew.
    Board(&'static [(u32, u32)]),
    /// Each channel has numbers in a row; in the upper half of the channels the highest is filled
    /// first.
    Rows,
    /// The same, where the next processor's numbers go on.
    RowsGoOn,
    /// The name has channel and slot. Channel letters begin anew with each socket or go on over
    /// them.
    Named,
    /// The same with a node: the controller in the socket if it has several, or if channels stay
    /// below those of one controller; else the socket again.
    Nodes,
    /// The same, where nodes share the channels evenly, whatever controllers there are.
    Halves,
}
