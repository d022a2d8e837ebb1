//! `--margin`: the share of the capacity to keep free, with one meaning in all verbs.

use stats::smt::USUAL_MARGIN;

#[derive(clap::Args, Debug)]
pub struct MarginArg {
    /// Percent of the capacity to keep free [default: 20]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=90))]
    margin: Option<u8>,
}

impl MarginArg {
    /// Whether it was given.
    pub fn given(&self) -> bool {
        self.margin.is_some()
    }

    /// In percent, 0..90.
    pub fn percent(&self) -> u8 {
        self.margin.unwrap_or(USUAL_MARGIN)
    }

    /// 0..0.9.
    pub fn free(&self) -> f64 {
        f64::from(self.percent()) / 100.0
    }
}
