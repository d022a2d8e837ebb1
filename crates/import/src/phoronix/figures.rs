//! What entries come to: each repetition that the file has is a measured value, and what has none
//! says why.

use std::collections::BTreeSet;

use model::{Better, Case, Params, Placement, Value, units};
use serde_json::Value as Json;

use super::FORMAT;
use super::read::{Composite, Entry, System, Test};
use crate::builder::{Builder, Meaning};
use crate::faults::{Faults, short};
use crate::{Imported, Keyed};

/// What is said of every result.
const GENERAL: &str = "a test profile sets the version, the flags and the threads of its tool: compare figures of one profile and version only; testers name their systems themselves";

/// Words of an argument or a description that are part of a key: more is no name.
const MAX_CHARS: usize = 200;

/// A mean may differ from the repetitions' by the digits that are printed.
const ROUNDING: f64 = 0.01;

/// Systems of one file that are read.
const MAX_SYSTEMS: usize = 200;

/// Repetitions that are kept of one entry.
const MAX_REPEATS: usize = 10_000;

/// The results of a file: one for each of its systems.
pub(super) fn imported(file: &Composite) -> Vec<Imported> {
    let entries = || file.results.iter().filter(|test| is_result(test)).flat_map(|test| &test.entries);
    let mut rest: BTreeSet<&str> = entries().map(|entry| entry.system.as_str()).collect();
    rest.remove("");
    let mut systems: Vec<System> = Vec::new();
    systems.extend(file.systems.iter().filter(|one| rest.remove(one.identifier.as_str())).cloned());
    // Those of which the file says no more come by their first entry.
    for name in entries().map(|entry| entry.system.as_str()) {
        if rest.remove(name) {
            systems.push(System { identifier: name.to_string(), ..System::default() });
        }
    }
    let mut remarks = said(file);
    if let Some(more @ 1..) = systems.len().checked_sub(MAX_SYSTEMS) {
        remarks.push(format!("{more} systems were left out: the file has too many"));
        systems.truncate(MAX_SYSTEMS);
    }
    let of = |system: &System| {
        let mut builder = Builder::new(FORMAT, &system.identifier.chars().take(100).collect::<String>());
        let mut faults = Faults::default();
        builder.remarks.push(GENERAL.to_string());
        builder.remarks.append(&mut remarks);
        machine(&mut builder, system);
        for test in file.results.iter().filter(|test| is_result(test)) {
            for entry in test.entries.iter().filter(|entry| entry.system == system.identifier) {
                figure(&mut builder, &mut faults, test, entry);
            }
        }
        if file.torn {
            faults.interrupted("the file ends in the middle");
        }
        Imported { findings: faults.findings(), ..builder.finish() }
    };
    let all = systems.iter().map(of);
    all.filter(|one| !one.figures.is_empty()).collect()
}

/// What is to be said of the file, once.
fn said(file: &Composite) -> Vec<String> {
    let mut remarks = Vec::new();
    let count = |is: fn(&Test) -> bool| file.results.iter().filter(|test| is(test)).count();
    for (count, what) in [
        (
            count(|test| test.identifier.is_empty()),
            "graphs of sensors, of installing or of several tests, which are not results",
        ),
        (
            count(|test| !test.identifier.is_empty() && test.mixed),
            "results that have an element twice, and were left out",
        ),
        (file.left_out, "entries that were left out, since the file has too many"),
    ] {
        if count > 0 {
            remarks.push(format!("{what}: {count}"));
        }
    }
    remarks
}

/// Whether a test gave it: what a monitor adds has no identifier.
fn is_result(test: &Test) -> bool {
    !test.identifier.is_empty() && !test.mixed
}

fn figure(builder: &mut Builder, faults: &mut Faults, test: &Test, entry: &Entry) {
    let json: Json = serde_json::from_str(&entry.json).unwrap_or_default();
    let printed =
        |name: &str| json.get(name).and_then(Json::as_str).map(short).filter(|text| !text.is_empty());
    let meaning = meaning(test, compiled(&json));
    let is_curve = entry.value.contains(',');
    let value = number(&entry.value);
    let repeats: Vec<f64> = entry.raw.split(':').take(MAX_REPEATS).filter_map(number).collect();
    let why = match value {
        None if is_curve => {
            Some(format!("it is a curve of {} values, not one figure", entry.value.split(',').count()))
        }
        None if entry.value.is_empty() => Some(match printed("error") {
            Some(error) => format!("the test failed: {error}"),
            None => "the test has no result and gives no reason".to_string(),
        }),
        None => Some(format!("{:?} is not a number", short(&entry.value))),
        Some(value) if value <= 0.0 => Some(format!(
            "it prints {}: too few digits were printed, or nothing was measured",
            short(&entry.value)
        )),
        Some(_) => None,
    };
    let Some(value) = value.filter(|_| why.is_none()) else {
        return builder.missing(meaning, why.unwrap_or_default());
    };
    let (least, most) =
        repeats.iter().fold((f64::INFINITY, 0.0f64), |(least, most), one| (least.min(*one), most.max(*one)));
    if !repeats.is_empty() && (value < least * (1.0 - ROUNDING) || value > most * (1.0 + ROUNDING)) {
        let text = format!("prints {}, but its repetitions are {}", short(&entry.value), short(&entry.raw));
        faults.disagree(&meaning.wording, text, "the file");
    }
    // A repetition of nothing is one that failed.
    let whole: Vec<f64> = repeats.iter().copied().filter(|one| *one > 0.0).collect();
    if whole.is_empty() {
        return builder.value(meaning, value);
    }
    whole.into_iter().for_each(|one| builder.value(meaning.clone(), one));
}

/// A plain decimal number.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|value: &f64| is_plain && value.is_finite())
}

/// The compiler's options, where the entry has them.
fn compiled(json: &Json) -> String {
    let options = json.get("compiler-options");
    let part = |name: &str| options.and_then(|all| all.get(name)).and_then(Json::as_str).unwrap_or_default();
    let words = [part("compiler"), part("compiler-options")];
    let words: Vec<&str> = words.into_iter().map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.is_empty() { String::new() } else { format!("compiled with {}", short(&words.join(" "))) }
}

/// A profile and its version: `pts/simdjson-2.0.1`. Those of `pts` need no more than their name.
fn profile(identifier: &str) -> (String, &str) {
    let (name, version) = match identifier.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => (name, version),
        _ => (identifier, ""),
    };
    let name = name.strip_prefix("pts/").unwrap_or(name);
    let plain =
        |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c.to_ascii_lowercase() } else { '.' };
    (name.chars().take(MAX_CHARS).map(plain).collect(), version)
}

/// What identifies a test; of a long text its start, and a number that only it has.
fn named(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…{:x}", &text[..end], model::fingerprint(text)),
        None => text.to_string(),
    }
}

/// The name of a metric by what it is given in: `MB/s` is `mb_s`.
fn metric(scale: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = scale.trim().chars().take(40).map(plain).collect();
    let name = name.trim_matches('_');
    if name.is_empty() { "result".to_string() } else { name.to_string() }
}

fn meaning(test: &Test, note: String) -> Meaning {
    let (name, version) = profile(&test.identifier);
    let settings = [
        ("profile", version),
        ("app", &test.version),
        ("test", &test.description),
        ("arguments", &test.arguments),
    ];
    let params: Params = settings
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_string(), Value::Text(named(text))))
        .collect();
    let case = Case { params, ..Case::new(format!("phoronix.{name}"), Placement::named("free")) };
    let words = [test.title.as_str(), &test.description].into_iter().filter(|word| !word.is_empty());
    Meaning {
        keyed: Keyed { case, point: Params::new(), metric: metric(&test.scale) },
        wording: short(&words.collect::<Vec<_>>().join(", ")),
        unit: match test.scale.as_str() {
            "Seconds" => "s".into(),
            scale => scale.chars().take(40).collect::<String>().into(),
        },
        better: match test.proportion.as_str() {
            "HIB" => Better::Higher,
            "LIB" => Better::Lower,
            _ => Better::Neither,
        },
        note,
    }
}

/// Facts of a system: `Processor: 2 x Some CPU @ 2.60GHz (12 Cores / 24 Threads),
/// Memory: 32GB`, `OS: Debian 12, Kernel: 6.1.0`.
fn machine(builder: &mut Builder, system: &System) {
    for (name, value) in fields(&system.hardware).into_iter().chain(fields(&system.software)) {
        match name {
            "Processor" => processor(builder, value),
            "Memory" => {
                builder.fact("memory", value);
                if let Some(gib) = gibibytes(value) {
                    builder.fact("memory_gib", &gib.to_string());
                }
            }
            "Motherboard" => builder.fact("product", value),
            "OS" => builder.fact("os", value),
            "Kernel" => builder.fact("kernel", value.split_whitespace().next().unwrap_or_default()),
            "Compiler" => builder.fact("compiler", value),
            "Disk" => builder.fact("storage", value),
            "File-System" => builder.fact("file_system", value),
            "System Layer" => builder.fact("virtualization", value),
            _ => {}
        }
    }
    let json: Json = serde_json::from_str(&system.json).unwrap_or_default();
    for (name, label) in [
        ("cpu-scaling-governor", "governor"),
        ("cpu-microcode", "microcode"),
        ("kernel-extra-details", "kernel_settings"),
        ("environment-variables", "environment"),
        ("compiler-configuration", "compiler_configuration"),
        ("security", "mitigations"),
    ] {
        builder.fact(label, json.get(name).and_then(Json::as_str).unwrap_or_default());
    }
    builder.fact("ran", &system.time.replacen(' ', "T", 1));
    builder.fact("phoronix-test-suite", &system.client);
}

/// `32GB`, `4 x 8192MB DDR4-2133MHz`: whole ones; `None` where it has another form.
fn gibibytes(text: &str) -> Option<u64> {
    let (modules, size) = text.split_once(" x ").unwrap_or(("1", text));
    let modules: u64 = modules.trim().parse().ok()?;
    let bytes = units::bytes(&size[..=size.find('B')?])?.checked_mul(modules)?;
    (bytes.is_multiple_of(1 << 30) && !text.contains('+')).then_some(bytes >> 30)
}

/// `Name: value, Name: value`: a value may have commas, a name begins with a capital.
fn fields(text: &str) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    let mut begin = 0;
    let ends = text.match_indices(", ").map(|(at, _)| at).chain([text.len()]);
    let is_begin = |rest: &str| {
        let name = rest.split(": ").next().unwrap_or_default();
        rest.contains(": ") && name.len() < 30 && name.starts_with(char::is_uppercase) && !name.contains(',')
    };
    for end in ends.take(1000) {
        let rest = text.get(end + 2..).unwrap_or_default();
        // The next name stands near.
        let near: String = rest.chars().take(40).collect();
        if end < text.len() && !is_begin(&near) {
            continue;
        }
        if let Some((name, value)) = text[begin..end].split_once(": ") {
            all.push((name, value));
        }
        begin = (end + 2).min(text.len());
    }
    all
}

/// `2 x Intel Xeon E5-2620 v2 @ 2.60GHz (12 Cores / 24 Threads)`.
fn processor(builder: &mut Builder, text: &str) {
    let (name, counts) = text.rsplit_once(" (").unwrap_or((text, ""));
    let (packages, name) = match name.split_once(" x ") {
        Some((count, name)) if count.parse::<u32>().is_ok() => (count, name),
        _ => ("", name),
    };
    builder.fact("cpu_model", name);
    builder.fact("packages", packages);
    let before = |word: &str| {
        let part = counts.split(['/', ')']).find(|part| part.contains(word))?;
        part.split_whitespace().next()?.parse::<u32>().ok()
    };
    for (label, count) in [("cores", before("Core")), ("cpus", before("Thread"))] {
        if let Some(count) = count {
            builder.fact(label, &count.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_in_modules_and_names_of_fields_begin_with_a_capital() {
        for (text, gib) in [
            ("32GB", Some(32)),
            ("4 x 8192MB DDR4-2133MHz", Some(32)),
            ("2 x 16 GB DDR5-5600MT/s", Some(32)),
            ("16 GB + 8 GB", None),
            ("500MB", None),
            ("unknown", None),
            ("", None),
        ] {
            assert_eq!(gibibytes(text), gib, "{text}");
        }
        assert_eq!(
            fields("Processor: A, B (2 Cores), File-System: ext4, Compiler: GCC 12, LLVM: none"),
            [
                ("Processor", "A, B (2 Cores)"),
                ("File-System", "ext4"),
                ("Compiler", "GCC 12"),
                ("LLVM", "none")
            ]
        );
        assert_eq!(profile("pts/compress-zstd-1.6.0"), ("compress-zstd".to_string(), "1.6.0"));
        let [one, other] = ["a", "b"].map(|end| named(&format!("{}{end}", "-x ".repeat(100))));
        assert!(one != other && one.chars().count() < 220 && named("-x") == "-x");
        assert_eq!(profile("local/a b"), ("local.a.b".to_string(), ""));
    }
}
