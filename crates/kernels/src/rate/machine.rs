//! A small language: a compiler to bytecode and a stack machine, which runs programs with known
//! results.
//!
//! Literature: P. J. Landin, "The Mechanical Evaluation of Expressions" (1964: a stack machine); V.
//! R. Pratt, "Top Down Operator Precedence" (1973); M. A. Ertl and D. Gregg, "The Structure and
//! Performance of Efficient Interpreters" (2003). In character like SPEC's perlbench: one indirect
//! branch per bytecode, which decides the speed.

use super::{Character, Checksum, Component, Work, ids};

mod compiler;
#[cfg(test)]
mod tests;
mod vm;
use compiler::compile;
use vm::{Machine, Op};

pub(super) const COMPONENT: Component = Component {
    id: ids::MACHINE,
    title: "Bytecode interpreter",
    about: "Runs seven small programs (prime sieve, queens, recursion, Collatz, palindromes, heapsort) on a \
            stack-based bytecode interpreter.",
    reading: "Bytecodes a second; more is better. Each is an indirect branch and a chain through the stack in L1. \
              Clock, indirect-branch prediction, Spectre mitigations and store forwarding decide.",
    method: "The programs are compiled from source by the benchmark's own compiler. Every result must be the known \
             one, and the number of bytecodes that of the first run. The data stays in the caches at any footprint.",
    source: file!(),
    character: Character::Branchy,
    units: "bytecodes",
    reference: 798.0,
    expected_checksum: 0x70c4_695c_b087_b251,
    make: |_| Ok(Box::new(Programs::new(PROGRAMS)?)),
};

/// Programs, the arguments of their `main`, and their results.
const PROGRAMS: &[(&str, i64, i64)] = &[
    (
        "fn main(n) { i = 2; count = 0;
           while i < n { if m[i] == 0 { count = count + 1; j = i * i; while j < n { m[j] = 1; j = j + i; } } i = i + 1; }
           return count; }",
        30_000,
        3245,
    ),
    (
        "fn place(n, row, columns, left, right) {
           if row == n { return 1; }
           found = 0; free = ((1 << n) - 1) & ((columns | left | right) ^ (0 - 1));
           while free { bit = free & (0 - free); free = free ^ bit;
             found = found + place(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1); }
           return found; }
         fn main(n) { return place(n, 0, 0, 0, 0); }",
        10,
        724,
    ),
    ("fn fib(n) { if n < 2 { return n; } return fib(n - 1) + fib(n - 2); } fn main(n) { return fib(n); }", 29, 514_229),
    (
        "fn ack(m, n) { if m == 0 { return n + 1; } if n == 0 { return ack(m - 1, 1); }
           return ack(m - 1, ack(m, n - 1)); }
         fn main(n) { return ack(3, n); }",
        7,
        1021,
    ),
    (
        "fn main(n) { best = 0; at = 0; i = 1;
           while i < n { x = i; steps = 0;
             while x > 1 { if x & 1 { x = 3 * x + 1; } else { x = x / 2; } steps = steps + 1; }
             if steps > best { best = steps; at = i; } i = i + 1; }
           return at * 1000 + best; }",
        100_000,
        77_031_350,
    ),
    (
        "fn digits(x) { n = 0; while x { m[n] = x % 10; x = x / 10; n = n + 1; } return n; }
         fn same(n) { i = 0; while i < n - 1 - i { if m[i] != m[n - 1 - i] { return 0; } i = i + 1; } return 1; }
         fn main(n) { i = 0; count = 0; while i < n { count = count + same(digits(i)); i = i + 1; } return count; }",
        100_000,
        1099,
    ),
    (
        "fn sink(at, n) { x = m[at]; child = 2 * at + 1;
           while child < n {
             if child + 1 < n { if m[child] < m[child + 1] { child = child + 1; } }
             if m[child] <= x { m[at] = x; return 0; }
             m[at] = m[child]; at = child; child = 2 * at + 1; }
           m[at] = x; return 0; }
         fn main(n) { i = 0; x = 1; while i < n { x = x * 16807 % 2147483647; m[i] = x; i = i + 1; }
           i = n / 2; while i > 0 { i = i - 1; sink(i, n); }
           i = n; while i > 1 { i = i - 1; x = m[0]; m[0] = m[i]; m[i] = x; sink(0, i); }
           i = 1; count = 0; while i < n { if m[i - 1] < m[i] { count = count + 1; } i = i + 1; }
           return count; }",
        30_000,
        29_999,
    ),
];

struct Programs {
    codes: Vec<(Vec<Op>, i64, i64)>,
    machine: Machine,
    /// Result and number of bytecodes of each program, and that number in the first run.
    results: Vec<(i64, u64)>,
    first: Vec<u64>,
}

impl Programs {
    fn new(programs: &[(&str, i64, i64)]) -> anyhow::Result<Programs> {
        let mut codes = Vec::new();
        for &(text, argument, result) in programs {
            codes.push((compile(text)?, argument, result));
        }
        let results = vec![(0, 0); codes.len()];
        let mut all = Programs { codes, machine: Machine::new(), results, first: Vec::new() };
        all.iterate();
        all.first = all.results.iter().map(|result| result.1).collect();
        Ok(all)
    }
}

impl Work for Programs {
    fn iterate(&mut self) {
        let machine = &mut self.machine;
        for ((code, argument, _), result) in self.codes.iter().zip(&mut self.results) {
            // Without wide vectors, which an interpreter cannot use: with them it was 20 % slower.
            *result = machine.run(code, *argument);
        }
    }
    fn units(&self) -> u64 {
        self.first.iter().sum()
    }
    fn verify(&mut self) -> Result<u64, String> {
        let mut sum = Checksum::new();
        for (at, ((found, steps), first)) in self.results.iter().zip(&self.first).enumerate() {
            let known = self.codes[at].2;
            if *found != known {
                return Err(format!("program {at} returns {found}, not {known}"));
            }
            if steps != first {
                return Err(format!("program {at} runs {steps} bytecodes, not {first} as in the first run"));
            }
            sum.word(*found as u64);
            sum.word(*steps);
        }
        Ok(sum.value())
    }
    fn bytes(&self) -> u64 {
        self.machine.bytes()
            + self.codes.iter().map(|code| (code.0.len() * size_of::<Op>()) as u64).sum::<u64>()
    }
}
