//! What I/O goes to: files of our own, allocated and filled, or a raw device that the user named.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::cases::{
    BYTES, DEVICE, DEVICE_BYTES, DEVICE_MEDIUM, DEVICE_NUMBER, DEVICE_WRITE, not_on_a_device,
};
use crate::file::{SHARE_OF_ROOM, directory_of};
use model::{Case, CpuSet, Pages, counted};
use sys::counters::{BlockDevice, why_uncounted};
use sys::file_map::drop_cached;
use sys::mapping::Mapping;
use sys::medium;
use sys::scratch::Scratch;

/// Bytes of each write that fills a file.
const PIECE: usize = 1 << 20;

pub struct Target {
    /// A file a job, or the device again and again.
    files: Vec<OwnedFd>,
    /// Where files cannot be without a name; they end before it.
    _scratch: Option<Scratch>,
    /// Bytes of each job's region.
    pub bytes: u64,
    is_device: bool,
}

/// How long a device that was opened exclusively may stay so after the process that had it is gone:
/// the kernel takes an io_uring apart some time later.
const LET_GO: Duration = Duration::from_secs(3);

/// Tries again while another process has it.
fn patiently(open: impl Fn() -> rustix::io::Result<OwnedFd>) -> rustix::io::Result<OwnedFd> {
    let begin = Instant::now();
    loop {
        match open() {
            Err(Errno::BUSY) if begin.elapsed() < LET_GO => std::thread::sleep(Duration::from_millis(20)),
            other => return other,
        }
    }
}

/// The device that the user named and confirmed: its path, and what was to be found there.
#[derive(Clone, Copy)]
struct Confirmed<'a> {
    path: &'a Path,
    /// `8:16`.
    number: &'a str,
    bytes: u64,
    /// As `sys::medium` reports; empty if the kernel reports nothing.
    medium: &'a str,
}

impl Confirmed<'_> {
    /// Whether an open device is that one. Names and numbers are given anew when a disk is plugged
    /// in, a link is changed, or a loop device is set up again: what was typed holds for one device
    /// with one medium alone.
    fn is(&self, file: &OwnedFd, size: u64) -> anyhow::Result<()> {
        let named = self.path.display();
        let stat = rustix::fs::fstat(file).with_context(|| format!("cannot stat {named}"))?;
        ensure!(
            FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice,
            "{named} is not a block device"
        );
        let (number, medium) = (numbers(stat.st_rdev), medium::of(file));
        let is_the_device = number == self.number && size == self.bytes;
        let what = if is_the_device { "holds another medium" } else { "is another device" };
        let shown = |number: &str, bytes: u64, medium: &str| match medium {
            "" => format!("device {number} of {bytes} bytes"),
            medium => format!("device {number} of {bytes} bytes ({medium})"),
        };
        ensure!(
            is_the_device && medium == self.medium,
            "{named} {what} by now and was neither read nor written: {} was confirmed, {} is there; start a new run to confirm it",
            shown(self.number, self.bytes, self.medium),
            shown(&number, size, &medium)
        );
        Ok(())
    }
}

impl Target {
    /// For this many jobs: files that are made and filled now, or the device of the case.
    /// `direct`: past the page cache.
    pub fn prepare(case: &Case, jobs: usize, direct: bool, seed: u64) -> anyhow::Result<Target> {
        let number = |name: &str| case.inputs.get(name).and_then(|text| text.parse::<u64>().ok());
        match case.inputs.get(DEVICE) {
            Some(device) => {
                let write = case.inputs.get(DEVICE_WRITE).is_some_and(|word| word == "yes");
                if let Some(why) = not_on_a_device(case, write) {
                    bail!(why);
                }
                let told = |name: &str| {
                    let missing = "the case names no confirmed device: start a new run";
                    case.inputs.get(name).context(missing)
                };
                let confirmed = Confirmed {
                    path: Path::new(device),
                    number: told(DEVICE_NUMBER)?,
                    bytes: told(DEVICE_BYTES)?
                        .parse()
                        .context("the size of the confirmed device is not a number")?,
                    medium: told(DEVICE_MEDIUM)?,
                };
                Target::device(confirmed, jobs, direct, write)
            }
            None => {
                let bytes = number(BYTES).context("the case has no file size")?;
                Target::files(&directory_of(case), jobs, bytes, direct, seed)
            }
        }
    }

    fn device(confirmed: Confirmed, jobs: usize, direct: bool, write: bool) -> anyhow::Result<Target> {
        let Confirmed { path, .. } = confirmed;
        let named = path.display();
        let mut flags = OFlags::CLOEXEC | if write { OFlags::RDWR | OFlags::EXCL } else { OFlags::RDONLY };
        if direct {
            flags |= OFlags::DIRECT;
        }
        let file = patiently(|| rustix::fs::open(path, flags, Mode::empty()))
            .with_context(|| format!("cannot open {named}"))?;
        let size = rustix::fs::seek(&file, SeekFrom::End(0))
            .with_context(|| format!("cannot read the size of {named}"))?;
        confirmed.is(&file, size)?;
        let bytes = size / jobs.max(1) as u64 / PIECE as u64 * PIECE as u64;
        ensure!(bytes > 0, "{named} has only {size} bytes");
        // All jobs share one open file, since no process can open it exclusively twice.
        let files: Result<Vec<OwnedFd>, _> = (0..jobs).map(|_| file.try_clone()).collect();
        Ok(Target { _scratch: None, files: files?, bytes, is_device: true })
    }

    fn files(directory: &Path, jobs: usize, bytes: u64, direct: bool, seed: u64) -> anyhow::Result<Target> {
        let scratch = Scratch::new(directory, &["data#"])?;
        let free = scratch.free_bytes()?;
        let all = bytes.saturating_mul(jobs as u64);
        ensure!(
            all <= free / SHARE_OF_ROOM,
            "{jobs} files of {bytes} bytes are more than a tenth of the {free} bytes free in {}",
            directory.display()
        );
        let mut files = Vec::new();
        for job in 0..jobs {
            let name = format!("data{job}");
            let open = |flags: OFlags| {
                let flags = flags | OFlags::RDWR | OFlags::CLOEXEC;
                rustix::fs::openat(scratch.folder(), name.as_str(), flags, Mode::RUSR | Mode::WUSR)
            };
            let made = open(OFlags::CREATE | OFlags::EXCL).context("cannot create the test file")?;
            let past = open(OFlags::DIRECT);
            rustix::fs::unlinkat(scratch.folder(), name.as_str(), AtFlags::empty())
                .context("cannot unlink the test file")?;
            files.push((made, past));
        }
        // Nothing has a name any more: whatever ends this process, the files go with it. Where the
        // filesystem keeps names of its own for open files (NFS), the folder stays as long.
        let scratch = Some(scratch).filter(|scratch| scratch.count().unwrap_or(0) > 0);
        let fill_one = |(job, (made, past)): (usize, (OwnedFd, rustix::io::Result<OwnedFd>))| {
            if direct && let Err(error) = past {
                let error = std::io::Error::from(error);
                bail!(
                    "not available here: the filesystem of {} refuses O_DIRECT ({error})",
                    directory.display()
                );
            }
            // Past the cache where that can be, so that it holds nothing of the file.
            fill(past.as_ref().unwrap_or(&made), bytes, seed ^ job as u64)
                .with_context(|| format!("cannot fill the test file in {}", directory.display()))?;
            rustix::fs::fsync(&made).context("cannot sync the test file")?;
            Ok(match past {
                Ok(past) if direct => past,
                _ => made,
            })
        };
        let files = files.into_iter().enumerate().map(fill_one).collect::<anyhow::Result<Vec<_>>>()?;
        let target = Target { _scratch: scratch, files, bytes, is_device: false };
        target.drop_cached()?;
        Ok(target)
    }

    /// A job's file, and where its region begins.
    pub fn open(&self, job: usize) -> anyhow::Result<(OwnedFd, u64)> {
        let file = self
            .files
            .get(job)
            .context("unknown job")?
            .try_clone()
            .context("cannot share a file between jobs")?;
        Ok((file, if self.is_device { job as u64 * self.bytes } else { 0 }))
    }

    pub fn file(&self) -> &OwnedFd {
        &self.files[0]
    }

    /// Description of the files or the device for the pass's notes.
    pub fn words(&self) -> Vec<String> {
        let (count, mib) = (self.files.len(), self.bytes >> 20);
        let what = match self.is_device {
            true => format!(
                "{} of {mib} MiB of a raw device with unknown content: reads of unwritten or discarded blocks may not touch the medium{}",
                counted(count, "region"),
                self.blank_words()
            ),
            false => format!(
                "{} of {mib} MiB: allocated, filled once with incompressible data, synced",
                counted(count, "file")
            ),
        };
        [what]
            .into_iter()
            .chain(self.number().and_then(|number| why_uncounted(Path::new("/"), &number)))
            .collect()
    }

    /// How many of a few blocks of a raw device hold nothing but zeros.
    fn blank_words(&self) -> String {
        const LOOKS: u64 = 64;
        const LOOK: u64 = 4096;
        let Ok(mut buffer) = Mapping::plain(LOOK as usize, false) else { return String::new() };
        let all = self.bytes * self.files.len() as u64 / LOOK;
        let mut blank = 0;
        for look in 0..LOOKS {
            // Spread evenly, and not at the beginnings of partitions.
            let at = (all * (2 * look + 1) / (2 * LOOKS)) * LOOK;
            match rustix::io::pread(self.file(), buffer.bytes_mut(), at) {
                Ok(count) if count == LOOK as usize => {}
                _ => return String::new(),
            }
            blank += u64::from(buffer.bytes_mut().iter().all(|byte| *byte == 0));
        }
        format!(" ({blank} of {LOOKS} sampled blocks hold only zeros)")
    }

    /// Drops what the page cache holds of the files.
    pub fn drop_cached(&self) -> anyhow::Result<()> {
        for file in &self.files {
            drop_cached(file).context("cannot drop the file from the page cache (posix_fadvise)")?;
        }
        Ok(())
    }

    /// Makes what was written durable.
    pub fn sync(&self) -> anyhow::Result<()> {
        self.files.iter().try_for_each(|file| rustix::fs::fsync(file).context("cannot sync the test file"))
    }

    /// The counters of the device that the files lie on; absent where there is none.
    pub fn counters(&self) -> Option<BlockDevice> {
        BlockDevice::open(Path::new("/"), &self.number()?)
    }

    /// Of the device that the files lie on, `8:1`.
    fn number(&self) -> Option<String> {
        let stat = rustix::fs::fstat(self.file()).ok()?;
        Some(numbers(if self.is_device { stat.st_rdev } else { stat.st_dev }))
    }
}

/// Major and minor: `8:16`.
fn numbers(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// Allocates a file and fills it with data that no device can compress or find twice.
fn fill(file: &OwnedFd, bytes: u64, seed: u64) -> anyhow::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(std::io::Error::from(error)).context("cannot allocate the file"),
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut piece = Mapping::private(PIECE, Pages::AsGiven, &CpuSet::default())?;
    let mut at = 0;
    while at < bytes {
        let count = (bytes - at).min(PIECE as u64) as usize;
        let data = &mut piece.bytes_mut()[..count];
        random.fill(data);
        let wrote = rustix::io::pwrite(file, data, at)
            .with_context(|| format!("write of {count} bytes at offset {at} failed"))?;
        ensure!(
            wrote == count,
            "write of {count} bytes at offset {at} came back with {wrote} bytes: is the disk full?"
        );
        at += count as u64;
    }
    Ok(())
}
