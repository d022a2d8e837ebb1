//! An invented host and the map of its memory.

use model::vocabulary::{MetricId, memory_map as ids};
use model::{
    Better, Case, CpuSet, Form, Metric, Packed, Params, Placement, Planned, Run, Samples, Seat, Title, View,
};

use crate::{run, visit};

const CHUNKS: usize = 32;
const ROUNDS: usize = 9;

/// A host with one node for each ratio: a quarter of the node's chunks is slower by this factor (1:
/// none). Chunks were taken from the top of the physical memory downwards; the slow ones lie at its
/// start.
pub fn made(ratios: &[f64], as_root: bool) -> Run {
    let mut plan = Vec::new();
    let mut visits = Vec::new();
    for (node, ratio) in ratios.iter().enumerate() {
        plan.push(Planned { case: case(node), priority: 1, seconds: 1.0, memory_bytes: 0, unmet: None });
        let mut samples: Vec<Samples> = (0..CHUNKS).map(|chunk| bandwidth(chunk, *ratio)).collect();
        samples.push(column(Params::new(), ids::metric::TYPICAL, 1, vec![1.0; ROUNDS + 1]));
        if as_root {
            let place = |chunk: usize| if (8..16).contains(&chunk) { chunk - 8 } else { 100 - chunk };
            let places = (0..CHUNKS).map(|chunk| place(chunk) as f64 / 4.0).collect();
            samples.push(column(Params::new(), ids::metric::PHYSICAL, 0, places));
            samples.push(column(Params::new(), ids::metric::SPREAD, 0, vec![0.25; CHUNKS]));
        }
        visits.push(visit(node as u32, node as u32, 0, samples));
    }
    let mut made = run(ratios.len(), visits);
    made.header.plan = plan;
    made.header.catalogue = vec![title()];
    made
}

fn case(node: usize) -> Case {
    let seat = Seat {
        role: "reader".into(),
        host: None,
        cpus: CpuSet::one(node as u32),
        mem_nodes: CpuSet::one(node as u32),
    };
    let inputs = [("chunk_bytes", 268_435_456.0), ("limit", 10.0)];
    Case {
        bench: ids::MAP.into(),
        placement: Placement { seats: vec![seat], ..Placement::named("per-node") },
        params: Params::from([(ids::param::NODE, (node as u64).into())]),
        knobs: Default::default(),
        inputs: inputs.map(|(name, value)| (name.to_string(), value.to_string())).into(),
    }
}

fn column(point: Params, metric: MetricId, warm_up: usize, work: Vec<f64>) -> Samples {
    let ns = vec![1.0; work.len()];
    Samples {
        point,
        metrics: vec![metric.to_string()],
        warm_up,
        work: Packed::pack(work),
        ns,
        beside: Default::default(),
        histograms: Vec::new(),
        linearity: None,
    }
}

/// About 40 GB/s with small variations between chunks and rounds; the first round does not count.
fn bandwidth(chunk: usize, ratio: f64) -> Samples {
    let slower = if (8..16).contains(&chunk) { ratio } else { 1.0 };
    let off = |round: usize| 1.0 + 0.002 * (((chunk * 7 + round * 5) % 11) as f64 - 5.0) / 5.0;
    let work = (0..=ROUNDS).map(|round| if round == 0 { 1.0 } else { 40.0 / slower * off(round) }).collect();
    column(Params::from([(ids::param::CHUNK, (chunk as u64).into())]), ids::metric::BANDWIDTH, 1, work)
}

fn title() -> Title {
    let rate = Form::WorkPerTime { scale: 1.0 };
    Title {
        id: ids::MAP.into(),
        title: "Map of a node's memory".into(),
        about: "".into(),
        reading: "".into(),
        metrics: vec![
            Metric::new(ids::metric::BANDWIDTH, "bandwidth", "GB/s", Better::Higher, rate).aside(),
            Metric::new(ids::metric::TYPICAL, "typical", "GB/s", Better::Higher, rate),
            Metric::new(ids::metric::PHYSICAL, "physical", "GiB", Better::Neither, Form::Value).aside(),
            Metric::new(ids::metric::SPREAD, "spread", "GiB", Better::Neither, Form::Value).aside(),
        ],
        view: View::Table,
    }
}
