//! Every sample as a row: the long form that R, pandas and spreadsheets want.

use anyhow::Context;

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
        for (process, values) in series.values().iter().enumerate() {
            for (window, value) in values.iter().enumerate() {
                writer
                    .write_record([
                        host.as_str(),
                        test.as_str(),
                        placement.as_str(),
                        param.as_str(),
                        metric.as_str(),
                        process.to_string().as_str(),
                        window.to_string().as_str(),
                        value.to_string().as_str(),
                        unit.as_str(),
                        verdict_word(judged).as_str(),
                    ])
                    .context("cannot write CSV")?;
            }
        }
    }
    writer.flush().context("cannot write CSV")
}

fn verdict_word(judged: &stats::analysis::Judged) -> String {
    judged.analysis.verdict.kind.words().replace(", ", "_").replace(' ', "_")
}

/// A spreadsheet takes a cell that begins with one of these for a formula; and whoever wrote a run
/// file may have called anything so. Where a semicolon separates cells, one begins behind each.
fn harmless(text: &str) -> String {
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
