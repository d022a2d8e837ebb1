//! Memory latency in multichase's two orders, beside a C program of its published description
//! (`chase.c`): loads that stay within a few pages, and loads all over the block. What lies between
//! the two is the price of address translation.

use std::time::Instant;

use model::vocabulary::memory as ids;
use model::{Case, Pages};
use stats::estimate::interval_of_median;
use stats::order::median;

use super::built::{Built, CHASE};
use super::{Bench, Ours, Peer, Row, Rows, Wanted, number_after};

/// Bytes of both sides' blocks, whatever the cache is.
const BYTES: u64 = 256 << 20;
/// The C program's samples, 0.2 s or a round each.
const SAMPLES: u32 = 3;

pub const PRICE: &str = "translation: whole block less page-local order (chase.c)";
/// Between prices, ns.
const NEAR_NS: f64 = 3.0;

/// One order, ours and the peer's words for it.
struct Order {
    name: &'static str,
    ours: Ours,
    /// Bytes between loads, and within which they stay (0: the block).
    stride: u64,
    locality: u64,
}

/// Page-local and whole-block order.
fn orders(bench: &Bench) -> Option<[Order; 2]> {
    let of = |name: &'static str, order: &str, locality: u64| {
        let is_order = |case: &Case| {
            let text = case.params.get(ids::param::ORDER).and_then(|order| order.text());
            case.params.len() == 1 && text == Some(order)
        };
        let mut case = bench.on_first_cpu(bench.case(&ids::LATENCY, is_order)?);
        case.placement.pages = Pages::Huge;
        case.inputs.insert(ids::param::BYTES.into(), BYTES.to_string());
        Some(Order { name, ours: Ours::new(case, "latency"), stride: 64, locality })
    };
    Some([of("page-local", "page-random", 4096)?, of("whole-block", "random", 0)?])
}

fn peer(bench: &Bench, built: &Built, order: &Order) -> Peer {
    let words = format!(
        "taskset -c {} {} {BYTES} {} {} huge {SAMPLES}",
        bench.first_cpu(),
        built.program(CHASE).display(),
        order.stride,
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
    let [local, whole] =
        orders(bench).ok_or("no case has both orders")?.map(|order| row(bench, built, order));
    let own = |row: &Row| bench.own(&row.ours);
    let mut prices = [Vec::new(), Vec::new()];
    let begin = Instant::now();
    for pair in 0.. {
        let apart = prices[0].iter().zip(&prices[1]).map(|(own, peer)| own - peer);
        let found = interval_of_median(&apart.collect::<Vec<f64>>(), 0.95);
        let narrow = found.is_some_and(|interval| interval.half_width() <= NEAR_NS / 2.0);
        if pair >= super::PAIRS_MIN && (narrow || begin.elapsed() >= 2 * super::ROW_LIMIT) {
            break;
        }
        // Drift hits all alike.
        let (near, far) = if pair % 2 == 0 { (&local, &whole) } else { (&whole, &local) };
        let (ours, peers) = ([own(near)?, own(far)?], [bench.peer(near)?, bench.peer(far)?]);
        let sign = if pair % 2 == 0 { 1.0 } else { -1.0 };
        for (prices, [first, second]) in prices.iter_mut().zip([ours, peers]) {
            prices.push(sign * (second - first));
        }
    }
    Ok(prices)
}
