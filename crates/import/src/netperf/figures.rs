//! One test to figures.

use super::Values;
use super::test::{Kind, Test};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::kit::{MAX_EACH, Number, Run, unfinished};
use crate::percentiles::{percentile_of, too_few_beyond};
use model::Better;

/// Metrics that say most.
pub const HEADLINES: [&str; 4] = ["bandwidth", "rate", "throughput", "latency_p50"];

/// What one of a unit is in Gbit/s; `None` where it is no rate of bytes.
fn gbit(unit: &str) -> Option<f64> {
    let bits = |unit: &str| Some(10f64.powi(unit.strip_prefix("10^")?.strip_suffix("bits")?.parse().ok()?));
    let unit = unit.trim_end_matches("/s");
    // Its bytes are counted in steps of 1024.
    let bytes = |unit: &str| Some(8.0 * crate::kit::scale(unit.strip_suffix("Bytes")?, 1024.0));
    bits(unit).or_else(|| bytes(unit)).map(|bits| bits / 1e9)
}

fn meaning(
    test: &Test,
    values: &Values,
    metric: &str,
    unit: &'static str,
    better: Better,
) -> Option<Meaning> {
    let note = match (test.kind, metric) {
        (Kind::Connections, "rate") => {
            "each connection carries a request and its response, and is closed by both ends"
        }
        (Kind::Requests, "latency_mean") if !values.contains_key("mean_latency") => {
            "the time of all requests over their number"
        }
        (_, "local_cpu" | "remote_cpu") => "of all CPUs of the host, other work included",
        (_, "loss") => "messages that were sent, and those that arrived",
        _ => "",
    };
    let words = metric.replace('_', " ");
    let passes = if test.averaged { "the mean of several passes" } else { "" };
    let notes = [note, passes, test.passes.as_str()].into_iter().filter(|note| !note.is_empty());
    let note = notes.collect::<Vec<_>>().join("; ");
    Some(Meaning {
        keyed: test.keyed(metric, values)?,
        wording: format!("netperf {words}"),
        unit: unit.into(),
        better,
        note,
    })
}

/// The main metric of a test, and its unit here.
fn main(test: &Test) -> (&'static str, &'static str) {
    match test.kind {
        Kind::Stream => ("bandwidth", "Gbit/s"),
        Kind::Requests | Kind::Connections => ("rate", "1/s"),
        Kind::Other => ("throughput", "Gbit/s"),
    }
}

/// What one printed test has.
struct Printed<'p, 't> {
    test: &'p Test,
    values: &'p Values<'t>,
    builder: &'p mut Builder,
    /// What one of its unit is in Gbit/s; `None` where that is no rate of bytes.
    factor: Option<f64>,
    is_rate_of_bytes: bool,
}

/// The figures of one test that came to its end.
pub fn figures(test: &Test, values: &Values, builder: &mut Builder, faults: &mut Faults) {
    let factor = test.unit.as_deref().and_then(gbit);
    let is_rate_of_bytes = test.unit.is_none() || factor.is_some();
    let mut printed = Printed { test, values, builder, factor, is_rate_of_bytes };
    printed.throughput();
    if test.kind == Kind::Stream && !test.averaged {
        checks(test, values, factor, faults);
    }
    printed.losses();
    printed.ends();
    if let Some((width, wanted)) =
        printed.number("throughput_confid").zip(printed.number("confidence_interval"))
        && wanted > 0.0
        && width > wanted
    {
        faults.unsure(&format!("throughput confidence width {width} %, {wanted} % was requested"));
    }
    if matches!(test.kind, Kind::Requests | Kind::Connections) {
        printed.latencies();
    }
}

impl Printed<'_, '_> {
    fn number(&self, name: &str) -> Option<f64> {
        Number::read(self.values.get(name)?).map(|number| number.value)
    }

    fn time(&self) -> Option<f64> {
        self.number("elapsed_time").filter(|time| *time > 0.0)
    }

    fn put(&mut self, metric: &str, unit: &'static str, better: Better, value: Result<f64, String>) {
        // A handful of requests takes less than its last digit, and so does a made-up row.
        let no_time = self.values.get("elapsed_time").filter(|_| self.number("elapsed_time") == Some(0.0));
        let value = match (no_time, value) {
            (Some(time), Ok(value)) => {
                Err(format!("it took {time} s, too short to measure anything: {value}"))
            }
            (_, value) => value,
        };
        match (meaning(self.test, self.values, metric, unit, better), value) {
            (Some(meaning), Ok(value)) => self.builder.value(meaning, value),
            (Some(meaning), Err(why)) => self.builder.missing(meaning, why),
            (None, _) => {}
        }
    }

    /// What went over, or how many requests.
    fn throughput(&mut self) {
        let test = self.test;
        let (metric, own) = match main(test) {
            ("throughput", _) if !self.is_rate_of_bytes => ("throughput", "1/s"),
            main => main,
        };
        let is_fit = self.is_rate_of_bytes == (own == "Gbit/s");
        let factor = self.factor;
        let value = |printed: f64| match (test.name.is_empty(), own) {
            (true, _) => Err(format!("its test is unknown: {printed}")),
            _ if !is_fit => {
                Err(format!("its unit is {}: {printed}", short(test.unit.as_deref().unwrap_or_default())))
            }
            (_, "Gbit/s") => {
                factor.map(|factor| printed * factor).ok_or(format!("its unit is missing: {printed}"))
            }
            _ => Ok(printed),
        };
        let sent = self.number("local_send_throughput");
        if let Some(sent) = sent.filter(|_| test.protocol == "udp" && !test.receives) {
            self.put("sent", "Gbit/s", Better::Neither, value(sent));
        }
        let arrived = self.number("throughput").ok_or_else(|| "what arrived is unknown".to_string());
        self.put(metric, own, Better::Higher, arrived.and_then(value));
    }

    /// What of a stream did not arrive, or was sent again.
    fn losses(&mut self) {
        let test = self.test;
        if test.kind != Kind::Stream {
            return;
        }
        // Of several passes it prints the mean of the rates, and the messages of the last.
        let counts = self.number("okay").zip(self.number("arrived")).filter(|_| !test.averaged);
        if let Some((okay, arrived)) = counts.filter(|(okay, _)| *okay > 0.0) {
            let untrue = || format!("{arrived} of {okay} messages arrived");
            let share = (arrived <= okay).then(|| 1.0 - arrived / okay).ok_or_else(untrue);
            self.put("loss", "", Better::Lower, share);
        }
        let retransmits = self.number("local_transport_retrans").filter(|count| *count >= 0.0);
        let is_own = test.protocol == "tcp" && !test.receives;
        if let Some((count, time)) = retransmits.zip(self.time()).filter(|_| is_own) {
            self.put("retransmits", "1/s", Better::Lower, Ok(count / time));
        }
    }

    /// What both ends spent.
    fn ends(&mut self) {
        for end in ["local", "remote"] {
            let percent = self.number(&format!("{end}_cpu_util")).filter(|percent| *percent >= 0.0);
            if let Some(percent) = percent {
                let untrue = || format!("it says {percent} % of all CPUs");
                let share = (percent <= 100.5).then(|| percent / 100.0).ok_or_else(untrue);
                self.put(&format!("{end}_cpu"), "", Better::Neither, share);
            }
            // It divides by what was transferred: KB of 1024 bytes, or requests.
            let demand = self.number(&format!("{end}_sd")).filter(|demand| *demand >= 0.0);
            let unit = if self.is_rate_of_bytes { "us/KB" } else { "us" };
            if let Some(demand) = demand {
                self.put(&format!("{end}_service_demand"), unit, Better::Lower, Ok(demand));
            }
        }
    }

    fn latencies(&mut self) {
        let requests = self.number("throughput").zip(self.time()).map(|(rate, time)| rate * time);
        for (name, metric) in [
            ("min_latency", "latency_min"),
            ("mean_latency", "latency_mean"),
            ("p50_latency", "latency_p50"),
            ("p90_latency", "latency_p90"),
            ("p99_latency", "latency_p99"),
            ("max_latency", "latency_max"),
            ("stddev_latency", "latency_deviation"),
        ] {
            let derived = (metric == "latency_mean").then(|| self.number("rt_latency")).flatten();
            let Some(us) = self.number(name).or(derived).filter(|us| *us >= 0.0) else { continue };
            let percent = percentile_of(metric).map(|(_, percent)| percent);
            let few = percent.and_then(|percent| too_few_beyond(percent, requests, &format!("{us} µs")));
            let better = if metric == "latency_deviation" { Better::Neither } else { Better::Lower };
            self.put(metric, "us", better, few.map_or(Ok(us), Err));
        }
    }
}

fn size(values: &Values, name: &str) -> Option<Number> {
    Number::read(values.get(name)?)
}

/// Checks whether printed rates are their bytes over their time. Of several passes it prints the
/// mean of the rates, and the bytes of the last.
fn checks(test: &Test, values: &Values, factor: Option<f64>, faults: &mut Faults) {
    let messages = |count: &str| size(values, count).zip(size(values, "local_send_size"));
    let messages = |count: &str| messages(count).map(|(count, bytes)| count.times(bytes.value));
    let arrived = if test.receives { "local_bytes_recvd" } else { "remote_bytes_recvd" };
    let all = [
        ("sent", "local_send_throughput", messages("okay").or(size(values, "local_bytes_sent"))),
        ("throughput", "throughput", size(values, arrived).or(messages("arrived")).or(size(values, "moved"))),
    ];
    for (name, rate, bytes) in all {
        // Of a test that receives, or sends nothing, one of them is nothing.
        let bytes = bytes.filter(|bytes| bytes.value > 0.0).zip(factor);
        let amount = bytes.map(|(bytes, factor)| bytes.times(8e-9 / factor));
        let printed = [size(values, rate), amount, size(values, "elapsed_time")];
        faults.rate(name, printed, |rate, amount, time| {
            format!("it says {rate}; its bytes over {time} s are {:.2}", amount / time)
        });
    }
}

/// Remarks on a run other than its tests: its intervals and its faults.
pub fn beside(run: &Run, test: &Test, is_empty: bool, builder: &mut Builder, faults: &mut Faults) {
    let none = Values::new();
    let values = super::values(run);
    let values = values.last().unwrap_or(&none);
    let died = run.text("died");
    if is_empty && (died.is_some() || run.hit("begin").is_some()) {
        let why = match (died, run.text("alone")) {
            (None, Some(alone)) => format!("it prints a number, {alone}, without its test or unit"),
            (died, _) => unfinished(died),
        };
        let (metric, unit) = main(test);
        if let Some(meaning) = meaning(test, values, metric, unit, Better::Higher) {
            builder.missing(meaning, why);
        }
    } else if let Some(died) = died.filter(|_| !is_empty) {
        faults.interrupted(died);
    }
    if let Some(unsure) = run.text("unsure") {
        let width = run.text("width").unwrap_or("unknown");
        faults.unsure(&format!("{unsure} (throughput: {width})"));
    }
    intervals(run, test, values, builder);
}

/// Its interim reports.
fn intervals(run: &Run, test: &Test, values: &Values, builder: &mut Builder) {
    let units: Vec<&str> = run.texts("interim_unit").collect();
    let times: Vec<f64> =
        run.all("interim_time").filter_map(|hit| hit.number("value")).map(|time| time.value).collect();
    let mut intervals: Vec<(f64, f64)> = Vec::new();
    let (metric, own) = match main(test) {
        ("rate", unit) => ("interval_rate", unit),
        (_, unit) => ("interval_bandwidth", unit),
    };
    for (at, hit) in run.all("interim").enumerate() {
        let time = hit.number("time").map(|time| time.value).or(times.get(at).copied());
        let unit = hit.text("unit").or(units.get(at).copied()).unwrap_or_default();
        let factor = match own {
            "Gbit/s" => gbit(unit),
            _ => (unit == "Trans/s").then_some(1.0),
        };
        let rate = hit.number("value").zip(factor).map(|(rate, factor)| rate.value * factor);
        intervals.extend(rate.zip(time).filter(|(_, time)| *time > 0.0));
    }
    // What is left at the end is no interval like the others.
    if intervals.last().zip(intervals.first()).is_some_and(|(last, first)| last.1 < first.1 / 2.0) {
        intervals.pop();
    }
    if intervals.len() < 2 || test.kind == Kind::Other {
        return;
    }
    if intervals.len() > MAX_EACH {
        builder.remarks.push(format!("{} intervals were left out", intervals.len() - MAX_EACH));
    }
    for (rate, _) in intervals.into_iter().take(MAX_EACH) {
        if let Some(meaning) = meaning(test, values, metric, own, Better::Higher) {
            builder.value(meaning, rate);
        }
    }
}
