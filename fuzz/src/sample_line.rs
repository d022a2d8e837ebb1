//! What a child says to its parent.

use bench::{self, Line, Order, Windows};
use model::{Case, Conditions, Placement, Planned, Run, RunClock, Visit};
use session::measure::child::ChildOutput;

use super::{run_file, visits};

/// The first byte names a benchmark, the others are what its child says.
pub fn sample_line(data: &[u8]) {
    let Some((bench, said)) = data.split_first() else { return };
    let benches: Vec<_> = bench::all().collect();
    let bench = benches[usize::from(*bench) % benches.len()];
    let order = order(&bench.id);

    let mut output = ChildOutput::new(&order);
    let result = output.feed(said);
    // How the bytes arrive makes no difference.
    let mut piecemeal = ChildOutput::new(&order);
    let in_pieces = said.chunks(7).try_for_each(|piece| piecemeal.feed(piece));
    assert_eq!(result, in_pieces);
    if result.is_err() {
        return;
    }
    let (samples, process) = output.into_samples();
    assert_eq!((&samples, &process), (&piecemeal.into_samples().0, &process));
    for line in said.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok())
    {
        let text = serde_json::to_string(&line).expect("every line can be written");
        assert!(serde_json::from_str::<Line>(&text).expect("and read back") == line, "a line changed");
    }

    // What the parent takes from its child, it can read from its own file, and report.
    let visit = Visit {
        order: 0,
        case: 0,
        pass: 0,
        at_ms: 0.0,
        conditions: Conditions::default(),
        process,
        samples,
        reason: None,
    };
    let planned = Planned { case: order.case, priority: 100, seconds: 1.0, memory_bytes: 0, unmet: None };
    let header = visits::header(vec![planned], vec![bench.catalogue()]);
    let run = Run { visits: vec![visit], ..Run::begun(header) };
    run_file::check(run);
}

fn order(bench: &'static str) -> Order {
    let placement = Placement::named("free");
    let case = Case::new(bench, placement);
    Order {
        case,
        windows: Windows { window_ns: 1e6, count: 3, warm_up: 1, limit_s: 1.0 },
        clock: RunClock {
            source: "tsc".into(),
            ticks_per_ns: 1.0,
            resolution_ns: 1.0,
            cost_ns: 1.0,
            why: None,
        },
        seed: 1,
        pass: 0,
        pretend: None,
        secret: None,
        parent: None,
    }
}
