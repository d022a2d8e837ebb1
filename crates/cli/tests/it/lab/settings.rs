//! `make lab`: hackbench at settings of the scheduler under three kernels, with a clock that counts
//! instructions. Short slices and eager preemption cost switches and time, long ones save them,
//! under CFS; EEVDF hardly cares.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use tempfile::TempDir;

use super::kernels::{INSTRUCTIONS, LIMIT_S, static_build, write_results};
use super::{in_guest_with, runs};

/// A kernel, and the settings that it is measured at.
struct Room {
    kernel: &'static str,
    /// Where it keeps the first knob of each setting.
    place: &'static str,
    rounds: u32,
    /// What they are called in the table, and what is set.
    settings: &'static [(&'static str, &'static str)],
    /// A sweep of Assay itself: knob and values.
    swept: &'static str,
}

/// Its own, eager, batch, and hardly ever.
const CFS: &[(&str, &str)] = &[
    ("its own: 2.25 ms / 3 ms", "min_granularity_ns=default,wakeup_granularity_ns=default"),
    ("0.1 ms / 0", "min_granularity_ns=100000,wakeup_granularity_ns=0"),
    ("10 ms / 15 ms", "min_granularity_ns=10000000,wakeup_granularity_ns=15000000"),
    ("100 ms / 1 s", "min_granularity_ns=100000000,wakeup_granularity_ns=1000000000"),
];
const EEVDF: &[(&str, &str)] = &[
    ("its own", "base_slice_ns=default"),
    ("0.1 ms", "base_slice_ns=100000"),
    ("0.7 ms", "base_slice_ns=700000"),
    ("10 ms", "base_slice_ns=10000000"),
    ("100 ms", "base_slice_ns=100000000"),
];

const ROOMS: [Room; 3] = [
    Room {
        kernel: "5.10",
        place: "/proc/sys/kernel/sched_min_granularity_ns",
        rounds: 5,
        settings: CFS,
        swept: "min_granularity_ns=0.1ms,10ms",
    },
    Room {
        kernel: "6.1",
        place: "/sys/kernel/debug/sched/min_granularity_ns",
        rounds: 5,
        settings: CFS,
        swept: "min_granularity_ns=0.1ms,10ms",
    },
    Room {
        kernel: "6.12",
        place: "/sys/kernel/debug/sched/base_slice_ns",
        rounds: 5,
        settings: EEVDF,
        swept: "base_slice_ns=0.1ms,10ms",
    },
];

/// One run.
#[derive(Clone, Copy, Debug, Default)]
struct Ran {
    seconds: f64,
    voluntary: f64,
    involuntary: f64,
}

#[test]
#[ignore = "three kernels, 5 to 10 minutes: make lab"]
fn settings_by_kernel() {
    let mut table = String::from(
        "| kernel | setting | runs | time, s: median (least to most) | beside its own | voluntary switches | involuntary \
         switches |\n|---|---|---|---|---|---|---|\n",
    );
    let mut notes = String::new();
    let measured: Vec<Option<Vec<Vec<Ran>>>> = ROOMS.iter().map(Room::measured).collect();
    let rooms = || ROOMS.iter().zip(&measured).filter_map(|(room, runs)| Some((room, runs.as_ref()?)));
    rooms().for_each(|(room, runs)| room.describe(runs, &mut table, &mut notes));
    println!("{table}{notes}");
    if rooms().count() == ROOMS.len() {
        write_results("settings", &format!("{table}{notes}"));
    }
    for (room, runs) in rooms().filter(|(room, _)| room.settings.len() == CFS.len()) {
        room.check_order(runs);
    }
}

impl Room {
    /// Boots and measures: the runs of each setting; `None`, with a message, where nothing can be
    /// booted.
    fn measured(&self) -> Option<Vec<Vec<Ran>>> {
        let words: Vec<String> = self.settings.iter().map(|(_, setting)| format!("'{setting}'")).collect();
        let script = format!(
            "{}\nmeasure {} {}\nassay sweep hackbench --quick --force --response none --effect 1000 --budget 1h --param groups=1 \
             --param fds=4 --param loops=10 --knob {} --out out >said 2>&1",
            include_str!("settings.sh"),
            self.rounds,
            words.join(" "),
            self.swept,
        );
        let assay = static_build();
        let image = format!("{}-cloud-amd64", self.kernel);
        let options = ["--qemu", "qemu10", "--kernel", &image, "--limit", LIMIT_S, "--assay", &assay];
        let test = format!("settings of kernel {}", self.kernel);
        let folder = in_guest_with(&test, &options, "shared-l3", &INSTRUCTIONS, &script)?;
        self.check_sweep(&folder);
        let text = |file: &str| fs::read_to_string(folder.path().join(file)).expect("the guest wrote it");
        assert_eq!(text(&format!("place-{}", self.knob())).trim(), self.place);
        let mut runs: BTreeMap<String, Vec<Ran>> = BTreeMap::new();
        let measured = text("measured");
        for part in measured.split("setting ").skip(1) {
            let setting = part.lines().next().unwrap_or_default().to_string();
            runs.entry(setting).or_default().push(read(part));
        }
        let of = |(_, setting): &(&str, &str)| runs.remove(*setting).unwrap_or_default();
        let all: Vec<Vec<Ran>> = self.settings.iter().map(of).collect();
        assert!(all.iter().all(|runs| runs.len() == self.rounds as usize), "{measured}");
        Some(all)
    }

    /// The knob that is swept.
    fn knob(&self) -> &'static str {
        self.swept.split('=').next().unwrap_or_default()
    }

    /// Assay's own sweep turned the knob where this kernel has it, and back.
    fn check_sweep(&self, folder: &TempDir) {
        let run = runs::read(&runs::run_file(&folder.path().join("out")));
        assert!(run.summary.is_some() && run.visits.iter().all(|visit| visit.reason.is_none()));
        let name = self.knob();
        let turned: Vec<&str> =
            run.events.iter().filter(|event| event.kind == "knob").map(|event| event.text.as_ref()).collect();
        let has = |words: &str| turned.iter().any(|text| text.starts_with(name) && text.contains(words));
        assert!(has(" to 100000") && has(" to 10000000"), "{turned:?}");
        let (last, knob) = (turned.last().expect("an event"), format!("{name} is "));
        assert!(last.starts_with(&knob) && last.contains(" again (was "), "{turned:?}");
    }

    fn describe(&self, measured: &[Vec<Ran>], table: &mut String, notes: &mut String) {
        let own = median(&measured[0], |ran| ran.seconds);
        for ((title, _), runs) in self.settings.iter().zip(measured) {
            let time = median(runs, |ran| ran.seconds);
            let (least, most) = range(runs);
            writeln!(
                table,
                "| {} | {title} | {} | {time:.3} ({least:.3} to {most:.3}) | {:+.1} % | {:.0} | {:.0} |",
                self.kernel,
                runs.len(),
                (time / own - 1.0) * 100.0,
                median(runs, |ran| ran.voluntary),
                median(runs, |ran| ran.involuntary),
            )
            .expect("memory");
        }
        if self.settings.len() == CFS.len() {
            return;
        }
        let (slowest, quickest) = measured
            .iter()
            .map(|runs| range(runs))
            .fold((0.0f64, f64::MAX), |(low, high), (least, most)| (low.max(least), high.min(most)));
        let words = match slowest <= quickest {
            true => {
                "no significant difference: there are times that every setting had runs below and runs above"
            }
            false => {
                "some settings are apart: the quickest run of one is slower than the slowest run of another"
            }
        };
        writeln!(notes, "\n{}: {words}.", self.kernel).expect("memory");
    }

    /// Eager preemption costs the most switches and the most time, batch the fewest and the least.
    fn check_order(&self, measured: &[Vec<Ran>]) {
        let time: Vec<f64> = measured.iter().map(|runs| median(runs, |ran| ran.seconds)).collect();
        let switches: Vec<f64> =
            measured.iter().map(|runs| median(runs, |ran| ran.voluntary + ran.involuntary)).collect();
        let involuntary: Vec<f64> = measured.iter().map(|runs| median(runs, |ran| ran.involuntary)).collect();
        let [own, eager, batch, hardly] = [0, 1, 2, 3];
        let said =
            format!("{}: times {time:?}, switches {switches:?}, involuntary {involuntary:?}", self.kernel);
        assert!(time[eager] > time[own] && time[own] > time[batch] && time[own] > time[hardly], "{said}");
        assert!(switches[eager] > switches[own], "{said}");
        assert!(switches[own] > switches[batch] * 3.0 && switches[own] > switches[hardly] * 3.0, "{said}");
        assert!(
            involuntary[eager] > involuntary[own] && involuntary[own] > involuntary[batch] * 20.0,
            "{said}"
        );
    }
}

/// What a run of `assay hackbench` said.
fn read(said: &str) -> Ran {
    let before = |word: &str| {
        let head = said.split(word).next().filter(|head| head.len() < said.len())?;
        head.split_ascii_whitespace().next_back()?.parse::<f64>().ok()
    };
    let seconds = said.lines().find_map(|line| line.strip_prefix("Time: ")?.trim().parse().ok());
    let whole = || {
        Some(Ran {
            seconds: seconds?,
            voluntary: before(" voluntary")?,
            involuntary: before(" involuntary")?,
        })
    };
    whole().unwrap_or_else(|| panic!("not understood: {said}"))
}

fn median(runs: &[Ran], of: impl Fn(&Ran) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn range(runs: &[Ran]) -> (f64, f64) {
    runs.iter().fold((f64::MAX, 0.0), |(least, most), ran| (least.min(ran.seconds), most.max(ran.seconds)))
}
