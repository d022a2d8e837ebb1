//! A line of a run file and its checksum: a digit that flipped is damage and no data.

use crate::Record;

/// `,"crc32":"9f3a01bc"}` closes a line.
const BEGIN: &[u8] = b",\"crc32\":\"";
const DIGITS: usize = 8;
const END: &[u8] = b"\"}";

/// One record as its line with its end: `{"visit":{...},"crc32":"9f3a01bc"}`. The checksum is the
/// CRC-32 (gzip's) of every byte before the comma.
pub fn sealed(record: &Record) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    // Its last bracket comes after the checksum.
    line.truncate(line.len() - 1);
    let sum = crc32fast::hash(&line);
    line.extend_from_slice(BEGIN);
    line.extend_from_slice(format!("{sum:08x}").as_bytes());
    line.extend_from_slice(END);
    line.push(b'\n');
    Ok(line)
}

/// What the lines of a file have reported so far: where one has a checksum, all that follow have
/// one.
#[derive(Default)]
pub struct Seal {
    seen: bool,
}

impl Seal {
    /// What a line says, without blanks around it and without the checksum, which held. An error
    /// says what is wrong; the line is as it was then.
    pub fn content<'l>(&mut self, line: &'l mut Vec<u8>) -> Result<&'l [u8], String> {
        let end = line.trim_ascii_end().len();
        let Some((length, told)) = split(&line[..end]) else {
            return if self.seen {
                Err("it has no checksum, unlike the lines before it: its end was cut off or changed".into())
            } else {
                Ok(line.trim_ascii())
            };
        };
        self.seen = true;
        let said = &line[..length];
        let begin = said.len() - said.trim_ascii_start().len();
        if told != format!("{:08x}", crc32fast::hash(&line[begin..length])).as_bytes() {
            return Err(format!(
                "its checksum does not match: some of its {} bytes changed after they were written",
                end - begin
            ));
        }
        line.splice(length..end, [b'}']);
        Ok(line.trim_ascii())
    }
}

/// Where the checksum of a line begins, and its digits.
fn split(line: &[u8]) -> Option<(usize, &[u8])> {
    let length = line.len().checked_sub(BEGIN.len() + DIGITS + END.len())?;
    let digits = line[length..].strip_prefix(BEGIN)?.strip_suffix(END)?;
    Some((length, digits))
}

#[cfg(test)]
mod tests;
