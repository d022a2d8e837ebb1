//! The text format of Prometheus, for a file in the folder of a node exporter's textfile collector:
//! gauges without times of their own, since a collector skips files that have them.

use std::collections::BTreeSet;
use std::fmt::Write;

/// A label's name and its value.
pub type Label<'l> = (&'l str, &'l str);

/// A file that grows by a metric at a time.
#[derive(Default)]
pub struct Exposition {
    text: String,
    /// A collector refuses a file in which a sample stands twice.
    seen: BTreeSet<String>,
}

impl Exposition {
    /// A metric with its samples; without any nothing is written. A help text must be the same in
    /// all files of a folder.
    pub fn gauge<L: AsRef<[(N, V)]>, N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (L, f64)>,
    ) {
        let mut head = Some(format!("# HELP {name} {help}\n# TYPE {name} gauge\n"));
        for (labels, value) in samples {
            let sample = format!("{name}{}", braced(labels.as_ref()));
            if self.seen.insert(sample.clone()) {
                self.text += &head.take().unwrap_or_default();
                let _ = writeln!(self.text, "{sample} {}", number(value));
            }
        }
    }

    pub fn text(self) -> String {
        self.text
    }
}

fn braced<N: AsRef<str>, V: AsRef<str>>(labels: &[(N, V)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all = labels.iter().map(|(name, value)| format!("{}=\"{}\"", name.as_ref(), escaped(value.as_ref())));
    format!("{{{}}}", all.collect::<Vec<_>>().join(","))
}

fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_string(),
        value if value.is_infinite() => if value > 0.0 { "+Inf" } else { "-Inf" }.to_string(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_label_is_escaped_and_no_sample_stands_twice() {
        let mut own = Exposition::default();
        own.gauge("a", "Of a.", [([("host", "x\"\\\ny")], 0.5), ([("host", "x\"\\\ny")], 1.0)]);
        own.gauge("b", "Of b.", [([] as [Label; 0], f64::INFINITY)]);
        own.gauge("c", "Of c.", [] as [([Label; 0], f64); 0]);
        let expected = "# HELP a Of a.\n# TYPE a gauge\na{host=\"x\\\"\\\\\\ny\"} 0.5\n\
                        # HELP b Of b.\n# TYPE b gauge\nb +Inf\n";
        assert_eq!(own.text(), expected);
    }
}
