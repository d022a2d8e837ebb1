//! A fleet made of the summaries of a few real runs: each host is a likeness of one of them, with a
//! name, noise, settings that drift, and here and there a fault whose place is known.
//!
//! Makes: of 100 hosts 60, 25, 10, 4 and 1. Forty hosts are a rack. Healthy hosts differ by 1 %
//! (standard deviation) in each figure and by 0.5 % in all together.

use fastrand::Rng;

use model::run_file::SummaryLine;
use model::{Better, Summary};
use stats::noise::normal;

const LEVEL: f64 = 0.005;
const SPREAD: f64 = 0.01;

/// Of each thousand hosts this one is slow, in turns by these shares.
const SLOW: u64 = 7;
pub const SLOWER: [f64; 3] = [0.05, 0.1, 0.2];

/// In this rack every second host is slow by the last of them.
pub const RACK: u64 = 7;
const IN_RACK: u64 = 40;

/// One host in fifty has a setting that others have not.
const DRIFTS: u64 = 50;

/// What is slow where a host is: all of memory.
const PART: &str = "memory.";

/// Makes, as the end of the processor's name and the hosts of a hundred from which on they begin.
const MAKES: [(&str, u64); 5] = [("", 0), (" B", 60), (" C", 85), (" D", 95), (" E", 99)];

/// By what share a host is slower than it should be.
pub fn slowness(number: u64) -> Option<f64> {
    let in_rack = number / IN_RACK == RACK && number.is_multiple_of(2);
    let alone = number % 1000 == SLOW;
    let by = || SLOWER[usize::try_from(number / 1000 % 3).unwrap_or(0)];
    if in_rack { Some(SLOWER[SLOWER.len() - 1]) } else { alone.then(by) }
}

/// Makes hosts.
pub struct Likenesses {
    models: Vec<(Summary, Summary)>,
    rng: Rng,
}

impl Likenesses {
    /// Of these summaries, of which there is at least one.
    pub fn of(summaries: Vec<Summary>, seed: u64) -> Likenesses {
        let models = summaries.into_iter().map(|one| (one.clone(), one)).collect();
        Likenesses { models, rng: Rng::with_seed(seed) }
    }

    /// The summary of a host; its number says all about it but the noise.
    pub fn host(&mut self, number: u64) -> SummaryLine {
        let rng = &mut self.rng;
        let make = MAKES.iter().rposition(|(_, from)| number % 100 >= *from).unwrap_or(0);
        let place = make % self.models.len();
        let (model, own) = &mut self.models[place];
        let level = LEVEL * normal(rng);
        let slow = slowness(number).unwrap_or(0.0);
        for (from, to) in model.series.iter().zip(&mut own.series) {
            let better = if from.better == Some(Better::Lower) { -1.0 } else { 1.0 };
            let slower = if from.key.starts_with(PART) { better * (1.0 - slow).ln() } else { 0.0 };
            let factor = (better * level + SPREAD * normal(rng) + slower).exp();
            to.median = from.median.map(|value| short(value * factor));
            to.ci95 = from.ci95.map(|ends| ends.map(|end| short(end * factor)));
        }
        own.host = format!("n{number:07}");
        own.boot_id = Some(format!("{:032x}", rng.u128(..)));
        own.started =
            format!("2026-11-{:02}T{:02}:{:02}:00Z", 1 + number % 28, rng.u32(0..24), rng.u32(0..60));
        own.labels = [
            ("rack".to_string(), format!("r{}", number / IN_RACK)),
            ("row".to_string(), format!("w{}", number / (20 * IN_RACK))),
        ]
        .into();
        own.make_up.clone_from(&model.make_up);
        own.settings.clone_from(&model.settings);
        for (_, value) in own.make_up.iter_mut().filter(|(label, _)| label == "cpu_model") {
            value.push_str(MAKES[make].0);
        }
        for (label, value) in &mut own.settings {
            if label == "core_clock" {
                *value = format!("{:.0} MHz", 3000.0 * (level + SPREAD * normal(rng)).exp());
            }
        }
        let settings = own.settings.len().max(1);
        if let Some((_, value)) = own.settings.get_mut(rng.usize(..settings)).filter(|_| number % DRIFTS == 3)
        {
            *value = "drifted".to_string();
        }
        SummaryLine {
            summary: Box::new(own.clone()),
            file: Some(format!("host={}/{}.assay.jsonl.gz", own.host, &own.started[..10])),
            sha256: Some(format!("{:032x}{:032x}", rng.u128(..), rng.u128(..))),
        }
    }
}

/// Seven digits, as summaries have them.
fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(6 - value.abs().log10().floor() as i32);
    let short = (value * scale).round() / scale;
    if short.is_finite() { short } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use compare::peers::{Fleet, HostResult, judge};

    /// Slow hosts are found, their rack is named, and healthy ones hardly ever.
    #[test]
    fn what_is_planted_is_found() {
        let root = testkit::root();
        let run = root.join("tests/archive/quick.assay.jsonl.gz");
        let mut summary =
            model::run_file::summary(&mut model::run_file::open(&run).expect("open")).expect("a summary");
        // Invented samples have wide intervals; these hosts are as sure as real ones.
        for series in &mut summary.series {
            series.ci95 = series.median.map(|value| [value * 0.995, value * 1.005]);
        }
        let mut made = Likenesses::of(vec![summary], 1);
        let mut fleet = Fleet::default();
        for number in 0..1000 {
            let line = made.host(number);
            fleet.add(HostResult::from((*line.summary, line.file.unwrap_or_default())));
        }
        let peers = judge(fleet);
        let behind = |place: usize| peers.standings[place].is_behind();
        let slow: Vec<u64> = (0..1000).filter(|number| slowness(*number) == Some(0.2)).collect();
        let found = slow.iter().filter(|number| behind(**number as usize)).count();
        assert!(slow.len() == 20 && found >= 18, "{found} of {}", slow.len());
        let wrong =
            (0..1000).filter(|number| slowness(*number).is_none() && behind(*number as usize)).count();
        assert!(wrong <= 3, "{wrong}");
        let first = peers.followed.first().expect("a label");
        assert_eq!((first.label.as_str(), first.value.as_str()), ("rack", "r7"), "{:?}", peers.followed);
        assert!(peers.groups.len() >= 4, "{}", peers.groups.len());
    }
}
