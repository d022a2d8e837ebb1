//! What pays, SMT on or off: a part of a sentence for each group of calls, with its interval.

use std::collections::BTreeSet;

use super::super::neighbours::{Row, Variant, neighbour};
use machine::Machine;
use model::vocabulary::{self as ids, BenchId};
use stats::analysis::CONFIDENCE;
use stats::compare::{MIN_MARGIN, Outcome, Ratio, conclude, paired_ratio};
use stats::order::Interval;

/// The last line of the table of neighbours; `None` if no call was measured with a busy second CPU.
pub fn what_pays(machine: &Machine, rows: &[Row]) -> Option<String> {
    let siblings = neighbour(machine, rows) == "SMT sibling";
    let off: Vec<(String, Ratio)> = groups(rows, Variant::Off);
    let beside: Vec<(String, Ratio)> = groups(rows, Variant::SameWork);
    let work = pooled(rows.iter().filter(|row| !row.several), Variant::SameWork).map(|cost| of_two(&cost));
    let threads = match siblings {
        true => "two threads on one core",
        false => "two cores",
    };
    let work_words = work.as_ref().map(|work| format!("{threads} do {} the work of one alone", times(work)));
    if !off.is_empty() {
        // The costs are those of switching it off: turned round, those of SMT on.
        let on: Vec<(String, Ratio)> = off.into_iter().map(|(group, cost)| (group, inverse(&cost))).collect();
        let parts = on.iter().map(|(group, cost)| format!("{group} {}", cost_words(cost)));
        let parts: Vec<String> = parts.chain(work_words).collect();
        return Some(format!("With SMT on: {}. {}", parts.join(", "), verdict(&on, work.as_ref())));
    }
    let parts = beside.iter().map(|(group, cost)| format!("{group} {} as long", times(cost)));
    let parts: Vec<String> = parts.chain(work_words).collect();
    if parts.is_empty() {
        return None;
    }
    Some(match siblings {
        true => format!(
            "SMT was not switched off here: an idle sibling stands for off, a busy one for on. With the same work on the \
             sibling: {}. {}",
            parts.join(", "),
            verdict(&[], work.as_ref())
        ),
        false => format!(
            "No SMT sibling was measured, so SMT on or off is open. With the same work on a second core: {}.",
            parts.join(", ")
        ),
    })
}

/// The groups of calls with what a variant costs them.
fn groups(rows: &[Row], variant: Variant) -> Vec<(String, Ratio)> {
    let starts = |row: &Row, id: BenchId| row.alone.series.case.bench.starts_with(id.as_str());
    let is_pipe = |row: &&Row| row.several && starts(row, ids::ipc::PIPE);
    let is_fork = |row: &&Row| row.several && starts(row, ids::kernel::PROCESS_FORK);
    let has =
        |is: &dyn Fn(&&Row) -> bool| rows.iter().any(|row| is(&row) && row.costs[variant as usize].is_some());
    let both = match (has(&is_pipe), has(&is_fork)) {
        (true, true) => "pipe and fork+exit",
        (true, false) => "pipe",
        _ => "fork+exit",
    };
    let of = |name: &str, is: &dyn Fn(&&Row) -> bool| {
        Some((name.to_string(), pooled(rows.iter().filter(is), variant)?))
    };
    let found = [
        of("single-process calls", &|row| !row.several),
        of(both, &|row| is_pipe(row) || is_fork(row)),
        of("other calls of several processes", &|row| row.several && !is_pipe(row) && !is_fork(row)),
    ];
    found.into_iter().flatten().collect()
}

/// What a variant costs pinned calls together: the geometric mean over them in each pass, and the
/// median of passes with its interval. Passes that lack one of the calls are left out, so that all
/// mean the same calls.
fn pooled<'r>(rows: impl Iterator<Item = &'r Row<'r>>, variant: Variant) -> Option<Ratio> {
    // Free tasks change places: their cost is the scheduler's as well.
    let rows = rows.filter(|row| row.alone.series.case.placement.name != "free");
    let costs = rows.filter_map(|row| row.costs[variant as usize].as_ref());
    let costs: Vec<_> = costs.filter(|cost| cost.outcome != Outcome::Inconclusive { needed: None }).collect();
    let passes = costs.iter().map(|cost| cost.by_pass.keys().copied().collect::<BTreeSet<u32>>());
    let passes = passes.reduce(|one, other| &one & &other)?;
    let mean = |pass: &u32| {
        let logs: f64 = costs.iter().filter_map(|cost| Some(cost.by_pass.get(pass)?.ln())).sum();
        (logs / costs.len() as f64).exp()
    };
    let means: Vec<f64> = passes.iter().map(mean).collect();
    paired_ratio(&vec![1.0; means.len()], &means, CONFIDENCE)
}

fn map(ratio: &Ratio, falling: impl Fn(f64) -> f64) -> Ratio {
    let interval = |interval: Interval| Interval { low: falling(interval.high), high: falling(interval.low) };
    Ratio { ratio: falling(ratio.ratio), interval: ratio.interval.map(interval), n: ratio.n }
}

fn inverse(ratio: &Ratio) -> Ratio {
    map(ratio, |value| 1.0 / value)
}

/// Work of two tasks over that of one alone, if each takes this many times as long.
fn of_two(cost: &Ratio) -> Ratio {
    map(cost, |value| 2.0 / value)
}

/// `1.28 times (1.20–1.30)`.
fn times(ratio: &Ratio) -> String {
    match ratio.interval {
        Some(Interval { low, high }) => format!("{:.2} times ({low:.2}–{high:.2})", ratio.ratio),
        None => format!("{:.2} times (no interval from {} passes)", ratio.ratio, ratio.n),
    }
}

/// `the same (within 1 %)`, `3 % (1–5) slower`, or what it may be.
fn cost_words(ratio: &Ratio) -> String {
    let Some(Interval { low, high }) = ratio.interval else {
        return format!("undecided (no interval from {} passes)", ratio.n);
    };
    let percent = |value: f64| 100.0 * (value - 1.0);
    match (conclude(ratio, MIN_MARGIN), low > 1.0, high < 1.0) {
        (Outcome::Equivalent, _, _) => {
            let within = percent(high).abs().max(percent(low).abs()).ceil().max(1.0);
            format!("the same (within {within:.0} %)")
        }
        (_, true, _) => {
            format!("{:.0} % ({:.0}–{:.0}) slower", percent(ratio.ratio), percent(low), percent(high))
        }
        (_, _, true) => {
            format!("{:.0} % ({:.0}–{:.0}) faster", -percent(ratio.ratio), -percent(high), -percent(low))
        }
        _ => format!("undecided ({:+.0} to {:+.0} %)", percent(low), percent(high)),
    }
}

/// Which of the two pays, and for what.
fn verdict(on: &[(String, Ratio)], work: Option<&Ratio>) -> String {
    let surely = |ratio: &Ratio, above: f64| ratio.interval.is_some_and(|interval| interval.low > above);
    let costly =
        on.iter().filter(|(_, cost)| surely(cost, 1.0) && conclude(cost, MIN_MARGIN) != Outcome::Equivalent);
    let costly: Vec<&str> = costly.map(|(group, _)| group.as_str()).collect();
    let open =
        on.iter().filter(|(_, cost)| conclude(cost, MIN_MARGIN) != Outcome::Equivalent && !surely(cost, 1.0));
    let open: Vec<&str> = open.map(|(group, _)| group.as_str()).collect();
    let more = work.filter(|work| surely(work, 1.0));
    match (more, costly.as_slice(), on.is_empty()) {
        (Some(_), [], true) => "SMT on pays where more threads are busy than there are cores.".to_string(),
        (Some(_), [], false) if !open.is_empty() => format!(
            "SMT on pays where more threads are busy than there are cores; whether it costs {} anything is undecided.",
            open.join(" and ")
        ),
        (Some(_), [], false) => "SMT on pays, and no cost on these calls was seen.".to_string(),
        (Some(_), costly, _) => format!(
            "SMT on pays where more threads are busy than there are cores; off pays for {} below that.",
            costly.join(" and ")
        ),
        (None, [], _) => "Whether on or off pays is undecided.".to_string(),
        (None, costly, _) => {
            format!("SMT off pays for {}; that on does more work was not seen.", costly.join(" and "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(middle: f64, low: f64, high: f64) -> Ratio {
        Ratio { ratio: middle, interval: Some(Interval { low, high }), n: 6 }
    }

    #[test]
    fn each_group_says_what_its_interval_says() {
        assert_eq!(cost_words(&ratio(1.0, 0.995, 1.004)), "the same (within 1 %)");
        assert_eq!(cost_words(&ratio(1.005, 0.99, 1.015)), "the same (within 2 %)");
        assert_eq!(cost_words(&ratio(1.03, 1.01, 1.05)), "3 % (1–5) slower");
        assert_eq!(cost_words(&ratio(0.9, 0.85, 0.95)), "10 % (5–15) faster");
        assert_eq!(cost_words(&ratio(1.01, 0.95, 1.06)), "undecided (-5 to +6 %)");
        assert_eq!(times(&of_two(&ratio(1.5625, 1.54, 1.66))), "1.28 times (1.20–1.30)");
        let short = Ratio { ratio: 1.1, interval: None, n: 3 };
        assert_eq!(cost_words(&short), "undecided (no interval from 3 passes)");
    }

    #[test]
    fn what_pays_follows_from_work_and_costs() {
        let pipe = |cost: Ratio| vec![("pipe".to_string(), cost)];
        let work = ratio(1.28, 1.2, 1.3);
        let both = verdict(&pipe(ratio(1.03, 1.01, 1.05)), Some(&work));
        assert!(
            both.starts_with("SMT on pays where") && both.ends_with("off pays for pipe below that."),
            "{both}"
        );
        let on = verdict(&pipe(ratio(1.0, 0.99, 1.01)), Some(&work));
        assert!(on.starts_with("SMT on pays, and no cost"), "{on}");
        let open = verdict(&pipe(ratio(1.01, 0.95, 1.06)), Some(&work));
        assert!(open.ends_with("whether it costs pipe anything is undecided."), "{open}");
        let off = verdict(&pipe(ratio(1.03, 1.01, 1.05)), Some(&ratio(1.0, 0.9, 1.1)));
        assert!(off.starts_with("SMT off pays for pipe"), "{off}");
        assert_eq!(verdict(&[], None), "Whether on or off pays is undecided.");
        assert!(verdict(&[], Some(&work)).starts_with("SMT on pays where more"));
    }
}
