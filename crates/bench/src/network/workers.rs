//! What tasks that move data report, and those that move datagrams: one process per stream and
//! direction, in loops that move, count and check a sample of what came. Those of TCP:
//! `streams.rs`.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::messages::Transfer;
use super::sequence::Sequence;
use sys::crew::Lines;
use sys::datagrams::{self, Batch};

/// What a leader and its tasks share: a line with a word each to stop senders and receivers, and a
/// line for each stream and direction.
pub struct Board(Lines);

/// Words of the first line.
pub const SENDERS: usize = 0;
pub const RECEIVERS: usize = 1;
const FIRST_TASK: usize = 1;

/// Words of a task's line.
pub const BYTES: usize = 0;
pub const MESSAGES: usize = 1;
const REORDERED: usize = 2;
const DUPLICATED: usize = 3;
pub const WRONG: usize = 4;
const ENDED: usize = 5;
const BUFFERS: usize = 6;

/// How a task ended.
const WHOLE: u64 = 1;
const CUT: u64 = 2;

impl Board {
    pub fn new(tasks: usize) -> anyhow::Result<Board> {
        Ok(Board(Lines::new(FIRST_TASK + tasks)?))
    }

    fn word(&self, task: usize, word: usize) -> &std::sync::atomic::AtomicU64 {
        self.0.word(FIRST_TASK + task, word)
    }

    /// Senders end after the message that they are at.
    pub fn stop_senders(&self) {
        self.0.word(0, SENDERS).store(1, Release);
    }

    /// Receivers that no end of a stream reaches end.
    pub fn stop_receivers(&self) {
        self.0.word(0, RECEIVERS).store(1, Release);
    }

    pub fn stopped(&self, whom: usize) -> bool {
        self.0.word(0, whom).load(Acquire) != 0
    }

    pub fn bytes(&self, task: usize) -> u64 {
        self.word(task, BYTES).load(Relaxed)
    }

    pub fn messages(&self, task: usize) -> u64 {
        self.word(task, MESSAGES).load(Relaxed)
    }

    /// Messages that came in each of the kernel's buffers, on average; 1 where nothing came.
    pub fn messages_a_buffer(&self, tasks: impl Iterator<Item = usize> + Clone) -> f64 {
        let sum =
            |word: usize| tasks.clone().map(|task| self.word(task, word).load(Relaxed)).sum::<u64>() as f64;
        ((sum(MESSAGES) + sum(DUPLICATED)) / sum(BUFFERS).max(1.0)).max(1.0)
    }

    pub fn reordered(&self, task: usize) -> u64 {
        self.word(task, REORDERED).load(Relaxed)
    }

    pub fn duplicated(&self, task: usize) -> u64 {
        self.word(task, DUPLICATED).load(Relaxed)
    }

    /// Where something came that was not sent, counted from 1.
    pub fn wrong(&self, task: usize) -> Option<u64> {
        Some(self.word(task, WRONG).load(Relaxed)).filter(|at| *at > 0)
    }

    pub fn tell(&self, line: usize, word: usize, value: u64) {
        self.word(line, word).store(value, Relaxed);
    }

    /// What a line stands for has ended, and did all that it was to do, or not.
    pub fn end(&self, line: usize, whole: bool) {
        self.word(line, ENDED).store(if whole { WHOLE } else { CUT }, Release);
    }

    pub fn ended(&self, task: usize) -> bool {
        self.word(task, ENDED).load(Acquire) != 0
    }

    /// It did all that it was to do.
    pub fn whole(&self, task: usize) -> bool {
        self.word(task, ENDED).load(Acquire) == WHOLE
    }
}

/// The task of a stream of datagrams.
pub struct Task<'a> {
    pub board: &'a Board,
    pub number: usize,
    /// Share of its time that it burns CPU.
    pub burn: f64,
}

impl Task<'_> {
    fn tell(&self, word: usize, value: u64) {
        self.board.tell(self.number, word, value);
    }

    pub fn send(&self, spec: &Transfer, socket: impl AsFd, stream: u32) {
        let whole = self.send_datagrams(spec, &socket, stream);
        self.board.end(self.number, whole);
    }

    pub fn receive(&self, spec: &Transfer, socket: impl AsFd, stream: u32) {
        let whole = self.receive_datagrams(spec, &socket, stream);
        self.board.end(self.number, whole);
    }

    fn send_datagrams(&self, spec: &Transfer, socket: &impl AsFd, stream: u32) -> bool {
        let each = spec.bytes as usize;
        let rate = spec.rate.map(|bits| bits / 8.0 / f64::from(spec.streams));
        // A paced sender hands over a millisecond's worth at once at most, a free one as much as a
        // call takes.
        let at_once = rate.map_or(usize::MAX, |rate| ((rate * 1e-3) as usize / each).max(1));
        let mut segments = (LARGEST_SEGMENTED / each).min(SEGMENTS).min(at_once).max(1);
        if segments > 1 && datagrams::segment(socket.as_fd(), spec.bytes).is_err() {
            segments = 1;
        }
        let calls = |segments: usize| (at_once / segments).clamp(1, CALLS);
        let mut batch = Batch::new(calls(segments), segments * each);
        let (mut next, mut refusals) = (0u64, 0u32);
        let mut pace = rate.map(Pace::new);
        let mut fire = CpuBurner::new(self.burn);
        while !self.board.stopped(SENDERS) {
            for index in 0..batch.count() {
                for (segment, message) in batch.buffer_mut(index).chunks_exact_mut(each).enumerate() {
                    let number = next + (index * segments + segment) as u64;
                    message[..16].copy_from_slice(&head(spec.test, stream, number));
                }
            }
            if let Some(pace) = &mut pace {
                pace.wait();
            }
            match batch.send(socket.as_fd(), segments * each) {
                Ok(buffers) => {
                    next += (buffers * segments) as u64;
                    refusals = 0;
                    if let Some(pace) = &mut pace {
                        pace.went((buffers * segments * each) as f64);
                    }
                }
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    // The path's MTU is smaller than a message, or the device cannot: they go one
                    // by one.
                    Some(Errno::INVAL | Errno::IO | Errno::MSGSIZE) if segments > 1 => {
                        if datagrams::segment(socket.as_fd(), 0).is_err() {
                            return false;
                        }
                        segments = 1;
                        batch = Batch::new(calls(1), each);
                    }
                    // Queues that are full, and a receiver that is gone for a moment.
                    Some(Errno::NOBUFS | Errno::AGAIN | Errno::CONNREFUSED) if refusals < REFUSALS => {
                        refusals += 1;
                        std::thread::sleep(Duration::from_micros(50));
                    }
                    _ => return false,
                },
            }
            self.tell(MESSAGES, next);
            self.tell(BYTES, next * each as u64);
            fire.burn();
        }
        true
    }

    fn receive_datagrams(&self, spec: &Transfer, socket: &impl AsFd, stream: u32) -> bool {
        let each = spec.bytes as usize;
        let mut batch = Batch::new(RECEIVED, 1 << 16);
        let mut sequence = Sequence::new();
        let mut fire = CpuBurner::new(self.burn);
        let mut buffers = 0;
        while !self.board.stopped(RECEIVERS) {
            let count = match batch.receive(socket.as_fd()) {
                Ok(count) => count,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR | Errno::AGAIN | Errno::CONNREFUSED) => 0,
                    _ => return false,
                },
            };
            for index in 0..count {
                for message in batch.received(index).chunks_exact(each) {
                    match number_of(message, spec.test, stream) {
                        Some(number) => sequence.note(number),
                        // A greeting of this test that was sent twice.
                        None if message.starts_with(b"assaydat") => {}
                        None => self.tell(WRONG, sequence.received + 1),
                    }
                }
            }
            self.tell(MESSAGES, sequence.received);
            self.tell(BYTES, sequence.received * each as u64);
            self.tell(REORDERED, sequence.reordered);
            self.tell(DUPLICATED, sequence.duplicated);
            buffers += count as u64;
            self.tell(BUFFERS, buffers);
            if !self.board.stopped(SENDERS) {
                fire.burn();
            }
        }
        true
    }
}

/// Datagrams that the kernel cuts one buffer into, its largest, and buffers in one call.
const SEGMENTS: usize = 64;
const LARGEST_SEGMENTED: usize = 65_507;
const CALLS: usize = 8;
/// Buffers that are received in one call.
const RECEIVED: usize = 16;
/// Refusals one after another with which a sender gives up: 50 ms and more.
const REFUSALS: u32 = 1000;

/// A datagram's first bytes.
fn head(test: u32, stream: u32, number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&test.to_be_bytes());
    bytes[4..8].copy_from_slice(&stream.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn number_of(message: &[u8], test: u32, stream: u32) -> Option<u64> {
    let start = head(test, stream, 0);
    let number = message.strip_prefix(&start[..8])?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*number))
}

/// Burns CPU for a share of all time, a little after each message. What counts is CPU time: an end
/// that has less CPU than that burns all of it.
pub struct CpuBurner {
    share: f64,
    begin: Instant,
    burnt: Duration,
}

/// Longest busy time after one message.
const LONGEST_FIRE: Duration = Duration::from_millis(20);

/// CPU time of this thread so far.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}

impl CpuBurner {
    pub fn new(share: f64) -> CpuBurner {
        CpuBurner { share, begin: Instant::now(), burnt: Duration::ZERO }
    }

    pub fn burn(&mut self) {
        if self.share <= 0.0 {
            return;
        }
        let (start, before) = (Instant::now(), used());
        loop {
            // In this order: no more is burnt than time has passed, even if other work takes the
            // CPU in between.
            let burnt = self.burnt + used().saturating_sub(before);
            let now = Instant::now();
            let enough = burnt.as_secs_f64() >= self.share * (now - self.begin).as_secs_f64();
            if enough || now - start > LONGEST_FIRE {
                self.burnt = burnt;
                return;
            }
            std::hint::spin_loop();
        }
    }
}

/// A rate of bytes, by the clock: what was missed by more than a few ms is not made up for.
struct Pace {
    ns_per_byte: f64,
    begin: Instant,
    due_ns: f64,
}

/// As much is made up for, ns.
const CATCH_UP_NS: f64 = 5e6;
/// Shortest time that sleeping takes.
const SLEEP: Duration = Duration::from_micros(80);

impl Pace {
    fn new(bytes_per_second: f64) -> Pace {
        Pace { ns_per_byte: 1e9 / bytes_per_second, begin: Instant::now(), due_ns: 0.0 }
    }

    fn wait(&mut self) {
        loop {
            let now = self.begin.elapsed().as_nanos() as f64;
            self.due_ns = self.due_ns.max(now - CATCH_UP_NS);
            if now >= self.due_ns {
                return;
            }
            let left = Duration::from_nanos((self.due_ns - now) as u64);
            match left > SLEEP {
                // Short enough that a stop is seen in time.
                true => std::thread::sleep((left - SLEEP).min(Duration::from_millis(20))),
                false => std::hint::spin_loop(),
            }
        }
    }

    fn went(&mut self, bytes: f64) {
        self.due_ns += bytes * self.ns_per_byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_name_test_stream_and_number() {
        let message = head(7, 2, 99);
        assert_eq!(number_of(&message, 7, 2), Some(99));
        assert_eq!(number_of(&message, 7, 3), None);
        assert_eq!(number_of(&message, 8, 2), None);
        for length in 0..16 {
            assert_eq!(number_of(&message[..length], 7, 2), None);
        }
    }

    #[test]
    fn a_fire_burns_its_share_of_all_time() {
        let mut fire = CpuBurner::new(0.2);
        // Where others have the CPU it needs more messages to catch up.
        let caught_up = (0..1000).filter(|_| {
            std::thread::sleep(Duration::from_millis(4));
            fire.burn();
            let share = fire.burnt.as_secs_f64() / fire.begin.elapsed().as_secs_f64();
            assert!(share < 0.25, "{share}");
            share > 0.15
        });
        assert_eq!(caught_up.take(5).count(), 5);
    }

    #[test]
    fn a_fire_that_lacks_the_cpu_goes_on_after_the_next_message() {
        // More than all time, as for an end that has a fifth of a CPU.
        let mut fire = CpuBurner::new(2.0);
        let begin = Instant::now();
        fire.burn();
        assert!(begin.elapsed() >= LONGEST_FIRE);
    }
}
