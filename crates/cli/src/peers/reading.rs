//! The results of many files, read on all CPUs, a few at a time: a file of summaries may be as
//! large as its fleet, and come through a pipe.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::slice::Iter;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::results::{Contents, Opened};
use compare::peers::{Fleet, HostResult};
use model::run_file::{self, SummaryLines};
use sys::thread;

/// Lines of a file of summaries that are read at once.
const LINES: usize = 64;

/// How many pieces a reader may be ahead of the slowest, and how long it waits then.
const AHEAD: usize = 32;
const PATIENCE: Duration = Duration::from_secs(60);

/// What a piece holds: results, and the file and why for those that cannot be used.
type Read = Vec<std::result::Result<HostResult, (String, String)>>;

/// What one reader takes in hand.
enum Piece {
    File(Opened, PathBuf),
    /// Lines of the file of that name, each with its number.
    Lines(String, Vec<(usize, Vec<u8>)>),
    /// A file that cannot be read, or not from here on.
    Unread(String, anyhow::Error),
}

/// What is to be read, in the order in which it was given.
struct Pieces<'f> {
    files: Iter<'f, PathBuf>,
    within: Option<(String, SummaryLines<Box<dyn std::io::BufRead + Send>>)>,
    ended: Option<Piece>,
    taken: usize,
}

impl Pieces<'_> {
    fn next(&mut self) -> Option<(usize, Piece)> {
        let piece = self.ended.take().or_else(|| self.lines()).or_else(|| self.open())?;
        self.taken += 1;
        Some((self.taken - 1, piece))
    }

    fn lines(&mut self) -> Option<Piece> {
        let (shown, lines) = self.within.as_mut()?;
        let (mut some, mut broken) = (Vec::with_capacity(LINES), None);
        while some.len() < LINES && broken.is_none() {
            match lines.next() {
                Some(Ok(line)) => some.push(line),
                Some(Err(error)) => broken = Some(error),
                None => break,
            }
        }
        let shown = shown.clone();
        if some.len() < LINES {
            self.within = None;
        }
        let broken = broken.map(|error| Piece::Unread(shown.clone(), error));
        if some.is_empty() {
            broken
        } else {
            self.ended = broken;
            Some(Piece::Lines(shown, some))
        }
    }

    fn open(&mut self) -> Option<Piece> {
        loop {
            let path = self.files.next()?;
            let shown = path.display().to_string();
            match Opened::of(path) {
                Err(error) => return Some(Piece::Unread(shown, error)),
                Ok(opened) if opened.is_summaries() => {
                    self.within = Some((shown, opened.lines()));
                    if let Some(lines) = self.lines() {
                        return Some(lines);
                    }
                }
                Ok(opened) => return Some(Piece::File(opened, path.clone())),
            }
        }
    }
}

/// The fleet so far, and results that were read early.
#[derive(Default)]
struct InOrder {
    fleet: Fleet,
    done: usize,
    waiting: BTreeMap<usize, Read>,
}

impl InOrder {
    fn put(&mut self, place: usize, read: Read) {
        self.waiting.insert(place, read);
        while let Some(read) = self.waiting.remove(&self.done) {
            self.done += 1;
            for found in read {
                match found {
                    Ok(result) => self.fleet.add(result),
                    Err(left_out) => self.fleet.left_out.push(left_out),
                }
            }
        }
    }
}

/// The fleet of the results in files.
pub fn fleet_of(files: &[PathBuf]) -> Fleet {
    let pieces = Mutex::new(Pieces { files: files.iter(), within: None, ended: None, taken: 0 });
    let (found, moved) = (Mutex::new(InOrder::default()), Condvar::new());
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    thread::run_in_parallel(threads, || {
        while let Some((place, piece)) = { contents(&pieces).next() } {
            let read = read(piece);
            let is_ahead = |found: &mut InOrder| place > found.done + AHEAD;
            let (mut found, _) = moved
                .wait_timeout_while(contents(&found), PATIENCE, is_ahead)
                .unwrap_or_else(PoisonError::into_inner);
            found.put(place, read);
            moved.notify_all();
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner).fleet
}

fn contents<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The results in a piece: summaries of runs, or whatever `compare` reads.
fn read(piece: Piece) -> Read {
    match piece {
        Piece::Lines(shown, lines) => {
            lines.into_iter().map(|(number, line)| of_line(&shown, number, &line)).collect()
        }
        Piece::Unread(shown, error) => vec![unread(&shown, &error)],
        Piece::File(opened, path) => match opened.contents() {
            Ok(Contents::Summaries(all)) => all.into_iter().map(|one| one.map(HostResult::from)).collect(),
            Ok(Contents::Arms(arms)) => arms.iter().map(|arm| Ok(HostResult::from(arm))).collect(),
            Err(error) => vec![unread(&path.display().to_string(), &error)],
        },
    }
}

fn of_line(shown: &str, number: usize, line: &[u8]) -> std::result::Result<HostResult, (String, String)> {
    match run_file::summary_line(line.trim_ascii()) {
        Ok(line) => {
            Ok(HostResult::from((*line.summary, line.file.unwrap_or_else(|| format!("{shown}#{number}")))))
        }
        Err(error) => unread(&format!("{shown}, line {number}"), &error),
    }
}

fn unread<T>(shown: &str, error: &anyhow::Error) -> std::result::Result<T, (String, String)> {
    Err((shown.to_string(), format!("{error:#}")))
}
