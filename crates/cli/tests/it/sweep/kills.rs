//! A few kills of a sweep that turns this host's own knobs; `make prove` makes two hundred.

use std::time::Duration;

use crate::host::{is_root, skipped};
use testkit::killing::{Kill, KillTarget, KilledSweep};

#[test]
fn killed_at_random_moments_a_sweep_leaves_the_machine_as_it_was() {
    let test = "killed_at_random_moments_a_sweep_leaves_the_machine_as_it_was";
    if !is_root() {
        return skipped(test, "only root may turn thp and thp_defrag");
    }
    let program = testkit::program();
    let mut bout = match KilledSweep::new(program) {
        Ok(bout) => bout,
        Err(why) => return skipped(test, why),
    };
    let mut random = fastrand::Rng::with_seed(6);
    // One of each kind.
    for target in &KillTarget::TEN[2..7] {
        // The first second goes to the gate.
        let after = Duration::from_millis(random.u64(1000..4000));
        if let Some(kill) = bout.kill(*target, after) {
            let Kill { target, turned, visits, back, faults } = kill;
            println!("{target:?}: {turned} knobs turned, {visits} visits, back after {back:?}");
            assert!(faults.is_empty(), "{target:?}: {faults:?}");
        }
    }
    bout.finish();
    assert!(bout.completed > 0);
}
