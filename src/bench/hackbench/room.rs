//! Room for a message.

/// A task's message, in cache lines that no other task's lies in: on the heap that threads share they would be
/// neighbours, on two CPUs at once.
pub struct Room {
    all: Vec<u8>,
    from: usize,
    bytes: usize,
}

/// Two lines: CPUs fetch them in pairs.
const APART: usize = 128;

impl Room {
    pub fn of(bytes: usize) -> Room {
        let all = vec![0; bytes.next_multiple_of(APART) + APART];
        let from = all.as_ptr().align_offset(APART);
        Room { all, from, bytes }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.all[self.from..self.from + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_share_no_line() {
        let mut rooms: Vec<Room> = [1, 100, 128, 129, 4096].map(Room::of).into();
        let mut ranges: Vec<(usize, usize)> = rooms
            .iter_mut()
            .map(|room| {
                let bytes = room.bytes();
                (bytes.as_ptr() as usize, bytes.len())
            })
            .collect();
        ranges.sort_unstable();
        assert_eq!(ranges.iter().map(|(_, len)| len).sum::<usize>(), 1 + 100 + 128 + 129 + 4096);
        assert!(
            ranges.windows(2).all(|two| (two[0].0 + two[0].1 - 1) / APART < two[1].0 / APART),
            "{ranges:?}"
        );
    }
}
