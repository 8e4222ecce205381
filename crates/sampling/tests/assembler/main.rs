//! Oracle: instructions of an independent assembler, with registers and expected addresses.

#![allow(clippy::unwrap_used)]

mod arm;
mod expression;
mod golden;
mod x86;
