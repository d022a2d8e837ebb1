//! Changed run files and results of other tools through every reader and every output: no crash,
//! bounded memory and time, and nothing hostile that lives. A sample in every test run, five
//! thousand in `make soak` (`SOAK_MUTATIONS` says how many, `SOAK_SEED` repeats, `SOAK_FILE` only
//! one of them).

mod change;
mod outputs;
mod seeds;

use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use change::Changer;
use outputs::{Form, alive, control};
use seeds::{Kind, Seeds};

use crate::soak::tally;

/// Address space and seconds of CPU that no reader may need more of.
const MEMORY: u64 = 1 << 30;
const SECONDS: u64 = 30;

/// A command on a changed file: its words (CHANGED and GOOD stand for files, OUT for a folder), the
/// form of what it says, and the file that it writes.
struct Way {
    words: &'static str,
    form: Form,
    written: Option<&'static str>,
}

const fn says(words: &'static str, form: Form) -> Way {
    Way { words, form, written: None }
}

const fn writes(words: &'static str, form: Form, file: &'static str) -> Way {
    Way { words, form, written: Some(file) }
}

fn ways(kind: Kind) -> &'static [Way] {
    const RUN: &[Way] = &[
        writes("report CHANGED --format html --out OUT", Form::Html, "report.html"),
        says("report CHANGED --json", Form::Json),
        says("report CHANGED --format markdown", Form::Markdown),
        says("report CHANGED --format csv", Form::Csv),
        says("report CHANGED --format lmbench", Form::Lmbench),
        writes("report CHANGED --map OUT/map.svg", Form::Svg, "map.svg"),
        says("diagnose CHANGED", Form::Text),
        says("diagnose CHANGED --json", Form::Json),
        says("compare CHANGED GOOD", Form::Text),
        says("compare GOOD CHANGED --all --common-clock", Form::Text),
        says("compare GOOD CHANGED --json", Form::Json),
        writes("compare CHANGED GOOD --out OUT/c.html", Form::Html, "c.html"),
        writes("compare GOOD CHANGED --out OUT/c.md", Form::Markdown, "c.md"),
        says("peers CHANGED GOOD --all", Form::Text),
        says("peers CHANGED GOOD --json", Form::Json),
        writes("peers CHANGED GOOD --all --out OUT/p.html", Form::Html, "p.html"),
        writes("peers CHANGED GOOD --all --out OUT/p.md", Form::Markdown, "p.md"),
        says("import CHANGED", Form::Text),
    ];
    const SAVED: &[Way] = &[
        says("compare CHANGED GOOD", Form::Text),
        says("compare GOOD CHANGED --json", Form::Json),
        writes("compare GOOD CHANGED --out OUT/c.html", Form::Html, "c.html"),
        says("peers CHANGED GOOD --all", Form::Text),
        writes("peers CHANGED GOOD --all --out OUT/p.md", Form::Markdown, "p.md"),
    ];
    const FOREIGN: &[Way] = &[
        says("import CHANGED", Form::Text),
        says("import CHANGED --json", Form::Json),
        says("compare CHANGED GOOD", Form::Text),
        writes("compare CHANGED GOOD --out OUT/c.html", Form::Html, "c.html"),
        writes("compare GOOD CHANGED --out OUT/c.md", Form::Markdown, "c.md"),
        writes("report GOOD --beside CHANGED --format html --out OUT", Form::Html, "report.html"),
        says("report GOOD --beside CHANGED --format markdown", Form::Markdown),
        says("peers CHANGED GOOD --all", Form::Text),
    ];
    const MACHINE: &[Way] = &[
        says("machine --from CHANGED", Form::Text),
        says("machine --from CHANGED --ascii", Form::Text),
        says("machine --from CHANGED --json", Form::Json),
        says("run --quick --dry-run --pretend 7 --from CHANGED", Form::Text),
    ];
    const MODULES: &[Way] =
        &[says("machine --dmi CHANGED", Form::Text), says("machine --dmi CHANGED --json", Form::Json)];
    const PROFILE: &[Way] = &[
        says("explain-profile --after CHANGED --bench hackbench --dry-run", Form::Text),
        says("explain-profile --before CHANGED --after GOOD --bench selftest.steady --dry-run", Form::Text),
    ];
    match kind {
        Kind::Run => RUN,
        Kind::Saved => SAVED,
        Kind::Foreign => FOREIGN,
        Kind::Machine => MACHINE,
        Kind::Modules => MODULES,
        Kind::Profile => PROFILE,
    }
}

/// How a program ended that had limited memory and time.
struct Bounded {
    status: ExitStatus,
    /// The most that it had in memory, KiB. At least what this process had when it started it.
    resident: u64,
}

#[expect(clippy::zombie_processes, reason = "wait4 waits for it, and tells what it used")]
fn bounded(command: &mut Command) -> Bounded {
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let most = |bytes| libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            let refused = libc::setrlimit(libc::RLIMIT_AS, &most(MEMORY)) != 0
                || libc::setrlimit(libc::RLIMIT_CPU, &most(SECONDS)) != 0
                || libc::setrlimit(libc::RLIMIT_CORE, &most(0)) != 0;
            if refused { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let child = command.spawn().expect("assay starts");
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and nothing else waits for it; both places may be written to.
    let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) };
    assert_eq!(waited, child.id() as i32, "{}", std::io::Error::last_os_error());
    // SAFETY: filled by the kernel; all zeros would do, too.
    let usage = unsafe { usage.assume_init() };
    Bounded { status: ExitStatus::from_raw(status), resident: usage.ru_maxrss as u64 }
}

/// The totals of many files.
#[derive(Default)]
struct Course {
    commands: u64,
    /// Outputs that were looked through, and files that were taken (exit code 0 or 1).
    outputs: u64,
    taken: u64,
    resident: u64,
    faults: Vec<String>,
    pages: Vec<PathBuf>,
    /// All that in a line.
    line: String,
}

/// Pages that the browser is to look at, at most.
const PAGES: usize = 120;

/// Changes one file and has some commands read it; faults are recorded with the file's number.
fn try_one(seeds: &Seeds, seed: u64, number: u64, course: &Mutex<Course>, pages: &Path) {
    let mut random = fastrand::Rng::with_seed(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let kind = match random.u8(0..20) {
        0..10 => Kind::Run,
        10..15 => Kind::Foreign,
        15 => Kind::Saved,
        16 | 17 => Kind::Machine,
        18 => Kind::Modules,
        _ => Kind::Profile,
    };
    if seeds.of(kind).is_empty() {
        return;
    }
    let file = seeds.any(kind, &mut random);
    let others: Vec<Vec<u8>> = (0..2).map(|_| seeds.any(kind, &mut random).to_vec()).collect();
    let good = seeds.any(if kind == Kind::Profile { kind } else { Kind::Run }, &mut random);
    let changed = Changer { random: random.fork(), others: &others }.change(file);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    // Some readers recognise a file by its name.
    let name = ["changed.assay.jsonl", "changed.json", "changed.txt", "changed"][random.usize(0..4)];
    let name = if kind == Kind::Run { "changed.assay.jsonl" } else { name };
    fs::write(path(name), &changed).expect("written");
    fs::write(path("good.assay.jsonl"), good).expect("written");
    let ways = ways(kind);
    for _ in 0..2 {
        let way = &ways[random.usize(0..ways.len())];
        fs::create_dir_all(path("out")).expect("a folder");
        let words = way.words.split(' ').map(|word| match word {
            "CHANGED" => path(name),
            "GOOD" => path("good.assay.jsonl"),
            word => word.replace("OUT", &path("out").to_string_lossy()).into(),
        });
        let mut command = crate::assay();
        command.args(words).stdin(Stdio::null()).current_dir(folder.path());
        let stream = |name: &str| File::create(path(name)).expect("a file");
        let ended = bounded(command.stdout(stream("stdout")).stderr(stream("stderr")));
        let read = |name: &str| fs::read(path(name)).unwrap_or_default();
        let said = String::from_utf8_lossy(&read("stderr")).into_owned();
        let output = way.written.map_or_else(|| read("stdout"), |written| read(&format!("out/{written}")));
        let fine = matches!(ended.status.code(), Some(0 | 1 | 3 | 4))
            || kind == Kind::Profile && ended.status.code() == Some(2);
        let wrong = match () {
            () if !fine => Some(format!("ended with {}", ended.status)),
            () if said.contains("panicked") => Some("panicked".to_string()),
            () if ended.status.code() == Some(3) && said.trim().is_empty() && output.is_empty() => {
                Some("failed without a word".to_string())
            }
            () if output.is_empty() => control(&said).map(|what| format!("its standard error has {what}")),
            () => control(&said)
                .map(|what| format!("its standard error has {what}"))
                .or_else(|| alive(way.form, &output).map(|what| format!("{:?}: {what}", way.form))),
        };
        let mut course = course.lock().unwrap_or_else(PoisonError::into_inner);
        course.commands += 1;
        course.outputs += u64::from(!output.is_empty());
        course.taken += u64::from(matches!(ended.status.code(), Some(0 | 1)));
        course.resident = course.resident.max(ended.resident);
        let about = || format!("SOAK_SEED={seed} SOAK_FILE={number} {kind:?}: assay {}", way.words);
        if let Some(wrong) = wrong {
            let kept = pages.join(format!("{number}-{}", course.faults.len()));
            fs::write(&kept, &changed).expect("kept");
            let said: String = said.chars().filter(|c| !c.is_control()).take(300).collect();
            course.faults.push(format!("{}: {wrong}; {said}; its file: {}", about(), kept.display()));
        }
        let planted = String::from_utf8_lossy(&output).contains("window.__hit");
        if way.form == Form::Html && planted && course.pages.len() < PAGES {
            let page = pages.join(format!("{number}-{}.html", course.pages.len()));
            fs::write(&page, &output).expect("kept");
            course.pages.push(page);
        }
    }
}

/// Changes and tries `count` files; opens pages in a browser.
fn try_many(count: u64, seed: u64, lanes: usize, most_pages: usize) -> Course {
    let begin = Instant::now();
    let seeds = Seeds::gather();
    let pages =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutations-{seed}-{}", std::process::id()));
    fs::create_dir_all(&pages).expect("a folder");
    let (next, course) = (AtomicU64::new(0), Mutex::new(Course::default()));
    let only: Option<u64> = std::env::var("SOAK_FILE").ok().and_then(|number| number.parse().ok());
    let lane = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            match only {
                _ if number >= count => return,
                Some(only) if only != number => {}
                _ => try_one(&seeds, seed, number, &course, &pages),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..lanes).for_each(|_| {
            scope.spawn(lane);
        });
    });
    let mut course = course.into_inner().unwrap_or_else(PoisonError::into_inner);
    let took = begin.elapsed();
    course.pages.truncate(most_pages);
    let live = crate::browser::pages::live("mutations", &course.pages);
    course.line = format!(
        "seed {seed}: {count} changed files of {} kinds in {} commands, {} taken, {} outputs looked through, {} pages in a \
         browser ({}), most memory {} MiB of {} MiB allowed, {:.0} s",
        seeds::KINDS.len(),
        course.commands,
        course.taken,
        course.outputs,
        course.pages.len(),
        live.as_ref().map_or("none is here".to_string(), |live| format!("{} live", live.len())),
        course.resident >> 10,
        MEMORY >> 20,
        took.as_secs_f64()
    );
    println!("{}", course.line);
    course.faults.extend(live.unwrap_or_default());
    if course.faults.is_empty() {
        let _ = fs::remove_dir_all(&pages);
    }
    course
}

#[track_caller]
fn all_is_well(course: &Course, count: u64) {
    assert!(course.faults.is_empty(), "{} faults:\n{}", course.faults.len(), course.faults.join("\n"));
    assert!(course.commands > count && course.taken > 0 && course.outputs > 0, "hardly anything was read");
}

#[test]
fn a_sample_of_changed_files_is_read_or_refused() {
    let count = 60;
    all_is_well(&try_many(count, 28, 2, 3), count);
}

#[test]
#[ignore = "five thousand changed files: make soak"]
fn soak() {
    let told = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seed = told("SOAK_SEED").unwrap_or_else(|| fastrand::u64(..1 << 40));
    let count = told("SOAK_MUTATIONS").unwrap_or(5000);
    println!("seed {seed}");
    let course = try_many(count, seed, 2, PAGES);
    if std::env::var_os("SOAK_FILE").is_some() {
        assert!(course.faults.is_empty(), "{}", course.faults.join("\n"));
        return;
    }
    let wrong = match course.faults.len() {
        0 => "Nothing was wrong.".to_string(),
        faults => format!("{faults} were wrong:\n\n```\n{}\n```", course.faults.join("\n")),
    };
    let text = format!(
        "# Changed files\n\n`make soak` changes run files, results of other tools, machines and profiles, and has every reader \
         read them and every output written (crates/cli/tests/it/mutations).\n\nCommit {}, {}, {}.\n\n{}.\n\n{wrong}\n",
        tally::commit(),
        tally::machine(),
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
        course.line
    );
    tally::result("mutations.md", &text);
    all_is_well(&course, count);
}

#[test]
fn a_program_that_takes_too_much_is_told() {
    let twice = ["if=/dev/zero", "of=/dev/null", "bs=2G", "count=1"];
    let hungry = bounded(Command::new("dd").args(twice).stderr(Stdio::null()));
    assert_ne!(hungry.status.code(), Some(0), "{}", hungry.status);
    let modest = bounded(Command::new("true").stdout(Stdio::null()));
    assert!(modest.status.success() && modest.resident > 0, "{}", modest.status);
}
