//! Text: log lines searched by regular expressions (as one deterministic automaton) and a JSON
//! document made a tree.
//!
//! Literature: K. Thompson, "Regular Expression Search Algorithm" (1968); M. O. Rabin and D. Scott,
//! "Finite Automata and Their Decision Problems" (1959: the subset construction); E. T. Irons, "A
//! Syntax Directed Compiler for ALGOL 60" (1961: recursive descent); RFC 8259 (JSON). In character
//! like SPEC's perlbench and xalancbmk.

use super::{Character, Checksum, Component, Rng, Work, ids};
use crate::vectors::with_widest_vectors;

mod automaton;
mod json;
#[cfg(test)]
mod tests;
use automaton::{Automaton, PATTERNS};
use json::{Node, Tally};

pub(super) const COMPONENT: Component = Component {
    id: ids::PARSE,
    title: "Regular expressions and JSON",
    about: "Searches 1 MiB of log lines for six regular expressions at once, and parses 1 MiB of JSON into a tree.",
    reading: "Bytes of text a second; more is better. The automaton is a chain of dependent loads from L1 and L2, \
              and the parser branches every few bytes. Clock, branch predictor and load latency decide.",
    method: "Thompson's automaton is made deterministic by subsets, and the tree is walked. Lines found, values of \
             each kind and the sum of numbers must be those of the generated texts. The tree written out must be the \
             text. The data stays in the caches at any footprint.",
    source: file!(),
    character: Character::Branchy,
    units: "bytes",
    reference: 426.0,
    expected_checksum: 0x7da2_990b_fd74_288f,
    make: |_| Ok(Box::new(Parse::new(BYTES, PASSES)?)),
};

const BYTES: usize = 1 << 20;
const PASSES: usize = 80;

struct Parse {
    log: Vec<u8>,
    automaton: Automaton,
    /// Number of lines that match each pattern, by construction.
    lines: [u64; PATTERNS.len()],
    text: Vec<u8>,
    known: Tally,
    passes: usize,
    found: [u64; PATTERNS.len()],
    nodes: Vec<Node>,
    strings: Vec<u8>,
    tally: Tally,
    /// Nodes and bytes of strings in use, and their checksum when they were made.
    used: Option<(usize, usize)>,
    seal: u64,
}

/// Log lines, and the number of them that match each pattern.
fn log(bytes: usize) -> (Vec<u8>, [u64; PATTERNS.len()]) {
    let mut rng = Rng(0x7061_7273_6521);
    let (mut text, mut lines) = (String::with_capacity(bytes + 256), [0; PATTERNS.len()]);
    let users = ["root", "admin", "alice", "bob", "carol", "guest"];
    let paths = ["index", "login", "images/logo", "api/items", "static/style"];
    while text.len() < bytes {
        let (hour, minute, second) = (rng.below(24), rng.below(60), rng.below(60));
        let host = rng.below(40);
        text += &format!("2026-11-{:02}T{hour:02}:{minute:02}:{second:02} host{host} ", 1 + rng.below(30));
        let address = [0; 4].map(|_: u8| rng.below(256).to_string()).join(".");
        let (user, path) = (users[rng.below(6) as usize], paths[rng.below(5) as usize]);
        let number = rng.below(100_000);
        match rng.below(8) {
            0 => {
                lines[0] += 1;
                text += &format!("sshd[{number}]: Failed password for {user} from {address} port {number}");
            }
            1 => {
                text += &format!("sshd[{number}]: Accepted publickey for {user} from {address} port {number}")
            }
            2 | 3 => {
                let status = [200, 200, 304, 404, 500, 503][rng.below(6) as usize];
                lines[1] += u64::from(status >= 500);
                lines[5] += u64::from(path == "images/logo");
                text += &format!("httpd: {address} \"GET /{path}.html HTTP/1.1\" {status} {number}");
            }
            4 => {
                let level = ["info", "warning", "error", "fatal"][rng.below(4) as usize];
                lines[2] += u64::from(level == "error" || level == "fatal");
                text += &format!("kernel: [{number}.{host}] {level}: cpu{host} machine check {number:#x}");
                lines[4] += 1;
            }
            5 => text += &format!("cron[{number}]: ({user}) CMD (run-parts /etc/cron.hourly)"),
            6 => text += &format!("kernel: eth0: link up, {number} Mbps, full duplex"),
            _ => {
                lines[3] += 1;
                text += &format!("mail: to=<{user}.{host}@example.org> from=<{user}@mail{host}.example.net>");
            }
        }
        text.push('\n');
    }
    (text.into_bytes(), lines)
}

impl Parse {
    fn new(bytes: usize, passes: usize) -> anyhow::Result<Parse> {
        let (log, lines) = log(bytes);
        let (text, known) = json::document(bytes);
        let nodes = vec![[0; 4]; known.nodes()];
        let strings = vec![0; text.len()];
        Ok(Parse {
            log,
            automaton: Automaton::new(&PATTERNS)?,
            lines,
            text,
            known,
            passes,
            found: [0; PATTERNS.len()],
            nodes,
            strings,
            tally: Tally::default(),
            used: None,
            seal: 0,
        })
    }
    fn sealed(&self) -> u64 {
        let (nodes, strings) = self.used.unwrap_or((0, 0));
        let mut sum = Checksum::new();
        self.found.iter().for_each(|count| sum.word(*count));
        self.tally.words().iter().for_each(|count| sum.word(*count));
        for [one, two, three, four] in &self.nodes[..nodes] {
            sum.word(u64::from(*one) << 32 | u64::from(*two));
            sum.word(u64::from(*three) << 32 | u64::from(*four));
        }
        let (words, rest) = self.strings[..strings].as_chunks::<8>();
        words.iter().for_each(|word| sum.word(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| sum.word(u64::from(*byte)));
        sum.value()
    }
}

impl Work for Parse {
    fn iterate(&mut self) {
        self.found = [0; PATTERNS.len()];
        self.tally = Tally::default();
        for _ in 0..self.passes {
            let (automaton, log, found) = (&self.automaton, &self.log, &mut self.found);
            with_widest_vectors(
                #[inline(always)]
                || automaton.search(log, found),
            );
            self.used = json::parse(&self.text, &mut self.nodes, &mut self.strings);
            if self.used.is_some() {
                self.tally.walk(&self.nodes, 0);
            }
        }
        self.seal = self.sealed();
    }
    fn units(&self) -> u64 {
        (self.passes * (self.log.len() + self.text.len())) as u64
    }
    fn verify(&mut self) -> Result<u64, String> {
        let passes = self.passes as u64;
        for (at, (found, lines)) in self.found.iter().zip(&self.lines).enumerate() {
            if *found != lines.wrapping_mul(passes) {
                return Err(format!("pattern {at} matches {found} lines, not {}", lines * passes));
            }
        }
        if self.tally.words() != self.known.words().map(|count| count.wrapping_mul(passes)) {
            return Err(format!(
                "the tree has {:?}, but the text has {:?} (times {passes})",
                self.tally, self.known
            ));
        }
        let sealed = self.sealed();
        if self.used.is_none() || sealed != self.seal {
            return Err("the tree has changed since it was parsed".into());
        }
        let mut text = Vec::with_capacity(self.text.len());
        json::write(&self.nodes, &self.strings, 0, &mut text);
        if text != self.text {
            return Err("the tree written out differs from the text".into());
        }
        Ok(sealed)
    }
    fn bytes(&self) -> u64 {
        let texts = self.log.len() + self.text.len() + self.strings.len();
        (texts + self.nodes.len() * size_of::<Node>()) as u64 + self.automaton.bytes()
    }
}
