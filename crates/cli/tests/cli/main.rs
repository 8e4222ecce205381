//! The command as its users run it.

#![allow(clippy::unwrap_used)]

mod cards;
mod control;
mod export;
mod faults;
mod formulas;
mod homes;
mod live;
mod mark;
mod numascope;
mod plan;
mod record;
mod run;
mod run_kinds;
mod runner;
mod stat;
mod tasks;
mod view;
