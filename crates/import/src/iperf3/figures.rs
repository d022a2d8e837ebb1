//! One test to series: `network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth`.
//! Directions are those of the end that wrote the file.

mod facts;

use model::vocabulary::network as ids;
use serde_json::Value;

use crate::builder::{Builder, Meaning};
use crate::own::{Against, short};
use crate::{Imported, Keyed};
use model::{Beside, Better, Case, Pages, Params, Placement, Value as Of};

/// The statistics of one series take time that grows with the square of its values.
const MOST_INTERVALS: usize = 200;
/// No segment carries less where more is to be sent (Linux, tcp_min_snd_mss), bytes.
const SMALLEST_SEGMENT: f64 = 48.0;
/// A shorter transfer is what the buffers of sockets take, and no rate, s.
const SHORTEST: f64 = 0.05;
/// Counters of 32 bits that say more are below zero.
const WRAPPED: f64 = 2_147_483_648.0;
/// An end is busy from here on, a share of a CPU.
const BUSY: f64 = 0.95;

/// What is to be known of a test.
struct Test<'a> {
    start: &'a Value,
    end: &'a Value,
    intervals: &'a [Value],
    udp: bool,
    error: Option<String>,
    /// The server wrote it.
    server: bool,
    /// The end that wrote it sends in the direction that iperf3 calls forward.
    sends: bool,
    both: bool,
    /// 0 where it is not told.
    streams: i64,
    notes: Vec<String>,
}

fn positive(value: &Value) -> Option<f64> {
    value.as_f64().filter(|value| *value > 0.0)
}

/// Bits a second, where it went on for long enough.
fn rate(one: &Value) -> Option<f64> {
    positive(&one["bits_per_second"])
        .filter(|_| positive(&one["seconds"]).is_none_or(|time| time >= SHORTEST))
}

/// Why a sum has no rate; `None` where it says none.
fn no_rate(one: &Value) -> Option<String> {
    let (bytes, seconds) = (one["bytes"].as_f64()?, positive(&one["seconds"])?);
    if bytes < 0.0 || one["bits_per_second"].as_f64().is_some_and(|bits| bits < 0.0) {
        return Some(format!("a counter that wrapped around: it says {bytes:.0} bytes"));
    }
    (bytes > 0.0 && seconds < SHORTEST)
        .then(|| format!("{bytes:.0} bytes in {:.1} ms are what buffers take, and no rate", seconds * 1e3))
}

/// The series of a test.
pub fn figures(test: &Value, builder: &mut Builder, against: &mut Against) {
    let error = test["error"].as_str().map(str::to_string);
    let start = &test["start"];
    let setup = &start["test_start"];
    let version = start["version"].as_str().unwrap_or_default().trim_start_matches("iperf ");
    builder.fact("iperf3", version);
    if let Some(error) = &error {
        builder.remarks.push(format!("it ended with {:?}", short(error)));
        if error.contains("interrupt") || error.contains("terminated") {
            against.interrupted(error);
        }
    }
    let unread = test["unread"].as_str();
    let Some(protocol) = setup["protocol"].as_str().filter(|_| unread.is_none()) else {
        let why = match (unread, &error) {
            (Some(why), _) => why.to_string(),
            (None, Some(error)) => short(error),
            (None, None) => "it does not tell what was to be tested: the file was cut, or edited".to_string(),
        };
        let meaning =
            meaning(("iperf3.test", Params::new(), Params::new()), "bandwidth", "Gbit/s", Better::Higher, "");
        return builder.missing(meaning, why);
    };
    if !["TCP", "UDP"].contains(&protocol) {
        builder.remarks.push(format!("its protocol is {}, which Assay does not measure", short(protocol)));
    }
    facts::facts(start, &test["end"], builder);
    let server = start.get("accepted_connection").is_some();
    let both = setup["bidir"].as_i64() == Some(1) || test["end"].get("sum_sent_bidir_reverse").is_some();
    let mut notes = Vec::new();
    let connected = start["connected"].as_array().map(Vec::as_slice).unwrap_or_default();
    let own = |one: &Value| {
        one["local_host"].as_str().is_some_and(|host| one["remote_host"].as_str() == Some(host))
    };
    if connected.iter().any(own) {
        notes.push("over loopback: what the kernel's stack does, and no network".to_string());
    }
    if error.is_some() {
        notes.push("of a test that ended with an error".to_string());
    }
    let reverse = setup["reverse"].as_i64() == Some(1);
    let streams = setup["num_streams"].as_i64().unwrap_or(1).clamp(0, 1 << 20);
    let intervals = test["intervals"].as_array().map(Vec::as_slice).unwrap_or_default();
    let test = Test {
        start,
        end: &test["end"],
        intervals,
        udp: protocol == "UDP",
        error,
        server,
        sends: (server == reverse) || both && !server,
        both,
        streams,
        notes,
    };
    test.way(false, protocol, builder, against);
    if test.both {
        test.way(true, protocol, builder, against);
    }
    test.busy(protocol, version, builder, against);
}

/// Marks what a row's first figure is.
pub fn headlines(imported: &mut Imported) {
    let figures = imported.figures.iter_mut().map(|figure| &mut figure.judged.series.metric);
    let titles = imported.catalogue.iter_mut().flat_map(|title| &mut title.metrics);
    figures.chain(titles).for_each(|metric| metric.headline = metric.name == ids::metric::BANDWIDTH);
}

fn meaning(
    (bench, params, point): (&'static str, Params, Params),
    metric: &str,
    unit: &'static str,
    better: Better,
    note: &str,
) -> Meaning {
    let placement = Placement {
        name: "free".into(),
        seats: Vec::new(),
        pages: Pages::AsGiven,
        beside: Beside::Idle,
        neighbours: Default::default(),
    };
    let case = Case {
        bench: bench.into(),
        placement,
        params,
        knobs: Default::default(),
        inputs: Default::default(),
    };
    Meaning {
        keyed: Keyed { case, point, metric: metric.to_string() },
        wording: format!("iperf3 {metric}"),
        unit: unit.into(),
        better,
        note: note.to_string(),
    }
}

impl Test<'_> {
    /// Which row, and where in it; `backwards` is the way back of a test in both directions.
    fn place(&self, backwards: bool, protocol: &str) -> (&'static str, Params, Params) {
        let bench = match protocol {
            "TCP" => ids::TCP.as_str(),
            "UDP" => ids::UDP.as_str(),
            _ => "iperf3.test",
        };
        let text = |word: &str| Of::Text(word.to_string());
        let own = if self.sends != backwards { "send" } else { "receive" };
        let mut params = Params::from([(ids::param::DIRECTION, text(if self.both { "both" } else { own }))]);
        if self.both {
            params.set("way", text(own));
        }
        let setup = &self.start["test_start"];
        let rate = positive(&setup["target_bitrate"]).or(positive(&self.start["target_bitrate"]));
        if let Some(rate) = rate {
            // iperf3's rate is of each stream.
            let all = rate * self.streams.max(1) as f64 / 1e6;
            let value = if all.fract() == 0.0 { Of::Int(all as i64) } else { Of::Float(all) };
            params.insert(ids::param::RATE, value);
        }
        let mut point = Params::new();
        if self.streams > 0 {
            point.insert(ids::param::STREAMS, Of::Int(self.streams));
        }
        if let Some(bytes) = setup["blksize"].as_i64() {
            point.insert(ids::param::BYTES, Of::Int(bytes));
        }
        (bench, params, point)
    }

    fn way(&self, backwards: bool, protocol: &str, builder: &mut Builder, against: &mut Against) {
        let place = self.place(backwards, protocol);
        let with = |metric: &str, unit: &'static str, better: Better, more: &str| {
            let notes: Vec<&str> =
                self.notes.iter().map(String::as_str).chain([more]).filter(|note| !note.is_empty()).collect();
            meaning(place.clone(), metric, unit, better, &notes.join("; "))
        };
        let suffix = if backwards { "_bidir_reverse" } else { "" };
        let sum = |name: &str| &self.end[format!("{name}{suffix}")];
        let (sent, received, summed) = (sum("sum_sent"), sum("sum_received"), sum("sum"));
        for (name, one) in [("sum_sent", sent), ("sum_received", received)] {
            check(name, one, against);
        }
        let gbit = |one: &Value| rate(one).map(|bits| bits / 1e9);
        // After an error a server's sums count bytes of a time that they leave out.
        let stopped = self.error.as_deref().filter(|_| self.server);
        let sent_gbit = gbit(sent)
            .or(gbit(summed).filter(|_| self.udp && self.sends && !backwards))
            .filter(|_| stopped.is_none());
        let arrived = gbit(received).filter(|_| self.error.is_none());
        let datagrams = if positive(&received["packets"]).is_some() { received } else { summed };
        let loss = loss(datagrams);
        let beside = match &loss {
            _ if !self.udp => String::new(),
            Ok(share) => format!("{} of its datagrams were lost", model::percent(*share)),
            Err(_) => "how many of its datagrams were lost is not told".to_string(),
        };
        match (sent_gbit, no_rate(sent)) {
            (Some(value), _) => builder.value(with("sent", "Gbit/s", Better::Neither, ""), value),
            (None, Some(why)) if stopped.is_none() => {
                builder.missing(with("sent", "Gbit/s", Better::Neither, ""), why);
            }
            (None, _) => {}
        }
        let lost = positive(&summed["lost_percent"]).unwrap_or(0.0);
        let told = positive(&summed["jitter_ms"]).is_some();
        match (arrived, sent_gbit) {
            (Some(value), _) => builder.value(with("bandwidth", "Gbit/s", Better::Higher, &beside), value),
            // Before 3.12 a sender's file has only what it sent, and what of it the receiver
            // missed.
            (None, Some(sent)) if self.udp && told && received.is_null() && lost <= 100.0 => {
                let note = format!(
                    "what was sent, less what was lost: iperf3 of this version says no more; {beside}"
                );
                builder
                    .value(with("bandwidth", "Gbit/s", Better::Higher, &note), sent * (1.0 - lost / 100.0));
            }
            (None, sent) => {
                let why = no_rate(received).or(no_rate(summed)).filter(|_| self.error.is_none());
                let why = why.unwrap_or_else(|| match (&self.error, sent) {
                    (Some(error), _) if gbit(received).is_some() => format!(
                        "the test ended with an error ({}): what its sum says, {:.3} Gbit/s, is of more bytes than of its time",
                        short(error),
                        gbit(received).unwrap_or(0.0)
                    ),
                    (Some(error), Some(sent)) => {
                        format!("what arrived is not told ({}); {sent:.3} Gbit/s were sent", short(error))
                    }
                    (Some(error), None) => short(error),
                    (None, Some(sent)) => format!("what arrived is not told; {sent:.3} Gbit/s were sent"),
                    (None, None) => "it has no sum: the file was cut, or edited".to_string(),
                });
                builder.missing(with("bandwidth", "Gbit/s", Better::Higher, ""), why);
            }
        }
        self.streams(backwards, &with, builder);
        self.intervals(backwards, &with, builder);
        if self.udp {
            return self.datagrams(datagrams, loss, &with, builder);
        }
        let seconds = positive(&sent["seconds"]).filter(|time| stopped.is_none() && *time >= SHORTEST);
        if let (Some(count), Some(seconds)) = (sent["retransmits"].as_f64(), seconds) {
            let meaning = with("retransmits", "1/s", Better::Lower, "");
            // What was sent in the smallest segments that TCP has.
            let most = sent["bytes"].as_f64().map_or(f64::MAX, |bytes| bytes / SMALLEST_SEGMENT + 1.0);
            let most = most.min(WRAPPED - 1.0);
            let each = self.own_streams(backwards).filter_map(|one| one["sender"]["retransmits"].as_f64());
            let is_sound =
                (0.0..=most).contains(&count) && each.into_iter().all(|one| (0.0..WRAPPED).contains(&one));
            match is_sound {
                true => builder.value(meaning, count / seconds),
                false => {
                    let why = format!(
                        "a counter that wrapped around, of all streams or of one: {count:.0} retransmits of at most {most:.0} segments"
                    );
                    builder.missing(meaning, why);
                }
            }
        }
    }

    /// The streams that go this way, by what they say of their sender.
    fn own_streams(&self, backwards: bool) -> impl Iterator<Item = &Value> {
        let all = self.end["streams"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Each says whether the end that wrote the file is its sender.
        let sends = self.sends != backwards;
        let of = move |one: &&Value| {
            let said = [&one["sender"], &one["receiver"], &one["udp"]];
            !self.both || said.iter().any(|part| part["sender"].as_bool() == Some(sends))
        };
        all.iter().filter(of)
    }

    fn streams(&self, backwards: bool, with: &With, builder: &mut Builder) {
        let streams: Vec<&Value> = self.own_streams(backwards).take(MOST_INTERVALS).collect();
        for one in streams.iter().filter(|_| self.streams > 1 && self.error.is_none()) {
            // What iperf3 says of a stream of datagrams is what was sent.
            let sent = rate(&one["udp"]).filter(|_| self.udp);
            if let Some(bits) = sent {
                let meaning = with("stream_sent", "Gbit/s", Better::Neither, "each stream, what was sent");
                builder.value(meaning, bits / 1e9);
            }
            let less = sent.zip(loss(&one["udp"]).ok()).map(|(bits, loss)| bits * (1.0 - loss));
            let note = match rate(&one["receiver"]) {
                None if less.is_some() => "each stream, what was sent less what was lost",
                _ => "each stream",
            };
            if let Some(bits) = rate(&one["receiver"]).or(less) {
                builder.value(with("stream_bandwidth", "Gbit/s", Better::Neither, note), bits / 1e9);
            }
        }
        let of = |name: &str| {
            let told = streams.iter().filter_map(|one| positive(&one["sender"][name]));
            told.filter(|value| *value < WRAPPED).collect::<Vec<f64>>()
        };
        let least = of("min_rtt").into_iter().reduce(f64::min);
        let mean = of("mean_rtt");
        let window = of("max_snd_cwnd").into_iter().reduce(f64::max);
        if let Some(least) = least {
            builder.value(with("rtt_min", "us", Better::Lower, "of looks once an interval"), least);
        }
        if !mean.is_empty() {
            let mean = mean.iter().sum::<f64>() / mean.len() as f64;
            builder.value(with("rtt_mean", "us", Better::Lower, "of looks once an interval"), mean);
        }
        if let Some(window) = window {
            builder.value(with("cwnd_bytes", "B", Better::Neither, "the largest of its looks"), window);
        }
    }

    fn intervals(&self, backwards: bool, with: &With, builder: &mut Builder) {
        let name = if backwards { "sum_bidir_reverse" } else { "sum" };
        let whole = |one: &&Value| one[name]["omitted"].as_bool() != Some(true);
        let sums: Vec<&Value> = self.intervals.iter().filter(whole).map(|one| &one[name]).collect();
        // A test that is ended from the other side says its last interval again.
        let again = |at: usize| {
            let same = |time: &str| !sums[at][time].is_null() && sums[at][time] == sums[at - 1][time];
            at > 0 && same("start") && same("end")
        };
        let own = (0..sums.len()).filter(|at| !again(*at)).map(|at| sums[at]);
        let told = own.filter_map(|sum| Some((sum["bits_per_second"].as_f64()?, sum["seconds"].as_f64())));
        let (mut told, wrapped): (Vec<(f64, Option<f64>)>, Vec<_>) = told.partition(|(bits, _)| *bits >= 0.0);
        if !wrapped.is_empty() {
            let count = wrapped.len();
            builder.remarks.push(format!("{count} intervals were left out: their counters wrapped around"));
        }
        // What is left between the last whole second and the end, often 2 ms, is no interval like
        // the others.
        let lasted = |one: Option<&(f64, Option<f64>)>| one.and_then(|(_, seconds)| *seconds);
        if lasted(told.last()).zip(lasted(told.first())).is_some_and(|(last, first)| last < first / 2.0) {
            told.pop();
        }
        let rates: Vec<f64> = told.into_iter().map(|(bits, _)| bits).collect();
        if rates.len() < 2 {
            return;
        }
        if rates.len() > MOST_INTERVALS {
            builder.remarks.push(format!("{} intervals were left out", rates.len() - MOST_INTERVALS));
        }
        // Nobody tells a sender of datagrams what of an interval arrived.
        let (metric, better, note) = match self.udp && self.sends != backwards {
            true => ("interval_sent", Better::Neither, "each interval, what was sent"),
            false => ("interval_bandwidth", Better::Higher, "each interval, at the end that wrote the file"),
        };
        for bits in rates.into_iter().take(MOST_INTERVALS) {
            builder.value(with(metric, "Gbit/s", better, note), bits / 1e9);
        }
    }

    /// What is told of single datagrams: losses, order, jitter.
    fn datagrams(&self, sum: &Value, loss: Result<f64, String>, with: &With, builder: &mut Builder) {
        let share = |metric: &str| with(metric, "", Better::Lower, "");
        match loss {
            Ok(loss) => builder.value(share("loss"), loss),
            Err(why) => builder.missing(share("loss"), why),
        }
        let (Some(packets), Some(jitter)) = (positive(&sum["packets"]), positive(&sum["jitter_ms"])) else {
            return;
        };
        let out: Vec<f64> =
            self.own_streams(false).filter_map(|one| one["udp"]["out_of_order"].as_f64()).collect();
        if !out.is_empty() && !self.both {
            let all = out.iter().sum::<f64>();
            match out.iter().all(|one| *one >= 0.0) && all <= packets {
                true => builder.value(share("reordered"), all / packets),
                false => builder.missing(
                    share("reordered"),
                    format!("a counter that wrapped around: {all:.0} of {packets:.0} datagrams out of order"),
                ),
            }
        }
        let note = "smoothed differences of transit times (RFC 3550), not those of round trips";
        let own = with("jitter", "us", Better::Lower, note);
        match positive(&sum["seconds"]).is_none_or(|seconds| jitter <= seconds * 1e3) {
            true => builder.value(own, jitter * 1e3),
            false => builder.missing(own, format!("{jitter:.0} ms are longer than the test")),
        }
    }

    /// CPU of both ends, and whether one had all that it could use.
    fn busy(&self, protocol: &str, version: &str, builder: &mut Builder, against: &mut Against) {
        let cpu = &self.end["cpu_utilization_percent"];
        let minor: u32 = version
            .split('.')
            .nth(1)
            .and_then(|text| text.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok())
            .unwrap_or(0);
        let limit =
            if minor >= 16 { self.streams.max(1) as f64 * if self.both { 2.0 } else { 1.0 } } else { 1.0 };
        for (metric, name) in [("local_busy", "host_total"), ("remote_busy", "remote_total")] {
            let meaning =
                meaning(self.place(false, protocol), metric, "", Better::Neither, &self.notes.join("; "));
            let Some(share) = positive(&cpu[name]).map(|percent| percent / 100.0) else {
                if cpu.is_object() {
                    builder.missing(meaning, "it is not told".to_string());
                }
                continue;
            };
            builder.value(meaning, share);
            if share >= BUSY * limit {
                let sends = (metric == ids::metric::LOCAL_BUSY) == self.sends;
                let end = match (self.both, sends) {
                    (true, _) => "an end",
                    (false, true) => "the sender",
                    (false, false) => "the receiver",
                };
                against.bound(
                    end,
                    format!("{:.0} % of a CPU, of {:.0} % that it can use", share * 100.0, limit * 100.0),
                    name,
                );
            }
        }
    }
}

/// The share of datagrams that were lost, or why it is not known.
fn loss(sum: &Value) -> Result<f64, String> {
    let untold = || "the receiver's side is not told".to_string();
    let packets =
        positive(&sum["packets"]).filter(|_| positive(&sum["jitter_ms"]).is_some()).ok_or_else(untold)?;
    match sum["lost_packets"].as_f64().ok_or_else(untold)? {
        lost if lost < 0.0 => {
            Err(format!("it says that {lost} of {packets} datagrams were lost: some arrived twice, or late"))
        }
        lost if lost > packets => {
            Err(format!("a counter that wrapped around: {lost:.0} of {packets:.0} datagrams lost"))
        }
        lost => Ok(lost / packets),
    }
}

/// Makes a figure of the way at hand: metric, unit, better, and what else is to be noted.
type With<'a> = dyn Fn(&str, &'static str, Better, &str) -> Meaning + 'a;

/// Whether a rate is its bytes over its seconds.
fn check(name: &str, sum: &Value, against: &mut Against) {
    let (Some(bits), Some(bytes), Some(seconds)) =
        (positive(&sum["bits_per_second"]), positive(&sum["bytes"]), positive(&sum["seconds"]))
    else {
        return;
    };
    let found = bytes * 8.0 / seconds;
    if (bits / found).ln().abs() > 0.02 + 0.001 / seconds {
        let text = format!(
            "it says {:.4} Gbit/s; its bytes over its {seconds:.2} s are {:.4}",
            bits / 1e9,
            found / 1e9
        );
        against.disagree(name, text, "the file");
    }
}
