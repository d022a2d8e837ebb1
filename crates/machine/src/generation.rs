//! The generation of a server processor: what published figures are sorted by. Data, one line each;
//! what no line fits is not known.
//!
//! Names alone do not do: guests often hide them ("AMD EPYC"), and one design is sold under names
//! of several series. The numbers of CPUID come first, then the name, as `dimm/models.rs` reads it,
//! and at last, where a hypervisor made up the number, what only one design has: its instructions
//! and the size of its L3. A model that QEMU names itself ("Skylake, IBRS") says what guests may
//! use and not what they run on: it has no generation.
//!
//! Sources: family and model numbers as Linux lists them (arch/x86/include/asm/intel-family.h,
//! arch/x86/kernel/cpu/amd.c); sizes of L3 by Intel's product pages.

use schemars::JsonSchema;
use serde::Serialize;

use super::Machine;
use super::dimm::cpus::Family;
use super::dimm::models::cpu;

/// A generation of server processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Generation {
    /// The class that figures are kept under: `intel/xeon-6-p-core`.
    pub class: &'static str,
    /// The class of its cores, which several generations may have: `intel/redwood-cove`.
    pub core_class: &'static str,
    /// What it is sold as: `Xeon 6`.
    pub product: &'static str,
    /// What its maker called it: `Granite Rapids`.
    pub core: &'static str,
}

/// A line of the table.
struct Row {
    generation: Generation,
    /// Family, models and steppings, both from first to last.
    numbers: &'static [(u32, [u32; 2], [u32; 2])],
    /// Known by its name, too.
    family: Option<Family>,
}

const ANY: [u32; 2] = [0, 15];

const fn row(
    [class, core_class, product, core]: [&'static str; 4],
    numbers: &'static [(u32, [u32; 2], [u32; 2])],
    family: Option<Family>,
) -> Row {
    Row { generation: Generation { class, core_class, product, core }, numbers, family }
}

/// Processors of x86.
#[rustfmt::skip]
const X86: &[Row] = &[
    row(["intel/haswell-ep", "intel/haswell", "Xeon E5 v3", "Haswell-EP"], &[(6, [63, 63], ANY)], Some(Family::HaswellEp)),
    row(["intel/broadwell-ep", "intel/broadwell", "Xeon E5 v4", "Broadwell-EP"], &[(6, [79, 79], ANY)], Some(Family::BroadwellEp)),
    row(["intel/skylake-sp", "intel/skylake", "Xeon Scalable", "Skylake-SP"], &[(6, [85, 85], [0, 4])], Some(Family::Skylake)),
    row(["intel/cascade-lake", "intel/skylake", "2nd gen Xeon Scalable", "Cascade Lake"], &[(6, [85, 85], [5, 9])], Some(Family::CascadeLake)),
    row(["intel/cooper-lake", "intel/skylake", "3rd gen Xeon Scalable", "Cooper Lake"], &[(6, [85, 85], [10, 15])], Some(Family::CooperLake)),
    row(["intel/ice-lake-sp", "intel/sunny-cove", "3rd gen Xeon Scalable", "Ice Lake"], &[(6, [106, 106], ANY)], Some(Family::IceLake)),
    row(["intel/sapphire-rapids", "intel/golden-cove", "4th gen Xeon Scalable", "Sapphire Rapids"], &[(6, [143, 143], ANY)], Some(Family::SapphireRapids)),
    row(["intel/emerald-rapids", "intel/raptor-cove", "5th gen Xeon Scalable", "Emerald Rapids"], &[(6, [207, 207], ANY)], Some(Family::EmeraldRapids)),
    row(["intel/xeon-6-p-core", "intel/redwood-cove", "Xeon 6", "Granite Rapids"], &[(6, [173, 173], ANY)], None),
    row(["intel/xeon-6-e-core", "intel/crestmont", "Xeon 6", "Sierra Forest"], &[(6, [175, 175], ANY)], None),
    row(["amd/naples", "amd/zen1", "EPYC 7001", "Naples"], &[(23, [1, 1], ANY)], Some(Family::Naples)),
    row(["amd/rome", "amd/zen2", "EPYC 7002", "Rome"], &[(23, [49, 49], ANY)], Some(Family::Rome)),
    row(["amd/milan", "amd/zen3", "EPYC 7003", "Milan"], &[(25, [0, 1], ANY)], Some(Family::Milan)),
    row(["amd/genoa", "amd/zen4", "EPYC 9004", "Genoa"], &[(25, [16, 17], ANY)], Some(Family::Genoa)),
    // Zen 4c under two names, EPYC 97x4 and 8004: their numbers are the same.
    row(["amd/bergamo", "amd/zen4", "EPYC 97x4 or 8004", "Bergamo or Siena"], &[(25, [160, 175], ANY)], Some(Family::Siena)),
    row(["amd/turin", "amd/zen5", "EPYC 9005", "Turin"], &[(26, [0, 31], ANY)], Some(Family::Turin)),
];

/// Processors of Arm by the name of their cores and the vendor of the system; `None`: any vendor
/// that is known but Amazon. Instances with Neoverse cores of other clouds are Ampere's (N1) or of
/// designs that no line has.
#[rustfmt::skip]
const ARM: &[(&str, Option<&str>, Generation)] = &[
    ("Arm Neoverse N1", Some("Amazon"), Generation { class: "arm/graviton2", core_class: "arm/neoverse-n1", product: "Graviton2", core: "Neoverse N1" }),
    ("Arm Neoverse V1", Some("Amazon"), Generation { class: "arm/graviton3", core_class: "arm/neoverse-v1", product: "Graviton3", core: "Neoverse V1" }),
    ("Arm Neoverse V2", Some("Amazon"), Generation { class: "arm/graviton4", core_class: "arm/neoverse-v2", product: "Graviton4", core: "Neoverse V2" }),
    ("Arm Neoverse N1", None, Generation { class: "arm/ampere-altra", core_class: "arm/neoverse-n1", product: "Ampere Altra", core: "Neoverse N1" }),
    ("HiSilicon Kunpeng 920", Some(""), Generation { class: "arm/kunpeng-920", core_class: "arm/taishan-v110", product: "Kunpeng 920", core: "TaiShan V110" }),
];

/// Processors with AMX whose number is made up, by the L3 of a socket, MiB. Emerald Rapids has at
/// most 320, and no other design with AMX has what Sapphire Rapids' largest dies have.
const BY_L3: &[(u64, u64, &str)] = &[(105, 113, "intel/sapphire-rapids"), (321, 1024, "intel/xeon-6-p-core")];

impl Generation {
    /// The generation that is kept under a class.
    pub fn of_class(class: &str) -> Option<Generation> {
        all().find(|one| one.class == class)
    }

    /// `Xeon 6 (Granite Rapids)`; an Arm core's name adds nothing.
    pub fn words(&self) -> String {
        if self.class.starts_with("arm/") {
            self.product.to_string()
        } else {
            format!("{} ({})", self.product, self.core)
        }
    }
}

fn all() -> impl Iterator<Item = Generation> {
    X86.iter().map(|row| row.generation).chain(ARM.iter().map(|row| row.2))
}

impl Machine {
    /// The generation of its processors; `None` where no line of the tables fits.
    pub fn generation(&self) -> Option<Generation> {
        match self.cpus.vendor.as_deref() {
            Some("GenuineIntel" | "AuthenticAMD") => self.x86(),
            _ => self.arm(),
        }
    }

    fn x86(&self) -> Option<Generation> {
        let name = self.cpus.model.as_deref()?;
        is_server(name).then_some(())?;
        let by_numbers = self.cpus.numbers.and_then(|own| {
            let fits = |(family, models, steppings): &(u32, [u32; 2], [u32; 2])| {
                let within = |[first, last]: &[u32; 2], number: u32| (*first..=*last).contains(&number);
                *family == own.family && within(models, own.model) && within(steppings, own.stepping)
            };
            X86.iter().find(|row| row.numbers.iter().any(fits))
        });
        let by_name = || {
            let family = cpu(name)?.facts.family;
            X86.iter().find(|row| row.family == Some(family))
        };
        let found = by_numbers.or_else(by_name).map(|row| row.generation);
        found.or_else(|| self.by_features())
    }

    fn by_features(&self) -> Option<Generation> {
        let l3 = self.data_caches(3).filter_map(|cache| cache.size_bytes).max()? >> 20;
        self.cpus.flags.iter().find(|flag| *flag == "amx_tile")?;
        let (_, _, class) = BY_L3.iter().find(|(first, last, _)| (*first..=*last).contains(&l3))?;
        Generation::of_class(class)
    }

    fn arm(&self) -> Option<Generation> {
        let design = self.cpus.part_name.as_deref()?;
        let vendor = self.dmi.vendor.as_deref();
        let other =
            |vendor: &str| !vendor.is_empty() && !["Amazon", "QEMU"].iter().any(|own| vendor.contains(own));
        let fits = |wanted: &Option<&str>| match wanted {
            Some(wanted) => vendor.unwrap_or_default().contains(wanted),
            None => vendor.is_some_and(other),
        };
        ARM.iter().find(|(own, wanted, _)| *own == design && fits(wanted)).map(|row| row.2)
    }
}

/// Whether a name is one of a server processor, or of none in particular ("Intel Xeon Processor").
/// Xeon W and D and Ryzen have the numbers of servers and other memory; QEMU's own models have a
/// design in their name, which need not be the host's.
fn is_server(name: &str) -> bool {
    let plain = name.replace("(R)", " ").replace("(TM)", " ").to_ascii_lowercase();
    let mut words = plain.split_whitespace();
    let small = |word: &str| {
        word.starts_with("d-")
            || word.strip_prefix('w').is_some_and(|rest| rest.starts_with(['-', '2', '3', '5', '7', '9']))
    };
    let of_qemu = plain.contains("processor (") || plain.contains("epyc-");
    (plain.contains("xeon") || plain.contains("epyc")) && !of_qemu && !words.any(small)
}

#[cfg(test)]
mod tests {
    use super::super::dmi::Dmi;
    use super::super::text::tests::tree;
    use super::super::topology::{Cache, CacheKind, Cpus, Numbers};
    use super::*;
    use model::Snapshot;

    fn x86(vendor: &str, name: &str, numbers: Option<[u32; 3]>) -> Machine {
        let numbers = numbers.map(|[family, model, stepping]| Numbers { family, model, stepping });
        let cpus = Cpus { vendor: Some(vendor.into()), model: Some(name.into()), numbers, ..Cpus::default() };
        Machine { cpus, ..Machine::default() }
    }

    fn class(machine: &Machine) -> &'static str {
        machine.generation().map_or("", |found| found.class)
    }

    #[test]
    fn processors_by_number_and_by_name() {
        for (name, numbers, expected) in [
            ("Intel(R) Xeon(R) CPU E5-2683 v3 @ 2.00GHz", Some([6, 63, 2]), "intel/haswell-ep"),
            ("Intel(R) Xeon(R) Silver 4108 CPU @ 1.80GHz", Some([6, 85, 4]), "intel/skylake-sp"),
            ("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", Some([6, 85, 7]), "intel/cascade-lake"),
            ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", None, "intel/ice-lake-sp"),
            ("Intel(R) Xeon(R) Platinum 8488C", Some([6, 143, 8]), "intel/sapphire-rapids"),
            ("Intel(R) Xeon(R) 6980P", Some([6, 173, 1]), "intel/xeon-6-p-core"),
            ("Intel(R) Xeon(R) Processor @ 2.90GHz", Some([6, 106, 6]), "intel/ice-lake-sp"),
            ("Intel(R) Xeon(R) W-2145 CPU @ 3.70GHz", Some([6, 85, 4]), ""),
            ("Intel(R) Xeon(R) D-2183IT CPU @ 2.20GHz", Some([6, 85, 4]), ""),
            ("Intel(R) Core(TM) i9-7900X CPU @ 3.30GHz", Some([6, 85, 4]), ""),
            ("Intel Xeon Processor (Skylake)", Some([6, 85, 4]), ""),
            ("Intel(R) Xeon(R) Processor", Some([6, 167, 8]), ""),
        ] {
            assert_eq!(class(&x86("GenuineIntel", name, numbers)), expected, "{name}");
        }
        for (name, numbers, expected) in [
            ("AMD EPYC 7451 24-Core Processor", Some([23, 1, 2]), "amd/naples"),
            ("AMD EPYC", Some([25, 1, 1]), "amd/milan"),
            ("AMD EPYC 7R13 Processor", None, "amd/milan"),
            ("AMD EPYC 9654 96-Core Processor", Some([25, 17, 1]), "amd/genoa"),
            ("AMD EPYC 9754 128-Core Processor", Some([25, 160, 2]), "amd/bergamo"),
            ("AMD EPYC 9755 128-Core Processor", Some([26, 2, 1]), "amd/turin"),
            ("AMD EPYC-Rome Processor", Some([23, 49, 0]), ""),
            ("AMD Ryzen 7 1700 Eight-Core Processor", Some([23, 1, 1]), ""),
        ] {
            assert_eq!(class(&x86("AuthenticAMD", name, numbers)), expected, "{name}");
        }
        let words = x86("AuthenticAMD", "AMD EPYC", Some([25, 1, 1])).generation().map(|one| one.words());
        assert_eq!(words.as_deref(), Some("EPYC 7003 (Milan)"));
    }

    #[test]
    fn a_made_up_number_gives_way_to_what_one_design_has() {
        let guest = |mib: u64, flag: &str| {
            let mut machine = x86("GenuineIntel", "Intel(R) Xeon(R) Processor", Some([6, 167, 8]));
            machine.cpus.flags = vec![flag.to_string()];
            machine.caches = vec![Cache {
                size_bytes: Some(mib << 20),
                ..Cache::new(3, CacheKind::Unified, Default::default())
            }];
            class(&machine)
        };
        assert_eq!(guest(480, "amx_tile"), "intel/xeon-6-p-core");
        assert_eq!(guest(105, "amx_tile"), "intel/sapphire-rapids");
        assert_eq!([guest(320, "amx_tile"), guest(480, "avx512f")], ["", ""]);
    }

    #[test]
    fn arm_by_design_and_vendor() {
        let arm = |design: &str, vendor: Option<&str>| {
            let cpus = Cpus { part_name: Some(design.into()), ..Cpus::default() };
            let dmi = Dmi { vendor: vendor.map(str::to_string), ..Dmi::default() };
            class(&Machine { cpus, dmi, ..Machine::default() })
        };
        assert_eq!(arm("Arm Neoverse N1", Some("Amazon EC2")), "arm/graviton2");
        assert_eq!(arm("Arm Neoverse V2", Some("Amazon EC2")), "arm/graviton4");
        assert_eq!(arm("Arm Neoverse V2", Some("NVIDIA")), "");
        assert_eq!(arm("Arm Neoverse N1", Some("GIGABYTE")), "arm/ampere-altra");
        assert_eq!([arm("Arm Neoverse N1", None), arm("Arm Neoverse N1", Some("QEMU"))], ["", ""]);
        assert_eq!(arm("HiSilicon Kunpeng 920", None), "arm/kunpeng-920");
    }

    #[test]
    fn recorded_machines() {
        let classes =
            [("arm64-smt", ""), ("firecracker-guest-2cpu", "intel/sapphire-rapids"), ("memory-only", "")];
        for (name, expected) in classes {
            let path = testkit::root().join(format!("tests/machines/{name}.json"));
            let text = std::fs::read_to_string(path).expect("a recording");
            let snapshot: Snapshot = serde_json::from_str(&text).expect("a snapshot");
            assert_eq!(class(&Machine::from(&snapshot)), expected, "{name}");
        }
    }

    /// The texts of /proc/cpuinfo in captured trees of other projects.
    #[test]
    fn captured_processors() {
        let folder = testkit::root().join("../shared/fixtures/topology");
        if !folder.is_dir() {
            return eprintln!("SKIPPED captured_processors: {} is missing", folder.display());
        }
        for (name, expected) in [
            ("128arm-2pa2n8cluster4co.tar.bz2", "arm/kunpeng-920"),
            ("20em64t-hybrid-1p6c2t+2ca4co1t.tar.bz2", ""),
            ("28em64t-2s2n7c-buggycoresiblings.tar.bz2", "intel/haswell-ep"),
            ("2pa-pcidomain32bits.tar.bz2", ""),
            ("32intel64-2p8co2t+8ve.tar.bz2", "intel/skylake-sp"),
            ("64intel64-fakeKNL-SNC4-hybrid.tar.bz2", ""),
            ("linux-amd64-accel.tar.gz", "intel/cascade-lake"),
            ("memorysidecaches.tar.bz2", "intel/cascade-lake"),
            ("x86_64-epyc_7451.tar.gz", "amd/naples"),
        ] {
            let mut tar = std::process::Command::new("tar");
            let text = tar.arg("-xOf").arg(folder.join(name)).args(["--wildcards", "*proc/cpuinfo"]).output();
            let text = String::from_utf8(text.expect("tar runs").stdout).expect("text");
            let snapshot = tree(&[("/proc/cpuinfo", text.as_str())]);
            assert_eq!(class(&Machine::from(&snapshot)), expected, "{name}");
        }
    }

    #[test]
    fn classes_are_of_their_vendor_and_unique() {
        let classes: Vec<Generation> = all().collect();
        for (at, one) in classes.iter().enumerate() {
            let vendor = one.class.split('/').next();
            assert_eq!(vendor, one.core_class.split('/').next(), "{one:?}");
            assert!(classes[..at].iter().all(|other| other.class != one.class), "{one:?}");
            assert_eq!(Generation::of_class(one.class), Some(*one));
        }
        for (first, last, class) in BY_L3 {
            assert!(first <= last && Generation::of_class(class).is_some(), "{class}");
        }
    }
}
