//! The lines by which fio says what a job is to do.

use super::RUNS_APART;
use super::numbers::{amount, named, whole};

/// A job that is announced: its name and options.
#[derive(Clone, Debug)]
pub struct Announced {
    pub name: String,
    pub group: Option<i64>,
    pub options: Vec<(String, String)>,
    /// A line of dots follows: there are several.
    pub several: bool,
    pub done: bool,
    /// Half of the last digit of its block size, bytes.
    pub block_rounding: f64,
}

/// `NAME: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=32`; of a line that
/// was cut what stands there whole.
pub fn announced(line: &str) -> Option<Announced> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, rest) = rest.split_once("): ")?;
    let own = |name: &str| Some((name.to_string(), named(rest, name)?.to_string()));
    let engine = whole(rest, "ioengine").map(|engine| ("ioengine".to_string(), engine.to_string()));
    let mut options: Vec<(String, String)> = [engine, own("iodepth")].into_iter().flatten().collect();
    let rw = whole(rest, "rw")?;
    options.push(("rw".to_string(), rw.to_string()));
    options.extend(blocks(rest, rw).map(|size| ("bs".to_string(), size)));
    Some(Announced {
        name: name.trim().to_string(),
        group: group.parse().ok().map(|group: i64| group.clamp(0, RUNS_APART - 1)),
        options,
        several: false,
        done: false,
        block_rounding: rounding(rest),
    })
}

/// Half of the last digit of the first block size: `65.5kB` is 65 450 to 65 550 bytes.
fn rounding(rest: &str) -> f64 {
    let text = rest
        .split_once("bs=")
        .map_or("", |(_, text)| text)
        .trim_start_matches(['(', 'R', 'W', 'T', ')', ' ']);
    let text = text.split(['-', '/', ',']).next().unwrap_or_default().trim();
    let digits = text.find(|one: char| !(one.is_ascii_digit() || one == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let behind = number.split_once('.').map_or(0, |(_, digits)| digits.len().min(9));
    match size(&format!("1{unit}")) {
        Some(scale) if scale > 1.0 => scale * 0.5 / 10f64.powi(behind as i32),
        _ => 0.0,
    }
}

/// A size of a block, bytes. `kB` are 1000 (`--kb_base=1000`), `KB` what version 2 called 1024.
fn size(text: &str) -> Option<f64> {
    let kilo = if text.contains("KB") { 1024.0 } else { 1000.0 };
    amount(text, kilo).filter(|bytes| *bytes >= 1.0)
}

/// The sizes of blocks as an option would say them: one, a range, or one a direction with commas.
fn blocks(rest: &str, rw: &str) -> Option<String> {
    let text = rest.split_once("bs=")?.1;
    // Of a line that was cut the last may have been longer.
    let text = text.split_once(", ioengine").or(text.rsplit_once([',', '/']))?.0;
    let ranges: Vec<&str> = if text.contains("(R)") {
        text.split(',').map(|part| part.trim().trim_start_matches(['(', 'R', 'W', 'T', ')', ' '])).collect()
    } else {
        text.split('/').map(str::trim).collect()
    };
    let size = |text: &str| size(text).map(|bytes| format!("{bytes:.0}"));
    let range = |range: &&str| -> Option<String> {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high) = (size(low)?, size(high)?);
        Some(if low == high { low } else { format!("{low}-{high}") })
    };
    let all: Vec<String> = ranges.iter().map(range).collect::<Option<_>>()?;
    // What a direction that is not used would have had says nothing.
    let (reads, writes) =
        (rw.contains("read") || rw.contains("rw"), rw.contains("write") || rw.contains("rw"));
    match (all.as_slice(), reads, writes) {
        ([read, write, ..], true, true) if read != write => Some(format!("{read},{write}")),
        ([_, write, ..], false, true) => Some(write.clone()),
        ([.., trim], false, false) => Some(trim.clone()),
        ([first, ..], ..) => Some(first.clone()),
        _ => None,
    }
}
