//! `openssl speed`: ciphers and digests by block size, and operations of keys.

use crate::Format;
use crate::kit::form::{Form, Row, Said, Scale, param, point, tool};
use crate::kit::{Does, Run, line};

pub(crate) const FORM: Form = Form {
    format: Format("openssl speed result"),
    program: "openssl",
    remark: "openssl divides by the CPU time that it used, unless it was asked not to (-elapsed): a busy machine looks idle",
    documented: false,
    signs: &["type ", "+H:", "+F:", " bits"],
    marks: &["head", "key", "exchange", "machine"],
    lines: &[
        // They stand before all that a run prints of itself.
        line("asked", Does::Ends, r"Doing \S+.* for \d+s.*|\+DT:.*|Forked child \d+"),
        line("version", Does::Begins, r"version: (?<value>\S.*)"),
        line("options", Does::Once, r"options: ?(?<value>.*)"),
        line("compiler", Does::Once, r"compiler: (?<value>.*)"),
        line("capabilities", Does::Once, r"CPUINFO: (?<value>.*)"),
        line("head", Does::Adds, r"type +(?<value>\d+ bytes.*)"),
        line("head", Does::Within, r"(?:Got: )?\+H:(?<value>[\d:]+)(?: from \d+)?"),
        line("machine", Does::Adds, r"\+F:\d+:(?<name>[^:]+):(?<value>[\d.:]+)"),
        line("cipher", Does::Adds, r"(?<name>[A-Za-z][\w()/-]*) +(?<value>(?:[\d.]+k ?\s*)+)"),
        line(
            "key",
            Does::Adds,
            r"(?<name>(?:rsa|dsa) +\d+ bits|\d+ bits (?:ecdsa|EdDSA) \([\w-]+\)|\d+ bits SM2 \([\w-]+\)) +[\d.]+s +[\d.]+s +(?<sign>[\d.]+) +(?<verify>[\d.]+)",
        ),
        line(
            "exchange",
            Does::Adds,
            r"(?<name>\d+ bits ecdh \([\w-]+\)|\d+ bits ffdh) +[\d.]+s +(?<value>[\d.]+)",
        ),
        line(
            "rest",
            Does::Nothing,
            r"built on: .*|The 'numbers' are .*|\+R\d*:.*|Got: .*|sign +verify +.*|op +op/s.*",
        ),
    ],
    facts: &[("openssl", "version"), ("compiler flags", "compiler"), ("capabilities", "capabilities")],
    told: &["-seconds", "-bytes"],
    flags: &["speed"],
    settings: &[param("name", "name"), param("processes", "-multi")],
    figures: &[
        Row {
            wording: "{name}",
            unit: "GB/s",
            scale: Scale::By(1e-6),
            settings: &[point("bytes", "size")],
            across: ("head", "size"),
            ..Row::rate("cipher", "cpu.openssl-cipher", "bandwidth")
        },
        Row {
            wording: "{name}",
            unit: "GB/s",
            scale: Scale::By(1e-9),
            settings: &[point("bytes", "size")],
            across: ("head", "size"),
            ..Row::rate("machine", "cpu.openssl-cipher", "bandwidth")
        },
        Row { wording: "{name} signatures", ..Row::rate("key.sign", "cpu.openssl-key", "sign") },
        Row { wording: "{name} verifications", ..Row::rate("key.verify", "cpu.openssl-key", "verify") },
        Row { wording: "{name} exchanges", ..Row::rate("exchange", "cpu.openssl-key", "exchange") },
    ],
    headlines: &["bandwidth", "sign", "verify", "exchange"],
    check,
};

tool!(FORM, "results of `openssl speed`");

fn check(run: &Run, said: &mut Said) {
    if run.hit("cipher").is_some() && run.hit("head").is_none() {
        said.remark(
            "rates of ciphers stand there without the line that tells their block sizes, and are not read",
        );
    }
}
