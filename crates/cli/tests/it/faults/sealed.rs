//! Bytes that changed after they were written: damage that is named, never another number.

use std::fs;
use std::path::{Path, PathBuf};

use model::Run;
use model::run_file::{parse, summary, unpack};
use tempfile::TempDir;

use crate::runs::{end, on_file, pretended, read, run_file, run_into, unsealed};

fn whole(only: &str) -> (TempDir, Vec<u8>) {
    let dir = tempfile::tempdir().expect("a folder");
    end(&mut run_into(dir.path(), &pretended(only))).expect(0);
    let bytes = fs::read(run_file(dir.path())).expect("readable");
    (dir, bytes)
}

/// All that a damaged run still says stands in the whole one as well, and something is missing and
/// named.
#[track_caller]
fn is_less(found: &Run, whole: &Run, what: &str) {
    assert!(found.header == whole.header, "{what}: another header");
    assert!(!found.damage.is_empty(), "{what}: unnoticed");
    assert!(found.visits.iter().all(|visit| whole.visits.contains(visit)), "{what}: another visit");
    assert!(found.time_lines.iter().all(|line| whole.time_lines.contains(line)), "{what}: another time line");
    assert!(found.events.iter().all(|event| whole.events.contains(event)), "{what}: another event");
    assert!(found.summary.is_none() || found.summary == whole.summary, "{what}: another summary");
    let count = |run: &Run| {
        run.visits.len() + run.time_lines.len() + run.events.len() + usize::from(run.summary.is_some())
    };
    assert!(count(found) < count(whole), "{what}: damage, and nothing is missing");
}

#[test]
fn a_flipped_digit_is_damage_wherever_it_is() {
    let (_dir, bytes) = whole("selftest.steady,selftest.drift");
    let run = parse(bytes.as_slice()).expect("a run");
    assert!(run.damage.is_empty() && run.summary.is_some() && run.visits.len() >= 10, "{:?}", run.damage);
    let header = bytes.iter().position(|byte| *byte == b'\n').expect("lines");
    let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
    let behind = digits.partition_point(|at| *at < header);
    let mut random = fastrand::Rng::with_seed(28);
    let mut headers = 0;
    for round in 0..400 {
        // The header is most of a short run.
        let of = if round % 4 == 0 { 0..behind } else { behind..digits.len() };
        let at = digits[random.usize(of)];
        let mut changed = bytes.clone();
        while changed[at] == bytes[at] {
            changed[at] = b'0' + random.u8(0..10);
        }
        let what = format!("byte {at}: {} became {}", bytes[at] as char, changed[at] as char);
        match parse(changed.as_slice()) {
            Ok(found) => is_less(&found, &run, &what),
            Err(error) => {
                let words = format!("{error:#}");
                assert!(at < header && words.contains("its header is damaged"), "{what}: {words}");
                headers += 1;
            }
        }
    }
    assert_eq!(headers, 100);
}

#[test]
fn any_flipped_bit_is_damage_packed_or_not() {
    let (dir, bytes) = whole("selftest.steady");
    let run = parse(bytes.as_slice()).expect("a run");
    let mut random = fastrand::Rng::with_seed(29);
    for round in 0..300 {
        let (at, bit) = (random.usize(0..bytes.len() - 1), random.u32(0..8));
        let mut changed = bytes.clone();
        changed[at] ^= 1 << bit;
        let found = match round % 3 {
            0 => {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                std::io::Write::write_all(&mut packed, &changed).expect("memory");
                unpack(packed.finish().expect("memory").as_slice())
            }
            _ => parse(changed.as_slice()),
        };
        if let Ok(found) = found {
            is_less(&found, &run, &format!("bit {bit} of byte {at}"));
        }
    }
    // What only looks at the last line.
    let path = dir.path().join("changed.assay.jsonl");
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    for _ in 0..100 {
        let (at, bit) = (random.usize(last..bytes.len() - 1), random.u32(0..8));
        let mut changed = bytes.clone();
        changed[at] ^= 1 << bit;
        fs::write(&path, &changed).expect("written");
        let told = summary(&mut model::run_file::open(&path).expect("there"));
        assert!(told.is_err(), "bit {bit} of byte {at} of the summary went unnoticed");
    }
}

#[test]
fn what_is_damaged_is_told_in_words() {
    let (dir, bytes) = whole("selftest.steady");
    let text = String::from_utf8(bytes).expect("UTF-8");
    let path = dir.path().join("changed.assay.jsonl");
    let change = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).expect("written");
    };
    change("{\"visit\":{\"order\":1,", "{\"visit\":{\"order\":999,");
    on_file("diagnose", &path, "").sane();
    let damage = &read(&path).damage;
    assert!(damage.len() == 1 && damage[0].contains("its checksum does not match"), "{damage:?}");
    // A line that lost its checksum, or stands in another's place.
    change("{\"visit\":", "{\"event\":{\"at_ms\":0,\"kind\":\"x\",\"text\":\"planted\"}}\n{\"visit\":");
    let run = read(&path);
    assert!(run.damage.len() == 1 && run.damage[0].contains("it has no checksum"), "{:?}", run.damage);
    assert!(run.events.iter().all(|event| event.text != "planted"));
    change("\"ticks_per_ns\":1.0", "\"ticks_per_ns\":7.0");
    on_file("diagnose", &path, "").expect(3).says(&["its header is damaged", "checksum", "another copy"]);
    on_file("report", &path, "").expect(3).says(&["its header is damaged"]);
    let visit = text.find("{\"visit\":").expect("a visit");
    let (before, after) = text.split_at(visit);
    fs::write(&path, format!("{before}{}", after.replacen("crc32", "crc33", 1))).expect("written");
    let damage = &read(&path).damage;
    assert!(damage.len() == 1 && damage[0].contains("it has no checksum"), "{damage:?}");
}

#[test]
fn files_of_the_first_versions_are_read_as_before() {
    let (dir, bytes) = whole("selftest.steady");
    let sealed = parse(bytes.as_slice()).expect("a run");
    let text = unsealed(&run_file(dir.path()));
    assert!(!text.contains("crc32"));
    let mut old = parse(text.as_bytes()).expect("a run");
    assert!(old == sealed, "without checksums it is another run");
    old = parse(text.replacen("\"schema\":2", "\"schema\":1", 1).as_bytes()).expect("a run");
    assert!(old.damage.is_empty() && old.visits == sealed.visits && old.summary == sealed.summary);
    // The ends of lines may have become Windows'.
    let windows = String::from_utf8(bytes).expect("UTF-8").replace('\n', "\r\n");
    assert!(parse(windows.as_bytes()).expect("a run") == sealed);
}

/// A run of which one visit's line was changed after it was written.
fn with_a_changed_line() -> (TempDir, PathBuf) {
    let (dir, bytes) = whole("selftest.steady");
    let text = String::from_utf8(bytes).expect("text");
    let file = dir.path().join("damaged.jsonl");
    let mut changed = false;
    let lines = text.split_inclusive('\n').map(|line| match line.starts_with("{\"visit\"") && !changed {
        true => {
            changed = true;
            line.replacen("\"pass\":0", "\"pass\":1", 1)
        }
        false => line.to_string(),
    });
    fs::write(&file, lines.collect::<String>()).expect("written");
    (dir, file)
}

#[test]
fn whatever_is_made_of_a_damaged_run_its_damage_is_told() {
    const TOLD: &str = "its checksum does not match";
    let (dir, file) = with_a_changed_line();
    let whole = run_file(dir.path()).display().to_string();
    for format in ["html", "json", "markdown", "csv", "lmbench"] {
        on_file("report", &file, &format!("--format {format}")).expect(0).says(&[TOLD]);
    }
    on_file("diagnose", &file, "--json").expect(0).says(&[TOLD]);
    let beside = format!("--format markdown --beside {}", file.display());
    let ended = on_file("report", Path::new(&whole), &beside);
    ended.expect(0).says(&[TOLD]);
    assert!(ended.out.contains("is damaged: line"), "{}", ended.out);
    let study = on_file("utilization", Path::new("--study"), &file.display().to_string());
    study.expect(3).says(&[TOLD, "is damaged and has no yield left"]);
    // Of a whole run, nothing is reported as left out.
    let ended = on_file("report", Path::new(&whole), "--format csv");
    assert!(!ended.expect(0).err.contains("left out"), "{}", ended.err);
}
