//! Words that first screens print beside their figures: verdicts, heads of columns, topics of lines
//! and facts. Each is found as it stands on a screen.

/// A label and what it says.
pub struct Label {
    /// As screens write it, in small letters; with `*` behind it whatever begins so.
    words: &'static [&'static str],
    /// Where it stands.
    on: &'static str,
    about: &'static str,
}

impl Label {
    fn is_called(&self, wanted: &str) -> bool {
        self.words.iter().any(|word| match word.strip_suffix('*') {
            Some(start) => wanted.starts_with(start),
            None => *word == wanted,
        })
    }
}

/// Title and text of each meaning that a word has on screens.
pub fn meanings(wanted: &str) -> Vec<(String, &'static str)> {
    let own = LABELS.iter().filter(|label| label.is_called(wanted));
    own.map(|label| (format!("{wanted:?} on the screen of {}", label.on), label.about)).collect()
}

const fn label(words: &'static [&'static str], on: &'static str, about: &'static str) -> Label {
    Label { words, on, about }
}

const IMPORT: &str = "`assay import`";
const MACHINE: &str = "`assay machine`";
const COMPARE: &str = "`assay compare`";
const GUARD: &str = "`assay guard`";
const CHECK: &str = "`assay check`";
const RUN: &str = "`assay run`";
const SMT: &str = "`assay smt`";
const HOST: &str = "`assay host`";
const SWEEP: &str = "`assay sweep`";
const FIGURES: &str = "figures";

const LABELS: &[Label] = &[
    // Verdicts of imports.
    label(
        &["read", "read whole"],
        IMPORT,
        "Every figure that the file announces has a value, and the file reports no early end. That does not make the figures right: \
         Assay did not watch the measurement.",
    ),
    label(
        &["read in part"],
        IMPORT,
        "Some figures that the file announces have no value, or the run was stopped before its end. The lines called `left out` say why.",
    ),
    label(
        &["faulty result", "read, but faulty"],
        IMPORT,
        "The file has a problem: its figures contradict each other, or what was measured failed. Explain that before you use a figure.",
    ),
    label(
        &["not judged", "read, not usable"],
        IMPORT,
        "All figures are rejected, mostly because the format is known from documentation alone. Read them in the file itself.",
    ),
    label(
        &["no result", "nothing complete"],
        IMPORT,
        "The file was recognised, but none of its figures has a value. The exit code is 3.",
    ),
    // Verdicts of runs.
    label(&["healthy"], RUN, "There is no warning, and no key figure is slow for this kind of host."),
    label(&["no fault found"], RUN, "There is no warning, but no reference shows what such a host reaches."),
    label(
        &["usable with caution"],
        RUN,
        "A finding with ! limits some figures, a key figure is slow, or fewer than half of the figures have grade A \
         or B. Read the lines with ! before you use a figure.",
    ),
    label(
        &["faulty"],
        RUN,
        "There is a problem (a line with ✗), or a key figure is bad for this kind of host. Mend it, then measure again.",
    ),
    label(
        &["not valid"],
        RUN,
        "Do not use the figures: an answer was wrong, over half of the key figures were rejected, or nothing could be measured.",
    ),
    label(
        &["one speed"],
        "`assay memmap`",
        "All memory that was measured has the same bandwidth. The sentence names the smallest second speed that would have been seen.",
    ),
    label(
        &["two speeds", "three speeds"],
        "`assay memmap`",
        "Some memory is slower than the rest in every round. The table has the speeds and how much memory has each.",
    ),
    label(
        &["no second threads"],
        SMT,
        "The kernel reports no SMT siblings among the usable CPUs, and the measurement shows none. Each CPU is a core of its own, so \
         CPU% is not misleading here.",
    ),
    label(
        &["second threads are hidden"],
        SMT,
        "The kernel reports no SMT siblings, but CPUs slow each other as the two threads of a core do.",
    ),
    label(
        &["a second thread adds *", "a second thread costs *"],
        SMT,
        "How much more, or less, work both threads of a core do than one alone.",
    ),
    label(
        &["whole cpus"],
        HOST,
        "Each CPU of this guest runs whenever it has work: the host withholds no time that could be seen.",
    ),
    label(
        &["the host takes *", "stopped as a guest", "cpus share one of the host's"],
        HOST,
        "CPUs of this guest stand still while no task waits for them. The host withholds time from one CPU, stops all of them at \
         once, or runs several on one CPU of its own.",
    ),
    label(&["bare metal"], HOST, "No hypervisor runs below this kernel, so no host can take CPU time."),
    label(
        &["set *"],
        SWEEP,
        "The best setting that was found. The sentences say for what it is better, and by how much.",
    ),
    label(
        &["nothing to gain"],
        SWEEP,
        "No setting is worth a change. The sentences name the smallest gain that would have been seen.",
    ),
    label(
        &["no single knob decides", "no difference found"],
        "`assay explain-profile`",
        "The profiles differ in the benchmark, but no single setting explains it; or they do not differ measurably.",
    ),
    label(
        &["the component repeats*", "the component does not repeat", "one run of each component"],
        "`assay rate`",
        "Whether the runs of each component lie close together. One run of each shows nothing about repeats.",
    ),
    label(
        &["runs agree", "runs differ", "runs scatter"],
        "`assay hackbench`",
        "Whether the runs lie close together, have several values or a drift, or scatter widely.",
    ),
    label(
        &["all hosts are alike", "one host is slower than its peers"],
        "`assay peers`",
        "Whether any host is slower than hosts of the same make: assay explain slow-among-peers.",
    ),
    label(
        &["confirm the last run"],
        "`assay trend`",
        "The last run or two differ from the runs before. Run the printed command: a step needs three runs on each side.",
    ),
    // Lines of imports.
    label(
        &["left out"],
        IMPORT,
        "The number of figures without a value, with the reason: the test did not finish, the cell is empty, or fewer than 10 \
         observations lie beyond a percentile.",
    ),
    label(
        &["left out"],
        COMPARE,
        "Figures that do not count, because the conditions of the two differ or a value is missing; --left-out lists them with the reasons.",
    ),
    label(
        &["tool"],
        IMPORT,
        "What this tool never reports, or does in its own way. It applies to each of its results.",
    ),
    label(
        &["file"],
        IMPORT,
        "What is special in this file: lines that Assay skipped, or settings that the file does not name.",
    ),
    label(
        &["confidence"],
        IMPORT,
        "The tool itself reports that its passes lie farther apart than its limit. Conclude nothing from a small difference.",
    ),
    label(
        &["differs"],
        IMPORT,
        "The tool measures this in another way than Assay does under the same key; --all says how.",
    ),
    label(
        &["n", "n *"],
        FIGURES,
        "The number of passes, runs or repetitions whose median the figure is. A figure without n is one value.",
    ),
    label(
        &["first figure"],
        IMPORT,
        "The first figure of each result that has a value. --all prints the others.",
    ),
    label(
        &["result", "of", "format", "figures"],
        IMPORT,
        "One line per result: its name, its format, and how many figures have a value.",
    ),
    label(
        &["smallest to largest", "apart", "runs of *"],
        IMPORT,
        "How far the values of repetitions lie apart; `apart` is the largest over the smallest, less 1.",
    ),
    // Columns of figures.
    label(
        &["figure", "value"],
        FIGURES,
        "What was measured, and its median in three digits with the unit beside it.",
    ),
    label(
        &["±", "+/-", "95 %"],
        FIGURES,
        "Half the 95 % interval of the median, in per cent; both ends where it is wide or lopsided. Imported figures of 2–4 values \
         have their smallest and largest there. See `assay explain interval`.",
    ),
    label(&["median"], FIGURES, "The middle one of a figure's values: half of them lie below it."),
    label(
        &["unit"],
        FIGURES,
        "The unit of both values. 1/s, k/s and M/s count events a second; GB/s are 10^9 bytes a second.",
    ),
    label(
        &["os"],
        FIGURES,
        "The group of figures of the operating system: system calls, switches, wake-ups, page faults, processes.",
    ),
    // Comparisons.
    label(
        &["a", "b", "c"],
        COMPARE,
        "The results in the order in which they were named; A is the one that all others are compared with.",
    ),
    label(
        &["b ÷ a", "c ÷ a", "b / a"],
        COMPARE,
        "The ratio of the two values. Above 1 is better for B: for times it is A ÷ B.",
    ),
    label(
        &["b is"],
        COMPARE,
        "What follows for B: faster, slower, the same within a margin, cannot tell, unverified or not counted.",
    ),
    label(
        &["faster", "slower", "higher", "lower"],
        COMPARE,
        "The 95 % interval of the ratio excludes 1, and the difference is above 2 % after correction for the number of figures. \
         Figures without a better side are higher or lower.",
    ),
    label(
        &["the same", "same"],
        COMPARE,
        "The two lie within 2, 5 or 10 % of each other, by two one-sided tests at 5 %.",
    ),
    label(
        &["accept"],
        CHECK,
        "The run meets every demand of the spec: of each figure the whole 95 % interval keeps the limit. Of many runs: each of them \
         is accepted.",
    ),
    label(
        &["reject"],
        CHECK,
        "The run misses a demand of the spec: of a figure the whole 95 % interval is beyond the limit, or a fact or a finding is not \
         as asked. Of many runs: at least one of them is rejected.",
    ),
    label(&["met"], CHECK, "The whole 95 % interval of the figure keeps the limit, or the fact is as asked."),
    label(
        &["missed"],
        CHECK,
        "The whole 95 % interval of the figure is beyond the limit, or the fact is not as asked.",
    ),
    label(
        &["undecided"],
        CHECK,
        "The 95 % interval of the figure contains the limit, the figure is doubted, or it was not measured. More passes decide a \
         wide interval; --all prints the command. --undecided pass or fail sets the exit code. \
         Of a run: a demand is undecided, and none is missed.",
    ),
    label(
        &["confirmed", "not confirmed"],
        CHECK,
        "With --confirmed a figure rejects a host only if three runs of the last seven days miss it, begun 25 minutes apart. \
         One disturbed run rejects no host.",
    ),
    label(
        &["not usable"],
        CHECK,
        "The spec cannot judge the run: it is too old, of another profile, has no valid figure, or cannot be read. It is no pass.",
    ),
    label(
        &["cannot tell"],
        "several commands",
        "The evidence does not decide it. In a comparison the interval is too wide to call the two different, and too wide to call \
         them the same. Of a host: no source names its CPUs.",
    ),
    label(
        &["unverified"],
        COMPARE,
        "An imported figure without a spread: the uncertainty of its ratio is unknown. Five values on each side would show it.",
    ),
    label(
        &["not counted"],
        COMPARE,
        "The figure has a row because its values would mislead. It counts in no result; --left-out says why.",
    ),
    label(
        &["no conclusion"],
        COMPARE,
        "Too few figures count, or the two have none in common. The sentence names the reason; the exit code is 4 where nothing could be \
         compared or conditions differ.",
    ),
    label(&["overall"], COMPARE, "All figures of a group together, each benchmark with the same weight."),
    // Hosts.
    label(
        &["described"],
        MACHINE,
        "What --root named is a support archive or a printout of another host. It holds nothing that would disturb a measurement, and nothing about the load \
         of that host now.",
    ),
    label(&["ready to measure"], MACHINE, "Assay found nothing that would disturb a measurement."),
    label(
        &["measure with care"],
        MACHINE,
        "Something will disturb a measurement. The lines with ! say what, and what to do.",
    ),
    label(
        &["not ready to measure"],
        MACHINE,
        "Something would change every figure. Remove it before measuring.",
    ),
    label(
        &["host", "that host"],
        MACHINE,
        "The facts of the host; `that host` is one that --root or --from describes.",
    ),
    label(
        &["sources", "read from", "only counted", "counted only", "missing"],
        MACHINE,
        "Where the facts come from: whose printout or archive was read (`read from`), what it only counts without naming each \
         (`counted only`), what it leaves out (`missing`), and where two of its files contradict each other (`sources`).",
    ),
    label(
        &["processor", "cpus", "caches", "numa"],
        MACHINE,
        "The processor, how many CPUs, cores and sockets the kernel uses, the caches and the NUMA nodes.",
    ),
    label(
        &["memory", "modules", "huge pages"],
        MACHINE,
        "Memory that the kernel has, the modules that firmware lists with their slots, and the settings of huge pages.",
    ),
    label(
        &["kernel", "time", "frequency", "mitigations"],
        MACHINE,
        "The kernel and its scheduler, its clock source, the frequencies that the CPUs may have, and the mitigations that are on.",
    ),
    label(
        &["inside", "may use", "guest", "sandbox", "container"],
        MACHINE,
        "What this host runs in (hypervisor, container, sandbox), and the CPUs, memory and tasks that it may use there.",
    ),
    label(
        &["disk", "network", "load"],
        MACHINE,
        "The disk that a run would write to, the network interfaces, and what else runs now.",
    ),
    label(
        &["affinity", "offline", "memory limit"],
        MACHINE,
        "CPUs or memory that the kernel has and that a measurement here may not use.",
    ),
    label(
        &["kernel files", "idle states", "disk traffic", "disk space"],
        MACHINE,
        "Files of the kernel that could not be read or contradict each other, sleep states that delay wake-ups, and traffic or lack of space on the disk.",
    ),
    // Guarded commands.
    label(&["stable"], GUARD, "The runs of the command lie close together: one run predicts the next."),
    label(
        &["swings by *"],
        GUARD,
        "The runs scatter by this share, so a single run shows little. The finding below names what moves with them.",
    ),
    label(
        &["b is *", "the same within *"],
        GUARD,
        "Which of two commands is faster, from alternating runs. The interval excludes no difference, or lies within this margin.",
    ),
    label(
        &["command", "placement"],
        GUARD,
        "The command, identified by a short checksum of its words, and the CPUs that its tasks may use.",
    ),
    label(
        &["result", "runs scatter", "runs"],
        GUARD,
        "The median of all runs, their coefficient of variation with its interval, and their number.",
    ),
];
