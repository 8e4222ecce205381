//! What tests of several crates use. Crates depend on it in their tests only.

pub mod wait;
