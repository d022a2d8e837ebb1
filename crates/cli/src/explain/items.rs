//! Rust source cut into its top-level items, with the paths that each item names.
//!
//! No compiler is at hand on a server, so this knows as much Rust as our formatted sources need:
//! brackets, strings, comments, `use` trees and paths.

use std::ops::Range;

/// A top-level item of a file: its doc comment and attributes, and itself.
pub struct Item {
    /// What it is called; an `impl` is called as its type, a macro's call as the first word that it
    /// is given. Empty:
    /// `use` and `mod` lines.
    pub name: String,
    /// Lines of the file, from 0.
    pub lines: Range<usize>,
    pub text: String,
    pub is_impl: bool,
}

/// A path in an item's code: `kernels::add_chain`, `Self::run` or a bare name.
pub type Path = Vec<String>;

/// A name that a `use` line brings in, or a glob (`name` is `*`).
pub struct Import {
    pub name: String,
    pub path: Path,
}

/// A piece of code that matters here.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'t> {
    Word(&'t str),
    Mark(char),
    /// `::`
    Colons,
    LineEnd,
}

/// The tokens of a text, each with where it ends; strings, comments, numbers and lifetimes are left
/// out.
fn tokens(text: &str) -> Tokens<'_> {
    Tokens { text, at: 0 }
}

struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (Token<'t>, usize);

    fn next(&mut self) -> Option<(Token<'t>, usize)> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let find = |from: usize, what: &str| text[from..].find(what).map_or(text.len(), |end| from + end);
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        while let Some(byte) = bytes.get(self.at).copied() {
            let at = self.at;
            let rest = &bytes[at..];
            let mut token = None;
            self.at = match byte {
                b'/' if rest.starts_with(b"//") => find(at, "\n"),
                b'/' if rest.starts_with(b"/*") => (find(at, "*/") + 2).min(text.len()),
                b'r' if rest.starts_with(b"r#\"") => (find(at + 3, "\"#") + 2).min(text.len()),
                b'"' => after_string(bytes, at + 1),
                b'\'' => after_quote(text, at),
                b':' if rest.starts_with(b"::") => {
                    token = Some(Token::Colons);
                    at + 2
                }
                b'\n' => {
                    token = Some(Token::LineEnd);
                    at + 1
                }
                byte if is_word(byte) => {
                    let end = at + rest.iter().take_while(|byte| is_word(**byte)).count();
                    token = (!byte.is_ascii_digit()).then(|| Token::Word(&text[at..end]));
                    end
                }
                byte => {
                    let is_mark = byte.is_ascii() && !byte.is_ascii_whitespace();
                    token = is_mark.then_some(Token::Mark(byte as char));
                    at + 1
                }
            };
            if let Some(token) = token {
                return Some((token, self.at));
            }
        }
        None
    }
}

fn after_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// After a character in quotes; a lifetime has no second quote and is passed by its first.
fn after_quote(text: &str, at: usize) -> usize {
    let inside: Vec<(usize, char)> = text[at + 1..].char_indices().take(12).collect();
    let escaped = matches!(inside.first(), Some((_, '\\')));
    let close = inside.iter().skip(if escaped { 2 } else { 1 }).find(|(_, one)| *one == '\'');
    match close {
        Some((offset, _)) if escaped || inside.get(1).is_some_and(|(_, one)| *one == '\'') => at + 2 + offset,
        _ => at + 1,
    }
}

/// The top-level items of a file.
pub fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (mut begin, mut depth, mut is_open) = (0, 0usize, false);
    let mut tokens = tokens(text).peekable();
    while let Some((token, end)) = tokens.next() {
        // An attribute ends at its bracket and belongs to what follows.
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_open |= !matches!(token, Token::LineEnd);
        let next = tokens.peek().map(|(next, _)| *next);
        let closed = match token {
            Token::Mark(';') => true,
            Token::Mark('}') => matches!(next, None | Some(Token::LineEnd)),
            _ => false,
        };
        if is_open && depth == 0 && closed {
            items.extend(item(text, begin, end));
            (begin, is_open) = (end, false);
        }
    }
    items
}

fn item(text: &str, begin: usize, end: usize) -> Option<Item> {
    // Comments of the file itself stand before its first item and end with a blank line.
    let begin = begin + text[begin..end].len() - text[begin..end].trim_start().len();
    let begin = match text[begin..end].starts_with("//!") {
        true => begin + text[begin..end].find("\n\n").map_or(0, |blank| blank + 2),
        false => begin,
    };
    let code = &text[begin..end];
    if code.contains("#[cfg(test)]") && code.starts_with("#[cfg(test)]") {
        return None;
    }
    let first = text[..begin].matches('\n').count();
    let lines = first..first + code.matches('\n').count() + 1;
    let (name, is_impl) = named(code);
    Some(Item { name, lines, text: code.to_string(), is_impl })
}

/// What an item is called, and whether it is an `impl`.
fn named(code: &str) -> (String, bool) {
    let tokens = tokens(code).map(|(token, _)| token).filter(|token| *token != Token::LineEnd);
    let mut words = Vec::new();
    let mut is_call = false;
    let (mut angle, mut square) = (0usize, 0usize);
    for (index, token) in tokens.enumerate() {
        is_call |= index == 1 && token == Token::Mark('!');
        match token {
            Token::Mark('<') => angle += 1,
            Token::Mark('>') => angle = angle.saturating_sub(1),
            Token::Mark('[') => square += 1,
            Token::Mark(']') => square = square.saturating_sub(1),
            Token::Mark('{' | '=' | ';') if square == 0 => break,
            Token::Word(word) if angle == 0 && square == 0 => words.push(word),
            _ => {}
        }
    }
    const KINDS: [&str; 9] =
        ["fn", "const", "static", "struct", "enum", "trait", "type", "macro_rules", "impl"];
    let Some(kind) = words.iter().position(|word| KINDS.contains(word)) else {
        return (if is_call { words.get(1).unwrap_or(&"").to_string() } else { String::new() }, false);
    };
    if words[kind] == "impl" {
        let words: Vec<&str> = words[kind..].iter().copied().take_while(|word| *word != "where").collect();
        let of = words.iter().position(|word| *word == "for").map_or(&words[1..], |at| &words[at + 1..]);
        let plain = of.iter().find(|word| !["dyn", "mut", "crate", "super"].contains(word));
        return (plain.unwrap_or(&"").to_string(), true);
    }
    // `const fn`, `const unsafe fn`.
    let name =
        words[kind + 1..].iter().find(|word| !["fn", "unsafe", "extern", "const", "mut"].contains(word));
    (name.unwrap_or(&"").to_string(), false)
}

/// Words before a name that is being declared.
const DECLARING: [&str; 5] = ["fn", "let", "mut", "mod", "for"];

/// The paths that code names, in order; fields, methods and what is being declared are not among
/// them.
pub fn paths(code: &str) -> Vec<Path> {
    let tokens: Vec<(Token, usize)> = tokens(code).collect();
    let mut paths: Vec<Path> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token_before = |steps: usize| at.checked_sub(steps).map(|at| tokens[at].0);
        let before = token_before(1);
        // After two dots stands the base of a struct or the end of a range, no field.
        let is_dot = |token: Option<Token>| token == Some(Token::Mark('.'));
        let is_after_dot = is_dot(before) && !is_dot(token_before(2));
        let Token::Word(first) = tokens[at].0 else {
            at += 1;
            continue;
        };
        let mut path = vec![first.to_string()];
        while let (Some((Token::Colons, _)), Some((Token::Word(next), _))) =
            (tokens.get(at + 1), tokens.get(at + 2))
        {
            path.push(next.to_string());
            at += 2;
        }
        at += 1;
        let is_field = path.len() == 1 && tokens.get(at).is_some_and(|(next, _)| *next == Token::Mark(':'));
        let is_declaring = |word: &str| DECLARING.contains(&word);
        let declared = match before {
            Some(Token::Word(word)) => is_declaring(word),
            _ => is_after_dot,
        };
        if !is_field && !declared && !is_declaring(first) {
            paths.push(path);
        }
    }
    paths
}

/// What the `use` lines of a file bring in.
pub fn imports(items: &[Item]) -> Vec<Import> {
    let mut imports = Vec::new();
    for item in items.iter().filter(|item| item.name.is_empty()) {
        let tokens: Vec<Token> = tokens(&item.text).map(|(token, _)| token).collect();
        let Some(begin) = tokens.iter().position(|token| *token == Token::Word("use")) else { continue };
        let mut rest =
            tokens[begin + 1..].iter().copied().filter(|token| *token != Token::LineEnd).peekable();
        tree(&mut rest, &[], &mut imports);
    }
    imports
}

/// One branch of a `use` tree.
fn tree<'t>(
    rest: &mut std::iter::Peekable<impl Iterator<Item = Token<'t>>>,
    above: &[String],
    imports: &mut Vec<Import>,
) {
    let mut path = above.to_vec();
    while let Some(token) = rest.next() {
        match token {
            Token::Word("as") => {
                if let Some(Token::Word(name)) = rest.next() {
                    imports.push(Import { name: name.to_string(), path });
                }
                return;
            }
            Token::Word("self") if !above.is_empty() => {
                imports.push(Import { name: path.last().cloned().unwrap_or_default(), path });
                return;
            }
            Token::Word(word) => {
                path.push(word.to_string());
                if !matches!(rest.peek(), Some(Token::Colons | Token::Word("as"))) {
                    imports.push(Import { name: word.to_string(), path });
                    return;
                }
            }
            Token::Mark('*') => {
                imports.push(Import { name: "*".to_string(), path });
                return;
            }
            Token::Mark('{') => loop {
                match rest.peek() {
                    None => return,
                    Some(Token::Mark('}')) => {
                        rest.next();
                        return;
                    }
                    Some(Token::Mark(',')) => {
                        rest.next();
                    }
                    Some(_) => tree(rest, &path, imports),
                }
            },
            Token::Colons => {}
            _ => return,
        }
    }
}
