//! What benchmarks remarked about their own visits: on what they worked, what was refused, what
//! they left out.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use diagnose::Diagnosis;

/// A remark, with the rows that made it and how many of their visits did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Note {
    pub text: String,
    pub benches: Vec<String>,
    pub visits: usize,
}

/// All remarks, each once, in the order in which they were made first.
pub fn notes(diagnosis: &Diagnosis) -> Vec<Note> {
    let plan = &diagnosis.run.header.plan;
    let mut found: Vec<Note> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for visit in &diagnosis.run.visits {
        let Some(planned) = plan.get(visit.case as usize) else { continue };
        let own: BTreeSet<&String> = visit.process.notes.iter().collect();
        for note in own {
            let place = *places.entry(note).or_insert_with(|| {
                found.push(Note { text: note.clone(), benches: Vec::new(), visits: 0 });
                found.len() - 1
            });
            let bench = planned.case.bench.to_string();
            if !found[place].benches.contains(&bench) {
                found[place].benches.push(bench);
            }
            found[place].visits += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::diagnose;
    use testkit::{run, samples, visit};

    #[test]
    fn a_remark_stands_once_with_all_who_made_it() {
        let of = |order: u32, case: u32, notes: &[&str]| {
            let mut visit = visit(order, case, 0, vec![samples("rate", 0, &[1.0])]);
            visit.process.notes = notes.iter().map(|note| note.to_string()).collect();
            visit
        };
        let visits = vec![
            of(0, 0, &["refused", "on ext4"]),
            of(1, 1, &["on ext4", "on ext4"]),
            of(2, 0, &["on ext4"]),
        ];
        let found = notes(&diagnose(run(2, visits)));
        let said: Vec<(&str, usize, usize)> =
            found.iter().map(|note| (note.text.as_str(), note.benches.len(), note.visits)).collect();
        assert_eq!(said, [("on ext4", 2, 3), ("refused", 1, 1)]);
    }
}
