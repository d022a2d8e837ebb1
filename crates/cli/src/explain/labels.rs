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
const FIGURES: &str = "figures";

const LABELS: &[Label] = &[
    // Verdicts of imports.
    label(
        &["read whole"],
        IMPORT,
        "Every figure that the file announces has a value, and nothing in it says that the run was cut short. It does not say that \
         the figures are right: Assay did not watch while they were measured.",
    ),
    label(
        &["read in part"],
        IMPORT,
        "Some figures that the file announces have no value, or the run was stopped before its end. The lines called `left out` say why.",
    ),
    label(
        &["read, but faulty"],
        IMPORT,
        "The file has a problem: its figures contradict each other, or what was measured failed. Explain that before you use a figure.",
    ),
    label(
        &["read, not usable"],
        IMPORT,
        "All figures are rejected, mostly because the format is known from documentation alone. Read them in the file itself.",
    ),
    label(
        &["nothing complete"],
        IMPORT,
        "The file was recognised, but none of its figures has a value. The exit code is 3.",
    ),
    // Lines of imports.
    label(
        &["left out"],
        IMPORT,
        "How many figures have no value, with the reason: the test did not finish, the cell is empty, or a percentile has fewer than \
         10 observations beyond it. In the table of several results it is their number.",
    ),
    label(
        &["left out"],
        COMPARE,
        "Figures that do not count, because the conditions of the two differ or a value is missing; --left-out lists them with the reasons.",
    ),
    label(
        &["tool"],
        IMPORT,
        "What this tool never reports, or does in a way of its own: it holds for each of its results.",
    ),
    label(
        &["file"],
        IMPORT,
        "What is to be known of this file: lines that were passed over, or settings that it does not name.",
    ),
    label(
        &["confidence"],
        IMPORT,
        "The tool's own words: its passes lie farther apart than it was asked for. Don't conclude anything from a small difference.",
    ),
    label(
        &["differs"],
        IMPORT,
        "The tool measures this in another way than Assay does under the same key; --all says how.",
    ),
    label(
        &["n", "n *"],
        FIGURES,
        "How many values a figure is the median of: passes, runs or repetitions. A figure without n is one value.",
    ),
    label(
        &["first figure"],
        IMPORT,
        "The first figure of each result that has a value. --all prints the others.",
    ),
    label(
        &["result", "of", "figures"],
        IMPORT,
        "Of several results each has a line: what it is called, whose format it is, how many figures have a value.",
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
        "Half the 95 % interval of the median, in per cent; both ends where it is wide or lopsided. Imported figures of 2 to 4 values \
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
        "The ratio of the two values, turned so that above 1 is better for B: of times it is A ÷ B.",
    ),
    label(
        &["b is"],
        COMPARE,
        "What follows for B: faster, slower, the same within a margin, cannot tell, unverified or not counted.",
    ),
    label(
        &["faster", "slower", "higher", "lower"],
        COMPARE,
        "The 95 % interval of the ratio excludes 1, the difference is above 2 % and holds after correction for the number of figures. \
         Higher and lower are said of figures that have no better side.",
    ),
    label(
        &["the same", "same"],
        COMPARE,
        "The two lie within 2, 5 or 10 % of each other: two one-sided tests say so at 5 %.",
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
    label(
        &["not usable"],
        CHECK,
        "The spec cannot judge the run: it is too old, of another profile, has no valid figure, or cannot be read. It is no pass.",
    ),
    label(
        &["cannot tell"],
        "several verbs",
        "What is known does not decide it. In a comparison the interval is too wide both to call the two different and to call them the \
         same; of a machine nothing says which CPUs it has.",
    ),
    label(
        &["unverified"],
        COMPARE,
        "An imported figure without a spread: the ratio stands there, and how sure it is is not known. Five values on each side would show it.",
    ),
    label(
        &["not counted"],
        COMPARE,
        "The figure has a row because its values would mislead, but counts in nothing; --left-out says why.",
    ),
    label(
        &["no conclusion"],
        COMPARE,
        "Too few figures count, or the two have none in common. The sentence names the reason; the exit code is 4 where nothing could be \
         compared or conditions differ.",
    ),
    label(&["over all"], COMPARE, "All figures of a group together, each benchmark with the same weight."),
    // Machines.
    label(
        &["described"],
        MACHINE,
        "What --root named is a support archive or a printout of another host. Nothing in it would disturb a measurement; what that host \
         does now is not in it.",
    ),
    label(&["ready to measure"], MACHINE, "Nothing was found that will disturb what is measured."),
    label(
        &["measure with care"],
        MACHINE,
        "Something will disturb what is measured; the lines with ! say what, and what to do.",
    ),
    label(
        &["not ready to measure"],
        MACHINE,
        "Something would show in every figure. Remove it before measuring.",
    ),
    label(
        &["this host", "that host"],
        MACHINE,
        "The facts of the machine; `that host` is one that --root or --from describes.",
    ),
    label(
        &["sources", "read from", "only counted", "not told"],
        MACHINE,
        "Where the facts come from: whose printout or archive was read (`read from`), what it only counts without naming each \
         (`only counted`), what it leaves out (`not told`), and where two of its files contradict each other (`sources`).",
    ),
    label(
        &["processor", "cpus", "caches", "numa"],
        MACHINE,
        "The processor, how many CPUs, cores and sockets the kernel uses, the caches and the NUMA nodes.",
    ),
    label(
        &["memory", "modules", "huge pages"],
        MACHINE,
        "Memory that the kernel has, the modules that firmware lists with their places, and how large pages are given out.",
    ),
    label(
        &["kernel", "time", "frequency", "mitigations"],
        MACHINE,
        "The kernel and its scheduler, the clock that it reads the time from, the frequencies that the CPUs may have, and which gaps of the processor it closes.",
    ),
    label(
        &["inside", "may use", "guest", "sandbox", "container"],
        MACHINE,
        "What this system runs inside of (hypervisor, container, sandbox) and what it may use there: CPUs, memory, tasks.",
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
        "Files of the kernel that could not be read or contradict each other, sleep states that delay wake-ups, and traffic or lack of room on the disk.",
    ),
    // Guarded commands.
    label(
        &["stable"],
        GUARD,
        "The runs of the command lie close together: one of them says what the next will give.",
    ),
    label(
        &["swings by *"],
        GUARD,
        "The runs scatter by this much, so that a single run says little. The finding below says what goes with it.",
    ),
    label(
        &["b is *", "the same within *"],
        GUARD,
        "Which of two commands is faster, from runs in turn: the interval excludes no difference, or lies within this margin.",
    ),
    label(
        &["command", "placement"],
        GUARD,
        "The command, told apart by a short sum of its words, and where its tasks may run.",
    ),
    label(
        &["result", "runs scatter", "runs"],
        GUARD,
        "The median of all runs, how far single runs lie apart (standard deviation over mean, with its interval), and how many there were.",
    ),
];
