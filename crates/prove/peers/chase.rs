//! Memory latency in multichase's two orders, beside a C program of its published description
//! (`chase.c`): loads that stay within 64 pages, its default, and loads all over the block. What
//! lies between the two is the price of address translation.

use std::time::Instant;

use model::Case;
use model::vocabulary::memory as ids;
use stats::estimate::interval_of_median;
use stats::order::median;

use super::built::{Built, CHASE};
use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_after};

/// Bytes of both sides' blocks. The peer flushes nothing and loads a line of four, so that a
/// quarter of this has to be more than any cache keeps.
const BYTES: u64 = 1 << 30;
/// Bytes between loads, and the 64 pages within which they stay, of both sides.
const STRIDE: u64 = 256;
const WITHIN: &str = "262144";
/// The C program's samples, a round each.
const SAMPLES: u32 = 2;

pub const PRICE: &str = "translation: whole block less page-local order (chase.c)";
/// Between prices, ns.
const NEAR_NS: f64 = 3.0;

/// One order, ours and the peer's words for it.
struct Order {
    name: &'static str,
    ours: Ours,
    /// Bytes within which loads stay; 0: the block.
    locality: &'static str,
}

/// Both orders, which a visit of ours walks in turn, with the price of translation between them.
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

/// Page-local and whole-block order.
fn orders(bench: &Bench) -> Option<[Order; 2]> {
    let case = ours(bench)?;
    let within = Ours { at: vec![(&*ids::param::WITHIN, WITHIN)], ..Ours::new(case.clone(), "latency") };
    Some([
        Order { name: "page-local", ours: within, locality: WITHIN },
        Order { name: "whole-block", ours: Ours::new(case, "latency"), locality: "0" },
    ])
}

fn peer(bench: &Bench, built: &Built, order: &Order) -> Peer {
    let words = format!(
        "taskset -c {} {} {BYTES} {STRIDE} {} huge {SAMPLES}",
        bench.first_cpu(),
        built.program(CHASE).display(),
        order.locality
    );
    Peer::Program(words.split_whitespace().map(str::to_string).collect(), |text| number_after(text, "median"))
}

pub fn rows(bench: &Bench, built: &Result<Built, String>) -> Rows {
    match (orders(bench), built) {
        (Some(orders), Ok(built)) => orders.into_iter().map(|order| Ok(row(bench, built, order))).collect(),
        _ => vec![Err("DRAM latency in two orders (chase.c)".to_string())],
    }
}

fn row(bench: &Bench, built: &Built, order: Order) -> Row {
    Row {
        name: format!("DRAM latency, {} order, {} MiB (chase.c)", order.name, BYTES >> 20),
        unit: "ns",
        peer: peer(bench, built, &order),
        ours: order.ours,
        scale: 1.0,
        wanted: Wanted::Within(0.03),
        pairs: super::PAIRS_MIN,
        limit: super::ROW_LIMIT,
        note: "",
    }
}

/// What translation costs, ours and the peer's, in turn; a line of the table with the difference in
/// ns.
pub fn print_price(bench: &Bench, built: &Result<Built, String>) {
    match prices(bench, built) {
        Ok([ours, peers]) => {
            let apart: Vec<f64> = ours.iter().zip(&peers).map(|(own, peer)| own - peer).collect();
            let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
            let (interval, verdict) = match interval_of_median(&apart, 0.95) {
                None => (String::new(), "no interval"),
                Some(found) => {
                    let verdict = match () {
                        () if found.low >= -NEAR_NS && found.high <= NEAR_NS => "within 3 ns",
                        () if found.low > NEAR_NS || found.high < -NEAR_NS => "outside 3 ns",
                        () => "reaches 3 ns",
                    };
                    (format!(" ({:.1} to {:.1})", found.low, found.high), verdict)
                }
            };
            println!(
                "| {PRICE} | {:.1} ns | {:.1} ns | {:+.1} ns{interval} | – | {} | {verdict} |",
                middle(&ours),
                middle(&peers),
                middle(&apart),
                apart.len()
            );
        }
        Err(why) => println!("| {PRICE} | – | – | not compared: {why} | – | – | – |"),
    }
}

/// Whole-block less page-local latency, ns: ours and the peer's of each pair.
fn prices(bench: &Bench, built: &Result<Built, String>) -> Result<[Vec<f64>; 2], String> {
    let built = built.as_ref().map_err(String::clone)?;
    let [local, whole] = orders(bench).ok_or("no case has both orders")?;
    let priced = Ours { at: local.ours.at.clone(), ..Ours::new(local.ours.case.clone(), "translation") };
    let [local, whole] = [local, whole].map(|order| row(bench, built, order));
    let mut prices = [Vec::new(), Vec::new()];
    let begin = Instant::now();
    for pair in 0.. {
        let apart = prices[0].iter().zip(&prices[1]).map(|(own, peer)| own - peer);
        let found = interval_of_median(&apart.collect::<Vec<f64>>(), 0.95);
        let narrow = found.is_some_and(|interval| interval.half_width() <= NEAR_NS / 2.0);
        if pair >= super::PAIRS_MIN && (narrow || begin.elapsed() >= 3 * super::ROW_LIMIT) {
            break;
        }
        // Drift hits all alike: ours walks both orders in turn, between the peer's two.
        let (near, far) = if pair % 2 == 0 { (&local, &whole) } else { (&whole, &local) };
        let first = bench.peer(near)?;
        prices[0].push(bench.own(&priced)?);
        let second = bench.peer(far)?;
        prices[1].push(if pair % 2 == 0 { second - first } else { first - second });
    }
    Ok(prices)
}
