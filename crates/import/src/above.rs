//! What stands above a result: a shell's prompt, the command that made the result, a heading.

/// A longer line is no heading.
const LONGEST: usize = 100;
/// A longer line has no prompt in front.
const LONGEST_PROMPT: usize = 200;

/// What may stand before a program and changes nothing for what it measures.
pub const STARTERS: [&str; 12] =
    ["sudo", "time", "env", "do", "exec", "stdbuf", "timeout", "then", "bash", "sh", "nohup", "perf"];
/// The same, and the result is another one by it.
pub const MOVERS: [&str; 17] = [
    "taskset",
    "numactl",
    "chrt",
    "nice",
    "ionice",
    "cgexec",
    "systemd-run",
    "schedtool",
    "strace",
    "ltrace",
    "valgrind",
    "docker",
    "podman",
    "kubectl",
    "ip",
    "unshare",
    "setarch",
];

/// The last part of a path: the program that a word calls.
pub fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// The host that a shell's prompt names, and the command behind it: `root@box:~# sync`,
/// `[me@box ~]$ ls`, `bash-5.2$ ls`, `# ls`, and `+ ls` of `set -x`.
pub fn prompt(line: &str) -> Option<(Option<String>, &str)> {
    if let Some(command) = line.strip_prefix("+ ") {
        return Some((None, command.trim()));
    }
    // Two of them are a heading of level two and no root.
    let end = line.find(['#', '$', '%']).filter(|_| !line.starts_with("##"))?;
    let (before, behind) = (line[..end].trim(), &line[end + 1..]);
    let percent = line[end..].starts_with('%');
    if !behind.is_empty() && !behind.starts_with(' ') {
        return None;
    }
    let one_word = !before.contains(char::is_whitespace);
    let host = before.split_once('@').map(|(_, rest)| {
        let end = rest.find(|c: char| c.is_whitespace() || ":]~/".contains(c)).unwrap_or(rest.len());
        rest[..end].chars().take(64).collect::<String>()
    });
    let host = host.filter(|host| !host.is_empty());
    let user = before.trim_start_matches('[').split('@').next().unwrap_or("");
    let named = host.is_some() && !user.contains(char::is_whitespace) && before.len() <= LONGEST_PROMPT;
    // A shell without a host says its name, or nothing.
    let plain = one_word && !percent && (before.is_empty() || before.contains("sh"));
    (named || plain).then(|| (host.filter(|_| named), behind.trim()))
}

/// The command in a line that runs this program, from the program on: `fio --name=a` of
/// `root@box:~# sudo fio --name=a`.
pub fn command(line: &str, program: &str) -> Option<String> {
    let shown = prompt(line).map(|(_, command)| command);
    let text = shown.unwrap_or(line.trim());
    let mut at = 0;
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let from = at;
        at += word.len();
        (from, word.trim_end())
    });
    let words: Vec<(usize, &str)> = words.take(12).filter(|(_, word)| !word.is_empty()).collect();
    let place = words.iter().position(|(_, word)| name(word) == program)?;
    let starts = |word: &str| STARTERS.contains(&word) || MOVERS.contains(&word);
    let run = place == 0 || words[..place].iter().all(|(_, word)| starts(name(word)));
    // It is a heading, unless an option or a file follows.
    let next = words.get(place + 1).map_or("", |(_, word)| *word);
    let asks = next.starts_with('-') || next.contains(['.', '/']);
    ((shown.is_some() || run) && asks).then(|| text[words[place].0..].to_string())
}

/// What a line says if it can be a heading: without marks, colons and underlines.
pub fn heading(line: &str) -> Option<String> {
    let marks = ['#', '=', '-', '*', '_', '>', ' ', '\t'];
    let text = line.trim_matches(marks).trim_end_matches(':').trim_end_matches(marks).trim();
    let said = text.chars().any(char::is_alphanumeric) && text.chars().count() <= LONGEST;
    said.then(|| text.chars().filter(|one| !one.is_control()).collect())
}

/// The same of a line that is marked as a heading: `## After`, `After:`. perf heads its counters by
/// a line of its own.
pub fn marked(line: &str) -> Option<String> {
    let is_marked = line.starts_with("##") || line.ends_with(':');
    heading(line).filter(|_| is_marked && !line.starts_with("Performance counter stats"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_told_from_sentences() {
        let hosts = [
            ("root@chip:~# hackbench", Some(Some("chip"))),
            ("  root@chip:~# hackbench", Some(Some("chip"))),
            ("[me@box dir]$ hackbench -p", Some(Some("box"))),
            ("me@mac ~ % hackbench", Some(Some("mac"))),
            ("# hackbench process 10 1000", Some(None)),
            ("bash-5.2$ hackbench", Some(None)),
            ("sh-5.2#", Some(None)),
            ("+ hackbench", Some(None)),
            ("100% sure", None),
            ("it costs 5 $ a day", None),
            ("## hackbench", None),
            ("#hackbench", None),
            ("me and x@y.z # hackbench", None),
        ];
        for (line, host) in hosts {
            let found = prompt(line).map(|(host, _)| host);
            assert_eq!(found, host.map(|host| host.map(str::to_string)), "{line}");
        }
    }

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
        assert_eq!(marked("With this change:").as_deref(), Some("With this change"));
        assert_eq!(marked("## After").as_deref(), Some("After"));
        for none in ["After", ":", "##", "Performance counter stats for 'x':"] {
            assert_eq!(marked(none), None, "{none}");
        }
    }
}
