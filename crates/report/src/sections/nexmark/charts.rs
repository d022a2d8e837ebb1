//! Flink's three charts: CPU% over events a second, events a second over CPU%, and attainment.

use super::{Place, Step};
use crate::block::{Axis, Chart, ChartKind, Line, LinePoint, Table};
use crate::sections::figures::value_words;
use crate::sections::names::placement_words;
use crate::sections::{column, number, right, text};
use model::VerdictKind;
use model::vocabulary::MetricId;
use model::vocabulary::nexmark as ids;

const CPU: &str = "CPU% of the TaskManager's CPUs";
const EVENTS: &str = "events, 1/s";
const EACH: &str = "events per % of CPU, 1/s";

/// One metric over another, of every placement.
struct Kind {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    x: (MetricId, &'static str),
    y: (MetricId, &'static str),
}

const KINDS: [Kind; 3] = [
    Kind {
        id: "cpu",
        title: "CPU% over events per second",
        about: "CPU% that each rate shows. On two threads of one core it rises faster than the rate from about half on. \
                Hollow: rejected.",
        x: (ids::metric::RATE, EVENTS),
        y: (ids::metric::CPU, CPU),
    },
    Kind {
        id: "rate",
        title: "Events per second over CPU%",
        about: "Rate at each CPU%. Do not extrapolate: plan with the maximum rate minus a margin. Hollow: rejected.",
        x: (ids::metric::CPU, CPU),
        y: (ids::metric::RATE, EVENTS),
    },
    Kind {
        id: "attainment",
        title: "Attainment: events per % of CPU",
        about: "Rising at light load: more events share the fixed cost. Falling towards full load: each further percent of \
                CPU adds less, as on two threads of one core. Hollow: rejected.",
        x: (ids::metric::CPU, CPU),
        y: (ids::metric::ATTAINMENT, EACH),
    },
];

/// The three charts, of a query whose id is `id`.
pub fn all(places: &[Place], id: &str) -> Vec<Chart> {
    KINDS.iter().map(|kind| chart(places, id, kind)).collect()
}

fn chart(places: &[Place], id: &str, kind: &Kind) -> Chart {
    let mut rows = Vec::new();
    let lines = places.iter().map(|(name, steps)| {
        let point = |step: &Step| {
            let (x, y) = (step.judged(kind.x.0)?, step.judged(kind.y.0)?);
            rows.push(vec![
                text(placement_words(name)),
                number(step.load.to_string()),
                number(value_words(x)),
                number(value_words(y)),
            ]);
            let found = y.analysis.figure()?;
            Some(LinePoint {
                x: x.analysis.figure()?.median,
                y: found.median,
                low_high: found.interval.map(|between| [between.low, between.high]),
                hollow: [x, y].iter().any(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected),
            })
        };
        Line {
            name: placement_words(name).to_string(),
            points: steps.iter().filter_map(point).collect(),
            joined: true,
        }
    });
    let lines = lines.collect();
    Chart::new(
        format!("chart-{id}-{}", kind.id),
        kind.title,
        ChartKind::lines(Axis::linear(kind.x.1), Axis::linear(kind.y.1), lines),
        Table::new(vec![column("placement"), right("load"), right(kind.x.1), right(kind.y.1)], rows).folded(),
    )
    .about(kind.about)
}
