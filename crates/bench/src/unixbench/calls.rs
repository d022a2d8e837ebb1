//! What one process asks of the kernel again and again: a pipe to itself, the mix of system calls,
//! children that end at once, programs that become themselves.

use std::io::{Read, Write};
use std::os::fd::AsFd;

use anyhow::Context;
use rustix::fs::{Mode, OFlags};

use super::super::check_answer;
use super::copies::Loops;
use sys::exec_chain::ExecChain;
use sys::{c_calls, spawn};

/// Bytes that go through the pipe in one piece.
const PIECE: usize = 512;

/// A pipe that one process writes 512 bytes to and reads them back from.
pub fn pipe() -> anyhow::Result<Loops> {
    // Its ends go through the C library, as the classic does.
    let (mut reads, mut writes) = std::io::pipe().context("cannot make a pipe")?;
    let (mut sent, mut received) = ([0u8; PIECE], [0u8; PIECE]);
    let mut turn = 0u64;
    Ok(Box::new(move |loops: u64| {
        for _ in 0..loops {
            turn += 1;
            sent[..8].copy_from_slice(&turn.to_le_bytes());
            let wrote = writes.write(&sent).context("cannot write to the pipe")?;
            let read = reads.read(&mut received).context("cannot read from the pipe")?;
            if (wrote, read) != (PIECE, PIECE) || received[..8] != sent[..8] {
                check_answer(false, || {
                    format!("{wrote} bytes went into the pipe, {read} came out: {:?}", &received[..8])
                })?;
            }
        }
        Ok(())
    }))
}

/// dup and close, getpid, getuid, umask: none of them does anything.
pub fn system_calls() -> anyhow::Result<Loops> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open("/dev/null", flags, Mode::empty()).context("cannot open /dev/null")?;
    let (process, user) = (i64::from(std::process::id()), rustix::process::getuid().as_raw());
    // Reading the mask takes setting it: the old one is put back at once, and set from then on.
    let mask = c_calls::mask(0o077);
    c_calls::mask(mask);
    Ok(Box::new(move |loops: u64| {
        let mut wrong = 0u64;
        for _ in 0..loops {
            c_calls::duplicate_and_close(file.as_fd()).context("cannot duplicate a descriptor")?;
            let right =
                c_calls::process() == process && c_calls::user() == user && c_calls::mask(mask) == mask;
            wrong += u64::from(!right);
        }
        check_answer(wrong == 0, || {
            format!("{wrong} of {loops} times the kernel returned a wrong process id, user or mask")
        })
    }))
}

/// Children that end at once, each waited for.
pub fn children() -> anyhow::Result<Loops> {
    Ok(Box::new(|loops: u64| {
        for _ in 0..loops {
            let ended = spawn::fork_and_exit(0).context("cannot fork")?;
            if ended.code() != Some(0) {
                check_answer(false, || format!("a child ended with {ended} instead of 0"))?;
            }
        }
        Ok(())
    }))
}

/// A program that becomes itself.
pub fn programs() -> anyhow::Result<Loops> {
    let chain = ExecChain::new().context("cannot make a program that executes itself")?;
    Ok(Box::new(move |loops: u64| {
        let run = chain.run(loops).context("cannot start the program that executes itself")?;
        check_answer(run.is_right(), || {
            format!("{} of {loops} execve calls were left; the program ended with {}", run.left, run.ended)
        })
    }))
}
