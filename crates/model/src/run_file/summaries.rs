//! Summaries of many runs in one file, a line each: what `assay summary` prints.

use std::io::{BufRead, Read};

use anyhow::{Context, anyhow, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line::Seal;
use crate::{RUN_FILE_SCHEMA, Summary};

/// A run's summary with where it came from. The last line of a run file is one, too, without these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    pub summary: Box<Summary>,
    /// The run file that it closes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Of that file's bytes as they are stored, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// How such a line begins, without blanks.
pub const SUMMARY: &[u8] = b"{\"summary\":";

/// A line is no longer, in bytes; most have at most 64 KiB.
pub const LONGEST_SUMMARY: usize = 4 << 20;

/// No file has more lines, of which some hundred bytes to some thousand are kept each.
const MAX_LINES: usize = 4_000_000;

/// Summaries of one file that are in memory at once.
const MAX_AT_ONCE: usize = 100_000;

/// Shows whether a summary can be parsed.
#[derive(Deserialize)]
struct Begun {
    summary: Schema,
}

/// The part of a header or a summary with its version.
#[derive(Deserialize)]
pub struct Schema {
    pub schema: Option<u64>,
}

/// The summary in a line.
pub fn summary_line(line: &[u8]) -> anyhow::Result<SummaryLine> {
    let mut line = line.to_vec();
    let line = Seal::default().content(&mut line).map_err(|why| anyhow!("its summary is damaged: {why}"))?;
    // Lines are many, and nearly all are whole and of this version.
    if let Ok(found) = serde_json::from_slice::<SummaryLine>(line)
        && found.summary.schema <= RUN_FILE_SCHEMA
    {
        return Ok(found);
    }
    let begun: Begun = serde_json::from_slice(line).context("its summary is cut off or damaged")?;
    let schema = begun.summary.schema.context("its summary has no schema")?;
    ensure!(
        schema <= u64::from(RUN_FILE_SCHEMA),
        "it was written by a newer Assay (schema {schema}, this one reads up to {RUN_FILE_SCHEMA}): use that version"
    );
    serde_json::from_slice(line).context("its summary has unknown content")
}

/// The lines of a file of summaries, each with its number; blank ones are passed by. After an error
/// there is none.
pub struct SummaryLines<R> {
    text: R,
    number: usize,
    ended: bool,
}

impl<R: BufRead> SummaryLines<R> {
    pub fn new(text: R) -> SummaryLines<R> {
        SummaryLines { text, number: 0, ended: false }
    }

    fn line(&mut self) -> anyhow::Result<Option<(usize, Vec<u8>)>> {
        loop {
            self.number += 1;
            let mut line = Vec::new();
            let length = self
                .text
                .by_ref()
                .take(LONGEST_SUMMARY as u64)
                .read_until(b'\n', &mut line)
                .context("cannot read it")?;
            if length == 0 {
                return Ok(None);
            }
            ensure!(
                length < LONGEST_SUMMARY,
                "its line {} has more than {} KiB",
                self.number,
                LONGEST_SUMMARY >> 10
            );
            ensure!(self.number <= MAX_LINES, "it has more than {MAX_LINES} lines; read it in parts");
            if !line.trim_ascii().is_empty() {
                return Ok(Some((self.number, line)));
            }
        }
    }
}

impl<R: BufRead> Iterator for SummaryLines<R> {
    type Item = anyhow::Result<(usize, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let line = self.line().transpose();
        self.ended = !matches!(line, Some(Ok(_)));
        line
    }
}

/// All summaries in a file of such lines, each with its number. A line that holds none says why.
pub fn summaries(text: impl BufRead) -> anyhow::Result<Vec<(usize, anyhow::Result<SummaryLine>)>> {
    let mut found = Vec::new();
    for line in SummaryLines::new(text) {
        let (number, line) = line?;
        ensure!(number <= MAX_AT_ONCE, "it has more than {MAX_AT_ONCE} lines; read it in parts");
        found.push((number, summary_line(line.trim_ascii())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_none_does_not_hide_the_others() {
        let good = r#"{"summary":{"schema":2,"assay":"0.1.0","host":"a","started":"","elapsed_s":1.0,"make_up":[],"series":[],"findings":[]},"file":"a.assay.jsonl","later":1}"#;
        let newer = good.replace("\"schema\":2", "\"schema\":99");
        let text = format!("{good}\n\n{newer}\nhello\n{}", good.replace("\"a\"", "\"b\""));
        let found = summaries(text.as_bytes()).expect("read");
        let hosts: Vec<(usize, Option<&str>)> = found
            .iter()
            .map(|(number, line)| (*number, line.as_ref().ok().map(|line| line.summary.host.as_str())))
            .collect();
        assert_eq!(hosts, [(1, Some("a")), (3, None), (4, None), (5, Some("b"))]);
        assert!(found[1].1.as_ref().is_err_and(|why| why.to_string().contains("newer Assay")));
        assert!(summaries(&vec![b'x'; LONGEST_SUMMARY + 1][..]).is_err());
    }

    #[test]
    fn modules_that_an_older_version_cut_are_not_told() {
        let of = |modules: usize| ["65536"].repeat(modules).join(" ");
        let cut: String = format!("131072 131072 131072 {}", of(45)).chars().take(200).collect();
        for (modules, told) in [(of(32), true), (of(48), true), (cut, false)] {
            let line = format!(
                r#"{{"summary":{{"schema":2,"assay":"0.1.0","host":"a","started":"","elapsed_s":1.0,"make_up":[["dimms_mib","{modules}"],["cpus","2"]],"series":[],"findings":[]}}}}"#
            );
            let make_up = summary_line(line.as_bytes()).expect("a summary").summary.make_up;
            assert_eq!(make_up.iter().any(|(label, _)| label == "dimms_mib"), told, "{make_up:?}");
            assert!(make_up.contains(&("cpus".to_string(), "2".to_string())));
        }
    }
}
