//! Reports of a run that goes on (`--status-interval`): each has all that was done until then, so
//! that the last one is the result.

use serde_json::Value;

use super::Direction;
use crate::builder::number;

/// Whether a document is of the same run as the next one, at an earlier time.
pub fn is_earlier(document: &Value, next: &Value) -> bool {
    let Some((jobs, later)) = document["jobs"].as_array().zip(next["jobs"].as_array()) else { return false };
    if jobs.is_empty() || jobs.len() != later.len() || document["global options"] != next["global options"] {
        return false;
    }
    jobs.iter().zip(later).all(|(one, later)| went_on(one, later)) && no_time_between(document, next, later)
}

/// Whether a job is the same and has done as much as before, or more.
fn went_on(job: &Value, later: &Value) -> bool {
    let same = ["jobname", "groupid", "hostname", "job options"].iter().all(|name| job[name] == later[name]);
    let grew = |way: &Direction, name: &str| {
        let of = |job: &Value| job[way.word()][name].as_f64().unwrap_or(0.0);
        of(later) >= of(job)
    };
    same && Direction::ALL.iter().all(|way| grew(way, "total_ios") && grew(way, "runtime"))
}

/// Whether the next run could not have done its work in the time between the two: a run that is
/// begun again takes at least as long as its groups after one another.
fn no_time_between(document: &Value, next: &Value, jobs: &[Value]) -> bool {
    let ms = |one: &Value| one["timestamp_ms"].as_f64();
    // Seconds that are cut off: it may have been one more.
    let seconds = |one: &Value| one["timestamp"].as_f64().map(|seconds| seconds * 1e3);
    let between = ms(next).zip(ms(document)).map(|(next, this)| next - this);
    let between =
        between.or_else(|| seconds(next).zip(seconds(document)).map(|(next, this)| next - this + 1e3));
    let Some(between) = between.filter(|between| *between >= 0.0) else { return false };
    let longest = |job: &Value| {
        let of = |way: &Direction| job[way.word()]["runtime"].as_f64().unwrap_or(0.0);
        Direction::ALL.iter().map(of).fold(0.0, f64::max)
    };
    let mut groups: std::collections::BTreeMap<i64, f64> = Default::default();
    for job in jobs {
        let group = groups.entry(job["groupid"].as_i64().unwrap_or(0)).or_default();
        *group = group.max(longest(job));
    }
    let work: f64 = groups.values().sum();
    // Rounded up to seconds.
    let elapsed = jobs.iter().filter_map(|job| job["elapsed"].as_f64()).fold(0.0, f64::max);
    work > between || (elapsed - 1.0) * 1e3 > between
}

/// The remark on interim reports that were left out.
pub fn remark(passed: usize) -> Option<String> {
    (passed > 0).then(|| {
        let reports = number(passed, "report was", "reports were");
        format!("{passed} interim {reports} left out (--status-interval): the last one covers the whole run")
    })
}

/// The remark on results that the file has more than once.
pub fn repeated(count: usize) -> Option<String> {
    let results = number(count, "result appears", "results appear");
    (count > 0).then(|| format!("{count} {results} in the file again: each counts once"))
}
