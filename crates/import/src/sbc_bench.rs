//! sbc-bench by Thomas Kaiser: the figures of tinymembench, ramlat, 7-zip and OpenSSL in its
//! summary, and whether the host was throttled.

use crate::Format;
use crate::kit::Run;
use crate::kit::form::{Form, Notes, Row, Scale, Setting, param, point, tool};
use crate::kit::lines::{adds, begins, ignored, once};
use model::Better;

pub(crate) const FORM: Form = Form {
    format: Format("sbc-bench summary"),
    program: "sbc-bench.sh",
    remark: "sbc-bench sets the governor to performance, so its figures are not those of daily use; it builds some programs with the host's own compiler",
    documented: false,
    signs: &["sbc-bench v"],
    marks: &["begin"],
    lines: &[
        begins("begin", r"(?:Tested with )?sbc-bench v(?<value>[\d.]+)(?: on .*)?"),
        adds(
            "memory",
            r"\* (?:(?<cpu>cpu\d+)(?: \((?<core>[^()]+)\))?: )?memcpy: (?<copy>[\d.]+) MB/s(?:, memchr: (?<search>[\d.]+) MB/s)?, memset: (?<set>[\d.]+) MB/s",
        ),
        once("copied", r"memcpy: (?<value>[\d.]+) MB/s(?: \([\d.]+%\))?"),
        once("set", r"memset: (?<value>[\d.]+) MB/s(?: \([\d.]+%\))?"),
        adds(
            "latency",
            r"\* (?:(?<cpu>cpu\d+)(?: \((?<core>[^()]+)\))? )?(?<size>\d+)(?<size_unit>M) latency: (?<a>[\d.]+) (?<b>[\d.]+) (?<c>[\d.]+) (?<d>[\d.]+) (?<e>[\d.]+) (?<f>[\d.]+) (?<g>[\d.]+) (?<h>[\d.]+)",
        ),
        once(
            "zip",
            r"\* 7-zip MIPS \(3 consecutive runs\): (?<a>\d+), (?<b>\d+), (?<c>\d+) \((?<mean>[\d.]+) avg\)(?:, single-threaded: (?<alone>\d+))?",
        ),
        once("zip", r"7-zip total scores \(3 consecutive runs\): (?<a>\d+), ?(?<b>\d+), ?(?<c>\d+)(?:, .*)?"),
        adds(
            "cipher",
            r"\* `(?<cipher>aes-\d+-cbc) +(?<a>[\d.]+)k +(?<b>[\d.]+)k +(?<c>[\d.]+)k +(?<d>[\d.]+)k +(?<e>[\d.]+)k +(?<f>[\d.]+)k(?: \((?<core>[^()]+)\))?`",
        ),
        adds("throttled", r"(?<value>After(?: at [\d.]+°C)? \(throttled\)):"),
        adds("throttled", r"(?<value>ATTENTION: (?:.* )?[Tt]hrottling .*)"),
        once("kernel", r"\* Kernel (?<value>\S+) / CONFIG_HZ=\d+"),
        once("compiler", r"\* Compiler: (?<value>.+)"),
        ignored(r"(?:Before|After)(?: at [\d.]+°C)?:|It seems neither throttling nor .*|Memory performance:"),
    ],
    facts: &[("sbc-bench", "begin"), ("kernel", "kernel"), ("compiler", "compiler")],
    printed: &[],
    flags: &["-c"],
    settings: &[],
    figures: &[
        memory("memory.copy", "memcpy"),
        memory("memory.search", "memchr"),
        memory("memory.set", "memset"),
        memory("copied", "memcpy"),
        memory("set", "memset"),
        latency("latency.a", "latency_1x32"),
        latency("latency.b", "latency_2x32"),
        latency("latency.c", "latency_1x64"),
        latency("latency.d", "latency_2x64"),
        latency("latency.e", "latency_1xptr"),
        latency("latency.f", "latency_2xptr"),
        latency("latency.g", "latency_4xptr"),
        latency("latency.h", "latency_8xptr"),
        zip("zip.a", "mips"),
        zip("zip.b", "mips"),
        zip("zip.c", "mips"),
        zip("zip.alone", "mips_single_threaded"),
        cipher("cipher.a", "bandwidth_16"),
        cipher("cipher.b", "bandwidth_64"),
        cipher("cipher.c", "bandwidth_256"),
        cipher("cipher.d", "bandwidth_1024"),
        cipher("cipher.e", "bandwidth_8192"),
        cipher("cipher.f", "bandwidth_16384"),
    ],
    headlines: &["mips", "memcpy"],
    check,
};

tool!(FORM, "sbc-bench (summary)");

const CORE: &[Setting] = &[param("core", "core"), param("cpu", "cpu")];
const SIZED: &[Setting] = &[param("core", "core"), param("cpu", "cpu"), point("bytes", "latency.size")];
const CIPHER: &[Setting] = &[param("cipher", "cipher"), param("core", "core")];

/// Of tinymembench, in millions of bytes.
const fn memory(place: &'static str, metric: &'static str) -> Row {
    Row {
        unit: "GB/s",
        scale: Scale::By(1e-3),
        settings: CORE,
        ..Row::rate(place, "sbc-bench.tinymembench", metric)
    }
}

/// Of ramlat, by its columns: how many loads at once, and how wide.
const fn latency(place: &'static str, metric: &'static str) -> Row {
    Row { unit: "ns", better: Better::Lower, settings: SIZED, ..Row::rate(place, "sbc-bench.ramlat", metric) }
}

const fn zip(place: &'static str, metric: &'static str) -> Row {
    Row { unit: "MIPS", ..Row::rate(place, "sbc-bench.7-zip", metric) }
}

/// Thousands of bytes a second, of blocks of this size in bytes.
const fn cipher(place: &'static str, metric: &'static str) -> Row {
    Row {
        unit: "GB/s",
        scale: Scale::By(1e-6),
        settings: CIPHER,
        ..Row::rate(place, "sbc-bench.openssl", metric)
    }
}

fn check(run: &Run, notes: &mut Notes) {
    run.texts("throttled").for_each(|text| notes.faults.throttled(text));
    if run.hit("cipher").is_some() {
        notes.remark(
            "OpenSSL figures are of one CPU each; lines of two cores of one kind are passes of one figure",
        );
    }
    if let Some(zip) = run.hit("zip")
        && let (Some(mean), Some(a), Some(b), Some(c)) =
            (zip.number("mean"), zip.number("a"), zip.number("b"), zip.number("c"))
    {
        // It rounds the mean to tens.
        let own = (a.value + b.value + c.value) / 3.0;
        if (own - mean.value).abs() > 0.02 * own {
            notes.disagree(
                "7-zip MIPS",
                &format!("it says {} on average; its runs give {own:.0}", mean.value),
            );
        }
    }
}
