//! Guests that beat a machine of their processor's class, each with the one that it beats by the
//! most.

use std::collections::BTreeMap;

use super::findings::short;
use super::fleet::{Fleet, Host};
use super::kept::Value;
use crate::rows::{BEATS, beats, is_guest, one_class};
use model::Finding;
use stats::unixbench::of_bench;

/// A metric in which a guest beats a host, and by how much at most.
type Row = (u32, f64);

pub(super) fn guests(fleet: &Fleet) -> Vec<Finding> {
    let setting = |host: &Host, label: &str| host.make_up.get(label).map(str::to_string);
    let measured = (0..fleet.hosts.len()).filter(|place| !fleet.hosts[*place].pretended);
    let (guests, hosts): (Vec<usize>, Vec<usize>) =
        measured.partition(|place| is_guest(&|label| setting(&fleet.hosts[*place], label)) == Some(true));
    let (guests, hosts) = (by_model(fleet, guests), by_model(fleet, hosts));
    // Of each guest the host that it beats by the most.
    let mut best: BTreeMap<usize, (f64, usize, Vec<Row>)> = BTreeMap::new();
    for (guest_model, guests) in &guests {
        for hosts in hosts.iter().filter(|(model, _)| one_class(guest_model, model)).map(|(_, hosts)| hosts) {
            let (guests, hosts) = concerned(fleet, guests, hosts);
            for guest in guests {
                for host in &hosts {
                    let rows = rows(&fleet.hosts[guest], &fleet.hosts[*host]);
                    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
                    let beats_more =
                        best.get(&guest).is_none_or(|(known, at, _)| (most, *host) > (*known, *at));
                    if !rows.is_empty() && beats_more {
                        best.insert(guest, (most, *host, rows));
                    }
                }
            }
        }
    }
    let found = best.into_iter().filter_map(|(guest, (_, host, rows))| {
        let (guest, host) = (&fleet.hosts[guest], &fleet.hosts[host]);
        let rows: Vec<(String, &str, f64)> = rows.into_iter().map(|row| titled(fleet, row)).collect();
        let models = [setting(guest, "cpu_model")?, setting(host, "cpu_model")?];
        let kernel = setting(guest, "kernel");
        let rows = rows.iter().map(|(title, key, ratio)| (title.as_str(), *key, *ratio));
        beats((&guest.name, kernel.as_deref()), &host.name, &models, rows)
    });
    found.collect()
}

fn by_model(fleet: &Fleet, places: Vec<usize>) -> BTreeMap<&str, Vec<usize>> {
    let mut found: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for place in places {
        if let Some(model) = fleet.hosts[place].make_up.get("cpu_model") {
            found.entry(model).or_default().push(place);
        }
    }
    found
}

/// Guests that beat the slowest of the hosts in anything, and hosts that the fastest guest beats:
/// most pairs need no look.
fn concerned(fleet: &Fleet, guests: &[usize], hosts: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let ends = |places: &[usize], end: fn(Value) -> f64, choose: fn(f64, f64) -> f64| {
        let mut ends: BTreeMap<u32, f64> = BTreeMap::new();
        for value in places.iter().flat_map(|place| fleet.hosts[*place].values.iter()) {
            let known = ends.entry(value.metric).or_insert_with(|| end(value));
            *known = choose(*known, end(value));
        }
        ends
    };
    let (fastest, slowest) = (ends(guests, least, f64::max), ends(hosts, most, f64::min));
    // Rounding must not exclude hosts that the rows would name.
    let beats = |own: f64, other: f64| own - other > BEATS.ln() - 1e-9;
    let any = |places: &[usize], is_one: &dyn Fn(Value) -> bool| -> Vec<usize> {
        let concerned = |place: &usize| fleet.hosts[*place].values.iter().any(is_one);
        places.iter().copied().filter(concerned).collect()
    };
    (
        any(guests, &|own| slowest.get(&own.metric).is_some_and(|slowest| beats(least(own), *slowest))),
        any(hosts, &|other| fastest.get(&other.metric).is_some_and(|fastest| beats(*fastest, most(other)))),
    )
}

/// The worse end of a value.
fn least(value: Value) -> f64 {
    value.ln - value.half
}

/// The better end of it.
fn most(value: Value) -> f64 {
    value.ln + value.half
}

fn rows(guest: &Host, host: &Host) -> Vec<Row> {
    let rows = guest.values.iter().filter_map(|own| {
        let other = host.values.of(own.metric)?;
        let (ratio, least) = ((own.ln - other.ln).exp(), (own.ln - own.half - other.ln - other.half).exp());
        (least > BEATS).then_some((own.metric, ratio))
    });
    rows.collect()
}

fn titled(fleet: &Fleet, (metric, ratio): Row) -> (String, &str, f64) {
    let key = fleet.metrics[metric as usize].key.as_str();
    let test = of_bench(key.split('@').next().unwrap_or(key)).filter(|_| key.contains("?copies=1#"));
    (test.map_or_else(|| short(key), |test| test.title.to_string()), key, ratio)
}
