//! What `assay explain harness` and `assay explain visit` print, with the numbers of the code, and
//! the states of a visit by their words.

use bench::{Depth, Windows};
use model::vocabulary::host::rule::WRONG_ANSWER;
use stats::guarded::GUARDED;

use crate::measure::{FAILURES_MAX, VISIT_LIMIT, VISIT_LIMIT_ESTIMATES};
use crate::plan::QUICK_CORE_WINDOWS;

type Sections = Vec<(&'static str, String)>;

/// `assay explain harness`, as docs/method/measuring.md has it.
pub fn harness() -> Sections {
    let Windows { count, warm_up, .. } = Depth::Quick.windows();
    let deeper = [Depth::Standard, Depth::Full].map(|depth| depth.windows().count.to_string()).join(" or ");
    vec![
        (
            "Who does what",
            "A parent controls, and a child measures: a process of its own for each visit. The parent calibrates the clock \
             once, waits for a quiet second, starts the child on its CPU, and listens. It draws and judges nothing while a \
             child runs."
                .to_string(),
        ),
        (
            "What a child does, in order",
            format!(
                "1. It pins itself and prepares: memory touched, files made, partners started. 2. It grows the iteration count \
                 until a window is long enough. 3. It checks that twice the work takes twice the time. 4. It warms up for \
                 {warm_up} window, which does not count. 5. It times {count} windows in a quick run ({QUICK_CORE_WINDOWS} of what the core \
                 alone decides), {deeper} in deeper ones. \
                 6. It checks the answer of its work. 7. It sends all samples, and ends."
            ),
        ),
        (
            "Beside each window",
            "The child notes its CPU, context switches, page faults and run-queue wait, the core clock right after it, and \
             whether the core worked for another thread. The parent notes what the whole machine did during the visit."
                .to_string(),
        ),
        (
            "Repeat, take the median",
            format!(
                "A case is visited at least {least} times in a quick run, {more} times in others. Each visit gives the median of \
                 its windows, a figure is the median of visits. The order of cases changes from pass to pass, so a slow \
                 change of the machine falls on all alike. Further visits go to the figures that gain most by them.",
                least = GUARDED.start(),
                more = Depth::Standard.passes_min(),
            ),
        ),
        (
            "Cool down",
            "Nothing sleeps for a fixed time between visits. After a pass in which other work was loud, the parent waits for \
             a quiet second again. What heat and turbo change is read off the core clock beside every window."
                .to_string(),
        ),
        (
            "Beside lmbench",
            "Like lmbench: parent and child, the count grown by 8 and then in proportion, the median. Beyond it: a new process \
             for every repetition, a check of the answer, a window's conditions, and an interval."
                .to_string(),
        ),
    ]
}

/// A state of a visit.
pub struct State {
    /// The words that find it, its own first.
    pub words: &'static [&'static str],
    pub title: &'static str,
    text: &'static str,
}

impl State {
    /// Its text, with the numbers of the code.
    pub fn about(&self) -> String {
        self.text
            .replace("{failures}", &FAILURES_MAX.to_string())
            .replace("{limit_s}", &VISIT_LIMIT.as_secs().to_string())
            .replace("{estimates}", &VISIT_LIMIT_ESTIMATES.to_string())
    }
}

/// From the gate to the end, then each way to end; the latter are called as the run file calls its
/// reasons.
pub const STATES: &[State] = &[
    State {
        words: &["waiting", "gate"],
        title: "the machine is not quiet",
        text: "Before the first pass, and after a loud one, the parent waits for a quiet second: little CPU time of other \
               processes, little waiting and steal, no swapping, cores that work for us alone. --wait-idle waits as long as \
               it takes, --force not at all. If patience ends first, the run goes on and says so.",
    },
    State {
        words: &["starting"],
        title: "the child begins on its CPU",
        text: "The parent starts a process on the CPU where all its work will be, if that is one CPU: memory that was on \
               another CPU before costs more to change. The child gets its case by standard input, and pins itself.",
    },
    State {
        words: &["preparing", "initialising"],
        title: "everything is there before time counts",
        text: "The child makes files, touches its memory and starts partners and neighbours. None of this is in a figure.",
    },
    State {
        words: &["calibrating"],
        title: "the iteration count grows",
        text: "The child runs more and more iterations until one window is long enough: assay explain calibration.",
    },
    State {
        words: &["warming-up", "warm-up"],
        title: "the first window does not count",
        text: "Caches, branch predictors and the clock settle in the first window. It is kept in the run file, marked.",
    },
    State {
        words: &["measuring"],
        title: "windows are timed",
        text: "The child reads the clock, runs the iterations, reads the clock, and notes what moved: assay explain harness.",
    },
    State {
        words: &["checking"],
        title: "the answer is compared",
        text: "Sums, counts and contents must be what the work gives. The visit counts only if they are.",
    },
    State {
        words: &["counted", "valid"],
        title: "the visit ended well",
        text: "The child sent all its samples and its last line. The visit is one line of the run file, and its median is one \
               value of each of its figures.",
    },
    State {
        words: &["failed"],
        title: "the visit ended with an error",
        text: "The benchmark met an error, died of a signal, ended without its last line, or sent lines that are no samples. \
               Its samples are kept and not counted. After {failures} visits without a result the case is not visited again. \
               What to do: read the reason; run the one case by assay run --only BENCHMARK.",
    },
    State {
        words: &[WRONG_ANSWER.as_str(), "wrong answer"],
        title: "the work gave a wrong result",
        text: "The computed answer was wrong: a faulty core, memory or kernel, or a bug of Assay. Every figure of that case is \
               rejected. What to do: repeat it on another CPU, then test the memory.",
    },
    State {
        words: &["timed-out", "timed out", "timeout"],
        title: "the visit did not end in time",
        text: "A visit may take {limit_s} s, or {estimates} times its estimate if that is more. Time in which tasks of the \
               machine waited for a CPU counts one eighth. Then the child and all it started are killed, and the case is \
               not visited again.",
    },
    State {
        words: &["skipped"],
        title: "the case was not run",
        text: "This machine or user lacks something that the case needs, or the budget ended before its turn. The reason says \
               which. More time: --profile standard, or --budget.",
    },
    State {
        words: &["invalid"],
        title: "the environment made it worthless",
        text: "A file says that the visit ran under conditions that make its numbers meaningless. No visit of this version ends \
               so: it judges conditions afterwards, by rules. Such visits of a file are not counted.",
    },
    State {
        words: &["interrupted"],
        title: "somebody stopped the run",
        text: "The visit that was under way is dropped: nothing was learned of its case. All earlier ones are in the run file, \
               and the same command goes on from there.",
    },
];

/// `assay explain visit`: all states in turn.
pub fn visit() -> Sections {
    let state = |state: &State| (state.words[0], format!("{}. {}", capital(state.title), state.about()));
    STATES.iter().map(state).collect()
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use model::Reason;

    use super::*;

    #[test]
    fn every_way_to_end_is_explained_by_the_word_of_the_run_file() {
        let text = String::new;
        let all = [
            Reason::Failed(text()),
            Reason::WrongAnswer(text()),
            Reason::TimedOut(text()),
            Reason::Skipped(text()),
            Reason::Invalid(text()),
        ];
        for reason in all {
            // A further kind must be added to the list above.
            match &reason {
                Reason::Failed(_)
                | Reason::WrongAnswer(_)
                | Reason::TimedOut(_)
                | Reason::Skipped(_)
                | Reason::Invalid(_) => {}
            }
            let written = serde_json::to_value(&reason).expect("JSON");
            let word = written["kind"].as_str().expect("a kind");
            assert!(STATES.iter().any(|state| state.words[0] == word), "{word}");
        }
    }

    #[test]
    fn words_are_unique_and_texts_have_their_numbers() {
        let mut words: Vec<&str> = STATES.iter().flat_map(|state| state.words).copied().collect();
        let all = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), all);
        for (title, text) in visit().into_iter().chain(harness()) {
            assert!(!text.contains(['{', '}']), "{title}: {text}");
            assert!(text.split_whitespace().count() < 100, "{title} is too long");
        }
    }
}
