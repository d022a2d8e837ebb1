//! What stands first on the page: host, verdict with its sentences, and a card for each group.

use askama::Template;

use super::item::first_sentence;
use super::text::filters;
use crate::block::{CONCLUSION, Report};
use crate::screen::{Card, Row, RowReading, Tone};
use crate::text::numbers::{spread, three};

/// Machine and run in a line each, or the verdict and the cards where there is a first screen.
#[derive(Template)]
#[template(path = "report/header.html", whitespace = "minimize")]
pub struct Header<'a> {
    report: &'a Report,
}

/// The page's first lines, above all sections.
pub fn header(report: &Report) -> Header<'_> {
    Header { report }
}

/// Width of a bullet chart, in units of its drawing.
const WIDTH: f64 = 240.0;

/// Room that is kept at its ends.
const MARGIN: f64 = 2.0;

/// A range of values that spans more than this has a logarithmic scale.
const LOG_FROM: f64 = 5.0;

impl Header<'_> {
    /// The host line, without what the title says.
    fn host(&self) -> String {
        let parts = self.report.screen.iter().flat_map(|screen| screen.host.iter().skip(1));
        parts.map(|part| part.text.as_str()).collect::<Vec<_>>().join(" · ")
    }

    fn name(&self) -> &str {
        let first = self.report.screen.as_ref().and_then(|screen| screen.host.first());
        first.map_or(self.report.title.as_str(), |part| part.text.as_str())
    }

    /// What a comparison or a study comes to: its word, the first sentence, what is behind it.
    fn conclusion(&self) -> Option<Conclusion<'_>> {
        let section = self.report.sections.iter().find(|section| section.id == CONCLUSION)?;
        let mut paragraphs = section.prose();
        let (lead, behind) = first_sentence(paragraphs.next()?);
        let rest = std::iter::once(behind).chain(paragraphs).filter(|text| !text.is_empty()).collect();
        Some(Conclusion { word: &section.title, lead, rest })
    }

    /// The style sheet's class of a tone.
    fn class(&self, tone: &Tone) -> &'static str {
        match tone {
            Tone::Good => "good",
            Tone::Care => "care",
            Tone::Bad => "bad",
            _ => "plain",
        }
    }

    fn grade(&self, card: &Card) -> String {
        match (&card.row, &card.reading) {
            (None, _) => "– not tested".into(),
            (Some(row), None) if row.reading.sign != '–' => words(&row.reading),
            (Some(_), None) => "– no reference".into(),
            (_, Some(reading)) => words(reading),
        }
    }

    fn tone(&self, card: &Card) -> &'static str {
        let own = card.reading.as_ref().or(card.row.as_ref().map(|row| &row.reading));
        own.map_or("plain", |reading| self.class(&reading.tone))
    }

    fn value(&self, row: &Row) -> String {
        row.value.map_or("–".into(), three)
    }

    /// `typical 102–139`, or how well it is known.
    fn typical(&self, row: &Row) -> String {
        let own = row.value.map_or(String::new(), |value| spread(value, row.low_high));
        match (row.typical.as_str(), own.as_str()) {
            ("", "") => String::new(),
            ("", own) if own.ends_with('%') => format!("±{own}"),
            ("", own) => own.to_string(),
            (typical, _) if typical.ends_with("reported") => typical.to_string(),
            (typical, _) => format!("typical {typical}"),
        }
    }

    /// Places on the bullet chart, from the left: of the band, of the interval, of the value.
    fn bullet(&self, row: &Row) -> Option<Bullet> {
        let value = row.value.filter(|value| value.is_finite() && *value >= 0.0)?;
        let interval = row.low_high.map(|ends| ends.map(|end| if end.is_finite() { end } else { value }));
        let known = row.band.iter().flatten().copied().chain(interval.into_iter().flatten()).chain([value]);
        let known: Vec<f64> = known.filter(|end| end.is_finite() && *end >= 0.0).collect();
        let low = known.iter().copied().fold(f64::INFINITY, f64::min);
        let high = known.iter().copied().fold(0.0, f64::max);
        let log = low > 0.0 && high / low > LOG_FROM;
        let [from, to] =
            if log { [low / 2.0, high * 2.0] } else { [0.0_f64.max(2.0 * low - high) * 0.8, high * 1.2] };
        let share = |at: f64| match log {
            true => (at / from).ln() / (to / from).ln(),
            false if to > from => (at - from) / (to - from),
            false => 0.5,
        };
        let place = |at: f64| MARGIN + share(at).clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN);
        let [low, high] = row.band;
        let band = (low.is_some() || high.is_some())
            .then(|| [low.map_or(MARGIN, place), high.map_or(WIDTH - MARGIN, place)]);
        let [start, end] = interval.map_or([place(value); 2], |ends| ends.map(place));
        // What is narrower than a line is drawn as one.
        let wide = |[start, end]: [f64; 2]| [start, (end - start).max(2.0)].map(|at| format!("{at:.1}"));
        Some(Bullet {
            band: band.map(wide),
            interval: wide([start, end]),
            value: format!("{:.1}", place(value) - 2.0),
        })
    }
}

/// A conclusion as the page shows a verdict.
struct Conclusion<'a> {
    word: &'a str,
    lead: &'a str,
    rest: Vec<&'a str>,
}

/// Start and width of the parts of a bullet chart.
struct Bullet {
    band: Option<[String; 2]>,
    interval: [String; 2],
    value: String,
}

fn words(reading: &RowReading) -> String {
    format!("{} {}{}", reading.sign, reading.word, if reading.wide { " ~" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: f64, low_high: Option<[f64; 2]>, band: [Option<f64>; 2]) -> Row {
        Row { value: Some(value), low_high, band, ..Row::default() }
    }

    #[test]
    fn bullets_stay_on_the_card() {
        let report = Report::default();
        let header = header(&report);
        for value in [0.0, 1e-9, 0.08, 165.0, 1e15] {
            for band in
                [[None, None], [Some(0.0), Some(5.0)], [Some(102.0), Some(139.0)], [Some(891.0), None]]
            {
                for low_high in [None, Some([value * 0.5, value * 1.5]), Some([value, f64::INFINITY])] {
                    let bullet = header.bullet(&row(value, low_high, band)).expect("a bullet");
                    let parts = bullet.band.iter().chain([&bullet.interval]);
                    for part in parts {
                        let [start, width] = part.clone().map(|at| at.parse::<f64>().expect("a number"));
                        assert!((0.0..=WIDTH).contains(&start) && width >= 2.0, "{value} {band:?}: {part:?}");
                        assert!(start + width <= WIDTH + 2.0, "{value} {band:?}: {part:?}");
                    }
                }
            }
        }
        assert!(header.bullet(&row(f64::NAN, None, [None; 2])).is_none());
    }

    #[test]
    fn a_slow_figure_stands_right_of_its_band() {
        let report = Report::default();
        let bullet = header(&report).bullet(&row(165.0, Some([163.0, 166.0]), [Some(102.0), Some(139.0)]));
        let bullet = bullet.expect("a bullet");
        let number = |text: &String| text.parse::<f64>().expect("a number");
        let band = bullet.band.as_ref().expect("a band");
        assert!(number(&bullet.value) > number(&band[0]) + number(&band[1]));
    }
}
