//! What a text went through on its way here: packers, encodings, terminals, pages, mails and logs.
//!
//! Every importer sees a text as its tool printed it. Whatever a line was wrapped in is taken off
//! where most lines have it; what distinguishes sources, as pods of a log, makes a text of each.

use anyhow::bail;
use model::packed;
use std::io::Read;

use super::MAX_BYTES;
use crate::kit::Expression;

mod hosts;
mod mails;
mod pages;
mod prefixes;
mod sides;

/// What one source printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    /// As a log calls it: a pod, a service, a host with its unit; empty where nothing does.
    pub source: String,
    pub text: String,
}

impl Plain {
    /// The same as a part of another source.
    fn of(self, source: &str) -> Plain {
        let parts = [source, self.source.as_str()].into_iter().filter(|part| !part.is_empty());
        Plain { source: parts.collect::<Vec<_>>().join(" "), ..self }
    }
}

/// Logs of logs, and pages of logs, that are followed.
const MAX_NESTING: usize = 4;
/// More sources in one log are a mistake or an attack.
const MAX_SOURCES: usize = 200;

/// The texts of all sources in a file. An error says why it is no text.
pub fn unwrapped(bytes: &[u8]) -> anyhow::Result<Vec<Plain>> {
    let text = mails::unencoded(&without_colours(&decoded(&unpacked(bytes)?)?)).into_owned();
    let mut all = vec![Plain { source: String::new(), text }];
    // A page may show a log, and a log a page.
    for _ in 0..2 * MAX_NESTING {
        if !all.iter().any(|one| pages::is_page(&one.text)) {
            break;
        }
        all = all.into_iter().flat_map(opened).take(MAX_SOURCES).collect();
    }
    all = all.into_iter().map(|one| Plain { text: unquoted(unindented(one.text)), ..one }).collect();
    for _ in 0..MAX_NESTING {
        let inner: Vec<Plain> =
            all.iter().cloned().flat_map(prefixes::unprefixed).take(MAX_SOURCES).collect();
        if inner == all {
            break;
        }
        all = inner;
    }
    let plain = |one: Plain| Plain { text: unindented(one.text), ..one };
    Ok(all.into_iter().map(plain).flat_map(sides::apart).collect())
}

/// What a page shows, or what a mail or a log has around it.
fn opened(plain: Plain) -> Vec<Plain> {
    if !pages::is_page(&plain.text) {
        return vec![plain];
    }
    if pages::is_wrapped(&plain.text) {
        // One after the other: what a page shows has its own.
        let text = unquoted(unindented(plain.text.clone()));
        let shown = if text == plain.text {
            prefixes::unprefixed(plain.clone())
        } else {
            vec![Plain { text, ..plain.clone() }]
        };
        if shown != [plain.clone()] {
            return shown;
        }
    }
    vec![Plain { text: pages::of_page(&plain.text), ..plain }]
}

fn unpacked(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut plain = Vec::new();
    packed::unpacked(bytes, MAX_BYTES as u64)?.read_to_end(&mut plain)?;
    Ok(plain)
}

/// UTF-8 or UTF-16, with or without a mark before the first byte.
fn decoded(bytes: &[u8]) -> anyhow::Result<String> {
    let utf16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        String::from_utf16_lossy(&units)
    };
    let is_text =
        |text: &str| !text.chars().any(|one| one.is_control() && !one.is_whitespace() && one != '\x1b');
    // A text of one language of Europe has a zero in nearly every unit.
    let zeros = |first: usize| {
        let of = bytes.iter().skip(first).step_by(2);
        2 * of.filter(|byte| **byte == 0).count() > bytes.len() / 2
    };
    Ok(match bytes {
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ if !bytes.contains(&0) => String::from_utf8_lossy(bytes).into_owned(),
        _ if zeros(1) && is_text(&utf16(bytes, u16::from_le_bytes)) => utf16(bytes, u16::from_le_bytes),
        _ if zeros(0) && is_text(&utf16(bytes, u16::from_be_bytes)) => utf16(bytes, u16::from_be_bytes),
        _ => bail!("it is not text, and not a format that Assay knows; {}", super::ALL),
    })
}

/// Without colours and what else steers a terminal, also where a copy lost the escape before them
/// or wrote it as JSON and syslog do, and without marks that editors put before a text.
fn without_colours(text: &str) -> String {
    static STEERING: Expression = Expression::new(
        r"(?:\x1b|\\u001[bB]|#033)\[[0-9;?]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]|\x{feff}",
    );
    static BARE: Expression = Expression::new(r"\[[0-9;]+m");
    let text = STEERING.replace_all(text, "");
    if text.contains("[0m") { BARE.replace_all(&text, "").into_owned() } else { text.into_owned() }
}

/// Lines that must be wrapped alike before anything is taken off.
const MIN_LINES: usize = 3;

/// Of the lines that are not empty this share must have a prefix.
const MOSTLY: f64 = 0.75;

/// More blanks before a mark make it a part of the text.
const MAX_BLANKS: usize = 4;

/// A mail's or a page's quoted lines, without their marks, and code without its fences.
fn unquoted(text: String) -> String {
    let is_quoted = |line: &&str| line.trim_start().starts_with('>');
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    // Of a comparison of two texts it is one side, and the other one has `<`.
    let is_side = text.lines().any(|line| line.starts_with("< "));
    let all = text.lines().filter(|line| !line.trim().is_empty()).all(|line| is_quoted(&line));
    let least = if all { 1 } else { MIN_LINES };
    let quoted = !is_side && text.lines().filter(is_quoted).count() >= least;
    if !quoted && !text.lines().any(is_fence) {
        return text;
    }
    let inner = |line: &str, most: usize| -> String {
        let mut rest = line;
        for _ in 0..most {
            let blanks = rest.len() - rest.trim_start_matches(' ').len();
            let inner = rest.trim_start_matches(' ').strip_prefix('>');
            let Some(inner) = inner.filter(|_| quoted && blanks < MAX_BLANKS) else { break };
            rest = inner.strip_prefix(' ').unwrap_or(inner);
        }
        rest.to_string()
    };
    // What is quoted may be a comparison, whose marks are its own.
    let is_comparison = |depth: &usize| text.lines().any(|line| inner(line, *depth).starts_with("< "));
    let depth = (1..=MAX_NESTING).find(is_comparison).unwrap_or(usize::MAX);
    let plain = |line: &str| inner(line, depth);
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !is_fence(line)).collect();
    lines.join("\n") + "\n"
}

/// A text that stands further to the right, as code in Markdown and in answers does; empty lines
/// part it from what surrounds it.
fn unindented(text: String) -> String {
    const CODE: usize = 4;
    let indent = |line: &str| {
        if line.starts_with('\t') { CODE } else { line.len() - line.trim_start_matches(' ').len() }
    };
    let filled = || text.lines().filter(|line| !line.trim().is_empty());
    let all = filled().map(indent).min().unwrap_or(0);
    let least = if all > 0 { all } else { CODE };
    let inside = |line: &str| indent(line) >= least;
    let own = filled().filter(|line| inside(line));
    let enough = all > 0 || own.clone().count() >= MIN_LINES;
    let Some(least) = own.map(indent).min().filter(|_| enough) else {
        return text;
    };
    let lines: Vec<&str> = text.lines().collect();
    let parted =
        |pair: &[&str]| pair.iter().any(|line| line.trim().is_empty()) || inside(pair[0]) == inside(pair[1]);
    if !lines.windows(2).all(parted) {
        return text;
    }
    let plain = |line: &&str| match line.strip_prefix('\t') {
        Some(rest) => rest.to_string(),
        // A blank line may be shorter.
        None if inside(line) => line.get(least..).unwrap_or_default().to_string(),
        None => line.to_string(),
    };
    lines.iter().map(plain).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn blank_lines_of_code_may_have_fewer_blanks_than_the_others() {
        for blanks in 0..8 {
            let text = format!("words\n\n     a\n{}\n     b\n     c\n     d\n", " ".repeat(blanks));
            let plain = unindented(text);
            assert!(plain.starts_with("words\n\na\n") && plain.ends_with("\nb\nc\nd\n"), "{plain:?}");
        }
    }

    fn escaped(text: &str) -> String {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    }

    fn each(text: &str, wrapped: impl Fn(&str) -> String) -> Vec<u8> {
        text.lines().map(|line| wrapped(line) + "\n").collect::<String>().into_bytes()
    }

    fn numbered(text: &str, wrapped: impl Fn(usize, &str) -> String) -> Vec<u8> {
        let lines = text.lines().enumerate();
        lines.map(|(at, line)| wrapped(at + 1, line) + "\n").collect::<String>().into_bytes()
    }

    fn utf16(text: &str, mark: &[u8], unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        mark.iter().copied().chain(text.encode_utf16().flat_map(unit)).collect()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let options = lzma_rust2::XzOptions::with_preset(0);
        let mut packed = lzma_rust2::XzWriter::new(Vec::new(), options).expect("memory");
        std::io::Write::write_all(&mut packed, bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        std::io::Write::write_all(&mut packed, bytes).expect("memory");
        packed.finish().expect("memory")
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    /// A text in every wrapping, by its name.
    fn wrapped(text: &str) -> Vec<(&'static str, Vec<u8>)> {
        let compose = |line: &str| format!("bench-1  | {line}");
        let page = |inner: String| format!("<html><head><title>x</title></head><body>{inner}</body></html>");
        let json =
            |line: &str| serde_json::json!({"log": format!("{line}\n"), "stream": "stdout"}).to_string();
        vec![
            ("a mark before UTF-8", [b"\xef\xbb\xbf", text.as_bytes()].concat()),
            ("UTF-16, small end first", utf16(text, b"\xff\xfe", u16::to_le_bytes)),
            ("UTF-16, great end first", utf16(text, b"\xfe\xff", u16::to_be_bytes)),
            ("UTF-16 without a mark", utf16(text, b"", u16::to_le_bytes)),
            ("lines of another system", text.replace('\n', "\r\n").into_bytes()),
            ("colours", each(text, |line| format!("\x1b[2;35m{line}\x1b[0m\x1b[K"))),
            ("colours that lost their escape", each(text, |line| format!("[32m{line}[0m"))),
            (
                "a page, preformatted",
                page(format!("<p>Results:</p><pre class=x>\n{}</pre>", escaped(text))).into_bytes(),
            ),
            ("a page with breaks", page(escaped(text).replace('\n', "<br/>\n")).into_bytes()),
            ("breaks in one line", escaped(text).replace('\n', "<br>").into_bytes()),
            ("a mail", each(text, |line| format!("> {line}"))),
            ("an answer to a mail", each(text, |line| format!(">> {line}"))),
            ("code, indented", each(text, |line| format!("    {line}"))),
            ("all of it indented", each(text, |line| format!(" {line}"))),
            ("a fence", format!("```text\n{text}\n```\n").into_bytes()),
            ("kubectl", each(text, |line| format!("[pod/bench-0/main] {line}"))),
            ("kubectl with times", each(text, |line| format!("2026-11-02T03:04:05.678901234Z {line}"))),
            ("docker compose", each(text, compose)),
            (
                "docker compose with times",
                each(text, |line| compose(&format!("2026-11-02T03:04:05.6Z {line}"))),
            ),
            ("containerd", each(text, |line| format!("2026-11-02T03:04:05.678901234Z stdout F {line}"))),
            ("a file of docker", each(text, json)),
            ("journald", each(text, |line| format!("Nov  2 03:04:05 box bench[71]: {line}"))),
            ("journald, iso", each(text, |line| format!("2026-11-02T03:04:05+0100 box bench[71]: {line}"))),
            ("ts", each(text, |line| format!("Nov  2 03:04:05 {line}"))),
            ("times of iperf3", each(text, |line| format!("Mon Nov  2 03:04:05 2026 {line}"))),
            ("dmesg", each(text, |line| format!("[   12.345678] {line}"))),
            ("dmesg with times", each(text, |line| format!("[Mon Nov  2 03:04:05 2026] {line}"))),
            ("pdsh", each(text, |line| format!("node1: {line}"))),
            ("grep -H", each(text, |line| format!("res/a.log:{line}"))),
            ("mpirun", each(text, |line| format!("[1,0]<stdout>:{line}"))),
            ("a comment", each(text, |line| format!("# {line}"))),
            ("a comment of two letters", each(text, |line| format!("// {line}"))),
            ("a box", each(text, |line| format!("\u{2502} {line:<90} \u{2502}"))),
            ("GitLab", each(text, |line| format!("2026-11-02T03:04:05.678901Z 01O {line}"))),
            ("TeamCity", each(text, |line| format!("[03:04:05]W:\t [Step 1/1] {line}"))),
            ("journald, monotonic", each(text, |line| format!("[   12.345678] box bench[71]: {line}"))),
            ("journald, unix", each(text, |line| format!("1795958840.123456 box bench[71]: {line}"))),
            (
                "journald, full",
                each(text, |line| format!("Mon 2026-11-02 03:04:05 UTC box bench[71]: {line}")),
            ),
            ("stern", each(text, |line| format!("bench-7d9f-x2 main {line}"))),
            ("quoted-printable", mails::encoded(text).into_bytes()),
            ("Jenkins", each(text, |line| format!("[2026-11-02T03:04:05.678Z] {line}"))),
            ("the hour", each(text, |line| format!("03:04:05 {line}"))),
            ("the hour in brackets", each(text, |line| format!("[03:04:05.678] {line}"))),
            ("syslog", each(text, |line| format!("Nov 29 10:00:00 box bench: {line}"))),
            (
                "syslog with what matters",
                each(text, |line| format!("<14>Nov  2 03:04:05 box bench[71]: {line}")),
            ),
            (
                "syslog by RFC 5424",
                each(text, |line| format!("<14>1 2026-11-02T03:04:05.678Z box bench 71 - - {line}")),
            ),
            ("cat -n", numbered(text, |number, line| format!("{number:>6}\t{line}"))),
            ("numbers and blanks", numbered(text, |number, line| format!("{number:>4}  {line}"))),
            ("grep -n", numbered(text, |number, line| format!("{number}:{line}"))),
            (
                "a page in a mail",
                each(&page(format!("<pre>\n{}</pre>\n", escaped(text))), |line| format!("> {line}")),
            ),
            (
                "a page in a log",
                each(&page(format!("\n<pre>\n{}</pre>\n", escaped(text))), |line| {
                    format!("2026-11-02T03:04:05+0100 box bench[71]: {line}")
                }),
            ),
            (
                "a page in a log of pods",
                each(&page(format!("<table><tr><td>\n{}</td></tr></table>\n", escaped(text))), |line| {
                    format!("[pod/bench-0/main] {line}")
                }),
            ),
            ("gzip", gzip(text.as_bytes())),
            ("gzip of a log", gzip(&each(text, compose))),
            ("zstd", zstd(text.as_bytes())),
            ("xz", xz(text.as_bytes())),
            ("bzip2", bzip2(text.as_bytes())),
        ]
    }

    /// Reads each case in every way of wrapping whose number these take; how many, and which read
    /// otherwise than unwrapped.
    fn wrong(takes: impl Fn(usize, usize) -> bool) -> (usize, Vec<String>) {
        let (mut read_of, mut wrong) = (0, Vec::new());
        for (number, case) in crate::tests::foreign::cases().into_iter().enumerate() {
            let text = String::from_utf8(case.bytes).expect("a text");
            let figures = |bytes: &[u8]| {
                let all = read(bytes).map_err(|error| error.to_string());
                all.map(|all| all.into_iter().map(|one| (one.figures, one.index)).collect::<Vec<_>>())
            };
            let plain = figures(text.as_bytes());
            // In so few lines, or in lines of numbers, foreign lines cannot be recognised.
            let is_short = text.lines().filter(|line| !line.trim().is_empty()).count() < MIN_LINES
                || !text.contains(char::is_alphabetic);
            let hidden = [
                "pdsh",
                "grep -H",
                "mpirun",
                "a comment",
                "a comment of two letters",
                "a box",
                "stern",
                "cat -n",
                "numbers and blanks",
                "grep -n",
            ];
            for (way, (how, bytes)) in wrapped(&text).into_iter().enumerate() {
                if is_short && hidden.contains(&how) || !takes(number, way) {
                    continue;
                }
                if figures(&bytes) != plain {
                    wrong.push(format!("{}: {how}", case.name));
                }
                read_of += 1;
            }
        }
        (read_of, wrong)
    }

    /// Each case in an eighth of the ways, and each way with an eighth of the cases.
    #[test]
    fn whatever_a_result_was_wrapped_in_it_reads_the_same() {
        let (read_of, wrong) = wrong(|number, way| (number + way).is_multiple_of(8));
        assert!(read_of > 500 && wrong.is_empty(), "of {read_of} read otherwise:\n{}", wrong.join("\n"));
    }

    #[test]
    #[ignore = "every case in every way: make soak"]
    fn soak_of_wrappings() {
        let (read_of, wrong) = wrong(|_, _| true);
        assert!(read_of > 5000 && wrong.is_empty(), "of {read_of} read otherwise:\n{}", wrong.join("\n"));
    }

    #[test]
    fn colours_are_no_text_even_where_their_escape_was_lost() {
        assert_eq!(
            without_colours("sockperf: \x1b[2;35mTotal 5 observations\x1b[0m; each\u{feff}"),
            "sockperf: Total 5 observations; each"
        );
        assert_eq!(without_colours(r#"{"log":"\u001b[1;37m46\u001b[0m ns"}"#), r#"{"log":"46 ns"}"#);
        assert_eq!(without_colours("box bench: #033[1m46#033[0m ns"), "box bench: 46 ns");
        assert_eq!(without_colours("[2;35mx[0m [ 0] IP"), "x [ 0] IP");
    }

    #[test]
    fn each_source_of_a_log_is_a_text_of_its_own() {
        let log = "a-1  | one\nb-1  | other\na-1  | two\n\nb-1  |\nb-1  | last\n";
        let found = unwrapped(log.as_bytes()).expect("a text");
        let found: Vec<(&str, &str)> =
            found.iter().map(|one| (one.source.as_str(), one.text.as_str())).collect();
        assert_eq!(found, [("a-1", "one\ntwo\n\n"), ("b-1", "other\n\nlast\n")]);
        let log = "2026-11-02T03:04:05Z stdout P ab\n2026-11-02T03:04:05Z stdout F cd\n2026-11-02T03:04:05Z stdout F e\n";
        assert_eq!(unwrapped(log.as_bytes()).expect("a text")[0].text, "abcd\ne\n");
    }

    #[test]
    fn what_only_looks_wrapped_stays_as_it_is() {
        for text in [
            "[  5]   0.00-1.00   sec  1 GBytes\n[  5]   1.00-2.00   sec  1 GBytes\n[SUM]   0.00-2.00   sec\n",
            "---> <MAX> observation =  414.146\n---> <MIN> observation =  1\n---> percentile 50 = 2\n",
            "one | two\nthree\nfour\nfive\n",
            "> a prompt\nand what it printed\n",
            "< one\n< two\n< three\n---\n> other\n> again\n> last\n",
            "a < b and c > d & e; 5 &lt; 6\n",
            "1  0.5\n2  0.7\n3  0.9\n",
            "1  copy: 0.5\n2  copies: 0.7\n4  copies: 0.9\n",
            "1 copy: 0.5\n2 copies: 0.7\n3 copies: 0.9\n",
            "# one 1\ntwo 2\n# three 3\n# four 4\n",
            "* one\n* two\n",
            "reads: 5 of 6\nwrites: 7 of 8\nsyncs: 9 of 9\n",
            "10:11 one\n10:12 two\n10:13 three\n",
            "Mon Nov  2 03:04:05 2026\nTue Nov  3 03:04:05 2026\nWed Nov  4 03:04:05 2026\n",
        ] {
            assert_eq!(
                unwrapped(text.as_bytes()).expect("a text"),
                [Plain { source: String::new(), text: text.into() }]
            );
        }
    }

    #[test]
    fn bombs_damage_and_what_is_no_text_are_errors() {
        let zeros = vec![b'x'; MAX_BYTES + 1];
        for packed in [gzip(&zeros), bzip2(&zeros), xz(&zeros), zstd(&zeros)] {
            let error = unwrapped(&packed).expect_err("too much");
            assert!(format!("{error:#}").contains("unpacked it is larger than 16 MiB"), "{error:#}");
        }
        let damaged = |mut packed: Vec<u8>| {
            packed.truncate(packed.len() / 2);
            packed
        };
        let text = "a text of some length\n".repeat(100);
        let text = text.as_bytes();
        for packed in [gzip(text), bzip2(text), xz(text), zstd(text)] {
            let error = unwrapped(&damaged(packed)).expect_err("damage");
            assert!(format!("{error:#}").starts_with("it ends early"), "{error:#}");
        }
    }
}
