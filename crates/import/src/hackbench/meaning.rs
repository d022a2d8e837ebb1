//! As what a run counts: the key of its series, and what is said of it.

use super::Run;
use super::command::{Invocation, Program};
use crate::builder::Meaning;
use crate::keyed;
use model::Better;

impl Run {
    pub fn meaning(&self, asked: &[&Invocation]) -> Option<Meaning> {
        match self.program {
            Program::Pipe => self.pipe(asked),
            _ => self.messages(asked),
        }
    }

    /// Two processes and two pipes: an operation is a round trip. Of threads, or with something
    /// between, it is another thing.
    fn pipe(&self, asked: &[&Invocation]) -> Option<Meaning> {
        let special = agreed(asked, |asked| Some(asked.special.join(" "))).unwrap_or_default();
        let processes = self.tasks == Some("process") && special.is_empty();
        let options = (!special.is_empty()).then(|| format!("options={}", special.replace(' ', ",")));
        let tasks = self.tasks.map(|tasks| format!("tasks={tasks}"));
        let params: Vec<String> = options.into_iter().chain(tasks).collect();
        let params = if params.is_empty() { String::new() } else { format!("?{}", params.join("&")) };
        let key = if processes {
            "ipc.pipe-pingpong@free#round_trips".to_string()
        } else {
            format!("perf.sched-pipe@free{params}#round_trips")
        };
        let mut notes = vec!["perf's token has 4 bytes, Assay's 8".to_string()];
        if !processes {
            notes.push("not measured by Assay in this form".to_string());
        }
        if !special.is_empty() {
            notes.push(format!("with {special}"));
        }
        if asked.is_empty() {
            notes.push("the command is missing: it is the same only with the defaults".to_string());
        }
        notes.extend(under(asked));
        Some(Meaning {
            keyed: keyed(&key)?,
            wording: "perf bench sched pipe".to_string(),
            unit: "1/s".into(),
            better: Better::Higher,
            note: notes.join("; "),
        })
    }

    /// Groups of senders and receivers, hackbench's and perf's alike.
    fn messages(&self, asked: &[&Invocation]) -> Option<Meaning> {
        let hackbench = self.program == Program::Hackbench;
        let transport = agreed(asked, |asked| asked.transport);
        // perf's source holds the size; how many messages only the command gives.
        let bytes = if hackbench { self.bytes } else { Some(100) };
        let loops = if hackbench { self.loops } else { agreed(asked, |asked| asked.loops) };
        let mut notes = Vec::new();
        let untold: Vec<&str> = [
            ("the size of messages", bytes.is_none()),
            ("their number", loops.is_none()),
            ("processes or threads", self.tasks.is_none()),
            ("the transport", transport.is_none()),
            ("groups", self.groups.is_none()),
            ("descriptors", self.fds.is_none()),
        ]
        .into_iter()
        .filter_map(|(name, untold)| untold.then_some(name))
        .collect();
        if !untold.is_empty() {
            notes.push(format!("the log lacks {}", untold.join(", ")));
        }
        if transport.is_none() {
            notes.push(
                match (self.preamble.asked.is_empty(), asked.is_empty()) {
                    (true, _) => "without its command it may be sockets or pipes",
                    (false, true) => "the command before it is of another run",
                    (false, false) => "the command before it leaves the transport open",
                }
                .to_string(),
            );
        }
        let special = agreed(asked, |asked| Some(asked.special.join(" "))).unwrap_or_default();
        if !special.is_empty() {
            notes.push(format!("with {special}"));
        }
        notes.extend(under(asked));
        let number = |name: &str, value: Option<u32>| value.map(|value| format!("{name}={value}"));
        let word = |name: &str, value: Option<&str>| value.map(|value| format!("{name}={value}"));
        let params = [
            number("bytes", bytes),
            number("fds", self.fds),
            number("groups", self.groups),
            number("loops", loops),
            (!special.is_empty()).then(|| format!("options={}", special.replace(' ', ","))),
            word("tasks", self.tasks),
            word("transport", transport),
        ];
        let params: Vec<String> = params.into_iter().flatten().collect();
        Some(Meaning {
            keyed: keyed(&format!("sched.hackbench@free?{}#time", params.join("&")))?,
            wording: "hackbench".to_string(),
            unit: "s".into(),
            better: Better::Lower,
            note: notes.join("; "),
        })
    }
}

/// What all of these agree upon.
fn agreed<T: PartialEq>(asked: &[&Invocation], of: impl Fn(&Invocation) -> Option<T>) -> Option<T> {
    let first = of(asked.first()?)?;
    asked.iter().all(|asked| of(asked).as_ref() == Some(&first)).then_some(first)
}

fn under(asked: &[&Invocation]) -> Option<String> {
    let under = asked.first().map(|asked| asked.under.as_str()).filter(|under| !under.is_empty())?;
    Some(format!("started by {under}, which decides where or when its tasks run"))
}
