//! What a printout says about itself before it is blanked: whether it goes to its end, and of how
//! many systems it is. Both are in lines that blanking leaves out.

use super::systems::of_one_system;
use model::dmidecode_text::{Structure, TITLES, structures};

/// Lines whose values are blanked, wherever they stand.
const SECRET: [&str; 4] = ["Serial Number", "Asset Tag", "UUID", "SBDS Serial Number"];

/// Kinds for which no keyword of `-t` asks: only a printout of everything has them.
const UNASKED: [std::ops::RangeInclusive<u32>; 6] = [11..=11, 14..=14, 21..=22, 24..=31, 33..=40, 42..=125];

const CUT: &str = "cut: ";
const REMARK: &str = "remark: ";
const ENDED: &str = "ended";

/// What a printout says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Signs {
    /// It goes to the structure that ends a table.
    pub is_ended: bool,
    /// Why it is no whole printout.
    pub cut: Option<String>,
    pub remarks: Vec<String>,
}

impl Signs {
    pub fn of(lines: &str) -> Signs {
        let mut signs = Signs::default();
        for line in lines.lines() {
            if let Some(why) = line.strip_prefix(CUT) {
                signs.cut = Some(why.to_string());
            } else if let Some(words) = line.strip_prefix(REMARK) {
                signs.remarks.push(words.to_string());
            }
            signs.is_ended |= line == ENDED;
        }
        signs
    }
}

/// A printout as someone passes it on: the text of one system, and what it says about itself in
/// lines that `Signs` reads.
pub fn of_printout(raw: &str) -> (String, String) {
    let part = first_with_modules(raw);
    let mut lines = Vec::new();
    lines.extend(part.lines().any(|line| line.trim().ends_with("End Of Table")).then(|| ENDED.to_string()));
    lines.extend(why_cut(part).map(|why| format!("{CUT}{why}")));
    let mut remarks = Vec::new();
    let one = of_one_system(structures(raw), &mut remarks);
    let text = if remarks.is_empty() {
        raw.to_string()
    } else {
        let secret =
            |line: &&str| line.split_once(':').is_some_and(|(name, _)| SECRET.contains(&name.trim()));
        let secrets: String = raw.lines().filter(secret).map(|line| format!("\t{}\n", line.trim())).collect();
        format!("{}Of Others\n{secrets}", rendered(&one))
    };
    lines.extend(remarks.into_iter().map(|words| format!("{REMARK}{words}")));
    (text, lines.join("\n"))
}

/// The first printout of a text that has modules: a second structure of the firmware or of the
/// system begins the next one.
fn first_with_modules(raw: &str) -> &str {
    let mut seen: Vec<&str> = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in raw.split_inclusive('\n') {
        let title = line.trim().trim_start_matches(['>', ' ']);
        if matches!(title, "BIOS Information" | "System Information") {
            if seen.contains(&title) {
                let part = &raw[begin..at];
                if part.contains("Memory Device") {
                    return without_begun(part);
                }
                begin = at;
                seen.clear();
            }
            seen.push(title);
        }
        at += line.len();
    }
    &raw[begin..]
}

/// The handle at a part's end is of the next part's first structure.
fn without_begun(part: &str) -> &str {
    let end = part.trim_end();
    let last = end.rfind('\n').map_or(0, |at| at + 1);
    if end[last..].contains("Handle 0x") { &part[..last] } else { part }
}

fn why_cut(text: &str) -> Option<String> {
    let mut kinds: Vec<u32> = Vec::new();
    let (mut announced, mut is_full, mut is_broken) = (None, false, false);
    let mut last = "";
    for line in text.lines().map(|line| line.trim().trim_start_matches(['>', ' '])) {
        if line.starts_with("Handle 0x")
            && let Some(kind) = line.split("DMI type ").nth(1)
        {
            kinds.extend(kind.split(',').next().and_then(|kind| kind.trim().parse::<u32>().ok()));
        }
        if let Some((count, _)) = line.split_once(" structures occupying ") {
            announced = announced.or(count.trim().parse::<usize>().ok());
        }
        is_full |= line.starts_with("Table at 0x");
        is_broken |= line == "<TRUNCATED>" || line.contains("DMI table is broken");
        if !line.is_empty() {
            last = line;
        }
    }
    let is_ended = text.lines().any(|line| line.trim().ends_with("End Of Table"));
    let says_wrong = text.contains("Wrong DMI structures count");
    is_full |= announced.is_some();
    is_full |= kinds.iter().any(|kind| UNASKED.iter().any(|range| range.contains(kind)) || *kind > 127);
    if is_broken {
        return Some("dmidecode reports a broken table".to_string());
    }
    if last.starts_with("Handle 0x") {
        return Some("the text ends after a handle".to_string());
    }
    let all = structures(text);
    let known = || all.iter().filter(|one| one.kind.is_some());
    if let Some(begun) = known().find(|one| matches!(one.kind, Some(4 | 17)) && one.fields.is_empty()) {
        let what = if begun.kind == Some(17) { "slot" } else { "processor" };
        return Some(format!("the text names a {what} without any details"));
    }
    if !is_ended && !kinds.is_empty() && is_full {
        return Some("the text lacks \"End Of Table\", the last line of a full printout".to_string());
    }
    let told = announced.filter(|count| kinds.len() < *count && !says_wrong);
    if let Some(count) = told.filter(|_| !kinds.is_empty()) {
        return Some(format!("the text announces {count} structures and has {}", kinds.len()));
    }
    let slots: Vec<&Structure> = known().filter(|one| one.kind == Some(17)).collect();
    let is_last = known().next_back().is_some_and(|one| one.kind == Some(17));
    (is_last && !is_ended && is_begun(&slots)).then(|| "the text ends in the middle of a slot".to_string())
}

/// Whether the last slot lacks what those before it have.
fn is_begun(slots: &[&Structure]) -> bool {
    let Some((last, before)) = slots.split_last() else { return false };
    let has = |one: &Structure, name: &str| one.fields.iter().any(|(known, _)| *known == name);
    let is_filled = |one: &Structure| {
        one.get(&["Size"]).is_some_and(|size| size.starts_with(|c: char| c.is_ascii_digit()))
    };
    let lacks =
        |name: &str| !before.is_empty() && before.iter().all(|one| has(one, name)) && !has(last, name);
    // A device of another kind has other fields.
    let is_alike = |one: &Structure| last.get(&["Type"]).is_none_or(|kind| one.get(&["Type"]) == Some(kind));
    let closing = before.iter().rev().find(|one| is_filled(one) && is_alike(one));
    let closing = closing.and_then(|one| one.fields.last());
    lacks("Locator") || lacks("Size") || is_filled(last) && closing.is_some_and(|(name, _)| !has(last, name))
}

/// Structures as a printout has them.
fn rendered(all: &[Structure]) -> String {
    let mut text = String::new();
    for one in all {
        let Some((kind, title)) = TITLES.iter().find(|(kind, _)| Some(*kind) == one.kind) else { continue };
        if let Some(handle) = one.handle {
            text.push_str(&format!("Handle {handle}, DMI type {kind}\n"));
        }
        text.push_str(&format!("{title}\n"));
        for (name, value) in &one.fields {
            text.push_str(&format!("\t{name}: {value}\n"));
        }
        text.push('\n');
    }
    text
}
