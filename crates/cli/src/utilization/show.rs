//! What `assay utilization` shows: text, JSON and a textfile for Prometheus' node exporter.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::words::counted;

use report::plain::{lines, plain};
use report::prometheus::Exposition;
use stats::order::Interval;
use stats::smt::{Bounds, CoreUse, ObservedUse, Sentence, Used, Yield, clocked_up_to, used};

/// What `utilization --json` prints. Shares are 0..1.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The host, or the recording's file.
    pub host: String,
    /// Seconds watched, and the number of readings.
    pub seconds: f64,
    pub looks: usize,
    /// Whether any core has siblings that were online.
    pub smt: bool,
    #[serde(flatten)]
    pub whole: Figures,
    /// Share of the capacity to be kept free, and to how many times today's the work can grow with
    /// that; null where nothing runs.
    pub kept_free: f64,
    pub growth_kept: Option<Range>,
    /// Today's work in the caller's unit, as given.
    pub load: Option<f64>,
    /// The yield of the second thread that was assumed, and whence.
    #[serde(rename = "yield")]
    pub yields: Range,
    pub yield_from: String,
    /// Clock with few cores busy over the clock with all; 1 if unknown or equal.
    pub turbo: f64,
    /// Shares of all CPUs' time: taken by the hypervisor; given to guests (part of the busy time).
    pub stolen: f64,
    pub guest: f64,
    pub cores: Vec<OfCore>,
    /// What was left out, and why.
    pub remarks: Vec<String>,
    /// What looking itself cost, as a share of one CPU; null for recordings.
    pub own_cost: Option<f64>,
}

/// CPU% and real use, of a core or of all.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Figures {
    /// CPU%: mean busy share of the CPUs.
    pub naive: f64,
    /// Used share of the cores (U), with its interval.
    pub used: Range,
    /// By which factor today's work can grow by CPU%; null if nothing runs.
    pub growth_naive: Option<f64>,
    /// The same by used cores; null bounds are infinite.
    pub growth: Option<Range>,
}

/// One core.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OfCore {
    /// Its CPUs that were online, as a list.
    pub cpus: String,
    pub package: Option<i64>,
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of the time in which both siblings were busy (of more than two: the mean number of
    /// further busy ones, as a share of the most).
    pub together: Range,
}

/// A value with its bounds; null is infinite.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Range {
    pub low: Option<f64>,
    pub mid: Option<f64>,
    pub high: Option<f64>,
}

impl Range {
    pub fn of(bounds: Bounds) -> Range {
        let known = |value: f64| Some(value).filter(|value| value.is_finite());
        Range { low: known(bounds.lo), mid: known(bounds.mid), high: known(bounds.hi) }
    }

    fn ends(&self) -> [(&'static str, Option<f64>); 3] {
        [("low", self.low), ("mid", self.mid), ("high", self.high)]
    }
}

impl Figures {
    fn of(used: Used) -> Figures {
        Figures {
            naive: used.naive,
            used: Range::of(used.used),
            growth_naive: used.growth_naive(),
            growth: used.growth().map(Range::of),
        }
    }
}

/// The assumptions and options.
pub struct Assumed {
    /// Share of the capacity to be kept free, 0..1.
    pub free: f64,
    /// Today's work, in any unit.
    pub load: Option<f64>,
    pub s: Yield,
    pub from: String,
    pub turbo: f64,
}

impl Report {
    /// `None` if no core was observed.
    pub fn of(host: &str, seen: &ObservedUse, assumed: &Assumed, own_cost: Option<f64>) -> Option<Report> {
        let mut cores: Vec<CoreUse> = seen.cores.iter().map(|core| core.used).collect();
        clocked_up_to(&mut cores, assumed.turbo);
        let found = used(&cores, assumed.s)?;
        let whole = Figures::of(found);
        let keep = 1.0 - assumed.free;
        let kept =
            |growth: Bounds| Bounds { lo: keep * growth.lo, mid: keep * growth.mid, hi: keep * growth.hi };
        let each = seen.cores.iter().zip(&cores).filter_map(|(watched, core)| {
            Some(OfCore {
                cpus: watched.cpus.iter().copied().collect::<model::CpuSet>().to_string(),
                package: watched.package,
                figures: Figures::of(used(&[*core], assumed.s)?),
                together: Range::of(core.t2()),
            })
        });
        Some(Report {
            host: host.to_string(),
            seconds: seen.seconds,
            looks: seen.looks,
            smt: cores.iter().any(|core| core.threads > 1),
            whole,
            kept_free: assumed.free,
            growth_kept: found.growth().map(kept).map(Range::of),
            load: assumed.load,
            yields: Range::of(Bounds { lo: assumed.s.lo, mid: assumed.s.mid, hi: assumed.s.hi }),
            yield_from: assumed.from.clone(),
            turbo: assumed.turbo,
            stolen: seen.stolen,
            guest: seen.guest,
            cores: each.collect(),
            remarks: seen.remarks.clone(),
            own_cost,
        })
    }

    fn sentence(&self) -> Option<Sentence> {
        let used = self.whole.used;
        Sentence::of(
            self.whole.naive,
            used.mid?,
            used.low.zip(used.high).map(|(low, high)| Interval { low, high }),
        )
    }

    /// `CPU% says 30: 60 % (59–61) are used; work can grow to 1.67 times today's (1.63–1.70),
    /// not 3.33 times`.
    pub fn headline(&self) -> String {
        let Some(sentence) = self.sentence() else {
            let says = percent(self.whole.naive);
            return format!("CPU% is {says}: nothing runs, so headroom is unknown");
        };
        let alone = if self.smt { "" } else { "No core has SMT siblings. " };
        format!("{alone}{}", sentence.words())
    }

    /// Capacity at 100 % and with the margin, in the caller's unit.
    fn bottom_line(&self) -> Option<String> {
        let sentence = self.sentence()?;
        let free = percent(self.kept_free);
        let (full, kept) = (sentence.growth_words(), sentence.kept_words(self.kept_free));
        let mut words = format!("Capacity at 100 %: {full}; with {free} kept free, {kept}");
        if let Some(load) = self.load {
            let promised = self.whole.growth_naive.map(|growth| load * (growth - 1.0));
            let not = promised
                .map_or(String::new(), |more| format!(" (CPU% suggests {})", model::figure(more, "")));
            let [full, kept] = [0.0, self.kept_free].map(|free| sentence.further_words(load, free));
            let _ = write!(words, ". On top of today's {load}: {full}{not}; with {free} kept free, {kept}");
        }
        Some(words)
    }

    /// For people, in lines of this width.
    pub fn text(&self, width: usize) -> String {
        let width = width.clamp(40, 120);
        let wrapped =
            |text: &str| lines(text, width).iter().map(|line| format!("{line}\n")).collect::<String>();
        let cpus = self.cores.iter().map(|core| count_of(&core.cpus)).sum::<usize>();
        let mut text = wrapped(&format!(
            "{}: {:.1} s in {} at {}, {}",
            plain(&self.host, 60),
            self.seconds,
            counted(self.looks, "look"),
            counted(self.cores.len(), "core"),
            counted(cpus, "CPU"),
        ));
        text.push_str(&format!("\n{}", wrapped(&self.headline())));
        text.extend(self.bottom_line().map(|line| wrapped(&line)));
        text.push('\n');
        if self.smt {
            text.push_str(&wrapped(&format!("Yield of the second thread: {}", self.yield_words())));
            if self.turbo > 1.0 {
                let turbo = times(Some(self.turbo));
                text.push_str(&wrapped(&format!(
                    "Clock with few cores busy: up to {turbo} that of the full host"
                )));
            }
            text.push('\n');
        }
        text.push_str(&self.table());
        let mut below = Vec::new();
        if self.stolen >= 0.005 {
            let stolen = percent(self.stolen);
            below.push(format!("Steal: the host withheld {stolen} of the CPU time"));
        }
        if self.guest >= 0.005 {
            below.push(format!("Guests of this host took {} of the CPU time", percent(self.guest)));
        }
        below.extend(self.remarks.iter().map(|remark| format!("Note: {remark}")));
        below.extend(self.own_cost.map(|cost| format!("Measuring took {} of one CPU", model::percent(cost))));
        if !below.is_empty() {
            text.push('\n');
        }
        below.iter().for_each(|line| text.push_str(&wrapped(line)));
        text
    }

    fn yield_words(&self) -> String {
        let (low, mid, high) = (number(self.yields.low), number(self.yields.mid), number(self.yields.high));
        let value = if low == high { mid } else { format!("{low}–{high}, middle {mid}") };
        format!("{value} ({})", self.yield_from)
    }

    fn table(&self) -> String {
        let mut cores: Vec<&OfCore> = self.cores.iter().collect();
        let mut title = String::new();
        if cores.len() > MAX_LINES {
            cores.sort_by(|one, other| {
                other.figures.used.mid.partial_cmp(&one.figures.used.mid).unwrap_or(std::cmp::Ordering::Equal)
            });
            cores.truncate(SHOWN_CORES);
            title = format!("The {SHOWN_CORES} busiest of {} cores (--json has all)\n", self.cores.len());
        }
        let mut rows = vec![["CPUs", "CPU%", "used", "from", "to", "together"].map(str::to_string)];
        rows.extend(cores.iter().map(|core| {
            let used = &core.figures.used;
            let together = share(core.together.mid);
            [
                core.cpus.clone(),
                percent(core.figures.naive),
                share(used.mid),
                // Outwards, as in the sentence above.
                share(used.low.map(|low| (100.0 * low + 1e-6).floor() / 100.0)),
                share(used.high.map(|high| (100.0 * high - 1e-6).ceil() / 100.0)),
                together,
            ]
        }));
        let columns = if self.smt { 6 } else { 2 };
        let widths: Vec<usize> = (0..columns)
            .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = title;
        for row in &rows {
            let _ = write!(text, "  {:<1$}", row[0], widths[0]);
            row.iter().zip(&widths).skip(1).for_each(|(cell, width)| {
                let _ = write!(text, "  {cell:>width$}");
            });
            text.push('\n');
        }
        text
    }

    /// One line for a moment of a long watch.
    pub fn line(&self) -> String {
        format!("{:.0} s: {}", self.seconds, self.headline())
    }

    /// The text format of Prometheus, for a file in a node exporter's textfile collector.
    pub fn prometheus(&self) -> String {
        type Sample = (Vec<(&'static str, String)>, Option<f64>);
        let mut all = Exposition::default();
        let mut metric = |name: &str, help: &str, samples: Vec<Sample>| {
            // Unbounded values are infinite; values below a millionth are zero.
            let number =
                |value: Option<f64>| value.map_or(f64::INFINITY, |value| (value * 1e6).round() / 1e6);
            all.gauge(name, help, samples.into_iter().map(|(labels, value)| (labels, number(value))));
        };
        let bounds = |range: &Range, more: &[(&'static str, String)]| -> Vec<Sample> {
            let labels = |end: &str| [more, &[("bound", end.to_string())]].concat();
            range.ends().iter().map(|(end, value)| (labels(end), *value)).collect()
        };
        let one = |value: f64| vec![(Vec::new(), Some(value))];
        let whole = &self.whole;
        metric(
            "assay_cpu_naive_utilization_ratio",
            "Mean busy share of the CPUs, as CPU% counts it.",
            one(whole.naive),
        );
        metric(
            "assay_cpu_smt_utilization_ratio",
            "Work done over work that all siblings of all cores could do.",
            bounds(&whole.used, &[]),
        );
        if let Some(growth) = whole.growth_naive {
            metric("assay_cpu_naive_growth_ratio", "Growth of today's work that CPU% suggests.", one(growth));
        }
        if let Some(growth) = &whole.growth {
            metric(
                "assay_cpu_growth_ratio",
                "Growth of today's work until all siblings are busy.",
                bounds(growth, &[]),
            );
        }
        if let Some(kept) = &self.growth_kept {
            metric(
                "assay_cpu_growth_kept_ratio",
                "Growth of today's work until only the margin is left free.",
                bounds(kept, &[]),
            );
        }
        metric(
            "assay_cpu_smt_yield_ratio",
            "Assumed work of all siblings over that of one.",
            bounds(&self.yields, &[]),
        );
        metric(
            "assay_cpu_steal_ratio",
            "Steal: share of the CPU time that the host withheld.",
            one(self.stolen),
        );
        let labels = |core: &OfCore| {
            let package = core.package.map_or(String::new(), |package| package.to_string());
            let first = core.cpus.split(['-', ',']).next().unwrap_or_default();
            // A core is named by its first CPU, because core numbers are not unique.
            vec![("core", first.to_string()), ("package", package), ("cpus", core.cpus.clone())]
        };
        let naive = self.cores.iter().map(|core| (labels(core), Some(core.figures.naive))).collect();
        metric("assay_core_naive_utilization_ratio", "Mean busy share of a core's CPUs.", naive);
        let each = |core: &OfCore| bounds(&core.figures.used, &labels(core));
        metric(
            "assay_core_smt_utilization_ratio",
            "Work that a core did over work that all its siblings could do.",
            self.cores.iter().flat_map(each).collect(),
        );
        metric("assay_cpu_sampled_seconds", "Time that these figures cover.", one(self.seconds));
        all.text()
    }
}

/// More cores than this are shown by the most used ones only.
const MAX_LINES: usize = 16;
const SHOWN_CORES: usize = 8;

fn count_of(cpus: &str) -> usize {
    model::CpuSet::parse_list(cpus).map_or(0, |cpus| cpus.len())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn share(value: Option<f64>) -> String {
    value.map_or("-".to_string(), percent)
}

fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value >= 99.5 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
        None => "any number of".to_string(),
    }
}

fn times(value: Option<f64>) -> String {
    format!("{} times", number(value))
}
