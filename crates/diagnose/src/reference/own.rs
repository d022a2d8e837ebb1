//! Rows from runs that users have: a figure's interval is its band, under the figure's own key.

use super::class::HostClass;
use super::table::{Kind, Place, Row, Sure};
use crate::Diagnosis;
use model::Better;

/// Benchmarks whose figures depend on the kernel's mitigations.
const OF_KERNEL: [&str; 8] = ["syscall", "signal", "vm", "ipc", "sched", "process", "file", "timer"];

/// The rows of a run that users call `name`. Kept for later it counts for hosts of its class; named
/// on the spot (`for_any`) for any.
pub fn rows_of_run(name: &str, diagnosis: &Diagnosis, for_any: bool) -> Vec<Row> {
    let host = HostClass::of(&diagnosis.machine);
    let header = &diagnosis.run.header;
    let place = host.is_guest.map(|is_guest| if is_guest { Place::Guest } else { Place::BareMetal });
    let row = |judged: &stats::analysis::Judged| {
        let (series, analysis) = (&judged.series, &judged.analysis);
        let group = series.case.bench.split('.').next().unwrap_or_default();
        let figure = analysis.figure().filter(|_| analysis.verdict.usable())?;
        let [low, high] = figure.interval.map_or([figure.median; 2], |all| [all.low, all.high]);
        let class = match (for_any, group) {
            (true, _) => "any",
            (false, "network") => return None,
            (false, "disk") => host.disk.first()?,
            (false, _) => host.processor.first()?,
        };
        // A host of no known class is no reference for others.
        if class == "any" && !for_any {
            return None;
        }
        let usable = low.is_finite() && high.is_finite() && low >= 0.0;
        (usable && series.metric.better != Better::Neither).then(|| Row {
            metric: series.key.clone(),
            name: series.metric.title.to_string(),
            subject: class.to_string(),
            place: place.filter(|_| !for_any),
            detail: match host.isolation.filter(|_| OF_KERNEL.contains(&group)) {
                None => String::new(),
                Some(true) => "page-table isolation".to_string(),
                Some(false) => "no page-table isolation".to_string(),
            },
            unit: series.metric.unit.to_string(),
            better: series.metric.better,
            low: Some(low),
            high: Some(high),
            kind: Some(Kind::Run),
            source: format!("{name}: {}", header.host),
            source_date: header.started.get(..10).unwrap_or(&header.started).to_string(),
            sure: Sure::High,
            note: if header.pretend.is_some() { "invented samples".to_string() } else { String::new() },
        })
    };
    diagnosis.series.iter().filter_map(row).collect()
}
