//! The report's page in a real browser, headless and without a network.
//!
//! Where there is no Chromium and none can be installed, each test says that it is skipped and
//! passes.

mod cdp;
mod example;
mod hostile;
mod large;
mod memory;
pub mod pages;
mod permit;
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

    /// Makes the window as high as the page, so that all of it is in sight, and waits until every
    /// chart is drawn.
    fn draw_all(&mut self, tab: &Tab, width: u64) {
        let height = self.count(tab, "document.documentElement.scrollHeight");
        self.browser.size(tab, width, height);
        let drawn = "new Promise((done, fail) => { const begun = performance.now(); (function look() {
            const failed = document.querySelector('.plot.failed');
            if (failed) return fail(new Error(failed.textContent));
            const left = document.querySelectorAll('.plot:not(.drawn)').length;
            if (!left) return requestAnimationFrame(() => done(performance.now() - begun));
            if (performance.now() - begun > 240000) return fail(new Error(left + ' charts are not drawn'));
            setTimeout(look, 20); })(); })";
        self.browser.eval(tab, drawn);
    }

    fn picture(&mut self, tab: &Tab, name: &str) -> (usize, usize, f64, f64) {
        let png = self.browser.screenshot(tab);
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

/// What each chart has drawn: dots, lines with a path, bars, pictures of heat maps.
const MARKS: &str = "Object.fromEntries([...document.querySelectorAll('figure.chart')].map(figure => {
    const all = what => [...figure.querySelectorAll(what)];
    const lines = all('.scatterlayer path.js-line').filter(line => parseFloat(getComputedStyle(line).strokeWidth) > 0);
    return [figure.id, { dots: all('.scatterlayer path.point').length, lines: lines.length,
        bars: all('.barlayer .point path').length, maps: all('.heatmaplayer image').length,
        bands: all('.scatterlayer .js-fill').length }]; }))";

#[test]
fn every_chart_is_drawn_in_light_and_dark() {
    let file = page("report", &example::report());
    let Some(mut session) = session("every_chart_is_drawn_in_light_and_dark") else { return };
    let tab = session.tab(1280, "light");
    let took = session.browser.open(&tab, &file);
    session.draw_all(&tab, 1280);
    let size = std::fs::metadata(&file).expect("the page").len();
    println!("example report: {:.1} MB, load event after {took:.2?}", size as f64 / 1e6);

    let marks = session.browser.eval(&tab, MARKS);
    assert_eq!(marks.as_object().expect("charts").len(), 6, "{marks}");
    // Two curves of 30 points with a band each.
    assert_eq!(
        marks["ladder"],
        json!({ "dots": 60, "lines": 2, "bars": 0, "maps": 0, "bands": 2 }),
        "{marks}"
    );
    // 12 strips of 40 samples, each with an interval and a median.
    assert_eq!(marks["samples"]["dots"], 12 * 40 + 12 + 12, "{marks}");
    // Four bars have a value; the dots carry the axis of figures.
    assert_eq!(marks["copy"]["bars"], 4, "{marks}");
    assert_eq!(marks["cpu-to-cpu"]["maps"], 1, "{marks}");
    assert_eq!(marks["time-lines"]["lines"], 3, "{marks}");

    let light = session.picture(&tab, "light");
    let colour = "getComputedStyle(document.querySelector('#ladder .ytick text')).fill";
    let before = session.text(&tab, colour);
    session.scheme(&tab, "dark");
    session.draw_all(&tab, 1280);
    assert_ne!(session.text(&tab, colour), before, "charts follow the colour scheme");
    let dark = session.picture(&tab, "dark");
    assert_eq!((light.0, dark.0), (1280, 1280));
    assert!(light.1 > 2000 && light.3 > 10.0 && dark.3 > 10.0, "not blank: {light:?} {dark:?}");
    assert!(light.2 > 200.0 && dark.2 < 70.0, "light is light and dark is dark: {light:?} {dark:?}");

    // The other order of the matrix, at the press of its button.
    let first = "document.querySelector('#cpu-to-cpu .plot').data[0].y.slice(0, 3).join()";
    assert_eq!(session.text(&tab, first), "0,32,1");
    session.browser.eval(&tab, "document.querySelector('#cpu-to-cpu .switch button:last-child').click()");
    assert_eq!(session.text(&tab, first), "0,1,2");
    session.nothing_happened(&file);
}

#[test]
fn every_view_of_memory_is_drawn() {
    let file = page("memory", &memory::report(8));
    let Some(mut session) = session("every_view_of_memory_is_drawn") else { return };
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    session.draw_all(&tab, 1280);
    let marks = session.browser.eval(&tab, MARKS);
    let of = |chart: &str, what: &str| marks[chart][what].as_u64();
    // Nine operations over 16 sizes, in two charts for each placement, each line with a band.
    for (chart, lines) in [("", 5), ("-1", 4), ("-2", 5), ("-3", 4)] {
        let chart = format!("chart-made-bandwidth{chart}");
        let drawn = ["dots", "lines", "bands"].map(|what| of(&chart, what));
        assert_eq!(drawn, [Some(lines * 16), Some(lines), Some(lines)], "{chart}: {marks}");
    }
    assert_eq!((of("chart-made-chains", "dots"), of("chart-made-chains", "lines")), (Some(6), Some(1)));
    assert_eq!((of("chart-made-pairs", "maps"), of("chart-made-nodes", "maps")), (Some(1), Some(1)));
    // Three mixes of twelve points, and a ring around each knee.
    assert_eq!(
        (of("chart-made-loaded", "dots"), of("chart-made-loaded", "lines")),
        (Some(3 * 12 + 3), Some(3))
    );
    let texts = |chart: &str, what: &str| {
        format!("[...document.querySelectorAll('#{chart} {what}')].map(text => text.textContent).join('|')")
    };
    let knees = session.text(&tab, &texts("chart-made-loaded", ".annotation-text"));
    assert_eq!(knees, "knee|knee|knee");
    // CPUs are dots without a line.
    assert_eq!((of("chart-made-cores", "dots"), of("chart-made-cores", "lines")), (Some(16), Some(0)));
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".ytick text")), "node 1|node 0");
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".xtick text")), "node 0|node 1|node 2");
    assert_eq!(session.text(&tab, &texts("chart-made-nodes", ".annotation-text")), "210|88.0|31.0|86.9|212");

    // The order of rows and columns changes at the press of a button, and so do the labels on the
    // axes.
    let first = |axis: &str| {
        format!("document.querySelector('#chart-made-pairs .plot').data[0].{axis}.slice(0, 3).join()")
    };
    let labels = texts("chart-made-pairs", ".ytick text");
    let before = session.text(&tab, &labels);
    assert_eq!(session.text(&tab, &first("y")), "CPU 0,CPU 16,CPU 1");
    session
        .browser
        .eval(&tab, "document.querySelector('#chart-made-pairs .switch button:last-child').click()");
    for axis in ["x", "y"] {
        assert_eq!(session.text(&tab, &first(axis)), "CPU 0,CPU 1,CPU 2");
    }
    assert_ne!(session.text(&tab, &labels), before);

    let said = session.text(&tab, "document.querySelector('#made-source').innerText");
    for text in ["core-modified", "not on this machine: no package with usable CPUs on two NUMA nodes"] {
        assert!(said.contains(text), "{said}");
    }
    session.picture(&tab, "memory-light");
    let colour = "getComputedStyle(document.querySelector('#chart-made-loaded .ytick text')).fill";
    let before = session.text(&tab, colour);
    session.scheme(&tab, "dark");
    session.draw_all(&tab, 1280);
    assert_ne!(session.text(&tab, colour), before, "charts follow the colour scheme");
    session.picture(&tab, "memory-dark");
    let narrow = session.tab(390, "light");
    session.browser.open(&narrow, &file);
    session.draw_all(&narrow, 390);
    let width = session.count(&narrow, "document.documentElement.scrollWidth");
    assert!(width <= 390, "{width}");
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
    session.draw_all(&tab, 1280);
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
    session.draw_all(&tab, 1280);
    // Whatever waits for a mouse or for focus gets it.
    session.browser.eval(&tab, "for (const element of document.querySelectorAll('body *')) for (const kind of
        ['mouseover', 'focus', 'error', 'load']) if (!element.closest('.plot')) element.dispatchEvent(new Event(kind))");
    assert_eq!(session.browser.eval(&tab, "String(window.__pwned)"), "undefined");
    let made = "document.querySelectorAll('body img, a[href^=javascript], svg[onload], [onmouseover], [onerror]').length";
    assert_eq!(session.count(&tab, made), 0, "no element came from a text");
    assert_eq!(
        session.count(
            &tab,
            "document.querySelectorAll('.plot svg a, .plot b, .plot tspan[style*=bold]').length"
        ),
        0
    );
    assert_eq!(session.count(&tab, "document.querySelectorAll('script').length - document.querySelectorAll('figure script.spec').length"), 4);

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
    let drawn = session
        .text(&tab, "[...document.querySelectorAll('.plot text')].map(text => text.textContent).join('\\n')");
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
    session.draw_all(&tab, 1280);
    let wanted = [
        ("hostile-lines", "0", "<script>window.__pwned=1</script> · <script>window.__pwned=1</script>"),
        ("hostile-strips", "0", "<img src=x onerror="),
        ("hostile-bars", "0", "<a href=\"javascript:window.__pwned=6\">link</a>"),
        ("hostile-matrix", "[0, 1]", "<a href=\"javascript:win… → "),
    ];
    for (chart, point, wanted) in wanted {
        let plot = format!("document.querySelector('#{chart} .plot')");
        session
            .browser
            .eval(&tab, &format!("Plotly.Fx.hover({plot}, [{{ curveNumber: 0, pointNumber: {point} }}])"));
        let label = session.text(&tab, &format!("{plot}.querySelector('.hoverlayer').textContent"));
        assert!(label.contains(wanted), "{chart}: {label}");
        assert_eq!(session.count(&tab, &format!("{plot}.querySelectorAll('.hoverlayer a').length")), 0);
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
    let said = session.text(&tab, "document.body.innerText");
    assert!(said.contains("Charts need scripts"), "{said}");
    for text in texts(&report) {
        assert!(said.contains(&text), "{text}");
    }
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
    let findings = findings
        .flatten()
        .flat_map(|finding| [finding.headline.clone(), finding.confirm.clone(), finding.cause.clone()]);
    cells.chain(findings).collect()
}

#[test]
fn narrow_pages_do_not_scroll_sideways() {
    let file = page("narrow", &example::report());
    let Some(mut session) = session("narrow_pages_do_not_scroll_sideways") else { return };
    for width in [390, 1280] {
        let tab = session.tab(width, "light");
        session.browser.open(&tab, &file);
        session.draw_all(&tab, width);
        let shown = session.count(&tab, "document.documentElement.scrollWidth");
        assert!(shown <= width, "{shown} at {width}");
        let wide = "[...document.querySelectorAll('main *')].filter(element => !element.closest('.scroll, .plot, pre, .unseen')
            && element.getBoundingClientRect().right > innerWidth + 1).map(element => element.outerHTML.slice(0, 80)).join('\\n')";
        assert_eq!(session.text(&tab, wide), "", "at {width}");
        if width == 390 {
            session.picture(&tab, "narrow");
        }
    }
    session.nothing_happened(&file);
}

#[test]
fn paper_is_white_and_has_every_chart() {
    let file = page("print", &example::report());
    let Some(mut session) = session("paper_is_white_and_has_every_chart") else { return };
    let tab = session.tab(1280, "dark");
    session.browser.open(&tab, &file);
    let look = "addEventListener('beforeprint', () => { window.printed = [document.querySelectorAll('.plot:not(.begun)').length,
        getComputedStyle(document.body).backgroundColor, document.querySelectorAll('.plot svg').length > 6].join(' ') })";
    session.browser.eval(&tab, look);
    let pdf = session.browser.ask(&tab, "Page.printToPDF", json!({ "printBackground": true }));
    assert!(pdf["data"].as_str().is_some_and(|pdf| pdf.starts_with("JVBERi") && pdf.len() > 100_000));
    assert_eq!(session.text(&tab, "window.printed"), "0 rgb(248, 248, 247) true");
    assert_eq!(session.text(&tab, "getComputedStyle(document.body).backgroundColor"), "rgb(15, 18, 24)");
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
    // The library sleeps until a chart is in sight: what counts is when the largest one can be
    // seen.
    session.browser.eval(&tab, "document.querySelector('#all-samples').scrollIntoView()");
    session.browser.eval(&tab, "new Promise(done => (function look() {
        if (document.querySelector('#all-samples .plot').classList.contains('drawn')) done(); else setTimeout(look, 10); })())");
    let seen = begun.elapsed();
    session.draw_all(&tab, 1280);
    let all = begun.elapsed();
    let size = size as f64 / 1e6;
    println!(
        "large report: {size:.1} MB, load event after {load:.2?}, samples seen {seen:.2?}, all charts at once {all:.2?}"
    );
    let marks: Value = session.browser.eval(&tab, MARKS);
    assert_eq!(marks["all-samples"]["dots"], 100 * 140 + 100 + 100, "{}", marks["all-samples"]);
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
