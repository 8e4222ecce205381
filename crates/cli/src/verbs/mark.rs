//! `numa mark`.

use crate::{Examples, GlobalArgs};
use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_sys::clock::{self, Alarm};
use numakit_sys::mark::{self, Mark as Instruction};
use std::process::ExitCode;

/// Mark the beginning or the end of a measurement for the simulated machine
///
/// Executes one instruction that has no effect on a real processor. The simulated machine of
/// 'cargo xtask guest --sim' counts cache lines from 'begin' to 'end'. C programs use
/// native/include/numakit-mark.h for the same purpose. Nothing is printed.
#[derive(Debug, Args)]
pub struct MarkArgs {
    /// Which mark
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The measurement begins
    Begin,
    /// The measurement ends
    End,
}

/// The simulator notices the mark at once, but executes code that it translated without counting
/// until its CPUs translate again.
const UNTIL_IT_COUNTS: u64 = 20_000_000;

impl MarkArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa mark begin", "an instruction that the simulated machine counts from"),
        ("numa mark end", "and up to"),
    ];

    /// Executes the instruction.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("a mark is an instruction of this processor")?;
        let instruction = match self.what {
            What::Begin => Instruction::Begin,
            What::End => Instruction::End,
        };
        mark::mark(instruction)
            .context("this processor has no mark instruction; use a simulated x86-64 machine")?;
        if self.what == What::Begin {
            Alarm::new().sleep_until(clock::monotonic() + UNTIL_IT_COUNTS);
        }
        Ok(ExitCode::SUCCESS)
    }
}
