//! What every measuring verb shares: the way from a study to a run file, findings and a report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};

use super::check::LoadedSpec;
use super::concluding::{Finished, RunFileMonitor, conclude, keep};
use super::device::{Device, may_go_on};
use super::dry_run;
use super::keeping::{keep_for, restore_what_was_left};
use super::leftovers;
use super::measure_args::MeasureArgs;
use super::network::Network;
use super::output::{self, eprint_line};
use super::planted;
use super::progress::Display;
use super::signals::catch_signals;
use bench::placement::Placements;
use bench::{Benchmark, Candidate, DROP_CACHES, NETWORK_TO, Scope};
use knobs::{KnobSetter, Knobs, SweepLock};
use machine::Machine;
use model::run_file::{self, Candidates, Writer};
use model::vocabulary::file::param::CACHE;
use model::vocabulary::host::probe::DIRECTORY;
use model::vocabulary::nexmark::probe::FLINK;
use model::{
    Earlier, Entry, Event, Header, Planned, RUN_FILE_SCHEMA, Record, Run, RunClock, Snapshot, Title,
};
use session::measure::{Ended, Session};
use session::objects::ObjectKeeper;
use session::plan::{self, Profile};
use snapshot::{disk, group_folders};
use sys::counters::Groups;
use sys::{clock, scratch};

/// What a verb found out before it measures, from options that only it has.
#[derive(Default)]
pub struct Prepared {
    /// The other host of network benchmarks, and their options.
    pub network: Option<Network>,
    /// The raw device that disk rows use.
    pub device: Option<Device>,
    /// The spec that the host is compared with when all is measured.
    pub accept: Option<LoadedSpec>,
    /// Time limit of each visit, if no option names one.
    pub visit_limit: Option<Duration>,
}

/// The host that is measured, described.
pub struct Host {
    pub snapshot: Snapshot,
    pub machine: Machine,
    pub placements: Placements,
}

impl Host {
    pub fn describe(args: &MeasureArgs, prepared: &Prepared) -> anyhow::Result<Host> {
        let root = &args.tests.root;
        let mut snapshot = match &args.tests.from {
            Some(file) => super::machine::saved_snapshot(file)?,
            None => super::machine::live_snapshot(root),
        };
        if !args.tests.pretends() {
            add_directory(&mut snapshot, args)?;
            match &prepared.device {
                Some(device) => {
                    // No directory is measured then.
                    snapshot.entries.remove(DIRECTORY);
                    disk::store(&mut snapshot, device.described(root));
                }
                None => super::machine::add_disk(&mut snapshot, root, args.dir.as_deref())?,
            }
        }
        if let Some(network) = &prepared.network {
            network.store(&mut snapshot);
        }
        snapshot.blank();
        let machine = Machine::from(&snapshot);
        let placements = Placements::of(&machine);
        if placements.cpus().is_empty() {
            bail!(
                "no CPU found: neither /sys nor /proc under {} can be read, nor this process's affinity",
                root.display()
            );
        }
        Ok(Host { snapshot, machine, placements })
    }

    /// What benchmarks may plan with here.
    pub fn scope(&self, profile: &Profile, all: bool) -> Scope<'_> {
        let memory_bytes = plan::memory_budget(&self.machine, profile.depth);
        let usual = Scope::new(&self.machine, &self.placements, profile.depth, memory_bytes);
        Scope { windows: profile.windows, all, ..usual }
    }
}

/// Adds the description of the folder for test files. A named folder must be usable; a missing
/// default is reported by its benchmarks.
fn add_directory(snapshot: &mut Snapshot, args: &MeasureArgs) -> anyhow::Result<()> {
    let directory = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    match scratch::probe(&directory) {
        Ok(mut text) => {
            text.push_str(&disk::of_directory(&text));
            snapshot.entries.insert(DIRECTORY.to_string(), Entry::Text(text));
            Ok(())
        }
        Err(error) if args.dir.is_some() => Err(error),
        Err(_) => Ok(()),
    }
}

type Choice<'s> = Box<dyn Fn(Vec<Candidate>, &Scope, &Host) -> Vec<Candidate> + 's>;

/// What a verb measures: a profile's way through the cases of some benchmarks.
pub struct Study<'s> {
    profile: Profile,
    benches: Vec<&'s Benchmark>,
    /// Makes the study's cases from the candidates of the benchmarks.
    choose: Choice<'s>,
    /// Writes into the run's header what the study has to say.
    amend: Box<dyn Fn(&mut Header) + 's>,
    prepared: Prepared,
}

impl<'s> Study<'s> {
    /// All that these benchmarks offer.
    pub fn of(profile: Profile, benches: Vec<&'s Benchmark>) -> Study<'s> {
        Study {
            profile: profile.for_run_of(&benches),
            benches,
            choose: Box::new(|candidates, _, _| candidates),
            amend: Box::new(|_| {}),
            prepared: Prepared::default(),
        }
    }

    pub fn choosing(
        self,
        choose: impl Fn(Vec<Candidate>, &Scope, &Host) -> Vec<Candidate> + 's,
    ) -> Study<'s> {
        Study { choose: Box::new(choose), ..self }
    }

    pub fn amending(self, amend: impl Fn(&mut Header) + 's) -> Study<'s> {
        Study { amend: Box::new(amend), ..self }
    }

    pub fn prepared(self, prepared: Prepared) -> Study<'s> {
        Study { prepared, ..self }
    }

    /// Plans the study on this host, measures, judges and reports it; with --dry-run shows the
    /// plan.
    pub fn measure(&self, args: &MeasureArgs) -> anyhow::Result<Finished> {
        let knobs = Knobs::of(&args.tests.root).watched();
        if !args.dry_run && !args.tests.pretends() {
            restore_what_was_left(&knobs);
        }
        let host = Host::describe(args, &self.prepared)?;
        let planned = self.plan(args, &host)?;
        if args.dry_run {
            let name = args.naming.settle(&host.machine)?.host;
            let code = dry_run::show(&name, &planned, &self.profile, args)?;
            return Ok(Finished { code, diagnosis: None });
        }
        let kept_for: &[Planned] = if args.tests.pretends() { &[] } else { &planned };
        let guard = SessionGuard::new(knobs.setter(), keep_for(&knobs, kept_for))?;
        let mut header = self.header(args, &host, planned)?;
        (self.amend)(&mut header);
        let (mut writer, header, earlier) = open(args, header)?;
        if args.drop_caches {
            let text = "the host's page cache is emptied before every cold pass (--drop-caches)";
            let event = Event { at_ms: earlier.measured_ms(), kind: "drop-caches".into(), text: text.into() };
            writer.append(&Record::Event(event))?;
        }
        output::greet(&host.machine, &header, args.tests.pretends());
        let ended = self.visit(args, &header, &mut writer, earlier, &guard);
        let left = guard.knobs.restore();
        let finished = match ended {
            Ok(ended) => conclude(args, &self.prepared, &mut writer, ended)?,
            Err(error) => {
                if let Err(lost) = keep(args, &mut writer) {
                    eprint_line(&format!("  {lost:#}"));
                }
                return Err(error);
            }
        };
        // What was measured is kept and shown, whatever could not be put back.
        left.map(|_| finished)
    }

    fn plan(&self, args: &MeasureArgs, host: &Host) -> anyhow::Result<Vec<Planned>> {
        let scope = host.scope(&self.profile, args.all_pairs());
        let mut candidates = (self.choose)(plan::candidates(&scope, &self.benches), &scope, host);
        if let Some(device) = &self.prepared.device {
            candidates = device.supply(candidates);
        }
        if let Some(network) = &self.prepared.network {
            candidates = network.supply(candidates, &scope);
        }
        let mut planned = plan::fit(candidates, &scope, &self.profile);
        if let Some(planted) = &args.tests.planted {
            planted.slow(&mut planned);
        }
        if args.drop_caches {
            drop_caches_of(&mut planned)?;
        }
        Ok(planned)
    }

    fn header(&self, args: &MeasureArgs, host: &Host, planned: Vec<Planned>) -> anyhow::Result<Header> {
        let named = args.naming.settle(&host.machine)?;
        let pretended = args.tests.pretends();
        let catalogue: Vec<Title> = self.benches.iter().map(|bench| bench.catalogue()).collect();
        let now = if pretended { jiff::Timestamp::UNIX_EPOCH } else { jiff::Timestamp::now() };
        let second = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
        Ok(Header {
            schema: RUN_FILE_SCHEMA,
            assay: env!("CARGO_PKG_VERSION").to_string(),
            host: named.host,
            labels: named.labels,
            started: second.to_string(),
            boot_id: host.machine.load.boot_id.clone(),
            uptime_s: host.machine.load.uptime_s,
            seed: args.seed.or(args.tests.pretend).unwrap_or_else(|| fastrand::u64(..1 << 53)),
            profile: self.profile.name.to_string(),
            budget_s: self.profile.budget_s,
            precision: self.profile.precision,
            allowed_cpus: host.placements.cpus(),
            clock: if pretended { pretended_clock() } else { calibrated_clock(&host.machine) },
            pretend: args.tests.pretend,
            plan_id: plan::plan_id(&planned, &self.profile),
            plan: planned,
            sweep: None,
            factors: None,
            catalogue,
            snapshot: host.snapshot.clone(),
        })
    }

    /// Visits the cases of a plan until the profile has enough of each.
    fn visit(
        &self,
        args: &MeasureArgs,
        header: &Header,
        writer: &mut Writer,
        earlier: Earlier,
        guard: &SessionGuard,
    ) -> anyhow::Result<Ended> {
        let [cpu, memory] = group_folders(&args.tests.root);
        let monitor = RunFileMonitor::of(args);
        let undecided = |run: &Run| match &self.prepared.accept {
            Some(loaded) => super::check::undecided(loaded, run, &args.screen.reference),
            None => Vec::new(),
        };
        let session = Session {
            header,
            profile: &self.profile,
            program: std::env::current_exe().context("cannot find this program's own file")?,
            root: args.tests.root.clone(),
            knobs: &guard.knobs,
            keep: &guard.keep,
            groups: Groups { cpu, memory },
            patience: args.patience(),
            visit_limit: args.tests.visit_limit.or(self.prepared.visit_limit),
            secret: self.prepared.network.as_ref().and_then(|network| network.secret.clone()),
            interrupted: &|| guard.interrupted.load(Ordering::Relaxed),
            undecided: &undecided,
            look_after: &|writer| monitor.look(writer),
        };
        let mut display = Display::new();
        let ended = session.run(writer, earlier, &mut |progress| display.show(progress));
        display.end();
        // What a visit that was killed or interrupted could not remove itself.
        leftovers::sweep(&leftovers::places(&header.plan, &args.out()));
        ended
    }
}

/// Keeps other sessions from turning knobs while the guard lives, and puts back what a killed one
/// left turned; `what` says what cannot begin where that fails.
pub fn lock_sweeps(knobs: &Knobs, what: &'static str) -> anyhow::Result<SweepLock> {
    let lock = knobs.lock_sweeps()?;
    for line in knobs.restore_what_was_left().context(what)? {
        eprint_line(&format!("  {line}"));
    }
    Ok(lock)
}

/// Marks the cold cases of files, before each pass of which all caches are dropped.
fn drop_caches_of(planned: &mut [Planned]) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("--drop-caches needs root; without it only the cold file itself is dropped from the cache");
    }
    for planned in planned {
        let cold = planned.case.params.get(CACHE).and_then(|cache| cache.text()) == Some("cold");
        if planned.case.bench.starts_with("file.") && cold {
            planned.case.inputs.insert(DROP_CACHES.to_string(), "yes".to_string());
        }
    }
    Ok(())
}

/// A new run file, or an interrupted one of the same plan, version and boot.
fn open(args: &MeasureArgs, header: Header) -> anyhow::Result<(Writer, Header, Earlier)> {
    let agrees = |old: &Header| {
        old.schema == header.schema
            && old.plan_id == header.plan_id
            && old.assay == header.assay
            // A sweep's control shows the effect of a reboot; no other run does.
            && (old.boot_id == header.boot_id || header.sweep.is_some())
            && old.sweep == header.sweep
            && old.host == header.host
            && old.labels == header.labels
            && old.pretend == header.pretend
            && planted::alike(&old.plan, &header.plan)
            // The plan's names are the same for any CPUs and any budget; its seats and its cuts are
            // not.
            && old.allowed_cpus == header.allowed_cpus
            && old.budget_s == header.budget_s
            && may_go_on(&old.plan, &header.plan)
            && measured_disk(&old.snapshot) == measured_disk(&header.snapshot)
            && other_host(&old.plan) == other_host(&header.plan)
            && old.snapshot.text(FLINK) == header.snapshot.text(FLINK)
            && args.seed.is_none_or(|seed| seed == old.seed)
            && !super::machine::holds_secrets(old)
    };
    let candidates = if args.new { Candidates::default() } else { run_file::candidates(&args.out(), agrees) };
    for (path, why) in &candidates.refused {
        eprint_line(&format!(
            "  {} is not resumed: {why}, and another user could redirect the output; --new starts afresh",
            path.display()
        ));
    }
    let Some((mut writer, run)) = candidates.found else {
        return Ok((Writer::create(&args.out(), &header)?, header, Earlier::default()));
    };
    let boot = if run.header.boot_id == header.boot_id { "" } else { ", in another boot" };
    let text = format!("resumed after {} passes{boot}", run.visit_count());
    eprint_line(&format!(
        "  resuming {} after {} passes (--new starts afresh)",
        writer.path().display(),
        run.visit_count()
    ));
    let at_ms = run.measured_ms();
    writer.append(&Record::Event(Event { at_ms, kind: "resumed".into(), text }))?;
    Ok((writer, run.header, Earlier { visits: run.visits, thinned: run.thinned }))
}

/// The other end of a plan's network rows.
fn other_host(plan: &[Planned]) -> Option<&String> {
    plan.iter().find_map(|planned| planned.case.inputs.get(NETWORK_TO))
}

/// What names the disk that a run's files or its device are on.
fn measured_disk(snapshot: &Snapshot) -> Option<&str> {
    snapshot.text(model::vocabulary::disk::probe::DISK)?.lines().next()
}

fn calibrated_clock(machine: &Machine) -> RunClock {
    let current = machine.clock.current.as_deref();
    clock::calibrate(current.is_some_and(|current| kernels::CLOCK_SOURCES.contains(&current)))
}

fn pretended_clock() -> RunClock {
    RunClock {
        source: "pretended".to_string(),
        ticks_per_ns: 1.0,
        resolution_ns: 1.0,
        cost_ns: 1.0,
        why: None,
    }
}

/// Puts the system back when a session ends, in whatever way it ends.
struct SessionGuard {
    knobs: KnobSetter,
    keep: ObjectKeeper,
    /// The user wants out.
    interrupted: Arc<AtomicBool>,
}

impl SessionGuard {
    fn new(knobs: KnobSetter, keep: ObjectKeeper) -> anyhow::Result<SessionGuard> {
        let interrupted = catch_signals(knobs.emergency_restore())?;
        let (usual, last) = (std::panic::take_hook(), knobs.emergency_restore());
        std::panic::set_hook(Box::new(move |panic| {
            last.try_restore();
            // Ends the process.
            usual(panic);
        }));
        Ok(SessionGuard { knobs, keep, interrupted })
    }
}
