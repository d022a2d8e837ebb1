//! What a rate study came to: its conclusion, whether runs follow where memory lay, at which
//! footprint memory decides.

use super::super::{column, columns, number, right, text};
use super::is_own;
use crate::block::{Axis, Block, Chart, ChartKind, Line, LinePoint, Table};
use diagnose::Diagnosis;
use diagnose::bound::Bound;
use diagnose::escalation::{Escalated, escalated};
use diagnose::memory_map::maps;
use diagnose::placed::{ORDER_SHOWN_INSTEAD, Placed, percents, placed, unplaced};
use diagnose::suite::{MovingComponents, Part, Suite, suite};
use diagnose::words::{at_most, capital};
use model::percent;
use stats::memory_map::Answer;
use stats::places::{Follows, Joined};
use stats::repeat::Sequence;

/// Whether components repeat, what explains those that do not, and at which footprint memory
/// decides; nothing of other runs.
pub fn conclusion(diagnosis: &Diagnosis) -> Vec<String> {
    let Some(suite) = suite(&diagnosis.run, &diagnosis.series) else { return Vec::new() };
    vec![sentences(diagnosis, &suite).join(" ")]
}

/// The same in sentences.
pub fn sentences(diagnosis: &Diagnosis, suite: &Suite) -> Vec<String> {
    let mut sentences = vec![repeats(suite)];
    let placed = placed(&diagnosis.run, &diagnosis.machine, suite).unwrap_or_default();
    let joined = |one: &&Placed| !matches!(one.follows(), None | Some(Follows::Steady));
    let explained: Vec<String> =
        placed.iter().filter(joined).take(EXPLAINED).filter_map(Placed::words).collect();
    if explained.is_empty() {
        sentences.extend(unexplained(diagnosis, suite, &placed))
    } else {
        sentences.extend(explained)
    }
    sentences.extend(escalated(&diagnosis.run, &diagnosis.machine, suite).iter().map(Escalated::words));
    sentences.into_iter().map(|words| format!("{words}.")).collect()
}

/// Components of which a conclusion says how they follow their memory.
const EXPLAINED: usize = 2;

/// Components that are named one by one.
const SHOWN: usize = 3;

/// Components that swing, the furthest first.
fn swinging<'a>(suite: &'a Suite) -> Vec<(&'a Part<'a>, &'a Sequence)> {
    let mut swinging: Vec<(&Part, &Sequence)> =
        suite.parts.iter().filter_map(|part| Some((part, part.swings()?))).collect();
    swinging.sort_by(|(_, one), (_, other)| other.apart.total_cmp(&one.apart));
    swinging
}

/// Whether components repeat, and in which order the one came that repeats least.
fn repeats(suite: &Suite) -> String {
    let runs = suite.parts.iter().filter_map(|part| Some((part, part.runs.as_ref()?)));
    let worst = runs.max_by(|(_, one), (_, other)| one.cv.total_cmp(&other.cv));
    let Some((worst, most)) = worst else {
        return "One run of each component: repeatability is unknown".to_string();
    };
    let swinging = swinging(suite);
    let Some(((part, runs), others)) = swinging.split_first() else {
        let each = if suite.parts.len() == 1 { "The component repeats" } else { "All components repeat" };
        let cv = most.cv_in_words();
        return format!(
            "{each} within the scatter of its runs; the largest {cv} is that of {}",
            worst.name()
        );
    };
    let mut words =
        format!("Runs of {} lie {} apart, {}", part.name(), percent(runs.apart), runs.cv_in_words());
    let order = runs.order_in_words();
    if !order.is_empty() {
        words.push_str(&format!(": {order}"));
    }
    let mut named: Vec<String> = others
        .iter()
        .take(SHOWN)
        .map(|(part, runs)| format!("{} {}", part.name(), percent(runs.apart)))
        .collect();
    if others.len() > SHOWN {
        named.push(format!("{} more by less", others.len() - SHOWN));
    }
    if named.is_empty() { words } else { format!("{words}; those of {}", named.join(", ")) }
}

/// What runs that no map explains show about memory: which components move, whether they do so in
/// the order in which memory is handed out, and what a map of the run shows.
fn unexplained(diagnosis: &Diagnosis, suite: &Suite, placed: &[Placed]) -> Vec<String> {
    let swinging = swinging(suite);
    if swinging.is_empty() {
        return Vec::new();
    }
    let moving = suite.moving(&diagnosis.machine);
    let memory = || swinging.iter().filter(|(part, _)| part.is_memory());
    if let MovingComponents::Others(names) = &moving {
        let names = list(names);
        return vec![match memory().next() {
            Some(_) => format!("Not memory alone: components with small data ({names}) swing as well"),
            None => format!("Not memory: the data of {names} stay small"),
        }];
    }
    let mut sentences = Vec::new();
    let maps = maps(&diagnosis.run, &diagnosis.machine);
    // Memory that was found to have one speed hands out no two.
    let uniform = !maps.is_empty() && maps.iter().all(|map| matches!(map.map.answer, Answer::Uniform));
    let chance = memory().find_map(|(_, runs)| runs.handed_out()).filter(|_| !uniform);
    let order = "in which memory of two speeds is handed out after a boot";
    match (&moving, chance) {
        (MovingComponents::Memory(still), chance) => {
            let holds = if still.len() == 1 { "holds" } else { "hold" };
            let only = format!("Only components whose data fill memory move ({} {holds} still)", list(still));
            sentences.push(match chance {
                Some(chance) => format!("{only}, in the order {order} (noise gives it to {chance} of series)"),
                None => only,
            });
        }
        (_, Some(chance)) => sentences.push(format!(
            "The order is like that {order} (noise gives it to {chance} of series); no component shows whether it is memory"
        )),
        (_, None) => {}
    }
    if memory().next().is_none() {
        return sentences;
    }
    let unknown =
        placed.iter().filter(|one| one.part.swings().is_some()).find_map(|one| one.joined.as_ref().err());
    let map = maps.iter().find(|map| map.speeds().is_some()).or(maps.first());
    sentences.push(match (map, unknown) {
        (Some(map), Some(why)) => {
            format!("{}; the memory of these runs is unknown: {why}", capital(&map.words()))
        }
        (Some(map), None) => capital(&map.words()),
        (None, _) => "Test whether runs follow their memory: `assay rate --with-map`, as root".to_string(),
    });
    sentences
}

fn list(names: &[&str]) -> String {
    at_most(SHOWN, names)
}

/// What follows the table of components: what they are bound by, where their runs lay, larger
/// footprints.
pub fn blocks(diagnosis: &Diagnosis, suite: &Suite) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    if suite.parts.iter().any(Part::is_memory) {
        blocks.push(Block::Table(bounds(diagnosis, suite)));
    }
    let found = placed(&diagnosis.run, &diagnosis.machine, suite);
    match &found {
        Some(found) => blocks.extend(lay(found)),
        None => {
            blocks.extend(unplaced(&diagnosis.run, suite).map(|why| {
                Block::Prose(format!("Physical pages of the runs: {why}; {ORDER_SHOWN_INSTEAD}."))
            }))
        }
    }
    let steps = escalated(&diagnosis.run, &diagnosis.machine, suite);
    blocks.extend((!steps.is_empty()).then(|| Block::Table(footprints(&steps))));
    blocks.extend(over_time(diagnosis, suite).map(Block::from));
    blocks
}

/// `memory`, `caches`, ...: for a narrow column.
pub fn bound_word(bound: &Bound) -> &'static str {
    match bound {
        Bound::Memory(_) => "memory",
        Bound::Free(_) => "not memory",
        Bound::Caches(_) => "caches",
        Bound::Unknown { .. } => "unknown",
    }
}

fn bounds(diagnosis: &Diagnosis, suite: &Suite) -> Table {
    let memory = suite.parts.iter().filter(|part| part.is_memory());
    let rows = memory.map(|part| {
        let bound = suite.bound(part, &diagnosis.machine);
        vec![text(part.name()), text(bound.words())]
    });
    let columns = vec![column("component whose data fill memory"), column("bound by")];
    Table::new(columns, rows)
}

fn lay(found: &[Placed]) -> Vec<Block> {
    let columns = columns(
        "component | slow memory of each run, %: | measured: | predicted: | remainder: \
                 | correlation: | meaning",
    );
    let plus_minus = |swing: f64| format!("±{:.1} %", 100.0 * swing);
    let row = |one: &Placed| {
        let means = |joined: &Joined| match joined.follows {
            Follows::Steady => "equal: nothing to explain",
            Follows::Memory => "follows its memory",
            Follows::Partly => "follows its memory in part",
            Follows::Not => "not its memory",
        };
        match &one.joined {
            Ok(joined) => vec![
                text(one.part.name()),
                number(percents(joined.lay.iter().take(16).map(|lay| lay.slow))),
                number(plus_minus(joined.swing)),
                number(plus_minus(joined.swing_predicted)),
                number(percent(joined.left)),
                number(joined.correlation.map_or("–".to_string(), |[r, _]| format!("{r:.2}"))),
                text(means(joined)),
            ],
            Err(why) => {
                let empty = (0..5).map(|_| number("–"));
                let ends = [text(one.part.name())].into_iter().chain(empty);
                ends.chain([text(format!("unknown: {why}"))]).collect()
            }
        }
    };
    let rows = found.iter().map(row);
    let mut blocks = vec![Block::Table(Table::new(columns, rows))];
    let known: Vec<(&str, &Joined)> =
        found.iter().filter_map(|one| Some((one.part.name(), one.joined.as_ref().ok()?))).collect();
    if !known.is_empty() {
        blocks.push(Block::from(over_measured(&known)));
        blocks.push(Block::from(in_turn(&known)));
    }
    blocks
}

fn of_mean(rates: &[f64], mean_of: &[f64]) -> Vec<f64> {
    let mean = mean_of.iter().sum::<f64>() / mean_of.len() as f64;
    rates.iter().map(|rate| 100.0 * rate / mean).collect()
}

fn point(x: f64, y: f64) -> LinePoint {
    LinePoint::at(x, y)
}

fn data(known: &[(&str, &Joined)]) -> Table {
    let words = |rates: Vec<f64>| rates.iter().map(|one| format!("{one:.1}")).collect::<Vec<_>>().join(" ");
    let row = |(name, joined): &(&str, &Joined)| {
        vec![
            text(*name),
            text(words(of_mean(&joined.measured, &joined.measured))),
            text(words(of_mean(&joined.predicted, &joined.measured))),
        ]
    };
    let columns = ["component", "measured, % of the mean", "predicted"].map(column).to_vec();
    Table::new(columns, known.iter().map(row)).folded()
}

fn lines(x: &str, y: &str, lines: Vec<Line>) -> ChartKind {
    ChartKind::lines(Axis::linear(x), Axis::linear(y), lines)
}

fn over_measured(known: &[(&str, &Joined)]) -> Chart {
    let line = |(name, joined): &(&str, &Joined)| {
        let measured = of_mean(&joined.measured, &joined.measured);
        let predicted = of_mean(&joined.predicted, &joined.measured);
        let points = measured.iter().zip(&predicted).map(|(x, y)| point(*x, *y)).collect();
        Line { name: name.to_string(), points, joined: false }
    };
    Chart::new(
        "chart-rate-predicted",
        "Predicted from slow memory over measured",
        lines("measured, % of the mean", "predicted, % of the mean", known.iter().map(line).collect()),
        data(known),
    )
    .about("One point per run. On the diagonal, the share of slow memory explains the run.")
}

fn in_turn(known: &[(&str, &Joined)]) -> Chart {
    let both = |(name, joined): &(&str, &Joined)| {
        [("measured", &joined.measured), ("predicted", &joined.predicted)].map(|(what, rates)| Line {
            name: format!("{name}, {what}"),
            points: (1..)
                .zip(of_mean(rates, &joined.measured))
                .map(|(at, y)| point(f64::from(at), y))
                .collect(),
            joined: true,
        })
    };
    Chart::new(
        "chart-rate-in-turn",
        "Runs in their order, measured and predicted",
        lines("run", "% of the mean", known.iter().take(SHOWN).flat_map(both).collect()),
        remains(known),
    )
    .about("Each as percent of the measured mean.")
}

/// What the predictions leave.
fn remains(known: &[(&str, &Joined)]) -> Table {
    let row = |(name, joined): &(&str, &Joined)| {
        let each = joined.measured.iter().zip(&joined.predicted);
        let words: Vec<String> = each
            .map(|(measured, predicted)| format!("{:+.1}", 100.0 * (measured / predicted - 1.0)))
            .collect();
        vec![text(*name), text(words.join(" "))]
    };
    let columns = vec![column("component"), column("measured over predicted, %")];
    Table::new(columns, known.iter().map(row)).folded()
}

fn footprints(steps: &[Escalated]) -> Table {
    let columns = columns("component | footprint per node: | CV: | runs apart: | in order | memory decides");
    let rows = steps.iter().flat_map(|one| {
        one.steps.iter().enumerate().map(|(at, step)| {
            let shows = one.shows.as_ref().filter(|shows| shows.step == at);
            vec![
                text(&step.component),
                number(step.footprint()),
                number(format!("{:.2} %", 100.0 * step.cv)),
                number(percent(step.apart)),
                text(&step.levels),
                text(shows.map_or("", |shows| shows.by)),
            ]
        })
    });
    Table::new(columns, rows)
}

/// The copies' own progress, run behind run, of those whose data fill memory.
fn over_time(diagnosis: &Diagnosis, suite: &Suite) -> Option<Chart> {
    /// A gap between runs on the axis, s.
    const GAP_S: f64 = 0.2;
    let mut rows = Vec::new();
    let mut drawn = Vec::new();
    for part in suite.parts.iter().filter(|part| part.is_memory()) {
        let planned = part.rate.series.planned;
        let visits = diagnosis.run.visits.iter();
        let own = visits.filter(|visit| visit.case as usize == planned && visit.reason.is_none());
        let mut points: Vec<LinePoint> = Vec::new();
        let mut spans_s: Vec<f64> = Vec::new();
        let mut at_s = 0.0;
        for visit in own {
            for progress in &visit.process.progress {
                for rate in &progress.rates {
                    points.push(point(at_s + progress.span_s / 2.0, *rate));
                    at_s += progress.span_s;
                    spans_s.push(progress.span_s);
                }
            }
            at_s += GAP_S;
        }
        let whole: f64 = spans_s.iter().sum();
        let mean = points.iter().zip(&spans_s).map(|(one, span_s)| one.y * span_s).sum::<f64>() / whole;
        if points.len() < 4 || !(mean > 0.0 && mean.is_finite()) {
            continue;
        }
        points.iter_mut().for_each(|one| one.y *= 100.0 / mean);
        let ends = |pick: fn(f64, f64) -> f64| points.iter().map(|one| one.y).reduce(pick).unwrap_or(mean);
        rows.push(vec![
            text(part.name()),
            number(points.len().to_string()),
            number(format!("{:.0}–{:.0}", ends(f64::min), ends(f64::max))),
        ]);
        drawn.push(Line { name: part.name().into(), points, joined: true });
    }
    (!drawn.is_empty()).then(|| {
        Chart::new(
            "chart-rate-progress",
            "Bandwidth over time, from the copies' own progress",
            lines("s of measured work", "% of the mean", drawn),
            Table::new(
                vec![column("component"), right("spans"), right("lowest–highest, % of the mean")],
                rows,
            )
            .folded(),
        )
        .about(
            "Work of all copies in each span of a run, in the order of runs, as percent of \
                 the component's mean. Memory traffic follows this work.",
        )
    })
}

/// Whether a series is one of an experiment: it has no row of its own.
pub fn is_aside(judged: &stats::analysis::Judged) -> bool {
    is_own(&judged.series.case) && diagnose::suite::is_experiment(judged)
}
