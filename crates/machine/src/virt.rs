//! Whether this is a guest, and whose.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};

use model::Snapshot;

use super::cpuid;
use super::cpuinfo::CpuInfo;
use super::dmi::Dmi;
use super::kernel::Clocksource;

/// What the machine runs under. In JSON: null, `"none"`, or the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Hypervisor {
    /// Unknown.
    #[default]
    Unknown,
    /// Bare metal: the processor reports it, and nothing contradicts it.
    None,
    /// A guest; the name where it is reported (`kvm`, `vmware`, `hyperv`, `xen`, `virtualbox`,
    /// ...), else `unknown guest`.
    Guest(String),
}

impl Hypervisor {
    /// `none`, or the name; `None` where it is unknown.
    pub fn name(&self) -> Option<&str> {
        match self {
            Hypervisor::Unknown => None,
            Hypervisor::None => Some("none"),
            Hypervisor::Guest(name) => Some(name),
        }
    }
}

impl Serialize for Hypervisor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl JsonSchema for Hypervisor {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Hypervisor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "null"],
            "description": "\"none\" on bare metal, a guest's hypervisor by name or \"unknown guest\", null if \
                            unknown",
        })
    }
}

/// A guest of an unknown hypervisor.
const UNNAMED: &str = "unknown guest";

/// Judges by all evidence: the processor's flag, the hypervisor's signature, firmware strings,
/// clock sources, paravirtual devices. One sign of a guest outweighs a missing flag: some
/// hypervisors hide it.
pub(super) fn parse(
    snapshot: &Snapshot,
    info: &CpuInfo,
    dmi: &Dmi,
    clock: &Clocksource,
    remarks: &mut Vec<String>,
) -> Hypervisor {
    let flag = info
        .x86_flags()
        .map(|flags| flags.contains(&"hypervisor"))
        .or_else(|| cpuid::hypervisor_bit(snapshot))
        .or(dmi.is_virtual.then_some(true));
    let named = cpuid::hypervisor_name(snapshot)
        .or_else(|| kernel_says(snapshot))
        .or_else(|| machine_says(snapshot, info))
        .or_else(|| firmware_says(dmi, flag))
        .or_else(|| clock_says(clock))
        .or_else(|| devices_say(snapshot))
        .or_else(|| is_of_guests(dmi, flag).then_some(UNNAMED));
    match (named, flag) {
        (Some(name), flag) => {
            if flag == Some(false) {
                remarks.push(format!("the processor reports no hypervisor, but other signs show {name}"));
            }
            Hypervisor::Guest(name.to_string())
        }
        (None, Some(true)) => Hypervisor::Guest(UNNAMED.to_string()),
        (None, Some(false)) => Hypervisor::None,
        (None, None) => {
            if info.any(&["platform"]) == Some("pSeries") {
                remarks.push("platform pSeries: a partition under PowerVM or KVM, unknown which".to_string());
            }
            Hypervisor::Unknown
        }
    }
}

fn kernel_says(snapshot: &Snapshot) -> Option<&'static str> {
    match snapshot.text("/sys/hypervisor/type")? {
        "xen" => Some("xen"),
        "kvm" => Some("kvm"),
        _ => None,
    }
}

/// Device tree (Arm, POWER, RISC-V) and s390's own words. A POWER `pSeries` platform alone is
/// shown by a partition as well as by an old whole machine, so it is no proof.
fn machine_says(snapshot: &Snapshot, info: &CpuInfo) -> Option<&'static str> {
    let trees = ["/proc/device-tree", "/sys/firmware/devicetree/base"];
    let tree = |file: &str| trees.iter().find_map(|root| snapshot.lossy(&format!("{root}/{file}")));
    if let Some(compatible) = tree("hypervisor/compatible") {
        return Some(match compatible {
            text if text.contains("kvm") => "kvm",
            text if text.contains("xen") => "xen",
            text if text.contains("vmware") => "vmware",
            _ => UNNAMED,
        });
    }
    if is_user_mode_linux(info) {
        return Some("user-mode linux");
    }
    let machine = info.any(&["machine", "model"]).unwrap_or("");
    if machine.contains("emulated by qemu")
        || tree("model").is_some_and(|model| model.contains("emulated by qemu"))
    {
        return Some("qemu");
    }
    if tree("ibm,partition-name").is_some() {
        return Some("powervm");
    }
    let sysinfo = snapshot.text("/proc/sysinfo")?;
    let control = sysinfo.lines().rfind(|line| line.starts_with("VM00 Control Program:"));
    match control {
        Some(line) if line.contains("KVM") => Some("kvm"),
        Some(line) if line.contains("z/VM") => Some("z/vm"),
        Some(_) => Some(UNNAMED),
        None => sysinfo.contains("LPAR Number:").then_some("pr/sm"),
    }
}

/// arch/um/kernel/um_arch.c writes so for each CPU.
pub(super) fn is_user_mode_linux(info: &CpuInfo) -> bool {
    info.any(&["vendor_id"]).is_some_and(|vendor| vendor.starts_with("User Mode Linux"))
}

/// What guests' firmware calls itself, by the part of a DMI string that gives it away.
const FIRMWARE: &[(&str, &str)] = &[
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("VMware", "vmware"),
    ("VMW", "vmware"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("HVM domU", "xen"),
    ("KVM", "kvm"),
    ("KubeVirt", "kvm"),
    ("RHEV Hypervisor", "kvm"),
    ("oVirt", "kvm"),
    ("Cloud Hypervisor", "kvm"),
    ("Firecracker", "kvm"),
    ("Apple Virtualization", "apple"),
    ("ACRN", "acrn"),
    ("QEMU", "qemu"),
    ("Bochs", "qemu"),
    ("Standard PC", "qemu"),
];

/// Clouds whose guests run under KVM but who let whole machines too.
const CLOUDS: &[&str] = &[
    "OpenStack",
    "Google Compute Engine",
    "Amazon EC2",
    "Alibaba Cloud",
    "DigitalOcean",
    "Hetzner",
    "Nutanix",
];

/// Products that only guests have, by maker and product (a beginning of it), and what these run
/// under. Amazon's whole machines have `metal` in the name of their kind; Red Hat makes none.
const GUESTS: &[(&str, &str, &str)] = &[
    ("Amazon EC2", "", "kvm"),
    ("", "OpenStack", "kvm"),
    ("DigitalOcean", "Droplet", "kvm"),
    ("Hetzner", "vServer", "kvm"),
    ("Nutanix", "AHV", "kvm"),
    ("Google", "Google", "kvm"),
    ("Tencent Cloud", "CVM", "kvm"),
    ("Red Hat", "", "kvm"),
    ("Vultr", "VC2", "kvm"),
    ("Scaleway", "SCW-", "kvm"),
    // Under KVM or bhyve.
    ("Joyent", "SmartDC HVM", UNNAMED),
];

/// Firmware that is built for guests alone.
const GUEST_FIRMWARE: &[&str] = &["SeaBIOS", "OVMF"];

/// What runs the guest that maker and product sell.
fn sold_as_guest(dmi: &Dmi) -> Option<&'static str> {
    let product = dmi.product.as_deref().filter(|product| !product.contains("metal"))?;
    let vendor = dmi.vendor.as_deref().unwrap_or("");
    let is_own = |row: &&(&str, &str, &str)| vendor.starts_with(row.0) && product.starts_with(row.1);
    GUESTS.iter().find(is_own).map(|row| row.2)
}

fn is_of_cloud(dmi: &Dmi) -> bool {
    dmi.strings().any(|text| CLOUDS.iter().any(|part| text.contains(part)))
}

/// Whether the firmware is that of guests. Of clouds that let whole machines too, a processor that
/// reports no hypervisor is trusted.
fn is_of_guests(dmi: &Dmi, flag: Option<bool>) -> bool {
    let firmware = dmi.bios_vendor.as_deref().unwrap_or("");
    let is_built_for_guests = GUEST_FIRMWARE.iter().any(|part| firmware.contains(part));
    is_built_for_guests && !(flag == Some(false) && is_of_cloud(dmi))
}

fn firmware_says(dmi: &Dmi, flag: Option<bool>) -> Option<&'static str> {
    let product = dmi.product.as_deref().unwrap_or("");
    let vendor = dmi.vendor.as_deref().unwrap_or("");
    if vendor.starts_with("Microsoft") && product == "Virtual Machine" {
        return Some("hyperv");
    }
    if vendor == "Xen" {
        return Some("xen");
    }
    let says = |text: &str| FIRMWARE.iter().find(|(part, _)| text.contains(part)).map(|(_, name)| *name);
    let named: Vec<&str> = dmi.strings().filter_map(says).collect();
    // Any other name says more than QEMU's, whose firmware the others borrow.
    let sure = named.iter().find(|name| **name != "qemu");
    let cloud = || match flag {
        Some(true) if is_of_cloud(dmi) => Some("kvm"),
        // The other signs may know a name.
        Some(true) => sold_as_guest(dmi).filter(|name| *name != UNNAMED),
        Some(false) => None,
        None => sold_as_guest(dmi),
    };
    sure.copied().or_else(cloud).or(named.first().copied())
}

fn clock_says(clock: &Clocksource) -> Option<&'static str> {
    let names = clock.available.iter().chain(&clock.current);
    names.into_iter().find_map(|name| match name.as_str() {
        "kvm-clock" => Some("kvm"),
        "xen" => Some("xen"),
        name if name.starts_with("hyperv_clocksource") => Some("hyperv"),
        _ => None,
    })
}

/// Devices that only a hypervisor makes, by PCI vendor. Virtio's (1af4) is not among them: network
/// cards emulate it.
fn devices_say(snapshot: &Snapshot) -> Option<&'static str> {
    let listed = snapshot.text("/proc/bus/pci/devices").unwrap_or("").lines();
    let mut vendors: Vec<&str> = listed.filter_map(|line| line.split_whitespace().nth(1)?.get(..4)).collect();
    let folder = "/sys/bus/pci/devices";
    let files = snapshot.below(folder).filter(|(path, _)| path.ends_with("/vendor"));
    vendors.extend(files.filter_map(|(path, _)| snapshot.text(path)?.strip_prefix("0x")));
    let known = [
        ("80ee", "virtualbox"),
        ("15ad", "vmware"),
        ("5853", "xen"),
        ("1414", "hyperv"),
        ("1ab8", "parallels"),
        ("1b36", "qemu"),
    ];
    known.into_iter().find(|(vendor, _)| vendors.contains(vendor)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::tree;
    use super::*;

    fn judged(files: &[(&str, &str)]) -> (Hypervisor, usize) {
        let snapshot = tree(files);
        let info = CpuInfo::read(&snapshot);
        let mut remarks = Vec::new();
        let dmi = super::super::dmi::parse(&snapshot);
        let clock = super::super::kernel::clocksource(&snapshot, &info);
        (parse(&snapshot, &info, &dmi, &clock, &mut remarks), remarks.len())
    }

    const BARE: (&str, &str) = ("/proc/cpuinfo", "processor: 0\nflags: fpu vme\n");
    const GUEST: (&str, &str) = ("/proc/cpuinfo", "processor: 0\nflags: fpu hypervisor\n");
    const PRODUCT: &str = "/sys/class/dmi/id/product_name";
    const VENDOR: &str = "/sys/class/dmi/id/sys_vendor";

    fn guest(name: &str) -> Hypervisor {
        Hypervisor::Guest(name.to_string())
    }

    #[test]
    fn the_flag_alone() {
        assert_eq!(judged(&[BARE]), (Hypervisor::None, 0));
        assert_eq!(judged(&[GUEST]), (guest(UNNAMED), 0));
        assert_eq!(judged(&[("/proc/cpuinfo", "processor: 0\nFeatures: fp\n")]), (Hypervisor::Unknown, 0));
        assert_eq!(judged(&[]), (Hypervisor::Unknown, 0));
    }

    #[test]
    fn names() {
        let clock = ("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc kvm-clock");
        assert_eq!(judged(&[GUEST, clock]).0, guest("kvm"));
        assert_eq!(judged(&[GUEST, (PRODUCT, "CloudStack KVM Hypervisor")]).0, guest("kvm"));
        assert_eq!(
            judged(&[GUEST, (PRODUCT, "Virtual Machine"), (VENDOR, "Microsoft Corporation")]).0,
            guest("hyperv")
        );
        assert_eq!(
            judged(&[GUEST, (PRODUCT, "Standard PC (Q35 + ICH9, 2009)"), (VENDOR, "QEMU")]).0,
            guest("qemu")
        );
        assert_eq!(judged(&[GUEST, (PRODUCT, "OpenStack Nova"), (VENDOR, "QEMU")]).0, guest("kvm"));
        assert_eq!(
            judged(&[("/proc/sysinfo", "LPAR Number: 1\nVM00 Control Program: z/VM 6")]).0,
            guest("z/vm")
        );
    }

    #[test]
    fn guests_by_vendor_and_product_alone() {
        for (vendor, product, name) in [
            ("Amazon EC2", "m5.large", Some("kvm")),
            ("Amazon EC2", "m7g.metal", None),
            ("Amazon EC2", "m7i.metal-24xl", None),
            ("OpenStack Foundation", "OpenStack Nova", Some("kvm")),
            ("DigitalOcean", "Droplet", Some("kvm")),
            ("Hetzner", "vServer", Some("kvm")),
            ("Nutanix", "AHV", Some("kvm")),
            ("Nutanix", "NX-3060-G6", None),
            ("Alibaba Cloud", "Alibaba Cloud ECS", None),
            ("Google", "Google Compute Engine", Some("kvm")),
            ("Google", "Google", Some("kvm")),
            ("Google", "Eve", None),
            ("Tencent Cloud", "CVM", Some("kvm")),
            ("Tencent Cloud", "BMS", None),
            ("Red Hat", "OpenShift Virtualization", Some("kvm")),
            ("Vultr", "VC2", Some("kvm")),
            ("Scaleway", "SCW-GP1-S", Some("kvm")),
            ("Joyent", "SmartDC HVM", Some(UNNAMED)),
            ("Joyent", "Joyent-Compute-Platform-3302", None),
        ] {
            let files = [(VENDOR, vendor), (PRODUCT, product)];
            assert_eq!(judged(&files).0.name(), name, "{vendor} {product}");
            // A processor that reports no hypervisor is trusted.
            let bare = [BARE, (VENDOR, vendor), (PRODUCT, product)];
            assert_eq!(judged(&bare).0, Hypervisor::None, "{vendor} {product}");
        }
    }

    #[test]
    fn guests_by_firmware_alone() {
        const BIOS: &str = "/sys/class/dmi/id/bios_vendor";
        for (bios, vendor, product, name) in [
            ("SeaBIOS", "Alibaba Cloud", "Alibaba Cloud ECS", Some(UNNAMED)),
            ("SeaBIOS", "Tencent Cloud", "CVM", Some("kvm")),
            ("SeaBIOS", "Vultr", "VHF", Some(UNNAMED)),
            ("EFI Development Kit II / OVMF", "Somebody", "", Some(UNNAMED)),
            ("EFI Development Kit II / OVMF", "QEMU", "Standard PC (Q35 + ICH9, 2009)", Some("qemu")),
            ("EDK II", "KubeVirt", "None", Some("kvm")),
            ("EDK II", "Raspberry Pi Foundation", "Raspberry Pi 4", None),
            ("coreboot", "Google", "Eve", None),
            ("American Megatrends Inc.", "Supermicro", "X11", None),
        ] {
            let files = [(BIOS, bios), (VENDOR, vendor), (PRODUCT, product)];
            assert_eq!(judged(&files).0.name(), name, "{bios} {vendor} {product}");
        }
        // The firmware shows a guest whose processor hides it, unless it may be a cloud's whole
        // machine.
        assert_eq!(judged(&[BARE, (BIOS, "SeaBIOS")]), (guest(UNNAMED), 1));
        let whole = [BARE, (BIOS, "SeaBIOS"), (VENDOR, "Alibaba Cloud"), (PRODUCT, "Alibaba Cloud ECS")];
        assert_eq!(judged(&whole), (Hypervisor::None, 0));
        assert_eq!(judged(&[GUEST, (BIOS, "SeaBIOS")]), (guest(UNNAMED), 0));
        assert_eq!(judged(&[GUEST, (VENDOR, "Tencent Cloud"), (PRODUCT, "CVM")]), (guest("kvm"), 0));
    }

    #[test]
    fn a_hidden_guest_and_bare_metal_of_a_cloud() {
        let pci = ("/proc/bus/pci/devices", "0000\t80861237\n0010\t80eebeef\n");
        assert_eq!(judged(&[BARE, pci]), (guest("virtualbox"), 1));
        let vendor = ("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x15ad");
        assert_eq!(judged(&[GUEST, vendor]), (guest("vmware"), 0));
        let virtio = ("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x1af4");
        assert_eq!(judged(&[BARE, virtio]), (Hypervisor::None, 0));
        assert_eq!(judged(&[BARE, (VENDOR, "Amazon EC2"), (PRODUCT, "c5.metal")]), (Hypervisor::None, 0));
        assert_eq!(
            judged(&[BARE, (VENDOR, "Dell Inc."), (PRODUCT, "PowerEdge R740")]),
            (Hypervisor::None, 0)
        );
    }
}
