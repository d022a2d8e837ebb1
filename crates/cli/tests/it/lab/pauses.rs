//! Pauses that are planted from outside: the CPUs of a guest are threads of ours, which are put
//! onto one CPU, lose it to a real-time task, or are stopped as a guest, while the guest watches
//! its own CPUs and names what was done to them.
//!
//! No other task may take those CPUs meanwhile, or the guest would rightly name others: the
//! emulator is in a session of its own whose tasks come before nearly all others (as root only).

use std::fmt::Write as _;
use std::fs;
use std::process::{Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, setpriority_process};
use serde_json::Value;
use sys::sched::{self, Policy};
use sys::{affinity, process};

use super::kernels::write_results;
use super::{NOTHING_TO_BOOT, booting, processes_marked, read_json, runs, skipped, unique, unpacked};
use model::CpuSet;

/// What is done to a guest's CPUs.
struct Plant {
    title: &'static str,
    machine: &'static str,
    /// For each CPU of the guest which of ours it may use, counted from the first.
    host: &'static [u32],
    doing: Doing,
    /// The right answers about pairs of CPUs; any other answer is wrong.
    pairs: &'static [([u64; 2], &'static str)],
    /// Whether it is named however busy our CPUs are; else a pair may go unnamed, and none may be
    /// named wrongly.
    sure: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Nothing,
    /// Every other two seconds the CPUs have one each, as many as there are.
    Alternate,
    /// A real-time task has the CPU of the last one for a fifth of the time.
    Preempt,
    /// All are stopped for a fifth of the time.
    Stop,
}

const PLANTS: [Plant; 6] = [
    Plant {
        title: "nothing: two CPUs, each on one of its own",
        machine: "uma",
        host: &[0, 1],
        doing: Doing::Nothing,
        pairs: &[],
        sure: true,
    },
    TWO_ON_ONE,
    Plant {
        title: "two CPUs on one of the host's, for two of four seconds",
        machine: "uma",
        host: &[0, 0],
        doing: Doing::Alternate,
        pairs: &[([0, 1], "take_turns")],
        sure: false,
    },
    Plant {
        title: "four CPUs, two by two on one of the host's",
        machine: "shared-l3",
        host: &[0, 0, 1, 1],
        doing: Doing::Nothing,
        pairs: &[([0, 1], "take_turns"), ([2, 3], "take_turns")],
        sure: false,
    },
    Plant {
        title: "a real-time task beside the second of two CPUs, 8 of 40 ms",
        machine: "uma",
        host: &[0, 1],
        doing: Doing::Preempt,
        pairs: &[],
        sure: true,
    },
    Plant {
        title: "the guest stopped and continued, 30 of 150 ms",
        machine: "uma",
        host: &[0, 1],
        doing: Doing::Stop,
        pairs: &[([0, 1], "stop_together")],
        sure: false,
    },
];

const TWO_ON_ONE: Plant = Plant {
    title: "two CPUs on one of the host's",
    machine: "uma",
    host: &[0, 0],
    doing: Doing::Nothing,
    pairs: &[([0, 1], "take_turns")],
    sure: true,
};

/// Trials of each; fewer where `ASSAY_TRIALS` says so.
const TRIALS: usize = 10;

/// Before all tasks that did not ask for as much.
const FIRST: i32 = -20;

const PREEMPTED: [Duration; 2] = [Duration::from_millis(8), Duration::from_millis(32)];
const STOPPED: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(120)];
const ALTERNATE_S: u64 = 2;
/// The interval between two checks whether the guest has ended.
const LOOK: Duration = Duration::from_millis(50);

/// `trials` trials, one file each, or fewer: up to the first that contains the word `until`.
fn script(trials: usize, until: Option<&str>) -> String {
    let enough = until.map_or(String::new(), |word| format!("grep -q {word} $number.json && break"));
    format!(
        "set -e
        for number in $(seq 1 {trials}); do
            assay run --quick --force --only host.pauses --budget 20s --json --out out >$number.json 2>said ||
                {{ cat said >&2; exit 1; }}
            rm -r out
            {enough}
        done
        tar -c -f - *.json"
    )
}

/// The results of trials, and whether other work used the guest's CPUs meanwhile.
struct Tried {
    trials: Vec<Value>,
    beside: Beside,
}

/// Other work while a guest ran: what its CPUs waited over what they ran, and the share of all
/// CPUs' time that our own host took.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    waited: f64,
    stolen: f64,
}

impl Beside {
    /// CPUs of a guest that have one of ours for themselves wait as long as they run, at most.
    fn is_crowd(self) -> bool {
        self.waited > 1.15 || self.stolen > 0.05
    }

    fn of(emulator: Pid, tasks: &[u32]) -> Option<Beside> {
        let (mut ran, mut waited) = (0.0, 0.0);
        for task in tasks {
            let path = format!("/proc/{}/task/{task}/schedstat", emulator.as_raw_nonzero());
            let text = fs::read_to_string(path).ok()?;
            let mut ns = text.split(' ').filter_map(|word| word.trim().parse::<f64>().ok());
            (ran, waited) = (ran + ns.next()?, waited + ns.next()?);
        }
        Some(Beside { waited: waited / ran.max(1.0), stolen: 0.0 })
    }
}

/// Jiffies of all CPUs: those that the host took, and all.
fn stolen() -> [f64; 2] {
    let text = fs::read_to_string("/proc/stat").expect("counters");
    let words = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
    let all: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    [all.get(7).copied().unwrap_or(0.0), all.iter().sum()]
}

/// Boots, plants, and brings what each trial said, up to the first that says what it should;
/// `None`, with a message, where that cannot be done.
fn tried(test: &str, plant: &Plant, trials: usize, until: Option<&str>) -> Option<Tried> {
    let ours: Vec<u32> = affinity::allowed().expect("affinity").iter().collect();
    if ours.len() < 2 {
        skipped(test, "it needs two CPUs");
        return None;
    }
    // The last ones: the first has the interrupts.
    let on = |at: u32| ours[ours.len() - 1 - at as usize];
    let mark = unique();
    let mut command = booting(&[], plant.machine, &["-name", "lab,debug-threads=on"], &script(trials, until));
    command.env("ASSAY_TEST", &mark).stdout(Stdio::piped()).stderr(Stdio::piped());
    process::in_new_session(&mut command);
    let lab = command.spawn().expect("lab/boot runs");
    let ended = thread::spawn(|| lab.wait_with_output().expect("lab/boot runs"));
    let cpus = || guest_cpus(&mark).filter(|(_, cpus)| cpus.len() == plant.host.len());
    let guest = loop {
        match cpus() {
            Some(guest) => break Some(guest),
            None if ended.is_finished() => break None,
            None => thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut refused = None;
    let (begun, seen) = (stolen(), Mutex::new(Beside::default()));
    if let Some((emulator, tasks)) = guest {
        let each: Vec<u32> = plant.host.iter().map(|at| on(*at)).collect();
        refused = place(&tasks, &each).and_then(|()| come_first(emulator, &tasks)).err();
        if refused.is_some() {
            _ = kill_process(emulator, Signal::KILL);
        } else {
            let ended = || {
                if let Some(beside) = Beside::of(emulator, &tasks) {
                    *seen.lock().expect("nobody panics with it") = beside;
                }
                ended.is_finished()
            };
            plant.doing.until(ended, emulator, &tasks, &ours);
        }
    }
    let Output { status, stdout, stderr } = ended.join().expect("a thread that waits");
    let said = String::from_utf8_lossy(&stderr);
    if let Some(why) = refused {
        skipped(test, format!("CPUs cannot be kept from other tasks: {why}"));
        return None;
    }
    if status.code() == Some(NOTHING_TO_BOOT) {
        skipped(test, said.trim());
        return None;
    }
    assert!(status.success(), "{}: {status}: {said}", plant.title);
    let folder = unpacked(&stdout, None);
    let name = |number: usize| format!("{number}.json");
    let made = (1..=trials).map(name).filter(|name| folder.path().join(name).exists());
    let stolen = [0, 1].map(|at| stolen()[at] - begun[at]);
    let beside = *seen.lock().expect("nobody panics with it");
    Some(Tried {
        trials: made.map(|name| read_json(&folder, &name)).collect(),
        beside: Beside { stolen: stolen[0] / stolen[1].max(1.0), ..beside },
    })
}

/// The emulator and the threads that are its guest's CPUs, in their order.
fn guest_cpus(mark: &str) -> Option<(Pid, Vec<u32>)> {
    let is_emulator = |words: &str| words.split(' ').next().is_some_and(|name| name.contains("qemu-system"));
    let (pid, _) = processes_marked(mark).into_iter().find(|(_, words)| is_emulator(words))?;
    let cpu = |entry: fs::DirEntry| -> Option<(u32, u32)> {
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        let number = name.strip_prefix("CPU ")?.split('/').next()?.parse().ok()?;
        Some((number, entry.file_name().to_str()?.parse().ok()?))
    };
    let mut cpus: Vec<(u32, u32)> =
        fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().filter_map(cpu).collect();
    cpus.sort_unstable();
    Some((Pid::from_raw(pid as i32)?, cpus.into_iter().map(|(_, task)| task).collect()))
}

fn place(tasks: &[u32], on: &[u32]) -> std::io::Result<()> {
    tasks.iter().zip(on).try_for_each(|(task, cpu)| affinity::pin_task(*task, &CpuSet::one(*cpu)))
}

/// Lets these tasks go before all others, in their session and with it.
fn come_first(emulator: Pid, tasks: &[u32]) -> std::io::Result<()> {
    for task in tasks {
        setpriority_process(Pid::from_raw(*task as i32), FIRST)?;
    }
    match fs::write(format!("/proc/{}/autogroup", emulator.as_raw_nonzero()), FIRST.to_string()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

impl Doing {
    /// Does it until the guest has ended.
    fn until(self, ended: impl Fn() -> bool + Send, emulator: Pid, tasks: &[u32], ours: &[u32]) {
        let [.., other, last] = ours[..] else { return };
        let begin = Instant::now();
        let round = || match self {
            Doing::Nothing => thread::sleep(LOOK),
            Doing::Alternate => {
                let apart = begin.elapsed().as_secs() / ALTERNATE_S % 2 == 1;
                // That it has ended is seen in the next round.
                _ = affinity::pin_task(tasks[1], &CpuSet::one(if apart { other } else { last }));
                thread::sleep(LOOK);
            }
            Doing::Preempt => {
                let from = Instant::now();
                while from.elapsed() < PREEMPTED[0] {
                    std::hint::spin_loop();
                }
                thread::sleep(PREEMPTED[1]);
            }
            Doing::Stop => {
                for (signal, wait) in [Signal::STOP, Signal::CONT].into_iter().zip(STOPPED) {
                    _ = kill_process(emulator, signal);
                    thread::sleep(wait);
                }
            }
        };
        // What this task becomes ends with it.
        thread::scope(|scope| {
            scope.spawn(move || {
                if self == Doing::Preempt {
                    affinity::pin(&CpuSet::one(other)).expect("its CPU");
                    sched::set_policy(Policy::Fifo).expect("a real-time task");
                }
                while !ended() {
                    round();
                }
            });
        });
    }
}

/// What a trial said: the answer for each CPU, what it lost of its time with the interval, and
/// pairs.
struct Said {
    cpus: Vec<(String, [f64; 3])>,
    pairs: Vec<([u64; 2], String)>,
    stops: u64,
}

impl Said {
    fn of(results: &Value) -> Said {
        let share = &results["guest_share"];
        let list = |name: &str| share[name].as_array().unwrap_or_else(|| panic!("{name}: {share}"));
        let answer = |of: &Value| of["answer"].as_str().expect("an answer").to_string();
        let number = |value: &Value| value.as_f64().expect("a number");
        let cpu = |cpu: &Value| {
            let ci95 = &cpu["withheld_ci95"];
            (answer(cpu), [number(&ci95[0]), number(&cpu["withheld"]), number(&ci95[1])])
        };
        let pair = |pair: &Value| ([0, 1].map(|at| pair["cpus"][at].as_u64().expect("a CPU")), answer(pair));
        Said {
            cpus: list("cpus").iter().map(cpu).collect(),
            pairs: list("pairs").iter().map(pair).collect(),
            stops: share["stops"]["count"].as_u64().unwrap_or(0),
        }
    }

    /// A pair that was named and should not be.
    fn wrong_pair(&self, plant: &Plant) -> Option<String> {
        let is_wrong = |(cpus, answer): &&([u64; 2], String)| !plant.pairs.contains(&(*cpus, answer));
        self.pairs.iter().find(is_wrong).map(|pair| format!("{pair:?}"))
    }

    /// What is wrong with it after such a plant.
    fn mistake(&self, plant: &Plant) -> Option<String> {
        let pairs: Vec<([u64; 2], &str)> =
            self.pairs.iter().map(|(cpus, answer)| (*cpus, answer.as_str())).collect();
        if pairs != plant.pairs {
            return Some(format!("pairs {pairs:?}"));
        }
        let withheld = |cpu: usize| self.cpus[cpu].0 == "withheld";
        let told = match plant.doing {
            _ if plant.pairs.is_empty() && plant.doing == Doing::Nothing => true,
            // Of the other only what the emulator itself takes.
            Doing::Preempt => withheld(1) && self.cpus[1].1[0] > self.cpus[0].1[2],
            Doing::Stop => self.stops > 0 && (0..2).all(withheld),
            Doing::Nothing | Doing::Alternate => (0..self.cpus.len()).all(withheld),
        };
        (!told).then(|| format!("CPUs {:?}, {} stops of all", self.cpus, self.stops))
    }
}

#[test]
fn two_cpus_of_a_guest_that_share_one_are_named() {
    let test = "two_cpus_of_a_guest_that_share_one_are_named";
    let Some(Tried { trials, beside }) = tried(test, &TWO_ON_ONE, 3, Some("take_turns")) else { return };
    let said: Vec<Said> = trials.iter().map(Said::of).collect();
    assert_eq!(said.iter().find_map(|said| said.wrong_pair(&TWO_ON_ONE)), None);
    let (Some(last), Some(results)) = (said.last(), trials.last()) else { panic!("no trial") };
    if let Some(mistake) = last.mistake(&TWO_ON_ONE) {
        // Other work on that CPU hides which CPUs share it: saying less is right then.
        assert!(beside.is_crowd(), "{mistake}, {beside:?}");
        return skipped(test, format!("others took its CPUs ({beside:?}): {mistake}"));
    }
    let findings = runs::findings(results, "preempted-cpus");
    let cause = findings.first().and_then(|finding| finding["cause"].as_str());
    assert_eq!(cause, Some("CPUs 0 and 1 alternate on one CPU of the host."), "{findings:?}");
}

#[test]
#[ignore = "half an hour of guests: make lab"]
fn planted_pauses() {
    let test = "planted_pauses";
    let trials = std::env::var("ASSAY_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(TRIALS);
    let mut table = String::from(
        "| planted | trials | named right | withheld, each CPU: median | load of the host | what else was said |\n|---|---|---|---|---|---|\n",
    );
    let mut missed = Vec::new();
    for plant in &PLANTS {
        let Some(Tried { trials: results, .. }) = tried(test, plant, trials, None) else { return };
        let said: Vec<Said> = results.iter().map(Said::of).collect();
        let mistakes: Vec<String> = said.iter().filter_map(|said| said.mistake(plant)).collect();
        let median = |cpu: usize| {
            let shares = said.iter().map(|said| said.cpus[cpu].1[1]).collect::<Vec<_>>();
            format!("{:.0} %", 100.0 * stats::order::median(&shares).expect("trials"))
        };
        let medians: Vec<String> = (0..plant.host.len()).map(median).collect();
        let load = fs::read_to_string("/proc/loadavg").expect("a load");
        let right = trials - mistakes.len();
        let what = if mistakes.is_empty() { "nothing".to_string() } else { mistakes.join("; ") };
        let row = format!(
            "| {} | {trials} | {right} | {} | {} | {what} |",
            plant.title,
            medians.join(", "),
            load.split(' ').nth(1).unwrap_or_default(),
        );
        println!("{row}");
        writeln!(table, "{row}").expect("text");
        // 9 of 10.
        if plant.sure && mistakes.len() * 10 > trials {
            missed.push(format!("{}: {right} of {trials}", plant.title));
        }
        let wrong = said.iter().find_map(|said| said.wrong_pair(plant));
        missed.extend(wrong.map(|pair| format!("{}: {pair}", plant.title)));
    }
    if trials >= TRIALS {
        write_results("pauses", &table);
    }
    assert!(missed.is_empty(), "{missed:?}");
}
