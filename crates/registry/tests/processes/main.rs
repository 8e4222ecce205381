//! Launchers, keepers and programs as real processes.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod holding;
mod passing;
mod recovering;
mod refusing;
mod scene;
mod storm;
mod terminal;
mod turns;
