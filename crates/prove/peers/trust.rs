//! Figures that can be trusted, a minute; and seconds until a planted 5 % is found: the layouts of
//! pyperf, hyperfine and criterion against Assay's, on the same spin loop and the same system call.
//!
//! A layout is how a tool repeats the work and what it makes of the times (`layouts.rs`); it is
//! done here by small processes of this program (`worker.rs`), all pinned to one CPU, so that
//! nothing but the layout differs. Where hyperfine and pyperf themselves are installed, the words
//! `real hyperfine` and `real pyperf` run them over the same commands.
//!
//! In a round each layout measures A A B B A, where B does 5 % more work than it reports: of the
//! four neighbours two are equal and two differ. `TRUST_TRIES` (10 unless set) is the number of
//! tries of each kind; with it a work takes some twelve minutes.

mod layouts;
mod worker;

use std::process::{Command, Stdio};
use std::time::Instant;

use stats::Interval;
use stats::order::median;

use super::{Bench, put_table};
use layouts::{How, LAYOUTS, Layout, Values};
pub use worker::run as work;

/// The first argument of a worker.
pub const WORKER: &str = "trust-worker";

/// What is measured: `name` is the row's.
#[derive(Clone, Copy)]
pub struct Work {
    pub name: &'static str,
    pub word: &'static str,
    /// Where its table stands in docs/results.
    place: &'static str,
}

const WORKS: [Work; 2] = [
    Work { name: "trust: spin loop", word: "spin", place: "bench:trust-spin" },
    Work { name: "trust: system call (getpid)", word: "getpid", place: "bench:trust-getpid" },
];

const QUICK_RUN: &str = "trust: a whole quick run of Assay";

/// By how much B is slower than it reports, percent.
const PLANTED: u32 = 5;
/// Tries of each kind, unless `TRUST_TRIES` says otherwise; this many of ten must be found.
const TRIES: usize = 10;
const NINE_OF_TEN: f64 = 0.9;
/// A figure is trusted whose interval reaches no farther to either side (of a logarithm).
const NEAR: f64 = 0.03;

/// A figure in nanoseconds and its 95 % interval, both as logarithms.
#[derive(Clone, Copy)]
pub struct Figure {
    pub middle: f64,
    pub interval: Interval,
}

/// What a layout came to.
#[derive(Default)]
struct Score {
    figures: Vec<Figure>,
    seconds: f64,
    /// Seconds of each try that found the planted difference, and of those that did not.
    told: Vec<f64>,
    missed: Vec<f64>,
    false_calls: usize,
    equal: usize,
    failed: Option<String>,
}

/// Whether the table of any work is asked for, and of which layouts.
pub fn table(bench: &Bench, asked: impl Fn(&str) -> bool) {
    if asked(QUICK_RUN) {
        quick_run();
    }
    for work in WORKS.into_iter().filter(|work| asked(work.name)) {
        let begin = Instant::now();
        let tries = std::env::var("TRUST_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(TRIES);
        let layouts: Vec<_> = LAYOUTS.iter().filter(|layout| !layout.real || asked(layout.name)).collect();
        let mut scores: Vec<Score> = layouts.iter().map(|_| Score::default()).collect();
        for round in 0..tries.div_ceil(2) {
            for (layout, score) in layouts.iter().zip(&mut scores) {
                if score.failed.is_none() {
                    score.failed = score.round(bench, layout, work).err();
                }
            }
            eprintln!("{}: round {} of {}", work.name, round + 1, tries.div_ceil(2));
        }
        let mut table = format!(
            "{}, a planted {PLANTED} %, {tries} tries of each kind\n\n\
            | layout | s per figure | within ±3 % | contains the median of all | trusted figures per minute \
            | planted found | s until 9 of 10 are found | false calls of equal |\n\
            |---|---:|---:|---:|---:|---:|---:|---:|",
            work.name
        );
        for (layout, score) in layouts.iter().zip(&scores) {
            table += &format!("\n{}", score.line(layout.name));
        }
        put_table(work.place, &table, begin);
    }
}

/// What a whole quick run gives a minute: its figures share 90 s.
fn quick_run() {
    let begin = Instant::now();
    let measured = || {
        let folder = tempfile::tempdir().ok()?;
        let mut command = Command::new(testkit::program());
        let command = command.args(["run", "--quick", "--new", "--json", "--out"]).arg(folder.path());
        let begin = Instant::now();
        let output = command.stdin(Stdio::null()).output().ok()?;
        let seconds = begin.elapsed().as_secs_f64();
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let headlines = run["series"].as_array()?.iter().filter(|series| series["headline"] == true);
        let trusted = headlines.clone().filter(|series| series["grade"] == "A").count();
        let figures = headlines.filter(|series| series["median"].is_f64()).count();
        Some((trusted, figures, seconds))
    };
    match measured() {
        Some((trusted, figures, seconds)) => {
            let rate = 60.0 * trusted as f64 / seconds;
            let text = format!(
                "{QUICK_RUN}: {trusted} of {figures} main figures trusted in {seconds:.0} s, {rate:.1} a minute."
            );
            put_table("bench:trust-run", &text, begin);
        }
        None => println!("\n{QUICK_RUN}: no run."),
    }
}

impl Score {
    /// A A B B A: two equal neighbours and two that differ.
    fn round(&mut self, bench: &Bench, layout: &Layout, work: Work) -> Result<(), String> {
        const ARMS: [bool; 5] = [false, false, true, true, false];
        let slower = |slow: bool| if slow { PLANTED } else { 0 };
        match layout.how {
            How::Pair(pair) => {
                for arms in ARMS.windows(2) {
                    let begin = Instant::now();
                    let told = pair(bench, work, [slower(arms[0]), slower(arms[1])])?;
                    self.take(told, [arms[0], arms[1]], begin.elapsed().as_secs_f64());
                }
            }
            How::Single { arm, figure, told } => {
                let mut before: Option<(Values, f64, bool)> = None;
                for slow in ARMS {
                    let begin = Instant::now();
                    let values = arm(bench, work, slower(slow))?;
                    let seconds = begin.elapsed().as_secs_f64();
                    if !slow {
                        self.figures.push(figure(&values).ok_or("too few values for a figure")?);
                        self.seconds += seconds;
                    }
                    if let Some((first, more, other)) = before.take() {
                        self.take(told(&first, &values), [other, slow], seconds + more);
                    }
                    before = Some((values, seconds, slow));
                }
            }
        }
        Ok(())
    }

    /// `told` is the sign of the reported difference of the second against the first.
    fn take(&mut self, told: i32, [first, second]: [bool; 2], seconds: f64) {
        let truth = i32::from(second) - i32::from(first);
        if truth == 0 {
            self.equal += 1;
            self.false_calls += usize::from(told != 0);
        } else if told == truth {
            self.told.push(seconds);
        } else {
            self.missed.push(seconds);
        }
    }

    fn line(&self, name: &str) -> String {
        if let Some(why) = self.failed.as_deref().and_then(|why| why.lines().next()) {
            return format!("| {name} | – | – | – | – | not measured: {why} | – | – |");
        }
        let figures = self.figures.len();
        let middles: Vec<f64> = self.figures.iter().map(|figure| figure.middle).collect();
        let middle = median(&middles).unwrap_or(f64::NAN);
        let near = |figure: &&Figure| {
            let side = (figure.interval.high - figure.middle).max(figure.middle - figure.interval.low);
            side <= NEAR.ln_1p()
        };
        let near = self.figures.iter().filter(near).count();
        let holds = self.figures.iter().filter(|figure| figure.interval.contains(middle)).count();
        let each = match figures {
            0 => ["–"; 4].map(str::to_string),
            _ => [
                format!("{:.2}", self.seconds / figures as f64),
                format!("{near} of {figures}"),
                format!("{holds} of {figures}"),
                format!("{:.1}", 60.0 * near as f64 / self.seconds),
            ],
        };
        let tries = self.told.len() + self.missed.len();
        format!(
            "| {name} | {} | {} of {tries} | {} | {} of {} |",
            each.join(" | "),
            self.told.len(),
            self.until_told(),
            self.false_calls,
            self.equal
        )
    }

    /// The time a try in which nine of ten had found the difference.
    fn until_told(&self) -> String {
        let mut told = self.told.clone();
        told.sort_by(f64::total_cmp);
        let tries = told.len() + self.missed.len();
        let needed = (NINE_OF_TEN * tries as f64).ceil() as usize;
        match needed.checked_sub(1).and_then(|place| told.get(place)) {
            Some(seconds) => format!("{seconds:.1}"),
            None => {
                let all: Vec<f64> = told.iter().chain(&self.missed).copied().collect();
                format!("never in {:.1}", median(&all).unwrap_or(f64::NAN))
            }
        }
    }
}
