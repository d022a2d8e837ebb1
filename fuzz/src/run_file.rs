//! Run files: what can be read can be written and read again, and gives the same report.

use std::io::{Cursor, Write};

use diagnose::{self, Diagnosis};
use flate2::Compression;
use flate2::write::GzEncoder;
use model::run_file;
use model::{Record, Run};

use super::report;

/// A run file, plain or compressed.
pub fn run_file(data: &[u8]) {
    let run = run_file::unpack(data);
    if !data.starts_with(&[0x1f, 0x8b]) {
        compressed(data, run.as_ref().ok());
    }
    if let Ok(run) = run {
        check(run);
    }
}

/// The same bytes compressed are the same run; cut short they are a part of it, or an error.
fn compressed(data: &[u8], plain: Option<&Run>) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let whole = encoder.write_all(data).and_then(|()| encoder.finish()).expect("memory can be written");
    assert!(run_file::unpack(whole.as_slice()).ok().as_ref() == plain, "compressed it is another run");
    let cut = &whole[..whole.len() - whole.len() / 3];
    if let Ok(part) = run_file::unpack(Cursor::new(cut)) {
        assert!(plain.is_some_and(|plain| plain.header == part.header), "another header after a cut");
    }
}

/// Everything that is done with a run that was read.
pub fn check(run: Run) {
    let again = run_file::parse(written(&run).as_slice()).expect("what was read can be read again");
    assert_eq!(again.damage, Vec::<String>::new(), "damage that was not there");
    let whole = Run { damage: Vec::new(), ..run.clone() };
    assert!(again == whole, "a run changed on its way through a file");
    let sealed: Vec<u8> =
        records(&run).iter().flat_map(|record| run_file::sealed(record).expect("a line")).collect();
    assert!(
        run_file::parse(sealed.as_slice()).ok() == Some(whole),
        "a run changed with checksums on its lines"
    );

    let (damage, summary) = (run.damage.clone(), run.summary.is_some());
    let diagnosis = diagnose::diagnose(run);
    closed(&diagnosis);
    let json = report::check(&diagnosis);
    // The same run gives the same answer, whatever machine it is diagnosed on.
    if damage.is_empty() && summary == again.summary.is_some() {
        let mut same = diagnose::diagnose(again);
        same.run.damage = damage;
        assert!(report::json(&same) == json, "a second diagnosis differs");
    }
}

fn records(run: &Run) -> Vec<Record> {
    let mut records = vec![Record::Header(Box::new(run.header.clone()))];
    records.extend(run.visits.iter().map(|visit| Record::Visit(Box::new(visit.clone()))));
    records.extend(run.time_lines.iter().cloned().map(Record::TimeLine));
    records.extend(run.events.iter().cloned().map(Record::Event));
    records.extend(run.summary.iter().map(|summary| Record::Summary(Box::new(summary.clone()))));
    records
}

/// A run as its lines, without checksums.
pub fn written(run: &Run) -> Vec<u8> {
    let line = |record: &Record| serde_json::to_vec(record).expect("every record can be written");
    records(run).iter().map(line).collect::<Vec<_>>().join(&b'\n')
}

/// The summary that closes the file is short, and read back as it was.
fn closed(diagnosis: &Diagnosis) {
    let summary = diagnosis.summary();
    let mut text = written(&Run { summary: None, ..diagnosis.run.clone() });
    let line = serde_json::to_vec(&Record::Summary(Box::new(summary.clone()))).expect("it can be written");
    assert!(line.len() <= 64 << 10, "a summary of {} bytes", line.len());
    text.push(b'\n');
    text.extend(line);
    let run = run_file::parse(text.as_slice()).expect("the same file with one more line");
    assert_eq!(run.damage, Vec::<String>::new(), "the summary cannot be read");
    assert!(run.summary == Some(summary), "the summary changed on its way through a file");
}
