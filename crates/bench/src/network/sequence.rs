//! Numbered messages: how many came, how many late, how many twice.

/// So far back a number is remembered.
const REMEMBERED: u64 = 1 << 16;

pub struct Sequence {
    /// One more than the highest number that came; 0 before the first.
    next: u64,
    seen: Vec<u64>,
    /// Numbers that came, each once.
    pub received: u64,
    pub reordered: u64,
    pub duplicated: u64,
}

impl Sequence {
    pub fn new() -> Sequence {
        let seen = vec![0; (REMEMBERED / 64) as usize];
        Sequence { next: 0, seen, received: 0, reordered: 0, duplicated: 0 }
    }

    pub fn note(&mut self, number: u64) {
        if number >= self.next {
            match number - self.next {
                skipped if skipped >= REMEMBERED => self.seen.fill(0),
                _ => (self.next..=number).for_each(|passed| self.forget(passed)),
            }
            self.next = number.saturating_add(1);
        } else if self.next - number > REMEMBERED {
            // Too late to know whether it had come before: it counts as late.
            self.received += 1;
            self.reordered += 1;
            return;
        } else if self.seen[place(number)] & bit(number) != 0 {
            self.duplicated += 1;
            return;
        } else {
            self.reordered += 1;
        }
        self.seen[place(number)] |= bit(number);
        self.received += 1;
    }

    fn forget(&mut self, number: u64) {
        self.seen[place(number)] &= !bit(number);
    }
}

fn place(number: u64) -> usize {
    (number % REMEMBERED / 64) as usize
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut sequence = Sequence::new();
        numbers.into_iter().for_each(|number| sequence.note(number));
        (sequence.received, sequence.reordered, sequence.duplicated)
    }

    #[test]
    fn order_losses_and_repeats_are_told_apart() {
        assert_eq!(noted(0..1000), (1000, 0, 0));
        assert_eq!(noted([0, 1, 5, 6]), (4, 0, 0), "what is lost is not late");
        assert_eq!(noted([0, 2, 1, 3]), (4, 1, 0));
        assert_eq!(noted([0, 1, 1, 0, 2]), (3, 0, 2));
        assert_eq!(noted([5, 4, 3, 4]), (3, 2, 1));
    }

    #[test]
    fn far_jumps_and_long_runs_forget_what_is_long_over() {
        let long = 3 * REMEMBERED;
        assert_eq!(noted(0..long), (long, 0, 0), "places are used again");
        assert_eq!(noted([0, long, 1, long + 1, long]), (4, 1, 1));
        let last = u64::MAX - 1;
        assert_eq!(noted([last, 3, last]), (2, 1, 1));
    }
}
