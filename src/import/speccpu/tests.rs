//! Results of SPEC CPU2017.
