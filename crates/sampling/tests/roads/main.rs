//! Samples of a real program by each road.

mod by_perf;
mod by_ptrace;
mod calibrated;
mod program;
