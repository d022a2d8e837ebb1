//! What a program printed: all of it is taken, its beginning and its end are kept.

use std::io::{ErrorKind, Read};

/// One stream of a program. However much it prints, no more than two and a half parts of `part`
/// bytes are kept.
pub struct OutputTail {
    part: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes between head and tail that were let go.
    lost: u64,
}

impl OutputTail {
    /// Keeps the first `part` bytes and at least as many of the last.
    pub fn new(part: usize) -> OutputTail {
        OutputTail { part, head: Vec::new(), tail: Vec::new(), lost: 0 }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        let into_head = bytes.len().min(self.part - self.head.len());
        self.head.extend_from_slice(&bytes[..into_head]);
        self.tail.extend_from_slice(&bytes[into_head..]);
        if self.tail.len() > self.part + self.part / 2 {
            let surplus = self.tail.len() - self.part;
            self.tail.drain(..surplus);
            self.lost += surplus as u64;
        }
    }

    /// Reads what there is now; false once the stream has ended.
    pub fn drain(&mut self, from: &mut impl Read, buffer: &mut [u8]) -> bool {
        loop {
            match from.read(buffer) {
                Ok(0) => return false,
                Ok(bytes) => {
                    self.take(&buffer[..bytes]);
                    // A full buffer: there may be more, but other pipes are read first.
                    return true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }

    /// All that was kept, with a line in the place of what was not.
    pub fn text(&self) -> Vec<u8> {
        let gap = match self.lost {
            0 => String::new(),
            lost => format!("\n[{lost} bytes were not kept]\n"),
        };
        [self.head.as_slice(), gap.as_bytes(), self.tail.as_slice()].concat()
    }

    pub fn is_whole(&self) -> bool {
        self.lost == 0
    }

    /// The last lines, for people: three at most, 200 characters each, without what terminals obey;
    /// empty where nothing was printed.
    pub fn last_lines(&self) -> String {
        const NEAR_END: usize = 4096;
        let text = if self.tail.len() >= NEAR_END { self.tail.clone() } else { self.text() };
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(NEAR_END)..]).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].iter();
        let clean = |line: &&str| -> String {
            line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
        };
        last.map(clean).collect::<Vec<_>>().join(" / ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_kept_of_whatever_length() {
        let mut kept = OutputTail::new(1000);
        kept.take(b"first line\n");
        assert!(kept.is_whole() && kept.text() == b"first line\n");
        for number in 0..100_000u32 {
            kept.take(format!("line {number}\n").as_bytes());
            assert!(kept.head.len() + kept.tail.len() <= 2600);
        }
        let text = String::from_utf8(kept.text()).expect("text");
        assert!(text.starts_with("first line\nline 0\n") && text.ends_with("line 99998\nline 99999\n"));
        assert!(!kept.is_whole() && text.contains("bytes were not kept"));
        assert_eq!(kept.last_lines(), "line 99997 / line 99998 / line 99999");
    }

    #[test]
    fn last_lines_are_harmless() {
        let mut kept = OutputTail::new(1 << 16);
        assert_eq!(kept.last_lines(), "");
        kept.take(b"\x1b[31mred\xff\n\n");
        kept.take("x".repeat(5000).as_bytes());
        let lines = kept.last_lines();
        assert!(!lines.contains('\x1b') && lines.len() < 500, "{lines:?}");
    }
}
