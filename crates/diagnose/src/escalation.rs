//! One suite at growing footprints: at which of them memory decides.

use serde::{Deserialize, Serialize};

use super::Diagnosis;
use super::placed::placed;
use super::suite::{Suite, suite};
use machine::Machine;
use model::Run;
use model::vocabulary::rate as ids;
use stats::places::Follows;
use stats::repeat::{APART, Sequence};

/// A component at one footprint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `bwaves`.
    pub component: String,
    /// Memory of the copies of a NUMA node together, MiB.
    pub node_mib: u64,
    /// Population standard deviation over mean, and highest over lowest run less 1.
    pub cv: f64,
    pub apart: f64,
    /// `low low high high mid`; empty where the runs are alike.
    pub levels: String,
    /// Whether a map of memory predicted the runs, in whole or in part.
    pub predicted: bool,
}

/// A coefficient of variation that changed by this factor counts as different.
const MIN_CV_CHANGE: f64 = 2.0;

impl Step {
    fn of(component: &str, node_mib: u64, runs: &Sequence, follows: Option<Follows>) -> Step {
        Step {
            component: component.to_string(),
            node_mib,
            cv: runs.cv,
            apart: runs.apart,
            levels: runs.levels_in_words(),
            predicted: matches!(follows, Some(Follows::Memory | Follows::Partly)),
        }
    }

    fn is_apart(&self) -> bool {
        self.apart > APART
    }

    /// Memory of a node in words: `10 GiB`.
    pub fn footprint(&self) -> String {
        match self.node_mib {
            mib if mib >= 1024 && mib.is_multiple_of(1024) => format!("{} GiB", mib / 1024),
            mib => format!("{mib} MiB"),
        }
    }
}

/// The steps of one component, the smallest footprint first, and at which of them memory decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Escalated {
    pub steps: Vec<Step>,
    pub shows: Option<Shows>,
}

/// At which step memory decides, and by what that shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Shows {
    pub step: usize,
    pub by: &'static str,
}

/// Memory decides where the map predicts the runs, or where the footprint alone changed how far
/// runs lie apart or in which order they come.
fn shows(steps: &[Step]) -> Option<Shows> {
    let (first, _) = steps.split_first()?;
    steps.iter().enumerate().find_map(|(step, now)| {
        let by = match () {
            () if now.predicted => "the map of memory predicts its runs",
            () if step == 0 => return None,
            () if !first.is_apart() && now.is_apart() => "its runs start to differ",
            () if first.is_apart() && now.cv * MIN_CV_CHANGE < first.cv => "its runs differ less",
            () if first.is_apart() && now.cv > MIN_CV_CHANGE * first.cv => "its runs differ more",
            () if first.is_apart() && now.is_apart() && now.levels != first.levels => {
                "its runs come in another order"
            }
            () => return None,
        };
        Some(Shows { step, by })
    })
}

impl Escalated {
    pub fn component(&self) -> &str {
        self.steps.first().map_or("", |step| &step.component)
    }

    /// Whether no larger footprint needs to be tried.
    pub fn is_settled(&self) -> bool {
        self.shows.is_some()
    }

    /// `bwaves: memory decides at 20 GiB per node, where its runs differ less (CV 7.8 % at 10 GiB,
    /// 3.1 % at 20 GiB)`.
    pub fn words(&self) -> String {
        let cvs: Vec<String> = self
            .steps
            .iter()
            .map(|step| format!("CV {:.2} % at {}", 100.0 * step.cv, step.footprint()))
            .collect();
        let name = self.component();
        match &self.shows {
            Some(shows) => format!(
                "{name}: memory decides at {} per node, where {} ({})",
                self.steps[shows.step].footprint(),
                shows.by,
                cvs.join(", ")
            ),
            None => format!("{name}: memory decides at no footprint that was tried ({})", cvs.join(", ")),
        }
    }
}

/// The steps of earlier sessions (from the run's header) and of this one, by component; empty if
/// nothing escalates.
pub fn escalated(run: &Run, machine: &Machine, suite: &Suite) -> Vec<Escalated> {
    let text = run.header.snapshot.text(ids::probe::RATE_ESCALATION).unwrap_or_default();
    let earlier: Vec<Step> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if earlier.is_empty() {
        return Vec::new();
    }
    of_steps(&earlier.into_iter().chain(steps(run, machine, suite)).collect::<Vec<_>>())
}

/// This session's components whose data fill memory.
fn steps(run: &Run, machine: &Machine, suite: &Suite) -> Vec<Step> {
    let placed = placed(run, machine, suite).unwrap_or_default();
    let follows =
        |name: &str| placed.iter().find(|one| one.part.name() == name).and_then(|one| one.follows());
    let memory = suite.parts.iter().filter(|part| part.is_memory());
    memory
        .filter_map(|part| {
            Some(Step::of(part.name(), part.node_mib(), part.runs.as_ref()?, follows(part.name())))
        })
        .collect()
}

/// The steps of all sessions up to this one, for the next one's header.
pub fn steps_so_far(diagnosis: &Diagnosis) -> Vec<Step> {
    let Some(suite) = suite(&diagnosis.run, &diagnosis.series) else { return Vec::new() };
    let before = escalated(&diagnosis.run, &diagnosis.machine, &suite);
    if before.is_empty() {
        steps(&diagnosis.run, &diagnosis.machine, &suite)
    } else {
        before.into_iter().flat_map(|one| one.steps).collect()
    }
}

/// Steps grouped by component.
pub fn of_steps(steps: &[Step]) -> Vec<Escalated> {
    let mut all: Vec<Escalated> = Vec::new();
    for step in steps {
        match all.iter_mut().find(|one| one.component() == step.component) {
            Some(own) => own.steps.push(step.clone()),
            None => all.push(Escalated { steps: vec![step.clone()], shows: None }),
        }
    }
    for own in &mut all {
        own.steps.sort_by_key(|step| step.node_mib);
        own.shows = shows(&own.steps);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::repeat::sequence;

    fn step(node_mib: u64, runs: &[f64], follows: Option<Follows>) -> Step {
        Step::of("bwaves", node_mib, &sequence(runs, 0.0).expect("runs"), follows)
    }

    const SWING: [f64; 5] = [92.0, 92.0, 111.0, 107.0, 98.0];
    const STEADY: [f64; 5] = [100.0, 100.5, 100.2, 100.0, 100.1];

    #[test]
    fn it_shows_where_the_footprint_changes_the_runs() {
        let shown = |steps: &[Step]| of_steps(steps).remove(0);
        // The published case: a larger footprint, and another order.
        let other = [92.0, 111.0, 101.0, 102.0];
        let found = shown(&[step(10240, &SWING, None), step(20480, &other, None)]);
        assert_eq!(
            found.words(),
            "bwaves: memory decides at 20 GiB per node, where its runs come in another order (CV 7.77 % at 10 GiB, CV 6.63 % at 20 GiB)"
        );
        let found = shown(&[step(512, &STEADY, None), step(1024, &STEADY, None), step(2048, &SWING, None)]);
        assert_eq!(found.shows.as_ref().map(|shows| shows.step), Some(2), "{}", found.words());
        let found = shown(&[step(512, &SWING, None), step(1024, &STEADY, None)]);
        assert!(found.words().contains("differ less"), "{}", found.words());
        let found = shown(&[step(512, &SWING, Some(Follows::Memory))]);
        assert!(found.is_settled() && found.words().contains("512 MiB"), "{}", found.words());
    }

    #[test]
    fn it_shows_nowhere_where_nothing_changes() {
        let same = of_steps(&[step(512, &SWING, Some(Follows::Not)), step(1024, &SWING, None)]).remove(0);
        assert!(
            !same.is_settled() && same.words().contains("at no footprint that was tried"),
            "{}",
            same.words()
        );
        assert!(!of_steps(&[step(512, &STEADY, None), step(1024, &STEADY, None)])[0].is_settled());
        assert!(of_steps(&[]).is_empty());
    }
}
