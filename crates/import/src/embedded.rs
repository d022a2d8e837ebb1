//! JSON that stands in other text: what programs say on their standard error lands before, behind
//! and between it, and a run that was killed leaves it cut off.

use serde_json::Value;

/// More documents than this in one file are a mistake or an attack.
const MAX_DOCUMENTS: usize = 20_000;

/// Bytes that may be searched in vain for ends of documents: each of millions of brackets could
/// cause a search of the whole text.
const MAX_IN_VAIN: usize = 32 << 20;

/// What a text holds.
#[derive(Debug, Default)]
pub struct Embedded<'a> {
    pub documents: Vec<Value>,
    /// What each is headed by: the last line that stands between it and the one before, as it is.
    pub above: Vec<&'a str>,
    /// The lines that are no part of a document, in order; empty ones are left out.
    pub lines: Vec<&'a str>,
    /// The last document ends in its midst: what its last whole members say is here.
    pub cut: bool,
    /// Documents that were left out, as there are too many.
    pub left_out: usize,
}

impl<'a> Embedded<'a> {
    /// The lines above each document, up to the one before.
    pub fn headed(&self) -> Vec<Vec<&'a str>> {
        let mut lines = self.lines.iter().map(|line| line.trim());
        let up_to = |last: &&'a str| {
            let mut own = Vec::new();
            let mut is_last = last.is_empty();
            while !is_last && let Some(line) = lines.next() {
                own.push(line);
                // The same place of the text.
                is_last = std::ptr::eq(line, *last);
            }
            own
        };
        self.above.iter().map(up_to).collect()
    }
}

/// The documents of a text: objects that begin at the start of a line, or one behind the other in a
/// list that does.
pub fn embedded(text: &str) -> Embedded<'_> {
    let mut found = Embedded::default();
    let (mut at, mut in_vain) = (0, 0);
    let mut above = "";
    // The line at hand is the rest of one whose start was a document.
    let mut is_rest = false;
    while at < text.len() {
        let line = text[at..].split_inclusive('\n').next().unwrap_or_default();
        let list = line.trim_start_matches([' ', '\t', ',', '[']);
        let is_listed = line.len() - list.len() > 0 && (is_rest || line.trim_start().starts_with('['));
        if is_listed && list.starts_with('{') {
            at += line.len() - list.len();
            is_rest = false;
            continue;
        }
        if std::mem::take(&mut is_rest) && line.trim().chars().all(|one| ",]".contains(one)) {
            at += line.len();
            continue;
        }
        let begins = line.trim_start().starts_with('{');
        let looked = begins && in_vain < MAX_IN_VAIN;
        let mut seen = 0;
        let document = if looked { document(&text[at..], &mut seen) } else { None };
        match document {
            None if looked => in_vain += seen,
            None => found.left_out += usize::from(begins),
            Some(_) => {}
        }
        if let Some((value, length, cut)) = document {
            if found.documents.len() < MAX_DOCUMENTS {
                found.documents.push(value);
                found.above.push(std::mem::take(&mut above));
            } else {
                found.left_out += 1
            }
            found.cut |= cut;
            at += length;
            is_rest = true;
            continue;
        }
        if !line.trim().is_empty() {
            found.lines.push(line.trim_end());
            above = line.trim();
        }
        at += line.len();
    }
    found
}

/// The object at the start of a text, its length, and whether it is cut off; `seen` is how much of
/// the text was read if it is cut off.
fn document(text: &str, seen: &mut usize) -> Option<(Value, usize, bool)> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match stream.next()? {
        Ok(value) if value.is_object() => Some((value, stream.byte_offset(), false)),
        Ok(_) => None,
        Err(error) if error.is_eof() => {
            *seen = text.len();
            whole_members(text).map(|value| (value, text.len(), true))
        }
        Err(error) if error.is_syntax() => {
            // Old versions print what no JSON is where they divided by nothing.
            let end = end(text);
            *seen = end.unwrap_or(text.len());
            let end = end?;
            let numbers = without_nan(&text[..end]);
            serde_json::from_str(&numbers).ok().filter(Value::is_object).map(|value| (value, end, false))
        }
        Err(_) => None,
    }
}

/// What stands in a cut document up to the last comma outside of texts, with its brackets closed.
fn whole_members(text: &str) -> Option<Value> {
    let (mut open, mut quoted, mut escaped) = (Vec::new(), false, false);
    let mut last: Option<(usize, Vec<char>)> = None;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b'}' | b']' => {
                open.pop()?;
            }
            b',' if open.len() < 60 => last = Some((at, open.clone())),
            _ => {}
        }
    }
    let (at, open) = last?;
    let whole: String = text[..at].chars().chain(open.into_iter().rev()).collect();
    serde_json::from_str(&without_nan(&whole)).ok()
}

/// Where the object at the start of a text ends.
fn end(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A text in which members that are `nan` or `inf` are `null`.
fn without_nan(text: &str) -> String {
    let member = |line: &str| -> String {
        let Some((name, value)) = line.split_once(':') else { return line.to_string() };
        let word = value.trim().trim_end_matches(',').trim();
        match word.trim_start_matches(['-', '+']) {
            "nan" | "inf" | "NaN" | "Infinity" => format!("{name}:{}", value.replacen(word, "null", 1)),
            _ => line.to_string(),
        }
    };
    text.lines().map(member).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_in_what_surrounds_them() {
        let text = "fio: hello\n\n{\n \"a\": 1}\nbetween {\n{\"b\": [2]}\nafter\n";
        let found = embedded(text);
        assert_eq!(found.documents, [serde_json::json!({"a": 1}), serde_json::json!({"b": [2]})]);
        assert_eq!(found.lines, ["fio: hello", "between {", "after"]);
        assert_eq!(found.above, ["fio: hello", "between {"]);
        assert!(!found.cut);
        assert!(embedded("{ no JSON }\n{\n").documents.is_empty());
    }

    #[test]
    fn what_is_cut_keeps_its_whole_members_only() {
        let text = "{\"a\": {\"b\": 12, \"c\": 345";
        let found = embedded(text);
        // The size of a cut number is unknown.
        assert_eq!(found.documents, [serde_json::json!({"a": {"b": 12}})]);
        assert!(found.cut);
        assert_eq!(embedded("{\"a, b\": \"c, d\", \"e\": [1, 2").documents.len(), 1);
    }

    /// Text in brackets that is no document costs its own length and hides no document after it;
    /// text that never ends is searched a bounded number of times.
    #[test]
    fn brackets_without_end_are_given_up_and_others_are_not() {
        let text = "{ nan }\n".repeat(20_000) + "{\"a\": 1}\n";
        let closed = embedded(&text);
        assert_eq!((closed.documents, closed.left_out), (vec![serde_json::json!({"a": 1})], 0));
        let text = "{ nan\n".repeat(20_000);
        let open = embedded(&text);
        assert!(open.documents.is_empty() && open.left_out > 0);
    }

    #[test]
    fn numbers_that_json_does_not_have_are_none() {
        let found = embedded("{\n\"a\" : -nan,\n\"b\" : 1,\n\"c\" : inf\n}\nafter");
        assert_eq!(found.documents, [serde_json::json!({"a": null, "b": 1, "c": null})]);
        assert_eq!(found.lines, ["after"]);
    }
}
