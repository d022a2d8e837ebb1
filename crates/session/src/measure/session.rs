//! The loop: pass after pass over the plan, interleaved, until all figures are precise enough or
//! the time is over.

mod budget;
mod last;
mod quiet;
mod rounds;
mod swept;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::objects::ObjectKeeper;
use crate::plan::{self, Profile, Until};
use bench::{Depth, Order, Secret, narrowed};
use knobs::KnobSetter;
use model::run_file::Writer;
use model::{Conditions, Earlier, Event, Header, Params, Planned, Reason, Record, Run, Visit, fingerprint};
use stats::sweep::Ending;
use sys::counters::{Counters, Groups, Neighbours};
use sys::{clock, process};

use super::child::{self, Callbacks};
use super::gate::Patience;
use super::settings::{Knobs, settings};
use super::watch::Watch;
use super::{enough, pretended};

/// The constant inputs of measuring.
pub struct Session<'a> {
    pub header: &'a Header,
    pub profile: &'a Profile,
    /// This executable.
    pub program: PathBuf,
    /// Kernel counters are read under this root.
    pub root: PathBuf,
    /// Sets the knobs that cases name, and restores them.
    pub knobs: &'a KnobSetter,
    /// Owns the kernel objects of visits that would outlive them.
    pub keep: &'a ObjectKeeper,
    /// Assay's cgroup and its ancestors.
    pub groups: Groups,
    pub patience: Patience,
    /// Time limit of each visit; `None`: by its estimate.
    pub visit_limit: Option<Duration>,
    pub secret: Option<Secret>,
    pub interrupted: &'a dyn Fn() -> bool,
    /// Keys of the series whose further visits may decide a limit.
    pub undecided: &'a dyn Fn(&Run) -> Vec<String>,
    /// Checks the run file between visits; returns a message about it.
    pub look_after: &'a dyn Fn(&mut Writer) -> Option<String>,
}

/// Progress reports, between visits only: nothing is drawn during a measurement.
pub enum Progress<'a> {
    /// The gate waits: why, and since when.
    Waiting { why: &'a str, since: Duration },
    /// A visit begins.
    Visit {
        key: &'a str,
        /// The case's figure so far.
        so_far: Option<String>,
        done: usize,
        of: usize,
        left: Duration,
    },
    /// A visit failed.
    Failed { key: &'a str, reason: &'a Reason },
    /// A message about the run file.
    Note(&'a str),
}

/// How measuring ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every case has enough visits, or all of its profile.
    Complete,
    /// The budget ended it.
    Budget,
    /// The user ended it: the file has what was measured.
    Interrupted,
}

/// Failed visits after which a case gets no more.
pub(crate) const FAILURES_MAX: usize = 3;
/// A child's time limit: the larger of this and the estimate times the next.
pub(crate) const VISIT_LIMIT: Duration = Duration::from_secs(15);
pub(crate) const VISIT_LIMIT_ESTIMATES: f64 = 8.0;
/// Time for the kernel to settle after a change of knobs.
const SETTLING: Duration = Duration::from_millis(200);

impl Session<'_> {
    /// Measures until the end and appends to `writer`; `earlier` has the visits of a resumed run.
    pub fn run(
        &self,
        writer: &mut Writer,
        earlier: Earlier,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Ended> {
        let mut loop_state = Loop::new(self, earlier);
        let mut ended = loop_state.passes(writer, progress)?;
        if ended != Ended::Interrupted && !loop_state.last(writer, progress)? {
            ended = Ended::Interrupted;
        }
        loop_state.apply_knobs(&Knobs::new(), writer)?;
        let text = match ended {
            Ended::Complete => None,
            Ended::Budget if self.profile.until == Until::Seen => {
                Some(("budget", "the time budget ended before the requested effect was detectable"))
            }
            Ended::Budget => Some(("budget", "the time budget ended before every figure was precise enough")),
            Ended::Interrupted => Some(("interrupted", "interrupted: the same command resumes here")),
        };
        if ended != Ended::Interrupted {
            loop_state.record_unrun_cases(writer)?;
        }
        loop_state.watch.note(writer)?;
        if let Some((kind, text)) = text {
            loop_state.note(kind, text, writer)?;
        }
        writer.sync();
        Ok(ended)
    }

    fn at_ms(&self, state: &Loop) -> f64 {
        match self.header.pretend {
            Some(_) => state.next_order as f64 * pretended::VISIT_MS,
            None => state.begin_ms + state.begin.elapsed().as_secs_f64() * 1e3,
        }
    }
}

/// The state of a running session.
struct Loop<'s, 'h> {
    session: &'s Session<'h>,
    /// All visits so far, as a run that can be judged meanwhile.
    run: Run,
    /// Indices of the visits of each planned case.
    places: Vec<Vec<usize>>,
    /// Case and pass of earlier visits that are not kept.
    made: BTreeSet<(u32, u32)>,
    next_order: u32,
    finished: Vec<bool>,
    counters: Counters,
    /// Observer of other work on the CPUs.
    neighbours: Neighbours,
    begin: Instant,
    /// `begin` on the run's time line, after earlier parts of a resumed run, ms.
    begin_ms: f64,
    /// The gate's remaining patience.
    patience: Patience,
    /// Spent on waiting without a limit, which takes nothing from the budget.
    waited: Duration,
    /// The current knob settings.
    turned: Knobs,
    watch: Watch,
    /// For a sweep: checks whether its requested effect is detectable.
    ending: Ending,
}

impl<'s, 'h> Loop<'s, 'h> {
    fn new(session: &'s Session<'h>, earlier: Earlier) -> Loop<'s, 'h> {
        let (begin_ms, next_order) = (earlier.measured_ms(), earlier.next_order());
        let thinned = earlier.thinned.iter().flat_map(|thinned| &thinned.places);
        let made = thinned.map(|place| (place.case, place.pass)).collect();
        let run =
            Run { visits: earlier.visits, thinned: earlier.thinned, ..Run::begun(session.header.clone()) };
        let mut places = vec![Vec::new(); session.header.plan.len()];
        for (place, visit) in run.visits.iter().enumerate() {
            if let Some(places) = places.get_mut(visit.case as usize) {
                places.push(place);
            }
        }
        Loop {
            session,
            next_order,
            finished: vec![false; session.header.plan.len()],
            counters: Counters::open(&session.root, &session.groups, &session.header.allowed_cpus),
            neighbours: Neighbours::below(&session.root),
            begin: Instant::now(),
            begin_ms,
            patience: session.patience,
            waited: Duration::ZERO,
            turned: Knobs::new(),
            watch: Watch::of(session.header, &session.root, begin_ms),
            ending: Ending::default(),
            run,
            places,
            made,
        }
    }

    fn plan(&self) -> &'h [Planned] {
        &self.session.header.plan
    }

    fn passes(&mut self, writer: &mut Writer, progress: &mut dyn FnMut(Progress)) -> anyhow::Result<Ended> {
        let runnable: Vec<usize> = self.runnable().filter(|case| !self.is_last(*case)).collect();
        self.gate(writer, progress)?;
        let (profile, seed) = (self.session.profile, self.session.header.seed);
        let passes = if profile.until == Until::Rounds { profile.passes_min } else { profile.passes_max };
        let orders = plan::orders(&runnable, passes, seed);
        for (pass, order) in (0..).zip(orders) {
            let settings = settings(self.plan(), &runnable, pass, seed);
            self.update_finished(&runnable);
            if profile.until == Until::Rounds {
                self.make_room(&runnable, pass, writer)?;
            }
            let mut due: Vec<usize> = order.into_iter().filter(|case| self.is_due(*case, pass)).collect();
            // Each setting once a pass, in drawn order.
            due.sort_by_key(|case| {
                settings.iter().position(|knobs| **knobs == self.plan()[*case].case.knobs)
            });
            let first_of_pass = self.run.visits.len();
            for case in self.with_control(due) {
                if let Some(ended) = self.visit_in_time(case, &[], pass, writer, progress)? {
                    return Ok(ended);
                }
            }
            self.after_pass(first_of_pass, writer, progress)?;
        }
        match profile.until {
            Until::Rounds => self.rounds(&runnable, writer, progress),
            Until::Looks | Until::Seen | Until::Quads => Ok(Ended::Complete),
        }
    }

    fn runnable(&self) -> impl Iterator<Item = usize> + use<'h> {
        let plan = self.plan();
        (0..plan.len()).filter(|case| plan[*case].unmet.is_none())
    }

    /// One visit, unless the run is over; returns how it ended then.
    fn visit_in_time(
        &mut self,
        case: usize,
        points: &[Params],
        pass: u32,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<Option<Ended>> {
        if (self.session.interrupted)() {
            return Ok(Some(Ended::Interrupted));
        }
        if self.over_budget(case, points) {
            return Ok(Some(Ended::Budget));
        }
        let whole = self.visit(case, points, pass, writer, progress)?;
        Ok((!whole).then_some(Ended::Interrupted))
    }

    fn after_pass(
        &mut self,
        first_of_pass: usize,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<()> {
        self.watch.note(writer)?;
        writer.sync();
        self.wait_if_loud(first_of_pass, writer, progress)
    }

    /// For a sweep: the control before every few cells.
    fn with_control(&self, due: Vec<usize>) -> Vec<usize> {
        let Some(sweep) = &self.session.header.sweep else { return due };
        let runs = |case: &usize| self.plan().get(*case).is_some_and(|planned| planned.unmet.is_none());
        let control: Vec<usize> = sweep.control.iter().map(|case| *case as usize).filter(runs).collect();
        let cells: Vec<usize> = due.into_iter().filter(|case| !control.contains(case)).collect();
        let every = (sweep.every as usize * control.len()).max(1);
        cells.chunks(every).flat_map(|chunk| [control.as_slice(), chunk].concat()).collect()
    }

    /// Not yet visited in this pass (a resumed run may have been), and not finished.
    fn is_due(&self, case: usize, pass: u32) -> bool {
        !self.finished[case]
            && !self.made.contains(&(case as u32, pass))
            && !self.of_case(case).any(|visit| visit.pass == pass)
    }

    fn of_case(&self, case: usize) -> impl Iterator<Item = &Visit> {
        self.places[case].iter().map(|place| &self.run.visits[*place])
    }

    fn update_finished(&mut self, runnable: &[usize]) {
        if self.session.profile.until == Until::Seen {
            return self.check_sweep_effect(runnable);
        }
        for case in runnable {
            self.finished[*case] = self.is_finished(*case);
        }
    }

    fn is_finished(&self, case: usize) -> bool {
        self.gives_nothing(case) || self.has_enough(case)
    }

    /// Whether the case keeps failing, or was left out.
    fn gives_nothing(&self, case: usize) -> bool {
        let failed = self.of_case(case).filter(|visit| visit.reason.is_some()).count();
        let timed_out = self.of_case(case).any(|visit| matches!(visit.reason, Some(Reason::TimedOut(_))));
        let skipped = self.of_case(case).any(|visit| matches!(visit.reason, Some(Reason::Skipped(_))));
        timed_out || skipped || failed >= FAILURES_MAX
    }

    /// Whether every main series of the case is precise enough, or more visits would not help.
    fn has_enough(&self, case: usize) -> bool {
        let good: Vec<&Visit> = self.of_case(case).filter(|visit| visit.reason.is_none()).collect();
        if good.len() < self.session.profile.passes_min as usize {
            return false;
        }
        let header = self.session.header;
        let Some(title) = header.catalogue.iter().find(|title| title.id == self.plan()[case].case.bench)
        else {
            return false;
        };
        let profile = self.session.profile;
        match profile.until {
            Until::Looks => enough::is_enough(title, &good, profile, header.seed),
            // For all cells together: `check_sweep_effect`.
            Until::Seen => true,
            Until::Quads => self.difference_is_known(case),
            // Quick runs have too few processes to detect modes and drift.
            Until::Rounds => {
                profile.depth > Depth::Quick && enough::is_futile(title, &good, profile, header.seed)
            }
        }
    }

    /// Visits these points of a case (none: all) and appends the result; false if the user
    /// interrupted it.
    fn visit(
        &mut self,
        case: usize,
        points: &[Params],
        pass: u32,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<bool> {
        let planned = &self.plan()[case];
        let key = planned.case.key();
        let (of, left) = self.outlook();
        let header = self.session.header;
        let so_far = header.catalogue.iter().find(|title| title.id == planned.case.bench).and_then(|title| {
            let good: Vec<&Visit> = self.of_case(case).filter(|visit| visit.reason.is_none()).collect();
            enough::so_far(title, &good)
        });
        progress(Progress::Visit { key: &key, so_far, done: self.run.visits.len(), of, left });
        let order = Order {
            case: narrowed(&planned.case, points).unwrap_or_else(|| planned.case.clone()),
            windows: self.session.profile.windows_of(&planned.case),
            clock: header.clock.clone(),
            seed: header.seed ^ fingerprint(&format!("{key} {pass}")),
            pass,
            pretend: header.pretend,
            secret: self.session.secret.clone(),
            parent: Some(std::process::id()),
        };
        let limit = self.session.visit_limit.unwrap_or_else(|| {
            VISIT_LIMIT + Duration::from_secs_f64(planned.seconds * VISIT_LIMIT_ESTIMATES)
        });
        if let Some(reason) = self.apply_knobs(&planned.case.knobs, writer)? {
            return self.record_failed_knobs(case, pass, &key, reason, writer, progress);
        }
        let at_ms = self.session.at_ms(self);
        let seats = planned.case.placement.busy_cpus();
        self.watch.begin(&planned.case.placement);
        let (before, own) = (self.counters.read(), clock::cpu_ms().unwrap_or(0.0));
        let program = process::running_executable(&self.session.program);
        let (watch, counters) = (&mut self.watch, &mut self.counters);
        let Session { keep, interrupted, .. } = self.session;
        let mut waited = || {
            let ms = counters.read().since(&before, 0.0, &seats).psi_cpu_ms;
            Duration::try_from_secs_f64(ms.unwrap_or(0.0) / 1e3).unwrap_or_default()
        };
        let callbacks = Callbacks { interrupted, observe: &mut || watch.look(), waited: &mut waited };
        let outcome = child::visit(program, &order, limit, keep, callbacks)?;
        outcome.left.iter().try_for_each(|text| self.note("left", text, writer))?;
        if outcome.interrupted {
            return Ok(false);
        }
        let own = clock::cpu_ms().unwrap_or(0.0) - own;
        let conditions = match header.pretend {
            Some(_) => pretended::conditions(&header.allowed_cpus),
            None => {
                let conditions = self.counters.read().since(&before, own, &seats);
                let neighbours = self.neighbours.after(&conditions, seats.len());
                Conditions { neighbours, ..conditions }
            }
        };
        self.watch.end();
        if let Some(reason) = &outcome.reason {
            progress(Progress::Failed { key: &key, reason });
        }
        let visit = Visit {
            order: self.next_order,
            case: case as u32,
            pass,
            at_ms,
            conditions,
            process: outcome.process,
            samples: outcome.samples,
            reason: outcome.reason,
        };
        if let Some(text) = (self.session.look_after)(writer) {
            progress(Progress::Note(&text));
        }
        self.keep(visit, writer)?;
        Ok(true)
    }

    /// Stores a new visit, in the file and here.
    fn keep(&mut self, visit: Visit, writer: &mut Writer) -> anyhow::Result<()> {
        writer.append(&Record::Visit(Box::new(visit.clone())))?;
        self.next_order += 1;
        self.places[visit.case as usize].push(self.run.visits.len());
        self.run.visits.push(visit);
        Ok(())
    }

    /// Sets a case's knobs; returns why that failed, if it did.
    fn apply_knobs(&mut self, wanted: &Knobs, writer: &mut Writer) -> anyhow::Result<Option<Reason>> {
        if (wanted.is_empty() && self.turned.is_empty()) || self.session.header.pretend.is_some() {
            return Ok(None);
        }
        // Noted before, because a failed change may be partial.
        self.turned = wanted.clone();
        let changes = match self.session.knobs.set(wanted) {
            Ok(changes) => changes,
            Err(error) => {
                let text = format!("{error:#}");
                self.note("knob", &text, writer)?;
                return Ok(Some(Reason::Failed(text)));
            }
        };
        if changes.is_empty() {
            return Ok(None);
        }
        changes.iter().try_for_each(|text| self.note("knob", text, writer))?;
        std::thread::sleep(SETTLING);
        // CPUs that went offline and came back have new counter files.
        let session = self.session;
        self.counters = Counters::open(&session.root, &session.groups, &session.header.allowed_cpus);
        Ok(None)
    }

    fn note(&self, kind: &'static str, text: &str, writer: &mut Writer) -> anyhow::Result<()> {
        let event = Event { at_ms: self.session.at_ms(self), kind: kind.into(), text: text.to_string() };
        writer.append(&Record::Event(event))
    }

    /// Records a visit that did not start because its knobs could not be set.
    fn record_failed_knobs(
        &mut self,
        case: usize,
        pass: u32,
        key: &str,
        reason: Reason,
        writer: &mut Writer,
        progress: &mut dyn FnMut(Progress),
    ) -> anyhow::Result<bool> {
        progress(Progress::Failed { key, reason: &reason });
        let visit = self.visit_without_samples(case, pass, reason);
        self.keep(visit, writer)?;
        Ok(true)
    }

    /// Records cases that the end of the run left without a visit.
    fn record_unrun_cases(&mut self, writer: &mut Writer) -> anyhow::Result<()> {
        for case in 0..self.plan().len() {
            if self.plan()[case].unmet.is_none() && self.of_case(case).next().is_none() {
                let reason = Reason::Skipped("budget: the time ended before its turn".into());
                let visit = self.visit_without_samples(case, 0, reason);
                self.next_order += 1;
                writer.append(&Record::Visit(Box::new(visit)))?;
            }
        }
        Ok(())
    }

    fn visit_without_samples(&self, case: usize, pass: u32, reason: Reason) -> Visit {
        Visit {
            order: self.next_order,
            case: case as u32,
            pass,
            at_ms: self.session.at_ms(self),
            conditions: Conditions::default(),
            process: Default::default(),
            samples: Vec::new(),
            reason: Some(reason),
        }
    }
}
