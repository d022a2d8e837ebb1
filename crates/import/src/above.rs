//! What stands above a result: a shell's prompt, the command that made the result, a heading.

/// A longer line is no heading.
const MAX_HEADING_CHARS: usize = 100;
/// A longer line has no prompt in front.
const MAX_PROMPT_CHARS: usize = 200;

/// What may stand before a program and changes nothing for what it measures.
pub const STARTERS: [&str; 15] = [
    "sudo", "time", "env", "do", "exec", "stdbuf", "timeout", "then", "bash", "sh", "nohup", "perf", "-E",
    "-n", "-p",
];
/// The same, and the result is another one by it.
pub const MOVERS: [&str; 18] = [
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
    "ssh",
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
    let named = host.is_some() && !user.contains(char::is_whitespace) && before.len() <= MAX_PROMPT_CHARS;
    // A shell without a host says its name, or nothing.
    let plain = one_word && !percent && (before.is_empty() || before.contains("sh"));
    (named || plain).then(|| (host.filter(|_| named), behind.trim()))
}

/// The folder that a prompt names: `/src/old` of `root@box:/src/old# `.
pub fn folder(line: &str) -> &str {
    let prompt = line.find(['#', '$', '%']).map_or("", |end| line[..end].trim());
    let named = prompt.split_once('@').and_then(|(_, rest)| rest.split_once([':', ' ']));
    named.map_or("", |(_, folder)| folder.trim_end_matches(']').trim())
}

fn without_marks(line: &str) -> &str {
    let marks = ['#', '=', '-', '*', '_', '>', ' ', '\t'];
    line.trim_matches(marks).trim_end_matches(':').trim_end_matches(marks).trim()
}

/// What a line says if it can be a heading: without marks, colons and underlines.
pub fn heading(line: &str) -> Option<String> {
    let text = without_marks(line);
    let said = text.chars().any(char::is_alphanumeric) && text.chars().count() <= MAX_HEADING_CHARS;
    said.then(|| text.chars().filter(|one| !one.is_control()).collect())
}

/// The same of a line that is marked as a heading: `## After`, `After:`. perf heads its counters by
/// a line of its own.
pub fn marked(line: &str) -> Option<String> {
    let is_marked = line.starts_with("##") || line.ends_with(':');
    heading(line).filter(|_| is_marked && !line.starts_with("Performance counter stats"))
}

/// Marks of pages, trackers and forums around words.
const TAGS: [&str; 22] = [
    "details", "summary", "b", "i", "u", "strong", "em", "h1", "h2", "h3", "h4", "p", "pre", "code", "br",
    "hr", "div", "span", "quote", "noformat", "size", "color",
];

/// A line of any length without the marks of Markdown, pages, Jira, forums and rst; `None` where
/// nothing else is there, as of the start of a block of code, and of a prompt without a command.
pub fn said(line: &str) -> Option<String> {
    let line = line.trim();
    let is_fence = line.starts_with("```") || line.starts_with("~~~");
    let is_block = line.starts_with(".. ") && line.contains("::");
    if is_fence || is_block || prompt(line).is_some_and(|(_, command)| command.is_empty()) {
        return None;
    }
    // A block of Jira's may have a title.
    let title = line.strip_prefix("{code:").and_then(|rest| rest.split_once("title="));
    let line = title.map_or(line, |(_, title)| title.split(['|', '}']).next().unwrap_or_default());
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['<', '[', '{']) {
        text.push_str(&rest[..at]);
        let inner = &rest[at + 1..];
        let end = inner.find(['>', ']', '}']);
        let is_tag = |end: &usize| {
            let tag = inner[..*end].trim_start_matches('/');
            let tag = tag.split([' ', '=', ':', '/']).next().unwrap_or_default();
            TAGS.contains(&tag.to_ascii_lowercase().as_str())
        };
        match end.filter(is_tag) {
            Some(end) => rest = &inner[end + 1..],
            None => {
                text.push_str(&rest[at..=at]);
                rest = inner;
            }
        }
    }
    text.push_str(rest);
    let level = |word: &str| word.len() == 3 && word.starts_with('h') && word.ends_with('.');
    let text = text.trim();
    let text = text.split_once(' ').filter(|(first, _)| level(first)).map_or(text, |(_, rest)| rest);
    let text = without_marks(text);
    text.chars().any(char::is_alphanumeric).then(|| text.chars().filter(|one| !one.is_control()).collect())
}

/// How deep a heading stands, as its marks say: 1 for `# Before`, 2 for `## Before` and
/// `h2. Before`; without any it is the deepest.
pub fn level(line: &str) -> usize {
    const MAX_LEVEL: usize = 7;
    let line = line.trim();
    let hashes = line.len() - line.trim_start_matches('#').len();
    let jira = line
        .strip_prefix('h')
        .and_then(|rest| rest.split_once(". "))
        .and_then(|(level, _)| level.parse().ok());
    match hashes {
        0 => jira.unwrap_or(MAX_LEVEL).clamp(1, MAX_LEVEL),
        _ => hashes.min(MAX_LEVEL),
    }
}

/// Whether a line is marked as a heading, in whatever way.
pub fn is_marked(line: &str) -> bool {
    let line = line.trim();
    let both = |mark: &str| line.len() > 2 * mark.len() && line.starts_with(mark) && line.ends_with(mark);
    let is_tagged = ["<h", "<summary", "<b>", "<strong", "[b]"].iter().any(|tag| line.starts_with(tag));
    line.starts_with("##")
        || line.ends_with(':')
        || both("=")
        || both("**")
        || both("*")
        || is_tagged
        || line.starts_with('h') && level(line) < 7
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
        assert_eq!((folder("[me@box dir]$ x"), folder("root@box:/src/old# x")), ("dir", "/src/old"));
        assert_eq!((folder("me@mac ~ % x"), folder("$ x"), folder("x")), ("~", "", ""));
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

    #[test]
    fn marks_of_all_kinds_are_taken_off() {
        for line in [
            "### Before",
            "<summary>Before</summary>",
            "<details><summary><b>Before</b></summary>",
            "h3. Before",
            "[b]Before[/b]",
            "*Before*",
            "{code:bash|title=Before|theme=x}",
            "  == Before ==",
        ] {
            assert_eq!(said(line).as_deref(), Some("Before"), "{line}");
        }
        for line in [
            "```text",
            "</details>",
            "{noformat}",
            "[code]",
            ".. code-block:: none",
            "======",
            "root@a:~# ",
            "<br/>",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
        for line in ["[none] mq-deadline", "No. 5 of the rack", "hosts. All of them"] {
            assert_eq!(said(line).as_deref(), Some(line));
        }
        let levels = ["# a", "### a", "h2. a", "a:", "hello. a"].map(level);
        assert_eq!(levels, [1, 3, 2, 7, 7]);
        for (line, marked) in [
            ("## a", true),
            ("a:", true),
            ("**a**", true),
            ("<h2>a</h2>", true),
            ("a", false),
            ("a**", false),
        ] {
            assert_eq!(is_marked(line), marked, "{line}");
        }
    }
}
