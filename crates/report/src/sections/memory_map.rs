//! Maps of memory: the answer for each node, and the picture.

use super::{column, columns, number, right, text};
use crate::block::{Block, Cell, Chart, ChartKind, Map, MapSide, Section, Table};
use diagnose::Diagnosis;
use diagnose::memory_map::{NodeMap, candidate_words};
use diagnose::regions::EvaluatedRegions;
use diagnose::words::{bytes as bytes_words, capital};
use model::vocabulary::memory_map as ids;
use model::{Better, Case, VerdictKind, figure, percent};

/// Whether a case stands in this section, and nowhere else.
pub fn is_own(case: &Case) -> bool {
    case.bench == ids::MAP || case.bench == ids::REGIONS
}

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let maps = diagnosis.memory_maps();
    let regions = diagnosis.regions();
    let absent = absent(diagnosis);
    if maps.is_empty() && regions.is_empty() && absent.is_empty() {
        return None;
    }
    let mut blocks = Vec::new();
    for found in &maps {
        blocks.push(Block::Prose(answer(diagnosis, found)));
        blocks.extend(strings(found).map(Block::Preformatted));
        blocks.extend(populations(found).map(Block::Table));
        blocks.push(picture(found, None));
        let order = found.physical_order();
        blocks.extend(order.as_deref().map(|order| picture(found, Some(order))));
    }
    for own in &regions {
        blocks.push(Block::Prose(own.sentences().join(" ")));
        blocks.extend(facts(own).map(Block::Table));
    }
    if maps.len() > 1 {
        blocks.insert(0, Block::Table(nodes(&maps)));
    }
    if !absent.is_empty() {
        blocks.push(Block::Prose(format!("not tested: {absent}")));
    }
    Some(Section::new("memory-map", "Map of the memory", blocks).about(
        "Bandwidth of every chunk of the free memory, all cores of the node on one \
                 chunk, medians over rounds in random order. Regions: cost of a load for one core, with \
                 all lines flushed.",
    ))
}

fn answer(diagnosis: &Diagnosis, found: &NodeMap) -> String {
    let mut sentences = vec![format!("{}.", capital(&found.words()))];
    let huge = found.visit.process.huge_share;
    let of_node = found.node_bytes.map_or(String::new(), |all| {
        let share = found.bytes_of(found.chunks() as f64) / all as f64;
        format!(", {} of the node's memory", percent(share))
    });
    sentences.push(format!(
        "Median chunk {}; {} chunks of {}{of_node}{}; chunks scatter by {}{}.",
        figure(found.typical, "GB/s"),
        found.chunks(),
        bytes_words(found.chunk_bytes as f64),
        huge.map_or(String::new(), |share| format!(", {} of it on huge pages", percent(share))),
        percent(found.map.sigma),
        found
            .map
            .repeatability
            .map_or(String::new(), |rho| format!(", rho of odd against even rounds {rho:.2}")),
    ));
    if let Some([whole, spread]) = found.losses() {
        sentences.push(format!(
            "A process in the slow part loses {} against fast memory; a process spread over all of it loses {}.",
            percent(whole),
            percent(spread)
        ));
    }
    let judged = diagnosis.series.iter().find(|judged| {
        judged.series.case.key() == found.case && judged.series.metric.name == ids::metric::TYPICAL
    });
    if let Some(judged) = judged.filter(|judged| judged.analysis.verdict.kind == VerdictKind::Rejected) {
        sentences.push(format!("Use with care: {}.", judged.analysis.verdict.reason));
    }
    sentences.extend(found.visit.process.notes.iter().map(|note| format!("{}.", capital(note))));
    sentences.join(" ")
}

/// Letters in a line of text, blocks of eight.
const LINE: usize = 64;

/// The map as letters, in the order of allocation and in physical order.
pub fn strings(found: &NodeMap) -> Option<String> {
    let order = found.physical_order();
    let physical = order.as_deref().and_then(|order| found.letters(Some(order)));
    let lines = |title: &str, letters: String| {
        let letters: Vec<char> = letters.chars().collect();
        let line = |line: &[char]| {
            let blocks: Vec<String> = line.chunks(8).map(|block| block.iter().collect()).collect();
            format!("  {}\n", blocks.join(" "))
        };
        format!("{title}\n{}", letters.chunks(LINE).map(line).collect::<String>())
    };
    let mut drawn = lines("F fast, S slow; in the order of allocation", found.letters(None)?);
    drawn.extend(physical.map(|letters| lines("in physical order", letters)));
    Some(drawn.trim_end().to_string())
}

/// What regions say rests on these.
fn facts(own: &EvaluatedRegions) -> Option<Table> {
    let rows: Vec<Vec<Cell>> =
        own.facts().into_iter().map(|fact| vec![text(fact.label), text(fact.value)]).collect();
    let columns = vec![column(&format!("regions of {}", own.name())), column("value")];
    (!rows.is_empty()).then_some(Table::new(columns, rows))
}

/// What could make the speeds.
fn populations(found: &NodeMap) -> Option<Table> {
    let row = |candidate: &stats::memory_map::Candidate| {
        let [wide, narrow] = candidate.sets;
        let [fast, slow] = candidate.bandwidth_shares();
        vec![
            text(format!("{wide}+{narrow}")),
            text(if candidate.stands() { "fits" } else { "not shown" }),
            number(percent(fast)),
            number(percent(slow)),
            text(candidate_words(candidate, &found.known)),
        ]
    };
    let rows: Vec<Vec<Cell>> = found.candidates().iter().take(6).map(row).collect();
    let columns = columns("channels | verdict | fast part, of all channels: | slow part: | evidence");
    (!rows.is_empty()).then_some(Table::new(columns, rows))
}

/// Columns of a picture.
const COLUMNS: usize = 16;

/// A cell a chunk, from the upper left on; in the order of allocation, or in this one.
fn picture(found: &NodeMap, order: Option<&[usize]>) -> Block {
    let chunks: Vec<usize> = order.map_or_else(|| (0..found.chunks()).collect(), <[usize]>::to_vec);
    let columns = chunks.len().clamp(1, COLUMNS);
    let percent_of = |chunk: &usize| {
        let median = found.map.medians.get(*chunk).copied().filter(|median| median.is_finite());
        median.map(|median| 100.0 * (median - 1.0))
    };
    // Rows of a map count from below.
    let mut rows: Vec<(String, Vec<Option<f64>>)> = chunks
        .chunks(columns)
        .enumerate()
        .map(|(row, own)| {
            let mut cells: Vec<Option<f64>> = own.iter().map(percent_of).collect();
            cells.resize(columns, None);
            let first = own[0];
            let label = match (order, &found.physical) {
                (Some(_), Some(places)) => format!("{:.2} GiB", places[first][0]),
                _ => bytes_words(found.bytes_of((row * columns) as f64)),
            };
            (label, cells)
        })
        .collect();
    rows.reverse();
    let (labels, values): (Vec<String>, Vec<Vec<Option<f64>>>) = rows.into_iter().unzip();
    let (words, title) = match order {
        Some(_) => ("physical", "physical address of the first chunk"),
        None => ("allocation", "taken before"),
    };
    let map = Map {
        title: "bandwidth against the median chunk".into(),
        unit: "%".into(),
        x: MapSide {
            title: "chunk of the row".into(),
            labels: (0..columns).map(|at| at.to_string()).collect(),
        },
        y: Some(MapSide { title: title.into(), labels }),
        values,
        around: Some(0.0),
        better: Better::Higher,
        regions: Vec::new(),
        best: Vec::new(),
        default: None,
    };
    let id = format!("memory-map-{words}-{}", found.node.map_or("all".to_string(), |node| node.to_string()));
    let data = map.table();
    let order_words = if order.is_some() { "in physical order" } else { "in the order of allocation" };
    Block::from(
        Chart::new(id, format!("{}, {order_words}", capital(&found.name())), ChartKind::Map(map), data)
            .about("One cell per chunk, from the upper left: its bandwidth against the median chunk."),
    )
}

/// The nodes beside each other.
pub fn nodes(maps: &[NodeMap]) -> Table {
    let columns =
        vec![column("node"), right("median chunk"), right("measured"), right("scatter"), column("answer")];
    let row = |found: &NodeMap| {
        let words = match &found.map.answer {
            stats::memory_map::Answer::Speeds(speeds) => format!("{} speeds", speeds.speeds.len()),
            stats::memory_map::Answer::Uniform => "uniform".to_string(),
            stats::memory_map::Answer::Inconclusive(_) => "inconclusive".to_string(),
        };
        vec![
            text(found.name()),
            number(figure(found.typical, "GB/s")),
            number(bytes_words(found.bytes_of(found.chunks() as f64))),
            number(percent(found.map.sigma)),
            text(words),
        ]
    };
    Table::new(columns, maps.iter().map(row))
}

/// Why nodes could not be measured.
fn absent(diagnosis: &Diagnosis) -> String {
    let own = diagnosis.run.header.plan.iter().filter(|planned| is_own(&planned.case));
    let mut said: Vec<String> = Vec::new();
    for planned in own {
        let at = planned
            .case
            .params
            .get(ids::param::NODE)
            .map_or("memory".to_string(), |node| format!("node {node}"));
        said.extend(planned.unmet.as_ref().map(|why| format!("{at} ({why})")));
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::made::charts;
    use super::*;
    use crate::json;
    use diagnose::diagnose;
    use diagnose::reference::References;
    use testkit::memory_map::made;

    fn drawn(section: &Section) -> String {
        let text = |block: &Block| match block {
            Block::Prose(text) | Block::Preformatted(text) => text.clone(),
            _ => String::new(),
        };
        section.blocks.iter().map(text).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_slow_quarter_is_drawn_and_told() {
        let diagnosis = diagnose(made(&[1.5, 1.0], true));
        let section = section(&diagnosis).expect("maps");
        let drawn = drawn(&section);
        for words in [
            "Node 0 has two speeds: 40.0 GB/s and 26.7 GB/s",
            "1.50 times apart",
            "FFFFFFFF SSSSSSSS FFFFFFFF FFFFFFFF",
            "in physical order\n  SSSSSSSS",
            "loses 33 %",
            "Node 1 is uniform: a second speed 6.0 % apart in 10 % of the memory",
        ] {
            assert!(drawn.contains(words), "{words:?} is missing in {drawn}");
        }
        let ids: Vec<&str> = charts(&section).iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(
            ids,
            [
                "memory-map-allocation-0",
                "memory-map-physical-0",
                "memory-map-allocation-1",
                "memory-map-physical-1"
            ]
        );
        let maps = json::output(&diagnosis, &References::published()).memory_maps;
        assert_eq!(maps[0].map.as_deref().map(|map| map.matches('S').count()), Some(8));
        assert!(maps[0].slow_share == Some(0.25) && maps[1].ratio.is_none());
        let value = serde_json::to_value(&maps[1]).expect("JSON");
        assert!(
            value["answer"] == "uniform" && value["physical_map"].is_null() && value.get("ratio").is_some()
        );
    }

    #[test]
    fn letters_stay_away_where_there_is_one_speed() {
        let diagnosis = diagnose(made(&[1.0], false));
        let section = section(&diagnosis).expect("a map");
        assert!(!drawn(&section).contains("in the order of allocation"));
        assert_eq!(charts(&section).len(), 1);
    }
}
