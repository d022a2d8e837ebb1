//! Numbers as they are printed, their units, and whether figures can be each other's.

/// A decimal number as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    pub value: f64,
    /// Half of its last digit.
    pub rounding: f64,
}

/// Figures of one result may differ by this share beyond their last digits: programs read the clock
/// for them one after the other.
const APART: f64 = 0.02;

impl Number {
    /// Plain decimals, and such with a power of ten (`2.9874e+01`); `None` for all else, also for a
    /// number that is cut off behind its point.
    pub fn read(text: &str) -> Option<Number> {
        if let Some((decimals, power)) = text.split_once(['e', 'E'])
            && decimals.contains('.')
        {
            let digits = power.strip_prefix(['+', '-'])?;
            let is_plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let power: i32 = power.trim_start_matches('+').parse().ok().filter(|_| is_plain)?;
            return Some(Number::read(decimals)?.times(10f64.powi(power)));
        }
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !plain(whole) || !plain(decimals) || text.len() > 30 {
            return None;
        }
        let value = format!("{sign}{whole}.{decimals}").parse().ok()?;
        let places = if digits.contains('.') { decimals.len() as i32 } else { 0 };
        Some(Number { value, rounding: 0.5 / 10f64.powi(places) })
    }

    pub fn times(self, factor: f64) -> Number {
        Number { value: self.value * factor, rounding: self.rounding * factor }
    }

    fn ends(self) -> (f64, f64) {
        ((self.value - self.rounding).max(0.0), self.value + self.rounding)
    }
}

/// What a unit's first letter multiplies by: `K`, `M`, `G`, `T`, each by `step`; 1 of all others.
pub fn scale(unit: &str, step: f64) -> f64 {
    let letter = unit.chars().next().map_or(' ', |letter| letter.to_ascii_uppercase());
    // A lone `B` or `b` is a unit of its own, as `bits` and `Bytes` are.
    "KMGTP".find(letter).map_or(1.0, |at| step.powi(at as i32 + 1))
}

/// Whether a rate can be this amount over this time, as far as the digits of all three go.
pub fn is_rate(rate: Number, amount: Number, seconds: Number) -> bool {
    let ((least, most), (shortest, longest)) = (amount.ends(), seconds.ends());
    let (low, high) = rate.ends();
    let highest = if shortest > 0.0 { most / shortest } else { f64::INFINITY };
    low <= highest * (1.0 + APART) && high >= least / longest * (1.0 - APART)
}
