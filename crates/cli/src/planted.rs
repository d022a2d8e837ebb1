//! `--planted PERCENT[:NAMES]` (hidden): known differences. The chosen benchmarks do this much more
//! work than they report; the case's inputs, the report's first line and `assay compare` say so.

use std::str::FromStr;

use model::Planned;
use model::vocabulary::cpu;
use model::vocabulary::selftest::PLANTED;

/// What is slowed, and by which share.
#[derive(Clone, Debug, PartialEq)]
pub struct Planted {
    share: f64,
    /// Groups, or beginnings of benchmarks' names; none: all.
    names: Vec<String>,
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(text: &str) -> Result<Planted, String> {
        let (percent, names) = text.split_once(':').unwrap_or((text, ""));
        let percent: Option<f64> = percent.parse().ok().filter(|percent| (1.0..=100.0).contains(percent));
        let percent = percent.ok_or_else(|| format!("{text:?} does not begin with 1–100 (percent)"))?;
        let names = names.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect();
        Ok(Planted { share: percent / 100.0, names })
    }
}

impl Planted {
    /// Marks the chosen cases; never the core's clock, which others are brought to.
    pub fn slow(&self, plan: &mut [Planned]) {
        let chosen =
            |bench: &str| self.names.is_empty() || self.names.iter().any(|name| bench.starts_with(name));
        for planned in plan.iter_mut().filter(|one| one.case.bench != *cpu::CLOCK && chosen(&one.case.bench))
        {
            planned.case.inputs.insert(PLANTED.to_string(), self.share.to_string());
        }
    }
}

/// Whether two plans of equal cases are slowed alike.
pub fn alike(one: &[Planned], other: &[Planned]) -> bool {
    let of = |plan: &[Planned]| -> Vec<Option<String>> {
        plan.iter().map(|planned| planned.case.inputs.get(PLANTED).cloned()).collect()
    };
    of(one) == of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_and_names() {
        let planted: Planted = "5:cpu,syscall.getpid".parse().expect("both");
        assert_eq!(planted, Planted { share: 0.05, names: vec!["cpu".into(), "syscall.getpid".into()] });
        assert_eq!("10".parse(), Ok(Planted { share: 0.1, names: Vec::new() }));
        for wrong in ["", "x", "0", "-5", "101", "5%"] {
            assert!(wrong.parse::<Planted>().is_err(), "{wrong}");
        }
    }
}
