//! Lines and headings of raw result files, and what they are.

use std::collections::BTreeSet;

use super::figures::Unit;
use model::vocabulary::kernel as ids;

/// How lines of single figures begin, in the order in which lmbench's script prints them, and what
/// they are.
pub const LINES: &[(&str, &str)] = &[
    ("Simple syscall", "null call"),
    ("Simple read", "read"),
    ("Simple write", "write"),
    ("Simple stat", "stat"),
    ("Simple fstat", "fstat"),
    ("Simple open/close", "open close"),
    ("Select on 100 fd's", "select 100"),
    ("Select on 100 tcp fd's", "select tcp"),
    ("Signal handler installation", "signal install"),
    ("Signal handler overhead", "signal handle"),
    ("Protection fault", "protection fault"),
    ("Pipe latency", "pipe"),
    ("AF_UNIX sock stream latency", "unix"),
    ("Process fork+exit", "fork"),
    ("Process fork+execve", "exec"),
    ("Process fork+/bin/sh -c", "shell"),
    ("integer bit", "integer bit"),
    ("integer add", "integer add"),
    ("integer mul", "integer mul"),
    ("integer div", "integer div"),
    ("integer mod", "integer mod"),
    ("int64 bit", "int64 bit"),
    // lat_ops prints this one so, which is why summaries have an empty cell there.
    ("uint64 add", "int64 add"),
    ("int64 mul", "int64 mul"),
    ("int64 div", "int64 div"),
    ("int64 mod", "int64 mod"),
    ("float add", "float add"),
    ("float mul", "float mul"),
    ("float div", "float div"),
    ("double add", "double add"),
    ("double mul", "double mul"),
    ("double div", "double div"),
    ("float bogomflops", "float bogomflops"),
    ("double bogomflops", "double bogomflops"),
    ("Pagefaults on", "page fault"),
    ("UDP latency using localhost", "udp"),
    ("TCP latency using localhost", "tcp"),
    ("RPC/udp latency using localhost", "rpc udp"),
    ("RPC/tcp latency using localhost", "rpc tcp"),
    ("TCP/IP connection cost to localhost", "tcp connect"),
    ("UDP latency using", "remote udp"),
    ("TCP latency using", "remote tcp"),
    ("RPC/udp latency using", "remote rpc udp"),
    ("RPC/tcp latency using", "remote rpc tcp"),
    ("TCP/IP connection cost to", "remote tcp connect"),
    ("AF_UNIX sock stream bandwidth", "unix bandwidth"),
    ("Pipe bandwidth", "pipe bandwidth"),
    ("tlb", "tlb"),
];

/// Older versions have no such line; where another text stands in its place, that is the reason.
pub fn is_optional(name: &str) -> bool {
    name.contains("rpc") || name == "tlb"
}

/// Labels that name a file or a host.
pub fn begins(label: &str, words: &str) -> bool {
    (words == "Pagefaults on" || words.ends_with(" using") || words.ends_with(" to"))
        && label.strip_prefix(words).is_some_and(|rest| rest.starts_with(' '))
}

/// `Select on 10 fd's`, `Select on 10 tcp fd's`: how many, and the benchmark.
pub fn select(label: &str) -> Option<(u32, &'static str)> {
    let rest = label.strip_prefix("Select on ")?;
    let (many, what) = rest.split_once(' ')?;
    let group = match what {
        "fd's" => ids::SYSCALL_SELECT.as_str(),
        "tcp fd's" => "lmbench.select-tcp",
        _ => return None,
    };
    Some((many.parse().ok()?, group))
}

/// Headings of curves with the key and wording of their points; `{}` is the point's size in bytes.
pub const CURVES: &[(&str, &str, Unit)] = &[
    ("mappings", "lmbench.mmap@one-cpu/bytes={}#latency", Unit::Us),
    ("read bandwidth", "file.read@one-cpu?cache=warm/bytes={}#io", Unit::Mb),
    ("read open2close bandwidth", "file.read@one-cpu?cache=warm/bytes={}#open_close", Unit::Mb),
    ("Mmap read bandwidth", "file.mmap@one-cpu?cache=warm/bytes={}#io", Unit::Mb),
    ("Mmap read open2close bandwidth", "file.mmap@one-cpu?cache=warm/bytes={}#open_close", Unit::Mb),
    ("Memory read bandwidth", "memory.bandwidth@one-cpu?op=read/bytes={}#bandwidth", Unit::Mb),
    ("Memory write bandwidth", "memory.bandwidth@one-cpu?op=write/bytes={}#bandwidth", Unit::Mb),
    ("Socket bandwidth using localhost", "ipc.tcp-bandwidth@free/message={}#bandwidth", Unit::Mb),
    ("Memory load parallelism", "lmbench.load-parallelism@one-cpu/bytes={}#parallelism", Unit::Number),
];

/// Key and wording of the points of a curve of lat_mem_rd, and how its meaning differs.
pub fn ladder(random: bool, stride: u64, processes: u32) -> (String, String, &'static str) {
    let key = match (random, stride) {
        _ if processes > 1 => {
            let order = if random { "random" } else { "stride" };
            let key = format!("lmbench.load-latency@free?order={order}&stride={stride}/bytes={{}}");
            let wording = format!("Memory load latency of {processes} at once, stride {stride}");
            return (
                format!("{key}&processes={processes}#latency"),
                wording,
                "the median of several at once",
            );
        }
        (false, _) => format!("memory.latency@one-cpu?order=stride&stride={stride}"),
        (true, 16) => "memory.latency@one-cpu?order=random".to_string(),
        (true, _) => format!("lmbench.random-load-latency@one-cpu?stride={stride}"),
    };
    let (wording, note) = match (random, stride) {
        (false, _) => ("Memory load latency", ""),
        (true, 16) => {
            ("Random load latency", "lmbench's random order has several pointers in one cache line")
        }
        (true, _) => ("Random load latency", "not measured by Assay in this form"),
    };
    (format!("{key}/bytes={{}}#latency"), format!("{wording}, stride {stride}"), note)
}

/// Whether a line that is none of lmbench's says what follows is of.
pub fn is_heading(text: &str) -> bool {
    text.ends_with(':') || text.starts_with('#')
}

/// The numbers of the lines that head another run, whose first figure the run before has not and
/// another one it has.
pub fn parts(text: &str) -> BTreeSet<usize> {
    // What heads figures, if they are not another file's, and their names.
    let mut sections: Vec<(Option<usize>, Vec<&str>)> = vec![(None, Vec::new())];
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        match (figure(line), sections.last_mut()) {
            (Some(name), Some((_, own))) => own.push(name),
            _ if line.starts_with("[lmbench") => sections.push((None, Vec::new())),
            _ if is_heading(line) => sections.push((Some(number), Vec::new())),
            _ => {}
        }
    }
    let mut parts = BTreeSet::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (head, own) in sections {
        if head.is_none() || own.iter().any(|name| seen.contains(name)) {
            parts.extend(head.filter(|_| !seen.contains(own[0])));
            seen.clear();
        }
        seen.extend(own);
    }
    parts
}

/// The name of the figure or of the curve that a line begins with.
fn figure(line: &str) -> Option<&str> {
    if let Some(curve) = line.strip_prefix('"') {
        return curve.split(" ovr=").next();
    }
    let (label, value) = line.rsplit_once(": ").filter(|_| !line.starts_with('['))?;
    value.starts_with(|c: char| c.is_ascii_digit()).then_some(label)
}
