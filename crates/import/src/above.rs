//! The line above a result: a heading, or the command that made the result.

/// A longer line is no heading.
const LONGEST: usize = 100;

/// Words that run the command behind them.
const RUNNERS: [&str; 6] = ["sudo", "time", "exec", "nice", "nohup", "env"];

/// What a line says if it can be a heading: without marks, colons and underlines.
pub fn heading(line: &str) -> Option<String> {
    let marks = ['#', '=', '-', '*', '_', '>', ' ', '\t'];
    let text = line.trim_matches(marks).trim_end_matches(':').trim_end_matches(marks).trim();
    let said = text.chars().any(char::is_alphanumeric) && text.chars().count() <= LONGEST;
    said.then(|| text.chars().filter(|one| !one.is_control()).collect())
}

/// The command in a line that runs this program, without the prompt and what is before the
/// program: `root@box:~# sudo fio --name=a`.
pub fn command(line: &str, program: &str) -> Option<String> {
    let line = line.trim();
    if !line.contains(program) {
        return None;
    }
    let is_program = |word: &str| word.rsplit('/').next() == Some(program);
    let mut at = 0;
    let words = line.split_inclusive(char::is_whitespace).map(|word| {
        let from = at;
        at += word.len();
        (from, word.trim_end())
    });
    let words: Vec<(usize, &str)> = words.take(12).filter(|(_, word)| !word.is_empty()).collect();
    let place = words.iter().position(|(_, word)| is_program(word))?;
    let prompted = words[..place].iter().any(|(_, word)| word.ends_with(['#', '$', '>', '%', '+']));
    let run = place == 0 || words[..place].iter().all(|(_, word)| RUNNERS.contains(word));
    let (from, _) = words[place];
    // It is a heading, unless an option or a file follows.
    let next = words.get(place + 1).map_or("", |(_, word)| *word);
    let asks = next.starts_with('-') || next.contains(['.', '/']);
    ((prompted || run) && asks).then(|| line[from..].to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_sentences() {
        for line in [
            "fio --name=a",
            "# fio --name=a",
            "root@box:~# fio --name=a",
            "$ sudo /usr/bin/fio --name=a",
            "+ fio --name=a",
            "[root@box ~]# time fio --name=a",
        ] {
            let found = command(line, "fio").expect(line);
            assert!(found.ends_with("fio --name=a"), "{line}: {found}");
        }
        for line in
            ["fio results", "# fio", "## fio before", "With fio 3.1", "we ran fio --name=a", "fio-3.33", ""]
        {
            assert_eq!(command(line, "fio"), None, "{line}");
        }
    }

    #[test]
    fn a_heading_is_without_its_marks() {
        for line in ["## After tuning", "After tuning:", "=== After tuning ===", "**After tuning:**"] {
            assert_eq!(heading(line).as_deref(), Some("After tuning"), "{line}");
        }
        assert_eq!((heading("-----"), heading(""), heading(&"a".repeat(101))), (None, None, None));
    }
}
