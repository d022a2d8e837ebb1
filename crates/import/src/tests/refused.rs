//! Lines that look like figures and cannot be read: each is named as not read, and none heads what
//! stands below it.

use super::foreign::{Case, cases};
use super::{recorded, rules};
use crate::{Imported, read};

fn refused(all: &[Imported]) -> usize {
    all.iter().map(|one| one.refused).sum()
}

fn told(all: &[Imported], words: &str) -> bool {
    all.iter().flat_map(|one| &one.remarks).any(|remark| remark.contains(words))
}

/// A row of each that was damaged, or has too few or too many numbers.
#[test]
fn a_line_that_is_no_row_of_its_table_is_told_as_not_read() {
    for (name, row, instead) in [
        ("mlc.txt", "142.3", "142.3\t 150.0"),
        ("mlc.txt", "\t  83.1", ""),
        ("mlc.txt", "101.62", "1x1.62"),
        ("mlc.txt", "101.62", "101.62.5"),
        ("mlc.txt", "101.62", "nan"),
        ("mlc.txt", "159201.9", "159,201.9"),
        ("mlc.txt", "2:1 Reads-Writes :\t149303.9", "2:1 Reads-Writes :\t1493o3.9"),
        ("mlc.txt", "-\t 115.7", "- 3.5\t 115.7"),
        ("multichase-fairness.txt", "8.4     9.1 : avg", "8.4     9.1     9.9 : avg"),
        ("multichase-fairness.txt", "8.4     9.1 : avg", "8.4     9..1 : avg"),
        ("multichase-pingpong.txt", "708.9", "708.9   709.0"),
        ("multichase-pingpong.txt", "708.9", "7o8.9"),
        ("core-to-core-all.txt", "1 \u{1b}[1;37m", "1 9..1 \u{1b}[1;37m"),
        ("core-to-core.csv", "70.25,69.6312,", "70.25,,"),
        ("stream-threads.txt", "11636.4", "1163x.4"),
        ("iperf2-client.txt", "15.9 Gbits/sec", "15.9.0 Gbits/sec"),
        ("wrk.txt", "1397.74", "1397.7.4"),
        ("schbench-2021.txt", "50.0th: ", "50.0th: 5x"),
        ("netperf-debian-classic.txt", "1898.17", "1898,17"),
        ("nuttcp-debian.txt", "7769.6024", "7769.6.024"),
    ] {
        let text = recorded(name);
        let damaged = text.replacen(row, instead, 1);
        assert!(text != damaged, "{name} has no {row}");
        let (whole, all) = (read(text.as_bytes()).expect(name), read(damaged.as_bytes()).unwrap_or_default());
        // What is no file of its tool any more is none that was read whole.
        assert!(all.is_empty() || refused(&all) > refused(&whole), "{name}: {row}: {:?}", all[0].remarks);
        assert!(all.is_empty() || told(&all, "not read; the first"), "{name}: {row}");
    }
}

/// Read by code with its own patterns, and a table that none of the tools below it printed.
const OTHERS: [&str; 3] = ["lmbench-raw", "iperf3-two-kernels", "geekbench-yabs"];

/// Whatever number of whatever case was damaged, its line heads no result.
#[test]
fn a_damaged_line_is_no_heading() {
    let mut heads = Vec::new();
    let mut count = 0;
    for (number, Case { name, bytes }) in cases().into_iter().enumerate() {
        let Ok(text) = String::from_utf8(bytes) else { continue };
        if OTHERS.iter().any(|other| name.starts_with(other)) {
            continue;
        }
        let is_number = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
        let rows = text.lines().filter(|line| line.split_whitespace().any(|word| is_number(&word)));
        let rows: Vec<&str> = rows.collect();
        if rows.is_empty() {
            continue;
        }
        // The last row of a run is the one that the next run's heading would begin with.
        for row in [rows[rows.len() - 1], rows[number % rows.len()]] {
            let Some(word) = row.split_whitespace().find(is_number) else { continue };
            let damaged = row.replacen(word, &word.replace('.', "q."), 1);
            let both = format!("{}\n{text}", text.replacen(row, &damaged, 1));
            for one in read(both.as_bytes()).unwrap_or_default() {
                let headings = one.make_up.iter().filter(|(label, _)| label == "heading");
                let damaged = damaged.trim();
                heads.extend(
                    headings
                        .filter(|(_, value)| value.contains(damaged))
                        .map(|(_, value)| format!("{name}: {value}")),
                );
            }
            count += 1;
        }
    }
    assert!(count > 200 && heads.is_empty(), "of {count}:\n{}", heads.join("\n"));
}

/// What looks like a heading is one, though it has numbers.
#[test]
fn headings_with_numbers_are_no_damaged_lines() {
    let text = recorded("stream-before-after.txt");
    for heading in
        ["6.1-rc3+", "kernel 6.1.0-18", "4 x 8 GB", "2026-11-02 10:11", "3200 MT/s, 2DPC", "gcc 13.2.0:"]
    {
        let all = read(text.replace("After (DIMMs moved):", heading).as_bytes()).expect("results");
        let headings: Vec<&(String, String)> =
            all.iter().flat_map(|one| &one.make_up).filter(|(label, _)| label == "heading").collect();
        assert_eq!((all.len(), refused(&all)), (2, 0), "{heading}");
        assert!(headings[1].1.starts_with(&heading[..5]), "{heading}: {headings:?}");
    }
}

/// A table that ends in its midst, or goes on behind a row that is none, is not read behind it.
#[test]
fn rows_behind_a_broken_one_are_not_read() {
    let all =
        read(recorded("core-to-core-four.txt").replacen("4  163", "5  163", 1).as_bytes()).expect("read");
    assert!(refused(&all) > 2 && rules(&all[0]).contains(&"interrupted-result"), "{:?}", all[0]);
}
