//! Slots by number on boards without a manual of their own: firmware gives the channels (Redfish's
//! memory locations, letters of banks), or a related board's document does. Where a rule also rests
//! on the order in which firmware lists the slots, its source says so: that order is controller,
//! channel, slot on boards whose manuals or EDAC labels are known (PowerEdge R220, ThinkSystem
//! SR650 and SR650 V2, ThinkStation P920). The modules of a model's inventories (linuxhw/DMI) must
//! fill its slots as such channels are filled.

use super::super::cpus::Family::{
    Core, EmeraldRapids, IceLake, IvyBridgeEn, IvyBridgeEp, Nehalem, Opteron4000, Opteron6000, SandyBridgeEn,
    SandyBridgeEp, SapphireRapids, XeonE,
};
use super::super::platforms::{Layout, Rule, rule};
use super::slots::{
    HP_NINE, HP_SIX_UP, HPE_BLADE, IBM_EIGHT, ICE_LAKE_TURNED, LENOVO_FOUR, LENOVO_SIX,
    LENOVO_WORKSTATION_EIGHT, LENOVO_WORKSTATION_SIX, ROWS_TWELVE, TWO,
};
use super::{SKYLAKE_BOARDS, poweredge, proliant, thinksystem};

const SUN: &[&str] = &["oracle", "sun microsystems"];
const SUN_BANK: &[&str] = &["/sys/mb/p{socket}"];

pub(in super::super) const RULES: &[Rule] = &[
    proliant(
        "HPE Synergy 480 Gen10 (Xeon Scalable)",
        Layout::Board(HPE_BLADE),
        "Redfish of a Synergy 480 Gen10 (test data of HPE OneView, MemoryLocation): PROC 1 as on other servers of this \
         generation, PROC 2 turned round: DIMM 1, 2 = channel 3, 3, 4 = 2, 5, 6 = 1, 7, 8 = 4, 9, 10 = 5, 11, 12 = 6",
    )
    .named(&["synergy 480 gen10"])
    .of(SKYLAKE_BOARDS),
    proliant(
        "HPE ProLiant DL360 Gen10 Plus (Xeon Scalable)",
        Layout::Lists(&[ICE_LAKE_TURNED]),
        "Redfish of a DL360 Gen10 Plus (akaliwod/iserver, MemoryLocation): PROC 1 DIMM 1, 2 = channel 6, 3, 4 = 5, \
         5, 6 = 8, 7, 8 = 7, 9, 10 = 3, 11, 12 = 4, 13, 14 = 1, 15, 16 = 2",
    )
    .named(&["dl360 gen10 plus"])
    .of(&[IceLake]),
    poweredge(
        "Dell PowerEdge of two channels (Xeon 3400)",
        Layout::Round,
        "Dell R220 owner's manual, memory channels: 1 = sockets 1 and 3, 2 = 2 and 4; T310 technical guide: two channels, \
         six sockets; inventories fill A1 and A2 alike, then A3 and A4",
    )
    .named(&["poweredge r210", "poweredge t110", "poweredge r310", "poweredge t310"])
    .of(&[Core]),
    proliant(
        "HP ProLiant DL165 G7 (Opteron 6000)",
        Layout::Named,
        "the bank's letter: slots 1 to 3 = A, 4 to 6 = B, 7 to 9 = C, 10 to 12 = D",
    )
    .named(&["dl165 g7"])
    .of(&[Opteron6000])
    .banks(&["{channel-letter}"])
    .unordered(),
    thinksystem(
        "Lenovo ThinkSystem SR530 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_SIX]),
        "the order in which its firmware lists DIMM 3, 2, 1, 4, 5, 6, as Lenovo SR570 maintenance manual has channels 0, \
         1, 2 of either controller",
    )
    .named(&["sr530"])
    .of(SKYLAKE_BOARDS),
    rule(
        "Lenovo ThinkStation P720 (Xeon Scalable)",
        Layout::Lists(&[LENOVO_WORKSTATION_SIX]),
        "the order in which its firmware lists DIMM 3, 5, 1, 4, 6, 2, as that of P920 does, and in \
         rasdaemon's EDAC labels (board 1038)",
    )
    .by(&["lenovo"])
    .named(&["1037"])
    .of(SKYLAKE_BOARDS)
    .locators(&["cpu{socket}_dimm_{number}"])
    .counting_from_one(),
    rule(
        "Lenovo ThinkStation PX (Xeon Scalable)",
        Layout::Lists(&[LENOVO_WORKSTATION_EIGHT]),
        "the banks' nodes, two slots each: DIMM 4, 3 = 0, 2, 1 = 1, 5, 6 = 2, 7, 8 = 3, as Lenovo SD530 V3 user guide \
         has the controllers of processor 1",
    )
    .by(&["lenovo"])
    .named(&["104E"])
    .of(&[SapphireRapids, EmeraldRapids])
    .locators(&["cpu{socket}_dimm_{number}"]),
    rule(
        "Sun Fire (Xeon 5500/5600)",
        Layout::Lists(&[HP_NINE]),
        "Sun Netra X6270 M2 documentation, DIMM population rules: three slots of each channel, D8, D5, D2 first, then D7, \
         D4, D1, then D6, D3, D0; the firmware of X4170 M2 lists D2, D1, D0, D5, D4, D3, D8, D7, D6",
    )
    .by(SUN)
    .named(&["x4170 m2", "x4270 m2", "x6270 m2"])
    .of(&[Nehalem])
    .locators(&["d{number}"])
    .banks(SUN_BANK)
    .numbers_from_zero(),
    rule(
        "Oracle Server X9-2 (Xeon Scalable)",
        Layout::Lists(&[ICE_LAKE_TURNED]),
        "Oracle Server X9-2L service manual, DIMM and processor physical layout: channels 0 to 7 = D13+D12, D15+D14, \
         D9+D8, D11+D10, D2+D3, D0+D1, D6+D7, D4+D5",
    )
    .by(SUN)
    .named(&["server x9-2"])
    .of(&[IceLake])
    .locators(&["d{number}"])
    .banks(SUN_BANK)
    .numbers_from_zero(),
    rule(
        "IBM System x3650 (type 7979), fully buffered memory",
        Layout::Lists(&[ROWS_TWELVE]),
        "its banks are pairs on two channels: DIMM 1+4, 7+10, 2+5, 8+11, 3+6, 9+12; IBM System x3400 (type 7975) guide: a \
         channel has the connectors below each other, a branch those next to each other (1 and 4)",
    )
    .by(&["ibm"])
    .named(&["x3650 -[7979"])
    .locators(&["dimm {number}"])
    .of_chipset(),
    poweredge(
        "Dell PowerEdge, Opteron",
        Layout::Round,
        "Dell R815 technical guide, memory: four channels of two slots, filled in the order of their numbers, the first of \
         each channel first; Dell's manuals of EPYC go on from there: channel n = slots A(n) and A(n) + channels",
    )
    .named(&["poweredge r815", "poweredge r715", "poweredge r515"])
    .of(&[Opteron4000, Opteron6000]),
    rule(
        "HPE ProLiant MicroServer Gen10",
        Layout::Lists(&[TWO]),
        "the banks of the same board with other firmware: DIMM 1 = CHANNEL A, DIMM 2 = CHANNEL B",
    )
    .by(&["hp"])
    .named(&["microserver gen10"])
    .locators(&["dimm {number}"])
    .banks(&[""])
    .alone(),
    rule(
        "IBM System x M2 and x3400 M3 (Xeon 5500/5600)",
        Layout::Lists(&[IBM_EIGHT]),
        "IBM System x3550 M3 (type 7944) guide for nine slots; one module per channel fills 3, 6, 8 of x3550 M2, two 2, 3, 5, \
         6, 8 of x3400 M3",
    )
    .by(&["ibm"])
    .named(&["x3550 m2", "x3650 m2", "system x -[7946", "x3400 m3"])
    .of(&[Nehalem])
    .locators(&["dimm{number}"])
    .each(8),
    rule(
        "IBM System x M4 (Xeon E5-2400)",
        Layout::Lists(&[HP_SIX_UP]),
        "IBM System x3630 M4 guide: three channels of two slots; one module per channel fills 1, 3, 5 of x220, two of unlike \
         size a channel 1 to 4 of x3300 M4",
    )
    .by(&["ibm"])
    .named(&["x3300 m4", "system x220"])
    .of(&[SandyBridgeEn, IvyBridgeEn])
    .locators(&["dimm {number}"])
    .each(6),
    rule(
        "IBM iDataPlex dx360 M4 (Xeon E5)",
        Layout::RowsGoOn,
        "IBM System x3550 M4 guide: channels in rows, the outer slots first; four modules per processor fill 1, 3, 6, 8, 9, \
         11, 14, 16",
    )
    .by(&["ibm"])
    .named(&["dx360 m4"])
    .of(&[SandyBridgeEp, IvyBridgeEp])
    .locators(&["dimm {number}"])
    .each(8),
    rule(
        "IBM and Lenovo System x3250 (Xeon E3)",
        Layout::Lists(&[LENOVO_FOUR]),
        "Lenovo System x3250 M4 guide: pairs on two channels are connectors 1 and 3, 2 and 4; its firmware lists 4, 3, 2, 1, as \
         that of SR250 does",
    )
    .by(&["ibm", "lenovo"])
    .named(&["x3250 m4"])
    .of(&[XeonE])
    .locators(&["dimm{number}", "dimm {number}"])
    .alone(),
    rule(
        "HP ProLiant, 7th and 8th generation (Opteron 6000)",
        Layout::Round,
        "the slots' letters: HP SL210t Gen8, DL360e Gen8 and DL380 G7 user guides, memory subsystem architecture: letters \
         are the population order, which goes round the channels (SL210t: channel 1 = A, E, 2 = B, F, 3 = C, G, 4 = D, H); the banks \
         of DL165 G7 give slots 1 to 3, 4 to 6, 7 to 9, 10 to 12 a channel each, as these letters do",
    )
    .by(&["hp"])
    .of(&[Opteron6000])
    .locators(&["proc {socket} dimm {any}{number-letter}"])
    .counting_from_one()
    .numbers_from_zero(),
];
