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
    title: "Write a word to /dev/null",
    about: "One word of 8 bytes written to /dev/null, which throws it away: the bare call, finding the open file and \
            checking the range, without any device behind it (lmbench's simple write). That each call took 8 bytes is \
            checked.",
    reading: "20 to 60 ns above syscall.getpid. What is more than that belongs to the kernel's checks around every \
              write: security modules, audit, seccomp filters of a container. No disk or buffer is involved.",
    source: file!(),
    run: write,
    ..Benchmark::PINNED
};

pub const READ: Benchmark = Benchmark {
    id: ids::SYSCALL_READ,
    title: "Read a word of /dev/zero",
    about: "One word of 8 bytes read from /dev/zero (lmbench's simple read). Before each call the word is set to \
            something else, and afterwards it must be zero: the kernel has to find the open file and to write into \
            the caller's memory.",
    reading: "20 to 80 ns above syscall.getpid: the price of any read whose data is at hand. Beside syscall.write it \
              shows what the kernel's access to user memory costs on this CPU (SMAP on x86, PAN on ARM).",
    source: file!(),
    run: read,
    ..Benchmark::PINNED
};

pub const STAT: Benchmark = Benchmark {
    id: ids::SYSCALL_STAT,
    title: "Stat of a file by name",
    about: "Asks for a file's attributes by its name, one component below the current directory, so that the depth is \
            the same on every machine. The file is this program's own: nothing has to be created, nothing can be left \
            behind. Its entry is in the kernel's cache of names after the first call. Each answer must name the same \
            file with the same size.",
    reading: "0.2 to 0.6 µs: the call, copying and hashing the name, one step through the cache of names, copying 144 \
              bytes of attributes out. Each further component of a path costs 20 to 60 ns more. A network or overlay \
              file system adds its own; security modules add a check for each component.",
    source: file!(),
    run: stat,
    ..Benchmark::PINNED
};

pub const FSTAT: Benchmark = Benchmark {
    id: ids::SYSCALL_FSTAT,
    title: "Stat of an open file",
    about: "Asks for an open file's attributes, the same file as in syscall.stat: no name has to be looked up. Each \
            answer must name the same file with the same size.",
    reading: "What remains of syscall.stat without the path: 60 to 200 ns above syscall.getpid. The difference \
              between both is the price of looking up one name.",
    source: file!(),
    run: fstat,
    ..Benchmark::PINNED
};

pub const OPEN_CLOSE: Benchmark = Benchmark {
    id: ids::SYSCALL_OPEN_CLOSE,
    title: "Open and close",
    about: "Opens a file by its name, one component below the current directory, for reading, and closes it again: \
            two calls. The file is the one of syscall.stat. Each open must give the same descriptor number, the \
            lowest free one, which shows that the close before freed it.",
    reading: "0.5 to 1.5 µs for both: the name's lookup as in syscall.stat, a fresh file object and its release. \
              Security modules, audit and file notification (fanotify, virus scanners) show here first, and network \
              file systems ask their server.",
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

/// What tells a file from every other, and its size: what stat must answer each time.
fn identity(stat: Stat) -> (u64, u64, i64) {
    (stat.st_dev, stat.st_ino, stat.st_size)
}

/// Goes to the directory of this very program; its name there. Notes the file system.
fn beside_ourselves(sampler: &mut Sampler) -> anyhow::Result<CString> {
    let program = std::env::current_exe().context("cannot tell where this program's file is")?;
    let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
        anyhow::bail!("{} names no file in a directory", program.display());
    };
    rustix::process::chdir(folder).with_context(|| format!("cannot go to {}", folder.display()))?;
    let name = CString::new(name.as_bytes()).context("the program's name holds a zero byte")?;
    let file = open(&name).with_context(|| format!("cannot open {name:?}, this program's file"))?;
    sampler.facts().notes.push(format!("the file is on {}", file_system(file)));
    Ok(name)
}

fn stat(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let name = beside_ourselves(sampler)?;
    let first =
        rustix::fs::stat(&name).with_context(|| format!("cannot ask after {name:?}, this program's file"))?;
    check_answer(first.st_size > 0, || format!("this program's file {name:?} is empty"))?;
    answers(sampler, Point::new(ids::metric::LATENCY, 1.0), "stat", identity(first), || {
        rustix::fs::stat(black_box(&name)).map(identity)
    })?;
    Ok(())
}

fn fstat(_: &Case, sampler: &mut Sampler) -> anyhow::Result<()> {
    let name = beside_ourselves(sampler)?;
    let file = open(&name).with_context(|| format!("cannot open {name:?}, this program's file"))?;
    let first = rustix::fs::fstat(&file).context("cannot ask after an open file")?;
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
