//! Each rule on a board that it was not written from: another model's document, the other
//! processor's row, or the names of another board.

use super::*;

mod documents;
mod dumps;
mod inferred;
mod makers;
mod names;

/// Where slots sit by their names: locator and bank, all filled.
fn placed(vendor: &str, product: &str, cpus: &[&str], slots: &[(&str, &str)]) -> Vec<(u32, u32, u32)> {
    let (dimms, judged) = board(vendor, product, cpus, slots, &[]);
    let place = |dimm: &Dimm| {
        (dimm.socket.unwrap_or(99), dimm.channel.unwrap_or(99), dimm.slot_in_channel.unwrap_or(99))
    };
    assert!(judged.dimm_source.is_none_or(|source| !source.is_empty()), "{vendor} {product}");
    dimms.iter().map(place).collect()
}

/// A board of which these slots are empty, and sockets whose processor has no name.
fn board(
    vendor: &str,
    product: &str,
    cpus: &[&str],
    slots: &[(&str, &str)],
    empty: &[&str],
) -> (Vec<Dimm>, Population) {
    let mut text = format!("System Information\n\tManufacturer: {vendor}\n\tProduct Name: {product}\n\n");
    for (number, cpu) in cpus.iter().enumerate() {
        let status = if cpu.is_empty() { "Unpopulated" } else { "Populated, Enabled" };
        text.push_str(&format!(
            "Processor Information\n\tSocket Designation: CPU{}\n\tType: Central Processor\n\tVersion: {cpu}\n\tStatus: {status}\n\n",
            number + 1
        ));
    }
    for (locator, bank) in slots {
        let size = if empty.contains(locator) { "No Module Installed" } else { "16 GB" };
        text.push_str(&format!(
            "Memory Device\n\tSize: {size}\n\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: DDR4\n\n"
        ));
    }
    judge(printout::parse(&text), None, &Hypervisor::Unknown)
}

const X5660: &str = "Intel(R) Xeon(R) CPU X5660 @ 2.80GHz";
const GOLD: &str = "Intel(R) Xeon(R) Gold 6132 CPU @ 2.60GHz";
const E5: &str = "Intel(R) Xeon(R) CPU E5-2650 v2 @ 2.60GHz";

/// Names by a pattern of numbers.
fn numbered(pattern: &str, numbers: std::ops::RangeInclusive<u32>) -> Vec<String> {
    numbers.map(|number| pattern.replace('#', &number.to_string())).collect()
}

fn with_bank<'a>(names: &'a [String], bank: &'a str) -> Vec<(&'a str, &'a str)> {
    names.iter().map(|name| (name.as_str(), bank)).collect()
}

#[test]
fn hp_sixth_and_seventh_generation() {
    // HP DL320 G6 user guide: lockstep uses channels 1 and 2, and fills A and B, then D and E, of
    // nine slots; one slot of each channel has the same letter's third.
    let names =
        ["1G", "2D", "3A", "4H", "5E", "6B", "7I", "8F", "9C"].map(|name| format!("PROC 1 DIMM {name}"));
    let places = placed("HP", "ProLiant DL320 G6", &[X5660], &with_bank(&names, ""));
    let of = |letter: char| places[names.iter().position(|name| name.ends_with(letter)).expect("a slot")];
    let channels = |letters: &str| -> Vec<u32> { letters.chars().map(|letter| of(letter).1).collect() };
    assert_eq!([channels("ABC"), channels("DEF"), channels("GHI")], [[0, 1, 2], [0, 1, 2], [0, 1, 2]]);
    assert_eq!(channels("ABDE"), [0, 1, 0, 1]);
    assert_eq!([of('A').2, of('D').2, of('G').2], [0, 1, 2]);
    // BL460c: two slots per channel; its letters go A to C over the channels, too.
    let names = ["1D", "2A", "3E", "4B", "5F", "6C"].map(|name| format!("PROC 1 DIMM {name}"));
    let places = placed("HP", "ProLiant BL460c G6", &[X5660], &with_bank(&names, ""));
    assert_eq!(places, [(0, 0, 1), (0, 0, 0), (0, 1, 1), (0, 1, 0), (0, 2, 1), (0, 2, 0)]);
}

#[test]
fn hp_eighth_generation_of_three_channels() {
    // HP DL360e Gen8 fills by letter A to F: slots 1, 3, 5, then 2, 4, 6; the second processor's
    // slots begin anew.
    let names: Vec<String> =
        (1..=2).flat_map(|cpu| numbered(&format!("PROC  {cpu} DIMM  #"), 1..=6)).collect();
    let cpus = ["Intel(R) Xeon(R) CPU E5-2420 0 @ 1.90GHz"; 2];
    let places = placed("HP", "ProLiant DL360e Gen8", &cpus, &with_bank(&names, ""));
    let by_letter: Vec<_> = [1, 3, 5, 2, 4, 6].iter().map(|number| places[number + 5]).collect();
    assert_eq!(by_letter, [(1, 0, 0), (1, 1, 0), (1, 2, 0), (1, 0, 1), (1, 1, 1), (1, 2, 1)]);
    // DL380e Gen8 has no document here: as many slots as it has are not placed.
    let names = numbered("PROC 1 DIMM #", 1..=9);
    let places = placed("HP", "ProLiant DL380e Gen8", &cpus[..1], &with_bank(&names, ""));
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
}

#[test]
fn dell_sixteenth_generation_with_epyc() {
    // The second processor of an R6625; channels G to L have the even slots.
    let names: Vec<String> = ["A", "B"].iter().flat_map(|cpu| numbered(&format!("{cpu}#"), 1..=12)).collect();
    let cpus = ["AMD EPYC 9354 32-Core Processor"; 2];
    let places = placed("Dell Inc.", "PowerEdge R6625", &cpus, &with_bank(&names, ""));
    let letters: String = places[12..].iter().map(|place| char::from(b'A' + place.1 as u8)).collect();
    assert_eq!(letters, "AGCIBHEKDJFL");
    assert!(places[12..].iter().all(|place| (place.0, place.2) == (1, 0)));
    // Slots of EPYC 9005 are in no document here.
    let places = placed(
        "Dell Inc.",
        "PowerEdge R7725",
        &["AMD EPYC 9755 128-Core Processor"; 2],
        &with_bank(&names, ""),
    );
    assert!(places.iter().all(|place| *place == (99, 99, 99)));
}

#[test]
fn lenovo_by_the_other_processors_row_and_other_models() {
    let second = |product: &str, cpu: &str, each: u32, last: u32| {
        let names = numbered("DIMM #", 1..=last);
        let mut slots = with_bank(&names[..each as usize], "CPU 1");
        slots.extend(with_bank(&names[each as usize..], "CPU 2"));
        let places = placed("Lenovo", product, &[cpu; 2], &slots);
        let by_channel = |channel: u32| -> Vec<u32> {
            let mut own: Vec<(u32, u32)> = (each..last)
                .filter(|at| places[*at as usize].1 == channel && places[*at as usize].0 == 1)
                .map(|at| (places[at as usize].2, at + 1))
                .collect();
            own.sort_unstable();
            own.into_iter().map(|(_, number)| number).collect()
        };
        (0..12).map(by_channel).take_while(|slots| !slots.is_empty()).collect::<Vec<_>>()
    };
    // SR570, row of CPU 2.
    let sr570 = second("ThinkSystem SR570 -[7Y03CTO1WW]-", GOLD, 8, 16);
    assert_eq!(sr570, [vec![11, 12], vec![10], vec![9], vec![14, 13], vec![15], vec![16]]);
    // SR650 V3, row of CPU 2: slot 0 of iMC0 CH0 is DIMM 23.
    let v3 = second("ThinkSystem SR650 V3", "Intel(R) Xeon(R) Gold 6448Y", 16, 32);
    let rows = [[23, 24], [21, 22], [19, 20], [17, 18], [26, 25], [28, 27], [30, 29], [32, 31]];
    assert_eq!(v3, rows.map(Vec::from));
    // SD650-N V3: the second processor's iMC0 is DIMM 13 and 14, its iMC3 9 and 10.
    let node = second("ThinkSystem SD650-N V3", "Intel(R) Xeon(R) Gold 6448Y", 8, 16);
    assert_eq!(node, [[13], [14], [15], [16], [12], [11], [10], [9]].map(Vec::from));
    // SR680a V3, row of its other processor.
    let back = second("ThinkSystem SR680a V3", "Intel(R) Xeon(R) Gold 6448Y", 16, 32);
    let rows = [[26, 25], [28, 27], [30, 29], [32, 31], [23, 24], [21, 22], [19, 20], [17, 18]];
    assert_eq!(back, rows.map(Vec::from));
    // SR685a V3, processor 2: L K J I H G A B C D E F are DIMM 24 to 13.
    let epyc = second("ThinkSystem SR685a V3", "AMD EPYC 9654 96-Core Processor", 12, 24);
    assert_eq!(epyc.concat(), [18, 17, 16, 15, 14, 13, 19, 20, 21, 22, 23, 24]);
    // SR860 V2 (Cooper Lake), row of processor 2, by the rule for twelve slots.
    let v2 = second("ThinkSystem SR860 V2", "Intel(R) Xeon(R) Gold 6348H CPU @ 2.30GHz", 12, 24);
    assert_eq!(v2, [[17, 18], [15, 16], [13, 14], [20, 19], [22, 21], [24, 23]].map(Vec::from));
    // SR655 V3: CH-A is DIMM 7, CH-G is DIMM 6.
    let names = numbered("DIMM #", 1..=12);
    let places = placed(
        "Lenovo",
        "ThinkSystem SR655 V3",
        &["AMD EPYC 9654 96-Core Processor"],
        &with_bank(&names, "CPU 1"),
    );
    let letters: String = places.iter().rev().map(|place| char::from(b'A' + place.1 as u8)).collect();
    assert_eq!(letters, "FEDCBAGHIJKL");
    // System x M5: the sequence of two processors fills all channels once with eight modules.
    let names = numbered("DIMM #", 1..=24);
    let mut slots = with_bank(&names[..12], "CPU 1");
    slots.extend(with_bank(&names[12..], "CPU 2"));
    let places = placed("LENOVO", "System x3650 M5: -[5462AC1]-", &[E5; 2], &slots);
    let first: Vec<_> = [1, 13, 4, 16, 9, 21, 12, 24].iter().map(|number| places[number - 1]).collect();
    let expected: Vec<_> = (0..4).flat_map(|channel| [(0, channel, 0), (1, channel, 0)]).collect();
    assert_eq!(first, expected);
    assert!([2, 14, 5, 17, 8, 20, 11, 23].iter().all(|number| places[number - 1].2 == 1));
}

#[test]
fn names_that_tell_channel_and_slot() {
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a [(u32, u32, u32)]);
    let opteron = "AMD Opteron(tm) Processor 6128";
    let core = "Intel(R) Core(TM) i7-6700TE CPU @ 2.40GHz";
    let cases: &[Case] = &[
        // SOCKET CHANNEL DIMM, as on Phytium.
        (
            "PHYTIUM LTD",
            &["S2500/64"; 2],
            &[("SOCKET 0 CHANNEL 0 DIMM 0", "Bank0"), ("SOCKET 1 CHANNEL 7 DIMM 0", "Bank15")],
            &[(0, 0, 0), (1, 7, 0)],
        ),
        // X8 and H8: the number is the channel, the letter the slot.
        (
            "Supermicro",
            &[X5660; 2],
            &[("P1-DIMM1A", "BANK0"), ("P2-DIMM3B", "BANK11")],
            &[(0, 0, 0), (1, 2, 1)],
        ),
        (
            "Supermicro",
            &[X5660; 2],
            &[("P1_DIMM2A", "BANK2"), ("P0_DIMM2C", "BANK8")],
            &[(0, 1, 0), (1, 1, 2)],
        ),
        ("Supermicro", &[opteron; 4], &[("P1_4A", "6"), ("P4_1B", "25")], &[(0, 3, 0), (3, 0, 1)]),
        (
            "Supermicro",
            &["AMD Opteron(tm) Processor 4274 HE"],
            &[("DIMM1B", "BANK0"), ("DIMM2A", "BANK3")],
            &[(0, 0, 1), (0, 1, 0)],
        ),
        // The first processor's channels are D to F.
        (
            "TYAN",
            &[X5660; 2],
            &[("P0-ChD-DIMM0", ""), ("P0-ChF-DIMM1", ""), ("P1-ChB-DIMM0", "")],
            &[(0, 0, 0), (0, 2, 1), (1, 1, 0)],
        ),
        // No I among the letters, which go on.
        (
            "Insyde",
            &[GOLD; 2],
            &[("CPU0_DIMM_G1", ""), ("CPU0_DIMM_H1", ""), ("CPU1_DIMM_J2", ""), ("CPU1_DIMM_M1", "")],
            &[(0, 0, 0), (0, 1, 0), (1, 2, 1), (1, 5, 0)],
        ),
        (
            "ASUSTeK COMPUTER INC.",
            &[GOLD; 2],
            &[("DIMM_F1", ""), ("DIMM_H1", ""), ("DIMM_J1", ""), ("DIMM_M2", "")],
            &[(0, 5, 0), (1, 1, 0), (1, 2, 0), (1, 5, 1)],
        ),
        ("FUJITSU", &[E5; 2], &[("DIMM 1A", "NODE 1"), ("DIMM 3H", "NODE 2")], &[(0, 0, 0), (1, 3, 2)]),
        // The word channel goes on over the processors.
        (
            "ETegro",
            &[E5; 2],
            &[("ChannelA_Dimm1", "ChannelA"), ("ChannelH_Dimm2", "ChannelH")],
            &[(0, 0, 0), (1, 3, 1)],
        ),
        (
            "Quanta",
            &[X5660; 2],
            &[("DIMM C1", "CHANNEL C"), ("DIMM D2", "CHANNEL D")],
            &[(0, 2, 0), (1, 0, 1)],
        ),
        // One processor.
        (
            "Neousys",
            &[core],
            &[("ChannelA-DIMM1", "BANK 1"), ("ChannelB-DIMM0", "BANK 2")],
            &[(0, 0, 1), (0, 1, 0)],
        ),
        (
            "Dell Inc.",
            &["Intel(R) Xeon(R) CPU E31240 @ 3.30GHz"],
            &[("DIMM A2", "BANK 0"), ("DIMM B1", "BANK 3")],
            &[(0, 0, 1), (0, 1, 0)],
        ),
        (
            "HPE",
            &["AMD Opteron(tm) X3216 APU"],
            &[("DIMM 1", "CHANNEL A"), ("DIMM 2", "CHANNEL B")],
            &[(0, 0, 0), (0, 1, 0)],
        ),
        (
            "FUJITSU",
            &["AMD Opteron(tm) Processor 3280"],
            &[("DIMM-CHA3", ""), ("DIMM-CHA1", ""), ("DIMM-CHB4", ""), ("DIMM-CHB2", "")],
            &[(0, 0, 1), (0, 0, 0), (0, 1, 1), (0, 1, 0)],
        ),
        (
            "GEEKOM",
            &["13th Gen Intel(R) Core(TM) i9-13900H"],
            &[("Controller0-ChannelA-DIMM0", "BANK 0"), ("Controller1-ChannelA-DIMM0", "BANK 0")],
            &[(0, 0, 0), (0, 1, 0)],
        ),
        (
            "LENOVO",
            &[core],
            &[("SODIMM0", "CHANNEL A DIMM0"), ("SODIMM1", "CHANNEL B DIMM0")],
            &[(0, 0, 0), (0, 1, 0)],
        ),
        (
            "Dell Inc.",
            &["13th Gen Intel(R) Core(TM) i9-13900"],
            &[("Controller0-DIMM1", "BANK 0"), ("Controller1-DIMM0", "BANK 0")],
            &[(0, 0, 1), (0, 1, 0)],
        ),
        // AMD's firmware, of processors in no table, and with a locator of the board's own.
        (
            "ASRockRack",
            &["AMD Eng Sample"],
            &[("DIMM 0", "P0 CHANNEL A"), ("DIMM 1", "P0 CHANNEL L")],
            &[(0, 0, 0), (0, 11, 1)],
        ),
        (
            "OEM",
            &["AMD EPYC 9654 96-Core Processor"; 2],
            &[("CPU1 DIMM A1", "P0 CHANNEL A"), ("CPU2 DIMM L1", "P1 CHANNEL L")],
            &[(0, 0, 0), (1, 11, 0)],
        ),
        (
            "ASRockRack",
            &["AMD EPYC 4344P 8-Core Processor"],
            &[("DIMM 0", "P0 CHANNEL B"), ("DIMM 1", "P0 CHANNEL B")],
            &[(0, 1, 0), (0, 1, 1)],
        ),
        (
            "Gigabyte Technology",
            &[GOLD; 2],
            &[("P1_DIMM_A1", ""), ("P1_DIMM_H1", ""), ("P2_DIMM_J1", ""), ("P2_DIMM_M1", "")],
            &[(0, 0, 0), (0, 1, 0), (1, 2, 0), (1, 5, 0)],
        ),
        // A socket that the bank names, and channels without a slot's number.
        (
            "Hyve",
            &[E5; 2],
            &[("DIMM_A0", "CPU 0"), ("DIMM_D1", "CPU 0"), ("DIMM_E0", "CPU 1")],
            &[(0, 0, 0), (0, 3, 1), (1, 0, 0)],
        ),
        ("Dell", &[X5660; 2], &[("DIMM0", "CPU0ChA"), ("DIMM1", "CPU1ChC")], &[(0, 0, 0), (1, 2, 1)]),
        (
            "Inspur",
            &[E5; 2],
            &[("CHA_0", "A1_Node0_Channel0_Dimm0"), ("CHH_0", "A1_Node1_Channel3_Dimm0")],
            &[(0, 0, 0), (1, 3, 0)],
        ),
        ("LENOVO", &[E5; 2], &[("CPU1 DIMM A0", "odd"), ("CPU2 DIMM D1", "odd")], &[(0, 0, 0), (1, 3, 1)]),
        (
            "ASRockRack",
            &["Ampere(R) Altra(R) Processor"],
            &[("DDR4_A1", "Bank 1"), ("DDR4_H1", "Bank 8")],
            &[(0, 0, 0), (0, 7, 0)],
        ),
        (
            "GEEKOM",
            &["Intel(R) Celeron(R) N5095 @ 2.00GHz"],
            &[("Controller0-ChannelA", "BANK 0"), ("Controller0-ChannelB-DIMM0", "BANK 1")],
            &[(0, 0, 0), (0, 1, 0)],
        ),
        (
            "ASRockRack",
            &["13th Gen Intel(R) Core(TM) i9-13900"],
            &[
                ("Controller0-ChannelA-DIMM0", "BANK 0"),
                ("Controller0-ChannelA-DIMM1", "BANK 0"),
                ("Controller1-ChannelA-DIMM0", "BANK 0"),
                ("Controller1-ChannelA-DIMM1", "BANK 0"),
            ],
            &[(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)],
        ),
        // A single Ice Lake whose bank strings have two nodes of four channels.
        (
            "Supermicro",
            &["Intel(R) Xeon(R) Silver 4310 CPU @ 2.10GHz"],
            &[("DIMMD1", "P0_Node0_Channel3_Dimm0"), ("DIMME1", "P0_Node1_Channel0_Dimm0")],
            &[(0, 3, 0), (0, 4, 0)],
        ),
    ];
    for (vendor, cpus, slots, expected) in cases {
        assert_eq!(placed(vendor, "Made Up", cpus, slots), *expected, "{vendor} {slots:?}");
    }
}

#[test]
fn slots_of_a_processor_that_is_not_listed() {
    let slots: Vec<(String, String)> = (0..2)
        .flat_map(|socket| {
            (0..4).map(move |channel| {
                let letter = char::from(b'A' + 4 * socket + channel);
                (
                    format!("P{}-DIMM{letter}1", socket + 1),
                    format!("P{socket}_Node{socket}_Channel{channel}_Dimm0"),
                )
            })
        })
        .collect();
    let slots: Vec<(&str, &str)> =
        slots.iter().map(|(locator, bank)| (locator.as_str(), bank.as_str())).collect();
    let second: Vec<&str> = slots[4..].iter().map(|(locator, _)| *locator).collect();
    let (dimms, judged) = board("Supermicro", "Super Server", &[E5], &slots, &second);
    assert_eq!((judged.dimm_verdict, judged.dimm_sockets.len()), (Some(Balance::Balanced), 1));
    assert_eq!((dimms[7].socket, dimms[7].channel), (Some(1), Some(3)));
    // A module there contradicts the list, and so does a letter that is a channel's.
    let (_, judged) = board("Supermicro", "Super Server", &[E5], &slots, &second[1..]);
    assert_eq!(judged.dimm_verdict, None);
    let letters = [("DIMM A2", ""), ("DIMM A1", ""), ("DIMM B2", ""), ("DIMM B1", "")];
    let xeon = "Intel(R) Xeon(R) CPU E3-1230 V2 @ 3.30GHz";
    let (dimms, judged) = board("Dell Inc.", "PowerEdge R210 II", &[xeon], &letters, &["DIMM B2", "DIMM B1"]);
    assert_eq!((dimms[1].channel, judged.dimm_verdict), (Some(0), Some(Balance::Unbalanced)));
}

#[test]
fn either_of_two_names_may_be_the_first_processors() {
    let names: Vec<String> =
        ["P1", "P0"].iter().flat_map(|cpu| numbered(&format!("{cpu}_DIMM#A"), 1..=3)).collect();
    let slots = with_bank(&names, "");
    for (filled, empty) in [(0..3, 3..6), (3..6, 0..3)] {
        let empty: Vec<&str> = names[empty].iter().map(String::as_str).collect();
        let (dimms, judged) = board("Supermicro", "X8DTU", &[X5660, ""], &slots, &empty);
        assert_eq!((judged.dimm_verdict, judged.dimm_sockets.len()), (Some(Balance::Balanced), 1));
        assert!(dimms[filled].iter().all(|dimm| dimm.socket == Some(0)));
    }
}

#[test]
fn names_that_do_not_tell_it_are_not_placed() {
    for (vendor, cpus, slots) in [
        // A letter that is the processor's.
        (
            "Dell Inc.",
            &["Intel(R) Xeon(R) CPU           X3430  @ 2.40GHz"][..],
            &[("DIMM_A1", ""), ("DIMM_A2", ""), ("DIMM_A3", ""), ("DIMM_A4", "")][..],
        ),
        // Two processors, which the names do not show.
        ("HPE", &["AMD Opteron(tm) X3216 APU"; 2], &[("DIMM 1", "CHANNEL A"), ("DIMM 2", "CHANNEL B")]),
        ("Nobody", &["Unknown CPU"; 2], &[("ChannelA-DIMM0", ""), ("ChannelE-DIMM0", "")]),
        // More channels than the processor has.
        ("Supermicro", &[X5660; 2], &[("P1-DIMM4A", ""), ("P2-DIMM1A", "")]),
        // Channels from 1 that begin with 0.
        ("Supermicro", &[X5660; 2], &[("P1-DIMM0A", ""), ("P2-DIMM1A", "")]),
        // Of a model of which no document is known here.
        ("Lenovo", &[GOLD; 2], &[("DIMM 1", "CPU 1"), ("DIMM 9", "CPU 2")]),
    ] {
        let found = placed(vendor, "Made Up", cpus, slots);
        assert!(found.iter().all(|place| *place == (99, 99, 99)), "{vendor} {slots:?}: {found:?}");
    }
}

#[test]
fn soldered_memory_has_no_slots() {
    let text = "System Information\n\tManufacturer: GMKtec\n\nProcessor Information\n\tType: Central Processor\n\
        \tVersion: AMD Ryzen 7 7840HS\n\tStatus: Populated, Enabled\n\n";
    let device = |channel: char, kind: &str| {
        format!(
            "Memory Device\n\tData Width: 32 bits\n\tSize: 4 GB\n\tLocator: DIMM 0\n\tBank Locator: P0 CHANNEL {channel}\n\
             \tType: {kind}\n\tSpeed: 6400 MT/s\n\n"
        )
    };
    let judged = |kind: &str| {
        let text = format!("{text}{}", ('A'..='D').map(|channel| device(channel, kind)).collect::<String>());
        judge(printout::parse(&text), None, &Hypervisor::Unknown)
    };
    for kind in ["LPDDR4", "LPDDR5", "LPDDR3"] {
        let (dimms, judged) = judged(kind);
        assert_eq!((judged.dimm_verdict, dimms[3].channel), (None, None), "{kind}");
        assert!(judged.dimm_remarks[0].contains("soldered"), "{:?}", judged.dimm_remarks);
        // What the names say about channels holds: four of 32 bits.
        let channels = crate::channels(&dimms, &Snapshot::default()).expect("named");
        assert_eq!((channels.count, channels.gb_per_s), (4, 102.4));
    }
    assert!(!judged("DDR5").1.dimm_remarks.iter().any(|remark| remark.contains("soldered")));
}
