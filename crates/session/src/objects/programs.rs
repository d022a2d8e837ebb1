//! Programs with a visit's mark in their environment, which is random and inherited by children,
//! and the visit's process, by number and start time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal};

use knobs::start_ticks_of;

/// The variable that holds the mark.
pub const MARK: &str = "ASSAY_GUARD";

/// How long killed processes may take to end.
const MAX_EXIT_WAIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(2);

/// A process handle (pidfd where the kernel has them), which cannot refer to a successor.
struct Process {
    pid: Pid,
    handle: Option<OwnedFd>,
}

impl Process {
    fn of(pid: u32) -> Option<Process> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => Some(Process { pid, handle: Some(handle) }),
            Err(rustix::io::Errno::SRCH) => None,
            Err(_) => Some(Process { pid, handle: None }),
        }
    }

    fn signal(&self, signal: Signal) {
        // Already ended is fine.
        let _ = match &self.handle {
            Some(handle) => rustix::process::pidfd_send_signal(handle, signal),
            None => rustix::process::kill_process(self.pid, signal),
        };
    }
}

fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_marked(pid: u32, word: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == word)
}

fn parent_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Stops all processes with the mark and their children, until a scan finds no new one: none
/// escapes by losing its parent. Returns their number.
fn stop(word: &[u8], stopped: &mut BTreeMap<u32, Process>) {
    loop {
        let mut found = false;
        for pid in numbers() {
            if pid == std::process::id() || stopped.contains_key(&pid) {
                continue;
            }
            // The handle first, so that later checks concern this process.
            let Some(process) = Process::of(pid) else { continue };
            let theirs = || parent_of(pid).is_some_and(|parent| stopped.contains_key(&parent));
            if is_marked(pid, word) || theirs() {
                process.signal(Signal::STOP);
                stopped.insert(pid, process);
                found = true;
            }
        }
        if !found {
            return;
        }
    }
}

/// Kills all processes with this mark; returns their number.
pub fn end_marked(mark: &str) -> io::Result<usize> {
    let word = format!("{MARK}={mark}").into_bytes();
    let (limit, mut ended) = (Instant::now() + MAX_EXIT_WAIT, 0);
    loop {
        let mut stopped = BTreeMap::new();
        stop(&word, &mut stopped);
        if stopped.is_empty() {
            return Ok(ended);
        }
        if Instant::now() > limit {
            return Err(io::Error::new(ErrorKind::TimedOut, "killed processes have not ended"));
        }
        ended = ended.max(stopped.len());
        stopped.values().for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(POLL);
    }
}

/// Waits at most this long for a visit's process, then kills it with its group.
pub fn end_visit(pid: u32, start_ticks: u64, patience: Duration) {
    let lives = || start_ticks_of(pid) == Some(start_ticks);
    let end = Instant::now() + patience;
    while lives() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
    let Some(process) = Process::of(pid).filter(|_| lives()) else { return };
    let _ = rustix::process::kill_process_group(process.pid, Signal::KILL);
    process.signal(Signal::KILL);
    let end = Instant::now() + MAX_EXIT_WAIT;
    while lives() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn whoever_carries_the_mark_is_ended_with_what_he_started() {
        let mark = format!("{}-{}", std::process::id(), fastrand::u64(..));
        // One goes on with an empty environment, below one that has the mark; two get away from
        // their parents.
        let script = "setsid sleep 300 & (setsid sleep 300 &); env -i sleep 300 & trap '' TERM; wait";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env(MARK, &mark).stdin(Stdio::null());
        let mut marked = command.spawn().expect("a shell");
        let mut other = command.env(MARK, format!("{mark}0")).spawn().expect("a shell");
        let word = |mark: &str| format!("{MARK}={mark}").into_bytes();
        let count = |mark: &str| numbers().into_iter().filter(|pid| is_marked(*pid, &word(mark))).count();
        let patience = Instant::now() + Duration::from_secs(20);
        while (count(&mark) < 3 || count(&format!("{mark}0")) < 3) && Instant::now() < patience {
            std::thread::sleep(POLL);
        }
        // The shell itself stays a zombie until this process waits for it.
        assert!(end_marked(&mark).expect("ended") >= 3);
        assert_eq!(count(&mark), 0);
        assert!(!marked.wait().expect("waited for").success());
        assert!(count(&format!("{mark}0")) >= 3, "a mark that begins alike is another one");
        end_marked(&format!("{mark}0")).expect("ended");
        other.wait().expect("waited for");
        assert_eq!(end_marked(&mark).expect("nobody"), 0);
    }

    #[test]
    fn a_visit_of_another_start_is_left_alone() {
        let mut child = Command::new("/bin/sleep").arg("300").spawn().expect("a child");
        let start = start_ticks_of(child.id()).expect("it lives");
        end_visit(child.id(), start + 1, Duration::ZERO);
        assert!(child.try_wait().expect("a child").is_none());
        end_visit(child.id(), start, Duration::ZERO);
        assert!(!child.wait().expect("waited for").success());
    }
}
