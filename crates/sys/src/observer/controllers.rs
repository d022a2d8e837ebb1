//! Memory traffic of each socket, counted by its memory controllers (uncore PMUs, crate
//! perf-event2).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use perf_event::events::Dynamic;
use perf_event::{Builder, Counter};

use super::sensors::{SysfsFile, number};
use model::CpuSet;

const DEVICES: &str = "sys/bus/event_source/devices";
/// Memory controllers of Intel, and of AMD since Zen 4, with their events for reads and writes.
const KINDS: [(&str, [&str; 2]); 2] = [
    ("uncore_imc_", ["cas_count_read", "cas_count_write"]),
    ("amd_umc_", ["umc_cas_cmd.rd", "umc_cas_cmd.wr"]),
];
/// A column access moves one cache line, unless the kernel reports a scale.
const LINE_BYTES: f64 = 64.0;
/// Further controllers are not counted: each needs two open files per socket.
const MAX_CONTROLLERS: usize = 128;

/// Counters of all controllers by socket.
pub struct Controllers {
    sockets: Vec<Socket>,
}

struct Socket {
    name: String,
    /// Counters, and the bytes that one count stands for.
    events: Vec<(Counter, f64)>,
    /// Time and bytes of the last reading.
    before: Option<(Instant, f64)>,
}

/// An event of a controller, described by the kernel's files.
#[derive(Clone, Debug, PartialEq)]
struct ControllerEvent {
    /// Such as `uncore_imc_0`.
    controller: String,
    /// Such as `cas_count_read`.
    event: &'static str,
    /// Bytes that one count stands for.
    bytes: f64,
}

impl Controllers {
    /// Opens and starts the counters; the error says why there are none.
    pub fn open(root: &Path) -> Result<Controllers, String> {
        let found = events_by_cpu(root);
        if found.is_empty() {
            return Err(format!("no memory controllers (uncore_imc_*, amd_umc_*) under /{DEVICES}"));
        }
        if root != Path::new("/") {
            return Err("memory controllers can be counted only on the live host".to_string());
        }
        let mut sockets = Vec::new();
        for (cpu, events) in found {
            let open = |event: &ControllerEvent| -> std::io::Result<(Counter, f64)> {
                let described = Dynamic::builder(&event.controller)?.event(event.event)?.build();
                // A controller counts for all tasks and modes together.
                let mut counter = Builder::new(described.map_err(std::io::Error::other)?)
                    .any_pid()
                    .one_cpu(cpu as usize)
                    .exclude_kernel(false)
                    .exclude_hv(false)
                    .build()?;
                counter.enable()?;
                Ok((counter, event.bytes))
            };
            let events: std::io::Result<Vec<_>> = events.iter().map(open).collect();
            let events =
                events.map_err(|error| format!("counting memory controllers needs CAP_PERFMON ({error})"))?;
            let name = format!("by the memory controllers, socket of CPU {cpu}");
            sockets.push(Socket { name, events, before: None });
        }
        Ok(Controllers { sockets })
    }

    /// GB/s of each socket since its last reading; nothing at the first one. Sockets with a counter
    /// that cannot be read are left out.
    pub fn read(&mut self) -> Vec<(String, f64)> {
        let rate = |socket: &mut Socket| {
            let mut bytes = 0.0;
            for (counter, bytes_per_count) in &mut socket.events {
                bytes += counter.read().ok()? as f64 * *bytes_per_count;
            }
            let now = Instant::now();
            let (then, before) = socket.before.replace((now, bytes))?;
            Some((socket.name.clone(), (bytes - before) / (now - then).as_secs_f64() / 1e9))
        };
        self.sockets.iter_mut().filter_map(rate).collect()
    }
}

/// The events of all controllers, by the CPU that must read them.
fn events_by_cpu(root: &Path) -> BTreeMap<u32, Vec<ControllerEvent>> {
    let folder = root.join(DEVICES);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let mut found: BTreeMap<u32, Vec<ControllerEvent>> = BTreeMap::new();
    for (prefix, events) in KINDS {
        let is_controller = |name: &&String| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        for name in names.iter().filter(is_controller).take(MAX_CONTROLLERS) {
            let cpus = text(&folder.join(name).join("cpumask")).and_then(|text| CpuSet::parse_list(&text));
            let events: Option<Vec<ControllerEvent>> =
                events.iter().map(|event| describe(&folder, name, event)).collect();
            let (Some(cpus), Some(events)) = (cpus, events) else { continue };
            for cpu in cpus.iter() {
                found.entry(cpu).or_default().extend(events.iter().cloned());
            }
        }
    }
    found
}

fn text(path: &Path) -> Option<String> {
    SysfsFile::open(path)?.text()
}

fn describe(folder: &Path, controller: &str, event: &'static str) -> Option<ControllerEvent> {
    let events = folder.join(controller).join("events");
    text(&events.join(event))?;
    let attribute = |name: &str| text(&events.join(format!("{event}.{name}")));
    let scale = attribute("scale").and_then(|text| number(&text));
    let unit = match attribute("unit").as_deref() {
        Some("MiB") => Some(f64::from(1 << 20)),
        Some("Bytes") => Some(1.0),
        _ => None,
    };
    let bytes = scale.zip(unit).map_or(LINE_BYTES, |(scale, unit)| scale * unit);
    Some(ControllerEvent { controller: controller.to_string(), event, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(DEVICES).join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn events_are_read_from_the_kernels_files() {
        let root = tempfile::tempdir().expect("a folder");
        assert!(Controllers::open(root.path()).is_err_and(|why| why.contains("uncore_imc_*")));
        for controller in ["uncore_imc_0", "uncore_imc_1"] {
            let write = |path: &str, text: &str| write(root.path(), &format!("{controller}/{path}"), text);
            write("cpumask", "0,24\n");
            for event in ["read", "write"] {
                write(&format!("events/cas_count_{event}"), "event=0x04,umask=0x03\n");
                write(&format!("events/cas_count_{event}.scale"), "6.103515625e-5\n");
                write(&format!("events/cas_count_{event}.unit"), "MiB\n");
            }
        }
        write(root.path(), "amd_umc_3/cpumask", "24\n");
        write(root.path(), "amd_umc_3/events/umc_cas_cmd.rd", "event=0x0a,rdwrmask=0x1\n");
        write(root.path(), "amd_umc_3/events/umc_cas_cmd.wr", "event=0x0a,rdwrmask=0x2\n");
        // Free-running counters and controllers without events are left out.
        write(root.path(), "uncore_imc_free_running_0/cpumask", "0\n");
        write(root.path(), "amd_umc_4/cpumask", "0\n");
        let found = events_by_cpu(root.path());
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 24]);
        assert_eq!((found[&0].len(), found[&24].len()), (4, 6), "{found:?}");
        assert!(found[&24].iter().all(|event| event.bytes == 64.0), "{found:?}");
        assert_eq!(found[&24][5].event, "umc_cas_cmd.wr");
        assert!(Controllers::open(root.path()).is_err_and(|why| why.contains("live host")));
    }
}
