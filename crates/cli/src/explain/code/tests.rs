//! Whether every row shows its code, and whether Rust is cut where it ends.

use super::*;

/// Names of `kernels` that a text of Rust uses, found by plain search and not by our reader of
/// Rust: behind
/// `kernels::` and in the lists of `use kernels::{…}`.
fn kernels_named(file: &str, shown: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect()
    };
    let called = shown.split("kernels::").skip(1).map(word);
    let imports = file.split("\nuse kernels::{").skip(1).filter_map(|after| after.split('}').next());
    let imported = imports.flat_map(|list| list.split(',')).map(|name| word(name.trim()));
    let imported =
        imported.filter(|name| shown.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == name));
    // Names of modules are no definitions.
    called
        .chain(imported)
        .filter(|name| !["", "self", "rate", "work", "atomics", "widest"].contains(&name.as_str()))
        .collect()
}

fn defines(text: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "const", "type"]
        .iter()
        .any(|kind| [" ", "(", ":", "<", ";"].iter().any(|end| text.contains(&format!("{kind} {name}{end}"))))
}

#[test]
fn every_benchmark_shows_its_row_its_run_and_every_loop_that_it_names() {
    let sources = Sources::unpack().expect("sources that can be read");
    for bench in bench::all() {
        let text = of_benchmark_in(&sources, bench)
            .unwrap_or_else(|| panic!("{}: no row in {}", bench.id, bench.source));
        assert!(text.contains(&format!("\"{}\"", bench.title)), "{}", bench.id);
        assert!(text.contains("fn "), "{}: nothing is run", bench.id);
        let measures = ["sampler", "Sampler"].iter().any(|name| text.contains(name));
        assert!(measures, "{}: nothing is emitted", bench.id);
        for part in text.split("// ==== ").skip(1) {
            let path = part.split(' ').next().expect("a path");
            let file = sources.files.iter().find(|file| file.path == path).expect("a file");
            if file.module[0] == "kernels" {
                continue;
            }
            for name in kernels_named(&file.text, part) {
                assert!(defines(&text, &name), "{}: {path} names {name}, which is not shown", bench.id);
            }
        }
    }
}

#[test]
fn contents_stand_first_and_name_every_file_in_its_order() {
    let sources = Sources::unpack().expect("sources that can be read");
    for id in ["memory.bandwidth", "unixbench.context1", "cpu.clock"] {
        let text = of_benchmark_in(&sources, bench::find(id).expect("a row")).expect("code");
        let (contents, code) = text.split_once("\n// ==== ").expect("contents");
        let listed = contents.lines().filter_map(|line| line.strip_prefix("//   "));
        let listed: Vec<&str> = listed.filter_map(|line| line.split(' ').next()).collect();
        let shown: Vec<&str> = std::iter::once(code)
            .flat_map(|code| code.split("// ==== "))
            .filter_map(|part| part.split(' ').next())
            .collect();
        assert_eq!(listed, shown, "{id}");
        assert!(contents.contains(" lines): "), "{contents}");
    }
}

#[test]
fn known_benchmarks_show_the_instructions_that_they_time() {
    let instructions: &[(&str, &[&str])] = match cfg!(target_arch = "x86_64") {
        true => &[
            ("cpu.clock", &["\"add {sum}, {step}\"", "\"imul {product}, {factor}\""]),
            ("cpu.arithmetic", &["int_divide!(divide_64", "\"div {divisor\""]),
            ("syscall.getpid", &["\"syscall\""]),
            ("memory.latency", &["\"mov {at}, [{at}]\""]),
            ("memory.bandwidth", &["macro_rules! stream_loop", "vpaddq zmm"]),
            ("memory.core-to-core", &["fn run"]),
            ("lock.atomic", &["fetch_add"]),
            ("rate.triad", &["fn ", "COMPONENT"]),
            ("signal.protection-fault", &["asm!("]),
        ],
        false => &[("cpu.clock", &["asm!(", "fn add_chain"]), ("syscall.getpid", &["asm!("])],
    };
    let sources = Sources::unpack().expect("sources that can be read");
    for (id, wanted) in instructions {
        let text = of_benchmark_in(&sources, bench::find(id).expect("a row")).expect("code");
        for one in *wanted {
            assert!(text.contains(one), "{id} does not show {one}");
        }
    }
}

#[test]
fn a_row_shows_neither_other_rows_nor_what_every_row_shares() {
    let sources = Sources::unpack().expect("sources that can be read");
    let of = |id: &str| of_benchmark_in(&sources, bench::find(id).expect("a row")).expect("code");
    let clock = of("cpu.clock");
    assert!(clock.lines().count() < 250, "{clock}");
    assert!(!clock.contains("fn taken_branches") && !clock.contains("fn calibrate("), "{clock}");
    assert!(!of("unixbench.dhry2reg").contains("\"Whetstone"), "one row of a list");
    assert!(!of("rate.bwaves").contains("crates/kernels/src/rate/lbm"), "another component");
    let harness = of_harness().expect("code");
    assert!(harness.contains("pub fn calibrate(") && harness.contains("pub fn linearity("), "{harness}");
}

#[test]
fn items_end_where_rust_ends_them() {
    let text = "//! A file.\n\nuse a::{self, b::C, d as e};\n\n/// One; two }\n#[inline]\npub const fn f<T>(x: &[u8; 4]) -> char {\n    \
                let _ = (\"}\\\"\", '}', '\\'');\n    '{'\n}\n\nconst A: &[u8] = &[1,\n    2];\nimpl<T: B> super::X for Y<T> {\n}\n\
                stream!(\n    made, 1\n);\n";
    let (found, imports) = items::parse(text);
    let names: Vec<&str> = found.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["", "f", "A", "Y", "made"]);
    assert!(found[1].text.starts_with("/// One") && found[1].text.ends_with("'{'\n}"), "{}", found[1].text);
    assert_eq!(found[1].lines, 4..10);
    assert!(found[3].is_impl);
    let imports: Vec<String> =
        imports.iter().map(|one| format!("{}={}", one.name, one.path.join("::"))).collect();
    assert_eq!(imports, ["a=a", "C=a::b::C", "e=a::d"]);
    let paths: Vec<String> = paths("let x: kernels::Op = self.stop(go::<u8>(), a::B { field: 1 });")
        .iter()
        .map(|path| path.join("::"))
        .collect();
    assert_eq!(paths, ["kernels::Op", "self", "go", "u8", "a::B"]);
}
