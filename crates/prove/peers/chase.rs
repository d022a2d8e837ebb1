//! Memory latency in multichase's two orders, against a C program of its published description
//! (`chase.c`): loads that stay within 64 pages, its default, and loads all over the block. The
//! difference is the cost of address translation.

use std::time::Instant;

use model::Case;
use model::vocabulary::memory as ids;
use stats::estimate::interval_of_median;
use stats::order::median;

use super::built::{Built, CHASE};
use super::{Bench, PAIRS_MIN, ROW_LIMIT, Wanted, line, number_after, put_row, said_by, value_in};

/// Where its rows stand in docs/results.
const SECTION: &str = "bench:chase";
/// Bytes of both sides' blocks. The peer flushes nothing and loads a line of four, so that a
/// quarter of this has to be more than any cache keeps.
const BYTES: u64 = 1 << 30;
/// Bytes between loads, and the 64 pages within which they stay, of both sides.
const STRIDE: u64 = 256;
const WITHIN: &str = "262144";
/// The C program's samples, a round of both orders each.
const SAMPLES: u32 = 2;
/// What one side needs, bytes: its block and the orders.
const ONE_SIDE: u64 = BYTES + (BYTES >> 2);

/// Figures of both sides, ns: the two orders, and the price between them.
const ORDERS: [&str; 2] = ["page-local", "whole-block"];
const PRICE: &str = "translation";
/// The largest difference between an order of Assay's and the peer's, a part of it.
const NEAR: f64 = 0.03;
/// The largest between the prices, ns.
const NEAR_NS: f64 = 3.0;

/// The case that walks both orders alternately, with the price of translation between them.
fn ours(bench: &Bench) -> Option<Case> {
    let is_dram = |case: &Case| {
        let source = case.params.get(ids::param::SOURCE).and_then(|source| source.text());
        source == Some("dram")
    };
    let mut case = bench.on_first_cpu(bench.case(&ids::DATA_SOURCE, is_dram)?);
    case.inputs.insert(ids::param::BYTES.into(), BYTES.to_string());
    case.inputs.insert("spreads".into(), WITHIN.to_string());
    Some(case)
}

/// One pass of Assay: both orders and the cost, ns.
fn ours_now(bench: &Bench, case: &Case) -> Result<[f64; 3], String> {
    let heard = bench.heard(case)?;
    let within = [(&*ids::param::WITHIN, WITHIN)];
    let told = [("latency", &within[..]), ("latency", &[]), ("translation", &within[..])]
        .map(|(metric, at)| value_in(&heard, case, metric, at));
    match told {
        [Some(near), Some(far), Some(price)] => Ok([near, far, price]),
        _ => Err(format!("our benchmark gave no value: {:?}", heard.reason)),
    }
}

/// The same of the C program.
fn peers_now(bench: &Bench, built: &Built) -> Result<[f64; 3], String> {
    let program = built.program(CHASE).display().to_string();
    let words =
        format!("taskset -c {} {program} {BYTES} {STRIDE} {WITHIN} huge {SAMPLES}", bench.first_cpu());
    let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
    let text = said_by(&words).map_err(|error| format!("{program} cannot be started ({error})"))?;
    match [ORDERS[0], ORDERS[1], PRICE].map(|word| number_after(&text, word)) {
        [Some(near), Some(far), Some(price)] => Ok([near, far, price]),
        _ => Err(format!("{program} gave no figure: {text}")),
    }
}

/// Memory that is held while the sides are compared, all that is free but what one of them needs:
/// so both have theirs from the same. In a guest a translation is as expensive as the host's pages
/// behind it: the C program alone took 135 to 153 ns in one part of a guest's memory and 164 to 185
/// in another.
fn the_rest(bench: &Bench) -> Vec<u8> {
    let (limits, available) = (&bench.machine.limits, bench.machine.memory.available_bytes);
    let in_group = limits.memory_bytes.map(|most| most.saturating_sub(limits.memory_used_bytes.unwrap_or(0)));
    let free = [available, in_group].into_iter().flatten().min().unwrap_or(0).saturating_sub(ONE_SIDE);
    let mut held = vec![0; usize::try_from(free).unwrap_or(0)];
    held.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    held
}

/// A line of each order and one of the price.
pub fn table(bench: &Bench, built: &Result<Built, String>, asked: impl Fn(&str) -> bool) {
    let names = ORDERS.map(|order| format!("DRAM latency, {order} order, {} MiB (chase.c)", BYTES >> 20));
    let price = format!("{PRICE}: whole-block less page-local order (chase.c)");
    if !names.iter().chain([&price]).any(|name| asked(name)) {
        return;
    }
    match compared(bench, built) {
        Ok([ours, peers, again]) => {
            for (order, name) in names.iter().enumerate() {
                let values = [&ours, &peers, &again].map(|side| of(side, order));
                match line(name, "ns", &values, Wanted::Within(NEAR), "") {
                    Ok(line) => put_row(SECTION, &line),
                    Err(why) => println!("| {name} | – | – | not compared: {why} | – | – | – |"),
                }
            }
            put_price(&price, &of(&ours, 2), &of(&peers, 2));
        }
        Err(why) => println!("| {price} | – | – | not compared: {why} | – | – | – |"),
    }
}

fn of(side: &[[f64; 3]], which: usize) -> Vec<f64> {
    side.iter().map(|told| told[which]).collect()
}

/// Assay's, the peer's, and the peer's once more, in ABBA, until the costs are known or time is
/// over.
fn compared(bench: &Bench, built: &Result<Built, String>) -> Result<[Vec<[f64; 3]>; 3], String> {
    let built = built.as_ref().map_err(String::clone)?;
    let case = ours(bench).ok_or("no case of this machine has both orders")?;
    let _held = the_rest(bench);
    let [mut ours, mut peers, mut again] = [const { Vec::new() }; 3];
    let begin = Instant::now();
    loop {
        if ours.len() % 2 == 0 {
            ours.push(ours_now(bench, &case)?);
            peers.push(peers_now(bench, built)?);
            again.push(peers_now(bench, built)?);
        } else {
            again.push(peers_now(bench, built)?);
            peers.push(peers_now(bench, built)?);
            ours.push(ours_now(bench, &case)?);
        }
        let found = interval_of_median(&apart(&of(&ours, 2), &of(&peers, 2)), 0.95);
        let narrow = found.is_some_and(|interval| interval.half_width() <= NEAR_NS / 2.0);
        if ours.len() >= PAIRS_MIN && (narrow || begin.elapsed() >= 8 * ROW_LIMIT) {
            return Ok([ours, peers, again]);
        }
    }
}

fn apart(ours: &[f64], peers: &[f64]) -> Vec<f64> {
    ours.iter().zip(peers).map(|(own, peer)| own - peer).collect()
}

fn put_price(name: &str, ours: &[f64], peers: &[f64]) {
    let apart = apart(ours, peers);
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let (interval, verdict) = match interval_of_median(&apart, 0.95) {
        None => (String::new(), "no interval"),
        Some(found) => {
            let verdict = match () {
                () if found.low >= -NEAR_NS && found.high <= NEAR_NS => "within 3 ns",
                () if found.low > NEAR_NS || found.high < -NEAR_NS => "outside 3 ns",
                () => "reaches 3 ns",
            };
            (format!(" ({:.1}–{:.1})", found.low, found.high), verdict)
        }
    };
    let row = format!(
        "| {name} | {:.1} ns | {:.1} ns | {:+.1} ns{interval} | – | {} | {verdict} |",
        middle(ours),
        middle(peers),
        middle(&apart),
        apart.len()
    );
    put_row(SECTION, &row);
}
