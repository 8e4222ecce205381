//! Samples of a real program by each method.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[cfg(target_arch = "x86_64")]
mod based;
mod by_perf;
mod by_ptrace;
mod calibrated;
mod program;
#[cfg(target_arch = "x86_64")]
mod recovered;
