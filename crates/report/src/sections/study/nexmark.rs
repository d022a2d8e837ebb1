//! What a host does of a streaming job (`assay run --only nexmark`). Words: `417k EVENTS A SECOND`,
//! of a figure that is not trusted `ABOUT 417k EVENTS A SECOND`; `FULL LOAD NOT REACHED`, `NO
//! CAPACITY KNOWN`.

use super::super::nexmark::{self, Capacity};
use super::{Answer, sentence};
use crate::screen::Tone;
use diagnose::Diagnosis;

pub fn answer(diagnosis: &Diagnosis) -> Option<Answer> {
    let titles = diagnosis.run.header.catalogue.iter().filter(|title| title.id.starts_with(nexmark::GROUP));
    let measured: Vec<_> = titles.filter(|title| nexmark::is_measured(diagnosis, title)).collect();
    let first = measured.first()?;
    let capacity = nexmark::capacity(diagnosis, first);
    let doubt = capacity.as_ref().and_then(|found| found.doubt.as_ref()).filter(|_| measured.len() == 1);
    let (word, tone) = match &capacity {
        Some(Capacity { most, full: true, .. }) if measured.len() == 1 => {
            let most = model::figure(*most, "");
            match doubt {
                None => (format!("{most} EVENTS A SECOND"), Tone::Strong),
                Some(_) => (format!("ABOUT {most} EVENTS A SECOND"), Tone::Care),
            }
        }
        Some(Capacity { full: true, .. }) => (format!("CAPACITY OF {} JOBS", measured.len()), Tone::Strong),
        Some(_) => ("FULL LOAD NOT REACHED".to_string(), Tone::Care),
        None => ("NO CAPACITY KNOWN".to_string(), Tone::Care),
    };
    let said = nexmark::conclusion(diagnosis).into_iter().map(|text| sentence(&text));
    let doubt = doubt.map(|why| sentence(&format!("that rate is not trusted ({why})")));
    let mut answer = Answer::new(word, tone).sentences(said.chain(doubt));
    if let Some(table) = nexmark::capacities_of(diagnosis, first) {
        answer = answer.table(table);
    }
    Some(answer)
}
