//! Statistics: pure functions from samples to numbers, intervals and verdicts.
pub mod change;
pub mod dependence;
pub mod drift;
pub mod nested;
pub mod noise;
pub mod order;
pub mod ranks;
pub mod tails;
