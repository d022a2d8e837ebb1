//! From a band to a word: fast, normal, slow or bad.

use super::table::{Kind, Row, Sure};
use model::Better;
use schemars::JsonSchema;
use serde::Serialize;

/// How good a figure is against its band, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    Fast,
    Normal,
    Slow,
    Bad,
    /// Beyond a limit by more than its interval: impossible.
    TooGoodToBeTrue,
}

/// What a figure is of, which words are said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quality {
    Speed,
    Size,
    Stability,
}

impl Word {
    pub fn words(self, quality: Quality) -> &'static str {
        match (self, quality) {
            (Word::TooGoodToBeTrue, _) => "too good to be true",
            (Word::Fast, Quality::Speed) => "fast",
            (Word::Normal, Quality::Speed | Quality::Size) => "normal",
            (Word::Slow, Quality::Speed) => "slow",
            (Word::Bad, Quality::Speed) => "bad",
            (Word::Fast, Quality::Size) => "large",
            (Word::Slow | Word::Bad, Quality::Size) => "small",
            (Word::Fast | Word::Normal, Quality::Stability) => "steady",
            (Word::Slow, Quality::Stability) => "unsteady",
            (Word::Bad, Quality::Stability) => "unstable",
        }
    }
}

/// Where a band's figures stand, and since when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Source {
    pub source: String,
    /// As the table has it: a day, a month, a year or years.
    pub date: String,
    /// What differs from how Assay measures.
    pub note: String,
}

/// What is typical of a class.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// As the sources have them, in the unit that was asked for; null: the band has no such end.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub unit: String,
    /// In words: `Xeon 6 (Granite Rapids)`, `x86, any kernel`, `any NVMe`.
    pub class: String,
    /// Of a wider class than the host's own.
    pub wide: bool,
    pub kind: Kind,
    /// Of the worst source.
    pub sure: Sure,
    /// The table that it is from: `published`, or what the user named.
    pub table: String,
    pub sources: Vec<Source>,
    /// The ends that count, before they are widened.
    #[serde(skip)]
    pub(super) ends: Ends,
}

/// Ends as values are compared with them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ends {
    pub low: f64,
    pub high: f64,
    pub tolerance: f64,
    pub better: Better,
    /// Nothing is said of what is worse than its worse end.
    pub is_open: bool,
    /// Too little is known of its class to call anything bad.
    pub is_vague: bool,
    /// Nothing real is better than this.
    pub limit: Option<f64>,
}

/// A figure read against its band.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Reading {
    pub word: Word,
    /// The band is that of a wider class: shown as `~`.
    pub wide: bool,
    /// The word of the worse end of its interval, where that is worse: `? slow or normal`.
    pub unsure: Option<Word>,
    /// What makes a fast figure doubtful: `a cache?`.
    pub suspicion: Option<String>,
    pub band: Band,
}

impl Reading {
    /// Of a value that is normal for certain and outside of the band, by which share it may be.
    pub fn tolerated(&self, value: f64) -> Option<f64> {
        let inside =
            self.band.low.is_none_or(|low| value >= low) && self.band.high.is_none_or(|high| value <= high);
        (self.word == Word::Normal && self.unsure.is_none() && !inside).then_some(self.band.ends.tolerance)
    }

    /// Whether a verdict may rest on it: a band of its own class that is sure, and an interval
    /// within one word.
    pub fn is_certain(&self) -> bool {
        !self.wide && self.unsure.is_none() && self.band.sure > Sure::Low
    }
}

/// Slow, and not bad, by this ratio to the band's end at most.
const SLOW: f64 = 1.5;

/// No word for a figure with half an interval wider than this share of it.
const WIDEST: f64 = 0.30;

/// The share of a promised "up to" that a disk reaches: of bandwidth, and of operations.
const PROMISED: [f64; 2] = [0.6, 0.4];

impl Ends {
    /// The word of a value; `None` where it is worse than a band that is open there.
    fn word(&self, value: f64) -> Option<Word> {
        let widened = 1.0 + self.tolerance;
        // Both as "how far is it on the worse side", so that one rule does for both directions.
        let (beyond_better, worse) = match self.better {
            Better::Higher => (value > self.high * widened, self.low / value),
            _ => (value < self.low / widened, value / self.high),
        };
        match worse {
            _ if beyond_better => Some(Word::Fast),
            worse if worse <= widened => Some(Word::Normal),
            _ if self.is_open => None,
            worse if worse <= SLOW || self.is_vague => Some(Word::Slow),
            _ => Some(Word::Bad),
        }
    }

    fn is_beyond_limit(&self, value: f64, interval: Option<[f64; 2]>) -> bool {
        let [low, high] = interval.unwrap_or([value; 2]);
        match (self.limit, self.better) {
            (Some(limit), Better::Higher) => low > limit,
            (Some(limit), _) => high < limit,
            (None, _) => false,
        }
    }
}

/// One row's ends and whether it is open, in a unit that is `factor` of its own.
pub(super) fn ends_of(row: &Row, factor: f64) -> Option<(f64, f64, bool)> {
    let is_disk = row.subjects().all(|subject| subject.starts_with("disk/"));
    let up_to = row.kind == Some(Kind::Specified) && row.better == Better::Higher;
    let reached = match (up_to && is_disk, row.unit.as_str()) {
        (false, _) => 1.0,
        (true, "1/s") => PROMISED[1],
        (true, _) => PROMISED[0],
    };
    let (low, high, is_open) = match (row.low, row.high, row.better) {
        (Some(low), Some(high), _) => (low * reached, high, false),
        (None, Some(high), Better::Higher) => (high * reached, high, false),
        // "Less than", "at least" and "from" give one end only.
        (None, Some(high), _) => (0.0, high, false),
        (Some(low), None, Better::Higher) => (low, f64::INFINITY, false),
        (Some(low), None, _) => (low, low, true),
        (None, None, _) => return None,
    };
    Some((low * factor, high * factor, is_open))
}

/// Reads a value, in the band's unit.
pub(super) fn read(
    band: Band,
    value: f64,
    interval: Option<[f64; 2]>,
    is_suspicious: bool,
) -> Option<Reading> {
    let interval = interval.filter(|[low, high]| !low.is_nan() && !high.is_nan());
    let half = interval.map_or(0.0, |[low, high]| (high - low) / 2.0);
    if !value.is_finite() || value <= 0.0 || half > WIDEST * value {
        return None;
    }
    let wide = band.wide;
    if band.ends.is_beyond_limit(value, interval) {
        let word = Word::TooGoodToBeTrue;
        return Some(Reading { word, wide, unsure: None, suspicion: None, band });
    }
    // A limit alone does not rate the values below it.
    if band.kind == Kind::Limit {
        return None;
    }
    // Two runs whose intervals meet count as equally fast.
    let [low, high] = interval.unwrap_or([value; 2]);
    let widened = 1.0 + band.ends.tolerance;
    if band.kind == Kind::Run && low <= band.ends.high * widened && high >= band.ends.low / widened {
        return Some(Reading { word: Word::Normal, wide, unsure: None, suspicion: None, band });
    }
    let word = band.ends.word(value)?;
    let worse_end = interval.map(|[low, high]| match band.ends.better {
        Better::Higher => low,
        _ => high,
    });
    let unsure = worse_end.and_then(|end| band.ends.word(end)).filter(|worse| *worse > word);
    let suspicion = (word == Word::Fast && is_suspicious).then(|| "a cache?".to_string());
    Some(Reading { word, wide, unsure, suspicion, band })
}
