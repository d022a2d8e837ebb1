//! Which network cases there are: on this machine alone, or with another host.

use std::net::IpAddr;
use std::time::Duration;

use super::way::{Route, USUAL_DATAGRAM, datagram};
use super::window_schedule::{MIN_TRIPS, WindowSchedule};
use super::{ARMS, DEPTHS, MESSAGES, MORE_STREAMS, RECEIVER, SENDER, TO};
use crate::placement::Distance;
use crate::{Benchmark, Candidate, Depth, Scope, Windows};
use model::vocabulary::network as ids;
use model::vocabulary::{BenchId, ParamId};
use model::{Case, CpuSet, Params, Placement, Seat};

/// The input that holds the points of a transfer, `STREAMS:BYTES` with commas.
pub const POINTS: &str = "points";

/// What the user sets for network benchmarks; the rest is left to the profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `HOST:PORT` of `assay serve`.
    pub to: Option<String>,
    /// Each direction is paced at this rate, Mbit/s.
    pub rate: Option<u64>,
    pub congestion: Option<String>,
    /// Connections at once, in place of the profile's.
    pub streams: Option<u64>,
    /// Only cases in this direction, of rows that have one: `send`, `receive`, `both`.
    pub direction: Option<String>,
    /// CPUs by their place relative to the network card, the nearest first: `nic-irq`, `nic-node`,
    /// `other-node`.
    pub near: Vec<(&'static str, u32)>,
    /// One CPU of each core, the nearest to the card first: with another host, where further
    /// streams sit.
    pub cores: Vec<u32>,
}

/// Cases over loopback.
pub fn cases(bench: &Benchmark, scope: &Scope) -> Vec<Candidate> {
    wished(bench, scope, &Overrides::default())
}

/// The candidates of a plan, those of the network replaced by the ones that the user wants.
pub fn network_cases(candidates: Vec<Candidate>, scope: &Scope, overrides: &Overrides) -> Vec<Candidate> {
    let is_ours =
        |candidate: &Candidate| super::BENCHMARKS.iter().find(|bench| bench.id == candidate.case.bench);
    let (mut all, mut done) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match is_ours(&candidate) {
            None => all.push(candidate),
            Some(bench) if done.contains(&bench.id) => {}
            Some(bench) => {
                all.extend(wished(bench, scope, overrides));
                done.push(bench.id);
            }
        }
    }
    all
}

fn wished(bench: &Benchmark, scope: &Scope, overrides: &Overrides) -> Vec<Candidate> {
    let seats = match &overrides.to {
        Some(to) => remote(scope, overrides, to),
        None => local(scope),
    };
    let mut all = Vec::new();
    for seat in seats {
        match seat {
            Err((name, why)) => all.push(Candidate::unmet(bench.id, name, why)),
            Ok(placement) => all.extend(at(bench, scope, overrides, placement)),
        }
    }
    if all.is_empty() {
        let why = match &overrides.direction {
            Some(direction) if overrides.to.is_some() => {
                format!("this benchmark has no direction {direction}")
            }
            _ => "both ends share one CPU, which is then the limit".to_string(),
        };
        all.push(Candidate::unmet(bench.id, Distance::OtherCpu.name(), why));
    }
    all
}

/// Two CPUs (or one) of this machine: the nearest two for the quick profile, one as well for the
/// standard one, all distances for the full one.
fn local(scope: &Scope) -> Vec<Result<Placement, (&'static str, String)>> {
    let (mut apart, mut same, mut lack) = (Vec::new(), None, None);
    for (distance, placement) in scope.placements.pairs([SENDER, RECEIVER]) {
        match placement {
            Ok(placement) if distance == Distance::SameCpu => same = Some(placement),
            Ok(placement) => apart.push(placement),
            Err(why) if distance != Distance::SameCpu || lack.is_none() => lack = Some(why),
            Err(_) => {}
        }
    }
    if scope.depth < Depth::Full {
        apart.truncate(1);
    }
    let lacks_pair = apart.is_empty();
    let mut placements: Vec<_> = apart.into_iter().map(Ok).collect();
    if lacks_pair || scope.depth > Depth::Quick {
        placements.extend(same.map(Ok));
    }
    if placements.is_empty() || (lacks_pair && scope.depth > Depth::Quick) {
        let why = lack.unwrap_or_else(|| "no usable CPU found".to_string());
        placements.push(Err((Distance::OtherCpu.name(), why)));
    }
    placements
}

/// One CPU of this host at each place relative to the card, where those are known, and the other
/// host.
fn remote(scope: &Scope, overrides: &Overrides, to: &str) -> Vec<Result<Placement, (&'static str, String)>> {
    let host = Seat {
        role: RECEIVER.into(),
        host: Some(to.to_string()),
        cpus: CpuSet::default(),
        mem_nodes: CpuSet::default(),
    };
    let near = match scope.depth {
        Depth::Full => overrides.near.as_slice(),
        _ => &overrides.near[..overrides.near.len().min(1)],
    };
    let here = |name: &'static str, cpu: u32| Placement {
        seats: vec![Seat {
            role: SENDER.into(),
            host: None,
            cpus: CpuSet::one(cpu),
            mem_nodes: CpuSet::default(),
        }],
        ..Placement::named(name)
    };
    let mut placements: Vec<Result<Placement, (&'static str, String)>> =
        near.iter().map(|(name, cpu)| Ok(here(name, *cpu))).collect();
    if placements.is_empty() {
        placements.push(scope.placements.one_cpu(SENDER).map_err(|why| ("one-cpu", why)));
    }
    for placement in placements.iter_mut().flatten() {
        placement.seats.push(host.clone());
    }
    placements
}

/// The route to the other host, from the machine's description.
fn way(scope: &Scope, overrides: &Overrides) -> Route {
    let Some(path) =
        scope.machine.network.as_ref().filter(|path| overrides.to.is_some() && !path.local.loopback)
    else {
        return Route::default();
    };
    let trip = path.remote.as_ref().and_then(|end| end.round_trip_us);
    let to = path.local.to.as_ref().and_then(|to| to.parse::<IpAddr>().ok());
    Route {
        round_trip: trip.map(|us| Duration::from_secs_f64(us.min(60e6) / 1e6)),
        datagram: to.zip(path.least_mtu()).map(|(to, mtu)| datagram(mtu, to)),
    }
}

/// The cases of a row at a placement.
fn at(bench: &Benchmark, scope: &Scope, overrides: &Overrides, placement: Placement) -> Vec<Candidate> {
    // Who the limit is on one CPU, is known.
    if bench.id == ids::BOTTLENECK && placement.name == Distance::SameCpu.name() && scope.depth < Depth::Full
    {
        return Vec::new();
    }
    let (deep, apart) = (scope.depth > Depth::Quick, overrides.to.is_some());
    let full = scope.depth == Depth::Full;
    // Over loopback both directions are the same path; over a link they are two.
    let directions: &[&str] = match (bench.id, apart) {
        (ids::TCP, true) if deep => &["send", "receive", "both"],
        (ids::TCP, false) if full => &["send", "both"],
        (ids::TCP | ids::UDP | ids::BOTTLENECK | ids::LOADED, true) => &["send", "receive"],
        (ids::TCP | ids::UDP | ids::BOTTLENECK | ids::LOADED, false) => &["send"],
        _ => &[""],
    };
    let protocols: &[&str] = match bench.id {
        ids::ROUND_TRIP if deep => &["tcp", "udp"],
        ids::ROUND_TRIP => &["tcp"],
        _ => &[""],
    };
    let mut all = Vec::new();
    // Any direction of TCP's may be asked for, of the others those that they have.
    let asked = overrides.direction.as_deref().filter(|_| directions != [""]);
    let directions: Vec<&str> = match asked {
        Some(asked) if bench.id == ids::TCP => vec![asked],
        Some(asked) => directions.iter().copied().filter(|own| *own == asked).collect(),
        None => directions.to_vec(),
    };
    for direction in &directions {
        for protocol in protocols {
            let mut placement = placement.clone();
            if *direction == "receive" {
                swap_roles(&mut placement);
            }
            let mut candidate = Candidate::new(bench.id, placement, priority(bench.id, scope.depth), 0.0);
            for (name, value) in [(ids::param::DIRECTION, direction), (ids::param::PROTOCOL, protocol)] {
                if !value.is_empty() {
                    candidate = candidate.param(name, *value);
                }
            }
            all.push(completed(candidate, scope, overrides));
        }
    }
    all
}

fn priority(id: BenchId, depth: Depth) -> u32 {
    match id {
        ids::TCP | ids::ROUND_TRIP if depth == Depth::Quick => 70,
        ids::TCP | ids::ROUND_TRIP => 65,
        ids::BOTTLENECK => 50,
        _ => 60,
    }
}

fn swap_roles(placement: &mut Placement) {
    for seat in &mut placement.seats {
        seat.role = if seat.role == SENDER { RECEIVER.into() } else { SENDER.into() };
    }
}

/// With what the user wants, its points and its time.
fn completed(mut candidate: Candidate, scope: &Scope, overrides: &Overrides) -> Candidate {
    let id = candidate.case.id();
    let way = way(scope, overrides);
    let has = |name: ParamId| {
        let bench = super::BENCHMARKS.iter().find(|bench| Some(bench.id) == id);
        bench.is_some_and(|bench| bench.params.iter().any(|param| param.name == name))
    };
    if let Some(rate) = overrides.rate.filter(|_| has(ids::param::RATE)) {
        candidate = candidate.param(ids::param::RATE, rate);
    }
    let over_tcp =
        candidate.case.params.get(ids::param::PROTOCOL).and_then(|name| name.text()) != Some("udp");
    if let Some(congestion) =
        overrides.congestion.as_deref().filter(|_| has(ids::param::CONGESTION) && over_tcp)
    {
        candidate = candidate.param(ids::param::CONGESTION, congestion);
    }
    if let Some(to) = &overrides.to {
        candidate.case.inputs.insert(TO.into(), to.clone());
    }
    if has(ids::param::STREAMS) && id != Some(ids::LOADED) {
        let points = points(id, scope.depth, overrides, way);
        candidate.case.inputs.insert(POINTS.into(), points);
    }
    if let (Some(streams), Some(ids::LOADED)) = (overrides.streams, id) {
        candidate = candidate.param(ids::param::STREAMS, streams);
    }
    candidate.case.placement = spread(candidate.case.placement.clone(), &candidate.case, scope, overrides);
    candidate.seconds = seconds(&candidate.case, scope.windows, way.round_trip);
    let most = super::transfer_points(&candidate.case)
        .iter()
        .filter_map(|at| at.get(ids::param::STREAMS)?.int())
        .chain(overrides.streams.map(|streams| streams as i64))
        .max();
    candidate.memory(FIXED_MEMORY + most.unwrap_or(1).max(1) as u64 * STREAM_MEMORY)
}

/// With further seats of this host, as far as it has cores: one for each stream where there is
/// another host, and under load one for the messages (over loopback at either end). Each is as near
/// to the card, or the first, as there are.
fn spread(mut placement: Placement, case: &Case, scope: &Scope, overrides: &Overrides) -> Placement {
    // Where both ends are one host (containers, namespaces) each leaves the other its CPUs.
    let one_machine = scope.machine.network.as_ref().is_some_and(|path| path.one_machine());
    let (apart, taken) = (overrides.to.is_some() && !one_machine, placement.cpus());
    let of = |params: &Params| params.get(ids::param::STREAMS)?.int();
    let most = super::transfer_points(case).iter().filter_map(of).chain(of(&case.params)).max();
    let ways =
        if case.params.get(ids::param::DIRECTION).and_then(|way| way.text()) == Some("both") { 2 } else { 1 };
    let streams = most.unwrap_or(1).max(1) as usize * ways;
    let further = match case.id() {
        Some(ids::BOTTLENECK) if apart => MORE_STREAMS as usize * streams - 1,
        Some(ids::TCP | ids::UDP | ids::LOADED) if apart => streams - 1,
        _ => 0,
    };
    let messages = match case.id() {
        Some(ids::LOADED) if apart => 1,
        Some(ids::LOADED) if overrides.to.is_none() && placement.name != Distance::SameCpu.name() => 2,
        _ => 0,
    };
    let (Some(first), true) = (taken.first(), further + messages > 0) else { return placement };
    let cores = match overrides.cores.as_slice() {
        [] => scope.placements.one_per_core(SENDER).cpus().iter().collect(),
        told => told.to_vec(),
    };
    let distance = |one: u32, other: u32| scope.placements.distance(one, other);
    let is_free = |cpu: &u32| taken.iter().all(|own| distance(own, *cpu) > Distance::SmtSibling);
    let mut free: Vec<u32> = cores.into_iter().filter(is_free).collect();
    // On the first one's node, whichever that is.
    free.sort_by_key(|cpu| matches!(distance(first, *cpu), Distance::OtherNode | Distance::OtherPackage));
    let roles = std::iter::repeat_n(placement.seats[0].role.clone(), further);
    let roles = roles.chain(std::iter::repeat_n(MESSAGES.into(), messages));
    let seat = |(role, cpu)| Seat { role, host: None, cpus: CpuSet::one(cpu), mem_nodes: CpuSet::default() };
    let seats: Vec<Seat> = roles.zip(free).map(seat).collect();
    let end = placement.seats.iter().position(|seat| seat.host.is_some()).unwrap_or(placement.seats.len());
    placement.seats.splice(end..end, seats);
    placement
}

/// Streams and sizes of messages that a pass measures.
fn points(id: Option<BenchId>, depth: Depth, overrides: &Overrides, way: Route) -> String {
    let udp = id == Some(ids::UDP);
    // Longer datagrams go in pieces, and are none of the path's usual ones.
    let packet = way.datagram.map_or(u64::from(USUAL_DATAGRAM), u64::from);
    let usual = if udp { packet } else { 131_072 };
    if let Some(streams) = overrides.streams {
        return format!("{streams}:{usual}");
    }
    let told: &[(u64, u64)] = match (udp, depth) {
        (false, Depth::Quick) => &[(1, 131_072)],
        (false, Depth::Standard) => &[(1, 131_072), (4, 131_072), (1, 4096)],
        (false, Depth::Full) => &[
            (1, 256),
            (1, 4096),
            (1, 32_768),
            (1, 131_072),
            (1, 1_048_576),
            (2, 131_072),
            (4, 131_072),
            (16, 131_072),
        ],
        (true, Depth::Full) => &[(1, 64), (1, 512), (1, packet), (1, 8192), (4, packet)],
        (true, _) => &[(1, packet)],
    };
    told.iter().map(|(streams, bytes)| format!("{streams}:{bytes}")).collect::<Vec<_>>().join(",")
}

/// Single latencies, boards and both ends' processes, bytes.
const FIXED_MEMORY: u64 = 12 << 20;
/// Buffers of a connection's two tasks, bytes; what its sockets hold is the kernel's.
const STREAM_MEMORY: u64 = 1 << 20;

/// Rounds of the experiment.
pub const ROUNDS: usize = 2;

/// Two processes to fork and two handshakes.
const SETUP_S: f64 = 0.04;

/// Round trips of setting up a transfer and of reporting its result.
const SETUP_TRIPS: f64 = 6.0;

fn seconds(case: &Case, windows: Windows, round_trip: Option<Duration>) -> f64 {
    let schedule = WindowSchedule::on(windows, case, round_trip);
    let trip_s = round_trip.unwrap_or_default().as_secs_f64();
    let setup_s = SETUP_S + SETUP_TRIPS * trip_s;
    // Trips for a median, and those that are not counted.
    let least_s = 2.0 * MIN_TRIPS as f64 * trip_s;
    let one = schedule.seconds().max(if case.bench == ids::ROUND_TRIP { least_s } else { 0.0 }) + setup_s;
    let times = match case.id() {
        Some(ids::TCP | ids::UDP) => super::transfer_points(case).len(),
        Some(ids::REQUEST) => DEPTHS.len(),
        Some(ids::LOADED) => 2,
        Some(ids::BOTTLENECK) => ARMS.len() * ROUNDS,
        _ => 1,
    };
    setup_s + one * times as f64
}

#[cfg(test)]
mod tests {
    use super::super::window_schedule::tests::{WINDOWS, case};
    use super::*;
    use crate::placement::Placements;
    use machine::Machine;
    use model::{Entry, Snapshot};

    #[test]
    fn the_plan_knows_of_long_starts() {
        for bench in [ids::TCP, ids::UDP, ids::BOTTLENECK, ids::LOADED] {
            let estimate =
                |trip_ms| seconds(&case(bench, Some("far:1")), WINDOWS, Some(Duration::from_millis(trip_ms)));
            assert!(estimate(80) > estimate(0) + 0.8, "{bench}");
        }
    }

    #[test]
    fn datagrams_fill_a_packet_of_the_path() {
        let usual = |local: &str, to: Option<&str>| {
            let mut snapshot = Snapshot::default();
            snapshot.entries.insert(ids::probe::NETWORK.into(), Entry::Text(local.into()));
            let remote = "interface eth0\nmtu 1500\nround_trip_us 80000\n";
            snapshot.entries.insert(ids::probe::NETWORK_REMOTE.into(), Entry::Text(remote.into()));
            let machine = Machine::from(&snapshot);
            let placements = Placements::of(&machine);
            let scope = Scope::new(&machine, &placements, Depth::Full, 1 << 30);
            let overrides = Overrides { to: to.map(str::to_string), ..Overrides::default() };
            let way = way(&scope, &overrides);
            (points(Some(ids::UDP), scope.depth, &overrides, way), way.round_trip)
        };
        let trip = Some(Duration::from_millis(80));
        let of = |bytes: u32| format!("1:64,1:512,1:{bytes},1:8192,4:{bytes}");
        assert_eq!(usual("to 10.0.0.2\nmtu 1500\npath_mtu 1500\n", Some("far:1")), (of(1472), trip));
        assert_eq!(usual("to 2001:db8::2\nmtu 1500\n", Some("far:1")).0, of(1452));
        assert_eq!(usual("to 10.0.0.2\nmtu 9000\npath_mtu 1400\n", Some("far:1")).0, of(1372));
        assert_eq!(usual("to 10.0.0.2\nmtu 9000\n", Some("far:1")).0, of(1472), "the other end has 1500");
        assert_eq!(usual("to 127.0.0.1\ninterface lo\ntype 772\nmtu 65536\n", None), (of(1472), None));
    }
}
