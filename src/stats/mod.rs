//! Statistics: pure functions from samples to numbers, intervals and verdicts.
pub mod analysis;
pub mod behaviour;
pub mod bootstrap;
pub mod change;
pub mod compare;
pub mod contingency;
pub mod dependence;
pub mod drift;
pub mod estimate;
pub mod index;
pub mod interleave;
pub mod mixture;
pub mod modes;
pub mod multiple;
pub mod nested;
pub mod noise;
pub mod order;
pub mod outliers;
pub mod proof;
pub mod ranks;
pub mod series;
pub mod stop;
pub mod tails;
pub mod verdict;

#[cfg(test)]
mod any_input;
#[cfg(test)]
mod published;
#[cfg(test)]
mod run_of;
