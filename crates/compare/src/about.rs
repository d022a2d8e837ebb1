//! What is known of one side of a comparison beside its figures: what it is and when it ran, in few
//! words, so that A and B are distinguishable.

use super::ComparisonSide;
use super::environment::OR;

/// What a foreign result is called by, the first that it has.
const HEADS: [&str; 5] = ["heading", "source", "started by", "differs in", "program"];

/// One side in words.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What it is, the most important first: what heads a foreign result, `KVM guest`, processor,
    /// CPUs, memory, kernel.
    pub what: Vec<String>,
    /// When its runs began: UTC, RFC 3339, the first one first.
    pub started: Vec<String>,
    /// The profile that measured it, where one did.
    pub profile: Option<String>,
}

impl About {
    pub(super) fn of(arm: &ComparisonSide) -> About {
        let setting = |label: &str| arm.setting(label).map(|text| text.replace(OR, " or "));
        let mut started = arm.started.clone();
        started.sort();
        About { what: what(&setting), started, profile: setting("profile") }
    }

    /// `28 Nov 02:07`, or of several runs `20 Nov` and `18 Nov – 20 Nov`; empty where nothing
    /// is known.
    pub fn when(&self) -> String {
        let ends = [self.started.first(), self.started.last()].map(|at| at.and_then(|at| Moment::of(at)));
        match (ends, self.started.len()) {
            ([Some(only), _], 1) => format!("{} {}", only.day, only.time),
            ([Some(first), Some(last)], _) if first.day == last.day => first.day,
            ([Some(first), Some(last)], _) => format!("{} – {}", first.day, last.day),
            _ => String::new(),
        }
    }
}

/// What a host is, the most important first, from its known facts.
pub(super) fn what(setting: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let kind = setting("hypervisor").map(|name| match name.as_str() {
        "none" => "bare metal".to_string(),
        name => diagnose::words::guest(name),
    });
    let counted = |label: &str, unit: &str| setting(label).map(|count| format!("{count} {unit}"));
    let cpus = counted("cpus", "CPUs").map(|text| if text == "1 CPUs" { "1 CPU".into() } else { text });
    let what = [
        HEADS.iter().find_map(|label| setting(label)),
        kind,
        setting("cpu_model").map(|name| processor(&name)),
        cpus,
        counted("memory_gib", "GiB"),
        setting("kernel").map(|release| format!("Linux {release}")),
    ];
    what.into_iter().flatten().collect()
}

/// A processor's name without marks, clock and count of cores.
pub fn processor(name: &str) -> String {
    let plain =
        ["(R)", "(r)", "(TM)", "(tm)"].iter().fold(name.to_string(), |name, mark| name.replace(mark, ""));
    let named = plain.split(['@', ',']).next().unwrap_or_default();
    let is_of_it = |word: &&str| !["CPU", "Processor"].contains(word) && !word.ends_with("-Core");
    let words = named.split_whitespace().filter(is_of_it);
    let words = words.collect::<Vec<_>>().join(" ");
    // Of `(Skylake, IBRS)` the first part stays.
    if words.contains('(') && !words.contains(')') { words + ")" } else { words }
}

struct Moment {
    day: String,
    time: String,
}

impl Moment {
    fn of(rfc3339: &str) -> Option<Moment> {
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let (date, time) = rfc3339.split_once('T')?;
        let mut parts = date.split('-').map(|part| part.parse::<usize>().ok());
        let (_, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let month = MONTHS.get(month.checked_sub(1)?)?;
        Some(Moment { day: format!("{day} {month}"), time: time.get(..5)?.to_string() })
    }
}

/// The days from the first date to the last (`2026-11-21`): `21 Nov 2026`, `21–24 Nov 2026`,
/// `30 Oct – 3 Nov 2026`. `None`: one is no date.
pub fn day_range(first: &str, last: &str) -> Option<String> {
    let midnight = |date: &str| Moment::of(&format!("{}T00:00", date.get(..10)?)).map(|moment| moment.day);
    let (one, other, year) = (midnight(first)?, midnight(last)?, last.get(..4)?);
    let ((day, month), (_, other_month)) = (one.split_once(' ')?, other.split_once(' ')?);
    Some(match (first.get(..4)? == year, month == other_month, one == other) {
        (true, _, true) => format!("{one} {year}"),
        (true, true, _) => format!("{day}–{other} {year}"),
        (true, false, _) => format!("{one} – {other} {year}"),
        _ => format!("{one} {} – {other} {year}", first.get(..4)?),
    })
}

/// Day and time of an RFC 3339 text: `28 Nov`, `02:07`.
pub fn moment(rfc3339: &str) -> Option<[String; 2]> {
    Moment::of(rfc3339).map(|at| [at.day, at.time])
}

/// What to call results in a sentence or a title: their hosts where these differ, else with what
/// distinguishes them, the date or the file.
pub fn names(sides: &[(&str, &str, &About)]) -> Vec<String> {
    let apart = |of: &dyn Fn(&(&str, &str, &About)) -> String| -> Option<Vec<String>> {
        let all: Vec<String> = sides.iter().map(of).collect();
        let differ = all.iter().enumerate().all(|(at, one)| !all[..at].contains(one));
        (differ && all.iter().all(|name| !name.is_empty())).then_some(all)
    };
    let dated = |(host, _, about): &(&str, &str, &About)| format!("{host} of {}", about.when());
    let file = |(host, file, _): &(&str, &str, &About)| {
        let name = file.trim_end_matches('/').rsplit('/').next().unwrap_or(file);
        format!("{host} in {name}")
    };
    let whole = |(host, file, _): &(&str, &str, &About)| format!("{host} in {file}");
    let is_dated = sides.iter().all(|(_, _, about)| !about.started.is_empty());
    apart(&|(host, _, _)| host.to_string())
        .or_else(|| apart(&dated).filter(|_| is_dated))
        .or_else(|| apart(&file))
        .unwrap_or_else(|| sides.iter().map(whole).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_one_host_are_told_apart() {
        let at = |started: &[&str]| About {
            started: started.iter().map(|text| text.to_string()).collect(),
            ..About::default()
        };
        let (early, late) = (at(&["2026-11-25T01:01:09Z"]), at(&["2026-11-25T01:10:00Z"]));
        let of = |sides: &[(&str, &str, &About)]| names(sides).join(" against ");
        assert_eq!(of(&[("a", "x", &early), ("b", "y", &early)]), "a against b");
        assert_eq!(
            of(&[("vm", "x", &early), ("vm", "y", &late)]),
            "vm of 25 Nov 01:01 against vm of 25 Nov 01:10"
        );
        assert_eq!(
            of(&[("vm", "r/x.jsonl", &early), ("vm", "r/y.jsonl", &early)]),
            "vm in x.jsonl against vm in y.jsonl"
        );
        assert_eq!(of(&[("vm", "a/x", &early), ("vm", "b/x", &early)]), "vm in a/x against vm in b/x");
        assert_eq!(at(&["2026-11-18T01:01:09Z", "2026-11-20T01:01:09Z"]).when(), "18 Nov – 20 Nov");
        assert_eq!(at(&["yesterday"]).when(), "");
    }

    #[test]
    fn processors_lose_marks_and_clock() {
        assert_eq!(processor("Intel(R) Xeon(R) CPU E5-2682 v4 @ 2.50GHz"), "Intel Xeon E5-2682 v4");
        assert_eq!(processor("AMD EPYC 7543 32-Core Processor"), "AMD EPYC 7543");
        assert_eq!(processor("Genuine Intel(R) CPU      @ 2.66GHz"), "Genuine Intel");
        assert_eq!(processor("Intel Core Processor (Skylake, IBRS)"), "Intel Core (Skylake)");
        assert_eq!(processor("POWER8 (raw), altivec supported"), "POWER8 (raw)");
    }
}
