//! Prints the summaries of a fleet that is made of real runs, a line each:
//! `cargo run --release -p prove --bin fleet -- HOSTS RUN... > fleet.ndjson`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use model::run_file;
use prove::likenesses::Likenesses;

fn main() -> ExitCode {
    match print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fleet: {error}; give it a number of hosts and run files with a summary");
            ExitCode::from(2)
        }
    }
}

fn print() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let hosts: u64 = arguments.next().ok_or("no number of hosts")?.parse()?;
    let mut summaries = Vec::new();
    for path in arguments.map(PathBuf::from) {
        summaries.push(run_file::summary(&mut run_file::open(&path)?)?);
    }
    if summaries.is_empty() {
        return Err("no run".into());
    }
    let mut made = Likenesses::of(summaries, 1);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for number in 0..hosts {
        serde_json::to_writer(&mut out, &made.host(number))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
