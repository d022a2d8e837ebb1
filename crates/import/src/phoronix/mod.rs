//! Result files of the Phoronix Test Suite (`composite.xml`): systems, and results with an entry
//! for each of them (`read.rs`). The figures of an entry are made in `figures.rs`.
//!
//! A test profile sets the version, the flags and the threads of the tool that it runs. So a figure
//! has a key by its profile, `phoronix.NAME`, also where the tool alone is imported, too; what the
//! profile, its test and its arguments say is in the key.

mod figures;
mod read;
#[cfg(test)]
mod tests;

use super::{Format, Imported, Tool};

pub(crate) const TOOL: Tool = Tool::of("Phoronix Test Suite (composite.xml)", is_one, read);

pub(crate) const FORMAT: Format = Format("Phoronix Test Suite result");

/// How a file begins; so do the suite's other files, which have neither systems nor results.
const ROOT: &str = "<PhoronixTestSuite>";

fn is_one(text: &str) -> bool {
    text.contains(ROOT) && (text.contains("<Result>") || text.contains("<System>"))
}

/// The results of all systems in a text, of each of its files. An error says that it has none.
fn read(text: &str) -> anyhow::Result<Vec<Imported>> {
    /// More files in one text are a mistake or an attack.
    const MAX_FILES: usize = 200;
    let mut all: Vec<Imported> = Vec::new();
    for file in text.split(ROOT).skip(1).take(MAX_FILES) {
        for found in figures::imported(&read::composite(file)) {
            let is_same = |known: &&mut Imported| {
                known.host == found.host && known.figures == found.figures && known.make_up == found.make_up
            };
            match all.iter_mut().find(is_same) {
                Some(known) => {
                    known.remarks.push("the text has the same file twice: it counts once".to_string())
                }
                None => all.push(found),
            }
        }
    }
    anyhow::ensure!(
        all.iter().any(|one| !one.figures.is_empty()),
        "it is a file of the Phoronix Test Suite without an entry: no test ran, or the file was cut off"
    );
    Ok(all)
}
