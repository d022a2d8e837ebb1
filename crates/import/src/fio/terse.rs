//! fio's terse output (`--minimal`, `--output-format=terse`), versions 2 to 5: a line a job, with
//! semicolons between its values. It gives neither what the job was to do nor how many I/Os it did;
//! KiB, I/Os a second and most times are cut off behind the point.

use super::disks::Disk;
use super::numbers::plain;
use super::{DirectionStats, Job, RUNS_APART, Spread};

/// Percentiles of a direction.
const PERCENTILES: usize = 20;
/// Values of a direction, and those that version 5 has more.
const VALUES: usize = 16 + PERCENTILES + 5;
const MORE_VALUES: usize = 6;
/// Values between the directions and the devices: CPU, faults, depths and ranges of latencies.
const SHARES: usize = 5 + 7 + 10 + 12;
/// Values of a device.
const OF_DISK: usize = 9;
/// A report on the way is as much older than the next one, ms.
const MIN_STEP_MS: f64 = 50.0;

/// A line, as far as it is whole.
pub struct Terse<'t> {
    pub fio: Option<&'t str>,
    pub job: Job,
    pub disks: Vec<Disk>,
    /// The fields of devices as printed; empty if there are none.
    devices: String,
}

/// How a line is to an earlier one of the same job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// It is the same line.
    Copy,
    /// It counts on from where the other was.
    Later,
    /// It is of another of several jobs at once.
    Beside,
    /// It is another run's.
    Another,
}

/// Whether a line is one of these.
pub fn is_line(line: &str) -> bool {
    let line = line.trim_start();
    line.as_bytes().get(1) == Some(&b';') && fields(line).is_some()
}

/// The values of a line from the job's name on, its format and the version of fio.
fn fields(line: &str) -> Option<(u8, Option<&str>, Vec<&str>)> {
    let mut all = line.trim().split(';');
    let format: u8 = all.next()?.parse().ok().filter(|format| (2..=5).contains(format))?;
    let fio = if format > 2 { Some(all.next()?.strip_prefix("fio-")?) } else { None };
    let values: Vec<&str> = all.collect();
    let is_count =
        |at: usize| values.get(at).is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    // Name, group and error, and of the first direction amount, rate, I/Os a second and time.
    ((1..7).all(is_count) && values.len() >= 3 + VALUES).then_some((format, fio, values))
}

/// Name and group.
pub fn name(line: &str) -> Option<(&str, &str)> {
    let (_, _, values) = fields(line)?;
    Some((values[0], values[1]))
}

pub fn read(line: &str) -> Option<Terse<'_>> {
    let (format, fio, values) = fields(line)?;
    let length = VALUES + if format == 5 { MORE_VALUES } else { 0 };
    let mut job = Job {
        name: values[0].to_string(),
        group: values[1].parse().ok().map(|group: i64| group.clamp(0, RUNS_APART - 1)),
        error: values[2].parse().unwrap_or(0),
        untold: true,
        direct_untold: true,
        ..Job::default()
    };
    let mut rest = &values[3..];
    for place in &mut job.sides {
        let is_percent = rest.first().is_none_or(|value| value.ends_with('%'));
        // The last value of a line that was cut may be a part of one.
        if is_percent || rest.len() <= length {
            break;
        }
        *place = side(&rest[..length]);
        rest = &rest[length..];
    }
    let share = |at: usize| rest.get(at).and_then(|value| plain(value.strip_suffix('%')?));
    job.cpu = share(0).zip(share(1)).map(|(user, system)| user + system);
    let mut disks = Vec::new();
    let devices = rest.get(SHARES..).unwrap_or_default();
    let mut behind = devices;
    while let Some((one, more)) = behind.split_at_checked(OF_DISK)
        && let Some(disk) = Disk::of_terse(one)
    {
        disks.push(disk);
        behind = more;
    }
    // With `continue_on_error`.
    if let [count, first, ..] = behind
        && let Some(count) = plain(count).filter(|count| *count > 0.0)
        && plain(first).is_some()
    {
        job.passed_over = format!("fio went on after {count:.0} errors, the first error {first}");
    }
    let devices = devices[..devices.len() - behind.len()].join(";");
    Some(Terse { fio, job, disks, devices })
}

fn side(values: &[&str]) -> DirectionStats {
    let number = |at: usize| plain(values[at]);
    let us = |at: usize| plain(values[at]).map(|us| us * 1e3);
    let (bytes, printed) = (number(0).map(|kib| kib * 1024.0), number(1).map(|kib| kib * 1024.0));
    let runtime_ms = number(3);
    // The bytes over the time have more digits.
    let counted = bytes.zip(runtime_ms).filter(|(_, ms)| *ms > 0.0).map(|(bytes, ms)| bytes * 1e3 / ms);
    let is_it = |counted: &f64| {
        printed.is_some_and(|printed| {
            (counted - printed).abs() <= 1024.0 + 0.001 * printed + counted / runtime_ms.unwrap_or(1.0)
        })
    };
    let iops = number(2);
    let count = iops.zip(runtime_ms).map(|(iops, ms)| (iops * ms / 1e3).round()).filter(|count| *count > 0.0);
    let spread = |at: usize| Spread { mean: us(at + 2), max: us(at + 1), n: count, percentiles: Vec::new() };
    let percentile = |value: &&str| {
        let (percent, us) = value.split_once("%=")?;
        plain(percent).filter(|percent| *percent > 0.0)?;
        Some((percent.to_string(), plain(us).map(|us| us * 1e3)))
    };
    let percentiles = values[12..12 + PERCENTILES].iter().filter_map(percentile).collect();
    DirectionStats {
        bytes,
        runtime_ms,
        iops,
        iops_carry: 1.0,
        bandwidth: counted.filter(is_it).or(printed),
        rounded: format!("it prints whole I/Os and KiB per second: {} and {}", values[2], values[1]),
        slat: Spread { n: None, ..spread(4) },
        clat: Spread { percentiles, ..spread(8) },
        lat: spread(12 + PERCENTILES),
        ..DirectionStats::default()
    }
}

/// How a line is to an earlier one of the same name and group. Jobs that ran at once say the same
/// of the devices.
pub fn relation(earlier: &str, line: &str) -> Relation {
    let (Some(before), Some(after)) = (read(earlier), read(line)) else { return Relation::Another };
    if earlier.trim() == line.trim() {
        return Relation::Copy;
    }
    if !after.devices.is_empty() && before.devices == after.devices {
        return Relation::Beside;
    }
    let grows =
        |own: Option<f64>, later: Option<f64>| own.zip(later).is_some_and(|(own, later)| later >= own);
    let each = || before.job.sides.iter().zip(&after.job.sides).filter(|(own, _)| !own.is_empty());
    let is_later = |(own, later): (&DirectionStats, &DirectionStats)| {
        let is_on =
            own.runtime_ms.zip(later.runtime_ms).is_some_and(|(own, later)| later >= own + MIN_STEP_MS);
        is_on && grows(own.bytes, later.bytes) && grows(own.clat.max, later.clat.max)
    };
    if each().count() > 0 && each().all(is_later) { Relation::Later } else { Relation::Another }
}

/// Options of a command that say how to print.
const OF_OUTPUT: [&str; 9] = [
    "name",
    "output",
    "output-format",
    "minimal",
    "terse-version",
    "append-terse",
    "eta",
    "status-interval",
    "description",
];

/// What a command asks of the job of this name; `None` where a file or a variable says it, or two
/// jobs have the name.
pub fn job_options(words: &[String], name: &str) -> Option<Vec<(String, String)>> {
    let (mut own, mut global, mut at, mut found) = (Vec::new(), Vec::new(), None, 0);
    for word in words {
        let option = word.strip_prefix("--").filter(|_| !word.contains('$'))?;
        // A flag says that it is so.
        let (option, value) = option.split_once('=').unwrap_or((option, "1"));
        if option == "name" {
            at = Some(value);
            found += usize::from(value == name);
        }
        if OF_OUTPUT.contains(&option) {
            continue;
        }
        let setting = (option.to_string(), value.to_string());
        match at {
            None => global.push(setting),
            Some(at) if at == name => own.push(setting),
            Some(_) => {}
        }
    }
    own.append(&mut global);
    (found == 1).then_some(own)
}

/// What is said of a line that no command explains.
pub const UNTOLD: &str = "a terse line gives neither the options of the job nor the number of jobs";
