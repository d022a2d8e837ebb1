//! The first screens of studies: what each family of benchmarks answers, as a verdict of a few
//! words, at most three sentences and one table or picture. The words of each stand in its file.

mod capacity;
mod guarded;
mod host;
mod knobs;
mod memory;
mod nexmark;
mod rate;
mod repeated;
mod unixbench;

use crate::block::{Block, Cell, Table};
use crate::screen::{FindingLine, Screen, Tone};
use diagnose::Diagnosis;
use diagnose::bottom_line::clean;
use diagnose::words::capital;

/// What a study comes to.
pub struct Answer {
    /// Two to eight words.
    pub word: String,
    pub tone: Tone,
    /// What decides it and what to do; at most three.
    pub sentences: Vec<String>,
    /// The one table or picture that answers the question.
    pub blocks: Vec<Block>,
    /// What can be done with it now, as commands with a word before; RUN is its run file.
    pub next: Vec<String>,
    /// Whether it is shown for a disturbed run too, because the disturbance is its subject.
    pub regardless: bool,
}

/// A family of studies; `declared`: its runs say what they are, so that key figures among them are
/// only what it measured by.
struct Family {
    declared: bool,
    answer: fn(&Diagnosis) -> Option<Answer>,
}

/// Every family, those first whose answer stands above that of another in the same run.
const FAMILIES: [Family; 10] = [
    Family { declared: true, answer: knobs::sweep },
    Family { declared: true, answer: knobs::profile },
    Family { declared: true, answer: guarded::answer },
    Family { declared: true, answer: host::answer },
    Family { declared: false, answer: unixbench::answer },
    Family { declared: false, answer: capacity::answer },
    Family { declared: false, answer: rate::answer },
    Family { declared: false, answer: memory::answer },
    Family { declared: false, answer: nexmark::answer },
    Family { declared: false, answer: repeated::answer },
];

/// Sentences of a verdict at most.
const SENTENCES: usize = 3;

/// Rows of a table at most.
const ROWS: usize = 16;

/// The answer of the first family that has one.
pub fn answer(diagnosis: &Diagnosis, has_key_figures: bool) -> Option<Answer> {
    let asked = FAMILIES.iter().filter(|family| family.declared || !has_key_figures);
    asked.filter_map(|family| (family.answer)(diagnosis)).next()
}

impl Answer {
    fn new(word: impl Into<String>, tone: Tone) -> Answer {
        Answer {
            word: word.into(),
            tone,
            sentences: Vec::new(),
            blocks: Vec::new(),
            next: Vec::new(),
            regardless: false,
        }
    }

    fn sentences(self, sentences: impl IntoIterator<Item = String>) -> Answer {
        Answer { sentences: sentences.into_iter().filter(|text| !text.is_empty()).collect(), ..self }
    }

    fn table(mut self, table: Table) -> Answer {
        self.blocks.push(Block::Table(shortened(table)));
        self
    }

    /// On a screen that has all else. Of a run that is not valid only what holds regardless
    /// stays.
    pub fn on(self, mut screen: Screen, is_valid: bool, diagnosis: &Diagnosis) -> Screen {
        screen.rows = Vec::new();
        screen.cards = Vec::new();
        screen.remarks = Vec::new();
        if !is_valid && !self.regardless {
            return screen;
        }
        screen.word = self.word;
        screen.tone = self.tone;
        screen.sentences = self.sentences;
        screen.sentences.truncate(SENTENCES);
        if screen.sentences.len() < SENTENCES {
            screen.sentences.extend(clean(diagnosis));
        }
        screen.blocks = self.blocks;
        screen.next = self.next;
        // What the verdict says is no news below it.
        let said = |line: &FindingLine| screen.sentences.iter().any(|text| text.contains(&line.text));
        screen.findings.retain(|line| !said(line));
        screen
    }
}

/// A table of no more rows than a screen has; what is left out is counted.
pub(crate) fn shortened(mut table: Table) -> Table {
    if table.rows.len() > ROWS {
        let more = table.rows.len() + 1 - ROWS;
        table.rows.truncate(ROWS - 1);
        table.rows.push(vec![Cell::Text(format!("{more} more"))]);
    }
    table
}

/// A sentence that begins with a capital and ends with a full stop.
fn sentence(words: &str) -> String {
    let text = capital(words);
    if text.is_empty() || text.ends_with('.') { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests;
