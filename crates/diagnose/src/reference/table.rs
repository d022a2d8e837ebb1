//! Reference tables: one row per figure of one class from one source. The published one is part of
//! the program, those of users have the same columns; runs that users name become rows, too.
//!
//! `detail` narrows a class: words about the distance of two CPUs ("same socket"), page-table
//! isolation and a processor's number ("8480") are compared with the host, all others are only
//! shown.

use std::sync::LazyLock;

use model::Better;
use model::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a figure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A third party ran it.
    Measured,
    /// Its maker or provider promises it.
    Specified,
    /// Physics, a link or a contract: nothing real lies beyond.
    Limit,
    /// A run that the user named or kept: its interval.
    Run,
    /// Eight or more hosts of the same make: the limits of `assay peers`.
    Peers,
}

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sure {
    /// No source was found: a gap.
    None,
    Low,
    Medium,
    High,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Kind::Measured => "measured",
            Kind::Specified => "specified",
            Kind::Limit => "limit",
            Kind::Run => "a run",
            Kind::Peers => "limits of peers",
        }
    }
}

impl Sure {
    pub fn word(self) -> &'static str {
        match self {
            Sure::None => "none",
            Sure::Low => "low",
            Sure::Medium => "medium",
            Sure::High => "high",
        }
    }
}

/// Whether a row is of guests or of bare metal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    BareMetal,
    Guest,
}

/// One row, by the columns of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// A pattern of keys; of a user's own runs the key itself.
    pub metric: String,
    pub name: String,
    /// Classes, with `|` between them.
    pub subject: String,
    #[serde(rename = "where")]
    pub place: Option<Place>,
    pub detail: String,
    pub unit: String,
    pub better: Better,
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// `None` of a gap.
    pub kind: Option<Kind>,
    pub source: String,
    pub source_date: String,
    pub sure: Sure,
    pub note: String,
}

/// How far two CPUs are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// Threads of one core.
    Siblings,
    SameCache,
    /// The same socket, another last-level cache or node.
    SameSocket,
    OtherSocket,
}

const PUBLISHED: &str = include_str!("published.csv");

/// The published table.
pub fn published() -> &'static [Row] {
    static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| read(PUBLISHED).unwrap_or_default());
    &ROWS
}

/// The rows of a table; an error names the line.
pub fn read(text: &str) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows = reader.deserialize().enumerate().map(|(at, row)| {
        let row: Row = row.map_err(|error| format!("line {}: {error}", at + 2))?;
        row.checked().map_err(|why| format!("line {}, {:?}: {why}", at + 2, row.metric))?;
        Ok(row)
    });
    rows.collect()
}

/// Rows as a table.
pub fn write(rows: &[Row]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| writer.serialize(row))?;
    writer.into_inner().map_err(|error| error.into_error().into())
}

impl Row {
    /// Why it cannot be used.
    fn checked(&self) -> Result<(), String> {
        let finite = |value: &Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
        let is = |holds: bool, why: &str| if holds { Ok(()) } else { Err(why.to_string()) };
        is(self.metric.contains('#'), "a metric ends in # and the name of a quantity")?;
        is(!self.subject.is_empty(), "the subject is missing (a class such as x86 or any)")?;
        is(finite(&self.low) && finite(&self.high), "low and high are numbers from 0 on")?;
        is(!matches!([self.low, self.high], [Some(low), Some(high)] if low > high), "low is above high")?;
        let has_value = self.low.is_some() || self.high.is_some();
        is(!has_value || self.kind.is_some(), "the kind is missing: measured, specified or limit")?;
        is(!has_value || self.sure != Sure::None, "sure is none, though there is a value")
    }

    /// Whether the figure with this key is one of its.
    pub fn matches(&self, key: &str) -> bool {
        match self.kind {
            None => false,
            Some(Kind::Run | Kind::Peers) => self.metric == key,
            Some(_) => Pattern::of(&self.metric).matches(key),
        }
    }

    pub fn subjects(&self) -> impl Iterator<Item = &str> {
        self.subject.split('|')
    }

    /// The distances of CPUs that it is of; `None`: it names none.
    pub fn distances(&self) -> Option<&'static [Distance]> {
        use Distance::{OtherSocket, SameCache, SameSocket, Siblings};
        const WORDS: [(&str, &[Distance]); 6] = [
            ("SMT siblings", &[Siblings]),
            ("same L3", &[SameCache]),
            ("same node", &[SameCache]),
            ("other L3", &[SameSocket]),
            ("same socket", &[SameCache, SameSocket]),
            ("other socket", &[OtherSocket]),
        ];
        WORDS.iter().find(|(words, _)| self.detail.contains(words)).map(|(_, distances)| *distances)
    }

    /// What it asks of page-table isolation.
    pub fn isolation(&self) -> Option<bool> {
        let word = "page-table isolation";
        self.detail.contains(word).then(|| !self.detail.contains(&format!("no {word}")))
    }

    /// The model that it is of: its number, or `top model`.
    pub fn model(&self) -> Option<&str> {
        if self.detail.contains("top model") {
            return Some("top model");
        }
        self.detail.split(' ').find(|word| is_number_of_model(word))
    }

    /// Whether it is of all cores of a socket at once.
    pub fn is_of_whole_sockets(&self) -> bool {
        self.metric.starts_with("memory.bandwidth@all?") && !self.is_own()
    }

    /// Whether the key must be of a block that no cache holds.
    pub fn is_of_memory(&self) -> bool {
        self.metric.starts_with("memory.bandwidth@") && !self.is_own()
    }

    /// Whether it comes from a run that the user has.
    pub fn is_own(&self) -> bool {
        matches!(self.kind, Some(Kind::Run | Kind::Peers))
    }

    /// The year that it begins with.
    pub fn year(&self) -> Option<u32> {
        self.source_date.get(..4)?.parse().ok()
    }

    /// By how much the band is widened before it is compared, a share.
    pub fn tolerance(&self) -> f64 {
        match (self.kind, self.sure) {
            (Some(Kind::Limit | Kind::Peers), _) => 0.0,
            (Some(Kind::Run), _) => 0.02,
            (Some(Kind::Specified), _) | (_, Sure::High) => 0.10,
            (_, Sure::Medium) => 0.15,
            (_, Sure::Low | Sure::None) => 0.25,
        }
    }
}

/// Whether a word of a processor's name is its number: 8480, 6985P-C, 4416+.
pub fn is_number_of_model(word: &str) -> bool {
    word.len() >= 4 && word.bytes().take(4).all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::class::parent;
    use super::*;

    #[test]
    fn every_published_row_has_its_form() {
        let rows = read(PUBLISHED).expect("a table that can be read");
        assert!(rows.len() > 100);
        for row in &rows {
            let which = format!("{} of {}", row.metric, row.subject);
            if row.sure == Sure::None {
                assert!(row.kind.is_none() && row.low.is_none() && row.high.is_none(), "{which}");
                continue;
            }
            assert!(row.kind.is_some() && !row.is_own(), "{which}");
            assert!(row.low.is_some() || row.high.is_some(), "{which}");
            assert!(row.source.len() > 10 && !row.name.is_empty(), "{which}");
            assert!(row.year().is_some_and(|year| (2005..2100).contains(&year)), "{which}");
            assert!(row.better != Better::Neither, "{which}");
            for subject in row.subjects() {
                assert!(subject == "any" || parent(subject).is_some(), "{which}: {subject} has no parent");
            }
        }
        let text = write(&rows).expect("it can be written");
        assert_eq!(read(&String::from_utf8(text).expect("text")).expect("and read back"), rows);
    }

    #[test]
    fn a_table_that_cannot_be_used_says_where() {
        let header = PUBLISHED.lines().next().expect("a header");
        let table = |line: &str| read(&format!("{header}\n{line}\n")).map(|rows| rows.len());
        let good = "a.b#c,A,any,,,ns,lower,1,2,measured,mine,2026,high,";
        assert_eq!(table(good), Ok(1));
        for (from, to, why) in [
            ("1,2", "2,1", "line 2, \"a.b#c\": low is above high"),
            ("#c", "", "line 2, \"a.b\": a metric ends in #"),
            ("measured", "", "the kind is missing"),
            ("lower", "less", "unknown variant `less`"),
            (",1,", ",x,", "line 2: "),
        ] {
            let error = table(&good.replace(from, to)).expect_err(why);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn details_that_narrow() {
        let row = |detail: &str| Row { detail: detail.to_string(), ..published()[0].clone() };
        assert_eq!(row("8 x DDR4-3200").model(), None);
        assert_eq!(row("6985P-C (AWS r8i)").model(), Some("6985P-C"));
        assert_eq!(row("other L3, same socket").distances(), Some(&[Distance::SameSocket][..]));
        assert_eq!(row("Linux 5.15").distances(), None);
        assert_eq!(row("page-table isolation and retpolines").isolation(), Some(true));
        assert_eq!(row("no page-table isolation").isolation(), Some(false));
        assert_eq!(row("SNC3").isolation(), None);
    }
}
