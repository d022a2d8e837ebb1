//! Facts of a test, and those in which tests of one system differ.

use serde_json::Value;

use super::positive;
use crate::builder::Builder;
use crate::faults::short;

/// A longer list of what tests differ in is cut, bytes.
const MAX_CHARS: usize = 80;

/// Notes the facts of a test.
pub fn facts(start: &Value, end: &Value, builder: &mut Builder) {
    let setup = &start["test_start"];
    let text = |value: &Value| value.as_str().map(short).unwrap_or_default();
    builder.fact("ran", &text(&start["timestamp"]["time"]));
    builder.fact("to", &text(&start["connecting_to"]["host"]));
    builder.fact("from", &text(&start["accepted_connection"]["host"]));
    builder.fact("congestion", &text(&end["sender_tcp_congestion"]));
    for (label, name, unit) in [("duration", "duration", " s"), ("omitted", "omit", " s"), ("tos", "tos", "")]
    {
        let Some(value) = setup[name].as_f64() else { continue };
        // Tests of one system may differ in it; that they had none of it says what others had.
        let own = format!("{value}{unit}");
        let begun = !builder.is_empty();
        match builder.make_up.iter_mut().find(|(known, _)| known == label) {
            Some((_, values)) if value == 0.0 && label == "duration" || values.len() > MAX_CHARS => {}
            Some((_, values)) if values.split(", ").any(|one| one == own) => {}
            Some((_, values)) => *values = format!("{values}, {own}"),
            None if value == 0.0 => {}
            None if begun && label != "duration" => builder.fact(label, &format!("0{unit}, {own}")),
            None => builder.fact(label, &own),
        }
    }
    for (label, value) in [("mss", &start["tcp_mss_default"]), ("socket_buffer", &start["sock_bufsize"])] {
        if let Some(value) = positive(value) {
            builder.fact(label, &format!("{value} B"));
        }
    }
}
