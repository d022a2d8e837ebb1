//! Table of what steps in histories of hosts are worth.

use super::{Section, measured};
use crate::statistics::{row, titled};
use prove::histories::{Between, Planted, Seen, histories};

pub const SECTIONS: &[Section] = &[Section { name: "trend", title: "Steps of a host's figures", run: steps }];

const HOSTS: usize = 60;

fn steps() -> String {
    let cells: Vec<usize> = vec![8, 12, 20, 40];
    let rows = measured(&cells, |runs| {
        let steady = |between: Between| histories(*runs, between, None, HOSTS, 11);
        let planted = |share: f64, runs_ago: usize| {
            histories(*runs, Between::Normal, Some(Planted { share, runs_ago }), HOSTS, 12).found.to_string()
        };
        let shown = |seen: Seen| format!("{:.3} %", 100.0 * seen.false_steps.share());
        let normal = steady(Between::Normal);
        row![
            runs,
            shown(normal),
            normal.false_hosts,
            shown(steady(Between::Spikes)),
            shown(steady(Between::Wandering(0.5))),
            planted(0.03, runs / 2),
            planted(0.05, runs / 2),
            planted(0.10, runs / 2),
            planted(0.05, 3),
            planted(0.10, 3)
        ]
    });
    let header = "runs | steady figures with a step | hosts with one | one run in ten 10 % off | levels that \
         wander | found: 3 % in the middle | 5 % | 10 % | 5 % three runs ago | 10 %";
    titled(header, rows)
}
