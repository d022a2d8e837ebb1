//! The lines of sockperf, one by one, and the commands that stand before them.

use crate::faults::short;
use model::units;

/// A line that means something.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    Nothing,
    /// `== version #3.7-no.git ==`: a run begins.
    Version(String),
    Client,
    Listens,
    /// `[ 0] IP = 127.0.0.1       PORT = 11111 # UDP`
    Peer {
        address: String,
        tcp: bool,
        loopback: bool,
    },
    /// `using msg-size=14, mps=1000`
    Size {
        bytes: u32,
        mps: Option<f64>,
    },
    /// `Printing statistics for Server No: 0`
    Server(u32),
    /// `[Valid Duration] RunTime=0.550 sec; SentMessages=8711; ReceivedMessages=8711`
    Valid {
        sent: Option<f64>,
        received: Option<f64>,
    },
    /// `====> avg-latency=31.568 (std-dev=5.602)`
    Mean {
        round: bool,
        mean: Option<f64>,
        deviation: Option<f64>,
    },
    /// Dropped, duplicated, out of order.
    Lost([Option<f64>; 3]),
    /// `Total 8711 observations; ...`
    Observations(Option<f64>),
    /// `---> percentile 99.999 =  414.146`, `---> <MAX> observation =  414.146`
    Mark(String, Option<f64>),
    Begun,
    Throughput,
    /// Messages a second.
    Rate(Option<f64>),
    /// MBps, or with `--giga-size` thousands of them.
    Bandwidth {
        rate: Option<f64>,
        giga: bool,
    },
    Interrupted,
    /// It says that it could not.
    Failed(String),
    Warning(String),
    Other(String),
}

/// What a command asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    pub mode: &'static str,
    pub tcp: bool,
    /// `None` where only its shell knew.
    pub size: Option<u32>,
    /// What makes it another measurement: name and value.
    pub special: Vec<(String, String)>,
}

/// Of all versions that have these modes, bytes.
const DEFAULT_SIZE: u32 = 14;

/// Options that make the work another one, and as what they stand in a key; those with a value
/// first.
const WITH_VALUE: [(&str, &str); 10] = [
    ("--mps", "mps"),
    ("--pps", "mps"),
    ("--burst", "burst"),
    ("-b", "burst"),
    ("--reply-every", "reply_every"),
    ("--range", "range"),
    ("-r", "range"),
    ("--buffer-size", "buffer_size"),
    ("--lls", "lls"),
    ("--rate-limit", "rate_limit"),
];
const FLAGS: [(&str, &str); 6] = [
    ("--nonblocked", "nonblocked"),
    ("--data-integrity", "integrity"),
    ("--dummy-send", "dummy_send"),
    ("--tcp-avoid-nodelay", "tcp_avoid_nodelay"),
    ("--tcp-skip-blocking-send", "tcp_skip_blocking_send"),
    ("--vmazcopyread", "vmazcopyread"),
];

/// Whether a line is one of a result.
pub fn begins(line: &str) -> bool {
    let own = line.starts_with("sockperf");
    own && (line.contains("== version #")
        || line.contains("Printing statistics for Server")
        || line.contains("Summary:"))
}

fn number(text: &str) -> Option<f64> {
    units::split(text).map(|(number, _)| number)
}

/// The number behind a name.
fn after(line: &str, name: &str) -> Option<f64> {
    number(line.split_once(name)?.1)
}

pub fn line(text: &str) -> Line {
    let whole: String = text.chars().filter(|one| !one.is_control()).collect();
    if whole.starts_with("sockperf[CLIENT]") {
        return Line::Client;
    }
    let own = whole.strip_prefix("sockperf:").or(whole.strip_prefix("sockperf[SERVER]:"));
    let line = own.unwrap_or(&whole).trim();
    if line.is_empty() {
        return Line::Nothing;
    }
    if let Some(found) = begin(line).or_else(|| result(line)) {
        return found;
    }
    match line {
        _ if line.contains("interrupted by user") => Line::Interrupted,
        _ if line.starts_with("No messages were") => Line::Failed(short(line)),
        _ if line.starts_with("Starting test") => Line::Begun,
        _ if ["Summary: ", "[Total Run]", "Warmup stage", "Test end", "using "]
            .iter()
            .any(|one| line.starts_with(one)) =>
        {
            Line::Nothing
        }
        _ if own.is_some() && line.to_ascii_lowercase().contains("error") => Line::Failed(short(line)),
        _ if own.is_some() => Line::Warning(short(line)),
        _ if line.trim_matches('-').is_empty() => Line::Nothing,
        _ => Line::Other(short(line)),
    }
}

/// A line of what a run was: its version, both ends, its messages.
fn begin(line: &str) -> Option<Line> {
    Some(match line {
        _ if line.starts_with("== version #") => {
            let version = line.trim_start_matches("== version #").trim_end_matches(['=', ' ']);
            Line::Version(short(version))
        }
        _ if line.starts_with("[SERVER]") => Line::Listens,
        _ if line.starts_with('[') && line.contains("PORT =") => Line::Peer {
            address: line
                .split_once("IP = ")
                .and_then(|(_, rest)| rest.split_whitespace().next())
                .map_or(String::new(), short),
            tcp: line.trim_end().ends_with("TCP"),
            loopback: line.contains("IP = 127.") || line.contains("::1 "),
        },
        _ if line.contains("msg-size=") => match after(line, "msg-size=") {
            Some(size) if (1.0..1e7).contains(&size) => {
                Line::Size { bytes: size as u32, mps: after(line, " mps=") }
            }
            _ => Line::Warning(short(line)),
        },
        _ if line.contains("Printing statistics for Server No:") => {
            Line::Server(after(line, "Server No:").map_or(0, |number| number as u32))
        }
        _ => return None,
    })
}

/// A line of what a run came to.
fn result(line: &str) -> Option<Line> {
    Some(match line {
        _ if line.starts_with("[Valid Duration]") => {
            Line::Valid { sent: after(line, "SentMessages="), received: after(line, "ReceivedMessages=") }
        }
        _ if line.starts_with("====> avg-") => Line::Mean {
            round: line.contains("avg-rtt"),
            mean: line.split_once('=').and_then(|_| after(line.trim_start_matches("====> "), "=")),
            deviation: after(line, "std-dev="),
        },
        _ if line.starts_with("# dropped messages") => Line::Lost([
            after(line, "dropped messages ="),
            after(line, "duplicated messages ="),
            after(line, "out-of-order messages ="),
        ]),
        _ if line.starts_with("Total of ") && line.contains("messages sent") => Line::Throughput,
        _ if line.starts_with("Total ") && line.contains("observations") => {
            Line::Observations(after(line, "Total "))
        }
        _ if line.starts_with("---> percentile") => {
            let (name, value) =
                line.trim_start_matches("---> percentile").split_once('=').unwrap_or((line, ""));
            Line::Mark(name.trim().to_string(), number(value))
        }
        _ if line.starts_with("---> <M") => {
            let (name, value) =
                line.trim_start_matches("---> ").split_once("observation =").unwrap_or((line, ""));
            Line::Mark(name.trim().to_string(), number(value))
        }
        _ if line.starts_with("Summary: Message Rate is") => Line::Rate(after(line, "Message Rate is")),
        _ if line.starts_with("Summary: BandWidth is") => {
            let giga = line.contains(" GBps");
            let own = giga || line.contains(" MBps");
            Line::Bandwidth { rate: after(line, "BandWidth is").filter(|_| own), giga }
        }
        _ => return None,
    })
}

/// A command behind a prompt, or alone: `$ sockperf ping-pong -i 10.0.0.2 -m 64 --tcp`.
pub fn command(text: &str) -> Option<Options> {
    let mut words =
        text.split_whitespace().skip_while(|word| *word != "sockperf" && !word.ends_with("/sockperf"));
    words.next()?;
    let mode = match words.next()? {
        "ping-pong" | "pp" => "ping-pong",
        "under-load" | "ul" => "under-load",
        "throughput" | "tp" => "throughput",
        _ => return None,
    };
    let mut command = Options { mode, size: Some(DEFAULT_SIZE), ..Options::default() };
    let words: Vec<&str> = words.collect();
    for (at, word) in words.iter().enumerate() {
        let (name, given) = word.split_once('=').map_or((*word, None), |(name, value)| (name, Some(value)));
        let value = given.or(words.get(at + 1).copied()).unwrap_or_default();
        let digits = value.chars().take_while(char::is_ascii_digit).take(12).collect::<String>();
        match name {
            "--tcp" => command.tcp = true,
            "-m" | "--msg-size" => command.size = digits.parse().ok(),
            "--reply-every" | "--burst" | "-b" if mode != "under-load" => {}
            _ => {
                let with_value = WITH_VALUE.iter().find(|(known, _)| *known == name);
                let flag = FLAGS.iter().find(|(known, _)| *known == name);
                let put = match (with_value, flag) {
                    (Some((_, own)), _) if digits.is_empty() => Some((own, short(value))),
                    (Some((_, own)), _) => Some((own, digits)),
                    // A rate may follow.
                    (_, Some((_, own @ "dummy_send"))) if !digits.is_empty() || value == "max" => {
                        Some((own, if digits.is_empty() { short(value) } else { digits }))
                    }
                    (_, Some((_, own))) => Some((own, "1".to_string())),
                    (None, None) => None,
                };
                command.special.extend(put.map(|(own, value)| (own.to_string(), value)));
            }
        }
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_tell_what_the_text_does_not() {
        let found = command("user@a:~$ sockperf pp -i 10.0.0.2 -m 64 --tcp").expect("a command");
        assert_eq!((found.mode, found.tcp, found.size), ("ping-pong", true, Some(64)));
        let found =
            command("# /usr/bin/sockperf ul --mps=1000 --msg-size=128 --reply-every 10").expect("a command");
        assert_eq!(found.special.len(), 2);
        assert_eq!(found.size, Some(128));
        let found = command("sockperf ul -m 64 --dummy-send --mps=max -r 8 --burst 2").expect("a command");
        let special = [("dummy_send", "1"), ("mps", "max"), ("range", "8"), ("burst", "2")];
        assert_eq!(found.special, special.map(|(name, value)| (name.to_string(), value.to_string())));
        let found = command("sockperf pp --dummy-send 500 --burst 2").expect("a command");
        assert_eq!(found.special, [("dummy_send".to_string(), "500".to_string())]);
        assert_eq!(command("sockperf: Starting test..."), None);
        assert_eq!(command("sockperf server -p 1"), None);
    }
}
