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
    Rule {
        family: "Dell PowerEdge, Xeon E5",
        vendors: &["dell"],
        cpus: FOUR_CHANNELS,
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Round,
        source: "Dell DL4000 (R720 class) owner's manual: channel 0 = A1, A5, A9; 1 = A2, A6, A10; 2 = A3, A7, A11; \
                 3 = A4, A8, A12",
    },
    Rule {
        family: "Dell PowerEdge, three channels",
        vendors: &["dell"],
        cpus: &[Nehalem, SandyBridgeEn, IvyBridgeEn],
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Round,
        source: "Dell PowerEdge T420 and M420 owner's manuals: A1 and A4, A2 and A5, A3 and A6 share a channel",
    },
    Rule {
        family: "Dell PowerEdge, 14th generation (Xeon Scalable)",
        vendors: &["dell"],
        cpus: SKYLAKE_BOARDS,
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Lists(&[DELL_SIX, DELL_TEN, DELL_TWELVE]),
        source: "Dell R740xd, T640 and XC940 manuals, system memory guidelines: channel n = slots A(n+1) and A(n+7); \
                 R540 manual for ten slots: A1+A7, A2+A8, A3, A4+A9, A5+A10, A6",
    },
    Rule {
        family: "Dell PowerEdge, 15th and 16th generation (Xeon Scalable)",
        vendors: &["dell"],
        cpus: &[IceLake, SapphireRapids, EmeraldRapids],
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Lists(&[DELL_EIGHT, DELL_SIXTEEN]),
        source: "Dell XC750xa manual, table 18: channel A = slots 1+9, B = 5+13, C = 3+11, D = 7+15, E = 2+10, \
                 F = 6+14, G = 4+12, H = 8+16",
    },
    Rule {
        family: "Dell PowerEdge, EPYC",
        vendors: &["dell"],
        cpus: &[Naples, Rome, Milan, Genoa, Siena, Turin],
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Round,
        source: "Dell white paper \"Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge Servers\": \
                 channel n = slots A(n) and A(n+8)",
    },
    Rule {
        family: "Dell PowerEdge, Xeon E",
        vendors: &["dell"],
        cpus: &[XeonE],
        locators: DELL_NAMES,
        banks: &[],
        first_socket: 0,
        layout: Layout::Round,
        source: "Dell R330 and R340 manuals: A1 and A3, A2 and A4 share a channel",
    },
    Rule {
        family: "HP ProLiant, 8th and 9th generation (Xeon E5)",
        vendors: &["hp"],
        cpus: FOUR_CHANNELS,
        locators: &["proc {socket} dimm {number}"],
        banks: &[],
        first_socket: 1,
        layout: Layout::Rows,
        source: "HP ProLiant DL380p Gen8 and DL380 Gen9 user guides: channels of consecutive slots (1-3, 4-6, 7-9, \
                 10-12), filled 1, 4, 9, 12 first",
    },
    Rule {
        family: "HPE ProLiant, 10th generation (Xeon Scalable)",
        vendors: &["hp"],
        cpus: SKYLAKE_BOARDS,
        locators: &["proc {socket} dimm {number}"],
        banks: &[],
        first_socket: 1,
        layout: Layout::Lists(&[HPE_TWELVE]),
        source: "HPE white paper \"Population rules for DIMMs in HPE Gen10 servers with Intel Xeon Scalable \
                 processors\": slots 8/7, 10/9, 12/11 = channels 1-3, 5/6, 3/4, 1/2 = channels 4-6",
    },
    Rule {
        family: "Lenovo ThinkSystem (Xeon Scalable)",
        vendors: &["lenovo"],
        cpus: SKYLAKE_BOARDS,
        locators: &["dimm {number}"],
        banks: &["cpu {socket}"],
        first_socket: 1,
        layout: Layout::Lists(&[LENOVO_TWELVE]),
        source: "Lenovo SN550 setup guide: controller 0 = DIMM 5/6, 3/4, 1/2, controller 1 = 8/7, 10/9, 12/11; the next \
                 processor counts on from 13",
    },
    Rule {
        family: "bank strings P_Node_Channel_Dimm (AMI firmware)",
        vendors: &[],
        cpus: &[],
        locators: &[],
        banks: &["p{socket}_node{node}_channel{channel}_dimm{slot}"],
        first_socket: 0,
        layout: Layout::Nodes,
        source: "AMI firmware's bank strings, as on Supermicro X10/X11 (node = controller where a socket has several) \
                 and on Gigabyte (node = socket)",
    },
    Rule {
        family: "bank strings with node or socket, channel and slot",
        vendors: &[],
        cpus: &[],
        locators: &[],
        banks: &[
            "_node{socket}_channel{channel}_dimm{slot}",
            "node{socket}_channel{channel}_dimm{slot}",
            "node {socket} channel {channel} dimm {slot}",
            "socket {socket} channel {channel} dimm {slot}",
            "socket{socket}_channel{channel}_dimm{slot}",
        ],
        first_socket: 0,
        layout: Layout::Named,
        source: "the bank's own words, as on Huawei RH and TaiShan and on Cisco UCS servers",
    },
    Rule {
        family: "bank P CHANNEL, locator DIMM (AMD firmware)",
        vendors: &[],
        cpus: &[],
        locators: &["dimm {slot}", "dimm{slot}"],
        banks: &["p{socket} channel {channel-letter}", "p{socket}_channel_{channel-letter}"],
        first_socket: 0,
        layout: Layout::Named,
        source: "the names' own words, as AMD's reference firmware writes them",
    },
    Rule {
        family: "Huawei, DIMM and three digits",
        vendors: &["huawei", "xfusion"],
        cpus: &[],
        locators: &["dimm{socket-digit}{channel-digit}{slot-digit}"],
        banks: &[],
        first_socket: 0,
        layout: Layout::Named,
        source: "Huawei RH1288 V3 user guide: DIMM<processor><channel><slot>",
    },
    Rule {
        family: "CPU_CD (Inspur)",
        vendors: &[],
        cpus: &[],
        locators: &[
            "cpu{socket}_c{channel}d{slot}",
            "cpu{socket}_ch{channel}_d{slot}",
            "cpu{socket}_ch{channel}d{slot}",
        ],
        banks: &[],
        first_socket: 0,
        layout: Layout::Named,
        source: "the locator's own words, as on Inspur NF5280M6: CPU<processor>_C<channel>D<slot>",
    },
    Rule {
        family: "P-DIMM and a channel's letter (Supermicro)",
        vendors: &["supermicro"],
        cpus: &[],
        locators: &["p{socket}-dimm{channel-letter}{slot}", "p{socket}_dimm{channel-letter}{slot}"],
        banks: &[],
        first_socket: 1,
        layout: Layout::Named,
        source: "Supermicro X10, X11 and H11 board manuals: P<processor>-DIMM<channel><slot>",
    },
    // Before the next one: names that have a 0 do not follow it.
    Rule {
        family: "processor, channel's letter and slot, processors from 1",
        vendors: &[],
        cpus: &[],
        locators: &[
            "cpu{socket}_dimm_{channel-letter}{slot}",
            "cpu{socket}_{channel-letter}{slot}",
            "cpu{socket}-dimm{channel-letter}{slot}",
            "p{socket}-dimm{channel-letter}{slot}",
            "p{socket}_dimm{channel-letter}{slot}",
        ],
        banks: &[],
        first_socket: 1,
        layout: Layout::Named,
        source: "the locator's own words, as on Intel S2600 boards (CPU1_DIMM_A1)",
    },
    Rule {
        family: "processor, channel's letter and slot, processors from 0",
        vendors: &[],
        cpus: &[],
        locators: &[
            "dimm_p{socket}_{channel-letter}{slot}",
            "cpu{socket}_{channel-letter}{slot}",
            "cpu{socket}_dimm_{channel-letter}{slot}",
            "p{socket}_dimm_{channel-letter}{slot}",
        ],
        banks: &[],
        first_socket: 0,
        layout: Layout::Named,
        source: "the locator's own words, as on Gigabyte (DIMM_P0_A0) and Hitachi DS240 (CPU0_A0)",
    },
    Rule {
        family: "channel's letter and slot, going on over the processors",
        vendors: &["intel", "asus", "cisco", "fujitsu", "quanta"],
        cpus: &[],
        locators: &["dimm_{channel-letter}{slot}", "dimm-{slot}{channel-letter}"],
        banks: &[],
        first_socket: 0,
        layout: Layout::Named,
        source: "Intel S2600, Cisco UCS and Fujitsu RX board guides: letters A to D of the first processor, E to H of the \
                 second one",
    },
    Rule {
        family: "channel's letter and slot of one processor",
        vendors: &[],
        cpus: &[XeonE],
        locators: &[
            "channel{channel-letter}-dimm{slot}",
            "dimm_{channel-letter}{slot}",
            "dimm{channel-letter}{slot}",
        ],
        banks: &[],
        first_socket: 0,
        layout: Layout::Named,
        source: "the locator's own words, as Intel's reference firmware writes them",
    },
];
