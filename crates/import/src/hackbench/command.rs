//! Command lines of hackbench and `perf bench sched`: they give what the programs do not print.

use crate::above::{MOVERS, name};
use crate::kit::commands::is_start;

/// Which program ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Hackbench,
    Messaging,
    Pipe,
}

/// One run that a command asks for, as far as the command gives. A number is `None` where the
/// command gives it in a way that only its shell understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    pub program: Program,
    /// Every option and argument is one that the program knows.
    pub understood: bool,
    /// `pipe`, `socket`, `inet`; `None` where it asks for two of them.
    pub transport: Option<&'static str>,
    pub tasks: &'static str,
    pub groups: Option<u32>,
    pub fds: Option<u32>,
    pub loops: Option<u32>,
    pub bytes: Option<u32>,
    /// Other options that change what is measured, as given.
    pub special: Vec<String>,
    /// Arguments of old versions stand there, which newer ones overlook.
    pub positional: bool,
    /// By what it is started that moves or slows its tasks: `taskset -c 0-3`.
    pub under: String,
}

/// Letter, long name, and whether a value follows.
type Options = [(char, &'static str, bool)];
const HACKBENCH: &Options = &[
    ('f', "fds", true),
    ('F', "fifo", false),
    ('g', "groups", true),
    ('h', "help", false),
    ('i', "inet", false),
    ('l', "loops", true),
    ('p', "pipe", false),
    ('P', "process", false),
    ('s', "datasize", true),
    ('T', "threads", false),
];
const MESSAGING: &Options =
    &[('g', "group", true), ('l', "nr_loops", true), ('p', "pipe", false), ('t', "thread", false)];
const PIPE: &Options =
    &[('l', "loop", true), ('T', "threaded", false), ('n', "nonblocking", false), ('G', "cgroups", true)];

/// The runs that a command asks for; none where it starts another program.
pub fn invocations(command: &str) -> Vec<Invocation> {
    let command: String = command.chars().take(4000).filter(|c| !"\"'`".contains(*c)).collect();
    command.split([';', '|', '&', '(', ')', '{', '}']).filter_map(invocation).collect()
}

fn invocation(part: &str) -> Option<Invocation> {
    let words: Vec<&str> = part.split_whitespace().collect();
    let (program, _, end) = program(&words)?;
    let before = &words[..starts(&words)?];
    let mover = before.iter().position(|word| MOVERS.contains(&name(word)));
    let under = mover.map_or(String::new(), |at| before[at..].join(" ").chars().take(100).collect());
    // What follows a redirection belongs to no program.
    let arguments = words[end..].iter().take_while(|word| !word.contains(['<', '>'])).copied();
    Some(read(program, arguments.collect(), under))
}

/// Which program, where its words begin, and where its arguments do.
fn program(words: &[&str]) -> Option<(Program, usize, usize)> {
    if let Some(at) = words.iter().position(|word| name(word) == "hackbench") {
        return Some((Program::Hackbench, at, at + 1));
    }
    let sched = words.iter().position(|word| *word == "sched")?;
    let program = match *words.get(sched + 1)? {
        "messaging" => Program::Messaging,
        "pipe" => Program::Pipe,
        _ => return None,
    };
    let bench = words[..sched].iter().rposition(|word| *word == "bench")?;
    let perf = words[..bench].iter().rposition(|word| name(word) == "perf")?;
    Some((program, perf, sched + 2))
}

/// Where the program is among the words of a command that starts it.
pub fn starts(words: &[&str]) -> Option<usize> {
    let (_, begin, _) = program(words)?;
    is_start(&words[..begin]).then_some(begin)
}

fn read(program: Program, arguments: Vec<&str>, under: String) -> Invocation {
    let known = match program {
        Program::Hackbench => HACKBENCH,
        Program::Messaging => MESSAGING,
        Program::Pipe => PIPE,
    };
    let mut run = Invocation {
        program,
        understood: true,
        transport: Some("socket"),
        tasks: "process",
        groups: Some(10),
        fds: Some(20),
        loops: Some(if program == Program::Pipe { 1_000_000 } else { 100 }),
        bytes: Some(100),
        special: Vec::new(),
        positional: false,
        under,
    };
    let (mut pipe, mut inet) = (false, false);
    let mut words = arguments.into_iter();
    while let Some(word) = words.next() {
        // The first hackbench knew this one only.
        if word == "-pipe" && program == Program::Hackbench {
            pipe = true;
            continue;
        }
        let Some(given) = options(known, word) else {
            let argument =
                ["process", "thread"].contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit());
            run.positional |= argument;
            run.understood &= argument && program == Program::Hackbench;
            continue;
        };
        for (letter, value) in given {
            let takes = known.iter().any(|(own, _, takes)| *own == letter && *takes);
            let value = value.or_else(|| if takes { words.next().map(str::to_string) } else { None });
            let number = value.as_deref().and_then(|text| text.parse().ok());
            match (letter, program) {
                ('g', _) => run.groups = number,
                ('l', _) => run.loops = number,
                ('f', _) => run.fds = number,
                ('s', _) => run.bytes = number,
                ('p', _) => pipe = true,
                ('i', _) => inet = true,
                ('T', _) | ('t', _) => run.tasks = "thread",
                ('P', _) => run.tasks = "process",
                (letter, _) => run.special.push(format!("-{letter}")),
            }
        }
    }
    run.transport = match (pipe, inet) {
        (false, false) => Some("socket"),
        (true, false) => Some("pipe"),
        (false, true) => Some("inet"),
        (true, true) => None,
    };
    run
}

/// The options in a word, the last with the value that stands in the same word; `None` for what is
/// none of these.
fn options(known: &Options, word: &str) -> Option<Vec<(char, Option<String>)>> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        // Any beginning that only one of them has is its name, too.
        let mut fitting = known.iter().filter(|(_, own, _)| !name.is_empty() && own.starts_with(name));
        let found = known.iter().find(|(_, own, _)| *own == name).or_else(|| fitting.next())?;
        let alone = found.1 == name || fitting.next().is_none();
        return (alone && (found.2 || value.is_none())).then(|| vec![(found.0, value.map(str::to_string))]);
    }
    let mut letters = word.strip_prefix('-').filter(|letters| !letters.is_empty())?.chars();
    let mut found = Vec::new();
    while let Some(letter) = letters.next() {
        let (_, _, takes) = known.iter().find(|(own, _, _)| *own == letter)?;
        let rest = letters.as_str();
        if *takes {
            found.push((letter, (!rest.is_empty()).then(|| rest.to_string())));
            return Some(found);
        }
        found.push((letter, None));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(command: &str) -> Invocation {
        let mut runs = invocations(command);
        assert_eq!(runs.len(), 1, "{command}: {runs:?}");
        runs.remove(0)
    }

    #[test]
    fn options_in_all_their_forms() {
        let plain = one("hackbench");
        assert_eq!((plain.transport, plain.tasks, plain.groups), (Some("socket"), "process", Some(10)));
        let pipes = ["-p", "--pipe", "--pip", "-pTg4", "-pipe 10 process 100", "-g 2 -p > log -i"];
        assert!(pipes.iter().all(|with| one(&format!("hackbench {with}")).transport == Some("pipe")));
        assert_eq!(one("./hackbench --inet").transport, Some("inet"));
        assert_eq!(one("hackbench -i -p").transport, None);
        let all = one("hackbench -T --loops=500 -s20 --fds 3 -g4 2>&1");
        let numbers = (all.groups, all.fds, all.loops, all.bytes);
        assert_eq!(numbers, (Some(4), Some(3), Some(500), Some(20)));
        assert!(all.understood && all.tasks == "thread");
        // `--p` may be the one or the other, and a shell knew what `$how` was.
        for unsure in ["hackbench --p", "hackbench -x", "hackbench $how", "hackbench is a benchmark"] {
            assert!(!one(unsure).understood, "{unsure}");
        }
        assert_eq!(one("hackbench -g $groups").groups, None);
        assert_eq!(one("hackbench -F").special, ["-F"]);
    }

    #[test]
    fn by_what_a_run_is_started() {
        let perf =
            one("sudo perf stat -a -e x -- taskset -c 0-3 perf bench sched messaging -p -t -l 100000 -g 8");
        assert_eq!((perf.program, perf.under.as_str()), (Program::Messaging, "taskset -c 0-3"));
        assert_eq!((perf.transport, perf.tasks, perf.loops), (Some("pipe"), "thread", Some(100_000)));
        let pipe = one("perf bench -f default sched pipe -l 5 -T");
        assert_eq!((pipe.program, pipe.tasks, pipe.loops), (Program::Pipe, "thread", Some(5)));
        assert_eq!(one("LC_ALL=C time hackbench").under, "");
        let both = invocations("for i in 1 2; do hackbench -p; hackbench -T; done");
        assert_eq!(both.iter().map(|run| run.transport).collect::<Vec<_>>(), [Some("pipe"), Some("socket")]);
        for other in
            ["man hackbench", "apt install hackbench", "perf bench sched", "perf bench mem all", "ls", ""]
        {
            assert_eq!(invocations(other), [], "{other}");
        }
    }
}
