//! The arithmetic of SMT capacity against published figures and hand-made cases.

use super::super::bootstrap::Resampling;
use super::super::noise::normal;
use super::*;

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9 * (1.0 + expected.abs())
}

/// A row of the specification's worked example, or `None` (said on stderr) where the file is not
/// beside this clone.
fn figure(item: &str) -> Option<f64> {
    let path = testkit::root().join("../shared/spec/data/smt_study.csv");
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("skipped: smt_study.csv is not beside this clone");
        return None;
    };
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let row = reader.records().flatten().find(|row| &row[0] == item).expect("the row");
    Some(row[1].parse().expect("a number"))
}

/// Six requests, six tenths of the core, four more and not fourteen. That holds where a second
/// thread yields nothing (1) and the siblings are never busy together; the same readings say
/// something else where they are.
#[test]
fn the_worked_example() {
    let Some(serves) = figure("example: requests per second one core serves") else { return };
    let of = |item: &str| figure(item).expect("the file was there");
    let each = of("example: requests on each sibling");
    let share = of("example: shown CPU% per sibling") / 100.0;
    assert!(near(each * of("example: CPU seconds per request"), share));
    let load = 2.0 * each;

    let never_together = CoreUse::exactly(&[2.0 * share, 0.0]).expect("shares");
    let told = used(&[never_together], Yield::exactly(1.0)).expect("a core");
    assert!(near(told.naive, share) && near(told.used.mid, of("example: true core use") / 100.0));
    assert!(near(told.used.lo, told.used.hi));
    let further = told.further(load);
    assert!(near(further.naive.expect("busy"), of("example: naive further requests")), "{further:?}");
    let real = further.real.expect("busy");
    assert!(near(real.mid, of("example: true further requests")) && near(real.lo, real.hi), "{further:?}");
    assert!(near(load + real.mid, serves));
    let growth = (told.growth_naive().expect("busy"), told.growth().expect("busy").mid);
    assert_eq!((format!("{:.2}", growth.0), format!("{:.2}", growth.1)), ("3.33".into(), "1.67".into()));

    // 30 % and 30 % of independent siblings: both are busy 9 % of the time, and the core is used 51
    // %.
    let independent = CoreUse::exactly(&[2.0 * (share - 0.09), 0.09]).expect("shares");
    assert!(near(used(&[independent], Yield::exactly(1.0)).expect("a core").used.mid, 0.51));
    // Always together: 30 % of the time both are busy, the core is idle else, and CPU% is right.
    let together = CoreUse::exactly(&[0.0, share]).expect("shares");
    let told = used(&[together], Yield::exactly(1.0)).expect("a core");
    assert!(near(told.used.mid, 0.3) && told.growth_naive().is_some_and(|g| near(g, 10.0 / 3.0)));
    // The shares alone give the range between, with independence in the middle.
    let unknown = used(&[CoreUse::of_shares(&[share, share]).expect("shares")], Yield::exactly(1.0));
    let range = unknown.expect("a core").used;
    assert!(near(range.lo, 0.3) && near(range.mid, 0.51) && near(range.hi, 0.6), "{range:?}");
}

/// Methods, section 5: half load, spread first, yields 1.15, 1.3, 1.6; and 8 % of turbo.
#[test]
fn half_load_by_yield() {
    for (s, used_percent, overstated, with_turbo) in
        [(1.15, 87.0, 1.74, 94.0), (1.3, 77.0, 1.54, 83.0), (1.6, 62.0, 1.25, 68.0)]
    {
        let half = [CoreUse::exactly(&[1.0, 0.0]).expect("shares"); 4];
        let told = used(&half, Yield::exactly(s)).expect("cores");
        assert!((100.0 * told.used.mid - used_percent).abs() <= 0.5, "{told:?}");
        let growth = told.growth().expect("busy").mid;
        assert!((told.growth_naive().expect("busy") / growth - overstated).abs() < 0.006);
        assert!(near(spread_first(0.5, s, 2, 1.0), told.used.mid));
        assert!((100.0 * spread_first(0.5, s, 2, 1.08) - with_turbo).abs() <= 0.55);
        let clocked = half.map(|core| core.at_clock(Bounds::exactly(1.08)));
        assert!(near(
            used(&clocked, Yield::exactly(s)).expect("cores").used.mid,
            spread_first(0.5, s, 2, 1.08)
        ));
    }
    for s in [1.0, 1.3, 2.0] {
        assert!(near(spread_first(1.0, s, 2, 1.1), 1.0) && near(spread_first(0.25, s, 2, 1.0), 0.5 / s));
        assert!(near(spread_first(0.75, s, 2, 1.0), 1.0 / s + 0.5 * (1.0 - 1.0 / s)));
    }
    assert!(near(pack_first(0.3, 1.0), 0.3) && near(pack_first(1.0, 1.1), 1.0) && pack_first(0.5, 1.1) > 0.5);
    // No siblings: a straight line; POWER7's four threads: one of them is 62.5 % of the core.
    assert!(near(spread_first(0.4, 1.3, 1, 1.0), 0.4) && near(spread_first(0.25, 1.6, 4, 1.0), 0.625));
}

#[test]
fn bounds_of_overlap() {
    for (a, b) in [(0.3, 0.3), (0.8, 0.7), (0.0, 0.4), (1.0, 1.0), (0.95, 0.2)] {
        let core = CoreUse::of_shares(&[a, b]).expect("shares");
        let t2 = core.t2();
        assert!(near(t2.lo, f64::max(0.0, a + b - 1.0)) && near(t2.hi, a.min(b)), "{t2:?}");
        assert!(near(t2.mid, a * b) && near(core.busy, a + b), "{t2:?}");
        // At a yield of 2 siblings are as good as cores, whatever the overlap; and more overlap
        // means less use below it.
        let at = |s: f64| used(&[core], Yield::exactly(s)).expect("a core").used;
        assert!(near(at(2.0).lo, (a + b) / 2.0) && near(at(2.0).hi, (a + b) / 2.0));
        assert!(near(at(1.3).hi, core.any.hi / 1.3 + t2.lo * (1.0 - 1.0 / 1.3)));
        // Above 2 it is the other way round; the bounds still are bounds.
        assert!(at(2.5).lo <= at(2.5).mid && at(2.5).mid <= at(2.5).hi);
    }
    // Siblings that take turns every 20 ms: windows of that length know it, the whole time does
    // not.
    let turns = |first: f64| Window { seconds: 0.02, busy: vec![first, 1.0 - first] };
    let windows: Vec<Window> = (0..50).map(|i| turns(f64::from(i % 2))).collect();
    let told = CoreUse::of_windows(&windows, Counting::Exactly).expect("windows");
    assert!(near(told.any.lo, 1.0) && near(told.t2().hi, 0.0));
    let blind = CoreUse::of_shares(&[0.5, 0.5]).expect("shares");
    assert!(near(blind.any.lo, 0.5) && near(blind.any.hi, 1.0) && near(blind.any.mid, 0.75));
    // Windows in whole ticks: never tighter than the truth, and no wider than the whole time
    // reports.
    let counted = CoreUse::of_windows(&windows, Counting::Ticks(0.01)).expect("windows");
    assert!(counted.any.lo <= 1.0 && counted.any.hi >= 1.0 - 1e-9 && counted.error > 0.0);
}

/// Siblings that change every second: windows of 20 ms in ticks of 10 ms still show most of it.
#[test]
fn counted_windows_are_tighter_than_the_whole() {
    let window = |i: usize| {
        let first = if (i / 50).is_multiple_of(2) { 1.0 } else { 0.0 };
        Window { seconds: 0.02, busy: vec![first, 1.0 - first] }
    };
    let windows: Vec<Window> = (0..1000).map(window).collect();
    let told = CoreUse::of_windows(&windows, Counting::Ticks(0.01)).expect("windows");
    assert!(told.any.lo > 0.9 && told.any.hi >= 1.0 - 1e-9, "{told:?}");
}

#[test]
fn more_than_two_siblings() {
    // Four threads, all of the time one of them: POWER7's 62.5 % at a yield of 1.6.
    let one = CoreUse::exactly(&[1.0, 0.0, 0.0, 0.0]).expect("shares");
    assert!(near(used(&[one], Yield::exactly(1.6)).expect("a core").used.mid, 0.625));
    let all = CoreUse::exactly(&[0.0, 0.0, 0.0, 1.0]).expect("shares");
    assert!(near(used(&[all], Yield::exactly(1.6)).expect("a core").used.mid, 1.0));
    // The general form is the sum over k busy threads of their time and yield.
    let shares = [0.2, 0.1, 0.3, 0.25];
    let work: f64 = shares.iter().zip(1..).map(|(t, k)| t * Yield::of(1.6, k, 4)).sum();
    let core = CoreUse::exactly(&shares).expect("shares");
    assert!(near(used(&[core], Yield::exactly(1.6)).expect("a core").used.mid, work / 1.6));
    assert_eq!((Yield::of(1.6, 0, 4), Yield::of(1.6, 4, 4), Yield::of(1.6, 1, 1)), (0.0, 1.6, 1.0));
    // Cores without siblings: U is u, whatever the yield.
    let alone = CoreUse::of_shares(&[0.42]).expect("a share");
    let told = used(&[alone], USUAL).expect("a core");
    assert!(near(told.used.lo, 0.42) && near(told.used.hi, 0.42) && near(told.naive, 0.42));
}

#[test]
fn nonsense_is_none_and_idle_has_no_growth() {
    assert_eq!(CoreUse::exactly(&[0.9, 0.2]), None);
    assert_eq!(CoreUse::exactly(&[-0.1, 0.2]), None);
    assert_eq!(CoreUse::exactly(&[]), None);
    assert_eq!(CoreUse::of_shares(&[]), None);
    assert_eq!(CoreUse::of_shares(&[f64::NAN, 0.1]), None);
    assert_eq!(CoreUse::of_windows(&[], Counting::Exactly), None);
    let of_no_time = Window { seconds: 0.0, busy: vec![0.1, 0.1] };
    assert_eq!(CoreUse::of_windows(&[of_no_time], Counting::Exactly), None);
    assert_eq!(used(&[], USUAL), None);
    let idle = used(&[CoreUse::of_shares(&[0.0, 0.0]).expect("shares")], USUAL).expect("a core");
    assert_eq!((idle.growth_naive(), idle.growth()), (None, None));
    assert_eq!(idle.further(1.0), Further { naive: None, real: None });
    assert_eq!(
        (Yield::between(1.6, 1.1), Yield::between(0.0, 1.0), Yield::between(1.0, 9.0)),
        (None, None, None)
    );
    let kinds = [Yield::exactly(1.1), Yield { lo: 0.9, mid: 1.0, hi: 1.05 }, Yield::exactly(1.9)];
    assert_eq!(Yield::over_kinds(&kinds), Some(Yield { lo: 0.9, mid: 1.1, hi: 1.9 }));
    assert_eq!(Yield::over_kinds(&[]), None);
}

/// A yield below 1: a core with one sibling busy does more than with both, and can do no more.
#[test]
fn siblings_that_hinder_each_other() {
    for shares in [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]] {
        let core = CoreUse::exactly(&shares).expect("shares");
        let told = used(&[core], Yield { lo: 0.5, mid: 0.8, hi: 0.9 }).expect("a core");
        assert!(near(told.used.mid, 1.0) && near(told.used.hi, 1.0), "{told:?}");
        assert!(told.growth().is_some_and(|growth| near(growth.mid, 1.0)));
    }
    // The curve of such a core: up to one thread in a straight line, then nothing is left.
    let shares: Vec<f64> = (1..=7).map(|k| f64::from(k) / 14.0).chain([1.0]).collect();
    let curve = curve_of(&shares, 0.001, |u| if u <= 0.5 { 200.0 * u } else { 80.0 });
    let all: Vec<Bounds> =
        (1..=20).map(|k| curve.sentence(f64::from(k) / 20.5).expect("inside").used()).collect();
    assert!(all.windows(2).all(|pair| pair[0].mid <= pair[1].mid && pair[0].lo <= pair[1].lo), "{all:?}");
    assert!(all.iter().all(|used| used.hi <= 1.0 + 1e-9) && all[19] == Bounds::ONE, "{all:?}");
    assert!(curve.falls_to().is_some_and(|last| near(last.share, 1.0)));
    assert_eq!(curve_of(&shares, 0.001, |u| 7.0 * u).falls_to(), None);
}

#[test]
fn yields_of_passes() {
    let mut rng = fastrand::Rng::with_seed(5);
    let pass = |rng: &mut fastrand::Rng| {
        let noise = |rng: &mut fastrand::Rng| (0.01 * normal(rng)).exp();
        let level = noise(rng);
        YieldPass {
            one: 1e6 * level * noise(rng),
            both: 1.35e6 * 0.95 * level * noise(rng),
            clock_one: Some(3.8),
            clock_both: Some(3.8 * 0.95),
            all: Some((16.0 * 1.3e6 * 0.9 * level, 16)),
        }
    };
    let passes: Vec<YieldPass> = (0..12).map(|_| pass(&mut rng)).collect();
    let found = estimate_yield(&passes).expect("passes");
    let is = |found: Estimated, s: f64| {
        (found.value.mid / s - 1.0).abs() < 0.02 && found.value.lo < found.value.hi
    };
    assert!(is(found.throughput, 1.35 * 0.95) && found.throughput.method == Method::Ranks, "{found:?}");
    assert!(is(found.clock_free.expect("clocks"), 1.35), "{found:?}");
    assert!(is(found.all_cores.expect("all"), 1.3 * 0.9), "{found:?}");
    assert!(found.clock.is_some_and(|clock| near(clock.mid, 0.95)));

    let few = estimate_yield(&passes[..3]).expect("passes");
    assert_eq!((few.throughput.method, few.throughput.passes), (Method::Student, 3));
    assert!(few.throughput.value.hi - few.throughput.value.lo > 0.0);
    let single = estimate_yield(&passes[..1]).expect("a pass");
    assert_eq!(single.throughput.method, Method::None);
    let blank = YieldPass { one: 0.0, both: 1.0, ..YieldPass::default() };
    assert_eq!(estimate_yield(&[blank]), None);
    let unclocked =
        passes.iter().map(|pass| YieldPass { clock_both: None, all: None, ..*pass }).collect::<Vec<_>>();
    let found = estimate_yield(&unclocked).expect("passes");
    assert_eq!((found.clock_free, found.all_cores, found.clock), (None, None, None));
}

/// A curve of passes with a little noise, of levels at these shares.
fn curve_of(shares: &[f64], noise: f64, work: impl Fn(f64) -> f64) -> Curve {
    let mut rng = fastrand::Rng::with_seed(11);
    let point = |share: &f64| {
        let pass = |_| Pass { share: *share, performance: work(*share) * (noise * normal(&mut rng)).exp() };
        Point::of((0..9).map(pass).collect())
    };
    Curve::of(shares.iter().filter_map(point).collect()).expect("levels")
}

#[test]
fn curves_of_smt_bend_and_others_do_not() {
    let shares: Vec<f64> = (1..=10).map(|k| f64::from(k) / 10.0).collect();
    let bent = curve_of(&shares, 0.003, |u| 2e6 * spread_first(u, 1.25, 2, 1.0));
    let plan = Resampling { resamples: 999, ..Resampling::new(0.95, 1) };
    let gap = bent.gap(plan).expect("levels");
    // At half load 1/1.25 is done: 0.3 more than CPU% says.
    assert!((gap.gap - 0.3).abs() < 0.01 && near(gap.at, 0.5), "{gap:?}");
    let interval = gap.interval.expect("nine passes");
    assert!(interval.contains(gap.gap) && interval.half_width() < 0.02, "{gap:?}");
    assert!((bent.reaches(0.8).expect("reached") - 0.5).abs() < 0.03);
    assert!((bent.reaches(0.9).expect("reached") - 0.75).abs() < 0.04);
    let per_percent = bent.per_percent();
    assert!(per_percent[0].1 > 1.5 * per_percent[9].1, "{per_percent:?}");
    let capacity = bent.capacity(0.8);
    assert!(
        capacity.full && (capacity.most / 2e6 - 1.0).abs() < 0.01 && near(capacity.kept, 0.8 * capacity.most)
    );
    assert!(capacity.interval.is_some_and(|interval| interval.contains(capacity.most)));
    assert_eq!(bent.performance(1.1), None);
    assert!((bent.performance(0.05).expect("inside") / (2e6 * 0.08) - 1.0).abs() < 0.02);

    let straight = curve_of(&shares, 0.0, |u| 7.0 * u);
    let gap = straight.gap(plan).expect("levels");
    assert!(gap.gap.abs() < 1e-9 && straight.reaches(0.8).is_some_and(|u| near(u, 0.8)), "{gap:?}");
    assert!(straight.attainment().iter().all(|(u, a)| near(*u, *a)));
    // A study that ended early does not know the capacity.
    assert!(!curve_of(&[0.1, 0.4], 0.0, |u| u).capacity(0.8).full);
    assert_eq!(Curve::of(vec![]), None);
    assert_eq!(Point::of(vec![Pass { share: f64::NAN, performance: 1.0 }]), None);
}

/// Idle time is read a moment before or after the work: a full host shows a little more than
/// 100 %, and any other rubbish of a file is no reason to end.
#[test]
fn cpu_percent_above_100_is_no_end_of_the_program() {
    for beyond in [1.0, 1.00016, 1.3, 7.0] {
        let shares: Vec<f64> = (1..=7).map(|k| beyond * f64::from(k) / 7.0).collect();
        for noise in [0.0, 0.02] {
            let curve = curve_of(&shares, noise, |u| 5.0 * u);
            for margin in [0.1, 0.8, 0.999, 1.0] {
                let capacity = curve.capacity(margin);
                let (at, between) = (capacity.kept_at, capacity.kept_at_interval);
                let (at, between) = (at.expect("reached"), between.expect("nine passes"));
                assert!(
                    between.contains(at) && between.high <= at.max(1.0),
                    "{beyond} {margin}: {capacity:?}"
                );
            }
            for step in 1..=20 {
                let says = beyond * f64::from(step) / 20.0;
                let used = curve.sentence(says.min(shares[6])).expect("inside").used();
                assert!(used.lo <= used.mid && used.mid <= used.hi, "{beyond} {says}: {used:?}");
            }
        }
    }
    let nan = Bounds::ordered(f64::NAN, f64::NAN, f64::NAN);
    assert!(nan.lo.is_nan() && nan.mid.is_nan() && nan.hi.is_nan());
    assert_eq!(Bounds::ordered(3.0, 9.0, 1.0), Bounds { lo: 1.0, mid: 3.0, hi: 3.0 });
}

#[test]
fn where_two_machines_cross() {
    let shares: Vec<f64> = (1..=10).map(|k| f64::from(k) / 10.0).collect();
    let smt = curve_of(&shares, 0.002, |u| 100.0 * spread_first(u, 1.25, 2, 1.0));
    // Ahead from where 120 u exceeds the bent curve: 80 + 40 (u - 1/2) = 120 u at u = 3/4.
    let plain = curve_of(&shares, 0.002, |u| 120.0 * u);
    let found = crossing(&smt, &plain).expect("common levels");
    assert_eq!(
        (found.at.len(), found.second_ahead_first, found.second_ahead_last),
        (1, Some(false), Some(true))
    );
    assert!(
        (found.at[0].share - 0.75).abs() < 0.02 && (found.at[0].performance - 90.0).abs() < 2.0,
        "{found:?}"
    );
    assert!(found.at[0].sure && found.at[0].second_ahead);
    // Scaled to a lower clock it is never ahead.
    let found = crossing(&smt, &plain.scaled(0.8)).expect("common levels");
    assert_eq!(
        (found.at.len(), found.second_ahead_first, found.second_ahead_last),
        (0, Some(false), Some(false))
    );
    // Curves that touch at a level, and equal ones.
    let level = |performance: [f64; 3]| {
        let points = [0.2, 0.5, 0.9].into_iter().zip(performance);
        Curve::of(points.filter_map(|(u, w)| Point::known(u, w, None)).collect()).expect("levels")
    };
    let found = crossing(&level([1.0, 2.0, 3.0]), &level([0.5, 2.0, 4.0])).expect("common levels");
    assert!(found.at.len() == 1 && near(found.at[0].share, 0.5) && !found.at[0].sure, "{found:?}");
    let equal = crossing(&level([1.0, 2.0, 3.0]), &level([1.0, 2.0, 3.0])).expect("common levels");
    assert_eq!((equal.at.len(), equal.second_ahead_first), (0, None));
    let far = Curve::of(vec![Point::known(0.95, 1.0, None).expect("a point")]).expect("a level");
    assert_eq!(crossing(&level([1.0, 2.0, 3.0]), &far), None);
}

#[test]
fn a_turbo_falls_with_the_share_of_busy_cores() {
    let core = |share: f64| CoreUse::exactly(&[share]).expect("a share");
    let mut cores = [core(0.25), core(0.75)];
    clocked_up_to(&mut cores, 1.4);
    for core in &cores {
        assert!(
            near(core.clock.lo, 1.0) && near(core.clock.mid, 1.2) && near(core.clock.hi, 1.4),
            "{core:?}"
        );
    }
    // A host that is full clocks no higher.
    let mut full = [core(1.0)];
    clocked_up_to(&mut full, 1.4);
    assert!(near(full[0].clock.mid, 1.0));
}
