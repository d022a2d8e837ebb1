//! Disks, against fio's io_uring engine: the same job on the same filesystem, in files of one size,
//! past the page cache, both with registered file and buffers, on the same CPU. fio's buffers lie
//! on huge pages as Assay's do: on scattered ones each I/O of 1 MiB reaches the device as two. Of
//! each pair of runs three figures are compared: the rate, the 99th percentile of latency (from
//! before submitting, on both sides) and the generator's CPU time for an I/O. Both find a file of
//! their own that was made and written just before: one that was overwritten often can be a tenth
//! faster (seen with fio here).

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Case, figure};
use stats::compare::paired_ratio;
use stats::order::median;
use sys::mapping::Mapping;

use super::{Bench, NARROW, Wanted, put_row, said_by, value_in, words};

pub const NAME: &str = "disk";

/// How long each run counts, and how long it warms up before, s. Assay warms up for one of its five
/// samples.
const SECONDS: f64 = 1.5;
const WARM_UP_S: f64 = 0.3;
const FILE_BYTES: u64 = 256 << 20;
const LIMIT: Duration = Duration::from_secs(100);
const PAIRS: usize = 8;

/// A job of both: its name, our row and operation, fio's word, and the point.
struct Job {
    name: &'static str,
    row: &'static str,
    op: &'static str,
    rw: &'static str,
    block: u64,
    depth: u32,
}

const JOBS: [Job; 5] = [
    Job {
        name: "random read 4 KiB, depth 1",
        row: "disk.random",
        op: "read",
        rw: "randread",
        block: 4096,
        depth: 1,
    },
    Job {
        name: "random read 4 KiB, depth 32",
        row: "disk.random",
        op: "read",
        rw: "randread",
        block: 4096,
        depth: 32,
    },
    Job {
        name: "random write 4 KiB, depth 32",
        row: "disk.random",
        op: "write",
        rw: "randwrite",
        block: 4096,
        depth: 32,
    },
    Job {
        name: "sequential read 1 MiB, depth 8",
        row: "disk.sequential",
        op: "read",
        rw: "read",
        block: 1 << 20,
        depth: 8,
    },
    Job {
        name: "sequential write 1 MiB, depth 8",
        row: "disk.sequential",
        op: "write",
        rw: "write",
        block: 1 << 20,
        depth: 8,
    },
];

/// Rate (I/Os a second), 99th percentile (us) and CPU time for an I/O (us) of a run.
type Figures = [f64; 3];
const FIGURES: [(&str, &str, Wanted); 3] = [
    ("rate", "1/s", Wanted::AtLeast(0.98)),
    ("p99", "us", Wanted::Within(0.1)),
    ("CPU for an I/O", "us", Wanted::AtMost(1.0)),
];

/// The peer's file, of data that no device can compress; gone with this.
struct PeerFile(tempfile::TempDir);

impl PeerFile {
    fn put(directory: &Path) -> std::io::Result<PeerFile> {
        let file = PeerFile(tempfile::tempdir_in(directory)?);
        file.renew()?;
        Ok(file)
    }

    /// Writes the file again past the page cache, as each pass of Assay does: devices with burst
    /// credits and caches remember what came before.
    fn renew(&self) -> std::io::Result<()> {
        if self.path().exists() {
            std::fs::remove_file(self.path())?;
        }
        let mut options = OpenOptions::new();
        let file = options.create_new(true).write(true).custom_flags(libc::O_DIRECT).open(self.path())?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, FILE_BYTES)?;
        let mut piece = Mapping::plain(1 << 20, false)?;
        let mut random = fastrand::Rng::new();
        for at in (0..FILE_BYTES).step_by(piece.len()) {
            random.fill(piece.bytes_mut());
            file.write_all_at(piece.bytes_mut(), at)?;
        }
        file.sync_all()
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("fio")
    }
}

/// The lines of all jobs whose name is asked for. Files go to `$ASSAY_BENCH_DIR`, or where
/// temporary files do.
pub fn table(bench: &Bench, asked: impl Fn(&str) -> bool) {
    let wanted: Vec<&Job> = JOBS.iter().filter(|job| asked(&format!("{NAME} {}", job.name))).collect();
    if wanted.is_empty() {
        return;
    }
    let directory = std::env::var_os("ASSAY_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let file = match PeerFile::put(&directory) {
        Ok(file) => file,
        Err(error) => {
            return println!(
                "| {NAME} | – | – | not compared: {}: {error} | – | – | – |",
                directory.display()
            );
        }
    };
    for job in wanted {
        match compare(bench, job, &directory, &file) {
            Ok(lines) => lines.iter().for_each(|line| put_row("bench:disk", line)),
            Err(why) => println!("| {NAME} {} (fio) | – | – | not compared: {why} | – | – | – |", job.name),
        }
    }
}

fn compare(bench: &Bench, job: &Job, directory: &Path, file: &PeerFile) -> Result<Vec<String>, String> {
    let is_it = |case: &Case| {
        let is = |name: &str, value: &str| case.params.named(name).and_then(|own| own.text()) == Some(value);
        is("op", job.op) && is("cache", "direct") && case.params.len() == 2
    };
    let case = bench.case(job.row, is_it).ok_or("not possible on this machine")?;
    let mut case = bench.on_first_cpu(case);
    for (name, value) in [
        ("dir", directory.display().to_string()),
        ("points", format!("{}x{}", job.block, job.depth)),
        ("bytes", FILE_BYTES.to_string()),
        ("seconds", SECONDS.to_string()),
    ] {
        case.inputs.insert(name.into(), value);
    }
    let ours = || -> Result<Figures, String> {
        let heard = bench.heard(&case)?;
        let value = |metric| value_in(&heard, &case, metric, &[]);
        let all = value("iops").zip(value("latency_p99")).zip(value("cpu_per_io"));
        let ((rate, p99), cpu) =
            all.ok_or_else(|| format!("our benchmark gave no value: {:?}", heard.reason))?;
        Ok([rate, p99, cpu])
    };
    let words_of_fio = arguments(job, &file.path(), bench.first_cpu());
    let peer = || -> Result<Figures, String> {
        file.renew().map_err(|error| format!("the peer's file cannot be written: {error}"))?;
        let text = said_by(&words_of_fio).map_err(|error| format!("fio cannot be started ({error})"))?;
        figures(&text).ok_or_else(|| format!("`{}` gave no figures: {text}", words_of_fio.join(" ")))
    };
    let (mut own, mut peers, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    let column = |all: &[Figures], index: usize| -> Vec<f64> { all.iter().map(|one| one[index]).collect() };
    loop {
        // ABBA: drift hits both alike.
        match own.len() % 2 {
            0 => {
                own.push(ours()?);
                peers.push(peer()?);
                again.push(peer()?);
            }
            _ => {
                again.push(peer()?);
                peers.push(peer()?);
                own.push(ours()?);
            }
        }
        let narrow = |index: usize| {
            let ratio = paired_ratio(&column(&peers, index), &column(&own, index), 0.95);
            ratio.is_some_and(|ratio| {
                ratio.interval.is_some_and(|interval| interval.half_width() / ratio.ratio <= NARROW)
            })
        };
        let enough = own.len() >= PAIRS && (0..FIGURES.len()).all(narrow);
        if enough || (own.len() >= PAIRS && begin.elapsed() > LIMIT) {
            break;
        }
    }
    let line = |index: usize| -> Option<String> {
        let (name, unit, wanted) = FIGURES[index];
        let (ours, theirs, other) = (column(&own, index), column(&peers, index), column(&again, index));
        let (ratio, control) = (paired_ratio(&theirs, &ours, 0.95)?, paired_ratio(&theirs, &other, 0.95)?);
        let value = |values: &[f64]| median(values).map_or("–".to_string(), |value| figure(value, unit));
        let (ours, theirs) = (value(&ours), value(&theirs));
        let (count, verdict) = (own.len(), wanted.judge(&ratio, ""));
        let job = job.name;
        Some(format!(
            "| {NAME} {job}: {name} (fio) | {ours} | {theirs} | {} | {} | {count} | {verdict} |",
            words(&ratio),
            words(&control)
        ))
    };
    (0..FIGURES.len()).map(|index| line(index).ok_or("no ratio".to_string())).collect()
}

fn arguments(job: &Job, file: &Path, cpu: u32) -> Vec<String> {
    // The tunable asks for huge pages (THP) for its buffers.
    let always = "env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --name=peer --ioengine=io_uring --direct=1 --fixedbufs \
                  --registerfiles --iomem_align=2m --time_based --norandommap --randrepeat=0 --allow_file_create=0 \
                  --lat_percentiles=1 --percentile_list=50:99 --output-format=json";
    let mut words: Vec<String> = always.split_whitespace().map(str::to_string).collect();
    words.extend([
        format!("--filename={}", file.display()),
        format!("--size={FILE_BYTES}"),
        format!("--rw={}", job.rw),
        format!("--bs={}", job.block),
        format!("--iodepth={}", job.depth),
        format!("--cpus_allowed={cpu}"),
        format!("--runtime={}ms", SECONDS * 1e3),
        format!("--ramp_time={}ms", WARM_UP_S * 1e3),
    ]);
    words
}

/// The figures of fio's only job.
fn figures(text: &str) -> Option<Figures> {
    // Text before the object is not JSON.
    let report: serde_json::Value = serde_json::from_str(&text[text.find('{')?..]).ok()?;
    let job = report["jobs"].get(0)?;
    let way =
        ["read", "write"].into_iter().map(|way| &job[way]).find(|way| way["total_ios"].as_u64() > Some(0))?;
    let p99 = way["lat_ns"]["percentile"]["99.000000"].as_f64()? / 1e3;
    let share = (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0;
    let rate = way["iops"].as_f64()?;
    Some([rate, p99, share * 1e6 / rate])
}
