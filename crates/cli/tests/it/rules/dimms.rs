//! Memory modules: boards made for the purpose, on the clean server.

use super::edited::changed;
use super::{Case, case};
use crate::runs::findings;
use crate::smbios::Board;

const STEADY: &str = "selftest.steady";
const RULE: &str = "dimm-population";

fn board(what: &str, sockets: u32, filled: &[&str]) -> Case {
    changed(what, STEADY, |tree| Board::dell(sockets, filled).write(tree))
}

pub fn modules_in_the_wrong_slots() -> Vec<Case> {
    let three_one = board("3+1", 2, &["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"]);
    let found = &findings(&three_one.results, RULE)[0];
    assert_eq!(found["severity"], "problem");
    assert!(
        found["headline"]
            .as_str()
            .is_some_and(|text| text.contains("sockets 0 and 1 have 3+1 modules on their controllers")),
        "{found}"
    );
    assert!(found["advice"].as_str().is_some_and(|text| text.contains("A3 to A5, B3 to B5")), "{found}");
    assert!(found["facts"][0]["source"].as_str().is_some_and(|path| path.starts_with("/sys/firmware/dmi")));
    let without = board("a socket without memory", 2, &["A1", "A2", "A3", "A4", "A5", "A6"]);
    let empty = board("2+2: channels are empty", 2, &["A1", "A2", "A4", "A5", "B1", "B2", "B4", "B5"]);
    let lean = board("3+2", 1, &["A1", "A2", "A3", "A4", "A5"]);
    for quiet in [&empty, &lean] {
        assert_eq!(findings(&quiet.results, RULE)[0]["severity"], "note", "{}", quiet.what);
    }
    vec![three_one, without, empty, lean]
}

pub fn modules_in_the_right_slots() -> Vec<Case> {
    // The same modules, as a guest's hypervisor invents them: the rule must not even look.
    let guest = changed("a guest", STEADY, |tree| {
        Board::dell(2, &["A1", "A2", "A3", "A4"]).write(tree);
        tree.file("/sys/hypervisor/type", "kvm");
    });
    let blind = guest.results["rules_not_applicable"].as_array().expect("a list");
    assert!(blind.contains(&RULE.into()), "{blind:?}");
    vec![changed("all channels alike", STEADY, |tree| Board::even(2).write(tree)), {
        let all: Vec<String> = (1..=12).map(|number| format!("A{number}")).collect();
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        case("every slot of one socket", board("", 1, &all).results)
    }]
}
