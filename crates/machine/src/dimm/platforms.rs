//! How platforms name their slots: one rule for each family of boards, tried in order. A rule is
//! data; `place` applies it.

use super::cpus::Family::{
    self, BroadwellEp, CascadeLake, CooperLake, EmeraldRapids, Genoa, HaswellEp, IceLake, IvyBridgeEn,
    IvyBridgeEp, Milan, Naples, Nehalem, Rome, SandyBridgeEn, SandyBridgeEp, SapphireRapids, Siena, Skylake,
    Turin, XeonE,
};

/// One family of boards.
#[derive(Debug)]
pub struct Rule {
    pub family: &'static str,
    /// Beginnings of the system's or the board's maker, lower case; empty: anybody's.
    pub vendors: &'static [&'static str],
    /// Processors; empty: any.
    pub cpus: &'static [Family],
    /// Patterns (see `names`), of which every module's locator follows one; empty: it does not
    /// matter.
    pub locators: &'static [&'static str],
    /// The same of banks.
    pub banks: &'static [&'static str],
    /// The number of the first socket.
    pub first_socket: u32,
    pub layout: Layout,
    pub source: &'static str,
    /// Whether it is known which slot of a channel is filled first.
    pub is_order_known: bool,
}

/// A rule of anybody's boards with any processors, sockets counted from 0.
const fn rule(family: &'static str, layout: Layout, source: &'static str) -> Rule {
    Rule {
        family,
        vendors: &[],
        cpus: &[],
        locators: &[],
        banks: &[],
        first_socket: 0,
        layout,
        source,
        is_order_known: true,
    }
}

impl Rule {
    const fn by(self, vendors: &'static [&'static str]) -> Rule {
        Rule { vendors, ..self }
    }

    const fn of(self, cpus: &'static [Family]) -> Rule {
        Rule { cpus, ..self }
    }

    const fn locators(self, locators: &'static [&'static str]) -> Rule {
        Rule { locators, ..self }
    }

    const fn banks(self, banks: &'static [&'static str]) -> Rule {
        Rule { banks, ..self }
    }

    const fn counting_from_one(self) -> Rule {
        Rule { first_socket: 1, ..self }
    }

    /// It is not known which slot of a channel is filled first.
    const fn unordered(self) -> Rule {
        Rule { is_order_known: false, ..self }
    }
}

/// From what a name says to channel and slot.
#[derive(Debug)]
pub enum Layout {
    /// Numbers from 1 go round the channels: the first slots of all, then the second ones.
    Round,
    /// A list for each number of slots that a socket may have: channel and slot of number 1, 2, ...
    Lists(&'static [&'static [(u32, u32)]]),
    /// Each channel has numbers in a row; in the upper half of the channels the highest is filled
    /// first.
    Rows,
    /// The name has channel and slot. Channel letters begin anew with each socket or go on over
    /// them.
    Named,
    /// The same with a node: the controller in the socket if it has several, or if channels stay
    /// below those of one controller; else the socket again.
    Nodes,
}

/// (channel, slot) of A1, A2, ... on Dell's boards with ten slots for the first of two Skylake-SP.
const DELL_TEN: &[(u32, u32)] =
    &[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (1, 1), (3, 1), (4, 1)];
const DELL_SIX: &[(u32, u32)] = &[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)];
const DELL_TWELVE: &[(u32, u32)] =
    &[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0), (0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)];

/// Channels A to H of slots 1 to 8 of Dell's Ice Lake boards; 9 to 16 are their second slots.
const DELL_SIXTEEN: &[(u32, u32)] = &[
    (0, 0),
    (4, 0),
    (2, 0),
    (6, 0),
    (1, 0),
    (5, 0),
    (3, 0),
    (7, 0),
    (0, 1),
    (4, 1),
    (2, 1),
    (6, 1),
    (1, 1),
    (5, 1),
    (3, 1),
    (7, 1),
];
const DELL_EIGHT: &[(u32, u32)] = &[(0, 0), (4, 0), (2, 0), (6, 0), (1, 0), (5, 0), (3, 0), (7, 0)];

/// HPE counts across the board: 7 to 12 belong to the first controller, 1 to 6 to the second one.
const HPE_TWELVE: &[(u32, u32)] =
    &[(5, 0), (5, 1), (4, 0), (4, 1), (3, 0), (3, 1), (0, 1), (0, 0), (1, 1), (1, 0), (2, 1), (2, 0)];

/// Lenovo counts across the board as well: 1 to 6 belong to the first controller.
const LENOVO_TWELVE: &[(u32, u32)] =
    &[(2, 0), (2, 1), (1, 0), (1, 1), (0, 0), (0, 1), (3, 1), (3, 0), (4, 1), (4, 0), (5, 1), (5, 0)];

const SKYLAKE_BOARDS: &[Family] = &[Skylake, CascadeLake, CooperLake];
const FOUR_CHANNELS: &[Family] = &[SandyBridgeEp, IvyBridgeEp, HaswellEp, BroadwellEp];
const DELL_NAMES: &[&str] =
    &["{socket-letter}{number}", "dimm_{socket-letter}{number}", "dimm {socket-letter}{number}"];

pub const RULES: &[Rule] = &[
    rule(
        "Dell PowerEdge, Xeon E5",
        Layout::Round,
        "Dell DL4000 (R720 class) owner's manual: channel 0 = A1, A5, A9; 1 = A2, A6, A10; 2 = A3, \
         A7, A11; 3 = A4, A8, A12",
    )
    .by(&["dell"])
    .of(FOUR_CHANNELS)
    .locators(DELL_NAMES),
    rule(
        "Dell PowerEdge, three channels",
        Layout::Round,
        "Dell PowerEdge T420 and M420 owner's manuals: A1 and A4, A2 and A5, A3 and A6 share a \
         channel",
    )
    .by(&["dell"])
    .of(&[Nehalem, SandyBridgeEn, IvyBridgeEn])
    .locators(DELL_NAMES),
    rule(
        "Dell PowerEdge, 14th generation (Xeon Scalable)",
        Layout::Lists(&[DELL_SIX, DELL_TEN, DELL_TWELVE]),
        "Dell R740xd, T640 and XC940 manuals, system memory guidelines: channel n = slots A(n+1) and \
         A(n+7); R540 manual for ten slots: A1+A7, A2+A8, A3, A4+A9, A5+A10, A6",
    )
    .by(&["dell"])
    .of(SKYLAKE_BOARDS)
    .locators(DELL_NAMES),
    rule(
        "Dell PowerEdge, 15th and 16th generation (Xeon Scalable)",
        Layout::Lists(&[DELL_EIGHT, DELL_SIXTEEN]),
        "Dell XC750xa manual, table 18: channel A = slots 1+9, B = 5+13, C = 3+11, D = 7+15, E = \
         2+10, F = 6+14, G = 4+12, H = 8+16",
    )
    .by(&["dell"])
    .of(&[IceLake, SapphireRapids, EmeraldRapids])
    .locators(DELL_NAMES),
    rule(
        "Dell PowerEdge, EPYC",
        Layout::Round,
        "Dell white paper \"Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge \
         Servers\": channel n = slots A(n) and A(n+8)",
    )
    .by(&["dell"])
    .of(&[Naples, Rome, Milan, Genoa, Siena, Turin])
    .locators(DELL_NAMES),
    rule(
        "Dell PowerEdge, Xeon E",
        Layout::Round,
        "Dell R330 and R340 manuals: A1 and A3, A2 and A4 share a channel",
    )
    .by(&["dell"])
    .of(&[XeonE])
    .locators(DELL_NAMES),
    rule(
        "HP ProLiant, 8th and 9th generation (Xeon E5)",
        Layout::Rows,
        "HP ProLiant DL380p Gen8 and DL380 Gen9 user guides: channels of consecutive slots (1-3, 4-6, \
         7-9, 10-12), filled 1, 4, 9, 12 first",
    )
    .by(&["hp"])
    .of(FOUR_CHANNELS)
    .locators(&["proc {socket} dimm {number}"])
    .counting_from_one(),
    rule(
        "HPE ProLiant, 10th generation (Xeon Scalable)",
        Layout::Lists(&[HPE_TWELVE]),
        "HPE white paper \"Population rules for DIMMs in HPE Gen10 servers with Intel Xeon Scalable \
         processors\": slots 8/7, 10/9, 12/11 = channels 1-3, 5/6, 3/4, 1/2 = channels 4-6",
    )
    .by(&["hp"])
    .of(SKYLAKE_BOARDS)
    .locators(&["proc {socket} dimm {number}"])
    .counting_from_one(),
    rule(
        "Lenovo ThinkSystem (Xeon Scalable)",
        Layout::Lists(&[LENOVO_TWELVE]),
        "Lenovo SN550 setup guide: controller 0 = DIMM 5/6, 3/4, 1/2, controller 1 = 8/7, 10/9, \
         12/11; the next processor counts on from 13",
    )
    .by(&["lenovo"])
    .of(SKYLAKE_BOARDS)
    .locators(&["dimm {number}"])
    .banks(&["cpu {socket}"])
    .counting_from_one(),
    rule(
        "bank strings P_Node_Channel_Dimm (AMI firmware)",
        Layout::Nodes,
        "AMI firmware's bank strings, as on Supermicro X10/X11 (node = controller where a socket has \
         several) and on Gigabyte (node = socket)",
    )
    .banks(&["p{socket}_node{node}_channel{channel}_dimm{slot}"]),
    rule(
        "bank strings with node or socket, channel and slot",
        Layout::Named,
        "the bank's own words, as on Huawei RH and TaiShan and on Cisco UCS servers",
    )
    .banks(&[
        "_node{socket}_channel{channel}_dimm{slot}",
        "node{socket}_channel{channel}_dimm{slot}",
        "node {socket} channel {channel} dimm {slot}",
        "socket {socket} channel {channel} dimm {slot}",
        "socket{socket}_channel{channel}_dimm{slot}",
    ]),
    rule(
        "bank P CHANNEL, locator DIMM (AMD firmware)",
        Layout::Named,
        "the names' own words, as AMD's reference firmware writes them",
    )
    .locators(&["dimm {slot}", "dimm{slot}"])
    .banks(&["p{socket} channel {channel-letter}", "p{socket}_channel_{channel-letter}"])
    .unordered(),
    rule(
        "Huawei, DIMM and three digits",
        Layout::Named,
        "Huawei RH1288 V3 user guide: DIMM<processor><channel><slot>",
    )
    .by(&["huawei", "xfusion"])
    .locators(&["dimm{socket-digit}{channel-digit}{slot-digit}"]),
    rule(
        "CPU_CD (Inspur)",
        Layout::Named,
        "the locator's own words, as on Inspur NF5280M6: CPU<processor>_C<channel>D<slot>",
    )
    .locators(&[
        "cpu{socket}_c{channel}d{slot}",
        "cpu{socket}_ch{channel}_d{slot}",
        "cpu{socket}_ch{channel}d{slot}",
    ]),
    rule(
        "P-DIMM and a channel's letter (Supermicro)",
        Layout::Named,
        "Supermicro X10, X11 and H11 board manuals: P<processor>-DIMM<channel><slot>",
    )
    .by(&["supermicro"])
    .locators(&["p{socket}-dimm{channel-letter}{slot}", "p{socket}_dimm{channel-letter}{slot}"])
    .counting_from_one(),
    // Before the next one: names that have a 0 do not follow it.
    rule(
        "processor, channel's letter and slot, processors from 1",
        Layout::Named,
        "the locator's own words, as on Intel S2600 boards (CPU1_DIMM_A1)",
    )
    .locators(&[
        "cpu{socket}_dimm_{channel-letter}{slot}",
        "cpu{socket}_{channel-letter}{slot}",
        "cpu{socket}-dimm{channel-letter}{slot}",
        "p{socket}-dimm{channel-letter}{slot}",
        "p{socket}_dimm{channel-letter}{slot}",
    ])
    .counting_from_one(),
    rule(
        "processor, channel's letter and slot, processors from 0",
        Layout::Named,
        "the locator's own words, as on Gigabyte (DIMM_P0_A0) and Hitachi DS240 (CPU0_A0)",
    )
    .locators(&[
        "dimm_p{socket}_{channel-letter}{slot}",
        "cpu{socket}_{channel-letter}{slot}",
        "cpu{socket}_dimm_{channel-letter}{slot}",
        "p{socket}_dimm_{channel-letter}{slot}",
    ]),
    rule(
        "channel's letter and slot, going on over the processors",
        Layout::Named,
        "Intel S2600, Cisco UCS and Fujitsu RX board guides: letters A to D of the first processor, E \
         to H of the second one",
    )
    .by(&["intel", "asus", "cisco", "fujitsu", "quanta"])
    .locators(&["dimm_{channel-letter}{slot}", "dimm-{slot}{channel-letter}"]),
    rule(
        "channel's letter and slot of one processor",
        Layout::Named,
        "the locator's own words, as Intel's reference firmware writes them",
    )
    .of(&[XeonE])
    .locators(&[
        "channel{channel-letter}-dimm{slot}",
        "dimm_{channel-letter}{slot}",
        "dimm{channel-letter}{slot}",
    ]),
];
