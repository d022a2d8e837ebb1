//! Sweeps with invented samples: an effect that is planted, none, and noise that hides whatever
//! there is.

use serde_json::{Value, json};

use super::edited::{Edit, server};
use super::{Case, case};
use crate::runs::findings;

/// A sweep of these words on a server of which nothing is turned.
fn sweep(words: &str) -> Edit {
    let tree = server();
    Edit::of_verb(&["sweep"], &format!("{words} --quick --pretend 7 --root {}", tree.root().display()))
}

/// Makes a benchmark's calls of one setting take this many times as long.
pub fn slower(run: &mut Edit, bench: &str, knob: &str, value: &str, factor: f64) {
    let plan = run.header()["plan"].clone();
    run.each(|_, visit| {
        let planned = &plan[visit["case"].as_u64().expect("a case") as usize]["case"];
        if planned["bench"] != bench || planned["knobs"][knob] != value {
            return;
        }
        for samples in visit["samples"].as_array_mut().into_iter().flatten() {
            for work in samples["work"].as_array_mut().expect("a column") {
                *work = json!(work.as_f64().expect("a number") / factor);
            }
        }
    });
}

const TWO: &str =
    "syscall.getpid --response syscall.stat --knob policy=other,batch --knob slice_ns=1ms,3ms,10ms";

fn headline(results: &Value, rule: &str) -> String {
    findings(results, rule)[0]["headline"].as_str().expect("a text").to_string()
}

pub fn knobs_that_matter_and_knobs_that_do_not() -> Vec<Case> {
    let nothing = sweep(TWO).diagnosed();
    let said = headline(&nothing, "sweep-effect");
    assert!(said.starts_with("No setting of policy and slice changes System call"), "{said}");
    let mut planted = sweep(TWO);
    slower(&mut planted, "syscall.getpid", "policy", "batch", 0.7);
    let planted = planted.diagnosed();
    let said = headline(&planted, "sweep-effect");
    assert!(said.starts_with("Policy matters for System call"), "{said}");
    assert!(said.contains(": batch 30 % less") && said.contains(". Slice shows no effect."), "{said}");
    vec![case("knobs without an effect", nothing), case("a policy that is faster", planted)]
}

/// Free tasks hop between two levels in invented samples: a noise of tens of per cent.
/// All passes are made: of four, those at one level can look quiet.
pub fn effects_below_a_loud_noise() -> Vec<Case> {
    vec![case("a free pair", sweep("ipc.pipe-pingpong --effect 0.1 --knob policy=other,batch").diagnosed())]
}

pub fn settings_between_two_metrics() -> Vec<Case> {
    let mut run = sweep(TWO);
    slower(&mut run, "syscall.getpid", "policy", "batch", 0.7);
    slower(&mut run, "syscall.stat", "policy", "batch", 1.5);
    let results = run.diagnosed();
    let said = headline(&results, "sweep-trade");
    assert!(said.starts_with("No other setting beats "), "{said}");
    vec![case("one gains what the other loses", results)]
}

pub fn settings_that_nothing_tells_apart() -> Vec<Case> {
    vec![case("no setting matters", sweep(TWO).diagnosed())]
}
