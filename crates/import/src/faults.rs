//! Findings about an imported file from its own figures and words: rules that need no run. `assay
//! explain` prints their texts.

use super::builder::number;
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
        "What it means",
        "An imported result of fio reports failed I/O, or data that differs from what fio wrote. Its rates are those of the I/O that \
         succeeded, up to where a job gave up.",
    ),
    (
        "When it appears",
        "The `error` (JSON) or `err=` (text) of a job is not 0, or the job went on after errors (`total_err`, `errors: total=`). \
         Lines of fio about failed I/O (`io_u error`, `err=.../file:`, `ENOSPC on laying out`) or failed verification (`verify: ...`, \
         `bad header`, `bad magic`) count too.",
    ),
];

pub const DISAGREE_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Figures of an imported file contradict each other. The file was edited, or put together from two.",
    ),
    (
        "When it appears",
        "A printed rate differs from amount over time by more than 2 % and by more than the last digit of the time (1 ms). \
         A percentile is less than a lower one, or more than 10 % above the largest value. The bytes for each I/O of a job are more than \
         2 % from its only block size, beyond the I/Os in flight at its ends (fio's JSON). A latency is above twice the time of the job. \
         A job of one direction has I/O in another. Reads of fio's verify phase do not count: `verify` is set, or the text has as many \
         reads as writes (fewer where the job failed).",
    ),
];

pub const INTERRUPTED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "An imported run stopped early, or its text was cut. Its figures cover the time before that.",
    ),
    (
        "When it appears",
        "The tool reports it: fio's `terminating on signal`, sockperf's `interrupted by user`, an interrupt as `error` in iperf3's JSON. \
         Or it died after its first figures with a message in the file. It also appears if a table or the file ends early, the last \
         report is an interim one, or the tool's last line is missing. `says` quotes the line.",
    ),
];

pub const BOUND_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "The sender or the receiver of an imported iperf3 result used up its CPU. The figure is what that CPU can send or receive. It is \
         often read as the capacity of the network. iperf3 before 3.16 runs all its streams on one thread.",
    ),
    (
        "When it appears",
        "`cpu_utilization_percent` of an end is at or above 95 % of one CPU (of one CPU per stream from version 3.16 on).",
    ),
];

pub const THROTTLED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "The tool reports that heat or a power limit slowed the host during the run. The figures depend on the cooling, the room and the \
         order of the tests.",
    ),
    ("When it appears", "The result itself reports it: sbc-bench's `After at ...°C (throttled)`."),
];

pub const DOCUMENTED_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "Assay knows the format of an imported result from documentation only, without output of the tool. A column may mean something \
         else than it seems to. So its figures are shown and rejected: Assay concludes nothing from them.",
    ),
    (
        "When it appears",
        "`assay import --help` marks the format as known from documentation only. Send a real output with an issue to change that.",
    ),
];

pub const UNSURE_EXPLAINED: &[(&str, &str)] = &[
    (
        "What it means",
        "An imported result is the mean of several passes, and the tool itself reports that these differ by more than was requested. The \
         file has the width of its interval.",
    ),
    (
        "When it appears",
        "netperf (`-I`) prints `Desired confidence was not achieved`, or its omni output has a `THROUGHPUT_CONFID` above the \
         `CONFIDENCE_INTERVAL`.",
    ),
];

/// Rejects all figures of a result whose format Assay knows from documentation alone.
pub fn from_documentation(result: &mut Imported) {
    let has_value = |figure: &&mut Figure| figure.judged.analysis.estimate.is_some();
    for figure in result.figures.iter_mut().filter(has_value) {
        figure.judged.analysis.verdict =
            Verdict::new(VerdictKind::Rejected, "its format is known from documentation alone");
    }
    result.findings.extend(finding(
        DOCUMENTED,
        Severity::Warning,
        [
            &format!("The format \"{}\" is known from documentation alone", result.format),
            "No output of the tool was available, so a column may mean something else.",
            "Check the figures in the file itself, and send such a file with an issue.",
        ],
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

/// A kind of fault that a file reports of its own result.
struct Kind {
    rule: &'static str,
    severity: Severity,
    /// What the facts are, one and several.
    counted: [&'static str; 2],
    /// The headline; `{}` stands for the number of facts.
    headline: &'static str,
    cause: &'static str,
    advice: &'static str,
}

const INTERRUPTION: Kind = Kind {
    rule: INTERRUPTED,
    severity: Severity::Warning,
    counted: ["sign", "signs"],
    headline: "The run was stopped early ({}): figures cover the time before",
    cause: "The run was stopped, or its text was cut.",
    advice: "Before you compare it, run it to its end, or import its complete output.",
};

const FULL_CPU: Kind = Kind {
    rule: GENERATOR_BOUND,
    severity: Severity::Warning,
    counted: ["end of a test", "ends of tests"],
    headline: "{} used up a CPU: the figures are those of the CPU, not of the network",
    cause: "iperf3 before 3.16 runs all streams of a test on one thread, later versions each stream on one.",
    advice: "Use several processes or streams on separate CPUs, larger messages or offloads, and compare.",
};

const INVALID: Kind = Kind {
    rule: speccpu::INVALID_RESULT,
    severity: Severity::Problem,
    counted: ["fault", "faults"],
    headline: "The tool itself reports {}: do not use the figures",
    cause: "It computed a wrong result, a request failed, or it broke its own rules.",
    advice: "Find the cause and run it again: a faulty or overclocked host, a miscompiled program, too small a size, or a \
             server that answers with errors.",
};

const WIDE: Kind = Kind {
    rule: UNSURE,
    severity: Severity::Warning,
    counted: ["result has", "results have"],
    headline: "{} a wider spread than requested: do not compare small differences",
    cause: "Something other than the test changed from pass to pass: other load, the clock, placement, or the network.",
    advice: "Run it longer, with more passes, and on a quiet host.",
};

const THROTTLING: Kind = Kind {
    rule: THROTTLED,
    severity: Severity::Warning,
    counted: ["case", "cases"],
    headline: "The tool reports {} of throttling: the figures depend on the cooling",
    cause: "Heat or power lowered the clock while the tool measured.",
    advice: "Cool the host, or give it more power, and measure again before you compare it.",
};

impl Kind {
    fn finding(&self, facts: Vec<Fact>) -> Option<Finding> {
        let [one, several] = self.counted;
        let count = format!("{} {}", facts.len(), number(facts.len(), one, several));
        finding(
            self.rule,
            self.severity,
            [&self.headline.replace("{}", &count), self.cause, self.advice],
            facts,
        )
    }
}

/// Faults of an imported file, gathered while it is read.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    failed: Vec<Fact>,
    failed_more: usize,
    disagree: Vec<Fact>,
    interrupted: Vec<Fact>,
    bound: Vec<Fact>,
    invalid: Vec<Fact>,
    unsure: Vec<Fact>,
    throttled: Vec<Fact>,
}

impl Faults {
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

    /// Compares a rate with its amount over its time, all three as printed and in units that fit;
    /// `words` words the contradiction.
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
        quote(&mut self.interrupted, text);
    }

    pub fn invalid(&mut self, text: &str) {
        quote(&mut self.invalid, text);
    }

    /// The tool reports that its own passes differ too much.
    pub fn unsure(&mut self, text: &str) {
        quote(&mut self.unsure, text);
    }

    pub fn throttled(&mut self, text: &str) {
        quote(&mut self.throttled, text);
    }

    pub fn bound(&mut self, name: &str, text: String, source: &str) {
        self.bound.push(Fact::new(name.to_string(), text, source.to_string()));
    }

    pub fn findings(self) -> Vec<Finding> {
        let findings = [
            failures(self.failed, self.failed_more),
            contradiction(self.disagree),
            INTERRUPTION.finding(self.interrupted),
            FULL_CPU.finding(self.bound),
            INVALID.finding(self.invalid),
            WIDE.finding(self.unsure),
            THROTTLING.finding(self.throttled),
        ];
        findings.into_iter().flatten().collect()
    }
}

fn quote(facts: &mut Vec<Fact>, text: &str) {
    if facts.len() < QUOTED {
        facts.push(Fact::new("says", short(text), "the file"));
    }
}

/// Failed I/O: the facts that are quoted, and how many more lines report it.
fn failures(mut facts: Vec<Fact>, more: usize) -> Option<Finding> {
    let kind = facts.iter().map(|fact| Failure::of(&fact.value)).max().unwrap_or(Failure::Device);
    let [cause, advice] = kind.words();
    let count = facts.len() + more;
    if more > 0 {
        facts.push(Fact::new("and", format!("{more} more such lines"), "the file"));
    }
    let lines = number(count, "line reports", "lines report");
    let headline = format!("{count} {lines} failed reads or writes: do not use the figures");
    finding(FAILED_IO, Severity::Problem, [&headline, cause, advice], facts)
}

fn contradiction(facts: Vec<Fact>) -> Option<Finding> {
    finding(
        FIGURES_DISAGREE,
        Severity::Problem,
        [
            &contradictions(facts.len()),
            "A rate is an amount over a time, and a percentile is never less than a lower one. The file was edited, or put together \
             from two.",
            "Ask for the file as the tool wrote it.",
        ],
        facts,
    )
}

fn contradictions(count: usize) -> String {
    format!("Figures of the file contradict each other in {count} {}", number(count, "place", "places"))
}

/// Adds contradictions to those that were found while a file was read.
pub fn disagree_too(result: &mut Imported, facts: Vec<Fact>) {
    match result.findings.iter_mut().find(|finding| finding.rule == FIGURES_DISAGREE) {
        Some(known) => {
            known.facts.extend(facts);
            known.headline = contradictions(known.facts.len());
        }
        None => result.findings.extend(contradiction(facts)),
    }
}

/// Why an I/O failed; the most severe is last.
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
    /// By the words of the message: `error 22, Invalid argument`, `err=22/file:...`.
    fn of(text: &str) -> Failure {
        let numbers = ["error ", "err="].into_iter().filter_map(|word| text.split_once(word));
        let number = |(_, rest): (&str, &str)| -> String {
            rest.trim_start().chars().take_while(char::is_ascii_digit).collect()
        };
        let numbers: Vec<String> = numbers.map(number).collect();
        let is_own = |words: &[&str]| numbers.iter().any(|one| one == words[0]) || text.contains(words[1]);
        FAILURES.iter().find(|(_, words)| is_own(words)).map_or(Failure::Device, |(kind, _)| *kind)
    }

    /// The cause, and what to do.
    fn words(self) -> [&'static str; 2] {
        match self {
            Failure::Refused => [
                "The kernel refused a request: the file, device or engine does not support it, or not at this size or offset.",
                "Change the job: a block size and offset that the device supports, no trim, another engine, or direct=0.",
            ],
            Failure::Missing => [
                "The file or folder that the job names does not exist.",
                "Name one that exists, or create it first.",
            ],
            Failure::Busy => [
                "Another process or mount uses the file or device of the job.",
                "Unmount it, or end the process, and run the job again.",
            ],
            Failure::Limit => [
                "The job reached a limit of memory, locked memory, I/Os in flight or open files.",
                "Raise it (ulimit -l, ulimit -n, fs.aio-max-nr), or use fewer jobs, files or a smaller depth.",
            ],
            Failure::Permission => [
                "The user lacks the permission, or the file system is mounted read-only.",
                "Run it as a user with permission, or on another file.",
            ],
            Failure::Space => [
                "The device was full, or the job reached a quota or a limit of file sizes.",
                "Free space, or use a smaller file, and run it again.",
            ],
            Failure::Remote => [
                "The network, or the server of the files or the device, did not answer, or no longer knows them.",
                "Check the server, its exports and the network; mount or attach it again, and run the job again.",
            ],
            Failure::Device => [
                "A device, its cable or its driver is faulty, or another program wrote to the same blocks.",
                "Read the kernel's log of that time.",
            ],
        }
    }
}

/// A finding of these facts: its headline, cause and advice; `None` without facts.
pub fn finding(rule: &str, severity: Severity, words: [&str; 3], facts: Vec<Fact>) -> Option<Finding> {
    let [headline, cause, advice] = words;
    (!facts.is_empty()).then(|| {
        let draft = Finding::of(rule, severity, headline).cause(cause).facts(facts);
        draft.confirm_by_import().advice(advice)
    })
}

/// The first 160 characters of a text, for quoting.
pub fn short(text: &str) -> String {
    let text = text.trim();
    let cut: String = text.chars().filter(|one| !one.is_control()).take(160).collect();
    if text.chars().count() > 160 { format!("{cut}…") } else { cut }
}
