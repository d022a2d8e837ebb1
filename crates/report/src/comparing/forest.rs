//! The forest plot of a comparison: what is drawn, for a terminal's columns and for the page.

use compare::{GroupAnswer, Row, Said, Word};

/// One row of the plot.
#[derive(Clone, Debug)]
pub struct Mark {
    pub ratio: Option<f64>,
    pub ci95: Option<[f64; 2]>,
    /// Nothing but the interval is known.
    pub wide: bool,
}

impl Mark {
    pub fn of(row: &Row) -> Mark {
        Mark { ratio: row.ratio, ci95: row.ci95, wide: row.wide }
    }

    /// A row that is not counted, and whose values would lie outside.
    pub fn left_out(row: &Row) -> Mark {
        Mark { ratio: row.raw_ratio(), ci95: None, wide: false }
    }

    pub fn of_group(group: &GroupAnswer) -> Mark {
        let pooled = group.pooled.as_ref();
        Mark { ratio: pooled.map(|one| one.ratio), ci95: pooled.map(|one| one.ci95), wide: false }
    }
}

/// Ends of the axis, the other being the inverse.
const ENDS: [f64; 5] = [1.25, 2.0, 4.0, 10.0, 100.0];

/// The end of the axis that holds all ratios that count.
pub fn end(groups: &[GroupAnswer]) -> f64 {
    let own = groups.iter().flat_map(|group| {
        let rows = group.rows.iter().map(|row| row.ratio.filter(|_| !row.wide));
        rows.chain([group.pooled.as_ref().map(|pooled| pooled.ratio)])
    });
    let farthest = own.flatten().map(|ratio| ratio.max(1.0 / ratio)).fold(1.0, f64::max);
    ENDS.into_iter().find(|end| *end >= farthest).unwrap_or(ENDS[ENDS.len() - 1])
}

/// How an end of the axis is written.
pub fn end_words(end: f64) -> [String; 2] {
    let words = |value: f64| format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_string();
    [words(1.0 / end), words(end)]
}

/// Signs of the plot: edge, ends of the interval, line, point, beyond the edges.
struct Signs {
    edge: char,
    low: char,
    line: char,
    point: char,
    high: char,
    below: char,
    above: char,
}

const UNICODE: Signs =
    Signs { edge: '┆', low: '├', line: '─', point: '●', high: '┤', below: '◂', above: '▸' };
const ASCII: Signs = Signs { edge: ':', low: '|', line: '-', point: 'o', high: '|', below: '<', above: '>' };

/// A row of the plot, this wide.
pub fn columns(mark: &Mark, columns: usize, end: f64, unicode: bool) -> String {
    let signs = if unicode { UNICODE } else { ASCII };
    let Some(last) = columns.checked_sub(1) else { return String::new() };
    let place = |ratio: f64| (ratio.ln() / end.ln() + 1.0) / 2.0 * last as f64;
    let inside = |at: f64| at.round().clamp(0.0, last as f64) as usize;
    let mut cells = vec![' '; columns];
    for edge in [0, last / 2, last] {
        cells[edge] = signs.edge;
    }
    if let Some([low, high]) = mark.ci95 {
        let (from, to) = (inside(place(low)), inside(place(high)));
        if place(high) < -0.5 {
            cells[0] = signs.below;
        } else if place(low) > last as f64 + 0.5 {
            cells[last] = signs.above;
        } else if to > from {
            cells[from..=to].fill(signs.line);
            cells[from] = if place(low) < -0.5 { signs.below } else { signs.low };
            cells[to] = if place(high) > last as f64 + 0.5 { signs.above } else { signs.high };
        }
    }
    if let Some(ratio) = mark.ratio.filter(|_| !mark.wide) {
        let at = place(ratio);
        match at {
            at if at < -0.5 => cells[0] = signs.below,
            at if at > last as f64 + 0.5 => cells[last] = signs.above,
            at => cells[inside(at)] = signs.point,
        }
    }
    cells.into_iter().collect()
}

/// The word of a row: whole, or as short as narrow screens need it.
pub fn word(said: &Said, short: bool) -> String {
    match said {
        Said::Left(..) => "not counted".to_string(),
        Said::Counted(word, words) => said_word(*word, words, short),
    }
}

/// The same of a word and the words around it: only sameness needs its margin.
pub fn said_word(word: Word, words: &str, short: bool) -> String {
    match (word, words.strip_prefix("same within ")) {
        (Word::Same, Some(margin)) if short => format!("same ({margin})"),
        (Word::Same, _) => words.to_string(),
        _ => word.word().to_string(),
    }
}

/// The word of a group none of whose figures counts in a pooled ratio.
pub fn uncounted(group: &GroupAnswer) -> &'static str {
    match group.rows.iter().any(|row| row.word().is_some()) {
        true => Word::Inconclusive.word(),
        false => "not counted",
    }
}

/// One sign for a word, where there is no room for it.
pub fn sign(said: Option<Word>, unicode: bool) -> char {
    let [unicoded, ascii] = match said {
        Some(Word::Faster) => ['▲', '^'],
        Some(Word::Slower) => ['▼', 'v'],
        Some(Word::Same) => ['●', '='],
        Some(Word::Higher | Word::Lower) => ['≠', '#'],
        Some(Word::Inconclusive | Word::Unverified) => ['?', '?'],
        None => ['–', '-'],
    };
    if unicode { unicoded } else { ascii }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(ratio: Option<f64>, ci95: Option<[f64; 2]>, wide: bool) -> String {
        columns(&Mark { ratio, ci95, wide }, 25, 2.0, true)
    }

    #[test]
    fn points_and_intervals_stand_where_the_scale_has_them() {
        assert_eq!(drawn(Some(1.0), None, false), "┆           ●           ┆");
        assert_eq!(drawn(Some(2.0), None, false), "┆           ┆           ●");
        assert_eq!(drawn(Some(0.5), None, false), "●           ┆           ┆");
        assert_eq!(drawn(Some(0.69), Some([0.56, 0.84]), false), "┆ ├───●──┤  ┆           ┆");
        // Beyond the edges, and not known but for the interval.
        assert_eq!(drawn(Some(3.8), None, false), "┆           ┆           ▸");
        assert_eq!(drawn(Some(1.0), Some([0.4, 1.5]), true), "◂──────────────────┤    ┆");
        assert_eq!(drawn(None, None, false), "┆           ┆           ┆");
        assert_eq!(drawn(Some(0.3), Some([0.2, 0.4]), true), "◂           ┆           ┆");
        assert_eq!(columns(&Mark { ratio: Some(1.0), ci95: None, wide: false }, 0, 2.0, true), "");
        let ascii = columns(&Mark { ratio: Some(1.0), ci95: Some([0.4, 2.9]), wide: false }, 11, 2.0, false);
        assert_eq!(ascii, "<----o---->");
    }

    #[test]
    fn words_fit_where_there_is_little_room() {
        let said = |word: Word, words: &str| Said::Counted(word, words.into());
        for (one, long, short) in [
            (said(Word::Same, "same within 10 %"), "same within 10 %", "same (10 %)"),
            (said(Word::Slower, "slower by 8–12 %"), "slower", "slower"),
            (Said::Left("pages".into(), String::new()), "not counted", "not counted"),
        ] {
            assert_eq!((word(&one, false), word(&one, true)), (long.to_string(), short.to_string()));
            assert!(word(&one, true).chars().count() <= 11);
        }
    }
}
