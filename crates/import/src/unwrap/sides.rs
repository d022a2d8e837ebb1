//! Texts of two or more in one: the sides of a comparison by `diff`, and lines each of which begins
//! with the label of what it is of.

use super::Plain;
use crate::kit::Expression;

/// What a side is called where the comparison does not give its name.
const BEFORE: &str = "before";
const AFTER: &str = "after";
/// Labels of one text.
const MAX_LABELS: usize = 12;
/// Lines that are searched for a side.
const MAX_TRIED: usize = 200;
/// A text of more lines is not taken for a comparison side by side.
const MAX_BESIDE: usize = 20_000;

/// The texts of both sides, or of all labels; the text itself where it has neither.
pub fn apart(plain: Plain) -> Vec<Plain> {
    let lines: Vec<&str> = plain.text.lines().collect();
    let found = unified(&lines)
        .or_else(|| context(&lines))
        .or_else(|| marked(&lines, ["< ", "> "]))
        .or_else(|| marked(&lines, ["-", "+"]))
        .or_else(|| beside(&lines))
        .or_else(|| labelled(&lines));
    let Some(found) = found else { return vec![plain] };
    found.into_iter().map(|one| one.of(&plain.source)).collect()
}

/// Adds a line to the text of a source, at most once for each place.
fn put(all: &mut Vec<Plain>, source: &str, line: &str) {
    let at = all.iter().position(|one| one.source == source).unwrap_or(all.len());
    if at == all.len() {
        all.push(Plain { source: source.to_string(), text: String::new() });
    }
    all[at].text.push_str(line);
    all[at].text.push('\n');
}

/// `diff -u` and git: what both sides have stands in both.
fn unified(lines: &[&str]) -> Option<Vec<Plain>> {
    static PLACE: Expression = Expression::new(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@");
    lines.iter().find(|line| PLACE.is_match(line))?;
    let mut names = [BEFORE, AFTER].map(str::to_string);
    let (mut all, mut inside) = (Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        if line.starts_with("--- ") && next.starts_with("+++ ") {
            let (old, new) = (name(line), name(next));
            // git calls both by the file's name.
            names = if old == new { [BEFORE, AFTER].map(|side| format!("{old} {side}")) } else { [old, new] };
            inside = false;
        } else if PLACE.is_match(line) {
            inside = true;
        } else if inside {
            let mut both = |sides: &[usize], line: &str| {
                sides.iter().for_each(|side| put(&mut all, &names[*side], line))
            };
            match (line.chars().next(), line.get(1..)) {
                (Some('-'), Some(own)) => both(&[0], own),
                (Some('+'), Some(own)) => both(&[1], own),
                (Some(' '), Some(own)) => both(&[0, 1], own),
                (None, _) => both(&[0, 1], ""),
                _ => inside = line.starts_with('\\'),
            }
        }
    }
    (all.len() > 1).then_some(all)
}

/// `diff -c`: a part of each side, of which that without a change is left out.
fn context(lines: &[&str]) -> Option<Vec<Plain>> {
    static OLD: Expression = Expression::new(r"^\*\*\* \d+(?:,\d+)? \*\*\*\*$");
    static NEW: Expression = Expression::new(r"^--- \d+(?:,\d+)? ----$");
    let is_ruler = |line: &str| line.starts_with("***************");
    lines.iter().find(|line| is_ruler(line))?;
    let mut names = [BEFORE, AFTER].map(str::to_string);
    let (mut all, mut parts) = (Vec::new(), [Vec::new(), Vec::new()]);
    // Which side the lines at hand are of.
    let mut side = None;
    let finish = |parts: &mut [Vec<&str>; 2], names: &[String; 2], all: &mut Vec<Plain>| {
        let [old, new] = parts.each_mut().map(std::mem::take);
        let common = |side: &[&'_ str]| side.iter().any(|line| line.starts_with("  "));
        for (at, (own, other)) in [(&old, &new), (&new, &old)].into_iter().enumerate() {
            let shown = if own.is_empty() && common(other) { other } else { own };
            let is_own = |line: &&&str| !own.is_empty() || line.starts_with("  ");
            for line in shown.iter().filter(is_own) {
                put(all, &names[at], line.get(2..).unwrap_or_default());
            }
        }
    };
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        match line {
            _ if OLD.is_match(line) => side = Some(0),
            _ if side.is_some() && NEW.is_match(line) => side = Some(1),
            _ if line.starts_with("*** ") && next.starts_with("--- ") => {
                finish(&mut parts, &names, &mut all);
                names = [name(line), name(next)];
                side = None;
            }
            _ if is_ruler(line) => {
                finish(&mut parts, &names, &mut all);
                side = None;
            }
            _ => match side.map(|side: usize| (side, line.get(..2))) {
                Some((side, Some("  " | "! " | "- " | "+ "))) => parts[side].push(line),
                // An empty line of both may have lost its blanks.
                Some((side, None)) => parts[side].push("  "),
                _ => {}
            },
        }
    }
    finish(&mut parts, &names, &mut all);
    (all.len() > 1).then_some(all)
}

/// The name of a side in the line that gives it, without what git puts before.
fn name(line: &str) -> String {
    let name = line[4..].split('\t').next().unwrap_or_default().trim();
    let name = name.strip_prefix("a/").or(name.strip_prefix("b/")).unwrap_or(name);
    name.chars().take(80).collect()
}

/// A line without its numbers, by which two sides of one are known.
pub fn skeleton(line: &str) -> String {
    static NUMBER: Expression = Expression::new(r"[0-9][0-9.,]*[KMG]?|\s+");
    let plain = NUMBER.replace_all(
        line.trim(),
        |found: &regex::Captures| {
            if found[0].trim().is_empty() { " " } else { "0" }
        },
    );
    plain.into_owned()
}

/// Whether a line has a number and what it is of.
fn has_figure(line: &str) -> bool {
    line.contains(|c: char| c.is_ascii_digit()) && line.contains(char::is_alphabetic)
}

/// `diff`, or lines of `diff -u` without its heads: lines of both sides alternating, marked.
fn marked(lines: &[&str], marks: [&'static str; 2]) -> Option<Vec<Plain>> {
    static PLACE: Expression = Expression::new(r"^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$");
    let is_ruler = |line: &str| line.starts_with("--") || line.starts_with("++");
    let own = |line: &&str, mark: &str| line.starts_with(mark) && !is_ruler(line);
    let of = |mark: &'static str| {
        lines.iter().filter(move |line| own(line, mark)).map(move |line| &line[mark.len()..])
    };
    let (before, after): (Vec<&str>, Vec<&str>) = (of(marks[0]).collect(), of(marks[1]).collect());
    let places = lines.iter().any(|line| PLACE.is_match(line)) && marks[0] == "< ";
    let alike = after.iter().take(MAX_TRIED).map(|line| skeleton(line)).collect::<Vec<_>>();
    let paired =
        before.iter().take(MAX_TRIED).any(|line| has_figure(line) && alike.contains(&skeleton(line)));
    let filled =
        lines.iter().filter(|line| !line.trim().is_empty() && !is_ruler(line) && !PLACE.is_match(line));
    if before.is_empty()
        || after.is_empty()
        || !(places || paired)
        || 2 * (before.len() + after.len()) < filled.count()
    {
        return None;
    }
    let mut all = Vec::new();
    for line in lines {
        match (own(line, marks[0]), own(line, marks[1])) {
            (true, _) => put(&mut all, BEFORE, &line[marks[0].len()..]),
            (_, true) => put(&mut all, AFTER, &line[marks[1].len()..]),
            _ if is_ruler(line) || PLACE.is_match(line) => {}
            // What has no mark is of both.
            _ => [BEFORE, AFTER]
                .iter()
                .for_each(|side| put(&mut all, side, line.strip_prefix(' ').unwrap_or(line))),
        }
    }
    Some(all)
}

/// A line with its tabulators as blanks.
fn expanded(line: &str) -> Vec<char> {
    let mut wide = Vec::new();
    for c in line.chars() {
        match c {
            '\t' => (0..8 - wide.len() % 8).for_each(|_| wide.push(' ')),
            c => wide.push(c),
        }
    }
    wide
}

/// `diff -y`: both sides next to each other, separated by a column of marks.
fn beside(lines: &[&str]) -> Option<Vec<Plain>> {
    if lines.len() > MAX_BESIDE || !lines.iter().any(|line| line.contains(" |") || line.contains("\t|")) {
        return None;
    }
    let wide: Vec<Vec<char>> = lines.iter().map(|line| expanded(line)).collect();
    let text = |part: &[char]| part.iter().collect::<String>().trim_end().to_string();
    let parts = |line: &[char], at: usize| {
        // The right side begins at a stop of tabulators.
        let (stop, behind) = ((at / 8 + 1) * 8, line.get(at + 1..).unwrap_or_default());
        let blanks = behind.iter().take_while(|c| **c == ' ').count().min(stop - at - 1);
        (text(&line[..at.min(line.len())]), text(&behind[blanks..]))
    };
    let is_column = |at: usize| {
        wide.iter().all(|line| {
            let (left, right) = parts(line, at);
            match line.get(at) {
                None => true,
                Some(' ') => right.is_empty() || left.trim() == right.trim(),
                Some('|' | '<' | '>') => true,
                Some(_) => false,
            }
        })
    };
    let mut columns: Vec<usize> = Vec::new();
    for line in wide.iter().take(MAX_TRIED) {
        let marks = line.iter().enumerate().filter(|(at, c)| **c == '|' && *at > 0 && line[at - 1] == ' ');
        for (at, _) in marks.take(MAX_LABELS) {
            let (left, right) = parts(line, at);
            if !columns.contains(&at) && has_figure(&left) && skeleton(&left) == skeleton(&right) {
                columns.push(at);
            }
        }
    }
    let at = columns.into_iter().find(|at| is_column(*at))?;
    let mut all = vec![
        Plain { source: BEFORE.to_string(), text: String::new() },
        Plain { source: AFTER.to_string(), text: String::new() },
    ];
    for line in &wide {
        let (left, right) = parts(line, at);
        let mark = line.get(at).copied().unwrap_or(' ');
        let alike = mark == ' ' && right.is_empty();
        if mark != '>' {
            put(&mut all, BEFORE, &left);
        }
        if mark != '<' {
            put(&mut all, AFTER, if alike { &left } else { &right });
        }
    }
    Some(all)
}

/// `[before] Simple syscall: 0.2 microseconds` or `before: Time: 4.905`: lines begin with a label,
/// and what stands behind it is alike under at least two of them.
fn labelled(lines: &[&str]) -> Option<Vec<Plain>> {
    static BRACKETS: Expression = Expression::new(r"^\[([^\[\]|:]{1,40})\]:? +(\S.*)$");
    static COLON: Expression = Expression::new(r"^([A-Za-z0-9][^:|=\[\]]{0,40}): +(\S.*)$");
    static TIME: Expression =
        Expression::new(r"(?i)^\d+(?:\.\d+)? ?(?:[mun]?s|secs?|seconds?|m|mins?|minutes?|h)$");
    [(&BRACKETS, false), (&COLON, true)].iter().find_map(|(kind, strict)| {
        let (mut all, mut others): (Vec<Plain>, Vec<&str>) = (Vec::new(), Vec::new());
        for line in lines.iter().filter(|line| !line.trim().is_empty()) {
            match kind.captures(line) {
                Some(found) => put(&mut all, found[1].trim(), &found[2]),
                None if *strict => return None,
                None => others.push(*line),
            }
            if all.len() > MAX_LABELS {
                return None;
            }
        }
        // iperf3 numbers its streams so, kernels print the time, and sysbench how long it ran.
        let is_name = |one: &Plain| {
            let version = one.source.contains('.') && one.source.len() < 8;
            (version || one.source.contains(char::is_alphabetic))
                && !["SUM", "ID"].contains(&one.source.as_str())
                && !TIME.is_match(&one.source)
        };
        // A value with its unit alone is what the label names, and no line of a result.
        let is_line = |line: &str| !strict || line.contains(": ") || line.split_whitespace().count() > 3;
        let skeletons = |one: &Plain| one.text.lines().map(skeleton).collect::<Vec<_>>();
        let first = skeletons(all.first()?);
        let is_alike = |one: &Plain| {
            let lines = skeletons(one);
            if *strict { lines == first } else { lines.iter().any(|line| first.contains(line)) }
        };
        let alike = if *strict { all.iter().all(is_alike) } else { all[1..].iter().any(is_alike) };
        let own: usize = all.iter().map(|one| one.text.lines().count()).sum();
        let lines_are =
            others.len() <= own && all.iter().all(|one| is_name(one) && one.text.lines().all(is_line));
        if all.len() < 2 || !alike || !lines_are {
            return None;
        }
        // What surrounds them is of none.
        let names: Vec<String> = all.iter().map(|one| one.source.clone()).collect();
        names.iter().for_each(|name| others.iter().for_each(|line| put(&mut all, name, line)));
        Some(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(text: &str) -> Vec<(String, String)> {
        let plain = Plain { source: String::new(), text: text.to_string() };
        apart(plain).into_iter().map(|one| (one.source, one.text)).collect()
    }

    fn pair(names: [&str; 2], texts: [&str; 2]) -> Vec<(String, String)> {
        let both = names.into_iter().zip(texts);
        both.map(|(name, text)| (name.to_string(), text.to_string())).collect()
    }

    #[test]
    fn both_sides_of_a_comparison_are_texts() {
        let own = ["head 1\nSimple stat: 0.9 us\n", "head 1\nSimple stat: 0.7 us\n"];
        let unified = "--- a/old.txt\t2026\n+++ b/new.txt\t2026\n@@ -1,2 +1,2 @@ x\n head 1\n-Simple stat: 0.9 us\n+Simple stat: 0.7 us\n\\ No newline\n";
        assert_eq!(sides(unified), pair(["old.txt", "new.txt"], own));
        let git = format!(
            "diff --git a/r b/r\nindex 1..2 100644\n{}",
            unified.replace("old.txt", "r").replace("new.txt", "r")
        );
        assert_eq!(sides(&git), pair(["r before", "r after"], own));
        let changed = ["Simple stat: 0.9 us\n", "Simple stat: 0.7 us\n"];
        for text in [
            "2c2\n< Simple stat: 0.9 us\n---\n> Simple stat: 0.7 us\n",
            "< Simple stat: 0.9 us\n> Simple stat: 0.7 us\n",
            "-Simple stat: 0.9 us\n+Simple stat: 0.7 us\n",
        ] {
            assert_eq!(sides(text), pair([BEFORE, AFTER], changed), "{text}");
        }
        let context = "*** old.txt\t2026\n--- new.txt\t2026\n***************\n*** 1,2 ****\n  head 1\n! Simple stat: 0.9 us\n--- 1,2 ----\n  head 1\n! Simple stat: 0.7 us\n";
        assert_eq!(sides(context), pair(["old.txt", "new.txt"], own));
        let added = "*** a/old.txt\n--- b/new.txt\n***************\n*** 1 ****\n--- 1,2 ----\n  head 1\n+ Simple stat: 0.7 us\n";
        assert_eq!(sides(added), pair(["old.txt", "new.txt"], ["head 1\n", own[1]]));
        let removed = "***************\n*** 1,2 ****\n  head 1\n- Simple stat: 0.9 us\n--- 1 ----\n";
        assert_eq!(sides(removed), pair([BEFORE, AFTER], [own[0], "head 1\n"]));
        let two = format!(
            "{context}***************\n*** 9 ****\n! Simple read: 0.3 us\n--- 9 ----\n! Simple read: 0.2 us\n"
        );
        let more = ["Simple read: 0.3 us\n", "Simple read: 0.2 us\n"];
        assert_eq!(
            sides(&two),
            pair(["old.txt", "new.txt"], [&(own[0].to_string() + more[0]), &(own[1].to_string() + more[1])])
        );
        let beside = "head 1\t\t\t\thead 1\nSimple stat: 0.9 us\t    |\tSimple stat: 0.7 us\n";
        assert_eq!(sides(beside), pair([BEFORE, AFTER], own));
    }

    #[test]
    fn labels_before_each_line_are_of_texts() {
        let own = ["Simple stat: 0.9 us\n", "Simple stat: 0.7 us\n"];
        for (text, names) in [
            ("[6.1] Simple stat: 0.9 us\n[6.6 rc] Simple stat: 0.7 us\n", ["6.1", "6.6 rc"]),
            ("[old] Simple stat: 0.9 us\n[new] Simple stat: 0.7 us\n", ["old", "new"]),
            ("old: Simple stat: 0.9 us\nnew: Simple stat: 0.7 us\n", ["old", "new"]),
            ("gcc 12: Simple stat: 0.9 us\n\ngcc 13: Simple stat: 0.7 us\n", ["gcc 12", "gcc 13"]),
        ] {
            assert_eq!(sides(text), pair(names, own), "{text}");
        }
    }

    #[test]
    fn what_is_no_comparison_stays_whole() {
        for text in [
            "Simple read: 0.2 microseconds\nSimple write: 0.3 microseconds\n",
            "[SUM] 0.00-1.00 sec 1 GBytes\n[SUM] 1.00-2.00 sec 1 GBytes\n",
            "[ 10s ] thds: 4 eps: 1.5 lat (ms,95%): 0.9\n[ 20s ] thds: 4 eps: 1.4 lat (ms,95%): 0.9\n",
            "[ 1s] 6543.21 MiB/sec\n[ 2s] 6544.21 MiB/sec\n[ 3s] 6545.21 MiB/sec\n",
            "[0.5 s] rate: 1.5 a second\n[1.0 s] rate: 1.4 a second\n",
            "10 sec: rate: 1.5 a second\n20 sec: rate: 1.4 a second\n",
            "     |  1.00th=[  245],  5.00th=[  253]\n     | 30.00th=[  269], 40.00th=[  269]\n",
            "- a point\n- another\n+ one more\n",
            "sockperf: ---> percentile 50.0 = 1.0\nsockperf: ---> percentile 90.0 = 2.0\n",
            "one | two\nthree\n",
        ] {
            assert_eq!(sides(text), [(String::new(), text.to_string())], "{text}");
        }
    }
}
