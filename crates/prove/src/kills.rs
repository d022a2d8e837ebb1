//! The table on kill -9 in the middle of a sweep that turns real knobs of this host.

use std::time::Duration;

use super::{Section, option};
use crate::statistics::{row, titled};
use testkit::killing::{Kill, KillTarget, KilledSweep};

pub const SECTIONS: &[Section] =
    &[Section { name: "kills", title: "kill -9 at random moments of a sweep", run: kills }];

const KILLS: usize = 200;
/// Knobs are restored by then, if that needs no further command.
const BACK: Duration = Duration::from_secs(2);

fn kills() -> String {
    let wanted = option("--kills").and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut bout = match KilledSweep::new(testkit::program()) {
        Ok(bout) => bout,
        Err(why) => return format!("Not made on this machine: {why}.\n"),
    };
    let mut random = fastrand::Rng::with_seed(200);
    let mut all: Vec<Kill> = Vec::new();
    while all.len() < wanted {
        let way = KillTarget::TEN[all.len() % KillTarget::TEN.len()];
        // Now and then before anything is turned: the first second goes to the gate.
        let after = Duration::from_millis(random.u64(20..4000));
        if let Some(kill) = bout.kill(way, after) {
            kill.faults.iter().for_each(|fault| eprintln!("kill {} ({way:?}): {fault}", all.len()));
            all.push(kill);
        }
    }
    bout.finish();
    let rows = [
        ("the session", "its watchdog", KillTarget::Session),
        ("its process group", "its watchdog", KillTarget::Group),
        ("the session and its watchdog", "`assay restore`", KillTarget::Restore),
        ("the session and its watchdog", "the same command again", KillTarget::NextStart),
    ]
    .into_iter()
    .map(|(killed, by, way)| {
        row(killed, by, &all.iter().filter(|kill| kill.target == way).collect::<Vec<_>>())
    });
    let header = "killed | puts back | kills | with one knob turned | with both | every knob back, median | at \
         most | finished visits lost, knobs left or not resumed";
    let faults = all.iter().map(|kill| kill.faults.len()).sum::<usize>();
    let late = all
        .iter()
        .filter(|kill| matches!(kill.target, KillTarget::Session | KillTarget::Group) && kill.back > BACK)
        .count();
    let visits = all.iter().map(|kill| kill.visits).max().unwrap_or(0);
    format!(
        "{}\nOf {} kills {faults} went wrong; after {late} the watchdog took longer than {} s. {} sweeps came to their \
         end, the longest interrupted one with {visits} visits kept.\n",
        titled(header, rows),
        all.len(),
        BACK.as_secs(),
        bout.completed
    )
}

fn row(killed: &str, by: &str, kills: &[&Kill]) -> Vec<String> {
    let with = |turned: usize| kills.iter().filter(|kill| kill.turned == turned).count().to_string();
    let mut back: Vec<Duration> = kills.iter().map(|kill| kill.back).collect();
    back.sort();
    let time = |back: Option<&Duration>| {
        back.map_or(String::new(), |back| format!("{:.0} ms", back.as_secs_f64() * 1e3))
    };
    let wrong = kills.iter().filter(|kill| !kill.faults.is_empty()).count();
    row![killed, by, kills.len(), with(1), with(2), time(back.get(back.len() / 2)), time(back.last()), wrong]
}
