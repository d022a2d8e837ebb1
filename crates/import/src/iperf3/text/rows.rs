//! The figures of iperf3's text, as its JSON has them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kit::{Hit, Run};

/// A line of figures.
pub struct Row<'t> {
    pub id: &'t str,
    /// Of a test in both directions: whether this end sends.
    pub sends: Option<bool>,
    /// Of the sums at the end.
    pub last: bool,
    /// `sender`, `receiver`, `(omitted)`.
    pub end: &'t str,
    from: f64,
    to: f64,
    bytes: f64,
    pub bits: f64,
    /// Retransmits; of datagrams sent, all.
    count: Option<f64>,
    window: Option<f64>,
    jitter: Option<f64>,
    lost: Option<f64>,
    pub packets: Option<f64>,
}

impl<'t> Row<'t> {
    fn of(hit: &Hit<'t>, last: bool) -> Option<Row<'t>> {
        let (from, to) = (hit.number("from")?, hit.number("to")?);
        let step = if hit.text("rate_of") == Some("Bytes") { 1024.0 } else { 1e3 };
        let of = if step > 1e3 { 8.0 } else { 1.0 };
        let bits = hit.scaled("rate", step)?.times(of).value;
        let bytes = hit.scaled("bytes", 1024.0)?;
        let end = hit.text("end").unwrap_or_default();
        let value = |field: &str| hit.number(field).map(|number| number.value);
        // Of two roundings the rate over the time has the finer one, as far as they agree.
        let rounding = bytes.rounding + bits / 8.0 * (from.rounding + to.rounding);
        let exact = (bits * (to.value - from.value) / 8.0)
            .clamp((bytes.value - rounding).max(0.0), bytes.value + rounding);
        Some(Row {
            id: hit.text("id")?,
            sends: hit.text("role").map(|role| role == "TX"),
            last: last || ["sender", "receiver"].contains(&end),
            end,
            from: from.value,
            to: to.value,
            bytes: exact,
            bits,
            count: value("count"),
            window: hit.scaled("window", 1024.0).map(|number| number.value),
            jitter: value("jitter"),
            lost: value("lost"),
            packets: value("packets"),
        })
    }

    fn json(&self, udp: bool) -> Value {
        let mut row = json!({
            "start": self.from, "end": self.to, "seconds": self.to - self.from, "bytes": self.bytes,
            "bits_per_second": self.bits, "omitted": self.end == "(omitted)",
        });
        let count = if udp { "packets" } else { "retransmits" };
        let values = [
            (count, self.count),
            ("packets", self.packets),
            ("lost_packets", self.lost),
            ("jitter_ms", self.jitter),
        ];
        for (name, value) in values {
            if let Some(value) = value {
                row[name] = value.into();
            }
        }
        if let (Some(lost), Some(packets)) = (self.lost, self.packets.filter(|packets| *packets > 0.0)) {
            row["lost_percent"] = (100.0 * lost / packets).into();
        }
        row
    }
}

/// The rows of a run. A heading after rows is that of the sums.
pub fn rows<'t>(run: &Run<'t>) -> Vec<Row<'t>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut last = false;
    for hit in &run.hits {
        match hit.name {
            "header" => last |= !rows.is_empty(),
            "row" => rows.extend(Row::of(hit, last)),
            _ => {}
        }
    }
    rows
}

/// What kind of test it is.
pub struct TestKind {
    pub udp: bool,
    pub both: bool,
    pub server: bool,
    /// This end sends, of a test in one direction.
    pub sends: bool,
    /// 0 if unknown.
    pub streams: u64,
}

impl TestKind {
    /// The rows of one direction; `back` is the way back of a test in both.
    fn way<'a, 't>(&self, rows: &'a [Row<'t>], back: bool) -> impl Iterator<Item = &'a Row<'t>> {
        let sends = self.sends_of(back);
        rows.iter().filter(move |row| row.sends.is_none_or(|own| own == sends))
    }

    fn sends_of(&self, back: bool) -> bool {
        if self.both { self.server == back } else { self.sends }
    }

    fn ways(&self) -> impl Iterator<Item = (bool, &'static str)> {
        let ways = [(false, ""), (true, "_bidir_reverse")];
        ways.into_iter().take(if self.both { 2 } else { 1 })
    }

    fn is_sum(&self, row: &Row) -> bool {
        (row.id == "SUM") == (self.streams != 1)
    }

    pub fn intervals(&self, rows: &[Row]) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        for (back, suffix) in self.ways() {
            let sums = self.way(rows, back).filter(|row| !row.last && self.is_sum(row));
            for (at, row) in sums.enumerate() {
                if all.len() <= at {
                    all.push(json!({}));
                }
                all[at][format!("sum{suffix}")] = row.json(self.udp);
            }
        }
        all
    }

    pub fn end(&self, run: &Run, rows: &[Row]) -> Value {
        let mut end = json!({});
        let mut streams: Vec<Value> = Vec::new();
        for (back, suffix) in self.ways() {
            let last: Vec<&Row> = self.way(rows, back).filter(|row| row.last).collect();
            for row in last.iter().filter(|row| self.is_sum(row)) {
                let name = match row.end {
                    "sender" => "sum_sent",
                    "receiver" => "sum_received",
                    // Before 3.7 datagrams have one sum: what was sent, and what was lost of it.
                    _ => "sum",
                };
                end[format!("{name}{suffix}")] = row.json(self.udp);
                if self.udp && (row.jitter.is_some() && row.end != "sender") {
                    end[format!("sum{suffix}")] = row.json(true);
                }
            }
            let ids: BTreeSet<&str> = last.iter().map(|row| row.id).filter(|id| *id != "SUM").collect();
            for id in ids {
                streams.push(self.stream(rows, &last, id, back));
            }
        }
        if !streams.is_empty() {
            let reordered = run.all("reordered").filter_map(|hit| hit.number("value"));
            let reordered = reordered.fold(0.0, |sum, number| sum + number.value);
            if self.udp
                && let Some(own) = streams.first_mut()
            {
                own["udp"]["out_of_order"] = reordered.into();
            }
            end["streams"] = streams.into();
        }
        if let Some(hit) = run.hit("cpu") {
            let percent = |field: &str| hit.number(field).map(|number| number.value);
            end["cpu_utilization_percent"] =
                json!({"host_total": percent("local"), "remote_total": percent("remote")});
        }
        if let Some(congestion) = run.text("congestion") {
            end["sender_tcp_congestion"] = congestion.into();
        }
        end
    }

    /// One stream: what its sender and its receiver say.
    fn stream(&self, rows: &[Row], last: &[&Row], id: &str, back: bool) -> Value {
        let mut stream = json!({});
        let own = || last.iter().filter(|row| row.id == id);
        for row in own() {
            let name = if row.end == "receiver" {
                "receiver"
            } else if self.udp {
                "udp"
            } else {
                "sender"
            };
            stream[name] = row.json(self.udp);
            stream[name]["sender"] = self.sends_of(back).into();
        }
        // What was lost of what was sent says the receiver.
        if let Some(row) = own().find(|row| self.udp && row.end == "receiver") {
            let row = row.json(true);
            for name in ["jitter_ms", "lost_packets", "packets", "lost_percent"] {
                stream["udp"][name] = row[name].clone();
            }
            stream["udp"]["sender"] = self.sends_of(back).into();
        }
        let windows = self.way(rows, back).filter(|row| row.id == id && row.end != "(omitted)");
        let window = windows.filter_map(|row| row.window).reduce(f64::max);
        if let Some(window) = window.filter(|_| stream["sender"].is_object()) {
            stream["sender"]["max_snd_cwnd"] = window.into();
        }
        stream
    }
}
