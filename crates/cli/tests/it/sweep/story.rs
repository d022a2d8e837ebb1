//! The published sweep as a made run: the surface that its text describes in, its regions and its
//! compromise out.
//!
//! `../shared/spec/2-scheduler-sweep.md` describes the regions, `data/hackbench_tuned.csv` has the
//! settings before and after. Times, switches and response are made from that text: steep fall up
//! to 4 ms, ragged up to 17 ms, flat from there on; a large w helps small m and hurts middling m;
//! best at m of 15 to 20 ms with w of 6 to 8 ms; a small w responds sooner.

use std::collections::BTreeMap;

use model::sweep::{Axis, AxisOf, Measure};
use model::vocabulary::hackbench::metric as ids;
use model::vocabulary::{hackbench, sched};
use model::{Case, Planned, Run, Samples, Sweep};
use serde_json::{Value, json};

use crate::host::skipped;

const M_MS: [f64; 14] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 15.0, 17.0, 20.0, 25.0, 30.0];
const W_MS: [f64; 7] = [1.0, 3.0, 6.0, 8.0, 12.0, 15.0, 20.0];
const PASSES: u32 = 12;
const NOISE: f64 = 0.03;

/// Logarithm of hackbench's time.
fn time(m: f64, w: f64) -> f64 {
    let flat = -0.02;
    match m {
        // Preemption too frequent; a larger w helps.
        m if m < 4.0 => flat + (4.0 - m) * 0.14 * (1.0 - 0.02 * w.min(15.0)) + 0.05,
        m if m < 14.5 => {
            // Its ups and downs, and a large w at middling m.
            let swing = if [6.0, 10.0, 14.0].contains(&m) { 0.05 } else { -0.04 };
            let hurt = if w > 10.0 && (8.0..13.0).contains(&m) { 0.06 } else { 0.0 };
            flat + swing + hurt
        }
        m if (6.0..=8.0).contains(&w) => flat - if m <= 20.0 { 0.09 } else { 0.055 },
        _ => flat,
    }
}

/// Involuntary switches a run.
fn involuntary(m: f64) -> f64 {
    match m {
        m if m < 4.5 => 12_000.0 * (-(m - 1.0) * (12_000.0_f64 / 900.0).ln() / 3.0).exp(),
        m if m < 14.5 => 600.0,
        _ => 40.0,
    }
}

/// Logarithm of the 99th percentile of a wake-up.
fn response(w: f64) -> f64 {
    if w <= 8.0 { 0.012 * (w - 3.0) } else { 0.06 + 0.04 * (w - 6.0) }
}

/// What was set before and after, ms, by the published table.
fn published() -> Option<[[f64; 2]; 2]> {
    let path = testkit::root().join("../shared/spec/data/hackbench_tuned.csv");
    let text = std::fs::read_to_string(path).ok()?;
    let rows = text.lines().filter(|line| line.starts_with("tuned "));
    let row = |line: &str| {
        let mut numbers = line.split(',').skip(1).map(|number| number.parse::<f64>().expect("a number"));
        [numbers.next().expect("m"), numbers.next().expect("w")]
    };
    let rows: Vec<[f64; 2]> = rows.map(row).collect();
    Some(rows.try_into().expect("off and on"))
}

fn ns(ms: f64) -> String {
    format!("{:.0}", ms * 1e6)
}

/// A sweep of the two knobs with what was there before beside the grid.
fn run(before: [f64; 2]) -> Run {
    let mut run = testkit::run(1, Vec::new());
    let like = run.header.plan[0].clone();
    let (mut plan, mut settings) = (Vec::<Planned>::new(), Vec::new());
    let grid = W_MS.iter().flat_map(|w| M_MS.iter().map(move |m| [*m, *w]));
    for [m, w] in grid.chain([before]) {
        for bench in [hackbench::HACKBENCH, sched::WAKE_UP] {
            let knobs = BTreeMap::from([
                ("min_granularity_ns".to_string(), ns(m)),
                ("wakeup_granularity_ns".to_string(), ns(w)),
            ]);
            let case = Case { bench: bench.to_string().into(), knobs, ..like.case.clone() };
            plan.push(Planned { case, ..like.clone() });
            settings.push((bench == hackbench::HACKBENCH, m, w));
        }
    }
    let axis = |name: &str, values: &[f64], before: f64| Axis {
        name: name.into(),
        of: AxisOf::Knob,
        values: values.iter().map(|ms| ns(*ms)).collect(),
        before: Some(ns(before)),
    };
    let measure = |bench: &str, metric: &str| Measure { bench: bench.into(), metric: metric.into() };
    let control = [plan.len() as u32 - 2, plan.len() as u32 - 1];
    run.header.sweep = Some(Sweep {
        axes: vec![
            axis("min_granularity_ns", &M_MS, before[0]),
            axis("wakeup_granularity_ns", &W_MS, before[1]),
        ],
        facets: vec![],
        fixed: vec![],
        target: measure(&hackbench::HACKBENCH, &ids::TIME),
        response: Some(measure(&sched::WAKE_UP, &sched::metric::LATENCY_P99)),
        control: control.to_vec(),
        every: 8,
        effect: Some(0.05),
    });
    run.header.catalogue = [hackbench::HACKBENCH, sched::WAKE_UP]
        .iter()
        .map(|id| bench::find(id).expect("a row").catalogue())
        .collect();
    run.header.plan = plan;
    let mut rng = fastrand::Rng::with_seed(15);
    let mut order = 0;
    let mut visit = |case: usize, pass: u32, run: &mut Run| {
        let (is_target, m, w) = settings[case];
        let mut noisy = |ln: f64| (ln + NOISE * stats::noise::normal(&mut rng)).exp();
        let samples = match is_target {
            true => {
                let often = involuntary(m) * noisy(0.0);
                vec![
                    plain(&ids::TIME, noisy(time(m, w))),
                    plain(&ids::INVOLUNTARY, often),
                    plain(&ids::VOLUNTARY, 8_000.0 + often),
                    plain(&ids::TASKS, 400.0),
                ]
            }
            false => vec![late(2e6 * noisy(response(w)))],
        };
        run.visits.push(testkit::visit(order, case as u32, pass, samples));
        order += 1;
    };
    for pass in 0..PASSES {
        let mut cells: Vec<usize> = (0..run.header.plan.len() - 2).collect();
        fastrand::Rng::with_seed(u64::from(pass)).shuffle(&mut cells);
        for (place, case) in cells.into_iter().enumerate() {
            if place % 16 == 0 {
                control.iter().for_each(|own| visit(*own as usize, pass, &mut run));
            }
            visit(case, pass, &mut run);
        }
    }
    run
}

fn plain(metric: &str, value: f64) -> Samples {
    testkit::samples(metric, 0, &[value])
}

/// A window whose 99th percentile of the wake-ups' latency is near `ns`.
fn late(ns: f64) -> Samples {
    let mut samples = testkit::samples(&sched::metric::LATENCY_P99, 0, &[1000.0]);
    let values = [0.9, 1.0, 1.1].map(|times| (ns * times) as u64);
    let text = json!({ "ns": values, "count": [300, 699, 1] }).to_string();
    samples.histograms = vec![serde_json::from_str(&text).expect("a histogram")];
    samples
}

fn ms(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse::<f64>().ok()).expect("nanoseconds") / 1e6
}

/// From and to of a knob, ms.
fn range(recommendation: &Value, knob: &str) -> [f64; 2] {
    let ranges = recommendation["ranges"].as_array().expect("ranges");
    let own = ranges.iter().find(|range| range["knob"] == knob).expect("the knob");
    [ms(&own["from"]), ms(&own["to"])]
}

#[test]
fn the_published_surface_gives_the_published_regions_and_compromise() {
    let test = "the_published_surface_gives_the_published_regions_and_compromise";
    let Some([off, on]) = published() else {
        return skipped(test, "../shared/spec/data is not beside the repository");
    };
    assert!(time(on[0], on[1]) < time(off[0], off[1]) - 0.05, "tuned made it much faster");
    let diagnosis = diagnose::diagnose(run(off));
    let results: Value =
        serde_json::to_value(report::json::output(&diagnosis, &diagnose::reference::References::published()))
            .expect("JSON");
    let map = &results["sweep"]["maps"][0];
    let by = |purpose: &str| {
        let all = map["recommendations"].as_array().expect("recommendations");
        all.iter().find(|one| one["for"] == purpose).expect("a recommendation").clone()
    };
    // Large m, middling w, with what it gains.
    for purpose in ["throughput", "compromise"] {
        let said = by(purpose);
        assert_eq!(said["leave"], false, "{said}");
        assert_eq!(range(&said, "min_granularity_ns"), [15.0, 20.0], "{said}");
        assert_eq!(range(&said, "wakeup_granularity_ns"), [6.0, 8.0], "{said}");
        let truth = (time(17.0, 7.0) - time(off[0], off[1])).exp();
        let ends: Vec<f64> = serde_json::from_value(said["gain"]["ci95"].clone()).expect("two ends");
        assert!(ends[0] < truth && truth < ends[1] && ends[1] < 0.85, "{said}");
    }
    // A desktop's: a small w, whatever m is.
    let desktop = range(&by("response"), "wakeup_granularity_ns");
    assert_eq!(desktop, [1.0, 1.0], "{}", by("response"));
    // Regions along m with w fixed.
    let curves = map["metrics"][0]["curves"].as_array().expect("curves");
    let along = curves.iter().find(|curve| curve["knob"] == "min_granularity_ns").expect("along m");
    let regions: Vec<(&str, f64, f64)> = along["regions"]
        .as_array()
        .expect("regions")
        .iter()
        .map(|region| (region["kind"].as_str().expect("a kind"), ms(&region["from"]), ms(&region["to"])))
        .collect();
    // A flat region may have two levels.
    let mut kinds: Vec<&str> = regions.iter().map(|(kind, ..)| *kind).collect();
    kinds.dedup();
    assert_eq!(kinds, ["fall", "ragged", "flat"], "{regions:?}");
    assert_eq!((regions[0].1, regions.last().map(|(_, _, to)| *to)), (1.0, Some(30.0)));
    assert!((3.0..=6.0).contains(&regions[0].2) && (12.0..=17.0).contains(&regions[1].2), "{regions:?}");
    let texts: Vec<&str> = along["regions"]
        .as_array()
        .expect("regions")
        .iter()
        .filter_map(|region| region["text"].as_str())
        .collect();
    assert!(texts[0].contains("preemption is too frequent; involuntary switches fall from 1"), "{texts:?}");
    assert!(texts[1].contains("do not explain them"), "{texts:?}");
    assert!(texts[2].contains("hardly any preemption is left to save"), "{texts:?}");
    // It comes first, on the page as on the screen.
    let composed = report::sections::compose(&diagnosis).expect("a report");
    assert_eq!(composed.sections[0].id, report::block::CONCLUSION);
    let style = report::text::Style { color: false, unicode: true, width: 140 };
    let screen = composed.screen.as_ref().expect("a first screen");
    let shown = report::text::screen::render(screen, Default::default(), &[], style);
    let first = shown.find("For throughput: min_granularity 15 ms to 20 ms, wakeup_granularity 6 ms to 8 ms");
    let map = shown.find("against the setting before, %").expect("the map");
    assert!(first.is_some_and(|first| first < map), "{shown}");
}
