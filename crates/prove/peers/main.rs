//! `make bench`: our figures against those of other tools, on this host, interleaved.
//!
//! A row runs Assay's benchmark and the peer's alternately (ABBA), until the interval of their
//! ratio is within ±3 % or its time ends. The peer against itself shows the effect of this host's
//! noise alone. A limit is missed only where the whole interval lies beyond it. Peers come from the
//! distribution (`crates/prove/install-peer-tools`); a row whose peer is not installed says so.
//!
//! `cargo bench -p prove --bench peers -- WORD...` runs the rows whose name contains one of the
//! words; `spread` is the table of ten whole runs (`spread.rs`). Each row replaces the one of its
//! name in docs/results.

mod built;
mod chain;
mod chase;
mod disk;
mod hackbench;
mod memory;
mod network;
mod rate;
mod spread;
mod system;
mod trust;

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use bench::placement::Placements;
use bench::{self, Depth, Order, Scope, Windows};
use knobs::Knobs;
use machine::Machine;
use model::{Case, CpuSet, RunClock, Samples, figure};
use prove::results;
use session::measure::child::{self, Callbacks, Outcome};
use session::objects::ObjectKeeper;
use stats::compare::{Ratio, paired_ratio};
use stats::order::median;
use sys::clock::{self, Clock};

/// One comparison.
pub struct Row {
    pub name: String,
    /// Of both figures.
    pub unit: &'static str,
    pub ours: Ours,
    /// From our metric's value to the peer's unit.
    pub scale: f64,
    pub peer: Peer,
    pub wanted: Wanted,
    /// Pairs at least.
    pub pairs: usize,
    /// The time that its pairs may take.
    pub limit: Duration,
    /// Why the two differ, where they do: what each does, and how to see it.
    pub note: &'static str,
}

/// One figure of a pass of Assay.
pub struct Ours {
    pub case: Case,
    pub metric: &'static str,
    /// Less this metric of the same pass: what the peer subtracts, too.
    pub minus: Option<&'static str>,
    /// Parameters of the point; the first one that fits counts.
    pub at: Vec<(&'static str, &'static str)>,
    /// What starts our program elsewhere, and the secret that its other end asks for.
    pub program: Option<PathBuf>,
    pub secret: Option<String>,
    pub windows: Windows,
}

impl Ours {
    pub fn new(case: Case, metric: &'static str) -> Ours {
        Ours { case, metric, minus: None, at: Vec::new(), program: None, secret: None, windows: WINDOWS }
    }
}

pub enum Peer {
    /// A program with its arguments, and from its output to a value.
    Program(Vec<String>, fn(&str) -> Option<f64>),
    /// A program that repeats this much work, and prints a line with the seconds of each time.
    Timed { words: Vec<String>, work: f64 },
    /// Another metric of Assay's.
    Ours(Box<Ours>),
    /// A chain of dependent loads written differently, through a block of this many bytes.
    Chain { bytes: u64, cpu: u32 },
}

/// The required ratio Assay / peer. `within`: the whole interval is, `reaches`: an end of it.
#[derive(Clone, Copy)]
pub enum Wanted {
    /// Two different things side by side: the note says how they differ.
    Beside,
    AtLeast(f64),
    AtMost(f64),
    Within(f64),
}

/// What rows are made for.
pub struct Bench {
    pub machine: Machine,
    pub placements: Placements,
    clock: RunClock,
}

pub const WINDOWS: Windows = Windows { window_ns: 10e6, count: 5, warm_up: 1, limit_s: 5.0 };

impl Bench {
    /// The case of Assay's that fits; of the deepest profile, so that every case is offered.
    pub fn case(&self, id: &str, fits: impl Fn(&Case) -> bool) -> Option<Case> {
        let scope =
            Scope { windows: WINDOWS, ..Scope::new(&self.machine, &self.placements, Depth::Full, 4 << 30) };
        let bench = bench::find(id)?;
        let candidates = (bench.cases)(bench, &scope).into_iter();
        candidates.filter(|candidate| candidate.unmet.is_none()).map(|c| c.case).find(fits)
    }

    /// The same case seated on the first usable CPU, where peers of one thread sit.
    pub fn on_first_cpu(&self, mut case: Case) -> Case {
        let cpu = self.first_cpu();
        case.placement.seats.iter_mut().for_each(|seat| seat.cpus = CpuSet::one(cpu));
        case
    }

    pub fn first_cpu(&self) -> u32 {
        self.placements.cpus().first().unwrap_or(0)
    }

    /// One pass of Assay.
    pub fn heard(&self, case: &Case) -> Result<Outcome, String> {
        self.heard_from(&Ours::new(case.clone(), ""))
    }

    /// The same with the program and the secret of `ours`.
    fn heard_from(&self, ours: &Ours) -> Result<Outcome, String> {
        let order = Order {
            case: ours.case.clone(),
            windows: ours.windows,
            clock: self.clock.clone(),
            seed: 1,
            // Not the first, in which hackbench has a second run that no peer has.
            pass: 1,
            pretend: None,
            secret: ours.secret.clone().map(bench::Secret),
            parent: Some(std::process::id()),
        };
        let keep = ObjectKeeper::of(&Knobs::of(Path::new("/")));
        let usual = testkit::program();
        let program = ours.program.as_deref().unwrap_or(usual);
        let nothing =
            Callbacks { interrupted: &|| false, observe: &mut || (), waited: &mut || Duration::ZERO };
        let heard = child::visit(program, &order, Duration::from_secs(60), &keep, nothing);
        heard.map_err(|error| format!("{error:#}"))
    }

    /// One pass of Assay: the median of its samples.
    fn own(&self, ours: &Ours) -> Result<f64, String> {
        let heard = self.heard_from(ours)?;
        let value_of = |wanted: &str| value_in(&heard, &ours.case, wanted, &ours.at);
        let value = value_of(ours.metric).and_then(|value| match ours.minus {
            Some(minus) => Some(value - value_of(minus)?),
            None => Some(value),
        });
        value.ok_or_else(|| format!("our benchmark gave no value: {:?}", heard.reason))
    }

    fn peer(&self, row: &Row) -> Result<f64, String> {
        match &row.peer {
            Peer::Ours(ours) => self.own(ours),
            Peer::Chain { bytes, cpu } => chain::latency_ns(*bytes, *cpu, Clock::from_run(&self.clock)),
            Peer::Timed { words, work } => {
                let text =
                    said_by(words).map_err(|error| format!("{} cannot be started ({error})", words[0]))?;
                let seconds: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
                let figure = median(&seconds).map(|seconds| work / seconds);
                figure.ok_or_else(|| format!("`{}` printed no seconds: {text}", words.join(" ")))
            }
            Peer::Program(arguments, value) => {
                let text = said_by(arguments);
                let text = text.map_err(|error| format!("{} cannot be started ({error})", arguments[0]))?;
                let figure = value(&text);
                figure.ok_or_else(|| format!("`{}` gave no figure: is it installed?", arguments.join(" ")))
            }
        }
    }

    /// A line for each row that is asked for.
    fn table(&self, section: &str, rows: Rows, asked: impl Fn(&str) -> bool) {
        for row in rows {
            let name = match &row {
                Ok(row) => &row.name,
                Err(name) => name,
            };
            if !asked(name) {
                continue;
            }
            match row {
                Err(name) => println!("| {name} | – | – | not possible on this machine | – | – | – |"),
                Ok(row) => match self.compare(&row) {
                    Ok(line) => put_row(section, &line),
                    Err(why) => println!("| {} | – | – | not compared: {why} | – | – | – |", row.name),
                },
            }
        }
    }

    fn compare(&self, row: &Row) -> Result<String, String> {
        let ours_now = || self.own(&row.ours).map(|value| value * row.scale);
        let (mut ours, mut peers, mut again) = (Vec::new(), Vec::new(), Vec::new());
        let begin = Instant::now();
        loop {
            // ABBA: drift hits both alike.
            match ours.len() % 2 {
                0 => {
                    ours.push(ours_now()?);
                    peers.push(self.peer(row)?);
                    again.push(self.peer(row)?);
                }
                _ => {
                    again.push(self.peer(row)?);
                    peers.push(self.peer(row)?);
                    ours.push(ours_now()?);
                }
            }
            if ours.len() < row.pairs {
                continue;
            }
            let ratio = paired_ratio(&peers, &ours, 0.95).ok_or("no ratio")?;
            let narrow = ratio.interval.is_some_and(|interval| interval.half_width() / ratio.ratio <= NARROW);
            if !narrow && begin.elapsed() < row.limit {
                continue;
            }
            return line(&row.name, row.unit, &[ours, peers, again], row.wanted, row.note);
        }
    }
}

/// Prints a measured row, and writes it into its table of docs/results.
pub fn put_row(section: &str, row: &str) {
    println!("{row}");
    results::write_row(section, row, &results::commit()).unwrap_or_else(|error| eprintln!("{error}"));
}

/// The same of a whole table.
pub fn put_table(section: &str, table: &str, begin: Instant) {
    println!("{table}");
    let seconds = begin.elapsed().as_secs_f64();
    let written = results::write_table(section, table, &results::commit(), seconds);
    written.unwrap_or_else(|error| eprintln!("{error}"));
}

/// A line of the table: Assay's, the peer's, and the peer's once more, pair by pair.
fn line(
    name: &str,
    unit: &str,
    [ours, peers, again]: &[Vec<f64>; 3],
    wanted: Wanted,
    note: &str,
) -> Result<String, String> {
    let ratio = paired_ratio(peers, ours, 0.95).ok_or("no ratio")?;
    let control = paired_ratio(peers, again, 0.95).ok_or("no ratio")?;
    let value = |values: &[f64]| median(values).map_or("–".to_string(), |v| figure(v, unit));
    Ok(format!(
        "| {name} | {} | {} | {} | {} | {} | {} |",
        value(ours),
        value(peers),
        words(&ratio),
        words(&control),
        ours.len(),
        wanted.judge(&ratio, note)
    ))
}

impl Wanted {
    fn judge(self, ratio: &Ratio, note: &str) -> String {
        let word = self.word(ratio);
        match word {
            "below" | "above" | "outside" | "reaches" | "beside" if !note.is_empty() => {
                format!("{word}: {note}")
            }
            _ => word.to_string(),
        }
    }

    fn word(self, ratio: &Ratio) -> &'static str {
        let Some(interval) = ratio.interval else { return "no interval" };
        match self {
            Wanted::Beside => "beside",
            Wanted::AtLeast(least) if interval.high < least => "below",
            Wanted::AtLeast(least) if interval.low >= least => "at least as good",
            Wanted::AtLeast(_) => "not below",
            Wanted::AtMost(most) if interval.low > most => "above",
            Wanted::AtMost(most) if interval.high <= most => "at most as much",
            Wanted::AtMost(_) => "not above",
            Wanted::Within(part) if interval.low > 1.0 + part || interval.high < 1.0 - part => "outside",
            Wanted::Within(part) if interval.low >= 1.0 - part && interval.high <= 1.0 + part => "within",
            Wanted::Within(_) => "reaches",
        }
    }
}

/// The median of a metric's samples in a pass of Assay, at the first point that has these
/// parameters.
pub fn value_in(heard: &Outcome, case: &Case, wanted: &str, at: &[(&str, &str)]) -> Option<f64> {
    let metric = bench::find(&case.bench)?.metrics.iter().find(|metric| metric.name == wanted)?;
    let fits = |samples: &&Samples| {
        let is_there = |(name, value): &(&str, &str)| {
            samples.point.named(name).is_some_and(|there| there.to_string() == *value)
        };
        samples.metrics.iter().any(|name| name == wanted) && at.iter().all(is_there)
    };
    let samples = heard.samples.iter().find(fits)?;
    median(&samples.values(metric.form).split_off(samples.warm_up))
}

/// No peer's run takes as long.
const PROGRAM_LIMIT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// What a program and its children write, until it ends or is ended. Then nothing of it is left:
/// lmbench's children outlive their parent where something goes wrong, and hold our end of its
/// output.
pub fn said_by(arguments: &[String]) -> std::io::Result<String> {
    let mut output = tempfile::tempfile()?;
    // Where it may leave its files, as stress-ng does when it is killed.
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(&arguments[0]);
    command.args(&arguments[1..]).stdin(Stdio::null()).process_group(0).current_dir(folder.path());
    // Cargo's own, which every dynamic linker would search.
    command.env_remove("LD_LIBRARY_PATH");
    let mut child = command.stdout(output.try_clone()?).stderr(output.try_clone()?).spawn()?;
    let group = Pid::from_child(&child);
    let ended = pidfd_open(group, PidfdFlags::empty())?;
    poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&PROGRAM_LIMIT))?;
    if child.try_wait()?.is_none() {
        kill_process_group(group, Signal::KILL)?;
        child.wait()?;
    }
    // Usually the group is already empty.
    let _ = kill_process_group(group, Signal::KILL);
    output.rewind()?;
    let mut text = Vec::new();
    // What an orphan wrote before it ended, however much, is not all needed.
    output.take(1 << 20).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn words(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(interval) => format!("{:.3} ({:.3}–{:.3})", ratio.ratio, interval.low, interval.high),
        None => format!("{:.3}", ratio.ratio),
    }
}

/// A row's usual time at most, and the half-width of the ratio's interval at which it ends.
pub const ROW_LIMIT: Duration = Duration::from_secs(45);
const NARROW: f64 = 0.03;
pub const PAIRS_MIN: usize = 8;

/// The number before a unit in the first line that has it.
pub fn number_before(text: &str, unit: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(unit))?;
    let number = line.split(unit).next()?.split_whitespace().next_back()?;
    number.trim_start_matches('(').replace(',', "").parse().ok()
}

/// The number after a label in the first line that has it.
pub fn number_after(text: &str, label: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(label))?;
    line.split(label).nth(1)?.split_whitespace().next()?.parse().ok()
}

fn main() {
    // `cargo test --benches` asks for nothing to be measured.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, arguments @ ..] = arguments.as_slice()
        && word == trust::WORKER
    {
        trust::work(arguments).unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let words: Vec<String> = arguments.into_iter().filter(|word| !word.starts_with('-')).collect();
    let machine = Machine::from(&snapshot::read(Path::new("/")));
    let placements = Placements::of(&machine);
    let current = machine.clock.current.as_deref();
    let clock = clock::calibrate(current.is_some_and(|source| kernels::CLOCK_SOURCES.contains(&source)));
    let bench = Bench { machine, placements, clock };
    println!("| what | ours | peer | ours / peer (95 %) | peer / itself (95 %) | pairs | verdict |");
    println!("|---|---:|---:|---:|---:|---:|---|");
    let asked = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let _hello = system::Hello::put();
    let built = built::Built::build();
    if let Err(why) = &built {
        eprintln!("no peers in C: {why}");
    }
    let spaces = match words.is_empty()
        || words.iter().any(|word| word.contains("veth") || "network".contains(word.as_str()))
    {
        true => network::Namespaces::make(&bench),
        false => Err("not asked for".to_string()),
    };
    bench.table("bench:system", system::rows(&bench), asked);
    bench.table("bench:memory", memory::rows(&bench), asked);
    bench.table("bench:hackbench", hackbench::rows(&bench), asked);
    bench.table("bench:rate", rate::rows(&bench, &built), asked);
    bench.table("bench:network", network::rows(&bench, &spaces), asked);
    chase::table(&bench, &built, asked);
    disk::table(&bench, asked);
    trust::table(&bench, asked);
    if asked(spread::NAME) {
        spread::table(&bench);
    }
}

/// Rows, or the names of those that this host cannot have.
pub type Rows = Vec<Result<Row, String>>;
