//! The search of the page and "Only problems".

use super::{example, page, session};

#[test]
fn a_search_leaves_what_fits_and_puts_all_back() {
    let file = page("search", &example::report());
    let Some(mut session) = session("a_search_leaves_what_fits_and_puts_all_back") else { return };
    let tab = session.tab(1280, "light");
    session.browser.open(&tab, &file);
    let state = "[...document.querySelectorAll('details')].map(fold => Number(fold.open)).join('')
        + ' ' + document.querySelector('main').innerText.length";
    let before = session.text(&tab, state);
    let seek = |words: &str| {
        format!(
            "(() => {{ const search = document.getElementById('search'); search.value = '{words}';
            search.dispatchEvent(new Event('input')); }})()"
        )
    };
    let rows = "[...document.querySelectorAll('main tbody tr')].filter(row => row.offsetParent).map(row => row.textContent).join('\\n')";
    session.browser.eval(&tab, &seek("same-llc"));
    let found = session.text(&tab, rows);
    assert!(!found.is_empty(), "some rows fit");
    // A key is the row's tooltip and is searched as its words are.
    assert!(found.lines().all(|row| row.contains("same-llc")), "{found}");
    session.browser.eval(&tab, &seek("no such words anywhere"));
    assert_eq!(session.text(&tab, rows), "");
    assert_eq!(session.browser.eval(&tab, "document.getElementById('nothing').hidden"), false);
    session.browser.eval(&tab, &seek(""));
    assert_eq!(session.text(&tab, state), before);
    session.browser.eval(&tab, "document.getElementById('only').click()");
    let notes = "[...document.querySelectorAll('.find.note')].filter(note => note.offsetParent).length";
    assert_eq!(session.count(&tab, notes), 0);
    session.browser.eval(&tab, "document.getElementById('only').click()");
    assert_eq!(session.text(&tab, state), before);
    session.nothing_happened(&file);
}
