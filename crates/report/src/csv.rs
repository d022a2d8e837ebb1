//! CSV, the form that R, pandas and spreadsheets want: every sample as a row; and metrics of
//! comparisons and hosts beside their peers.

use anyhow::Context;

use compare::Comparison;
use compare::peers::Peers;
use diagnose::Diagnosis;

/// `host,test,placement,param,metric,process,window,value,unit,verdict`, one row a counted window.
pub fn write(diagnosis: &Diagnosis, out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    let header =
        ["host", "test", "placement", "param", "metric", "process", "window", "value", "unit", "verdict"];
    writer.write_record(header).context("cannot write CSV")?;
    let host = harmless(&diagnosis.run.header.host);
    for judged in &diagnosis.series {
        let series = &judged.series;
        let params: Vec<String> =
            series.params().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let [test, placement, param, metric, unit] = [
            series.case.bench.as_ref(),
            series.case.placement.name.as_ref(),
            params.join(" ").as_str(),
            series.metric.name.as_ref(),
            series.metric.unit.as_ref(),
        ]
        .map(harmless);
        let verdict = verdict_word(judged);
        for (process, values) in series.values().iter().enumerate() {
            for (window, value) in values.iter().enumerate() {
                let sample = [process.to_string(), window.to_string(), value.to_string()];
                let series = [&host, &test, &placement, &param, &metric].into_iter();
                let row = series.chain(&sample).chain([&unit, &verdict]);
                writer.write_record(row).context("cannot write CSV")?;
            }
        }
    }
    writer.flush().context("cannot write CSV")
}

/// Columns of [`comparisons`].
pub const COMPARISON: [&str; 15] = [
    "host_a", "file_a", "host_b", "file_b", "metric", "title", "unit", "a", "b", "ratio", "low", "high",
    "verdict", "headline", "reason",
];

/// Metrics of comparisons, one row each. What was refused has no numbers, but the reason.
pub fn comparisons(found: &[Comparison], out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COMPARISON).context("cannot write CSV")?;
    for one in found {
        let sides = one.names.iter().flatten().map(|name| harmless(name));
        let sides: Vec<String> = sides.collect();
        let measured = one.metrics.iter().map(|metric| {
            let ends = metric.ci95.map(|ends| ends.map(|end| end.to_string())).unwrap_or_default();
            let [key, title, unit] = [&metric.key, &metric.title, &metric.unit].map(|text| harmless(text));
            let [a, b, ratio] = [metric.a, metric.b, metric.ratio].map(|value| value.to_string());
            let [low, high] = ends;
            let headline = metric.headline.to_string();
            [key, title, unit, a, b, ratio, low, high, words(&metric.word), headline, String::new()]
        });
        let refused = one.refused.iter().map(|metric| {
            let mut row: [String; 11] = Default::default();
            row[0] = harmless(&metric.key);
            row[8] = "refused".to_string();
            row[9] = metric.headline.to_string();
            row[10] = harmless(&metric.reason);
            row
        });
        for row in measured.chain(refused) {
            writer.write_record(sides.iter().chain(&row)).context("cannot write CSV")?;
        }
    }
    writer.flush().context("cannot write CSV")
}

/// Columns of [`hosts`].
pub const HOSTS: [&str; 9] = ["host", "file", "started", "group", "figure", "ratio", "z", "peers", "flagged"];

/// Hosts beside their peers, one row a host and part of the machine, and one a benchmark in which
/// it is far behind; a host that was not judged has one row without a figure.
pub fn hosts(peers: &Peers, out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(HOSTS).context("cannot write CSV")?;
    for host in super::peers::output(peers).hosts.iter() {
        let own = [&host.host, &host.file, &host.started, &host.group].map(|text| harmless(text));
        let of = |figure: &str, ratio: f64, z: f64, peers: usize, flagged: bool| {
            [harmless(figure), ratio.to_string(), z.to_string(), peers.to_string(), flagged.to_string()]
        };
        let parts =
            host.scores.iter().map(|one| of(&one.component, one.ratio, one.z, host.peers, one.flagged));
        let alone = host.flags.iter().map(|one| of(&one.key, one.ratio, one.z, one.peers, true));
        let mut rows: Vec<[String; 5]> = parts.chain(alone).collect();
        if rows.is_empty() {
            rows.push(Default::default());
        }
        for row in rows {
            writer.write_record(own.iter().chain(&row)).context("cannot write CSV")?;
        }
    }
    writer.flush().context("cannot write CSV")
}

/// A word as the JSON contract writes it.
pub(crate) fn words(word: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(word).ok();
    value.and_then(|value| Some(value.as_str()?.to_string())).unwrap_or_default()
}

fn verdict_word(judged: &stats::analysis::Judged) -> String {
    judged.analysis.verdict.kind.words().replace(", ", "_").replace(' ', "_")
}

/// A spreadsheet reads a cell that begins with one of these as a formula, and texts of a foreign
/// run file may begin so. Where a semicolon separates cells, one begins behind each.
pub(crate) fn harmless(text: &str) -> String {
    // Tabs and line ends are spelled out by now. Wide signs are the same to a spreadsheet of East
    // Asia.
    const BEGINS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let (mut shown, mut begins) = (String::new(), true);
    for c in super::plain::plain(text, 200).chars() {
        if begins && BEGINS.contains(&c) {
            shown.push('\'');
        }
        shown.push(c);
        begins = c == ';' || begins && c == ' ';
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_begins_a_formula() {
        for hostile in
            ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1", "＋1", "－1", "＠1", "\u{200b}=1"]
        {
            let begin = harmless(hostile).chars().next().expect("a character");
            assert!(matches!(begin, '\'' | '\\'), "{hostile:?}");
        }
        assert_eq!(harmless("memory.read=1"), "memory.read=1");
        for (hostile, harmless_one) in [("x;=1+1;y", "x;'=1+1;y"), ("x; ;  @a", "x; ;  '@a"), (" =1", " '=1")]
        {
            assert_eq!(harmless(hostile), harmless_one);
        }
    }
}
