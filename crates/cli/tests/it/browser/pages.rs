//! Pages that were made of hostile files, opened: what was planted must not run.

use std::path::PathBuf;

use super::session;

/// The pages in which something that was planted is alive; nothing where there is no browser.
pub fn live(test: &str, pages: &[PathBuf]) -> Option<Vec<String>> {
    let mut session = session(test)?;
    let mut live = Vec::new();
    for page in pages {
        session.browser.events.clear();
        let tab = session.tab(1000, "light");
        session.browser.open(&tab, page);
        let look = "window.__hit !== undefined ? 'it ran: ' + window.__hit
            : document.querySelector('a[href^=\"javascript:\"], [onerror], [onload], [onmouseover]') ? 'an element acts'
            : getComputedStyle(document.body).display === 'none' ? 'its style is hostile' : ''";
        let said = session.text(&tab, look);
        let asked = session.browser.events.iter().find(|event| {
            let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
            let inside = ["data:", "blob:", "file:"].iter().any(|scheme| url.starts_with(scheme));
            event["method"] == "Page.javascriptDialogOpening"
                || event["method"] == "Network.requestWillBeSent" && !inside
        });
        if !said.is_empty() || asked.is_some() {
            live.push(format!(
                "{}: {said} {}",
                page.display(),
                asked.map_or(String::new(), ToString::to_string)
            ));
        }
        session.browser.close(&tab);
    }
    Some(live)
}

#[test]
fn a_page_that_lives_is_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = |name: &str, body: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("<!doctype html><body>{body}</body>")).expect("written");
        path
    };
    let pages = [
        page("dead.html", "&lt;script>window.__hit=1"),
        page("script.html", "<script>window.__hit=1</script>"),
        page("link.html", "<a href='javascript:window.__hit=1'>x</a>"),
        page("image.html", "<img src=x onerror=window.__hit=2>"),
    ];
    let Some(live) = live("a_page_that_lives_is_seen", &pages) else { return };
    assert_eq!(live.len(), 3, "{live:?}");
    assert!(live.iter().all(|page| !page.contains("dead.html")), "{live:?}");
}
