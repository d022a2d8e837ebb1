//! Sensor files of clocks, idle states, temperatures and voltages, for repeated reading.
//!
//! Their content is not trusted: numbers must be possible, names are cut to the length of a label.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use model::TimeLine;

/// A small file that stays open.
pub struct SysfsFile(File);

/// Longer contents are cut, bytes.
const MAX_BYTES: usize = 128;

impl SysfsFile {
    /// `None` if the file is absent or unreadable.
    pub fn open(path: &Path) -> Option<SysfsFile> {
        // Non-blocking: a replayed tree may contain a pipe without a writer.
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
        let is_file = file.metadata().is_ok_and(|data| data.is_file());
        is_file.then_some(SysfsFile(file))
    }

    /// The current content without the end of the line.
    pub fn text(&self) -> Option<String> {
        let mut bytes = [0; MAX_BYTES];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        Some(String::from_utf8_lossy(&bytes[..length]).trim_matches(['\0', '\n', ' ']).to_string())
    }

    pub fn number(&self) -> Option<f64> {
        number(&self.text()?)
    }
}

/// Parses a number; `None` if it is absurdly large.
pub fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.abs() < 1e18)
}

/// A name for display: without control characters, at most 40 characters.
pub fn label(text: &str) -> String {
    let letters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    letters.take(40).collect::<String>().trim().to_string()
}

fn text_of(path: &Path) -> Option<String> {
    SysfsFile::open(path)?.text().map(|text| label(&text)).filter(|text| !text.is_empty())
}

/// Whether a reading disturbs a measured CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCost {
    /// The kernel reads its own memory or queries the board.
    NoInterrupt,
    /// The kernel interrupts another CPU, possibly the measured one, to read a register there.
    InterruptsCpu,
}

/// A sensor: its file, what it measures and the unit.
pub struct Sensor {
    file: SysfsFile,
    /// The subject of its time line.
    pub subject: &'static str,
    pub name: String,
    pub unit: &'static str,
    /// Factor from the file's number to the unit.
    scale: f64,
    /// A value outside shows a broken or absent sensor.
    possible: (f64, f64),
    pub cost: ReadCost,
    /// The value at which the host throttles or stops, in the same unit.
    pub critical: Option<f64>,
}

impl Sensor {
    /// The current value; `None` if it cannot be read or is impossible.
    pub fn read(&self) -> Option<f64> {
        within(self.file.number()? * self.scale, self.possible)
    }
}

fn within(value: f64, (low, high): (f64, f64)) -> Option<f64> {
    (low..=high).contains(&value).then_some(value)
}

/// Possible temperatures of working silicon, °C.
const POSSIBLE_DEGREES: (f64, f64) = (-40.0, 150.0);
/// Possible supply voltages of a core, V.
const POSSIBLE_VOLTS: (f64, f64) = (0.2, 2.0);
// A report shows no more.
const MAX_TEMPERATURES: usize = 6;
const MAX_VOLTAGES: usize = 3;
/// Largest number of chips, zones or inputs of a chip; only a hostile tree has more.
const MAX_NUMBERED: usize = 256;

/// The numbers of children of a folder with names `PREFIX NUMBER SUFFIX`, sorted.
pub fn numbered(folder: &Path, prefix: &str, suffix: &str) -> Vec<u32> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().take(16 * MAX_NUMBERED);
    let number = |name: String| name.strip_prefix(prefix)?.strip_suffix(suffix)?.parse().ok();
    let mut numbers: Vec<u32> =
        names.filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned())).collect();
    numbers.sort_unstable();
    numbers.truncate(MAX_NUMBERED);
    numbers
}

/// Drivers of sensors inside processors. Those of boards and disks are not read: some take
/// milliseconds, some wake a disk.
const CPU_CHIPS: [&str; 8] = [
    "coretemp",
    "k10temp",
    "zenpower",
    "k8temp",
    "via_cputemp",
    "cpu_thermal",
    "scpi_sensors",
    "scmi_sensors",
];
/// Drivers that read a register on the core itself.
const ON_THE_CORE: [&str; 3] = ["coretemp", "via_cputemp", "x86_pkg_temp"];
/// Labels for the supply of the cores.
const CORE_SUPPLY: [&str; 5] = ["vcore", "vddcr_cpu", "vddcr cpu", "svi2_core", "cpu core"];

fn read_cost(driver: &str) -> ReadCost {
    if ON_THE_CORE.contains(&driver) { ReadCost::InterruptsCpu } else { ReadCost::NoInterrupt }
}

/// Temperatures of processors (packages before cores) and voltages of cores.
pub fn sensors(root: &Path) -> Vec<Sensor> {
    let chips = root.join("sys/class/hwmon");
    let mut temperatures = Vec::new();
    let mut voltages = Vec::new();
    for chip in numbered(&chips, "hwmon", "").into_iter().map(|number| chips.join(format!("hwmon{number}"))) {
        let Some(driver) = text_of(&chip.join("name")) else { continue };
        if CPU_CHIPS.contains(&driver.as_str()) {
            temperatures.extend(chip_temperatures(&chip, &driver));
        }
        voltages.extend(chip_voltages(&chip, &driver));
    }
    let of_package =
        |sensor: &Sensor| ["Package", "Tctl", "Tdie"].iter().any(|word| sensor.name.contains(word));
    temperatures.sort_by_key(|sensor| !of_package(sensor));
    // Zones repeat the chips' temperatures less exactly.
    if temperatures.is_empty() {
        temperatures = zones(&root.join("sys/class/thermal"));
    }
    temperatures.truncate(MAX_TEMPERATURES);
    voltages.truncate(MAX_VOLTAGES);
    temperatures.into_iter().chain(voltages).collect()
}

fn temperature(path: &Path, name: String, driver: &str, critical: Option<f64>) -> Option<Sensor> {
    let sensor = Sensor {
        file: SysfsFile::open(path)?,
        subject: TimeLine::TEMPERATURE,
        name,
        unit: "°C",
        scale: 1e-3,
        possible: POSSIBLE_DEGREES,
        cost: read_cost(driver),
        critical: critical.and_then(|degrees| within(degrees * 1e-3, POSSIBLE_DEGREES)),
    };
    sensor.read().is_some().then_some(sensor)
}

fn chip_temperatures(chip: &Path, driver: &str) -> Vec<Sensor> {
    let sensor = |number: u32| {
        let path = |attribute: &str| chip.join(format!("temp{number}_{attribute}"));
        let label = text_of(&path("label")).unwrap_or_else(|| number.to_string());
        let critical = SysfsFile::open(&path("crit")).and_then(|file| file.number());
        temperature(&path("input"), format!("{driver} {label}"), driver, critical)
    };
    numbered(chip, "temp", "_input").into_iter().filter_map(sensor).collect()
}

fn chip_voltages(chip: &Path, driver: &str) -> Vec<Sensor> {
    let sensor = |number: u32| {
        let label = text_of(&chip.join(format!("in{number}_label")))?;
        let lowercase = label.to_lowercase();
        let sensor = Sensor {
            file: SysfsFile::open(&chip.join(format!("in{number}_input")))?,
            subject: TimeLine::VOLTAGE,
            name: format!("{driver} {label}"),
            unit: "V",
            scale: 1e-3,
            possible: POSSIBLE_VOLTS,
            cost: read_cost(driver),
            critical: None,
        };
        (CORE_SUPPLY.iter().any(|word| lowercase.contains(word)) && sensor.read().is_some()).then_some(sensor)
    };
    numbered(chip, "in", "_input").into_iter().filter_map(sensor).collect()
}

fn zones(folder: &Path) -> Vec<Sensor> {
    let zone = |number: u32| {
        let zone = folder.join(format!("thermal_zone{number}"));
        let kind = text_of(&zone.join("type"))?;
        let is_critical = |trip: &u32| {
            text_of(&zone.join(format!("trip_point_{trip}_type"))).as_deref() == Some("critical")
        };
        let trip = numbered(&zone, "trip_point_", "_type").into_iter().find(is_critical);
        let critical =
            trip.and_then(|trip| SysfsFile::open(&zone.join(format!("trip_point_{trip}_temp")))?.number());
        let lowercase = kind.to_lowercase();
        let of_cpu =
            ["cpu", "pkg", "soc", "acpitz", "core", "package"].iter().any(|word| lowercase.contains(word));
        of_cpu.then(|| temperature(&zone.join("temp"), kind.clone(), &kind, critical))?
    };
    numbered(folder, "thermal_zone", "").into_iter().filter_map(zone).collect()
}

/// The idle states of one CPU: names and files of their times.
pub struct IdleStates(Vec<(String, SysfsFile)>);

/// Kernels have at most ten.
const MAX_STATES: usize = 16;

impl IdleStates {
    pub fn open(root: &Path, cpu: u32) -> IdleStates {
        let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpuidle"));
        let state = |number: u32| {
            let state = folder.join(format!("state{number}"));
            Some((text_of(&state.join("name"))?, SysfsFile::open(&state.join("time"))?))
        };
        IdleStates(numbered(&folder, "state", "").into_iter().take(MAX_STATES).filter_map(state).collect())
    }

    /// The states with their total times, µs; unreadable ones are left out.
    pub fn read(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().filter_map(|(name, time)| Some((name.as_str(), time.number()?)))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The model-specific registers of one x86 CPU.
pub struct Registers(File);

impl Registers {
    /// The error says why the registers cannot be read.
    pub fn open(root: &Path, cpu: u32) -> Result<Registers, String> {
        let shown = format!("/dev/cpu/{cpu}/msr");
        let path: PathBuf = root.join(shown.trim_start_matches('/'));
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{shown} does not exist (load the kernel module msr)")
            }
            std::io::ErrorKind::PermissionDenied => format!("only root may read {shown}"),
            _ => format!("cannot open {shown}: {error}"),
        })?;
        let kind = file.metadata().map(|data| data.file_type());
        if kind.is_ok_and(|kind| kind.is_char_device() || kind.is_file()) {
            Ok(Registers(file))
        } else {
            Err(format!("{shown} is not a device"))
        }
    }

    pub fn read(&self, register: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let length = self.0.read_at(&mut bytes, register).ok()?;
        (length == 8).then(|| u64::from_le_bytes(bytes))
    }
}

/// The register IA32_PERF_STATUS (Intel SDM volume 4). `None`: impossible, as hypervisors invent
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PerfStatus {
    /// Ratio to the bus clock: bits 15:8.
    pub multiplier: Option<f64>,
    /// Core voltage, V: bits 47:32 in units of 1/8192 V, since Sandy Bridge.
    pub volts: Option<f64>,
}

impl PerfStatus {
    pub fn from_register(register: u64) -> PerfStatus {
        let multiplier = (register >> 8 & 0xff) as f64;
        let volts = (register >> 32 & 0xffff) as f64 / 8192.0;
        PerfStatus { multiplier: within(multiplier, (4.0, 120.0)), volts: within(volts, POSSIBLE_VOLTS) }
    }
}

/// Executed cycles per cycle of the base clock between two readings of (APERF, MPERF).
pub fn cycles_per_base(then: (u64, u64), now: (u64, u64)) -> Option<f64> {
    let (executed, base) = (now.0.checked_sub(then.0)?, now.1.checked_sub(then.1)?);
    within(executed as f64 / base as f64, (0.01, 10.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(root: &Path, path: &str, content: &[u8]) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, content).expect("written");
    }

    fn shown(sensors: &[Sensor]) -> Vec<(String, Option<f64>, Option<f64>, ReadCost)> {
        sensors.iter().map(|one| (one.name.clone(), one.read(), one.critical, one.cost)).collect()
    }

    #[test]
    fn multiplier_and_voltage_are_read_from_perf_status() {
        // A laptop at 30 times the bus clock and 1.1409 V, as i7z shows them.
        let register = (1.1409f64 * 8192.0) as u64;
        let PerfStatus { multiplier, volts } = PerfStatus::from_register(register << 32 | 30 << 8);
        assert_eq!(multiplier, Some(30.0));
        assert!(volts.is_some_and(|volts| (volts - 1.1409).abs() < 1e-3));
        // KVM's emulation: 1000 and 4 << 40.
        assert_eq!(PerfStatus::from_register(4 << 40 | 1000), PerfStatus::default());
    }

    #[test]
    fn executed_cycles_per_base_cycle() {
        assert_eq!(cycles_per_base((100, 100), (400, 300)), Some(1.5));
        for (then, now) in [((5, 5), (5, 5)), ((9, 9), (1, 1)), ((0, 0), (u64::MAX, 1))] {
            assert_eq!(cycles_per_base(then, now), None);
        }
    }

    #[test]
    fn only_chips_of_processors_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        let chip = |number: u32, files: &[(&str, &str)]| {
            for (file, text) in files {
                write(root.path(), &format!("sys/class/hwmon/hwmon{number}/{file}"), text.as_bytes());
            }
        };
        chip(0, &[("name", "nvme\n"), ("temp1_input", "41000\n")]);
        let core = [("temp2_label", "Core 0"), ("temp2_input", "62000"), ("temp2_crit", "100000")];
        chip(3, &core);
        chip(3, &[("name", "coretemp\n"), ("temp1_label", "Package id 0\n"), ("temp1_input", "64000\n")]);
        chip(3, &[("temp7_label", "Core 9"), ("temp7_input", "-300000")]);
        chip(10, &[("name", "nct6775\n"), ("in0_label", "Vcore\n"), ("in0_input", "1100\n")]);
        chip(10, &[("in1_label", "+3.3V"), ("in1_input", "3300"), ("in2_input", "900")]);
        assert_eq!(
            shown(&sensors(root.path())),
            [
                ("coretemp Package id 0".to_string(), Some(64.0), None, ReadCost::InterruptsCpu),
                ("coretemp Core 0".to_string(), Some(62.0), Some(100.0), ReadCost::InterruptsCpu),
                ("nct6775 Vcore".to_string(), Some(1.1), None, ReadCost::NoInterrupt),
            ]
        );
    }

    #[test]
    fn thermal_zones_replace_missing_chips() {
        let root = tempfile::tempdir().expect("a folder");
        let zone = "sys/class/thermal/thermal_zone2";
        for (file, text) in [
            ("type", "cpu-thermal"),
            ("temp", "55500"),
            ("trip_point_0_type", "passive"),
            ("trip_point_0_temp", "70000"),
            ("trip_point_1_type", "critical"),
            ("trip_point_1_temp", "90000"),
        ] {
            write(root.path(), &format!("{zone}/{file}"), text.as_bytes());
        }
        write(root.path(), "sys/class/thermal/thermal_zone0/type", b"iwlwifi_1");
        write(root.path(), "sys/class/thermal/thermal_zone0/temp", b"30000");
        let found = shown(&sensors(root.path()));
        assert_eq!(found, [("cpu-thermal".to_string(), Some(55.5), Some(90.0), ReadCost::NoInterrupt)]);
    }

    #[test]
    fn pipes_and_absent_files_are_not_opened() {
        let root = tempfile::tempdir().expect("a folder");
        let pipe = root.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
            .expect("a pipe");
        assert!(SysfsFile::open(&pipe).is_none() && SysfsFile::open(root.path()).is_none());
        assert!(SysfsFile::open(&root.path().join("absent")).is_none());
        assert!(Registers::open(root.path(), 0).is_err_and(|why| why.contains("load the kernel module msr")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn any_content_is_read_or_left_out(content in proptest::collection::vec(any::<u8>(), 0..300), bits in any::<u64>()) {
            let root = tempfile::tempdir().expect("a folder");
            for file in ["name", "temp1_label", "temp1_input", "temp1_crit", "in0_label", "in0_input"] {
                write(root.path(), &format!("sys/class/hwmon/hwmon0/{file}"), &content);
            }
            write(root.path(), "sys/class/hwmon/hwmon1/name", b"k10temp");
            write(root.path(), "sys/class/hwmon/hwmon1/temp1_input", b"50000");
            write(root.path(), "sys/class/hwmon/hwmon1/temp1_label", &content);
            write(root.path(), "sys/class/hwmon/hwmon1/temp1_crit", &content);
            for file in ["name", "time"] {
                write(root.path(), &format!("sys/devices/system/cpu/cpu0/cpuidle/state0/{file}"), &content);
            }
            let found = sensors(root.path());
            prop_assert_eq!(found.len(), 1);
            prop_assert!(found[0].name.chars().count() <= 50 && !found[0].name.chars().any(char::is_control));
            prop_assert!(found[0].critical.is_none_or(|degrees| degrees <= 150.0));
            for (name, time) in IdleStates::open(root.path(), 0).read() {
                prop_assert!(!name.is_empty() && time.is_finite());
            }
            let PerfStatus { multiplier, volts } = PerfStatus::from_register(bits);
            prop_assert!(multiplier.is_none_or(|times| times <= 120.0) && volts.is_none_or(|volts| volts <= 2.0));
        }
    }
}
