//! What every drawing of a map needs to know: its size, the texts of its cells, and the words for
//! its marks.

mod shades;
#[cfg(test)]
pub mod tests;

use super::block::{Block, Cell, Chart, ChartKind, Map, MapSide, Report, Table, column, right};
use super::plain::plain;
use model::figure;

pub use shades::{Colour, Shades, ink, viridis};

/// Longest texts of a knob's name, of a setting, of a region's name and of its kind.
pub const TITLE: usize = 60;
pub const LABEL: usize = 18;
pub const NAME: usize = 4;
pub const KIND: usize = 24;

/// How far from a whole number a place still is in a cell.
const NEAR: f64 = 0.02;

/// What a mark at a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellMark {
    Best,
    /// As good as the best within the noise.
    AsGood,
}

/// The first map of a report.
pub fn first(report: &Report) -> Option<&Map> {
    let mut blocks = report.sections.iter().flat_map(|section| &section.blocks);
    blocks.find_map(|block| match block {
        Block::Chart(chart) => chart.map(),
        _ => None,
    })
}

impl Chart {
    pub fn map(&self) -> Option<&Map> {
        match &self.kind {
            ChartKind::Map(map) => Some(map),
            _ => None,
        }
    }
}

impl Map {
    pub fn columns(&self) -> usize {
        self.x.labels.len()
    }

    pub fn rows(&self) -> usize {
        self.y.as_ref().map_or(1, |side| side.labels.len())
    }

    /// All cells, the upper row first, as they stand on a screen.
    pub fn cells(&self) -> impl Iterator<Item = [usize; 2]> + use<> {
        let columns = self.columns();
        (0..self.rows()).rev().flat_map(move |row| (0..columns).map(move |column| [row, column]))
    }

    pub fn value(&self, [row, column]: [usize; 2]) -> Option<f64> {
        self.values.get(row)?.get(column).copied().flatten().filter(|value| value.is_finite())
    }

    /// All values, sorted.
    pub fn sorted(&self) -> Vec<f64> {
        let mut values: Vec<f64> = self.cells().filter_map(|cell| self.value(cell)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    /// The texts of the cells come with more or fewer digits: what changes against the default with
    /// decimals.
    pub fn digits(&self) -> &'static [usize] {
        let sorted = self.sorted();
        let most = sorted.first().map_or(0.0, |low| low.abs()).max(sorted.last().map_or(0.0, |h| h.abs()));
        match self.signed() {
            true if most < 2.0 => &[2, 1, 0],
            true if most < 1000.0 => &[1, 0],
            _ => &[0],
        }
    }

    /// Whether the values are changes, which have a sign.
    pub fn signed(&self) -> bool {
        self.around == Some(0.0)
    }

    /// A value as it stands in a cell, without its unit.
    pub fn number(&self, value: f64, digits: usize) -> String {
        if !self.signed() || value.abs() >= 1e5 {
            return figure(value, "");
        }
        let text = format!("{value:+.digits$}");
        // What is rounded to nothing has no sign.
        if text.contains(|c: char| c.is_ascii_digit() && c != '0') { text } else { text[1..].to_string() }
    }

    pub fn mark(&self, cell: [usize; 2]) -> Option<CellMark> {
        match self.best.iter().position(|best| *best == cell)? {
            0 => Some(CellMark::Best),
            _ => Some(CellMark::AsGood),
        }
    }

    /// The region that a cell is in, by number.
    pub fn region(&self, cell: [usize; 2]) -> Option<usize> {
        self.regions.iter().position(|region| region.cells.contains(&cell))
    }

    /// The host's own setting as columns and rows from the left and from below, where it is on
    /// the grid.
    pub fn own(&self) -> Option<[f64; 2]> {
        let ends = [self.columns(), self.rows()];
        let [x, y] = self.default?;
        let own = [x, if self.y.is_some() { y } else { 0.0 }];
        let inside = own.iter().zip(ends).all(|(at, count)| *at >= -NEAR && *at <= count as f64 - 1.0 + NEAR);
        inside.then_some(own.map(|at| if (at - at.round()).abs() <= NEAR { at.round() } else { at }))
    }

    /// The cell of the host's own setting, if it was measured itself.
    pub fn own_cell(&self) -> Option<[usize; 2]> {
        let [x, y] = self.own()?;
        (x.fract() == 0.0 && y.fract() == 0.0).then_some([y as usize, x as usize])
    }

    /// The host's own setting between the measured ones, in words.
    pub fn own_words(&self) -> Option<String> {
        let [x, y] = self.own()?;
        let place = |side: &MapSide, at: f64| {
            let name =
                |at: f64| side.labels.get(at as usize).map_or(String::new(), |text| plain(text, LABEL));
            if at.fract() == 0.0 {
                name(at)
            } else {
                format!("between {} and {}", name(at.floor()), name(at.ceil()))
            }
        };
        let x = place(&self.x, x);
        Some(match &self.y {
            None => x,
            Some(side) => {
                format!(
                    "{} {x}, {} {}",
                    plain(&self.x.title, TITLE),
                    plain(&side.title, TITLE),
                    place(side, y)
                )
            }
        })
    }

    /// The title with the unit of the values.
    pub fn heading(&self) -> String {
        let (title, unit) = (plain(&self.title, 120), plain(&self.unit, 24));
        match (title.is_empty(), unit.is_empty()) {
            (_, true) => title,
            (true, false) => unit,
            (false, false) => format!("{title}, {unit}"),
        }
    }

    /// The setting of a cell: `m 10 ms, w 6 ms`.
    pub fn setting(&self, [row, column]: [usize; 2]) -> String {
        let name = |side: &MapSide, at: usize| {
            let label = side.labels.get(at).map_or("?", String::as_str);
            format!("{} {}", plain(&side.title, TITLE), plain(label, TITLE)).trim().to_string()
        };
        let x = name(&self.x, column);
        self.y.as_ref().map_or(x.clone(), |side| format!("{x}, {}", name(side, row)))
    }

    /// All that is known of a cell, as a sentence: for who points at it or cannot see it.
    pub fn said(&self, cell: [usize; 2]) -> String {
        let unit = plain(&self.unit, 24);
        let value = match self.value(cell) {
            None => "not measured".to_string(),
            Some(value) if self.signed() => {
                format!("{} {unit}", self.number(value, self.digits()[0])).trim().to_string()
            }
            Some(value) => figure(value, &unit),
        };
        let mut said = format!("{}: {value}", self.setting(cell));
        if let Some(region) = self.region(cell).map(|at| &self.regions[at]) {
            let (name, kind) = (plain(&region.name, NAME), plain(&region.kind, KIND));
            said.push_str(&if kind.is_empty() {
                format!("; region {name}")
            } else {
                format!("; region {name} ({kind})")
            });
        }
        match self.mark(cell) {
            Some(CellMark::Best) => said.push_str("; the best"),
            Some(CellMark::AsGood) => said.push_str("; as good as the best"),
            None => {}
        }
        if self.own_cell() == Some(cell) {
            said.push_str("; the setting before");
        }
        said
    }

    /// Regions with a cell on the map, and how each is called: `A fall`.
    pub fn region_words(&self) -> Vec<(usize, String)> {
        let on_map = |at: &usize| {
            self.regions[*at].cells.iter().any(|[row, column]| *row < self.rows() && *column < self.columns())
        };
        let words = |at: usize| {
            let region = &self.regions[at];
            format!("{} {}", plain(&region.name, NAME), plain(&region.kind, KIND)).trim_end().to_string()
        };
        (0..self.regions.len()).filter(on_map).map(|at| (at, words(at))).collect()
    }

    /// What the signs of a map in text mean, in a line. The signs: the best, as good, the host's
    /// own setting, a gap.
    pub fn legend(&self, [best, as_good, own, gap]: [&str; 4]) -> String {
        let mut words = vec![self.heading()];
        words.extend(self.region_words().into_iter().map(|(_, words)| words));
        let marks = [
            (self.has(CellMark::Best), format!("{best} best")),
            (self.has(CellMark::AsGood), format!("{as_good} as good as the best")),
            (self.has_gaps(), format!("{gap} not measured")),
        ];
        words.extend(marks.into_iter().filter(|(is, _)| *is).map(|(_, words)| words));
        if let Some(place) = self.own_words() {
            words.push(match self.own_cell() {
                Some(_) => format!("{own} the setting before"),
                None => format!("the setting before: {place}"),
            });
        }
        words.join("; ")
    }

    /// The map as it stands on a chart: the highest row first, with the columns' labels above.
    pub fn table(&self) -> Table {
        let corner = self.y.as_ref().map_or(String::new(), |side| {
            format!("{} \u{2193}, {} \u{2192}", plain(&side.title, TITLE), plain(&self.x.title, TITLE))
        });
        let corner = if corner.is_empty() { plain(&self.x.title, TITLE) } else { corner };
        let labels = self.x.labels.iter().map(|label| plain(label, LABEL));
        let labels = labels.map(|label| right(&label));
        let columns = std::iter::once(column(&corner)).chain(labels).collect();
        let digits = self.digits()[0];
        let cell = |cell: [usize; 2]| {
            let mut text = self.value(cell).map_or("–".to_string(), |value| self.number(value, digits));
            if let Some(mark) = self.mark(cell) {
                text.push_str(if mark == CellMark::Best { " ★" } else { " ·" });
            }
            if self.own_cell() == Some(cell) {
                text.push_str(" ○");
            }
            if let Some(region) = self.region(cell) {
                text.push_str(&format!(" {}", plain(&self.regions[region].name, NAME)));
            }
            Cell::Number(text)
        };
        let row = |row: usize| {
            let label = self.y.as_ref().and_then(|side| side.labels.get(row));
            let label = label.map_or(String::new(), |label| plain(label, LABEL));
            std::iter::once(Cell::Text(label)).chain((0..self.columns()).map(|at| cell([row, at]))).collect()
        };
        Table::new(columns, (0..self.rows()).rev().map(row))
    }

    /// Whether a mark of this kind is on the map.
    pub fn has(&self, mark: CellMark) -> bool {
        self.cells().any(|cell| self.mark(cell) == Some(mark))
    }

    pub fn has_gaps(&self) -> bool {
        self.cells().any(|cell| self.value(cell).is_none())
    }
}
