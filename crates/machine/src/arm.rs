//! Names of Arm core designs by implementer and part number.
//!
//! Source: MIDR values as Linux lists them (arch/arm64/include/asm/cputype.h) and their vendors
//! document them.

/// Implementer, part, name.
const DESIGNS: &[(u32, u32, &str)] = &[
    (0x41, 0xd03, "Arm Cortex-A53"),
    (0x41, 0xd05, "Arm Cortex-A55"),
    (0x41, 0xd07, "Arm Cortex-A57"),
    (0x41, 0xd08, "Arm Cortex-A72"),
    (0x41, 0xd09, "Arm Cortex-A73"),
    (0x41, 0xd0a, "Arm Cortex-A75"),
    (0x41, 0xd0b, "Arm Cortex-A76"),
    (0x41, 0xd0c, "Arm Neoverse N1"),
    (0x41, 0xd40, "Arm Neoverse V1"),
    (0x41, 0xd41, "Arm Cortex-A78"),
    (0x41, 0xd49, "Arm Neoverse N2"),
    (0x41, 0xd4a, "Arm Neoverse E1"),
    (0x41, 0xd4f, "Arm Neoverse V2"),
    (0x41, 0xd83, "Arm Neoverse V3AE"),
    (0x41, 0xd84, "Arm Neoverse V3"),
    (0x41, 0xd8e, "Arm Neoverse N3"),
    (0x42, 0x516, "Broadcom Vulcan"),
    (0x43, 0x0a1, "Cavium ThunderX"),
    (0x43, 0x0af, "Cavium ThunderX2"),
    (0x43, 0x0b8, "Marvell ThunderX3"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x46, 0x003, "Fujitsu MONAKA"),
    (0x48, 0xd01, "HiSilicon Kunpeng 920"),
    (0x48, 0xd02, "HiSilicon Kunpeng 920B"),
    (0x4e, 0x004, "NVIDIA Carmel"),
    (0x50, 0x000, "Ampere X-Gene"),
    (0x51, 0xc00, "Qualcomm Falkor"),
    (0x51, 0xc01, "Qualcomm Saphira"),
    (0x6d, 0xd49, "Microsoft Azure Cobalt 100"),
    (0x70, 0x660, "Phytium FTC660"),
    (0x70, 0x661, "Phytium FTC661"),
    (0x70, 0x662, "Phytium FTC662"),
    (0x70, 0x663, "Phytium FTC663"),
    (0xc0, 0xac3, "Ampere AmpereOne"),
    (0xc0, 0xac4, "Ampere AmpereOne A"),
];

/// The design behind the hexadecimal numbers of /proc/cpuinfo.
pub(super) fn name(implementer: &str, part: &str) -> Option<&'static str> {
    let number = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let (implementer, part) = (number(implementer)?, number(part)?);
    DESIGNS.iter().find(|row| (row.0, row.1) == (implementer, part)).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown() {
        assert_eq!(name("0x48", "0xd01"), Some("HiSilicon Kunpeng 920"));
        assert_eq!(name("0x48", "0x1"), None);
        assert_eq!(name("x", ""), None);
    }
}
