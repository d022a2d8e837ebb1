//! One test to series: `network.tcp@free?direction=send/bytes=131072&streams=2#bandwidth`.
//! Directions are those of the end that wrote the file.

mod facts;

use model::vocabulary::network as ids;
use serde_json::Value;

use crate::builder::Builder;
use crate::faults::{Faults, short};
use crate::kit::{Figures, MAX_EACH, Metric, metric};
use model::{Better, Value as Of};

const METRICS: &[Metric] = &[
    metric("bandwidth", "Gbit/s", Better::Higher),
    metric("sent", "Gbit/s", Better::Neither),
    metric("stream_bandwidth", "Gbit/s", Better::Neither),
    metric("stream_sent", "Gbit/s", Better::Neither),
    metric("interval_bandwidth", "Gbit/s", Better::Higher),
    metric("interval_sent", "Gbit/s", Better::Neither),
    metric("rtt_min", "us", Better::Lower),
    metric("rtt_mean", "us", Better::Lower),
    metric("cwnd_bytes", "B", Better::Neither),
    metric("retransmits", "1/s", Better::Lower),
    metric("loss", "", Better::Lower),
    metric("reordered", "", Better::Lower),
    metric("jitter", "us", Better::Lower),
    metric("local_busy", "", Better::Neither),
    metric("remote_busy", "", Better::Neither),
];
/// Tests that Assay does not have.
const OTHER: &str = "iperf3.test";
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
    /// 0 where the file does not print it.
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

fn gbit(one: &Value) -> Option<f64> {
    rate(one).map(|bits| bits / 1e9)
}

/// Why a sum has no rate; `None` where it says none.
fn no_rate(one: &Value) -> Option<String> {
    let (bytes, seconds) = (one["bytes"].as_f64()?, positive(&one["seconds"])?);
    if bytes < 0.0 || one["bits_per_second"].as_f64().is_some_and(|bits| bits < 0.0) {
        return Some(format!("a counter that wrapped around: it says {bytes:.0} bytes"));
    }
    (bytes > 0.0 && seconds < SHORTEST)
        .then(|| format!("{bytes:.0} bytes in {:.1} ms only fill buffers, and are not a rate", seconds * 1e3))
}

/// The series of a test.
pub fn figures(test: &Value, builder: &mut Builder, faults: &mut Faults) {
    let error = test["error"].as_str().map(str::to_string);
    let start = &test["start"];
    let setup = &start["test_start"];
    let version = start["version"].as_str().unwrap_or_default().trim_start_matches("iperf ");
    builder.fact("iperf3", version);
    if let Some(error) = &error {
        builder.remarks.push(format!("it ended with {:?}", short(error)));
        if error.contains("interrupt") || error.contains("terminated") {
            faults.interrupted(error);
        }
    }
    let unread = test["unread"].as_str();
    let Some(protocol) = setup["protocol"].as_str().filter(|_| unread.is_none()) else {
        let why = match (unread, &error) {
            (Some(why), _) => why.to_string(),
            (None, Some(error)) => short(error),
            (None, None) => "its test is unknown: the file was cut, or edited".to_string(),
        };
        return of(OTHER, builder).put("bandwidth", Err(why));
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
        notes.push("over loopback: the kernel's network stack, and no network card".to_string());
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
    test.way(false, protocol, builder, faults);
    if test.both {
        test.way(true, protocol, builder, faults);
    }
    test.busy(protocol, version, builder, faults);
}

/// Takes figures of a benchmark.
fn of<'b>(bench: &str, builder: &'b mut Builder) -> Figures<'b> {
    let mut figures = Figures::new(builder, METRICS, "iperf3", bench);
    figures.is_named = true;
    figures
}

impl Test<'_> {
    /// What stands in the keys of a direction's figures; `backwards` is the way back of a test in
    /// both directions.
    fn keys<'b>(&self, backwards: bool, protocol: &str, builder: &'b mut Builder) -> Figures<'b> {
        let bench = match protocol {
            "TCP" => ids::TCP.as_str(),
            "UDP" => ids::UDP.as_str(),
            _ => OTHER,
        };
        let mut figures = of(bench, builder);
        figures.note = self.notes.join("; ");
        let own = if self.sends != backwards { "send" } else { "receive" };
        figures.params.insert(ids::param::DIRECTION, if self.both { "both" } else { own });
        if self.both {
            figures.params.set("way", own.into());
        }
        let setup = &self.start["test_start"];
        let rate = positive(&setup["target_bitrate"]).or(positive(&self.start["target_bitrate"]));
        if let Some(rate) = rate {
            // iperf3's rate is of each stream.
            let all = rate * self.streams.max(1) as f64 / 1e6;
            let value = if all.fract() == 0.0 { Of::Int(all as i64) } else { Of::Float(all) };
            figures.params.insert(ids::param::RATE, value);
        }
        figures.point(&ids::param::STREAMS, Some(self.streams).filter(|streams| *streams > 0));
        figures.point(&ids::param::BYTES, setup["blksize"].as_i64());
        figures
    }

    fn way(&self, backwards: bool, protocol: &str, builder: &mut Builder, faults: &mut Faults) {
        let mut figures = self.keys(backwards, protocol, builder);
        let suffix = if backwards { "_bidir_reverse" } else { "" };
        let sum = |name: &str| &self.end[format!("{name}{suffix}")];
        let (sent, received, summed) = (sum("sum_sent"), sum("sum_received"), sum("sum"));
        for (name, one) in [("sum_sent", sent), ("sum_received", received)] {
            check(name, one, faults);
        }
        // After an error a server's sums count bytes of a time that they leave out.
        let is_stopped = self.error.is_some() && self.server;
        let own = gbit(summed).filter(|_| self.udp && self.sends && !backwards);
        let sent_gbit = gbit(sent).or(own).filter(|_| !is_stopped);
        match (sent_gbit, no_rate(sent)) {
            (Some(value), _) => figures.put("sent", Ok(value)),
            (None, Some(why)) if !is_stopped => figures.put("sent", Err(why)),
            (None, _) => {}
        }
        let datagrams = if positive(&received["packets"]).is_some() { received } else { summed };
        let loss = loss(datagrams);
        self.bandwidth(sent_gbit, [received, summed], &loss, &mut figures);
        self.streams(backwards, &mut figures);
        self.intervals(backwards, &mut figures);
        if self.udp {
            self.datagrams(datagrams, loss, &mut figures);
        } else if !is_stopped {
            self.retransmits(backwards, sent, &mut figures);
        }
    }

    /// What arrived, as the receiver says or as far as a sender's file gives it.
    fn bandwidth(
        &self,
        sent: Option<f64>,
        [received, summed]: [&Value; 2],
        loss: &Result<f64, String>,
        figures: &mut Figures,
    ) {
        let beside = match loss {
            _ if !self.udp => String::new(),
            Ok(share) => format!("{} of its datagrams were lost", model::percent(*share)),
            Err(_) => "its number of lost datagrams is unknown".to_string(),
        };
        if let Some(arrived) = gbit(received).filter(|_| self.error.is_none()) {
            return figures.put_noted("bandwidth", &beside, Ok(arrived));
        }
        let lost = positive(&summed["lost_percent"]).unwrap_or(0.0);
        let is_told = self.udp && positive(&summed["jitter_ms"]).is_some();
        // Before 3.12 a sender's file has only what it sent, and what of it the receiver missed.
        if let Some(sent) = sent.filter(|_| is_told && received.is_null() && lost <= 100.0) {
            let note = format!("sent less lost: iperf3 of this version prints no more; {beside}");
            return figures.put_noted("bandwidth", &note, Ok(sent * (1.0 - lost / 100.0)));
        }
        let why = no_rate(received).or(no_rate(summed)).filter(|_| self.error.is_none());
        figures.put("bandwidth", Err(why.unwrap_or_else(|| self.untold(sent, gbit(received)))));
    }

    /// Why what arrived is not known.
    fn untold(&self, sent: Option<f64>, received: Option<f64>) -> String {
        match (&self.error, sent, received) {
            (Some(error), _, Some(received)) => format!(
                "the test ended with an error ({}): its sum, {received:.3} Gbit/s, counts more bytes than its time",
                short(error)
            ),
            (Some(error), Some(sent), None) => {
                format!("what arrived is unknown ({}); {sent:.3} Gbit/s were sent", short(error))
            }
            (Some(error), None, None) => short(error),
            (None, Some(sent), _) => format!("what arrived is unknown; {sent:.3} Gbit/s were sent"),
            (None, None, _) => "the file has no sum: it was cut, or edited".to_string(),
        }
    }

    fn retransmits(&self, backwards: bool, sent: &Value, figures: &mut Figures) {
        let seconds = positive(&sent["seconds"]).filter(|time| *time >= SHORTEST);
        let (Some(count), Some(seconds)) = (sent["retransmits"].as_f64(), seconds) else { return };
        // What was sent in the smallest segments that TCP has.
        let most = sent["bytes"].as_f64().map_or(f64::MAX, |bytes| bytes / SMALLEST_SEGMENT + 1.0);
        let most = most.min(WRAPPED - 1.0);
        let mut each = self.own_streams(backwards).filter_map(|one| one["sender"]["retransmits"].as_f64());
        let is_sound = (0.0..=most).contains(&count) && each.all(|one| (0.0..WRAPPED).contains(&one));
        figures.put("retransmits", if is_sound { Ok(count / seconds) } else { Err(format!(
                "a counter that wrapped around, of all streams or of one: {count:.0} retransmits of at most {most:.0} segments"
            )) });
    }

    /// The streams that go this way, by what they report about their sender.
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

    fn streams(&self, backwards: bool, figures: &mut Figures) {
        let streams: Vec<&Value> = self.own_streams(backwards).take(MAX_EACH).collect();
        for one in streams.iter().filter(|_| self.streams > 1 && self.error.is_none()) {
            // For a stream of datagrams, iperf3 reports what was sent.
            let sent = rate(&one["udp"]).filter(|_| self.udp);
            if let Some(bits) = sent {
                figures.put_noted("stream_sent", "each stream, what was sent", Ok(bits / 1e9));
            }
            let less = sent.zip(loss(&one["udp"]).ok()).map(|(bits, loss)| bits * (1.0 - loss));
            let note = match rate(&one["receiver"]) {
                None if less.is_some() => "each stream, what was sent less what was lost",
                _ => "each stream",
            };
            if let Some(bits) = rate(&one["receiver"]).or(less) {
                figures.put_noted("stream_bandwidth", note, Ok(bits / 1e9));
            }
        }
        let of = |name: &str| {
            let printed = streams.iter().filter_map(|one| positive(&one["sender"][name]));
            printed.filter(|value| *value < WRAPPED).collect::<Vec<f64>>()
        };
        let mean = of("mean_rtt");
        let mean = (!mean.is_empty()).then(|| mean.iter().sum::<f64>() / mean.len() as f64);
        for (name, note, value) in [
            ("rtt_min", "of one sample per interval", of("min_rtt").into_iter().reduce(f64::min)),
            ("rtt_mean", "of one sample per interval", mean),
            ("cwnd_bytes", "the largest of its samples", of("max_snd_cwnd").into_iter().reduce(f64::max)),
        ] {
            value.into_iter().for_each(|value| figures.put_noted(name, note, Ok(value)));
        }
    }

    fn intervals(&self, backwards: bool, figures: &mut Figures) {
        let name = if backwards { "sum_bidir_reverse" } else { "sum" };
        let whole = |one: &&Value| one[name]["omitted"].as_bool() != Some(true);
        let sums: Vec<&Value> = self.intervals.iter().filter(whole).map(|one| &one[name]).collect();
        // A test that is ended from the other side says its last interval again.
        let again = |at: usize| {
            let same = |time: &str| !sums[at][time].is_null() && sums[at][time] == sums[at - 1][time];
            at > 0 && same("start") && same("end")
        };
        let own = (0..sums.len()).filter(|at| !again(*at)).map(|at| sums[at]);
        let printed = own.filter_map(|sum| Some((sum["bits_per_second"].as_f64()?, sum["seconds"].as_f64())));
        let (mut printed, wrapped): (Vec<(f64, Option<f64>)>, Vec<_>) =
            printed.partition(|(bits, _)| *bits >= 0.0);
        if !wrapped.is_empty() {
            let count = wrapped.len();
            figures.remark(format!("{count} intervals were left out: their counters wrapped around"));
        }
        // What is left between the last whole second and the end, often 2 ms, is no interval like
        // the others.
        let lasted = |one: Option<&(f64, Option<f64>)>| one.and_then(|(_, seconds)| *seconds);
        if lasted(printed.last()).zip(lasted(printed.first())).is_some_and(|(last, first)| last < first / 2.0)
        {
            printed.pop();
        }
        let rates: Vec<f64> = printed.into_iter().map(|(bits, _)| bits).collect();
        if rates.len() < 2 {
            return;
        }
        if rates.len() > MAX_EACH {
            figures.remark(format!("{} intervals were left out", rates.len() - MAX_EACH));
        }
        // A sender of datagrams does not know what of an interval arrived.
        let (metric, note) = if self.udp && self.sends != backwards {
            ("interval_sent", "each interval, what was sent")
        } else {
            ("interval_bandwidth", "each interval, at the end that wrote the file")
        };
        for bits in rates.into_iter().take(MAX_EACH) {
            figures.put_noted(metric, note, Ok(bits / 1e9));
        }
    }

    /// Figures of single datagrams: losses, order, jitter.
    fn datagrams(&self, sum: &Value, loss: Result<f64, String>, figures: &mut Figures) {
        figures.put("loss", loss);
        let (Some(packets), Some(jitter)) = (positive(&sum["packets"]), positive(&sum["jitter_ms"])) else {
            return;
        };
        let out: Vec<f64> =
            self.own_streams(false).filter_map(|one| one["udp"]["out_of_order"].as_f64()).collect();
        if !out.is_empty() && !self.both {
            let all = out.iter().sum::<f64>();
            let is_sound = out.iter().all(|one| *one >= 0.0) && all <= packets;
            let wrapped =
                || format!("a counter that wrapped around: {all:.0} of {packets:.0} datagrams out of order");
            figures.put("reordered", is_sound.then(|| all / packets).ok_or_else(wrapped));
        }
        let is_sound = positive(&sum["seconds"]).is_none_or(|seconds| jitter <= seconds * 1e3);
        let too_long = || format!("{jitter:.0} ms are longer than the test");
        figures.put_noted(
            "jitter",
            "smoothed differences of transit times (RFC 3550), not of round trips",
            is_sound.then_some(jitter * 1e3).ok_or_else(too_long),
        );
    }

    /// CPU of both ends, and whether one had all that it could use.
    fn busy(&self, protocol: &str, version: &str, builder: &mut Builder, faults: &mut Faults) {
        let cpu = &self.end["cpu_utilization_percent"];
        let minor: u32 = version
            .split('.')
            .nth(1)
            .and_then(|text| text.split(|one: char| !one.is_ascii_digit()).next()?.parse().ok())
            .unwrap_or(0);
        let limit =
            if minor >= 16 { self.streams.max(1) as f64 * if self.both { 2.0 } else { 1.0 } } else { 1.0 };
        let mut figures = self.keys(false, protocol, builder);
        for (metric, name) in [("local_busy", "host_total"), ("remote_busy", "remote_total")] {
            let Some(share) = positive(&cpu[name]).map(|percent| percent / 100.0) else {
                if cpu.is_object() {
                    figures.put(metric, Err("not in the file".to_string()));
                }
                continue;
            };
            figures.put(metric, Ok(share));
            if share >= BUSY * limit {
                let sends = (metric == ids::metric::LOCAL_BUSY) == self.sends;
                let end = match (self.both, sends) {
                    (true, _) => "an end",
                    (false, true) => "the sender",
                    (false, false) => "the receiver",
                };
                faults.bound(
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
    let untold = || "the receiver's side is unknown".to_string();
    let packets =
        positive(&sum["packets"]).filter(|_| positive(&sum["jitter_ms"]).is_some()).ok_or_else(untold)?;
    match sum["lost_packets"].as_f64().ok_or_else(untold)? {
        lost if lost < 0.0 => {
            Err(format!("it prints {lost} of {packets} datagrams as lost: some arrived twice, or late"))
        }
        lost if lost > packets => {
            Err(format!("a counter that wrapped around: {lost:.0} of {packets:.0} datagrams lost"))
        }
        lost => Ok(lost / packets),
    }
}

/// Whether a rate is its bytes over its seconds.
fn check(name: &str, sum: &Value, faults: &mut Faults) {
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
        faults.disagree(name, text, "the file");
    }
}
