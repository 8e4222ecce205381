//! From a plan to a running program.
