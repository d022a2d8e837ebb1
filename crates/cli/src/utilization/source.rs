//! Where the looks of `assay utilization` come from: this host or a recording; and which CPUs
//! share a core.

use std::fs::File;
use std::io::{BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};

use machine::Machine;
use model::CpuSet;
use model::run_file::{self, Limits};
use stats::smt::Watch;
use stats::smt::ticks::{Lines, StatReading};
use sys::counters::CpuTimes;

/// CPUs of each core, with its package.
pub type Cores = Vec<(Vec<u32>, Option<i64>)>;

/// Cores of a host; `None` if its kernel does not report them.
pub fn cores_of(machine: &Machine) -> Option<Cores> {
    let cores = machine.cpus.cores.as_ref()?;
    Some(cores.iter().map(|core| (core.cpus.iter().collect(), core.package)).collect())
}

/// `0,32/1,33`: the CPUs of each core; `none`: every CPU is one.
pub fn siblings(text: &str) -> Result<Cores, String> {
    let wrong = || {
        format!(
            "{text:?} names no siblings: give the CPUs of each core, with / between cores, as 0,32/1,33, or \
              none"
        )
    };
    if text.trim() == "none" {
        return Ok(Vec::new());
    }
    let mut taken = CpuSet::default();
    let mut cores = Vec::new();
    for part in text.split('/') {
        let cpus = CpuSet::parse_list(part).filter(|cpus| !cpus.is_empty()).ok_or_else(wrong)?;
        if let Some(twice) = cpus.intersection(&taken).first() {
            return Err(format!("{text:?} has CPU {twice} in two cores"));
        }
        taken = taken.union(&cpus);
        cores.push((cpus.iter().collect(), None));
    }
    Ok(cores)
}

/// The same as a text.
pub fn siblings_text(cores: &Cores) -> String {
    let core = |(cpus, _): &(Vec<u32>, Option<i64>)| {
        cpus.iter().map(u32::to_string).collect::<Vec<String>>().join(",")
    };
    if cores.is_empty() {
        "none".to_string()
    } else {
        cores.iter().map(core).collect::<Vec<String>>().join("/")
    }
}

/// No line of /proc/stat is longer: its line of interrupts has ten digits for each.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// Longest line of a recording, bytes; it is read copy by copy.
const RECORDING: Limits = Limits { size: 8 << 30, ..Limits::DEFAULT };

/// Facts of a recording besides its copies.
pub struct Recorded {
    pub looks: usize,
    pub damaged: usize,
}

/// Passes every copy of a recording on. `cores` is called with the siblings that the file names
/// before its first copy.
pub fn replay(
    path: &Path,
    cores: impl FnOnce(Option<&str>) -> anyhow::Result<Watch>,
) -> anyhow::Result<(Watch, Recorded)> {
    let shown = path.display();
    let mut text = run_file::unpacked(run_file::open(path)?, &RECORDING)
        .with_context(|| format!("cannot read {shown}"))?;
    let (mut lines, mut line, mut looks) = (Lines::default(), Vec::new(), 0);
    let (mut cores, mut watch) = (Some(cores), None);
    let mut cut = false;
    loop {
        line.clear();
        let read = text.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        // A truncated compressed file ends in an error; what came before counts.
        let length = match read {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                cut = true;
                0
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        ensure!(
            (length as u64) < MAX_LINE_BYTES,
            "{shown} has a line of more than 16 MiB: it is not a recording of /proc/stat"
        );
        let look = match length {
            0 => lines.end(cut),
            _ => {
                cut = line.last() != Some(&b'\n');
                lines.line(&String::from_utf8_lossy(&line))
            }
        };
        if let Some(look) = look {
            if watch.is_none() {
                watch = cores.take().map(|cores| cores(lines.siblings.as_deref())).transpose()?;
            }
            if let Some(watch) = &mut watch {
                watch.look(look);
            }
            looks += 1;
        }
        if length == 0 {
            break;
        }
    }
    let recorded = Recorded { looks, damaged: lines.damaged };
    let damaged = match lines.damaged {
        0 => String::new(),
        n => format!(" ({n} more are damaged)"),
    };
    match (watch, looks) {
        (Some(watch), 2..) => Ok((watch, recorded)),
        (_, 1) => bail!(
            "{shown} has one copy of /proc/stat{damaged}, but two are needed: record more, for example by \
              `assay utilization --record FILE`"
        ),
        _ => bail!(
            "{shown} has no copy of /proc/stat{damaged}: give successive copies, each beginning with its \
              line `cpu `, as `assay utilization --record FILE` writes them"
        ),
    }
}

/// Looks at this host (or a tree below a root), at even distances.
pub struct Live {
    times: CpuTimes,
    every: Duration,
    started: Instant,
    epoch_s: f64,
    next: Duration,
    stop: Arc<AtomicBool>,
    record: Option<(PathBuf, BufWriter<File>)>,
}

/// Sleeps are cut into pieces of this length, so that Ctrl-C is soon seen.
const PATIENCE: Duration = Duration::from_millis(100);

impl Live {
    pub fn new(root: &Path, every: Duration, stop: Arc<AtomicBool>) -> Live {
        let epoch_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let (started, next) = (Instant::now(), Duration::ZERO);
        Live { times: CpuTimes::open(root), every, started, epoch_s, next, stop, record: None }
    }

    /// Also writes every reading to a new file.
    pub fn record(&mut self, path: &Path, cores: &Cores) -> anyhow::Result<()> {
        let file = File::create_new(path)
            .with_context(|| format!("cannot write {}: a recording never replaces a file", path.display()))?;
        let mut file = BufWriter::new(file);
        writeln!(file, "# siblings {}", siblings_text(cores)).with_context(|| failed(path))?;
        self.record = Some((path.to_path_buf(), file));
        Ok(())
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads for this long from the start; the first reading is at once.
    pub fn until(&mut self, end: Duration, watch: &mut Watch) -> anyhow::Result<()> {
        while self.next <= end && !self.stopped() {
            let now = self.started.elapsed();
            if now < self.next {
                std::thread::sleep((self.next - now).min(PATIENCE));
                continue;
            }
            let at_s = self.started.elapsed().as_secs_f64();
            let Some(text) = self.times.read() else {
                bail!("cannot read /proc/stat: is /proc mounted?");
            };
            let mut lines = Lines::default();
            for line in text.lines() {
                lines.line(line);
            }
            if let Some((path, file)) = &mut self.record {
                let time = self.epoch_s + at_s;
                write!(file, "{time:.6}\n{text}").with_context(|| failed(path))?;
            }
            if let Some(look) = lines.end(false) {
                watch.look(StatReading { at_s: Some(at_s), ..look });
            }
            // Looks that were missed are not made up for.
            let now = self.started.elapsed();
            while self.next <= now {
                self.next += self.every;
            }
        }
        if let Some((path, file)) = &mut self.record {
            file.flush().with_context(|| failed(path))?;
        }
        Ok(())
    }
}

fn failed(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
