//! Matrices of made runs.

use super::super::made::{Made, bandwidth, case, charts, latency, machine, of, texts};
use super::super::shown;
use super::*;
use model::View;

fn view(row: &'static str, column: &'static str) -> View {
    View::Matrix { row: row.into(), column: column.into() }
}

/// Every pair once, near ones fast.
fn pairs(cpus: u32) -> Diagnosis {
    let cores = cpus / 4;
    let machine = machine(cores);
    let places = Places::of(&machine);
    let point = |a: u32, b: u32| of(&[("from", u64::from(a).into()), ("to", u64::from(b).into())]);
    let all = (0..cpus).flat_map(|a| (a + 1..cpus).map(move |b| (a, b)));
    let values: Vec<(model::Params, [(&str, f64); 1])> = all
        .map(|(a, b)| {
            (point(a, b), [("latency", 10.0 * f64::from(places.relation(a, b).0 + 1) + 0.01 * f64::from(a))])
        })
        .collect();
    let points: Vec<_> = values.iter().map(|(point, values)| (point.clone(), &values[..])).collect();
    Made::new(view("from", "to"), vec![latency()]).case(case("all", &[]), &points).diagnosed(machine)
}

#[test]
fn pairs_of_cpus_stand_in_topology_order_on_both_sides() {
    let diagnosis = pairs(16);
    let title = &diagnosis.run.header.catalogue[0];
    let section = section(&diagnosis, title, ["from", "to"]).expect("a section");
    let chart = charts(&section)[0];
    let ChartKind::Matrix { rows, columns, values, rejected, .. } = &chart.kind else { panic!("a matrix") };
    // Four cores a package, two an L3; 8 to 15 are second threads.
    assert_eq!(rows.topology_order, [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]);
    assert_eq!((rows.labels[3].as_str(), columns.labels.len(), rejected.len()), ("CPU 3", 16, 0));
    assert_eq!((values[0][8], values[8][0], values[0][0]), (values[8][0], values[0][8], None));
    assert!(chart.about.contains("120 pairs") && chart.about.contains("both sides"), "{}", chart.about);
    let by_distance = texts(chart.summary.as_ref().expect("a summary"));
    let names: Vec<[&str; 2]> = by_distance.iter().map(|row| [row[0].as_str(), row[1].as_str()]).collect();
    assert_eq!(
        names,
        [["smt-sibling", "8"], ["same-llc", "16"], ["other-llc", "32"], ["other-package", "64"]]
    );
    // The table of results has the median pair of each distance.
    let (shown, small) = shown::first(&diagnosis);
    assert!(small.is_empty());
    let places: Vec<&str> = shown.iter().map(|shown| shown.place.as_str()).collect();
    assert_eq!(places, ["smt-sibling", "same-llc", "other-llc", "other-package"]);
    assert!(shown[3].label.ends_with("(median of 64)"), "{}", shown[3].label);
}

#[test]
fn few_cpus_are_a_table() {
    let diagnosis = pairs(4);
    let (shown, tables) = shown::first(&diagnosis);
    assert_eq!((shown.len(), tables.len()), (0, 1));
    let rows = texts(&tables[0]);
    assert_eq!(rows[0], ["CPU 0", "", "40.0", "20.0", "40.0"]);
    assert_eq!(rows[1], ["CPU 1", "40.0", "", "40.0", "20.0"]);
}

#[test]
fn nodes_and_memories_may_differ_in_number() {
    let params =
        |node: u64, memory: u64| [("node", node.into()), ("memory", memory.into()), ("op", "read".into())];
    let value = |value: f64| [("bandwidth", value)];
    let one = |made: Made, node, memory, gbps| {
        made.case(case("per-node", &params(node, memory)), &[(of(&[]), &value(gbps))])
    };
    let mut made = Made::new(view("node", "memory"), vec![bandwidth()]);
    for (node, memory, gbps) in [(0, 0, 90.0), (0, 1, 40.0), (0, 2, 200.0), (1, 0, 41.0), (1, 1, 91.0)] {
        made = one(made, node, memory, gbps);
    }
    let made = made.unmet(case("per-node", &params(1, 2)), "no memory free there");
    let diagnosis = made.diagnosed(machine(4));
    let title = &diagnosis.run.header.catalogue[0];
    let section = section(&diagnosis, title, ["node", "memory"]).expect("a section");
    let charts = charts(&section);
    let ChartKind::Matrix { rows, columns, values, .. } = &charts[0].kind else { panic!("a matrix") };
    assert_eq!((charts.len(), rows.labels.len(), columns.labels.len()), (1, 2, 3));
    assert_eq!([rows.title.as_str(), columns.title.as_str()], ["CPUs of", "memory of"]);
    assert!(values[0][2].is_some() && values[1][2].is_none());
    assert_eq!(texts(&charts[0].data)[1][2], "distance 21");
    let (_, tables) = shown::first(&diagnosis);
    assert_eq!(texts(&tables[0]), [["node 0", "90.0", "40.0", "200"], ["node 1", "41.0", "91.0", ""]]);
}

#[test]
fn rejected_pairs_are_crossed_out() {
    let mut diagnosis = pairs(4);
    diagnosis.series[0].analysis.verdict = model::Verdict::new(VerdictKind::Rejected, "impossible");
    let title = &diagnosis.run.header.catalogue[0];
    let section = section(&diagnosis, title, ["from", "to"]).expect("a section");
    let ChartKind::Matrix { values, rejected, .. } = &charts(&section)[0].kind else { panic!("a matrix") };
    assert_eq!((rejected.as_slice(), values[0][1]), (&[[0, 1], [1, 0]][..], None));
    assert_eq!(texts(&shown::first(&diagnosis).1[0])[0][2], "rejected");
}

#[test]
fn many_pairs_are_bounded_and_said() {
    let mut diagnosis = pairs(4);
    // 1200 CPUs, each measured with its neighbour only.
    let pattern = diagnosis.series[0].clone();
    diagnosis.series = (0..1200u64)
        .map(|cpu| {
            let mut judged = pattern.clone();
            judged.series.point = of(&[("from", cpu.into()), ("to", ((cpu + 1) % 1200).into())]);
            judged
        })
        .collect();
    let title = &diagnosis.run.header.catalogue[0];
    let section = section(&diagnosis, title, ["from", "to"]).expect("a section");
    assert_eq!(charts(&section)[0].data.rows.len(), MAX_PAIRS);
    let Block::Prose(note) = &section.blocks[1] else { panic!("a note") };
    assert!(note.contains("other 700") && note.contains("memory.test@all"), "{note}");
}
