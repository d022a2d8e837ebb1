//! hackbench, against that of rt-tests: the same parameters, both wherever the scheduler puts their
//! tasks.

use std::time::Duration;

use model::vocabulary::hackbench::HACKBENCH;

use super::system::on_path;
use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_after};

/// What the tasks are, what they write to, and the words of the original for both.
const WAYS: [(&str, &str, &str); 4] = [
    ("process", "socket", ""),
    ("process", "pipe", "-p"),
    ("thread", "socket", "-T"),
    ("thread", "pipe", "-T -p"),
];

/// An interval of few pairs is narrow by chance now and then.
const PAIRS: usize = 100;
/// Runs over pipes differ by up to 13 %, and Assay's is 2 % quicker as processes: this many pairs
/// show that it is not 3 %.
const PAIRS_OVER_PIPES: usize = 500;
const LIMIT: Duration = Duration::from_secs(600);

/// It prints whole ms and cuts off the rest, half a ms on average.
const CUT_OFF_S: f64 = 0.0005;

const NOTE: &str = "runs of one setting differ by 5 to 20 %: more pairs would narrow it";

pub fn rows(bench: &Bench) -> Rows {
    if !on_path("hackbench") {
        return vec![Err("hackbench (4 rows; rt-tests is not installed)".to_string())];
    }
    WAYS.iter().map(|way| row(bench, way)).collect()
}

fn row(
    bench: &Bench,
    (tasks, transport, words): &(&'static str, &'static str, &'static str),
) -> Result<Row, String> {
    let name = format!("hackbench, {tasks}, {transport} (rt-tests)");
    let fits = |case: &model::Case| {
        let is =
            |name: &str, value: &str| case.params.named(name).is_some_and(|own| own.text() == Some(value));
        is("tasks", tasks) && is("transport", transport)
    };
    let case = bench.case(&HACKBENCH, fits).ok_or(name.clone())?;
    // Like Assay's a direct child of the bench: as a child of `timeout`, its threads took 1–3 %
    // less over pipes.
    let command = format!("hackbench {words}");
    Ok(Row {
        name,
        unit: "s",
        ours: Ours::new(case, "time"),
        scale: 1.0,
        peer: Peer::Program(command.split_whitespace().map(str::to_string).collect(), |text| {
            number_after(text, "Time:").map(|seconds| seconds + CUT_OFF_S)
        }),
        wanted: Wanted::Within(0.03),
        pairs: if *transport == "pipe" { PAIRS_OVER_PIPES } else { PAIRS },
        limit: LIMIT,
        note: NOTE,
    })
}
