//! The Flink that a run's jobs ran on, from `probe:flink`.

use model::Snapshot;
use model::vocabulary::nexmark as ids;

/// What is known of it: names and values.
pub fn parse(snapshot: &Snapshot) -> Vec<(String, String)> {
    let lines = snapshot.text(ids::probe::FLINK).into_iter().flat_map(str::lines);
    let known = lines.filter_map(|line| line.split_once(' ')).filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Entry;

    #[test]
    fn names_and_values_are_read_and_nothing_else() {
        let mut snapshot = Snapshot::default();
        assert!(parse(&snapshot).is_empty());
        let text = "version 2.3.0\ngc Copy, MarkSweepCompact\nempty \nalone\n";
        snapshot.entries.insert(ids::probe::FLINK.to_string(), Entry::Text(text.to_string()));
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(parse(&snapshot), [pair("version", "2.3.0"), pair("gc", "Copy, MarkSweepCompact")]);
    }
}
