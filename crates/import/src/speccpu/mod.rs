//! Result files of SPEC CPU2017 and CPU2006, as their own tools write them: raw (`raw.rs`), CSV
//! (`csv.rs`), text (`lines.rs`) and page (`page.rs`). All come to one [`Sheet`], and from there to
//! series (`figures.rs`) and to the headline recomputed from its own rows (`score.rs`). What the
//! two generations call things is in `suites.rs`.
//!
//! A component has three series for each tuning: `score`, SPEC's own result (the row that SPEC
//! selected: the median of three iterations, the slower of two); `rate` or `ratio`, every iteration
//! that succeeded, with their spread; and `time`, s. The number of copies or threads is a choice of
//! the tester like compiler flags, and stands in the note and not in the key: two hosts are
//! compared by what each makes of its own. In CPU2006, whose components have the same names in both
//! suites, `suite` distinguishes `speed` from `rate`.

mod csv;
mod figures;
mod lines;
mod page;
mod raw;
mod score;
mod suites;
#[cfg(test)]
mod tests;

use super::{Format, Tool, faults};
use anyhow::ensure;
use suites::{Year, title};

use super::Imported;

pub(crate) use page::is_one as is_page;

pub(crate) const TOOL: Tool = Tool::of(
    "SPEC CPU2017 and CPU2006: raw, CSV and text; HTML, and raw and CSV of CPU2006 (known from documentation only: shown, not judged)",
    is_one,
    read,
);

pub(crate) const FORMAT: Format = Format("SPEC CPU2017 result");
const FORMAT_2006: Format = Format("SPEC CPU2006 result");

/// More rows than this in one file are a mistake or an attack: the largest suite has 13 components
/// of 3 iterations.
const MAX_ROWS: usize = 2000;

/// More reports in one text are a mistake or an attack.
const MAX_REPORTS: usize = 200;

/// Lines of a banner that are kept.
const MAX_BANNER: usize = 40;

/// Remarks of one kind that are quoted.
const QUOTED: usize = 10;

/// The rules of imported results, by their names in `assay explain`.
pub const HEADLINE_DIFFERS: &str = "headline-differs";
pub const INVALID_RESULT: &str = "invalid-result";

/// What `assay explain headline-differs` prints.
pub const HEADLINE_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "The headline of an imported SPEC CPU result is not the geometric mean of the rows above it. One of the two was edited, or \
         the file was put together from two.",
    ),
    (
        "When it appears",
        "The geometric mean of the selected rows and the printed headline differ by more than the rounding of both. That is half of the \
         third digit in text and pages, half of the sixth decimal in CSV and raw files. Every component of the file must have a selected \
         row. The mean is that of the SPEC CPU2017 Run and Reporting Rules, section 4.3.2.",
    ),
];

/// What `assay explain invalid-result` prints.
pub const INVALID_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "The tool itself reports that its result is not valid: it computed a wrong result, a request failed, or it broke its own rules. \
         Its figures do not measure the work that they are named after.",
    ),
    (
        "When it appears",
        "`says` quotes the file: a failed check of the results (STREAM, HPL, stress-ng and others), a run shorter than the tool requires, \
         or requests answered with errors. Of SPEC CPU: valid,0 in the CSV, invalid: 1 in the raw file, the banner INVALID RUN, columns \
         called Est. or Estimated, or a withdrawn result (`not in compliance`, NC).",
    ),
];

/// How a component was tuned: all alike, or each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tune {
    Base,
    Peak,
}

impl Tune {
    const BOTH: [Tune; 2] = [Tune::Base, Tune::Peak];

    const fn word(self) -> &'static str {
        match self {
            Tune::Base => "base",
            Tune::Peak => "peak",
        }
    }
}

/// What a row reports for one tuning.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    /// Copies (rate) or threads (speed).
    copies: Option<u32>,
    /// s.
    time: Option<f64>,
    /// The rate, or the ratio.
    rate: Option<f64>,
    /// Half of the last digit that is printed, a share of the rate.
    rounding: f64,
    selected: bool,
    /// `S`, `CE`, `NR`, ...; empty where the row has none.
    status: String,
    /// A cell that should be a number and is none, as it stands.
    unread: Option<String>,
}

impl Cell {
    fn is_empty(&self) -> bool {
        self.time.is_none() && self.rate.is_none() && self.status.is_empty() && self.unread.is_none()
    }

    /// Whether the iteration counts: SPEC calls it a success, or says nothing.
    fn succeeded(&self) -> bool {
        matches!(self.status.as_str(), "S" | "*" | "")
    }
}

/// One row: an iteration of a component, or its selected one.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    /// `503.bwaves_r`.
    name: String,
    /// Of the full table, or of the selected ones.
    selected_table: bool,
    cells: [Cell; 2],
}

/// A headline as printed.
#[derive(Clone, Debug, PartialEq)]
struct Printed {
    /// `SPECrate2017_int_base`.
    title: String,
    tune: Tune,
    value: Option<f64>,
    /// As it stands.
    text: String,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sheet {
    year: Year,
    /// `Integer Rate`.
    suite: String,
    /// `speed` suites have threads and ratios.
    speed: bool,
    /// Known from documentation alone.
    documented: bool,
    /// What the file reports about its validity; `None`: nothing.
    valid: Option<bool>,
    estimated: bool,
    /// SPEC itself says that it does not keep to the rules.
    non_compliant: bool,
    /// Why it is invalid, as its banner says.
    banner: Vec<String>,
    rows: Vec<Row>,
    printed: Vec<Printed>,
    /// Label and value, by the labels of a run's make-up where they mean the same.
    facts: Vec<(String, String)>,
    host: String,
    /// When it ran, as the system's own note says.
    ran: String,
    left_out: usize,
    remarks: Vec<String>,
}

/// Whether a text is a report of SPEC CPU: by its title, by the headline of a table in a log, or as
/// a raw file or a page.
fn is_one(text: &str) -> bool {
    text.lines().take(400).any(|line| title(line).is_some())
        || text.contains("2006") && text.lines().any(suites::is_headline_2006)
        || raw::is_one(text)
        || page::is_one(text)
}

/// The results in a text, each from its title on; what stands there twice counts once. An error
/// says what keeps it from being one.
fn read(text: &str) -> anyhow::Result<Vec<Imported>> {
    let (mut results, mut refused) = (Vec::<Imported>::new(), None);
    for report in reports(text) {
        match one(report) {
            Ok(found) => {
                let same = |known: &&mut Imported| {
                    known.figures == found.figures
                        && known.make_up == found.make_up
                        && known.host == found.host
                };
                match results.iter_mut().find(same) {
                    Some(known) => {
                        known.remarks.push("the file has the same report twice: it counts once".to_string())
                    }
                    None => results.push(found),
                }
            }
            Err(error) => _ = refused.get_or_insert(error),
        }
    }
    match (refused, results.last_mut()) {
        (Some(error), None) => Err(error),
        (Some(error), Some(last)) => {
            last.remarks.push(format!("another report in the text was left out: {error}"));
            Ok(results)
        }
        (None, _) => Ok(results),
    }
}

/// The reports in a text: what stands before a title is of the report above it, but for the lines
/// that say whether the next one is valid. A table without a title, as logs have them, a raw file
/// and a page are reports of their own.
fn reports(text: &str) -> Vec<&str> {
    let mut begins: Vec<usize> = Vec::new();
    // Where the lines before a title begin that belong to it.
    let (mut at, mut own) = (0, None);
    let (mut titled, mut first_field) = (false, None);
    for line in text.split_inclusive('\n') {
        let word = line.trim().trim_start_matches('"');
        let before = word.starts_with('#')
            || word.to_ascii_lowercase().starts_with("valid")
            || lines::is_above_table(word);
        let has_title = title(line).is_some();
        let is_untitled = lines::heads_table(word) && !std::mem::take(&mut titled);
        titled |= has_title;
        let is_raw = raw::field_name(line).is_some_and(|name| name == *first_field.get_or_insert(name));
        match (has_title || is_untitled || is_raw, before) {
            (true, _) => begins.push(own.take().unwrap_or(at)),
            (false, true) => own = own.or(Some(at)),
            (false, false) if word.is_empty() => {}
            (false, false) => own = None,
        }
        at += line.len();
    }
    if page::is_one(text) {
        begins = text.match_indices("<html").map(|(at, _)| at).collect();
    }
    begins.truncate(MAX_REPORTS);
    match begins.first_mut() {
        Some(first) => *first = 0,
        None => begins.push(0),
    }
    let ends = begins.iter().skip(1).copied().chain([text.len()]);
    begins.iter().zip(ends).map(|(begin, end)| &text[*begin..end]).collect()
}

/// The sheet of one report.
fn sheet(text: &str) -> anyhow::Result<Sheet> {
    if page::is_one(text) {
        return Ok(page::read(text));
    }
    if raw::is_one(text) {
        return raw::read(text);
    }
    let is_csv = text.lines().take(400).any(|line| {
        let line = line.trim_start_matches('"');
        line.starts_with("Benchmark,") || line.starts_with("Benchmark;") || line.starts_with("Benchmark\"")
    });
    let starts = text.trim_start().to_ascii_lowercase().starts_with("valid");
    Ok(if is_csv || starts { csv::read(text) } else { lines::read(text) })
}

/// The result of one report.
fn one(text: &str) -> anyhow::Result<Imported> {
    let mut sheet = sheet(text)?;
    sheet.settle();
    let (tool, documented) = (sheet.year.word(), sheet.documented);
    ensure!(
        !sheet.rows.is_empty(),
        "it is a report of {tool} without a row of results: started, no test finished, or the file was cut off, or its table has another form"
    );
    let mut imported = figures::imported(sheet);
    ensure!(!imported.figures.is_empty(), "it is a report of {tool} without a finished test");
    if documented {
        faults::from_documentation(&mut imported);
    }
    Ok(imported)
}

/// Whether a text is the name of a component: `503.bwaves_r`.
fn is_component(text: &str) -> bool {
    let Some((number, name)) = text.split_once('.') else { return false };
    number.len() == 3
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (1..=40).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A number as SPEC writes it, and half of its last digit as a share of it. `Err`: the text, which
/// is none.
fn number(text: &str) -> Result<Option<f64>, String> {
    match text.trim() {
        "" | "--" | "-" => Ok(None),
        text => {
            let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let value = text.parse::<f64>().ok().filter(|value| plain && value.is_finite());
            value.map(Some).ok_or_else(|| text.chars().take(40).collect())
        }
    }
}

/// Text of SPEC's that is no value: what its tools write for an empty field.
fn fact(value: &str) -> Option<String> {
    let value = value.split("fixme").next().unwrap_or_default();
    let value: String = value.trim().trim_end_matches("**").trim().chars().take(200).collect();
    let told = value.chars().any(char::is_alphanumeric) && !value.contains("could not determine");
    told.then_some(value)
}

/// `Sat Mar 6 23:00:00 2021` as `2021-03-06T23:00:00`, in the host's own time; another form stays
/// as it is.
fn sortable(when: &[&str]) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts = || {
        let [_, month, day, time, year] = when else { return None };
        let month = MONTHS.iter().position(|known| known == month)? + 1;
        let (day, year) = (day.parse::<u8>().ok()?, year.parse::<u16>().ok()?);
        Some(format!("{year:04}-{month:02}-{day:02}T{time}"))
    };
    parts().unwrap_or_else(|| when.join(" ")).chars().take(60).collect()
}

impl Sheet {
    fn note(&mut self, label: &str, value: &str) {
        if let Some(value) = fact(value).filter(|_| !self.facts.iter().any(|(known, _)| known == label)) {
            self.facts.push((label.to_string(), value));
        }
    }

    /// A hardware or software field with the lines below it.
    fn field(&mut self, label: &str, lines: &[String]) {
        let joined = lines.join(" ");
        match label.trim().trim_end_matches(':') {
            "CPU Name" => self.note("cpu_model", &joined),
            "Max MHz" => self.note("max_mhz", &joined),
            "CPU MHz" => self.note("nominal_mhz", &joined),
            "Nominal" => self.note("nominal_mhz", &joined),
            "Enabled" | "CPU(s) enabled" => self.enabled(&joined),
            "Memory" => self.memory(&joined),
            "OS" | "Operating System" => self.system(lines),
            "Compiler" => self.note("compiler", &joined),
            "Firmware" => self.note("firmware", &joined),
            "Storage" | "Disk Subsystem" => self.note("storage", &joined),
            "File System" => self.note("file_system", &joined),
            "Hardware Vendor" => self.note("vendor", &joined),
            "Hardware Model" => self.note("product", &joined),
            "Date tested" | "Test Date" => self.note("tested", &joined),
            _ => {}
        }
    }

    /// `128 cores, 2 chips, 2 threads/core`.
    fn enabled(&mut self, text: &str) {
        let before = |word: &str| {
            let part = text.split(',').find(|part| part.contains(word))?;
            part.split_whitespace().next()?.parse::<u32>().ok().filter(|count| *count > 0)
        };
        let (cores, threads) = (before(" core").filter(|_| text.contains("core")), before("threads/core"));
        for (label, count) in [("packages", before("chip")), ("cores", cores), ("threads_per_core", threads)]
        {
            if let Some(count) = count {
                self.note(label, &count.to_string());
            }
        }
        if let (Some(cores), Some(threads)) = (cores, threads) {
            self.note("cpus", &(u64::from(cores) * u64::from(threads)).to_string());
        }
    }

    /// `1 TB (16 x 64 GB 2Rx4 PC4-3200AA-R)`: SPEC's GB are of 2^30 bytes.
    fn memory(&mut self, text: &str) {
        self.note("memory", text);
        let mut words = text.split_whitespace();
        let size = words
            .next()
            .and_then(|size| size.parse::<f64>().ok())
            .filter(|size| size.is_finite() && *size > 0.0);
        let gib = match words.next() {
            Some("TB") => size.map(|size| size * 1024.0),
            Some("GB") => size,
            _ => None,
        };
        if let Some(gib) = gib.filter(|gib| *gib < 1e9) {
            self.note("memory_gib", &format!("{gib:.0}"));
        }
    }

    /// The distribution, and the kernel's release, which stands in a line of its own.
    fn system(&mut self, lines: &[String]) {
        if let Some(first) = lines.first() {
            self.note("os", first);
        }
        let release = |line: &&String| {
            line.split_whitespace()
                .next()
                .is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        };
        let kernel =
            lines.iter().skip(1).find_map(|line| line.trim().strip_prefix("Kernel ").map(str::to_string));
        if let Some(kernel) = kernel.or_else(|| lines.iter().skip(1).find(release).cloned()) {
            self.note("kernel", &kernel);
        }
    }

    /// Host and time from the system's own note: `running on HOST Sat Mar  6 23:00:00 2021`.
    fn ran_on(&mut self, line: &str) {
        let Some((_, rest)) = line.split_once("running on ") else { return };
        let words: Vec<&str> = rest.trim_matches('"').split_whitespace().collect();
        if let [host, when @ ..] = words.as_slice()
            && when.len() == 5
            && self.host.is_empty()
        {
            self.host = host.chars().take(100).collect();
            self.ran = sortable(when);
        }
    }
}
