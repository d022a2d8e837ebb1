//! The table of benchmarks holds what it promises.

use std::collections::BTreeSet;

use super::*;
use model::CpuSet;

fn scope_of(machine: &Machine, test: impl FnOnce(&Scope)) {
    let placements = Placements::of(machine);
    test(&Scope::new(machine, &placements, Depth::Full, 8 << 30));
}

#[test]
fn ids_are_unique_and_well_formed() {
    let ids: BTreeSet<&str> = all().map(|bench| bench.id.as_str()).collect();
    assert_eq!(ids.len(), all().count());
    for id in ids {
        let (group, name) = id.split_once('.').expect("group.name");
        // Digits where the field's own name has them (`shell8`).
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let word = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(inner);
        assert!(word(group) && word(name), "{id}");
    }
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(". ")
}

#[test]
fn every_row_explains_itself() {
    for bench in all() {
        for text in [bench.title, bench.about, bench.reading] {
            assert!(text.trim() == text && !text.is_empty(), "{}: {text:?}", bench.id);
        }
        assert!(bench.about.len() > 80 && bench.reading.len() > 80, "{} says too little", bench.id);
        assert!(sentences(bench.about).count() <= 3, "{}: {}", bench.id, bench.about);
        assert!(
            bench.about.chars().count() + bench.reading.chars().count() <= 760,
            "{} says too much",
            bench.id
        );
        for sentence in [bench.about, bench.reading, bench.method].into_iter().flat_map(sentences) {
            assert!(sentence.split_whitespace().count() <= 22, "{}: {sentence}", bench.id);
        }
        assert!(testkit::root().join(bench.source).is_file(), "{}", bench.source);
        assert!(bench.metrics.iter().any(|metric| metric.headline), "{} has no headline metric", bench.id);
        let names: BTreeSet<_> = bench.metrics.iter().map(|metric| &metric.name).collect();
        assert_eq!(names.len(), bench.metrics.len(), "{} names a metric twice", bench.id);
    }
}

#[test]
fn cases_use_declared_parameters_within_their_range() {
    let mut machine = Machine::default();
    machine.cpus.online = (0..4).collect::<CpuSet>();
    scope_of(&machine, |scope| {
        for bench in all() {
            let candidates = (bench.cases)(bench, scope);
            assert!(!candidates.is_empty(), "{} has no case at all", bench.id);
            let keys: BTreeSet<String> = candidates.iter().map(|candidate| candidate.case.key()).collect();
            assert_eq!(keys.len(), candidates.len(), "{} has two cases of one key", bench.id);
            for candidate in candidates {
                assert_eq!(candidate.case.bench, bench.id);
                if candidate.unmet.is_some() {
                    continue;
                }
                let points = (bench.points)(&candidate.case);
                assert!(!points.is_empty(), "{} has no point", candidate.case.key());
                for params in points.iter().chain([&candidate.case.params]) {
                    for (name, value) in params {
                        let declared = bench.params.iter().find(|param| param.name == *name);
                        assert!(
                            declared.is_some_and(|param| param.range.holds(value)),
                            "{}: {name}={value}",
                            bench.id
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn a_machine_of_which_nothing_is_known_has_reasons_not_panics() {
    scope_of(&Machine::default(), |scope| {
        for bench in all().filter(|bench| !bench.hidden) {
            for candidate in (bench.cases)(bench, scope) {
                assert!(
                    candidate.unmet.is_some()
                        || !candidate.case.placement.cpus().is_empty()
                        || candidate.case.placement.name == "free"
                );
            }
        }
    });
}

#[test]
fn a_case_is_narrowed_to_the_points_that_are_wanted_or_not_at_all() {
    let mut machine = Machine::default();
    machine.cpus.online = (0..4).collect::<CpuSet>();
    scope_of(&machine, |scope| {
        let mut narrowable = BTreeSet::new();
        for candidate in all().flat_map(|bench| (bench.cases)(bench, scope)) {
            let case = &candidate.case;
            let points = (find(&case.bench).expect("a row").points)(case);
            assert_eq!(narrowed(case, &[]), None);
            assert_eq!(narrowed(case, &points), None, "{}", case.key());
            for point in points.iter().take(3).filter(|_| points.len() > 1) {
                let Some(alone) = narrowed(case, std::slice::from_ref(point)) else { continue };
                assert_eq!(
                    (find(&case.bench).expect("a row").points)(&alone),
                    std::slice::from_ref(point),
                    "{}",
                    case.key()
                );
                assert_eq!(alone.key(), case.key());
                narrowable.insert(case.bench.to_string());
            }
        }
        assert!(
            narrowable.contains("memory.latency") && narrowable.contains("memory.bandwidth"),
            "{narrowable:?}"
        );
    });
}
