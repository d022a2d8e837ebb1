//! Trees made by the test.
