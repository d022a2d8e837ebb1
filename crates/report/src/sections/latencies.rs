//! All percentiles of rows that measure single latencies, up to the longest.

use super::wide;
use crate::block::{Block, Section};
use diagnose::Diagnosis;
use model::{Form, Metric, Title};

pub fn section(diagnosis: &Diagnosis) -> Option<Section> {
    let catalogue = &diagnosis.run.header.catalogue;
    let mut blocks = Vec::new();
    for title in catalogue {
        let metrics = percentiles(title);
        // Without one that is not in the row's own table nothing is left to be said.
        if !metrics.iter().any(|metric| metric.detail) {
            continue;
        }
        let Some(table) = wide::table(diagnosis, title, &metrics) else { continue };
        blocks.extend([Block::Prose(title.title.to_string()), Block::Table(table)]);
    }
    let group = |title: &Title| title.id.split('.').next().map(str::to_string);
    let first = catalogue.first().map(group);
    (!blocks.is_empty()).then(|| Section {
        id: "latencies".into(),
        title: "Latency percentiles".into(),
        about: "A percentile is shown if ten latencies or more lie beyond it in one pass. If \
                 only several passes together have ten, it covers all their latencies, and its verdict says so."
            .into(),
        blocks,
        // A terminal shows them where the run was about that group alone.
        long: !catalogue.iter().all(|title| Some(group(title)) == first),
    })
}

/// From the median to the longest; of one histogram each, where a row has several.
fn percentiles(title: &Title) -> Vec<&Metric> {
    let share = |metric: &Metric| match metric.form {
        Form::Quantile { q, .. } => Some(q),
        _ => None,
    };
    let family = |metric: &Metric| metric.name.rsplit_once('_').map(|(family, _)| family.to_string());
    let mut metrics: Vec<&Metric> = title.metrics.iter().filter(|metric| share(metric).is_some()).collect();
    metrics.sort_by(|one, other| {
        family(one)
            .cmp(&family(other))
            .then(share(one).unwrap_or(0.0).total_cmp(&share(other).unwrap_or(0.0)))
    });
    metrics
}

#[cfg(test)]
mod tests {
    use super::super::made::{Made, case, latency, machine, of, tables, texts};
    use super::*;
    use model::vocabulary::network::metric::LATENCY_P50;
    use model::{Better, View};

    fn quantile(name: &'static str, q: f64) -> Metric {
        let form = Form::Quantile { q, scale: 1e-3 };
        Metric { name: name.into(), ..Metric::new(LATENCY_P50, name, "us", Better::Lower, form) }
    }

    #[test]
    fn hidden_percentiles_stand_beside_the_shown_ones() {
        let metrics = vec![latency(), quantile("max", 1.0).detail(), quantile("p50", 0.5).aside()];
        let values = [("latency", 2.0), ("p50", 3.0), ("max", 70.0)];
        let found = Made::new(View::Wide, metrics)
            .case(case("one-cpu", &[]), &[(of(&[]), &values)])
            .diagnosed(machine(2));
        let section = section(&found).expect("a section");
        assert!(!section.long, "of one group");
        let table = tables(&section)[0];
        let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles[2..], ["p50, µs", "max, µs", "verdict"]);
        let rows = texts(table);
        assert!(rows[0][2].starts_with('3') && rows[0][3].starts_with("70"), "{rows:?}");
    }

    #[test]
    fn rows_that_show_all_of_theirs_are_not_repeated() {
        let metrics = vec![latency(), quantile("p50", 0.5).aside()];
        let values = [("latency", 2.0), ("p50", 3.0)];
        let found = Made::new(View::Wide, metrics)
            .case(case("one-cpu", &[]), &[(of(&[]), &values)])
            .diagnosed(machine(2));
        assert!(section(&found).is_none());
    }
}
