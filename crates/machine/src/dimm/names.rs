//! Names of slots taken apart by patterns, so that a platform's rule is data.
//!
//! A pattern is text with placeholders: `{socket}`, `{socket-letter}`, `{number}` (of the slot,
//! counted over channels), `{number-letter}`, `{card}`, `{node}`, `{controller}`, `{channel}`,
//! `{channel-letter}`, `{slot}`, `{slot-letter}`; one digit each: `{socket-digit}`,
//! `{channel-digit}`, `{slot-digit}`; of no meaning: `{any}`, `{any-letter}`. Case does not matter,
//! nor how many blanks stand between words.

/// What a name says; letters count from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fields {
    pub socket: Option<u32>,
    pub socket_letter: Option<u32>,
    pub number: Option<u32>,
    pub card: Option<u32>,
    pub node: Option<u32>,
    pub controller: Option<u32>,
    pub channel: Option<u32>,
    pub channel_letter: Option<u32>,
    pub slot: Option<u32>,
}

/// The fields of a name; `None` where it does not follow the pattern to its end.
pub fn fields(pattern: &str, name: &str) -> Option<Fields> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let name = words.join(" ").to_ascii_lowercase();
    let mut found = Fields::default();
    let (mut pattern, mut rest) = (pattern, name.as_str());
    while let Some((literal, after)) = pattern.split_once('{') {
        rest = rest.strip_prefix(literal)?;
        let (kind, after) = after.split_once('}')?;
        pattern = after;
        let (kind, most) = match kind.strip_suffix("-digit") {
            Some(kind) => (kind, 1),
            None => (kind, 3),
        };
        let (value, length) = if kind.ends_with("-letter") { letter(rest)? } else { number(rest, most)? };
        rest = &rest[length..];
        let field = match kind {
            "any" | "any-letter" => continue,
            "controller" => &mut found.controller,
            "slot-letter" => &mut found.slot,
            "socket" => &mut found.socket,
            "socket-letter" => &mut found.socket_letter,
            "number" | "number-letter" => &mut found.number,
            "card" => &mut found.card,
            "node" => &mut found.node,
            "channel" => &mut found.channel,
            "channel-letter" => &mut found.channel_letter,
            "slot" => &mut found.slot,
            _ => return None,
        };
        *field = Some(value);
    }
    (rest == pattern).then_some(found)
}

impl Fields {
    /// What either of two names says, the first one first.
    pub fn or(self, other: Fields) -> Fields {
        Fields {
            socket: self.socket.or(other.socket),
            socket_letter: self.socket_letter.or(other.socket_letter),
            number: self.number.or(other.number),
            card: self.card.or(other.card),
            node: self.node.or(other.node),
            controller: self.controller.or(other.controller),
            channel: self.channel.or(other.channel),
            channel_letter: self.channel_letter.or(other.channel_letter),
            slot: self.slot.or(other.slot),
        }
    }
}

fn letter(text: &str) -> Option<(u32, usize)> {
    let first = text.bytes().next().filter(u8::is_ascii_lowercase)?;
    Some((u32::from(first - b'a'), 1))
}

fn number(text: &str, most: usize) -> Option<(u32, usize)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        let found = fields("proc {socket} dimm {number}", "PROC  1 DIMM 12").expect("matches");
        assert_eq!((found.socket, found.number), (Some(1), Some(12)));
        let found = fields("{socket-letter}{number}", "B7").expect("matches");
        assert_eq!((found.socket_letter, found.number), (Some(1), Some(7)));
        let found = fields("dimm{socket-digit}{channel-digit}{slot-digit}", "DIMM031").expect("matches");
        assert_eq!((found.socket, found.channel, found.slot), (Some(0), Some(3), Some(1)));
        let found = fields("p{socket}-dimm{channel}{slot-letter}", "P1-DIMM2B").expect("matches");
        assert_eq!((found.socket, found.channel, found.slot), (Some(1), Some(2), Some(1)));
        let found = fields("proc {socket} dimm {number}{any-letter}", "PROC 2 DIMM 4H").expect("matches");
        assert_eq!((found.socket, found.number, found.slot), (Some(2), Some(4), None));
        let found = fields("board {card}, dimm {any}{number-letter}", "Board 3, DIMM 6B").expect("matches");
        assert_eq!((found.card, found.number), (Some(3), Some(1)));
        for (pattern, name) in [
            ("{socket-letter}{number}", "B7x"),
            ("{socket-letter}{number}", ""),
            ("{socket-letter}{number}", "7"),
            ("dimm {number}", "DIMM 1234567890123"),
            ("dimm {number}", "DIMM é"),
            ("{nonsense}", "1"),
            ("{socket", "1"),
        ] {
            assert_eq!(fields(pattern, name), None, "{pattern} {name}");
        }
    }
}
