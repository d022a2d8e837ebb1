//! Texts of `assay explain harness` and `assay explain pass`, with the numbers of the code, and
//! the states of a pass with their names.

use bench::{Depth, Windows};
use model::vocabulary::host::rule::WRONG_ANSWER;
use stats::guarded::GUARDED;

use crate::measure::{FAILURES_MAX, VISIT_LIMIT, VISIT_LIMIT_ESTIMATES};
use crate::plan::QUICK_CORE_WINDOWS;

type Sections = Vec<(&'static str, String)>;

/// `assay explain harness`; docs/method/measuring.md has the same text.
pub fn harness() -> Sections {
    let Windows { count, warm_up, .. } = Depth::Quick.windows();
    let deeper = [Depth::Standard, Depth::Full].map(|depth| depth.windows().count.to_string()).join(" or ");
    vec![
        (
            "Who does what",
            "A parent controls, and a child measures: each pass is a new process. The parent calibrates the \
              clock once, waits for a quiet second, starts the child on its CPU, and waits. It neither \
              draws nor judges while a child runs."
                .to_string(),
        ),
        (
            "What a child does, in order",
            format!(
                "1. It pins itself and prepares: memory touched, files made, partners started. 2. It grows \
                  the iteration count until a sample is long enough. 3. It checks that twice the work takes \
                  twice the time. 4. It warms up for {warm_up} sample, which does not count. 5. It times \
                  {count} samples in a quick run ({QUICK_CORE_WINDOWS} of what the core alone decides), \
                  {deeper} in deeper ones. 6. It checks the answer of its work. 7. It sends all samples, \
                  and ends."
            ),
        ),
        (
            "Recorded with each sample",
            "The child records its CPU, context switches, page faults and run-queue wait, the core clock \
              right after the sample, and whether another thread shared the core. The parent records the \
              load of the whole host during the pass."
                .to_string(),
        ),
        (
            "Repeat, take the median",
            format!(
                "A benchmark gets at least {least} passes in a quick run, {more} in others. Each pass gives the \
                  median of its samples, and a figure is the median of passes. The order of benchmarks changes \
                  every round, so a slow change of the host affects all alike. Further passes go to the \
                  figures that gain most.",
                least = GUARDED.start(),
                more = Depth::Standard.passes_min(),
            ),
        ),
        (
            "Cool down",
            "There is no fixed pause between passes. After a round with much other work, the parent waits \
              for a quiet second again. The core clock of every sample shows the effect of heat and turbo."
                .to_string(),
        ),
        (
            "Compared with lmbench",
            "Like lmbench: parent and child, an iteration count that grows, the median. Beyond it: a new \
              process for every repetition, a check of the answer, the conditions of each sample, and an \
              interval."
                .to_string(),
        ),
    ]
}

/// A state of a pass (a visit in the code).
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

/// From the gate to the end, then each way to end, named as in the run file.
pub const STATES: &[State] = &[
    State {
        words: &["waiting", "gate"],
        title: "the host is not quiet",
        text: "Before the first round, and after a disturbed one, the parent waits for a quiet second: \
          little other CPU time, waiting and steal, no swapping, no other thread on the cores. --wait-idle \
          waits without a limit, --force not at all. Otherwise the run starts after a while and says so.",
    },
    State {
        words: &["starting"],
        title: "the child starts on its CPU",
        text: "The parent starts a process on the CPU of its work, if that is one CPU: memory touched on \
          another CPU before costs more to change. The child reads its order from standard input and pins \
          itself.",
    },
    State {
        words: &["preparing", "initialising"],
        title: "everything is prepared before timing",
        text: "The child makes files, touches its memory and starts partner processes. None of this is \
          timed.",
    },
    State {
        words: &["calibrating"],
        title: "the iteration count grows",
        text: "The child runs more and more iterations until one sample is long enough: assay explain \
          calibration.",
    },
    State {
        words: &["warming-up", "warm-up"],
        title: "the first sample does not count",
        text: "Caches, branch predictors and the clock settle in the first sample. The run file keeps it, \
          marked.",
    },
    State {
        words: &["measuring"],
        title: "samples are timed",
        text: "The child reads the clock, runs the iterations, reads the clock again, and records the \
          conditions: assay explain harness.",
    },
    State {
        words: &["checking"],
        title: "the answer is checked",
        text: "Sums, counts and contents must be those of the work. Otherwise the pass does not count.",
    },
    State {
        words: &["counted", "valid"],
        title: "the pass succeeded",
        text: "The child sent all its samples and its last line. The pass is one line of the run file, and \
          its median is one value of each of its figures.",
    },
    State {
        words: &["failed"],
        title: "the pass failed",
        text: "The benchmark met an error, died of a signal, ended without its last line, or sent invalid \
          lines. Its samples are kept but not counted. After {failures} failed passes the benchmark is not \
          measured again. What to do: read the reason, then run assay run --only BENCHMARK.",
    },
    State {
        words: &[WRONG_ANSWER.as_str(), "wrong answer"],
        title: "the work gave a wrong result",
        text: "The computed answer was wrong: a faulty core, memory or kernel, or a bug in Assay. All \
          its figures are rejected. What to do: assay explain wrong-answer.",
    },
    State {
        words: &["timed-out", "timed out", "timeout"],
        title: "the pass did not end in time",
        text: "A pass may take {limit_s} s, or {estimates} times its estimate if that is more. Time in \
          which tasks of the host waited for a CPU counts one eighth. Then the child and all its processes \
          are killed, and the benchmark is not measured again.",
    },
    State {
        words: &["skipped"],
        title: "the benchmark was not run",
        text: "This host or user lacks something that the benchmark needs, or the time ended before it. \
          The reason says which. More time: --profile standard, or --budget.",
    },
    State {
        words: &["invalid"],
        title: "the environment made it useless",
        text: "An older version marked the pass as disturbed, so it does not count. This version judges \
          conditions by rules, after the run.",
    },
    State {
        words: &["interrupted"],
        title: "the user stopped the run",
        text: "The pass in progress is dropped. All earlier ones are in the run file, and the same command \
          resumes there.",
    },
];

/// `assay explain pass`: all states.
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
