//! Lines of a job's result in fio's text, taken apart.

use super::numbers::{amount, carry, decimal, is_carried, named, plain, whole};
use super::{DirectionStats, Job, Steady};

/// `1.00th=[ 1176],  5.00th=[ 1368]`
pub fn percentiles(line: &str, scale: f64) -> Vec<(String, Option<f64>)> {
    let one = |part: &str| {
        let (percent, value) = part.split_once("th=[")?;
        Some((percent.trim().to_string(), decimal(value).map(|value| value * scale)))
    };
    // What has no bracket behind it was cut.
    line.split_inclusive(']')
        .filter_map(|part| one(part.strip_suffix(']')?.trim_start_matches([',', ' '])))
        .collect()
}

pub fn side(rest: &str, kilo: f64, carries: bool) -> DirectionStats {
    let lost = |text: Option<&str>, read: &dyn Fn(&str) -> Option<f64>| {
        text.filter(|_| !carries).map_or(0.0, |text| carry(text, read))
    };
    let bytes = |text: &str| amount(text, kilo);
    let rate = |text: &str| text.split_once("/s").and_then(|(rate, _)| amount(rate, kilo));
    // Version 2: everything by name.
    if let Some(io) = named(rest, "io") {
        return DirectionStats {
            bytes: amount(io, kilo),
            bytes_carry: lost(Some(io), &bytes),
            bandwidth: named(rest, "bw").and_then(rate),
            iops: whole(rest, "iops").and_then(decimal),
            iops_carry: lost(whole(rest, "iops"), &decimal),
            runtime_ms: named(rest, "runt").and_then(|time| plain(time.strip_suffix("msec")?)),
            rounded: String::new(),
            ..DirectionStats::default()
        };
    }
    // `183MiB/1001msec` in the last brackets.
    let of = rest
        .split(['(', ')'])
        .find_map(|part| part.split_once('/').filter(|(_, time)| time.ends_with("msec")));
    let iops = whole(rest, "IOPS");
    let bandwidth = named(rest, "BW");
    // The same in units of 1000, behind it in brackets.
    let again = bandwidth
        .and_then(|text| text.split_once('(')?.1.split_once("/s"))
        .and_then(|(text, _)| amount(text, 1000.0));
    let printed = bandwidth.and_then(rate);
    let most = lost(bandwidth, &bytes);
    let carried = printed.zip(again).filter(|(printed, again)| is_carried(most, *printed, *again));
    DirectionStats {
        iops: iops.and_then(decimal),
        iops_carry: lost(iops, &decimal),
        bandwidth: carried.map(|(_, again)| again).or(printed),
        bytes: of.and_then(|(bytes, _)| amount(bytes, 1000.0)),
        bytes_carry: lost(of.map(|(bytes, _)| bytes), &bytes),
        runtime_ms: of.and_then(|(_, time)| plain(time.trim_end_matches("msec"))),
        rounded: format!(
            "it prints IOPS={}, BW={}",
            iops.unwrap_or("none"),
            bandwidth.and_then(|text| text.split(' ').next()).unwrap_or("none")
        ),
        ..DirectionStats::default()
    }
}

/// `total=r=967045/w=0/d=0, short=...`, later `total=46832,20027,0,0 short=0,0,0,0 dropped=0,0,0,0`
pub fn issued(job: &mut Job, rest: &str) {
    // What has nothing behind it was cut.
    let Some((totals, _)) = rest.split_once("total=").and_then(|(_, rest)| rest.split_once(" short=")) else {
        return;
    };
    let totals = totals.trim().trim_end_matches(',');
    let counts = totals.split([',', '/']).map(|count| count.rsplit('=').next().and_then(plain));
    let is_split = job.sides.iter().any(|side| side.bytes.is_some());
    let counts: Vec<Option<f64>> = counts.collect();
    if let ([Some(reads), Some(writes), ..], false) = (counts.as_slice(), is_split)
        && *writes > 0.0
    {
        job.mix = job.unified.is_some().then_some([*reads, *writes]);
    }
    for (at, count) in counts.into_iter().take(4).enumerate() {
        match (job.sides.get_mut(at), &mut job.unified) {
            // All of them stand in the first place.
            (Some(_), Some(unified)) if !is_split => {
                unified.ios = Some(unified.ios.unwrap_or(0.0) + count.unwrap_or(0.0));
            }
            (Some(side), _) => side.ios = count,
            // The fourth are syncs.
            (None, _) => job.sync.n = count.filter(|count| *count > 0.0),
        }
    }
}

/// `attained=yes, bw=25.6MiB/s (26.8MB/s), iops=6543, iops mean dev=0.123%`
pub fn steady(rest: &str, kilo: f64) -> Option<Steady> {
    let rate = |text: &str| text.split_once("/s").and_then(|(rate, _)| amount(rate, kilo));
    Some(Steady {
        attained: named(rest, "attained")? == "yes",
        iops: named(rest, "iops").and_then(decimal),
        bandwidth: named(rest, "bw").and_then(rate),
    })
}
