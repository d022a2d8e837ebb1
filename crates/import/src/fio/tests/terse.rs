//! Terse lines: by what the JSON of the same run says, by their places, and one behind the other.

use super::*;
use crate::fio::terse::{Relation, job_options, relation};

#[test]
fn the_json_of_the_same_run_says_the_same() {
    let (json, terse) = (one(&recorded("fio-terse-pair.json")), one(&recorded("fio-terse-pair.txt")));
    assert_eq!(rules(&terse), [""; 0]);
    let mut compared = 0;
    for figure in &json.figures {
        let key = &figure.judged.series.key;
        let metric = &figure.judged.series.metric.name;
        // It gives no count of I/Os.
        if metric == "cpu_per_io" {
            continue;
        }
        let (said, cut) = (values(&json, key), values(&terse, key));
        assert_eq!(said.len(), cut.len(), "{key}");
        for (said, cut) in said.iter().zip(&cut) {
            compared += 1;
            // Of each direction what is behind the point is cut off.
            let most = if metric == "bandwidth" { 2048e-9 } else { 2.0 };
            assert!((0.0..most).contains(&(said - cut + 1e-6)), "{key}: {said} {cut}");
        }
    }
    assert!(compared >= 40, "{compared}");
}

/// Name, error, I/Os a second, p99 of reads: by the places that fio's manual gives.
#[test]
fn values_stand_at_their_places() {
    let text = recorded("fio-terse-versions.txt");
    for line in text.lines().filter(|line| !line.starts_with('$')) {
        let fields: Vec<&str> = line.split(';').collect();
        let first = if fields[0] == "2" { 1 } else { 2 };
        if !fields.get(first).is_some_and(|name| name.starts_with('v')) {
            continue;
        }
        let command = "$ fio --rw=randrw --bs=4k --ioengine=psync --direct=1 --minimal --name=";
        let found = one(&format!("{command}{}\n{line}\n", fields[first]));
        let key = |metric: &str| {
            format!(
                "disk.random@one-cpu?cache=direct&direction=read&engine=psync&op=mixed&read_share=50/block=4096&depth=1#{metric}"
            )
        };
        let number =
            |at: usize| fields[first + at].rsplit('=').next().and_then(|text| text.parse::<f64>().ok());
        assert_eq!(Some(value(&found, &key("iops"))), number(5), "{line}");
        assert_eq!(Some(value(&found, &key("latency_p99"))), number(27), "{line}");
        assert_eq!(Some(value(&found, &key("latency_max"))), number(12), "{line}");
        // Without the command its work is unknown.
        let untold = one(&format!("{line}\n"));
        assert!(untold.figures.iter().all(|one| one.judged.series.key.contains("rw=untold")), "{line}");
    }
    let failed = text.lines().find(|line| line.contains(";e;0;28;")).expect("the job that failed");
    assert_eq!(rules(&one(failed)), [FAILED_IO]);
}

#[test]
fn lines_of_one_job_are_copies_reports_jobs_or_runs() {
    let text = recorded("fio-terse-status.txt");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert!(lines.windows(2).all(|two| relation(two[0], two[1]) == Relation::Later));
    assert_eq!(relation(lines[0], lines[0]), Relation::Copy);
    assert_eq!(relation(lines[1], lines[0]), Relation::Another);
    let text = recorded("fio-terse-versions.txt");
    let each: Vec<&str> = text.lines().filter(|line| line.contains(";each;")).collect();
    assert_eq!(relation(each[0], each[1]), Relation::Beside);
    // Two at once are summed, two runs are not.
    let iops = "fio.job@free?cache=untold&engine=untold&job=each&jobs=2&op=read&rw=untold/block=untold&depth=untold#iops";
    let number =
        |line: &str| line.split(';').nth(7).and_then(|text| text.parse::<f64>().ok()).expect("a rate");
    let both = one(&each.join("\n"));
    assert_eq!(values(&both, iops), [number(each[0]) + number(each[1])]);
    let again = lines[3].replace(";3002;", ";3001;");
    let again = format!("{};1.00%", again.rsplit_once(';').expect("values").0);
    let runs = one(&format!("{}\n{again}", lines[3]));
    let iops = runs.figures.iter().find(|one| one.judged.series.metric.name == "iops").expect("a rate");
    assert_eq!(iops.judged.series.values().concat().len(), 2);
}

#[test]
fn of_a_line_that_was_cut_only_whole_directions_are_read() {
    let text = recorded("fio-terse-pair.txt");
    let line = text.lines().last().expect("a line");
    let fields: Vec<&str> = line.split(';').collect();
    for count in [30, 47, 60, 87, 88, 100] {
        let cut = fields[..count].join(";");
        let read = crate::read(cut.as_bytes()).map_or(0, |all| {
            let figures = all.iter().flat_map(|one| &one.figures);
            figures
                .filter(|one| {
                    one.judged.series.metric.name == "iops" && one.judged.analysis.estimate.is_some()
                })
                .count()
        });
        // Five values before the first direction, and 41 each.
        assert_eq!(read, (count.saturating_sub(6) / 41).min(2), "{count}");
    }
}

#[test]
fn commands_tell_what_a_job_was_to_do() {
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    let told = |name: &str, value: &str| (name.to_string(), value.to_string());
    let all = words("--bs=4k --name=a --rw=read --group_reporting --name=b --rw=write --minimal");
    let a = [told("rw", "read"), told("group_reporting", "1"), told("bs", "4k")];
    assert_eq!(job_options(&all, "a"), Some(a.to_vec()));
    assert_eq!(job_options(&all, "b"), Some(vec![told("rw", "write"), told("bs", "4k")]));
    for unknown in ["--name=a job.fio", "--name=a --rw=$RW", "--name=a --name=a --rw=read", "--rw=read"] {
        assert_eq!(job_options(&words(unknown), "a"), None, "{unknown}");
    }
}
