//! Changes of result files: hostile texts in every field, numbers out of all bounds, and whatever
//! disks and people do to files.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// Texts that would be more than text. `window.__hit` is what the browser is asked for.
pub const HOSTILE: [&str; 22] = [
    "<script>window.__hit=1</script>",
    "\"><img src=x onerror=window.__hit=2>",
    "javascript:window.__hit=3",
    "' onmouseover='window.__hit=4' x='",
    "</script><script>window.__hit=5</script><!--",
    "[link](javascript:window.__hit=6)",
    "`<script>window.__hit=7</script>`",
    "`` <img src=x onerror=window.__hit=8> ``",
    "]]></style><style>body{display:none}</style>",
    "<svg onload=window.__hit=9>",
    "<a href=\"javascript:window.__hit=10\">x</a>",
    "\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}",
    "\u{9b}31mred\u{8}\u{7f}",
    "\u{202e}gnp.exe\u{202c}\u{2066}x\u{2069}\u{200f}",
    "a\r\nb\tc\u{b}d\u{0}e\u{2028}f",
    "=HYPERLINK(\"http://x.invalid\";\"y\")",
    "+1+1|cmd",
    "@SUM(1)",
    "-2+3",
    "\t=1+1",
    "a|b||c\\|d",
    "{{7*7}} ${7*7} %{y} $x^2$ &lt;b&gt;",
];

/// A file that is changed, and others to take parts from.
pub struct Changer<'a> {
    pub random: fastrand::Rng,
    pub others: &'a [Vec<u8>],
}

impl Changer<'_> {
    fn hostile(&mut self) -> String {
        let text = HOSTILE[self.random.usize(0..HOSTILE.len())];
        match self.random.u8(0..12) {
            0 => format!("{text}{}", "A".repeat(100_000)),
            1 => HOSTILE.concat(),
            _ => text.to_string(),
        }
    }

    fn below(&mut self, most: usize) -> usize {
        if most == 0 { 0 } else { self.random.usize(0..most) }
    }

    /// Some changes of a file, one after another.
    pub fn change(&mut self, file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        // Files that still hold together go further into a program than torn ones.
        match self.random.u8(0..10) {
            0..6 => {
                file = unsealed(&file);
                for _ in 0..self.random.u8(1..6) {
                    file = if file.trim_ascii_start().starts_with(b"{") {
                        self.json(&file)
                    } else {
                        self.text(&file)
                    };
                }
            }
            6 | 7 => {
                for _ in 0..self.random.u8(1..4) {
                    file = self.lines(&file);
                }
            }
            8 => file = self.text(&file),
            _ => {}
        }
        if self.random.u8(0..5) == 0 {
            file = self.bytes(file);
        }
        match self.random.u8(0..24) {
            0 => packed(&file),
            1 => {
                let mut packed = packed(&file);
                packed.truncate(self.random.usize(1..packed.len()));
                packed
            }
            2 => packed(&packed(&file)),
            _ => file,
        }
    }

    /// One line of JSON, or a whole file of it, parsed, changed and written again.
    fn json(&mut self, file: &[u8]) -> Vec<u8> {
        if let Ok(mut value) = serde_json::from_slice::<Value>(file) {
            self.value(&mut value);
            return serde_json::to_vec(&value).expect("JSON");
        }
        let mut lines: Vec<Vec<u8>> = file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // Whatever else follows hangs on the header.
        let index = if self.random.u8(0..3) == 0 { 0 } else { self.random.usize(0..lines.len()) };
        if let Ok(mut value) = serde_json::from_slice::<Value>(&lines[index]) {
            self.value(&mut value);
            lines[index] = serde_json::to_vec(&value).expect("JSON");
        }
        lines.join(&b'\n')
    }

    fn value(&mut self, value: &mut Value) {
        match self.random.u8(0..8) {
            0 => self.plant(value, 0.3),
            1 => self.plant(value, 1.0),
            2..5 => {
                let few = f64::from(self.random.u8(1..12)) / texts(value).max(1) as f64;
                self.plant(value, few);
            }
            _ => self.inside(value),
        }
    }

    /// Hostile texts in this share of all texts; in others, names of fields are kept.
    fn plant(&mut self, value: &mut Value, share: f64) {
        match value {
            Value::String(text) if self.random.f64() < share => {
                let hostile = self.hostile();
                *text = if self.random.bool() { hostile } else { format!("{text}{hostile}") };
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.plant(item, share)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.plant(field, share)),
            _ => {}
        }
    }

    /// Goes down to some place inside and changes it.
    fn inside(&mut self, value: &mut Value) {
        let down = self.random.u8(0..10) > 0;
        match value {
            Value::Array(items) if down && !items.is_empty() => {
                let index = self.random.usize(0..items.len());
                match self.random.u8(0..12) {
                    0 => drop(items.remove(index)),
                    1 => items.push(items[index].clone()),
                    2 => items.extend(vec![items[index].clone(); 300]),
                    _ => self.inside(&mut items[index]),
                }
            }
            Value::Object(fields) if down && !fields.is_empty() => {
                let keys: Vec<String> = fields.keys().cloned().collect();
                let key = &keys[self.random.usize(0..keys.len())];
                match self.random.u8(0..16) {
                    0 => drop(fields.remove(key)),
                    1 => {
                        let (name, field) = (self.hostile(), fields[key].clone());
                        fields.insert(name, field);
                    }
                    2 => {
                        let other = &keys[self.random.usize(0..keys.len())];
                        let field = fields[other].clone();
                        fields.insert(key.clone(), field);
                    }
                    _ => self.inside(&mut fields[key]),
                }
            }
            other => *other = self.another(other),
        }
    }

    /// Something else of the same kind, or of none.
    fn another(&mut self, value: &Value) -> Value {
        const NUMBERS: [f64; 12] =
            [0.0, -0.0, -1.0, 0.5, 1e-320, 1e300, -1e300, 1e18, 4294967296.0, 65536.0, 1e9, 4294967295.0];
        match (value, self.random.u8(0..8)) {
            (_, 0) => Value::Null,
            (_, 1) => [json!([]), json!({}), json!(""), json!(true), json!([[[[0]]]])]
                [self.random.usize(0..5)]
            .clone(),
            (Value::Number(_), 2) => json!([u64::MAX, u64::from(u32::MAX), 1 << 53][self.random.usize(0..3)]),
            (Value::Number(_), 3) => json!([i64::MIN, -1][self.random.usize(0..2)]),
            (Value::Number(number), 4) => {
                json!(number.as_f64().unwrap_or(1.0) * 10f64.powi(self.random.i32(-12..13)))
            }
            (Value::Number(_), _) => json!(NUMBERS[self.random.usize(0..NUMBERS.len())]),
            (Value::String(text), 2) => json!(text.chars().rev().collect::<String>()),
            (Value::String(text), 3) => json!(text.repeat(50)),
            (Value::String(text), 4) => json!(format!("{text}{}", self.hostile())),
            _ => json!(self.hostile()),
        }
    }

    /// Words, numbers and places of a text.
    fn text(&mut self, file: &[u8]) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(file).into_owned();
        for _ in 0..self.random.u8(1..5) {
            let words: Vec<(usize, &str)> =
                text.split_whitespace().map(|word| (word.as_ptr() as usize, word)).collect();
            if words.is_empty() {
                return self.hostile().into_bytes();
            }
            let (at, word) = words[self.random.usize(0..words.len())];
            let begin = at - text.as_ptr() as usize;
            let range = begin..begin + word.len();
            let number = word.chars().any(|c| c.is_ascii_digit()) && self.random.bool();
            let new = match number {
                true => {
                    const NUMBERS: [&str; 14] = [
                        "0",
                        "-0",
                        "-1",
                        "1e999",
                        "-1e308",
                        "NaN",
                        "inf",
                        "1e-400",
                        "99999999999999999999",
                        "0x10",
                        "1,5",
                        "1.2.3",
                        "007",
                        "+3",
                    ];
                    NUMBERS[self.random.usize(0..NUMBERS.len())].to_string()
                }
                false if self.random.bool() => self.hostile(),
                false => format!("{word}{}", self.hostile()),
            };
            text.replace_range(range, &new);
        }
        text.into_bytes()
    }

    /// Whole lines: lost, doubled, moved, cut off, taken from elsewhere.
    fn lines(&mut self, file: &[u8]) -> Vec<u8> {
        let mut lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        let foreign = &self.others[self.below(self.others.len())];
        match self.random.u8(0..9) {
            _ if lines.is_empty() => return file.to_vec(),
            0 => drop(lines.remove(one)),
            1 => lines.insert(one, lines[other]),
            2 => lines.swap(one, other),
            3 => lines.truncate(one + 1),
            4 => drop(lines.drain(..one)),
            5 => lines.extend(vec![lines[one]; 2000.min(4_000_000 / (lines[one].len() + 1))]),
            6 => {
                let theirs: Vec<&[u8]> = foreign.split_inclusive(|byte| *byte == b'\n').collect();
                let from = self.below(theirs.len());
                let part = theirs[from..].iter().take(self.random.usize(1..40)).copied();
                lines.splice(one..one, part.collect::<Vec<_>>());
            }
            7 => {
                return lines
                    .concat()
                    .iter()
                    .flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) })
                    .copied()
                    .collect();
            }
            _ => lines.reverse(),
        }
        lines.concat()
    }

    fn bytes(&mut self, mut file: Vec<u8>) -> Vec<u8> {
        for _ in 0..self.random.u8(1..8) {
            let at = self.below(file.len());
            match self.random.u8(0..6) {
                _ if file.is_empty() => file.push(self.random.u8(..)),
                0 => file[at] ^= 1 << self.random.u8(0..8),
                1 => file[at] = self.random.u8(..),
                2 => drop(file.drain(at..(at + self.random.usize(1..200)).min(file.len()))),
                3 => file.truncate(at),
                4 => drop(file.splice(at..at, std::iter::repeat_n(0, 40))),
                _ => {
                    let part = file[at..(at + 100).min(file.len())].to_vec();
                    drop(file.splice(at..at, part));
                }
            }
        }
        file
    }
}

fn texts(value: &Value) -> usize {
    match value {
        Value::String(_) => 1,
        Value::Array(items) => items.iter().map(texts).sum(),
        Value::Object(fields) => fields.values().map(texts).sum(),
        _ => 0,
    }
}

/// Without the checksums of its lines, as older versions wrote them: what was changed on purpose is
/// not refused for that.
fn unsealed(file: &[u8]) -> Vec<u8> {
    let lines = file.split(|byte| *byte == b'\n').map(|line| {
        let begin = line.len().checked_sub(20).filter(|begin| line[*begin..].starts_with(b",\"crc32\":\""));
        begin.map_or(line.to_vec(), |begin| [&line[..begin], b"}"].concat())
    });
    lines.collect::<Vec<_>>().join(&b'\n')
}

pub fn packed(file: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(file).and_then(|()| encoder.finish()).expect("memory takes all")
}
