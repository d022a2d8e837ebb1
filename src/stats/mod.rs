//! Statistics: pure functions from samples to numbers, intervals and verdicts.
pub mod change;
pub mod contingency;
pub mod dependence;
pub mod drift;
pub mod estimate;
pub mod mixture;
pub mod modes;
pub mod multiple;
pub mod nested;
pub mod noise;
pub mod order;
pub mod outliers;
pub mod ranks;
pub mod tails;
