//! The calls that programs make most: reading and writing a word, asking after a file, opening one.

use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;

use anyhow::Context;
use rustix::fs::{CWD, Mode, OFlags, Stat};

use super::{answers, file_system};
use crate::{Benchmark, Point, Sampler, check_answer};
use model::Case;
use model::vocabulary::kernel as ids;

pub const WRITE: Benchmark = Benchmark {
    id: ids::SYSCALL_WRITE,
    title: "Write to /dev/null",
    about: "Time to write 8 bytes to /dev/null. It is a system call, finding the open file and checking the range.",
    reading: "Lower is better: 20–60 ns above syscall.getpid. More is due to the kernel's checks on writes: security \
              modules, audit, or a container's seccomp filters. No disk or buffer takes part.",
    method: "As lmbench's simple write. Each call must take 8 bytes.",
    source: file!(),
    run: write,
    ..Benchmark::PINNED
};

pub const READ: Benchmark = Benchmark {
    id: ids::SYSCALL_READ,
    title: "Read from /dev/zero",
    about: "Time to read 8 bytes from /dev/zero. The kernel finds the open file and writes into the caller's memory.",
    reading: "Lower is better: 20–80 ns above syscall.getpid, the cost of any read whose data is in memory. What it \
              takes more than syscall.write is access to user memory (SMAP on x86, PAN on ARM).",
    method: "As lmbench's simple read. The word is set to another value before each call and must be zero \
             afterwards.",
    source: file!(),
    run: read,
    ..Benchmark::PINNED
};

pub const STAT: Benchmark = Benchmark {
    id: ids::SYSCALL_STAT,
    title: "stat",
    about: "Time to get a file's attributes by its name, one component below the current directory.",
    reading: "Lower is better: 0.2–0.6 µs for the call, hashing the name, one look-up and 144 bytes of attributes. \
              Each further component of a path costs 20–60 ns. Network and overlay filesystems add to it, and so do \
              security modules.",
    method: "The file is Assay's own executable, so nothing is created. Its name is in the kernel's cache after the \
             first call. Each answer must name the same file with the same size.",
    source: file!(),
    run: stat,
    ..Benchmark::PINNED
};

pub const FSTAT: Benchmark = Benchmark {
    id: ids::SYSCALL_FSTAT,
    title: "fstat",
    about: "Time to get the attributes of an open file, the same file as in syscall.stat, without looking up a name.",
    reading: "Lower is better: 60–200 ns above syscall.getpid. The difference to syscall.stat is the cost of looking \
              up one name.",
    method: "Each answer must name the same file with the same size.",
    source: file!(),
    run: fstat,
    ..Benchmark::PINNED
};

pub const OPEN_CLOSE: Benchmark = Benchmark {
    id: ids::SYSCALL_OPEN_CLOSE,
    title: "open and close",
    about: "Time to open a file by name for reading and to close it, one component below the current directory.",
    reading: "Lower is better: 0.5–1.5 µs for a name look-up, a file object and its release. Security modules, audit \
              and file notification (fanotify, virus scanners) show here first. Network filesystems ask their \
              server.",
    method: "The file is that of syscall.stat. Each open must return the same descriptor, the lowest free one, which \
             shows that the close freed it.",
    source: file!(),
    run: open_close,
    ..Benchmark::PINNED
};

fn write(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let null = open_device("/dev/null", OFlags::WRONLY)?;
    let word = 0x5a5a_5a5a_5a5a_5a5au64.to_ne_bytes();
    answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "a write of 8 bytes to /dev/null", 8, || {
        rustix::io::write(&null, black_box(&word))
    })?;
    Ok(())
}

fn read(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let zero = open_device("/dev/zero", OFlags::RDONLY)?;
    let mut word = [0u8; 8];
    answers(
        sampler,
        Point::new(ids::metric::LATENCY, 1.0),
        "a read of 8 bytes of /dev/zero",
        (8, 0),
        || {
            word = 0x5a5a_5a5a_5a5a_5a5au64.to_ne_bytes();
            let bytes = rustix::io::read(&zero, black_box(&mut word))?;
            Ok((bytes, u64::from_ne_bytes(word)))
        },
    )?;
    Ok(())
}

fn open_device(path: &str, flags: OFlags) -> anyhow::Result<rustix::fd::OwnedFd> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())
        .with_context(|| format!("cannot open {path}"))
}

/// The identity of a file and its size: stat must return these each time.
fn identity(stat: Stat) -> (u64, u64, i64) {
    (stat.st_dev, stat.st_ino, stat.st_size)
}

/// Goes to the directory of this very program; its name there. Notes the file system.
fn beside_ourselves(sampler: &mut Sampler) -> anyhow::Result<CString> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
        anyhow::bail!("{} is not a file in a directory", program.display());
    };
    rustix::process::chdir(folder)
        .with_context(|| format!("cannot change to directory {}", folder.display()))?;
    let name = CString::new(name.as_bytes()).context("the program's name holds a zero byte")?;
    let file = open(&name).with_context(|| format!("cannot open {name:?}, this program's file"))?;
    sampler.facts().notes.push(format!("the file is on {}", file_system(file)));
    Ok(name)
}

fn stat(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let name = beside_ourselves(sampler)?;
    let first =
        rustix::fs::stat(&name).with_context(|| format!("cannot stat {name:?}, this program's file"))?;
    check_answer(first.st_size > 0, || format!("this program's file {name:?} is empty"))?;
    answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "stat", identity(first), || {
        rustix::fs::stat(black_box(&name)).map(identity)
    })?;
    Ok(())
}

fn fstat(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let name = beside_ourselves(sampler)?;
    let file = open(&name).with_context(|| format!("cannot open {name:?}, this program's file"))?;
    let first = rustix::fs::fstat(&file).context("cannot fstat an open file")?;
    check_answer(first.st_size > 0, || format!("this program's file {name:?} is empty"))?;
    answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "fstat", identity(first), || {
        rustix::fs::fstat(black_box(&file)).map(identity)
    })?;
    Ok(())
}

fn open(name: &CString) -> rustix::io::Result<rustix::fd::OwnedFd> {
    rustix::fs::openat(CWD, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

fn open_close(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    use std::os::fd::AsRawFd;
    let name = beside_ourselves(sampler)?;
    let number = {
        let file = open(&name).with_context(|| format!("cannot open {name:?}, this program's file"))?;
        file.as_raw_fd()
    };
    // A close that failed would leave its number in use, and the next open would give another one.
    answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "open", number, || {
        let file = open(black_box(&name))?;
        Ok(file.as_raw_fd())
    })?;
    Ok(())
}
