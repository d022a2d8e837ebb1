//! The lines of a report, one by one. A number has one decimal, always: what was cut off inside a
//! line is never taken for a smaller number.

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `BYTE UNIX Benchmarks (Version 5.1.3)`: a report begins.
    Banner { version: String },
    /// `System: rpi5: GNU/Linux`
    System { host: String },
    /// Another fact in the head of a report: label and value.
    Fact(&'static str, String),
    /// `Benchmark Run: Tue Nov 12 2024 15:00:50 - 15:28:47`: a section begins.
    Run { when: String },
    /// The same on its page: `Benchmark Run: 8 CPUs; 1 parallel process`
    RunOf { cpus: String, copies: u32 },
    /// A row of its page: `Pipe Throughput  2084880.1  lps  10.0 s  7  12440.0  1675.9`, the last
    /// two where the test has a baseline.
    PageRow(TestLine, Option<Row>),
    /// `4 CPUs in system; running 1 parallel copy of tests`
    Copies { cpus: String, copies: u32 },
    /// `Pipe Throughput   2084880.1 lps   (10.0 s, 7 samples)`
    Test(TestLine),
    /// `Run: "Execl Throughput": command returned status 127; aborting`, or what else stands behind
    /// a test's title.
    Failed { title: String, why: String },
    /// `System Benchmarks Index Values   BASELINE  RESULT  INDEX`: an index begins.
    Index { title: String, partial: bool },
    /// `Pipe Throughput   12440.0   2084880.1   1675.9`
    Row(Row),
    /// `System Benchmarks Index Score   1563.8`
    Score { title: String, score: Option<f64> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct TestLine {
    pub title: String,
    /// `None` for what is no number: `nan`, `inf`.
    pub value: Option<f64>,
    pub unit: String,
    pub seconds: String,
    pub samples: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub title: String,
    /// `None` for `---`: the test has no baseline.
    pub baseline: Option<f64>,
    pub result: f64,
    pub index: Option<f64>,
}

/// What a line says; `None` for empty or unknown lines.
pub fn read(line: &str) -> Option<Line> {
    let line = line.trim();
    head(line)
        .or_else(|| copies(line))
        .or_else(|| index(line))
        .or_else(|| test(line).map(Line::Test))
        .or_else(|| page_row(line))
        .or_else(|| failed(line))
}

/// Whether a line names the columns of its page's rows.
pub fn is_page_head(line: &str) -> bool {
    line.split_whitespace().eq(["Test", "Score", "Unit", "Time", "Iters.", "Baseline", "Index"])
}

fn head(line: &str) -> Option<Line> {
    if let Some((_, rest)) = line.split_once("BYTE UNIX Benchmarks (Version ") {
        return Some(Line::Banner { version: rest.split(')').next().unwrap_or("").to_string() });
    }
    let (label, value) = line.split_once(": ").map(|(label, value)| (label, value.trim()))?;
    let first = |text: &str, end: &str| text.split(end).next().unwrap_or("").trim().to_string();
    match label {
        "System" => Some(Line::System { host: first(value, ": ") }),
        "OS" => Some(Line::Fact("kernel", value.split(" -- ").nth(1)?.trim().to_string())),
        "Machine" => Some(Line::Fact("architecture", first(value, " ("))),
        "Language" => Some(Line::Fact("language", first(value, " ("))),
        // The first row of its page's table of them.
        "CPUs" => {
            let (_, model) = value.split_once(": ")?;
            Some(Line::Fact("cpu_model", model.trim().rsplit_once('(')?.0.trim().to_string()))
        }
        "Benchmark Run" => Some(run_of(value).unwrap_or_else(|| Line::Run { when: value.to_string() })),
        // Some kernels print no model.
        _ if label.strip_prefix("CPU ").is_some_and(is_count) => {
            Some(Line::Fact("cpu_model", value.rsplit_once('(')?.0.trim().to_string()))
        }
        _ => None,
    }
}

fn run_of(value: &str) -> Option<Line> {
    let (cpus, running) = value.split_once("; ")?;
    let cpus = cpus.strip_suffix(" CPUs").or(cpus.strip_suffix(" CPU")).filter(|cpus| is_count(cpus))?;
    let (copies, rest) = running.split_once(' ')?;
    let copies = copies.parse().ok().filter(|copies| *copies > 0)?;
    rest.starts_with("parallel process").then(|| Line::RunOf { cpus: cpus.to_string(), copies })
}

fn page_row(line: &str) -> Option<Line> {
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let [title, value, unit, seconds, samples, rest @ ..] = cells.as_slice() else { return None };
    let seconds = seconds.strip_suffix(" s").filter(|seconds| number(seconds).is_some())?.to_string();
    let (result, samples) = (number(value)?, samples.parse().ok()?);
    let title = title.to_string();
    let row = match rest {
        [baseline, index] => Some(Row {
            title: title.clone(),
            baseline: Some(number(baseline)?),
            result,
            index: number(index),
        }),
        _ => None,
    };
    Some(Line::PageRow(
        TestLine { title, value: Some(result), unit: unit.to_string(), seconds, samples },
        row,
    ))
}

fn copies(line: &str) -> Option<Line> {
    let (cpus, running) = line.split_once(" in system; running ")?;
    let (copies, rest) = running.split_once(' ')?;
    let copies = copies.parse().ok().filter(|copies| *copies > 0)?;
    let cpus = cpus.split(' ').next().filter(|cpus| is_count(cpus))?.to_string();
    rest.starts_with("parallel cop").then_some(Line::Copies { cpus, copies })
}

fn index(line: &str) -> Option<Line> {
    if line.ends_with("INDEX") && line.contains(" BASELINE ") {
        let title = line.split(" BASELINE ").next()?.trim();
        let partial = title.ends_with("Partial Index");
        let title = title.trim_end_matches("Values").trim_end().trim_end_matches("Partial Index");
        let title = title.trim_end_matches("Index").trim_end().to_string();
        return Some(Line::Index { title, partial });
    }
    // What its page says instead.
    if let Some((title, _)) = line.split_once(" not all index tests were run") {
        let title = title.trim_end_matches("&mdash;").trim_end_matches([' ', '-', '\u{2013}', '\u{2014}']);
        return Some(Line::Index { title: title.to_string(), partial: true });
    }
    if let Some((title, rest)) = line.split_once(" Index Score") {
        let word = rest.split_whitespace().last().unwrap_or("");
        return Some(Line::Score { title: title.to_string(), score: number(word) });
    }
    let (rest, index) = last_word(line)?;
    let (rest, result) = last_word(rest)?;
    let (title, baseline) = last_word(rest)?;
    let optional = |word: &str| if word == "---" { Some(None) } else { number(word).map(Some) };
    let (baseline, index, result) = (optional(baseline)?, optional(index)?, number(result)?);
    Some(Line::Row(Row { title: title.to_string(), baseline, result, index }))
}

fn test(line: &str) -> Option<TestLine> {
    let (rest, tail) = line.rsplit_once('(')?;
    let (seconds, samples) = tail.strip_suffix(" samples)")?.split_once(", ")?;
    let samples = samples.trim().parse().ok()?;
    let seconds = seconds.split(' ').next().filter(|seconds| number(seconds).is_some())?.to_string();
    let (rest, unit) = last_word(rest)?;
    let (title, value) = last_word(rest)?;
    let value = match value.trim_start_matches('-').to_ascii_lowercase().as_str() {
        "nan" | "inf" => None,
        _ => Some(number(value)?),
    };
    Some(TestLine { title: title.to_string(), value, unit: unit.to_string(), seconds, samples })
}

/// What stands behind the title of a test of the index and is no score, or why the run was given
/// up.
fn failed(line: &str) -> Option<Line> {
    if let Some((title, why)) = line.strip_prefix("Run: \"").and_then(|rest| rest.split_once("\": ")) {
        return Some(Line::Failed { title: title.to_string(), why: why.to_string() });
    }
    let test = stats::unixbench::TESTS.iter().find(|test| line.starts_with(test.title))?;
    let why = line[test.title.len()..].trim_start_matches([':', ' ']).to_string();
    (!why.is_empty()).then(|| Line::Failed { title: test.title.to_string(), why })
}

fn last_word(text: &str) -> Option<(&str, &str)> {
    let (rest, word) = text.trim_end().rsplit_once(char::is_whitespace)?;
    Some((rest.trim_end(), word)).filter(|(rest, _)| !rest.is_empty())
}

/// Digits, a point (or the comma of other languages), one digit.
fn number(text: &str) -> Option<f64> {
    let (whole, decimal) = text.split_once(['.', ','])?;
    let plain = is_count(whole) && whole.len() <= 15 && is_count(decimal) && decimal.len() == 1;
    plain.then(|| format!("{whole}.{decimal}").parse().ok())?
}

fn is_count(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_mean_what_they_say() {
        let fact = |label, value: &str| Some(Line::Fact(label, value.to_string()));
        assert_eq!(read("   OS: GNU/Linux -- 6.6.59+ -- #50 SMP"), fact("kernel", "6.6.59+"));
        assert_eq!(
            read("   CPU 12: ARM Cortex-A78AE (62.5 bogomips)"),
            fact("cpu_model", "ARM Cortex-A78AE")
        );
        assert_eq!(
            read("1 CPU in system; running 1 parallel copy of tests"),
            Some(Line::Copies { cpus: "1".into(), copies: 1 })
        );
        assert_eq!(
            read("System Benchmarks Partial Index   BASELINE   RESULT  INDEX"),
            Some(Line::Index { title: "System Benchmarks".into(), partial: true })
        );
        assert_eq!(
            read("2D Graphics Benchmarks Index Values   BASELINE   RESULT  INDEX"),
            Some(Line::Index { title: "2D Graphics Benchmarks".into(), partial: false })
        );
        for dash in ["\u{2014}", "&mdash;", "--"] {
            assert_eq!(
                read(&format!("System Benchmarks {dash} not all index tests were run; only a partial index")),
                Some(Line::Index { title: "System Benchmarks".into(), partial: true })
            );
        }
        assert_eq!(read("CPUs:  0:  A Processor (4000.3 bogomips)"), fact("cpu_model", "A Processor"));
        let score = |score| Some(Line::Score { title: "System Benchmarks".into(), score });
        assert_eq!(read("System Benchmarks Index Score (Partial Only)        117,6"), score(Some(117.6)));
        assert_eq!(read("System Benchmarks Index Score      11"), score(None), "cut off");
        let Some(Line::Test(found)) = read("Shell Scripts (8 concurrent)   1689.3 lpm   (60.0 s, 2 samples)")
        else {
            panic!("a test");
        };
        assert_eq!((found.title.as_str(), found.value), ("Shell Scripts (8 concurrent)", Some(1689.3)));
        assert!(matches!(
            read("Pipe Throughput   ---   5.0   ---"),
            Some(Line::Row(Row { baseline: None, .. }))
        ));
        for (line, title, why) in [
            ("Run: \"Execl Throughput\": command returned status 127; aborting", "Execl Throughput", "127"),
            ("Process Creation          no output", "Process Creation", "no output"),
            ("Pipe Throughput   2084880.1 lps   (10.0 s, 7 sa", "Pipe Throughput", "7 sa"),
        ] {
            let Some(Line::Failed { title: found, why: words }) = read(line) else { panic!("{line}") };
            assert!(found == title && words.contains(why), "{found}: {words}");
        }
        for nothing in
            ["", "========", "4 CPUs in system; running 0 parallel copies", "4 CPUs in system; runn"]
        {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }
}
