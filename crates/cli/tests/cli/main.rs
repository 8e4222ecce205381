//! The command as its users run it.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod cards;
mod completion;
mod control;
mod explain;
mod explain_fields;
mod explain_flame;
mod explain_objects;
mod explain_roads;
mod explain_truth;
mod export;
mod faults;
mod formulas;
mod homes;
mod live;
mod live_files;
mod locale;
mod man;
mod mark;
mod numaplace;
mod numascope;
mod odd_files;
mod output;
mod outputs;
mod plan;
mod record;
mod run;
mod run_kinds;
mod runner;
mod servers;
mod stat;
mod tasks;
mod translations;
mod usage;
mod view;
