//! Progress: one line that is redrawn between visits, or plain lines without a terminal. Nothing is
//! drawn by a timer, because that would disturb a measurement.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::output::{self, eprint_line};
use report::plain::plain;
use session::measure::Progress;

pub struct Display {
    bar: Option<ProgressBar>,
    /// Without a terminal each case is named once.
    named: BTreeSet<String>,
}

/// A longer key than this is cut in its middle: knobs, by which a sweep's cells differ, are at its
/// end.
const KEY_MAX: usize = 100;
const KEY_BEGIN: usize = 30;

fn short(key: &str) -> String {
    let whole: Vec<char> = plain(key, usize::MAX).chars().collect();
    if whole.len() <= KEY_MAX {
        return whole.into_iter().collect();
    }
    let (begin, end) = (&whole[..KEY_BEGIN], &whole[whole.len() - (KEY_MAX - KEY_BEGIN - 1)..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

impl Display {
    pub fn new() -> Display {
        let redrawable = std::io::stderr().is_terminal() && !output::dumb_terminal();
        let bar = redrawable.then(|| {
            let bar = ProgressBar::new(0).with_style(look("  {wide_msg}"));
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(255));
            bar
        });
        Display { bar, named: BTreeSet::new() }
    }

    pub fn show(&mut self, progress: Progress) {
        match progress {
            Progress::Waiting { why, since } => match &self.bar {
                Some(bar) => {
                    bar.set_style(look("  {wide_msg}"));
                    bar.set_message(format!("waiting for a quiet host, {} s: {why}", since.as_secs()));
                    bar.tick();
                }
                None if since.as_secs() % 10 == 1 => {
                    eprint_line(&format!("  waiting for a quiet host, {} s so far: {why}", since.as_secs()));
                }
                None => {}
            },
            Progress::Visit { key, so_far, done, of, left } => match &self.bar {
                Some(bar) => {
                    bar.set_style(look("  {pos}/{len} {bar:24} {wide_msg}"));
                    bar.set_length(of as u64);
                    bar.set_position(done as u64);
                    let so_far = so_far.map_or(String::new(), |figure| format!("  {figure} so far"));
                    bar.set_message(match left.as_secs() {
                        0 => format!("{}{so_far}", short(key)),
                        _ => format!("{} left  {}{so_far}", seconds(left), short(key)),
                    });
                    bar.tick();
                }
                None => {
                    if self.named.insert(key.to_string()) {
                        eprint_line(&format!("  measuring {}  ({})", short(key), standing(done, of, left)));
                    }
                }
            },
            Progress::Failed { key, reason } => {
                self.line(&format!("  ! {}: {}", short(key), plain(reason.text(), 300)));
            }
            Progress::Note(text) => self.line(&format!("  ! {text}")),
        }
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprint_line(text),
        }
    }

    pub fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A line of this shape, cut to the terminal's width.
fn look(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    if output::style(true).unicode { style } else { style.progress_chars("#>-") }
}

/// The pass that begins, and the time of all if it is known: a foreign program may take any time.
fn standing(done: usize, of: usize, left: Duration) -> String {
    let pass = format!("pass {} of about {}", done + 1, of.max(done + 1));
    match left.as_secs() {
        0 => pass,
        _ => format!("{pass}, {} left", seconds(left)),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        s if s < 120 => format!("{s} s"),
        s => format!("{} min", s.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_of_an_unknown_time() {
        assert_eq!(standing(0, 10, Duration::from_millis(90)), "pass 1 of about 10");
        assert_eq!(standing(3, 10, Duration::from_secs(300)), "pass 4 of about 10, 5 min left");
        assert_eq!(standing(10, 10, Duration::ZERO), "pass 11 of about 11");
    }

    #[test]
    fn cells_of_a_sweep_are_told_apart() {
        let params = "bytes=100,fds=20,groups=10,loops=100,tasks=process,transport=socket";
        let key = |ns: u32| {
            format!("sched.hackbench({params})@free!min_granularity_ns={ns},wakeup_granularity_ns=0")
        };
        let shown = short(&key(2_250_000));
        assert_eq!(shown.chars().count(), KEY_MAX);
        assert!(
            shown.starts_with("sched.hackbench(bytes=") && shown.ends_with("wakeup_granularity_ns=0"),
            "{shown}"
        );
        assert_ne!(shown, short(&key(100_000)));
        assert_eq!((short("a@b"), short("a\x1b@b")), ("a@b".to_string(), "a\\x1b@b".to_string()));
    }
}
