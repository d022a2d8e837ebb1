//! Jobs to series. A direction of a job is a series each of `iops`, `bandwidth` and latencies,
//! under the keys of our own rows where they mean the same:
//! `disk.random@one-cpu?cache=direct&op=read/block=4096&depth=32#iops`. An option that makes the
//! work another one stands in the key, so that only jobs of one kind are compared.
//!
//! fio's percentiles are of the completion (from after the submission on), unless the job asked for
//! `lat_percentiles`.

use super::crew::{JobGroup, OFF, ONE_IN_FLIGHT, text};
use super::latencies::{check, latencies, percentiles};
use super::recount::is_of;
use super::{Direction, DirectionStats, Job};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::{Imported, Keyed};
use model::vocabulary::{BenchId, disk as ids};
use model::{Better, Case, Params, Placement};

/// The series of all jobs.
pub fn figures(jobs: &[Job], builder: &mut Builder, faults: &mut Faults) {
    let alike = |a: &Job, b: &Job| {
        a.name == b.name
            && a.group == b.group
            && a.host == b.host
            && a.options == b.options
            && a.unfinished == b.unfinished
    };
    let mut crews: Vec<JobGroup> = Vec::new();
    for job in jobs {
        match crews.iter_mut().find(|crew| alike(crew.jobs[0], job) && job.group.is_some()) {
            Some(crew) => crew.jobs.push(job),
            None => crews.push(JobGroup { jobs: vec![job], ..JobGroup::default() }),
        }
    }
    let names: Vec<(Option<i64>, &str, &str)> = crews
        .iter()
        .map(|crew| (crew.jobs[0].group, crew.jobs[0].host.as_str(), crew.jobs[0].name.as_str()))
        .collect();
    for (at, crew) in crews.iter_mut().enumerate() {
        let (group, host, _) = names[at];
        let beside = |(other, (group_of, host_of, _)): &(usize, &(Option<i64>, &str, &str))| {
            *other != at && group.is_some() && *group_of == group && *host_of == host
        };
        crew.among = names.iter().enumerate().filter(beside).map(|(_, (.., name))| *name).collect();
        crew.count();
    }
    let by = |engine: &'static str| crews.iter().filter(move |crew| crew.engine() == Some(engine));
    let ours: Vec<_> = by("io_uring").map(JobGroup::work).collect();
    let beside_ours: Vec<bool> =
        crews.iter().map(|crew| crew.engine() == Some("libaio") && ours.contains(&crew.work())).collect();
    for (mut crew, beside_ours) in crews.into_iter().zip(beside_ours) {
        crew.beside_ours = beside_ours;
        crew.figures(builder, faults);
    }
}

/// Says that there is nothing to be had.
pub fn nothing(builder: &mut Builder, why: &str) {
    let keyed = Keyed {
        case: case("fio.job", "free", Params::new()),
        point: Params::new(),
        metric: "iops".to_string(),
    };
    let meaning = Meaning {
        keyed,
        wording: "fio".to_string(),
        unit: "1/s".into(),
        better: Better::Higher,
        note: String::new(),
    };
    builder.missing(meaning, why.to_string());
}

/// Marks what a row's first figure is.
pub fn headlines(imported: &mut Imported) {
    let headline = |bench: &str, metric: &str| match BenchId::named(bench) {
        Some(ids::SEQUENTIAL) => metric == ids::metric::BANDWIDTH,
        Some(ids::SYNC) => metric == ids::metric::LATENCY_P50,
        _ => metric == ids::metric::IOPS,
    };
    for figure in &mut imported.figures {
        let series = &mut figure.judged.series;
        series.metric.headline = headline(&series.case.bench, &series.metric.name);
    }
    for title in &mut imported.catalogue {
        let id = title.id.clone();
        title.metrics.iter_mut().for_each(|metric| metric.headline = headline(&id, &metric.name));
    }
}

fn case(bench: &'static str, placement: &'static str, params: Params) -> Case {
    Case { params, ..Case::new(bench, Placement::named(placement)) }
}

/// A figure of one direction.
type OfSide = fn(&DirectionStats) -> Option<f64>;

/// What the figures of one direction of a job are called.
struct Named {
    case: Case,
    point: Params,
    job: String,
    side: &'static str,
}

impl Named {
    fn meaning(&self, metric: &str, unit: &'static str, better: Better, notes: &[String]) -> Meaning {
        let job = short(&self.job);
        let words = [job.as_str(), self.side, metric];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        Meaning {
            keyed: Keyed { case: self.case.clone(), point: self.point.clone(), metric: metric.to_string() },
            wording: words.join(" "),
            unit: unit.into(),
            better,
            note: notes.join("; "),
        }
    }

    fn rate(&self, metric: &str, notes: &[String]) -> Meaning {
        let unit = if metric == ids::metric::IOPS { "1/s" } else { "GB/s" };
        self.meaning(metric, unit, Better::Higher, notes)
    }
}

impl JobGroup<'_> {
    fn figures(&self, builder: &mut Builder, faults: &mut Faults) {
        for job in &self.jobs {
            if job.error != 0 {
                let words = if job.error_words.is_empty() { "" } else { ", " };
                faults.failed(
                    &short(&job.name),
                    &format!("error {}{words}{}", job.error, job.error_words),
                    "the job",
                );
            }
            if !job.passed_over.is_empty() {
                faults.failed(&short(&job.name), &job.passed_over, "the job");
            }
        }
        let ways = self.ways();
        self.steady(builder);
        // Some reports have each direction and their sum.
        let is_split = self.jobs.iter().any(|job| job.sides.iter().any(|side| !side.is_empty()));
        let unified: Vec<&DirectionStats> = self.jobs.iter().filter_map(|job| job.unified.as_ref()).collect();
        if !unified.is_empty() && !is_split {
            let op = if ways.len() > 1 { "mixed" } else { ways[0].word() };
            self.direction(ways[0], op, false, &unified, builder, faults);
            return self.synced(builder);
        }
        for way in Direction::ALL {
            let sides: Vec<&DirectionStats> =
                self.jobs.iter().map(|job| job.side(way)).filter(|side| !side.is_empty()).collect();
            let meant = ways.contains(&way);
            if sides.is_empty() && !meant {
                continue;
            }
            if !meant && !self.merged && !self.verify_phase(way) {
                let moved = sides.iter().filter_map(|side| side.bytes).sum::<f64>();
                faults.disagree(
                    &short(&self.job().name),
                    format!("the job is {} and has {moved:.0} bytes in direction {}", self.rw(), way.word()),
                    "the job",
                );
            }
            let mixed = meant && ways.len() > 1 && !self.job().untold;
            let op = if mixed { "mixed" } else { way.word() };
            self.direction(way, op, mixed, &sides, builder, faults);
        }
        self.both(builder);
        self.cpu(builder);
        self.synced(builder);
    }

    /// Both directions of mixed jobs together, where they went on for the same time.
    fn both(&self, builder: &mut Builder) {
        let whole = self.jobs.len() as u64 == self.count || self.one_report();
        let sides: Vec<&DirectionStats> = self.jobs.iter().flat_map(|job| &job.sides[..2]).collect();
        let times: Vec<f64> = sides.iter().filter_map(|side| side.runtime_ms).collect();
        let (least, most) =
            times.iter().fold((f64::MAX, 0.0f64), |(least, most), one| (least.min(*one), most.max(*one)));
        if self.job().untold
            || self.ways() != [Direction::Read, Direction::Write]
            || !whole
            || times.len() < sides.len()
            || most > least * 1.01 + 1.0
        {
            return;
        }
        let mut notes = self.notes();
        notes.push("reads and writes together".to_string());
        let sums: [(&str, &'static str, OfSide); 2] = [
            ("iops", "1/s", |side| side.iops),
            ("bandwidth", "GB/s", |side| side.bandwidth.map(|rate| rate / 1e9)),
        ];
        for (metric, unit, of) in sums {
            let Some(all) = sides.iter().map(|side| of(side)).collect::<Option<Vec<f64>>>() else { continue };
            let keyed = Keyed {
                case: case(self.bench(), self.place(), self.params("mixed")),
                point: self.point(Direction::Read),
                metric: metric.to_string(),
            };
            let wording = format!("{} {metric}", short(&self.job().name));
            let note = notes.join("; ");
            builder.value(
                Meaning { keyed, wording, unit: unit.into(), better: Better::Higher, note },
                all.iter().sum(),
            );
        }
    }

    /// What figures of one direction are called; with what is said of all of them.
    fn named(&self, way: Direction, op: &str, one_of_both: bool) -> (Named, Vec<String>) {
        let bench = if way == Direction::Trim { ids::TRIM.as_str() } else { self.bench() };
        let mut params = self.params(op);
        if one_of_both {
            params.insert(model::vocabulary::network::param::DIRECTION, text(way.word()));
        }
        let mut notes = self.notes();
        if self.verify_phase(way) {
            params.set("phase", text("verify"));
            notes.push(if self.job().verifies() {
                "fio's verify phase: it reads back what it wrote".to_string()
            } else {
                "probably fio's verify phase, which its text does not show: it reads back what it wrote"
                    .to_string()
            });
        }
        if way == Direction::Trim {
            notes.push(
                "fio trims the file or device of the job; Assay punches a hole into a file of its own"
                    .to_string(),
            );
        }
        // Where both directions are one, it is none of the two.
        let side = if op == "mixed" && !one_of_both { "" } else { way.word() };
        let (case, point) = (case(bench, self.place(), params), self.point(way));
        (Named { case, point, job: self.job().name.clone(), side }, notes)
    }

    fn direction(
        &self,
        way: Direction,
        op: &str,
        one_of_both: bool,
        sides: &[&DirectionStats],
        builder: &mut Builder,
        faults: &mut Faults,
    ) {
        let (named, mut notes) = self.named(way, op, one_of_both);
        let rounded = sides.iter().map(|side| side.rounded.as_str()).find(|text| !text.is_empty());
        let mut rates = notes.clone();
        rates.extend(rounded.map(str::to_string));
        if sides.is_empty() {
            let job = self.job();
            let why = job.unfinished.clone().unwrap_or_else(|| match job.error {
                0 => "no such I/O was done".to_string(),
                error => format!("no such I/O was done: the job ended with error {error}"),
            });
            builder.missing(named.rate("iops", &rates), why.clone());
            return builder.missing(named.rate("bandwidth", &rates), why);
        }
        let asked = self.block_size(way).filter(|_| !self.job().verifies() && (one_of_both || op != "mixed"));
        for side in sides {
            check(&named.job, way, side, faults);
            if let Some(block) = asked.filter(|block| !is_of(side, *block, self.in_flight())) {
                let each = side.bytes.zip(side.ios).map_or(0.0, |(bytes, ios)| bytes / ios);
                faults.disagree(
                    &format!("{} {}", short(&named.job), way.word()),
                    format!("its block size is {block:.0} bytes; its bytes over its I/Os are {each:.0}"),
                    "the job",
                );
            }
        }
        let of_rates: [(&str, OfSide); 2] =
            [("iops", |side| side.iops), ("bandwidth", |side| side.bandwidth.map(|rate| rate / 1e9))];
        for (metric, of) in of_rates {
            match self.whole(sides, of) {
                Ok(value) => builder.value(named.rate(metric, &rates), value),
                Err(why) => builder.missing(named.rate(metric, &rates), why),
            }
            if sides.len() > 1 {
                let unit = if metric == ids::metric::IOPS { "1/s" } else { "GB/s" };
                let each = named.meaning(&format!("{metric}_each"), unit, Better::Neither, &notes);
                let values = sides.iter().filter_map(|side| of(side));
                values.for_each(|value| builder.value(each.clone(), value));
            }
        }
        if sides.len() > 1 {
            notes.push(format!("of each of {} jobs at once", sides.len()));
        }
        let us = |metric: &str, notes: &[String]| named.meaning(metric, "us", Better::Lower, notes);
        let synchronous = self.engine().is_some_and(|engine| ONE_IN_FLIGHT.contains(&engine));
        for side in sides {
            latencies(&named.job, synchronous, side, &notes, &us, builder, faults);
        }
    }

    /// A rate of all jobs together.
    fn whole(&self, sides: &[&DirectionStats], of: OfSide) -> Result<f64, String> {
        let all: Option<Vec<f64>> = sides.iter().map(|side| of(side)).collect();
        match all {
            None => Err("not in the file".to_string()),
            Some(_) if !self.one_report() && (sides.len() as u64) < self.count => {
                Err(format!("{} of {} jobs have a figure in the file", sides.len(), self.count))
            }
            Some(all) => Ok(all.iter().sum()),
        }
    }

    /// What a steady state gave, where one was waited for and reached.
    fn steady(&self, builder: &mut Builder) {
        let ways = self.ways();
        let op = if ways.len() > 1 { "mixed" } else { ways[0].word() };
        for job in &self.jobs {
            let Some(steady) = &job.steady else { continue };
            let figures = [
                ("steady_iops", "1/s", steady.iops),
                ("steady_bandwidth", "GB/s", steady.bandwidth.map(|rate| rate / 1e9)),
            ];
            for (metric, unit, value) in figures {
                let keyed = Keyed {
                    case: case(self.bench(), self.place(), self.params(op)),
                    point: self.point(ways[0]),
                    metric: metric.to_string(),
                };
                let wording = format!("{} {metric}", short(&job.name));
                let note = "the mean of its steady state, of both directions".to_string();
                let meaning = Meaning { keyed, wording, unit: unit.into(), better: Better::Higher, note };
                match value.filter(|_| steady.attained) {
                    Some(value) => builder.value(meaning, value),
                    None => builder.missing(meaning, "it reached no steady state".to_string()),
                }
            }
        }
    }

    /// Whether the only report is of all of them.
    fn one_report(&self) -> bool {
        self.jobs.len() == 1 && (self.merged || self.job().jobs.is_some() || self.reported_as_one())
    }

    /// CPU time of an I/O: fio's shares are of the jobs' time.
    fn cpu(&self, builder: &mut Builder) {
        for job in &self.jobs {
            let ios: f64 = job.sides.iter().filter_map(|side| side.ios).sum();
            let longest = job.sides.iter().filter_map(|side| side.runtime_ms).fold(0.0, f64::max);
            let time = job.job_runtime_ms.or((longest > 0.0).then(|| longest * job.jobs.unwrap_or(1) as f64));
            // A job that failed has issued I/Os and moved nothing.
            let worked = ios > 0.0 && longest > 0.0 && job.sides.iter().any(|side| !side.is_empty());
            let (Some(cpu), Some(time), true) = (job.cpu, time, worked) else { continue };
            let ways = self.ways();
            if job.untold && ways.len() > 1 {
                continue;
            }
            let op = if ways.len() > 1 { "mixed" } else { ways[0].word() };
            let way = ways[0];
            let bench = if way == Direction::Trim { ids::TRIM.as_str() } else { self.bench() };
            let keyed = Keyed {
                case: case(bench, self.place(), self.params(op)),
                point: self.point(way),
                metric: "cpu_per_io".to_string(),
            };
            let meaning = Meaning {
                keyed,
                wording: format!("{} usr and sys", short(&job.name)),
                unit: "us".into(),
                better: Better::Lower,
                note: self.notes().join("; "),
            };
            builder.value(meaning, cpu / 100.0 * time * 1e3 / ios);
        }
    }

    fn synced(&self, builder: &mut Builder) {
        for job in &self.jobs {
            if job.sync.n.is_none() && job.sync.mean.is_none_or(|mean| mean == 0.0) {
                continue;
            }
            let every = |name: &str| job.option(&[name]).filter(|value| !OFF.contains(value));
            let (op, every) = match (every("fdatasync"), every("fsync")) {
                (Some(every), None) => ("fdatasync", every),
                (None, Some(every)) => ("fsync", every),
                _ => ("untold", ""),
            };
            let mut params = self.params(op);
            params.retain(|name, _| !["fsync", "fdatasync", "writes_a_sync"].contains(&name.as_str()));
            if !["", "1"].contains(&every) {
                params.set("every", text(every));
            }
            let mut notes = self.notes();
            notes.push("each follows writes of the job".to_string());
            let meaning = |metric: &str| Meaning {
                keyed: Keyed {
                    case: case(ids::SYNC.as_str(), self.place(), params.clone()),
                    point: self.point(Direction::Write),
                    metric: metric.to_string(),
                },
                wording: format!("{} sync {metric}", short(&job.name)),
                unit: "us".into(),
                better: Better::Lower,
                note: notes.join("; "),
            };
            percentiles(&job.sync, "latency", job.sync.n, &meaning, builder);
            for (metric, value) in [("latency_mean", job.sync.mean), ("latency_max", job.sync.max)] {
                if let Some(value) = value {
                    builder.value(meaning(metric), value / 1e3);
                }
            }
        }
    }
}
