//! Where a value stands on an axis, as a share of its length.

use super::ticks::{self, Ticks};
use crate::block::{Axis, Scale};

/// The smallest and the largest of the values that an axis can show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    pub low: f64,
    pub high: f64,
}

impl Span {
    pub fn of(scale: Scale, values: impl IntoIterator<Item = f64>) -> Option<Span> {
        let shown = values.into_iter().filter(|value| drawable(scale, *value));
        shown.fold(None, |span, value| match span {
            None => Some(Span { low: value, high: value }),
            Some(Span { low, high }) => Some(Span { low: low.min(value), high: high.max(value) }),
        })
    }
}

/// Whether an axis of this scale has a place for `value`.
pub fn drawable(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// An axis from end to end.
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    scale: Scale,
    /// Both ends: logarithms where the axis is logarithmic.
    ends: [f64; 2],
}

impl Scaled {
    /// `room` is free space at both ends as a part of the range.
    pub fn new(scale: Scale, span: Span, room: [f64; 2]) -> Scaled {
        let [low, high] = [span.low, span.high].map(|end| own(scale, end));
        // Half of each first: the difference of two huge values would be infinite.
        let width = if high > low { (high / 2.0 - low / 2.0) * 2.0 } else { low.abs().max(0.3) };
        let width = width.min(f64::MAX / 4.0);
        let ends = [low - width * room[0], high + width * room[1]];
        let ends = ends.map(|end| end.clamp(f64::MIN / 4.0, f64::MAX / 4.0));
        Scaled { scale, ends: if ends[1] > ends[0] { ends } else { [ends[0] - 1.0, ends[0] + 1.0] } }
    }

    /// 0 at the low end, 1 at the high one; `None` where the axis has no place for the value.
    pub fn place(&self, value: f64) -> Option<f64> {
        let place = (own(self.scale, value) - self.ends[0]) / (self.ends[1] - self.ends[0]);
        (drawable(self.scale, value) && place.is_finite()).then_some(place)
    }

    /// The same, if it is inside the drawing.
    pub fn inside(&self, value: f64) -> Option<f64> {
        self.place(value).filter(|place| (-1e-9..=1.0 + 1e-9).contains(place))
    }

    /// At most `most` round numbers, with their texts.
    pub fn ticks(&self, most: usize) -> Ticks {
        let [low, high] = match self.scale {
            Scale::Linear => self.ends,
            _ => self.ends.map(|end| 10_f64.powf(end).clamp(f64::MIN_POSITIVE, f64::MAX)),
        };
        match self.scale {
            Scale::Linear => ticks::linear(low, high, most),
            Scale::Log => ticks::log(low, high, most),
            Scale::Bytes => ticks::bytes(low, high, most),
            Scale::Powers => ticks::powers(low, high, most, ticks::figure),
        }
    }
}

fn own(scale: Scale, value: f64) -> f64 {
    if scale == Scale::Linear { value } else { value.log10() }
}

/// The axis' title, which says so where the axis is logarithmic.
pub fn title(axis: &Axis) -> String {
    let title = crate::plain::plain(&axis.title, 80);
    match axis.scale {
        Scale::Linear => title,
        _ if title.is_empty() => "log scale".to_owned(),
        _ if title.contains("log scale") => title,
        _ => format!("{title} (log scale)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_leave_out_what_has_no_place() {
        let values = [f64::NAN, 0.0, -1.0, 5.0, 2.0, f64::INFINITY];
        assert_eq!(Span::of(Scale::Log, values), Some(Span { low: 2.0, high: 5.0 }));
        assert_eq!(Span::of(Scale::Linear, values), Some(Span { low: -1.0, high: 5.0 }));
        assert_eq!(Span::of(Scale::Bytes, [0.0]), None);
    }

    #[test]
    fn places_are_shares_and_nothing_else() {
        let decade = Scaled::new(Scale::Log, Span { low: 1.0, high: 100.0 }, [0.0, 0.0]);
        assert_eq!([1.0, 10.0, 100.0].map(|value| decade.place(value)), [Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(decade.place(0.0), None);
        assert_eq!(decade.inside(1000.0), None);
        let one = Scaled::new(Scale::Linear, Span { low: 0.0, high: 0.0 }, [0.0, 0.0]);
        assert!(one.place(0.0).is_some_and(f64::is_finite));
        let huge = Scaled::new(Scale::Linear, Span { low: f64::MIN, high: f64::MAX }, [0.02, 0.02]);
        for value in [f64::MIN, 0.0, f64::MAX] {
            assert!(huge.place(value).is_none_or(f64::is_finite));
        }
        assert!(huge.ticks(9).values.len() < 12);
    }

    #[test]
    fn logarithmic_axes_are_named_so() {
        let axis = |title: &str, scale| Axis { title: title.to_owned(), scale };
        assert_eq!(title(&axis("ns", Scale::Log)), "ns (log scale)");
        assert_eq!(title(&axis("ns", Scale::Linear)), "ns");
    }
}
