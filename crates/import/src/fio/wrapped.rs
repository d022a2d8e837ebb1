//! Joins lines that a mail or a shell broke, so that each reads as fio or its caller wrote it.

use super::text;

/// Lines that one line was broken into.
const MAX_PARTS: usize = 12;

/// Ends behind which a line of fio's goes on, where its next one is not indented.
const OPEN: [char; 4] = [',', '[', '=', '('];

/// The text with broken lines as one.
pub fn joined(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let mut line = line.to_string();
        for _ in 1..MAX_PARTS {
            let Some(next) = lines.peek() else { break };
            // A command goes on where a backslash says so.
            match line.strip_suffix('\\').map(str::trim_end) {
                Some(before) => line = format!("{before} {}", next.trim()),
                None if is_open(&line, next) && goes_on(next) => {
                    line = format!("{} {}", line.trim_end(), next.trim_end());
                }
                None => break,
            }
            lines.next();
        }
        whole.push_str(&line);
        whole.push('\n');
    }
    whole
}

/// Whether a line of fio's lacks its end, for all that follows.
fn is_open(line: &str, next: &str) -> bool {
    let trimmed = line.trim();
    let is_sum = ["READ:", "WRITE:", "TRIM:", "MIXED:"].iter().any(|head| trimmed.starts_with(head));
    let is_inner = line.starts_with(' ') && trimmed.contains([':', '|']);
    let (is_job, is_result) = (trimmed.contains(": (g="), text::is_result(trimmed));
    match () {
        () if is_job => !trimmed.contains("iodepth="),
        () if is_result => !trimmed.contains(": pid=") || !ends_with_year(trimmed),
        () if is_inner && is_sum => !trimmed.contains("run="),
        () if is_inner && trimmed.starts_with("issued") => !trimmed.contains("dropped="),
        () => is_inner && (trimmed.ends_with(OPEN) || is_bracket(next)),
    }
}

fn ends_with_year(line: &str) -> bool {
    let last = line.rsplit(' ').next().unwrap_or_default();
    last.len() == 4 && last.bytes().all(|byte| byte.is_ascii_digit())
}

/// `(41.0MB/s)(391MiB/10000msec)`
fn is_bracket(line: &str) -> bool {
    line.strip_prefix('(').is_some_and(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
}

/// Whether a line can be the rest of one: figures, without a start.
fn goes_on(line: &str) -> bool {
    let begins = text::begins(line) || text::version(line).is_some() || super::runs::is_noise(line);
    let is_year = line.len() == 4 && ends_with_year(line);
    let digit = |one: char| one.is_ascii_digit();
    let first = line.split(' ').next().unwrap_or_default();
    let has_figures = line.contains(['=', '%', ']', ')']) && line.contains(digit);
    let is_figure = first.starts_with('(') || first.contains('=') || first.contains(digit);
    let is_rest = is_year || has_figures && (is_figure || line.contains(": pid="));
    !begins && is_rest && !line.starts_with([' ', '\t']) && !line.trim_end().ends_with(':')
}
