//! Words that first screens print beside their figures: verdicts, heads of columns, topics of lines
//! and facts. `labels.txt` has them: a line for each screen, and below it a line for each label. A
//! label is written in small letters, as `one | other: text`; with `*` behind it, it stands for
//! whatever begins so.

/// Title and text of each meaning that a word has on screens.
pub fn meanings(wanted: &str) -> Vec<(String, &'static str)> {
    let is_wanted = |word: &str| match word.strip_suffix('*') {
        Some(start) => wanted.starts_with(start),
        None => word == wanted,
    };
    let (mut screen, mut found) = ("", Vec::new());
    for line in include_str!("labels.txt").lines() {
        match line.strip_prefix("  ").and_then(|label| label.split_once(": ")) {
            None => screen = line,
            Some((words, about)) if words.split(" | ").any(is_wanted) => {
                found.push((format!("{wanted:?} on the screen of {screen}"), about));
            }
            Some(_) => {}
        }
    }
    found
}
