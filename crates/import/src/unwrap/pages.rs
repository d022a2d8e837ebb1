//! Pages as texts: lines where a page has blocks, cells of a row in one line, and what is
//! preformatted as it is.

use std::sync::LazyLock;

use regex::Regex;

use super::MIN_LINES;
use crate::kit::Expression;

/// Names of tags, since results have words in such brackets, too.
const TAGS: &str = "html|head|title|meta|link|body|p|div|span|br|hr|pre|code|tt|b|i|u|em|strong|small|big|sub|sup|font|a|img|center|\
                    blockquote|h[1-6]|ul|ol|li|dl|dt|dd|table|caption|colgroup|col|thead|tbody|tfoot|tr|td|th|kbd|samp";

static PAGE: Expression = Expression::new(r"(?i)<(?:html|body|pre|br|table|p|div)(?:\s[^<>]*)?/?>");

/// Whether a text is a page that is to be shown as a text; the report of SPEC CPU is read as it is.
pub fn is_page(text: &str) -> bool {
    PAGE.is_match(text) && !crate::speccpu::is_page(text)
}

/// Whether something stands before the first tag of a page in its line, as marks of a mail and
/// the prefixes of a log do.
pub fn is_wrapped(text: &str) -> bool {
    static BEGIN: Expression = Expression::new(r"(?i)^\s*<(?:!doctype|[a-z][a-z0-9]*(?:\s[^<>]*)?/?>)");
    let begins = |line: &&str| line.contains("<!DOCTYPE") || line.contains("<!doctype") || is_page(line);
    let has_lines = text.lines().nth(MIN_LINES - 1).is_some();
    has_lines && text.lines().find(begins).is_some_and(|line| !BEGIN.is_match(line))
}

/// The text of a page: lines where it has blocks, cells apart, and what is preformatted as it is.
pub fn of_page(page: &str) -> String {
    static HIDDEN: Expression =
        Expression::new(r"(?is)<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)\s*>");
    static BLOCK: Expression = Expression::new(
        r"(?i)<(?:br|hr)\s*/?>\r?\n?|</?(?:p|div|tr|li|dt|dd|h[1-6]|table|title|blockquote|ul|ol)(?:\s[^<>]*)?>",
    );
    static CELL: Expression = Expression::new(r"(?i)</t[dh]\s*>");
    static TAG: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(&format!(r"(?i)</?(?:{TAGS})(?:\s[^<>]*)?/?>")).expect("a pattern that a test tries")
    });
    static PRE: Expression = Expression::new(r"(?is)<pre(?:\s[^<>]*)?>(.*?)(?:</pre\s*>|\z)");
    let page = HIDDEN.replace_all(page, "");
    let plain = |part: &str| {
        let rows = in_rows(part);
        let lines = BLOCK.replace_all(&rows, "\n");
        let cells = CELL.replace_all(&lines, "  ");
        of_entities(&TAG.replace_all(&cells, ""))
    };
    let mut text = String::new();
    let mut after = 0;
    for found in PRE.captures_iter(&page) {
        let (whole, inner) = (found.get(0), found.get(1));
        let (Some(whole), Some(inner)) = (whole, inner) else { continue };
        text.push_str(&plain(&page[after..whole.start()]));
        text.push('\n');
        text.push_str(&plain(inner.as_str()));
        text.push('\n');
        after = whole.end();
    }
    text.push_str(&plain(&page[after..]));
    text
}

/// A page with the cells of a row in one line, as a browser shows them, where each stands on a line
/// of its own. A cell of several lines is a listing and stays as it is.
fn in_rows(page: &str) -> String {
    static CELL: Expression = Expression::new(r"(?is)(<t[dh](?:\s[^<>]*)?>)(.*?)(?:</t[dh]\s*>)");
    static BREAK: Expression = Expression::new(r"(?i)<br\s*/?>\s*");
    let mut rows = String::new();
    let mut after = 0;
    // Where the cell before ended, if it was a line.
    let mut beside = None;
    for found in CELL.captures_iter(page) {
        let (Some(whole), Some(inner)) = (found.get(0), found.get(2)) else { continue };
        let between = &page[after..whole.start()];
        let is_line = !BREAK.replace_all(inner.as_str().trim(), "").contains('\n');
        let joins = is_line && beside == Some(after) && between.trim().is_empty();
        rows.push_str(if joins { "" } else { between });
        if is_line {
            rows.extend([&found[1], inner.as_str().trim(), "</td>"])
        } else {
            rows.push_str(whole.as_str())
        }
        after = whole.end();
        beside = is_line.then_some(after);
    }
    rows + &page[after..]
}

fn of_entities(text: &str) -> String {
    static ENTITY: Expression =
        Expression::new(r"&(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos|nbsp));");
    let character = |found: &regex::Captures| -> String {
        let number = |at: usize, radix: u32| {
            let digits = found.get(at)?.as_str();
            u32::from_str_radix(digits, radix).ok().and_then(char::from_u32)
        };
        let named = found.get(3).map(|name| match name.as_str() {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => ' ',
        });
        let one = named.or(number(1, 10)).or(number(2, 16));
        one.map_or(found[0].to_string(), |one| if one == '\u{a0}' { ' ' } else { one }.to_string())
    };
    ENTITY.replace_all(text, character).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_a_row_are_in_one_line_and_listings_keep_their_lines() {
        let lines = |page: &str| {
            let text = of_page(page);
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            text.lines().map(words).filter(|line| !line.is_empty()).collect::<Vec<_>>()
        };
        for row in [
            "<tr><td>a</td><td>1.0</td></tr>",
            "<tr>\n   <td><b>a</b></td>\n   <td align=right><tt>1.0</tt></td>\n</tr>",
            "<TR>\r\n<TH>a</TH>\r\n<TD>\r\n  1.0\r\n</TD></TR>",
            "<tr><td>\n a\n</td>\n\n<td>1.0</td>",
        ] {
            assert_eq!(lines(&format!("<table>{row}</table>")), ["a 1.0"], "{row}");
        }
        assert_eq!(lines("<table><tr><td>a</td>\n</tr>\n<tr><td>b</td></tr></table>"), ["a", "b"]);
        let listing = "<table><tr><td>1\n2</td>\n<td>one\ntwo</td></tr></table>";
        assert_eq!(lines(listing), ["1", "2", "one", "two"]);
        assert_eq!(lines("<table><tr><td>x</td>\n<td>one\ntwo</td></tr></table>"), ["x", "one", "two"]);
        assert_eq!(lines("<table><tr>\n<td>a</td>\n<td>b<br/>\n  c</td></tr></table>"), ["a b", "c"]);
    }
}
