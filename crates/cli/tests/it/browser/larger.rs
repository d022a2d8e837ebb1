//! A chart in a window over the page.

use serde_json::json;

use super::{Session, example, page, session};
use crate::browser::cdp::Tab;

impl Session {
    fn press(&mut self, tab: &Tab, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
                "text": if key == "Enter" { "\r" } else { "" } });
            self.browser.ask(tab, "Input.dispatchKeyEvent", event);
        }
    }
}

const WIDTH: &str = "document.querySelector('#ladder .drawing path.curve').getBoundingClientRect().width";

#[test]
fn a_chart_is_shown_larger_and_put_back() {
    let file = page("larger", &example::report());
    let Some(mut session) = session("a_chart_is_shown_larger_and_put_back") else { return };
    let tab = session.tab(1440, "light");
    session.browser.open(&tab, &file);
    let order =
        "[...document.querySelectorAll('main figure')].map(figure => figure.id + figure.className).join()
        + document.documentElement.scrollHeight";
    let before = session.text(&tab, order);
    let width = session.browser.eval(&tab, WIDTH).as_f64().expect("a width");

    // By keyboard alone.
    session.browser.eval(&tab, "document.querySelector('#ladder .larger').focus()");
    session.press(&tab, "Enter", 13);
    let open = "document.querySelector('dialog:modal #ladder') !== null";
    assert_eq!(session.browser.eval(&tab, open), true);
    assert_eq!(session.text(&tab, "document.activeElement.textContent"), "Close");
    let larger = session.browser.eval(&tab, WIDTH).as_f64().expect("a width");
    assert!(larger > 1.3 * width, "{larger} of {width}");
    let fits =
        "(() => { const shown = document.querySelector('dialog'); const box = shown.getBoundingClientRect();
        return shown.scrollWidth <= shown.clientWidth && box.left >= 0 && box.right <= innerWidth; })()";
    assert_eq!(session.browser.eval(&tab, fits), true);
    // Points are read off as on the page, above the window.
    let hover = "(() => { const point = document.querySelector('#ladder circle.pt');
        const box = point.getBoundingClientRect();
        point.closest('svg.lines').dispatchEvent(new PointerEvent('pointermove', { bubbles: true,
            clientX: box.x + 2, clientY: box.y + 2 }));
        const tip = document.querySelector('dialog #tip');
        return String(!tip.hidden && tip.textContent === document.querySelector('#ladder .lit title').textContent); })()";
    assert_eq!(session.text(&tab, hover), "true");
    session.picture(&tab, "larger");

    session.press(&tab, "Escape", 27);
    assert_eq!(session.browser.eval(&tab, open), false);
    assert_eq!(
        session.text(&tab, "document.activeElement.getAttribute('aria-label').slice(0, 7)"),
        "Larger:"
    );
    assert_eq!(session.text(&tab, order), before);

    // Paper has the chart in its place, whatever was open.
    session.browser.eval(&tab, "document.querySelector('#ladder .larger').click()");
    session.browser.ask(&tab, "Page.printToPDF", json!({}));
    assert_eq!(session.text(&tab, order), before);
    session.nothing_happened(&file);
}
