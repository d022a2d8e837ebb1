//! Waiting that ends when the pass is interrupted.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use sys::events::Events;
use sys::thread;

pub struct Waiter {
    events: Events,
}

/// How often a call that may take long is checked.
const LOOK: Duration = Duration::from_millis(50);

impl Waiter {
    pub fn new() -> anyhow::Result<Waiter> {
        Ok(Waiter { events: Events::catch().context("cannot catch signals")? })
    }

    /// Waits this long, or until a child ends; an error if this pass is interrupted.
    pub fn pause(&mut self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        self.check()?;
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut polled = [PollFd::new(&self.events, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            // A signal in between is seen by the check.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait"),
        }
        self.events.clear();
        self.check()
    }

    fn check(&self) -> anyhow::Result<()> {
        match self.events.asked_to_end() {
            true => bail!("this pass was interrupted"),
            false => Ok(()),
        }
    }

    /// Makes a call that may take minutes, in a thread that is abandoned when `look` or the waiter
    /// says so.
    pub fn call<Answer: Send + 'static>(
        &mut self,
        call: impl FnOnce() -> Answer + Send + 'static,
        mut look: impl FnMut() -> anyhow::Result<()>,
    ) -> anyhow::Result<Answer> {
        let (sender, receiver) = channel();
        thread::try_spawn(move || sender.send(call()))
            .context("cannot start a thread that waits for Flink's answer")?;
        loop {
            self.check()?;
            look()?;
            match receiver.recv_timeout(LOOK) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("a call ended without an answer"),
            }
        }
    }
}
