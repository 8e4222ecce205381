//! Tests with real launchers, supervisors and programs.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod allocation_lock;
mod holding;
mod passing;
mod recovering;
mod refusing;
mod scene;
mod storm;
mod terminal;
