//! Limits of a figure: a smallest and a largest value with their unit, and whether a 95 % interval
//! keeps them.

use anyhow::{Context, bail, ensure};
use model::{Better, VerdictKind, unit_factor};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Met,
    Missed,
    /// The interval lies on both sides of the limit, or the figure cannot be used.
    Undecided,
    /// Not measured, and optional.
    NotAsked,
}

/// A number with its unit, as a spec says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    pub value: f64,
    pub unit: String,
}

impl Quantity {
    /// `100 ns`, `420GB/s`, `5 %`. Errors say what is missing.
    pub fn of(text: &str) -> anyhow::Result<Quantity> {
        let text = text.trim();
        let is_unit =
            |(at, c): (usize, char)| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+') && at < text.len());
        let end = text.char_indices().find(|at| is_unit(*at)).map_or(text.len(), |(at, _)| at);
        let (number, unit) = text.split_at(end);
        let value: f64 =
            number.parse().ok().with_context(|| format!("{text:?} does not start with a number"))?;
        ensure!(value.is_finite(), "{text:?} is not a finite number");
        Ok(Quantity { value, unit: unit.trim().replace('μ', "µ").to_string() })
    }

    /// The number in another unit; an error where that measures something else.
    pub fn in_unit(&self, unit: &str) -> anyhow::Result<f64> {
        ensure!(
            !self.unit.is_empty(),
            "{} has no unit: write it as {:?}",
            self.value,
            format!("{} {unit}", self.value)
        );
        let factor = unit_factor(&self.unit, unit);
        let factor = factor
            .with_context(|| format!("{:?} does not fit: the figure is measured in {unit}", self.unit))?;
        Ok(self.value * factor)
    }
}

/// Of several series that a limit names, the ones that it is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pick {
    Best,
    Worst,
    #[default]
    Each,
}

/// How far a figure may be from the reference's, on the worse side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl Share {
    pub fn words(self) -> String {
        // A share that was written as 7 % is shown as that.
        format!("within {} %", (100_000.0 * self.0).round() / 1000.0)
    }

    /// The least and the largest ratio that is within it.
    pub fn ends(self, better: Better) -> [Option<f64>; 2] {
        let (least, most) = (Some(1.0 - self.0), Some(1.0 + self.0));
        match better {
            Better::Higher => [least, None],
            Better::Lower => [None, most],
            Better::Neither => [least, most],
        }
    }
}

/// What is asked of one figure, as it stands in the spec.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { max = \"100 ns\" }")]
pub struct Limit {
    /// Glob over series keys; of a limit in `[limits]` its name says which.
    #[serde(default)]
    pub series: String,
    #[serde(default)]
    pub pick: Pick,
    #[serde(default)]
    min: Option<toml::Value>,
    #[serde(default)]
    max: Option<toml::Value>,
    /// A share of the reference's figure, on the worse side: `10 %`.
    #[serde(default)]
    within: Option<toml::Value>,
    /// Verdicts of a series that count; others leave it undecided. Empty: all but rejected.
    #[serde(default)]
    pub verdict: Vec<VerdictKind>,
    /// A series that is not there is no fault.
    #[serde(default)]
    pub optional: bool,
}

impl Limit {
    /// How far it may be from the reference's figure, where that is asked. Errors: no share, or
    /// limits beside it.
    pub fn share(&self) -> anyhow::Result<Option<Share>> {
        let Some(value) = &self.within else { return Ok(None) };
        let told = || format!("within = {value}: write it as within = \"10 %\"");
        let text = value.as_str().with_context(told)?;
        let Quantity { value, unit } = Quantity::of(text).with_context(told)?;
        ensure!(unit == "%", "{}", told());
        ensure!(value > 0.0 && value < 100.0, "within = {text:?}: it is a share between 0 and 100 %");
        let alone = self.min.is_none() && self.max.is_none();
        ensure!(alone, "within excludes min and max: give those in a separate limit");
        ensure!(self.pick == Pick::Each, "within applies to each series: remove pick");
        Ok(Some(Share(value / 100.0)))
    }

    /// Checks what it asks for, without a figure. Errors say what is wrong.
    pub fn quantities(&self) -> anyhow::Result<Vec<Quantity>> {
        match self.share()? {
            Some(_) => Ok(Vec::new()),
            None => Ok(self.ends()?.into_iter().flatten().collect()),
        }
    }

    /// The two ends, at least one of which there is. Errors: a bare number, no number, none at all.
    pub fn ends(&self) -> anyhow::Result<[Option<Quantity>; 2]> {
        let quantity = |name: &str, value: &Option<toml::Value>| match value {
            None => Ok(None),
            Some(toml::Value::String(text)) => Quantity::of(text).map(Some),
            Some(other) => bail!("{name} = {other} has no unit: write it in quotes, as {name} = \"100 ns\""),
        };
        let ends = [quantity("min", &self.min)?, quantity("max", &self.max)?];
        ensure!(ends.iter().any(Option::is_some), "the limit is empty: give min, max or within");
        if let [Some(min), Some(max)] = &ends {
            let least = min.in_unit(&max.unit)?;
            ensure!(least <= max.value, "min is above max: no figure meets both");
        }
        Ok(ends)
    }
}

/// Whether an interval keeps its limits, and by what share of the limit its near end is away from
/// it. Only an interval that lies wholly on one side decides.
pub fn standing(low_high: [f64; 2], min: Option<f64>, max: Option<f64>) -> (Standing, Option<f64>) {
    let [low, high] = low_high;
    let share = |distance: f64, limit: f64| (limit != 0.0).then(|| distance / limit.abs());
    let below = min.map(|min| (low >= min, high < min, share(low - min, min), share(min - high, min)));
    let above = max.map(|max| (high <= max, low > max, share(max - high, max), share(low - max, max)));
    let sides: Vec<_> = below.into_iter().chain(above).collect();
    if let Some((_, _, _, by)) = sides.iter().find(|(_, missed, _, _)| *missed) {
        return (Standing::Missed, *by);
    }
    match sides.iter().all(|(met, _, _, _)| *met) {
        // Of two limits the nearer one.
        true => (Standing::Met, sides.iter().filter_map(|side| side.2).reduce(f64::min)),
        false => (Standing::Undecided, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;
    use stats::estimate::estimate;
    use stats::noise::{Inside, Noise, nested};

    #[test]
    fn quantities_have_a_number_and_a_unit() {
        let of = |text: &str| Quantity::of(text).map(|one| (one.value, one.unit));
        assert_eq!(of("100 ns").ok(), Some((100.0, "ns".into())));
        assert_eq!(of(" 0.25µs").ok(), Some((0.25, "µs".into())));
        assert_eq!(of("420 GB/s").ok(), Some((420.0, "GB/s".into())));
        for wrong in ["", "ns", "fast", "1.2.3 ns", "--1 s"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let told = |text: &str, unit: &str| Quantity::of(text).and_then(|one| one.in_unit(unit));
        assert_eq!(told("0.1 µs", "ns").ok(), Some(100.0));
        assert!(told("100", "ns").is_err_and(|error| error.to_string().contains("\"100 ns\"")));
        assert!(told("100 GB/s", "ns").is_err_and(|error| error.to_string().contains("measured in ns")));
    }

    #[test]
    fn an_interval_decides_only_where_it_lies_on_one_side() {
        let max = |low, high| standing([low, high], None, Some(100.0));
        assert_eq!(max(88.0, 90.0), (Standing::Met, Some(0.1)));
        assert_eq!(max(99.0, 101.0), (Standing::Undecided, None));
        assert_eq!(max(120.0, 130.0), (Standing::Missed, Some(0.2)));
        let min = |low, high| standing([low, high], Some(320.0), None);
        assert_eq!(min(400.0, 410.0), (Standing::Met, Some(0.25)));
        assert_eq!(min(246.0, 256.0), (Standing::Missed, Some(0.2)));
        let both = |low, high| standing([low, high], Some(100.0), Some(200.0)).0;
        assert_eq!(both(120.0, 150.0), Standing::Met);
        assert_eq!(both(120.0, 250.0), Standing::Undecided);
        assert_eq!(both(210.0, 250.0), Standing::Missed);
    }

    /// Shares of wrong decisions at a limit that is the true value, `[missed, met]`: where it is
    /// the most that may be, and where it is the least.
    fn wrong(noise: Noise, processes: usize, rng: &mut Rng) -> [[f64; 2]; 2] {
        let truth = noise.median();
        let mut counts = [[0_u32; 2]; 2];
        for _ in 0..RUNS {
            let values = nested(noise, Inside::Independent, processes, 1, rng);
            let found = estimate(&values, 0.95).and_then(|found| found.interval).expect("an interval");
            for (own, limits) in counts.iter_mut().zip([[None, Some(truth)], [Some(truth), None]]) {
                match standing([found.low, found.high], limits[0], limits[1]).0 {
                    Standing::Missed => own[0] += 1,
                    Standing::Met => own[1] += 1,
                    _ => {}
                }
            }
        }
        counts.map(|own| own.map(|count| f64::from(count) / f64::from(RUNS)))
    }

    const RUNS: u32 = 5_000;

    /// docs/method/demands.md states these bounds.
    #[test]
    fn a_value_at_its_limit_is_hardly_ever_missed_or_met() {
        let mut rng = Rng::with_seed(2026);
        for noise in [
            Noise::Lognormal { cv: 0.03 },
            Noise::Student3 { scale: 0.02 },
            Noise::FloorExponential { share: 0.03 },
            Noise::CeilingExponential { share: 0.10 },
            Noise::SlowTail { cv: 0.01, slow: 0.10 },
        ] {
            for (processes, bound) in
                [(5, 0.03), (6, 0.03), (7, 0.025), (10, 0.025), (14, 0.025), (20, 0.025)]
            {
                let found = wrong(noise, processes, &mut rng);
                assert!(
                    found.iter().flatten().all(|share| *share <= bound),
                    "{noise:?}, {processes}: {found:?}"
                );
            }
        }
    }
}
