//! Components of the rate suite against plain C programs of the same algorithm on the same data,
//! built for this very CPU (`gcc -O3 -march=native`); both get huge pages.

use std::time::Duration;

use kernels::rate::{COMPONENTS, Component};
use model::Params;
use sys::block::Arena;

use super::built::Built;
use super::{Bench, Ours, Peer, Row, Rows, Wanted};

/// Those that have a peer in `rate/`.
pub const WITH_PEER: [&str; 5] = ["triad", "fourier", "sparse", "lbm", "waves"];
/// A copy's memory and pieces of work in a pass, on both sides.
const MIB: u64 = 256;
const PIECES: u64 = 5;
const LIMIT: Duration = Duration::from_secs(150);
const PAIRS: usize = 10;

/// The least that the ratio's interval may reach.
const LEAST: f64 = 0.9;

pub fn rows(bench: &Bench, built: &Result<Built, String>) -> Rows {
    let known = COMPONENTS.iter().filter(|component| WITH_PEER.contains(&component.name()));
    known.map(|component| row(bench, component, built)).collect()
}

fn row(bench: &Bench, component: &Component, built: &Result<Built, String>) -> Result<Row, String> {
    let name = format!("rate {}, one copy, {MIB} MiB", component.name());
    let Ok(built) = built else { return Err(name) };
    let Some(case) = bench.case(&component.id, |_| true) else { return Err(name) };
    let mut case = bench.on_first_cpu(case);
    case.placement.seats.truncate(1);
    case.params = Params::from([(model::vocabulary::rate::param::MIB, MIB.into())]);
    case.inputs.insert("iterations".into(), PIECES.to_string());
    case.inputs.insert("allocations".into(), "1".into());
    let cpu = bench.first_cpu().to_string();
    let program = built.program(component.name()).display().to_string();
    // What the C program calls an iteration is the same work.
    let mut room = Arena::new(MIB << 20);
    let Ok(work) = (component.make)(&mut room).map(|work| work.units() as f64) else { return Err(name) };
    let words = ["taskset", "-c", &cpu, &program, component.name(), &MIB.to_string(), &PIECES.to_string()];
    Ok(Row {
        name,
        unit: "M/s",
        ours: Ours::new(case, "rate"),
        scale: 1.0,
        peer: Peer::Timed { words: words.map(str::to_string).to_vec(), work: work / 1e6 },
        wanted: Wanted::AtLeast(LEAST),
        pairs: PAIRS,
        limit: LIMIT,
        note: "",
    })
}
