//! Slots by number on boards whose manuals say which numbers share a channel, a rule a family of
//! boards.

mod inferred;
mod slots;

use super::cpus::Family::{
    self, BroadwellEp, CascadeLake, CooperLake, Core, EmeraldRapids, Genoa, HaswellEp, IceLake, IvyBridgeEn,
    IvyBridgeEp, Milan, Naples, Nehalem, NehalemEx, Rome, SandyBridgeEn, SandyBridgeEp, SapphireRapids,
    Siena, Skylake, Turin, Xeon6Small, XeonE,
};
use super::platforms::{Layout, Rule, rule};
use slots::{
    BUFFERED_SIXTEEN, DELL_BUFFERED, DELL_EIGHT, DELL_EPYC_TWELVE, DELL_SIX, DELL_SIXTEEN,
    DELL_SKYLAKE_EIGHT, DELL_TEN, DELL_TWELVE, HP_NINE, HP_SIX, HP_SIX_UP, HPE_TWELVE, LENOVO_BLADE,
    LENOVO_EIGHT, LENOVO_EPYC_NODE, LENOVO_EPYC_TWELVE, LENOVO_FOUR, LENOVO_NODE, LENOVO_NODE_V2,
    LENOVO_SIENA, LENOVO_SIXTEEN, LENOVO_SIXTEEN_BACK, LENOVO_SIXTEEN_V2, LENOVO_TWELVE, LENOVO_WORKSTATION,
    PAIRS_EIGHT,
};

pub(super) use inferred::RULES as INFERRED;

const SKYLAKE_BOARDS: &[Family] = &[Skylake, CascadeLake, CooperLake];
const FOUR_CHANNELS: &[Family] = &[SandyBridgeEp, IvyBridgeEp, HaswellEp, BroadwellEp];
const DELL_NAMES: &[&str] =
    &["{socket-letter}{number}", "dimm_{socket-letter}{number}", "dimm {socket-letter}{number}"];

/// Boards of Dell, whose names have a letter for the processor.
const fn poweredge(family: &'static str, layout: Layout, source: &'static str) -> Rule {
    rule(family, layout, source).by(&["dell"]).locators(DELL_NAMES)
}

/// Boards of HP and HPE since Generation 8.
const fn proliant(family: &'static str, layout: Layout, source: &'static str) -> Rule {
    let rule = rule(family, layout, source).by(&["hp"]);
    rule.locators(&["proc {socket} dimm {number}"]).counting_from_one()
}

/// Boards of Lenovo whose slots are counted for each processor.
const fn thinksystem(family: &'static str, layout: Layout, source: &'static str) -> Rule {
    let rule = rule(family, layout, source).by(&["lenovo"]);
    rule.locators(&["dimm {number}"]).banks(&["cpu {socket}"]).counting_from_one()
}

pub(super) const RULES: &[Rule] = &[
    poweredge(
        "Dell PowerEdge, Xeon E5",
        Layout::Round,
        "Dell DL4000 (R720 class) owner's manual: channel 0 = A1, A5, A9; 1 = A2, A6, A10; 2 = A3, \
         A7, A11; 3 = A4, A8, A12",
    )
    .of(FOUR_CHANNELS),
    poweredge(
        "Dell PowerEdge, three channels",
        Layout::Round,
        "Dell PowerEdge T420 and M420 owner's manuals: A1 and A4, A2 and A5, A3 and A6 share a \
         channel",
    )
    .of(&[Nehalem, SandyBridgeEn, IvyBridgeEn]),
    poweredge(
        "Dell PowerEdge, 14th generation (Xeon Scalable)",
        Layout::Lists(&[DELL_SIX, DELL_TEN, DELL_TWELVE]),
        "Dell R740xd, T640 and XC940 manuals, system memory guidelines: channel n = slots A(n+1) and \
         A(n+7); R540 manual for ten slots: A1+A7, A2+A8, A3, A4+A9, A5+A10, A6",
    )
    .of(SKYLAKE_BOARDS),
    poweredge(
        "Dell PowerEdge nodes and blades, 14th generation (Xeon Scalable)",
        Layout::Lists(&[DELL_SKYLAKE_EIGHT]),
        "rasdaemon's EDAC labels for M640, FC640 and C6420: A1 to A6 are channels 0 to 5, A7 shares that \
         of A1, A8 that of A4",
    )
    .named(&["m640", "fc640", "c6420"])
    .of(SKYLAKE_BOARDS),
    poweredge(
        "Dell PowerEdge, 15th and 16th generation (Xeon Scalable)",
        Layout::Lists(&[DELL_EIGHT, DELL_SIXTEEN]),
        "Dell XC750xa manual, table 18: channel A = slots 1+9, B = 5+13, C = 3+11, D = 7+15, E = \
         2+10, F = 6+14, G = 4+12, H = 8+16",
    )
    .of(&[IceLake, SapphireRapids, EmeraldRapids]),
    poweredge(
        "Dell PowerEdge, EPYC",
        Layout::Round,
        "Dell white paper \"Balanced Memory with 2nd Generation AMD EPYC Processors for PowerEdge \
         Servers\": channel n = slots A(n) and A(n+8)",
    )
    .of(&[Naples, Rome, Milan]),
    poweredge(
        "Dell PowerEdge, 16th generation (EPYC)",
        Layout::Lists(&[DELL_EPYC_TWELVE]),
        "Dell R6615 manual, memory channels: channels A to L = slots A1, A5, A3, A9, A7, A11, A2, A6, A4, A10, A8, \
         A12",
    )
    .of(&[Genoa]),
    poweredge(
        "Dell PowerEdge, Xeon E",
        Layout::Round,
        "Dell R330 and R340 manuals: A1 and A3, A2 and A4 share a channel",
    )
    .of(&[XeonE]),
    poweredge(
        "Dell PowerEdge, Xeon E's boards with a desktop's processor",
        Layout::Round,
        "rasdaemon's EDAC labels for R230, R330, T130 and T330: A1 and A3 are of channel 0, A2 and A4 of \
         channel 1; R340 manual: the same of R240's generation",
    )
    .named(&["r230", "r330", "t130", "t330", "r240", "r340"])
    .of(&[Core]),
    proliant(
        "HP ProLiant, 8th and 9th generation (Xeon E5)",
        Layout::Rows,
        "HP ProLiant DL380p Gen8 and DL380 Gen9 user guides: channels of consecutive slots (1-3, 4-6, \
         7-9, 10-12), filled 1, 4, 9, 12 first",
    )
    .of(FOUR_CHANNELS),
    proliant(
        "HPE ProLiant, 10th generation (Xeon Scalable)",
        Layout::Lists(&[HPE_TWELVE]),
        "HPE white paper \"Population rules for DIMMs in HPE Gen10 servers with Intel Xeon Scalable \
         processors\": slots 8/7, 10/9, 12/11 = channels 1-3, 5/6, 3/4, 1/2 = channels 4-6",
    )
    .of(SKYLAKE_BOARDS),
    thinksystem(
        "Lenovo ThinkSystem SN550 (Xeon Scalable)",
        Layout::Board(LENOVO_BLADE),
        "Lenovo SN550 setup guide, channel and slot information: controller 0, channels 2 to 0 = 1 to 6 of processor 1 and 24 \
         to 19 of processor 2, controller 1, channels 0 to 2 = 7 to 12 and 18 to 13; its firmware lists 5, 6, 3, 4, 1, 2, 8, 7 ... \
         and 20, 19, 22, 21, 24, 23, 17, 18 ...",
    )
    .named(&["sn550"])
    .of(SKYLAKE_BOARDS),
    thinksystem(
        "Lenovo ThinkSystem (Xeon Scalable)",
        Layout::Lists(&[LENOVO_TWELVE]),
        "Lenovo SN550 setup guide: controller 0 = DIMM 5/6, 3/4, 1/2, controller 1 = 8/7, 10/9, \
         12/11; the next processor counts on from 13",
    )
    .of(SKYLAKE_BOARDS),
    rule(
        "HP ProLiant, 6th and 7th generation (Xeon 5500/5600)",
        Layout::Lists(&[HP_SIX, HP_NINE]),
        "HP ProLiant DL380 G7 user guide, memory subsystem architecture: channel 1 = slots 1G, 2D, 3A, 2 = 4H, \
         5E, 6B, 3 = 7I, 8F, 9C, filled by letter",
    )
    .by(&["hp"])
    .of(&[Nehalem])
    .locators(&["proc {socket} dimm {number}{any-letter}", "proc {socket} dimm {number}"])
    .counting_from_one(),
    proliant(
        "HP ProLiant, 8th generation (Xeon E5-2400)",
        Layout::Lists(&[HP_SIX_UP]),
        "HP ProLiant DL360e Gen8 user guide, memory subsystem architecture: channel 1 = slots 1 (A), 2 (D), \
         2 = 3 (B), 4 (E), 3 = 5 (C), 6 (F), filled by letter",
    )
    .of(&[SandyBridgeEn, IvyBridgeEn]),
    thinksystem(
        "Lenovo ThinkSystem with eight slots per processor (Xeon Scalable)",
        Layout::Lists(&[LENOVO_EIGHT]),
        "Lenovo SR570 maintenance manual, memory module installation rules: iMC0 = DIMM 1 (CH2), 2 (CH1), 3+4 \
         (CH0), iMC1 = 6+5 (CH0), 7 (CH1), 8 (CH2); the firmware of SR590 lists its slots in this order",
    )
    .named(&["sr570", "sr590"])
    .of(SKYLAKE_BOARDS),
    thinksystem(
        "Lenovo ThinkSystem V3 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_SIXTEEN]),
        "Lenovo SR630 V3 user guide, memory slot and channel identification: iMC1 = DIMM 1 to 4, iMC0 = 5 to 8, \
         iMC2 = 9 to 12, iMC3 = 13 to 16",
    )
    .named(&["sr630 v3", "sr650 v3"])
    .of(&[SapphireRapids, EmeraldRapids]),
    thinksystem(
        "Lenovo ThinkSystem V4 (Xeon 6)",
        Layout::Lists(&[LENOVO_SIXTEEN]),
        "Lenovo SR650 V4 user guide, memory slot and channel identification: DIMM 16 to 9 = channels 7 to 4, slots 0 and 1 \
         of each, 8 to 1 = channels 0 to 3, slots 1 and 0",
    )
    .named(&["sr650 v4", "sr630 v4"])
    .of(&[Xeon6Small]),
    thinksystem(
        "Lenovo ThinkSystem V3 (EPYC 9004)",
        Layout::Lists(&[LENOVO_EPYC_TWELVE]),
        "Lenovo SR635 V3 user guide, memory-channel configuration: DIMM 12 to 7 = channels F to A, 6 to 1 = G to L",
    )
    .named(&["sr635 v3", "sr655 v3"])
    .of(&[Genoa, Turin]),
    thinksystem(
        "Lenovo ThinkSystem V3 nodes (Xeon Scalable)",
        Layout::Board(LENOVO_NODE),
        "Lenovo SD530 V3 user guide, memory slot and channel identification: DIMM 4 to 1 = channels A to D, 5 to 8 \
         = E to H; 13 to 16 = A to D, 12 to 9 = E to H",
    )
    .named(&["sd530 v3", "sd650-n v3"])
    .of(&[SapphireRapids, EmeraldRapids]),
    thinksystem(
        "Lenovo ThinkSystem SR680a V3 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_SIXTEEN_BACK]),
        "Lenovo SR680a V3 user guide, memory-channel configuration: iMC3 = DIMM 1 to 4, iMC2 = 5 to 8, iMC0 = 9 to \
         12, iMC1 = 13 to 16",
    )
    .named(&["sr680a v3"])
    .of(&[SapphireRapids, EmeraldRapids]),
    thinksystem(
        "Lenovo ThinkSystem V3 nodes (EPYC 9004)",
        Layout::Lists(&[LENOVO_EPYC_NODE]),
        "Lenovo SD535 V3 user guide, memory-channel configuration: DIMM 1 to 6 = channels F to A, 7 to 12 = G to L",
    )
    .named(&["sd535 v3", "sr685a v3"])
    .of(&[Genoa, Turin]),
    rule(
        "IBM and Lenovo System x M5 (Xeon E5)",
        Layout::RowsGoOn,
        "Lenovo Storage DX8200 (System x3650 M5) documentation, DIMM installation sequence: 1, 4, 9, 12, 2, 5, 8, \
         11, 3, 6, 7, 10; the next processor counts on from 13. System x3550 M5 installation and service guide, \
         table 28: the same; an inventory of Flex System x240 M5 fills 1, 4, 9, 12, 13, 16, 21, 24",
    )
    .by(&["lenovo", "ibm"])
    .named(&["x3650 m5", "x3550 m5", "x240 m5"])
    .of(FOUR_CHANNELS)
    .locators(&["dimm {number}"])
    .banks(&["cpu {socket}"])
    .counting_from_one(),
    rule(
        "IBM System x M4 (Xeon E5)",
        Layout::RowsGoOn,
        "IBM System x3550 M4 installation and service guide, memory rank sparing, and x3650 M4 guide, memory mirrored \
         channel: a channel has 1 to 3, 4 to 6, 7 to 9, 10 to 12, and 1, 4, 9, 12 are filled first; the next \
         processor counts on from 13",
    )
    .by(&["ibm", "lenovo"])
    .named(&["x3550 m4", "x3650 m4 -", "x3650 m4:", "x3500 m4", "x3750 m4"])
    .of(FOUR_CHANNELS)
    .locators(&["dimm {number}"])
    .each(12),
    rule(
        "IBM System x M3 (Xeon 5500/5600)",
        Layout::Lists(&[HP_NINE]),
        "IBM System x3550 M3 (type 7944) guide, connectors on each memory channel: channel 0 = 1, 2, 3, 10, 11, 12, \
         1 = 4, 5, 6, 13, 14, 15, 2 = 7, 8, 9, 16, 17, 18; the x3650 M3 has the same system board",
    )
    .by(&["ibm", "lenovo"])
    .named(&["x3550 m3", "x3650 m3"])
    .of(&[Nehalem])
    .locators(&["dimm{number}", "dimm {number}"])
    .each(9),
    thinksystem(
        "Lenovo ThinkSystem V2 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_SIXTEEN_V2]),
        "Lenovo SR650 V2 maintenance manual, memory slot and channel identification: slots 16 to 1 = F0 F1 E0 E1 H0 H1 \
         G0 G1 C1 C0 D1 D0 A1 A0 B1 B0; the firmware of SR630 V2 lists its slots in the same order as that of SR650 V2",
    )
    .named(&["sr650 v2", "sr630 v2"])
    .of(&[IceLake]),
    thinksystem(
        "Lenovo ThinkSystem SD630 V2 (Xeon Scalable)",
        Layout::Board(LENOVO_NODE_V2),
        "Lenovo SD630 V2 documentation, memory channels and DIMM slots: controllers 0 to 3 = connectors 2 1, 4 3, 7 8, \
         5 6 of processor 1 and 15 16, 13 14, 10 9, 12 11 of processor 2",
    )
    .named(&["sd630 v2"])
    .of(&[IceLake]),
    rule(
        "Lenovo ThinkStation P920 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_WORKSTATION]),
        "rasdaemon's EDAC labels for board 1038: DIMM 3, 5, 1 = channels 0 to 2 of controller 0, 4, 6, 2 \
         = of controller 1; Lenovo \"ThinkStation P920 and P720 Memory Configurator\", board layout: 7 and 8 next to 3 \
         and 4, on the processor's side",
    )
    .by(&["lenovo"])
    .named(&["1038"])
    .of(SKYLAKE_BOARDS)
    .locators(&["cpu{socket}_dimm_{number}"])
    .counting_from_one(),
    thinksystem(
        "Lenovo ThinkEdge SE455 V3 (EPYC 8004)",
        Layout::Lists(&[LENOVO_SIENA]),
        "Lenovo SE455 V3 user guide, memory slot and channel identification: channels A, B, D, E, F, H = slots 3, 2, 1, \
         4, 5, 6",
    )
    .named(&["se455 v3"])
    .of(&[Siena]),
    thinksystem(
        "Lenovo ThinkSystem ST50 V3 (Xeon E)",
        Layout::Lists(&[LENOVO_FOUR]),
        "Lenovo ST50 V3 user guide, memory modules and processors layout: channel A = slots 4 and 3, B = 2 and 1; the \
         firmware of SR250 and SR250 V2 lists its slots in this order",
    )
    .named(&["st50 v3", "sr250"])
    .of(&[XeonE])
    .unordered(),
    rule(
        "Dell PowerEdge R220 (Xeon E3)",
        Layout::Round,
        "Dell R220 owner's manual, memory channels: 1 = sockets 1 and 3, 2 = 2 and 4",
    )
    .by(&["dell"])
    .named(&["r220"])
    .of(&[XeonE])
    .locators(&["dimm_{number}"])
    .alone(),
    rule(
        "Dell PowerEdge, fully buffered memory",
        Layout::Lists(&[DELL_BUFFERED]),
        "Dell PowerEdge 2950 hardware owner's manual, system memory: channel 0 = DIMM 1, 5; 1 = 2, 6; 2 = 3, 7; 3 = 4, 8",
    )
    .by(&["dell"])
    .named(&["poweredge 2950", "poweredge 1955", "poweredge 1950"])
    .locators(&["dimm{number}"])
    .of_chipset(),
    rule(
        "Dell PowerEdge, bank and channel of a chipset",
        Layout::Named,
        "Dell PowerEdge 1855 user's guide, memory: three banks on two channels (A and B), bank 1 = DIMM1_A and DIMM1_B",
    )
    .by(&["dell"])
    .locators(&["dimm{slot}_{channel-letter}"])
    .of_chipset(),
    rule(
        "HP ProLiant DL360 G5 and DL380 G5, fully buffered memory",
        Layout::Lists(&[PAIRS_EIGHT]),
        "HP DL380 G5 maintenance and service guide, FBDIMM configurations: modules stand in pairs, the banks of the slots' \
         letters (A = 1, 3, B = 5, 7, C = 2, 4, D = 6, 8); A and B mirror each other on the two branches, C goes with A; IBM \
         System x3550 (type 7978) guide: the same pairs on four channels",
    )
    .by(&["hp"])
    .named(&["dl360 g5", "dl380 g5"])
    .locators(&["dimm {number}{any-letter}"])
    .of_chipset(),
    rule(
        "HP ProLiant DL580 G7 (Xeon 7500 and E7)",
        Layout::Lists(&[BUFFERED_SIXTEEN]),
        "HP ProLiant DL580 G7 user guide, memory options: two cartridges behind a processor, a memory controller each; pairs on \
         its two interfaces are 1A and 8A, 3B and 6B, 2C and 7C, 4D and 5D, filled in this order",
    )
    .by(&["hp"])
    .of(&[NehalemEx])
    .locators(&["board {card}, dimm {number}{any-letter}"])
    .cards(2, 8),
    rule(
        "IBM System x3850 X5 (Xeon 7500 and E7)",
        Layout::Lists(&[BUFFERED_SIXTEEN]),
        "IBM eX5 Implementation Guide, memory: cards 1 and 2 are processor 1's, 3 and 4 processor 2's, 5 and 6 processor 3's, 7 \
         and 8 processor 4's; pairs are 1 and 8, 3 and 6, 2 and 7, 4 and 5, and 1, 3, 6, 8 are the ends of their channels",
    )
    .by(&["ibm"])
    .named(&["x3850 x5", "x3950 x5"])
    .of(&[NehalemEx])
    .locators(&["dimm {number}"])
    .banks(&["node {any} bank {any} memcard {card}"])
    .cards(2, 8),
];
