//! What the figures and words of an imported file say against it: rules that need no run. `assay
//! explain` has their texts.

use super::kit::{Number, is_rate};
use super::unixbench::doubts;
use super::{Figure, Imported, repeats, speccpu};
use model::{Fact, Finding, Severity, Verdict, VerdictKind};

pub const FAILED_IO: &str = "failed-io";
pub const FIGURES_DISAGREE: &str = "figures-disagree";
pub const INTERRUPTED: &str = "interrupted-result";
pub const GENERATOR_BOUND: &str = "imported-generator-bound";

pub const DOCUMENTED: &str = "documented-format";
pub const UNSURE: &str = "confidence-not-reached";
pub const THROTTLED: &str = "imported-throttled";

/// Facts of one kind that are quoted.
const QUOTED: usize = 5;

pub const FAILED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "An imported result of fio tells of I/O that failed or of data that was not what had been written. Its rates are those of \
         the rest, up to where a job gave up.",
    ),
    (
        "When it fires",
        "A job's `error` (JSON) or `err=` (text) is not 0, it went on after errors (`total_err`, `errors: total=`), or the text around \
         has lines of fio's own about failed I/O (`io_u error`, `err=.../file:`, `ENOSPC on laying out`) or verification \
         (`verify: ...`, `bad header`, `bad magic`).",
    ),
];

pub const DISAGREE_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "Figures of an imported file contradict each other: a rate is not its amount over its time, a percentile is less than a \
         lower one, a block is not the bytes of an I/O, a latency is longer than the run, or a direction moved data that the job \
         does not have. The file was edited, or put together from two.",
    ),
    (
        "When it fires",
        "A printed rate and the printed amount over the printed time are more than 2 % apart, and more than the last digit of the time \
         (1 ms) allows; a percentile of a distribution is less than a lower one, or more than a tenth above the largest; the bytes over the I/Os of a job are more than 2 % from the only block size that it asks for, and from what was \
         in flight at its ends (fio's JSON); a latency is above twice the job's time; or a job of one direction has I/O in another. What a job that \
         writes reads back in fio's verify phase is no such thing: `verify` is set, or the text, which does not tell of it, has as many \
         reads as writes (fewer where the job failed).",
    ),
];

pub const INTERRUPTED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "An imported run was stopped, or a part of its text was kept: its figures are of what it did until then, and what it said at its end is not known.",
    ),
    (
        "When it fires",
        "The tool says so (fio's `terminating on signal`, sockperf's `interrupted by user`, an `error` of an interrupt in iperf3's JSON), \
         it died after its first figures with a message that the file has, the last report of a run is one on its way, a table ends \
         before its last row, a line is missing that the tool always prints at its end, or the file ends in its midst. `says` quotes what it was.",
    ),
];

pub const BOUND_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "An imported iperf3 result whose sender or receiver used up its CPU: it says what a CPU can send or take, and is often \
         read as what the network can carry (iperf3 before 3.16 runs all its streams on one thread).",
    ),
    (
        "When it fires",
        "`cpu_utilization_percent` of an end is at or above 95 % of one CPU (of a CPU a stream from version 3.16 on).",
    ),
];

pub const THROTTLED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "The tool that measured says that heat or power held the machine back while it did. The figures are of a machine in that room,          with that cooler, after so long a time, and the order of the tests decides which of them are lower.",
    ),
    ("When it fires", "The result says so itself: sbc-bench's `After at ...°C (throttled)`."),
];

pub const DOCUMENTED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "The format of an imported result was learnt from documentation: no output of the tool was there to read. A column may mean \
         something else than it seems to, so its figures are shown and rejected: nothing is concluded from them.",
    ),
    (
        "When it fires",
        "`assay import --help` marks the format `from documentation`. A real output, sent with an issue, ends that.",
    ),
];

pub const UNSURE_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it finds, and why it matters",
        "An imported result is the mean of several passes, and the tool itself says that these lie farther apart than was asked for. \
         How wide its own interval is stands in the file.",
    ),
    (
        "When it fires",
        "netperf (`-I`) prints `Desired confidence was not achieved`, or its omni output has a `THROUGHPUT_CONFID` above the \
         `CONFIDENCE_INTERVAL`.",
    ),
];

/// Rejects all figures of a result whose format nobody here has seen in use.
pub fn from_documentation(result: &mut Imported) {
    let has_value = |figure: &&mut Figure| figure.judged.analysis.estimate.is_some();
    for figure in result.figures.iter_mut().filter(has_value) {
        figure.judged.analysis.verdict =
            Verdict::new(VerdictKind::Rejected, "its format is known from documentation alone");
    }
    result.findings.extend(finding(
        DOCUMENTED,
        Severity::Warning,
        "The format is known from documentation alone. Read its figures in the file itself.",
        "No output of the tool was there when Assay learnt to read it, so a column may mean something else.",
        "Look whether the figures are what the file says, and send such a file with an issue.",
        vec![Fact::new("format", result.format, "assay import --help")],
    ));
}

/// What the findings of imported files are about, in a word or two.
pub fn topic(rule: &str) -> Option<&'static str> {
    Some(match rule {
        FAILED_IO => "I/O errors",
        FIGURES_DISAGREE => "contradiction",
        INTERRUPTED => "interrupted",
        GENERATOR_BOUND => "CPU-bound",
        DOCUMENTED => "format",
        UNSURE => "confidence",
        THROTTLED => "throttled",
        doubts::NO_CPUS | doubts::CAPPED => "copies",
        doubts::CPU_TIME => "CPU time",
        doubts::EIGHT => "index",
        repeats::RULE => "runs",
        speccpu::HEADLINE_DIFFERS => "headline",
        speccpu::INVALID_RESULT => "validity",
        _ => return None,
    })
}

/// What an imported file has against itself, gathered while it is read.
#[derive(Clone, Debug, Default)]
pub struct Against {
    failed: Vec<Fact>,
    failed_more: usize,
    disagree: Vec<Fact>,
    interrupted: Vec<Fact>,
    bound: Vec<Fact>,
    invalid: Vec<Fact>,
    unsure: Vec<Fact>,
    throttled: Vec<Fact>,
}

impl Against {
    pub fn failed(&mut self, name: &str, text: &str, source: &str) {
        if self.failed.len() < QUOTED {
            self.failed.push(Fact::new(name.to_string(), short(text), source.to_string()));
        } else {
            self.failed_more += 1;
        }
    }

    pub fn disagree(&mut self, name: &str, text: String, source: &str) {
        if self.disagree.len() < 2 * QUOTED {
            self.disagree.push(Fact::new(name.to_string(), text, source.to_string()));
        }
    }

    /// Looks whether a rate is its amount over its time, all three as printed and in units that
    /// fit; the words say what is printed.
    pub fn rate(
        &mut self,
        name: &str,
        [rate, amount, time]: [Option<Number>; 3],
        words: impl Fn(f64, f64, f64) -> String,
    ) {
        if let (Some(rate), Some(amount), Some(time)) = (rate, amount, time)
            && !is_rate(rate, amount, time)
        {
            self.disagree(name, words(rate.value, amount.value, time.value), "the file");
        }
    }

    pub fn interrupted(&mut self, text: &str) {
        says(&mut self.interrupted, text);
    }

    pub fn invalid(&mut self, text: &str) {
        says(&mut self.invalid, text);
    }

    /// The tool says that its own passes lie too far apart.
    pub fn unsure(&mut self, text: &str) {
        says(&mut self.unsure, text);
    }

    pub fn throttled(&mut self, text: &str) {
        says(&mut self.throttled, text);
    }

    pub fn bound(&mut self, name: &str, text: String, source: &str) {
        self.bound.push(Fact::new(name.to_string(), text, source.to_string()));
    }

    pub fn findings(self) -> Vec<Finding> {
        let said = self.failed.iter().map(|fact| fact.value.as_str());
        let [cause, advice] = said.map(Failure::of).max().unwrap_or(Failure::Device).words();
        let mut failed = self.failed;
        if self.failed_more > 0 {
            failed.push(Fact::new("and", format!("{} more such lines", self.failed_more), "the file"));
        }
        let findings = [
            finding(
                FAILED_IO,
                Severity::Problem,
                "I/O failed, or read back wrong data. Do not use the figures.",
                cause,
                advice,
                failed,
            ),
            contradiction(self.disagree),
            finding(
                INTERRUPTED,
                Severity::Warning,
                "The run was stopped, or its text cut, before the end. Its figures are those until then.",
                "Its figures are of what was done until then.",
                "Run it to its end, or import all that it printed, before comparing it.",
                self.interrupted,
            ),
            finding(
                GENERATOR_BOUND,
                Severity::Warning,
                "One end used up its CPU. The figures are those of a CPU, not of the network.",
                "iperf3 before 3.16 runs all streams of a test on one thread, and of later versions each stream on one.",
                "Use several processes or streams on CPUs of their own, larger messages or offloads, and see whether more arrives.",
                self.bound,
            ),
            finding(
                speccpu::INVALID_RESULT,
                Severity::Problem,
                "The tool itself tells of failed or wrong work. Do not use the figures.",
                "What it computed is wrong, what it asked for failed, or it did not keep to its own rules.",
                "Look for the cause, and run it again: a faulty or overclocked machine, a miscompiled program, too small a size, a server that answers with errors.",
                self.invalid,
            ),
            finding(
                UNSURE,
                Severity::Warning,
                "Its passes lie farther apart than was asked for. Compare no small differences.",
                "Something beside the test changed from pass to pass: other load, the clock, placement, or the network.",
                "Run it longer, with more passes, and on a quiet machine.",
                self.unsure,
            ),
            finding(
                THROTTLED,
                Severity::Warning,
                "The machine was throttled while it was measured. Its figures are those of its cooling, too.",
                "Its clock was lowered by heat or by power, as the tool says.",
                "Cool it, or give it more power, and measure again before comparing it.",
                self.throttled,
            ),
        ];
        findings.into_iter().flatten().collect()
    }
}

/// Quotes what the file says.
fn says(facts: &mut Vec<Fact>, text: &str) {
    if facts.len() < QUOTED {
        facts.push(Fact::new("says", short(text), "the file"));
    }
}

fn contradiction(facts: Vec<Fact>) -> Option<Finding> {
    finding(
        FIGURES_DISAGREE,
        Severity::Problem,
        "The file's figures contradict each other. Ask for the file as the tool wrote it.",
        "A rate is an amount over a time, and a percentile is never less than a lower one. Where they don't fit, one of them was \
         edited, or the file was put together from two.",
        "Ask for the file as the tool wrote it.",
        facts,
    )
}

/// Adds contradictions to those that were found while a file was read.
pub fn disagree_too(result: &mut Imported, facts: Vec<Fact>) {
    match result.findings.iter_mut().find(|finding| finding.rule == FIGURES_DISAGREE) {
        Some(known) => known.facts.extend(facts),
        None => result.findings.extend(contradiction(facts)),
    }
}

/// Why an I/O failed; the graver, the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    Refused,
    Missing,
    Busy,
    Limit,
    Permission,
    Space,
    Remote,
    Device,
}

/// Errors by their number and their words (errno, strerror).
const FAILURES: [(Failure, &[&str]); 35] = [
    (Failure::Refused, &["22", "Invalid argument"]),
    (Failure::Refused, &["25", "Inappropriate ioctl for device"]),
    (Failure::Refused, &["95", "Operation not supported"]),
    (Failure::Refused, &["38", "Function not implemented"]),
    (Failure::Refused, &["524", "Unknown error 524"]),
    (Failure::Refused, &["21", "Is a directory"]),
    (Failure::Busy, &["16", "Device or resource busy"]),
    (Failure::Busy, &["26", "Text file busy"]),
    (Failure::Limit, &["11", "Resource temporarily unavailable"]),
    (Failure::Limit, &["12", "Cannot allocate memory"]),
    (Failure::Limit, &["24", "Too many open files"]),
    (Failure::Missing, &["2", "No such file or directory"]),
    (Failure::Missing, &["20", "Not a directory"]),
    (Failure::Permission, &["13", "Permission denied"]),
    (Failure::Permission, &["1", "Operation not permitted"]),
    (Failure::Permission, &["30", "Read-only file system"]),
    (Failure::Space, &["28", "No space left on device"]),
    (Failure::Space, &["28", "ENOSPC"]),
    (Failure::Space, &["122", "Disk quota exceeded"]),
    (Failure::Space, &["27", "File too large"]),
    (Failure::Remote, &["116", "Stale file handle"]),
    (Failure::Remote, &["116", "Stale NFS file handle"]),
    (Failure::Remote, &["111", "Connection refused"]),
    (Failure::Remote, &["110", "Connection timed out"]),
    (Failure::Remote, &["104", "Connection reset by peer"]),
    (Failure::Remote, &["103", "Software caused connection abort"]),
    (Failure::Remote, &["107", "Transport endpoint is not connected"]),
    (Failure::Remote, &["108", "Cannot send after transport endpoint shutdown"]),
    (Failure::Remote, &["113", "No route to host"]),
    (Failure::Remote, &["112", "Host is down"]),
    (Failure::Remote, &["101", "Network is unreachable"]),
    (Failure::Remote, &["100", "Network is down"]),
    (Failure::Remote, &["32", "Broken pipe"]),
    (Failure::Remote, &["67", "Link has been severed"]),
    (Failure::Remote, &["71", "Protocol error"]),
];

impl Failure {
    /// By what is said: `error 22, Invalid argument`, `err=22/file:...`.
    fn of(text: &str) -> Failure {
        let numbers = ["error ", "err="].into_iter().filter_map(|word| text.split_once(word));
        let number = |(_, rest): (&str, &str)| -> String {
            rest.trim_start().chars().take_while(char::is_ascii_digit).collect()
        };
        let numbers: Vec<String> = numbers.map(number).collect();
        let is_own = |words: &[&str]| numbers.iter().any(|one| one == words[0]) || text.contains(words[1]);
        FAILURES.iter().find(|(_, words)| is_own(words)).map_or(Failure::Device, |(kind, _)| *kind)
    }

    /// What is behind it, and what to do.
    fn words(self) -> [&'static str; 2] {
        match self {
            Failure::Refused => [
                "The kernel refused what was asked: the file, device or engine cannot do it, or not at this size or place.",
                "Change what the job asks for: a block size and offset that the device takes, no trim on what cannot, another engine, or direct=0.",
            ],
            Failure::Missing => {
                ["The file or folder that the job names is not there.", "Name one that is, or make it first."]
            }
            Failure::Busy => [
                "What the job was to work on is in use by somebody else.",
                "Unmount it, or end who uses it, and run the job again.",
            ],
            Failure::Limit => [
                "A limit of memory, of locked memory, of I/Os in flight or of open files was reached.",
                "Raise it (ulimit -l, ulimit -n, fs.aio-max-nr), or ask for fewer jobs, files or a smaller depth.",
            ],
            Failure::Permission => [
                "Whoever ran it may not do that there, or what it is on is mounted read-only.",
                "Run it as somebody who may, or on another file.",
            ],
            Failure::Space => [
                "The device, a quota or a limit of file sizes was full.",
                "Make room, or a smaller file, and run it again.",
            ],
            Failure::Remote => [
                "The network, or the server behind the files or the device, did not answer, or no longer knows them.",
                "Look at the server, what it exports and the way to it; mount or attach it anew, and run the job again.",
            ],
            Failure::Device => [
                "A device, its cable or its driver is faulty, or another program wrote to the same blocks.",
                "Look at the kernel's log of that time.",
            ],
        }
    }
}

fn finding(
    rule: &str,
    severity: Severity,
    headline: &str,
    cause: &str,
    advice: &str,
    facts: Vec<Fact>,
) -> Option<Finding> {
    (!facts.is_empty()).then(|| {
        let draft = Finding::of(rule, severity, headline).cause(cause).facts(facts);
        draft.confirm_by_import().advice(advice)
    })
}

/// The begin of a text, for quoting.
pub fn short(text: &str) -> String {
    let text = text.trim();
    let cut: String = text.chars().filter(|one| !one.is_control()).take(160).collect();
    if text.chars().count() > 160 { format!("{cut}…") } else { cut }
}

/// Why a percentile is none: fewer than ten observations lie beyond it. `None` where there are
/// enough, or nobody knows how many there were.
pub fn too_few_beyond(percent: f64, observations: Option<f64>, printed: &str) -> Option<String> {
    let n = observations?;
    // A percentile of 99.9 is 99.90000000000001 to the processor.
    let beyond = n * percent.min(100.0 - percent).max(0.0) / 100.0 + 1e-6;
    (beyond < 10.0).then(|| {
        format!(
            "fewer than 10 observations lie beyond it ({beyond:.1} of {n}): what it prints ({printed}) is an extreme"
        )
    })
}

/// A percentile's metric: `latency_p50`, `latency_p999` for 99.9.
pub fn percentile_name(stem: &str, percent: &str) -> Option<String> {
    let value: f64 = percent.parse().ok()?;
    let plain = percent.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !plain || value <= 0.0 || value >= 100.0 {
        return None;
    }
    let digits = match percent.contains('.') {
        true => percent.trim_end_matches('0').trim_end_matches('.'),
        false => percent,
    };
    // What stands before the point has two digits where something stands behind it: 2.5 is no 25.
    let pad = if digits.find('.') == Some(1) { "0" } else { "" };
    Some(format!("{stem}_p{pad}{}", digits.replace('.', "")))
}

/// The stem of a percentile's metric, and the percentile.
pub fn percentile_of(metric: &str) -> Option<(&str, f64)> {
    let (stem, digits) = metric.rsplit_once("_p")?;
    let (whole, decimals) = digits.split_at_checked(2).unwrap_or((digits, ""));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((stem, format!("{whole}.{decimals}0").parse().ok()?)))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_names_of_their_own() {
        let name = |percent| percentile_name("latency", percent);
        assert_eq!(name("50.000000").as_deref(), Some("latency_p50"));
        assert_eq!(name("99.99").as_deref(), Some("latency_p9999"));
        assert_eq!(name("99.950000").as_deref(), Some("latency_p9995"));
        assert_eq!(name("10").as_deref(), Some("latency_p10"));
        assert_eq!(name("1.00").as_deref(), Some("latency_p1"));
        assert_eq!(name("2.5").as_deref(), Some("latency_p025"));
        for percent in ["1", "2.5", "0.1", "25", "50", "99", "99.9", "99.99"] {
            let metric = name(percent).expect(percent);
            assert_eq!(percentile_of(&metric), percent.parse().ok().map(|at| ("latency", at)), "{percent}");
        }
        assert_eq!(
            (percentile_of("latency_max"), percentile_of("latency_p"), percentile_of("a_ping")),
            (None, None, None)
        );
        assert_eq!((name("0.00"), name("100"), name("nan"), name("")), (None, None, None, None));
    }

    #[test]
    fn ten_observations_must_lie_beyond_a_percentile() {
        assert!(too_few_beyond(99.999, Some(8711.0), "414 us").expect("too few").contains("(0.1 of 8711)"));
        assert_eq!(too_few_beyond(99.9, Some(10_000.0), ""), None);
        assert!(too_few_beyond(99.9, Some(9_999.0), "").is_some());
        assert!(too_few_beyond(1.0, Some(500.0), "").is_some());
        assert_eq!(too_few_beyond(50.0, None, ""), None);
    }
}
