//! What a network's numbers mean: whose limit they show, and what on the way makes them smaller
//! than they could be.

use super::Rule;

mod ends;
mod experiment;
mod limits;
mod loss;
mod transfers;

pub const RULES: &[Rule] = &[
    experiment::BOTTLENECK,
    limits::SHAPER,
    limits::WINDOW,
    limits::CPU_BOUND,
    limits::ONE_STREAM,
    loss::LOSS,
    ends::OFFLOADS,
    ends::IRQS,
    ends::PATH_MTU,
    ends::LOOPBACK,
];

pub use transfers::link_ceiling;
