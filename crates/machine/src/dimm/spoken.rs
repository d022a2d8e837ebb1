//! Slots whose names, or those of their banks, contain channel and slot, a rule a way to
//! write it. The source is the name; boards on which it was seen stand beside it.

use super::cpus::Family::{Core, XeonD1500, XeonE};
use super::platforms::{Layout, Rule, rule};

/// Makers on whose boards the number stands for the channel and the letter for the slot, and those
/// that sell the boards under another name.
const SUPERMICRO: &[&str] = &["supermicro", "depo"];
const CHANNEL_AND_LETTER: &[&str] = &[
    "p{socket}-dimm{channel}{slot-letter}",
    "p{socket}_dimm{channel}{slot-letter}",
    "p{socket}-{channel}{slot-letter}",
    "p{socket}_{channel}{slot-letter}",
];

pub(super) const RULES: &[Rule] = &[
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
        "a1_node{socket}_channel{channel}_dimm{slot}",
        "node{socket}_channel{channel}_dimm{slot}",
        "node {socket} channel {channel} dimm {slot}",
        "socket {socket} channel {channel} dimm {slot}",
        "socket{socket}_channel{channel}_dimm{slot}",
        "p{socket}_channel{channel}_dimm{slot}",
    ]),
    rule(
        "bank strings with the slot's name, node, channel and slot",
        Layout::Named,
        "the bank's own words, as on Hyve HS9216 and Sugon I620-G20 (A0_Node0_Channel0_Dimm0), where the locator has \
         the node as CPU",
    )
    .by(&["hyve", "sugon"])
    .banks(&["{any-letter}{any}_node{socket}_channel{channel}_dimm{slot}"]),
    rule(
        "bank P CHANNEL, locator DIMM (AMD firmware)",
        Layout::Named,
        "the names' own words, as AMD's reference firmware writes them",
    )
    .locators(&[
        "dimm {slot}",
        "dimm{slot}",
        "cpu{any} dimm {any-letter}{slot}",
        "cpu{any}_dimm{any-letter}{slot}",
        "p{any}_umc{any}_ch_{any-letter}{slot}",
        "p{any}_d{any}_umc{any}_ch_{any-letter}{slot}",
    ])
    .banks(&["p{socket} channel {channel-letter}", "p{socket}_channel_{channel-letter}"])
    .unordered(),
    rule(
        "locator SOCKET CHANNEL DIMM",
        Layout::Named,
        "the locator's own words, as on Phytium D2000 and S2500",
    )
    .locators(&[
        "socket {socket} channel {channel} dimm {slot}",
        "socket{socket}_channel{channel}_dimm{slot}",
        "node {socket} channel {channel} dimm {slot} (c{any}{any-letter}{any})",
    ])
    .unordered(),
    rule(
        "bank SOCKET CHANNEL DIMM, modules counted over all channels",
        Layout::Named,
        "the bank's own words, as on Phytium FT-2000+ (SOCKET 0 CHANNEL 1 DIMM 1)",
    )
    .banks(&["socket {socket} channel {channel} dimm {number}"])
    .unordered(),
    rule(
        "processor, channel and slot's letter (P1-DIMM2A)",
        Layout::Named,
        "the locator's own words, as on Supermicro X8 and H8: P<processor>-DIMM<channel><slot>; on X8DTU, \
         whose processors are P0 and P1, either is the first, as boards with one processor show",
    )
    .by(SUPERMICRO)
    .locators(CHANNEL_AND_LETTER)
    .counting_from_one()
    .zero_last()
    .channels_from_one()
    .unordered(),
    rule(
        "processor, channel and slot's letter (P0-DIMM2A)",
        Layout::Named,
        "the locator's own words, as on Supermicro X8DTU where P0 is the first processor",
    )
    .by(SUPERMICRO)
    .locators(CHANNEL_AND_LETTER)
    .channels_from_one()
    .unordered(),
    rule(
        "node, channel and slot's letter (NODE0-2A)",
        Layout::Named,
        "the locator's own words, as on Supermicro X8DA3: NODE<processor>-<channel><slot>",
    )
    .by(SUPERMICRO)
    .locators(&["node{socket}-{channel}{slot-letter}"])
    .channels_from_one()
    .unordered(),
    rule(
        "channel and slot's letter of one processor (DIMM2A)",
        Layout::Named,
        "the locator's own words, as on Supermicro H8SCM and X8SIL: DIMM<channel><slot>",
    )
    .by(SUPERMICRO)
    .locators(&["dimm{channel}{slot-letter}", "dimm_{channel}{slot-letter}"])
    .channels_from_one()
    .alone()
    .unordered(),
    rule(
        "processor, Ch and DIMM (P0-ChD-DIMM0)",
        Layout::Named,
        "the locator's own words, as on Tyan S7010: P<processor>-Ch<channel>-DIMM<slot>",
    )
    .locators(&["p{socket}-ch{channel-letter}-dimm{slot}", "p{socket}_ch{channel-letter}_dimm{slot}"])
    .unordered(),
    rule(
        "processor, controller, CH and slot (P0_MC1_DIM_CH_D0)",
        Layout::Named,
        "the locator's own words, as on Tyan S7109: the letters go on over the controllers of a processor",
    )
    .locators(&["p{socket}_mc{any}_dim_ch_{channel-letter}{slot}"]),
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
        "the locator's own words, as on Inspur NF5280M6: CPU<processor>_C<channel>D<slot>; with CH and a stroke on Intel's \
         Forest City (Intel PerfSpect)",
    )
    .locators(&[
        "cpu{socket}_c{channel}d{slot}",
        "cpu{socket}_ch{channel}_d{slot}",
        "cpu{socket}_ch{channel}d{slot}",
        "cpu{socket} ch{channel}/d{slot}",
    ]),
    rule(
        "locator CPU Channel DIMM (Amazon EC2)",
        Layout::Named,
        "the locator's own words, as on c6i.metal by Intel PerfSpect: CPU1 Channel7 DIMM1",
    )
    .by(&["amazon"])
    .locators(&["cpu{socket} channel{channel} dimm{slot}"]),
    rule(
        "channel's letter and slot, bank NODE (Amazon EC2)",
        Layout::Named,
        "the names' own words, as on c5.metal by Intel PerfSpect: bank NODE 1 and 2, letters that go on over both, without an I",
    )
    .by(&["amazon"])
    .locators(&["dimm_{channel-letter}{slot}"])
    .banks(&["node {socket}"])
    .counting_from_one(),
    rule(
        "P-DIMM and a channel's letter (Supermicro)",
        Layout::Named,
        "Supermicro X10, X11 and H11 board manuals: P<processor>-DIMM<channel><slot>",
    )
    .by(&["supermicro"])
    .locators(&["p{socket}-dimm{channel-letter}{slot}", "p{socket}_dimm{channel-letter}{slot}"])
    .counting_from_one(),
    rule(
        "bank strings P_Node_Channel_Dimm, nodes of half a socket (AMI firmware)",
        Layout::Halves,
        "AMI firmware's bank strings, as on Supermicro X12SPW and X13SEW: two nodes of four channels each",
    )
    .banks(&["p{socket}_node{node}_channel{channel}_dimm{slot}"]),
    // Before the next one: names that have a 0 do not follow it.
    rule(
        "processor, channel's letter and slot, processors from 1",
        Layout::Named,
        "the locator's own words, as on Intel S2600 boards (CPU1_DIMM_A1)",
    )
    .locators(&[
        "cpu{socket}_dimm_{channel-letter}{slot}",
        "cpu{socket}_dimm{channel-letter}{slot}",
        "cpu{socket}_{channel-letter}{slot}",
        "cpu{socket} dimm {channel-letter}{slot}",
        "cpu{socket}-dimm{channel-letter}{slot}",
        "p{socket}-dimm{channel-letter}{slot}",
        "p{socket}_dimm{channel-letter}{slot}",
        "p{socket}_dimm_{channel-letter}{slot}",
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
        "cpu{socket}_dimm{channel-letter}{slot}",
        "p{socket}_dimm_{channel-letter}{slot}",
    ]),
    rule(
        "processor and channel's letter (CPU0_DIMM_A)",
        Layout::Named,
        "the locator's own words, as on Intel's Birch Stream, which has one slot per channel",
    )
    .locators(&["cpu{socket}_dimm_{channel-letter}"]),
    rule(
        "channel's letter and slot, bank CPU",
        Layout::Named,
        "the names' own words, as on Hyve C4I (DIMM_E0, CPU 1)",
    )
    .locators(&["dimm_{channel-letter}{slot}"])
    .banks(&["cpu {socket}"])
    .unordered(),
    rule(
        "channel's letter and slot, bank with processor and channel",
        Layout::Named,
        "the names' own words, as on Dell XS23-TY3 (DIMM0, CPU0ChA)",
    )
    .locators(&["dimm{slot}", "dimm {slot}"])
    .banks(&["cpu{socket}ch{channel-letter}"])
    .unordered(),
    rule(
        "ONBOARD, channel's letter and slot of a chipset",
        Layout::Named,
        "the locator's own words, as on Intel S5000 boards (ONBOARD DIMM_A1)",
    )
    .locators(&["onboard dimm_{channel-letter}{slot}"])
    .of_chipset(),
    rule(
        "DDR, channel's letter and slot of one processor",
        Layout::Named,
        "the locator's own words, as on ASRock Rack ALTRAD8UD (DDR4_A1)",
    )
    .by(&["asrock"])
    .locators(&["ddr{any}_{channel-letter}{slot}"])
    .alone(),
    rule(
        "channel's letter and slot, going on over the processors",
        Layout::Named,
        "Intel S2600, Cisco UCS and Fujitsu RX board guides: letters A to D of the first processor, E \
         to H of the second one",
    )
    .by(&["intel", "asus", "cisco", "fujitsu", "quanta"])
    .locators(&[
        "dimm_{channel-letter}{slot}",
        "dimm-{slot}{channel-letter}",
        "dimm {slot}{channel-letter}",
        "dimm - {slot}{channel-letter}",
    ]),
    rule(
        "channel's letter and slot of one processor",
        Layout::Named,
        "the locator's own words, as Intel's reference firmware writes them",
    )
    .of(&[Core, XeonE, XeonD1500])
    .locators(&[
        "channel{channel-letter}-dimm{slot}",
        "channel{channel-letter}_dimm{slot}",
        "dimm_{channel-letter}{slot}",
        "dimm{channel-letter}{slot}",
        "dimm {channel-letter}{slot}",
    ])
    .alone(),
    rule(
        "Channel, letter and slot, going on over the processors",
        Layout::Named,
        "the names' own words, as on ETegro Hyperion RS125 G4 (ChannelA_Dimm1) and Inferit R1G3D32: \
         the next processor's letters go on",
    )
    .locators(&["channel{channel-letter}_dimm{slot}", "channel{channel-letter}-dimm{slot}"])
    .unordered(),
    rule(
        "bank CHANNEL, locator with letter and slot, going on over the processors",
        Layout::Named,
        "the names' own words, as on Quanta QSSC-98J and Dell CS24-TY (DIMM A1, CHANNEL A)",
    )
    .locators(&["dimm {any-letter}{slot}", "dimm_{any-letter}{slot}"])
    .banks(&["channel {channel-letter}", "channel{channel-letter}"])
    .unordered(),
    rule(
        "bank CHANNEL, locator DIMM of one processor",
        Layout::Named,
        "the names' own words, as on HPE ProLiant MicroServer Gen10 (DIMM 1, CHANNEL A)",
    )
    .locators(&["dimm {number}", "dimm{number}", "sodimm{number}"])
    .banks(&[
        "channel {channel-letter}",
        "channel{channel-letter}",
        "memory channel {channel-letter}",
        "channel {channel-letter} dimm{any}",
    ])
    .alone()
    .unordered(),
    rule(
        "bank Channel or CHAN, locator with letter and slot of one processor",
        Layout::Named,
        "the names' own words, as on Gigabyte GA-6PXSV1 (MEMORY A0, Channel 0) and Intel S3210SH (DIMM_A1, CHAN A \
         DIMM 1)",
    )
    .locators(&["memory {any-letter}{slot}", "dimm_{any-letter}{slot}"])
    .banks(&["channel {channel}", "chan {channel-letter} dimm {any}"])
    .alone(),
    rule(
        "channel's letter and a number over all (CHA3)",
        Layout::Named,
        "the locator's own words, as on Fujitsu PRIMERGY TX1310 and MX130: CH<channel><slot over all \
         channels>",
    )
    .locators(&["dimm ch{channel-letter}{number}", "dimm-ch{channel-letter}{number}"])
    .alone(),
    rule(
        "Controller, Channel and DIMM of one processor",
        Layout::Named,
        "the locator's own words, as Intel's reference firmware writes them since the 12th generation \
         of Core",
    )
    .locators(&[
        "controller{controller}-channel{channel-letter}-dimm{slot}",
        "controller{controller}-dimm{channel-letter}{slot}",
        "controller{controller}-dimm{slot}",
        "controller{controller}-channel{channel-letter}",
    ])
    .alone()
    .unordered(),
];
