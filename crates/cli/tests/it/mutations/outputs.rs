//! What the program said of a changed file, and whether anything hostile lives in it.

use quick_xml::Reader;
use quick_xml::events::Event;

use super::change::HOSTILE;

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    /// lmbench's own, which has tabulators.
    Lmbench,
    Json,
    Html,
    Csv,
    Markdown,
    Svg,
}

/// What of an output is more than it may be.
pub fn alive(form: Form, output: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(output) else { return Some("it is no UTF-8".to_string()) };
    match form {
        Form::Text => control(text),
        Form::Lmbench => control(&text.replace('\t', " ")),
        Form::Json => {
            serde_json::from_str::<serde_json::Value>(text).err().map(|error| format!("no JSON: {error}"))
        }
        Form::Html => markup(text)
            .or_else(|| text.contains("href=\"javascript:").then(|| "a javascript: link".to_string())),
        Form::Csv => formula(text),
        Form::Markdown => control(text).or_else(|| markdown(text)),
        Form::Svg => control(text).or_else(|| drawing(text)),
    }
}

/// Bytes that a terminal acts upon, and signs that turn the direction of writing.
pub fn control(text: &str) -> Option<String> {
    let acts = |c: &char| {
        c.is_control() && *c != '\n'
            || matches!(*c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let found = text.chars().find(acts)?;
    let at = text.find(found)?;
    let begin = text[..at].char_indices().rev().nth(30).map_or(0, |(begin, _)| begin);
    let around: String = text[begin..].chars().take(60).collect();
    Some(format!("{found:?} in {around:?}"))
}

/// Hostile markup as it was planted, not as text.
fn markup(text: &str) -> Option<String> {
    let tags = HOSTILE.iter().flat_map(|hostile| hostile.match_indices('<').map(|(at, _)| &hostile[at..]));
    let whole = tags.filter_map(|tag| tag.find('>').map(|end| &tag[..=end]));
    // What our own pages may say, too.
    let strange = whole.filter(|tag| tag.contains("__hit") || tag.contains("onerror"));
    let found = strange.chain(["<script>window.__hit"]).find(|tag| text.contains(tag))?;
    Some(format!("{found:?} stands in it"))
}

fn formula(text: &str) -> Option<String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => return Some(format!("no CSV: {error}")),
        };
        let acts = |field: &&str| {
            field.starts_with(['=', '+', '@', '\t', '\r'])
                || field.starts_with('-') && field.parse::<f64>().is_err()
        };
        if let Some(field) = record.iter().find(acts) {
            return Some(format!("a formula: {:?}", field.chars().take(60).collect::<String>()));
        }
    }
    None
}

/// Raw HTML, and links that run. Code inside fences is text for every reader; inside backticks it
/// is not for all.
fn markdown(text: &str) -> Option<String> {
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let mark = line.trim_start();
        if mark.starts_with("```") {
            let ticks = &mark[..mark.len() - mark.trim_start_matches('`').len()];
            fence = match fence {
                None => Some(ticks),
                Some(open) if ticks.len() >= open.len() => None,
                open => open,
            };
            continue;
        }
        if fence.is_some() {
            continue;
        }
        if let Some(what) = markup(line) {
            return Some(what);
        }
        if line.contains("](javascript:") && !line.contains("\\](javascript:") && !line.contains("\\[link") {
            return Some(format!("a link that runs: {:?}", line.chars().take(80).collect::<String>()));
        }
    }
    None
}

fn drawing(text: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event() {
            Err(error) => return Some(format!("no XML: {error}")),
            Ok(Event::Eof) => return None,
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                let name = tag.name().as_ref().to_string();
                let acts = tag.attributes().any(|attribute| {
                    attribute.is_ok_and(|attribute| {
                        attribute.key.as_ref().starts_with("on") || attribute.value.contains("javascript:")
                    })
                });
                if acts || ["script", "foreignObject", "img", "a"].contains(&name.as_str()) {
                    return Some(format!("a live {name}"));
                }
            }
            Ok(_) => {}
        }
    }
}

#[test]
fn hostile_texts_that_live_are_seen() {
    for (form, dead, live) in [
        (Form::Text, "plain\n  text é \u{fffd}\n", "a\u{1b}[31mb"),
        (Form::Text, "plain", "a\tb"),
        (Form::Text, "plain", "a\u{202e}b"),
        (Form::Text, "plain", "a\u{9b}b"),
        (Form::Lmbench, "a\tb\n", "a\u{1b}[31mb"),
        (Form::Json, "{\"a\": \"<script>\"}", "{\"a\": 1"),
        (
            Form::Html,
            "<script>var ours</script>&lt;script>window.__hit=1",
            "<p><script>window.__hit=1</script>",
        ),
        (Form::Html, "<p>onerror=", "<img src=x onerror=window.__hit=2>"),
        (Form::Html, "javascript:", "<a href=\"javascript:window.__hit=3\">"),
        (Form::Csv, "name,-1.5,1e9\n'=1,\"'+1,x\"\n", "name,\"=1+1\"\n"),
        (Form::Csv, "a\n", "a,-2+3\n"),
        (
            Form::Markdown,
            "```\n<script>window.__hit=1</script>\n```\n&lt;script>",
            "`<script>window.__hit=7</script>`",
        ),
        (Form::Markdown, "\\[link](javascript:x)", "[link](javascript:x)"),
        (Form::Svg, "<svg><text>a &lt;b</text></svg>", "<svg><text onload=\"x\"/></svg>"),
        (Form::Svg, "<svg/>", "<svg><script/></svg>"),
        (Form::Svg, "<svg/>", "<svg><text></svg>"),
    ] {
        assert_eq!(alive(form, dead.as_bytes()), None, "{form:?} {dead:?}");
        assert!(alive(form, live.as_bytes()).is_some(), "{form:?} {live:?}");
    }
    assert!(alive(Form::Text, b"\xff").is_some());
}
