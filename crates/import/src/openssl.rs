//! `openssl speed`: ciphers and digests by block size, and operations of keys.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, Setting, param, point, tool};
use crate::kit::lines::{adds, ahead, begins, ignored, once, separates, within};

pub(crate) const FORM: Form = Form {
    format: Format("openssl speed result"),
    program: "openssl",
    remark: "openssl divides by its own CPU time (unless -elapsed): other work does not lower the figures",
    documented: false,
    signs: &["type ", "+H:", "+F:", " bits", "keygens/s"],
    marks: &["head", "key", "exchange", "machine", "made-head"],
    lines: &[
        // They stand before all that a run prints of itself.
        separates("asked", r"Doing \S+.* for \d+s.*|\+DT:.*|Forked child \d+"),
        begins("version", r"version: (?<value>\S.*)"),
        // Before version 3 it says so in the words of `openssl version`.
        ahead("version", r"(?<value>(?:OpenSSL|LibreSSL|SSLeay) \d\S* +\d.*?)(?: \(Library: .*\))?"),
        once("options", r"options: ?(?<value>.*)"),
        once("compiler", r"compiler: (?<value>.*)"),
        once("capabilities", r"CPUINFO: (?<value>.*)"),
        once("head", r"type +(?<value>\d+ bytes.*)"),
        within("head", r"(?:Got: )?\+H:(?<value>[\d:]+)(?: from \d+)?"),
        adds("machine", r"\+F:\d+:(?<name>[^:]+):(?<value>[\d.:]+)"),
        adds(
            "cipher",
            r"(?<name>[A-Za-z][\w()/-]*(?: (?:cbc|ecb|cfb|ofb|ctr|ige|gcm|ede3))?) +(?<value>(?:[\d.]+k ?\s*)+)",
        ),
        // From version 3.5 on RSA encrypts and decrypts, too.
        adds(
            "key",
            r"(?<name>rsa +\d+ bits)(?: +[\d.]+s){4} +(?<sign>[\d.]+) +(?<verify>[\d.]+) +(?<encrypt>[\d.]+) +(?<decrypt>[\d.]+)",
        ),
        adds(
            "key",
            r"(?<name>(?:rsa|dsa) +\d+ bits|\d+ bits (?:ecdsa|EdDSA) \([\w-]+\)|\d+ bits SM2 \([\w-]+\)) +[\d.]+s +[\d.]+s +(?<sign>[\d.]+) +(?<verify>[\d.]+)",
        ),
        adds("exchange", r"(?<name>\d+ bits ecdh \([\w-]+\)|\d+ bits ffdh) +[\d.]+s +(?<value>[\d.]+)"),
        // Mechanisms that wrap keys, and signatures by any provider.
        adds("made-head", r"keygen +(?<second>encap|sign)s +(?<third>decap|verify)s? +keygens/s .*"),
        adds(
            "made",
            r"(?<name>[A-Za-z][\w-]*)(?: +[\d.]+s){3} +(?<keygen>[\d.]+) +(?<second>[\d.]+) +(?<third>[\d.]+)",
        ),
        ignored(r"built on:? .*|The 'numbers' are .*|\+R\d*:.*|Got: .*|sign +verify +.*|op +op/s.*"),
    ],
    facts: &[("openssl", "version"), ("compiler flags", "compiler"), ("capabilities", "capabilities")],
    printed: &["-seconds", "-bytes"],
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
        Row { wording: "{name} encryptions", ..Row::rate("key.encrypt", "cpu.openssl-key", "encrypt") },
        Row { wording: "{name} decryptions", ..Row::rate("key.decrypt", "cpu.openssl-key", "decrypt") },
        Row {
            wording: "{name} keys made",
            settings: MADE,
            ..Row::rate("made.keygen", "cpu.openssl-key", "keygen")
        },
        Row {
            wording: "{name} {made-head.second}",
            settings: MADE,
            ..Row::rate("made.second", "cpu.openssl-key", "{made-head.second}")
        },
        Row {
            wording: "{name} {made-head.third}",
            settings: MADE,
            ..Row::rate("made.third", "cpu.openssl-key", "{made-head.third}")
        },
        Row { wording: "{name} exchanges", ..Row::rate("exchange", "cpu.openssl-key", "exchange") },
    ],
    headlines: &["bandwidth", "sign", "verify", "exchange"],
    check,
};

/// What the keys were made for: `encap`, `sign`.
const MADE: &[Setting] = &[param("made_for", "made-head.second")];

tool!(FORM, "openssl speed");

fn check(run: &Run, notes: &mut Notes) {
    if run.hit("cipher").is_some() && run.hit("head").is_none() {
        notes.remark("rates of ciphers were left out: the line with their block sizes is missing");
    }
}
