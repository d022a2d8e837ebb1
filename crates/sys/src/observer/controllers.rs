//! What the memory controllers of each socket read and write, by their own counters (uncore PMUs,
//! perf-event2).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use perf_event::events::Dynamic;
use perf_event::{Builder, Counter};

use super::sensors::{Word, number};
use model::CpuSet;

const DEVICES: &str = "sys/bus/event_source/devices";
/// Intel's integrated memory controllers, and AMD's since Zen 4, with their events for reads and
/// for writes.
const KINDS: [(&str, [&str; 2]); 2] = [
    ("uncore_imc_", ["cas_count_read", "cas_count_write"]),
    ("amd_umc_", ["umc_cas_cmd.rd", "umc_cas_cmd.wr"]),
];
/// A column access moves a cache line; where the kernel gives a scale, it is that.
const LINE_BYTES: f64 = 64.0;
/// Controllers of a machine that are counted at most: each takes two open files a socket.
const MOST: usize = 128;

/// Counters of all controllers by the CPU of their socket that reads them.
pub struct Controllers {
    sockets: Vec<Socket>,
}

struct Socket {
    name: String,
    events: Vec<(Counter, f64)>,
    before: Option<(Instant, f64)>,
}

/// An event of a controller, as the kernel's files describe it.
#[derive(Clone, Debug, PartialEq)]
struct Described {
    /// `uncore_imc_0`, `cas_count_read`.
    controller: String,
    event: &'static str,
    /// Bytes of a count.
    bytes: f64,
}

impl Controllers {
    /// Opens and starts them; why there are none, in words.
    pub fn open(root: &Path) -> Result<Controllers, String> {
        let found = described(root);
        if found.is_empty() {
            return Err(format!(
                "no counters of memory controllers under /{DEVICES} (uncore_imc_*, amd_umc_*)"
            ));
        }
        if root != Path::new("/") {
            return Err("counters are opened on the live host only".to_string());
        }
        let mut sockets = Vec::new();
        for (cpu, events) in found {
            let open = |event: &Described| -> std::io::Result<(Counter, f64)> {
                let described = Dynamic::builder(&event.controller)?.event(event.event)?.build();
                // What a controller counts belongs to no task and no mode.
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
            let events = events.map_err(|error| {
                format!("the kernel does not let us count memory controllers ({error}): it takes CAP_PERFMON")
            })?;
            let name = format!("by the memory controllers, socket of CPU {cpu}");
            sockets.push(Socket { name, events, before: None });
        }
        Ok(Controllers { sockets })
    }

    /// Bytes of each socket so far, and when that was; those of which a counter cannot be read are
    /// left out.
    pub fn read(&mut self) -> Vec<(String, f64)> {
        let rate = |socket: &mut Socket| {
            let mut bytes = 0.0;
            for (counter, each) in &mut socket.events {
                bytes += counter.read().ok()? as f64 * *each;
            }
            let now = Instant::now();
            let (then, before) = socket.before.replace((now, bytes))?;
            Some((socket.name.clone(), (bytes - before) / (now - then).as_secs_f64() / 1e9))
        };
        self.sockets.iter_mut().filter_map(rate).collect()
    }
}

/// The events of all controllers, by the CPU that counts them.
fn described(root: &Path) -> BTreeMap<u32, Vec<Described>> {
    let folder = root.join(DEVICES);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let mut found: BTreeMap<u32, Vec<Described>> = BTreeMap::new();
    for (prefix, events) in KINDS {
        let is_own = |name: &&String| {
            name.strip_prefix(prefix).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        };
        for name in names.iter().filter(is_own).take(MOST) {
            let cpus = text(&folder.join(name).join("cpumask")).and_then(|text| CpuSet::parse_list(&text));
            let both: Option<Vec<Described>> =
                events.iter().map(|event| describe(&folder, name, event)).collect();
            let (Some(cpus), Some(both)) = (cpus, both) else { continue };
            for cpu in cpus.iter() {
                found.entry(cpu).or_default().extend(both.iter().cloned());
            }
        }
    }
    found
}

fn text(path: &Path) -> Option<String> {
    Word::open(path)?.text()
}

fn describe(folder: &Path, controller: &str, event: &'static str) -> Option<Described> {
    let events = folder.join(controller).join("events");
    text(&events.join(event))?;
    let beside = |what: &str| text(&events.join(format!("{event}.{what}")));
    let scale = beside("scale").and_then(|text| number(&text));
    let unit = match beside("unit").as_deref() {
        Some("MiB") => Some(f64::from(1 << 20)),
        Some("Bytes") => Some(1.0),
        _ => None,
    };
    let bytes = scale.zip(unit).map_or(LINE_BYTES, |(scale, unit)| scale * unit);
    Some(Described { controller: controller.to_string(), event, bytes })
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
    fn events_are_described_by_the_kernels_files() {
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
        // Free-running counters have other names, and a controller without events is none.
        write(root.path(), "uncore_imc_free_running_0/cpumask", "0\n");
        write(root.path(), "amd_umc_4/cpumask", "0\n");
        let found = described(root.path());
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [0, 24]);
        assert_eq!((found[&0].len(), found[&24].len()), (4, 6), "{found:?}");
        assert!(found[&24].iter().all(|event| event.bytes == 64.0), "{found:?}");
        assert_eq!(found[&24][5].event, "umc_cas_cmd.wr");
        assert!(Controllers::open(root.path()).is_err_and(|why| why.contains("live host")));
    }
}
