//! Copies of /proc/stat, one after the other, as text: what each CPU had spent at each look.

use std::collections::BTreeMap;

/// Counters of one CPU since it booted, in the kernel's units (100 a second).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// user, nice, system, irq and softirq. Time of guests is in user already.
    pub busy: u64,
    /// idle and iowait: a CPU that waits for a disk can work.
    pub idle: u64,
    /// Time that the hypervisor gave to others.
    pub steal: u64,
    /// The part of `busy` that guests had.
    pub guest: u64,
}

impl Ticks {
    /// From the numbers behind a CPU's name: user nice system idle iowait irq softirq steal guest
    /// guest_nice, of which kernels before 2.6.33 have fewer. `None` below four, and where one is
    /// no number.
    fn of<'a>(numbers: impl Iterator<Item = &'a str>) -> Option<Ticks> {
        let numbers: Vec<u64> =
            numbers.take(10).map(|number| number.parse().ok()).collect::<Option<Vec<u64>>>()?;
        let at = |index: usize| numbers.get(index).copied().unwrap_or(0);
        let sum = |places: &[usize]| places.iter().try_fold(0u64, |sum, place| sum.checked_add(at(*place)));
        let ticks =
            Ticks { busy: sum(&[0, 1, 2, 5, 6])?, idle: sum(&[3, 4])?, steal: at(7), guest: sum(&[8, 9])? };
        (numbers.len() >= 4).then_some(ticks)
    }
}

/// One copy of /proc/stat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatReading {
    /// Seconds on any clock, where the copy has a time.
    pub at_s: Option<f64>,
    /// By rising number; CPUs that are offline are not there.
    pub cpus: Vec<(u32, Ticks)>,
}

/// No host has such numbers of CPUs: a damaged file must not make one.
const HIGHEST_CPU: u32 = 1 << 16;

/// Takes lines, gives looks. A copy begins at its line `cpu `, with the time before it if there is
/// one; a line `# siblings 0,2/1,3` says which CPUs share a core; all other lines are passed over.
#[derive(Debug, Default)]
pub struct Lines {
    time: Option<f64>,
    /// The copy that is being read; `None` inside where one of its lines is damaged.
    current: Option<Option<StatReading>>,
    /// Copies that were damaged.
    pub damaged: usize,
    /// What the file says about siblings.
    pub siblings: Option<String>,
}

impl Lines {
    /// The copy that this line shows to be complete, if any.
    pub fn line(&mut self, line: &str) -> Option<StatReading> {
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(numbers) = line.strip_prefix("cpu ") {
            let whole = self.complete();
            let sound = Ticks::of(numbers.split_ascii_whitespace()).is_some();
            self.current = Some(sound.then(|| StatReading { at_s: self.time.take(), cpus: Vec::new() }));
            return whole;
        }
        if let Some(rest) = line.strip_prefix("cpu") {
            if let Some(current) = &mut self.current {
                let sound = current.as_mut().is_some_and(|look| add(look, rest));
                if !sound {
                    *current = None;
                }
            }
            return None;
        }
        if let Some(siblings) = line.strip_prefix("# siblings ") {
            self.siblings = Some(siblings.trim().to_string());
        } else if let Ok(time) = line.trim().parse::<f64>() {
            self.time = Some(time).filter(|time| time.is_finite());
        }
        None
    }

    fn complete(&mut self) -> Option<StatReading> {
        let current = self.current.take()?;
        let whole = current.filter(|look| !look.cpus.is_empty());
        self.damaged += usize::from(whole.is_none());
        whole
    }

    /// The last copy. Where the text was `cut` inside a line, no one knows which number lacks
    /// digits: it counts as damaged.
    pub fn end(&mut self, cut: bool) -> Option<StatReading> {
        if cut && self.current.is_some() {
            self.current = Some(None);
        }
        self.complete()
    }
}

/// Takes in the line of one CPU, without its `cpu`; false where it is no such line.
fn add(look: &mut StatReading, rest: &str) -> bool {
    let mut words = rest.split_ascii_whitespace();
    let number = words.next().and_then(|number| number.parse::<u32>().ok());
    let Some((number, ticks)) = number.filter(|number| *number <= HIGHEST_CPU).zip(Ticks::of(words)) else {
        return false;
    };
    match look.cpus.binary_search_by_key(&number, |(cpu, _)| *cpu) {
        Ok(_) => false,
        Err(place) => {
            look.cpus.insert(place, (number, ticks));
            true
        }
    }
}

/// What lies between two looks.
pub(super) struct Step {
    /// By the looks' own times, s.
    pub(super) passed: Option<f64>,
    /// By the counters, mean of all CPUs, s.
    pub(super) counted_s: f64,
    pub(super) grown: BTreeMap<u32, Grown>,
    pub(super) tick_s: f64,
}

impl Step {
    pub(super) fn seconds(&self) -> f64 {
        self.passed.unwrap_or(self.counted_s)
    }
}

/// By how much the counters of a CPU grew, s.
pub(super) struct Grown {
    pub(super) busy_s: f64,
    pub(super) idle_s: f64,
    pub(super) steal_s: f64,
    pub(super) guest_s: f64,
    pub(super) has_moved: bool,
    /// Its busy time became less.
    pub(super) is_backwards: bool,
}

impl Grown {
    pub(super) fn counted_s(&self) -> f64 {
        self.busy_s + self.idle_s + self.steal_s
    }
}

/// Of the CPUs that both looks have.
pub(super) fn grown(before: &StatReading, now: &StatReading, tick_s: f64) -> BTreeMap<u32, Grown> {
    let earlier: BTreeMap<u32, Ticks> = before.cpus.iter().copied().collect();
    let of = |then: &Ticks, now: &Ticks| {
        let grown = |part: fn(&Ticks) -> u64| part(now).saturating_sub(part(then)) as f64 * tick_s;
        Grown {
            busy_s: grown(|ticks| ticks.busy),
            idle_s: grown(|ticks| ticks.idle),
            steal_s: grown(|ticks| ticks.steal),
            guest_s: grown(|ticks| ticks.guest),
            has_moved: then != now,
            is_backwards: now.busy < then.busy,
        }
    };
    now.cpus.iter().filter_map(|(cpu, now)| Some((*cpu, of(earlier.get(cpu)?, now)))).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn looks(text: &str) -> (Vec<StatReading>, usize) {
        let mut lines = Lines::default();
        let mut looks: Vec<StatReading> = text.lines().filter_map(|line| lines.line(line)).collect();
        looks.extend(lines.end(!text.ends_with('\n')));
        (looks, lines.damaged)
    }

    #[test]
    fn fields_as_the_kernel_has_them() {
        let (found, damaged) = looks(
            "1700000000.25\ncpu  9 9 9 9\ncpu0 100 20 30 1000 40 5 6 7 60 10\ncpu2 1 2 3 4\nintr 5 0\n\
             1700000001.5\ncpu  9 9 9 9\ncpu2 1 2 3 4 5\ncpu0 1 1 1 1\nctxt 3\n",
        );
        assert_eq!((found.len(), damaged), (2, 0));
        let first = Ticks { busy: 161, idle: 1040, steal: 7, guest: 70 };
        assert_eq!(found[0].cpus, [(0, first), (2, Ticks { busy: 6, idle: 4, steal: 0, guest: 0 })]);
        assert_eq!((found[0].at_s, found[1].at_s), (Some(1700000000.25), Some(1700000001.5)));
        assert_eq!(found[1].cpus.iter().map(|(cpu, _)| *cpu).collect::<Vec<u32>>(), [0, 2]);
    }

    #[test]
    fn damaged_copies_are_counted_and_left_out() {
        let good = "cpu  9 9 9 9\ncpu0 1 1 1 1\n";
        for bad in [
            "cpu  9 9 9 9\ncpu0 1 1 1\n",
            "cpu  9 9 9 9\ncpu0 1 1 x 1\n",
            "cpu  9 9 9 9\ncpu0 1 1 1 1\ncpu0 1 1 1 1\n",
            "cpu  9 9\ncpu0 1 1 1 1\n",
            "cpu  9 9 9 9\n",
            "cpu  9 9 9 9\ncpu99999999 1 1 1 1\n",
            "cpu  9 9 9 9\ncpu0 18446744073709551615 1 1 1\n",
            "cpu  9 9 9 9\ncpu0 18446744073709551616 1 1 1\n",
        ] {
            let (found, damaged) = looks(&format!("{good}{bad}{good}"));
            assert_eq!((found.len(), damaged), (2, 1), "{bad}");
        }
        let (found, damaged) = looks(&format!("{good}cpu  9 9 9 9\ncpu0 1 1 1 12"));
        assert_eq!((found.len(), damaged), (1, 1), "cut inside a number");
        assert_eq!(looks(""), (vec![], 0));
        let mut lines = Lines::default();
        assert_eq!((lines.line("# siblings 0,2/1,3"), lines.siblings.as_deref()), (None, Some("0,2/1,3")));
    }

    /// What anyone may write as a line.
    fn any_line() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("cpu  1 2 3 4".to_string()),
            (0u32..4, any::<u64>(), 0u64..9).prop_map(|(cpu, big, n)| format!("cpu{cpu} {big} {n} 3 4 5 6")),
            (0u32..4, 0u64..9, 0u64..9).prop_map(|(cpu, a, b)| format!("cpu{cpu} {a} {b} 3 4")),
            any::<f64>().prop_map(|time| time.to_string()),
            "[a-z0-9 .#-]{0,20}",
            "\\PC{0,20}",
        ]
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_every_copy_is_sound_or_counted(lines in prop::collection::vec(any_line(), 0..40), cut: bool) {
            let begun = lines.iter().filter(|line| line.starts_with("cpu ")).count();
            let mut reader = Lines::default();
            let mut found: Vec<StatReading> = lines.iter().filter_map(|line| reader.line(line)).collect();
            found.extend(reader.end(cut));
            prop_assert_eq!(found.len() + reader.damaged, begun);
            for look in &found {
                prop_assert!(!look.cpus.is_empty() && look.cpus.is_sorted_by(|one, other| one.0 < other.0));
                prop_assert!(look.at_s.is_none_or(f64::is_finite));
            }
        }
    }
}
