//! Clocks after idling; the invented core clock is 3 GHz at every step.

use serde_json::Value;

use super::edited::Edit;
use super::{Case, case};
use crate::runs::{findings, pretended};

const RAMP: &str = "cpu.frequency-ramp";

/// A run in which the clock of steps up to `until_us` is `factor` times the invented one.
fn ramp(until_us: f64, factor: f64) -> Edit {
    let mut run = Edit::of(&pretended(RAMP));
    run.scaled(RAMP, "at_us", |at_us| if at_us <= until_us { factor } else { 1.0 });
    run
}

fn headline(results: &Value) -> &str {
    findings(results, "clock-after-idle")[0]["headline"].as_str().expect("a text")
}

pub fn clocks_that_wake_low_or_high() -> Vec<Case> {
    let low = ramp(2_000.0, 0.5).diagnosed();
    let text = headline(&low);
    assert!(text.starts_with("The core runs at 1.5") && text.contains(" GHz for 2 ms after "), "{text}");
    let finding = findings(&low, "clock-after-idle")[0];
    assert_eq!(finding["severity"], "warning");
    let facts = finding["facts"].to_string();
    for words in
        ["after 1 ms of idling", "after 10 ms of idling", "after 100 ms of idling", "GHz instead of", "lost"]
    {
        assert!(facts.contains(words), "{words:?} is missing: {facts}");
    }
    let high = ramp(10_000.0, 1.2).diagnosed();
    assert!(
        headline(&high).starts_with("The core runs at 3.6") && headline(&high).contains("for 10 ms after"),
        "{high}"
    );
    assert_eq!(findings(&high, "clock-after-idle")[0]["severity"], "note");
    let mut never = Edit::of(&pretended("cpu.clock,cpu.frequency-ramp"));
    never.scaled(RAMP, "at_us", |_| 0.46);
    let never = never.diagnosed();
    assert!(
        headline(&never).starts_with("The core runs at 1.3") && headline(&never).contains("for 100 ms after"),
        "{never}"
    );
    vec![
        case("half the clock for 2 ms", low),
        case("turbo for 10 ms", high),
        case("a clock that is never reached", never),
    ]
}

pub fn clocks_that_are_there_at_once() -> Vec<Case> {
    let near = ramp(2_000.0, 0.985).diagnosed();
    vec![case("the same clock", ramp(0.0, 1.0).diagnosed()), case("1.5 % less, which is the same", near)]
}

/// The published laptop: 1.37 GHz idle, 3.0 GHz loaded. The file lies beside the repository.
#[test]
fn the_published_laptop_in_its_sentence() {
    let path = testkit::root().join("../shared/spec/data/turbo_i5_2520m.csv");
    let Ok(text) = std::fs::read_to_string(path) else {
        eprintln!("skipped: turbo_i5_2520m.csv is not beside this clone");
        return;
    };
    let mean_ghz = |state: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(&format!("{state},")));
        let mhz: Vec<f64> =
            lines.map(|line| line.split(',').nth(1).expect("mhz").parse().expect("a number")).collect();
        mhz.iter().sum::<f64>() / mhz.len() as f64 / 1e3
    };
    let (idle, loaded) = (mean_ghz("idle"), mean_ghz("loaded"));
    let mut run = Edit::of(&pretended(RAMP));
    run.scaled(RAMP, "at_us", |at_us| if at_us <= 2_000.0 { idle } else { loaded } / 3.0);
    let results = run.diagnosed();
    let text = headline(&results);
    assert!(text.contains(" GHz for 2 ms after "), "{text}");
    let ghz: Vec<f64> =
        text.split(' ').filter_map(|word| word.parse().ok()).filter(|ghz| *ghz < 9.9).collect();
    let [from, to, ..] = ghz[..] else { panic!("{text}") };
    assert!((from - 1.37).abs() < 0.02 && (to - 3.02).abs() < 0.03, "{text}");
}
