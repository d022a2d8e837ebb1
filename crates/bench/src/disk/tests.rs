//! The rows of disks, rehearsed on the disk that holds the program.

use std::path::{Path, PathBuf};

use super::cases::{POINTS, Shape, shapes};
use super::*;
use crate::placement::Placements;
use crate::{Candidate, Scope, all, rehearsal};
use machine::disk::Block;
use machine::{Directory, Disk, Machine};
use model::vocabulary::{BenchId, disk as ids};
use model::{Case, CpuSet, Form, Samples};
use sys::scratch;

const MIB: u64 = 1 << 20;

/// A temporary directory may well be in memory.
fn disk() -> PathBuf {
    let program = std::env::current_exe().expect("a program");
    program.parent().expect("a folder").to_path_buf()
}

fn on(id: BenchId, depth: Depth, filesystem: &str, free_bytes: u64) -> Vec<Candidate> {
    let mut machine = Machine::default();
    machine.cpus.online = (0..2).collect::<CpuSet>();
    machine.directory = Some(Directory {
        path: "/nowhere".into(),
        filesystem: filesystem.into(),
        free_bytes: Some(free_bytes),
        ..Directory::default()
    });
    of_machine(id, depth, &machine)
}

fn of_machine(id: BenchId, depth: Depth, machine: &Machine) -> Vec<Candidate> {
    let placements = Placements::of(machine);
    let windows = depth.windows();
    let scope = Scope { machine, placements: &placements, depth, memory_bytes: 8 << 30, windows, all: false };
    let row = crate::find(&id).expect("a row");
    (row.cases)(row, &scope)
}

fn rows() -> impl Iterator<Item = BenchId> {
    all().map(|row| row.id).filter(|id| id.starts_with("disk."))
}

#[test]
fn files_fit_the_room_and_the_profiles() {
    for depth in [Depth::Quick, Depth::Standard, Depth::Full] {
        for id in rows() {
            for candidate in on(id, depth, "ext4", 3000 * MIB) {
                assert!(
                    candidate.unmet.is_none() || candidate.case.params.contains_key(ids::param::ENGINE),
                    "{}: {:?}",
                    candidate.case.key(),
                    candidate.unmet
                );
                let bytes = candidate
                    .case
                    .inputs
                    .get(super::cases::BYTES)
                    .and_then(|text| text.parse::<u64>().ok())
                    .unwrap_or(0);
                let jobs = candidate.case.placement.seats.len() as u64;
                assert!(bytes * jobs <= 300 * MIB, "{}", candidate.case.key());
            }
            let short = on(id, depth, "ext4", 40 * MIB);
            assert!(short.iter().all(|candidate| candidate.unmet.is_some()), "{id} has no room");
            let memory = on(id, depth, "tmpfs", 1 << 40);
            assert!(
                memory.iter().all(|candidate| candidate
                    .unmet
                    .as_ref()
                    .is_some_and(|why| why.contains("memory") || why.contains("polled"))),
                "{id}"
            );
        }
    }
    let seconds = |depth: Depth| -> f64 {
        let own = all().filter(|row| row.id.starts_with("disk.") && row.from <= depth);
        let passes = f64::from(depth.passes_min());
        let candidates = own.flat_map(|row| on(row.id, depth, "ext4", 1 << 40));
        candidates
            .filter(|candidate| candidate.unmet.is_none())
            .map(|candidate| candidate.seconds * passes)
            .sum()
    };
    let (quick, standard) = (seconds(Depth::Quick), seconds(Depth::Standard));
    assert!(quick < 10.0 && standard < 100.0, "{quick} s and {standard} s");
}

#[test]
fn points_are_read_as_they_were_written() {
    let full = on(ids::RANDOM, Depth::Full, "ext4", 1 << 40);
    let read = full.iter().find(|candidate| candidate.unmet.is_none()).expect("a case");
    let all = shapes(&read.case);
    assert!(all.contains(&Shape { block: 4096, depth: 128 }) && all.len() == 18);
    assert!(all.iter().all(|shape| shape.block * u64::from(shape.depth) <= 64 * MIB));
    let mut case = read.case.clone();
    case.inputs.insert(POINTS.into(), "4096x1,broken,512x2".into());
    assert_eq!(shapes(&case), [Shape { block: 4096, depth: 1 }, Shape { block: 512, depth: 2 }]);
}

#[test]
fn a_raw_device_is_read_unless_more_is_allowed() {
    for id in rows() {
        for candidate in on(id, Depth::Standard, "ext4", 1 << 40) {
            let reads = candidate.case.params.get(ids::param::OP).and_then(|op| op.text()) == Some("read");
            assert_eq!(not_on_a_device(&candidate.case, false).is_none(), reads, "{}", candidate.case.key());
            assert_eq!(not_on_a_device(&candidate.case, true).is_none(), id != ids::METADATA);
        }
    }
}

#[test]
fn a_device_without_discard_is_not_trimmed() {
    let trimmed = |most: Option<u64>| {
        let mut machine = Machine::default();
        machine.cpus.online = (0..2).collect::<CpuSet>();
        let blocks = [
            Block { name: "vdb1".into(), ..Block::default() },
            Block { name: "vdb".into(), discard_max_bytes: most, ..Block::default() },
        ];
        machine.disk =
            Some(Disk { path: "/dev/vdb1".into(), raw: true, stack: blocks.into(), ..Disk::default() });
        let unmet = of_machine(ids::TRIM, Depth::Full, &machine).remove(0).unmet;
        unmet.map(|why| why.contains("no discard"))
    };
    assert_eq!((trimmed(Some(0)), trimmed(Some(1 << 30)), trimmed(None)), (Some(true), None, None));
}

/// A case made small, with its files in `directory`; nothing where this host has no such case.
fn small(id: BenchId, directory: &Path) -> Vec<Case> {
    let depth = crate::find(&id).expect("a row").from.max(Depth::Standard);
    let mut cases = rehearsal::cases(id, depth);
    for case in &mut cases {
        case.inputs.insert("dir".into(), directory.to_string_lossy().into_owned());
        case.inputs.insert(super::cases::BYTES.into(), (8 * MIB).to_string());
        if id == ids::TRIM {
            case.inputs.insert(super::cases::BYTES.into(), (32 * MIB).to_string());
        }
        if id == ids::SUSTAINED {
            case.inputs.insert(SECONDS.into(), "0.2".into());
        }
        if let Some(points) = case.inputs.get_mut(POINTS).filter(|points| points.len() > 40) {
            *points = "65536x1,65536x4".into();
        }
    }
    cases
}

fn value(samples: &[Samples], name: &str, form: Form) -> Option<f64> {
    let own = samples.iter().find(|one| one.metrics.iter().any(|metric| metric == name))?;
    own.values(form).first().copied()
}

#[test]
fn every_row_measures_and_leaves_nothing() {
    let directory = tempfile::tempdir_in(disk()).expect("a folder");
    if let Some(why) = scratch::direct_refused(directory.path()) {
        return println!("skipped: {} refuses O_DIRECT ({why})", directory.path().display());
    }
    for id in rows() {
        let cases = small(id, directory.path());
        assert!(!cases.is_empty(), "{id}");
        for case in cases {
            let samples = rehearsal::visit_all(&case);
            let of = |name: &str| samples.iter().any(|one| one.metrics.iter().any(|metric| metric == name));
            if id != ids::VERIFY {
                assert!(of(&ids::metric::LATENCY_MAX), "{}", case.key());
            }
            if let Some(cpu) = value(&samples, &ids::metric::CPU_PER_IO, Form::Value) {
                assert!(cpu > 0.0, "{}: {cpu}", case.key());
            }
            let direct = case.params.get(ids::param::CACHE).and_then(|cache| cache.text()) == Some("direct");
            if let Some(share) = value(&samples, &ids::metric::DEVICE_SHARE, Form::Value).filter(|_| direct) {
                // Other work may use the device too, but none of our bytes may be missing.
                assert!(share > 0.5, "{}: {share}", case.key());
            }
        }
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn failures_are_told_in_words_and_leave_nothing() {
    let directory = tempfile::tempdir_in(disk()).expect("a folder");
    let mut case = small(ids::SEQUENTIAL, directory.path()).remove(0);
    case.inputs.insert(super::cases::BYTES.into(), (1u64 << 60).to_string());
    let (_, reason) = rehearsal::visit(&case);
    assert!(reason.as_ref().is_some_and(|reason| reason.text().contains("more than a tenth")), "{reason:?}");
    case.inputs.insert(DEVICE.into(), directory.path().to_string_lossy().into_owned());
    let (_, reason) = rehearsal::visit(&case);
    assert!(reason.is_some_and(|reason| !reason.text().is_empty()));
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn jobs_have_their_own_files_and_their_work_is_added_up() {
    let directory = tempfile::tempdir_in(disk()).expect("a folder");
    if scratch::direct_refused(directory.path()).is_some() {
        return println!("skipped: O_DIRECT is refused here");
    }
    let mut case = small(ids::RANDOM, directory.path()).remove(0);
    case.inputs.insert(POINTS.into(), "4096x2".into());
    let seat = case.placement.seats[0].clone();
    case.placement.seats.push(seat);
    let samples = rehearsal::visit_all(&case);
    let rate = value(&samples, &ids::metric::IOPS, IOPS.form).expect("a rate");
    let own =
        samples.iter().find(|one| one.metrics.iter().any(|name| name == "latency_max")).expect("latencies");
    assert!(rate > 0.0 && own.histograms[0].total() > 1);
}
