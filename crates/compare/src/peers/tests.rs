//! Fleets made by hand: who are peers, who falls behind, and what is said of them.

use super::fleet::{HostResult, Series};
use super::*;
use fastrand::Rng;
use model::{Better, Severity, SummaryFinding};
use stats::noise::{Noise, normal};

const BENCHES: [(&str, &str, Better); 9] = [
    ("cpu.integer@one-cpu#time", "ns", Better::Lower),
    ("cpu.float@one-cpu#time", "ns", Better::Lower),
    ("memory.bandwidth@one-cpu?op=read#bandwidth", "GB/s", Better::Higher),
    ("memory.bandwidth@one-cpu?op=copy#bandwidth", "GB/s", Better::Higher),
    ("memory.bandwidth@node#bandwidth", "GB/s", Better::Higher),
    ("memory.latency@one-cpu#latency", "ns", Better::Lower),
    ("syscall.getpid@one-cpu#latency", "ns", Better::Lower),
    ("ipc.pipe@free#latency", "ns", Better::Lower),
    ("process.fork@free#latency", "us", Better::Lower),
];

/// A host whose values are within 1 % of those of all; `slow` scales those of a part.
fn host(number: usize, rng: &mut Rng, slow: (&str, f64)) -> HostResult {
    let noise = Noise::Lognormal { cv: 0.01 };
    let own = (0.005 * normal(rng)).exp();
    let series = BENCHES.iter().map(|(key, unit, better)| {
        let slower = if key.starts_with(slow.0) && !slow.0.is_empty() { slow.1 } else { 1.0 };
        let turn = if *better == Better::Higher { slower } else { 1.0 / slower };
        let median = 100.0 * turn * own * noise.draw(rng);
        Series {
            key: key.to_string(),
            unit: unit.to_string(),
            better: Some(*better),
            headline: true,
            median,
            ci95: Some([median * 0.995, median * 1.005]),
        }
    });
    HostResult {
        host: format!("db{number:03}"),
        file: format!("runs/db{number:03}.assay.jsonl"),
        started: "2026-11-01T00:00:00Z".to_string(),
        boot_id: Some(format!("boot-{number}")),
        make_up: make_up(&[]),
        series: series.collect(),
        ..HostResult::default()
    }
}

fn make_up(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let usual = [
        ("cpu_model", "Xeon Gold 6130"),
        ("packages", "2"),
        ("cores", "32"),
        ("cpus", "64"),
        ("memory_gib", "125"),
        ("dimms_mib", "16384 0 16384 0 16384 0 16384 0"),
        ("kernel", "6.1.0"),
        ("transparent_huge_pages", "madvise"),
        ("core_clock", "2800 MHz"),
    ];
    let mut all: Vec<(String, String)> =
        usual.map(|(label, value)| (label.to_string(), value.to_string())).to_vec();
    for (label, value) in changes {
        all.retain(|(known, _)| known != label);
        all.extend((!value.is_empty()).then(|| (label.to_string(), value.to_string())));
    }
    all
}

fn fleet(results: impl IntoIterator<Item = HostResult>) -> Peers {
    let mut fleet = Fleet::default();
    results.into_iter().for_each(|result| fleet.add(result));
    judge(fleet)
}

fn healthy(hosts: usize, seed: u64) -> Vec<HostResult> {
    let mut rng = Rng::with_seed(seed);
    (0..hosts).map(|number| host(number, &mut rng, ("", 1.0))).collect()
}

fn slow(peers: &Peers) -> Vec<&model::Finding> {
    peers.findings.iter().filter(|finding| finding.rule == SLOW).collect()
}

/// The story's host, at 55.63 % of its peers, beside healthy ones: it alone, in memory, and what
/// differs is named.
#[test]
fn the_host_with_the_wrong_slot_stands_out() {
    let mut rng = Rng::with_seed(7);
    let mut results = healthy(49, 1);
    let mut wrong = host(77, &mut rng, ("memory.bandwidth", 0.5563));
    wrong.make_up =
        make_up(&[("dimms_mib", "16384 16384 16384 0 16384 0 0 0"), ("transparent_huge_pages", "never")]);
    results.insert(20, wrong);
    let peers = fleet(results);
    assert_eq!(peers.groups.len(), 2);
    let found = slow(&peers);
    assert_eq!(found.len(), 1, "{:?}", peers.findings);
    let one = found[0];
    assert!(one.headline.starts_with("Host db077 is 4"), "{}", one.headline);
    assert!(one.headline.ends_with("behind its 49 peers in memory bandwidth"), "{}", one.headline);
    assert_eq!(one.severity, Severity::Problem);
    assert!(
        one.cause.contains("no peer of its own make") && one.cause.contains("Likely cause: dimms mib"),
        "{}",
        one.cause
    );
    assert!(one.facts.iter().any(|fact| fact.label == "differs: transparent_huge_pages"), "{:?}", one.facts);
    assert_eq!(one.confirm, "assay run --only memory.bandwidth");
    assert!(one.advice.contains("db000 and db001"), "{}", one.advice);
    let drift: Vec<_> = peers.findings.iter().filter(|finding| finding.rule == DRIFT).collect();
    assert_eq!(drift.len(), 1);
    assert!(drift[0].headline.starts_with("Host db077 is like the 49 hosts of group A except for dimms mib"));
    let standing =
        &peers.standings[peers.fleet.hosts.iter().position(|host| host.name == "db077").expect("it")];
    let score = standing.worst().expect("a part");
    assert!((score.ratio / 0.5563 - 1.0).abs() < 0.03, "{}", score.ratio);
}

/// A host under several names is one, whatever order its results come in.
#[test]
fn one_machine_under_many_names_counts_once() {
    let mut rng = Rng::with_seed(3);
    let named = |name: &str, result: &HostResult| HostResult {
        host: name.to_string(),
        file: format!("{name}.assay.jsonl"),
        ..result.clone()
    };
    let one = host(1, &mut rng, ("", 1.0));
    let copies = (0..9)
        .map(|at| HostResult { boot_id: Some(format!("boot {at}")), ..named(&format!("copy{at}"), &one) });
    let boots = (0..9).map(|at| HostResult {
        boot_id: Some("one boot".to_string()),
        ..named(&format!("pod{at}"), &host(at, &mut rng, ("", 1.0)))
    });
    for mut results in [copies.collect::<Vec<_>>(), boots.collect()] {
        let peers = fleet(results.clone());
        let kept: Vec<&str> = peers.fleet.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!((kept.len(), peers.fleet.left_out.len(), peers.judged()), (1, 8, 0), "{kept:?}");
        results.reverse();
        let again = fleet(results);
        assert_eq!(again.fleet.hosts[0].name, kept[0]);
    }
}

/// Inside a group the hardware is the same: the suspects are the settings of the slow host.
#[test]
fn inside_a_group_settings_are_the_suspects() {
    let mut rng = Rng::with_seed(7);
    let mut results = healthy(12, 2);
    let mut held_back = host(99, &mut rng, ("cpu", 0.6));
    held_back.make_up = make_up(&[("core_clock", "1700 MHz")]);
    results.push(held_back);
    let peers = fleet(results);
    assert_eq!(peers.groups.len(), 1);
    let found = slow(&peers);
    assert_eq!(found.len(), 1, "{:?}", peers.findings);
    assert!(
        found[0].headline.contains("Host db099 is ")
            && found[0].headline.ends_with("behind its 12 peers in cpu")
    );
    assert!(found[0].cause.contains("Likely cause: core clock is \"1700 MHz\""), "{}", found[0].cause);
}

/// A case that asks for huge pages has them, whatever the kernel gives by itself.
#[test]
fn a_difference_is_a_cause_only_where_it_acts() {
    for (pages, lead) in [
        ("+huge-pages", "Also differs: transparent huge pages"),
        ("", "Likely cause: transparent huge pages"),
    ] {
        let mut rng = Rng::with_seed(7);
        let mut results = healthy(12, 2);
        let mut slow_one = host(99, &mut rng, ("memory", 0.6));
        slow_one.make_up = make_up(&[("transparent_huge_pages", "always")]);
        results.push(slow_one);
        for series in results.iter_mut().flat_map(|result| &mut result.series) {
            series.key = series.key.replace("@one-cpu", &format!("@one-cpu{pages}"));
            series.key = series.key.replace("@node", &format!("@node{pages}"));
        }
        let peers = fleet(results);
        let found = slow(&peers);
        assert_eq!(found.len(), 1, "{:?}", peers.findings);
        assert!(found[0].cause.contains(lead), "{pages}: {}", found[0].cause);
    }
}

#[test]
fn labels_and_cut_summaries_are_kept_apart_from_the_make_up() {
    let mut results = healthy(9, 3);
    for (number, result) in results.iter_mut().enumerate() {
        result.labels = [("rack".to_string(), format!("r{number}"))].into();
        result.left_out = u32::from(number == 0);
    }
    let peers = fleet(results);
    assert_eq!((peers.groups.len(), peers.fleet.cut), (1, 1));
    assert_eq!(peers.fleet.hosts[3].labels.get("rack"), Some("r3"));
}

#[test]
fn healthy_fleets_stay_quiet() {
    for (seed, hosts) in [(3, 8), (4, 10), (5, 20), (6, 50), (7, 200)] {
        let peers = fleet(healthy(hosts, seed));
        assert!(peers.findings.is_empty(), "{hosts}: {:?}", peers.findings);
        assert_eq!(peers.judged(), hosts);
    }
}

#[test]
fn fewer_than_eight_are_not_judged() {
    let mut results = healthy(6, 8);
    results.push(host(99, &mut Rng::with_seed(1), ("memory", 0.3)));
    let peers = fleet(results);
    assert_eq!(peers.judged(), 0);
    assert!(peers.findings.is_empty(), "{:?}", peers.findings);
    assert_eq!((peers.groups.len(), peers.groups[0].is_judged()), (1, false));
    let none = fleet([]);
    assert!(none.groups.is_empty() && none.findings.is_empty());
}

#[test]
fn of_one_host_the_newest_counts_and_the_others_are_its_history() {
    let mut rng = Rng::with_seed(9);
    let mut results = healthy(20, 9);
    for (day, factor) in [("03", 0.6), ("01", 1.0), ("02", 0.62)] {
        let mut one = host(50, &mut rng, ("memory.bandwidth", factor));
        one.started = format!("2026-11-{day}T00:00:00Z");
        one.file = format!("runs/db050-{day}.assay.jsonl");
        results.push(one.clone());
        // The same run from another folder.
        one.file = format!("copy/{}", one.file);
        results.push(one);
    }
    let peers = fleet(results);
    assert_eq!((peers.fleet.hosts.len(), peers.fleet.twice), (21, 3));
    let own = peers.fleet.hosts.iter().position(|host| host.name == "db050").expect("it");
    assert_eq!(peers.fleet.hosts[own].started, "2026-11-03T00:00:00Z");
    let older: Vec<&str> = peers.fleet.hosts[own].earlier.iter().map(|one| one.started.as_str()).collect();
    assert_eq!(older, ["2026-11-02T00:00:00Z", "2026-11-01T00:00:00Z"]);
    let history = &peers.standings[own].history;
    assert!(history[0].ratio < 0.66 && history[1].ratio > 0.95, "{history:?}");
    assert!(slow(&peers)[0].cause.contains("Not all of its older runs were slow"));
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let mut results = healthy(15, 10);
    results.push(host(50, &mut Rng::with_seed(2), ("syscall", 0.7)));
    let forward = fleet(results.clone());
    results.reverse();
    let backward = fleet(results);
    assert_eq!(forward.findings, backward.findings);
    assert_eq!(slow(&forward).len(), 1);
}

#[test]
fn groups_are_of_one_make_up_and_unknown_fields_make_none() {
    let mut results = healthy(30, 11);
    for (place, result) in results.iter_mut().enumerate() {
        result.make_up = match place {
            // Other hosts, another kernel, slots that only root reads, a little less memory,
            // invented numbers.
            0..10 => make_up(&[("cpu_model", "EPYC 7713"), ("memory_gib", "1007")]),
            10..12 => make_up(&[("kernel", "6.12.0")]),
            12..15 => make_up(&[("dimms_mib", "")]),
            15..18 => make_up(&[("memory_gib", "126")]),
            18 => make_up(&[("memory_gib", "94")]),
            _ => make_up(&[]),
        };
        result.pretended = place == 29;
    }
    let peers = fleet(results);
    let sizes: Vec<usize> = peers.groups.iter().map(|group| group.hosts.len()).collect();
    assert_eq!(sizes, [16, 10, 2, 1, 1]);
    assert_eq!(peers.groups[0].unreported, [("dimms_mib".to_string(), 3)]);
    let near = |place: usize| {
        let near = peers.groups[place].near.as_ref().expect("a near group");
        (near.group, near.differences.iter().map(|one| one.label.as_str()).collect::<Vec<_>>())
    };
    assert_eq!(near(2), (0, vec!["kernel"]));
    assert!(peers.groups[3..].iter().any(|group| group.usual["memory_gib"] == "94"));
}

#[test]
fn old_summaries_tell_no_better_side_and_odd_values_are_left_out() {
    let mut results = healthy(10, 12);
    for result in &mut results {
        result.series.iter_mut().for_each(|one| one.better = None);
        result.series.push(Series {
            unit: "%".into(),
            key: "a.share@x#share".into(),
            ..result.series[0].clone()
        });
    }
    results[3].series[0].median = f64::NAN;
    results[4].series[1].median = -1.0;
    results[5].series[2].unit = "MB/s".into();
    results[6].series.clear();
    let told = |severity, headline: &str| SummaryFinding {
        rule: "cpu-quota".into(),
        severity,
        headline: headline.into(),
    };
    results[6].findings =
        vec![told(Severity::Note, "It is warm."), told(Severity::Problem, "A quota stopped it.")];
    let peers = fleet(results);
    assert!(peers.fleet.metrics.iter().all(|metric| metric.higher == metric.unit.ends_with("B/s")));
    assert_eq!(peers.fleet.metrics.len(), BENCHES.len());
    assert_eq!((peers.fleet.hosts.len(), peers.fleet.left_out.len()), (9, 1));
    // The reason is its own verdict.
    assert_eq!(peers.fleet.left_out[0].1, "it has no usable value: A quota stopped it.");
    assert!(peers.findings.is_empty(), "{:?}", peers.findings);
}

#[test]
fn bands_agree_with_who_is_behind() {
    let band_of = |hosts: &[HostResult], own: &HostResult, key: &str| {
        let mut fleet = Fleet::default();
        hosts.iter().for_each(|result| fleet.add(result.clone()));
        let bands = bands(fleet, own.clone())?;
        let band = bands.bands.iter().find(|band| band.key == key)?;
        Some((bands.hosts, bands.are_limits, [band.low, band.high]))
    };
    let hosts = healthy(20, 3);
    let mut rng = Rng::with_seed(9);
    let read = BENCHES[2].0;
    let own = |slow: f64, rng: &mut Rng| host(99, rng, ("memory", slow));
    for slow in [1.0, 0.65] {
        let own = own(slow, &mut rng);
        let (others, are_limits, [low, high]) = band_of(&hosts, &own, read).expect("a band");
        assert_eq!((others, are_limits), (20, true));
        assert!(low < 100.0 && 100.0 < high, "{low} {high}");
        let value = own.series.iter().find(|one| one.key == read).expect("measured").median;
        let behind = fleet(hosts.iter().cloned().chain([own])).findings;
        assert_eq!((value < low, behind.is_empty()), (slow < 1.0, slow == 1.0), "{value} {low}");
    }
    // Latencies are turned back.
    let (.., [low, high]) = band_of(&hosts, &own(1.0, &mut rng), BENCHES[5].0).expect("a band");
    assert!(low < 100.0 && 100.0 < high, "{low} {high}");
    // Few hosts have percentiles, other makes nothing.
    let few = band_of(&hosts[..4], &own(1.0, &mut rng), read).expect("a band");
    assert_eq!((few.0, few.1), (4, false));
    let other = HostResult { make_up: make_up(&[("cpu_model", "EPYC 7452")]), ..own(1.0, &mut rng) };
    assert_eq!(band_of(&hosts, &other, read), None);
}

/// Healthy hosts in ten racks and four slow ones; `rack` says in which those are.
fn labelled(hosts: usize, rack: impl Fn(usize) -> usize) -> Peers {
    let mut results = healthy(hosts, 13);
    for (number, result) in results.iter_mut().enumerate() {
        result.labels = [("rack".to_string(), format!("r{}", number % 10))].into();
    }
    let mut rng = Rng::with_seed(4);
    for at in 0..4 {
        let mut slow = host(900 + at, &mut rng, ("memory.bandwidth", 0.8));
        slow.labels = [("rack".to_string(), format!("r{}", rack(at)))].into();
        results.push(slow);
    }
    fleet(results)
}

#[test]
fn a_label_that_the_slow_ones_share_is_said_where_it_is_no_chance() {
    let peers = labelled(60, |_| 7);
    let [one] = peers.followed.as_slice() else { panic!("{:?}", peers.followed) };
    assert_eq!((one.having, one.apart, one.beside, one.others), (4, 4, 6, 60));
    let told = "All 4 hosts that are behind have rack=r7; of 60 others 6";
    let found = slow(&peers);
    assert_eq!(found.len(), 4);
    for finding in found {
        assert!(finding.cause.contains(told), "{}", finding.cause);
        assert!(finding.facts.iter().any(|fact| fact.label == "label rack"), "{:?}", finding.facts);
    }
    // Three of four, then one each.
    let peers = labelled(60, |at| if at == 0 { 1 } else { 7 });
    assert!(peers.followed.iter().all(|one| one.having == 3 && one.value == "r7"), "{:?}", peers.followed);
    assert!(slow(&peers).iter().all(|one| !one.cause.contains("rack=r1")));
    assert_eq!(labelled(60, |at| at).followed, []);
}

/// What has nothing to do with any label seems to follow one no more often than is stated.
#[test]
fn chance_hardly_ever_looks_like_a_label() {
    let mut rng = Rng::with_seed(6);
    let mut results = healthy(100, 14);
    for result in &mut results {
        let labels = [("rack", rng.usize(..10)), ("row", rng.usize(..3)), ("batch", rng.usize(..25))];
        result.labels = labels.map(|(label, at)| (label.to_string(), at.to_string())).into();
    }
    let fleet = fleet(results).fleet;
    let mut claims = 0;
    for trial in 0..2000 {
        let mut places: Vec<usize> = (0..100).collect();
        rng.shuffle(&mut places);
        let (apart, others) = places.split_at(2 + trial % 9);
        claims += usize::from(!labels::followed(&fleet, apart, others).is_empty());
    }
    assert!(claims as f64 <= 2000.0 * labels::CHANCE, "{claims}");
}
