//! The page under axe-core, which looks for what keeps people from reading it.
//!
//! Where npm cannot fetch axe-core, the test says that it is skipped and passes.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{example, page, session};

/// The script, fetched once by npm into a folder of the build's.
fn axe() -> Option<String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("axe");
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).expect("a folder for axe-core");
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]).arg(&folder);
        // Another version may find something else in a page that did not change.
        npm.arg("axe-core@4.10.3").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        npm.status().ok().filter(|status| status.success())?;
    }
    std::fs::read_to_string(script).ok()
}

const FOUND: &str = "axe.run(document.querySelector('dialog[open]') ?? document, { resultTypes: ['violations'] }).then(found => found.violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => one.id + ': ' + one.nodes.slice(0, 3).map(node => node.html.slice(0, 200)).join(' | '))
    .join('\\n'))";

#[test]
fn the_page_has_no_serious_fault_for_anyone() {
    let Some(axe) = axe() else {
        println!("browser::axe is skipped: npm could not install axe-core");
        return;
    };
    let run = tempfile::tempdir().expect("a temporary directory");
    crate::golden::pretended(7, run.path(), &[]);
    let (real, all) = (run.path().join("report.html"), page("axe", &example::report()));
    let Some(mut session) = session("the_page_has_no_serious_fault_for_anyone") else { return };
    // A page with everything in both schemes; a run's has nothing that it has not.
    for (file, scheme) in [(&real, "light"), (&all, "light"), (&all, "dark")] {
        let tab = session.tab(1280, scheme);
        session.browser.open(&tab, file);
        session.open_all(&tab, 1280);
        session.browser.eval(&tab, &format!("(() => {{ {axe} }})()"));
        let found = session.text(&tab, FOUND);
        assert_eq!(found, "", "{} in {scheme}", file.display());
        // A chart over the page.
        session.browser.eval(&tab, "document.querySelector('.larger').click()");
        assert_eq!(session.text(&tab, FOUND), "", "{} in {scheme}, a chart larger", file.display());
    }
    // The test can fail: text in the colour of its ground is a fault.
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &real);
    session.browser.eval(&tab, "document.querySelector('h1').style.color = '#f0f0f0'");
    session.browser.eval(&tab, &format!("(() => {{ {axe} }})()"));
    let ids = "axe.run('h1').then(found => found.violations.map(one => one.id).join(' '))";
    assert!(session.text(&tab, ids).contains("color-contrast"));
}
