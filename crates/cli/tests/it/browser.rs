//! The report's page in a real browser, headless and without a network.
//!
//! Where there is no Chromium and none can be installed, each test says that it is skipped and
//! passes.

mod axe;
mod cdp;
mod example;
mod hostile;
mod large;
mod larger;
mod memory;
mod narrow;
pub mod pages;
mod permit;
mod search;
mod sweep;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use cdp::{Browser, Tab};
use permit::{AT_ONCE, Permit};
use report::block::Report;
use report::html;
use serde_json::{Value, json};

struct Session {
    browser: Browser,
    // After the browser: fields are dropped in this order.
    _permit: Permit,
}

fn session(test: &str) -> Option<Session> {
    session_with(test, 1)
}

/// A session without another browser beside it.
fn session_alone(test: &str) -> Option<Session> {
    session_with(test, AT_ONCE)
}

fn session_with(test: &str, permits: usize) -> Option<Session> {
    let permit = Permit::wait(permits);
    let Some(program) = chromium() else {
        println!("browser::{test} is skipped: there is no chromium and none could be installed");
        return None;
    };
    Some(Session { browser: Browser::start(program), _permit: permit })
}

/// A Chromium on the search path; root on Debian gets one installed.
fn chromium() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        find().or_else(|| {
            let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
            let install = ["install", "-y", "--no-install-recommends", "chromium"];
            for arguments in [&install[..], &["update"], &install].iter().filter(|_| root) {
                let mut apt = Command::new("apt-get");
                apt.args(*arguments).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
                let done = apt.stdout(Stdio::null()).stderr(Stdio::null()).status();
                if done.is_ok_and(|status| status.success()) && find().is_some() {
                    break;
                }
            }
            find()
        })
    });
    found.as_deref()
}

fn find() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&paths)
        .flat_map(|path| names.map(|name| path.join(name)))
        .find(|path| path.is_file())
}

/// Where pages and pictures stay to be looked at.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("screenshots");
    std::fs::create_dir_all(&folder).expect("a folder for screenshots");
    folder
}

fn page(name: &str, report: &Report) -> PathBuf {
    let path = folder().join(name).with_extension("html");
    let mut file = File::create(&path).expect("a file for the page");
    html::write(report, &mut file).expect("the page is written");
    path
}

impl Session {
    fn tab(&mut self, width: u64, scheme: &str) -> Tab {
        let tab = self.browser.tab();
        self.browser.size(&tab, width, 900);
        self.scheme(&tab, scheme);
        tab
    }

    fn scheme(&mut self, tab: &Tab, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.browser.ask(tab, "Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    fn text(&mut self, tab: &Tab, script: &str) -> String {
        self.browser.eval(tab, script).as_str().expect("a text").to_owned()
    }

    fn count(&mut self, tab: &Tab, script: &str) -> u64 {
        self.browser.eval(tab, script).as_u64().expect("a count")
    }

    /// Opens all that folds and makes the window as high as the page, so that all of it is seen.
    fn open_all(&mut self, tab: &Tab, width: u64) {
        self.browser.eval(tab, "document.querySelectorAll('details').forEach(fold => { fold.open = true; })");
        let height = self.count(tab, "document.documentElement.scrollHeight");
        self.browser.size(tab, width, height.min(15_000));
        self.browser
            .eval(tab, "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    fn picture(&mut self, tab: &Tab, name: &str) -> (usize, usize, f64, f64) {
        let whole = self.count(tab, "document.documentElement.scrollHeight") < 15_000;
        let png = self.browser.screenshot(tab, whole);
        std::fs::write(folder().join(name).with_extension("png"), &png).expect("the picture is kept");
        testkit::png::look(&png)
    }

    /// No exception, no console message, no warning of the browser's, and no request but for the
    /// file itself.
    fn nothing_happened(&self, file: &Path) {
        let trouble = [
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Log.entryAdded",
            "Page.javascriptDialogOpening",
        ];
        for event in &self.browser.events {
            let method = event["method"].as_str().unwrap_or_default();
            assert!(!trouble.contains(&method), "{event}");
            if method == "Network.requestWillBeSent" {
                let url = event["params"]["request"]["url"].as_str().unwrap_or_default();
                // Pictures made inside the page have addresses of their own; nothing is fetched for
                // them.
                let inside = url.starts_with("data:") || url.starts_with("blob:");
                assert!(inside || url == format!("file://{}", file.display()), "the page asked for {url}");
            }
        }
    }
}

/// What each chart has drawn, in the order that is shown: dots, curves, bands, bars, cells or
/// pictures of them.
const MARKS: &str = "Object.fromEntries([...document.querySelectorAll('figure.chart')].map(figure => {
    const all = what => [...figure.querySelectorAll('.drawing:not([hidden]) ' + what)];
    const inside = all('.dots:not(.core)').map(path => path.getAttribute('d').split('h0').length - 1);
    return [figure.id, { dots: all('circle.pt').length + inside.reduce((sum, count) => sum + count, 0),
        lines: all('path.curve').length, bands: all('path.band').length, bars: all('path.bar').length,
        cells: all('.cells rect').length, maps: all('.cells image').length }]; }))";

/// Texts of charts that lie on each other or stick out of the page.
const CLASHES: &str = "[...document.querySelectorAll('figure.chart')].flatMap(figure => {
    const texts = [...figure.querySelectorAll('.drawing:not([hidden]) text')]
        .map(text => [text.textContent, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    const out = texts.filter(([, box]) => box.left < 0 || box.right > innerWidth).map(([text]) => text + ' sticks out');
    return out.concat(texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([, b]) => a.left < b.right - 1
        && b.left < a.right - 1 && a.top < b.bottom - 4 && b.top < a.bottom - 4).map(([other]) => figure.id + ': ' + one + ' / ' + other)));
    }).join('; ')";

#[test]
fn every_chart_is_drawn_in_light_and_dark() {
    let file = page("report", &example::report());
    let Some(mut session) = session("every_chart_is_drawn_in_light_and_dark") else { return };
    let tab = session.tab(1280, "light");
    let took = session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    let size = std::fs::metadata(&file).expect("the page").len();
    println!("example report: {:.1} MB, load event after {took:.2?}", size as f64 / 1e6);

    let marks = session.browser.eval(&tab, MARKS);
    assert_eq!(marks.as_object().expect("charts").len(), 6, "{marks}");
    let of = |chart: &str, what: &str| marks[chart][what].as_u64();
    // Two curves of 30 points with a band each.
    assert_eq!(["dots", "lines", "bands"].map(|what| of("ladder", what)), [60, 2, 2].map(Some), "{marks}");
    // 12 strips of 40 samples.
    assert_eq!(of("samples", "dots"), Some(12 * 40), "{marks}");
    assert_eq!(of("copy", "bars"), Some(4), "{marks}");
    assert_eq!(of("cpu-to-cpu", "maps"), Some(1), "{marks}");
    assert_eq!(of("time-lines", "lines"), Some(3), "{marks}");
    assert_eq!(session.text(&tab, CLASHES), "");

    let light = session.picture(&tab, "light");
    let colour = "getComputedStyle(document.querySelector('#ladder text')).fill";
    let before = session.text(&tab, colour);
    session.scheme(&tab, "dark");
    assert_ne!(session.text(&tab, colour), before, "charts follow the colour scheme");
    let dark = session.picture(&tab, "dark");
    assert_eq!((light.0, dark.0), (1280, 1280));
    assert!(light.1 > 2000 && light.3 > 10.0 && dark.3 > 10.0, "not blank: {light:?} {dark:?}");
    assert!(light.2 > 200.0 && dark.2 < 70.0, "light is light and dark is dark: {light:?} {dark:?}");
    // The button overrules the system.
    session.browser.eval(&tab, "document.getElementById('theme').click()");
    assert_eq!(session.text(&tab, colour), before);

    // The other order of the matrix, at the press of its button.
    let first = "document.querySelector('#cpu-to-cpu .drawing:not([hidden]) .down').textContent.slice(0, 3)";
    let by_topology = session.text(&tab, first);
    session.browser.eval(&tab, "document.querySelector('#cpu-to-cpu .switch button:last-child').click()");
    assert_ne!(session.text(&tab, first), by_topology);
    session.nothing_happened(&file);
}

#[test]
fn every_view_of_memory_is_drawn() {
    let file = page("memory", &memory::report(8));
    let Some(mut session) = session("every_view_of_memory_is_drawn") else { return };
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    let marks = session.browser.eval(&tab, MARKS);
    let of = |chart: &str, what: &str| marks[chart][what].as_u64();
    // Nine operations over 16 sizes, in two charts for each placement, each line with a band.
    for (chart, lines) in [("", 5), ("-1", 4), ("-2", 5), ("-3", 4)] {
        let chart = format!("chart-made-bandwidth{chart}");
        let drawn = ["dots", "lines", "bands"].map(|what| of(&chart, what));
        assert_eq!(drawn, [Some(lines * 16), Some(lines), Some(lines)], "{chart}: {marks}");
    }
    assert_eq!((of("chart-made-chains", "dots"), of("chart-made-chains", "lines")), (Some(6), Some(1)));
    assert_eq!(of("chart-made-pairs", "maps"), Some(1), "too many cells for an element each: {marks}");
    assert_eq!(of("chart-made-nodes", "cells"), Some(5), "one of six was not measured: {marks}");
    // Three mixes of twelve points.
    assert_eq!((of("chart-made-loaded", "dots"), of("chart-made-loaded", "lines")), (Some(3 * 12), Some(3)));
    let texts = |chart: &str, what: &str| {
        format!(
            "[...document.querySelectorAll('#{chart} .drawing:not([hidden]) {what}')].map(text => text.textContent).join('|')"
        )
    };
    assert_eq!(session.text(&tab, &texts("chart-made-loaded", ".callout")), "knee|knee|knee");
    // CPUs are dots without a line.
    assert_eq!((of("chart-made-cores", "dots"), of("chart-made-cores", "lines")), (Some(16), Some(0)));
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".down text")), "node 0|node 1");
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".right .w text")), "node 0|node 1|node 2");
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".over text")), "210|88.0|31.0|86.9|212");

    // The order of rows and columns changes at the press of a button, and so do their names.
    let names = [".down text", ".right .w text"].map(|what| texts("chart-made-pairs", what));
    let before = [0, 1].map(|at| session.text(&tab, &names[at]));
    session
        .browser
        .eval(&tab, "document.querySelector('#chart-made-pairs .switch button:last-child').click()");
    assert_ne!([0, 1].map(|at| session.text(&tab, &names[at])), before);

    let said = session.text(&tab, "document.querySelector('#made-source').innerText");
    for text in ["core-modified", "not tested: no package with usable CPUs on two NUMA nodes"] {
        assert!(said.contains(text), "{said}");
    }
    assert_eq!(session.text(&tab, CLASHES), "");
    session.picture(&tab, "memory-light");
    session.scheme(&tab, "dark");
    session.picture(&tab, "memory-dark");
    let narrow = session.tab(390, "light");
    session.browser.open(&narrow, &file);
    session.open_all(&narrow, 390);
    let width = session.count(&narrow, "document.documentElement.scrollWidth");
    assert!(width <= 390, "{width}");
    assert_eq!(session.text(&narrow, CLASHES), "", "at 390 pixels");
    session.picture(&narrow, "memory-narrow");
    session.nothing_happened(&file);
}

#[test]
fn a_matrix_of_many_cpus_stays_bearable() {
    let file = page("many-pairs", &memory::report(144));
    let Some(mut session) = session("a_matrix_of_many_cpus_stays_bearable") else { return };
    let size = std::fs::metadata(&file).expect("the page").len();
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    let said = session.text(&tab, "document.querySelector('#made-pairs').innerText");
    assert!(said.contains("576 rows are drawn as 192 groups of up to 3"), "{said}");
    assert!(said.contains("in the run's JSON"), "what the table leaves out is said: {said}");
    let nodes = session.count(&tab, "document.querySelectorAll('*').length");
    assert!(nodes < 60_000, "{nodes} elements");
    println!("576 CPUs: {:.1} MB, {nodes} elements", size as f64 / 1e6);
    session.nothing_happened(&file);
}

#[test]
fn hostile_text_stays_text() {
    let file = page("hostile", &hostile::report());
    let Some(mut session) = session("hostile_text_stays_text") else { return };
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    // Whatever waits for a mouse or for focus gets it.
    session.browser.eval(&tab, "for (const element of document.querySelectorAll('body *')) for (const kind of
        ['mouseover', 'pointermove', 'focus', 'error', 'load']) element.dispatchEvent(new Event(kind, { bubbles: true }))");
    assert_eq!(session.browser.eval(&tab, "String(window.__pwned)"), "undefined");
    let made = "document.querySelectorAll('body img, a[href^=javascript], svg[onload], [onmouseover], [onerror]').length";
    assert_eq!(session.count(&tab, made), 0, "no element came from a text");
    let marked = "document.querySelectorAll('.drawing a, .drawing b, .key a, .key b').length";
    assert_eq!(session.count(&tab, marked), 0);
    assert_eq!(session.count(&tab, "document.querySelectorAll('script').length"), 3);

    // Everything is there to be read, in the page and in the charts.
    let said = session.text(&tab, "document.body.innerText");
    for text in [
        "<script>window.__pwned=1</script>",
        "<img src=x onerror=\"window.__pwned=3\">",
        "\\x1b[31mred\\x1b[0m\\x07\\u{202e}txt.exe\\u{200b}",
    ] {
        assert!(said.matches(text).count() > 10, "{text}");
    }
    assert!(!said.contains(['\x1b', '\u{202e}', '\x07']));
    let drawn = session.text(
        &tab,
        "[...document.querySelectorAll('.drawing')].map(drawing => drawing.textContent).join('\\n')",
    );
    for text in
        ["<script>window.__pwned=1</script>", "<a href=\"javascript:", "<img src=x onerror=", "\\x1b[31mred"]
    {
        assert!(drawn.contains(text), "{text} in {drawn}");
    }
    let width = session.count(&tab, "document.documentElement.scrollWidth");
    assert!(width <= 1280, "{width}");
    session.picture(&tab, "hostile");
    session.nothing_happened(&file);

    // A script that did get in would not run, and could not ask for anything.
    let inject = "(() => { const script = document.createElement('script'); script.textContent = 'window.__pwned = 9';
        document.body.append(script); const image = new Image(); image.setAttribute('onerror', 'window.__pwned = 8');
        document.body.append(image); image.dispatchEvent(new Event('error')); return String(window.__pwned); })()";
    assert_eq!(session.browser.eval(&tab, inject), "undefined");
    let ask = "fetch(location.href).then(() => 'answered', () => 'refused')";
    assert_eq!(session.browser.eval(&tab, ask), "refused");
}

#[test]
fn hovering_shows_text_and_not_markup() {
    let file = page("hover", &hostile::report());
    let Some(mut session) = session("hovering_shows_text_and_not_markup") else { return };
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    let at = "(() => { const point = document.querySelector('#hostile-lines svg.lines circle.pt'); const box = point.getBoundingClientRect();
        point.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: box.x + 2, clientY: box.y + 2 })); })()";
    session.browser.eval(&tab, at);
    let said = session.text(&tab, "document.getElementById('tip').textContent");
    assert!(said.contains("<script>window.__pwned=1</script>"), "{said}");
    assert_eq!(session.count(&tab, "document.getElementById('tip').children.length"), 0);
    let hints =
        "[...document.querySelectorAll('.drawing title')].map(title => title.textContent).join('\\n')";
    let hints = session.text(&tab, hints);
    for text in ["<img src=x onerror=", "<a href=\"javascript:window.__pwned=6\">link</a>"] {
        assert!(hints.contains(text), "{text} in {hints}");
    }
    assert_eq!(session.browser.eval(&tab, "String(window.__pwned)"), "undefined");
    session.nothing_happened(&file);
}

#[test]
fn the_page_reads_without_scripts() {
    let Some(mut session) = session("the_page_reads_without_scripts") else { return };
    let report = example::report();
    let file = page("no-script", &report);
    let tab = session.tab(1280, "light");
    session.browser.ask(&tab, "Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    session.browser.open(&tab, &file);
    // What is folded opens without a script, too; why a figure is imprecise is a hint on it.
    let hints = "[...document.querySelectorAll('[title]')].map(one => one.title).join(' ')";
    let said = session.text(&tab, &format!("document.body.textContent + {hints}"));
    for text in texts(&report) {
        assert!(said.contains(&text), "{text}");
    }
    let drawn = "[...document.querySelectorAll('figure')].filter(one => one.querySelector('.drawing, .picture')).length";
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let charts = blocks.filter(|block| matches!(block, report::block::Block::Chart(_))).count();
    assert_eq!(session.count(&tab, drawn), charts as u64, "charts are drawn");
    let controls = "[...document.querySelectorAll('button, input')].filter(one => one.offsetParent).length";
    assert_eq!(session.count(&tab, controls), 0, "nothing is offered that needs a script");
    let height = session.count(&tab, "document.documentElement.scrollHeight");
    session.browser.size(&tab, 1280, height.min(8000));
    session.picture(&tab, "no-script");
    session.nothing_happened(&file);
}

/// Every text and number of the tables, and what findings say.
fn texts(report: &Report) -> Vec<String> {
    use report::block::{Block, Cell};
    let blocks = || report.sections.iter().flat_map(|section| &section.blocks);
    let tables = blocks().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        Block::Chart(chart) => Some(&chart.data),
        _ => None,
    });
    let cells = tables.flat_map(|table| table.rows.iter().flatten()).filter_map(|cell| match cell {
        Cell::Text(text) | Cell::Number(text) | Cell::Code(text) => Some(text.clone()),
        Cell::Verdict(verdict) => Some(verdict.reason.clone()),
        _ => None,
    });
    let findings = blocks().filter_map(|block| match block {
        Block::Findings(findings) => Some(findings),
        _ => None,
    });
    // The first sentence of a cause stands open, the others with the facts.
    let sentences =
        |text: &str| text.split(". ").map(|one| one.trim_end_matches('.').to_string()).collect::<Vec<_>>();
    let findings = findings.flatten().flat_map(|finding| {
        [finding.headline.clone(), finding.confirm.clone()].into_iter().chain(sentences(&finding.cause))
    });
    cells.chain(findings).collect()
}

#[test]
fn narrow_pages_do_not_scroll_sideways() {
    let file = page("narrow", &example::report());
    let Some(mut session) = session("narrow_pages_do_not_scroll_sideways") else { return };
    for width in [390, 1280] {
        let tab = session.tab(width, "light");
        session.browser.open(&tab, &file);
        session.open_all(&tab, width);
        let shown = session.count(&tab, "document.documentElement.scrollWidth");
        assert!(shown <= width, "{shown} at {width}");
        let wide = "[...document.querySelectorAll('main *')].filter(element => !element.closest('.scroll, pre, .unseen, svg')
            && element.getBoundingClientRect().right > innerWidth + 1).map(element => element.outerHTML.slice(0, 80)).join('\\n')";
        assert_eq!(session.text(&tab, wide), "", "at {width}");
        if width == 390 {
            session.picture(&tab, "narrow");
        }
    }
    session.nothing_happened(&file);
}

#[test]
fn paper_is_white_and_short() {
    let file = page("print", &example::report());
    let Some(mut session) = session("paper_is_white_and_short") else { return };
    let tab = session.tab(1280, "dark");
    session.browser.open(&tab, &file);
    let look = "addEventListener('beforeprint', () => { window.printed = 'begun'; })";
    session.browser.eval(&tab, look);
    let pdf = session.browser.ask(&tab, "Page.printToPDF", json!({ "printBackground": true }));
    assert!(pdf["data"].as_str().is_some_and(|pdf| pdf.starts_with("JVBERi") && pdf.len() > 50_000));
    assert_eq!(session.text(&tab, "window.printed"), "begun");
    session.browser.ask(&tab, "Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let colour = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(session.text(&tab, colour), "rgb(255, 255, 255)");
    let seen = |what: &str| {
        format!(
            "[...document.querySelectorAll('{what}')].filter(one => one.getBoundingClientRect().height > 0).length"
        )
    };
    assert_eq!(
        session.count(&tab, &seen(".side, section.topic, button")),
        0,
        "the answer, findings and charts"
    );
    assert!(session.count(&tab, &seen(".find")) > 0 && session.count(&tab, &seen(".drawing")) > 0);
    session.nothing_happened(&file);
}

#[test]
fn a_large_report_is_drawn_whole() {
    let file = page("large", &large::report());
    let Some(mut session) = session_alone("a_large_report_is_drawn_whole") else { return };
    let size = std::fs::metadata(&file).expect("the page").len();
    let tab = session.tab(1280, "light");
    let begun = std::time::Instant::now();
    let load = session.browser.open(&tab, &file);
    session.open_all(&tab, 1280);
    let all = begun.elapsed();
    let size = size as f64 / 1e6;
    println!("large report: {size:.1} MB, load event after {load:.2?}, all of it in sight after {all:.2?}");
    let marks: Value = session.browser.eval(&tab, MARKS);
    assert_eq!(marks["all-samples"]["dots"], 100 * 140, "{}", marks["all-samples"]);
    assert_eq!(marks["many-cpus"]["maps"], 1);
    let said = session.text(&tab, "document.querySelector('#many-cpus').innerText");
    assert!(said.contains("320 rows are drawn as 160 groups of up to 2"), "{said}");
    session.nothing_happened(&file);
}

#[test]
fn maps_are_drawn_without_scripts() {
    let file = page("sweep", &sweep::report());
    let Some(mut session) = session("maps_are_drawn_without_scripts") else { return };
    let tab = session.tab(1280, "light");
    session.browser.ask(&tab, "Emulation.setScriptExecutionDisabled", json!({ "value": true }));
    session.browser.open(&tab, &file);
    sweep::look(&mut session, &tab);
    session.nothing_happened(&file);
}
