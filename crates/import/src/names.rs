//! What results of one file are called.

use super::Imported;

/// What names a result next to its host, in order of preference.
const NAMING: [&str; 2] = ["heading", "source"];

/// What each of several results is called: by its host, its heading and the source of a log that it
/// is of; where others of its format are called the same, by the first fact that
/// distinguishes it from all of them, and where none does by its number.
pub fn names(all: &[&Imported]) -> Vec<String> {
    let plain: Vec<String> = all.iter().map(|one| one.named()).collect();
    let printed = |at: usize| {
        let is_same = |other: &usize| {
            *other != at && plain[*other] == plain[at] && all[*other].format == all[at].format
        };
        let others: Vec<&Imported> = (0..all.len()).filter(is_same).map(|other| all[other]).collect();
        if others.is_empty() {
            return plain[at].clone();
        }
        let tells = |(label, value): &&(String, String)| {
            others.iter().all(|other| other.fact(label).is_none_or(|said| said != value))
        };
        match all[at].make_up.iter().find(tells) {
            Some((_, value)) if plain[at] == UNNAMED => whole(value),
            Some((_, value)) => format!("{}, {}", plain[at], whole(value)),
            None => format!("{} #{}", plain[at], at + 1),
        }
    };
    (0..all.len()).map(printed).collect()
}

const UNNAMED: &str = "unknown";

impl Imported {
    fn fact(&self, label: &str) -> Option<&str> {
        self.make_up.iter().find(|(known, _)| known == label).map(|(_, value)| value.as_str())
    }

    fn named(&self) -> String {
        let printed = NAMING.into_iter().filter_map(|label| self.fact(label).map(whole));
        let host = Some(whole(&self.host)).filter(|host| host != UNNAMED);
        let parts: Vec<String> = host.into_iter().chain(printed).collect();
        if parts.is_empty() { UNNAMED.to_string() } else { parts.join(", ") }
    }
}

/// A name without the mark of a format that cut it off.
pub fn whole(text: &str) -> String {
    text.trim_end_matches(['…', '-', ' ']).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    fn one(host: &str, facts: &[(&str, &str)]) -> Imported {
        Imported {
            format: Format("result"),
            host: host.to_string(),
            make_up: facts.iter().map(|(label, value)| (label.to_string(), value.to_string())).collect(),
            catalogue: Vec::new(),
            figures: Vec::new(),
            index: Vec::new(),
            remarks: Vec::new(),
            refused: 0,
            findings: Vec::new(),
        }
    }

    #[test]
    fn what_tells_results_apart_is_in_their_names() {
        for (facts, names) in [
            ([vec![("heading", "Before")], vec![("heading", "After")]], ["Before", "After"]),
            (
                [
                    vec![("fio", "3.33"), ("started by", "taskset -c 0")],
                    vec![("fio", "3.33"), ("started by", "taskset -c 8")],
                ],
                ["taskset -c 0", "taskset -c 8"],
            ),
            ([vec![("fio", "3.33")], vec![("fio", "3.33"), ("program", "./new")]], ["unknown #1", "./new"]),
            ([vec![("ran", "Mon")], vec![("ran", "Tue")]], ["Mon", "Tue"]),
            ([vec![], vec![]], ["unknown #1", "unknown #2"]),
        ] {
            let all = facts.map(|facts| one("unknown", &facts));
            assert_eq!(super::names(&all.iter().collect::<Vec<_>>()), names);
        }
        let all = [one("box", &[("to", "10.0.0.1")]), one("box", &[("to", "10.0.0.2")]), one("other", &[])];
        assert_eq!(names(&all.iter().collect::<Vec<_>>()), ["box, 10.0.0.1", "box, 10.0.0.2", "other"]);
    }
}
