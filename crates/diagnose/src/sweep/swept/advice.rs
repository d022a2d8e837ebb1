//! The end of a sweep: settings for throughput, for response and for both, the smallest effect that
//! would have been seen, and what more time gives.

use super::{EvaluatedSweep, Facet, MetricGrid, words};
use crate::words::percent_range;
use model::{Better, Sweep, percent};
use stats::order::Interval;
use stats::sweep::{Advised, MAX_RESPONSE_LOSS};

/// The use that a recommendation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The only metric of a sweep.
    Benchmark,
    Throughput,
    Response,
    /// A server, which needs both.
    Compromise,
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Benchmark => "benchmark",
            Purpose::Throughput => "throughput",
            Purpose::Response => "response",
            Purpose::Compromise => "compromise",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Purpose::Benchmark => "this benchmark",
            Purpose::Throughput => "throughput",
            Purpose::Response => "response",
            Purpose::Compromise => "a server, which needs both",
        }
    }
}

/// A sentence of advice.
pub struct Recommendation {
    pub purpose: Purpose,
    /// `None`: keep the present setting.
    pub advised: Option<Advised>,
    pub text: String,
}

/// What to set, in the order of importance; empty where no metric has a better side.
pub fn recommendations(sweep: &Sweep, facet: &Facet) -> Vec<Recommendation> {
    let known = |charted: &MetricGrid| charted.metric.better != Better::Neither;
    let target = Some(&facet.target).filter(|target| known(target));
    let mut all = Vec::new();
    let purpose = if facet.response.is_some() { Purpose::Throughput } else { Purpose::Benchmark };
    all.extend(target.map(|target| (purpose, target, facet.response.as_ref(), facet.advice.target)));
    if let Some(response) = facet.response.as_ref().filter(|response| known(response)) {
        all.push((Purpose::Response, response, Some(&facet.target), facet.advice.response));
        all.extend(target.map(|target| (Purpose::Compromise, target, Some(response), facet.advice.both)));
    }
    let made = all.into_iter().map(|(purpose, own, other, advised)| {
        let said = match advised {
            Some(advised) => set(sweep, facet, purpose, own, other, &advised),
            None => leave(sweep, facet, purpose, own),
        };
        Recommendation { purpose, advised, text: format!("For {}: {said}", purpose.words()) }
    });
    made.collect()
}

/// `min_granularity 15 ms to 20 ms; wall time 12 % less (10–14 %), latency 3.1 % more (1 % less to
/// 7.4 % more)`.
fn set(
    sweep: &Sweep,
    facet: &Facet,
    purpose: Purpose,
    own: &MetricGrid,
    other: Option<&MetricGrid>,
    advised: &Advised,
) -> String {
    let cells: Vec<usize> = advised.area.cells(sweep.shape()[0]).collect();
    let mut text = match facet.advice.target {
        Some(target) if purpose == Purpose::Compromise && target.area == advised.area => {
            "the same as for throughput".to_string()
        }
        _ => words::span(sweep, &cells),
    };
    if cells.len() > 1 {
        let best = words::setting(sweep, advised.cell);
        match words::left_open(sweep, &cells) {
            Some(open) => text.push_str(&format!(", at any {open} (mean over it; best at {best})")),
            None => text.push_str(&format!(" (best at {best})")),
        }
    }
    text.push_str(&format!("; {} {}", own.metric.title, change(advised.gain.ln, advised.gain.interval)));
    if let Some((other, seen)) = other.zip(advised.other) {
        text.push_str(&format!("; {} {}", other.metric.title, change(seen.ln, seen.interval)));
    }
    if purpose == Purpose::Compromise {
        text.push_str(&format!(
            ". This is the most throughput with a response at most {} worse",
            percent(MAX_RESPONSE_LOSS)
        ));
    }
    text
}

fn leave(sweep: &Sweep, facet: &Facet, purpose: Purpose, own: &MetricGrid) -> String {
    let before = words::before(sweep);
    match (purpose, facet.advice.target.is_some()) {
        (Purpose::Compromise, true) => format!(
            "choose one of the two; where {} is better, the response may be more than {} worse",
            own.metric.title,
            percent(MAX_RESPONSE_LOSS)
        ),
        (Purpose::Compromise, false) => format!("keep {before}. Nothing gains throughput"),
        _ => match own.surface.detectable_effect() {
            Some(seen) => format!(
                "keep {before}. No gain above {} was seen in {}",
                percent(match own.metric.better {
                    Better::Lower => 1.0 - (-seen).exp(),
                    _ => seen.exp() - 1.0,
                }),
                own.metric.title
            ),
            None => format!("keep {before}. No gain was seen in {}", own.metric.title),
        },
    }
}

/// A change with its interval: `12 % less (10–14 %)`.
pub fn change(ln: f64, interval: Interval) -> String {
    let [at, low, high] = [ln, interval.low, interval.high].map(f64::exp);
    let range = match (high < 1.0, low > 1.0 && high < 3.0) {
        (true, _) => percent_range(1.0 - high, 1.0 - low),
        (_, true) => percent_range(low - 1.0, high - 1.0),
        _ => format!("{} to {}", words::change(low), words::change(high)),
    };
    format!("{} ({range})", words::change(at))
}

/// The smallest effect that would have been seen in a metric, and what more time would show.
pub struct Seen<'a> {
    pub title: &'a str,
    /// The smallest effect of a knob that would have been seen, a share.
    pub effect: f64,
    /// Whether that is as little as was asked for; `None` where nothing was.
    pub enough: Option<bool>,
    /// Where it is not: the time in all that the effect asked for takes ...
    pub needed_s: Option<f64>,
    /// ... and a time within reach with the effect that would be seen after it.
    pub more: Option<(f64, f64)>,
}

/// A longer sweep than this many times the time spent is not proposed.
const REACH: f64 = 8.0;

/// Of one metric.
pub fn seen<'a>(swept: &EvaluatedSweep, charted: &'a MetricGrid) -> Option<Seen<'a>> {
    let ln = charted.surface.detectable_effect()?;
    let asked = swept.sweep.effect;
    // What would be seen falls with the root of the time.
    let times = asked.map(|asked| (ln / asked.ln_1p()).powi(2));
    let (needed_s, more) = match times {
        Some(times) if times > 1.0 => {
            let within = times.min(REACH);
            let effect = (ln / within.sqrt()).exp() - 1.0;
            (Some(times * swept.spent_s), Some((within * swept.spent_s, effect)))
        }
        _ => (None, None),
    };
    let enough = times.map(|times| times <= 1.0);
    Some(Seen { title: &charted.metric.title, effect: ln.exp() - 1.0, enough, needed_s, more })
}

/// Those of all metrics in a sentence or two.
pub fn seen_words(swept: &EvaluatedSweep, facet: &Facet) -> String {
    let all = [Some(&facet.target), facet.response.as_ref()].into_iter().flatten();
    let each: Vec<String> = all.filter_map(|charted| seen_of(swept, charted)).collect();
    each.join(" ")
}

/// That of one metric in a sentence or two.
pub fn seen_of(swept: &EvaluatedSweep, charted: &MetricGrid) -> Option<String> {
    let seen = seen(swept, charted)?;
    let mut text = format!("On {} an effect of {} would have been seen", seen.title, percent(seen.effect));
    if let Some((s, effect)) = seen.more {
        let asked = percent(swept.sweep.effect.unwrap_or(0.0));
        let time = duration(s);
        text.push_str(&format!(
            ". {asked} was requested. With {time} (--budget {}), {} would be seen",
            time.replace(' ', "").replace("min", "m"),
            percent(effect)
        ));
    }
    Some(format!("{text}."))
}

/// Seconds rounded up as people say them: `50 s`, `5 min`, `3 h`.
fn duration(s: f64) -> String {
    match s {
        s if s <= 90.0 => format!("{:.0} s", (s / 10.0).ceil() * 10.0),
        s if s <= 90.0 * 60.0 => format!("{:.0} min", (s / 60.0).ceil()),
        s => format!("{:.0} h", (s / 3600.0).ceil()),
    }
}
