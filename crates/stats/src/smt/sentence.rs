//! What CPU% says and what is so, in one sentence. Screens, tables and checks take their numbers
//! from here, rounded once, so that none contradicts another.

use super::super::order::Interval;
use super::Bounds;

/// Percent of the capacity that is kept free, unless a user says otherwise.
pub const USUAL_MARGIN: u8 = 20;

/// A reading of CPU% and the used share behind it, as they are printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sentence {
    /// CPU%, 0..1.
    says: f64,
    /// Used share of the capacity, 0..1, rounded; its interval is rounded outwards.
    used: Bounds,
    /// To how many times today's work it can grow, not rounded. `hi` is infinite where nothing may
    /// be used.
    growth: Bounds,
    /// Whether there is an interval.
    known: bool,
}

impl Sentence {
    /// `None` where nothing is used. Without an interval only the value is printed.
    pub fn of(says: f64, used: f64, interval: Option<Interval>) -> Option<Sentence> {
        let Interval { low, high } = interval.unwrap_or(Interval { low: used, high: used });
        let exact = Bounds { lo: low.min(used).max(0.0), mid: used, hi: high.max(used) };
        let growth = Bounds { lo: 1.0 / exact.hi, mid: 1.0 / used, hi: 1.0 / exact.lo };
        let known = interval.is_some();
        let sound = used > 0.0 && says.is_finite() && growth.lo.is_finite() && growth.mid.is_finite();
        sound.then(|| Sentence { says, used: outwards(exact, step_of_share(used)), growth, known })
    }

    pub fn has_interval(&self) -> bool {
        self.known
    }

    /// As printed.
    pub fn used(&self) -> Bounds {
        self.used
    }

    /// As printed.
    pub fn growth(&self) -> Bounds {
        outwards(self.growth, step_of_times(self.growth.mid))
    }

    /// The growth that leaves this share (0..1) of the capacity free, as printed; below 1 where
    /// today's work leaves less.
    pub fn kept(&self, free: f64) -> Bounds {
        let keep = 1.0 - free;
        let Bounds { lo, mid, hi } = self.growth;
        outwards(Bounds { lo: keep * lo, mid: keep * mid, hi: keep * hi }, step_of_times(keep * mid))
    }

    /// Whether CPU% is within this distance (0..1) of what is used, by the whole interval as it is
    /// printed; `None` where the interval is not known or lies on both sides.
    pub fn agrees(&self, within: f64) -> Option<bool> {
        let (below, above) = (self.says - within - 1e-9, self.says + within + 1e-9);
        let inside = below <= self.used.lo && self.used.hi <= above;
        let outside = self.used.hi < below || above < self.used.lo;
        (self.known && (inside || outside)).then_some(inside)
    }

    /// `50`, CPU% as it is printed.
    pub fn says(&self) -> String {
        share(self.says, step_of_share(self.says))
    }

    /// `52 % (50–55)`.
    pub fn used_words(&self) -> String {
        let Bounds { lo, mid, hi } = self.used;
        let [lo, mid, hi] = [lo, mid, hi].map(|value| share(value, step_of_share(self.used.mid)));
        if self.known { format!("{mid} % ({lo}–{hi})") } else { format!("{mid} %") }
    }

    /// `52 %`, without its interval.
    pub fn used_alone(&self) -> String {
        format!("{} %", share(self.used.mid, step_of_share(self.used.mid)))
    }

    /// `1.92 times today's (1.81–2.00)`.
    pub fn growth_words(&self) -> String {
        self.times_words(self.growth())
    }

    /// `1.53 times today's (1.45–1.60)`.
    pub fn kept_words(&self, free: f64) -> String {
        self.times_words(self.kept(free))
    }

    /// `4.0 more (3.8–4.3)`: how many units of work fit beside the `load` units that are
    /// today's, with this share kept free.
    pub fn further_words(&self, load: f64, free: f64) -> String {
        let keep = 1.0 - free;
        let more = |growth: f64| load * (keep * growth - 1.0);
        let exact = Bounds { lo: more(self.growth.lo), mid: more(self.growth.mid), hi: more(self.growth.hi) };
        // Two digits of what is larger, what runs or what fits beside it; three from 100 on.
        let size = load.max(exact.mid.abs());
        let digits = if size < 100.0 { 1 } else { 2 } - size.log10().floor() as i32;
        let Bounds { lo, mid, hi } = outwards(exact, 10f64.powi(-digits));
        let words = |value: f64| format!("{:.*}", usize::try_from(digits).unwrap_or(0), value + 0.0);
        // What is too much already is said so.
        let (word, lo, mid, hi) = if mid < 0.0 { ("less", -hi, -mid, -lo) } else { ("more", lo, mid, hi) };
        let [least, value, most] = [lo, mid, hi].map(words);
        match (self.known, lo.is_finite(), hi.is_finite()) {
            (true, true, true) if lo < 0.0 => format!("{value} {word} ({least} to {most})"),
            (true, true, true) => format!("{value} {word} ({least}–{most})"),
            (true, true, false) => format!("{value} {word} ({least} or more)"),
            _ => format!("{value} {word}"),
        }
    }

    fn times_words(&self, Bounds { lo, mid, hi }: Bounds) -> String {
        let [least, value] = [lo, mid].map(|value| times(value, mid));
        match (self.known, hi.is_finite()) {
            (false, _) => format!("{value} times today's"),
            (true, true) => format!("{value} times today's ({least}–{})", times(hi, mid)),
            (true, false) => format!("{value} times today's ({least} or more)"),
        }
    }

    /// What CPU% promises beside that: `, not 3.33 times`.
    pub fn promise_words(&self) -> String {
        if self.says <= 0.0 {
            return String::new();
        }
        let promised = 1.0 / self.says;
        let growth = self.growth();
        let step = step_of_times(growth.mid);
        let shown = (promised / step).round() * step;
        let words = times(promised, growth.mid);
        match self.known {
            true if shown > growth.hi + step / 2.0 => format!(", not {words} times"),
            true if shown < growth.lo - step / 2.0 => {
                format!(", more than the {words} times that CPU% promises")
            }
            _ => format!("; CPU% promises {words} times"),
        }
    }

    /// `CPU% says 30: 60 % (59–61) are used; work can grow to 1.67 times today's (1.63–1.70),
    /// not 3.33 times`.
    pub fn words(&self) -> String {
        self.words_where("")
    }

    /// The same with what it rests on, such as `, one thread of each core busy`: the same CPU% may
    /// be more or less work elsewhere.
    pub fn words_where(&self, premise: &str) -> String {
        let (says, used) = (self.says(), self.used_words());
        let (growth, promise) = (self.growth_words(), self.promise_words());
        format!("CPU% says {says}{premise}: {used} are used; work can grow to {growth}{promise}")
    }
}

/// The last digit that is printed of a share: whole percent from 10 on, tenths from 1 on.
fn step_of_share(share: f64) -> f64 {
    match share {
        share if share >= 0.0995 => 0.01,
        share if share >= 0.00995 => 0.001,
        _ => 0.0001,
    }
}

fn step_of_times(times: f64) -> f64 {
    match times {
        times if times < 9.995 => 0.01,
        times if times < 99.95 => 0.1,
        _ => 1.0,
    }
}

/// The middle to the nearest step, the ends to the next one outside; a value that is one but for
/// the last bits stays.
fn outwards(bounds: Bounds, step: f64) -> Bounds {
    let last_bits = 1e-6;
    Bounds {
        lo: step * (bounds.lo / step + last_bits).floor(),
        mid: step * (bounds.mid / step).round(),
        hi: step * (bounds.hi / step - last_bits).ceil(),
    }
}

fn share(share: f64, step: f64) -> String {
    let digits = if step < 0.0005 { 2 } else { usize::from(step < 0.005) };
    format!("{:.digits$}", 100.0 * share)
}

fn times(times: f64, beside: f64) -> String {
    let step = step_of_times(beside);
    let digits = if step < 0.05 { 2 } else { usize::from(step < 0.5) };
    format!("{times:.digits$}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sentence(says: f64, used: f64, low: f64, high: f64) -> Sentence {
        Sentence::of(says, used, Some(Interval { low, high })).expect("something is used")
    }

    #[test]
    fn sentences_in_all_their_forms() {
        let words = |says, used, low, high| sentence(says, used, low, high).words();
        assert_eq!(
            words(0.5, 0.52, 0.5, 0.55),
            "CPU% says 50: 52 % (50–55) are used; work can grow to 1.92 times today's (1.81–2.00); CPU% promises \
             2.00 times"
        );
        assert!(words(0.3, 0.6, 0.59, 0.61).ends_with("1.67 times today's (1.63–1.70), not 3.33 times"));
        assert!(words(0.5, 0.4, 0.39, 0.41).ends_with(", more than the 2.00 times that CPU% promises"));
        assert!(words(0.05, 0.051, 0.0, 0.1).contains("5.1 % (0.0–10.0) are used; work can grow to 19.6"));
        assert!(words(0.05, 0.051, 0.0, 0.1).contains("(10.0 or more)"));
        let alone = Sentence::of(0.5, 0.8, None).expect("used");
        assert!(alone.words().contains("80 % are used; work can grow to 1.25 times today's; CPU% promises"));
        assert_eq!(alone.agrees(1.0), None);
        let example = sentence(0.3, 0.6, 0.59, 0.61);
        assert_eq!(example.further_words(6.0, 0.0), "4.0 more (3.8–4.2)");
        assert_eq!(example.further_words(6.0, 0.4), "0.0 more (-0.1 to 0.2)");
        assert_eq!(example.further_words(1200.0, 0.0), "800 more (760–840)");
        assert_eq!(example.further_words(1200.0, 0.5), "200 less (180–220)");
        assert_eq!((Sentence::of(0.0, 0.0, None), Sentence::of(0.1, f64::NAN, None)), (None, None));
        let half = sentence(0.5, 0.8, 0.78, 0.82);
        assert_eq!(
            (half.kept_words(0.2), half.agrees(0.03)),
            ("1.00 times today's (0.97–1.03)".into(), Some(false))
        );
        assert_eq!(
            (sentence(0.5, 0.52, 0.5, 0.53).agrees(0.03), sentence(0.5, 0.52, 0.5, 0.55).agrees(0.03)),
            (Some(true), None)
        );
    }

    /// The numbers of a text, in their order.
    fn numbers(text: &str) -> Vec<f64> {
        let number = |c: char| c.is_ascii_digit() || c == '.';
        text.split(|c| !number(c)).filter_map(|word| word.trim_end_matches('.').parse().ok()).collect()
    }

    proptest! {
        /// What is printed holds what was found, every part of a sentence says the same, and a
        /// check says nothing else.
        #[test]
        fn no_part_contradicts_another(says in 0.001f64..1.0, used in 0.001f64..1.2, below in 0.0f64..0.3, above in 0.0f64..0.3, within in 0.0f64..0.1) {
            let (low, high) = (used * (1.0 - below), used * (1.0 + above));
            let said = sentence(says, used, low, high);
            let (share, growth) = (said.used(), said.growth());
            prop_assert!(share.lo <= low + 2e-8 && high <= share.hi + 2e-8 && share.contains(share.mid), "{share:?}");
            prop_assert!(growth.lo <= 1.0 / high + 1e-6 && 1.0 / low <= growth.hi + 1e-4 && growth.contains(growth.mid), "{growth:?}");
            let [shares, grows] = [said.used_words(), said.growth_words()].map(|words| numbers(&words));
            let whole = numbers(&said.words());
            prop_assert_eq!(&whole[1..4], &shares[..]);
            prop_assert_eq!(&whole[4..7], &grows[..]);
            prop_assert!(shares[1] <= shares[0] && shares[0] <= shares[2] && grows[1] <= grows[0] && grows[0] <= grows[2]);
            // What is said about the promise is so of the numbers beside it.
            let promised = whole[7];
            let promise = said.promise_words();
            prop_assert_eq!(promise.starts_with(", not"), promised > grows[2]);
            prop_assert_eq!(promise.starts_with(", more"), promised < grows[1]);
            // So is what a check concludes.
            let near = |percent: f64| (percent - 100.0 * says).abs() <= 100.0 * within + 1e-6;
            if said.agrees(within) == Some(true) {
                prop_assert!(near(shares[1]) && near(shares[2]));
            }
            if said.agrees(within) == Some(false) {
                prop_assert!(!near(shares[1]) && !near(shares[2]));
            }
        }
    }
}
