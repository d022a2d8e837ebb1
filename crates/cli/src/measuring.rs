//! What every measuring verb shares: the way from a plan to a run file, findings and a report.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};

use super::concluding::{Finished, Lookout, conclude, keep};
use super::device::may_go_on;
use super::keeping::{keep_for, put_back_what_was_left};
use super::measure_args::MeasureArgs;
use super::progress::Display;
use super::signals::catch_signals;
use super::{check, dry_run, leftovers, output, planted};
use bench::placement::Floor;
use bench::{Benchmark, Candidate, DROP_CACHES, NETWORK_TO, Scope};
use knobs::{Hand, Knobs};
use machine::Machine;
use model::run_file::{self, Candidates, Writer};
use model::vocabulary::file::param::CACHE;
use model::vocabulary::host::probe::DIRECTORY;
use model::vocabulary::nexmark::probe::FLINK;
use model::{
    Earlier, Entry, Event, Header, Planned, RUN_FILE_SCHEMA, Record, Run, RunClock, Snapshot, Title,
};
use session::measure::{Ended, Session};
use session::objects::Keep;
use session::plan::{self, Profile};
use snapshot::{disk, group_folders};
use sys::counters::Groups;
use sys::{clock, scratch};

/// The machine that is measured, described.
pub struct Host {
    pub snapshot: Snapshot,
    pub machine: Machine,
    pub floor: Floor,
}

impl Host {
    pub fn look(args: &MeasureArgs) -> anyhow::Result<Host> {
        let mut snapshot = match &args.from {
            Some(file) => super::machine::saved_snapshot(file)?,
            None => super::machine::live_snapshot(&args.root),
        };
        if args.pretend.is_none() {
            let directory = args.dir.clone().unwrap_or_else(std::env::temp_dir);
            match scratch::probe(&directory) {
                Ok(mut text) => {
                    text.push_str(&disk::of_directory(&text));
                    snapshot.entries.insert(DIRECTORY.to_string(), Entry::Text(text));
                }
                // Whoever names a directory wants that one; a missing default one is for the
                // benchmarks to say.
                Err(error) if args.dir.is_some() => return Err(error),
                Err(_) => {}
            }
            match &args.device {
                Some(device) => {
                    // No directory is measured then.
                    snapshot.entries.remove(DIRECTORY);
                    disk::store(&mut snapshot, device.described(&args.root));
                }
                None => super::machine::add_disk(&mut snapshot, &args.root, args.dir.as_deref())?,
            }
        }
        if let Some(network) = &args.network {
            network.store(&mut snapshot);
        }
        snapshot.blank();
        let machine = Machine::from(&snapshot);
        let floor = Floor::of(&machine);
        if floor.cpus().is_empty() {
            bail!(
                "no CPU is known: neither /sys nor /proc under {} could be read, nor this process's affinity",
                args.root.display()
            );
        }
        Ok(Host { snapshot, machine, floor })
    }

    /// What benchmarks may plan with here.
    pub fn scope(&self, profile: &Profile, all: bool) -> Scope<'_> {
        Scope {
            machine: &self.machine,
            floor: &self.floor,
            depth: profile.depth,
            memory_bytes: plan::memory_budget(&self.machine, profile.depth),
            windows: profile.windows,
            all,
        }
    }
}

/// Makes of the candidates of a plan those that a study wants.
pub type Study<'s> = &'s dyn Fn(Vec<Candidate>, &Scope, &Host) -> Vec<Candidate>;

/// Plans `benches` on this host, of whose candidates a study makes those that it wants; measures
/// them and reports.
pub fn measure_study(args: &MeasureArgs, benches: &[&Benchmark], study: Study) -> anyhow::Result<ExitCode> {
    measure_study_of(args, args.profile()?, benches, study, &|_| {})
}

/// The same with a profile that the study has changed, and with what it has to say in the run's
/// header.
pub fn measure_study_of(
    args: &MeasureArgs,
    profile: Profile,
    benches: &[&Benchmark],
    study: Study,
    amend: &dyn Fn(&mut Header),
) -> anyhow::Result<ExitCode> {
    Ok(study_to_file(args, profile, benches, study, amend)?.code)
}

/// The same for those who go on with what was measured.
pub fn study_to_file(
    args: &MeasureArgs,
    profile: Profile,
    benches: &[&Benchmark],
    study: Study,
    amend: &dyn Fn(&mut Header),
) -> anyhow::Result<Finished> {
    let profile = profile.for_run_of(benches);
    let knobs = Knobs::of(&args.root).watched();
    if !args.dry_run && args.pretend.is_none() {
        put_back_what_was_left(&knobs);
    }
    let host = Host::look(args)?;
    let scope = host.scope(&profile, args.every_pair());
    let mut candidates = study(plan::candidates(&scope, benches), &scope, &host);
    if let Some(device) = &args.device {
        candidates = device.supply(candidates);
    }
    if let Some(network) = &args.network {
        candidates = network.supply(candidates, &scope);
    }
    let mut planned = plan::fit(candidates, &scope, &profile);
    if let Some(planted) = &args.planted {
        planted.slow(&mut planned);
    }
    if args.drop_caches {
        drop_caches_of(&mut planned)?;
    }
    if args.dry_run {
        let name = args.naming.settle(&host.machine)?.host;
        let code = dry_run::show(&name, &planned, &profile, args)?;
        return Ok(Finished { code, diagnosis: None });
    }
    let reins =
        Reins::taken(knobs.hand(), keep_for(&knobs, if args.pretend.is_some() { &[] } else { &planned }))?;
    let mut header = header(args, &host, &profile, planned, benches)?;
    amend(&mut header);
    let (mut writer, header, earlier) = open(args, header)?;
    if args.drop_caches {
        let text = "the whole machine's page cache is dropped before every cold pass (--drop-caches)";
        let event = Event { at_ms: earlier.measured_ms(), kind: "drop-caches".into(), text: text.into() };
        writer.append(&Record::Event(event))?;
    }
    output::greet(&host.machine, &header, args.pretend.is_some());
    let ended = measure(args, &profile, &header, &mut writer, earlier, &reins);
    let left = reins.knobs.put_back();
    let finished = match ended {
        Ok(ended) => conclude(args, &mut writer, ended)?,
        Err(error) => {
            if let Err(lost) = keep(args, &mut writer) {
                output::tell(&format!("  {lost:#}"));
            }
            return Err(error);
        }
    };
    // What was measured is kept and told, whatever could not be put back.
    left.map(|_| finished)
}

/// Tells cold cases of files that all caches are to be dropped before each pass.
fn drop_caches_of(planned: &mut [Planned]) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("--drop-caches needs root; without it each cold file is dropped from the cache by itself");
    }
    for planned in planned {
        let cold = planned.case.params.get(CACHE).and_then(|cache| cache.text()) == Some("cold");
        if planned.case.bench.starts_with("file.") && cold {
            planned.case.inputs.insert(DROP_CACHES.to_string(), "yes".to_string());
        }
    }
    Ok(())
}

fn measure(
    args: &MeasureArgs,
    profile: &Profile,
    header: &Header,
    writer: &mut Writer,
    earlier: Earlier,
    reins: &Reins,
) -> anyhow::Result<Ended> {
    let [cpu, memory] = group_folders(&args.root);
    let lookout = Lookout::of(args);
    let undecided = |run: &Run| match &args.accept {
        Some(asked) => check::undecided(asked, run, &args.screen.reference),
        None => Vec::new(),
    };
    let session = Session {
        header,
        profile,
        program: std::env::current_exe().context("cannot find this program's own file")?,
        root: args.root.clone(),
        knobs: &reins.knobs,
        keep: &reins.keep,
        groups: Groups { cpu, memory },
        patience: args.patience(),
        visit_limit: args.visit_limit,
        secret: args.network.as_ref().and_then(|network| network.secret.clone()),
        interrupted: &|| reins.interrupted.load(Ordering::Relaxed),
        undecided: &undecided,
        look_after: &|writer| lookout.look(writer),
    };
    let mut display = Display::new();
    let ended = session.run(writer, earlier, &mut |progress| display.show(progress));
    display.end();
    // What a visit that was killed or interrupted could not remove itself.
    leftovers::sweep(&leftovers::places(&header.plan, &args.out()));
    ended
}

/// A new run file, or an interrupted one of the same plan, version and boot.
fn open(args: &MeasureArgs, header: Header) -> anyhow::Result<(Writer, Header, Earlier)> {
    let agrees = |old: &Header| {
        old.schema == header.schema
            && old.plan_id == header.plan_id
            && old.assay == header.assay
            // A sweep's control tells what another boot changed; of anything else nothing would.
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
        output::tell(&format!(
            "  {} is not gone on with: {why}, and what is written must not go where somebody else leads it (--new begins \
              afresh without looking)",
            path.display()
        ));
    }
    let Some((mut writer, run)) = candidates.found else {
        return Ok((Writer::create(&args.out(), &header)?, header, Earlier::default()));
    };
    let boot = if run.header.boot_id == header.boot_id { "" } else { ", in another boot" };
    let text = format!("went on after {} visits{boot}", run.visit_count());
    output::tell(&format!(
        "  going on with {} ({} visits are there; --new begins afresh)",
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

fn header(
    args: &MeasureArgs,
    host: &Host,
    profile: &Profile,
    planned: Vec<Planned>,
    benches: &[&Benchmark],
) -> anyhow::Result<Header> {
    let named = args.naming.settle(&host.machine)?;
    let pretended = args.pretend.is_some();
    let catalogue: Vec<Title> = benches.iter().map(|bench| bench.catalogue()).collect();
    let now = match pretended {
        true => jiff::Timestamp::UNIX_EPOCH,
        false => jiff::Timestamp::now(),
    };
    let second = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    Ok(Header {
        schema: RUN_FILE_SCHEMA,
        assay: env!("CARGO_PKG_VERSION").to_string(),
        host: named.host,
        labels: named.labels,
        started: second.to_string(),
        boot_id: host.machine.load.boot_id.clone(),
        uptime_s: host.machine.load.uptime_s,
        seed: args.seed.or(args.pretend).unwrap_or_else(|| fastrand::u64(..1 << 53)),
        profile: profile.name.to_string(),
        budget_s: profile.budget_s,
        precision: profile.precision,
        allowed_cpus: host.floor.cpus(),
        clock: if pretended { pretended_clock() } else { calibrated_clock(&host.machine) },
        pretend: args.pretend,
        plan_id: plan::plan_id(&planned, profile),
        plan: planned,
        sweep: None,
        factors: None,
        catalogue,
        snapshot: host.snapshot.clone(),
    })
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

/// What ends with a session in whatever way it ends.
struct Reins {
    knobs: Hand,
    keep: Keep,
    /// The user wants out.
    interrupted: Arc<AtomicBool>,
}

impl Reins {
    fn taken(knobs: Hand, keep: Keep) -> anyhow::Result<Reins> {
        let interrupted = catch_signals(knobs.last())?;
        let (usual, last) = (std::panic::take_hook(), knobs.last());
        std::panic::set_hook(Box::new(move |panic| {
            last.try_put_back();
            // Ends the process.
            usual(panic);
        }));
        Ok(Reins { knobs, keep, interrupted })
    }
}
