//! Signals: the first asks for an orderly end, a later one ends the run at once.

use super::output::eprint_line;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use knobs::EmergencyRestore;
use sys::{events, process, thread};

/// Further signals so soon after the first are the same wish: `timeout` signals the process and
/// then its group.
const REPEAT_GAP: Duration = Duration::from_millis(500);

/// The first Ctrl-C (or SIGTERM, SIGHUP) asks for an orderly end, a later one ends at once:
/// children die with us.
pub fn catch_signals(knobs: EmergencyRestore) -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    // With nohup the run should outlive the terminal.
    let caught: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| *signal != SIGHUP || !process::is_ignored(SIGHUP))
        .collect();
    let mut signals = signal_hook::iterator::Signals::new(&caught).context("cannot catch signals")?;
    let asked = Arc::clone(&flag);
    // A thread of the parent, which only waits while its children measure.
    let waiting = thread::try_spawn(move || {
        let mut first = None;
        for _ in signals.forever() {
            match first {
                None => first = Some(Instant::now()),
                Some(first) if first.elapsed() > REPEAT_GAP => knobs.restore_and_exit(130),
                Some(_) => {}
            }
            asked.store(true, Ordering::Relaxed);
        }
    });
    if let Err(error) = waiting {
        events::exit_on_second(caught.into_iter(), REPEAT_GAP, 130, &flag).context("cannot catch signals")?;
        eprint_line(&format!(
            "  no thread can wait for signals ({error}): Ctrl-C still ends the run cleanly, but a second \
              one leaves settings to the watchdog or `assay restore`"
        ));
    }
    Ok(flag)
}
