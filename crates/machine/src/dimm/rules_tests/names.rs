//! Names that contain channel and slot, as makers write them.

use super::*;

#[test]
fn words_of_more_makers() {
    type Case<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a [(u32, u32, u32)]);
    let milan = "AMD EPYC 7543 32-Core Processor";
    let small = "Intel(R) Xeon(R) CPU D-1559 @ 1.50GHz";
    let cases: &[Case] = &[
        (
            "Hyve",
            &[GOLD; 2],
            &[("CPU_0_DIMM_D_1", "D1_Node0_Channel3_Dimm1"), ("CPU_1_DIMM_J_0", "J0_Node1_Channel2_Dimm0")],
            &[(0, 3, 1), (1, 2, 0)],
        ),
        (
            "OEM",
            &[GOLD; 2],
            &[("CPU1_DIMM_6", "P1_Channel3_Dimm1"), ("CPU0_DIMM_1", "P0_Channel0_Dimm0")],
            &[(1, 3, 1), (0, 0, 0)],
        ),
        (
            "Suma",
            &[milan; 2],
            &[("CPU0_DIMMA1", "P0 CHANNEL A"), ("CPU1_DIMMH0", "P1 CHANNEL H")],
            &[(0, 0, 1), (1, 7, 0)],
        ),
        (
            "TYAN",
            &[milan],
            &[("P0_UMC6_CH_E1", "P0 CHANNEL E"), ("P0_UMC0_CH_A0", "P0 CHANNEL A")],
            &[(0, 4, 1), (0, 0, 0)],
        ),
        (
            "TYAN",
            &[GOLD; 2],
            &[("P0_MC0_DIM_CH_C1", "NODE 1"), ("P1_MC1_DIM_CH_D0", "NODE 2")],
            &[(0, 2, 1), (1, 3, 0)],
        ),
        (
            "Supermicro",
            &[X5660; 2],
            &[("NODE0-1A", "BANK0"), ("NODE1-3B", "BANK11")],
            &[(0, 0, 0), (1, 2, 1)],
        ),
        (
            "Nobody",
            &["Intel(R) Xeon(R) Gold 6342 CPU @ 2.80GHz"; 2],
            &[("NODE 0 CHANNEL 7 DIMM 1 (C0H1)", "NODE 3"), ("NODE 1 CHANNEL 0 DIMM 0 (C1A0)", "NODE 4")],
            &[(0, 7, 1), (1, 0, 0)],
        ),
        (
            "Lenovo",
            &["FT-2000+/64"],
            &[("DIMM0", "SOCKET 0 CHANNEL 0 DIMM 0"), ("DIMM7", "SOCKET 0 CHANNEL 7 DIMM 7")],
            &[(0, 0, 0), (0, 7, 0)],
        ),
        (
            "Lenovo",
            &[E5; 2],
            &[("CPU1_DimmA1", "CPU1_Bank0"), ("CPU2_DimmC2", "CPU2_Bank0")],
            &[(0, 0, 0), (1, 2, 1)],
        ),
        (
            "Intel Corporation",
            &["Intel(R) Xeon(R) 6980P"; 2],
            &[("CPU0_DIMM_I", "BANK 8"), ("CPU1_DIMM_L", "BANK 23")],
            &[(0, 8, 0), (1, 11, 0)],
        ),
        (
            "FUJITSU",
            &["Intel(R) Xeon(R) CPU D-1571 @ 1.30GHz"],
            &[("DIMM - 2A", "NODE 1"), ("DIMM - 1B", "NODE 1")],
            &[(0, 0, 1), (0, 1, 0)],
        ),
        ("Nobody", &[small], &[("DIMM_A1", "NODE 1"), ("DIMM_B1", "NODE 1")], &[(0, 0, 0), (0, 1, 0)]),
        (
            "GIGABYTE",
            &["Intel(R) Xeon(R) CPU E5-1620 v2 @ 3.70GHz"],
            &[("MEMORY A1", "Channel 0"), ("MEMORY D0", "Channel 3")],
            &[(0, 0, 1), (0, 3, 0)],
        ),
        (
            "Intel",
            &["Intel(R) Xeon(R) CPU           E3110  @ 3.00GHz"],
            &[("DIMM_A1", "CHAN A DIMM 1"), ("DIMM_B2", "CHAN B DIMM 2")],
            &[(0, 0, 0), (0, 1, 1)],
        ),
    ];
    for (vendor, cpus, slots, expected) in cases {
        assert_eq!(placed(vendor, "Made Up", cpus, slots), *expected, "{vendor} {slots:?}");
    }
}

#[test]
fn words_that_contradict_themselves_place_nothing() {
    for (vendor, cpus, slots) in [
        // A slot listed twice.
        (
            "Phytium",
            &["FT-2000/4"][..],
            &[("DIMM1", "SOCKET 0 CHANNEL 1 DIMM 1"), ("DIMM1", "SOCKET 0 CHANNEL 1 DIMM 1")][..],
        ),
        // Letters of slots on a processor of four channels, not of channels.
        ("Nobody", &[E5; 2], &[("CPU0_DIMM_A", ""), ("CPU0_DIMM_E", ""), ("CPU1_DIMM_A", "")]),
        // Words of another maker's firmware that mean a controller.
        ("Supermicro", &[E5; 2], &[("A", "A1_Node0_Channel4_Dimm0"), ("B", "A1_Node1_Channel0_Dimm0")]),
    ] {
        let found = placed(vendor, "Made Up", cpus, slots);
        assert!(found.iter().all(|place| *place == (99, 99, 99)), "{vendor} {slots:?}: {found:?}");
    }
}
